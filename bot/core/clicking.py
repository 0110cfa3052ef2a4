"""A person clicks a button or sends a dialog off.

That the context or state is ours, and its time is not over, was found out before; what the person may do is asked
here, at the moment of doing. The name of a run that a click starts derives from what it repeats, not from the click:
two clicks at once, or one replayed, make one run.
"""

from __future__ import annotations

from bot.core import policy
from bot.core.again import Again
from bot.core.asking import mended
from bot.core.card import Stage, card_of
from bot.core.commands import gputest
from bot.core.deeds import cancel, may_cancel, rerun, start, wait_longer
from bot.core.dialogs import CancelDialog
from bot.core.effects import Answer, Effect, OpenDialog
from bot.core.errors import UserError
from bot.core.events import Clicked, DialogSubmitted
from bot.core.render import answers, warmup
from bot.core.render.escape import unmarked
from bot.core.requests import answer, ask, repeated, slow_down
from bot.core.runs import Run
from bot.core.settings import Right
from bot.core.signing import DIALOG_SECONDS, Deed, Signed
from bot.core.state import Asker, Asking, State
from bot.core.waiting import read_longer


def clicked(state: State, event: Clicked, now: float) -> list[Effect]:
    """A button of a card was clicked."""
    asker = Asker(event.request_id, event.user_id, event.user_name, event.channel_id)
    known = repeated(state, asker)
    if known is not None:
        return known
    try:
        return _clicked(state, asker, event, now)
    except UserError as error:
        return answer(state, asker, answers.click_refused(mended(state, asker, error)))


def _clicked(state: State, asker: Asker, event: Clicked, now: float) -> list[Effect]:
    slow_down(state, asker, now)
    if event.signed.channel != event.channel_id:
        raise UserError("That button belongs to another channel.")
    match event.signed.deed:
        case Deed.ASK_CANCEL:
            return _ask_cancel(state, asker, event, now)
        case Deed.RERUN:
            return _rerun(state, asker, event.signed)
        case Deed.WAIT:
            return _wait(state, asker, event.signed, now)
        case _:
            raise UserError("That is no button.")


def _ask_cancel(state: State, asker: Asker, event: Clicked, now: float) -> list[Effect]:
    run = _run(state, event.signed)
    may_cancel(state, asker, run)
    card = card_of(run.workflow, state.settings)
    done = None if run.progress is None else sum(1 for m in run.progress.models if not m.running)
    form = CancelDialog(card.short, card.origin.user_name, done, len(card.asked.models))
    signed = Signed(
        Deed.CANCEL,
        now + DIALOG_SECONDS,
        asker.channel_id,
        asker.user_id,
        asker.user_name,
        uid=event.signed.uid,
        attempt=event.signed.attempt,
        short=event.signed.short,
    )
    effect = OpenDialog(state.new_id(), event.trigger_id, form, signed)
    return ask(state, Asking(asker, effect, otherwise=answers.no_dialog(card.short)))


def _rerun(state: State, asker: Asker, signed: Signed) -> list[Effect]:
    names = state.settings.parameters
    if not {names.models, names.epochs, names.ref, names.pool, names.scope, names.notify} <= signed.parameters.keys():
        raise UserError(f"I was set up anew since; that button can't start {signed.short} again.")
    models = signed.parameters[names.models]
    again = Again(signed.parameters, signed.ref, 0, failed=False)
    return rerun(state, asker, again, f"rerun {signed.uid} {signed.attempt} {models}")


def _wait(state: State, asker: Asker, signed: Signed, now: float) -> list[Effect]:
    policy.check(state.settings, Right.RUN, asker.user_id, asker.channel_id)
    run = _run(state, signed)
    if card_of(run.workflow, state.settings).stage is not Stage.WAITING:
        raise UserError(f"**{signed.short}** waits for no GPU any more.")
    longer = read_longer(run.workflow)
    if longer is not None and longer.until >= signed.until:
        return answer(state, asker, warmup.waits_already(signed.short, longer.until, longer.user_name, state.settings))
    if signed.until <= now:
        raise UserError("That time is over; the card has the limit that holds now.")
    return wait_longer(state, asker, run, signed.until, now)


def _run(state: State, signed: Signed) -> Run:
    """The run that was meant, in the life that was meant."""
    run = state.runs.get(signed.uid)
    if run is None or run.workflow.ended or run.gone:
        raise UserError(f"**{signed.short}** has ended already.")
    if signed.attempt and run.workflow.attempt != signed.attempt:
        raise UserError(f"**{signed.short}** was started again since; that button was for an earlier attempt.")
    return run


def submitted(state: State, event: DialogSubmitted, now: float) -> list[Effect]:
    """A dialog was sent off. What is wrong keeps it open, with the reason at its field.

    It counts as sent from where it was opened: the channel that comes with it is what its sender's client says.
    """
    asker = Asker(event.request_id, event.user_id, event.user_name, event.signed.channel, form=True)
    known = repeated(state, asker)
    if known is not None:
        return known
    try:
        return _submitted(state, asker, event, now)
    except UserError as error:
        return [Answer(asker.request_id, "", (("", unmarked(error.text)),))]


def _submitted(state: State, asker: Asker, event: DialogSubmitted, now: float) -> list[Effect]:
    if event.signed.user != event.user_id:
        raise UserError("That form was opened for somebody else.")
    slow_down(state, asker, now)
    match event.signed.deed:
        case Deed.CANCEL:
            return cancel(state, asker, _run(state, event.signed), now)
        case Deed.START:
            return _start(state, asker, event)
        case _:
            raise UserError("That is no form.")


def _start(state: State, asker: Asker, event: DialogSubmitted) -> list[Effect]:
    asked, errors = gputest.from_form(event.values, state.settings)
    if errors:
        return [Answer(asker.request_id, "", tuple((key, unmarked(text)) for key, text in errors))]
    parameters = gputest.parameters(asked, state.settings)
    try:
        policy.check_fit(state.settings, parameters)
    except UserError as error:
        return [Answer(asker.request_id, "", (("pool", unmarked(error.text)),))]
    # the same form with other values is another run: it closes as if it had started what it says
    identity = " ".join(["form", event.user_id, str(event.signed.expires), *parameters.values()])
    return start(state, asker, parameters, identity)
