"""The record of costs: written over what was read, by the holder of the Lease alone, and watched by all."""

from __future__ import annotations

import asyncio

import pytest

from bot.core.effects import KeepCosts
from bot.core.events import CostsRead, EffectDone, EffectFailed, Event, Trouble
from bot.demo.kinds import CONFIGMAPS
from bot.sinks.costs import CostSink
from bot.sources import config_maps
from bot.sources.costs import watch_costs
from tests.sinks.conftest import Sunk

NAME, PLACE = "gputest-bot-costs", "gputest"


@pytest.fixture
def sink(sunk: Sunk) -> CostSink:
    """The sink on the embedded cluster."""
    sunk.world.cluster.ensure_namespace(PLACE)
    return CostSink(sunk.kube, PLACE, NAME, lambda: sunk.leads)


def stored(sunk: Sunk) -> dict[str, str]:
    """The ConfigMap's data."""
    data: dict[str, str] = sunk.world.cluster.store.get(CONFIGMAPS, PLACE, NAME)["data"]
    return data


def trouble(result: EffectDone | EffectFailed) -> Trouble:
    """Why it failed."""
    assert isinstance(result, EffectFailed)
    return result.trouble


async def made(sink: CostSink) -> str:
    """The first record; its version."""
    result = await sink.keep(KeepCosts("e1", "", {"state": "1", "2026-03": "a", "2025-01": "b", "no": None}))
    assert isinstance(result, EffectDone)
    return str(result.value)


async def test_it_is_made_and_then_changed(sunk: Sunk, sink: CostSink) -> None:
    """What differs is written, what goes is taken out, the rest stays."""
    version = await made(sink)
    assert stored(sunk) == {"state": "1", "2026-03": "a", "2025-01": "b"}

    result = await sink.keep(KeepCosts("e2", version, {"state": "2", "2025-01": None}))

    assert isinstance(result, EffectDone)
    assert result.value not in {version, ""}
    assert stored(sunk) == {"state": "2", "2026-03": "a"}


async def test_who_has_not_seen_the_others_write_loses(sunk: Sunk, sink: CostSink) -> None:
    """A change over an older version, a creation of what is there, a change of what is gone."""
    version = await made(sink)
    await sink.keep(KeepCosts("e2", version, {"state": "2"}))

    assert trouble(await sink.keep(KeepCosts("e3", version, {"state": "3"}))) is Trouble.CONFLICT
    assert trouble(await sink.keep(KeepCosts("e4", "", {"state": "3"}))) is Trouble.CONFLICT
    assert stored(sunk)["state"] == "2"
    sunk.world.cluster.store.remove(CONFIGMAPS, PLACE, NAME)
    assert trouble(await sink.keep(KeepCosts("e5", version, {"state": "3"}))) is Trouble.CONFLICT


async def test_without_the_lease_nothing_is_sent(sunk: Sunk, sink: CostSink) -> None:
    """Somebody else writes by now."""
    sunk.leads = False
    assert trouble(await sink.keep(KeepCosts("e1", "", {"state": "1"}))) is Trouble.CONFLICT
    assert sunk.world.cluster.store.find(CONFIGMAPS, PLACE, NAME) is None


async def test_a_lost_answer_and_a_refusal(sunk: Sunk, sink: CostSink) -> None:
    """UNCERTAIN and REFUSED, as for every write."""
    sunk.world.kube_faults.drop_after_commit(method="POST", path=f"/api/v1/namespaces/{PLACE}/configmaps")
    assert trouble(await sink.keep(KeepCosts("e1", "", {"state": "1"}))) is Trouble.UNCERTAIN
    sunk.world.kube_faults.fail(403, method="POST", path=f"/api/v1/namespaces/{PLACE}/configmaps")
    assert trouble(await sink.keep(KeepCosts("e2", "", {"state": "1"}))) is Trouble.REFUSED


async def test_it_is_watched(sunk: Sunk, sink: CostSink) -> None:
    """Nothing, then the record, its change, and that it is gone."""
    seen: asyncio.Queue[Event] = asyncio.Queue()
    watch = watch_costs(sunk.kube, sunk.metrics, (PLACE, NAME), seen.put_nowait, lambda _reason: None)
    task = asyncio.create_task(watch, name="costs")  # noqa: TID251  # the bot's tasks are its own
    try:
        assert await seen.get() == CostsRead({}, "")
        version = await made(sink)
        assert await seen.get() == CostsRead(stored(sunk), version)
        done = await sink.keep(KeepCosts("e2", version, {"state": "2"}))
        assert isinstance(done, EffectDone)
        assert await seen.get() == CostsRead(stored(sunk), str(done.value))
        sunk.world.cluster.store.remove(CONFIGMAPS, PLACE, NAME)
        assert await seen.get() == CostsRead({}, "")
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_it_was_there_before(sunk: Sunk, sink: CostSink) -> None:
    """The list names it."""
    version = await made(sink)
    seen: asyncio.Queue[Event] = asyncio.Queue()
    watch = watch_costs(sunk.kube, sunk.metrics, (PLACE, NAME), seen.put_nowait, lambda _reason: None)
    task = asyncio.create_task(watch, name="costs")  # noqa: TID251  # the bot's tasks are its own
    try:
        assert await seen.get() == CostsRead(stored(sunk), version)
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_without_the_right_it_is_said_and_looked_at_again(sunk: Sunk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept over a restart then, and everything else goes on."""
    monkeypatch.setattr(config_maps, "AGAIN_SECONDS", 0.0)
    told: asyncio.Queue[str] = asyncio.Queue()
    path = f"/api/v1/namespaces/{PLACE}/configmaps"
    sunk.world.kube_faults.fail(403, method="GET", path=path, times=2)
    seen: asyncio.Queue[Event] = asyncio.Queue()
    watch = watch_costs(sunk.kube, sunk.metrics, (PLACE, NAME), seen.put_nowait, told.put_nowait)
    task = asyncio.create_task(watch, name="costs")  # noqa: TID251  # the bot's tasks are its own
    try:
        assert await told.get() == f"not visible, the rights are missing: the ConfigMap {NAME}"
        assert await seen.get() == CostsRead({}, "")
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
