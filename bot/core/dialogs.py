"""The forms that the bot shows: values only, no wording."""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.settings import Defaults


@dataclass(frozen=True)
class CancelDialog:
    """Asks once more before a run is stopped. `done` of `total` models have a result, where that is known."""

    short: str
    asked_by: str
    done: int | None
    total: int


@dataclass(frozen=True)
class StartDialog:
    """The form of `/gputest` without a word."""

    models: tuple[str, ...]
    scopes: tuple[str, ...]
    pools: tuple[str, ...]
    max_epochs: int
    defaults: Defaults
