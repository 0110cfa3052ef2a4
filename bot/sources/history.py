"""The history of starts as it is kept: one ConfigMap of the bot's own, watched by its name.

Every replica watches it, so that each knows what is usual; only the holder of the Lease writes it (sinks/history.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from bot.clients.errors import Forbidden
from bot.clients.kube import Kube
from bot.clients.kube_watch import Listed, Seen, Selection, Watch
from bot.core.events import Event, HistoryRead
from bot.core.history import KEY
from bot.core.kube import ConfigMap
from bot.metrics import Metrics
from bot.sources.optional import AGAIN_SECONDS


async def watch_history(
    kube: Kube,
    metrics: Metrics,
    place: tuple[str, str],
    put: Callable[[Event], None],
    trouble: Callable[[str], None],
) -> None:
    """Hand on the history as it changes, for ever. `place`: namespace and name of its ConfigMap.

    Without the right to watch it nothing is usual, and everything else goes on.
    """
    namespace, name = place
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    selection = Selection([("fieldSelector", f"metadata.name={name}")], optional=True)
    while True:
        watch = Watch(kube, metrics, path, _CONFIG_MAP.decode, on_trouble=trouble, selection=selection)
        try:
            async for seen in watch.events():
                if (event := history_event(seen)) is not None:
                    put(event)
        except Forbidden:
            trouble(f"not visible, the rights are missing: the ConfigMap {name}")
            await asyncio.sleep(AGAIN_SECONDS)


def history_event(seen: Listed[ConfigMap] | Seen[ConfigMap]) -> Event | None:
    """From what the watch saw to what happened; None where there is no history."""
    if isinstance(seen, Listed):
        return HistoryRead(_text(seen.items[0])) if seen.items else None
    return None if seen.type == "DELETED" else HistoryRead(_text(seen.object))


def _text(config_map: ConfigMap) -> str:
    return (config_map.data or {}).get(KEY, "")


_CONFIG_MAP = msgspec.json.Decoder(ConfigMap)
