"""`/gpu` through the real Mattermost, on nodes that the real scheduler fills; the autoscaler is played by hand.

What it says of each situation is in tests/golden/gpu_*.md. The first story has the rights of rbac.yaml only, the others
those of rbac-cluster.yaml as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio
import yaml

from tests.real.rig.kube_client import Manifest
from tests.real.rig.launcher import POOL_LABEL
from tests.real.rig.nodes import GPU
from tests.real.rig.pod_script import Bound, Exit, Running, Wait
from tests.real.stage import DEPLOY, RealStage, real_stage
from tests.stories.stage import GOLDEN

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]

TAINT = "nvidia.com/gpu=present:NoSchedule"
H100, L40S, L4 = "ci-training-h100", "ci-training", "ci-compile"
UUID = "7be2f9d4-aaaa-4bbb-8ccc-ddddeeeeffff"
STATUS = "/api/v1/namespaces/kube-system/configmaps"


class Told:
    """What a story saw of `/gpu`, against its golden file; names and times are made alike."""

    def __init__(self, stage: RealStage) -> None:
        self.stage = stage
        self.blocks: list[str] = []
        self.names: dict[str, str] = {}

    async def see(self, title: str, *words: str, part: str = "") -> str:
        """Ask until all the words are there, and write the answer down."""
        answer = ""

        async def look() -> bool:
            nonlocal answer
            answer = self.alike(await self.stage.say(f"/gpu {part}".strip()))
            return all(word in answer for word in words)

        try:
            await self.stage.until(f"{words} in /gpu {part}", look)
        except AssertionError as error:
            error.add_note(f"the last answer was:\n{answer}")
            raise
        self.blocks.append(f"## {title}\n{answer}\n")
        return answer

    def alike(self, text: str) -> str:
        """The same whatever the names of runs and the hour."""
        for name, word in self.names.items():
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", word, text)
        return re.sub(r"(?:\w{3} \d+ \w{3} )?\b\d\d:\d\d\b", "HH:MM", text)

    def call(self, run: Manifest) -> str:
        """Give a run its name in the golden file; returns its real one."""
        name = str(run["metadata"]["name"])
        self.names[name.rsplit("-", 1)[-1]] = f"RUN{len(self.names) + 1}"
        return name

    def matches(self, name: str) -> None:
        """Compare with the golden file; `GOLDEN=write` writes it instead."""
        text, path = "\n".join(self.blocks), GOLDEN / f"{name}.md"
        if os.environ.get("GOLDEN") == "write":
            path.write_text(text, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == text


class Scene:
    """Nodes, pods and the autoscaler of one story; what it made goes with it."""

    def __init__(self, stage: RealStage) -> None:
        self.stage = stage
        self.admin = stage.rig.kube.admin
        self._made: list[str] = []

    async def node(self, name: str, pool: str, gpus: int = 0, taint: str | None = None, **labels: str) -> None:
        """A ready node."""
        await self.stage.rig.nodes.add_node(name, pool, gpus, taint)
        self._made.append(f"/api/v1/nodes/{name}")
        if labels:
            await self.admin.merge(f"/api/v1/nodes/{name}", {"metadata": {"labels": labels}})

    async def pod(self, name: str, pool: str, namespace: str = "foxhunt") -> None:
        """A pod that is no run's and asks for a GPU of a pool."""
        gpu = {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
        spec = {
            "containers": [{"name": "main", "image": "nowhere/train:1", "resources": gpu}],
            "nodeSelector": {POOL_LABEL: pool},
            "tolerations": [{"key": GPU, "operator": "Exists"}],
        }
        path = f"/api/v1/namespaces/{namespace}/pods"
        await self.admin.create(path, {"metadata": {"name": name}, "spec": spec})
        self._made.append(f"{path}/{name}")

    async def run(self, line: str) -> Manifest:
        """Anna starts a run."""
        known = {each["metadata"]["uid"] for each in await self.stage.workflows()}

        async def look() -> Manifest | None:
            return next((each for each in await self.stage.workflows() if each["metadata"]["uid"] not in known), None)

        await self.stage.say(line)
        found: Manifest = await self.stage.until("a new workflow", look)
        return found

    async def pod_of(self, workflow: str) -> Manifest:
        """The pod of a run that has not ended."""

        async def look() -> Manifest | None:
            query = {"labelSelector": f"workflows.argoproj.io/workflow={workflow}"}
            items = (await self.admin.get("/api/v1/namespaces/foxhunt/pods", query))["items"]
            return next((each for each in items if each["status"]["phase"] == "Pending"), None)

        found: Manifest = await self.stage.until("its pod", look)
        return found

    async def autoscaler_says(self, pod: Manifest, reason: str, message: str) -> None:
        """An Event on a pod, as the cluster-autoscaler records it."""
        meta = pod["metadata"]
        about = {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}
        await self._event(about, reason, message)

    async def scale_up_failed(self, group: str, code: str, words: str) -> None:
        """The Event on its status by which the cluster-autoscaler tells of nodes that the provider did not make."""
        about = {"kind": "ConfigMap", "namespace": "kube-system", "name": "cluster-autoscaler-status"}
        message = f"Failed adding 1 nodes to group {group} due to {code}; source errors: {words}"
        await self._event(about, "ScaleUpFailed", message)

    async def _event(self, about: Manifest, reason: str, message: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        path = f"/api/v1/namespaces/{about['namespace']}/events"
        body: Manifest = {
            "metadata": {"generateName": f"{about['name']}."},
            "involvedObject": about | {"apiVersion": "v1"},
            "reason": reason,
            "message": message,
            "source": {"component": "cluster-autoscaler"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": "Normal",
        }
        created = await self.admin.create(path, body)
        self._made.append(f"{path}/{created['metadata']['name']}")

    async def autoscaler_shows(self, text: str) -> None:
        """The status ConfigMap says this from now on."""
        body: Manifest = {"metadata": {"name": "cluster-autoscaler-status"}, "data": {"status": text}}
        path = f"{STATUS}/cluster-autoscaler-status"
        if path in self._made:
            await self.admin.merge(path, body)
            return
        await self.admin.create(STATUS, body)
        self._made.append(path)

    async def clear(self) -> None:
        """Take everything away again."""
        for path in reversed(self._made):
            await self.admin.delete(path, {"gracePeriodSeconds": 0} if "/pods/" in path else None)


def status(*groups: dict[str, Any]) -> str:
    """The autoscaler's status in YAML, written now."""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f000 +0000 UTC")
    document = {"time": now, "autoscalerStatus": "Running", "clusterWide": {"health": {"status": "Healthy"}}}
    return yaml.safe_dump(document | {"nodeGroups": list(groups)}, sort_keys=False)


def group(ready: int, target: int, scale_up: dict[str, Any]) -> dict[str, Any]:
    """The group of the H100 pool, which the autoscaler knows by a UUID."""
    counts = {"registered": {"total": ready, "ready": ready}, "unregistered": target - ready}
    limits = {"cloudProviderTarget": target, "minSize": 0, "maxSize": 2}
    return {"name": UUID, "health": {"status": "Healthy", "nodeCounts": counts} | limits, "scaleUp": scale_up}


OLD_FORM = """Cluster-autoscaler status at {now} +0000 UTC:
Cluster-wide:
  Health:      Healthy (ready=1 unready=0 (resourceUnready=0) notStarted=0 longNotStarted=0 registered=1 longUnregistered=0)
  ScaleUp:     NoActivity (ready=1 registered=1)
  ScaleDown:   NoCandidates (candidates=0)

NodeGroups:
  Name:        {uuid}
  Health:      Healthy (ready=0 unready=0 (resourceUnready=0) notStarted=0 longNotStarted=0 registered=0 longUnregistered=0 cloudProviderTarget=0 (minSize=0, maxSize=2))
  ScaleUp:     Backoff (ready=0 cloudProviderTarget=0)
               LastTransitionTime: {now} +0000 UTC m=+42.1
  ScaleDown:   NoCandidates (candidates=0)
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealStage]:
    """The real services with scheduler and nodes, started once."""
    async with real_stage(tmp_path_factory.mktemp("gpu"), scheduler=True, kwok=True) as stage:
        for name in ("research",):
            await stage.rig.kube.admin.ensure("/api/v1/namespaces", {"metadata": {"name": name}})
        yield stage


@pytest_asyncio.fixture(loop_scope="module")
async def scene(stage: RealStage) -> AsyncIterator[Scene]:
    """A node for everything else, and the bot; afterwards nothing is left of the story."""
    scene = Scene(stage)
    stage.reset()
    # only the scheduler places pods here; its words on the volume that is not there end the way of every run
    stage.script("gpu-warmup", [Bound(200), Running(), Exit(0)])
    stage.script("compile-and-test", [Bound(200), Running(), Exit(0)])
    await scene.node("services-1", "services")
    yield scene
    await stage.clear()
    await stage.stop_bot()
    await scene.clear()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def overlay(stage: RealStage) -> None:
    """The optional rights. Asked for by every story but the first."""
    await stage.stop_bot()
    await stage.apply(DEPLOY / "bot" / "rbac-cluster.yaml")


async def test_with_the_rights_of_one_namespace(stage: RealStage, scene: Scene) -> None:
    """Nodes and others' pods are not visible: that is said, and nothing is called free."""
    told = Told(stage)
    await scene.node("h100-a", H100, 1, TAINT)
    stage.script("gpu-warmup", [Bound(200), Running(), Wait("ours-only"), Exit(0)])
    await stage.start_bot()

    told.call(await scene.run("/gputest dqn"))
    await told.see("in use", "**H100** · **RUN1** (anna)", "Not visible here: nodes and the autoscaler's state")

    await stage.release("ours-only")
    told.matches("gpu_ours_only")


@pytest.mark.usefixtures("overlay")
async def test_cold_pool(stage: RealStage, scene: Scene) -> None:
    """Nobody, then somebody waits, the autoscaler is asked, a node comes, its GPU comes, the run uses it, it is idle."""
    told = Told(stage)
    stage.script("gpu-warmup", [Bound(200), Running(), Wait("cold-warm"), Exit(0)])
    await stage.start_bot()
    await told.see("nobody waits", "All pools are cold, and nobody waits")
    await scene.autoscaler_shows(status(group(0, 0, {"status": "NoActivity"})))

    name = told.call(await scene.run("/gputest dqn"))
    await told.see(
        "waiting", "RUN1** (anna) waits for an H100", "no node of the kind it asks for is up", "No scale-up error"
    )
    grown = f"pod triggered scale-up: [{{{UUID} 0->1 (max: 2)}}]"
    await scene.autoscaler_says(await scene.pod_of(name), "TriggeredScaleUp", grown)
    await scene.autoscaler_shows(status(group(0, 1, {"status": "InProgress"})))
    await told.see("asked", "a node is on its way", "scale-up asked HH:MM (0→1)")
    await told.see("asked, pools", "autoscaler: 0/0 ready · target 1", part="pools")

    await scene.node("h100-a", H100, 0, TAINT)
    await told.see("node", "up, its GPU is not there yet", "no GPU is free on 1 of 2 nodes")
    room = {"allocatable": {GPU: "1"}, "capacity": {GPU: "1"}}
    await scene.admin.merge("/api/v1/nodes/h100-a/status", {"status": room})
    await scene.autoscaler_shows(status(group(1, 1, {"status": "NoActivity"})))
    await told.see("warm", "0 of 1 GPU free · **RUN1** (anna)", "No scale-up error")
    await told.see("warm, pools", "`h100-a`: ready · 1 of 1 used by **RUN1** (anna)", "1/1 ready", part="pools")

    await stage.release("cold-warm")
    await told.see("between two pods", "volume claim `cargo-target-cuda-test` does not exist", part="queue")
    told.matches("gpu_cold_pool")


@pytest.mark.usefixtures("overlay")
async def test_scale_up_that_fails(stage: RealStage, scene: Scene) -> None:
    """Without a reason in the old form of the status, by quota in the new one, unreadable, and over."""
    told = Told(stage)
    await stage.start_bot()
    name = told.call(await scene.run("/gputest dqn"))
    pod = await scene.pod_of(name)
    error = {
        "errorCode": "QUOTA_EXCEEDED",
        "errorMessage": "Instance 'h100-x1' creation failed: Quota 'NVIDIA_H100_GPUS' exceeded.  Limit: 1.0 in region fr-par.",
    }

    await scene.autoscaler_says(pod, "TriggeredScaleUp", f"pod triggered scale-up: [{{{UUID} 0->1 (max: 2)}}]")
    await scene.autoscaler_says(
        pod, "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
    )
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    await scene.autoscaler_shows(OLD_FORM.format(now=now, uuid=UUID))
    unplaced = "no node of the kind it asks for is up"
    await told.see(
        "old form", unplaced, "a scale-up failed, the autoscaler waits", "**H100**: the scale-up failed, since HH:MM"
    )
    await scene.autoscaler_shows(status(group(0, 0, {"status": "Backoff", "backoffInfo": error})))
    await told.see("new form", "quota is used up", "the autoscaler waits before it tries again")
    await scene.autoscaler_shows("nodeGroups: [")
    await told.see("unreadable", "I can't read the autoscaler's status")
    await scene.autoscaler_shows(status(group(0, 0, {"status": "NoActivity"})))
    await told.see("over", "over by HH:MM")

    told.matches("gpu_scale_up_fails")


@pytest.mark.usefixtures("overlay")
async def test_waiting_for_a_gpu(stage: RealStage, scene: Scene) -> None:
    """The pool is warm, and somebody of another namespace has its only GPU."""
    told = Told(stage)
    await scene.node("h100-a", H100, 1, TAINT)
    await scene.pod("train-7", H100, "research")
    await stage.start_bot()
    await told.see("in use by others", "`research/train-7`")

    told.call(await scene.run("/gputest dqn"))
    await told.see("waiting", "RUN1** (anna) waits for an H100", "no GPU is free on 1 of 2 nodes")
    await told.see("waiting, queue", "no GPU is free on 1 of 2 nodes; 1 is of another kind", part="queue")

    told.matches("gpu_waiting")


@pytest.mark.usefixtures("overlay")
async def test_a_taint_that_nobody_tolerates(stage: RealStage, scene: Scene) -> None:
    """A node of the pool is up and free, and takes nobody of ours."""
    told = Told(stage)
    await scene.node("h100-a", H100, 1, "dedicated=research:NoSchedule")
    await stage.start_bot()

    told.call(await scene.run("/gputest dqn"))
    await told.see("waiting", "RUN1** (anna) waits for an H100", "1 has a taint (`dedicated=research`)")
    await told.see("pools", "taint `dedicated=research`", part="pools")

    told.matches("gpu_taint")


@pytest.mark.usefixtures("overlay")
async def test_two_pods_on_one_gpu(stage: RealStage, scene: Scene) -> None:
    """Time-sliced: two shares of one L4 are used, a third pod waits."""
    told = Told(stage)
    await scene.node("l4-a", L4, 2, TAINT, **{"nvidia.com/gpu.sharing-strategy": "time-slicing"})
    await stage.start_bot()

    await scene.pod("train-a", L4)
    await scene.pod("train-b", L4)
    await told.see("two", "0 of 2 shares free · `train-a`, `train-b`")
    await scene.pod("train-c", L4)
    await told.see("three", "`train-c` waits for an L4", "no GPU is free on 1 of 2 nodes")

    told.matches("gpu_two_pods")


@pytest.mark.usefixtures("overlay")
async def test_nodes_that_go(stage: RealStage, scene: Scene) -> None:
    """Cordoned, silent, gone: each is said, and none of them is called free."""
    told = Told(stage)
    await scene.node("l40s-a", L40S, 1, TAINT)
    await scene.pod("train-a", L40S)
    await stage.start_bot()
    await told.see("in use", "0 of 1 GPU free · `train-a`")

    await scene.admin.merge("/api/v1/nodes/l40s-a", {"spec": {"unschedulable": True}})
    await told.see("cordoned", "⛔ **L40S** 1 node · cordoned")
    await stage.rig.nodes.lose_node("l40s-a")
    await told.see("silent", "does not answer")
    await stage.rig.nodes.remove_node("l40s-a")
    await told.see("gone", "`train-a` ⚠️ its node is gone")

    told.matches("gpu_nodes_go")
