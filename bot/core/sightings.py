"""What the watches of nodes, pods, events and the autoscaler's status saw, cut down to what is kept.

A watch's source turns each object into one of these as it is decoded, so that a cluster with thousands of pods costs a
few hundred bytes for each that asks for a GPU, and nothing for the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.core.kube import (
    Condition,
    KubeEvent,
    Meta,
    Node,
    Pod,
    PodSpec,
    PodStatus,
    Quantity,
    Taint,
    Toleration,
    is_slice,
    whole,
)
from bot.core.scheduling import Cause, taint_cause
from bot.core.settings import Settings
from bot.core.workflow import instant

ROLE_LABEL, PLACEHOLDER = "gputest.bot/role", "placeholder"
"""Label of a pod that keeps a node up and gives way, and its value."""

UNTIL_LABEL = "gputest.bot/until"
"""Label of such a pod: when its time is over, in whole Unix seconds."""

WORKFLOW_LABEL = "workflows.argoproj.io/workflow"
KUEUE_GATE = "kueue.x-k8s.io/"
SHARING_LABEL = "nvidia.com/gpu.sharing-strategy"
"""Set by NVIDIA's feature discovery: `time-slicing` or `mps` where one GPU counts as several."""

MAX_MESSAGE = 600
"""Characters kept of a message; the scheduler's longest ones repeat themselves."""

IMAGE_TROUBLE = frozenset(
    {"ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"}
)
"""Reasons of the kubelet for an image that does not come (kubelet/images/types.go)."""


class Source(StrEnum):
    """One thing that is watched, where the rights allow it."""

    NODES = "nodes"
    PODS = "pods"
    EVENTS = "events"
    AUTOSCALER = "autoscaler"


class NodeState(StrEnum):
    """What keeps a node from taking work; the first that holds."""

    SILENT = "silent"  # its kubelet does not report any more
    LEAVING = "leaving"
    CORDONED = "cordoned"
    NOT_READY = "not_ready"
    STARTING = "starting"
    WITHOUT_GPU = "without_gpu"
    READY = "ready"


@dataclass(frozen=True, slots=True)
class PoolNode:
    """A node of a pool."""

    metadata: Meta
    pool: str
    group: str
    """The provider's id of its pool, "" where no label tells it."""
    state: NodeState
    gpus: int
    shared: bool
    """Its GPUs are time-sliced or cut up: several pods count one each and share a card."""
    taints: tuple[Taint, ...]
    """Those that are somebody's will and no state of the node."""
    created: float | None
    ready_at: float | None = None
    """Since when it is ready, by its own clock."""


class Standing(StrEnum):
    """How far a pod is on its way to a GPU."""

    GATED = "gated"  # something holds it back before the scheduler: no demand for a node yet
    FRESH = "fresh"  # the scheduler has not looked at it
    UNPLACED = "unplaced"  # the scheduler found no node
    PLACED = "placed"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class GpuPod:
    """A pod that asks for GPUs."""

    metadata: Meta
    gpus: int
    standing: Standing
    node: str = ""
    pool: str = ""
    """The pool that it asks for, "" where it names none."""
    workflow: str = ""
    gates: tuple[str, ...] = ()
    message: str = ""
    """The scheduler's words."""
    trouble: str = ""
    """The kubelet's words on an image that does not come."""
    ending: bool = False
    created: float | None = None
    tolerations: tuple[Toleration, ...] = ()
    placed_at: float | None = None
    """When it got its node. Kept of pods of workflows only, as is the next."""
    started_at: float | None = None
    """When its main container began."""
    until: float | None = None
    """Of a placeholder: when its time is over. None for every pod that does work."""

    @property
    def by_kueue(self) -> bool:
        return any(gate.startswith(KUEUE_GATE) for gate in self.gates)

    @property
    def waits_for_node(self) -> bool:
        """Demand for a node: what is gated, ending or placed is none."""
        return self.standing in {Standing.FRESH, Standing.UNPLACED} and not self.ending


@dataclass(frozen=True, slots=True)
class Note:
    """An Event about a pod, a node or the autoscaler."""

    metadata: Meta
    reason: str
    kind: str
    subject: str
    """uid of the pod it is about; for other kinds, or without a uid, the name."""
    message: str
    at: float | None
    """When it happened last."""
    times: int
    first: float | None = None
    """When one of this reason happened first."""


@dataclass(frozen=True)
class NodesListed:
    """All nodes of all pools: what is not among them is gone."""

    nodes: tuple[PoolNode, ...]


@dataclass(frozen=True)
class NodeSeen:
    node: PoolNode
    gone: bool = False


@dataclass(frozen=True)
class PodsListed:
    """All pods that ask for GPUs: of the whole cluster, or of our namespace only."""

    pods: tuple[GpuPod, ...]
    everywhere: bool


@dataclass(frozen=True)
class PodSeen:
    pod: GpuPod
    gone: bool = False


@dataclass(frozen=True)
class NotesListed:
    notes: tuple[Note, ...]
    everywhere: bool


@dataclass(frozen=True)
class NoteSeen:
    note: Note


@dataclass(frozen=True)
class StatusSeen:
    """The autoscaler's ConfigMap as it is; `there` is False where it does not exist."""

    text: str | None
    there: bool = True


@dataclass(frozen=True)
class SourceHidden:
    """The rights for this source are missing."""

    source: Source


Sighting = NodesListed | NodeSeen | PodsListed | PodSeen | NotesListed | NoteSeen | StatusSeen | SourceHidden


POD_REASONS = frozenset({"FailedScheduling", "TriggeredScaleUp", "NotTriggerScaleUp", "FailedScaleUp"})
IMAGE_REASONS = frozenset({"Pulled"})
MAIN, MAIN_PATH = "main", "spec.containers{main}"
"""The container of a workflow's pod that does its work, and how the kubelet's Events name it."""
GROUP_REASONS = frozenset({"ScaleUpFailed", "FailedToScaleUpGroup", "ScaleUpTimedOut"})
NODE_REASONS = frozenset({"ScaleDown"})


def pool_node(node: Node, settings: Settings) -> PoolNode:
    """What is kept of a node."""
    labels = node.metadata.labels or {}
    taints = (node.spec.taints if node.spec else None) or []
    blocking = [taint for taint in taints if taint.effect != "PreferNoSchedule"]
    gpus = sum(_allocatable(node, resource) for resource in settings.gpu_resources)
    slices = sum(_allocatable(node, name) for name in _amounts(node) if is_slice(name))
    return PoolNode(
        metadata=_brief(node.metadata),
        pool=labels.get(settings.pool_label, ""),
        group=labels.get(settings.pool_id_label, ""),
        state=_node_state(node, {taint_cause(taint.key) for taint in blocking}, gpus + slices),
        gpus=gpus + slices,
        shared=bool(slices) or labels.get(SHARING_LABEL, "none") not in {"none", ""},
        taints=tuple(taint for taint in blocking if taint_cause(taint.key) is Cause.TAINT),
        created=_seconds(node.metadata.creation_timestamp),
        ready_at=_ready_at(node),
    )


def _ready_at(node: Node) -> float | None:
    ready = _condition(node.status.conditions if node.status else None, "Ready")
    return _seconds(ready.last_transition_time) if ready is not None and ready.status == "True" else None


def _allocatable(node: Node, resource: str) -> int:
    return whole(_amounts(node).get(resource, 0))


def _amounts(node: Node) -> dict[str, Quantity]:
    return (node.status.allocatable if node.status else None) or {}


def _node_state(node: Node, causes: set[Cause], gpus: int) -> NodeState:
    ready = _condition(node.status.conditions if node.status else None, "Ready")
    status = ready.status if ready else "False"
    if status == "Unknown" or Cause.UNREACHABLE in causes:
        return NodeState.SILENT
    if Cause.LEAVING in causes:
        return NodeState.LEAVING
    if Cause.CORDONED in causes or (node.spec is not None and node.spec.unschedulable):
        return NodeState.CORDONED
    if status != "True" or Cause.NOT_READY in causes:
        return NodeState.NOT_READY
    if Cause.STARTING in causes:
        return NodeState.STARTING
    return NodeState.READY if gpus else NodeState.WITHOUT_GPU


def gpu_pod(pod: Pod, settings: Settings) -> GpuPod | None:
    """What is kept of a pod; None for one that asks for no GPU."""
    gpus = sum(pod.ask(resource) for resource in [*settings.gpu_resources, *pod.slices()])
    if not gpus:
        return None
    spec, status = pod.spec or PodSpec(), pod.status or PodStatus()
    scheduled = _condition(status.conditions, "PodScheduled")
    standing = _standing(spec, status, scheduled)
    labels = pod.metadata.labels or {}
    workflow = labels.get(WORKFLOW_LABEL, "")
    placed = standing is Standing.PLACED and bool(workflow)
    return GpuPod(
        metadata=_brief(pod.metadata),
        gpus=gpus,
        standing=standing,
        node=spec.node_name or "",
        pool=_asked_pool(spec, settings.pool_label),
        workflow=workflow,
        gates=tuple(gate.name for gate in spec.scheduling_gates or []),
        message=_cut(scheduled.message) if scheduled and standing is Standing.UNPLACED else "",
        trouble=_image_trouble(status),
        ending=bool(pod.metadata.deletion_timestamp),
        created=_seconds(pod.metadata.creation_timestamp),
        tolerations=tuple(spec.tolerations or ()) if standing is Standing.UNPLACED else (),
        placed_at=_seconds(scheduled.last_transition_time) if scheduled is not None and placed else None,
        started_at=_started_at(status) if placed else None,
        until=_until(labels) if labels.get(ROLE_LABEL) == PLACEHOLDER else None,
    )


def _until(labels: dict[str, str]) -> float:
    """When a placeholder's time is over; at once where its label can't be read."""
    text = labels.get(UNTIL_LABEL, "")
    return float(text) if text.isascii() and text.isdecimal() else 0.0


def _started_at(status: PodStatus) -> float | None:
    for container in status.container_statuses or []:
        if container.name == MAIN and container.state is not None and container.state.running is not None:
            return _seconds(container.state.running.started_at)
    return None


def _standing(spec: PodSpec, status: PodStatus, scheduled: Condition | None) -> Standing:
    if status.phase in {"Succeeded", "Failed"}:
        return Standing.ENDED
    if spec.node_name or (scheduled is not None and scheduled.status == "True"):
        return Standing.PLACED
    if spec.scheduling_gates:
        return Standing.GATED
    # the condition of a gate that was just taken away is stale: the scheduler has not looked yet
    if scheduled is None or scheduled.reason == "SchedulingGated" or not scheduled.message:
        return Standing.FRESH
    return Standing.UNPLACED


def _asked_pool(spec: PodSpec, label: str) -> str:
    """The pool by nodeSelector, or by a required affinity that names one value only."""
    if spec.node_selector and label in spec.node_selector:
        return spec.node_selector[label]
    required = spec.affinity.node_affinity.required if spec.affinity and spec.affinity.node_affinity else None
    found = {
        value
        for term in (required.node_selector_terms if required else None) or []
        for expression in term.match_expressions or []
        if expression.key == label and expression.operator == "In"
        for value in expression.values or []
    }
    return found.pop() if len(found) == 1 else ""


def _image_trouble(status: PodStatus) -> str:
    for container in [*(status.init_container_statuses or []), *(status.container_statuses or [])]:
        waiting = container.state.waiting if container.state else None
        if waiting is not None and waiting.reason in IMAGE_TROUBLE:
            return _cut(f"{waiting.reason}: {waiting.message}" if waiting.message else waiting.reason)
    return ""


def note(event: KubeEvent) -> Note | None:
    """What is kept of an Event; None for those that tell nothing about GPUs and nodes."""
    reason, about = event.reason or "", event.involved_object
    of_image = about.kind == "Pod" and reason in IMAGE_REASONS and about.field_path == MAIN_PATH
    known = {"Pod": POD_REASONS, "ConfigMap": GROUP_REASONS, "Node": NODE_REASONS}.get(about.kind, frozenset())
    if reason not in known and not of_image:
        return None
    when, first = event.when, event.first
    return Note(
        metadata=_brief(event.metadata),
        reason=reason,
        kind=about.kind,
        subject=(about.uid if about.kind == "Pod" else "") or about.name,
        message=_cut(event.message),
        at=when.timestamp() if when else None,
        times=event.times,
        first=first.timestamp() if first else None,
    )


def _brief(metadata: Meta) -> Meta:
    """The names alone: labels are read and let go."""
    return Meta(metadata.name, metadata.namespace, metadata.uid, metadata.resource_version)


def _condition(conditions: list[Condition] | None, kind: str) -> Condition | None:
    return next((c for c in conditions or [] if c.type == kind), None)


def _seconds(text: str | None) -> float | None:
    found = instant(text)
    return found.timestamp() if found else None


def _cut(text: str | None) -> str:
    return " ".join((text or "").split())[:MAX_MESSAGE]
