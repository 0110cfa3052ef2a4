"""What the bot's account and the push gate's may do, asked of the real API server: the admission policy of deploy/bot."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.deploy.cluster_rig import ACCOUNTS, FOXHUNT, WORKFLOWS, apply, phase, pods_played, policy_in_force, run
from tests.deploy.deploy_files import built
from tests.real.rig.kube_client import KubeError, Manifest
from tests.real.rig.launcher import Rig
from tests.real.rig.pod_player import PodPlayer
from tests.real.rig.pod_script import Exit, Outputs, Running, Wait

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]


@pytest_asyncio.fixture(
    scope="module", loop_scope="module", params=[("3.7", "minimal"), ("4.0", "full")], ids=lambda param: param[0]
)
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    """Both versions, each with the definitions that it ships; everything of deploy/ applied."""
    argo, crds = request.param
    async with Rig.start(argo=argo, crds=crds, mattermost=False, service_accounts=ACCOUNTS) as rig:
        for body in built("overlays/complete"):
            await apply(rig.kube.admin, body)
        await policy_in_force(rig)
        yield rig


@pytest_asyncio.fixture(loop_scope="module")
async def player(rig: Rig) -> AsyncIterator[PodPlayer]:
    """Kubelet and executor; the namespace is empty again afterwards."""
    async with pods_played(rig) as player:
        yield player


@pytest.mark.parametrize(
    "wrong",
    [
        {"entrypoint": "pipeline"},
        {"templates": [{"name": "x", "container": {"image": "x", "command": ["x"]}}]},
        {"workflowTemplateRef": {"name": "ci-pipeline"}},
        {"workflowTemplateRef": {"name": "gpu-test-pipeline", "clusterScope": True}},
        {"serviceAccountName": "argo-push-gate"},
        {"onExit": ""},
        {"podPriorityClassName": "system-cluster-critical"},
        {"arguments": {"parameters": [{"name": "image", "value": "x"}]}},
        {
            "arguments": {
                "parameters": [{"name": "models", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "y"}}}]
            }
        },
        {"arguments": {"artifacts": [{"name": "x"}]}},
        {"podSpecPatch": "{}"},
        {"volumes": []},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
@pytest.mark.parametrize("account", ["gputest/gputest-bot", "foxhunt/argo-push-gate"])
async def test_a_run_with_anything_of_its_own_is_refused(rig: Rig, account: str, wrong: dict[str, Any]) -> None:
    """The right to create Workflows is not the right to run anything."""
    client = rig.kube.client(rig.kube.token(*account.split("/")))
    body = run("refused")
    body["spec"] |= wrong

    with pytest.raises(KubeError, match="ValidatingAdmissionPolicy 'gputest-workflows'"):
        await client.request("POST", WORKFLOWS, body, {"dryRun": "All"})


async def test_what_the_bot_does_is_allowed(rig: Rig, player: PodPlayer) -> None:
    """Create, claim, journal, stop, release; the nightly's suspend flag with our annotation."""
    bot = rig.kube.client(rig.kube.token("gputest", "gputest-bot"))
    player.script("gpu-warmup", [Running(), Wait("never"), Exit(0)])
    player.script("notify-result", [Running(), Outputs({"said": "no"}), Exit(0)])
    await bot.create(
        WORKFLOWS, run("allowed", {"models": "all", "epochs": "5"}, priority=30, podPriorityClassName="gpu-test-manual")
    )
    await phase(rig, "allowed", "Running")
    path, nightly = f"{WORKFLOWS}/allowed", f"{FOXHUNT}/cronworkflows/gpu-test-nightly"
    await bot.merge(path, {"metadata": {"annotations": {"gputest.bot/run": "{}"}}})
    await bot.merge(path, {"spec": {"shutdown": "Terminate"}})
    await phase(rig, "allowed", "Failed")
    await bot.merge(path, {"metadata": {"annotations": {"gputest.bot/run": '{"reported":"x"}'}, "finalizers": None}})
    await bot.merge(path, {"metadata": {"finalizers": ["gputest.bot/report"]}})
    await bot.merge(nightly, {"spec": {"suspend": False}, "metadata": {"annotations": {"gputest.bot/switched": "{}"}}})
    await bot.merge(nightly, {"spec": {"suspend": True}})


@pytest.mark.parametrize(
    ("target", "patch"),
    [
        ("cronworkflows/gpu-test-nightly", {"spec": {"schedules": ["* * * * *"]}}),
        ("cronworkflows/gpu-test-nightly", {"spec": {"workflowSpec": {"serviceAccountName": "x"}}}),
        ("cronworkflows/gpu-test-nightly", {"spec": {"timezone": None}}),
        ("cronworkflows/gpu-test-nightly", {"metadata": {"labels": {"x": "y"}}}),
        ("cronworkflows/gpu-test-nightly", {"metadata": {"annotations": {"x": "y"}}}),
        ("workflows/{name}", {"spec": {"priority": 1000}}),
        ("workflows/{name}", {"spec": {"templates": [{"name": "x", "container": {"image": "x"}}]}}),
        ("workflows/{name}", {"spec": {"shutdown": "Now"}}),
        ("workflows/{name}", {"metadata": {"labels": {"x": "y"}}}),
        ("workflows/{name}", {"metadata": {"finalizers": ["gputest.bot/report", "other.io/x"]}}),
        ("workflows/{name}", {"status": {"phase": "Succeeded"}}),
    ],
)
async def test_a_patch_of_anything_else_is_refused(rig: Rig, player: PodPlayer, target: str, patch: Manifest) -> None:
    """Of what exists only the shutdown, the suspend flag and our own metadata are the bot's."""
    player.script("gpu-warmup", [Running(), Wait("never"), Exit(0)])
    bot = rig.kube.client(rig.kube.token("gputest", "gputest-bot"))
    name = f"patched-{secrets.token_hex(3)}"  # a name used again at once is mixed up with its past by the controller
    if target.startswith("workflows"):
        await rig.kube.admin.create(WORKFLOWS, run(name))
        await phase(rig, name, "Running")

    with pytest.raises(KubeError, match="ValidatingAdmissionPolicy 'gputest-workflows'|422 Invalid"):
        await bot.merge(f"{FOXHUNT}/{target.format(name=name)}", patch)


async def test_the_admin_is_not_held_to_the_policy(rig: Rig) -> None:
    """It is for the two accounts only."""
    body = run("free", entrypoint="pipeline")
    await rig.kube.admin.request("POST", WORKFLOWS, body, {"dryRun": "All"})
