"""Words in which cards, notices and answers agree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from bot.core.card import Asked, Card, Origin, OriginKind
from bot.core.render.escape import code, prose
from bot.core.render.scheduling import waiting_words
from bot.core.settings import Settings

MAX_NAMES = 60
"""Names in one line."""


def duration(seconds: int) -> str:
    """A length as people say it: `41 s`, `36 min`, `1 h 30 min`."""
    if seconds < 60:
        return f"{seconds} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def clock(when: datetime, settings: Settings) -> str:
    """A clock time in the configured zone, which is named."""
    return f"{when.astimezone(ZoneInfo(settings.timezone)):%H:%M %Z}"


def article(gpu: str) -> str:
    """`an H100`, `an L4`, `a T4`: GPU names are spelled out, and so is the article."""
    return "an" if gpu[:1].upper() in {*"AEFHILMNORSX8"} else "a"


def origin_words(origin: Origin) -> str:
    """Who or what asked, without ringing anybody."""
    name = prose(origin.user_name, 64)
    return {
        OriginKind.CHAT: f"for {name}",
        OriginKind.CRON: f"by the schedule {name}",
        OriginKind.CI: f"by a push to {name}" if name else "by a push",
        OriginKind.API: f"by {name}, not from the chat" if name else "not from the chat",
    }[origin.kind]


def models_words(asked: Asked) -> str:
    """Which models, in a line."""
    if asked.all_models:
        return "all models"
    more = f" and {len(asked.models) - 6} more" if len(asked.models) > 6 else ""
    if not asked.models:
        return "no model"
    return ", ".join(prose(m, 30) for m in asked.models[:6]) + more


def asked_words(card: Card) -> str:
    """Which models, how long and of which code."""
    asked = card.asked
    models = models_words(asked)
    scope = "" if asked.scope == "all" else f", {prose(asked.scope, 20)} tests"
    return f"{models}{scope}, {epochs_words(asked)} · {ref_words(card)}"


def epochs_words(asked: Asked) -> str:
    """How many epochs."""
    return f"{prose(asked.epochs, 12)} {'epoch' if asked.epochs == '1' else 'epochs'}"


def ref_words(card: Card) -> str:
    """The branch, tag or commit that was asked for, and the commit that it was."""
    if re.fullmatch("[0-9a-f]{40}", card.asked.ref):
        return code(card.asked.ref[:7])
    ref = "default branch" if card.asked.ref == "HEAD" else code(card.asked.ref, 80)
    return f"{ref} {code(card.commit[:7])}" if card.commit else ref


def reason_words(detail: str) -> str:
    """Why it waits or ended, in our words where we have any."""
    return waiting_words(detail) or prose(detail, 300)


def names_line(mark: str, names: Iterable[str]) -> str:
    """Names behind a mark, in one line."""
    return f"{mark} {listed(list(names))}"


def listed(names: Sequence[str]) -> str:
    """Names in one line, as many as fit."""
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(prose(name, 30) for name in names[:MAX_NAMES]) + more


def first_upper(text: str) -> str:
    """The line, beginning with a capital letter."""
    return text[:1].upper() + text[1:]
