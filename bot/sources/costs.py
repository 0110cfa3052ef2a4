"""The record of costs as it is kept: one ConfigMap of the bot's own, watched by its name.

Every replica watches it, so that each can say what was before it began; only the holder of the Lease writes it
(sinks/costs.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from bot.clients.errors import Forbidden
from bot.clients.kube import Kube
from bot.clients.kube_watch import Listed, Seen, Selection, Watch
from bot.core.events import CostsRead, Event
from bot.core.kube import ConfigMap
from bot.metrics import Metrics
from bot.sources.optional import AGAIN_SECONDS


async def watch_costs(
    kube: Kube,
    metrics: Metrics,
    place: tuple[str, str],
    put: Callable[[Event], None],
    trouble: Callable[[str], None],
) -> None:
    """Hand on the record as it changes, for ever. `place`: namespace and name of its ConfigMap.

    Without the right to watch it nothing is kept over a restart, and everything else goes on.
    """
    namespace, name = place
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    selection = Selection([("fieldSelector", f"metadata.name={name}")], optional=True)
    while True:
        watch = Watch(kube, metrics, path, _CONFIG_MAP.decode, on_trouble=trouble, selection=selection)
        try:
            async for seen in watch.events():
                put(costs_event(seen))
        except Forbidden:
            trouble(f"not visible, the rights are missing: the ConfigMap {name}")
            await asyncio.sleep(AGAIN_SECONDS)


def costs_event(seen: Listed[ConfigMap] | Seen[ConfigMap]) -> CostsRead:
    """From what the watch saw to what happened."""
    if isinstance(seen, Listed):
        return _read(seen.items[0]) if seen.items else CostsRead({}, "")
    return CostsRead({}, "") if seen.type == "DELETED" else _read(seen.object)


def _read(found: ConfigMap) -> CostsRead:
    return CostsRead(found.data or {}, found.metadata.resource_version)


_CONFIG_MAP = msgspec.json.Decoder(ConfigMap)
