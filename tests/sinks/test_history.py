"""The history of starts: added to once, never written over what somebody else wrote."""

from __future__ import annotations

import asyncio

import pytest

from bot.core.effects import KeepStart
from bot.core.events import EffectDone, EffectFailed, Trouble
from bot.core.history import KEY, read, written
from bot.demo.kinds import CONFIGMAPS
from bot.demo.world import Json
from bot.sinks.history import TRIES, HistorySink
from tests.core.test_history import start
from tests.sinks.conftest import Sunk

NAME = "gputest-bot-history"
PATH = r"/configmaps"


@pytest.fixture
def sink(sunk: Sunk) -> HistorySink:
    """It writes into a namespace of its own."""
    sunk.world.cluster.ensure_namespace("gputest")
    return HistorySink(sunk.kube, "gputest", NAME, lambda: sunk.leads)


def kept(sunk: Sunk) -> Json | None:
    """The ConfigMap as it is."""
    return sunk.world.cluster.store.find(CONFIGMAPS, "gputest", NAME)


def runs(sunk: Sunk) -> list[str]:
    """Whose starts are kept."""
    found = kept(sunk)
    return [each.run for each in read(found["data"][KEY])] if found else []


async def test_the_first_start_makes_the_config_map(sunk: Sunk, sink: HistorySink) -> None:
    """What is told is the whole text."""
    done = await sink.keep(KeepStart("e1", start(1)))

    assert done == EffectDone("e1", written([start(1)]))
    assert ["uid-1"] == runs(sunk)


async def test_the_same_start_again_writes_nothing(sunk: Sunk, sink: HistorySink) -> None:
    """After a lost answer, a restart, a hand-over: it is there, and stays as it was."""
    await sink.keep(KeepStart("e1", start(1)))
    before = kept(sunk)
    again = await sink.keep(KeepStart("e2", start(1, seconds=999)))

    assert again == EffectDone("e2", written([start(1)]))
    assert before == kept(sunk)


async def test_two_that_write_at_once_lose_nothing(sunk: Sunk, sink: HistorySink) -> None:
    """Whoever comes second reads again, and adds to what the first wrote; also where both had found nothing."""
    await asyncio.gather(*(sink.keep(KeepStart(f"e{n}", start(n))) for n in (1, 2)))
    await asyncio.gather(*(sink.keep(KeepStart(f"e{n}", start(n))) for n in (3, 4)))

    assert {"uid-1", "uid-2", "uid-3", "uid-4"} == set(runs(sunk))


async def test_a_text_that_can_not_be_read_gives_way(sunk: Sunk, sink: HistorySink) -> None:
    """A person has edited it, or taken the key away."""
    for data in ({KEY: "nonsense"}, None):
        sunk.world.cluster.store.remove(CONFIGMAPS, "gputest", NAME) if kept(sunk) else None
        body: Json = {"metadata": {"name": NAME, "namespace": "gputest"}} | ({"data": data} if data else {})
        sunk.world.cluster.store.create(CONFIGMAPS, body)
        await sink.keep(KeepStart("e1", start(1)))

        assert ["uid-1"] == runs(sunk)


async def test_who_has_lost_the_lease_writes_nothing(sunk: Sunk, sink: HistorySink) -> None:
    """It is asked right before the write."""
    sunk.leads = False

    failed = await sink.keep(KeepStart("e1", start(1)))

    assert isinstance(failed, EffectFailed)
    assert failed.trouble is Trouble.BUSY
    assert kept(sunk) is None


async def test_others_who_write_all_the_time(sunk: Sunk, sink: HistorySink) -> None:
    """After some tries it is left for later."""
    await sink.keep(KeepStart("e1", start(1)))
    sunk.world.kube_faults.fail(409, method="PATCH", path=PATH, times=TRIES)

    failed = await sink.keep(KeepStart("e2", start(2)))

    assert isinstance(failed, EffectFailed)
    assert failed.trouble is Trouble.CONFLICT
    assert ["uid-1"] == runs(sunk)


async def test_a_cluster_that_does_not_take_it(sunk: Sunk, sink: HistorySink) -> None:
    """Its reason is told; a lost answer is found to be written the next time."""
    sunk.world.kube_faults.fail(403, method="POST", path=PATH)
    failed = await sink.keep(KeepStart("e1", start(1)))
    assert isinstance(failed, EffectFailed)
    assert failed.trouble is Trouble.REFUSED

    sunk.world.kube_faults.drop_after_commit(method="POST", path=PATH)
    lost = await sink.keep(KeepStart("e2", start(1)))
    assert isinstance(lost, EffectFailed)
    assert lost.trouble is Trouble.UNCERTAIN
    assert isinstance(await sink.keep(KeepStart("e3", start(1))), EffectDone)
    assert ["uid-1"] == runs(sunk)
