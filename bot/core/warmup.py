"""The way of a run from being asked for to its tests: which step it is at, since when, and how long each one took.

    asked -> queue -> (scale-up -> node -> ready -> GPU) -> place -> image -> start

What stands in brackets belongs to a cold start. Everything is read anew from the Workflow, its pod, the pod's node and
Events at each look. Only what goes with a pod that has ended is kept from the look before: the warm-up pod is gone by
the time the test pod waits for its image. A moment that nobody saw is None, and its step has no length.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from bot.core.attempt import is_unplaced, test_node, warmup_node
from bot.core.autoscaler import ScaleError
from bot.core.history import History, Start
from bot.core.pools import Pools, Sight, pods_of
from bot.core.settings import Settings
from bot.core.sightings import GpuPod, NodeState, PoolNode, Source
from bot.core.workflow import Workflow, instant

LATE_FACTOR = 2.0
"""A step is late after so many times its usual length, and not before `warmup_late_seconds`."""


class Step(StrEnum):
    """A step, by what ends it."""

    QUEUE = "queue"  # its first pod is made
    SCALE_UP = "scale_up"  # the autoscaler asks for a node
    NODE = "node"  # the node registers
    READY = "ready"
    GPU = "gpu"  # the node's GPU is allocatable
    PLACE = "place"  # the pod gets the node
    IMAGE = "image"  # the test image is there; the warm-up pod's own run is in it
    START = "start"  # the tests begin


COMING = frozenset({NodeState.NOT_READY, NodeState.STARTING, NodeState.WITHOUT_GPU})
"""States of a node that is on its way up."""


@dataclass(frozen=True)
class Warmup:
    """How far one attempt has come: when each step ended, in Unix seconds, as far as it was seen."""

    attempt: str
    pool: str
    asked: float | None = None
    behind: tuple[str, ...] = ()
    """Short names of the runs that it waited for in the queue."""
    queue: float | None = None
    scale_up: float | None = None
    node: float | None = None
    ready: float | None = None
    gpu: float | None = None
    place: float | None = None
    image: float | None = None
    start: float | None = None
    placed: bool = False
    """Argo says that its pod has a place, whether that was seen of the pod or not."""
    cold: bool = False
    sees_nodes: bool = False
    sees_events: bool = False
    again: float | None = None
    """Since when its next pod waits for a place, which it had before."""
    refused: str = ""
    """The autoscaler's words on why no node comes for it."""
    failed: ScaleError | None = None
    """What the provider said when it made no node for the pool."""
    retried: bool = False
    """That is over, and no node came since: the autoscaler may be at its next try."""
    trouble: str = ""
    """The kubelet's words on an image that does not come."""

    @property
    def over(self) -> bool:
        """Nothing more is to be learned of it."""
        return self.start is not None and self.image is not None

    def end(self, step: Step) -> float | None:
        """When a step ended; None for one that lasts, or that nobody saw the end of."""
        found: float | None = getattr(self, step.value)
        return None if step is Step.PLACE and self.again is not None else found


@dataclass(frozen=True)
class Leg:
    """One step as it is shown: since when, until when, how long it usually takes."""

    step: Step
    begin: float | None
    end: float | None
    usual: float | None = None
    current: bool = False
    late: bool = False

    @property
    def seconds(self) -> int | None:
        """How long it took, None while it lasts."""
        return None if self.begin is None or self.end is None else int(self.end - self.begin)


@dataclass(frozen=True)
class Way:
    """All steps of a run: what is shown of it."""

    legs: tuple[Leg, ...]
    cold: bool
    behind: tuple[str, ...] = ()
    refused: str = ""
    failed: ScaleError | None = None
    trouble: str = ""
    starts: float | None = None
    """When its tests begin, if what is left takes as long as usual; None where that is not known or over."""
    seconds: int | None = None
    """From its first pod to its tests, once they have begun."""
    retried: bool = False
    """What `failed` tells was of the try before."""

    @property
    def lengths(self) -> dict[str, int]:
        """Seconds by step, of those whose length is known."""
        return {leg.step.value: leg.seconds for leg in self.legs if leg.seconds is not None}

    @property
    def late(self) -> bool:
        return any(leg.late for leg in self.legs)

    @property
    def current(self) -> Leg | None:
        """The step that it is at; None once its tests have begun."""
        return next((leg for leg in self.legs if leg.current), None)


def follow(
    workflow: Workflow, pools: Pools, before: Warmup | None, settings: Settings, behind: tuple[str, ...] = ()
) -> Warmup:
    """How far it has come by now. `before`: what the last look said; `behind`: for which runs it waits now."""
    pool = workflow.parameter(settings.parameters.pool) or settings.defaults.pool
    held = before if before is not None and before.attempt == workflow.attempt else None
    if held is None:
        before_it = before.behind if before is not None and not before.attempt else ()
        held = Warmup(workflow.attempt, pool, _seconds(workflow.metadata.creation_timestamp), before_it)
    if held.over:
        return held
    warm, test = warmup_node(workflow, settings), test_node(workflow, settings)
    first = warm or test
    if first is None:
        return replace(held, behind=behind or held.behind)
    argo = test or first
    seen = replace(
        held,
        queue=_seconds(first.started_at),
        placed=argo.phase != "Pending" or not is_unplaced(argo),
        sees_nodes=pools.sight(Source.NODES) is Sight.EVERYWHERE,
        sees_events=pools.sight(Source.EVENTS) in {Sight.EVERYWHERE, Sight.OURS},
    )
    pods = pods_of(pools, workflow.metadata.namespace, workflow.metadata.name)
    if held.start is not None:
        # the Event of the image may come after the pod's word that it runs
        return replace(held, image=_image(pools, pods[-1])) if pods else held
    if not pods:
        return replace(seen, refused="", trouble="") if seen.place is not None else seen
    pod = pods[-1]
    seen = replace(_asked(seen, pools, pod), trouble=pod.trouble)
    if seen.place is None:
        seen = _towards_a_place(seen, pools, pod)
    elif test is not None:
        seen = replace(seen, again=None if pod.node else pod.created)
    if test is not None and pod.placed_at is not None:
        seen = replace(seen, image=_image(pools, pod), start=pod.started_at)
    return seen


def _image(pools: Pools, pod: GpuPod) -> float | None:
    """When the image of its main container was there."""
    pulled = pools.note(pod.metadata.uid, "Pulled")
    return pulled.at if pulled is not None else None


def _asked(seen: Warmup, pools: Pools, pod: GpuPod) -> Warmup:
    """What the autoscaler said about its pod: of two words of one second the refusal counts.

    Of several scale-ups the first ends the step: each that fails is followed by another, and none of them is a node.
    """
    notes = [pools.note(pod.metadata.uid, r) for r in ("FailedScaleUp", "NotTriggerScaleUp", "TriggeredScaleUp")]
    last = max((note for note in notes if note), key=lambda note: note.at or 0.0, default=None)
    grown = pools.note(pod.metadata.uid, "TriggeredScaleUp")
    refused = last.message if last is not None and last.reason != "TriggeredScaleUp" and not pod.node else ""
    asked = [each for each in (seen.scale_up, grown.first if grown else None) if each is not None]
    return replace(seen, scale_up=min(asked, default=None), refused=refused)


def _towards_a_place(seen: Warmup, pools: Pools, pod: GpuPod) -> Warmup:
    """The node that it got, or the one that is on its way."""
    since = seen.queue or pod.created or 0.0
    node = pools.nodes.get(pod.node) if pod.node else _coming(pools, seen.pool, since)
    if node is None:
        empty = seen.sees_nodes and not any(each.pool == seen.pool for each in pools.nodes.values())
        cold = seen.scale_up is not None or (empty and not pod.node)
        return replace(seen, node=None, ready=None, gpu=None, cold=cold, place=pod.placed_at)
    # where nobody saw the GPU come: with the node, if that was there before, else when the pod got it
    unseen = node.ready_at if node.ready_at is not None and node.ready_at < since else pod.placed_at or node.ready_at
    gpu = pools.gpu_since.get(node.metadata.name, unseen) if node.gpus else None
    gpu = min(gpu, pod.placed_at) if gpu is not None and pod.placed_at is not None else gpu
    ends = (node.created, node.ready_at, gpu)
    cold = not pod.node or any(end is not None and end >= since for end in ends)
    return replace(seen, node=node.created, ready=node.ready_at, gpu=gpu, cold=cold, place=pod.placed_at)


def _coming(pools: Pools, pool: str, since: float) -> PoolNode | None:
    """The node of the pool that is on its way and furthest: made since the pod was, or not usable yet."""
    found = [
        node
        for node in pools.nodes.values()
        if node.pool == pool and (node.state in COMING or (node.state is NodeState.READY and _later(node, since)))
    ]
    return max(found, key=lambda node: (_STATES.index(node.state), -(node.created or 0.0)), default=None)


_STATES = (NodeState.NOT_READY, NodeState.STARTING, NodeState.WITHOUT_GPU, NodeState.READY)


def _later(node: PoolNode, since: float) -> bool:
    # times are whole seconds: one of the same second came after
    return node.created is not None and node.created >= since


def way(warmup: Warmup, history: History, settings: Settings, now: float) -> Way:
    """What is to be shown of it now."""
    usual = history.usual(warmup.pool, cold=warmup.cold)
    legs: list[Leg] = []
    at: float | None = warmup.asked
    for step in _steps(warmup):
        begin = warmup.again if step is Step.PLACE and warmup.again is not None else at
        end = warmup.end(step)
        done = end is not None or _passed(warmup, step)
        end = max(end, begin) if end is not None and begin is not None else end
        current = not done and not any(leg.current for leg in legs)
        expected = usual.steps.get(step.value)
        patient = step is Step.QUEUE or begin is None
        late = current and not patient and now >= (begin or 0.0) + late_after(expected, settings)
        legs.append(Leg(step, begin if done or current else None, end, expected, current, late))
        at = end if end is not None else at
    seconds = None
    if warmup.start is not None and warmup.queue is not None:
        seconds = max(0, int(warmup.start - warmup.queue))
    starts = _starts(legs, now)
    waits = warmup.place is None or warmup.again is not None
    refused, failed = (warmup.refused, warmup.failed) if waits else ("", None)
    retried = failed is not None and warmup.retried
    return Way(tuple(legs), warmup.cold, warmup.behind, refused, failed, warmup.trouble, starts, seconds, retried)


def late_after(usual: float | None, settings: Settings) -> float:
    """Seconds after which a step that usually takes so long is late."""
    return max(settings.warmup_late_seconds, LATE_FACTOR * (usual or 0.0))


def late_at(way: Way, settings: Settings) -> float | None:
    """When the step that it is at gets late; None where it is already, or there is none."""
    leg = way.current
    if leg is None or leg.begin is None or leg.late or leg.step is Step.QUEUE:
        return None
    return leg.begin + late_after(leg.usual, settings)


def finished(warmup: Warmup, run: str) -> Start | None:
    """The start to be remembered; None where it is not over, or its length is not known."""
    shown = way(warmup, History(), Settings(), 0.0)
    if shown.seconds is None or warmup.start is None:
        return None
    return Start(run, warmup.attempt, warmup.pool, warmup.cold, int(warmup.start), shown.seconds, shown.lengths)


def remembered(start: Start) -> Way:
    """What is left to show of a start that is over, from the history."""
    legs, at = [], 0.0
    for step in Step:
        seconds = start.steps.get(step.value)
        if seconds is not None:
            legs.append(Leg(step, at, at + seconds))
            at += seconds
    return Way(tuple(legs), start.cold, seconds=start.seconds)


def _steps(warmup: Warmup) -> list[Step]:
    """The steps of its kind of start, without those that can't be seen, or that were over before it asked."""
    steps = [Step.QUEUE]
    if warmup.cold:
        if warmup.scale_up is not None or (warmup.node is None and warmup.place is None and warmup.sees_events):
            steps.append(Step.SCALE_UP)
        if warmup.sees_nodes:
            since = warmup.queue or 0.0
            for step in (Step.NODE, Step.READY, Step.GPU):
                end = warmup.end(step)
                if (end is None and warmup.place is None) or (end is not None and end >= since):
                    steps.append(step)
    return [*steps, Step.PLACE, Step.IMAGE, Step.START]


def _passed(warmup: Warmup, step: Step) -> bool:
    """Whether a later step has ended, so that this one has as well, unseen."""
    order = list(Step)
    if step is Step.PLACE and warmup.again is not None:
        return False
    if warmup.placed and order.index(step) <= order.index(Step.PLACE):
        return True
    return any(warmup.end(later) is not None for later in order[order.index(step) + 1 :])


def _starts(legs: list[Leg], now: float) -> float | None:
    current = next((leg for leg in legs if leg.current), None)
    if current is None or current.begin is None or current.step is Step.QUEUE:
        return None
    left = [leg.usual for leg in legs[legs.index(current) :]]
    if any(usual is None for usual in left):
        return None
    at = current.begin + sum(usual or 0.0 for usual in left)
    return at if at > now else None


def _seconds(text: str | None) -> float | None:
    found = instant(text)
    return found.timestamp() if found else None
