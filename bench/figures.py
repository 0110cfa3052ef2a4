"""Figures, their floors, and what may lie between them."""

from __future__ import annotations

import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

PAIRS = 5


@dataclass(frozen=True)
class Figure:
    """One measured thing. `ours` and `floor` hold one value a pair, in the same unit."""

    name: str
    unit: str
    ours: tuple[float, ...]
    floor: tuple[float, ...]
    budget: float
    """Largest allowed excess of ours over the floor, in the unit (or of ours, where there is no floor)."""

    @property
    def excess(self) -> float:
        """The median over the pairs of ours less the floor."""
        return statistics.median(ours - floor for ours, floor in zip(self.ours, self.floor, strict=True))

    @property
    def spread(self) -> float:
        """Half the range of the pairs' differences."""
        differences = [ours - floor for ours, floor in zip(self.ours, self.floor, strict=True)]
        return (max(differences) - min(differences)) / 2

    @property
    def missed(self) -> bool:
        return self.excess - self.budget > self.spread

    def line(self) -> str:
        """For people."""
        ours, floor = statistics.median(self.ours), statistics.median(self.floor)
        verdict = "MISSED" if self.missed else "ok" if self.excess <= self.budget else "ok within the spread"
        return (
            f"{self.name:<58} {ours:>9.2f} {floor:>9.2f} {self.excess:>9.2f} ±{self.spread:<8.2f}"
            f" {self.budget:>8.2f} {self.unit:<5} {verdict}"
        )


HEAD = f"{'what':<58} {'ours':>9} {'floor':>9} {'excess':>9} {'spread':<9} {'budget':>8} {'unit':<5}"


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which that share of them lies; the worst one for small samples."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def in_turn(
    floor: Callable[[], Awaitable[float]], ours: Callable[[], Awaitable[float]], pairs: int = PAIRS
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Measure floor and ours in turn; returns (ours, floor)."""
    mine, theirs = [], []
    for _ in range(pairs):
        theirs.append(await floor())
        mine.append(await ours())
    return tuple(mine), tuple(theirs)
