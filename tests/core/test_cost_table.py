"""The tables of docs/cost.md: a year of the specification's runs, played to the meter, at the price that is stated there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

import pytest

from bot.core.cost import Use
from bot.core.cost_keeping import _now
from bot.core.render.money import money
from tests.core.cost_world import PARIS, YEAR, World
from tests.core.pool_phrases import H100

DOCUMENT = (Path(__file__).parents[2] / "docs" / "cost.md").read_text(encoding="utf-8")
PRICE = 2.73
START, TAIL = 4, 10
"""Minutes of a node before a run and after it, in the second table."""

COMPILING, COMPILING_COST = 5, 0.25
USES = {"manual": Use.MANUAL, "push": Use.PUSH, "nightly": Use.NIGHTLY}
SAID = {"manual": (25, 10.0), "push": (25, 20.0), "nightly": (35, 50.0)}
"""Minutes of a run, and what the specification says that a month of them costs."""


def times(trigger: str) -> Iterator[datetime]:
    """When runs begin in a year: 52 weeks of five working days, once or twice a day; 360 nights."""
    if trigger == "nightly":
        yield from (datetime(YEAR, 1, 1, 2) + timedelta(days=day) for day in range(360))
        return
    for week in range(52):
        for day in range(5):
            for hour in (10,) if trigger == "manual" else (9, 15):
                yield datetime(YEAR, 1, 5, hour) + timedelta(weeks=week, days=day)


@cache
def hours(trigger: str, start: int = 0, tail: int = 0) -> tuple[float, float]:
    """Node-hours of an average month, of the runs and in all; each run has a node of its own."""
    settings = replace(PARIS, timezone="UTC", cost_write_seconds=1e9, cost_keep_seconds=1e9)
    world = World(settings=settings)
    world.to("01-01 00:00")
    bot = world.start(leads=False)
    length = timedelta(minutes=SAID[trigger][0])
    for number, begin in enumerate(times(trigger)):
        stamp = "%m-%d %H:%M"
        node, run = f"node-{number}", f"run-{number}"
        world.up(node, H100, f"{begin - timedelta(minutes=start):{stamp}}")
        world.on(run, node, f"{begin:{stamp}}", USES[trigger])
        world.off(run, f"{begin + length:{stamp}}")
        world.down(node, f"{begin + length + timedelta(minutes=tail):{stamp}}")
    record = _now(bot.book.state, world.now)
    uses = [use for pools in record.days.values() for use in pools[H100].items()]
    of_runs = sum(seconds for use, seconds in uses if use == trigger)
    return of_runs / 3600 / 12, sum(seconds for _, seconds in uses) / 3600 / 12


def rows(heading: str) -> dict[str, list[str]]:
    """The rows of the table with that heading, by their first cell."""
    (found,) = re.findall(rf"\| trigger \|[^\n]*{heading}[^\n]*\n\|[-|]+\n((?:\|[^\n]+\n)+)", DOCUMENT)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in found.splitlines()]
    return {name: rest for name, *rest in cells}


def test_the_price_is_stated() -> None:
    """All amounts follow from it."""
    assert f"price of\n{PRICE} an hour" in DOCUMENT


@pytest.mark.parametrize("trigger", SAID)
def test_the_specifications_runs_at_that_price(trigger: str) -> None:
    """Hours from the meter, the amount, and what price the specification's own amount would mean."""
    minutes, said = SAID[trigger]
    found, everything = hours(trigger)
    assert found == pytest.approx(everything)

    _, length, node_hours, amount, says, means = rows("which means")[trigger]

    assert [length, node_hours, amount] == [str(minutes), f"{found:.2f}", money(found * PRICE, "")]
    assert says == f"about {said:.0f}"
    assert means == f"{said / found:.2f}"


def test_compiling() -> None:
    """Five minutes of every run."""
    runs = sum(len(list(times(trigger))) for trigger in SAID) / 12
    node_hours = runs * COMPILING / 60

    assert rows("which means")["compiling, of all these"] == [
        f"{runs:.0f} a month",
        str(COMPILING),
        f"{node_hours:.2f}",
        money(node_hours * PRICE, ""),
        f"{COMPILING_COST} a run",
        f"{COMPILING_COST * 60 / COMPILING:.2f}",
    ]


def test_no_single_price_makes_all_of_it_right() -> None:
    """Which is what the document says, with its sums."""
    meant = [said / hours(trigger)[0] for trigger, (_, said) in SAID.items()]
    assert max(meant) > 2.5 * min(meant)
    total = sum(hours(trigger)[0] for trigger in SAID) * PRICE
    assert f"about {total:.0f} a month in all, and not {sum(said for _, said in SAID.values()):.0f}." in DOCUMENT
    bought = [SAID[trigger][1] / PRICE for trigger in ("manual", "push")]
    assert f"buy {bought[0]:.1f} and {bought[1]:.1f} hours a month" in DOCUMENT
    weekly = [hours_ * 60 / 25 * 12 / 52 for hours_ in bought]
    assert [round(each) for each in weekly] == [2, 4]


@pytest.mark.parametrize("trigger", SAID)
def test_with_the_start_and_the_idle_time(trigger: str) -> None:
    """What the specification leaves out, at most."""
    of_runs, everything = hours(trigger, START, TAIL)
    assert of_runs == pytest.approx(hours(trigger)[0])

    assert rows("minutes more")[trigger] == [str(START + TAIL), f"{everything:.2f}", money(everything * PRICE, "")]
