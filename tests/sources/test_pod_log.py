"""The log of a test pod, followed for its markers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.clients.kube import Kube
from bot.core.effects import FollowLog, StopFollowing
from bot.core.events import Event, MarkersRead
from bot.demo import EmbeddedWorld
from bot.metrics import Metrics
from bot.sources.pod_log import MAX_BATCH, LogFollowers, new_marker
from bot.tasks import Tasks

COMPILING = '##gputest {"event":"compiling"}'


def test_a_line_counts_once_however_often_it_is_read() -> None:
    """After a cut stream the log is asked for again from the last time seen, which brings that line again."""
    first, last = new_marker(f"2026-03-02T10:00:00.5Z {COMPILING}", "")
    again, last = new_marker(f"2026-03-02T10:00:00.5Z {COMPILING}", last)
    later, last = new_marker(f"2026-03-02T10:00:00.50001Z {COMPILING}", last)

    assert first is not None
    assert again is None
    assert later is not None
    assert "2026-03-02T10:00:00.50001Z" == last


def test_other_lines_only_move_the_time() -> None:
    """What the tests print is no marker, wherever in the line one seems to be."""
    for text in ("hello", f"x {COMPILING}", "##gputest {broken", ""):
        marker, last = new_marker(f"2026-03-02T10:00:01Z {text}", "2026-03-02T10:00:00Z")

        assert marker is None
        assert "2026-03-02T10:00:01Z" == last


class Followed:
    """What the followers put into the loop."""

    def __init__(self) -> None:
        self.seen: list[MarkersRead] = []
        self.changed = asyncio.Event()

    def put(self, event: Event) -> None:
        assert isinstance(event, MarkersRead)
        self.seen.append(event)
        self.changed.set()

    async def markers(self, count: int) -> list[str]:
        """The names of the markers, once there are so many of them."""
        async with asyncio.timeout(10):
            while sum(len(event.markers) for event in self.seen) < count:
                self.changed.clear()
                await self.changed.wait()
        return [marker.event for event in self.seen for marker in event.markers]

    async def until(self, count: int) -> list[str]:
        """The names of the markers, once there are so many."""
        async with asyncio.timeout(10):
            while len(self.seen) < count:
                self.changed.clear()
                await self.changed.wait()
        return [marker.event for event in self.seen for marker in event.markers]


@asynccontextmanager
async def following(followed: Followed, gather: float = 0.0) -> AsyncIterator[tuple[EmbeddedWorld, str]]:
    """A run whose test pod hangs, and whose log is followed."""
    crashes: list[object] = []
    async with EmbeddedWorld(speed=0) as world:
        kube = await Kube.connect(Metrics(), url=world.kube_url, token=world.kube_token)
        tasks = Tasks(lambda name, error: crashes.append((name, error)))
        followers = LogFollowers(kube, tasks, followed.put, lambda _: None, retry=0.01, gather=gather)
        world.cluster.hang()
        run = world.cluster.submit("gpu-test-k7m2", models="dqn")
        await world.cluster.until_running(run)
        nodes = world.cluster.workflow(run)["status"]["nodes"].values()
        (node,) = [n for n in nodes if n["templateName"] == "compile-and-test"]
        followers.tell(FollowLog("uid", "attempt", "foxhunt", run, node["id"]))
        yield world, run
        followers.tell(StopFollowing("uid"))
        await tasks.close()
        await kube.close()
    assert [] == crashes


async def test_markers_come_while_the_pod_runs_and_survive_a_cut_stream() -> None:
    """Followed through the API; the stream is cut in the middle, and nothing comes twice."""
    followed = Followed()
    async with following(followed) as (world, run):
        world.cluster.log(run, "noise", COMPILING)
        await followed.until(1)
        world.kube_faults.cut_streams()
        await world.clock.advance(1)
        world.cluster.log(run, "##gputest " + json.dumps({"event": "compiled", "seconds": 3}))
        names = await followed.until(2)

        assert ["compiling", "compiled"] == names
        assert {("uid", "attempt")} == {(e.uid, e.attempt) for e in followed.seen}


async def test_a_noisy_pod_costs_few_events_and_loses_none_of_its_markers() -> None:
    """What comes within a moment is one event, of a size that others can wait for; then the next moment is waited for."""
    followed, many = Followed(), 4 * MAX_BATCH
    async with following(followed, gather=0.05) as (world, run):
        began = asyncio.get_running_loop().time()
        world.cluster.log(run, *("##gputest " + json.dumps({"event": f"e{n}"}) for n in range(many)))
        names = await followed.markers(many)
        took = asyncio.get_running_loop().time() - began

    assert [f"e{n}" for n in range(many)] == names
    assert max(len(event.markers) for event in followed.seen) <= MAX_BATCH
    assert len(followed.seen) < 10
    assert took > 0.14
