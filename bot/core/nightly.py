"""The nightly run: a CronWorkflow and its suspend flag."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from bot.core.schedule import is_schedule, next_times
from bot.core.workflow import CronWorkflow

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


def view(cron: CronWorkflow, now: float) -> NightlyView:
    """What is to be said about this CronWorkflow."""
    upcoming = next_times(cron.schedules, cron.spec.timezone, now)
    status = cron.status
    conditions = (status.conditions if status else None) or []
    return NightlyView(
        name=cron.metadata.name,
        enabled=not cron.suspended,
        schedules=cron.schedules,
        timezone=cron.spec.timezone or "",
        unreadable=tuple(schedule for schedule in cron.schedules if not is_schedule(schedule)),
        upcoming=upcoming[0] if upcoming else None,
        stopped=cron.stopped,
        failures=(status.failed if status else None) or 0,
        running=tuple(ref.name for ref in (status.active if status else None) or []),
        switched=_switched(cron),
        complaint=next((c.message for c in conditions if c.status == "True" and c.message), ""),
    )


def _switched(cron: CronWorkflow) -> Switched | None:
    try:
        switched = _DECODER.decode((cron.metadata.annotations or {}).get(SWITCHED, ""))
    except (msgspec.ValidationError, msgspec.DecodeError):
        return None
    return switched if 0 < switched.at < _FAR else None


_FAR = 32503680000.0  # the year 3000: what is beyond can't be shown in every zone
_DECODER = msgspec.json.Decoder(Switched)
