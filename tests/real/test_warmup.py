"""The way to a GPU on real nodes and the real scheduler; kubelet and autoscaler are played by hand.

What stood on the cards and in `/gpu warmup` is in tests/golden/warmup_*.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.phrases import green
from tests.real.rig.kube_client import KubeError, Manifest
from tests.real.rig.launcher import BOT_NAMESPACE, POOL_LABEL
from tests.real.rig.nodes import GPU
from tests.real.rig.pod_script import Bound, Exit, Hang, Outputs, Running, Wait, Waiting
from tests.real.rig.pod_status import now
from tests.real.stage import DEPLOY, TEMPLATE, RealStage, real_stage
from tests.real.test_gpu import H100, TAINT, UUID, Scene, Told, group, status
from tests.stories.stage import StoredCard

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]

HISTORY = f"/api/v1/namespaces/{BOT_NAMESPACE}/configmaps/gputest-bot-history"
GROWN = f"pod triggered scale-up: [{{{UUID} 0->1 (max: 2)}}]"
ROOM = {"status": {"allocatable": {GPU: "1"}, "capacity": {GPU: "1"}}}
NONE = "No node of the kind it asks for is up"
LONG = 400_000
"""Seconds that Argo itself lets a run take and wait, where a story is about the bot's own limit."""


class Way(Told):
    """What stood on the card of a run, step by step."""

    def alike(self, text: str) -> str:
        """How long a step took is chance, and so is whether that is a second at all."""
        text = re.sub(r"(Warm-up|Warm start) \d[\d:]* (?:s|min|h)[^\n]*", r"\1 TIME", super().alike(text))
        text = re.sub(r"(✅ [a-z A-Z-]*[a-zA-Z])(?::? \d[\d:]* (?:s|min))?(?=$|,| ·)", r"\1", text, flags=re.MULTILINE)
        text = re.sub(r"until (?:\w{3} )?HH:MM", "until HH:MM", text)
        return re.sub(r"\d+ (?:s|min), ended", "TIME, ended", re.sub(r" +$", "", text, flags=re.MULTILINE))

    async def card(self, run: Manifest, title: str, *words: str) -> StoredCard:
        """Wait until the card of that run shows all these words, and write it down."""

        async def look() -> StoredCard | None:
            cards = [card for card in await self.stage.cards() if card.run == run["metadata"]["uid"]]
            return cards[0] if cards and all(word in str(cards[0]) for word in words) else None

        card: StoredCard = await self.stage.until(f"a card that shows {words}", look)
        self.blocks.append(f"## {title}\n{self.alike(str(card))}\n")
        return card


class Place(Scene):
    """Nodes that come in steps."""

    async def unready(self, name: str) -> None:
        """A node of the H100 pool that has registered; nobody keeps it."""
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", POOL_LABEL: H100}
        room = {"cpu": "32", "memory": "256Gi", "pods": "110"}
        taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
        body: Manifest = {"metadata": {"name": name, "labels": labels}, "spec": {"taints": [taint]}}
        await self.admin.create("/api/v1/nodes", body)
        self._made.append(f"/api/v1/nodes/{name}")
        condition = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "lastTransitionTime": now()}
        status = {"conditions": [condition], "allocatable": room, "capacity": room}
        await self.admin.merge(f"/api/v1/nodes/{name}/status", {"status": status})

    async def ready(self, name: str) -> None:
        """The same, ready; its GPU is not there yet."""
        condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": now()}
        await self.admin.merge(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [condition]}})
        await self.admin.merge(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})

    async def show_gpu(self, name: str) -> None:
        """Its device plugin has found the GPU."""
        await self.admin.merge(f"/api/v1/nodes/{name}/status", ROOM)

    async def pulled(self, workflow: str, step: str) -> None:
        """The kubelet's Event that the image of that step's pod is there."""
        query = {"labelSelector": f"workflows.argoproj.io/workflow={workflow}"}
        items = (await self.admin.get("/api/v1/namespaces/foxhunt/pods", query))["items"]
        pod = next(each for each in items if step in each["metadata"]["annotations"]["workflows.argoproj.io/node-name"])
        meta = pod["metadata"]
        about = {"kind": "Pod", "namespace": "foxhunt", "name": meta["name"], "uid": meta["uid"], "apiVersion": "v1"}
        body: Manifest = {
            "metadata": {"generateName": f"{meta['name']}."},
            "involvedObject": about | {"fieldPath": "spec.containers{main}"},
            "reason": "Pulled",
            "message": 'Successfully pulled image "x" in 1.2s (1.2s including waiting). Image size: 9 bytes.',
            "source": {"component": "kubelet", "host": "h100-a"},
            "firstTimestamp": now(),
            "lastTimestamp": now(),
            "count": 1,
            "type": "Normal",
        }
        await self.admin.create("/api/v1/namespaces/foxhunt/events", body)

    async def volumes(self) -> None:
        """The two claims of the test pod, bound: the scheduler asks for no more than that."""
        for claim in ("cargo-target-cuda-test", "test-data-pvc"):
            size = {"storage": "1Gi"}
            spec = {"capacity": size, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/nowhere"}}
            ref = {"namespace": "foxhunt", "name": claim}
            await self.admin.create(
                "/api/v1/persistentvolumes", {"metadata": {"name": claim}, "spec": spec | {"claimRef": ref}}
            )
            bound = {"pv.kubernetes.io/bind-completed": "yes"}
            wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": size}, "volumeName": claim}
            body: Manifest = {
                "metadata": {"name": claim, "annotations": bound},
                "spec": wanted | {"storageClassName": ""},
            }
            await self.admin.create("/api/v1/namespaces/foxhunt/persistentvolumeclaims", body)

    async def starts(self) -> list[dict[str, Any]]:
        """What the history has."""
        try:
            found = await self.admin.get(HISTORY)
        except KubeError as error:
            assert error.status == 404
            return []
        starts: list[dict[str, Any]] = json.loads(found["data"]["starts.json"])["starts"]
        return starts


@asynccontextmanager
async def stage_with_nodes(folder: Path) -> AsyncIterator[RealStage]:
    """The real services with scheduler and nodes, and the bot's optional rights."""
    async with real_stage(folder, scheduler=True, kwok=True) as stage:
        await stage.apply(DEPLOY / "bot" / "rbac-cluster.yaml")
        await Place(stage).volumes()
        yield stage


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealStage]:
    """Started once."""
    async with stage_with_nodes(tmp_path_factory.mktemp("warmup")) as stage:
        yield stage


@pytest_asyncio.fixture(loop_scope="module")
async def place(stage: RealStage) -> AsyncIterator[Place]:
    """A node for everything else; afterwards nothing is left of the story."""
    place = Place(stage)
    stage.reset()
    stage.changes = {"runs": {"coalesce_seconds": 0.3}}
    stage.script("gpu-warmup", [Bound(200), Running(), Exit(0)])
    stage.script(
        "compile-and-test",
        [
            Bound(200),
            Waiting("ContainerCreating"),
            Wait("pull"),
            Running(),
            Wait("test"),
            Outputs({"results": green("dqn")}),
            Exit(0),
        ],
    )
    await place.node("services-1", "services")
    yield place
    stage.changes = {}
    for gate in ("pull", "test"):
        stage.player.shut(gate)
    await stage.clear()
    await stage.stop_bot()
    await place.clear()


async def test_a_cold_start_and_a_warm_one(stage: RealStage, place: Place) -> None:
    """Every step on the card and in `/gpu warmup`; folded into one line; remembered over a restart of the bot."""
    told = Way(stage)
    await stage.start_bot()
    run = await place.run("/gputest dqn")
    name = told.call(run)
    await told.card(run, "asked", "⏳ scale-up since", NONE)
    queued = await place.run("/gputest dqn epochs=2")
    told.call(queued)
    await told.see(
        "a second run waits for its turn",
        "waits since HH:MM for its turn · behind RUN1",
        "no node of the kind",
        part="warmup",
    )
    await place.autoscaler_says(await place.pod_of(name), "TriggeredScaleUp", GROWN)
    await told.card(run, "scale-up asked", "✅ scale-up", "⏳ node since", NONE)
    await place.unready("h100-a")
    await told.card(run, "node registered", "✅ node", "⏳ ready since", "not ready yet")
    await place.ready("h100-a")
    await told.card(run, "node ready", "✅ ready", "⏳ GPU since", "its GPU is not there")
    await told.see("node ready", "⏳ waits since HH:MM for the node's GPU to be usable", part="warmup")
    await place.show_gpu("h100-a")
    await told.card(run, "GPU there", "warming up", "✅ GPU", "⏳ image since")
    await stage.player.arrived("pull")
    await place.pulled(name, "compile-and-test")
    await told.card(run, "image there", "✅ image", "⏳ start since")
    await stage.release("pull")
    await told.card(run, "testing", "compiling and testing", "Warm-up ")

    (start,) = await stage.until("the history", place.starts)
    assert {"queue", "scale_up", "node", "ready", "gpu", "place", "image", "start"} == set(start["steps"])
    assert (start["pool"], start["cold"]) == (H100, True)
    assert start["seconds"] == sum(length for step, length in start["steps"].items() if step != "queue")
    await stage.kill_bot()
    await stage.start_bot()
    await stage.release("test")
    await told.card(run, "ended, seen by another process", "1 model green", "Warm-up ")

    second = await stage.until("the second start", lambda: _second(place))
    assert not second["cold"]
    await told.card(queued, "the warm start", "1 model green", "Warm start ")
    await told.see("what is known", "cold: 1 start seen", part="warmup")
    told.matches("warmup_cold_and_warm")


async def _second(place: Place) -> dict[str, Any] | None:
    starts = await place.starts()
    return starts[1] if len(starts) > 1 else None


async def test_a_node_that_never_gets_ready(stage: RealStage, place: Place) -> None:
    """The step that is stuck shows, in red; at its limit the run is given up, and that is what it says."""
    told = Way(stage)
    stage.changes = {"runs": {"coalesce_seconds": 0.3, "warmup_late_seconds": 3, "wait_seconds": 15}}
    await stage.start_bot()
    run = await place.run("/gputest dqn")
    name = told.call(run)
    await place.autoscaler_says(await place.pod_of(name), "TriggeredScaleUp", GROWN)
    await place.unready("h100-a")
    await told.card(run, "stuck", "⚠️ ready since", "not ready yet", "I wait until", "#c9372c")
    await told.see("stuck", "⚠️ waits since HH:MM for the node to get ready", part="warmup")
    await told.card(run, "given up", "never got an H100")

    body = await stage.workflow(name)
    assert body is not None
    assert body["spec"]["shutdown"] == "Stop"
    told.matches("warmup_node_never_ready")


async def test_a_gpu_that_never_comes(stage: RealStage, place: Place) -> None:
    """The node is ready, its driver is not; Vera may not let the run wait, Anna may, and once is enough."""
    told = Way(stage)
    stage.changes = {"runs": {"coalesce_seconds": 0.3, "warmup_late_seconds": 3, "wait_seconds": 20}}
    await stage.limits(run=LONG, warmup=LONG)
    await stage.start_bot()
    run = await place.run("/gputest dqn")
    name = told.call(run)
    await place.autoscaler_says(await place.pod_of(name), "TriggeredScaleUp", GROWN)
    await place.unready("h100-a")
    await place.ready("h100-a")
    card = await told.card(run, "stuck", "⚠️ GPU since", "its GPU is not there", "[Wait until 07:00]")
    told.blocks.append(f"## Vera clicks\n{told.alike(await stage.click(card, 'wait', who='vera'))}\n")
    told.blocks.append(f"## Anna clicks\n{told.alike(await stage.click(card, 'wait'))}\n")
    await told.card(run, "waits longer", "as anna asked")
    body = await stage.workflow(name) or {}
    (pod,) = [node for node in body["status"]["nodes"].values() if node["type"] == "Pod"]
    over = datetime.fromisoformat(pod["startedAt"]) + timedelta(seconds=22)

    async def later() -> bool:
        return datetime.now(UTC) > over

    await stage.until("the old limit is over", later)
    body = await stage.workflow(name) or {}
    assert not body["spec"].get("shutdown")
    assert json.loads(body["metadata"]["annotations"]["gputest.bot/wait"])["user_name"] == "anna"
    told.matches("warmup_gpu_never_comes")


async def test_a_provider_that_makes_no_node(stage: RealStage, place: Place) -> None:
    """No stock, no quota, a group that is left alone for a while: the card says what the autoscaler says of the pool."""
    told = Way(stage)
    await stage.start_bot()
    run = await place.run("/gputest dqn")
    pod = await place.pod_of(told.call(run))
    await place.autoscaler_says(pod, "TriggeredScaleUp", GROWN)
    await told.card(run, "asked", "⏳ node since", NONE)
    for code, text, words in (
        ("OUT_OF_STOCK", "the requested instance type is out of stock in fr-par-2", "none in stock"),
        ("QUOTA_EXCEEDED", "quota exceeded for h100", "quota is used up"),
    ):
        error = {"errorCode": code, "errorMessage": text}
        await place.autoscaler_shows(status(group(0, 0, {"status": "Backoff", "backoffInfo": error})))
        await told.card(run, code, words)
    await place.autoscaler_shows(status(group(0, 0, {"status": "NoActivity"})))
    refusal = "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
    await place.autoscaler_says(pod, "NotTriggerScaleUp", refusal)
    await told.card(run, "left alone", "No node is coming: a scale-up failed, the autoscaler waits")
    told.matches("warmup_no_node_made")


async def test_where_runs_may_wait_for_long_stuck_tests_end_all_the_same(stage: RealStage, place: Place) -> None:
    """A deadline of the test step counts from its own pod on (deploy/README.md, waiting for a GPU)."""
    told = Way(stage)
    await stage.limits(run=LONG, warmup=LONG)
    templates = (await place.admin.get(TEMPLATE))["spec"]["templates"]
    for template in templates:
        if template["name"] == "compile-and-test":
            template["activeDeadlineSeconds"] = 4
    await place.admin.merge(TEMPLATE, {"spec": {"templates": templates}})
    stage.script("compile-and-test", [Bound(200), Running(), Hang()])
    await place.node("h100-a", H100, 1, TAINT)
    await stage.start_bot()

    run = await place.run("/gputest dqn")
    told.call(run)
    await told.card(run, "ended", "out of time", "Warm start ")
    told.matches("warmup_stuck_tests")
