"""The lines of `/gpu`: a pool, a node, a group of the autoscaler, somebody who waits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from bot.core.autoscaler import NodeGroup, ScaleError
from bot.core.card import Origin, OriginKind
from bot.core.gpu_view import GpuView, NodeView, PoolView, Queued, User, Waits, Warmth, Who
from bot.core.pools import Sight
from bot.core.render.escape import code, prose
from bot.core.render.scale_errors import error_words
from bot.core.render.scheduling import waiting_words
from bot.core.render.warmup import soon
from bot.core.render.words import article
from bot.core.settings import Settings
from bot.core.sightings import NodeState, Source, Standing

MAX_USERS = 4
"""Names on the line of a pool or a node; more are counted."""


class Lines:
    """Lines of one answer: the view, and the moment and the zone that its times are told in."""

    def __init__(self, view: GpuView, settings: Settings, now: float) -> None:
        self._view = view
        self._settings = settings
        self._now = now
        names = [pool.gpu for pool in view.pools]
        self._twice = {gpu for gpu in names if names.count(gpu) > 1}

    def clock(self, at: float) -> str:
        """A time of today, or with its day; the zone stands in the title."""
        when, now = self._local(at), self._local(self._now)
        return f"{when:%H:%M}" if when.date() == now.date() else f"{when:%a %-d %b %H:%M}"

    def zone(self) -> str:
        """The name of the zone at this moment."""
        return self._local(self._now).tzname() or ""

    def _local(self, at: float) -> datetime:
        return datetime.fromtimestamp(at, UTC).astimezone(ZoneInfo(self._settings.timezone))

    # pools and nodes

    def pool(self, pool: PoolView) -> str:
        """A pool: nodes, GPUs, who uses them."""
        name = f"**{prose(pool.gpu, 40) or 'Nodes without a pool'}**"
        if pool.gpu in self._twice:
            name += f" ({prose(pool.name, 60)})"
        head = f"{self._mark(pool)} {name} {self._node_count(pool)}".rstrip()
        parts = [head, *self._pool_state(pool), self._free(pool), self._users(pool.users)]
        return " · ".join(part for part in parts if part)

    def _mark(self, pool: PoolView) -> str:
        if pool.warmth is Warmth.WARM:
            return "🔵" if pool.users else "🟡"
        return {Warmth.COLD: "⚪", Warmth.COMING: "🟡", Warmth.BLOCKED: "⛔", Warmth.UNKNOWN: "❔"}[pool.warmth]

    def _node_count(self, pool: PoolView) -> str:
        if self._view.sights[Source.NODES] is not Sight.EVERYWHERE:
            return "" if pool.max_nodes is None else f"up to {_nodes(pool.max_nodes)}"
        if pool.max_nodes is None:
            return _nodes(len(pool.nodes))
        return f"{len(pool.nodes)}/{_nodes(pool.max_nodes)}"

    def _pool_state(self, pool: PoolView) -> list[str]:
        could = pool.warmth is Warmth.COLD or (pool.warmth is Warmth.WARM and pool.free != 0)
        start = soon(pool.usual) if could else ""
        return [*self._warmth(pool), *([start] if start else [])]

    def _warmth(self, pool: PoolView) -> list[str]:
        if pool.warmth is Warmth.COLD:
            return ["cold"]
        if pool.warmth is Warmth.COMING and not pool.nodes:
            return ["a node is on its way"]
        if pool.warmth is Warmth.WARM and not pool.users:
            idle = [node.idle_since for node in pool.nodes if node.state is NodeState.READY]
            known = [since for since in idle if since is not None]
            since = f" since {self.clock(max(known))}" if known and len(known) == len(idle) else ""
            return [f"warm, idle{since}" if pool.free is not None else "warm", *_troubled(pool.nodes)]
        return _troubled(pool.nodes)

    def _free(self, pool: PoolView) -> str:
        if not pool.nodes or not pool.total:
            return ""
        what = "share" if pool.shared else "GPU"
        count = f"{pool.total} {what}{'' if pool.total == 1 else 's'}"
        if pool.free is not None:
            return f"{pool.free} of {count} free"
        if self._view.sights[Source.PODS] is Sight.OURS:
            return f"{count}, {pool.used} used by {prose(self._view.namespace, 60)}"
        return count

    def _users(self, users: Sequence[User]) -> str:
        names = [self._user(user) for user in users[:MAX_USERS]]
        if len(users) > MAX_USERS:
            names.append(f"{len(users) - MAX_USERS} more")
        return ", ".join(names)

    def _user(self, user: User) -> str:
        text = self._who(user.who, f"{user.gpus} GPUs" if user.gpus > 1 else "")
        if user.trouble:
            text += f" ⚠️ {_lower(waiting_words(user.trouble))}"
        elif user.lost:
            text += " ⚠️ its node is gone"
        elif user.ending:
            text += ", ending"
        return text

    def _who(self, who: Who, *more: str) -> str:
        ours = self._view.namespace
        if who.until is not None:
            return f"a placeholder until {self.clock(who.until)}"
        if who.origin is None:
            name = code(who.name if who.namespace in {"", ours} else f"{who.namespace}/{who.name}", 80)
            brackets = [part for part in more if part]
        else:
            name = f"**{prose(who.name, 40)}**"
            brackets = [part for part in (_by(who.origin), *more) if part]
        return f"{name} ({', '.join(brackets)})" if brackets else name

    def node(self, node: NodeView) -> str:
        """One node of a pool."""
        parts = [_NODE_WORDS[node.state][0]]
        if node.gpus or node.used:
            parts.append(f"{node.used} of {node.gpus} used" + (f" by {self._users(node.users)}" if node.users else ""))
        if node.taints:
            parts.append("taint " + ", ".join(code(taint, 60) for taint in node.taints[:3]))
        if node.created is not None:
            parts.append(f"up since {self.clock(node.created)}")
        if node.idle_since is not None:
            parts.append(f"idle since {self.clock(node.idle_since)}")
        return f"{code(node.name, 80)}: " + " · ".join(parts)

    # who waits

    def waits(self, waits: Waits) -> str:
        """Somebody who waits for a node, and why."""
        gpu = prose(waits.gpu, 40) or "GPU"
        wanted = f"{waits.gpus} × {gpu}" if waits.gpus > 1 else f"{article(gpu) if waits.gpu else 'a'} {gpu}"
        since = f" since {self.clock(waits.since)}" if waits.since is not None else ""
        parts = [f"⏳ {self._who(waits.who)} waits for {wanted}{since}", self._reason(waits), self._scale_up(waits)]
        return " · ".join(part for part in parts if part)

    def _reason(self, waits: Waits) -> str:
        if waits.standing is Standing.FRESH:
            return "the scheduler has not looked at it yet"
        text = _lower(waiting_words(waits.message)) or prose(waits.message, 200)
        named = [code(taint, 60) for taint in waits.taints[:3] if code(taint, 60) not in text]
        return text.replace("a taint", f"a taint ({', '.join(named)})", 1) if named else text

    def _scale_up(self, waits: Waits) -> str:
        if waits.failed is not None:
            return f"⚠️ {error_words(waits.failed)}"
        if waits.refused:
            return _lower(waiting_words(waits.refused)) or prose(waits.refused, 200)
        if waits.asked_at is None:
            return ""
        sizes = ", ".join(f"{grown.before}→{grown.after}" for grown in waits.asked[:3])
        return f"scale-up asked {self.clock(waits.asked_at)}" + (f" ({sizes})" if sizes else "")

    def gated(self, waits: Waits) -> str:
        """Somebody who is held back before the scheduler."""
        by = "by Kueue, until it admits it" if waits.kueue else "by a scheduling gate"
        return f"🚦 {self._who(waits.who)} is held back {by} · {gpu_count(waits.gpus)}"

    def queued(self, queued: Queued) -> str:
        """A run that waits for another run."""
        behind = ", ".join(prose(name, 40) for name in queued.behind[:3])
        more = len(queued.behind) - 3
        if more > 0:
            behind += f" and {more} more"
        since = f" since {self.clock(queued.since)}" if queued.since is not None else ""
        why = f"behind {behind}" if behind else prose(queued.detail, 160)
        return f"🕓 {self._who(queued.who)} is queued{since}" + (f" {why}" if behind else f" · {why}" if why else "")

    # the autoscaler

    def group(self, group: NodeGroup) -> str:
        """What the autoscaler says of one of its groups."""
        parts = []
        if group.ready is not None:
            registered = group.registered if group.registered is not None else group.ready
            parts.append(f"{group.ready}/{registered} ready")
        if group.target is not None and group.target != group.registered:
            parts.append(f"target {group.target}")
        if group.smallest is not None and group.largest is not None:
            parts.append(f"{group.smallest} to {group.largest} nodes")
        counts = (
            (group.without_resource, "without its GPU"),
            ((group.unready or 0) - (group.without_resource or 0), "not ready"),
            (group.starting, "starting"),
            (group.unregistered, "not registered"),
            (group.long_unregistered, "not registered for long"),
        )
        parts += [f"{count} {words}" for count, words in counts if count]
        if group.health not in {"", "Healthy"}:
            parts.append(f"⚠️ {prose(group.health, 40).lower()}")
        if group.error is not None:
            parts.append(f"⚠️ {error_words(group.error)}{self.since(group.error)}")
        elif group.growing:
            parts.append("scaling up")
        return " · ".join(parts) or "it says nothing"

    def since(self, error: ScaleError) -> str:
        """Since when an error holds."""
        return f", since {self.clock(error.at.timestamp())}" if error.at else ""


_NODE_WORDS = {
    NodeState.READY: ("ready", "ready"),
    NodeState.NOT_READY: ("not ready", "not ready"),
    NodeState.STARTING: ("still starting", "still starting"),
    NodeState.WITHOUT_GPU: ("up, its GPU is not there yet", "up without a GPU yet"),
    NodeState.CORDONED: ("cordoned", "cordoned"),
    NodeState.LEAVING: ("being removed", "being removed"),
    NodeState.SILENT: ("does not answer", "not answering"),
}
"""Of one node, and of several."""


def _troubled(nodes: Sequence[NodeView]) -> list[str]:
    """What keeps nodes from taking work."""
    parts = []
    for state in NodeState:
        count = sum(1 for node in nodes if node.state is state)
        if count and state is not NodeState.READY:
            one, many = _NODE_WORDS[state]
            parts.append(one if count == len(nodes) == 1 else f"{count} {many}")
    return parts


def _by(origin: Origin) -> str:
    """Who asked, in a word or two."""
    name = prose(origin.user_name, 64)
    return {
        OriginKind.CHAT: name,
        OriginKind.CRON: "nightly",
        OriginKind.CI: f"push to {name}" if name else "push",
        OriginKind.API: name or "not from the chat",
    }[origin.kind]


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"


def gpu_count(count: int) -> str:
    """`1 GPU`, `3 GPUs`."""
    return "1 GPU" if count == 1 else f"{count} GPUs"


def _lower(text: str) -> str:
    """As the second part of a line: its first letter small, unless the word is all capitals."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]
