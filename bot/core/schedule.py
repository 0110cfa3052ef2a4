"""When a CronWorkflow comes next, as Argo's own parser would say.

Argo uses robfig/cron: five fields, weekdays from Sunday, a wall-clock time that a change to summer time leaves out
does not happen, one that a change back repeats happens twice. croniter moves the missing one to the next hour;
a time whose wall clock does not show the schedule's own hour and minute is therefore left out. What Argo's parser
takes and what it makes of a field is read here, and croniter gets plain lists of numbers: it takes more, and less.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import CroniterBadDateError, croniter

_ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_BOUNDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    (0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
_EVERY = re.compile(r"@every [-+]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|[µμ]s|ms|s|m|h))+)", re.ASCII)
"""Counted from the controller's start, so its next time is not known."""

_ZONE = re.compile(r"(?:CRON_)?TZ=(?P<zone>[^ ]*) ")
_NUMBER = re.compile(r"\+?[0-9]+")

LEFT_OUT = 120
"""Times looked at beyond those asked for: a change to summer time leaves out at most so many in a row."""


@dataclass(frozen=True)
class _Plan:
    """A schedule that Argo starts something by. `fields` are plain lists of numbers; "" for `@every`."""

    fields: str
    minutes: frozenset[int]
    hours: frozenset[int]
    where: ZoneInfo


@dataclass(frozen=True)
class _Field:
    values: frozenset[int]
    star: bool
    whole: bool


def known_zone(name: str | None) -> ZoneInfo | None:
    """The zone of that name, None for one that nobody knows; without a name it is UTC.

    `Local` is the controller's own zone (time.LoadLocation), which is taken to be UTC as well.
    """
    try:
        return ZoneInfo("UTC" if name in {None, "", "Local"} else str(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a folder of zones, such as Europe, is no zone
        return None


def zone(name: str | None) -> ZoneInfo:
    """The zone to show times in: UTC where the name is absent or unknown."""
    return known_zone(name) or ZoneInfo("UTC")


def next_times(schedules: Iterable[str], timezone: str | None, now: float, count: int = 1) -> tuple[datetime, ...]:
    """The next `count` times of any of the schedules after `now`, in UTC; fewer where Argo starts nothing by one."""
    found: set[datetime] = set()
    for schedule in schedules:
        found.update(_times(schedule, timezone, now, count))
    return tuple(sorted(found)[:count])


def is_schedule(text: str, timezone: str | None = None) -> bool:
    """Whether Argo starts something by it, in that zone."""
    return _plan(text, timezone) is not None


def never_comes(text: str, timezone: str | None, now: float) -> bool:
    """Whether its day is none, as the 31st of February. Not of `@every`: Argo alone knows since when it counts."""
    plan = _plan(text, timezone)
    return plan is not None and bool(plan.fields) and not next_times([text], timezone, now)


def _times(schedule: str, timezone: str | None, now: float, count: int) -> list[datetime]:
    plan = _plan(schedule, timezone)
    if plan is None or not plan.fields:
        return []
    coming = croniter(plan.fields, datetime.fromtimestamp(now, UTC).astimezone(plan.where))
    times: list[datetime] = []
    looked = 0
    while len(times) < count and looked < count + LEFT_OUT:
        looked += 1
        try:
            local = coming.get_next(datetime)
        except CroniterBadDateError:  # the 31st of February
            break
        if local.minute in plan.minutes and local.hour in plan.hours:
            times.append(local.astimezone(UTC))
    return times


def _plan(text: str, timezone: str | None) -> _Plan | None:
    """As Argo reads it: first the text alone, then with the zone in front, where a second zone is one too many.

    Sources: validate.go (ValidateCronWorkflow), cron_workflow_types.go (withTimezone).
    """
    alone = _read(text)
    return _read(f"CRON_TZ={timezone} {text}") if alone is not None and timezone else alone


def _read(text: str) -> _Plan | None:
    """As robfig/cron reads it (parser.go, Parse); None where it takes it for none, or where it never comes."""
    where = known_zone(None)
    match = _ZONE.match(text)
    if match is not None:
        where, text = known_zone(match["zone"]), text[match.end() :].strip()
    if where is None:
        return None
    if _EVERY.fullmatch(text):
        return _Plan("", frozenset(), frozenset(), where)
    parts = _ALIASES.get(text, text).split()
    if len(parts) != len(_BOUNDS):
        return None
    fields = [_field(part, *bounds) for part, bounds in zip(parts, _BOUNDS, strict=True)]
    found = [field for field in fields if field is not None and field.values]
    if len(found) != len(_BOUNDS):
        return None
    return _Plan(_written(found), found[0].values, found[1].values, where)


def _written(fields: Sequence[_Field]) -> str:
    """For croniter, which has other rules of its own on ranges, steps and stars.

    Where neither day has a star, either makes a date due (spec.go, dayMatches): then all days of one mean every date.
    """
    day, weekday = fields[2], fields[4]
    either = not day.star and not weekday.star and (day.whole or weekday.whole)
    texts = ["*" if field.whole else ",".join(map(str, sorted(field.values))) for field in fields]
    if either:
        texts[2] = texts[4] = "*"
    return " ".join(texts)


def _field(text: str, least: int, most: int, names: dict[str, int]) -> _Field | None:
    values: set[int] = set()
    star = False
    for part in filter(None, text.split(",")):
        found = _range(part, least, most, names)
        if found is None:
            return None
        values.update(found[0])
        star = star or found[1]
    return _Field(frozenset(values), star, len(values) == most - least + 1)


def _range(text: str, least: int, most: int, names: dict[str, int]) -> tuple[range, bool] | None:
    """One range, and whether it is a star: no `L`, `W` or `#`, no 7 for Sunday, none that wraps (getRange)."""
    ends, slash, by = text.partition("/")
    first, *last = ends.split("-")
    step = _number(by, {}) if slash else 1
    star = first in {"*", "?"}
    start = least if star else _number(first, names)
    end = most if star or (slash and not last) else _number(last[0], names) if last else start
    if start is None or end is None or not step or (len(last) > 1 and not star):
        return None
    return (range(start, end + 1, step), star and step == 1) if least <= start <= end <= most else None


def _number(text: str, names: dict[str, int]) -> int | None:
    found = names.get(text.lower())
    return found if found is not None else int(text) if _NUMBER.fullmatch(text) else None
