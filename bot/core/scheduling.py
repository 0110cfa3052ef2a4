"""What the scheduler and the autoscaler say about a pod that waits, taken apart.

Two writers, one manner: a count and a reason, separated by commas.

    0/5 nodes are available: 3 Insufficient nvidia.com/gpu, 2 node(s) had untolerated taint {a: b}. preemption: …
    pod didn't trigger scale-up: 2 node(s) didn't match Pod's node affinity/selector, 1 max node group size reached

Older releases wrote `had taint {…}, that the pod didn't tolerate` and, before 1.9, `Insufficient cpu (4)`; newer ones
may leave out a taint's name. Sources: kubernetes, pkg/scheduler/framework/types.go (FitError.Error) and the ErrReason
constants of its plugins; autoscaler, cluster-autoscaler/core/scaleup/orchestrator/skippedreasons.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """Why a node, a node group or the whole cluster does not take a pod; the most telling first."""

    QUOTA = "quota"
    GATED = "gated"
    VOLUME_MISSING = "volume_missing"
    VOLUME_UNBOUND = "volume_unbound"
    VOLUME_NONE = "volume_none"
    GROUP_BACKOFF = "group_backoff"
    GROUP_MAX = "group_max"
    CLUSTER_LIMIT = "cluster_limit"
    GROUP_UNREADY = "group_unready"
    GPU = "gpu"
    CLAIM = "claim"
    CPU = "cpu"
    MEMORY = "memory"
    STORAGE = "storage"
    PODS = "pods"
    RESOURCE = "resource"
    VOLUME_PLACE = "volume_place"
    VOLUME_COUNT = "volume_count"
    VOLUME_BUSY = "volume_busy"
    PORTS = "ports"
    NEIGHBOURS = "neighbours"
    STARTING = "starting"
    NOT_READY = "not_ready"
    LEAVING = "leaving"
    CORDONED = "cordoned"
    UNREACHABLE = "unreachable"
    PRESSURE = "pressure"
    TAINT = "taint"
    SELECTOR = "selector"
    CONTROL_PLANE = "control_plane"
    NO_NODES = "no_nodes"
    OTHER = "other"


class About(StrEnum):
    """What the counts of a reading count."""

    NODES = "nodes"
    GROUPS = "groups"
    POD = "pod"


@dataclass(frozen=True)
class Obstacle:
    """One reason, and on how many it holds. `detail`: the taint, the resource, the volume, the writer's own words."""

    cause: Cause
    count: int
    detail: str = ""


@dataclass(frozen=True)
class Reading:
    """A message taken apart. Obstacles stand with the most telling first."""

    about: About
    obstacles: tuple[Obstacle, ...]
    total: int = 0
    """Nodes looked at; 0 where the message does not say."""

    def has(self, cause: Cause) -> bool:
        return any(obstacle.cause is cause for obstacle in self.obstacles)


@dataclass(frozen=True)
class ScaleUp:
    """One node group that grows for a pod."""

    group: str
    before: int
    after: int
    largest: int


@dataclass(frozen=True)
class Quota:
    """What an exceeded quota says of one resource."""

    quota: str
    resource: str
    requested: str
    used: str
    limit: str


def read_reason(message: str) -> Reading | None:
    """Take a message apart; None where it is none of the scheduler's, the autoscaler's or the quota's."""
    text = " ".join(message.split())
    text = _PREFIX.sub("", text)
    for read in (_nodes, _groups, _old_nodes, _single):
        found = read(text)
        if found is not None:
            return found
    return None


def read_scale_up(message: str) -> tuple[ScaleUp, ...]:
    """The groups of a TriggeredScaleUp event, none where it can't be read.

    `pod triggered scale-up: [{https://…/gke-l4-grp 0->1 (max: 4)} {7be2f9d4-… 1->2 (max: 2)}]`
    """
    return tuple(
        ScaleUp(match["group"], int(match["before"]), int(match["after"]), int(match["largest"]))
        for match in _SCALE_UP.finditer(message)
    )


def read_quota(message: str) -> Quota | None:
    """The resource of which an exceeded quota has too little, the GPU first.

    `exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=4, limited: …=4`
    """
    match = _QUOTA.search(" ".join(message.split()))
    if match is None:
        return None
    requested, used, limit = (_amounts(match[key]) for key in ("requested", "used", "limited"))
    resource = next((name for name in requested if _is_gpu(name)), next(iter(requested), ""))
    return Quota(
        quota=match["quota"],
        resource=resource.removeprefix("requests.").removeprefix("limits."),
        requested=requested.get(resource, ""),
        used=used.get(resource, ""),
        limit=limit.get(resource, ""),
    )


def taint_cause(key: str) -> Cause:
    """What a taint's key tells: most taints of the system stand for a state of the node."""
    if key in _TAINTS:
        return _TAINTS[key]
    if key.startswith(_STARTUP_TAINTS) or key.endswith("/agent-not-ready"):
        return Cause.STARTING
    return Cause.TAINT


def _nodes(text: str) -> Reading | None:
    match = _NODES.match(text)
    if match is None:
        return None
    total = int(match["total"])
    items = _items(_TAIL.split(match["rest"], maxsplit=1)[0], total)
    return Reading(About.NODES, _merged(_obstacle(count, reason) for count, reason in items), total)


def _groups(text: str) -> Reading | None:
    match = _NOT_TRIGGERED.match(text)
    if match is None:
        return None
    return Reading(About.GROUPS, _merged(_obstacle(count, reason) for count, reason in _items(match["rest"], 0)))


def _old_nodes(text: str) -> Reading | None:
    """Before 1.9: `No nodes are available that match all of the following predicates:: Insufficient cpu (4), …`."""
    match = _OLD_NODES.match(text)
    if match is None:
        return None
    found = [(int(m["count"]), m["reason"]) for m in _OLD_ITEM.finditer(match["rest"])]
    return Reading(About.NODES, _merged(_obstacle(count, reason) for count, reason in found))


def _single(text: str) -> Reading | None:
    """One reason that stands for itself: a quota, a gate, a volume, an empty cluster."""
    if _QUOTA.search(text):
        return Reading(About.POD, (Obstacle(Cause.QUOTA, 0, text),))
    found = _obstacle(0, text.rstrip(". "))
    return Reading(About.POD, (found,)) if found.cause in _ALONE else None


def _items(text: str, total: int) -> Iterator[tuple[int, str]]:
    """Count and reason of each item; a reason without a count holds for all."""
    for part in _BETWEEN.split(text):
        match = _ITEM.match(part.strip(" .,"))
        if match is not None and match["reason"]:
            yield int(match["count"] or total), match["reason"]


def _obstacle(count: int, reason: str) -> Obstacle:
    taint = _TAINT.search(reason)
    if taint is not None:
        return _taint(count, taint["taint"] or "")
    short = _INSUFFICIENT.match(reason)
    if short is not None:
        return _insufficient(count, short["resource"])
    for pattern, cause in _REASONS:
        match = pattern.search(reason)
        if match is not None:
            return Obstacle(cause, count, match.groupdict().get("detail") or "")
    return Obstacle(Cause.OTHER, count, reason)


def _taint(count: int, text: str) -> Obstacle:
    key, _, value = (part.strip() for part in text.partition(":"))
    cause = taint_cause(key)
    if cause is Cause.TAINT:
        return Obstacle(cause, count, f"{key}={value}" if value else key)
    return Obstacle(cause, count, _PRESSURES.get(key, ""))


def _insufficient(count: int, resource: str) -> Obstacle:
    if _is_gpu(resource):
        return Obstacle(Cause.GPU, count)
    cause = _RESOURCES.get(resource)
    return Obstacle(cause, count) if cause else Obstacle(Cause.RESOURCE, count, resource)


def _is_gpu(resource: str) -> bool:
    name = resource.removeprefix("requests.").removeprefix("limits.")
    return name.startswith(("nvidia.com/gpu", "nvidia.com/mig-", "amd.com/gpu"))


def _merged(obstacles: Iterable[Obstacle]) -> tuple[Obstacle, ...]:
    counts: dict[tuple[Cause, str], int] = {}
    for obstacle in obstacles:
        key = (obstacle.cause, obstacle.detail)
        counts[key] = counts.get(key, 0) + obstacle.count
    found = (Obstacle(cause, count, detail) for (cause, detail), count in counts.items())
    return tuple(sorted(found, key=lambda obstacle: _RANK[obstacle.cause]))


def _amounts(text: str) -> dict[str, str]:
    pairs = (part.strip().partition("=") for part in text.split(","))
    return {name: value for name, _, value in pairs if value}


_RANK = {cause: rank for rank, cause in enumerate(Cause)}

_PREFIX = re.compile(r"^(?:(?:Unschedulable|FailedScheduling|SchedulerError|\(combined from similar events\)): )+")
"""What others put in front: Argo and clients a reason, recorders a remark on many alike (events_cache.go)."""
_NODES = re.compile(r"^\d+/(?P<total>\d+) nodes are available:? ?(?P<rest>.*)$")
_OLD_NODES = re.compile(r"^No nodes are available that match all of the (?:following )?predicates:+ ?(?P<rest>.*)$")
_OLD_ITEM = re.compile(r"(?P<reason>[^\s,()][^,()]*?) \((?P<count>\d+)\)")
_NOT_TRIGGERED = re.compile(
    r"^pod didn't trigger scale-?up(?: \(it wouldn't fit if a new node is added\))?(?::|$) ?(?P<rest>.*)$",
    re.IGNORECASE,
)
_TAIL = re.compile(r"[.,]* ?(?:no new claims to deallocate|still not schedulable|preemption:)")
_BETWEEN = re.compile(r", (?=\d+ )")
_ITEM = re.compile(r"^(?:(?P<count>\d+) )?(?P<reason>.*)$")
_INSUFFICIENT = re.compile(r"^Insufficient (?P<resource>\S+)$")
_TAINT = re.compile(
    r"had (?:untolerated )?taints?(?:\(s\))?(?: \{(?P<taint>[^}]*)\})?(?:,? that the pod didn't tolerate)?$"
)
_SCALE_UP = re.compile(r"\{(?P<group>\S+) (?P<before>\d+)->(?P<after>\d+) \(max: (?P<largest>\d+)\)\}")
_QUOTA = re.compile(
    r"exceeded quota: (?P<quota>[^,\s]+), requested: (?P<requested>.*?), used: (?P<used>.*?), limited: (?P<limited>.*)$"
)

_RESOURCES = {
    "cpu": Cause.CPU,
    "memory": Cause.MEMORY,
    "ephemeral-storage": Cause.STORAGE,
    "pods": Cause.PODS,
}

_TAINTS = {
    "node.kubernetes.io/not-ready": Cause.NOT_READY,
    "node.kubernetes.io/unreachable": Cause.UNREACHABLE,
    "node.kubernetes.io/unschedulable": Cause.CORDONED,
    "node.kubernetes.io/memory-pressure": Cause.PRESSURE,
    "node.kubernetes.io/disk-pressure": Cause.PRESSURE,
    "node.kubernetes.io/pid-pressure": Cause.PRESSURE,
    "node.kubernetes.io/network-unavailable": Cause.STARTING,
    "node.cloudprovider.kubernetes.io/uninitialized": Cause.STARTING,
    "node.cloudprovider.kubernetes.io/shutdown": Cause.LEAVING,
    "node.kubernetes.io/out-of-service": Cause.LEAVING,
    "karpenter.sh/unregistered": Cause.STARTING,
    "karpenter.sh/disrupted": Cause.LEAVING,
    "ToBeDeletedByClusterAutoscaler": Cause.LEAVING,
    "DeletionCandidateOfClusterAutoscaler": Cause.LEAVING,
    "node-role.kubernetes.io/control-plane": Cause.CONTROL_PLANE,
    "node-role.kubernetes.io/master": Cause.CONTROL_PLANE,
}
_STARTUP_TAINTS = ("startup-taint.cluster-autoscaler.kubernetes.io/", "ignore-taint.cluster-autoscaler.kubernetes.io/")
_PRESSURES = {
    "node.kubernetes.io/memory-pressure": "memory",
    "node.kubernetes.io/disk-pressure": "disk",
    "node.kubernetes.io/pid-pressure": "process ids",
}

_ALONE = frozenset(
    {
        Cause.GATED,
        Cause.NO_NODES,
        Cause.VOLUME_MISSING,
        Cause.VOLUME_UNBOUND,
        Cause.VOLUME_NONE,
        Cause.CLAIM,
    }
)
"""Causes that a message may consist of."""

_REASONS: tuple[tuple[re.Pattern[str], Cause], ...] = tuple(
    (re.compile(pattern), cause)
    for pattern, cause in (
        (r"non-empty scheduling gates", Cause.GATED),
        (r"^no nodes available to schedule pods", Cause.NO_NODES),
        (r"persistentvolumeclaim \"(?P<detail>[^\"]+)\" (?:not found|is being deleted)", Cause.VOLUME_MISSING),
        (r"unbound immediate PersistentVolumeClaims", Cause.VOLUME_UNBOUND),
        (r"didn't find available persistent volumes to bind", Cause.VOLUME_NONE),
        (r"did not have enough free storage", Cause.VOLUME_NONE),
        (r"volume node affinity conflict|no available volume zone|NoVolumeZoneConflict", Cause.VOLUME_PLACE),
        (r"exceed max volume count|MaxVolumeCount", Cause.VOLUME_COUNT),
        (r"ReadWriteOncePod access mode|no available disk", Cause.VOLUME_BUSY),
        (r"in backoff after failed scale-up", Cause.GROUP_BACKOFF),
        (r"max node group size reached", Cause.GROUP_MAX),
        (r"max cluster (?P<detail>.+?) limit reached", Cause.CLUSTER_LIMIT),
        (r"not ready for scale-?up", Cause.GROUP_UNREADY),
        (r"cannot allocate all claims|resourceclaim|resource claim", Cause.CLAIM),
        (r"[Tt]oo many pods", Cause.PODS),
        (r"free ports|PodFitsHostPorts", Cause.PORTS),
        (r"affinity rules|topology spread constraints|pod affinity/anti-affinity", Cause.NEIGHBOURS),
        (r"were unschedulable", Cause.CORDONED),
        (r"were not ready|NodeNotReady", Cause.NOT_READY),
        (r"(?P<detail>memory|disk|pid) pressure", Cause.PRESSURE),
        (r"PodToleratesNodeTaints", Cause.TAINT),
        (r"didn't match .*(?:node (?:affinity|selector)|host ?name|node name)|MatchNodeSelector", Cause.SELECTOR),
        (r"didn't satisfy plugin\(?s?\)? \[?NodeAffinity", Cause.SELECTOR),
    )
)
