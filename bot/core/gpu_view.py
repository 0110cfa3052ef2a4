"""What `/gpu` shows, as values: pools, who uses them, who waits and why. `pools_view` fills them in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from bot.core.autoscaler import AutoscalerStatus, NodeGroup, ScaleError
from bot.core.card import Origin
from bot.core.history import Usual
from bot.core.pools import GroupError, Sight
from bot.core.scheduling import ScaleUp
from bot.core.sightings import NodeState, Source, Standing


class Warmth(StrEnum):
    """How soon a pool could take work."""

    COLD = "cold"  # no node
    COMING = "coming"  # a node is on its way, or not usable yet
    WARM = "warm"
    BLOCKED = "blocked"  # nodes, and none takes work
    UNKNOWN = "unknown"  # the nodes are not visible


@dataclass(frozen=True)
class Who:
    """A run by its short name, or another pod by its namespace and name."""

    name: str
    origin: Origin | None = None
    namespace: str = ""
    """Of a pod that is none of our runs."""
    until: float | None = None
    """Of a placeholder: until when it keeps the node up."""


@dataclass(frozen=True)
class User:
    """Somebody who holds GPUs."""

    who: Who
    gpus: int
    trouble: str = ""
    ending: bool = False
    lost: bool = False
    """Its node is gone, and the pod is still there."""


@dataclass(frozen=True)
class NodeView:
    """One node in the answer."""

    name: str
    state: NodeState
    gpus: int
    used: int
    users: tuple[User, ...]
    taints: tuple[str, ...]
    created: float | None
    idle_since: float | None


@dataclass(frozen=True)
class PoolView:
    """One pool in the answer. None stands for what is not known."""

    name: str
    gpu: str
    warmth: Warmth
    nodes: tuple[NodeView, ...]
    max_nodes: int | None
    total: int
    used: int
    free: int | None
    shared: bool
    users: tuple[User, ...]
    groups: tuple[NodeGroup, ...]
    errors: tuple[tuple[str, GroupError], ...]
    """Last error of its groups, by the group's name."""
    usual: Usual = field(default_factory=Usual)
    """What a start takes as it is now: a warm one where a node is ready, else a cold one."""


@dataclass(frozen=True)
class Waits:
    """Somebody who waits for a GPU, and what is known of why."""

    who: Who
    gpus: int
    pool: str
    gpu: str
    since: float | None
    standing: Standing
    message: str = ""
    """The scheduler's words."""
    tries: int = 1
    taints: tuple[str, ...] = ()
    """Taints on nodes of its pool that it does not tolerate; newer schedulers don't name them."""
    kueue: bool = False
    asked: tuple[ScaleUp, ...] = ()
    asked_at: float | None = None
    refused: str = ""
    """The autoscaler's words on why no node comes for it."""
    failed: ScaleError | None = None


@dataclass(frozen=True)
class Queued:
    """A run that has no pod yet: another run holds the lock."""

    who: Who
    gpu: str
    since: float | None
    detail: str
    behind: tuple[str, ...]


@dataclass(frozen=True)
class GpuView:
    """Everything that `/gpu` shows."""

    pools: tuple[PoolView, ...]
    waiting: tuple[Waits, ...]
    gated: tuple[Waits, ...]
    queued: tuple[Queued, ...]
    strangers: tuple[NodeGroup, ...]
    """Node groups whose pool is not known."""
    stranger_errors: tuple[tuple[str, GroupError], ...]
    sights: Mapping[Source, Sight]
    status: AutoscalerStatus | None
    status_at: float | None
    """When the autoscaler wrote it."""
    namespace: str
