"""The side panel: what it shows, and what its switches do to a world without a bot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from bot.demo import EmbeddedWorld
from bot.demo.cluster import Cluster
from bot.demo.panel import BadDeed, Panel

H100 = "ci-training-h100"


class Puppet:
    """A bot that does nothing but say how it is."""

    condition = "running"

    async def start(self) -> None:
        self.condition = "running"

    async def kill(self) -> None:
        self.condition = "killed"


@pytest.fixture
def panel(world: EmbeddedWorld) -> Panel:
    """The panel of a stepped world."""
    return Panel(world, Puppet(), 40.0)


@pytest.fixture
async def quick() -> AsyncIterator[tuple[EmbeddedWorld, Panel]]:
    """A world whose clock runs, and its panel."""
    async with EmbeddedWorld(seed=1, speed=1.0, start=datetime(2026, 3, 2, 10, 0, tzinfo=UTC)) as world:
        yield world, Panel(world, Puppet(), 1.0)


def pool(panel: Panel, name: str = H100) -> dict:
    """A pool as the panel shows it."""
    return next(one for one in panel.view()["pools"] if one["name"] == name)


async def until_ordered_node_is_there(cluster: Cluster) -> None:
    """Go on until a GPU node is registered."""
    await cluster.until(lambda: len(cluster.nodes()) > 1)


async def test_a_node_and_its_pods(world: EmbeddedWorld, panel: Panel) -> None:
    """First a pod waits, then its node boots, shows its GPU, and the pod runs on it."""
    cluster = world.cluster
    cluster.hang("gpu-warmup")
    name = cluster.submit("run-1")
    await cluster.clock.advance(1)

    assert panel.view()["waiting"] == [{"run": name, "template": "gpu-warmup", "phase": "Pending"}]
    assert (pool(panel)["gpu"], pool(panel)["ordered"], pool(panel)["nodes"]) == ("H100", 1, [])
    await until_ordered_node_is_there(cluster)

    assert [node["state"] for node in pool(panel)["nodes"]] == ["not ready"]
    await cluster.clock.advance(21)

    assert [node["state"] for node in pool(panel)["nodes"]] == ["installing the GPU driver"]
    await cluster.until_running(name, "gpu-warmup")
    (node,) = pool(panel)["nodes"]

    assert (node["state"], node["gpus"], node["used"]) == ("ready", 1, 1)
    assert node["pods"] == [{"run": name, "template": "gpu-warmup", "phase": "Running"}]
    assert [run["phase"] for run in panel.view()["runs"]] == ["Running"]


async def test_the_night_is_shown(world: EmbeddedWorld, panel: Panel) -> None:
    """Off until somebody enables it, then with its next time."""
    assert panel.view()["nightly"] == {"name": "gpu-test-nightly", "on": False, "next": None}
    world.cluster.suspend_cron("gpu-test-nightly", suspend=False)

    assert panel.view()["nightly"]["next"] == datetime(2026, 3, 3, 2, 0, tzinfo=UTC).timestamp()


async def test_stock_and_quota(world: EmbeddedWorld, panel: Panel) -> None:
    """No stock is the H100's trouble, a quota that of all GPU pools; without both nodes come again."""
    pools = world.cluster.autoscaler.pools
    await panel.switch("over-quota", True)
    await panel.switch("no-stock", True)

    assert (pools[H100].failure, pools["ci-training"].failure, pools["services"].failure) == (
        "OUT_OF_STOCK",
        "QUOTA_EXCEEDED",
        "",
    )
    world.cluster.submit("run-1")
    await world.clock.advance(31)

    assert pool(panel)["error"] == "the requested instance type is out of stock in fr-par-2"
    await panel.switch("no-stock", False)
    await panel.switch("over-quota", False)

    assert {one.failure for one in pools.values()} == {""}


async def test_a_node_is_lost(world: EmbeddedWorld, panel: Panel) -> None:
    """The one with a GPU pod on it; where there is none the panel says so."""
    with pytest.raises(BadDeed, match="no GPU node to lose"):
        panel.do("lose-node")
    world.cluster.hang()
    name = world.cluster.submit("run-1")
    await world.cluster.until_running(name)

    assert panel.do("lose-node").startswith("Node scw-foxhunt-ci-training-h100-")
    assert pool(panel)["nodes"] == []


async def test_servers_fail_and_come_back(world: EmbeddedWorld, panel: Panel) -> None:
    """The chat away, the API server slow, the bot killed: each by its switch, and twice is once."""
    for name in ("chat-down", "api-slow", "bot-killed"):
        assert not panel.view()["switches"][name]
        await panel.switch(name, True)
        await panel.switch(name, True)

        assert panel.view()["switches"][name]
        await panel.switch(name, False)

        assert not panel.view()["switches"][name]


async def test_a_crashed_bot_is_started_again(world: EmbeddedWorld) -> None:
    """A bot that fell by itself counts as killed."""
    puppet = Puppet()
    panel = Panel(world, puppet, 40.0)
    puppet.condition = "crashed"

    assert panel.view()["switches"]["bot-killed"]
    await panel.switch("bot-killed", False)

    assert panel.view()["bot"] == "running"


async def test_old_changes_are_forgotten(world: EmbeddedWorld, panel: Panel) -> None:
    """A watch that resumes from before is told 410."""
    before = world.cluster.store.revision
    world.cluster.submit("run-1")
    await world.clock.advance(1)
    panel.do("api-gone")

    with pytest.raises(Exception, match="too old resource version"):
        world.cluster.store.since(next(iter(world.cluster.store._objects)), before)


async def test_the_clock_runs_at_the_speed_asked_for(quick: tuple[EmbeddedWorld, Panel]) -> None:
    """Also not at all, which is not the same as being stepped by hand."""
    world, panel = quick
    panel.set_speed(10.0)

    assert (world.clock.speed, panel.view()["clock"]["speed"]) == (10.0, 10.0)
    panel.set_speed(0)

    assert (world.clock.speed > 0, panel.view()["clock"]["speed"]) == (True, 0)
    with pytest.raises(BadDeed, match="The speed is from 0"):
        panel.set_speed(-1)


async def test_skip_to_the_night(quick: tuple[EmbeddedWorld, Panel]) -> None:
    """The clock hurries to one minute before two, nothing is left out on the way, and then it goes as before."""
    world, panel = quick
    seen: list[datetime] = []
    world.clock.call_later(3600.0, lambda: seen.append(world.clock.now()))

    assert panel.do("skip-to-night") == "On the way to Tuesday, 01:59 UTC."
    assert panel.view()["clock"]["skipping"]
    assert panel.do("skip-to-night") == "On the way to Tuesday, 01:59 UTC."
    arrived = asyncio.Event()
    world.clock.call_at(datetime(2026, 3, 3, 1, 59, tzinfo=UTC).timestamp(), arrived.set)
    await arrived.wait()

    assert not panel.view()["clock"]["skipping"]
    assert (world.clock.speed, seen[0].hour, f"{world.clock.now():%d %H:%M}") == (1.0, 11, "03 01:59")


async def test_what_there_is_not(panel: Panel) -> None:
    """Unknown switches and deeds are refused by name."""
    with pytest.raises(BadDeed, match="no switch 'x'"):
        await panel.switch("x", True)
    with pytest.raises(BadDeed, match="nothing like 'x'"):
        panel.do("x")
