"""How long starts took: the last ones of each pool, from which `usual 7 min` comes.

It is one text in a ConfigMap of the bot's own, so that a restart and a second replica know the same. A start is named
by its run and attempt: adding it twice changes nothing, and two texts are merged by taking what either has. What is
kept is bounded: `KEPT_STARTS` starts of each kind of each pool, `MAX_STARTS` in all, below 128 KiB of text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median

import msgspec

KEY = "starts.json"
"""Key in the ConfigMap's data."""

KEPT_STARTS = 20
"""Cold starts kept of a pool, and as many warm ones."""

MAX_STARTS = 400
"""Starts kept of all pools together; whoever submits a run names a pool as they like."""

ENOUGH = 3
"""Starts from which on something is called usual."""

VERSION = 1


class Start(msgspec.Struct, frozen=True):
    """One start that came to its end. Lengths are whole seconds; a step that was not seen is missing."""

    run: str  # uid of the Workflow
    attempt: str
    pool: str
    cold: bool
    at: int  # when its tests began, in Unix seconds
    seconds: int  # from its first pod on
    steps: dict[str, int] = {}

    @property
    def key(self) -> tuple[str, str]:
        return self.run, self.attempt


class Book(msgspec.Struct, frozen=True):
    """The text in the ConfigMap."""

    v: int
    starts: tuple[Start, ...]


@dataclass(frozen=True)
class Usual:
    """What is usual for one kind of start of a pool: medians, in seconds. None and nothing where too few were seen."""

    count: int = 0
    seconds: float | None = None
    steps: Mapping[str, float] = field(default_factory=dict)


@dataclass
class History:
    """The starts that are known, by run and attempt."""

    starts: dict[tuple[str, str], Start] = field(default_factory=dict)

    def start(self, run: str, attempt: str) -> Start | None:
        """The start of that attempt, None where it is not known."""
        return self.starts.get((run, attempt))

    def usual(self, pool: str, *, cold: bool) -> Usual:
        """What is usual for a cold or a warm start of a pool."""
        found = [start for start in self.starts.values() if start.pool == pool and start.cold is cold]
        if len(found) < ENOUGH:
            return Usual(len(found))
        lengths: dict[str, list[int]] = {}
        for start in found:
            for step, seconds in start.steps.items():
                lengths.setdefault(step, []).append(seconds)
        steps = {step: median(seen) for step, seen in lengths.items() if len(seen) >= ENOUGH}
        return Usual(len(found), median(start.seconds for start in found), steps)


def merged(*some: Iterable[Start]) -> tuple[Start, ...]:
    """What any of them has, each start once, the oldest gone where it is too much; in the order of their ends."""
    every = {start.key: start for starts in some for start in starts}
    newest_first = sorted(every.values(), key=lambda start: (start.at, start.key), reverse=True)
    kept: list[Start] = []
    counts: dict[tuple[str, bool], int] = {}
    for start in newest_first:
        kind = start.pool, start.cold
        counts[kind] = counts.get(kind, 0) + 1
        if counts[kind] <= KEPT_STARTS and len(kept) < MAX_STARTS:
            kept.append(start)
    return tuple(reversed(kept))


def written(starts: Iterable[Start]) -> str:
    """The text to be kept."""
    return msgspec.json.encode(Book(VERSION, tuple(starts))).decode()


def read(text: str) -> tuple[Start, ...]:
    """The starts of a text; none where it is not one of ours: a person may have edited it."""
    try:
        book = _BOOK.decode(text)
    except (msgspec.ValidationError, msgspec.DecodeError):
        return ()
    return book.starts if book.v == VERSION else ()


_BOOK = msgspec.json.Decoder(Book)
