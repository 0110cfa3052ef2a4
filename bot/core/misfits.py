"""Pods that no pool can take, whatever gets free: why, and in whose words.

The scheduler speaks of the nodes that are up, the autoscaler of those that could come. Only what both rule out for
good is a misfit: a GPU that is busy gets free, and a cold pool may grow.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from bot.core.pools import Pools
from bot.core.pools_view import PROVISION_SECONDS
from bot.core.scheduling import About, Cause, Reading, read_reason
from bot.core.settings import Settings
from bot.core.sightings import GpuPod, NodeState, PoolNode, Standing


class Misfit(StrEnum):
    """Why no pool can take a pod."""

    NO_POOL = "no_pool"  # it asks for a pool that nobody knows
    TAINT = "taint"  # the nodes of its pool have a taint that it does not tolerate
    SELECTOR = "selector"  # no node is of the kind that it asks for, and none will come
    CAPABILITY = "capability"  # it is built for another GPU than its pool has


def known_pools(pools: Pools, settings: Settings) -> set[str]:
    """Pools of which anything is known, up or not."""
    configured = {pool.name for pool in settings.pools} | {node.pool for node in pools.nodes.values()}
    groups = pools.status.groups if pools.status is not None else ()
    return configured | set(pools.group_pools.values()) | {group.name for group in groups}


def ready_nodes(pools: Pools) -> dict[str, list[PoolNode]]:
    """The nodes that could work, by pool."""
    found: dict[str, list[PoolNode]] = {}
    for node in pools.nodes.values():
        if node.state is NodeState.READY:
            found.setdefault(node.pool, []).append(node)
    return found


def misfit(
    pools: Pools, pod: GpuPod, known: set[str], nodes: Mapping[str, list[PoolNode]], now: float
) -> tuple[Misfit, str] | None:
    """Why no pool can ever take this pod, and the words that say so; None where one may."""
    if pod.standing is not Standing.UNPLACED or pod.ending or pod.until is not None:
        return None
    reading = read_reason(pod.message)
    if reading is None or not _never(reading, _NO_NODE):
        return None
    if pod.pool and pod.pool not in known:
        return Misfit.NO_POOL, pod.message
    refused, asked = (pools.note(pod.metadata.uid, r) for r in ("NotTriggerScaleUp", "TriggeredScaleUp"))
    refused_at, asked_at = ((note.at or 0.0) if note is not None else 0.0 for note in (refused, asked))
    if asked_at > max(refused_at, now - PROVISION_SECONDS):
        return None  # a node is on its way
    ready = nodes.get(pod.pool, [])
    if pod.pool and ready and all(_tainted(pod, node) for node in ready):
        taints = dict.fromkeys(str(t) for n in ready for t in n.taints if not any(o.covers(t) for o in pod.tolerations))
        return Misfit.TAINT, ", ".join(taints)
    never = read_reason(refused.message) if refused is not None else None
    if refused is not None and never is not None and never.about is About.GROUPS and _never(never, _NO_GROUP):
        return (Misfit.TAINT if never.has(Cause.TAINT) and pod.pool else Misfit.SELECTOR), refused.message
    return (Misfit.SELECTOR, pod.message) if pod.pool and ready else None


_NO_NODE = frozenset({Cause.SELECTOR, Cause.TAINT, Cause.CONTROL_PLANE, Cause.NO_NODES})
"""What keeps a pod off a node for good, unless somebody changes one of them."""

_NO_GROUP = frozenset({Cause.SELECTOR, Cause.TAINT, Cause.GPU, Cause.CPU, Cause.MEMORY, Cause.STORAGE, Cause.RESOURCE})
"""The same of a group: what a new, empty node of it has too little of, no waiting brings."""


def _never(reading: Reading, causes: frozenset[Cause]) -> bool:
    return bool(reading.obstacles) and all(obstacle.cause in causes for obstacle in reading.obstacles)


def _tainted(pod: GpuPod, node: PoolNode) -> bool:
    return any(not any(each.covers(taint) for each in pod.tolerations) for taint in node.taints)
