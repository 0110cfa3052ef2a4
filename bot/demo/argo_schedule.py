"""When a CronWorkflow runs.

Argo reads schedules with robfig/cron: five fields or @daily and the like, in the CronWorkflow's time zone. A time
that a change to summer time leaves out is skipped, one that comes twice runs twice. croniter finds the candidates;
its own `match` sorts out those that it moved.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import croniter

Json = dict[str, Any]


class BadSchedule(ValueError):
    """A schedule or time zone that cannot be read; the text goes into a condition."""


def schedules_of(spec: Json) -> list[str]:
    """The schedules of a CronWorkflow, in either spelling of 3.6 and 3.7.

    Raises BadSchedule where both or none are set.
    """
    many = [one for one in spec.get("schedules") or () if one]
    single = spec.get("schedule") or ""
    if many and single:
        raise BadSchedule("cron workflow cant be configured with both Spec.Schedule and Spec.Schedules")
    if not many and not single:
        raise BadSchedule("cron workflow must have at least one schedule")
    return many or [single]


def next_time(schedule: str, timezone: str, after: datetime) -> datetime:
    """The first time after a moment. Raises BadSchedule."""
    try:
        zone = ZoneInfo(timezone) if timezone else UTC
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise BadSchedule(f"unknown time zone {timezone}") from error
    try:
        candidates = croniter(schedule, after.astimezone(zone))
        while True:
            found: datetime = candidates.get_next(datetime)
            if found > after and croniter.match(schedule, found.replace(tzinfo=None)):
                return found.astimezone(UTC)
    except (ValueError, KeyError) as error:
        raise BadSchedule(f"invalid schedule {schedule!r}: {error}") from error
