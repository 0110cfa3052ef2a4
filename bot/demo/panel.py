"""The side panel of the chat page: what the simulated cluster looks like, and switches to break things.

The view is plain JSON, made anew each time; the page compares it with what it shows. A switch is on or off, a deed is
done once. The bot is none of this world's parts: whoever composes the demo hands in how to end and start it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

from bot.demo.argo_schedule import BadSchedule, next_time, schedules_of
from bot.demo.embedded import EmbeddedWorld
from bot.demo.faults import Fault
from bot.demo.kinds import CRON_WORKFLOWS, NODES, PODS
from bot.demo.pools import GPU, Pool, gpus_of
from bot.demo.world import Json

H100 = "ci-training-h100"
SLOW_SECONDS = 1.0
"""What the API server takes for every answer while it is slow; less than the bot's Lease can bear."""

SKIPPING_SPEED = 20_000.0
"""Simulated seconds in one on the way to the next night: twelve hours are two seconds."""

PAUSED = 1e-6
"""As good as standing still; a speed of 0 would wait to be stepped by hand."""

SHOWN_RUNS = 6
PREFIX = "workflows.argoproj.io"


class BotControl(Protocol):
    """The bot, as far as the panel has to do with it."""

    @property
    def condition(self) -> str:
        """`starting`, `running`, `killed` or `crashed`."""

    async def start(self) -> None:
        """Start it, unless it runs."""

    async def kill(self) -> None:
        """End it as a crash does."""


class BadDeed(ValueError):
    """Nothing that the panel can do; the text says why."""


class Panel:
    """One world's panel."""

    def __init__(self, world: EmbeddedWorld, bot: BotControl, speed: float) -> None:
        self._world, self._bot = world, bot
        self._speed = self._speed_after_skip = speed
        self._target: float | None = None
        self._slow: Fault | None = None
        self._out_of_stock = self._over_quota = False
        self._switches: dict[str, tuple[Callable[[], bool], Callable[[bool], Awaitable[None]]]] = {
            "chat-down": (lambda: world.chat_faults.is_away, self._chat_down),
            "api-slow": (lambda: self._slow is not None, self._api_slow),
            "no-stock": (lambda: self._out_of_stock, self._no_stock),
            "over-quota": (lambda: self._over_quota, self._quota),
            "bot-killed": (lambda: bot.condition in ("killed", "crashed"), self._kill_bot),
        }
        self._deeds: dict[str, Callable[[], str]] = {
            "api-gone": self._api_gone,
            "lose-node": self._lose_node,
            "skip-to-night": self._skip_to_night,
        }

    # What there is to see.

    def view(self) -> Json:
        """Everything that the panel shows."""
        clock = self._world.clock
        base = self._speed
        return {
            "clock": {
                "now": clock.time(),
                "speed": 0 if clock.speed == PAUSED else clock.speed,
                "skipping": self._target is not None,
                "speeds": [0, base / 4, base, base * 3],
            },
            "pools": [self._pool(pool) for pool in self._world.cluster.autoscaler.pools.values()],
            "waiting": [self._pod(pod) for pod in self._pods() if not pod["spec"].get("nodeName")],
            "runs": self._runs(),
            "nightly": self._nightly(),
            "switches": {name: is_on() for name, (is_on, _) in self._switches.items()},
            "bot": self._bot.condition,
        }

    def _pool(self, pool: Pool) -> Json:
        return {
            "name": pool.name,
            "gpu": pool.gpu_product.removeprefix("NVIDIA-").split("-")[0],
            "maximum": pool.maximum,
            "ordered": pool.ordered,
            "error": pool.error[1] if pool.error else "",
            "nodes": [self._node(pool, name) for name in pool.nodes],
        }

    def _node(self, pool: Pool, name: str) -> Json:
        node = self._world.cluster.store.find(NODES, "", name) or {"status": {}}
        pods = [pod for pod in self._pods() if pod["spec"].get("nodeName") == name]
        conditions = node["status"].get("conditions") or [{}]
        gpus = int((node["status"].get("allocatable") or {}).get(GPU, 0))
        if conditions[0].get("status") != "True":
            state = "not ready"
        else:
            state = "ready" if gpus == pool.gpus else "installing the GPU driver"
        used = sum(gpus_of(pod) for pod in pods if pod["status"].get("phase") in ("Pending", "Running"))
        return {
            "name": name,
            "state": state,
            "gpus": gpus,
            "used": used,
            "pods": [self._pod(pod) for pod in pods],
        }

    def _pods(self) -> list[Json]:
        return self._world.cluster.store.all(PODS, self._world.cluster.namespace)

    def _pod(self, pod: Json) -> Json:
        meta = pod["metadata"]
        workflow = (meta.get("labels") or {}).get(f"{PREFIX}/workflow", "")
        template = meta["name"].removeprefix(f"{workflow}-").rpartition("-")[0]
        return {"run": workflow, "template": template or meta["name"], "phase": pod["status"].get("phase", "Pending")}

    def _runs(self) -> list[Json]:
        newest = reversed(self._world.cluster.workflows()[-SHOWN_RUNS:])
        return [
            {
                "name": wf["metadata"]["name"],
                "phase": (wf.get("status") or {}).get("phase") or "Pending",
                "progress": (wf.get("status") or {}).get("progress", ""),
            }
            for wf in newest
        ]

    def _nightly(self) -> Json:
        found = self._world.cluster.store.all(CRON_WORKFLOWS, self._world.cluster.namespace)
        if not found:
            return {}
        spec = found[0]["spec"]
        now = self._world.clock.now()
        try:
            times = [next_time(one, spec.get("timezone", ""), now).timestamp() for one in schedules_of(spec)]
        except BadSchedule:
            times = []
        on = not spec.get("suspend")
        return {"name": found[0]["metadata"]["name"], "on": on, "next": min(times, default=None) if on else None}

    # What can be done.

    async def switch(self, name: str, on: bool) -> str:
        """Break or mend something; returns a sentence. Raises BadDeed."""
        if name not in self._switches:
            raise BadDeed(f"There is no switch {name!r}.")
        is_on, turn = self._switches[name]
        if is_on() != on:
            await turn(on)
        return ""

    def do(self, name: str) -> str:
        """Do something once; returns a sentence. Raises BadDeed."""
        if name not in self._deeds:
            raise BadDeed(f"There is nothing like {name!r} to do.")
        return self._deeds[name]()

    def set_speed(self, speed: float) -> str:
        """Let the simulated clock run at another speed, 0 to pause it. Raises BadDeed."""
        if not 0 <= speed <= SKIPPING_SPEED:
            raise BadDeed(f"The speed is from 0 to {SKIPPING_SPEED:g}.")
        self._speed_after_skip = speed
        if self._target is None:
            self._world.clock.set_speed(speed or PAUSED)
        return ""

    def _skip_to_night(self) -> str:
        clock = self._world.clock
        if self._target is None:
            now = clock.now()
            night = now.replace(hour=1, minute=59, second=0, microsecond=0)
            target = night if night > now else night + timedelta(days=1)
            self._target, self._speed_after_skip = target.timestamp(), clock.speed
            # Nothing is left out on the way: all that is due happens, each thing at its time.
            clock.set_speed(SKIPPING_SPEED)
            clock.call_at(self._target, self._skipped)
        return f"On the way to {datetime.fromtimestamp(self._target, UTC):%A, %H:%M} UTC."

    def _skipped(self) -> None:
        self._target = None
        self._world.clock.set_speed(self._speed_after_skip or PAUSED)

    def _api_gone(self) -> str:
        self._world.cluster.store.forget()
        self._world.kube_faults.cut_streams()
        return "All watches are cut, and the changes until now forgotten: who comes back is told 410."

    def _lose_node(self) -> str:
        nodes = [(pool, name) for pool in self._world.cluster.autoscaler.pools.values() for name in pool.nodes]
        busy = {pod["spec"].get("nodeName") for pod in self._pods() if gpus_of(pod)}
        chosen = [name for _, name in nodes if name in busy] or [name for pool, name in nodes if pool.gpus]
        if not chosen:
            raise BadDeed("There is no GPU node to lose. Start a run first.")
        self._world.cluster.remove_node(chosen[0])
        return f"Node {chosen[0]} is gone, with everything on it."

    async def _chat_down(self, on: bool) -> None:
        self._world.chat_faults.away(on)

    async def _api_slow(self, on: bool) -> None:
        if self._slow is not None:
            self._slow.release()
        self._slow = self._world.kube_faults.delay(SLOW_SECONDS, times=None) if on else None

    async def _no_stock(self, on: bool) -> None:
        self._out_of_stock = on
        self._set_failures()

    async def _quota(self, on: bool) -> None:
        self._over_quota = on
        self._set_failures()

    def _set_failures(self) -> None:
        autoscaler = self._world.cluster.autoscaler
        for name, pool in autoscaler.pools.items():
            if self._out_of_stock and name == H100:
                autoscaler.fail(name, "OUT_OF_STOCK")
            elif self._over_quota and pool.gpus:
                autoscaler.fail(name, "QUOTA_EXCEEDED")
            else:
                autoscaler.heal(name)

    async def _kill_bot(self, on: bool) -> None:
        if on:
            await self._bot.kill()
        else:
            if self._bot.condition == "crashed":
                await self._bot.kill()
            await self._bot.start()
