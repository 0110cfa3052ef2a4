"""What two bots owe together, besides what one does: the Lease's own record, and what must not happen twice.

no write to a post by a bot whose Lease another has taken
a double only of a request that came late, and none at rest
one run for one command, one placeholder for one
each node's time once in the record of costs, each start once in the history
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.demo import EmbeddedWorld
from bot.demo.kinds import CONFIGMAPS, LEASES, NODES, PODS, WORKFLOWS
from bot.demo.world import Change
from tests.soak.record import CARD, FINALIZER, REPLY, Life, Record, real_now
from tests.soak.replicas import Pair, Request
from tests.soak.user import RUNS
from tests.soak.wire import Write

Json = dict[str, Any]
NAMESPACE = "gputest"
HISTORY, COSTS = "gputest-bot-history", "gputest-bot-costs"
ALERT, OVER = "gputest_alert", "gputest_alert_over"
SEEN_AFTER = 1.2
"""Real seconds in which a bot that leads and sees the cluster has seen that a node is gone, and has written it down."""

ROUNDED = 0.01
"""Of the seconds of nodes: each write of the record rounds them to tenths."""

ONCE = [line for line in RUNS if "rerun" not in line]
"""Commands of which each is one run, and answered by its card alone."""


@dataclass
class Machine:
    """A node, and for how long it may cost (simulated time)."""

    pool: str
    created: float
    came: float
    """When it was made, by the real clock."""
    seen: float | None = None
    """When a bot must have seen it: what lies before may be missing where the record was written in between."""
    gone: float | None = None
    went: float = 0.0
    """When it went, by the real clock."""
    seen_gone: float | None = None
    """When a bot must have seen that it is gone."""
    was_watched: bool = False
    """A bot saw the cluster when it went, and until it must have seen that: so none of its time may be missing."""

    def most(self, until: float) -> float:
        """Seconds that it may cost."""
        return max(0.0, min(until, self.seen_gone or until) - self.created)

    def least(self, until: float) -> float:
        """Seconds that it has to cost."""
        if self.seen is None or (self.gone is not None and not self.was_watched):
            return 0.0
        return max(0.0, min(until, self.gone or until) - self.seen)


class PairRecord(Record):
    """Listens to a world with two bots, and keeps account."""

    def __init__(self, world: EmbeddedWorld, margin: float) -> None:
        super().__init__(world)
        self.holders: list[tuple[float, str]] = [(real_now(), "")]
        """Who held the Lease from when on, "" for nobody."""
        self.pair: Pair
        self._margin = margin
        self._asked: dict[str, set[str]] = defaultdict(set)
        """Request -> uids of the runs that were made for it."""
        self._placeholders: dict[str, set[str]] = defaultdict(set)
        self._let_go: dict[str, tuple[float, str]] = {}
        """Run -> when its finalizer was taken off last, and who held the Lease then."""
        self._machines: dict[str, Machine] = {}
        self._seen_since: float | None = None
        world.cluster.store.subscribe(self._on_other)

    def note(self, *, well: bool, sees: bool) -> None:
        """Say how it is now, all the while. `sees`: one leads, and watches the cluster."""
        self.health.note(well=well)
        now = real_now()
        self._seen_since = (self._seen_since or now) if sees else None
        for machine in self._machines.values():
            if machine.seen is None and self._is_seen(machine.came):
                machine.seen = self._world.clock.time()
            if machine.gone is not None and machine.seen_gone is None:
                machine.was_watched &= sees
                if self._is_seen(machine.went):
                    machine.seen_gone = self._world.clock.time()

    def _is_seen(self, happened: float) -> bool:
        """Whether a bot must have seen what happened then."""
        return self._seen_since is not None and real_now() - max(self._seen_since, happened) > SEEN_AFTER

    def _on_other(self, change: Change) -> None:
        obj = change.object
        meta = obj["metadata"]
        if change.kind == LEASES:
            holder = obj["spec"].get("holderIdentity") or ""
            if holder != self.holders[-1][1]:
                self.holders.append((real_now(), holder))
        elif change.kind == PODS and (meta.get("labels") or {}).get("gputest.bot/role") == "placeholder":
            self._placeholders[meta["name"]].add(meta["uid"])
        elif change.kind == WORKFLOWS:
            request = json.loads((meta.get("annotations") or {}).get("gputest.bot/request") or "{}")
            if request.get("name") == meta["name"]:
                self._asked[request["request_id"]].add(meta["uid"])
            if FINALIZER in (meta.get("finalizers") or ()):
                self._let_go.pop(meta["uid"], None)
            else:
                self._let_go.setdefault(meta["uid"], (real_now(), self.holders[-1][1]))
        elif change.kind == NODES:
            pool = (meta.get("labels") or {}).get("k8s.scaleway.com/pool-name", "")
            created = datetime.fromisoformat(meta["creationTimestamp"]).timestamp()
            machine = self._machines.setdefault(meta["uid"], Machine(pool, created, real_now()))
            if change.type == "DELETED" and machine.gone is None:
                machine.gone, machine.went = self._world.clock.time(), real_now()
                machine.was_watched = self._seen_since is not None

    def complaints(self) -> list[str]:
        """All that is missing or too much, of every run, every command and every write."""
        parts = (self._of_writes, self._of_doubles, self._of_alerts, self._of_requests, self._of_rest, self._of_kept)
        return [*super().complaints(), *(line for part in parts for line in part())]

    @property
    def _writes(self) -> list[Write]:
        return [write for replica in self.pair.replicas for write in replica.chat.writes]

    def _held_last(self, identity: str, at: float) -> float | None:
        """When somebody ceased to hold the Lease, as of a time; that time where they hold it, None if they never did."""
        ended: float | None = None
        for number, (since, holder) in enumerate(self.holders):
            if since > at:
                break
            if holder == identity:
                ended = min(at, self.holders[number + 1][0]) if number + 1 < len(self.holders) else at
        return ended

    def _of_writes(self) -> list[str]:
        found = []
        for write in self._writes:
            held = self._held_last(write.identity, write.left)
            if held is None or write.left - held > self._margin:
                silent = "never" if held is None else f"until {write.left - held:.2f} s before"
                found.append(f"{write.identity} wrote {write.what}, and held the Lease {silent}")
        return found

    def _late(self, method: str = "POST") -> list[Write]:
        """Writes that came after another had taken the Lease; such new posts alone may be doubles for a while."""
        late = []
        for write in self._writes:
            if not write.what.startswith(method) or write.arrived is None:
                continue
            holders = {holder for since, holder in self.holders if write.left < since <= write.arrived}
            if holders - {write.identity, ""}:
                late.append(write)
        return late

    def _counts(self, reply: Json) -> bool:
        """What was removed is counted by itself."""
        return not reply["delete_at"]

    def _is_excused(self, life: Life, card: Json) -> bool:
        """An edit came late, after the run was let go, and who let it go has ended: it knew the last look of the card."""
        let_go, by = self._let_go.get(life.uid, (0.0, ""))
        late = [one for one in self._late("PUT") if card["id"] in one.what and (one.arrived or 0.0) >= let_go]
        return bool(late) and by != self.holders[-1][1]

    def _removed(self) -> list[Json]:
        keys = (CARD, REPLY)
        return [p for p in self._ours() if p["delete_at"] and any(p["props"].get(key) for key in keys)]

    def _of_doubles(self) -> list[str]:
        removed, late = self._removed(), self._late()
        if len(removed) > len(late):
            return [f"{len(removed)} doubles were removed, and {len(late)} requests came late"]
        return []

    def _of_alerts(self) -> list[str]:
        alerts = [p for p in self._ours() if p["props"].get(ALERT) and not p["delete_at"]]
        keys = Counter(p["props"][ALERT] for p in alerts)
        still = Counter(p["props"][ALERT].rpartition(":")[0] for p in alerts if not p["props"].get(OVER))
        return [f"said {n} times: {key}" for key, n in (keys | still).items() if n > 1]

    def _of_requests(self) -> list[str]:
        # what is run again by a click is named after what it repeats: once that run is deleted, it can be again
        asked = {one: uids for one, uids in self._asked.items() if not one.startswith("rerun ")}
        found = [f"{len(uids)} runs of the request {one}" for one, uids in asked.items() if len(uids) > 1]
        found += [f"{len(uids)} placeholders {name}" for name, uids in self._placeholders.items() if len(uids) > 1]
        for request in self.pair.service.requests:
            if _was_started(request) and len(self._asked[request.request_id]) != 1:
                found.append(f"{len(self._asked[request.request_id])} runs of {request.line!r}, which was taken")
        return found

    def _of_rest(self) -> list[str]:
        leaders = [one.switch.identity for one in self.pair.replicas if one.leads]
        believers = [one.switch.identity for one in self.pair.replicas if one.bot and one.bot.loop.state.leader]
        holder = self.holders[-1][1]
        return [] if leaders == believers == [holder] else [f"{holder!r} holds the Lease, {leaders}, {believers} lead"]

    def _of_kept(self) -> list[str]:
        starts = Counter((one["run"], one["attempt"]) for one in self._starts())
        found = [f"{count} starts of {start}" for start, count in starts.items() if count > 1]
        counted, least, most = self.costs()
        for pool in counted.keys() | least.keys():
            slack = 20.0 + ROUNDED * counted[pool]
            if not least[pool] - slack <= counted[pool] <= most[pool] + slack:
                found.append(f"{counted[pool]:.0f} s of {pool} count, and were {least[pool]:.0f} to {most[pool]:.0f}")
        return found

    def _data(self, name: str) -> dict[str, str]:
        found = self._world.cluster.store.find(CONFIGMAPS, NAMESPACE, name) or {}
        return found.get("data") or {}

    def _starts(self) -> list[Json]:
        starts: list[Json] = json.loads(self._data(HISTORY).get("starts.json") or '{"starts": []}')["starts"]
        return starts

    def costs(self) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
        """Seconds by pool that are in the record, and the least and the most that there can have been."""
        data = self._data(COSTS)
        until = json.loads(data.get("state") or '{"until": 0}')["until"]
        counted: dict[str, float] = defaultdict(float)
        for month in data.keys() - {"state"}:
            for pools in json.loads(data[month]).values():
                for pool, uses in pools.items():
                    counted[pool] += sum(uses.values())
        least: dict[str, float] = defaultdict(float)
        most: dict[str, float] = defaultdict(float)
        for machine in self._machines.values():
            least[machine.pool] += machine.least(until)
            most[machine.pool] += machine.most(until)
        return counted, least, most

    def summary(self) -> str:
        """What there was, counted."""
        counted, least, most = self.costs()
        count = {
            "lives that led": len({holder for _, holder in self.holders if holder}),
            "changes of the Lease": len(self.holders) - 1,
            "writes": len(self._writes),
            "posts came late": len(self._late()),
            "edits came late": len(self._late("PUT")),
            "doubles removed": len(self._removed()),
            "alerts": sum(bool(p["props"].get(ALERT)) for p in self._ours()),
            "requests given to both": self.pair.service.doubled,
            "starts kept": len(self._starts()),
            "seconds of nodes counted": round(sum(counted.values())),
            "at least": round(sum(least.values())),
            "at most": round(sum(most.values())),
        }
        return f"{super().summary()}; " + ", ".join(f"{number} {what}" for what, number in count.items())


def _was_started(request: Request) -> bool:
    """Whether a command that begins a run was taken: it is answered with nothing, for its card says the rest."""
    return request.line.strip() in ONCE and any(answer == {} for answer in request.answers)
