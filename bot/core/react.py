"""One event in, effects out: the only entrance of the core."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from bot.core import asking, clicking, pools, runs
from bot.core.again import everything, what_failed
from bot.core.card import card_of
from bot.core.effects import Effect, StopFollowing, WakeAt
from bot.core.events import (
    Clicked,
    CommandTyped,
    CronWorkflowChanged,
    CronWorkflowDeleted,
    CronWorkflowsListed,
    DialogSubmitted,
    EffectDone,
    EffectFailed,
    Event,
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
from bot.core.memory import read_memory
from bot.core.runs import Moment, Run
from bot.core.state import EndedRun, Parting, State
from bot.core.workflow import CronWorkflow, Workflow, instant

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
            return _all_runs(state, now)
        case LeaseLost():
            state.leader = False
            return [StopFollowing(run.uid) for run in state.runs.values() if run.followed]
        case WorkflowsSeen():
            return [effect for workflow in event.workflows for effect in _changed(state, workflow, now)]
        case WorkflowsListed():
            return _listed(state, event.uids, now)
        case WorkflowChanged():
            return _changed(state, event.workflow, now)
        case WorkflowDeleted():
            return _deleted(state, event.workflow, now)
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
            pools.observe(state.pools, event.what, now)
            return []
        case Woke():
            return _woke(state, event.key, now)
        case Swept():
            return _swept(state, now)
        case _:
            assert_never(event)


def set_aside(state: State, event: Event) -> None:
    """An event could not be digested: leave its run alone until the next sweep, so that the loop goes on."""
    uid = ""
    if isinstance(event, WorkflowChanged | WorkflowDeleted):
        uid = event.workflow.metadata.uid
    elif isinstance(event, EffectDone | EffectFailed):
        uid = next((u for u, run in state.runs.items() if run.waits_for == event.id), "")
    elif isinstance(event, Woke):
        uid = event.key.removeprefix(WAKE_RUN)
    if uid:
        state.aside.add(uid)
        state.runs.pop(uid, None)


def _moment(state: State, now: float) -> Moment:
    return Moment(now, state.settings, state.installed_at, state.new_id())


def _listed(state: State, uids: frozenset[str], now: float) -> list[Effect]:
    state.listed = True
    effects: list[Effect] = []
    for uid in [uid for uid in state.runs if uid not in uids]:
        effects += _deleted(state, state.runs[uid].workflow, now)
    return effects


def _changed(state: State, workflow: Workflow, now: float) -> list[Effect]:
    uid = workflow.metadata.uid
    if not runs.is_ours(workflow, state.settings) or uid in state.aside:
        return []
    run = state.runs.get(uid)
    if run is None:
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
    run = state.runs.get(workflow.metadata.uid)
    if run is None:
        return []
    runs.observe(run, workflow, now)
    run.gone = True
    return _advance(state, run, now)


def _woke(state: State, key: str, now: float) -> list[Effect]:
    state.wakes.pop(key, None)
    run = state.runs.get(key.removeprefix(WAKE_RUN)) if key.startswith(WAKE_RUN) else None
    if run is not None:
        return _advance(state, run, now)
    return asking.woke(state, key)


def _read(state: State, event: MarkersRead, now: float) -> list[Effect]:
    run = state.runs.get(event.uid)
    if run is None or run.followed != event.attempt:
        return []
    runs.learn(run, event.markers)
    return _advance(state, run, now)


def _all_runs(state: State, now: float) -> list[Effect]:
    effects: list[Effect] = []
    for run in list(state.runs.values()):
        effects += _advance(state, run, now)
    return effects


def _answered(state: State, event: EffectDone | EffectFailed, now: float) -> list[Effect]:
    if event.id in state.asking:
        effects = asking.answered(state, event, now)
        if isinstance(event, EffectDone):
            effects += _created(state, event.value, now)
        return effects
    run = next((run for run in state.runs.values() if run.waits_for == event.id), None)
    if run is None:
        return []  # a late result of something that was given up
    if isinstance(event, EffectDone):
        runs.done(run, event, now)
    else:
        runs.failed(run, event, _moment(state, now))
    return _advance(state, run, now)


def _created(state: State, value: object, now: float) -> list[Effect]:
    if isinstance(value, Workflow):
        return _changed(state, value, now)
    if isinstance(value, CronWorkflow):
        state.nightly.crons[value.metadata.name] = value
    return []


def _advance(state: State, run: Run, now: float) -> list[Effect]:
    """The next step of a run, its wake-up, or its end in our memory."""
    if not state.leader:
        if run.gone or not runs.is_owed(run.workflow, state.installed_at):
            return _forget(state, run, now)
        return []
    moment = _moment(state, now)
    if run.pending is None and runs.is_settled(run, moment):
        return _forget(state, run, now)
    followed = runs.follow(run, moment)
    effects: list[Effect] = [followed] if followed is not None else []
    effect = runs.next_effect(run, moment)
    if effect is not None:
        return [effect, *effects]
    when = runs.wake_at(run, moment)
    key = WAKE_RUN + run.uid
    if when is None or state.wakes.get(key) == when:
        return effects
    state.wakes[key] = when
    return [*effects, WakeAt(key, when)]


def _swept(state: State, now: float) -> list[Effect]:
    """Compare everything held with what is stored, and look once more at what was let go a while ago."""
    state.aside.clear()
    for run in state.runs.values():
        run.check = True
    state.partings = {uid: parting for uid, parting in state.partings.items() if now < parting.until}
    if not state.leader:
        return []
    partings = [parting for uid, parting in state.partings.items() if uid not in state.runs]
    looks: list[Effect] = [runs.check_posts(state.new_id(), parting.memory, None) for parting in partings]
    return _all_runs(state, now) + looks


def _part(state: State, workflow: Workflow, until: float, now: float) -> None:
    """Keep an eye on a run that was let go."""
    memory, known = read_memory(workflow), state.partings.get(workflow.metadata.uid)
    if memory is not None and memory.post and now < until and (known is None or known.until < until):
        state.partings[workflow.metadata.uid] = Parting(memory, until)


def _forget(state: State, run: Run, now: float) -> list[Effect]:
    del state.runs[run.uid]
    _remember(state, run.workflow)
    _part(state, run.workflow, now + state.settings.linger_seconds, now)
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
        verdict = card.outcome.verdict if card.outcome else None
        again, failed = everything(card, state.settings), what_failed(card, state.settings)
        ended = replace(ended, verdict=verdict, again=again, failed=failed)
    state.remember_ended(workflow.metadata.uid, ended)
