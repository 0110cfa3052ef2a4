"""Cleaning up after workflows: their time to live, and the deletion of finished pods.

argo-workflows v3.7.3: `workflow/gccontroller/gc_controller.go`, `workflow/controller/pod/cleanup.go`.
"""

from __future__ import annotations

from bot.demo.argo_operation import seconds_of
from bot.demo.argo_pods import PREFIX
from bot.demo.argo_types import SPEC, misfit
from bot.demo.deleting import delete
from bot.demo.kinds import PODS, WORKFLOWS
from bot.demo.world import Json, Store

POD_DELETE_DELAY = 5.0
"""podGCDeleteDelayDuration of the controller."""


class WorkflowGc:
    """The TTL controller and the pod cleaner."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._timed: dict[str, float] = {}

    def completed(self, wf: Json) -> None:
        """A completed workflow was seen: delete it when its time is over.

        The first timer of an object stays: after `argo retry` it may delete a workflow that has just ended again.
        """
        ttl = _ttl(wf)
        uid = wf["metadata"]["uid"]
        if ttl is None or uid in self._timed or "deletionTimestamp" in wf["metadata"]:
            return
        self._timed[uid] = seconds_of(wf["status"]["finishedAt"]) + ttl + 1.0
        key = (wf["metadata"]["namespace"], wf["metadata"]["name"])
        self._store.clock.call_at(self._timed[uid], lambda: self._expire(key, uid))

    def _expire(self, key: tuple[str, str], uid: str) -> None:
        self._timed.pop(uid, None)
        wf = self._store.find(WORKFLOWS, *key)
        if wf is None or wf["metadata"]["uid"] != uid:
            return
        if (wf["metadata"].get("labels") or {}).get(f"{PREFIX}/completed") == "true":
            delete(self._store, WORKFLOWS, *key, {"propagationPolicy": "Background"})

    def pod_done(self, spec: Json, wf: Json, pod: Json) -> None:
        """A pod's node is fulfilled: label or delete it as podGC says."""
        meta = pod["metadata"]
        strategy = (spec.get("podGC") or {}).get("strategy", "")
        workflow_phase = wf["status"].get("phase", "")
        done = (wf["metadata"].get("labels") or {}).get(f"{PREFIX}/completed") == "true"
        delete_it = (
            strategy == "OnPodCompletion"
            or (strategy == "OnPodSuccess" and pod["status"].get("phase") == "Succeeded")
            or (strategy == "OnWorkflowCompletion" and done)
            or (strategy == "OnWorkflowSuccess" and done and workflow_phase == "Succeeded")
        )
        if meta["labels"].get(f"{PREFIX}/completed") == "true" or pod["status"].get("phase") in ("Pending", "Running"):
            return

        def label(copy: Json) -> None:
            copy["metadata"]["labels"][f"{PREFIX}/completed"] = "true"

        self._store.change(PODS, meta["namespace"], meta["name"], label)
        if delete_it:
            self._store.clock.call_later(POD_DELETE_DELAY, lambda: self._delete_pod(meta))

    def _delete_pod(self, meta: Json) -> None:
        pod = self._store.find(PODS, meta["namespace"], meta["name"])
        if pod is not None and pod["metadata"]["uid"] == meta["uid"]:
            delete(self._store, PODS, meta["namespace"], meta["name"], {})


def _ttl(wf: Json) -> float | None:
    spec = (wf.get("status") or {}).get("storedWorkflowTemplateSpec") or wf.get("spec") or {}
    strategy = spec.get("ttlStrategy") or {}
    phase = wf["status"].get("phase")
    specific = {"Succeeded": "secondsAfterSuccess", "Failed": "secondsAfterFailure"}.get(phase, "")
    if misfit(SPEC["ttlStrategy"], strategy):
        return None
    value = strategy.get(specific, strategy.get("secondsAfterCompletion"))
    return None if value is None else float(value)
