"""`/gpu warm` on the real scheduler: the placeholder has its node, and is gone within five seconds of a real run's asking.

The bot has the rights of deploy/bot and is held to them by the policy that comes with the right to make pods.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from copy import deepcopy
from typing import Any

import pytest
import pytest_asyncio

from bot.core.cost_record import Record
from bot.core.cost_record import read as read_record
from bot.core.effects import MakePlaceholder
from bot.core.settings import Settings
from bot.sinks.placeholders import manifest
from tests.real.pause_pods import PODS, SELECTOR, playing
from tests.real.rig.kube_client import KubeClient, KubeError, Manifest
from tests.real.rig.launcher import BOT_NAMESPACE
from tests.real.rig.nodes import GPU
from tests.real.rig.pod_script import Bound, Exit, Running, Wait
from tests.real.stage import DEPLOY, RealStage, real_stage
from tests.real.test_gpu import H100, L4, TAINT, Scene

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(120)]

LIMIT = 5.0
"""Seconds from the asking of a real run until the placeholder is gone and the run has its node."""

ROLES = [
    {"name": "admins", "users": ["anna"], "may": ["run", "cancel", "look", "warm"]},
    {"name": "team", "users": ["ben"], "may": ["run", "look"]},
]
POOLS = [
    {"name": H100, "gpu": "H100", "cap": "90", "price_per_hour": 2.73, "max_nodes": 1},
    {"name": L4, "gpu": "L4", "cap": "89"},
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealStage]:
    """The real services with scheduler and nodes, started once."""
    async with (
        real_stage(tmp_path_factory.mktemp("warm"), scheduler=True, kwok=True) as stage,
        playing(stage.rig.kube.admin),
    ):
        often = {"cost_write_seconds": 0.5, "cost_keep_seconds": 2.0}
        stage.changes = {"runs": {"roles": ROLES, "pools": POOLS} | often}
        yield stage


@pytest_asyncio.fixture(loop_scope="module")
async def scene(stage: RealStage) -> AsyncIterator[Scene]:
    """A node for everything else; afterwards nothing is left of the story."""
    scene = Scene(stage)
    stage.reset()
    stage.script("gpu-warmup", [Bound(60), Running(), Exit(0)])
    await scene.node("services-1", "services")
    yield scene
    await stage.clear()
    await stage.stop_bot()
    for pod in await placeholders(stage):
        await scene.admin.delete(f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
    await scene.clear()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def allowed(stage: RealStage) -> None:
    """The optional right, and its policy in force. Asked for by every story but the first."""
    await stage.stop_bot()
    await stage.apply(DEPLOY / "bot" / "rbac-warm.yaml")
    bot = account(stage)

    async def refused() -> bool:
        try:
            await bot.request("POST", PODS, spoiled({"activeDeadlineSeconds": 14401}), {"dryRun": "All"})
        except KubeError as error:
            return "ValidatingAdmissionPolicy" in str(error)
        return False

    await stage.until("the policy is asked", refused)


def account(stage: RealStage) -> KubeClient:
    """The API as the bot's account."""
    return stage.rig.kube.client(stage.rig.kube.token(BOT_NAMESPACE, "gputest-bot"))


def placeholder(name: str = "gpu-warm-by-hand", seconds: int = 600, pool: str = H100) -> Manifest:
    """One as the bot makes it."""
    effect = MakePlaceholder("e", "foxhunt", name, pool, time.time() + seconds, seconds, "anna")
    return manifest(effect, Settings())


async def placeholders(stage: RealStage) -> list[Manifest]:
    """Those that are there."""
    found: list[Manifest] = (await stage.rig.kube.admin.get(PODS, {"labelSelector": SELECTOR}))["items"]
    return found


async def keep_warm(stage: RealStage, scene: Scene) -> Manifest:
    """A node of the pool is up, and Anna keeps it warm; the placeholder runs on it."""
    await scene.node("h100-a", H100, 1, TAINT)
    await stage.start_bot()
    answer = await stage.say("/gpu warm h100 for=30m")
    assert "is kept warm until" in answer

    async def runs() -> Manifest | None:
        return next((pod for pod in await placeholders(stage) if pod["status"].get("phase") == "Running"), None)

    found: Manifest = await stage.until("the placeholder runs", runs)
    assert found["spec"]["nodeName"] == "h100-a"
    return found


async def change_of_guard(stage: RealStage, kept: Manifest, asking: str) -> tuple[float, float, Manifest]:
    """Seconds from when the API shows a pod that asks until the placeholder is gone, and until the pod has its node.

    `asking` selects the pod by its labels.
    """
    asked = gone = bound = 0.0
    pod: Manifest = {}
    async with asyncio.timeout(60):
        while not (gone and bound):
            found = (await scene_admin(stage).get(PODS, {"labelSelector": asking}))["items"]
            now = time.monotonic()
            if found and not asked:
                asked = now
            if found and found[0]["spec"].get("nodeName") and not bound:
                bound, pod = now, found[0]
            left = {each["metadata"]["uid"] for each in await placeholders(stage)}
            if asked and not gone and kept["metadata"]["uid"] not in left:
                gone = time.monotonic()
            await asyncio.sleep(0.02)
    return gone - asked, bound - asked, pod


def scene_admin(stage: RealStage) -> KubeClient:
    """The API as its administrator."""
    return stage.rig.kube.admin


async def test_without_the_right_it_says_what_is_missing(stage: RealStage, scene: Scene) -> None:
    """The bot of rbac.yaml makes no pods."""
    await scene.node("h100-a", H100, 1, TAINT)
    await stage.start_bot()

    answer = await stage.say("/gpu warm h100")

    assert answer.startswith("⚠️ I could not keep it warm: pods is forbidden")
    assert answer.endswith("An administrator has to apply `deploy/bot/rbac-warm.yaml` once.")
    assert await placeholders(stage) == []


@pytest.mark.usefixtures("allowed")
async def test_it_gives_way_to_a_run_within_five_seconds(stage: RealStage, scene: Scene) -> None:
    """A test run preempts nobody, so the bot takes the placeholder away; the run is bound to its node."""
    kept = await keep_warm(stage, scene)
    assert "a placeholder until" in await stage.say("/gpu")
    gate = "guard"
    stage.script("gpu-warmup", [Bound(60), Running(), Wait(gate), Exit(0)])
    measured = asyncio.create_task(  # noqa: TID251  # the bot's tasks are its own
        change_of_guard(stage, kept, "workflows.argoproj.io/workflow"), name="change of guard"
    )

    began = time.monotonic()
    await stage.say("/gputest dqn", "ben")
    gone, bound, pod = await measured
    print(f"after the run's pod asked: placeholder gone {gone:.2f} s, run bound {bound:.2f} s")
    print(f"after the command was typed: {time.monotonic() - began:.2f} s")

    assert max(gone, bound) < LIMIT
    assert pod["spec"]["nodeName"] == "h100-a"
    assert pod["spec"]["preemptionPolicy"] == "Never"
    await stage.release(gate)


@pytest.mark.usefixtures("allowed")
async def test_it_gives_way_to_any_pod_while_the_bot_is_away(stage: RealStage, scene: Scene) -> None:
    """The scheduler alone sends it away for a pod that may preempt."""
    kept = await keep_warm(stage, scene)
    await stage.kill_bot()
    gpu = {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
    training: Manifest = {
        "metadata": {"name": "training", "labels": {"who": "training"}},
        "spec": {
            "containers": [{"name": "main", "image": "nowhere/train:1", "resources": gpu}],
            "nodeSelector": kept["spec"]["nodeSelector"],
            "tolerations": [{"key": GPU, "operator": "Exists"}],
        },
    }
    await scene.admin.create(PODS, training)
    try:
        gone, bound, pod = await change_of_guard(stage, kept, "who=training")
    finally:
        await scene.admin.delete(f"{PODS}/training", {"gracePeriodSeconds": 0})
    print(f"after the training asked: placeholder gone {gone:.2f} s, training bound {bound:.2f} s")

    assert max(gone, bound) < LIMIT
    assert pod["spec"]["nodeName"] == "h100-a"


@pytest.mark.usefixtures("allowed")
async def test_typed_again_it_is_there_and_cool_ends_it(stage: RealStage, scene: Scene) -> None:
    """One pod for one pool; others may not; it says what it costs, and that it is over."""
    (kept, who) = (await keep_warm(stage, scene), "ben")

    again = await stage.say("/gpu warm h100 for=1h")
    other = await stage.say("/gpu warm l4")
    not_his = await stage.say("/gpu cool h100", who)
    cooled = await stage.say(f"/gpu cool {H100}")

    assert "already. For another time end this first." in again
    assert "At most one pool is kept warm at a time; now it is **H100**." in other
    assert "You may not keep GPUs warm here. Ask anna." in not_his
    assert "❄️ **H100** is not kept warm any more after " in cooled

    async def gone() -> bool:
        return not await placeholders(stage)

    await stage.until("it is gone", gone, LIMIT)
    assert "is not kept warm, so there is nothing to end" in await stage.say("/gpu cool h100")
    assert kept["spec"]["priority"] == -1


@pytest.mark.usefixtures("allowed")
async def test_its_end_comes_though_no_node_does(stage: RealStage, scene: Scene) -> None:
    """No kubelet counts the time of a pod that has no node; and of one that its kubelet ended an object is left."""
    await scene.admin.create(PODS, placeholder("gpu-warm-no-node", 4))
    await scene.admin.create(PODS, placeholder("gpu-warm-ended"))
    ended = {"status": {"phase": "Failed", "reason": "DeadlineExceeded"}}
    await scene.admin.merge(f"{PODS}/gpu-warm-ended/status", ended)

    await stage.start_bot()

    async def names(wanted: set[str]) -> bool:
        return {pod["metadata"]["name"] for pod in await placeholders(stage)} == wanted

    await stage.until("both are removed", lambda: names(set()), 15)


@pytest.mark.usefixtures("allowed")
async def test_the_bot_may_make_this_pod(stage: RealStage) -> None:
    """Exactly as it makes it."""
    await account(stage).request("POST", PODS, placeholder(), {"dryRun": "All", "fieldValidation": "Strict"})


WRONG: dict[str, dict[str, Any]] = {
    "another image": {"containers": [{"image": "busybox:1.37"}]},
    "an image beside it": {"containers": [{"image": "registry.k8s.io/pause:3.10@sha256:" + "0" * 64}]},
    "a command": {"containers": [{"command": ["/bin/sh"]}]},
    "an environment": {"containers": [{"env": [{"name": "A", "value": "b"}]}]},
    "secrets": {"containers": [{"envFrom": [{"secretRef": {"name": "git-ssh-key"}}]}]},
    "a capability": {"containers": [{"securityContext": {"capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}}}]},
    "more privileges": {"containers": [{"securityContext": {"allowPrivilegeEscalation": True}}]},
    "two gpus": {"containers": [{"resources": {"limits": {GPU: "2"}, "requests": {GPU: "2"}}}]},
    "much memory": {"containers": [{"resources": {"limits": {"memory": "64Gi"}}}]},
    "a volume": {"volumes": [{"name": "v", "emptyDir": {}}]},
    "a second container": {"containers": [{}, {"name": "other", "image": "registry.k8s.io/pause:3.10"}]},
    "an init container": {"initContainers": [{"name": "init", "image": "registry.k8s.io/pause:3.10"}]},
    "another account": {"serviceAccountName": "argo-workflow"},
    "a token": {"automountServiceAccountToken": True},
    "no end": {"activeDeadlineSeconds": None},
    "a late end": {"activeDeadlineSeconds": 14401},
    "a long goodbye": {"terminationGracePeriodSeconds": 30},
    "another priority": {"priorityClassName": "gpu-test-manual"},
    "the host's network": {"hostNetwork": True},
    "a node of its choice": {"nodeName": "h100-a"},
    "every taint": {"tolerations": [{"operator": "Exists"}]},
    "root": {"securityContext": {"runAsNonRoot": False, "runAsUser": 0}},
    "an affinity": {"affinity": {}},
}


def spoiled(wrong: dict[str, Any]) -> Manifest:
    """A placeholder with something else in its spec; containers are changed one by one."""
    body = deepcopy(placeholder())
    spec = body["spec"]
    for key, value in wrong.items():
        if key == "containers":
            first, *more = value
            changed = spec["containers"][0]
            for name, part in first.items():
                if isinstance(part, dict):
                    for inner, content in part.items():
                        kept = changed[name].get(inner)
                        changed[name][inner] = (kept or {}) | content if isinstance(content, dict) else content
                else:
                    changed[name] = part
            spec["containers"] = [changed, *more]
        else:
            spec[key] = value
    return body


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
async def test_any_other_pod_is_refused(stage: RealStage, wrong: dict[str, Any]) -> None:
    """The right to make pods is not the right to run anything."""
    with pytest.raises(KubeError, match="ValidatingAdmissionPolicy 'gputest-placeholders'"):
        await account(stage).request("POST", PODS, spoiled(wrong), {"dryRun": "All"})


@pytest.mark.usefixtures("allowed")
@pytest.mark.parametrize(
    "meta",
    [
        {"labels": {"gputest.bot/role": "test"}},
        {"labels": {"gputest.bot/role": "placeholder", "app": "mattermost"}},
        {"name": "somebody-elses"},
        {"finalizers": ["x.io/y"]},
        {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}},
    ],
    ids=str,
)
async def test_any_other_name_or_label_is_refused(stage: RealStage, meta: dict[str, Any]) -> None:
    """Nothing selects it, holds it, or takes it for another."""
    body = placeholder()
    body["metadata"] |= meta
    with pytest.raises(KubeError, match="ValidatingAdmissionPolicy 'gputest-placeholders'"):
        await account(stage).request("POST", PODS, body, {"dryRun": "All"})


@pytest.mark.usefixtures("allowed")
async def test_the_bot_deletes_placeholders_only(stage: RealStage, scene: Scene) -> None:
    """Nobody else's pod."""
    await scene.pod("train-7", L4)
    await scene.admin.create(PODS, placeholder("gpu-warm-x"))

    with pytest.raises(KubeError, match="deletes placeholders only"):
        await account(stage).delete(f"{PODS}/train-7")
    await account(stage).delete(f"{PODS}/gpu-warm-x")


async def recorded(stage: RealStage, moment: float) -> Record:
    """The record of costs as soon as it was written after a time."""
    path = f"/api/v1/namespaces/{BOT_NAMESPACE}/configmaps/gputest-bot-costs"

    async def look() -> Record | None:
        found = await stage.rig.kube.admin.get(path)
        record = read_record(found["data"], found["metadata"]["resourceVersion"])
        return record if record.until > moment else None

    record: Record = await stage.until("the record of costs is written", look, 10)
    return record


def seconds_of(record: Record, pool: str) -> dict[str, float]:
    """Seconds of a pool by use."""
    found: dict[str, float] = {}
    for pools in record.days.values():
        for use, seconds in pools.get(pool, {}).items():
            found[use] = found.get(use, 0.0) + seconds
    return found


@pytest.mark.usefixtures("allowed")
async def test_what_a_node_costs_is_kept_while_the_bot_is_away(stage: RealStage, scene: Scene) -> None:
    """From the creation of the node to its end, through a kill: all of its time, and whose it was while it was watched."""
    await stage.apply(DEPLOY / "bot" / "rbac-cluster.yaml")
    await stage.start_bot()
    before = seconds_of(await recorded(stage, time.time()), H100)
    await stage.stop_bot()
    began = time.time()
    kept = await keep_warm(stage, scene)
    said = await stage.say("/gpu cost")
    await recorded(stage, time.time())
    await stage.kill_bot()
    away = time.time()

    async def a_while() -> bool:
        return time.time() > away + 3

    await stage.until("three seconds", a_while)
    await stage.start_bot()
    await scene.admin.delete(f"{PODS}/{kept['metadata']['name']}", {"gracePeriodSeconds": 0})
    await recorded(stage, time.time())
    await stage.rig.nodes.remove_node("h100-a")
    ended = time.time()
    after = seconds_of(await recorded(stage, ended + 1), H100)

    spent = {use: seconds - before.get(use, 0.0) for use, seconds in after.items()}
    print(f"the node was there for {ended - began:.1f} s; counted: {spent}")
    assert sum(spent.values()) == pytest.approx(ended - began, abs=2.5)  # its creation is a whole second
    assert spent["warm"] > 0
    assert "**H100**, €2.73 a node and hour: today €" in said
    assert "kept warm" in said
