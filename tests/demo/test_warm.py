"""Keeping a pool warm in the demo: a node comes, gives way to a run, and what that cost is said. With the bot's own rights."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot import play
from bot.clients.kube_lease import LeaseTiming
from bot.demo.kinds import PODS
from bot.demo.world import Json

BOT = "system:serviceaccount:gputest:gputest-bot"
SPEED = 20.0
SECONDS = 5.0
"""Of the simulated clock, within which a placeholder is gone and the run has its node."""


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncIterator[play.Play]:
    """A demo that runs twenty times as fast as the clock on the wall, its bot ready."""
    lease = LeaseTiming(duration=1.0, renew=0.3, margin=0.2)
    async with play.playing(play.Options(speed=SPEED, lease=lease), tmp_path) as running:
        async with asyncio.timeout(10):
            while running.bot.condition != "running":
                await asyncio.sleep(0.01)
        yield running


def pods(demo: play.Play, prefix: str) -> list[Json]:
    """Pods by the beginning of their names."""
    return [one for one in demo.world.cluster.store.all(PODS) if one["metadata"]["name"].startswith(prefix)]


async def test_warm_gives_way_and_costs(demo: play.Play) -> None:
    """The run is bound to the node that was kept, within seconds of its asking."""
    world, cluster = demo.world, demo.world.cluster
    cluster.autoscaler.pools["ci-training-h100"].maximum = 1
    assert "You may not keep GPUs warm here." in (await world.chat.say("viewer", "gpu-tests", "/gpu warm h100")).text
    said = await world.chat.say("dev", "gpu-tests", "/gpu warm h100 for=2h")
    assert "That costs up to €5.46 (2 h at €2.73 a node and hour)" in said.text
    world.clock.set_speed(400.0)
    await cluster.until(lambda: any(one["status"].get("phase") == "Running" for one in pods(demo, "gpu-warm-")), 10)
    world.clock.set_speed(SPEED)
    (kept,) = pods(demo, "gpu-warm-")

    at: dict[str, float] = {}
    nodes: list[str] = []

    def watch(_change: object) -> None:
        for run in pods(demo, "gpu-test-")[:1]:
            at.setdefault("asked", world.clock.time())
            if node := run["spec"].get("nodeName"):
                nodes.append(node)
                at.setdefault("bound", world.clock.time())
            if not pods(demo, "gpu-warm-"):
                at.setdefault("gone", world.clock.time())

    cluster.store.subscribe(watch)
    await world.chat.say("dev", "gpu-tests", "/gputest dqn scope=lib")
    await cluster.until(lambda: {"bound", "gone"} <= at.keys(), 10)

    assert max(at.values()) - at["asked"] < SECONDS
    assert set(nodes) == {kept["spec"]["nodeName"]}
    cost = (await world.chat.say("dev", "gpu-tests", "/gpu cost")).text
    assert "**H100**, €2.73 a node and hour: today €" in cost
    assert "kept warm €" in cost
    assert world.kube_api.access.refused == []
    assert {("create", "", "pods"), ("delete", "", "pods")} <= world.kube_api.access.used[BOT]
