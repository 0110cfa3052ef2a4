"""What is wrong with the GPUs now: each kind of alert, from what is held of pools, pods and runs.

Nothing is concluded from what can't be seen: a kind whose sources are missing is not `known`, and what was said of it
stays open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from bot.core.alerts import Concern, Found, Ledger
from bot.core.autoscaler import ErrorKind, ScaleError, shorten
from bot.core.card import Stage, short_name, stage_of, wants_posts
from bot.core.history import History
from bot.core.misfits import Misfit, known_pools, misfit, ready_nodes
from bot.core.pools import GroupError, Pools, Sight
from bot.core.pools_view import after_colon, last_word, pool_names, pools_of_groups
from bot.core.runs import Run
from bot.core.settings import AlertKind, Settings
from bot.core.sightings import GpuPod, NodeState, PoolNode, Source, Standing

ERROR_SECONDS = 1800.0
"""How long a failed scale-up counts where no status says that it is over: the autoscaler's longest backoff."""

NAMED = 3
"""Pods, nodes or runs that an alert names."""


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
    if look.pools.reads_status or (look.pools.sight(Source.AUTOSCALER) in {Sight.HIDDEN, Sight.NOTHING} and events):
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
    pools = look.pools
    known = pools_of_groups(pools, look.settings, pool_names(pools, look.settings, ()))
    for group, held in pools.errors.items():
        if _holds(look, held, known.get(group), later):
            subject = known.get(group, group)
            yield from _scale_up(look, subject, _gpu(look, known[group]) if group in known else "", held.error)
    for pod in pools.pods.values():
        word = last_word(pools, pod) if pod.waits_for_node else None
        if word is not None and word.reason == "FailedScaleUp":
            failed = shorten(after_colon(word.message))
            yield from _scale_up(look, pod.pool, _gpu(look, pod.pool), failed, pod.created)


def _gpu(look: Look, pool: str) -> str:
    configured = look.settings.pool(pool)
    return configured.gpu if configured is not None else pool


def _holds(look: Look, held: GroupError, pool: str | None, later: list[float]) -> bool:
    """Whether the error still counts. Without a status it does until a node came, or for a while."""
    if held.over is not None or look.pools.reads_status:
        return held.over is None
    at = held.error.at.timestamp() if held.error.at is not None else None
    if at is None or look.now >= at + ERROR_SECONDS:
        return False
    later.append(at + ERROR_SECONDS)
    return not any(node.pool == pool and (node.created or 0.0) >= at for node in look.pools.nodes.values())


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
        known, ready = known_pools(look.pools, look.settings), ready_nodes(look.pools)
        for pod in look.pools.pods.values():
            found = misfit(look.pools, pod, known, ready, look.now)
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
    """A run by its short name, another pod by its own, with its namespace where that is not ours."""
    meta = pod.metadata
    if meta.namespace != look.settings.namespace:
        return f"{meta.namespace}/{meta.name}"
    return short_name(pod.workflow) if pod.workflow else meta.name


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
    for pool, nodes in idle.items():
        if sum(1 for node in look.pools.nodes.values() if node.pool == pool) > _smallest(look, pool):
            names = tuple(name for _, name in sorted(nodes))
            yield Concern(AlertKind.IDLE, pool, min(nodes)[0], _gpu(look, pool), names, at_once=True)


def _smallest(look: Look, pool: str) -> int:
    """Nodes that the autoscaler keeps up in a pool, whether they are used or not."""
    groups = look.pools.status.groups if look.pools.status is not None else ()
    known = pools_of_groups(look.pools, look.settings, pool_names(look.pools, look.settings, ()))
    return sum(group.smallest or 0 for group in groups if known.get(group.name) == pool)


def _unused(look: Look) -> dict[str, float]:
    """Nodes that could work and have no pod with a GPU, and since when."""
    pools, seen = look.pools, look.ledger.idle_from
    free = {n: node for n, node in pools.nodes.items() if node.state is NodeState.READY and n not in pools.holders}
    for name in set(seen) - free.keys():
        del seen[name]
    for name, node in free.items():
        seen[name] = min(seen.get(name, look.now), _idle_since(look, node))
    return seen


def _idle_since(look: Look, node: PoolNode) -> float:
    """Since its last pod went. Where nobody saw that: since an alert says so that stands open, else since now."""
    known = look.pools.idle_since.get(node.metadata.name)
    if known is not None:
        return known
    said = look.ledger.held.get((AlertKind.IDLE, node.pool))
    return max(said.since, node.created or 0.0) if said is not None and said.post else look.now


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
