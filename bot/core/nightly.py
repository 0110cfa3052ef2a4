"""The nightly run: a CronWorkflow and its suspend flag."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from bot.core.schedule import is_schedule, known_zone, never_comes, next_times
from bot.core.workflow import USED_ANNOTATION, CronWorkflow, instant

SWITCHED = "gputest.bot/switched"
"""Annotation on the CronWorkflow: who switched it last, when, to what."""


class Switched(msgspec.Struct, frozen=True):
    """Who switched the nightly run last by a command. While `suspend` is not the flag's value, something else did."""

    user: str
    at: float
    suspend: bool
    reason: str = ""


@dataclass
class Nightly:
    """What is held of CronWorkflows, by name; owned by the loop."""

    crons: dict[str, CronWorkflow] = field(default_factory=dict)
    listed: bool = False


@dataclass(frozen=True)
class NightlyView:
    """What people are told about the nightly run."""

    name: str
    enabled: bool
    schedules: tuple[str, ...]
    timezone: str
    upcoming: datetime | None
    stopped: bool
    failures: int
    running: tuple[str, ...]
    switched: Switched | None
    complaint: str
    """Argo's words where it can't use the schedule."""
    unreadable: tuple[str, ...] = ()
    """Schedules that Argo starts nothing by."""
    never: tuple[str, ...] = ()
    """Schedules whose day never comes."""
    strange_zone: bool = False
    """Nobody knows a zone of that name, so Argo starts nothing."""
    in_both_fields: bool = False
    """Whether Argo starts anything depends on its version."""
    when: str = ""
    """The condition under which a due time starts something."""
    catches_up: bool = False
    """A due time went by that Argo starts at once when it is on."""

    @property
    def dead(self) -> bool:
        """None of its schedules will ever start anything."""
        return self.stopped or set(self.schedules) <= {*self.unreadable, *self.never}


def view(cron: CronWorkflow, now: float) -> NightlyView:
    """What is to be said about this CronWorkflow."""
    timezone = cron.spec.timezone
    upcoming = next_times(cron.schedules, timezone, now)
    read = [schedule for schedule in cron.schedules if is_schedule(schedule, timezone)]
    never = [schedule for schedule in read if never_comes(schedule, timezone, now)]
    status = cron.status
    conditions = (status.conditions if status else None) or []
    return NightlyView(
        name=cron.metadata.name,
        enabled=not cron.suspended,
        schedules=cron.schedules,
        timezone=timezone or "",
        unreadable=tuple(schedule for schedule in cron.schedules if schedule not in read),
        never=tuple(never),
        strange_zone=known_zone(timezone) is None,
        in_both_fields=cron.in_both_fields,
        when=cron.spec.when or "",
        catches_up=_catches_up(cron, now),
        upcoming=upcoming[0] if upcoming and not cron.in_both_fields else None,
        stopped=cron.stopped,
        failures=(status.failed if status else None) or 0,
        running=tuple(ref.name for ref in (status.active if status else None) or []),
        switched=_switched(cron),
        complaint=next((c.message for c in conditions if c.status == "True" and c.message), ""),
    )


def _catches_up(cron: CronWorkflow, now: float) -> bool:
    """As Argo asks at each change of the object (cron/operator.go, shouldOutstandingWorkflowsBeRun)."""
    timezone, window = cron.spec.timezone, cron.spec.starting_deadline_seconds
    last = instant(cron.status.last_scheduled_time if cron.status else None)
    used = ",".join(f"CRON_TZ={timezone} {each}" if timezone else each for each in cron.schedules)
    if not window or last is None or (cron.metadata.annotations or {}).get(USED_ANNOTATION) != used:
        return False
    due = next_times(cron.schedules, timezone, max(last.timestamp(), now - window))
    return bool(due) and due[0].timestamp() < now


def _switched(cron: CronWorkflow) -> Switched | None:
    try:
        switched = _DECODER.decode((cron.metadata.annotations or {}).get(SWITCHED, ""))
    except (msgspec.ValidationError, msgspec.DecodeError):
        return None
    return switched if 0 < switched.at < _FAR else None


_FAR = 32503680000.0  # the year 3000: what is beyond can't be shown in every zone
_DECODER = msgspec.json.Decoder(Switched)
