"""Watching where the rights allow it: in the whole cluster, else in our namespace, else not at all.

What is not allowed is no fault and no reason to ask again and again: it is told once, and looked at anew after some
minutes, since an admin may have granted it meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bot.clients.errors import Forbidden
from bot.clients.kube import Kube
from bot.clients.kube_watch import Encoded, HasMetadata, Listed, Seen, Selection, Watch
from bot.core.events import Event, PoolsSeen
from bot.core.settings import Settings
from bot.core.sightings import Sighting, Source, SourceHidden
from bot.metrics import Metrics

AGAIN_SECONDS = 600.0
"""How long a missing right is left alone."""

T = TypeVar("T", bound=HasMetadata)
Take = Callable[[Listed[T] | Seen[T], bool], Sighting | None]
"""From what the watch saw, and whether it sees the whole cluster, to what is held."""


@dataclass(frozen=True)
class Around:
    """What every watch of the pools needs."""

    kube: Kube
    metrics: Metrics
    settings: Settings
    put: Callable[[Event], None]
    trouble: Callable[[str], None]
    again_seconds: float = AGAIN_SECONDS

    def tell(self, sighting: Sighting) -> None:
        """Hand something on to the core."""
        self.put(PoolsSeen(sighting))


@dataclass(frozen=True)
class Wanted:
    """A collection, in the order in which its scopes are tried: its paths, and whether they hold everything."""

    source: Source
    scopes: Sequence[tuple[str, bool]]
    query: Sequence[tuple[str, str]] = ()


async def watch_where_allowed(
    around: Around, wanted: Wanted, decode: Callable[[Encoded], T | None], take: Take[T]
) -> None:
    """Watch the widest scope that is allowed, for ever."""
    told = False
    while True:
        for number, (path, everywhere) in enumerate(wanted.scopes):
            watch = Watch(
                around.kube,
                around.metrics,
                path,
                decode,
                on_trouble=around.trouble,
                selection=Selection(wanted.query, optional=True),
            )
            try:
                # from a narrower scope, look now and then whether the wider one is allowed by now
                async with asyncio.timeout(around.again_seconds if number else None):
                    async for seen in watch.events():
                        told = False
                        sighting = take(seen, everywhere)
                        if sighting is not None:
                            around.tell(sighting)
            except Forbidden:
                continue
            except TimeoutError:
                break
        else:
            if not told:
                around.trouble(f"not visible, the rights are missing: {wanted.source.value}")
                told = True
            around.tell(SourceHidden(wanted.source))
            await asyncio.sleep(around.again_seconds)
