"""One pass over one Workflow: read its pods, decide what comes next, write it into a copy.

The order of the steps follows argo-workflows v3.7.3 `workflow/controller/operator.go` (operate), because what a
watcher sees depends on it: nothing here waits, and a pass over an unchanged world changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from bot.demo.argo_locks import Locks
from bot.demo.argo_nodes import FAILED, Nodes, completed, fulfilled
from bot.demo.argo_pods import PREFIX, REPORTED, assess
from bot.demo.argo_spec import InvalidSpec, follow, global_parameters, merge_specs, template_of
from bot.demo.argo_types import SPEC, misfit
from bot.demo.argo_validation import check, unplayed
from bot.demo.kinds import CLUSTER_TEMPLATES, PODS, TASK_RESULTS, WORKFLOW_TEMPLATES
from bot.demo.world import Json, Store, stamp

ENDED = ("Succeeded", "Failed", "Error")


@dataclass
class Timing:
    """What the controller is told by its environment, in seconds."""

    recently_started: float = 10.0
    """For so long a node without a pod is given the benefit of the doubt (RECENTLY_STARTED_POD_DURATION)."""
    results: float = 600.0
    """For so long a finished node waits for the report of its results (TASK_RESULT_TIMEOUT_DURATION)."""


class Executor(Protocol):
    """What executes the templates of the workflow of an operation."""

    def execute_entry(self) -> Json:
        """The node of the entrypoint. Raises InvalidSpec where it cannot be executed."""
        ...

    def execute_exit(self, name: str, template: str) -> Json:
        """The node of the exit handler."""
        ...


@dataclass
class Operation:
    """The pass; `wf` is a copy that the controller writes back."""

    store: Store
    locks: Locks
    wf: Json
    terminate: Callable[[Json], None]
    """Stops the containers of a pod, or deletes it while it is pending."""
    requeue: Callable[[float], None]
    """Asks for another pass at a time."""
    timing: Timing = field(default_factory=Timing)
    events: list[tuple[str, str, str, Json]] = field(default_factory=list)
    """Kubernetes events to record: type, reason, message, annotations."""
    freed: list[tuple[str, str]] = field(default_factory=list)
    """Workflows that may try for a lock now."""

    def __post_init__(self) -> None:
        self.status: Json = self.wf.setdefault("status", {})
        self.meta: Json = self.wf["metadata"]
        self.key = (self.meta["namespace"], self.meta["name"])
        self.nodes = Nodes(self.meta["name"], self.status.setdefault("nodes", {}), self.now)
        self.spec: Json = {}
        self.globals: dict[str, str] = {}

    def now(self) -> str:
        """The time to stamp."""
        return stamp(self.store.clock.now())

    @property
    def shutdown(self) -> str:
        """What `argo stop` or `argo terminate` wrote: Stop, Terminate, or nothing."""
        return str(self.spec.get("shutdown") or "")

    def may_execute(self, *, exit_handler: bool) -> bool:
        """Whether pods may still be started: after Stop only those of the exit handler."""
        return not self.shutdown or (self.shutdown == "Stop" and exit_handler)

    @property
    def deadline(self) -> float | None:
        """When the whole workflow is out of time."""
        seconds, started = self.spec.get("activeDeadlineSeconds"), self.status.get("startedAt")
        if seconds is None or not started:
            return None
        return seconds_of(started) + int(seconds)

    def written(self) -> Json:
        """The workflow to write back; an empty map of nodes is left out, as Go leaves it out."""
        if self.status.get("phase"):
            self.status["progress"] = self.nodes.sum_progress()
        if not self.status.get("nodes"):
            self.status.pop("nodes", None)
        if not self.status:
            self.wf.pop("status", None)
        return self.wf

    def operate(self, templates: Executor) -> None:
        """Run the pass; `templates` executes the workflow's templates on this operation."""
        if not self._load_spec():
            return
        self._read_results()
        if (self.meta.get("labels") or {}).get(f"{PREFIX}/completed") == "true":
            return
        if not self._take_locks():
            return
        if not self.status.get("phase"):
            self.mark("Running")
            self._requeue_at_deadline()
        elif not self._read_pods():
            return
        if self.spec.get("suspend"):
            return
        if self.status["phase"] == "Pending":
            self.mark("Running")
            self._requeue_at_deadline()
        try:
            node = templates.execute_entry()
        except InvalidSpec as error:
            self.mark("Error", f"error in entry template execution: {error}")
            return
        self._conclude(templates, node)

    def _conclude(self, templates: Executor, node: Json) -> None:
        phase = "Succeeded" if node["phase"] in ("Skipped", "Omitted") else str(node["phase"])
        self.globals["workflow.status"] = phase
        self.globals["workflow.failures"] = json.dumps(json.dumps(self._failures()))
        if not fulfilled(node):
            return
        exit_node = self._run_exit_handler(templates)
        if exit_node is not None and not fulfilled(exit_node):
            return
        message = node.get("message", "")
        if node["phase"] in FAILED and self.shutdown:
            message = f"Stopped with strategy '{self.shutdown}'"
        if phase == "Succeeded" and exit_node is not None and exit_node["phase"] in FAILED:
            phase, message = str(exit_node["phase"]), exit_node.get("message", "")
        elif phase == "Succeeded":
            message = ""
        self.mark(phase, message)

    def _run_exit_handler(self, templates: Executor) -> Json | None:
        if not self.spec.get("onExit"):
            return None
        name = f"{self.meta['name']}.onExit"
        existing = self.nodes.get(name)
        if existing is None and not self.may_execute(exit_handler=True):
            return None
        return templates.execute_exit(name, self.spec["onExit"])

    def mark(self, phase: str, message: str = "") -> None:
        """Set the workflow's phase; an end completes it, unless results are still being reported."""
        if phase in ENDED and any(node.get("taskResultSynced") is False for node in self.nodes):
            return
        if self.status.get("phase") in ENDED and self.status["phase"] != phase:
            return
        labels = self.meta.setdefault("labels", {})
        if self.status.get("phase", "") != phase:
            self.status["phase"] = phase
            labels[f"{PREFIX}/phase"] = phase
            labels.setdefault(f"{PREFIX}/completed", "false")
            self._phase_event(phase, message)
        if not self.status.get("startedAt") and phase != "Pending":
            self.status["startedAt"] = self.now()
        self.status.setdefault("startedAt", None)
        self.status.setdefault("finishedAt", None)
        self.status.pop("message", None)
        if message:
            self.status["message"] = message
        root = self.nodes.get(self.meta["name"])
        if phase == "Error" and root is not None and root["phase"] == "Running":
            root |= {"phase": "Error", "message": "Workflow operation error"}
        if phase in ENDED:
            self.status["finishedAt"] = self.now()
            labels[f"{PREFIX}/completed"] = "true"
            self._condition("Completed", "True")
            self._release_locks()

    def _release_locks(self) -> None:
        self.freed += self.locks.release(self.key)
        self.status.pop("synchronization", None)

    def _phase_event(self, phase: str, message: str) -> None:
        match phase:
            case "Running":
                self.events.append(("Normal", "WorkflowRunning", "Workflow Running", {}))
            case "Succeeded":
                self.events.append(("Normal", "WorkflowSucceeded", "Workflow completed", {}))
            case "Failed" | "Error":
                self.events.append(("Warning", "WorkflowFailed", message, {}))

    def _condition(self, name: str, value: str) -> None:
        conditions = [one for one in self.status.get("conditions") or () if one["type"] != name]
        self.status["conditions"] = [*conditions, {"type": name, "status": value}]

    def _load_spec(self) -> bool:
        own = self.wf.get("spec") or {}
        if wrong := misfit(SPEC, own):
            self.mark("Failed", f"cannot unmarshall spec: {wrong}")
            return False
        reference = own.get("workflowTemplateRef")
        fresh = not self.status.get("phase")
        if reference is not None and not self.status.get("storedWorkflowTemplateSpec"):
            kind = CLUSTER_TEMPLATES if reference.get("clusterScope") else WORKFLOW_TEMPLATES
            template = self.store.find(kind, self.key[0], reference.get("name", ""))
            if template is None:
                self.mark("Error", f'{kind.qualified} "{reference.get("name", "")}" not found')
                return False
            self.status["storedWorkflowTemplateSpec"] = merge_specs(own, template.get("spec") or {})
        if reference is not None:
            self.spec = follow(self.status["storedWorkflowTemplateSpec"], own)
            self.status["storedWorkflowTemplateSpec"] = self.spec
        else:
            self.spec = own
        if fresh:
            try:
                check(self.spec, self.key[1], None if reference is None else own)
            except InvalidSpec as error:
                self.mark("Failed", f"invalid spec: {error}")
                return False
            if what := unplayed(self.spec):
                self.mark("Error", f"the embedded world does not play {what}")
                return False
            self._apply_metadata()
        self.globals = global_parameters(self.wf, self.spec)
        return True

    def _apply_metadata(self) -> None:
        extra = self.spec.get("workflowMetadata") or {}
        for what in ("labels", "annotations"):
            if extra.get(what):
                self.meta.setdefault(what, {}).update(extra[what])
        self.meta.setdefault("annotations", {})[f"{PREFIX}/pod-name-format"] = "v2"

    def _take_locks(self) -> bool:
        message = self.locks.acquire(self.wf, self.spec)
        if not message:
            return True
        if self.shutdown == "Terminate" and self.status.get("phase") == "Pending":
            # What it does up to 4.0.9: a workflow terminated in the queue counts as succeeded, and is then operated on.
            self._release_locks()
            self.mark("Succeeded")
            return True
        self.mark(self.status.get("phase") or "Pending", message)
        return False

    def _requeue_at_deadline(self) -> None:
        if self.deadline is not None and self.deadline > self.store.clock.time():
            self.requeue(self.deadline)

    @property
    def out_of_time(self) -> bool:
        """Whether the workflow's deadline has passed."""
        return self.deadline is not None and self.store.clock.time() >= self.deadline

    def _read_results(self) -> None:
        for result in self.store.all(TASK_RESULTS, self.key[0]):
            labels = result["metadata"].get("labels") or {}
            node = self.nodes.by_id.get(result["metadata"]["name"])
            if labels.get(f"{PREFIX}/workflow") != self.key[1] or node is None:
                continue
            reported = labels.get(REPORTED)
            if reported in ("true", "false"):
                node["taskResultSynced"] = reported == "true" or self._given_up(node)
            if result.get("outputs"):
                node["outputs"] = {**node.get("outputs", {}), **result["outputs"]}
            if result.get("progress"):
                node["progress"] = result["progress"]
            self._export(node)
            if fulfilled(node) and not node.get("finishedAt"):
                node["finishedAt"] = self.now()

    def _given_up(self, node: Json) -> bool:
        # Results that were never reported to the end: after a while they are taken as they are.
        if not completed(node):
            return False
        ended = seconds_of(node["finishedAt"]) if node.get("finishedAt") else 0.0
        if self.store.clock.time() > ended + self.timing.results:
            return True
        self.requeue(ended + self.timing.results + 0.001)
        return False

    def _export(self, node: Json) -> None:
        for parameter in (node.get("outputs") or {}).get("parameters") or ():
            name = parameter.get("globalName")
            if not name or "value" not in parameter:
                continue
            outputs = self.status.setdefault("outputs", {})
            others = [one for one in outputs.get("parameters") or () if one["name"] != name]
            outputs["parameters"] = [*others, {"name": name, "value": parameter["value"]}]
            self.globals[f"workflow.outputs.parameters.{name}"] = parameter["value"]

    def pods(self) -> list[Json]:
        """The pods of this workflow."""
        label = f"{PREFIX}/workflow"
        found = self.store.all(PODS, self.key[0])
        return [pod for pod in found if (pod["metadata"].get("labels") or {}).get(label) == self.key[1]]

    def _read_pods(self) -> bool:
        """Bring the nodes up to date; False while one that succeeded still reports its results."""
        seen: set[str] = set()
        running = incomplete = False
        for pod in self.pods():
            identity = (pod["metadata"].get("annotations") or {}).get(f"{PREFIX}/node-id", "")
            seen.add(identity)
            old = self.nodes.by_id.get(identity)
            if old is None:
                continue
            # What has ended is looked at again as well: the end of its pod may say more than the controller knew.
            template = template_of(self.spec, old.get("templateName", "")) or {}
            node = assess(pod, old, template)
            if node["phase"] == "Succeeded" and not node.get("taskResultSynced", True):
                incomplete = True
                continue
            self.nodes.by_id[identity] = node
            self._export(node)
            running = running or node["phase"] == "Running"
            self._control(pod, node)
        if incomplete:
            return False
        self._condition("PodRunning", "True" if running else "False")
        self._look_for_lost_pods(seen)
        self._fail_what_has_no_pod()
        return True

    def _control(self, pod: Json, node: Json) -> None:
        phase = (pod.get("status") or {}).get("phase")
        if fulfilled(node) or phase not in ("Pending", "Running"):
            return
        exit_handler = f"{PREFIX}/on-exit" in pod["metadata"]["labels"]
        if not self.may_execute(exit_handler=exit_handler):
            self.terminate(pod)
            self.nodes.mark(node, "Failed", f"workflow shutdown with strategy:  {self.shutdown}")
        elif self.out_of_time and not exit_handler:
            self.terminate(pod)
            self.nodes.mark(node, "Failed", "Step exceeded its deadline")

    def _look_for_lost_pods(self, seen: set[str]) -> None:
        for node in self.nodes:
            if node["type"] != "Pod" or fulfilled(node) or node["id"] in seen or node["phase"] == "Pending":
                continue
            recent_until = seconds_of(node["startedAt"]) + self.timing.recently_started
            if self.store.clock.time() <= recent_until:
                self.requeue(recent_until + 0.001)
            else:
                self.nodes.mark(node, "Error", "pod deleted")

    def _fail_what_has_no_pod(self) -> None:
        for node in self.nodes:
            if fulfilled(node):
                continue
            waits = node["type"] == "Suspend" and node["phase"] == "Running"
            exit_handler = self.nodes.in_exit_handler(node)
            if waits and not self.may_execute(exit_handler=exit_handler):
                self.nodes.mark(node, "Failed", f"Stopped with strategy '{self.shutdown}'")
            elif self.out_of_time and not exit_handler and (waits or node["phase"] == "Pending"):
                self.nodes.mark(node, "Failed", "Step exceeded its deadline")

    def _failures(self) -> list[Json] | None:
        failed = [node for node in self.nodes if completed(node) and node["phase"] in FAILED]
        return [
            {
                "displayName": node["displayName"],
                "message": node.get("message", ""),
                "templateName": node.get("templateName", ""),
                "phase": node["phase"],
                "podName": node["id"],
                "finishedAt": node.get("finishedAt"),
            }
            for node in failed
        ] or None


def seconds_of(text: str) -> float:
    """A Kubernetes time as seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()
