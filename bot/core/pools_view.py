"""Looks at what is held of pools, and fills in what `/gpu` shows (`gpu_view`).

Nothing is concluded beyond what was seen: without the right to see other namespaces a GPU is
not called free, and a node group whose pool is not known stays by itself.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bot.core.autoscaler import NodeGroup, shorten
from bot.core.card import Card, Stage, short_name
from bot.core.gpu_view import GpuView, NodeView, PoolView, Queued, User, Waits, Warmth, Who
from bot.core.history import History
from bot.core.pools import GroupError, Pools, Sight
from bot.core.scheduling import read_scale_up
from bot.core.settings import Pool, Settings
from bot.core.sightings import GpuPod, NodeState, Note, PoolNode, Source, Standing

PROVISION_SECONDS = 1200
"""How long a node that was asked for is expected; the autoscaler gives up after 15 minutes by default."""


@dataclass(frozen=True)
class _Look:
    """What the parts of one view share."""

    pools: Pools
    runs: Mapping[str, Card]
    settings: Settings
    groups: Mapping[str, str]
    """Pool by node group."""
    placed: Mapping[str, Sequence[GpuPod]]
    """Pods that hold GPUs, by pool."""
    now: float
    history: History

    @property
    def sees_pods(self) -> bool:
        return self.pools.sight(Source.PODS) in {Sight.EVERYWHERE, Sight.OURS}


def view(
    pools: Pools, cards: Sequence[Card], settings: Settings, now: float, history: History | None = None
) -> GpuView:
    """What is to be said of the GPUs now. `cards`: the runs under way, oldest first."""
    placed: dict[str, list[GpuPod]] = {}
    for pod in pools.pods.values():
        if pod.standing is Standing.PLACED:
            placed.setdefault(_pool_of(pools, pod), []).append(pod)
    names = pool_names(pools, settings, placed)
    groups = pools_of_groups(pools, settings, names)
    look = _Look(pools, {card.name: card for card in cards}, settings, groups, placed, now, history or History())
    asking = sorted(
        (pod for pod in pools.pods.values() if pod.standing is not Standing.PLACED and not pod.ending),
        key=lambda pod: (pod.created or 0.0, pod.metadata.name),
    )
    waiting = [_waits(look, pod) for pod in asking if pod.waits_for_node]
    if not look.sees_pods:
        waiting = [_waits_by_card(card) for card in cards if card.stage is Stage.WAITING]
    return GpuView(
        pools=tuple(_pool_view(look, name) for name in names),
        waiting=tuple(waiting),
        gated=tuple(_waits(look, pod) for pod in asking if pod.standing is Standing.GATED),
        queued=_queued(cards, {pod.workflow for pod in pools.pods.values()}),
        strangers=tuple(group for group in _status_groups(pools) if group.name not in groups),
        stranger_errors=tuple((name, error) for name, error in pools.errors.items() if name not in groups),
        sights={source: pools.sight(source) for source in Source},
        status=pools.status,
        status_at=pools.status_at,
        namespace=settings.namespace,
    )


def pool_error(pools: Pools, settings: Settings, pool: str, since: float | None) -> GroupError | None:
    """Why the pool brings no node to who waits since then: the newest error of its groups, None for none.

    One that no status says to last counts as long as it came while they waited and no node came after it: between two
    tries the status names none, and where only Events are seen nothing says when it is over.
    """
    groups = pools_of_groups(pools, settings, [each.name for each in settings.pools])
    newest = max((node.created or 0.0 for node in pools.nodes.values() if node.pool == pool), default=0.0)
    found = [
        (held.over is None, at, held)
        for group, held in pools.errors.items()
        if groups.get(group) == pool
        for at in [held.error.at.timestamp() if held.error.at else 0.0]
        if (held.over is None and pools.reads_status) or (since is not None and at >= since and at > newest)
    ]
    return max(found, key=lambda each: each[:2])[2] if found else None


def _status_groups(pools: Pools) -> tuple[NodeGroup, ...]:
    return pools.status.groups if pools.status else ()


def pool_names(pools: Pools, settings: Settings, placed: Iterable[str]) -> list[str]:
    """The configured pools, then others that have GPUs or are asked for; "" for nodes without the label."""
    names = [pool.name for pool in settings.pools]
    others = {node.pool for node in pools.nodes.values() if node.gpus} | set(placed)
    others |= {pod.pool for pod in pools.pods.values() if pod.pool}
    return names + sorted(others - set(names), key=lambda name: (not name, name))


def _pool_of(pools: Pools, pod: GpuPod) -> str:
    """The pool of a pod: that of its node, else the one it asks for."""
    node = pools.nodes.get(pod.node)
    return node.pool if node is not None else pod.pool


def pools_of_groups(pools: Pools, settings: Settings, names: Iterable[str]) -> dict[str, str]:
    """Pool by node group, for the groups of which it is known: an alias, the same name, or learned."""
    aliases = {name: name for name in names if name} | {
        alias: pool.name for pool in settings.pools for alias in pool.groups
    }
    found = {}
    for name in [*(group.name for group in _status_groups(pools)), *pools.errors]:
        last = name.rstrip("/").rsplit("/", 1)[-1]
        pool = aliases.get(name) or aliases.get(last) or pools.group_pools.get(name) or pools.group_pools.get(last)
        if pool:
            found[name] = pool
    return found


def _pool_view(look: _Look, name: str) -> PoolView:
    pools, settings = look.pools, look.settings
    nodes = sorted((node for node in pools.nodes.values() if node.pool == name), key=_oldest_first)
    holders = look.placed.get(name, ())
    views = tuple(_node_view(look, node) for node in nodes)
    groups = tuple(group for group in _status_groups(pools) if look.groups.get(group.name) == name)
    wanted = any(pod.waits_for_node and pod.pool == name and _on_its_way(look, pod) for pod in pools.pods.values())
    configured = settings.pool(name)
    free = sum(max(0, v.gpus - v.used) for v in views if v.state is NodeState.READY)
    warmth = _warmth(pools, views, groups, wanted=wanted)
    return PoolView(
        name=name,
        gpu=configured.gpu if configured else name,
        warmth=warmth,
        nodes=views,
        max_nodes=_largest(configured, groups),
        total=sum(node.gpus for node in nodes),
        used=sum(pod.gpus for pod in holders if not _lost(pools, pod)),
        free=free if pools.sight(Source.PODS) is Sight.EVERYWHERE else None,
        shared=any(node.shared for node in nodes),
        users=tuple(_user(look, pod) for pod in holders) if look.sees_pods else _users_by_card(look, name),
        groups=groups,
        errors=tuple((group, error) for group, error in pools.errors.items() if look.groups.get(group) == name),
        usual=look.history.usual(name, cold=warmth is not Warmth.WARM),
    )


def _users_by_card(look: _Look, name: str) -> tuple[User, ...]:
    """Runs at work, where pods can't be seen."""
    busy = {Stage.WARMING, Stage.TESTING}
    return tuple(
        User(_who_card(card), 0) for card in look.runs.values() if card.stage in busy and card.asked.pool == name
    )


def _oldest_first(node: PoolNode) -> tuple[float, str]:
    return node.created or 0.0, node.metadata.name


def _largest(configured: Pool | None, groups: Sequence[NodeGroup]) -> int | None:
    if configured is not None and configured.max_nodes is not None:
        return configured.max_nodes
    sizes = [group.largest for group in groups if group.largest is not None]
    return sum(sizes) if sizes and len(sizes) == len(groups) else None


def _warmth(pools: Pools, nodes: Sequence[NodeView], groups: Sequence[NodeGroup], *, wanted: bool) -> Warmth:
    states = {node.state for node in nodes}
    if NodeState.READY in states:
        return Warmth.WARM
    if states & {NodeState.NOT_READY, NodeState.STARTING, NodeState.WITHOUT_GPU}:
        return Warmth.COMING
    growing = any(group.growing and not group.in_backoff for group in groups)
    if growing or (wanted and not any(group.in_backoff for group in groups)):
        return Warmth.COMING
    if states:
        return Warmth.BLOCKED
    return Warmth.COLD if pools.sight(Source.NODES) is Sight.EVERYWHERE else Warmth.UNKNOWN


def _node_view(look: _Look, node: PoolNode) -> NodeView:
    pools, name = look.pools, node.metadata.name
    pods = [pools.pods[uid] for uid in sorted(pools.holders.get(name, ()))]
    return NodeView(
        name=name,
        state=node.state,
        gpus=node.gpus,
        used=sum(pod.gpus for pod in pods),
        users=tuple(_user(look, pod) for pod in pods),
        taints=tuple(map(str, node.taints)),
        created=node.created,
        idle_since=None if pods else pools.idle_since.get(name),
    )


def _user(look: _Look, pod: GpuPod) -> User:
    return User(_who(look, pod), pod.gpus, pod.trouble, pod.ending, _lost(look.pools, pod))


def _lost(pools: Pools, pod: GpuPod) -> bool:
    """Bound to a node of a pool that is not there any more."""
    sees_nodes = pools.sight(Source.NODES) is Sight.EVERYWHERE
    return sees_nodes and bool(pod.node and pod.pool) and pod.node not in pools.nodes


def _who(look: _Look, pod: GpuPod) -> Who:
    card = look.runs.get(pod.workflow)
    if card is not None and pod.metadata.namespace == look.settings.namespace:
        return _who_card(card)
    name = short_name(pod.workflow) if pod.workflow else pod.metadata.name
    return Who(name, namespace=pod.metadata.namespace, until=pod.until)


def _who_card(card: Card) -> Who:
    return Who(card.short, card.origin)


def _on_its_way(look: _Look, pod: GpuPod) -> bool:
    """Whether the autoscaler's last word on a pod was that a group grows, and not too long ago."""
    note = last_word(look.pools, pod)
    if note is None or note.reason != "TriggeredScaleUp":
        return False
    return note.at is None or look.now - note.at < PROVISION_SECONDS


def last_word(pools: Pools, pod: GpuPod) -> Note | None:
    """What the autoscaler said last about a pod."""
    # of one second the refusal counts: a pod for which a group grows gets none any more
    reasons = ("FailedScaleUp", "NotTriggerScaleUp", "TriggeredScaleUp")
    found = [note for reason in reasons if (note := pools.note(pod.metadata.uid, reason))]
    return max(found, key=lambda note: note.at or 0.0, default=None)


def _waits(look: _Look, pod: GpuPod) -> Waits:
    pools = look.pools
    tried = pools.note(pod.metadata.uid, "FailedScheduling")
    asked = pools.note(pod.metadata.uid, "TriggeredScaleUp")
    last = last_word(pools, pod)
    configured = look.settings.pool(pod.pool)
    # an event outlives what it tells: the pod's own condition goes before it
    unseen = pod.standing is Standing.FRESH and tried is not None
    return Waits(
        who=_who(look, pod),
        gpus=pod.gpus,
        pool=pod.pool,
        gpu=configured.gpu if configured else pod.pool,
        since=pod.created,
        standing=Standing.UNPLACED if unseen else pod.standing,
        message=pod.message or (tried.message if tried else ""),
        tries=tried.times if tried else 1,
        taints=_untolerated(pools, pod),
        kueue=pod.by_kueue,
        asked=read_scale_up(asked.message) if asked else (),
        asked_at=asked.at if asked else None,
        refused=last.message if last and last.reason == "NotTriggerScaleUp" else "",
        failed=shorten(after_colon(last.message)) if last and last.reason == "FailedScaleUp" else None,
    )


def _untolerated(pools: Pools, pod: GpuPod) -> tuple[str, ...]:
    if pod.standing is not Standing.UNPLACED or not pod.pool:
        return ()
    taints = (taint for node in pools.nodes.values() if node.pool == pod.pool for taint in node.taints)
    return tuple(
        dict.fromkeys(str(taint) for taint in taints if not any(each.covers(taint) for each in pod.tolerations))
    )


def after_colon(message: str) -> str:
    """`Node scale up in zones z associated with this pod failed: GCE quota exceeded. …`: the reason alone."""
    _, found, reason = message.partition(" failed: ")
    return reason if found else message


def _waits_by_card(card: Card) -> Waits:
    """A waiting run where pods can't be seen: Argo repeats the scheduler's words."""
    since = card.since.timestamp() if card.since else None
    return Waits(_who_card(card), 0, card.asked.pool, card.asked.gpu, since, Standing.UNPLACED, card.detail)


def _queued(cards: Sequence[Card], with_pods: Container[str]) -> tuple[Queued, ...]:
    """Runs that have no pod. One whose pod was seen before its Workflow moved on is queued no more."""
    ahead = [card.short for card in cards if card.stage not in {Stage.QUEUED, Stage.ENDED} or card.name in with_pods]
    queued = []
    for card in cards:
        if card.stage is Stage.QUEUED and card.name not in with_pods:
            since = card.since.timestamp() if card.since else None
            queued.append(Queued(_who_card(card), card.asked.gpu, since, card.detail, tuple(ahead)))
            ahead.append(card.short)
    return tuple(queued)
