"""The random user, where the bot has two replicas, and whoever runs them.

Besides all that a random user does, either bot is killed, told to end, started again, cut off from one server, slow, or
stopped in the middle of a write, for less or more than its Lease lasts. That mends itself, while everything else goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.soak.pair_record import PairRecord
from tests.soak.record import real_now
from tests.soak.replicas import Pair, Replica
from tests.soak.user import RandomUser

SHORT, LONG = (0.1, 1.5), (2.2, 5.0)
"""Seconds for which something of a replica is in disorder: the Lease lasts two."""

LOOK_SECONDS = 0.05
CLUSTER = {"cluster", "api-slow", "bot-killed"}
"""What breaks how a bot sees the cluster."""


class RollingUser(RandomUser):
    """Who does anything to anybody."""

    def __init__(self, play: Pair, record: PairRecord, seed: int) -> None:
        super().__init__(play, record, seed)  # type: ignore[arg-type]  # it has what is asked of a demo
        self._pair, self._account = play, record
        self._under_way: set[asyncio.Task[None]] = set()
        self._fallen: set[str] = set()
        crosses: list[tuple[int, Callable[[Replica, float], Awaitable[None]]]] = [
            (5, self._kill),
            (5, self._stop),
            (3, self._cut_chat),
            (3, self._cut_cluster),
            (3, self._hold_cluster),
            (3, self._sleep),
            (5, self._speak_late),
        ]
        self._crosses = crosses
        self._deeds += [(6, self.cross), (2, self.roll), (3, self.forget)]

    async def walk(self, seconds: float) -> None:
        """Go on for so long, then mend everything."""
        ticks = asyncio.get_running_loop().create_task(self._keep_looking())
        await super().walk(seconds)
        while self._under_way:
            await asyncio.wait(self._under_way)
        for replica in self._pair.replicas:
            await replica.start()
        self.looking = ticks

    async def rest(self) -> None:
        """Look no more."""
        self.looking.cancel()
        await asyncio.wait([self.looking])

    async def _keep_looking(self) -> None:
        while True:
            self._note_health()
            await asyncio.sleep(LOOK_SECONDS)

    def _note_health(self) -> None:
        speaker = self._pair.speaker()
        posts = speaker.bot._posts if speaker is not None and speaker.bot is not None else None
        listens = posts is not None and posts._connected and not posts._gap
        believes = speaker is not None and speaker.bot is not None and speaker.bot.loop.state.leader
        for replica in self._pair.replicas:
            replica.look(cluster_is_well=not CLUSTER & {name.split(":")[0] for name in self._mend_at})
        sees = any(one.leads and one.sees for one in self._pair.replicas)
        self._account.note(well=believes and listens and not self._mend_at, sees=sees)
        for replica in self._pair.replicas:
            if replica.switch.condition == "crashed" and replica.switch.identity not in self._fallen:
                self._fallen.add(replica.switch.identity)
                self.complaints.append(f"{replica.name} crashed: {replica.switch._bot.crashed.result()}")  # type: ignore[union-attr]

    async def do_something(self) -> str:
        """As a random user does, but the clock does not hurry while a run that is deleted may have to wait for a bot."""
        if any(one["metadata"].get("deletionTimestamp") for one in self._world.cluster.workflows()):
            return f"api-gone: {self._pair.page.panel.do('api-gone')}"
        return await super().do_something()

    async def cross(self) -> str:
        """Something happens to one of them; to the one that leads, every second time."""
        free = [one for one in self._pair.replicas if not one.is_crossed]
        if not free:
            return "both have their trouble"
        leading = [one for one in free if one.leads]
        replica = self._dice.choice(leading if leading and self._dice.random() < 0.5 else free)
        (chosen,) = self._dice.choices(self._crosses, [weight for weight, _ in self._crosses])
        seconds = self._dice.uniform(*self._dice.choice([SHORT, LONG]))
        self._begin(replica, f"{chosen[1].__name__.strip('_')}", chosen[1], seconds)
        return f"{replica.switch.identity}: {chosen[1].__name__.strip('_')} for {seconds:.1f} s"

    async def roll(self) -> str:
        """A rolling update: one after the other ends, and comes again."""
        free = [one for one in self._pair.replicas if not one.is_crossed]
        if len(free) < 2:
            return "not now"

        async def both() -> None:
            for replica in free:
                await replica.stop()
                await replica.start()
                await asyncio.sleep(0.5)

        for replica in free:
            replica.is_crossed = True
        self._spawn("roll", free, both())
        return "both, one after the other"

    async def forget(self) -> str:
        """The chat forgets which posts it had just been sent, as with another of its servers in front."""
        forgotten = len(self._world.chat.api.posts._pending)
        self._world.chat.api.posts._pending.clear()
        return f"{forgotten} posts"

    async def _perhaps_forget(self) -> None:
        """The server takes a request that comes late for a repetition of one that it knows, or has forgotten that one."""
        if self._dice.random() < 0.5:
            await self.forget()

    def _begin(
        self, replica: Replica, name: str, deed: Callable[[Replica, float], Awaitable[None]], seconds: float
    ) -> None:
        replica.is_crossed = True
        self._spawn(f"{replica.switch.identity}: {name}", [replica], deed(replica, seconds))

    def _spawn(self, name: str, replicas: list[Replica], work: Awaitable[None]) -> None:
        async def until_over() -> None:
            self._note_health()
            try:
                await work
            finally:
                for replica in replicas:
                    replica.is_crossed = False
            self._write(f"over: {name}")
            self._note_health()

        task = asyncio.get_running_loop().create_task(until_over())
        self._under_way.add(task)
        task.add_done_callback(self._came_to_its_end)

    def _came_to_its_end(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.complaints.append(f"what was done to a replica failed: {task.exception()!r}")

    async def _kill(self, replica: Replica, seconds: float) -> None:
        await replica.kill()
        await asyncio.sleep(seconds)
        await replica.start()

    async def _stop(self, replica: Replica, seconds: float) -> None:
        began = real_now()
        await replica.stop()
        await asyncio.sleep(max(0.0, began + seconds - real_now()))
        await replica.start()

    async def _cut_chat(self, replica: Replica, seconds: float) -> None:
        replica.chat.cut()
        await asyncio.sleep(seconds)
        replica.chat.let_pass()

    async def _cut_cluster(self, replica: Replica, seconds: float) -> None:
        replica.kube.cut()
        await asyncio.sleep(seconds)
        replica.kube.let_pass()

    async def _hold_cluster(self, replica: Replica, seconds: float) -> None:
        """It asks, and nobody answers: what it knows gets old, and so does its Lease."""
        replica.kube.hold(answers=True)
        await asyncio.sleep(seconds)
        replica.kube.let_pass()

    async def _sleep(self, replica: Replica, seconds: float) -> None:
        """Its process stands still: nothing comes to it, and what it was about to send goes when it wakes."""
        for wire in replica.wires:
            wire.hold(requests=True, answers=True)
        await asyncio.sleep(seconds)
        await self._perhaps_forget()
        for wire in replica.wires:
            wire.let_pass()

    async def _speak_late(self, replica: Replica, seconds: float) -> None:
        """What it has sent to the chat comes there when another may have spoken."""
        replica.chat.hold(requests=True)
        await asyncio.sleep(seconds)
        await self._perhaps_forget()
        replica.chat.let_pass()
