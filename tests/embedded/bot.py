"""A bot in the process of the tests, which can die as a process dies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from bot.app import Bot, Wiring, running
from bot.config import parse, secrets

NEXT_WAKE_SECONDS = 3.0
"""A wake-up that is due so soon counts as something under way."""


class LocalBot:
    """One life of a bot."""

    def __init__(self, config: Mapping[str, Any], environment: Mapping[str, str], wiring: Wiring) -> None:
        self._context: AbstractAsyncContextManager[Bot] = running(parse(config), secrets(environment), wiring)
        self.bot: Bot

    async def start(self) -> None:
        """Begin; it is not ready at once."""
        self.bot = await self._context.__aenter__()

    def check(self) -> None:
        """Raises AssertionError where a part of it has died by itself."""
        if self.bot.crashed.done():
            raise AssertionError(f"a task of the bot died: {self.bot.crashed.result()}; its log is in the output")

    async def stop(self) -> None:
        """End in an orderly way."""
        await self._context.__aexit__(None, None, None)
        self.check()

    async def kill(self) -> None:
        """End at once: nothing is finished, nothing is given back, and nothing is written any more."""
        self.bot.stop = self._die  # type: ignore[method-assign]
        await self._context.__aexit__(None, None, None)

    async def _die(self) -> None:
        bot = self.bot
        if bot._lease is not None:
            # What still runs in a thread asks for this right before it writes.
            bot._lease._held_until = 0.0
        bot._clock.stop()
        tasks = list(bot._tasks._running)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        bot._chat.close()
        await bot._exits.aclose()

    def is_busy(self) -> bool:
        """Whether it has something under way, or soon will."""
        loop = self.bot.loop
        if loop._outstanding or loop._people or loop._world:
            return True
        soon = time.time() + NEXT_WAKE_SECONDS
        jobs = self.bot._clock._scheduler.get_jobs() if self.bot._clock._scheduler.running else []
        return any(job.id != "sweep" and job.next_run_time.timestamp() < soon for job in jobs)
