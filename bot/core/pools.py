"""Where the GPUs are, who uses them, who waits for one: what is held of nodes, pods, events and the autoscaler.

`observe` takes in what a watch saw; `pools_view` says what is to be shown. Each of the four sources is optional: what
may not be looked at is `HIDDEN`, and nothing is concluded from its silence.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import assert_never

from bot.core.autoscaler import (
    AutoscalerStatus,
    ErrorKind,
    ScaleError,
    read_status,
    shorten,
    without_probes,
    written_at,
)
from bot.core.scheduling import read_scale_up
from bot.core.sightings import (
    GpuPod,
    NodeSeen,
    NodesListed,
    Note,
    NoteSeen,
    NotesListed,
    PodSeen,
    PodsListed,
    PoolNode,
    Sighting,
    Source,
    SourceHidden,
    Standing,
    StatusSeen,
)

KEPT_SUBJECTS = 2000
"""Pods, nodes and groups whose events are kept; those of a pod go with it."""

KEPT_ERRORS = 50
"""Node groups whose last error is kept."""


class Sight(StrEnum):
    """How much of a source is seen."""

    PENDING = "pending"  # not listed yet
    EVERYWHERE = "everywhere"
    OURS = "ours"  # the namespace of the workflows only
    NOTHING = "nothing"  # it may be seen, and there is none
    HIDDEN = "hidden"  # the rights are missing


@dataclass(frozen=True)
class GroupError:
    """The last error of a node group, and when it was seen to be over."""

    error: ScaleError
    over: float | None = None


@dataclass
class Pools:
    """What is held of nodes, pods and the autoscaler. Owned by the loop."""

    nodes: dict[str, PoolNode] = field(default_factory=dict)
    pods: dict[str, GpuPod] = field(default_factory=dict)
    """Pods that ask for GPUs, by uid."""
    placeholders: dict[str, GpuPod] = field(default_factory=dict)
    """Those of them that do no work and give way, by uid."""
    holders: dict[str, set[str]] = field(default_factory=dict)
    """uids of the pods with GPUs on each node."""
    of_workflow: dict[str, set[str]] = field(default_factory=dict)
    """uids of the pods with GPUs of each workflow, by namespace and name."""
    gpu_since: dict[str, float] = field(default_factory=dict)
    """Nodes whose GPU was seen to come, and when: no field of a node tells it."""
    notes: OrderedDict[str, dict[str, Note]] = field(default_factory=OrderedDict)
    """The newest Event of each reason, by the uid of its pod or the name of what else it is about."""
    sights: dict[Source, Sight] = field(default_factory=dict)
    status: AutoscalerStatus | None = None
    status_text: str | None = None
    """The text that `status` was read from, without its probe times."""
    status_at: float | None = None
    """When the autoscaler wrote it last, by its own clock."""
    errors: OrderedDict[str, GroupError] = field(default_factory=OrderedDict)
    group_pools: dict[str, str] = field(default_factory=dict)
    """Pools of node groups, learned from the labels of nodes and from the pods for which a group grew."""
    idle_since: dict[str, float] = field(default_factory=dict)
    """Nodes whose last pod with a GPU was seen to go, and when."""

    def sight(self, source: Source) -> Sight:
        return self.sights.get(source, Sight.PENDING)

    @property
    def reads_status(self) -> bool:
        """Whether the autoscaler says which of its groups are broken, and so which are not."""
        return self.status is not None and self.status.running and not self.status.problem

    def note(self, subject: str, reason: str) -> Note | None:
        """The newest Event of that reason."""
        return self.notes.get(subject, {}).get(reason)


def observe(pools: Pools, seen: Sighting, now: float) -> None:
    """Take in what a watch saw."""
    match seen:
        case NodesListed():
            _list_nodes(pools, seen)
        case PodsListed():
            _list_pods(pools, seen, now)
        case NotesListed():
            pools.sights[Source.EVENTS] = Sight.EVERYWHERE if seen.everywhere else Sight.OURS
            for note in seen.notes:
                _take_note(pools, note)
        case NodeSeen():
            if seen.gone:
                _drop_node(pools, seen.node)
            else:
                _take_node(pools, seen.node, now)
        case PodSeen():
            (_drop_pod if seen.gone else _take_pod)(pools, seen.pod, now)
        case NoteSeen():
            _take_note(pools, seen.note)
        case StatusSeen():
            _take_status(pools, seen, now)
        case SourceHidden():
            _hide(pools, seen.source)
        case _:
            assert_never(seen)


def _list_nodes(pools: Pools, seen: NodesListed) -> None:
    pools.sights[Source.NODES] = Sight.EVERYWHERE
    present = {node.metadata.name for node in seen.nodes}
    for node in [node for name, node in pools.nodes.items() if name not in present]:
        _drop_node(pools, node)
    for node in seen.nodes:
        _take_node(pools, node, None)


def _list_pods(pools: Pools, seen: PodsListed, now: float) -> None:
    pools.sights[Source.PODS] = Sight.EVERYWHERE if seen.everywhere else Sight.OURS
    present = {pod.metadata.uid for pod in seen.pods}
    for pod in [pod for uid, pod in pools.pods.items() if uid not in present]:
        _drop_pod(pools, pod, now)
    for pod in seen.pods:
        _take_pod(pools, pod, now)


def _take_node(pools: Pools, node: PoolNode, now: float | None) -> None:
    """`now`: None for one of a list, which may have been so for long."""
    held = pools.nodes.get(node.metadata.name)
    if not node.gpus:
        pools.gpu_since.pop(node.metadata.name, None)
    elif now is not None and (held is None or not held.gpus):
        pools.gpu_since[node.metadata.name] = now
    pools.nodes[node.metadata.name] = node
    if node.group and node.pool:
        pools.group_pools[node.group] = node.pool


def _drop_node(pools: Pools, node: PoolNode) -> None:
    pools.nodes.pop(node.metadata.name, None)
    pools.idle_since.pop(node.metadata.name, None)
    pools.gpu_since.pop(node.metadata.name, None)


def _take_pod(pools: Pools, pod: GpuPod, now: float) -> None:
    if pod.standing is Standing.ENDED:
        _drop_pod(pools, pod, now)
        return
    held = pools.pods.get(pod.metadata.uid)
    if held is not None and held.node != pod.node:
        _let_go(pools, held)
    pools.pods[pod.metadata.uid] = pod
    if pod.until is not None:
        pools.placeholders[pod.metadata.uid] = pod
    if pod.workflow:
        pools.of_workflow.setdefault(workflow_key(pod.metadata.namespace, pod.workflow), set()).add(pod.metadata.uid)
    if pod.node:
        pools.holders.setdefault(pod.node, set()).add(pod.metadata.uid)
        pools.idle_since.pop(pod.node, None)
    asked = pools.note(pod.metadata.uid, "TriggeredScaleUp")
    if asked is not None:
        _learn(pools, pod, asked)


def _drop_pod(pools: Pools, gone: GpuPod, now: float) -> None:
    uid = gone.metadata.uid
    pod = pools.pods.pop(uid, None)
    pools.placeholders.pop(uid, None)
    pools.notes.pop(uid, None)
    if pod is not None and pod.workflow:
        key = workflow_key(pod.metadata.namespace, pod.workflow)
        pools.of_workflow[key].discard(uid)
        if not pools.of_workflow[key]:
            del pools.of_workflow[key]
    if pod is not None and pod.node and not _let_go(pools, pod):
        pools.idle_since[pod.node] = now


def _let_go(pools: Pools, pod: GpuPod) -> set[str]:
    """Take a pod from its node; the pods that are left there."""
    left = pools.holders.get(pod.node, set())
    left.discard(pod.metadata.uid)
    if not left:
        pools.holders.pop(pod.node, None)
    return left


def _take_note(pools: Pools, note: Note) -> None:
    held = pools.note(note.subject, note.reason)
    newest = held if held is not None and (held.at or 0.0) > (note.at or 0.0) else note
    firsts = [each.first for each in (held, note) if each is not None and each.first is not None]
    kept = replace(newest, first=min(firsts, default=None))
    pools.notes.setdefault(note.subject, {})[note.reason] = kept
    pools.notes.move_to_end(note.subject)
    while len(pools.notes) > KEPT_SUBJECTS:
        pools.notes.popitem(last=False)
    pod = pools.pods.get(note.subject)
    if note.reason == "TriggeredScaleUp" and pod is not None:
        _learn(pools, pod, note)
    if note.kind == "ConfigMap":
        _group_failed(pools, note)


def _learn(pools: Pools, pod: GpuPod, note: Note) -> None:
    """A group that grows for a pod has nodes of the pool that the pod insists on."""
    for grown in read_scale_up(note.message) if pod.pool else ():
        pools.group_pools[grown.group] = pod.pool


def _group_failed(pools: Pools, note: Note) -> None:
    """What an Event tells of a group. An older one than what is known changes nothing."""
    name, error = _read_failure(note)
    if not name:
        return
    held = pools.errors.get(name)
    at = note.at or 0.0
    if held is None or at > (held.error.at.timestamp() if held.error.at else 0.0):
        _keep_error(pools, name, GroupError(replace(error, at=_moment(note.at)), _over_since(pools, name, at)))


def _read_failure(note: Note) -> tuple[str, ScaleError]:
    """The group and what is wrong with it; "" where it can't be read.

    `Failed adding 1 nodes to group G due to CLASS.CODE; source errors: …` (clusterstate.go),
    `Scale-up failed for group G: …` (executor.go), `Nodes added to group G failed to register within 15m0s`.
    """
    if note.reason == "ScaleUpFailed":
        found = _ADDING.search(note.message)
        return (found["group"], shorten(found["text"], found["code"])) if found else ("", ScaleError(ErrorKind.OTHER))
    _, _, rest = note.message.partition("group ")
    timed_out = note.reason == "ScaleUpTimedOut"
    name, _, text = rest.partition(" " if timed_out else ": ")
    return name, shorten(f"Nodes {text}" if timed_out else text)


_ADDING = re.compile(
    r"group (?P<group>\S+) due to (?:(?:OutOfResource|Other|\d+)\.)?(?P<code>.*?); source errors: ?(?P<text>.*)"
)


def _over_since(pools: Pools, name: str, at: float) -> float | None:
    """When an error that an Event tells of was over: a status that was written later, and names none, knows better."""
    written = pools.status_at
    if pools.status is None or not pools.reads_status or written is None or written <= at:
        return None
    return None if any(group.name == name and group.error is not None for group in pools.status.groups) else written


def _keep_error(pools: Pools, name: str, error: GroupError) -> None:
    pools.errors[name] = error
    pools.errors.move_to_end(name)
    while len(pools.errors) > KEPT_ERRORS:
        pools.errors.popitem(last=False)


def _take_status(pools: Pools, seen: StatusSeen, now: float) -> None:
    pools.sights[Source.AUTOSCALER] = Sight.EVERYWHERE if seen.there else Sight.NOTHING
    if not seen.there:
        pools.status = pools.status_text = pools.status_at = None
        return
    written = written_at(seen.text or "")
    pools.status_at = written.timestamp() if written else None
    text = without_probes(seen.text or "")
    if pools.status is not None and text == pools.status_text:
        return  # it is written every ten seconds, and mostly says the same
    pools.status, pools.status_text = read_status(seen.text), text
    broken = {group.name: group.error for group in pools.status.groups if group.error is not None}
    for name, error in broken.items():
        held = pools.errors.get(name)
        before = held.error if held is not None and held.over is None else ScaleError(ErrorKind.OTHER)
        # the text form names no reason; an event, or the status before, may have named it
        told = error if error.code or error.text else before
        at = error.at or before.at or _moment(now)
        _keep_error(pools, name, GroupError(replace(told, at=at)))
    if pools.status.running and not pools.status.problem:
        for name, held in pools.errors.items():
            if name not in broken and held.over is None:
                pools.errors[name] = replace(held, over=now)


def _hide(pools: Pools, source: Source) -> None:
    pools.sights[source] = Sight.HIDDEN
    match source:
        case Source.NODES:
            pools.nodes.clear()
            pools.idle_since.clear()
            pools.gpu_since.clear()
        case Source.PODS:
            pools.pods.clear()
            pools.placeholders.clear()
            pools.holders.clear()
            pools.of_workflow.clear()
        case Source.EVENTS:
            pools.notes.clear()
        case Source.AUTOSCALER:
            pools.status = pools.status_text = pools.status_at = None
        case _:
            assert_never(source)


def workflow_key(namespace: str, name: str) -> str:
    """What a workflow is called in `Pools.of_workflow`."""
    return f"{namespace}/{name}"


def pods_of(pools: Pools, namespace: str, workflow: str) -> list[GpuPod]:
    """The pods with GPUs of a workflow that have not ended, oldest first."""
    uids = pools.of_workflow.get(workflow_key(namespace, workflow), ())
    return sorted((pools.pods[uid] for uid in uids), key=lambda pod: (pod.created or 0.0, pod.metadata.uid))


def _moment(at: float | None) -> datetime | None:
    return datetime.fromtimestamp(at, UTC) if at is not None else None
