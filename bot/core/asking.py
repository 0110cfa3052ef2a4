"""A person types a command: parse it, and decide what comes of it."""

from __future__ import annotations

from collections.abc import Callable

from bot.core import asking_gpu, policy
from bot.core.again import Again
from bot.core.card import Card, card_of, short_name
from bot.core.commands import gpu, gputest, nightly
from bot.core.commands.gputest import CancelRun, ListRuns, RerunRun, ShowStatus, StartRun
from bot.core.commands.grammar import normalise
from bot.core.commands.nightly import ShowNightly, SwitchNightly
from bot.core.commands.spec import CommandSpec, ShowHelp
from bot.core.deeds import cancel, judged, may_cancel, rerun, start
from bot.core.dialogs import StartDialog
from bot.core.effects import (
    Effect,
    OpenDialog,
    SetSuspend,
)
from bot.core.errors import UserError
from bot.core.events import CommandTyped
from bot.core.memory import write
from bot.core.nightly import SWITCHED, Switched, view
from bot.core.render import answers
from bot.core.render import nightly as nightly_answers
from bot.core.render import pools as pool_answers
from bot.core.requests import answer, ask, repeated, slow_down
from bot.core.runs import Run
from bot.core.settings import Right
from bot.core.signing import DIALOG_SECONDS, Deed, Signed
from bot.core.state import Asker, Asking, EndedRun, State
from bot.core.workflow import CronWorkflow

COMMANDS: tuple[CommandSpec, ...] = (gputest.SPEC, nightly.SPEC, gpu.SPEC)
"""Every slash command there is."""

MAX_MENDS = 6
"""How many mistakes of one line are mended in the line to copy."""

SHOWN_ENDED, LISTED_ENDED = 5, 20
"""Ended runs that `status` and `list` name."""

_STATUS = f"/{gputest.SPEC.trigger} status"


def typed(state: State, command: CommandTyped, now: float) -> list[Effect]:
    """A command came in: answer it, or start what has to be done first."""
    asker = Asker(command.request_id, command.user_id, command.user_name, command.channel_id, command.aloud)
    known = repeated(state, asker)
    if known is not None:
        return known
    try:
        slow_down(state, asker, now)
    except UserError as error:
        return answer(state, asker, answers.click_refused(error))
    match command.trigger:
        case gputest.SPEC.trigger:
            return _gputest(state, asker, command, now)
        case nightly.SPEC.trigger:
            return _nightly(state, asker, command.text, now)
        case gpu.SPEC.trigger:
            return _gpu(state, asker, command.text, now)
        case _:
            return answer(state, asker, answers.no_such_command(command.trigger, COMMANDS))


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
            policy.check_run(settings, asker.user_id, asker.channel_id, judged(settings, again.parameters, again.ref))
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


def _again_of(state: State, asked: RerunRun) -> Again:
    ended = _ended_run(state, asked.run)
    again = ended.failed if asked.failed else ended.again
    if again is None:
        short = short_name(ended.name)
        raise UserError(answers.nothing_to_rerun(short, ended.verdict), f"/gputest rerun {short}")
    return again


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
    raise UserError(answers.run_unknown(run, [short_name(e.name) for e in known], ended=True), _STATUS)


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
        return answer(state, asker, nightly_answers.unknown(settings.cron, listed=state.nightly.listed))
    match asked:
        case ShowNightly():
            return answer(state, asker, nightly_answers.status(view(cron, now)))
        case SwitchNightly() if asked.enable and not cron.schedules:
            return answer(state, asker, nightly_answers.without_schedule())
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
    lines += [answers.ended_line(short, e, settings) for short, e in ended if run in {short, e.name}]
    if not lines and not state.listed:
        return answers.status((), (), settings, listed=False)
    return "\n".join(lines) or answers.run_not_found(run, [c.short for c in cards] + [short for short, _ in ended])


def _list(state: State) -> str:
    return answers.run_list(_cards(state), _ended(state)[:LISTED_ENDED], state.settings, listed=state.listed)
