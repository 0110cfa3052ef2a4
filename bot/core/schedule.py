"""When a CronWorkflow comes next, as Argo's own parser would say.

Argo uses robfig/cron: five fields, weekdays from Sunday, a wall-clock time that a change to summer time leaves out
does not happen, one that a change back repeats happens twice. croniter moves the missing one to the next hour;
a time whose wall clock does not show the schedule's own hour and minute is therefore left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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
_PART = re.compile(r"(?:[*?]|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/0*[1-9]\d*)?")
_EVERY = re.compile(r"@every (?:\d+(?:\.\d+)?(?:ms|s|m|h))+")
"""Counted from the controller's start, so its next time is not known."""

_ZONE = re.compile(r"^(?:CRON_)?TZ=(\S+)\s+")


def zone(name: str | None) -> ZoneInfo:
    """The zone of that name, UTC where it is absent or unknown."""
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a folder of zones, such as Europe, is no zone
        return ZoneInfo("UTC")


def next_times(schedules: Iterable[str], timezone: str | None, now: float, count: int = 1) -> tuple[datetime, ...]:
    """The next `count` times of any of the schedules after `now`, in UTC; fewer where a schedule can't be read."""
    found: set[datetime] = set()
    for schedule in schedules:
        found.update(_times(schedule, timezone, now, count))
    return tuple(sorted(found)[:count])


def is_schedule(text: str) -> bool:
    """Whether Argo starts something by it."""
    fields, _ = _split(text)
    return _EVERY.fullmatch(fields) is not None or _can_be_read(fields)


def _times(schedule: str, timezone: str | None, now: float, count: int) -> list[datetime]:
    fields, own_zone = _split(schedule)
    where = zone(own_zone or timezone)
    if not _can_be_read(fields):
        return []
    minutes, hours = croniter.expand(fields)[0][:2]
    coming = croniter(fields, datetime.fromtimestamp(now, UTC).astimezone(where))
    times: list[datetime] = []
    for _ in range(count + 3):  # at most a few of them fall into a left-out hour
        try:
            local = coming.get_next(datetime)
        except CroniterBadDateError:  # the 31st of February
            break
        if _shows(minutes, local.minute) and _shows(hours, local.hour):
            times.append(local.astimezone(UTC))
    return times


def _split(schedule: str) -> tuple[str, str | None]:
    """Its fields, and the zone before them where one is."""
    match = _ZONE.match(schedule)
    fields = (schedule[match.end() :] if match else schedule).strip()
    return _ALIASES.get(fields, fields), match.group(1) if match else None


def _can_be_read(fields: str) -> bool:
    return _is_read_by_argo(fields.split()) and croniter.is_valid(fields)


def _is_read_by_argo(fields: list[str]) -> bool:
    """Whether robfig/cron takes it: no `L`, `W` or `#`, no 7 for Sunday, no range that wraps (parser.go).

    croniter takes them all.
    """
    return len(fields) == len(_BOUNDS) and all(
        _is_part(part, *bounds) for field, bounds in zip(fields, _BOUNDS, strict=True) for part in field.split(",")
    )


def _is_part(part: str, least: int, most: int, names: dict[str, int]) -> bool:
    match = _PART.fullmatch(part)
    if match is None:
        return False
    ends = [names.get(end.lower(), int(end) if end.isdecimal() else -1) for end in match.groups() if end]
    return all(least <= end <= most for end in ends) and ends == sorted(ends)


def _shows(field: Sequence[int | str], value: int) -> bool:
    return "*" in field or value in field
