"""What people can have done to runs: start, rerun, cancel, wait longer.

The name of what is created derives from the request, so that a command delivered twice finds what it made the first
time.
"""

from __future__ import annotations

import hashlib

from bot.core import policy
from bot.core.again import Again
from bot.core.card import Stage, card_of
from bot.core.commands.gputest import SPEC
from bot.core.effects import Effect, PatchWorkflow, Purpose, SubmitWorkflow
from bot.core.errors import UserError
from bot.core.memory import Cancelled, Request, cancel_patch, write
from bot.core.render import answers
from bot.core.requests import ask
from bot.core.runs import Run
from bot.core.settings import Right, Settings
from bot.core.state import Asker, Asking, State
from bot.core.waiting import Longer, longer_patch
from bot.core.workflow import Workflow

_ALPHABET = "23456789abcdefghjkmnpqrstvwxyz"  # nothing that is read for something else


def start(
    state: State, asker: Asker, parameters: dict[str, str], identity: str, *, asked_ref: str | None = None
) -> list[Effect]:
    """Start a run, if the asker may. `identity` names it; `asked_ref` is the ref that has to be allowed.

    Raises:
        UserError: not allowed.
    """
    settings = state.settings
    policy.check_run(settings, asker.user_id, asker.channel_id, judged(settings, parameters, asked_ref))
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


def judged(settings: Settings, parameters: dict[str, str], asked_ref: str | None) -> dict[str, str]:
    """The parameters by which a run is allowed: with the ref that was asked for first."""
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


def rerun(state: State, asker: Asker, again: Again, identity: str) -> list[Effect]:
    """Run something again; the ref that was asked for first is the one that has to be allowed."""
    return start(state, asker, again.parameters, identity, asked_ref=again.ref)


def cancel(state: State, asker: Asker, run: Run, now: float) -> list[Effect]:
    """Stop a run, if the asker may: their own, or any with the right to cancel.

    Raises:
        UserError: not allowed, or it has ended already.
    """
    may_cancel(state, asker, run)
    return ask(state, Asking(asker, cancel_effect(state, asker, run.workflow, now), uid=run.uid))


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
        raise UserError(answers.tests_are_over(card.short), f"/{SPEC.trigger} status {card.short}")


def cancel_effect(state: State, asker: Asker, workflow: Workflow, now: float) -> PatchWorkflow:
    """Stop the workflow as it is now, and say there who did."""
    cancelled = Cancelled(workflow.attempt, asker.user_id, asker.user_name, now)
    meta = workflow.metadata
    return PatchWorkflow(state.new_id(), meta.namespace, meta.name, cancel_patch(workflow, cancelled), Purpose.CANCEL)


def wait_longer(state: State, asker: Asker, run: Run, until: float, now: float) -> list[Effect]:
    """Let a run wait for a GPU until then."""
    effect = wait_effect(state, asker, run.workflow, until, now)
    return ask(state, Asking(asker, effect, uid=run.uid, until=until))


def wait_effect(state: State, asker: Asker, workflow: Workflow, until: float, now: float) -> PatchWorkflow:
    """Write on the workflow as it is now until when it may wait, and who said so."""
    longer, meta = Longer(workflow.attempt, until, asker.user_id, asker.user_name, now), workflow.metadata
    patch = longer_patch(workflow, longer)
    return PatchWorkflow(state.new_id(), meta.namespace, meta.name, patch, Purpose.WAIT_LONGER)
