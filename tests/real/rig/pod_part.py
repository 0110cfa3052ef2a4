"""One pod in the player's hands: a script's actions turned into requests to the API server."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import assert_never

import aiohttp

from . import pod_status
from .kube_client import ARGO, KubeClient, KubeError, Manifest
from .pod_script import (
    Action,
    Bind,
    Bound,
    Evicted,
    Exit,
    Hang,
    Log,
    NodeLost,
    OOMKilled,
    Orphaned,
    Outputs,
    Pending,
    Progress,
    Running,
    Script,
    Sleep,
    Wait,
    Waiting,
)
from .pod_status import End, PodFacts

WriteLog = Callable[[str, str, str, str], Awaitable[None]]
"""Appends to a log: namespace, pod, container, text."""

_PATIENCE_SECONDS = 60.0
_DEADLINE_TEXT = "Pod was active on the node longer than the specified deadline"


class PodGone(Exception):
    """The pod was deleted meanwhile, or another one has its name by now."""


class Gates:
    """Places at which scripts wait for the test, by name; an opened gate stays open until it is shut again."""

    def __init__(self) -> None:
        self._open: dict[str, asyncio.Event] = {}
        self._reached: dict[str, asyncio.Event] = {}

    async def pass_through(self, name: str) -> None:
        """Wait at a gate until it is open."""
        self._event(self._reached, name).set()
        await self._event(self._open, name).wait()

    async def arrival(self, name: str) -> None:
        """Wait until a pod has come to a gate."""
        await self._event(self._reached, name).wait()

    def release(self, name: str) -> None:
        """Open a gate."""
        self._event(self._open, name).set()

    def shut(self, name: str) -> None:
        """Shut a gate, for those who come now."""
        self._event(self._open, name).clear()
        self._event(self._reached, name).clear()

    @staticmethod
    def _event(events: dict[str, asyncio.Event], name: str) -> asyncio.Event:
        return events.setdefault(name, asyncio.Event())


@dataclass
class PodPart:
    """The part of kubelet and executor for one pod."""

    pod: Manifest
    facts: PodFacts
    kube: KubeClient
    namespace: str
    gates: Gates
    write_log: WriteLog | None
    finished: bool = False
    removed: bool = False
    _started: str = ""
    _outputs: Outputs = field(default_factory=Outputs)

    def __post_init__(self) -> None:
        # A player that was started anew finds pods that run already.
        status = self.pod.get("status", {})
        self.finished = status.get("phase") in {"Succeeded", "Failed"}
        if status.get("phase") == "Running":
            self._started = str(status.get("startTime", ""))

    @property
    def running(self) -> bool:
        """Tell whether the pod's containers run."""
        return bool(self._started) and not self.finished

    async def play(self, script: Script) -> None:
        """Walk the pod through its script, within its deadline."""
        try:
            async with asyncio.timeout(None) as deadline:
                for action in script:
                    await self._act(action)
                    if isinstance(action, Running) and self.facts.deadline:
                        self.expire(deadline, self.facts.deadline)
        except PodGone:
            self.finished = True
        except TimeoutError:
            if not deadline.expired():
                raise
            await self._end(End(143, pod_reason="DeadlineExceeded", pod_message=_DEADLINE_TEXT))

    def expire(self, deadline: asyncio.Timeout, seconds: float) -> None:
        """Let a deadline end after some seconds; a player in a world with a clock of its own counts by that."""
        deadline.reschedule(asyncio.get_running_loop().time() + seconds)

    async def sleep(self, seconds: float) -> None:
        """Let time pass; the same holds."""
        await asyncio.sleep(seconds)

    async def terminate(self) -> None:
        """End running containers by SIGTERM, as the controller asked for; the executor still reports."""
        if self.running:
            try:
                await self._end(End(143))
            except PodGone:
                self.finished = True

    async def remove(self) -> None:
        """Let go of a pod that is being deleted: a bound one stays until its kubelet says so."""
        self.finished = self.removed = True
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": self.facts.uid}}
        try:
            await self._patiently(lambda: self.kube.delete(self._pod_path, options))
        except PodGone:
            pass

    async def _act(self, action: Action) -> None:
        match action:
            case Pending(message, reason):
                await self._write_status(pod_status.pending(reason, message))
            case Bind(node):
                await self._bind(node)
            case Bound(limit):
                await self._until_bound(limit)
            case Waiting(reason, message):
                await self._write_status(pod_status.waiting(self.pod, reason, message))
            case Running(announced):
                await self._run(announced=announced)
            case Progress(text):
                await self._patch_result({"progress": text})
            case Log(text):
                await self._log(text)
            case Outputs():
                self._outputs = action
            case Wait(gate):
                await self.gates.pass_through(gate)
            case Sleep(seconds):
                await self.sleep(seconds)
            case Hang():
                await asyncio.Event().wait()
            case Exit() | OOMKilled() | Evicted() | NodeLost() | Orphaned():
                await self._finish(action)
            case _:
                assert_never(action)

    async def _finish(self, action: Exit | OOMKilled | Evicted | NodeLost | Orphaned) -> None:
        match action:
            case Exit(code, message, reason):
                await self._end(End(code, reason, message))
            case OOMKilled():
                await self._end(End(137, "OOMKilled"))
            case Evicted(message, reported):
                self.finished = True
                if self._started and reported:
                    await self._report()
                await self._write_status(pod_status.evicted(message))
            case NodeLost():
                await self.remove()
            case Orphaned():
                self.finished = True
                await self._write_status({"phase": "Failed"})
            case _:
                assert_never(action)

    async def _run(self, *, announced: bool = True) -> None:
        if not self._started:
            self._started = pod_status.now()
            await self._write_status(pod_status.running(self.pod, self._started))
        if self._has_executor and announced:
            path = f"{ARGO}/namespaces/{self.namespace}/workflowtaskresults"
            await self._patiently(lambda: self.kube.ensure(path, pod_status.task_result(self.facts)))

    async def _end(self, end: End) -> None:
        self.finished = True  # First of all, so that nobody else ends it meanwhile.
        await self._run()
        end = replace(end, wait_error=await self._report())
        await self._write_status(pod_status.ended(self.pod, end, self._started))

    async def _report(self) -> str:
        """Report the outputs as the executor does at the end, and return its complaint if a file was missing."""
        if not self._has_executor:
            return ""
        outputs, complaint = pod_status.reported_outputs(
            self.facts.template, self._outputs.parameters, self._outputs.result
        )
        if outputs:
            await self._patch_result({"outputs": outputs})
        await self._patch_result({"metadata": {"labels": {pod_status.REPORTED: "true"}}})
        return complaint

    async def _bind(self, node: str) -> None:
        binding: Manifest = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": self.facts.name}}
        target = {"target": {"kind": "Node", "name": node}}
        await self._patiently(lambda: self.kube.ensure(f"{self._pod_path}/binding", binding | target))

    async def _until_bound(self, limit: float) -> None:
        try:
            await self.kube.until(self._pod_path, lambda pod: bool(pod["spec"].get("nodeName")), limit)
        except KubeError as error:
            raise PodGone(self.facts.name) from error

    async def _log(self, text: str) -> None:
        if self.write_log is None:
            raise RuntimeError("Log() needs a rig with kwok=True")
        await self.write_log(self.namespace, self.facts.name, "main", text)

    async def _write_status(self, status: Manifest) -> None:
        # The uid makes the server refuse the patch if another pod has the name by now, as after a retry.
        patch = {"metadata": {"uid": self.facts.uid}, "status": status}
        await self._patiently(lambda: self.kube.merge(f"{self._pod_path}/status", patch))

    async def _patch_result(self, patch: Manifest) -> None:
        path = f"{ARGO}/namespaces/{self.namespace}/workflowtaskresults/{self.facts.node_id}"
        await self._patiently(lambda: self.kube.merge(path, patch))

    async def _patiently(self, request: Callable[[], Awaitable[object]]) -> None:
        """Send a request, again while the API server is away."""
        give_up = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                await request()
            except KubeError as error:
                if error.status in {404, 409} or "metadata.uid" in str(error):
                    raise PodGone(self.facts.name) from error
                if error.status < 500 or time.monotonic() > give_up:
                    raise
            except (aiohttp.ClientError, TimeoutError):
                if time.monotonic() > give_up:
                    raise
            else:
                return
            await asyncio.sleep(0.2)

    @property
    def _pod_path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.facts.name}"

    @property
    def _has_executor(self) -> bool:
        # Pods of resource templates have none.
        return any(each["name"] == "wait" for each in self.pod["spec"]["containers"])
