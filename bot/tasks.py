"""Background work with a name and a fate.

Every task is started here and nowhere else (ruff bans the bare call). A task that fails, or an eternal one that
ends, is reported once to `on_crash`; a process that limps on with half of its work dead helps nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Tasks:
    """The tasks of one process, kept so that none is collected while it runs."""

    def __init__(self, on_crash: Callable[[str, BaseException], None]) -> None:
        self._on_crash = on_crash
        self._running: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, Any], *, name: str, eternal: bool = False) -> asyncio.Task[Any]:
        """Start `work`. An `eternal` one must not end by itself."""
        task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended_eternal if eternal else self._ended)
        return task

    async def close(self) -> None:
        """Cancel everything and wait until it is gone."""
        while self._running:
            running = list(self._running)
            for task in running:
                task.cancel()
            # asked again after a while: some waits of Python 3.11 swallow a cancellation
            await asyncio.wait(running, timeout=1.0)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._on_crash(task.get_name(), error)

    def _ended_eternal(self, task: asyncio.Task[Any]) -> None:
        self._ended(task)
        if not task.cancelled() and task.exception() is None:
            self._on_crash(task.get_name(), RuntimeError("an eternal task ended"))
