"""When a CronWorkflow comes next, as Argo's own parser (robfig/cron) would say."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bot.core.nightly import view
from bot.core.render.nightly import status as nightly
from bot.core.schedule import is_schedule, never_comes, next_times, zone
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
    ],
)
def test_short_names_of_schedules(schedule: str, first: str) -> None:
    """As robfig/cron names them."""
    assert [first] == times(schedule, 1)


@pytest.mark.parametrize("prefix", ["TZ=Europe/Paris", "CRON_TZ=Europe/Paris"])
def test_a_zone_in_the_schedule(prefix: str) -> None:
    """It counts where the object names none; beside `timezone`, which Argo writes in front, it is one too many."""
    assert ["2026-03-03T01:00:00Z"] == times(f"{prefix} 0 2 * * *", 1)
    assert ["2026-03-02T23:00:00Z"] == times(f"{prefix}  @daily ", 1)
    assert is_schedule(f"{prefix} 0 2 * * *")
    assert [] == times(f"{prefix} 0 2 * * *", 1, timezone="Europe/Paris")
    assert not is_schedule(f"{prefix} 0 2 * * *", "Europe/Paris")


@pytest.mark.parametrize("name", ["", None, "UTC", "Local"])
def test_without_a_zone_it_is_utc(name: str | None) -> None:
    """The controller's own, which is taken to be UTC."""
    assert "UTC" == zone(name).key
    assert ["2026-03-03T02:00:00Z"] == times("0 2 * * *", 1, timezone=name)


@pytest.mark.parametrize("name", ["Mars/Olympus", "europe/pariss", "+02:00", "../etc/passwd", "/etc/localtime", "a\0b"])
def test_a_zone_that_nobody_knows(name: str) -> None:
    """Argo starts nothing then, so no time is promised; what has to be shown is shown in UTC."""
    assert "UTC" == zone(name).key
    assert [] == times("0 2 * * *", 1, timezone=name)
    assert not is_schedule("0 2 * * *", name)
    assert not is_schedule(f"TZ={name} 0 2 * * *")


@pytest.mark.parametrize(
    ("schedule", "following"),
    [
        ("0 2 1-31 * 1", ["03T02:00", "04T02:00"]),  # no star on either side: all days or Mondays
        ("0 2 15 * 0-6", ["03T02:00", "04T02:00"]),
        ("0 2 */1 * 1", ["09T02:00", "16T02:00"]),  # a step of one keeps the star
        ("0 2 */20 * 1", ["09T02:00", "16T02:00"]),  # the 1st and the 21st, or Mondays
        ("0 2 *,5 * 1", ["09T02:00", "16T02:00"]),
        ("0 2 * * */6", ["07T02:00", "08T02:00"]),
        ("0 2 * ? 5-5/2", ["06T02:00", "13T02:00"]),
        ("? 2 * * *", ["03T02:00", "03T02:01"]),
        ("0,,30 2 * * 1,", ["09T02:00", "09T02:30"]),
        ("+5 2 * * 6/2", ["07T02:05", "14T02:05"]),
        ("*-5 2 * * *", ["03T02:00", "03T02:01"]),
        ("TZ= 0  2\t* * *", ["03T02:00", "04T02:00"]),
    ],
)
def test_fields_as_argos_parser_reads_them(schedule: str, following: list[str]) -> None:
    """What robfig/cron 3.0.1 gave for the same text and moment; other cron libraries differ in each."""
    assert following == [each[8:16] for each in times(schedule, 2)]


@pytest.mark.parametrize(
    "schedule",
    [
        " @daily",
        "@annually ",
        "@Daily",
        "@every 1d",
        "0 2 1-2-3 * *",
        "0 2/1/1 * * *",
        "*/0 2 * * *",
        ", 2 * * *",
        "-5 2 * * *",
    ],
)
def test_what_argos_parser_does_not_take(schedule: str) -> None:
    """The same there: an error, or a time that never comes."""
    assert not is_schedule(schedule)


@pytest.mark.parametrize(
    "schedule", ["@every 90m", "@every 1h30m", "@every .5h", "@every +1h", "@every 0", "@every 1µs"]
)
def test_an_interval_is_a_schedule_whose_next_time_nobody_knows(schedule: str) -> None:
    """It counts from the controller's start."""
    assert is_schedule(schedule, "Europe/Paris")
    assert [] == times(schedule, timezone="Europe/Paris")


@pytest.mark.parametrize(
    "schedule", ["@every 1h", "TZ=Europe/Berlin @every 1h", "CRON_TZ=UTC @daily", "0 2 * * *", "no"]
)
def test_a_day_is_said_never_to_come_of_days_only(schedule: str) -> None:
    """Not of an interval, with a zone in front or not, nor of what is no schedule at all."""
    assert not never_comes(schedule, None, NOW)


def test_a_whole_hour_that_the_clock_leaves_out() -> None:
    """Sixty minutes of it are left out, and the next day's first is found."""
    before = datetime(2026, 3, 8, 9, 59, tzinfo=UTC).timestamp()

    assert ["2026-03-09T09:00:00Z"] == times("* 2 * * *", 1, "America/Los_Angeles", before)


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
    assert never_comes(schedule, None, NOW)
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
