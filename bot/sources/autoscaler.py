"""The autoscaler's own status: one ConfigMap, watched by its name.

It is written every ten seconds. A managed control plane may keep it to itself, or write none.
"""

from __future__ import annotations

import msgspec

from bot.clients.kube_watch import Listed, Seen
from bot.core.kube import ConfigMap
from bot.core.sightings import Sighting, Source, StatusSeen
from bot.sources.optional import Around, Wanted, watch_where_allowed

KEY = "status"


async def watch_autoscaler(around: Around) -> None:
    """Hand on the ConfigMap as it changes, for ever."""
    namespace, _, name = around.settings.autoscaler_status.partition("/")
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    wanted = Wanted(Source.AUTOSCALER, [(path, True)], [("fieldSelector", f"metadata.name={name}")])
    await watch_where_allowed(around, wanted, _CONFIG_MAP.decode, status_sighting)


def status_sighting(seen: Listed[ConfigMap] | Seen[ConfigMap], _everywhere: bool) -> Sighting:
    """From what the watch saw to what is held."""
    if isinstance(seen, Listed):
        return _status(seen.items[0]) if seen.items else StatusSeen(None, there=False)
    return StatusSeen(None, there=False) if seen.type == "DELETED" else _status(seen.object)


def _status(config_map: ConfigMap) -> StatusSeen:
    return StatusSeen((config_map.data or {}).get(KEY))


_CONFIG_MAP = msgspec.json.Decoder(ConfigMap)
