"""A person asks: parse, decide, ask the cluster, answer once.

A command that creates something is acknowledged after the object exists, because a command acknowledged and then lost
in a crash is worse than a slow one. The name of what it creates derives from the request, so that a
command delivered twice finds what it made the first time.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

import msgspec

from bot.core.card import Card, card_of, short_name
from bot.core.commands import gputest, nightly
from bot.core.commands.gputest import ShowStatus, StartRun
from bot.core.commands.nightly import ShowNightly, SwitchNightly
from bot.core.commands.spec import CommandSpec, ShowHelp
from bot.core.effects import Answer, Effect, SetSuspend, SubmitWorkflow, WakeAt
from bot.core.errors import UserError
from bot.core.events import CommandTyped, EffectDone, EffectFailed, Trouble
from bot.core.memory import Request, write
from bot.core.nightly import SWITCHED, Switched, view
from bot.core.render import answers
from bot.core.runs import channel_of
from bot.core.state import Asking, State
from bot.core.workflow import CronWorkflow, Workflow

COMMANDS: tuple[CommandSpec, ...] = (gputest.SPEC, nightly.SPEC)
"""Every slash command there is."""

WAKE_ASK = "ask:"
"""Prefix of the wake-up keys of commands."""

MAX_TRIES = 4
"""How often a create or a switch is tried before the person is told."""

SHOWN_ENDED = 5
"""Ended runs that `status` names."""

_ALPHABET = "23456789abcdefghjkmnpqrstvwxyz"  # nothing that is read for something else


def typed(state: State, command: CommandTyped, now: float) -> list[Effect]:
    """A command came in: answer it, or start what has to be done first."""
    if command.request_id in state.answers:
        return [Answer(command.request_id, state.answers[command.request_id])]
    if any(asking.command.request_id == command.request_id for asking in state.asking.values()):
        return []  # the same sending again: it is being worked on
    match command.trigger:
        case gputest.SPEC.trigger:
            return _gputest(state, command)
        case nightly.SPEC.trigger:
            return _nightly(state, command, now)
        case _:
            return _answer(state, command, answers.no_such_command(command.trigger, COMMANDS))


def _gputest(state: State, command: CommandTyped) -> list[Effect]:
    try:
        asked = gputest.parse(command.text, state.settings)
        if isinstance(asked, StartRun):
            return [_submit(state, command, gputest.parameters(asked, state.settings))]
    except UserError as error:
        return _answer(state, command, answers.refusal(error))
    match asked:
        case ShowHelp():
            return _answer(state, command, answers.help_text(gputest.SPEC, state.settings))
        case ShowStatus():
            return _answer(state, command, _status(state, asked.run))


def _nightly(state: State, command: CommandTyped, now: float) -> list[Effect]:
    settings = state.settings
    cron = state.nightly.crons.get(settings.cron)
    try:
        asked = nightly.parse(command.text)
    except UserError as error:
        return _answer(state, command, answers.nothing_changed(error))
    if isinstance(asked, ShowHelp):
        return _answer(state, command, answers.help_text(nightly.SPEC, settings))
    if cron is None:
        return _answer(state, command, answers.nightly_unknown(settings.cron, listed=state.nightly.listed))
    match asked:
        case ShowNightly():
            return _answer(state, command, answers.nightly(view(cron, now)))
        case SwitchNightly() if asked.enable and not cron.schedules:
            return _answer(state, command, answers.nightly_without_schedule())
        case SwitchNightly():
            return [_switch(state, command, cron, suspend=not asked.enable, now=now)]


def _submit(state: State, command: CommandTyped, parameters: dict[str, str]) -> Effect:
    settings = state.settings
    name = run_name(settings.run_prefix, command.request_id, 1)
    effect = SubmitWorkflow(
        id=state.new_id(),
        namespace=settings.namespace,
        name=name,
        template=settings.template,
        parameters=parameters,
        request=_request(command, name),
    )
    state.asking[effect.id] = Asking(command, effect)
    return effect


def _request(command: CommandTyped, name: str) -> str:
    return write(Request(name, command.request_id, command.user_id, command.user_name, command.channel_id))


def run_name(prefix: str, request_id: str, try_number: int) -> str:
    """A name from the request; a longer one where a shorter is taken by another run."""
    number = int.from_bytes(hashlib.sha256(request_id.encode()).digest())
    suffix = ""
    for _ in range(3 + try_number):
        number, rest = divmod(number, len(_ALPHABET))
        suffix += _ALPHABET[rest]
    return f"{prefix}-{suffix}"


def _switch(state: State, command: CommandTyped, cron: CronWorkflow, *, suspend: bool, now: float) -> Effect:
    switched = Switched(user=command.user_name, at=now, suspend=suspend)
    effect = SetSuspend(
        id=state.new_id(),
        namespace=cron.metadata.namespace,
        name=cron.metadata.name,
        suspend=suspend,
        annotations={SWITCHED: msgspec.json.encode(switched).decode()},
    )
    state.asking[effect.id] = Asking(command, effect)
    return effect


def answered(state: State, event: EffectDone | EffectFailed, now: float) -> list[Effect]:
    """What was asked for came to its end: tell the person, or try again."""
    asking = state.asking.pop(event.id)
    if isinstance(event, EffectFailed):
        return _again(state, asking, event, now)
    match event.value:
        case Workflow():
            return _answer(state, asking.command, _started(state, asking.command, event.value))
        case CronWorkflow():
            wanted = isinstance(asking.effect, SetSuspend) and not asking.effect.suspend
            text = answers.nightly_switched(view(event.value, now), wanted=wanted)
            return _answer(state, asking.command, text)
        case _:
            raise AssertionError(f"a command has no such result: {event.value}")


def _again(state: State, asking: Asking, event: EffectFailed, now: float) -> list[Effect]:
    effect, tries = asking.effect, asking.tries + 1
    if tries > MAX_TRIES or event.trouble in {Trouble.REFUSED, Trouble.GONE}:
        return _answer(state, asking.command, _gave_up(asking, event))
    if isinstance(effect, SubmitWorkflow) and event.trouble is Trouble.EXISTS:
        name = run_name(state.settings.run_prefix, asking.command.request_id, tries)
        effect = replace(effect, name=name, request=_request(asking.command, name))
    effect = replace(effect, id=state.new_id())
    state.asking[effect.id] = Asking(asking.command, effect, tries)
    if event.trouble in {Trouble.EXISTS, Trouble.CONFLICT}:
        return [effect]
    return [WakeAt(WAKE_ASK + effect.id, now + max(event.retry_after or 0.0, 2.0 ** (tries - 2)))]


def _gave_up(asking: Asking, event: EffectFailed) -> str:
    if isinstance(asking.effect, SetSuspend):
        return answers.nightly_failed(event.reason)
    if event.trouble in {Trouble.REFUSED, Trouble.GONE}:
        return answers.submit_refused(event.reason)
    return answers.submit_failed(event.reason, asking.effect.name)


def woke(state: State, key: str) -> list[Effect]:
    """It is time to try again."""
    asking = state.asking.get(key.removeprefix(WAKE_ASK))
    return [asking.effect] if asking is not None and key.startswith(WAKE_ASK) else []


def _started(state: State, command: CommandTyped, workflow: Workflow) -> str:
    settings = state.settings
    posts = workflow.parameter(settings.parameters.notify) != "false"
    channel = channel_of(workflow, settings)
    if posts and channel == command.channel_id:
        return ""  # the card is the answer
    return answers.started(short_name(workflow.metadata.name), settings.channels.name(channel), posts=posts)


def _status(state: State, run: str | None) -> str:
    settings = state.settings
    held = sorted(state.runs.values(), key=lambda r: r.workflow.metadata.creation_timestamp or "")
    cards = [card_of(r.workflow, settings) for r in held]
    ended = [(short_name(e.name), e) for e in reversed(state.ended.values())]
    if run is None:
        return answers.status(cards, ended[:SHOWN_ENDED], settings, listed=state.listed)
    lines = [answers.run_line(card, settings) for card in cards if _called(card, run)]
    lines += [answers.ended_line(short, e) for short, e in ended if run in {short, e.name}]
    return "\n".join(lines) or answers.run_not_found(run, [c.short for c in cards] + [short for short, _ in ended])


def _called(card: Card, run: str) -> bool:
    return run in {card.short, card.name}


def _answer(state: State, command: CommandTyped, text: str) -> list[Effect]:
    state.remember_answer(command.request_id, text)
    return [Answer(command.request_id, text)]
