"""The history of starts, watched by every replica."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bot.clients.kube import Kube
from bot.core.events import Event, HistoryRead
from bot.core.history import KEY
from bot.demo import EmbeddedWorld
from bot.demo.kinds import CONFIGMAPS
from bot.metrics import Metrics
from bot.sources import config_maps
from bot.sources.history import watch_history

PLACE = ("gputest", "gputest-bot-history")


class Watching:
    """A world, and what the watch told of it."""

    def __init__(self, world: EmbeddedWorld) -> None:
        self.world = world
        self.seen: list[Event] = []
        self.complaints: list[str] = []
        self.changed = asyncio.Event()

    def put(self, event: Event) -> None:
        """What the loop would do with it."""
        self.seen.append(event)
        self.changed.set()

    def complain(self, reason: str) -> None:
        """What goes into the log."""
        self.complaints.append(reason)
        self.changed.set()

    async def until(self, told: int, complaints: int = 0) -> None:
        """Wait until so much was told."""
        async with asyncio.timeout(10):
            while len(self.seen) < told or len(self.complaints) < complaints:
                self.changed.clear()
                await self.changed.wait()

    async def watch(self, token: str = "") -> asyncio.Task[None]:
        """Begin to watch."""
        metrics = Metrics()
        kube = await Kube.connect(metrics, url=self.world.kube_url, token=token or self.world.kube_token)
        work = watch_history(kube, metrics, PLACE, self.put, self.complain)
        task = asyncio.create_task(work, name="history")  # noqa: TID251

        async def close(_: object = None) -> None:
            await kube.close()

        self.close = close
        return task


@pytest.fixture
async def watching() -> AsyncIterator[Watching]:
    """A cluster without a history."""
    async with EmbeddedWorld(speed=0) as world:
        world.cluster.ensure_namespace("gputest")
        yield Watching(world)


async def test_it_is_told_as_it_changes(watching: Watching) -> None:
    """Nothing where there is none; the text where there is; nothing new when it goes."""
    store = watching.world.cluster.store
    task = await watching.watch()
    metadata = {"name": PLACE[1], "namespace": PLACE[0]}
    store.create(CONFIGMAPS, {"metadata": metadata, "data": {KEY: "one"}})
    await watching.until(1)
    store.change(CONFIGMAPS, *PLACE, lambda obj: obj.update(data={KEY: "two"}))
    await watching.until(2)
    store.remove(CONFIGMAPS, *PLACE)
    store.create(CONFIGMAPS, {"metadata": metadata})
    await watching.until(3)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await watching.close()

    assert [HistoryRead("one"), HistoryRead("two"), HistoryRead("")] == watching.seen


async def test_what_is_there_is_told_at_once(watching: Watching) -> None:
    """After a start."""
    metadata = {"name": PLACE[1], "namespace": PLACE[0]}
    watching.world.cluster.store.create(CONFIGMAPS, {"metadata": metadata, "data": {KEY: "one"}})
    task = await watching.watch()
    await watching.until(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await watching.close()

    assert [HistoryRead("one")] == watching.seen


async def test_without_the_right_it_is_said_and_looked_at_again(
    watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no reason to end: an admin may grant it."""
    monkeypatch.setattr(config_maps, "AGAIN_SECONDS", 0.0)
    task = await watching.watch(token="nobody's")
    watching.world.kube_faults.fail(403, method="GET", path=r"/configmaps", times=2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await watching.close()
    task = await watching.watch()
    await watching.until(0, complaints=2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await watching.close()

    assert {"not visible, the rights are missing: the ConfigMap gputest-bot-history"} == set(watching.complaints)
