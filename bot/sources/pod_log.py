"""The log of a run's test pod, followed for its markers while the tests run.

For the live view only. A pod's log goes with the pod, a stream can break at any place, and what was read before is
asked for again; timestamps tell what is new. Source: the API's pods/log (follow, sinceTime, timestamps).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from bot.clients.errors import NotFound, WireError
from bot.clients.kube import Kube, whole_lines
from bot.core.effects import FollowLog, StopFollowing
from bot.core.events import Event, MarkersRead
from bot.core.progress import PREFIX, Marker, read_marker
from bot.tasks import Tasks

WORKFLOW_LABEL = "workflows.argoproj.io/workflow"
NODE_ANNOTATION = "workflows.argoproj.io/node-id"

STREAM_SECONDS = 3600.0
"""Longest one stream stays open."""

RETRY_SECONDS = 5.0
"""Between two tries to open the stream, e.g. while the container is created."""

MAX_LINE = 256 * 1024
"""A longer line is no marker; what is read of it is thrown away."""

GATHER_SECONDS, MAX_BATCH = 0.2, 200
"""Markers of that time, and so many at most, are one event: what one pod prints must not hold up the other runs."""


class _Meta(msgspec.Struct):
    name: str
    annotations: dict[str, str] | None = None


class _Pod(msgspec.Struct):
    metadata: _Meta


class _Pods(msgspec.Struct):
    items: list[_Pod] | None = None


class LogFollowers:
    """One task a followed run."""

    def __init__(
        self,
        kube: Kube,
        tasks: Tasks,
        put: Callable[[Event], None],
        trouble: Callable[[str], None],
        *,
        retry: float = RETRY_SECONDS,
        gather: float = GATHER_SECONDS,
    ) -> None:
        self._retry = retry
        self._gather = gather
        self._kube = kube
        self._tasks = tasks
        self._put = put
        self._trouble = trouble
        self._following: dict[str, asyncio.Task[Any]] = {}

    def tell(self, effect: FollowLog | StopFollowing) -> None:
        """Begin or end to follow a run."""
        old = self._following.pop(effect.uid, None)
        if old is not None:
            old.cancel()
        if isinstance(effect, FollowLog):
            self._following[effect.uid] = self._tasks.spawn(self._follow(effect), name=f"log of {effect.workflow}")

    async def _follow(self, effect: FollowLog) -> None:
        last = ""
        while True:
            try:
                pod = await self._pod(effect)
                if pod is not None:
                    last = await self._read(effect, pod, last)
            except NotFound:
                return  # the pod is gone, and its log with it
            except WireError as error:
                self._trouble(f"the log of {effect.workflow} cannot be followed: {error.reason}")
            await asyncio.sleep(self._retry)

    async def _pod(self, effect: FollowLog) -> str | None:
        """The node's pod: by Argo's label and annotation, since the name depends on Argo's settings."""
        query = [("labelSelector", f"{WORKFLOW_LABEL}={effect.workflow}")]
        body = await self._kube.read(f"/api/v1/namespaces/{effect.namespace}/pods", query)
        for pod in msgspec.json.decode(body, type=_Pods).items or []:
            if (pod.metadata.annotations or {}).get(NODE_ANNOTATION) == effect.node:
                return pod.metadata.name
        return None

    async def _read(self, effect: FollowLog, pod: str, last: str) -> str:
        query = [("container", "main"), ("follow", "true"), ("timestamps", "true")]
        query += [("sinceTime", last)] if last else []
        path = f"/api/v1/namespaces/{effect.namespace}/pods/{pod}/log"
        batch = _Batch(lambda markers: self._put(MarkersRead(effect.uid, effect.attempt, markers)), self._gather)
        try:
            async with self._kube.stream(path, query, seconds=STREAM_SECONDS) as reader:
                async for line in whole_lines(reader, MAX_LINE):
                    marker, last = new_marker(line.decode(errors="replace"), last)
                    if marker is not None and batch.add(marker):
                        await asyncio.sleep(self._gather)  # the rest waits in the stream
        finally:
            batch.send()
        return last


class _Batch:
    """Markers that are gathered, so that those of a moment cost one decision."""

    def __init__(self, put: Callable[[tuple[Marker, ...]], None], seconds: float) -> None:
        self._put = put
        self._seconds = seconds
        self._markers: list[Marker] = []
        self._due: asyncio.TimerHandle | None = None

    def add(self, marker: Marker) -> bool:
        """Take one more; true once there were as many as go at once."""
        self._markers.append(marker)
        if len(self._markers) >= MAX_BATCH:
            self.send()
            return True
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(self._seconds, self.send)
        return False

    def send(self) -> None:
        """Hand in what was gathered."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if self._markers:
            self._put(tuple(self._markers))
            self._markers.clear()


def new_marker(line: str, last: str) -> tuple[Marker | None, str]:
    """The marker of a timestamped line that is later than `last`, and the latest time seen.

    Times of one pod are of one form and one zone, with up to nine digits of a second, so padded text compares.
    """
    stamp, _, text = line.partition(" ")
    if _padded(stamp) <= _padded(last):
        return None, last
    return (read_marker(text) if text.startswith(PREFIX) else None), stamp


def _padded(stamp: str) -> str:
    whole, _, fraction = stamp.removesuffix("Z").partition(".")
    return f"{whole}.{fraction:0<9}"
