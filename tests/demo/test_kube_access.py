"""Tokens, roles, faults."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from bot.demo import EmbeddedWorld
from bot.demo.cluster import DEFAULT_OBJECTS

from .conftest import NAMESPACE, Client, workflow

PATH = f"{NAMESPACE}/workflows"
RBAC = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: bot, namespace: foxhunt}
rules:
  - {apiGroups: [argoproj.io], resources: [workflows], verbs: [get, list]}
  - {apiGroups: [argoproj.io], resources: [cronworkflows], verbs: [patch], resourceNames: [gpu-test-nightly]}
  - {apiGroups: [""], resources: [pods/log], verbs: [get]}
  - {apiGroups: [""], resources: [configmaps], verbs: [list], resourceNames: [one]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: bot, namespace: foxhunt}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: bot}
subjects:
  - {kind: ServiceAccount, name: gputest-bot, namespace: gputest}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: not-played}
"""


async def test_unknown_tokens_are_401_and_nobody_is_anonymous(
    world: EmbeddedWorld, session: aiohttp.ClientSession
) -> None:
    """A token that nobody issued is unauthorized; no token at all is the anonymous user, who may do nothing."""
    status, error = await Client(session, world.kube_url, "wrong")("GET", PATH)

    assert (status, error["reason"], error["message"]) == (401, "Unauthorized", "Unauthorized")
    status, error = await Client(session, world.kube_url, "")("GET", PATH)

    assert (status, error["reason"]) == (403, "Forbidden")
    assert 'User "system:anonymous" cannot list resource "workflows"' in error["message"]


async def test_roles_of_a_manifest_decide(tmp_path: Path, session: aiohttp.ClientSession) -> None:
    """The bot's service account may do what its Role grants, by name where it says so; what it did is on record."""
    manifest = tmp_path / "rbac.yaml"
    manifest.write_text(RBAC)
    manifests = [DEFAULT_OBJECTS, manifest]
    async with EmbeddedWorld(speed=0, manifests=manifests, bot_account="gputest/gputest-bot") as world:
        bot = Client(session, world.kube_url, world.kube_token)

        assert (await bot("GET", PATH))[0] == 200
        assert (await bot.patch(f"{NAMESPACE}/cronworkflows/gpu-test-nightly", {"spec": {"suspend": False}}))[0] == 200
        status, error = await bot("POST", PATH, json={"metadata": {"name": "x"}})

        assert status == 403
        assert error["message"] == (
            'workflows.argoproj.io is forbidden: User "system:serviceaccount:gputest:gputest-bot" cannot create resource '
            '"workflows" in API group "argoproj.io" in the namespace "foxhunt"'
        )
        assert (await bot("GET", "/apis/argoproj.io/v1alpha1/workflows"))[0] == 403
        assert (await bot("GET", "/api/v1/namespaces/foxhunt/pods/x/log"))[0] == 404
        maps = "/api/v1/namespaces/foxhunt/configmaps"

        assert (await bot("GET", f"{maps}?fieldSelector=metadata.name%3Done"))[0] == 200
        assert (await bot("GET", f"{maps}?fieldSelector=metadata.name%3Dother"))[0] == 403
        assert (await bot("GET", maps))[0] == 403
        name = "system:serviceaccount:gputest:gputest-bot"

        assert world.kube_api.access.used[name] == {
            ("list", "", "configmaps"),
            ("list", "argoproj.io", "workflows"),
            ("patch", "argoproj.io", "cronworkflows"),
            ("get", "", "pods/log"),
        }
        assert world.cluster.skipped == ["Deployment not-played"]


async def test_the_address_may_hold_the_token(world: EmbeddedWorld, session: aiohttp.ClientSession) -> None:
    """For kubectl, which keeps tokens to itself without TLS."""
    client = Client(session, f"{world.kube_url}/as/{world.admin_token}", "")

    assert (await client("GET", PATH))[0] == 200


async def test_faults_answer_for_the_server(world: EmbeddedWorld, kube: Client) -> None:
    """429 with Retry-After, 500, a proxy's page; then all is well again."""
    world.kube_faults.too_many(7)
    async with kube.stream(PATH) as response:
        assert (response.status, response.headers["Retry-After"]) == (429, "7")
        assert (await response.json())["reason"] == "TooManyRequests"
    world.kube_faults.fail(500, method="GET", path="workflows")

    assert (await kube("POST", PATH, json=workflow("one")))[0] == 201
    assert (await kube("GET", PATH))[1]["message"] == "etcdserver: request timed out"
    world.kube_faults.fail(502, body="<html>Bad Gateway</html>")
    async with kube.stream(PATH) as response:
        assert (response.status, response.content_type) == (502, "text/html")
    assert (await kube("GET", PATH))[0] == 200


async def test_dropped_before_and_after_the_commit(world: EmbeddedWorld, kube: Client) -> None:
    """The client cannot tell the two apart; the state can."""
    world.kube_faults.drop(method="POST")
    with pytest.raises(aiohttp.ClientError):
        await kube("POST", PATH, json=workflow("before"))
    world.kube_faults.drop_after_commit(method="POST")
    with pytest.raises(aiohttp.ClientError):
        await kube("POST", PATH, json=workflow("after"))

    assert (await kube("GET", f"{PATH}/before"))[0] == 404
    assert (await kube("GET", f"{PATH}/after"))[0] == 200


async def test_away_and_back(world: EmbeddedWorld, kube: Client) -> None:
    """Connections break while the server is away, and work when it is back."""
    world.kube_faults.away()
    with pytest.raises(aiohttp.ClientError):
        await kube("GET", PATH)
    world.kube_faults.away(False)

    assert (await kube("GET", PATH))[0] == 200
