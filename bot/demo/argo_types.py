"""Whether a spec fits Argo's Go types, as far as they are played.

The API server takes anything for a spec; the controller ends a Workflow that it cannot read. Texts:
k8s.io/apimachinery `pkg/runtime/converter.go`, which argo-workflows v3.7.3 reads its objects with.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
Go = Any
"""str, bool, "int32" or "int64", "map" of strings, [element], {field: type} for a struct, None for anything."""

_PARAMETER: Go = {"name": str, "globalName": str, "enum": [None], "valueFrom": {}}
_ARGUMENTS: Go = {"parameters": [_PARAMETER], "artifacts": [{}]}
_LABELS: Go = {"labels": "map", "annotations": "map"}
_LOCKS: Go = {"mutex": {"name": str}, "mutexes": [{"name": str}], "semaphore": {}, "semaphores": [{}]}
_CONTAINER: Go = {"image": str, "command": [str], "args": [str], "env": [{}], "resources": {}, "source": str}
_TASK: Go = {
    **dict.fromkeys(("name", "template", "depends", "when", "onExit"), str),
    "dependencies": [str],
    "arguments": _ARGUMENTS,
    "continueOn": {},
}
_PLACE: Go = {"nodeSelector": "map", "tolerations": [{}]}
_TEMPLATE: Go = {
    **_PLACE,
    **dict.fromkeys(("name", "timeout", "podSpecPatch", "priorityClassName"), str),
    **dict.fromkeys(("container", "script"), _CONTAINER),
    "sidecars": [{}],
    "initContainers": [{}],
    "volumes": [{}],
    "dag": {"tasks": [_TASK], "failFast": bool, "target": str},
    "steps": [[_TASK]],
    "inputs": _ARGUMENTS,
    "outputs": _ARGUMENTS,
    "metadata": _LABELS,
    "retryStrategy": {},
    "suspend": {},
    "synchronization": _LOCKS,
}
SPEC: Go = {
    **_PLACE,
    **dict.fromkeys(("entrypoint", "onExit", "serviceAccountName", "shutdown", "schedulerName"), str),
    "suspend": bool,
    "activeDeadlineSeconds": "int64",
    "parallelism": "int64",
    "priority": "int32",
    "arguments": _ARGUMENTS,
    "templates": [_TEMPLATE],
    "workflowTemplateRef": {"name": str, "clusterScope": bool},
    "synchronization": _LOCKS,
    "ttlStrategy": dict.fromkeys(("secondsAfterCompletion", "secondsAfterSuccess", "secondsAfterFailure"), "int32"),
    "podGC": {"strategy": str},
    "workflowMetadata": _LABELS,
    "podMetadata": _LABELS,
    "volumes": [{}],
}
CRON: Go = {
    **dict.fromkeys(("schedule", "timezone", "concurrencyPolicy"), str),
    "schedules": [str],
    "suspend": bool,
    "startingDeadlineSeconds": "int64",
    **dict.fromkeys(("successfulJobsHistoryLimit", "failedJobsHistoryLimit"), "int32"),
    "workflowSpec": SPEC,
    "workflowMetadata": {**_LABELS, "finalizers": [str]},
}


CRON_STATUS: Go = {"active": [{"name": str}], "lastScheduledTime": str, "conditions": [{"type": str}]}
STATUS: Go = {"phase": str, "conditions": [{"type": str}], "synchronization": {}, "outputs": _ARGUMENTS}
STATUS |= {"storedWorkflowTemplateSpec": SPEC}
_NODE: Go = dict.fromkeys(("id", "name", "type", "phase"), str)


def status_misfit(status: Any) -> str:
    """What is wrong with a status that somebody else has written; "" where it can be read."""
    nodes = (status.get("nodes") or {}) if isinstance(status, dict) else {}
    if not isinstance(nodes, dict):
        return f"cannot restore map from {_name(nodes)}"
    for node in nodes.values():
        if wrong := misfit(_NODE, node) or _first(f"{key} is missing" for key in _NODE if not (node or {}).get(key)):
            return wrong
    return misfit(STATUS, status)


def misfit(go: Go, value: Any) -> str:
    """What is wrong with a value; "" where it fits."""
    if value is None or go is None:
        return ""
    match go:
        case dict():
            if not isinstance(value, dict):
                return f"cannot restore struct from: {_name(value)}"
            return _first(misfit(one, value.get(field)) for field, one in go.items())
        case "map":
            if not isinstance(value, dict):
                return f"cannot restore map from {_name(value)}"
            return _first(misfit(str, one) for one in value.values())
        case [[_]] if isinstance(value, list) and any(not isinstance(one, list) for one in value):
            return "json: cannot unmarshal object into Go value of type []map[string]interface {}"
        case [element]:
            if not isinstance(value, list):
                return f"cannot restore slice from {_name(value)}"
            return _first(misfit(element, one) for one in value)
    if go is str:
        return "" if isinstance(value, str) else f"cannot convert {_name(value)} to string"
    if go is bool:
        return "" if isinstance(value, bool) else "unrecognized type: bool"
    return "" if isinstance(value, int) and not isinstance(value, bool) else f"unrecognized type: {go}"


def _first(found: Any) -> str:
    return next((text for text in found if text), "")


def _name(value: Any) -> str:
    names: dict[type, str] = {dict: "map", list: "slice", str: "string", bool: "bool", int: "int64"}
    return names.get(type(value), "float64")
