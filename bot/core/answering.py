"""What was asked for came to its end: tell the person, or try again.

A command that creates something is acknowledged after the object exists, because a command acknowledged and then lost
in a crash is worse than a slow one.
"""

from __future__ import annotations

from dataclasses import replace

from bot.core.card import Stage, card_of, short_name, wants_posts
from bot.core.deeds import cancel_effect, run_name, wait_effect
from bot.core.effects import (
    Effect,
    MakePlaceholder,
    OpenDialog,
    PatchWorkflow,
    Purpose,
    RemovePlaceholders,
    SetSuspend,
    SubmitWorkflow,
    WakeAt,
)
from bot.core.events import EffectDone, EffectFailed, Trouble
from bot.core.memory import renamed
from bot.core.nightly import view
from bot.core.render import answers
from bot.core.render import nightly as nightly_answers
from bot.core.render import warming as warm_answers
from bot.core.render import warmup as way_answers
from bot.core.requests import answer, not_done
from bot.core.runs import channel_of
from bot.core.state import AskEffect, Asker, Asking, State
from bot.core.workflow import CronWorkflow, Workflow

WAKE_ASK = "ask:"
"""Prefix of the wake-up keys of requests."""

MAX_TRIES = 4
"""How often a create, a patch or a switch is tried before the person is told."""


def answered(state: State, event: EffectDone | EffectFailed, now: float) -> list[Effect]:
    """What was asked for came to its end: tell the person, or try again."""
    asking = state.asking.pop(event.id)
    if isinstance(event, EffectFailed):
        return _again(state, asking, event, now)
    asker = asking.asker
    match asking.effect, event.value:
        case OpenDialog(), _:
            return answer(state, asker, "")
        case PatchWorkflow(purpose=Purpose.WAIT_LONGER), Workflow() as workflow:
            short = short_name(workflow.metadata.name)
            return answer(state, asker, way_answers.waits_until(short, asking.until, state.settings))
        case PatchWorkflow(), Workflow() as workflow:
            return answer(state, asker, answers.being_stopped(short_name(workflow.metadata.name)))
        case SubmitWorkflow(), Workflow() as workflow:
            if workflow.ended:
                return answer(state, asker, answers.started_before(short_name(workflow.metadata.name)))
            return answer(state, asker, _started(state, asker, workflow))
        case SetSuspend() as effect, CronWorkflow() as cron:
            text = nightly_answers.switched(view(cron, now), wanted=not effect.suspend)
            return answer(state, asker, text)
        case MakePlaceholder() as effect, str():
            return answer(state, asker, warm_answers.kept(effect, state.settings, now))
        case RemovePlaceholders() as effect, tuple() as names:
            return answer(state, asker, warm_answers.let_go(effect, len(names), state.settings, now))
        case _:
            raise AssertionError(f"a request has no such result: {event.value}")


def _again(state: State, asking: Asking, event: EffectFailed, now: float) -> list[Effect]:
    tries = asking.tries + 1
    final = event.trouble in {Trouble.REFUSED, Trouble.GONE} or isinstance(asking.effect, OpenDialog)
    if tries > MAX_TRIES or final:
        return not_done(state, asking.asker, _gave_up(asking, event))
    effect = _next_try(state, asking, event, tries, now)
    if effect is None:
        return not_done(state, asking.asker, answers.ended_meanwhile(stopping=not asking.until))
    state.asking[effect.id] = replace(asking, effect=effect, tries=tries)
    if event.trouble in {Trouble.EXISTS, Trouble.CONFLICT}:
        return [effect]
    return [WakeAt(WAKE_ASK + effect.id, now + max(event.retry_after or 0.0, 2.0 ** (tries - 2)))]


def _next_try(state: State, asking: Asking, event: EffectFailed, tries: int, now: float) -> AskEffect | None:
    """The effect for another try, with a longer name or on the object as it is now; None where it has ended."""
    effect = asking.effect
    if isinstance(effect, SubmitWorkflow) and event.trouble is Trouble.EXISTS:
        name = run_name(state.settings.run_prefix, asking.identity, tries)
        return replace(effect, id=state.new_id(), name=name, request=renamed(effect.request, name))
    if isinstance(effect, PatchWorkflow):
        held = state.runs.get(asking.uid)
        latest = event.latest if isinstance(event.latest, Workflow) else held.workflow if held else None
        if latest is None or latest.ended:
            return None
        if asking.until:
            waits = card_of(latest, state.settings).stage is Stage.WAITING and not latest.spec.shutdown
            return wait_effect(state, asking.asker, latest, asking.until, now) if waits else None
        return cancel_effect(state, asking.asker, latest, now)
    return replace(effect, id=state.new_id())


def _gave_up(asking: Asking, event: EffectFailed) -> str:
    match asking.effect:
        case OpenDialog():
            return asking.otherwise
        case SetSuspend():
            return nightly_answers.failed(event.reason)
        case MakePlaceholder() as effect:
            return warm_answers.not_kept(event.reason, refused=event.trouble is Trouble.REFUSED)
        case RemovePlaceholders():
            return warm_answers.not_let_go(event.reason)
        case PatchWorkflow(purpose=Purpose.WAIT_LONGER) as effect:
            return way_answers.wait_failed(event.reason, short_name(effect.name))
        case PatchWorkflow() as effect:
            return answers.cancel_failed(event.reason, short_name(effect.name))
        case SubmitWorkflow() if event.trouble in {Trouble.REFUSED, Trouble.GONE}:
            return answers.submit_refused(event.reason)
        case SubmitWorkflow() as effect:
            return answers.submit_failed(event.reason, effect.name)


def woke(state: State, key: str) -> list[Effect]:
    """It is time to try again."""
    asking = state.asking.get(key.removeprefix(WAKE_ASK))
    return [asking.effect] if asking is not None and key.startswith(WAKE_ASK) else []


def _started(state: State, asker: Asker, workflow: Workflow) -> str:
    settings = state.settings
    posts = wants_posts(workflow, settings)
    channel = channel_of(workflow, settings)
    if posts and channel == asker.channel_id and not asker.aloud:
        return ""  # the card is the answer
    return answers.started(short_name(workflow.metadata.name), settings.channels.name(channel), posts=posts)
