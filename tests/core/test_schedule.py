"""When a CronWorkflow comes next, as Argo's own parser (robfig/cron) would say."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bot.core.nightly import view
from bot.core.render.answers import nightly
from bot.core.schedule import is_schedule, next_times, zone
from bot.core.workflow import CronWorkflow
from tests.phrases import NOW

D04 = json.loads((Path(__file__).parents[1] / "cases" / "d04.json").read_text(encoding="utf-8"))["cases"]
MONDAY = datetime(2026, 3, 2, 10, 6, tzinfo=UTC).timestamp()


def times(schedule: str, count: int = 3, timezone: str | None = None, now: float = MONDAY) -> list[str]:
    """The next times as ISO texts."""
    return [t.isoformat().replace("+00:00", "Z") for t in next_times([schedule], timezone, now, count)]


@pytest.mark.parametrize("case", D04, ids=lambda case: case["object"]["metadata"]["name"])
def test_field_case_d04_changes_to_and_from_summer_time(case: dict[str, Any]) -> None:
    """Twice where the clock is put back, not at all where it is put forward; no zone is UTC, and said to be assumed."""
    cron = msgspec.json.decode(json.dumps(case["object"]), type=CronWorkflow)
    now = datetime.fromisoformat(case["now"]).timestamp()
    found = next_times(cron.schedules, cron.spec.timezone, now, 3)

    assert case["next3"] == [t.isoformat().replace("+00:00", "Z") for t in found]
    assert ("UTC, assumed" in nightly(view(cron, now))) is (not cron.spec.timezone)


@pytest.mark.parametrize(
    ("schedule", "first"),
    [
        ("0 2 * * 0", "2026-03-08T02:00:00Z"),  # Sunday
        ("0 2 * * 1", "2026-03-09T02:00:00Z"),  # Monday, and this one's 02:00 is over
        ("0 2 * * 6", "2026-03-07T02:00:00Z"),
        ("0 2 * * SUN", "2026-03-08T02:00:00Z"),
        ("0 2 * * mon-fri", "2026-03-03T02:00:00Z"),
        ("0 12 * * 1-5", "2026-03-02T12:00:00Z"),
        ("*/15 * * * *", "2026-03-02T10:15:00Z"),
        ("6 10 * * *", "2026-03-03T10:06:00Z"),  # this very minute is over
        ("0 0 29 2 *", "2028-02-29T00:00:00Z"),
        ("0 0 1 jan *", "2027-01-01T00:00:00Z"),
        ("5/20 * ? * *", "2026-03-02T10:25:00Z"),
        ("0 2-4/2,23 * DEC 0,wed", "2026-12-02T02:00:00Z"),
    ],
)
def test_fields_as_argo_numbers_them(schedule: str, first: str) -> None:
    """Weekdays count from Sunday, names are taken, what is due this moment was due."""
    assert [first] == times(schedule, 1)


@pytest.mark.parametrize(
    ("schedule", "first"),
    [
        ("@daily", "2026-03-03T00:00:00Z"),
        ("@midnight", "2026-03-03T00:00:00Z"),
        ("@hourly", "2026-03-02T11:00:00Z"),
        ("@weekly", "2026-03-08T00:00:00Z"),
        ("@monthly", "2026-04-01T00:00:00Z"),
        ("@yearly", "2027-01-01T00:00:00Z"),
        ("@annually", "2027-01-01T00:00:00Z"),
        (" @daily ", "2026-03-03T00:00:00Z"),
    ],
)
def test_short_names_of_schedules(schedule: str, first: str) -> None:
    """As robfig/cron names them."""
    assert [first] == times(schedule, 1)


@pytest.mark.parametrize("prefix", ["TZ=Europe/Paris", "CRON_TZ=Europe/Paris"])
def test_a_zone_in_the_schedule_counts_before_that_of_the_object(prefix: str) -> None:
    """Argo itself writes it in front."""
    assert ["2026-03-03T01:00:00Z"] == times(f"{prefix} 0 2 * * *", 1, timezone="America/Los_Angeles")
    assert ["2026-03-02T23:00:00Z"] == times(f"{prefix} @daily", 1)


@pytest.mark.parametrize("name", ["", None, "Mars/Olympus", "../etc/passwd", "/etc/localtime", "Europe", "a\0b"])
def test_a_zone_that_is_none_is_utc(name: str | None) -> None:
    """Whatever stands there."""
    assert "UTC" == zone(name).key
    assert ["2026-03-03T02:00:00Z"] == times("0 2 * * *", 1, timezone=name)


@pytest.mark.parametrize(
    "schedule",
    [
        "",
        "x",
        "0 2 * *",
        "0 2 * * * *",
        "60 2 * * *",
        "0 25 * * *",
        "@every 1h",
        "@reboot",
        "0 2 * * 9",
        "TZ=UTC",
        "0 2 0 * *",
    ],
)
def test_what_is_no_schedule_has_no_next_time(schedule: str) -> None:
    """Unknown is said to be unknown."""
    assert [] == times(schedule)
    assert is_schedule(schedule) is schedule.startswith("@every")


@pytest.mark.parametrize("schedule", ["0 2 L * *", "0 2 * * 1#2", "0 2 * * 7", "0 22-2 * * *", "0 2 * * fri-mon"])
def test_what_other_crons_take_and_argo_does_not(schedule: str) -> None:
    """A time that never comes would be a false promise."""
    assert [] == times(schedule)
    assert not is_schedule(schedule)


@pytest.mark.parametrize("schedule", ["0 0 31 2 *", "0 0 30 feb *", "0 0 31 4,6,9,11 *"])
def test_a_day_that_never_comes(schedule: str) -> None:
    """Valid fields, and no such day."""
    assert [] == times(schedule)


def test_of_several_schedules_the_earliest_times() -> None:
    """Each once, however many name it; one that can't be read hides none."""
    found = next_times(["0 2 * * *", "bad", "30 2 * * *", "0 2 * * *"], None, NOW, 3)

    assert ["02:00", "02:30", "02:00"] == [f"{t:%H:%M}" for t in found]
    assert list(found) == sorted(set(found))


def test_no_schedule_no_time() -> None:
    """Nothing to look for."""
    assert () == next_times([], None, NOW)


def test_hours_with_a_half_zone() -> None:
    """India is five and a half hours ahead."""
    assert ["2026-03-02T20:30:00Z"] == times("0 2 * * *", 1, timezone="Asia/Kolkata")


def test_the_nightly_says_which_of_its_schedules_start_nothing() -> None:
    """Next comes what the others give."""
    cron = msgspec.convert(
        {"metadata": {"name": "nightly"}, "spec": {"schedules": ["0 2 * * 7", "0 2 * * 0"]}}, type=CronWorkflow
    )
    found = view(cron, MONDAY)

    assert ("0 2 * * 7",) == found.unreadable
    assert datetime(2026, 3, 8, 2, tzinfo=UTC) == found.upcoming
