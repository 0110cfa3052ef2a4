"""A cluster's months for the meter: nodes and pods come and go by the clock of a zone, bots live and die, a ConfigMap stays.

Times are written as people read them, `03-29 01:30`, in the zone of the settings; of the hour that comes twice the first.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from bot.core.card import CI_LABEL
from bot.core.cost import Use
from bot.core.cost_record import Record, read
from bot.core.effects import KeepCosts, WakeAt
from bot.core.events import (
    CostsRead,
    EffectDone,
    EffectFailed,
    LeaseLost,
    LeaseWon,
    PoolsSeen,
    Trouble,
    Woke,
    WorkflowChanged,
    WorkflowsListed,
)
from bot.core.kube import Meta
from bot.core.settings import Pool, Settings
from bot.core.sightings import GpuPod, NodeSeen, NodesListed, PodSeen, PodsListed, PoolNode, Source, SourceHidden
from bot.core.workflow import CRON_LABEL, Workflow
from tests.core.playbook import Playbook
from tests.core.pool_phrases import H100, L4, L40S, node, pod
from tests.phrases import SETTINGS, workflow_json

YEAR = 2026
PRICES = {H100: 2.73, L40S: 1.40, L4: 0.75}
GPUS = {H100: "H100", L40S: "L40S", L4: "L4"}
PARIS = replace(
    SETTINGS,
    timezone="Europe/Paris",
    pools=tuple(Pool(name, gpu, "90", price_per_hour=PRICES[name]) for name, gpu in GPUS.items()),
)
LABELS = {
    Use.NIGHTLY: {CRON_LABEL: "gpu-test-nightly"},
    Use.PUSH: {CI_LABEL: "main"},
    Use.MANUAL: {},
}


@dataclass
class Bot:
    """One replica."""

    book: Playbook
    wakes: dict[str, float] = field(default_factory=dict)


@dataclass
class World:
    """What lasts when a bot ends."""

    settings: Settings = PARIS
    nodes_visible: bool = True
    now: float = 0.0
    nodes: dict[str, PoolNode] = field(default_factory=dict)
    pods: dict[str, GpuPod] = field(default_factory=dict)
    runs: dict[str, Workflow] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)
    version: int = 0
    bots: dict[str, Bot] = field(default_factory=dict)
    writes: list[float] = field(default_factory=list)
    lose_answers: int = 0
    """So many of the next writes are done and their answers lost."""

    # time

    def at(self, text: str) -> float:
        """A time of the zone as Unix seconds."""
        moment = datetime.strptime(f"{YEAR}-{text}", "%Y-%m-%d %H:%M")  # noqa: DTZ007  # the zone comes next
        return moment.replace(tzinfo=ZoneInfo(self.settings.timezone)).timestamp()

    def to(self, when: str | float) -> None:
        """Let time pass; what the bots wanted to be woken for comes."""
        goal = self.at(when) if isinstance(when, str) else when
        while True:
            due = [(at, key, bot) for bot in self.bots.values() for key, at in bot.wakes.items() if at <= goal]
            if not due:
                break
            at, key, bot = min(due, key=lambda one: one[:2])
            del bot.wakes[key]
            self.now = max(self.now, at)
            self._tell(bot, Woke(key))
        self.now = goal

    # bots

    def start(self, name: str = "bot", *, leads: bool = True) -> Bot:
        """A bot begins: it reads what is there."""
        bot = self.bots[name] = Bot(Playbook(settings=self.settings, now=self.now, leader=False))
        self._tell(bot, CostsRead(dict(self.data), str(self.version) if self.version else ""))
        nodes = NodesListed(tuple(self.nodes.values())) if self.nodes_visible else SourceHidden(Source.NODES)
        self._tell(bot, PoolsSeen(nodes))
        self._tell(bot, PoolsSeen(PodsListed(tuple(self.pods.values()), everywhere=True)))
        for run in self.runs.values():
            self._tell(bot, WorkflowChanged(run))
        self._tell(bot, WorkflowsListed(frozenset(run.metadata.uid for run in self.runs.values())))
        if leads:
            self.lead(name)
        return bot

    def stop(self, name: str = "bot") -> None:
        """It ends, as by a crash."""
        del self.bots[name]

    def lead(self, name: str) -> None:
        """It wins the Lease, and who had it loses it."""
        for other in self.bots.values():
            if other.book.state.leader:
                self._tell(other, LeaseLost())
        self._tell(self.bots[name], LeaseWon())

    def record(self) -> Record:
        """What is kept."""
        return read(self.data, str(self.version))

    # the cluster

    def up(self, name: str, pool: str, when: str, gpus: int = 1, uid: str = "") -> None:
        """A node is created."""
        self.to(when)
        meta = Meta(name, "", uid or f"{name}-{self.now}", "")
        self.nodes[name] = replace(node(name, pool, gpus), metadata=meta, created=self.now)
        if self.nodes_visible:
            self._everywhere(PoolsSeen(NodeSeen(self.nodes[name])))

    def down(self, name: str, when: str) -> None:
        """A node goes."""
        self.to(when)
        gone = self.nodes.pop(name)
        if self.nodes_visible:
            self._everywhere(PoolsSeen(NodeSeen(gone, gone=True)))

    def on(self, name: str, where: str, when: str, use: Use = Use.MANUAL, gpus: int = 1) -> None:
        """A pod gets its place on a node."""
        self.to(when)
        run = name if use in LABELS else ""
        if run:
            body = workflow_json(run, phase="Running", meta={"labels": LABELS[use]}, version=int(self.now))
            self.runs[run] = msgspec.json.decode(json.dumps(body), type=Workflow)
            self._everywhere(WorkflowChanged(self.runs[run]))
        pool = self.nodes[where].pool if where in self.nodes else H100
        labels = {"gputest.bot/role": "placeholder", "gputest.bot/until": "9999999999"} if use is Use.WARM else {}
        more: dict[str, Any] = {"workflow": run} if run else {}
        seen = pod(name, gpus, node=where, pool=pool, labels=labels, **more)
        self.pods[name] = replace(seen, placed_at=self.now if run else None, created=self.now)
        self._everywhere(PoolsSeen(PodSeen(self.pods[name])))

    def off(self, name: str, when: str) -> None:
        """A pod ends."""
        self.to(when)
        self.runs.pop(name, None)
        self._everywhere(PoolsSeen(PodSeen(self.pods.pop(name), gone=True)))

    # wires

    def _everywhere(self, event: Any) -> None:
        for bot in list(self.bots.values()):
            self._tell(bot, event)

    def _tell(self, bot: Bot, event: Any) -> None:
        bot.book.now = self.now
        for effect in bot.book.tell(event):
            if isinstance(effect, WakeAt):
                bot.wakes[effect.key] = effect.when
            elif isinstance(effect, KeepCosts):
                self._write(bot, effect)

    def _write(self, bot: Bot, effect: KeepCosts) -> None:
        if effect.version != (str(self.version) if self.version else ""):
            self._tell(bot, EffectFailed(effect.id, Trouble.CONFLICT, "somebody wrote first"))
            return
        self.version += 1
        self.writes.append(self.now)
        self.data = {k: v for k, v in (self.data | effect.data).items() if v is not None}
        if self.lose_answers:
            self.lose_answers -= 1
            self._tell(bot, EffectFailed(effect.id, Trouble.UNCERTAIN, "no answer"))
        else:
            self._tell(bot, EffectDone(effect.id, str(self.version)))
        self._everywhere(CostsRead(dict(self.data), str(self.version)))


def minutes(record: Record, month: str) -> dict[str, dict[str, float]]:
    """Minutes of a month, or of a day, by pool and use; rounded to what two decimals hold."""
    found: dict[str, dict[str, float]] = {}
    for day, pools in record.days.items():
        for name, uses in pools.items() if day.startswith(month) else ():
            for use, seconds in uses.items():
                of = found.setdefault(name, {})
                of[use] = of.get(use, 0.0) + seconds / 60
    return {name: {use: round(m, 2) for use, m in uses.items() if round(m, 2)} for name, uses in found.items()}
