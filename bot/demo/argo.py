"""The small Argo: a workflow controller on the embedded cluster.

It hears of changes to Workflows, their pods and their task results, and passes over the Workflow (`argo_operation`);
around that it keeps the queue, the locks (`argo_locks`), the cleaning up (`argo_gc`), the CronWorkflows (`argo_cron`)
and what `argo retry` does (`argo_retry`). It plays version 3.7.3, mistakes included.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

from bot.demo.argo_gc import WorkflowGc
from bot.demo.argo_locks import Locks
from bot.demo.argo_nodes import fulfilled
from bot.demo.argo_operation import Operation, Timing
from bot.demo.argo_pods import PREFIX
from bot.demo.argo_templates import Templates
from bot.demo.argo_types import status_misfit
from bot.demo.clock import Timer
from bot.demo.deleting import delete
from bot.demo.events import Recorder
from bot.demo.kinds import PODS, TASK_RESULTS, WORKFLOWS
from bot.demo.world import Change, Json, Key, Store

COMPLETED = f"{PREFIX}/completed"
RESYNC_SECONDS = 1200.0
"""workflowResyncPeriod: after so long without any event a workflow is looked at all the same."""
REPORT_SECONDS = 0.2
"""From a report of the executor until it is looked at by itself (DEFAULT_REQUEUE_TIME; 10 s where nobody sets it)."""


class ArgoController:
    """The workflow-controller."""

    def __init__(self, store: Store, recorder: Recorder) -> None:
        self.store = store
        self.locks = Locks()
        self.timing = Timing()
        self.signal: Callable[[Json], None] = lambda _pod: None
        """Asks the kubelet to stop a running pod's main container, as the controller does through pods/exec."""
        self.stopped = False
        """A controller that is down: nothing is reconciled until `start_again`."""
        self._recorder = recorder
        self._gc = WorkflowGc(store)
        self._queued: dict[Key, None] = {}
        self._due: dict[Key, Timer] = {}
        store.subscribe(self._on_change)

    def start_again(self) -> None:
        """After `stopped`: look at everything, as a controller does when it starts."""
        self.stopped = False
        for wf in self.store.all(WORKFLOWS):
            self.queue((wf["metadata"]["namespace"], wf["metadata"]["name"]))

    def queue(self, key: Key) -> None:
        """Pass over a workflow as soon as the present event is over.

        The real queue knows one time for each workflow, and the earliest takes the place of a later one: a deadline
        that was asked for is forgotten as soon as anything happens, and only looked at when something happens again.
        """
        if (timer := self._due.pop(key, None)) is not None:
            timer.cancel()
        if key not in self._queued:
            self._queued[key] = None
            self.store.clock.soon(lambda: self._pass(key))

    def _on_change(self, change: Change) -> None:
        if change.kind == WORKFLOWS:
            self.queue(change.key)
        elif change.kind in (PODS, TASK_RESULTS):
            name = (change.object["metadata"].get("labels") or {}).get(f"{PREFIX}/workflow")
            if name and change.kind == PODS:
                self.queue((change.key[0], name))
            elif name:
                # The queue is slow on purpose, so that a report is mostly seen together with the end of its pod.
                self._requeue((change.key[0], name), self.store.clock.time() + REPORT_SECONDS)

    def _pass(self, key: Key) -> None:
        self._queued.pop(key, None)
        if self.stopped:
            return
        wf = self.store.find(WORKFLOWS, *key)
        if wf is None:
            self._free(self.locks.release(key))
            return
        if (wf["metadata"].get("labels") or {}).get(COMPLETED) == "true":
            self._gc.completed(wf)
            return
        if status_misfit(wf.get("status")):
            return  # Somebody has written over it what nobody can read.
        operation = Operation(
            self.store,
            self.locks,
            copy.deepcopy(wf),
            self._terminate,
            lambda when: self._requeue(key, when),
            self.timing,
        )
        self._requeue(key, self.store.clock.time() + RESYNC_SECONDS)
        try:
            operation.operate(Templates(operation))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # The real controller marks a workflow that makes it panic, too.
            operation.mark("Error", str(error))
        self._record_nodes(wf, operation)
        self.store.replace(WORKFLOWS, operation.written())
        for event in operation.events:
            self._recorder.event(wf, *event)
        self._clean_up(operation)
        self._free(operation.freed)

    def _free(self, keys: list[Key]) -> None:
        for key in keys:
            self.queue(key)

    def _requeue(self, key: Key, when: float) -> None:
        known = self._due.get(key)
        if key in self._queued or (known is not None and known.when <= when):
            return
        if known is not None:
            known.cancel()
        self._due[key] = self.store.clock.call_at(when, lambda: self.queue(key))

    def _terminate(self, pod: Json) -> None:
        meta = pod["metadata"]
        if pod["status"].get("phase") == "Pending":
            # Later, like the real queue: the node is marked first.
            self.store.clock.soon(lambda: self._delete_pod(meta["namespace"], meta["name"], meta["uid"]))
        else:
            self.store.clock.soon(lambda: self.signal(pod))

    def _delete_pod(self, namespace: str, name: str, uid: str) -> None:
        pod = self.store.find(PODS, namespace, name)
        if pod is not None and pod["metadata"]["uid"] == uid:
            delete(self.store, PODS, namespace, name, {"gracePeriodSeconds": 0})

    def _clean_up(self, operation: Operation) -> None:
        done = (operation.meta.get("labels") or {}).get(COMPLETED) == "true"
        for pod in operation.pods():
            annotations = pod["metadata"].get("annotations") or {}
            node = operation.nodes.by_id.get(annotations.get(f"{PREFIX}/node-id", ""))
            if node is not None and (done or fulfilled(node)):
                self._gc.pod_done(operation.spec, operation.wf, pod)
        if done:
            for result in self.store.all(TASK_RESULTS, operation.key[0]):
                if (result["metadata"].get("labels") or {}).get(f"{PREFIX}/workflow") == operation.key[1]:
                    self.store.remove(TASK_RESULTS, operation.key[0], result["metadata"]["name"])

    def _record_nodes(self, before: Json, operation: Operation) -> None:
        old_nodes = (before.get("status") or {}).get("nodes") or {}
        for node in operation.nodes:
            phase = node["phase"]
            if phase == (old_nodes.get(node["id"]) or {}).get("phase") or phase in ("Pending", "Skipped", "Omitted"):
                continue
            sort = "Warning" if phase in ("Failed", "Error") else "Normal"
            message = f"{phase} node {node['name']}" + (f": {node['message']}" if node.get("message") else "")
            annotations = {
                f"{PREFIX}/node-id": node["id"],
                f"{PREFIX}/node-name": node["name"],
                f"{PREFIX}/node-type": node["type"],
            }
            operation.events.append((sort, f"WorkflowNode{phase}", message, annotations))
