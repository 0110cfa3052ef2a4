"""What the nodes of the pools cost: from the creation of a node to its end, told apart by who held its GPUs.

The meter turns what the watches see into slices of time: so long this node was there, and so much of it was that
run's. A node that several pods hold at once is split by their GPUs. Before a pod, between two and after the last it is
idle. What this process has not seen itself is `UNSEEN` unless a pod that is still there tells since when it holds its
GPU. Where nodes can't be seen, a node counts while a pod is on it.

Slices are added up into the record (`cost_record`), which is kept in the cluster up to a time; what the record has,
the slices don't count again, whoever wrote it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from bot.core.card import OriginKind, origin_of
from bot.core.pools import Pools, Sight
from bot.core.settings import Settings
from bot.core.sightings import (
    GpuPod,
    NodeSeen,
    NodesListed,
    PodSeen,
    PodsListed,
    Sighting,
    Source,
    SourceHidden,
    Standing,
)
from bot.core.workflow import Workflow

KEPT_SLICES, KEPT_RUNS = 5000, 2000
"""Slices that are held where no record takes them, and runs whose trigger is known."""


class Use(StrEnum):
    """What a node's time went to."""

    MANUAL = "manual"
    PUSH = "push"
    NIGHTLY = "nightly"
    OTHER = "other"  # pods that are none of our runs
    WARM = "warm"  # a placeholder
    IDLE = "idle"  # nobody: starting, between two pods, after the last
    UNSEEN = "unseen"  # the node was there, and nobody looked who used it


TRIGGERS = {
    OriginKind.CHAT: Use.MANUAL,
    OriginKind.API: Use.MANUAL,
    OriginKind.CI: Use.PUSH,
    OriginKind.CRON: Use.NIGHTLY,
}


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a node's time. `run`: name of the Workflow whose trigger is its use, "" where `use` says all."""

    pool: str
    begin: float
    end: float
    share: float
    use: Use
    run: str = ""


@dataclass
class OpenNode:
    """A node that is there. `since`: up to then its time is in slices."""

    uid: str
    pool: str
    since: float
    held: frozenset[str] = frozenset()
    """uids of the pods that hold it."""


@dataclass
class Meter:
    """What this process has seen of the nodes' time. Owned by the loop."""

    nodes: dict[str, OpenNode] = field(default_factory=dict)
    """By name."""
    slices: list[Slice] = field(default_factory=list)
    triggers: OrderedDict[str, Use] = field(default_factory=OrderedDict)
    """By the name of a run."""
    began: float | None = None
    """Since when this process sees nodes and pods."""
    found: frozenset[str] | None = None
    """uids of the nodes that were there then; None where they can't be seen."""
    blind: float | None = None
    """When nodes were last not visible, and counted by their pods."""

    def use_of(self, piece: Slice) -> Use:
        """What a slice went to; a run of which nothing is known is somebody's pod."""
        return self.triggers.get(piece.run, piece.use)


def learn(meter: Meter, workflow: Workflow) -> None:
    """Remember what started a run."""
    meter.triggers[workflow.metadata.name] = TRIGGERS[origin_of(workflow).kind]
    meter.triggers.move_to_end(workflow.metadata.name)
    while len(meter.triggers) > KEPT_RUNS:
        meter.triggers.popitem(last=False)


def touched(pools: Pools, seen: Sighting) -> frozenset[str] | None:
    """Nodes whose time a sighting divides, before the sighting is taken in; None for all of them."""
    match seen:
        case NodeSeen():
            return frozenset({seen.node.metadata.name})
        case PodSeen():
            held = pools.pods.get(seen.pod.metadata.uid)
            return frozenset({seen.pod.node, held.node if held is not None else ""} - {""})
        case NodesListed() | PodsListed():
            return None
        case SourceHidden(source=Source.NODES | Source.PODS):
            return None
        case _:
            return frozenset()


def before(meter: Meter, pools: Pools, settings: Settings, seen: Sighting, now: float) -> None:
    """Bring to account what was until now, by who held the nodes until now."""
    names = touched(pools, seen)
    ends = now
    if _repeats(meter, pools, seen):
        names = frozenset()  # a node and a pod that runs are written every few minutes, and mostly say the same
    elif isinstance(seen, NodeSeen) and not seen.gone:
        ends = min(now, seen.node.created or now)  # another node of that name: the first was gone before
    for name in list(meter.nodes) if names is None else names & meter.nodes.keys():
        _settle(meter, pools, settings, name, ends)
    if isinstance(seen, NodesListed) and pools.sight(Source.NODES) is Sight.HIDDEN:
        meter.began = None  # the right was granted: from now on nodes are seen


def _repeats(meter: Meter, pools: Pools, seen: Sighting) -> bool:
    """Whether it is about a node or a pod that stays where it was."""
    match seen:
        case NodeSeen(gone=False):
            known = meter.nodes.get(seen.node.metadata.name)
            return known is not None and known.uid in {"", seen.node.metadata.uid}
        case PodSeen(gone=False):
            held = pools.pods.get(seen.pod.metadata.uid)
            return held is not None and held.node == seen.pod.node and seen.pod.standing is not Standing.ENDED
        case _:
            return False


def after(meter: Meter, pools: Pools, settings: Settings, seen: Sighting, now: float) -> bool:
    """Begin and end the nodes that a sighting brought and took. Says whether a node or who holds it changed."""
    names = touched(pools, seen)
    if isinstance(seen, SourceHidden) and seen.source is Source.NODES:
        meter.nodes.clear()
    if meter.began is None and _sees(pools):
        meter.began = now
        visible = pools.sight(Source.NODES) is Sight.EVERYWHERE
        meter.found = frozenset(node.metadata.uid for node in pools.nodes.values()) if visible else None
    if names is None:
        names = frozenset({*meter.nodes, *pools.nodes, *pools.holders})
    changed = False
    for name in names:
        known = meter.nodes.get(name)
        if pools.sight(Source.NODES) is Sight.EVERYWHERE:
            _follow_node(meter, pools, settings, name, now)
        elif pools.sight(Source.NODES) is Sight.HIDDEN:
            _follow_pods(meter, pools, name, now)
        node, held = meter.nodes.get(name), frozenset(pools.holders.get(name, ()))
        changed |= node is not known or (node is not None and node.held != held)
        if node is not None:
            node.held = held
    return changed


def settle(meter: Meter, pools: Pools, settings: Settings, now: float) -> None:
    """Bring to account all nodes until now."""
    for name in meter.nodes:
        _settle(meter, pools, settings, name, now)
    if pools.sight(Source.NODES) is Sight.HIDDEN:
        meter.blind = now


def forget(meter: Meter, until: float) -> None:
    """Let go of what a record has."""
    meter.slices = [piece for piece in meter.slices if piece.end > until]


def _sees(pools: Pools) -> bool:
    """Whether both were looked at, whatever came of it."""
    return Sight.PENDING not in {pools.sight(Source.NODES), pools.sight(Source.PODS)}


def _settle(meter: Meter, pools: Pools, settings: Settings, name: str, now: float) -> None:
    node = meter.nodes[name]
    if meter.began is None or now <= node.since:
        return  # who holds it is not known yet
    pods = [pools.pods[uid] for uid in sorted(pools.holders.get(name, ()))]
    starts = {pod.metadata.uid: _start(pod, meter.began) for pod in pods}
    cuts = sorted({node.since, now, *(t for t in (meter.began, *starts.values()) if node.since < t < now)})
    for begin, end in pairwise(cuts):
        held = [pod for pod in pods if starts[pod.metadata.uid] <= begin]
        total = sum(pod.gpus for pod in held)
        for pod in held:
            use, run = _use(pod, settings)
            meter.slices.append(Slice(node.pool, begin, end, pod.gpus / total, use, run))
        if not held:
            hidden = end <= meter.began or pools.sight(Source.PODS) is Sight.HIDDEN
            meter.slices.append(Slice(node.pool, begin, end, 1.0, Use.UNSEEN if hidden else Use.IDLE))
    node.since = now
    del meter.slices[:-KEPT_SLICES]


def _start(pod: GpuPod, began: float) -> float:
    """Since when a pod holds its node: as it says itself; else it was there when this process began to look."""
    return pod.placed_at if pod.placed_at is not None else min(began, pod.created or began)


def _use(pod: GpuPod, settings: Settings) -> tuple[Use, str]:
    if pod.until is not None:
        return Use.WARM, ""
    return Use.OTHER, pod.workflow if pod.metadata.namespace == settings.namespace else ""


def _follow_node(meter: Meter, pools: Pools, settings: Settings, name: str, now: float) -> None:
    node, known = pools.nodes.get(name), meter.nodes.get(name)
    if node is None or not (node.gpus or settings.pool(node.pool)):
        meter.nodes.pop(name, None)
    elif known is None:
        created = node.created if node.created is not None else now
        meter.nodes[name] = OpenNode(node.metadata.uid, _counted(settings, node.pool), min(created, now))
    elif known.uid != node.metadata.uid:
        # one that was counted by its pods goes on from there; another node of that name begins when it was created
        created = known.since if not known.uid else node.created or now
        meter.nodes[name] = OpenNode(node.metadata.uid, _counted(settings, node.pool), max(known.since, created))


def _follow_pods(meter: Meter, pools: Pools, name: str, now: float) -> None:
    held = [pools.pods[uid] for uid in sorted(pools.holders.get(name, ()))]
    if not held:
        meter.nodes.pop(name, None)
    elif name not in meter.nodes:
        since = min(pod.placed_at if pod.placed_at is not None else now for pod in held)
        meter.nodes[name] = OpenNode("", held[0].pool, min(since, now))


def _counted(settings: Settings, pool: str) -> str:
    """The pool under which a node counts: those that config.yaml does not name count together."""
    return pool if settings.pool(pool) else ""


def open_nodes(meter: Meter) -> Iterable[tuple[str, str]]:
    """Nodes that are there, by uid, with their pool; those counted by their pods have no uid and are not named."""
    return ((node.uid, node.pool) for node in meter.nodes.values() if node.uid)
