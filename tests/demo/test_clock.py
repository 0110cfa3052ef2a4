"""The clock: stepped, running, and never ahead of what is due."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from bot.demo import EmbeddedWorld
from bot.demo.clock import Clock

START = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)


@pytest.fixture
async def stepped() -> Clock:
    """A clock that stands still."""
    clock = Clock(START, 0)
    clock.start()
    return clock


async def test_callbacks_run_in_order_each_at_its_time(stepped: Clock) -> None:
    """What a callback starts is timed from it, not from the end of the step."""
    seen: list[tuple[str, float]] = []

    def note(what: str) -> None:
        seen.append((what, stepped.time() - START.timestamp()))

    def first() -> None:
        note("first")
        stepped.call_later(2, lambda: note("follows"))
        stepped.soon(lambda: note("soon"))

    stepped.call_later(5, lambda: note("later"))
    stepped.call_later(1, first)
    stepped.call_later(4, lambda: note("never")).cancel()
    await stepped.advance(10)

    assert seen == [("first", 1), ("soon", 1), ("follows", 3), ("later", 5)]
    assert stepped.time() - START.timestamp() == 10


async def test_run_until_stops_at_the_moment(stepped: Clock) -> None:
    """And gives up after its limit."""
    seen: list[int] = []
    for second in (1, 2, 3):
        stepped.call_later(second, lambda second=second: seen.append(second))
    await stepped.run_until(lambda: 2 in seen)

    assert (seen, stepped.time() - START.timestamp()) == ([1, 2], 2)
    with pytest.raises(TimeoutError):
        await stepped.run_until(lambda: False, limit=100)


async def test_sleepers_wake_by_stepping(stepped: Clock) -> None:
    """A coroutine that sleeps on the clock goes on when the time is stepped over."""
    seen = []

    async def sleeper() -> None:
        await stepped.sleep(30)
        seen.append(stepped.time() - START.timestamp())

    async def stepper() -> None:
        await stepped.advance(29)
        assert seen == []
        await stepped.advance(1)

    await asyncio.gather(sleeper(), stepper())

    assert seen == [30]


async def test_a_running_clock_is_fast_and_cannot_be_stepped() -> None:
    """A late loop makes simulated time late, never wrong; people's time stays real."""
    clock = Clock(START, 100_000)
    clock.start()
    fired = asyncio.Event()
    at: list[float] = []

    def fire() -> None:
        at.append(clock.time() - START.timestamp())
        fired.set()

    wire = clock.wire_time()
    clock.call_later(600, lambda: (at.append(clock.time() - START.timestamp()), clock.call_later(600, fire)))
    await asyncio.wait_for(fired.wait(), 5)

    assert at[0] == pytest.approx(600, abs=5)
    assert at[1] - at[0] == pytest.approx(600, abs=1e-6)
    assert clock.wire_time() - wire < 5
    with pytest.raises(RuntimeError):
        await clock.advance(1)
    clock.set_speed(0)
    before = clock.time()
    await clock.advance(60)

    assert clock.time() == before + 60
    clock.stop()


async def test_a_run_on_a_running_clock() -> None:
    """A whole run plays by itself in a moment; the same seed gives it the same end."""

    async def run() -> str:
        async with EmbeddedWorld(seed=4, speed=20_000, start=START) as world:
            name = world.cluster.submit("run-1", models="all")
            await world.cluster.until(lambda: world.cluster.phase(name) in ("Succeeded", "Failed"), limit=10)
            results = world.cluster.workflow(name)["status"]["outputs"]["parameters"]
            return str(results)

    assert await run() == await run()


async def test_a_running_clock_jumps_over_what_nobody_waits_for() -> None:
    """`skip` to what is due next, if it is due soon enough; `leap` by a span, and what was due in it happens in order."""
    clock = Clock(START, 1)
    clock.start()
    seen: list[str] = []
    clock.call_later(600, lambda: seen.append("later"))
    clock.call_later(30, lambda: seen.append("soon"))

    assert clock.skip(20) == 0
    assert clock.skip(60) == pytest.approx(30, abs=1)
    await asyncio.sleep(0.01)
    assert seen == ["soon"]
    clock.leap(3600)
    await asyncio.sleep(0.01)
    assert seen == ["soon", "later"]
    assert clock.time() - START.timestamp() == pytest.approx(3630, abs=2)
    clock.stop()


async def test_a_stopped_clock_does_not_jump(stepped: Clock) -> None:
    """It is stepped."""
    with pytest.raises(RuntimeError):
        stepped.skip(60)
