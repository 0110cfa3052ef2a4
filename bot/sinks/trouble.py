"""From what a wire says to what the core has to know."""

from __future__ import annotations

from bot.clients import errors
from bot.core.events import EffectFailed, Trouble


def failure(effect_id: str, error: errors.WireError) -> EffectFailed:
    """The event for an error of a wire; an answer that never came to a write is UNCERTAIN."""
    return EffectFailed(effect_id, _trouble(error), error.reason, retry_after=error.retry_after)


def _trouble(error: errors.WireError) -> Trouble:
    match error:
        case errors.NotFound() | errors.Gone():
            return Trouble.GONE
        case errors.Invalid() | errors.Forbidden():
            return Trouble.REFUSED
        case errors.Conflict():
            return Trouble.CONFLICT
        case errors.Unreachable() if error.uncertain:
            return Trouble.UNCERTAIN
        case errors.ServerFault():
            return Trouble.UNCERTAIN
        case _:
            return Trouble.BUSY
