"""Amounts of money and of time, as a cost is told."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from bot.core.render.escape import prose


def money(amount: float, currency: str) -> str:
    """`€1.37`; a currency that is a word goes behind, `1.37 EUR`. Half a cent is rounded up, as on an invoice."""
    sign, cents = prose(currency, 12), Decimal(str(round(amount, 6))).quantize(Decimal("0.01"), ROUND_HALF_UP)
    return f"{cents:,} {sign}" if sign[:1].isalpha() else f"{sign}{cents:,}"


def hours(seconds: float) -> str:
    """`20 min`, `10 h 40 min`, `1,234 h`: to the minute, so that hours times a price are the amount beside them."""
    return span(round(seconds / 60)) if seconds < 360_000 else f"{seconds / 3600:,.0f} h"


def span(minutes: int) -> str:
    """`30 min`, `1 h`, `1 h 30 min`."""
    whole, rest = divmod(minutes, 60)
    return " ".join([*([f"{whole} h"] if whole else []), *([f"{rest} min"] if rest or not whole else [])])
