"""Nodes of pools, watched by the pool label."""

from __future__ import annotations

import msgspec

from bot.clients.kube_watch import Encoded, Listed, Seen
from bot.core.kube import Node
from bot.core.sightings import NodeSeen, NodesListed, PoolNode, Sighting, Source, pool_node
from bot.sources.optional import Around, Wanted, watch_where_allowed


async def watch_nodes(around: Around) -> None:
    """Hand on every node that has the pool label, for ever."""
    settings = around.settings

    def decode(raw: Encoded) -> PoolNode:
        return pool_node(_NODE.decode(raw), settings)

    wanted = Wanted(Source.NODES, [("/api/v1/nodes", True)], [("labelSelector", settings.pool_label)])
    await watch_where_allowed(around, wanted, decode, node_sighting)


def node_sighting(seen: Listed[PoolNode] | Seen[PoolNode], _everywhere: bool) -> Sighting:
    """From what the watch saw to what is held."""
    if isinstance(seen, Listed):
        return NodesListed(seen.items)
    return NodeSeen(seen.object, gone=seen.type == "DELETED")


_NODE = msgspec.json.Decoder(Node)
