"""Between nodes and pods: the pod that a node becomes, and what a node learns from its pod.

argo-workflows v3.7.3: `workflow/controller/workflowpod.go` (createWorkflowPod), `operator.go` (assessNodeStatus,
inferFailedReason, getPendingReason), `taskresult.go`.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from bot.demo.argo_nodes import FAILED, completed, fulfilled, pod_name

Json = dict[str, Any]
PREFIX = "workflows.argoproj.io"
REPORTED = f"{PREFIX}/report-outputs-completed"


def make_pod(wf: Json, spec: Json, template: Json, node: Json, *, exit_handler: bool) -> Json:
    """The pod of a node."""
    meta = wf["metadata"]
    main = copy.deepcopy(
        template.get("container") or template.get("script") or {"image": "argoexec", "command": ["resource"]}
    )
    main.pop("source", None)
    main["name"] = "main"
    image = "quay.io/argoproj/argoexec:v3.7.3"
    executor = [{"name": "ARGO_WORKFLOW_NAME", "value": meta["name"]}, {"name": "ARGO_NODE_ID", "value": node["id"]}]
    wait = {"name": "wait", "image": image, "command": ["argoexec", "wait"], "env": executor}
    # What the executor has to do is handed to its first container.
    task = {"name": "ARGO_TEMPLATE", "value": json.dumps(template, separators=(",", ":"), ensure_ascii=False)}
    init = {"name": "init", "image": image, "command": ["argoexec", "init"], "env": [*executor, task]}
    labels = {
        **(template.get("metadata") or {}).get("labels", {}),
        f"{PREFIX}/completed": "false",
        f"{PREFIX}/workflow": meta["name"],
    }
    if exit_handler:
        labels[f"{PREFIX}/on-exit"] = "true"
    annotations = {
        **(template.get("metadata") or {}).get("annotations", {}),
        "kubectl.kubernetes.io/default-container": "main",
        f"{PREFIX}/node-id": node["id"],
        f"{PREFIX}/node-name": node["name"],
    }
    pod_spec: Json = {
        "restartPolicy": "Never",
        "serviceAccountName": template.get("serviceAccountName") or spec.get("serviceAccountName") or "default",
        "initContainers": [init],
        "containers": [wait, main],
        "terminationGracePeriodSeconds": 30,
    }
    for key in ("nodeSelector", "tolerations", "affinity", "schedulerName", "priorityClassName"):
        value = template.get(key) or spec.get(key)
        if value:
            pod_spec[key] = value
    if spec.get("podPriorityClassName"):
        pod_spec.setdefault("priorityClassName", spec["podPriorityClassName"])
    if spec.get("securityContext"):
        pod_spec["securityContext"] = spec["securityContext"]
    volumes = list(spec.get("volumes") or []) + list(template.get("volumes") or [])
    if volumes:
        pod_spec["volumes"] = volumes
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": meta["name"], "uid": meta["uid"]}
    return {
        "metadata": {
            "name": pod_name(meta["name"], node["name"], node.get("templateName", "")),
            "namespace": meta["namespace"],
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": pod_spec,
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def assess(pod: Json, old: Json, template: Json) -> Json:
    """The node as its pod shows it: a new node, or an equal one when nothing changed."""
    node = copy.deepcopy(old)
    state = pod.get("status") or {}
    message = old.get("message", "")
    match state.get("phase", "Pending"):
        case "Pending":
            node["phase"], message = "Pending", pending_reason(state)
        case "Running":
            node["phase"] = "Running"
        case "Succeeded":
            node["phase"] = "Succeeded"
        case "Failed":
            node["phase"], message = failed_reason(state, pod)
        case unexpected:
            node["phase"], message = "Error", f"Unexpected pod phase for {pod['metadata']['name']}: {unexpected}"
    if pod["spec"].get("nodeName"):
        node["hostNodeName"] = pod["spec"]["nodeName"]
    _read_containers(state, node, old)
    if node["phase"] == "Succeeded" and _outputs_missing(template, node):
        node["phase"] = old["phase"]
    if old["phase"] == "Pending" and node["phase"] not in ("Pending", *FAILED) and message == old.get("message", ""):
        message = ""
    node.pop("message", None)
    if message:
        node["message"] = message
    if fulfilled(node) and not node.get("finishedAt"):
        node["finishedAt"] = _latest_end(state)
    return node


def _read_containers(state: Json, node: Json, old: Json) -> None:
    containers = state.get("containerStatuses") or ()
    if state.get("phase") == "Failed" and state.get("reason") == "Evicted" and not containers:
        # Nobody is left who could report.
        node["taskResultSynced"] = True
    for container in containers:
        ended = container["state"].get("terminated")
        if container["name"] == "main" and ended:
            node.setdefault("outputs", {})["exitCode"] = str(ended.get("exitCode", 0))
        if container["name"] == "wait":
            if container["state"].get("running") is not None and completed(node) and state.get("phase") != "Failed":
                # The wait container may still be saving outputs.
                node["phase"] = old["phase"]
            elif ended and ended.get("exitCode"):
                node["taskResultSynced"] = True


def _outputs_missing(template: Json, node: Json) -> bool:
    declared = template.get("outputs") or {}
    have = node.get("outputs")
    if have is None:
        return False
    if declared.get("parameters") and "parameters" not in have:
        return True
    required = [one for one in declared.get("artifacts") or () if not one.get("optional")]
    return bool(required) and "artifacts" not in have


def pending_reason(state: Json) -> str:
    """Why a pod does not run yet, where that shows."""
    for container in state.get("containerStatuses") or ():
        waiting = container["state"].get("waiting")
        if waiting:
            return (
                f"{waiting['reason']}: {waiting['message']}"
                if waiting.get("message")
                else str(waiting.get("reason", ""))
            )
    for condition in state.get("conditions") or ():
        if condition.get("reason") == "Unschedulable":
            return f"Unschedulable: {condition['message']}" if condition.get("message") else "Unschedulable"
    return ""


def failed_reason(state: Json, pod: Json) -> tuple[str, str]:
    """Phase and message of the node of a failed pod; with no container at fault it counts as succeeded (3.7.3, fixed
    later).
    """
    if state.get("message"):
        return "Failed", state["message"]
    order = {"main": 1, "wait": 2}
    ordinary = sorted(state.get("containerStatuses") or (), key=lambda one: order.get(one["name"], 3))
    containers = list(state.get("initContainerStatuses") or ()) + ordinary
    if not containers:
        meta = pod["metadata"]
        return "Failed", f"can't find failed message for pod {meta['name']} namespace {meta['namespace']}"
    for container in containers:
        name = container["name"]
        if waiting := container["state"].get("waiting"):
            why = f"{waiting.get('reason', '')}: {waiting.get('message', '')}"
            return "Error", f"Pod failed before {name} container starts due to {why}"
        ended = container["state"].get("terminated")
        if not ended or not ended.get("exitCode"):
            continue
        code = ended["exitCode"]
        text = f"{name}: {ended.get('reason', 'Error')} (exit code {code})"
        if ended.get("message"):
            text += f": {ended['message']}"
        if name in ("init", "wait"):
            return "Error", text
        if name == "main" or code not in (137, 143):
            return "Failed", text
    return "Succeeded", ""


def _latest_end(state: Json) -> str | None:
    containers = list(state.get("initContainerStatuses") or ()) + list(state.get("containerStatuses") or ())
    ends = [
        one["state"]["terminated"]["finishedAt"]
        for one in containers
        if one["state"].get("terminated", {}).get("finishedAt")
    ]
    return max(ends) if ends else None
