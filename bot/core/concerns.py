"""What is wrong with the GPUs now: each kind of alert, from what is held of pools, pods and runs.

Nothing is concluded from what can't be seen: a kind whose sources are missing is not `known`, and what was said of it
stays open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from bot.core.alerts import Concern, Found, Ledger
from bot.core.autoscaler import ErrorKind, ScaleError
from bot.core.card import Stage, short_name, stage_of, wants_posts
from bot.core.history import History
from bot.core.pools import GroupError, Pools, Sight
from bot.core.pools_view import PROVISION_SECONDS, NodeView, view
from bot.core.runs import Run
from bot.core.scheduling import About, Cause, Reading, read_reason
from bot.core.settings import AlertKind, Settings
from bot.core.sightings import GpuPod, NodeState, PoolNode, Source, Standing

ERROR_SECONDS = 1800.0
"""How long a failed scale-up counts where no status says that it is over: the autoscaler's longest backoff."""

NAMED = 3
"""Pods, nodes or runs that an alert names."""


class Misfit(StrEnum):
    """Why no pool can take a pod."""

    NO_POOL = "no_pool"  # it asks for a pool that nobody knows
    TAINT = "taint"  # the nodes of its pool have a taint that it does not tolerate
    SELECTOR = "selector"  # no node is of the kind that it asks for, and none will come
    CAPABILITY = "capability"  # it is built for another GPU than its pool has


@dataclass(frozen=True)
class Look:
    """What is looked at."""

    pools: Pools
    runs: Mapping[str, Run]
    history: History
    settings: Settings
    ledger: Ledger
    now: float
    listed: bool = True
    """All workflows are known."""

    def sees(self, source: Source) -> bool:
        """Whether all of that source is seen."""
        return self.pools.sight(source) is Sight.EVERYWHERE

    @property
    def sees_pods(self) -> bool:
        return self.pools.sight(Source.PODS) in {Sight.EVERYWHERE, Sight.OURS}

    @property
    def reads_status(self) -> bool:
        """Whether the autoscaler says which of its groups are broken, and so which are not."""
        status = self.pools.status
        return status is not None and status.running and not status.problem


def concerns(look: Look) -> Found:
    """All that is wrong now."""
    later: list[float] = []
    found = [*_scale_ups(look, later), *_misfits(look), *_idle(look, later), *_slow(look, later), *_lost(look)]
    off = set(look.settings.alerts.silent)
    kept = {concern.key: concern for concern in reversed(found) if concern.kind not in off}
    return Found(tuple(reversed(kept.values())), _known(look) - off, min(later, default=None))


def _known(look: Look) -> frozenset[AlertKind]:
    known: set[AlertKind] = set()
    events = look.pools.sight(Source.EVENTS) in {Sight.EVERYWHERE, Sight.OURS}
    if look.reads_status or (look.pools.sight(Source.AUTOSCALER) in {Sight.HIDDEN, Sight.NOTHING} and events):
        known |= {AlertKind.STOCK, AlertKind.QUOTA, AlertKind.BACKOFF}
    if look.sees_pods and look.sees(Source.NODES) and look.listed:
        known |= {AlertKind.NO_PLACE, AlertKind.NODE_LOST}
    if look.sees(Source.PODS) and look.sees(Source.NODES):
        known.add(AlertKind.IDLE)
    if look.sees_pods and look.listed:
        known.add(AlertKind.SLOW)
    return frozenset(known)


# scale-ups that fail


def _scale_ups(look: Look, later: list[float]) -> Iterator[Concern]:
    shown = view(look.pools, (), look.settings, look.now)
    for pool in shown.pools:
        for _, held in pool.errors:
            if _holds(look, held, pool.nodes, later):
                yield from _scale_up(look, pool.name, pool.gpu, held.error)
    for group, held in shown.stranger_errors:
        if _holds(look, held, (), later):
            yield from _scale_up(look, group, "", held.error)
    for waits in shown.waiting:
        if waits.failed is not None:
            yield from _scale_up(look, waits.pool, waits.gpu, waits.failed, waits.since)


def _holds(look: Look, held: GroupError, nodes: Iterable[NodeView], later: list[float]) -> bool:
    """Whether the error still counts. Without a status it does until a node came, or for a while."""
    if held.over is not None or look.reads_status:
        return held.over is None
    at = held.error.at.timestamp() if held.error.at is not None else None
    if at is None or look.now >= at + ERROR_SECONDS:
        return False
    later.append(at + ERROR_SECONDS)
    return not any((node.created or 0.0) >= at for node in nodes)


def _scale_up(look: Look, subject: str, gpu: str, error: ScaleError, since: float | None = None) -> Iterator[Concern]:
    began = since if since is not None else error.at.timestamp() if error.at else look.now
    kind = {ErrorKind.STOCK: AlertKind.STOCK, ErrorKind.QUOTA: AlertKind.QUOTA}.get(error.kind, AlertKind.BACKOFF)
    yield Concern(kind, subject, began, gpu, error=error)
    said = look.ledger.held.get((AlertKind.BACKOFF, subject))
    if kind is not AlertKind.BACKOFF and said is not None and said.post:
        # said before its reason was known, and as true as before
        yield Concern(AlertKind.BACKOFF, subject, began, gpu, error=error)


# pods that no pool can take


def _misfits(look: Look) -> list[Concern]:
    """Pods of one namespace that want the same are one: a job may make thousands."""
    together: dict[tuple[str, str, Misfit], list[tuple[GpuPod, str]]] = {}
    if look.sees_pods and look.sees(Source.NODES):
        known = _known_pools(look)
        for pod in look.pools.pods.values():
            found = _misfit(look, pod, known)
            if found is not None:
                key = pod.metadata.namespace, pod.pool, found[0]
                together.setdefault(key, []).append((pod, found[1]))
    return [*(_no_place(look, *key, pods) for key, pods in together.items()), *_capabilities(look)]


def _no_place(look: Look, namespace: str, pool: str, why: Misfit, pods: list[tuple[GpuPod, str]]) -> Concern:
    pods.sort(key=lambda each: (each[0].created or 0.0, each[0].metadata.name))
    first, words = pods[0]
    return Concern(
        AlertKind.NO_PLACE,
        f"{namespace}/{pool}/{why.value}",
        first.created or look.now,
        pool,
        tuple(_name(look, pod) for pod, _ in pods),
        why.value,
        words,
    )


def _name(look: Look, pod: GpuPod) -> str:
    """A run by its short name, another pod by its namespace and name."""
    meta = pod.metadata
    if pod.workflow and meta.namespace == look.settings.namespace:
        return short_name(pod.workflow)
    return f"{meta.namespace}/{meta.name}"


def _known_pools(look: Look) -> set[str]:
    pools = look.pools
    configured = {pool.name for pool in look.settings.pools} | {node.pool for node in pools.nodes.values()}
    groups = pools.status.groups if pools.status is not None else ()
    return configured | set(pools.group_pools.values()) | {group.name for group in groups}


def _misfit(look: Look, pod: GpuPod, known: set[str]) -> tuple[Misfit, str] | None:
    """Why no pool can ever take this pod, and the words that say so; None where one may."""
    if pod.standing is not Standing.UNPLACED or pod.ending or pod.until is not None:
        return None
    reading = read_reason(pod.message)
    if reading is None or not _never(reading, _NO_NODE):
        return None
    if pod.pool and pod.pool not in known:
        return Misfit.NO_POOL, pod.message
    refused, asked = (look.pools.note(pod.metadata.uid, r) for r in ("NotTriggerScaleUp", "TriggeredScaleUp"))
    refused_at, asked_at = ((note.at or 0.0) if note is not None else 0.0 for note in (refused, asked))
    if asked_at > max(refused_at, look.now - PROVISION_SECONDS):
        return None  # a node is on its way
    ready = [n for n in look.pools.nodes.values() if n.pool == pod.pool and n.state is NodeState.READY]
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


def _capabilities(look: Look) -> Iterator[Concern]:
    """Runs that were started without the bot, for another GPU than that of their pool."""
    settings = look.settings
    for uid, run in look.runs.items():
        workflow = run.workflow
        pool = settings.pool(workflow.parameter(settings.parameters.pool) or settings.defaults.pool)
        cap = workflow.parameter(settings.parameters.cap)
        if _goes_on(look, run) and pool is not None and cap and cap != pool.cap:
            names, words = (short_name(workflow.metadata.name),), f"{cap} {pool.cap}"
            why = Misfit.CAPABILITY.value
            yield Concern(AlertKind.NO_PLACE, f"cap/{uid}", look.now, pool.gpu, names, why, words)


def _goes_on(look: Look, run: Run) -> bool:
    return not run.workflow.ended and not run.gone and wants_posts(run.workflow, look.settings)


# nodes that nobody uses


def _idle(look: Look, later: list[float]) -> Iterator[Concern]:
    """Nodes beyond the pool's smallest size; all of a pool are one."""
    limit = 60 * look.settings.alerts.idle_minutes
    idle: dict[str, list[tuple[float, str]]] = {}
    if look.sees(Source.PODS) and look.sees(Source.NODES):
        for name, since in _unused(look).items():
            later += [since + limit] if look.now < since + limit else []
            if look.now >= since + limit:
                idle.setdefault(look.pools.nodes[name].pool, []).append((since, name))
    for pool in view(look.pools, (), look.settings, look.now).pools:
        kept = sum(group.smallest or 0 for group in pool.groups)
        nodes = sorted(idle.get(pool.name, []))
        if nodes and len(pool.nodes) > kept:
            names = tuple(name for _, name in nodes)
            yield Concern(AlertKind.IDLE, pool.name, nodes[0][0], pool.gpu, names, at_once=True)


def _unused(look: Look) -> dict[str, float]:
    """Nodes that could work and have no pod with a GPU, and since when."""
    pools, seen = look.pools, look.ledger.idle_from
    free = {n for n, node in pools.nodes.items() if node.state is NodeState.READY and n not in pools.holders}
    for name in set(seen) - free:
        del seen[name]
    for name in free:
        # where nobody saw its last pod go: since it is seen
        seen[name] = min(seen.get(name, look.now), pools.idle_since.get(name, look.now))
    return seen


# runs


def _slow(look: Look, later: list[float]) -> Iterator[Concern]:
    """Runs that wait for their tests to begin; the queue before their first pod is not counted."""
    alerts = look.settings.alerts
    for uid, run in look.runs.items():
        held = run.warmup
        if held is None or held.queue is None or held.start is not None or not _goes_on(look, run):
            continue
        if stage_of(run.workflow, look.settings)[0] not in {Stage.WAITING, Stage.WARMING}:
            continue
        usual = look.history.usual(held.pool, cold=held.cold).seconds
        at = held.queue + max(60 * alerts.slow_minutes, alerts.slow_factor * (usual or 0.0))
        if look.now < at:
            later.append(at)
            continue
        pool, names = look.settings.pool(held.pool), (short_name(run.workflow.metadata.name),)
        gpu, words = pool.gpu if pool else held.pool, held.refused or held.trouble
        yield Concern(AlertKind.SLOW, uid, held.queue, gpu, names, words=words, usual=usual, at_once=True)


def _lost(look: Look) -> Iterator[Concern]:
    """Runs whose node went, until they have another one or are over: their pod may be gone long before that."""
    lost, ours = look.ledger.lost, look.settings.namespace
    if not look.sees(Source.NODES) or not look.sees_pods:
        return
    runs = {run.workflow.metadata.name: run for run in look.runs.values() if _goes_on(look, run)}
    for pod in look.pools.pods.values():
        run = runs.get(pod.workflow)
        if run is None or pod.metadata.namespace != ours or pod.standing is not Standing.PLACED:
            continue
        node = look.pools.nodes.get(pod.node)
        if node is not None and node.state is not NodeState.SILENT:
            lost.pop(run.uid, None)
        elif (node is not None or pod.pool) and not pod.ending:
            lost.setdefault(run.uid, (run.workflow.attempt, look.now, pod.node))
    alive = {run.uid: run for run in runs.values()}
    for uid, (attempt, since, name) in list(lost.items()):
        run = alive.get(uid)
        if run is None or run.workflow.attempt != attempt:
            del lost[uid]
            continue
        silent = name in look.pools.nodes
        names = short_name(run.workflow.metadata.name), name
        yield Concern(
            AlertKind.NODE_LOST, uid, since, names=names, why="silent" if silent else "gone", at_once=not silent
        )
