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


def _times(schedule: str, timezone: str | None, now: float, count: int) -> list[datetime]:
    match = _ZONE.match(schedule)
    where = zone(match.group(1) if match else timezone)
    fields = schedule[match.end() :] if match else schedule
    fields = _ALIASES.get(fields.strip(), fields.strip())
    if len(fields.split()) != 5 or not croniter.is_valid(fields):
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


def _shows(field: Sequence[int | str], value: int) -> bool:
    return "*" in field or value in field
