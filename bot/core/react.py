"""One event in, effects out: the only entrance of the core."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import assert_never

from bot.core import alerting, answering, asking, clicking, cost_keeping, pools, run_answers, run_steps, runs, warming
from bot.core.again import everything, what_failed
from bot.core.card import Card, card_of
from bot.core.effects import Effect, KeepStart, StopFollowing, WakeAt
from bot.core.events import (
    Clicked,
    CommandTyped,
    CostsRead,
    CronWorkflowChanged,
    CronWorkflowDeleted,
    CronWorkflowsListed,
    DialogSubmitted,
    EffectDone,
    EffectFailed,
    Event,
    HistoryRead,
    Installed,
    LeaseLost,
    LeaseWon,
    MarkersRead,
    PoolsSeen,
    Swept,
    Woke,
    WorkflowChanged,
    WorkflowDeleted,
    WorkflowsListed,
    WorkflowsSeen,
)
from bot.core.history import merged, read
from bot.core.memory import read_memory
from bot.core.render.outcome import headline
from bot.core.runs import Moment, Run
from bot.core.sightings import Sighting
from bot.core.state import EndedRun, Parting, State
from bot.core.warmup import finished
from bot.core.workflow import CronWorkflow, Workflow, instant

LATE_EVENT = 30.0
"""Seconds for which the Event of an image may come after the start of its container."""

WAKE_RUN = "run:"
"""Prefix of the wake-up keys of runs."""


def react(state: State, event: Event, now: float) -> list[Effect]:
    """Take in one event and return what is to be done. `now`: Unix seconds."""
    match event:
        case Installed():
            state.installed_at = event.at
            return []
        case LeaseWon():
            state.leader = True
            for run in state.runs.values():
                runs.doubt(run)
            others = (warming.won(state, now), cost_keeping.won(state, now), alerting.won(state, now))
            return [*_all_runs(state, now), *chain.from_iterable(others)]
        case LeaseLost():
            state.leader = False
            cost_keeping.lost(state)
            alerting.lost(state)
            return [StopFollowing(run.uid) for run in state.runs.values() if run.followed]
        case WorkflowsSeen():
            return _take_in(state, event.workflows, now)
        case WorkflowsListed():
            return [*_listed(state, event, now), *alerting.plan(state, now)]
        case WorkflowChanged():
            return [*_changed(state, event.workflow, now), *alerting.plan(state, now)]
        case WorkflowDeleted():
            return [*_deleted(state, event.workflow, now), *alerting.plan(state, now)]
        case CronWorkflowsListed():
            state.nightly.crons = {cron.metadata.name: cron for cron in event.crons}
            state.nightly.listed = True
            return []
        case CronWorkflowChanged():
            state.nightly.crons[event.cron.metadata.name] = event.cron
            return []
        case CronWorkflowDeleted():
            state.nightly.crons.pop(event.cron.metadata.name, None)
            return []
        case CommandTyped():
            return asking.typed(state, event, now)
        case Clicked():
            return clicking.clicked(state, event, now)
        case DialogSubmitted():
            return clicking.submitted(state, event, now)
        case EffectDone() | EffectFailed():
            return _answered(state, event, now)
        case MarkersRead():
            return _read(state, event, now)
        case PoolsSeen():
            return _pools_seen(state, event.what, now)
        case CostsRead():
            return cost_keeping.took(state, event, now)
        case HistoryRead():
            _learn(state, event.text)
            return []
        case Woke():
            return _woke(state, event.key, now)
        case Swept():
            return [*_swept(state, now), *alerting.swept(state, now)]
        case _:
            assert_never(event)


def set_aside(state: State, event: Event) -> None:
    """An event could not be digested: leave its run alone until the next sweep, so that the loop goes on."""
    run: Run | None = None
    if isinstance(event, WorkflowChanged | WorkflowDeleted):
        _put_aside(state, event.workflow)
    elif isinstance(event, EffectDone | EffectFailed):
        run = next((run for run in state.runs.values() if run.waits_for == event.id), None)
    elif isinstance(event, Woke):
        run = state.runs.get(event.key.removeprefix(WAKE_RUN))
    elif isinstance(event, MarkersRead):
        run = state.runs.get(event.uid)
    if run is not None:
        _put_aside(state, run.workflow)


def _put_aside(state: State, workflow: Workflow) -> None:
    state.aside[workflow.metadata.uid] = workflow
    state.runs.pop(workflow.metadata.uid, None)


def _guarded(state: State, workflow: Workflow, step: Callable[[], list[Effect]]) -> list[Effect]:
    """The step of one run among many. One that can't be digested is set aside and takes no other with it."""
    try:
        return step()
    except Exception as error:  # noqa: BLE001  # whatever it is, the other runs go on
        _put_aside(state, workflow)
        state.broken.append((workflow.metadata.name, error))
        return []


def _take_in(state: State, workflows: Iterable[Workflow], now: float) -> list[Effect]:
    effects: list[Effect] = []
    for workflow in workflows:
        effects += _guarded(state, workflow, partial(_changed, state, workflow, now))
    return effects


def _moment(state: State, now: float) -> Moment:
    return Moment(now, state.settings, state.installed_at, state.new_id(), state.history)


def _listed(state: State, listed: WorkflowsListed, now: float) -> list[Effect]:
    """A run that was made while the list was read is not in it: the answer to the request told of it first."""
    state.listed = True
    effects: list[Effect] = []
    state.aside = {uid: workflow for uid, workflow in state.aside.items() if _may_be_there(workflow, listed)}
    for run in [run for run in state.runs.values() if not _may_be_there(run.workflow, listed)]:
        effects += _guarded(state, run.workflow, partial(_deleted, state, run.workflow, now))
    return effects


def _may_be_there(workflow: Workflow, listed: WorkflowsListed) -> bool:
    meta = workflow.metadata
    return meta.uid in listed.uids or runs.is_older(listed.version, meta.resource_version)


def _is_old_news(state: State, workflow: Workflow) -> bool:
    """A watch that is behind brings what was before a run was let go; of one that is gone nothing is new."""
    meta = workflow.metadata
    last = state.forgotten.get(meta.uid)
    return last is not None and (not last or runs.is_older(meta.resource_version, last))


def _changed(state: State, workflow: Workflow, now: float) -> list[Effect]:
    uid = workflow.metadata.uid
    if not runs.is_ours(workflow, state.settings):
        return []
    if uid in state.aside:
        state.aside[uid] = workflow
        return []
    cost_keeping.learn(state, workflow)
    run = state.runs.get(uid)
    if run is None:
        if _is_old_news(state, workflow):
            return []
        if not runs.is_owed(workflow, state.installed_at):
            _remember(state, workflow)
            finished = instant(workflow.status.finished_at if workflow.status else None)
            if finished is not None:
                _part(state, workflow, finished.timestamp() + state.settings.linger_seconds, now)
            return []
        run = state.runs[uid] = Run(workflow)
    runs.observe(run, workflow, now)
    return _advance(state, run, now)


def _deleted(state: State, workflow: Workflow, now: float) -> list[Effect]:
    state.aside.pop(workflow.metadata.uid, None)
    run = state.runs.get(workflow.metadata.uid)
    if run is None:
        return []
    runs.observe(run, workflow, now)
    run.gone = True
    return _advance(state, run, now)


def _pools_seen(state: State, seen: Sighting, now: float) -> list[Effect]:
    cost_keeping.before(state, seen, now)
    pools.observe(state.pools, seen, now)
    return [
        *_on_their_way(state, seen, now),
        *warming.saw(state, seen, now),
        *cost_keeping.after(state, seen, now),
        *alerting.plan(state, now),
    ]


def _woke(state: State, key: str, now: float) -> list[Effect]:
    state.wakes.pop(key, None)
    run = state.runs.get(key.removeprefix(WAKE_RUN)) if key.startswith(WAKE_RUN) else None
    if run is not None:
        return _advance(state, run, now)
    if key == warming.WAKE_WARM:
        return warming.look(state, now)
    if key == cost_keeping.WAKE_COST:
        return cost_keeping.woke(state, now)
    if key == alerting.WAKE_ALERTS:
        return alerting.woke(state, now)
    return answering.woke(state, key)


def _read(state: State, event: MarkersRead, now: float) -> list[Effect]:
    run = state.runs.get(event.uid)
    if run is None or run.followed != event.attempt:
        return []
    runs.learn(run, event.markers, state.settings)
    return _advance(state, run, now)


def _all_runs(state: State, now: float) -> list[Effect]:
    effects: list[Effect] = []
    for run in list(state.runs.values()):
        effects += _guarded(state, run.workflow, partial(_advance, state, run, now))
    return effects


def _answered(state: State, event: EffectDone | EffectFailed, now: float) -> list[Effect]:
    if event.id in state.asking:
        effects = answering.answered(state, event, now)
        if isinstance(event, EffectDone):
            effects += _created(state, event.value, now)
        return effects
    if event.id in state.keeping.values():
        return _kept(state, event)
    if event.id == state.cooling:
        return warming.removed(state, event, now)
    if event.id == state.costs.writing:
        return cost_keeping.answered(state, event, now)
    step = state.alerts.pending
    if step is not None and event.id == step.id:
        return alerting.answered(state, step, event, now)
    run = next((run for run in state.runs.values() if run.waits_for == event.id), None)
    if run is None:
        return []  # a late result of something that was given up
    if isinstance(event, EffectDone):
        run_answers.done(run, event, _moment(state, now))
    else:
        run_answers.failed(run, event, _moment(state, now))
    return _advance(state, run, now)


def _created(state: State, value: object, now: float) -> list[Effect]:
    if isinstance(value, Workflow):
        return _changed(state, value, now)
    if isinstance(value, CronWorkflow):
        state.nightly.crons[value.metadata.name] = value
    return []


def _advance(state: State, run: Run, now: float) -> list[Effect]:
    """The next step of a run, its wake-up, or its end in our memory."""
    runs.look_at_warmup(run, state.pools, state.settings)
    if not state.leader:
        if run.gone or not runs.is_owed(run.workflow, state.installed_at):
            return _forget(state, run, now)
        return []
    moment = _moment(state, now)
    if run.pending is None and runs.is_settled(run, moment):
        return _forget(state, run, now)
    followed = runs.follow(run, moment)
    effects: list[Effect] = [followed] if followed is not None else []
    effects += _keep(state, run, now)
    effect = run_steps.next_effect(run, moment)
    if effect is not None:
        return [effect, *effects]
    when = runs.wake_at(run, moment)
    key = WAKE_RUN + run.uid
    if when is None or state.wakes.get(key) == when:
        return effects
    state.wakes[key] = when
    return [*effects, WakeAt(key, when)]


def _on_their_way(state: State, seen: Sighting, now: float) -> list[Effect]:
    """Look again at the runs that wait for what was seen."""
    effects: list[Effect] = []
    for run in list(state.runs.values()):
        if runs.concerns(run, seen, state.pools):
            effects += _guarded(state, run.workflow, partial(_advance, state, run, now))
    return effects


def _keep(state: State, run: Run, now: float) -> list[Effect]:
    """Add the start of a run to the history, once, when all is known of it that will be."""
    warmup = run.warmup
    if warmup is None or warmup.start is None or state.history.start(run.uid, warmup.attempt) is not None:
        return []
    start, key = finished(warmup, run.uid), (run.uid, warmup.attempt)
    more = warmup.image is None and warmup.sees_events and not run.workflow.ended and now < warmup.start + LATE_EVENT
    if start is None or key in state.keeping or more:
        return []
    state.keeping[key] = state.new_id()
    return [KeepStart(state.keeping[key], start)]


def _kept(state: State, event: EffectDone | EffectFailed) -> list[Effect]:
    key = next(key for key, effect in state.keeping.items() if effect == event.id)
    if isinstance(event, EffectDone):
        del state.keeping[key]
        _learn(state, str(event.value))
    else:
        state.keeping[key] = ""  # again at the next sweep
    return []


def _learn(state: State, text: str) -> None:
    """Take in the history as it is kept. What was learned before stays: an older text may come late."""
    starts = merged(state.history.starts.values(), read(text))
    state.history.starts = {start.key: start for start in starts}


def _swept(state: State, now: float) -> list[Effect]:
    """Compare everything held with what is stored, and look once more at what was let go a while ago."""
    put_aside, state.aside = state.aside, {}
    state.keeping = {key: effect for key, effect in state.keeping.items() if effect}
    for run in state.runs.values():
        run.check = True
    state.partings = {uid: parting for uid, parting in state.partings.items() if now < parting.until}
    again = _take_in(state, put_aside.values(), now)
    if not state.leader:
        return again
    partings = [parting for uid, parting in state.partings.items() if uid not in state.runs]
    looks: list[Effect] = [
        run_steps.check_parted(state.new_id(), part.memory, part.since, part.card) for part in partings
    ]
    return again + _all_runs(state, now) + looks


def _part(state: State, workflow: Workflow, until: float, now: float, card: Card | None = None) -> None:
    """Keep an eye on a run that was let go."""
    memory, known = read_memory(workflow), state.partings.get(workflow.metadata.uid)
    if memory is not None and memory.post and now < until and (known is None or known.until < until):
        state.partings[workflow.metadata.uid] = Parting(memory, until, runs.look_back(workflow, memory), card)


def _forget(state: State, run: Run, now: float) -> list[Effect]:
    del state.runs[run.uid]
    state.forget_before(run.uid, "" if run.gone else run.workflow.metadata.resource_version)
    _remember(state, run.workflow)
    # of what was shown before another led nothing is known; the last word on it may have been the other's
    _part(state, run.workflow, now + state.settings.linger_seconds, now, run.shown if state.leader else None)
    return [StopFollowing(run.uid)] if run.followed else []


def _remember(state: State, workflow: Workflow) -> None:
    """Keep what `status` says of an ended run: its name and verdict, not its object. The newest are kept."""
    memory = read_memory(workflow)
    finished = (workflow.status.finished_at if workflow.status else None) or ""
    if memory is None or not state.keeps_ended(finished):
        return
    ended = EndedRun(workflow.metadata.name, None, memory.channel, memory.post, finished)
    if workflow.ended:
        card = card_of(workflow, state.settings)
        again, failed = everything(card, state.settings), what_failed(card, state.settings)
        verdict = card.outcome.verdict if card.outcome else None
        ended = replace(ended, verdict=verdict, again=again, failed=failed, headline=headline(card), origin=card.origin)
    state.remember_ended(workflow.metadata.uid, ended)
