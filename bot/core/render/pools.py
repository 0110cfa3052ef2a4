"""What `/gpu` answers. For a phone: a line a pool, clock times, what is not visible said once at the end."""

from __future__ import annotations

from collections.abc import Container, Iterable

from bot.core.autoscaler import short_group
from bot.core.commands.gpu import Part
from bot.core.errors import UserError
from bot.core.gpu_view import GpuView, PoolView, Warmth
from bot.core.pools import Sight
from bot.core.render.escape import code, prose
from bot.core.render.pool_lines import Lines, gpu_count
from bot.core.render.post import apart, fit
from bot.core.render.scale_errors import error_words
from bot.core.render.warmup import soon
from bot.core.settings import Settings
from bot.core.sightings import Source

MAX_WAITING, MAX_QUEUE, MAX_NODES = 5, 30, 20
"""Waiting ones in the short answer and in the long one, nodes of a pool; more are counted."""

STALE_SECONDS = 600
"""Age at which the autoscaler's status is called old; it is written every ten seconds."""

OVER_SECONDS = 24 * 3600
"""How long an error that is over is still told."""


def gpus(part: Part, view: GpuView, settings: Settings, now: float) -> str:
    """The answer to `/gpu`, for the part that was asked for."""
    lines = Lines(view, settings, now)
    answer = _Answer(view, lines, now)
    title, body = {
        Part.STATUS: ("GPUs", answer.status),
        Part.POOLS: ("GPU pools", answer.pools),
        Part.QUEUE: ("Waiting for a GPU", answer.queue),
    }[part]
    return fit(apart([f"**{title}, {lines.clock(now)} {lines.zone()}**", *body()]))


def not_understood(error: UserError) -> str:
    """Why not, and a line to copy."""
    return f"🤔 {error.text}\n{code(error.suggestion, 300)}" if error.suggestion else f"🤔 {error.text}"


class _Answer:
    """The lines of the three parts, in their order."""

    def __init__(self, view: GpuView, lines: Lines, now: float) -> None:
        self._view = view
        self._lines = lines
        self._now = now

    def status(self) -> list[str]:
        """One look at everything."""
        view = self._view
        lines = [self._lines.pool(pool) for pool in view.pools if _tells(pool)]
        if self._all_quiet():
            times = [f"{prose(pool.gpu, 40)} {soon(pool.usual)}" for pool in view.pools if soon(pool.usual)]
            lines = [" ".join(["⚪ All pools are cold, and nobody waits.", *(times and [f"{', '.join(times)}."])])]
        lines += [self._lines.waits(waits) for waits in view.waiting[:MAX_WAITING]]
        if len(view.waiting) > MAX_WAITING:
            lines.append(f"⏳ and {len(view.waiting) - MAX_WAITING} more: `/gpu queue`")
        lines += self._gated_summary()
        lines += [self._lines.queued(queued) for queued in view.queued[:MAX_WAITING]]
        if len(view.queued) > MAX_WAITING:
            lines.append(f"🕓 and {len(view.queued) - MAX_WAITING} more: `/gpu queue`")
        return [*lines, *self._errors(), *self._autoscaler(), *self._unseen()]

    def pools(self) -> list[str]:
        """Each pool with its nodes and its groups."""
        view = self._view
        lines: list[str] = []
        for pool in filter(_tells, view.pools):
            lines.append(self._lines.pool(pool))
            lines += [f"  - {self._lines.node(node)}" for node in pool.nodes[:MAX_NODES]]
            if len(pool.nodes) > MAX_NODES:
                lines.append(f"  - and {len(pool.nodes) - MAX_NODES} more nodes")
            lines += [f"  - autoscaler: {self._lines.group(group)}" for group in pool.groups]
        if view.strangers:
            lines.append("Groups of the autoscaler whose pool I don't know (`groups` of a pool in config.yaml tells):")
            lines += [f"  - {code(short_group(g.name), 80)}: {self._lines.group(g)}" for g in view.strangers]
        shown = {group.name for group in view.status.groups} if view.status else set()
        return [*lines, *self._errors(shown), *self._autoscaler(), *self._unseen()]

    def queue(self) -> list[str]:
        """Everything that waits."""
        view = self._view
        lines = [self._lines.waits(waits) for waits in view.waiting]
        lines += [self._lines.gated(waits) for waits in view.gated]
        lines += [self._lines.queued(queued) for queued in view.queued]
        if len(lines) > MAX_QUEUE:
            lines = [*lines[:MAX_QUEUE], f"and {len(lines) - MAX_QUEUE} more"]
        return [*(lines or ["Nobody waits."]), *self._unseen()]

    def _all_quiet(self) -> bool:
        view = self._view
        return not (view.waiting or view.gated or view.queued) and all(
            pool.warmth is Warmth.COLD and not pool.users for pool in view.pools
        )

    def _gated_summary(self) -> list[str]:
        gated = self._view.gated
        if not gated:
            return []
        total = sum(waits.gpus for waits in gated)
        kueue = [waits for waits in gated if waits.kueue]
        by = ", by Kueue" if len(kueue) == len(gated) else f", {len(kueue)} of them by Kueue" if kueue else ""
        pods = "1 pod is" if len(gated) == 1 else f"{len(gated)} pods are"
        return [f"🚦 {pods} held back before scheduling{by}: {gpu_count(total)}, no node is asked for"]

    def _errors(self, shown: Container[str] = ()) -> list[str]:
        """The last errors of pools and groups, but for those that are shown with their group."""
        view = self._view
        found = [(group, f"**{prose(pool.gpu, 40)}**", error) for pool in view.pools for group, error in pool.errors]
        found += [(group, f"group {code(short_group(group), 60)}", error) for group, error in view.stranger_errors]
        lines = []
        for group, name, held in found:
            if group in shown and held.over is None:
                continue
            if held.over is None:
                more = "; the autoscaler waits before it tries again" if self._in_backoff(group) else ""
                lines.append(f"⚠️ {name}: {error_words(held.error)}{self._lines.since(held.error)}{more}")
            elif self._now - held.over < OVER_SECONDS:
                at = f" at {self._lines.clock(held.error.at.timestamp())}" if held.error.at else ""
                over = self._lines.clock(held.over)
                lines.append(f"✅ {name}, over by {over}: ~~{error_words(held.error)}~~{at}")
        return lines

    def _in_backoff(self, name: str) -> bool:
        groups = self._view.status.groups if self._view.status else ()
        return any(group.name == name and group.in_backoff for group in groups)

    def _autoscaler(self) -> list[str]:
        """How far the autoscaler's own account can be trusted."""
        view, status = self._view, self._view.status
        if status is None:
            return []
        if status.problem:
            more = " What I could read of it is above." if status.groups else ""
            return [f"⚠️ I can't read the autoscaler's status: {prose(status.problem, 120)}.{more}"]
        if not status.running:
            return ["⏳ The autoscaler is starting."]
        if view.status_at is not None and self._now - view.status_at > STALE_SECONDS:
            return [f"⚠️ The autoscaler's status is from {self._lines.clock(view.status_at)}: it may not be running."]
        return [] if self._errors() else ["✅ No scale-up error"]

    def _unseen(self) -> list[str]:
        """What is not visible, said once."""
        sights = self._view.sights
        pending = [source.value for source in Source if sights[source] is Sight.PENDING]
        lines = [f"⏳ Just started: {' and '.join(pending)} not seen yet."] if pending else []
        hidden = [_SOURCES[source] for source in _SOURCES if sights[source] in {Sight.HIDDEN, Sight.NOTHING}]
        if hidden:
            visible = [_SOURCES[s] for s in _SOURCES if sights[s] in {Sight.EVERYWHERE, Sight.OURS}]
            by = _anded([*visible, "the runs"])
            lines.append(f"👁 Not visible here: {_anded(hidden)}. I go by {by}.")
        ours = [_SOURCES[source] for source in _SOURCES if sights[source] is Sight.OURS]
        if ours:
            namespace = code(self._view.namespace, 60)
            lines.append(f"👁 I see the {_anded(ours)} of {namespace} only; others may use GPUs too.")
        return lines


_SOURCES = {
    Source.NODES: "nodes",
    Source.PODS: "pods",
    Source.EVENTS: "events",
    Source.AUTOSCALER: "the autoscaler's state",
}


def _tells(pool: PoolView) -> bool:
    """Whether there is anything to tell of it: where nodes can't be seen, only who is on them."""
    return pool.warmth is not Warmth.UNKNOWN or bool(pool.users or pool.groups)


def _anded(words: Iterable[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
