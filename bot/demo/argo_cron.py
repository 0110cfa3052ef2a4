"""CronWorkflows: children at their times, the list of active ones, and the history that deletes old ones.

argo-workflows v3.7.3 `workflow/cron/operator.go`, `workflow/common/convert.go`. `when` and `stopStrategy` are not
played.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from datetime import UTC, datetime

from bot.demo.argo_operation import ENDED, seconds_of
from bot.demo.argo_pods import PREFIX
from bot.demo.argo_schedule import BadSchedule, next_time, schedules_of
from bot.demo.argo_types import CRON, CRON_STATUS, misfit
from bot.demo.clock import Timer
from bot.demo.deleting import delete
from bot.demo.kinds import CRON_WORKFLOWS, WORKFLOW_TEMPLATES, WORKFLOWS
from bot.demo.status import ApiError
from bot.demo.world import Change, Json, Key, Store, stamp

SYNC_PERIOD = 10.0
"""CRON_SYNC_PERIOD: seconds after which active children are counted and old ones deleted."""
LABEL = f"{PREFIX}/cron-workflow"
USED_SCHEDULE = "cronworkflows.argoproj.io/last-used-schedule"


class CronController:
    """Runs the CronWorkflows."""

    def __init__(self, store: Store) -> None:
        self.stopped = False
        self._store = store
        self._timers: dict[Key, list[Timer]] = {}
        self._specs: dict[Key, Json] = {}
        self._syncing: set[Key] = set()
        store.subscribe(self._on_change)

    def start_again(self) -> None:
        """After `stopped`: schedule everything anew, and run what was missed where the deadline for it allows."""
        self.stopped = False
        for cron in self._store.all(CRON_WORKFLOWS):
            key = (cron["metadata"]["namespace"], cron["metadata"]["name"])
            self._schedule(key)
            with contextlib.suppress(BadSchedule):
                self._run_outstanding(key)
            self._sync_later(key)

    def _on_change(self, change: Change) -> None:
        if change.kind == CRON_WORKFLOWS:
            if change.type == "DELETED":
                self._cancel(change.key)
            elif self._specs.get(change.key) != change.object.get("spec"):
                self._specs[change.key] = change.object.get("spec") or {}
                self._store.clock.soon(lambda: self._changed(change.key))
        elif change.kind == WORKFLOWS:
            cron = (change.object["metadata"].get("labels") or {}).get(LABEL)
            if cron:
                self._sync_later((change.key[0], cron))

    def _changed(self, key: Key) -> None:
        if self.stopped:
            return
        self._schedule(key)
        with contextlib.suppress(BadSchedule):
            self._run_outstanding(key)

    def _cancel(self, key: Key) -> None:
        self._specs.pop(key, None)
        for timer in self._timers.pop(key, []):
            timer.cancel()

    def _find(self, key: Key) -> Json | None:
        """The CronWorkflow, unless there is none that can be read: of that only the controller's log would speak."""
        cron = self._store.find(CRON_WORKFLOWS, *key)
        if cron is None or misfit(CRON, cron["spec"]) or misfit(CRON_STATUS, cron.get("status")):
            return None
        return cron

    def _schedule(self, key: Key) -> None:
        for timer in self._timers.pop(key, []):
            timer.cancel()
        cron = self._find(key)
        if cron is None:
            return
        with contextlib.suppress(BadSchedule):  # it only goes into the controller's log
            for schedule in schedules_of(cron["spec"]):
                self._next(key, schedule, cron["spec"].get("timezone", ""))

    def _next(self, key: Key, schedule: str, timezone: str) -> None:
        when = next_time(schedule, timezone, self._store.clock.now())

        def fire() -> None:
            self._timers[key].remove(timer)
            self._next(key, schedule, timezone)
            if not self.stopped:
                self._run(key, when)

        timer = self._store.clock.call_at(when.timestamp(), fire)
        self._timers.setdefault(key, []).append(timer)

    def _run_outstanding(self, key: Key) -> None:
        cron = self._find(key)
        last = (cron or {}).get("status", {}).get("lastScheduledTime")
        if cron is None or not last or _used(cron) != _schedule_text(cron["spec"]):
            return
        now, window = self._store.clock.now(), cron["spec"].get("startingDeadlineSeconds")
        for schedule in schedules_of(cron["spec"]):
            missed = None
            following = next_time(schedule, cron["spec"].get("timezone", ""), datetime.fromisoformat(last))
            while following < now:
                missed = following
                following = next_time(schedule, cron["spec"].get("timezone", ""), following)
            if missed is not None and window is not None and now.timestamp() < missed.timestamp() + int(window):
                self._run(key, missed)
                return

    def _run(self, key: Key, when: datetime) -> None:
        cron = self._find(key)
        if cron is None:
            return
        spec, status = cron["spec"], cron.get("status") or {}
        if _used(cron) != _schedule_text(spec):
            self._edit(key, lambda obj: _set_used(obj, _schedule_text(spec)))
        reference = (spec.get("workflowSpec") or {}).get("workflowTemplateRef")
        if reference and self._store.find(WORKFLOW_TEMPLATES, key[0], reference.get("name", "")) is None:
            name = reference.get("name", "")
            self._report(key, "SpecError", f'workflowtemplate.argoproj.io "{name}" not found')
            return
        if spec.get("suspend") or status.get("phase") == "Stopped":
            return
        active = status.get("active") or []
        policy = spec.get("concurrencyPolicy") or "Allow"
        if policy == "Forbid" and active:
            return
        if policy == "Replace":
            for one in active:
                self._terminate(key[0], one["name"])
        try:
            child = self._store.create(WORKFLOWS, child_of(cron, f"{key[1]}-{int(when.timestamp())}", when))
        except ApiError as error:
            if error.code != 409:
                self._report(key, "SubmissionError", f"Failed to submit Workflow: {error}")
            return
        self._edit(key, lambda obj: _record_run(obj, child, when))

    def _terminate(self, namespace: str, name: str) -> None:
        def edit(wf: Json) -> None:
            wf["spec"]["shutdown"] = "Terminate"

        if self._store.find(WORKFLOWS, namespace, name) is not None:
            self._store.change(WORKFLOWS, namespace, name, edit)

    def _sync_later(self, key: Key) -> None:
        if key not in self._syncing:
            self._syncing.add(key)
            self._store.clock.call_later(SYNC_PERIOD, lambda: self._sync(key))

    def _sync(self, key: Key) -> None:
        self._syncing.discard(key)
        cron = self._find(key)
        if cron is None or self.stopped:
            return
        children = [
            wf
            for wf in self._store.all(WORKFLOWS, key[0])
            if any(owner.get("uid") == cron["metadata"]["uid"] for owner in wf["metadata"].get("ownerReferences") or ())
        ]
        self._reconcile_active(key, children)
        self._enforce_history(cron, children)

    def _reconcile_active(self, key: Key, children: list[Json]) -> None:
        phases = {wf["metadata"]["uid"]: (wf.get("status") or {}).get("phase", "") for wf in children}

        def edit(cron: Json) -> None:
            status = cron.setdefault("status", {})
            active = list(status.get("active") or [])
            known = {one["uid"] for one in active}
            active += [
                _reference(wf)
                for wf in children
                if phases[wf["metadata"]["uid"]] not in ENDED and wf["metadata"]["uid"] not in known
            ]
            for one in active:
                if phases.get(one["uid"]) in ENDED:
                    counter = "succeeded" if phases[one["uid"]] == "Succeeded" else "failed"
                    status[counter] = status.get(counter, 0) + 1
            status["active"] = [one for one in active if phases.get(one["uid"], "Failed") not in ENDED]

        self._edit(key, edit)

    def _enforce_history(self, cron: Json, children: list[Json]) -> None:
        spec = cron["spec"]
        ended = [wf for wf in children if (wf.get("status") or {}).get("phase") in ENDED]
        good = [wf for wf in ended if wf["status"]["phase"] == "Succeeded"]
        bad = [wf for wf in ended if wf["status"]["phase"] != "Succeeded"]
        limits = ((good, spec.get("successfulJobsHistoryLimit", 3)), (bad, spec.get("failedJobsHistoryLimit", 1)))
        for workflows, limit in limits:
            newest_first = sorted(workflows, key=lambda wf: seconds_of(wf["status"]["finishedAt"]), reverse=True)
            for wf in newest_first[int(limit) :]:
                if "deletionTimestamp" not in wf["metadata"]:
                    delete(self._store, WORKFLOWS, wf["metadata"]["namespace"], wf["metadata"]["name"], {})

    def _report(self, key: Key, condition: str, message: str) -> None:
        def edit(cron: Json) -> None:
            status = cron.setdefault("status", {})
            others = [one for one in status.get("conditions") or () if one["type"] != condition]
            status["conditions"] = [*others, {"type": condition, "status": "True", "message": message}]
            if condition == "SubmissionError":
                status["failed"] = status.get("failed", 0) + 1

        self._edit(key, edit)

    def _edit(self, key: Key, edit: Callable[[Json], None]) -> None:
        if self._find(key) is not None:
            self._store.change(CRON_WORKFLOWS, *key, edit)


def child_of(cron: Json, name: str, when: datetime) -> Json:
    """The Workflow that a CronWorkflow makes."""
    extra, meta = cron["spec"].get("workflowMetadata") or {}, cron["metadata"]
    child_meta: Json = {
        "name": name,
        "namespace": meta["namespace"],
        "labels": {**(extra.get("labels") or {}), LABEL: meta["name"]},
        "annotations": {**(extra.get("annotations") or {}), f"{PREFIX}/scheduled-time": stamp(when)},
        "ownerReferences": [
            {
                "apiVersion": cron["apiVersion"],
                "kind": "CronWorkflow",
                "name": meta["name"],
                "uid": meta["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    if extra.get("finalizers"):
        child_meta["finalizers"] = list(extra["finalizers"])
    return {"metadata": child_meta, "spec": copy.deepcopy(cron["spec"].get("workflowSpec") or {}), "status": {}}


def _reference(wf: Json) -> Json:
    meta = wf["metadata"]
    reference = {key: meta[key] for key in ("name", "namespace", "uid", "resourceVersion")}
    return {"apiVersion": wf["apiVersion"], "kind": "Workflow", **reference}


def _record_run(cron: Json, child: Json, when: datetime) -> None:
    status = cron.setdefault("status", {})
    status["active"] = [*(status.get("active") or []), _reference(child)]
    status |= {"phase": "Active", "lastScheduledTime": stamp(when.astimezone(UTC))}
    broken = ("SubmissionError", "SpecError")
    status["conditions"] = [one for one in status.get("conditions") or () if one["type"] not in broken]


def _schedule_text(spec: Json) -> str:
    zone = f"CRON_TZ={spec['timezone']} " if spec.get("timezone") else ""
    return ",".join(f"{zone}{schedule}" for schedule in schedules_of(spec))


def _used(cron: Json) -> str:
    return str((cron["metadata"].get("annotations") or {}).get(USED_SCHEDULE, ""))


def _set_used(cron: Json, text: str) -> None:
    cron["metadata"].setdefault("annotations", {})[USED_SCHEDULE] = text
