"""Waiting in the embedded world: where nothing moves, its clock jumps to what is due next.

On the real services somebody who waits for the next minute, or for a deadline, waits. Here the wait ends as soon as
both servers have been quiet for a moment and the bot has nothing under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from bot.demo import EmbeddedWorld
from bot.demo.chat_state import Event
from bot.demo.kinds import LEASES
from bot.demo.world import Change

QUIET_SECONDS = 0.25
"""Real seconds without any change after which a wait is cut short."""
BUDGET_SECONDS = 90.0
"""Simulated seconds that one wait may skip: enough for the next minute, too little for a time to live."""
PAUSE_SECONDS = 0.01
_Seen = TypeVar("_Seen")


class Patience:
    """Waits for those who look at a running world."""

    def __init__(self, world: EmbeddedWorld) -> None:
        self._clock = world.clock
        self._loop = asyncio.get_running_loop()
        self._moved = self._loop.time()
        self.busy: Callable[[], bool] = lambda: False
        """Whether somebody outside of the world has something under way."""
        world.cluster.store.subscribe(self._on_change)
        world.chat.state.listeners.append(self._on_event)

    async def until(self, check: Callable[[], Awaitable[_Seen]], limit: float) -> _Seen:
        """Look again and again until `check` returns something true. Raises TimeoutError after `limit` real seconds."""
        budget = BUDGET_SECONDS
        async with asyncio.timeout(limit):
            while not (seen := await check()):
                if not self.busy() and self._loop.time() - self._moved > QUIET_SECONDS:
                    budget -= self._clock.skip(budget)
                    self._moved = self._loop.time()
                await asyncio.sleep(PAUSE_SECONDS)
        return seen

    def _on_change(self, change: Change) -> None:
        # A Lease is renewed all the time, and means nothing.
        if change.kind != LEASES:
            self._moved = self._loop.time()

    def _on_event(self, _event: Event) -> None:
        self._moved = self._loop.time()
