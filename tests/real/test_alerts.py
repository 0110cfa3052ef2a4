"""What goes wrong with GPUs on the real scheduler: on the card, in `/gpu` and as an alert, said once and with its end.

Kubelet and autoscaler are played by hand. What stood there is in tests/golden/alerts_*.md.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio

from tests.phrases import green
from tests.real.rig.kube_client import Manifest
from tests.real.rig.pod_script import Bound, Exit, Outputs, Running, Wait
from tests.real.stage import RealStage
from tests.real.test_gpu import H100, L4, OLD_FORM, TAINT, UUID, group, status
from tests.real.test_warmup import GROWN, NONE, Place, Way, stage_with_nodes

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]

QUICK = {"say_after_seconds": 1, "over_after_seconds": 2, "silent": ["slow", "idle"]}
PODS = "/api/v1/namespaces/foxhunt/pods"


class Alerted(Way):
    """What a story saw on the card, in `/gpu` and of alerts."""

    def __init__(self, stage: RealStage, known: set[str]) -> None:
        super().__init__(stage)
        self.known = known

    async def posts(self) -> list[Manifest]:
        """The alerts of this story, oldest first."""
        return [post for post in await all_alerts(self.stage) if post["id"] not in self.known]

    async def alert(self, title: str, *words: str) -> None:
        """Wait for the one alert that has all these words, and write it down."""

        async def look() -> str | None:
            found = [p["message"] for p in await self.posts() if all(word in p["message"] for word in words)]
            assert len(found) < 2, f"said {len(found)} times: {found}"
            return found[0] if found else None

        text = await self.stage.until(f"an alert that says {words}", look)
        self.blocks.append(f"## {title}\n{self.alike(text)}\n")

    async def count(self, number: int) -> None:
        """So many alerts were said in this story, and all of them are over."""
        posts = await self.posts()
        assert len(posts) == number, [post["message"] for post in posts]
        assert all("gputest_alert_over" in post["props"] for post in posts)

    def alike(self, text: str) -> str:
        """How long it took is chance, whether its node was seen before it asked, and whether enough starts were seen."""
        text = re.sub(r" · ≈ \d+ (?:s|min) to start", "", super().alike(text))
        text = re.sub(r"(?:Warm|Cold) start TIME", "Warm-up TIME", text)
        return re.sub(r"after (?:\d+ s|\d+ min)", "after TIME", text)


async def all_alerts(stage: RealStage) -> list[Manifest]:
    """All alerts of the channel, oldest first."""
    posts = [p for p in await stage.anna.posts(stage.channel) if p["props"].get("gputest_alert") and not p["delete_at"]]
    return sorted(posts, key=lambda post: post["create_at"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealStage]:
    """Started once."""
    async with stage_with_nodes(tmp_path_factory.mktemp("alerts")) as stage:
        yield stage


@pytest_asyncio.fixture(loop_scope="module")
async def place(stage: RealStage) -> AsyncIterator[Place]:
    """A node for everything else; afterwards nothing is left of the story."""
    place = Place(stage)
    stage.reset()
    quick(stage)
    stage.script("gpu-warmup", [Bound(200), Running(), Exit(0)])
    tests = [Bound(200), Running(), Wait("test"), Outputs({"results": green("dqn")}), Exit(0)]
    stage.script("compile-and-test", tests)
    await place.node("services-1", "services")
    yield place
    stage.changes = {}
    stage.player.shut("test")
    await stage.clear()
    await stage.stop_bot()
    await place.clear()


def quick(stage: RealStage, **alerts: Any) -> None:
    """Alerts come and end soon."""
    stage.changes = {"runs": {"coalesce_seconds": 0.3, "settle_seconds": 2, "alerts": QUICK | alerts}}


async def story(stage: RealStage) -> Alerted:
    """A bot that has just started."""
    told = Alerted(stage, {post["id"] for post in await all_alerts(stage)})
    await stage.start_bot()
    return told


async def born_again(stage: RealStage) -> None:
    """The bot is killed and started, and has read what stands in the chat."""
    await stage.kill_bot()
    await stage.start_bot()

    async def read() -> bool:
        return await stage.counted("gputest_effects_total", effect="ReadAlerts", outcome="done") > 0

    await stage.until("the alerts are read", read)


async def ends(stage: RealStage, told: Alerted, run: Manifest) -> None:
    """The run comes to its tests and ends."""
    await told.card(run, "testing", "compiling and testing")
    await stage.release("test")
    await told.card(run, "ended", "1 model green")


def error(code: str, words: str) -> dict[str, Any]:
    """The group is in backoff, by the autoscaler's newer form of status."""
    return {"status": "Backoff", "backoffInfo": {"errorCode": code, "errorMessage": words}}


async def test_no_stock(stage: RealStage, place: Place) -> None:
    """First the old form, which names no reason, then the new one; the bot dies meanwhile; over when the status says so."""
    told = await story(stage)
    run = await place.run("/gputest dqn")
    name = told.call(run)
    pod = await place.pod_of(name)
    await place.autoscaler_says(pod, "TriggeredScaleUp", GROWN)
    await place.autoscaler_shows(OLD_FORM.format(now=datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f"), uuid=UUID))
    refused = "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
    await place.autoscaler_says(pod, "NotTriggerScaleUp", refused)
    await told.card(run, "backoff", "No node is coming: the scale-up failed", NONE)
    await told.see("backoff", "the scale-up failed, since HH:MM")
    await told.alert("backoff", "H100: no node comes", "the scale-up failed")

    await place.autoscaler_shows(
        status(group(0, 0, error("OUT_OF_STOCK", "no resources available for H100-1-80G in fr-par-2")))
    )
    await told.card(run, "no stock", NONE, "No node is coming: the provider has none in stock")
    await told.see("no stock", "the provider has none in stock")
    await told.alert("no stock", "No H100 to be had", "OUT_OF_STOCK")
    await born_again(stage)

    await place.autoscaler_shows(status(group(0, 0, {"status": "NoActivity"})))
    await place.node("h100-a", H100, 1, TAINT)
    await told.alert("backoff, over", "✅", "no node comes", "Over after")
    await told.alert("no stock, over", "✅", "to be had", "Over after")
    await ends(stage, told, run)
    await told.count(2)
    told.matches("alerts_no_stock")


async def test_no_quota(stage: RealStage, place: Place) -> None:
    """The provider's quota is used up: told by an Event and then by the status, on the card, in `/gpu` and as one alert."""
    told = await story(stage)
    run = await place.run("/gputest dqn")
    pod = await place.pod_of(told.call(run))
    await place.autoscaler_says(pod, "TriggeredScaleUp", GROWN)
    await place.autoscaler_says(
        pod, "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
    )
    words = "Quota 'NVIDIA_H100_GPUS' exceeded.  Limit: 1.0 in region fr-par."
    await place.scale_up_failed(UUID, "OutOfResource.QUOTA_EXCEEDED", words)

    async def alone() -> bool:
        return any("No further H100" in post["message"] for post in await told.posts())

    await stage.until("the Event alone makes the alert", alone)
    await place.autoscaler_shows(status(group(0, 0, error("QUOTA_EXCEEDED", words))))
    await told.card(run, "no quota", NONE, "No node is coming: the provider's quota is used up")
    await told.see("no quota", "the provider's quota is used up")
    await told.alert("no quota", "No further H100", "quota is used up")

    await place.autoscaler_shows(status(group(0, 1, {"status": "InProgress"})))
    await told.alert("over", "✅", "Over after")
    await place.node("h100-a", H100, 1, TAINT)
    await ends(stage, told, run)
    await told.count(1)
    told.matches("alerts_no_quota")


async def test_a_taint_that_nobody_tolerates(stage: RealStage, place: Place) -> None:
    """A node of the pool is up and free, and takes nobody of ours until somebody takes its taint away."""
    told = await story(stage)
    await place.node("h100-a", H100, 1, "dedicated=research:NoSchedule")
    run = await place.run("/gputest dqn")
    told.call(run)
    await told.card(run, "tainted", "has a taint")
    await told.see("tainted", "1 has a taint (`dedicated=research`)")
    await told.alert("tainted", "No pool can take", "dedicated=research")

    await place.admin.merge("/api/v1/nodes/h100-a", {"spec": {"taints": None}})
    await ends(stage, told, run)
    await told.alert("over", "✅", "Over after")
    await told.count(1)
    told.matches("alerts_taint")


async def test_a_pool_that_nobody_knows(stage: RealStage, place: Place) -> None:
    """Two pods with a misspelt selector are one alert; over when both are gone."""
    told = await story(stage)
    await place.pod("train-a", "ci-trainign")
    await place.pod("train-b", "ci-trainign")
    why = "waits for a ci-trainign since HH:MM · no node of the kind it asks for is up"
    await told.see("misspelt", f"`train-a` {why}", f"`train-b` {why}", part="queue")
    await told.alert("misspelt", "No pool can take train-a", "nobody knows a pool")
    for name in ("train-a", "train-b"):
        await place.admin.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})
    await told.alert("over", "✅", "Over after")
    await told.count(1)
    told.matches("alerts_no_pool")


async def test_two_pods_want_one_gpu(stage: RealStage, place: Place) -> None:
    """A training has it, the run waits longer than usual, and gets it when the training ends; then the node is idle."""
    quick(stage, slow_minutes=0.05, idle_minutes=0.05, silent=[])
    await place.node("h100-a", H100, 1, TAINT)
    await place.pod("train-7", H100)
    told = await story(stage)
    await told.see("in use", "0 of 1 GPU free · `train-7`")
    run = await place.run("/gputest dqn")
    told.call(run)
    await told.card(run, "waiting", "No GPU is free on 1 of 2 nodes")
    await told.see("waiting", "RUN1** (anna) waits for an H100", "no GPU is free on 1 of 2 nodes")
    await told.alert("waiting", "waits long for an H100")
    await place.admin.delete(f"{PODS}/train-7", {"gracePeriodSeconds": 0})

    await ends(stage, told, run)
    await told.alert("over", "✅", "waits long")
    await told.alert("idle", "H100: a node is idle", "nobody uses h100-a")
    await born_again(stage)
    await place.pod("train-8", H100)
    await told.alert("used again", "✅", "a node is idle", "Over")
    await told.count(2)
    told.matches("alerts_one_gpu")


async def test_time_sliced_gpus(stage: RealStage, place: Place) -> None:
    """One L4 counts as two: a training and the run share it, and a third pod waits."""
    await place.node("l4-a", L4, 2, TAINT, **{"nvidia.com/gpu.sharing-strategy": "time-slicing"})
    told = await story(stage)
    await place.pod("train-a", L4)
    run = await place.run(f"/gputest dqn pool={L4}")
    told.call(run)
    await told.card(run, "testing", "compiling and testing")
    await place.pod("train-b", L4)
    await told.see("shared", "0 of 2 shares free", "`train-b` waits for an L4", "no GPU is free on 1 of 2 nodes")

    await stage.release("test")
    await told.card(run, "ended", "1 model green")
    await told.see("shared by others", "0 of 2 shares free · `train-a`, `train-b`")
    await told.count(0)
    told.matches("alerts_time_sliced")


async def test_drain_in_mid_run(stage: RealStage, place: Place) -> None:
    """Its node is cordoned and its pod evicted, as `kubectl drain` does: Argo makes the pod anew, for another node."""
    told = await story(stage)
    await place.node("h100-a", H100, 1, TAINT)
    run = await place.run("/gputest dqn")
    name = told.call(run)
    await told.card(run, "testing", "compiling and testing")
    await place.admin.merge("/api/v1/nodes/h100-a", {"spec": {"unschedulable": True}})
    await told.see("cordoned", "cordoned · 0 of 1 GPU free", "RUN1")
    query = {"labelSelector": f"workflows.argoproj.io/workflow={name}"}
    (pod,) = [p for p in (await place.admin.get(PODS, query))["items"] if p["status"]["phase"] == "Running"]
    meta = {"name": pod["metadata"]["name"], "namespace": "foxhunt"}
    body: Manifest = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
    await place.admin.create(f"{PODS}/{meta['name']}/eviction", body)

    await told.card(run, "evicted", "waiting for an H100", "1 is cordoned")
    await told.see("evicted", "RUN1** (anna) waits for an H100", "1 is cordoned")
    await place.admin.delete("/api/v1/nodes/h100-a")
    await told.see("drained", "**H100** 0 nodes · cold", "RUN1** (anna) waits for an H100")
    await place.node("h100-b", H100, 1, TAINT)
    await told.card(run, "testing again", "compiling and testing")
    await told.see("on another node", "0 of 1 GPU free · **RUN1** (anna)")
    await stage.release("test")
    await told.card(run, "ended", "1 model green")
    await told.count(0)
    told.matches("alerts_drained")


async def test_node_lost_in_a_run(stage: RealStage, place: Place) -> None:
    """It falls silent, then it goes; over when the run is."""
    told = await story(stage)
    await place.node("h100-a", H100, 1, TAINT)
    run = await place.run("/gputest dqn")
    name = told.call(run)
    await told.card(run, "testing", "compiling and testing")
    await stage.rig.nodes.lose_node("h100-a")
    await told.see("silent", "does not answer")
    await told.alert("silent", "lost its node", "its node does not answer")
    await stage.rig.nodes.remove_node("h100-a")
    await told.see("gone", "⚠️ its node is gone")
    await stage.shut_down(name, "Terminate")
    await told.card(run, "ended", "cancelled")
    await told.alert("over", "✅", "Over after")
    await told.count(1)
    told.matches("alerts_node_lost")
