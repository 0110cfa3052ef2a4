"""What `/gpu cost` shows: values only, no wording."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from bot.core.cost import Use
from bot.core.cost_record import Gap, Record
from bot.core.settings import Settings

Spent = Mapping[Use, float]
"""Seconds of nodes, by what they went to."""


@dataclass(frozen=True)
class PoolCost:
    """One pool; `name` is "" for the nodes of all pools that config.yaml does not name."""

    name: str
    gpu: str
    price: float | None
    """Of one node for one hour."""
    today: Spent
    month: Spent
    last: Spent
    """The whole of the month before."""


@dataclass(frozen=True)
class Away:
    """Times of this month in which nobody watched."""

    times: int
    seconds: float
    lost: int
    """Nodes that went meanwhile."""
    at_most: float | None
    """What these may have cost besides; None where a price is missing."""


@dataclass(frozen=True)
class CostView:
    """Everything that `/gpu cost` shows."""

    pools: tuple[PoolCost, ...]
    month: date
    """Its first day."""
    since: float | None
    """Where the counting began within this month or the one before."""
    away: Away | None
    blind: float | None
    """Up to when, within this month, nodes were counted by their pods."""
    kept: bool
    """There is a record; else what this process saw is all there is."""


def view(record: Record, settings: Settings, now: float, *, kept: bool) -> CostView:
    """What is to be said of the cost now; the record has what this process saw."""
    zone = ZoneInfo(settings.timezone)
    today = datetime.fromtimestamp(now, UTC).astimezone(zone).date()
    month = today.replace(day=1)
    before = (month - timedelta(days=1)).replace(day=1)
    begin, earlier = (datetime.combine(day, datetime.min.time(), zone).timestamp() for day in (month, before))
    configured = [pool.name for pool in settings.pools]
    seen = {name for pools in record.days.values() for name in pools}
    pools = []
    for name in [*configured, *sorted(seen - set(configured))]:
        pool = settings.pool(name)
        pools.append(
            PoolCost(
                name=name,
                gpu=pool.gpu if pool else name,
                price=pool.price_per_hour if pool else None,
                today=_spent(record, name, [today.isoformat()]),
                month=_spent(record, name, _days(record, month)),
                last=_spent(record, name, _days(record, before)),
            )
        )
    return CostView(
        pools=tuple(pools),
        month=month,
        since=record.since if record.since > earlier else None,
        away=_away([gap for gap in record.gaps if gap.end > begin], settings, begin),
        blind=record.blind if record.blind > begin else None,
        kept=kept,
    )


def _days(record: Record, month: date) -> Iterable[str]:
    return [day for day in record.days if day.startswith(f"{month:%Y-%m}")]


def _spent(record: Record, pool: str, days: Iterable[str]) -> Spent:
    spent: dict[Use, float] = {}
    for day in days:
        for name, seconds in record.days.get(day, {}).get(pool, {}).items():
            use = Use(name) if name in _USES else Use.UNSEEN  # another version may tell more apart
            spent[use] = spent.get(use, 0.0) + seconds
    return spent


def _away(gaps: Iterable[Gap], settings: Settings, begin: float) -> Away | None:
    times, seconds, lost = 0, 0.0, 0
    at_most: float | None = 0.0
    for gap in gaps:
        length = gap.end - max(gap.begin, begin)
        times, seconds, lost = times + 1, seconds + length, lost + sum(gap.lost.values())
        for name, count in gap.lost.items():
            pool = settings.pool(name)
            price = pool.price_per_hour if pool else None
            at_most = None if at_most is None or price is None else at_most + count * price * length / 3600
    return Away(times, seconds, lost, at_most) if times else None


_USES = {use.value for use in Use}
