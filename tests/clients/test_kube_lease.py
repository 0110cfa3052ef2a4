"""One of many speaks: who waits takes over in time, who goes gives back, and no two hold at once."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from bot.clients.errors import Conflict, NotFound, ServerFault
from bot.clients.kube_lease import Lease, LeaseTiming

FAST = LeaseTiming(duration=0.4, renew=0.1, margin=0.1, retry=0.3)


@dataclass
class OneLease:
    """An API server that keeps one Lease, and of two writers refuses the second."""

    stored: dict[str, Any] | None = None
    version: int = 0
    broken: bool = False
    answers: asyncio.Event | None = None
    """Where it is there and not set, nobody is answered."""
    writes: list[str] = field(default_factory=list)
    before_write: Any = None

    async def read(self, path: str) -> bytes:
        if self.answers is not None:
            await self.answers.wait()
        if self.broken:
            raise ServerFault("broken")
        if self.stored is None:
            raise NotFound("no lease")
        return json.dumps(self.stored).encode()

    async def create(self, path: str, body: dict[str, Any]) -> bytes:
        if self.stored is not None:
            raise Conflict("it is there")
        return self._keep(body)

    async def replace(self, path: str, body: dict[str, Any]) -> bytes:
        if self.before_write is not None:
            hook, self.before_write = self.before_write, None
            await hook()
        if body["metadata"].get("resourceVersion") != str(self.version):
            raise Conflict("somebody wrote first")
        return self._keep(body)

    def _keep(self, body: dict[str, Any]) -> bytes:
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.stored = body
        self.writes.append(body["spec"]["holderIdentity"])
        return json.dumps(body).encode()


@dataclass
class Replica:
    """One holder or waiter, and what it was told."""

    lease: Lease
    told: list[str] = field(default_factory=list)


@asynccontextmanager
async def running(server: OneLease, name: str, timing: LeaseTiming = FAST) -> AsyncIterator[Replica]:
    """A replica for as long as the block lasts; it ends as a crash does."""
    replica = Replica(Lease(server, "gputest", "gputest-bot", name, timing))
    told = replica.told
    work = replica.lease.run(lambda: told.append("won"), lambda: told.append("lost"), told.append)
    task = asyncio.get_running_loop().create_task(work)
    try:
        yield replica
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until(check: Any, limit: float = 5.0) -> float:
    """Wait until something holds; how long it took."""
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(limit):
        while not check():
            await asyncio.sleep(0.01)
    return asyncio.get_running_loop().time() - began


async def test_a_waiter_takes_over_as_soon_as_the_time_is_over() -> None:
    """It does not sleep past the end of the time of the last renewal that it saw, whatever its own rhythm is."""
    server = OneLease()
    async with running(server, "a") as first, running(server, "b") as second:
        await until(lambda: first.told == ["won"])
        await until(lambda: second.lease._free_at > 0)
        assert not second.lease.held()
    async with running(server, "b") as second:
        took = await until(lambda: second.told == ["won"])

    assert 0.39 <= took < 0.59


async def test_of_two_at_once_one_wins() -> None:
    """Both see none and both create: one is refused, and waits."""
    server = OneLease()
    async with running(server, "a") as first, running(server, "b") as second:
        await until(lambda: first.told + second.told)
        await asyncio.sleep(0.1)
        assert [first.lease.held(), second.lease.held()].count(True) == 1


async def test_who_goes_gives_back_and_takes_nothing_any_more() -> None:
    """The next look of the one that goes finds the Lease free, and leaves it."""
    server = OneLease()
    async with running(server, "a") as first:
        await until(lambda: first.told == ["won"])
        await first.lease.release()
        await asyncio.sleep(0.3)

        assert server.writes[-1] == ""
        assert not first.lease.held()


async def test_a_renewal_that_crosses_the_giving_back_does_not_keep_it() -> None:
    """Both were under way: the giving back is refused once, and is done again."""
    server = OneLease()
    async with running(server, "a", LeaseTiming(duration=9, renew=9, margin=1, retry=9)) as first:
        await until(lambda: first.told == ["won"])

        async def renewal() -> None:
            server._keep({"metadata": {}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 9}})

        server.before_write = renewal
        await first.lease.release()

    assert server.writes[-1] == ""
    assert not first.lease.held()


async def test_a_holder_whose_renewal_fails_tries_again_soon_and_falls_silent_in_time() -> None:
    """A margin before the end of its time it may not write any more, and it says so."""
    server = OneLease()
    async with running(server, "a", LeaseTiming(duration=0.5, renew=0.15, margin=0.1, retry=0.05)) as only:
        await until(lambda: only.told == ["won"])
        server.broken = True
        took = await until(lambda: not only.lease.held())
        await until(lambda: "lost" in only.told)
        assert took < 0.45
        assert only.told.count("broken") >= 3
        server.broken = False
        await until(lambda: only.told[-1] == "won")


async def test_a_holder_that_gets_no_answer_says_that_its_time_is_over() -> None:
    """It does not wait for the answer to its renewal, which may come long after another has taken over."""
    server = OneLease()
    async with running(server, "a", LeaseTiming(duration=0.5, renew=0.15, margin=0.1, retry=0.05)) as only:
        await until(lambda: only.told == ["won"])
        server.answers = asyncio.Event()
        took = await until(lambda: "lost" in only.told)
        assert took < 0.45
        assert not only.lease.held()
        server.answers.set()
        await until(lambda: only.told[-1] == "won")


async def test_a_holder_that_stood_still_says_that_another_may_have_spoken() -> None:
    """Its process was stopped: when it goes on, the Lease is free again, and what it knows of the chat may be old."""
    server = OneLease()
    async with running(server, "a") as first:
        await until(lambda: first.told == ["won"])
        first.lease._held_until = 0.0  # nothing of this process turned until then
        server._keep({"metadata": {}, "spec": {"holderIdentity": "b", "leaseDurationSeconds": 0}})
        server._keep({"metadata": {}, "spec": {"holderIdentity": "", "leaseDurationSeconds": 0}})
        await until(lambda: first.told[-1] == "won" and len(first.told) > 1)

    assert first.told == ["won", "lost", "won"]


async def test_giving_back_what_is_not_held_asks_nobody() -> None:
    """And where the server is away, it runs out by itself."""
    server = OneLease(broken=True)
    lease = Lease(server, "gputest", "gputest-bot", "a", FAST)
    await lease.release()
    assert server.writes == []

    server.broken = False
    async with running(server, "a") as first:
        await until(lambda: first.told == ["won"])
        server.broken = True
        await first.lease.release()

    assert server.writes == ["a"]
    with pytest.raises(ServerFault):
        await server.read("")
