"""The Lease that decides which replica speaks about runs.

Semantics as client-go's leader election: a holder renews before its time is over; others take a Lease only when they
have watched it unrenewed for its whole duration by their own clock, so that clocks need not agree. Writes carry
the resourceVersion, so of two takers one gets 409. Source: client-go tools/leaderelection/leaderelection.go.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from bot.clients.errors import Conflict, NotFound, WireError
from bot.clients.kube import Kube


@dataclass(frozen=True)
class LeaseTiming:
    """`duration`: others may take over after so many seconds without renewal. `renew`: how often a holder renews.
    `retry`: between two looks of one who waits, and of a holder whose renewal failed.

    `margin`: how long before its end a holder falls silent by itself; longer than the longest write (10 s) is
    not affordable within a fail-over of 20 s, the sweep removes what slips through.
    """

    duration: float = 15.0
    renew: float = 5.0
    margin: float = 3.0
    retry: float = 2.0


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Lease(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)


class Lease:
    """One replica's hold on the Lease."""

    def __init__(self, kube: Kube, namespace: str, name: str, identity: str, timing: LeaseTiming) -> None:
        self._kube = kube
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._timing = timing
        self._held_until = 0.0
        self._observed: tuple[str, str] = ("", "")
        self._observed_at = 0.0
        self._free_at = 0.0
        """When the holder's time is over, by our clock, if nothing new is seen of it."""
        self._leaving = False

    @property
    def _path(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self._namespace}/leases"

    def held(self) -> bool:
        """Whether this process may write now. Asked right before each write, also from worker threads."""
        return time.monotonic() < self._held_until

    async def run(
        self, on_won: Callable[[], None], on_lost: Callable[[], None], on_trouble: Callable[[str], None]
    ) -> None:
        """Take and keep the Lease, for ever; `on_won` and `on_lost` alternate.

        `on_lost` comes as soon as the time is over, even where a renewal is still under way, and also where this
        process stood still until then: another may have held the Lease meanwhile, and given it back.
        """
        leading = False
        while True:
            if leading and not self.held():
                leading = False
                on_lost()
            try:
                async with asyncio.timeout(self._held_until - time.monotonic() if leading else None):
                    held = renewed = await self._try()
            except (WireError, TimeoutError) as error:
                held, renewed = self.held(), False
                on_trouble(error.reason if isinstance(error, WireError) else "the Lease was not renewed in time")
            if held != leading:
                leading = held
                (on_won if held else on_lost)()
            await asyncio.sleep(self._timing.renew if renewed and self.held() else self._pause())

    def _pause(self) -> float:
        """Seconds until the next look; a Lease that comes free before is not left waiting."""
        left = self._free_at - time.monotonic()
        return min(self._timing.retry, left + 0.05) if left > 0 else self._timing.retry

    async def release(self) -> None:
        """Give the Lease back, so that another replica need not wait for its end."""
        if not self.held():
            return
        self._leaving, self._held_until = True, 0.0
        for _ in range(2):
            try:
                lease = await self._read()
                if lease is not None and lease.spec.holder_identity == self._identity:
                    await self._write(lease, holder="")
            except Conflict:
                continue  # a renewal of our own was under way
            except WireError:
                pass  # it runs out by itself
            return

    async def _try(self) -> bool:
        lease = await self._read()
        if self._leaving:
            return False
        if lease is None:
            await self._create()
            return self.held()
        holder = lease.spec.holder_identity or ""
        record = (holder, lease.spec.renew_time or "")
        if record != self._observed:
            self._observed, self._observed_at = record, time.monotonic()
        duration = lease.spec.lease_duration_seconds or self._timing.duration
        self._free_at = self._observed_at + duration
        if holder and holder != self._identity and time.monotonic() < self._free_at:
            self._held_until = 0.0
            return False
        try:
            await self._write(lease, holder=self._identity)
        except Conflict:
            self._held_until = 0.0
            return False
        return self.held()

    async def _read(self) -> _Lease | None:
        try:
            return msgspec.json.decode(await self._kube.read(f"{self._path}/{self._name}"), type=_Lease)
        except NotFound:
            return None

    async def _create(self) -> None:
        started = time.monotonic()
        body = self._body("", self._identity, 0)
        try:
            await self._kube.create(self._path, body)
        except Conflict:
            return
        self._held_until = started + self._timing.duration - self._timing.margin

    async def _write(self, lease: _Lease, *, holder: str) -> None:
        started = time.monotonic()
        changed = (lease.spec.holder_identity or "") != holder
        transitions = (lease.spec.lease_transitions or 0) + int(changed and bool(holder))
        await self._kube.replace(
            f"{self._path}/{self._name}", self._body(lease.metadata.resource_version, holder, transitions)
        )
        if holder and not self._leaving:
            self._held_until = started + self._timing.duration - self._timing.margin

    def _body(self, version: str, holder: str, transitions: int) -> dict[str, object]:
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"  # MicroTime
        metadata = {"name": self._name, "namespace": self._namespace}
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {**metadata, **({"resourceVersion": version} if version else {})},
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": int(self._timing.duration),
                "renewTime": now,
                "leaseTransitions": transitions,
            },
        }
