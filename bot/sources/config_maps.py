"""One ConfigMap of the bot's own, watched by its name.

Every replica watches what the bot keeps there, so that each knows it; only the holder of the Lease writes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from bot.clients.errors import Forbidden
from bot.clients.kube import Kube
from bot.clients.kube_watch import Listed, Seen, Selection, Watch
from bot.core.events import Event
from bot.core.kube import ConfigMap
from bot.metrics import Metrics
from bot.sources.optional import AGAIN_SECONDS


async def watch_config_map(
    kube: Kube,
    metrics: Metrics,
    place: tuple[str, str],
    read: Callable[[ConfigMap | None], Event | None],
    put: Callable[[Event], None],
    trouble: Callable[[str], None],
) -> None:
    """Hand on what `read` makes of it as it changes, for ever; it gets None while there is no such object.

    `place`: its namespace and name. Without the right to watch it nothing is read, and everything else goes on.
    """
    namespace, name = place
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    selection = Selection([("fieldSelector", f"metadata.name={name}")], optional=True)
    while True:
        watch = Watch(kube, metrics, path, _CONFIG_MAP.decode, on_trouble=trouble, selection=selection)
        try:
            async for seen in watch.events():
                if (event := read(_as_it_is(seen))) is not None:
                    put(event)
        except Forbidden:
            trouble(f"not visible, the rights are missing: the ConfigMap {name}")
            await asyncio.sleep(AGAIN_SECONDS)


def _as_it_is(seen: Listed[ConfigMap] | Seen[ConfigMap]) -> ConfigMap | None:
    if isinstance(seen, Listed):
        return seen.items[0] if seen.items else None
    return None if seen.type == "DELETED" else seen.object


_CONFIG_MAP = msgspec.json.Decoder(ConfigMap)
