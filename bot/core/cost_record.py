"""The record of what nodes cost: hours by day, pool and use, as they are kept in one ConfigMap of the bot's own.

A key a month holds its days; the key `state` says up to when everything is in, and which nodes were there then. A
month of four pools is below 25 KB, and 13 months are kept as long as all of them together stay below 700 KB. Only
the holder of the Lease writes, over what it has read; every replica adds to the record what it has seen itself since.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from zoneinfo import ZoneInfo

import msgspec

from bot.core.cost import Meter, open_nodes

STATE = "state"
"""Key of what is not of a month."""

VERSION = 1

KEPT_MONTHS, KEPT_BYTES, KEPT_NODES, KEPT_GAPS = 13, 700_000, 2000, 50
"""Months, bytes of all months, nodes and gaps that are kept; the current month always is."""

GAP_SECONDS = 720.0
"""A time unwatched that is shorter is no gap: the record is written every ten minutes, so that much may be missing of a
bot that was only started anew."""

T = TypeVar("T")

Days = dict[str, dict[str, dict[str, float]]]
"""Seconds by day of the configured zone, by pool ("" for those that config.yaml does not name), by use."""


class Gap(msgspec.Struct, frozen=True):
    """A time in which nobody watched. `lost`: nodes by pool that were there before and not after it."""

    begin: float
    end: float
    lost: dict[str, int] = {}


class Standing(msgspec.Struct, frozen=True):
    """The text of the key `state`."""

    v: int
    since: float
    until: float
    nodes: dict[str, str] = {}
    gaps: tuple[Gap, ...] = ()
    blind: float = 0.0


@dataclass(frozen=True)
class Record:
    """Everything that is kept. `version`: the ConfigMap's, "" where there is none."""

    days: Days = field(default_factory=dict)
    since: float = 0.0
    """When the first slice began."""
    until: float = 0.0
    """Up to then everything is in."""
    nodes: Mapping[str, str] = field(default_factory=dict)
    """Nodes that were there then: pool by uid."""
    gaps: tuple[Gap, ...] = ()
    blind: float = 0.0
    """When nodes were last counted by their pods, for want of the right to see them."""
    version: str = ""


@dataclass
class Costs:
    """Everything that is held of the cost. Owned by the loop."""

    meter: Meter = field(default_factory=Meter)
    record: Record = Record()
    data: Mapping[str, str] = field(default_factory=dict)
    """Of the ConfigMap, as it was read or written last."""
    loaded: bool = False
    """The record was read, or there is none."""
    writing: str = ""
    """The id of the write that is under way, "" for none."""
    sent: Record = Record()
    sent_data: Mapping[str, str] = field(default_factory=dict)
    """What it writes."""
    written_at: float = 0.0


def pieces(begin: float, end: float, zone: ZoneInfo) -> Iterator[tuple[str, float]]:
    """The days of a time, each with its seconds. A day of the zone has 23 or 25 hours when the clocks change."""
    while begin < end:
        day = datetime.fromtimestamp(begin, UTC).astimezone(zone).date()
        midnight = datetime.combine(day + timedelta(days=1), datetime.min.time(), zone).timestamp()
        stop = min(end, midnight) if midnight > begin else end
        yield day.isoformat(), stop - begin
        begin = stop


def added(record: Record, meter: Meter, zone: ZoneInfo, now: float) -> Record:
    """The record with what this process has seen since; the meter has to be settled until `now`."""
    days: Days = {day: {pool: dict(uses) for pool, uses in pools.items()} for day, pools in record.days.items()}
    first = record.since or now
    for piece in meter.slices:
        begin = max(piece.begin, record.until)
        first = min(first, begin if begin < piece.end else first)
        for day, seconds in pieces(begin, piece.end, zone):
            uses = days.setdefault(day, {}).setdefault(piece.pool, {})
            use = meter.use_of(piece).value
            uses[use] = uses.get(use, 0.0) + seconds * piece.share
    return Record(
        days=days,
        since=first,
        until=max(now, record.until),
        nodes=dict(list(open_nodes(meter))[:KEPT_NODES]),
        gaps=(*record.gaps, *_gap(record, meter))[-KEPT_GAPS:],
        blind=max(record.blind, meter.blind or 0.0),
        version=record.version,
    )


def _gap(record: Record, meter: Meter) -> Iterator[Gap]:
    """What was not watched between the record and this process."""
    if not record.until or meter.began is None or meter.began <= record.until:
        return
    lost: dict[str, int] = {}
    for uid, pool in record.nodes.items() if meter.found is not None else ():
        if uid not in (meter.found or ()):
            lost[pool] = lost.get(pool, 0) + 1
    if lost or meter.began - record.until > GAP_SECONDS:
        yield Gap(record.until, meter.began, lost)


def written(record: Record) -> dict[str, str]:
    """The ConfigMap's data. Seconds are rounded to tenths."""
    state = Standing(VERSION, record.since, record.until, dict(record.nodes), record.gaps, record.blind)
    data = {STATE: msgspec.json.encode(state).decode()}
    months: dict[str, Days] = {}
    for day in sorted(record.days):
        pools = record.days[day]
        rounded = {pool: {use: round(s, 1) for use, s in uses.items()} for pool, uses in pools.items()}
        months.setdefault(day[:7], {})[day] = rounded
    left = KEPT_BYTES
    for number, month in enumerate(sorted(months, reverse=True)[:KEPT_MONTHS]):
        text = msgspec.json.encode(months[month]).decode()
        left -= len(text)
        if left < 0 and number:
            break
        data[month] = text
    return data


def change(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str | None]:
    """What a merge patch has to say of the data: what differs, and None for what goes."""
    gone: dict[str, str | None] = {key: None for key in old if key not in new}
    return gone | {key: text for key, text in new.items() if old.get(key) != text}


def read(data: Mapping[str, str], version: str) -> Record:
    """The record of a ConfigMap; what is not ours in it, or can't be read, counts as not there."""
    state = _decoded(_STATE, data.get(STATE, ""))
    if state is None or state.v != VERSION:
        return Record(version=version)
    days: Days = {}
    for month in sorted(set(data) - {STATE}):
        found: Days | None = _decoded(_DAYS, data[month])
        days.update(found or {})
    return Record(days, state.since, state.until, state.nodes, state.gaps, state.blind, version)


def _decoded(decoder: msgspec.json.Decoder[T], text: str) -> T | None:
    try:
        return decoder.decode(text)
    except (msgspec.ValidationError, msgspec.DecodeError):
        return None


_STATE = msgspec.json.Decoder(Standing)
_DAYS = msgspec.json.Decoder(dict[str, dict[str, dict[str, float]]])
