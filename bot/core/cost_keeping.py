"""Keeping the cost: the meter beside what the watches see, and the record that outlives this process.

The holder of the Lease writes the record at most once a minute where something changed, and every ten minutes where
nothing did; it reads it by a watch, as every replica does. Of two writers the one that has not seen the other's write
loses, and counts again what the other's record does not have.
"""

from __future__ import annotations

from dataclasses import replace
from zoneinfo import ZoneInfo

from bot.core import cost, cost_view
from bot.core.cost_record import Record, added, change, read, written
from bot.core.cost_view import CostView
from bot.core.effects import Effect, KeepCosts, WakeAt
from bot.core.events import CostsRead, EffectDone, EffectFailed, Trouble
from bot.core.sightings import Sighting
from bot.core.state import State
from bot.core.workflow import Workflow

WAKE_COST = "cost"
"""Key of the wake-up at which the record is written."""


def before(state: State, seen: Sighting, now: float) -> None:
    """Something is seen, and not taken in yet: until now the nodes were held as they are held."""
    cost.before(state.costs.meter, state.pools, state.settings, seen, now)


def after(state: State, seen: Sighting, now: float) -> list[Effect]:
    """It was taken in: nodes may have begun and ended."""
    changed = cost.after(state.costs.meter, state.pools, state.settings, seen, now)
    return _plan(state, now) if changed else []


def learn(state: State, workflow: Workflow) -> None:
    """A run was seen: remember what started it while its pods may hold a GPU."""
    if not workflow.ended:
        cost.learn(state.costs.meter, workflow)


def took(state: State, event: CostsRead, now: float) -> list[Effect]:
    """The record was read. One that knows less than we do, as after a deletion, is written over."""
    costs, found = state.costs, read(event.data, event.version)
    first, newer = not costs.loaded, found.until >= costs.record.until
    if first or newer:
        costs.record = found
        cost.forget(costs.meter, found.until)
    costs.record = replace(costs.record, version=event.version)
    costs.data, costs.loaded = dict(event.data), True
    return _plan(state, now) if first or not newer else []


def won(state: State, now: float) -> list[Effect]:
    """The Lease was won: from now on it is ours to write."""
    return _plan(state, now)


def lost(state: State) -> None:
    """The Lease was lost: it is somebody else's."""
    state.wakes.pop(WAKE_COST, None)


def woke(state: State, now: float) -> list[Effect]:
    """Time to write what was seen since."""
    costs = state.costs
    if not state.leader or not costs.loaded or costs.writing:
        return []
    if not state.listed or costs.meter.began is None:
        return _wake(state, now + state.settings.cost_write_seconds)
    costs.sent = _now(state, now)
    data = written(costs.sent)
    effect = KeepCosts(state.new_id(), costs.record.version, change(costs.data, data))
    costs.writing, costs.sent_data = effect.id, data
    return [effect]


def answered(state: State, event: EffectDone | EffectFailed, now: float) -> list[Effect]:
    """It was written, or was not: then it is tried again, over what the watch shows by then."""
    costs, settings = state.costs, state.settings
    costs.writing, costs.written_at = "", now
    if isinstance(event, EffectDone):
        costs.record, costs.data = replace(costs.sent, version=str(event.value)), costs.sent_data
        cost.forget(costs.meter, costs.record.until)
        return _wake(state, now + settings.cost_keep_seconds)
    pause = settings.cost_keep_seconds if event.trouble is Trouble.REFUSED else settings.cost_write_seconds
    return _wake(state, now + max(event.retry_after or 0.0, pause))


def view(state: State, now: float) -> CostView:
    """What `/gpu cost` shows: the record, and what this process saw since."""
    return cost_view.view(_now(state, now), state.settings, now, kept=state.costs.loaded)


def _now(state: State, now: float) -> Record:
    costs = state.costs
    cost.settle(costs.meter, state.pools, state.settings, now)
    return added(costs.record, costs.meter, ZoneInfo(state.settings.timezone), now)


def _plan(state: State, now: float) -> list[Effect]:
    """Write soon, but not too soon after the last time."""
    if not state.leader or not state.costs.loaded or state.costs.writing:
        return []
    return _wake(state, max(now, state.costs.written_at + state.settings.cost_write_seconds))


def _wake(state: State, when: float) -> list[Effect]:
    planned = state.wakes.get(WAKE_COST)
    if planned is not None and planned <= when:
        return []
    state.wakes[WAKE_COST] = when
    return [WakeAt(WAKE_COST, when)]
