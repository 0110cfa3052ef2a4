"""What kubelet and executor write: pod statuses and task results, as pure functions of the pod."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .kube_client import Manifest

PREFIX = "workflows.argoproj.io"
REPORTED = f"{PREFIX}/report-outputs-completed"


@dataclass(frozen=True)
class PodFacts:
    """What the controller wrote on a pod of a workflow."""

    name: str
    uid: str
    workflow: str
    workflow_uid: str
    node_id: str
    names: tuple[str, ...]
    """Names that a script may go by, the most special first: ``step(1)``, ``step``, the template's name."""
    on_exit: bool
    template: Manifest
    deadline: int | None

    @classmethod
    def of(cls, pod: Manifest) -> "PodFacts":
        """Read the facts from a pod."""
        meta = pod["metadata"]
        owner = next(each for each in meta["ownerReferences"] if each["kind"] == "Workflow")
        template = _template(pod)
        display = _display_name(meta["annotations"][f"{PREFIX}/node-name"])
        without_attempt = re.sub(r"\(\d+(:.*)?\)$", "", display)
        names = (display, without_attempt, str(template.get("name", "")))
        return cls(
            name=meta["name"],
            uid=meta["uid"],
            workflow=meta["labels"][f"{PREFIX}/workflow"],
            workflow_uid=owner["uid"],
            node_id=meta["annotations"][f"{PREFIX}/node-id"],
            names=tuple(dict.fromkeys(names)),
            on_exit=f"{PREFIX}/on-exit" in meta["labels"],
            template=template,
            deadline=pod["spec"].get("activeDeadlineSeconds"),
        )


@dataclass(frozen=True)
class End:
    """How the containers of a pod ended."""

    code: int
    reason: str = ""
    message: str = ""
    pod_reason: str = ""
    pod_message: str = ""
    wait_error: str = ""
    """Why the executor itself failed."""


def now() -> str:
    """Return the time as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def pending(reason: str, message: str) -> Manifest:
    """The pod found no node."""
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return {"phase": "Pending", "conditions": [condition | {"lastTransitionTime": now()}]}


def waiting(pod: Manifest, reason: str, message: str) -> Manifest:
    """The pod has a node, and its containers do not start yet."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {
        "phase": "Pending",
        "startTime": now(),
        "conditions": [_scheduled()],
        "containerStatuses": [_container(each, state) for each in pod["spec"]["containers"]],
    }


def running(pod: Manifest, started: str) -> Manifest:
    """The pod's containers run, and its init containers are done."""
    state = {"running": {"startedAt": started}}
    return {
        "phase": "Running",
        "startTime": started,
        "conditions": [_scheduled(), {"type": "Ready", "status": "True", "lastTransitionTime": started}],
        "initContainerStatuses": _init_statuses(pod, started),
        "containerStatuses": [_container(each, state, ready=True) for each in pod["spec"]["containers"]],
    }


def ended(pod: Manifest, end: End, started: str) -> Manifest:
    """All of the pod's containers have ended."""
    failed = end.code != 0 or bool(end.wait_error) or bool(end.pod_reason)
    status: Manifest = {
        "phase": "Failed" if failed else "Succeeded",
        "startTime": started,
        "conditions": [_scheduled(), {"type": "Ready", "status": "False", "lastTransitionTime": now()}],
        "initContainerStatuses": _init_statuses(pod, started),
        "containerStatuses": [_ended_container(each, end, started) for each in pod["spec"]["containers"]],
    }
    if end.pod_reason:
        status |= {"reason": end.pod_reason, "message": end.pod_message}
    return status


def evicted(message: str) -> Manifest:
    """The pod failed as a whole, and its containers are no longer spoken of."""
    gone = {"containerStatuses": None, "initContainerStatuses": None}
    return {"phase": "Failed", "reason": "Evicted", "message": message} | gone


def task_result(facts: PodFacts) -> Manifest:
    """Return the task result as the executor first writes it: named after the node, with nothing reported yet."""
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow"}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "WorkflowTaskResult",
        "metadata": {
            "name": facts.node_id,
            "labels": {f"{PREFIX}/workflow": facts.workflow, REPORTED: "false"},
            "ownerReferences": [owner | {"name": facts.workflow, "uid": facts.workflow_uid}],
        },
    }


def reported_outputs(
    template: Manifest, values: Mapping[str, str | None], result: str | None
) -> tuple[Manifest | None, str]:
    """Return the outputs that the executor reports for a template, and its complaint if a file was missing.

    It goes through the declared parameters in order: a file that is there, else the default, else it gives up. What
    a script says nothing about counts as an empty file.
    """
    outputs: Manifest = {}
    complaint = ""
    parameters = [dict(each) for each in template.get("outputs", {}).get("parameters", [])]
    for parameter in parameters:
        source = parameter.get("valueFrom", {})
        value = values.get(parameter["name"], source.get("default", ""))
        if value is None:
            value = source.get("default")
        if value is None:
            complaint = f"open {source.get('path')}: no such file or directory"
            break
        parameter["value"] = str(value).removesuffix("\n")
    if parameters:
        outputs["parameters"] = parameters
    if result is not None:
        outputs["result"] = result
    return outputs or None, complaint


def must_end(workflow: Manifest, facts: PodFacts) -> bool:
    """Tell whether the controller has signalled the pod's containers to end.

    It does so through `pods/exec`, which nobody answers here. The same can be read from the workflow: a shutdown
    (Stop spares the exit handler), or the pod's node failed while the pod goes on, which is a deadline. A node in
    Error is none: a pod that was lost and made anew goes on under it.
    """
    shutdown = workflow.get("spec", {}).get("shutdown")
    if shutdown == "Terminate" or (shutdown and not facts.on_exit):
        return True
    nodes = workflow.get("status", {}).get("nodes") or {}
    return bool(nodes.get(facts.node_id, {}).get("phase") == "Failed")


def _template(pod: Manifest) -> Manifest:
    for container in (*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]):
        for variable in container.get("env", []):
            # A template that is too long for a variable is put into a ConfigMap; scripts then go by the step's name.
            if variable["name"] == "ARGO_TEMPLATE" and variable.get("value", "").startswith("{"):
                template: Manifest = json.loads(variable["value"])
                return template
    return {}


def _display_name(node_name: str) -> str:
    """Return the last part of a node's name: ``wf[0].step``, ``wf.dag.task(1)``, ``wf.onExit``, ``wf``."""
    # Items of a loop, in brackets after the task's name, may hold dots.
    return re.split(r"\.(?![^()]*\))", node_name)[-1]


def _scheduled() -> Manifest:
    return {"type": "PodScheduled", "status": "True", "lastTransitionTime": now()}


def _container(spec: Manifest, state: Manifest, *, ready: bool = False) -> Manifest:
    named = {"name": spec["name"], "image": spec.get("image", ""), "imageID": "", "restartCount": 0}
    return named | {"ready": ready, "started": ready, "state": state}


def _terminated(started: str, **fields: Any) -> Manifest:
    filled = {name: value for name, value in fields.items() if value != ""}
    return {"terminated": {"startedAt": started, "finishedAt": now(), **filled}}


def _init_statuses(pod: Manifest, started: str) -> list[Manifest]:
    done = _terminated(started, exitCode=0, reason="Completed")
    return [_container(each, done) for each in pod["spec"].get("initContainers", [])]


def _ended_container(spec: Manifest, end: End, started: str) -> Manifest:
    if spec["name"] == "main":
        reason = end.reason or ("Error" if end.code else "Completed")
        return _container(spec, _terminated(started, exitCode=end.code, reason=reason, message=end.message))
    if spec["name"] == "wait" and end.wait_error:
        return _container(spec, _terminated(started, exitCode=1, reason="Error", message=end.wait_error))
    return _container(spec, _terminated(started, exitCode=0, reason="Completed"))
