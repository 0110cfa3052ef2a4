"""A request on its way: known, within its limit, sent, answered once."""

from __future__ import annotations

from math import ceil

from bot.core.effects import (
    Answer,
    Effect,
)
from bot.core.errors import UserError
from bot.core.render.escape import unmarked
from bot.core.state import Asker, Asking, State


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
    limit = state.settings.commands_per_minute
    recent = [at for at in state.spoken.get(asker.user_id, []) if at > now - 60]
    if len(recent) >= limit:
        state.spoken[asker.user_id] = recent
        free = recent[-limit] + 60 if limit > 0 else now + 60  # a limit of 0 lets nobody in
        raise UserError(f"That is more than {limit} requests in a minute. Wait {max(1, ceil(free - now))} s.")
    state.spoken[asker.user_id] = [*recent, now]
    if len(state.spoken) > 1000:
        state.spoken = {user: times for user, times in state.spoken.items() if times[-1] > now - 60}


def ask(state: State, asking: Asking) -> list[Effect]:
    """Send an effect whose end somebody waits for."""
    state.asking[asking.effect.id] = asking
    return [asking.effect]


def answer(state: State, asker: Asker, text: str) -> list[Effect]:
    """Answer, and keep the answer for the same request delivered again."""
    state.remember_answer(asker.request_id, text)
    return [Answer(asker.request_id, text)]


def not_done(state: State, asker: Asker, text: str) -> list[Effect]:
    """Say that nothing came of it. A form shows errors alone, and stays open with them, to be sent again."""
    return [Answer(asker.request_id, "", (("", unmarked(text)),))] if asker.form else answer(state, asker, text)
