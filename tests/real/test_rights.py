"""The bot has exactly the rights of deploy/bot, and uses each of them: both by what the API server was asked."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.real.bots import CONFIG_MAPS, LEASES, Trial, passing, red
from tests.real.calls import BY_NAME
from tests.real.proxy import Seen
from tests.real.stage import COLLECTIONS, DEPLOY, ROOT, manifests

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(120)]

RBAC, RBAC_CLUSTER, RBAC_WARM = (DEPLOY / "bot" / name for name in ("rbac.yaml", "rbac-cluster.yaml", "rbac-warm.yaml"))

_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/[^/]+(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<resource>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<part>[^/]+))?)?"
)


@dataclass(frozen=True, order=True)
class Deed:
    """One verb on one kind of object; `namespace` "" for all of them, `name` "" for any."""

    namespace: str
    group: str
    resource: str
    name: str
    verb: str


EVERYBODYS = {Deed("", "authorization.k8s.io", "selfsubjectaccessreviews", "", "create")}
"""What every account may, by a role of the API server's own: `doctor` asks what it may do."""


def granted(path: Path) -> set[Deed]:
    """The rights that a file grants."""
    return {
        Deed(body["metadata"].get("namespace", ""), group, resource, name, verb)
        for body in manifests(path)
        if body["kind"] in {"Role", "ClusterRole"}
        for rule in body["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }


def deed_of(seen: Seen) -> Deed | None:
    """What the API server's authorizer makes of a request; None for what is no object."""
    found = _PATH.fullmatch(seen.path)
    if found is None:
        return None
    name, part = found["name"] or "", found["part"]
    resource = f"{found['resource']}/{part}" if part else found["resource"]
    verb = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(seen.method, "")
    if not verb:
        verb = "watch" if seen.query.get("watch") == "true" else "get" if name else "list"
        selected = re.fullmatch(r"metadata\.name=(.+)", seen.query.get("fieldSelector", ""))
        name = selected[1] if selected else name
    return Deed(found["namespace"] or "", found["group"] or "", resource, name, verb)


def covers(right: Deed, deed: Deed) -> bool:
    """Whether a right allows a deed."""
    return (
        (right.group, right.resource, right.verb) == (deed.group, deed.resource, deed.verb)
        and right.namespace in {"", deed.namespace}
        and right.name in {"", deed.name}
    )


def told_apart(answered: Iterable[tuple[Seen, int]]) -> tuple[set[Deed], set[Deed]]:
    """What was done, and what was refused for a missing right."""
    done: set[Deed] = set()
    refused: set[Deed] = set()
    for seen, status in answered:
        deed = deed_of(seen)
        if deed is not None:
            (refused if status == 403 else done).add(deed)
    return done - EVERYBODYS, refused


def unused(rights: set[Deed], done: set[Deed]) -> list[Deed]:
    """Rights that nothing was done by."""
    return sorted(right for right in rights if not any(covers(right, deed) for deed in done))


def too_wide(rights: set[Deed], done: set[Deed]) -> list[Deed]:
    """Rights on all objects of a kind that are used on one of them alone."""
    named = [right for right in rights if not right.name and right.verb in {"get", "patch", "update", "delete"}]
    return sorted(right for right in named if len({deed.name for deed in done if covers(right, deed)}) < 2)


async def play(trial: Trial) -> None:
    """Everything the bot does: a first start, runs, a lost answer, a log, a cancel, the nightly, posts, the check-up."""
    admin, stage = trial.rig.kube.admin, trial.stage
    await trial.bot.end()
    await admin.delete(f"{LEASES}/gputest-bot")
    await admin.delete(f"{CONFIG_MAPS}/gputest-bot")
    await trial.bot.start()
    gate = f"rights-{trial.numbers}"
    stage.script("compile-and-test", red(gate))
    run, other = [await with_a_lost_answer(trial) for _ in range(2)]
    await stage.say("/gputest kan")
    await stage.say(f"/gputest cancel {other['metadata']['name']}")
    await stage.say("/nightly enable")
    await stage.say("/nightly disable")
    await stage.say("/gpu")
    await stage.people["ben"].type(stage.channel, "@gputest help")
    await stage.release(gate)
    await trial.reported(run, "1 of 2 failed", limit=15)
    doctor = await asyncio.create_subprocess_exec(
        *trial.command_line("doctor"), cwd=ROOT, env=trial.environment(), stdout=asyncio.subprocess.DEVNULL
    )
    await asyncio.wait_for(doctor.wait(), 40)


async def with_a_lost_answer(trial: Trial) -> dict[str, Any]:
    """A run that tests; the answer to its claim went astray."""
    lost = trial.kube.trap(BY_NAME["claim"].matches, lambda: None, server_hears=True)
    run = await trial.submit()
    await lost.sprung()
    await trial.shows(run, "compiling and testing")
    return run


async def test_no_right_is_unused_and_none_is_missing(trial: Trial) -> None:
    """With rbac.yaml alone: each right is used, and what is refused is what rbac-cluster.yaml would grant."""
    rights, wider = granted(RBAC), granted(RBAC_CLUSTER)
    began = len(trial.kube.answered)

    await play(trial)

    def done() -> set[Deed]:
        return told_apart(trial.kube.answered[began:])[0]

    async def all_used() -> bool:
        return not unused(rights, done()) and not too_wide(rights, done())

    try:
        await trial.until("each right is used", all_used, 15)
    except AssertionError:
        pytest.fail(f"unused: {unused(rights, done())}; used on one object alone: {too_wide(rights, done())}")
    _, refused = told_apart(trial.kube.answered[began:])
    assert [deed for deed in sorted(done()) if not any(covers(right, deed) for right in rights)] == []
    assert [deed for deed in sorted(refused) if not any(covers(right, deed) for right in wider)] == []


async def test_no_optional_right_is_unused(trial: Trial) -> None:
    """With rbac-cluster.yaml as well: nothing is refused any more, and each of its rights is used."""
    await trial.bot.end()
    await free(trial)
    objects = manifests(RBAC_CLUSTER)
    for body in objects:
        await trial.rig.kube.admin.ensure(collection(body), body)
    began = len(trial.kube.answered)
    try:
        await trial.bot.start()
        trial.stage.script("compile-and-test", passing())
        await trial.stage.say("/gpu")

        async def all_used() -> bool:
            return not unused(granted(RBAC_CLUSTER), told_apart(trial.kube.answered[began:])[0])

        try:
            await trial.until("each right is used", all_used, 15)
        except AssertionError:
            pytest.fail(f"unused: {unused(granted(RBAC_CLUSTER), told_apart(trial.kube.answered[began:])[0])}")
        done, refused = told_apart(trial.kube.answered[began:])
    finally:
        for body in objects:
            await trial.rig.kube.admin.delete(f"{collection(body)}/{body['metadata']['name']}")
        await trial.bot.end()
        await free(trial)

    both = granted(RBAC) | granted(RBAC_CLUSTER)
    assert sorted(refused) == []
    assert [deed for deed in sorted(done) if not any(covers(right, deed) for right in both)] == []


async def test_no_right_to_keep_warm_is_unused(trial: Trial) -> None:
    """With rbac-warm.yaml beside rbac.yaml: pods are made and deleted, each by its own name, and nothing else is done."""
    await trial.alone()
    objects = manifests(RBAC_WARM)
    for body in objects:
        await trial.rig.kube.admin.ensure(collection(body), body)
    began = len(trial.kube.answered)
    try:
        for pool in ("h100", "l4"):
            assert "is kept warm until" in await trial.stage.say(f"/gpu warm {pool}")
            assert "is not kept warm any more" in await trial.stage.say(f"/gpu cool {pool}")
        done = told_apart(trial.kube.answered[began:])[0]
    finally:
        for body in objects:
            await trial.rig.kube.admin.delete(f"{collection(body)}/{body['metadata']['name']}")

    assert unused(granted(RBAC_WARM), done) == []
    assert too_wide(granted(RBAC_WARM), done) == []
    both = granted(RBAC) | granted(RBAC_WARM)
    assert [deed for deed in sorted(done) if not any(covers(right, deed) for right in both)] == []


async def free(trial: Trial) -> None:
    """Whoever comes next need not wait."""
    await trial.free_lease()


def collection(body: dict[str, Any]) -> str:
    """Where an object belongs."""
    return COLLECTIONS[body["kind"]].format(namespace=body["metadata"].get("namespace", ""))
