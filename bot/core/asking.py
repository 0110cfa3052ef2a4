"""A person asks: parse, decide, ask the cluster, answer once.

A command that creates something is acknowledged after the object exists, because a command acknowledged and then lost
in a crash is worse than a slow one. The name of what it creates derives from the request, so that a
command delivered twice finds what it made the first time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

from bot.core import asking_gpu, policy
from bot.core.again import Again
from bot.core.card import Card, Stage, card_of, short_name, wants_posts
from bot.core.commands import gpu, gputest, nightly
from bot.core.commands.gputest import CancelRun, ListRuns, RerunRun, ShowStatus, StartRun
from bot.core.commands.grammar import normalise
from bot.core.commands.nightly import ShowNightly, SwitchNightly
from bot.core.commands.spec import CommandSpec, ShowHelp
from bot.core.dialogs import StartDialog
from bot.core.effects import (
    Answer,
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
from bot.core.errors import UserError
from bot.core.events import CommandTyped, EffectDone, EffectFailed, Trouble
from bot.core.memory import Cancelled, Request, cancel_patch, renamed, write
from bot.core.nightly import SWITCHED, Switched, view
from bot.core.render import answers
from bot.core.render import pools as pool_answers
from bot.core.render import warming as warm_answers
from bot.core.render import warmup as way_answers
from bot.core.runs import Run, channel_of
from bot.core.settings import Right, Settings
from bot.core.signing import DIALOG_SECONDS, Deed, Signed
from bot.core.state import AskEffect, Asker, Asking, EndedRun, State
from bot.core.waiting import Longer, longer_patch
from bot.core.workflow import CronWorkflow, Workflow

COMMANDS: tuple[CommandSpec, ...] = (gputest.SPEC, nightly.SPEC, gpu.SPEC)
"""Every slash command there is."""

WAKE_ASK = "ask:"
"""Prefix of the wake-up keys of requests."""

MAX_MENDS = 6
"""How many mistakes of one line are mended in the line to copy."""

MAX_TRIES = 4
"""How often a create, a patch or a switch is tried before the person is told."""

SHOWN_ENDED, LISTED_ENDED = 5, 20
"""Ended runs that `status` and `list` name."""

_STATUS = f"/{gputest.SPEC.trigger} status"

_ALPHABET = "23456789abcdefghjkmnpqrstvwxyz"  # nothing that is read for something else


def typed(state: State, command: CommandTyped, now: float) -> list[Effect]:
    """A command came in: answer it, or start what has to be done first."""
    asker = Asker(command.request_id, command.user_id, command.user_name, command.channel_id, command.aloud)
    known = repeated(state, asker)
    if known is not None:
        return known
    try:
        slow_down(state, asker, now)
    except UserError as error:
        return answer(state, asker, answers.refusal(error))
    match command.trigger:
        case gputest.SPEC.trigger:
            return _gputest(state, asker, command, now)
        case nightly.SPEC.trigger:
            return _nightly(state, asker, command.text, now)
        case gpu.SPEC.trigger:
            return _gpu(state, asker, command.text, now)
        case _:
            return answer(state, asker, answers.no_such_command(command.trigger, COMMANDS))


def repeated(state: State, asker: Asker) -> list[Effect] | None:
    """What to do with a request that was seen before: the same answer, or nothing while it is worked on."""
    if asker.request_id in state.answers:
        return [Answer(asker.request_id, state.answers[asker.request_id])]
    if any(asking.asker.request_id == asker.request_id for asking in state.asking.values()):
        return []
    return None


def slow_down(state: State, asker: Asker, now: float) -> None:
    """Count a request of this user.

    Raises:
        UserError: too many within a minute.
    """
    recent = [at for at in state.spoken.get(asker.user_id, []) if at > now - 60]
    if len(recent) >= state.settings.commands_per_minute:
        state.spoken[asker.user_id] = recent
        raise UserError(f"That is more than {state.settings.commands_per_minute} requests in a minute. Wait a little.")
    state.spoken[asker.user_id] = [*recent, now]
    if len(state.spoken) > 1000:
        state.spoken = {user: times for user, times in state.spoken.items() if times[-1] > now - 60}


def _gputest(state: State, asker: Asker, command: CommandTyped, now: float) -> list[Effect]:
    settings = state.settings
    try:
        asked = gputest.parse(command.text, settings)
        match asked:
            case ShowHelp() if not normalise(command.text):
                return _form(state, asker, command.trigger_id, now)
            case ShowHelp():
                return answer(state, asker, answers.help_text(gputest.SPEC, settings))
            case StartRun():
                return start(state, asker, gputest.parameters(asked, settings), asker.request_id)
            case ShowStatus() | ListRuns():
                policy.check(settings, Right.LOOK, asker.user_id, asker.channel_id)
                text = _status(state, asked.run) if isinstance(asked, ShowStatus) else _list(state)
                return answer(state, asker, text)
            case CancelRun():
                return cancel(state, asker, _running(state, asker, asked.run), now)
            case RerunRun():
                return rerun(state, asker, _again_of(state, asked), asker.request_id)
    except UserError as error:
        refused = mended(state, asker, error)
        starts = gputest.starts_a_run(command.text)
        return answer(state, asker, answers.refusal(refused) if starts else answers.click_refused(refused))


def mended(state: State, asker: Asker, error: UserError) -> UserError:
    """The error with a line to copy that is understood and allowed; see `_mended`."""
    return _mended(error, gputest.SPEC, lambda text: _check(state, asker, gputest.parse(text, state.settings)))


def _mended(error: UserError, spec: CommandSpec, check: Callable[[str], object]) -> UserError:
    """The error with a line to copy that passes `check` when sent as it is read; the help where there is none.

    What was typed can be wrong in more than one way, and the line that mends one of them says so of the next.
    """
    best = answers.copied(error.suggestion)
    for _ in range(MAX_MENDS):
        if not best:
            break
        try:
            check(best.removeprefix(f"/{spec.trigger}"))
        except UserError as next_one:
            best = answers.copied(next_one.suggestion)
        else:
            return UserError(error.text, best)
    return UserError(error.text, f"/{spec.trigger} help" if error.suggestion else "")


def _check(state: State, asker: Asker, asked: gputest.GpuTest) -> None:
    """Whether the asker may have that, and it can be had.

    Raises:
        UserError: not allowed, or no such run.
    """
    settings = state.settings
    match asked:
        case StartRun():
            policy.check_run(settings, asker.user_id, asker.channel_id, gputest.parameters(asked, settings))
        case ShowStatus() | ListRuns():
            policy.check(settings, Right.LOOK, asker.user_id, asker.channel_id)
        case CancelRun():
            may_cancel(state, asker, _running(state, asker, asked.run))
        case RerunRun():
            again = _again_of(state, asked)
            policy.check_run(settings, asker.user_id, asker.channel_id, _judged(settings, again.parameters, again.ref))
        case ShowHelp():
            pass


def _form(state: State, asker: Asker, trigger_id: str, now: float) -> list[Effect]:
    """The form with the defaults; the help where no form can be shown."""
    settings = state.settings
    policy.check(settings, Right.RUN, asker.user_id, asker.channel_id)
    otherwise = answers.help_text(gputest.SPEC, settings)
    if not trigger_id:
        return answer(state, asker, otherwise)
    pools = tuple(pool.name for pool in settings.pools)
    form = StartDialog(settings.model_names, settings.scopes, pools, settings.max_epochs, settings.defaults)
    signed = Signed(Deed.START, now + DIALOG_SECONDS, asker.channel_id, asker.user_id, asker.user_name)
    effect = OpenDialog(state.new_id(), trigger_id, form, signed)
    return ask(state, Asking(asker, effect, otherwise=otherwise))


def start(
    state: State, asker: Asker, parameters: dict[str, str], identity: str, *, asked_ref: str | None = None
) -> list[Effect]:
    """Start a run, if the asker may. `identity` names it; `asked_ref` is the ref that has to be allowed.

    Raises:
        UserError: not allowed.
    """
    settings = state.settings
    policy.check_run(settings, asker.user_id, asker.channel_id, _judged(settings, parameters, asked_ref))
    name = run_name(settings.run_prefix, identity, 1)
    effect = SubmitWorkflow(
        id=state.new_id(),
        namespace=settings.namespace,
        name=name,
        template=settings.template,
        parameters=parameters,
        request=_request(asker, identity, name, _first_ref(settings, parameters, asked_ref)),
        priority=settings.priority,
    )
    return ask(state, Asking(asker, effect, identity=identity))


def _judged(settings: Settings, parameters: dict[str, str], asked_ref: str | None) -> dict[str, str]:
    return parameters if asked_ref is None else parameters | {settings.parameters.ref: asked_ref}


def _first_ref(settings: Settings, parameters: dict[str, str], asked_ref: str | None) -> str:
    """The ref that a rerun of this run has to be allowed by; "" where its parameters have it."""
    return "" if asked_ref in {None, parameters[settings.parameters.ref]} else str(asked_ref)


def _request(asker: Asker, identity: str, name: str, ref: str) -> str:
    return write(Request(name, identity, asker.user_id, asker.user_name, asker.channel_id, ref))


def run_name(prefix: str, identity: str, try_number: int) -> str:
    """A name from the request; a longer one where a shorter is taken by another run."""
    number = int.from_bytes(hashlib.sha256(identity.encode()).digest())
    suffix = ""
    for _ in range(3 + try_number):
        number, rest = divmod(number, len(_ALPHABET))
        suffix += _ALPHABET[rest]
    return f"{prefix}-{suffix}"


def _again_of(state: State, asked: RerunRun) -> Again:
    ended = _ended_run(state, asked.run)
    again = ended.failed if asked.failed else ended.again
    if again is None:
        short = short_name(ended.name)
        raise UserError(answers.nothing_to_rerun(short, ended.verdict), f"/gputest rerun {short}")
    return again


def rerun(state: State, asker: Asker, again: Again, identity: str) -> list[Effect]:
    """Run something again; the ref that was asked for first is the one that has to be allowed."""
    return start(state, asker, again.parameters, identity, asked_ref=again.ref)


def _ended_run(state: State, run: str | None) -> EndedRun:
    known = [ended for ended in state.newest_ended() if ended.again is not None]
    if run is None and known:
        return known[0]
    meant = [ended for ended in known if run in {short_name(ended.name), ended.name}]
    if meant:
        return meant[_one_of(run, [ended.name for ended in meant], "/gputest rerun")]
    held = [short_name(r.workflow.metadata.name) for r in state.runs.values()]
    if run is not None and run in held:
        raise UserError(f"**{run}** has not ended yet.", f"/gputest status {run}")
    raise UserError(answers.run_unknown(run, [short_name(e.name) for e in known]), _STATUS)


def _one_of(run: str | None, names: list[str], command: str) -> int:
    """Which of these Workflows is meant: the one of the whole name, or the only one; its place among them.

    Raises:
        UserError: several have the same short name.
    """
    if run in names or len(names) == 1:
        return names.index(str(run)) if run in names else 0
    raise UserError(answers.several(str(run), names), f"{command} {names[0]}")


def _running(state: State, asker: Asker, run: str | None) -> Run:
    """The run that is meant: the one of that name, or the only one that the asker started."""
    held = list(state.runs.values())
    if run is not None:
        names = [candidate.workflow.metadata.name for candidate in held]
        meant = [i for i, name in enumerate(names) if run in {short_name(name), name}]
        if meant:
            return held[meant[_one_of(run, [names[i] for i in meant], "/gputest cancel")]]
        if any(run in {short_name(e.name), e.name} for e in state.ended.values()):
            raise UserError(f"**{short_name(run)}** has ended already.", f"/gputest status {run}")
        raise UserError(answers.run_unknown(run, [short_name(r.workflow.metadata.name) for r in held]), _STATUS)
    cards = [(r, card_of(r.workflow, state.settings)) for r in held if not r.workflow.ended]
    mine = [r for r, card in cards if card.origin.user_id == asker.user_id]
    if len(mine) != 1:
        known = ", ".join(f"`{short_name(r.workflow.metadata.name)}`" for r, _ in cards)
        raise UserError(f"Which run? Under way: {known}." if known else "No run is under way.", _STATUS)
    return mine[0]


def cancel(state: State, asker: Asker, run: Run, now: float) -> list[Effect]:
    """Stop a run, if the asker may: their own, or any with the right to cancel.

    Raises:
        UserError: not allowed, or it has ended already.
    """
    may_cancel(state, asker, run)
    return ask(state, Asking(asker, _cancel_effect(state, asker, run.workflow, now), uid=run.uid))


def may_cancel(state: State, asker: Asker, run: Run) -> None:
    """Whether the asker may stop a run.

    Raises:
        UserError: not allowed, or it has ended already, or only its exit step runs.
    """
    card = card_of(run.workflow, state.settings)
    if card.origin.user_id != asker.user_id or not asker.user_id:
        policy.check(state.settings, Right.CANCEL, asker.user_id, asker.channel_id)
    if run.workflow.ended or run.gone:
        raise UserError(answers.ended_already(card))
    if card.stage is Stage.FINISHING:
        raise UserError(answers.tests_are_over(card.short), f"{_STATUS} {card.short}")


def _cancel_effect(state: State, asker: Asker, workflow: Workflow, now: float) -> PatchWorkflow:
    cancelled = Cancelled(workflow.attempt, asker.user_id, asker.user_name, now)
    meta = workflow.metadata
    return PatchWorkflow(state.new_id(), meta.namespace, meta.name, cancel_patch(workflow, cancelled), Purpose.CANCEL)


def wait_longer(state: State, asker: Asker, run: Run, until: float, now: float) -> list[Effect]:
    """Let a run wait for a GPU until then."""
    effect = _wait_effect(state, asker, run.workflow, until, now)
    return ask(state, Asking(asker, effect, uid=run.uid, until=until))


def _wait_effect(state: State, asker: Asker, workflow: Workflow, until: float, now: float) -> PatchWorkflow:
    longer, meta = Longer(workflow.attempt, until, asker.user_id, asker.user_name, now), workflow.metadata
    patch = longer_patch(workflow, longer)
    return PatchWorkflow(state.new_id(), meta.namespace, meta.name, patch, Purpose.WAIT_LONGER)


def _nightly(state: State, asker: Asker, text: str, now: float) -> list[Effect]:
    settings = state.settings
    cron = state.nightly.crons.get(settings.cron)

    def check(text: str) -> nightly.Nightly:
        asked = nightly.parse(text)
        if not isinstance(asked, ShowHelp):
            right = Right.NIGHTLY if isinstance(asked, SwitchNightly) else Right.LOOK
            policy.check(settings, right, asker.user_id, asker.channel_id)
        return asked

    try:
        asked = check(text)
    except UserError as error:
        return answer(state, asker, answers.nothing_changed(_mended(error, nightly.SPEC, check)))
    if isinstance(asked, ShowHelp):
        return answer(state, asker, answers.help_text(nightly.SPEC, settings))
    if cron is None:
        return answer(state, asker, answers.nightly_unknown(settings.cron, listed=state.nightly.listed))
    match asked:
        case ShowNightly():
            return answer(state, asker, answers.nightly(view(cron, now)))
        case SwitchNightly() if asked.enable and not cron.schedules:
            return answer(state, asker, answers.nightly_without_schedule())
        case SwitchNightly():
            switched = Switched(user=asker.user_name, at=now, suspend=not asked.enable, reason=asked.reason)
            return ask(state, Asking(asker, _switch(state, cron, switched)))


def _gpu(state: State, asker: Asker, text: str, now: float) -> list[Effect]:
    try:
        decided = asking_gpu.decide(state, asker, text, _cards(state), now)
    except UserError as error:
        mended = _mended(error, gpu.SPEC, lambda text: asking_gpu.check(state, asker, text))
        return answer(state, asker, pool_answers.not_understood(mended))
    return answer(state, asker, decided) if isinstance(decided, str) else ask(state, Asking(asker, decided))


def _switch(state: State, cron: CronWorkflow, switched: Switched) -> SetSuspend:
    return SetSuspend(
        id=state.new_id(),
        namespace=cron.metadata.namespace,
        name=cron.metadata.name,
        suspend=switched.suspend,
        annotations={SWITCHED: write(switched)},
    )


def ask(state: State, asking: Asking) -> list[Effect]:
    """Send an effect whose end somebody waits for."""
    state.asking[asking.effect.id] = asking
    return [asking.effect]


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
            text = answers.nightly_switched(view(cron, now), wanted=not effect.suspend)
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
        return _not_done(state, asking.asker, _gave_up(asking, event))
    effect = _next_try(state, asking, event, tries, now)
    if effect is None:
        return _not_done(state, asking.asker, answers.ended_meanwhile(stopping=not asking.until))
    state.asking[effect.id] = replace(asking, effect=effect, tries=tries)
    if event.trouble in {Trouble.EXISTS, Trouble.CONFLICT}:
        return [effect]
    return [WakeAt(WAKE_ASK + effect.id, now + max(event.retry_after or 0.0, 2.0 ** (tries - 2)))]


def _not_done(state: State, asker: Asker, text: str) -> list[Effect]:
    """Say that nothing came of it. A form shows errors alone, and stays open with them, to be sent again."""
    return [Answer(asker.request_id, "", (("", text),))] if asker.form else answer(state, asker, text)


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
            return _wait_effect(state, asking.asker, latest, asking.until, now) if waits else None
        return _cancel_effect(state, asking.asker, latest, now)
    return replace(effect, id=state.new_id())


def _gave_up(asking: Asking, event: EffectFailed) -> str:
    match asking.effect:
        case OpenDialog():
            return asking.otherwise
        case SetSuspend():
            return answers.nightly_failed(event.reason)
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


def _cards(state: State) -> list[Card]:
    held = sorted(state.runs.values(), key=lambda r: r.workflow.metadata.creation_timestamp or "")
    return [card_of(r.workflow, state.settings) for r in held]


def _ended(state: State) -> list[tuple[str, EndedRun]]:
    return [(short_name(e.name), e) for e in state.newest_ended()]


def _status(state: State, run: str | None) -> str:
    settings, cards, ended = state.settings, _cards(state), _ended(state)
    if run is None:
        return answers.status(cards, ended[:SHOWN_ENDED], settings, listed=state.listed)
    lines = [answers.run_line(card, settings) for card in cards if run in {card.short, card.name}]
    lines += [answers.ended_line(short, e) for short, e in ended if run in {short, e.name}]
    if not lines and not state.listed:
        return answers.status((), (), settings, listed=False)
    return "\n".join(lines) or answers.run_not_found(run, [c.short for c in cards] + [short for short, _ in ended])


def _list(state: State) -> str:
    return answers.run_list(_cards(state), _ended(state)[:LISTED_ENDED], state.settings, listed=state.listed)


def answer(state: State, asker: Asker, text: str) -> list[Effect]:
    """Answer, and keep the answer for the same request delivered again."""
    state.remember_answer(asker.request_id, text)
    return [Answer(asker.request_id, text)]
