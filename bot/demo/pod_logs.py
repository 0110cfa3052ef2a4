"""What containers wrote: lines with their times, and who follows them."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

Line = tuple[datetime, str]
A_MOMENT = timedelta(milliseconds=1)


class PodLogs:
    """The logs of the main containers, by pod uid, kept as long as the pod is."""

    def __init__(self) -> None:
        self._lines: dict[str, list[Line]] = {}
        self._followers: dict[str, set[asyncio.Event]] = {}
        self._ended: set[str] = set()

    def append(self, uid: str, when: datetime, text: str) -> None:
        """Write one line, without its newline."""
        lines = self._lines.setdefault(uid, [])
        if lines and timedelta(0) <= lines[-1][0] - when < A_MOMENT:
            # A runtime stamps each line by itself; on our clock many are written at one instant.
            when = lines[-1][0] + timedelta(microseconds=1)
        lines.append((when, text))
        self._wake(uid)

    def end(self, uid: str) -> None:
        """The container has ended: followers stop after the last line."""
        self._ended.add(uid)
        self._wake(uid)

    def drop(self, uid: str) -> None:
        """The pod is gone."""
        self.end(uid)
        self._lines.pop(uid, None)

    def lines(self, uid: str) -> list[Line]:
        """All lines so far."""
        return self._lines.get(uid, [])

    def has_ended(self, uid: str) -> bool:
        """Whether no more lines will come."""
        return uid in self._ended

    def follow(self, uid: str) -> asyncio.Event:
        """An event that is set on new lines; the follower clears it."""
        event = asyncio.Event()
        self._followers.setdefault(uid, set()).add(event)
        return event

    def is_followed(self, uid: str) -> bool:
        """Whether somebody reads along."""
        return bool(self._followers.get(uid))

    def unfollow(self, uid: str, event: asyncio.Event) -> None:
        """No longer interested."""
        self._followers.get(uid, set()).discard(event)

    def _wake(self, uid: str) -> None:
        for event in self._followers.get(uid, ()):
            event.set()
