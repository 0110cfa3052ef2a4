"""The clock: wake-ups that the core asked for, and the sweep."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from bot.core.effects import WakeAt
from bot.core.events import Event, Swept, Woke

_FAR = 32503680000.0
"""The year 3000, in Unix seconds: a wake-up beyond is never."""


class Clock:
    """Turns times into events."""

    def __init__(self, put: Callable[[Event], None]) -> None:
        self._put = put
        # nothing is lost by a late wake-up, and two for one key are one
        self._scheduler = AsyncIOScheduler(
            timezone=UTC, job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1}
        )

    def start(self, sweep_seconds: float) -> None:
        """Begin; sweeps come every `sweep_seconds`."""
        self._scheduler.add_job(self._sweep, "interval", seconds=sweep_seconds, id="sweep")
        self._scheduler.start()

    def stop(self) -> None:
        """End; nothing comes any more."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)

    def wake(self, effect: WakeAt) -> None:
        """Come back at that time; a later request with the same key replaces the earlier."""
        when = datetime.fromtimestamp(min(max(effect.when, 0.0), _FAR), UTC)
        self._scheduler.add_job(
            self._woke, "date", run_date=when, args=[effect.key], id=effect.key, replace_existing=True
        )

    async def _woke(self, key: str) -> None:
        self._put(Woke(key))

    async def _sweep(self) -> None:
        self._put(Swept())
