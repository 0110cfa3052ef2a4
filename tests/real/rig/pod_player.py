"""Play kubelet and executor for the pods of workflows.

    async with rig.pod_player() as player:
        player.script("compile-and-test", [Running(), Wait("gate"), Outputs({"results": "{}"}), Exit(0)])
        ...
        await player.release("gate")

The player looks at every pod of a workflow in the namespace, finds its script by the step's name or its template's,
and walks it through. It sees repeated events, expired watches and a restarting API server as a kubelet does: it
lists again, and goes on with what it had.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from types import TracebackType
from typing import Any, Self

import aiohttp

from .kube_client import ARGO, KubeClient, KubeError, Manifest
from .pod_part import Gates, PodPart, WriteLog
from .pod_script import SUCCEED, Script
from .pod_status import PREFIX, PodFacts, must_end

_PAUSE_SECONDS = 0.2


class PodPlayer:
    """Walks the pods of workflows through the scripts that a test gives."""

    part = PodPart

    def __init__(self, kube: KubeClient, namespace: str, write_log: WriteLog | None = None) -> None:
        self._kube = kube
        self._namespace = namespace
        self._write_log = write_log
        self._scripts: dict[tuple[str | None, str], Script] = {}
        self._default = SUCCEED
        self._gates = Gates()
        self._parts: dict[str, PodPart] = {}
        self._playing: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._errors: list[BaseException] = []

    def script(self, name: str, actions: Script, workflow: str | None = None) -> None:
        """Say what happens to pods of a step or template, in one workflow or in all.

        A name may carry the attempt of a retry strategy: ``step(0)`` goes before ``step``.
        """
        self._scripts[workflow, name] = tuple(actions)

    def default(self, actions: Script) -> None:
        """Say what happens to pods that no script is for; at first they succeed at once."""
        self._default = tuple(actions)

    async def release(self, gate: str) -> None:
        """Open a gate, and let those go on that wait at it."""
        self._gates.release(gate)
        await asyncio.sleep(0)

    def shut(self, gate: str) -> None:
        """Shut a gate again."""
        self._gates.shut(gate)

    async def arrived(self, gate: str, limit: float = 30.0) -> None:
        """Wait until a pod has come to a gate."""
        await asyncio.wait_for(self._gates.arrival(gate), limit)

    async def __aenter__(self) -> Self:
        pods = f"/api/v1/namespaces/{self._namespace}/pods"
        workflows = f"{ARGO}/namespaces/{self._namespace}/workflows"
        self._spawn(self._follow(pods, f"{PREFIX}/workflow", self._list_pods, self._take_pod), "pods")
        self._spawn(self._follow(workflows, "", self._list_workflows, self._take_workflow), "workflows")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._errors and error is None:
            raise BaseExceptionGroup("the pod player failed", self._errors)
        if error:
            for own in self._errors:
                error.add_note(f"the pod player had failed before: {own!r}")

    async def _follow(
        self,
        path: str,
        selector: str,
        take_list: Callable[[list[Manifest]], None],
        take: Callable[[str, Manifest], None],
    ) -> None:
        while True:
            try:
                listed = await self._kube.get(path, {"labelSelector": selector} if selector else None)
                take_list(listed["items"])
                version = listed["metadata"]["resourceVersion"]
                async for kind, seen in self._kube.watch(path, version, selector):
                    if kind != "BOOKMARK":
                        take(kind, seen)
            except (KubeError, aiohttp.ClientError, TimeoutError):
                pass  # An expired version, or the server is away: both are answered by listing again.
            await asyncio.sleep(_PAUSE_SECONDS)

    def _list_pods(self, pods: Iterable[Manifest]) -> None:
        seen = set()
        for pod in pods:
            seen.add(pod["metadata"]["uid"])
            self._take_pod("MODIFIED", pod)
        for uid in self._parts.keys() - seen:
            self._forget(uid)

    def _take_pod(self, kind: str, pod: Manifest) -> None:
        uid = pod["metadata"]["uid"]
        if kind == "DELETED":
            self._forget(uid)
            return
        if f"{PREFIX}/node-name" not in pod["metadata"].get("annotations", {}):
            return  # Not the pod of a step: Argo's own, for HTTP steps or for removing artifacts.
        if uid not in self._parts:
            self._begin(pod)
        part = self._parts[uid]
        if pod["metadata"].get("deletionTimestamp"):
            self._remove(part)

    def _begin(self, pod: Manifest) -> None:
        facts = PodFacts.of(pod)
        part = self.part(pod, facts, self._kube, self._namespace, self._gates, self._write_log)
        self._parts[facts.uid] = part
        if not part.finished:
            self._playing[facts.uid] = self._spawn(part.play(self._script_for(facts)), f"play {facts.name}")

    def _remove(self, part: PodPart) -> None:
        if not part.removed:
            self._interrupt(part.facts.uid)
            self._spawn(part.remove(), f"remove {part.facts.name}")

    def _forget(self, uid: str) -> None:
        self._interrupt(uid)
        self._parts.pop(uid, None)

    def _interrupt(self, uid: str) -> None:
        if task := self._playing.pop(uid, None):
            task.cancel()

    def _script_for(self, facts: PodFacts) -> Script:
        for workflow in (facts.workflow, None):
            for name in facts.names:
                if (workflow, name) in self._scripts:
                    return self._scripts[workflow, name]
        return self._default

    def _list_workflows(self, workflows: Iterable[Manifest]) -> None:
        for workflow in workflows:
            self._take_workflow("MODIFIED", workflow)

    def _take_workflow(self, kind: str, workflow: Manifest) -> None:
        parts = [each for each in self._parts.values() if each.facts.workflow_uid == workflow["metadata"]["uid"]]
        for part in parts:
            if kind == "DELETED":
                self._remove(part)  # The garbage collector's work, which nobody else does here.
            elif part.running and must_end(workflow, part.facts):
                self._spawn(self._terminate(part), f"terminate {part.facts.name}")

    async def _terminate(self, part: PodPart) -> None:
        # The event may be older than the pod, as in a retry within the second: only a fresh look can tell.
        path = f"{ARGO}/namespaces/{self._namespace}/workflows/{part.facts.workflow}"
        try:
            workflow = await self._kube.get(path)
        except (KubeError, aiohttp.ClientError, TimeoutError):
            return  # Deleted, or the server is away; what comes next in the list or the watch will tell.
        if part.running and workflow["metadata"]["uid"] == part.facts.workflow_uid and must_end(workflow, part.facts):
            self._interrupt(part.facts.uid)
            await part.terminate()

    def _spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._note_end)
        return task

    def _note_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._errors.append(error)
