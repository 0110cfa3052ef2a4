"""The simulated clock: real time times a speed, or stepped by hand.

Everything in the embedded world that takes time (cron, deadlines, node boots, test suites) is a callback on this one
clock, so a night can pass in a second and a test never waits. Simulated time does not run past a callback that is
still due: a busy event loop makes the simulation late, never wrong.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime

Callback = Callable[[], None]


class Timer:
    """A callback that is due at a simulated time; `cancel` takes it back."""

    __slots__ = ("callback", "cancelled", "when")

    def __init__(self, when: float, callback: Callback) -> None:
        self.when = when
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        """Never call it."""
        self.cancelled = True


class Clock:
    """Simulated time. Speed 0 means that only `advance` moves it."""

    def __init__(self, start: datetime, speed: float = 1.0) -> None:
        self._base = start.timestamp()
        self._speed = speed
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_base = 0.0
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._ready: deque[Callback] = deque()
        self._drain_scheduled = False
        self._wake: asyncio.TimerHandle | None = None
        self._held: float | None = None
        self._stopped = False

    @property
    def speed(self) -> float:
        """Simulated seconds in a real second."""
        return self._speed

    def start(self) -> None:
        """Bind to the running loop; time stands still before."""
        self._loop = asyncio.get_running_loop()
        self._loop_base = self._loop.time()
        self._schedule_drain()
        self._schedule_wake()

    def stop(self) -> None:
        """Forget all timers: nothing happens in the world any more."""
        self._stopped = True
        self._timers.clear()
        self._ready.clear()
        if self._wake is not None:
            self._wake.cancel()

    def set_speed(self, speed: float) -> None:
        """Go on at another speed from now; 0 stops the clock for stepping by hand."""
        self._base = self.time()
        if self._loop is not None:
            self._loop_base = self._loop.time()
        self._speed = speed
        self._schedule_wake()

    def skip(self, limit: float) -> float:
        """Let a running clock jump to what is due next, where that is at most `limit` seconds away.

        Returns how far it jumped, 0 where nothing is due by then. For those who only wait: on the way nothing happens.
        Raises RuntimeError on a stopped clock.
        """
        if self._speed == 0 or self._loop is None:
            raise RuntimeError("a stopped clock is stepped with advance")
        first = self._first_timer()
        now = self._reading()
        if first is None or not now < first.when <= now + limit:
            return 0.0
        self._base, self._loop_base = first.when, self._loop.time()
        self._schedule_wake()
        return first.when - now

    def leap(self, seconds: float) -> None:
        """Let a running clock go on at once by some seconds; what becomes due on the way happens in its order."""
        self._base = self._reading() + seconds
        if self._loop is not None:
            self._loop_base = self._loop.time()
        self._schedule_wake()

    def time(self) -> float:
        """Simulated seconds since the epoch."""
        if self._held is not None:
            return self._held
        reading = self._reading()
        first = self._first_timer()
        return reading if first is None else max(self._base, min(reading, first.when))

    def now(self) -> datetime:
        """The simulated time of day, in UTC."""
        return datetime.fromtimestamp(self.time(), UTC)

    def millis(self) -> int:
        """Simulated milliseconds since the epoch, as Mattermost stamps its posts."""
        return int(self.time() * 1000)

    def wire_time(self) -> float:
        """Seconds as a waiting person or client feels them: real ones on a running clock, stepped ones on a stepped
        clock.

        A dialog's three seconds or a resend's thirty must not shrink to an instant because the cluster runs sixty
        times faster.
        """
        if self._speed == 0 or self._loop is None:
            return self.time()
        return self._loop.time()

    async def wire_sleep(self, seconds: float) -> None:
        """Wait in the time of `wire_time`."""
        if self._speed == 0:
            await self.sleep(seconds)
        else:
            await asyncio.sleep(seconds)

    def call_at(self, when: float, callback: Callback) -> Timer:
        """Call back at a simulated time, or as soon as possible when it has passed."""
        timer = Timer(max(when, self.time()), callback)
        if not self._stopped:
            heapq.heappush(self._timers, (timer.when, next(self._order), timer))
            self._schedule_wake()
        return timer

    def call_later(self, delay: float, callback: Callback) -> Timer:
        """Call back after some simulated seconds."""
        return self.call_at(self.time() + delay, callback)

    def soon(self, callback: Callback) -> None:
        """Call back without delay, but not inside the caller: after the present request was answered, in order of
        asking.
        """
        if not self._stopped:
            self._ready.append(callback)
            self._schedule_drain()

    async def sleep(self, seconds: float) -> None:
        """Wait for some simulated seconds."""
        woken = asyncio.Event()
        timer = self.call_later(seconds, woken.set)
        try:
            await woken.wait()
        finally:
            timer.cancel()

    async def advance(self, seconds: float = 0.0) -> None:
        """Step a stopped clock: run what is due, in order, each at its own time, and let coroutines react in between.

        Raises RuntimeError on a running clock.
        """
        if self._speed != 0:
            raise RuntimeError("a running clock cannot be stepped; make the world with speed=0")
        target = self._base + seconds
        await self._let_coroutines_run()
        while (first := self._first_timer()) is not None and first.when <= target:
            self._fire(first)
            await asyncio.sleep(0)
        self._base = target
        await self._let_coroutines_run()

    async def run_until(self, reached: Callable[[], bool], limit: float = 86_400.0) -> None:
        """Step a stopped clock from event to event until something is so; stops at the moment when it became so.

        Raises RuntimeError on a running clock, TimeoutError when it is not so after `limit` simulated seconds.
        """
        if self._speed != 0:
            raise RuntimeError("a running clock cannot be stepped; make the world with speed=0")
        end = self._base + limit
        await self._let_coroutines_run()
        while not reached():
            first = self._first_timer()
            if first is None or first.when > end:
                raise TimeoutError(f"not reached within {limit} simulated seconds")
            self._fire(first)
            await asyncio.sleep(0)
        await self._let_coroutines_run()

    async def _let_coroutines_run(self) -> None:
        for _ in range(3):
            self._drain()
            await asyncio.sleep(0)

    def _reading(self) -> float:
        if self._loop is None or self._speed == 0:
            return self._base
        return self._base + (self._loop.time() - self._loop_base) * self._speed

    def _first_timer(self) -> Timer | None:
        while self._timers and self._timers[0][2].cancelled:
            heapq.heappop(self._timers)
        return self._timers[0][2] if self._timers else None

    def _fire(self, timer: Timer) -> None:
        heapq.heappop(self._timers)
        # While the callback runs it is `when`, however late the loop is: what follows from it is timed from there.
        self._held = max(self._base, timer.when)
        try:
            timer.callback()
            self._drain()
        finally:
            if self._speed == 0:
                self._base = self._held
            self._held = None

    def _drain(self) -> None:
        self._drain_scheduled = False
        while self._ready:
            self._ready.popleft()()

    def _schedule_drain(self) -> None:
        if self._loop is not None and self._ready and not self._drain_scheduled:
            self._drain_scheduled = True
            self._loop.call_soon(self._drain)

    def _schedule_wake(self) -> None:
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        first = self._first_timer()
        if first is None or self._loop is None or self._speed == 0:
            return
        delay = max(0.0, (first.when - self._reading()) / self._speed)
        self._wake = self._loop.call_later(delay, self._on_wake)

    def _on_wake(self) -> None:
        # One at a time, so that requests get their turn between two events of a fast simulation.
        first = self._first_timer()
        if first is not None and first.when <= self._reading():
            self._fire(first)
        self._schedule_wake()
