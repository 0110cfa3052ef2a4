"""The part of Go's types that the API server reads objects into.

Of the schemas only what is written down here is known: anything goes into most of a spec. What is said of a value that
does not fit follows encoding/json.
"""

from __future__ import annotations

import base64
import binascii
import re
from datetime import datetime
from typing import Any

from bot.demo.kinds import Kind

Json = dict[str, Any]
Fields = dict[str, Any]
"""By field its Go type; of a struct in place of it {"": its name} with the fields that matter here."""

_MAP = "map[string]string"
_TEXTS = ("string", "Time", "MicroTime", "types.UID", "v1.PodPhase", "v1.SecretType", "v1.PreemptionPolicy")
_METADATA: Fields = {
    "name": "string",
    "generateName": "string",
    "namespace": "string",
    "selfLink": "string",
    "uid": "types.UID",
    "resourceVersion": "string",
    "generation": "int64",
    "creationTimestamp": "Time",
    "deletionTimestamp": "Time",
    "deletionGracePeriodSeconds": "int64",
    "labels": _MAP,
    "annotations": _MAP,
    "ownerReferences": "[]v1.OwnerReference",
    "finalizers": "[]string",
    "managedFields": "[]v1.ManagedFieldsEntry",
}
_CONTAINERS = "[]v1.Container"
_CONTENT: dict[str, Fields] = {
    "ConfigMap": {"data": _MAP, "binaryData": "map[string][]uint8", "immutable": "bool"},
    "Secret": {"data": "map[string][]uint8", "stringData": _MAP, "type": "v1.SecretType", "immutable": "bool"},
    "Lease": {
        "spec": {
            "": "v1.LeaseSpec",
            "holderIdentity": "string",
            "leaseDurationSeconds": "int32",
            "acquireTime": "MicroTime",
            "renewTime": "MicroTime",
            "leaseTransitions": "int32",
        }
    },
    "Event": {
        "involvedObject": {"": "v1.ObjectReference", "namespace": "string", "name": "string", "kind": "string"},
        "source": {"": "v1.EventSource", "component": "string", "host": "string"},
        "series": {"": "v1.EventSeries"},
        "related": {"": "v1.ObjectReference"},
        **dict.fromkeys(("reason", "message", "type", "action", "reportingComponent", "reportingInstance"), "string"),
        **dict.fromkeys(("firstTimestamp", "lastTimestamp"), "Time"),
        "eventTime": "MicroTime",
        "count": "int32",
    },
    "Pod": {
        "spec": {
            "": "v1.PodSpec",
            "containers": _CONTAINERS,
            "initContainers": _CONTAINERS,
            "nodeName": "string",
            "nodeSelector": _MAP,
            "tolerations": "[]v1.Toleration",
            "activeDeadlineSeconds": "int64",
            "terminationGracePeriodSeconds": "int64",
            "priority": "int32",
        },
        "status": {
            "": "v1.PodStatus",
            "phase": "v1.PodPhase",
            "conditions": "[]v1.PodCondition",
            "containerStatuses": "[]v1.ContainerStatus",
            "initContainerStatuses": "[]v1.ContainerStatus",
        },
    },
    "Node": {
        "spec": {"": "v1.NodeSpec", "taints": "[]v1.Taint", "unschedulable": "bool"},
        "status": {"": "v1.NodeStatus", "conditions": "[]v1.NodeCondition", "allocatable": "v1.ResourceList"},
    },
    "ServiceAccount": {
        "secrets": "[]v1.ObjectReference",
        "imagePullSecrets": "[]v1.LocalObjectReference",
        "automountServiceAccountToken": "bool",
    },
    "PriorityClass": {
        "value": "int32",
        "globalDefault": "bool",
        "description": "string",
        "preemptionPolicy": "v1.PreemptionPolicy",
    },
    "Role": {"rules": "[]v1.PolicyRule"},
    "ClusterRole": {"rules": "[]v1.PolicyRule", "aggregationRule": {"": "v1.AggregationRule"}},
    "RoleBinding": {"subjects": "[]v1.Subject", "roleRef": {"": "v1.RoleRef", "kind": "string", "name": "string"}},
    "ClusterRoleBinding": {
        "subjects": "[]v1.Subject",
        "roleRef": {"": "v1.RoleRef", "kind": "string", "name": "string"},
    },
    "Workflow": {"spec": {"": ""}, "status": {"": ""}},
    "CronWorkflow": {"spec": {"": ""}, "status": {"": ""}},
    "WorkflowTemplate": {"spec": {"": ""}},
    "ClusterWorkflowTemplate": {"spec": {"": ""}},
    "WorkflowTaskResult": {"message": "string", "outputs": {"": ""}, "phase": "string", "progress": "string"},
}
_ANY: Fields = {"spec": {"": "Spec"}, "status": {"": "Status"}}


class UndecodableError(Exception):
    """The object does not fit Go's types; the text says why."""


def decode(kind: Kind, body: Json) -> tuple[Json, list[str]]:
    """The object as Go reads it, and the paths of the fields that its kind does not have; those are left out.

    Raises UndecodableError.
    """
    known = _CONTENT.get(kind.kind, _ANY)
    meta = _struct({"": "v1.ObjectMeta", **_METADATA}, body.get("metadata") or {}, "metadata", kind)
    obj: Json = {"apiVersion": kind.api_version, "kind": kind.kind}
    obj["metadata"] = {field: value for field, value in meta.items() if field in _METADATA}
    for field, go in known.items():
        if body.get(field) is not None:
            obj[field] = _typed(go, body[field], field, kind)
    unknown = sorted(body.keys() - known.keys() - {"apiVersion", "kind", "metadata"})
    return obj, [*(f"metadata.{field}" for field in meta if field not in _METADATA), *unknown]


def _struct(fields: Fields, value: Any, path: str, kind: Kind) -> Json:
    if not isinstance(value, dict):
        raise _mismatch(value, fields[""], path, kind)
    read_fields: Json = {}
    for field, one in value.items():
        if field not in fields:
            read_fields[field] = one
        elif one is not None:
            read_fields[field] = _typed(fields[field], one, f"{path}.{field}", kind)
    return read_fields


def _typed(go: str | Fields, value: Any, path: str, kind: Kind) -> Any:
    if isinstance(go, dict):
        if not go[""] and not isinstance(value, dict):
            return value  # Of what custom resources hold the definitions speak, when the object is checked.
        return _struct(go, value, path, kind)
    if go.startswith("map["):
        if not isinstance(value, dict):
            raise _mismatch(value, go, path, kind)
        return {
            key: _typed(go.partition("]")[2], one, path, kind) if one is not None else "" for key, one in value.items()
        }
    if go == "[]uint8":
        return _bytes(_scalar("string", value, path, kind))
    if go.startswith("[]"):
        if not isinstance(value, list):
            raise _mismatch(value, go, path, kind)
        return [_typed(go[2:], one, path, kind) for one in value]
    return _scalar(go, value, path, kind)


def _scalar(go: str, value: Any, path: str, kind: Kind) -> Any:
    wanted: type = dict
    if go.startswith("int"):
        wanted = int
    elif go == "bool":
        wanted = bool
    elif go in _TEXTS:
        wanted = str
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise _mismatch(value, go, path, kind)
    if isinstance(value, str) and go in ("Time", "MicroTime"):
        check_time(value, micro=go == "MicroTime")
    return value


def check_time(text: str, *, micro: bool = False) -> None:
    """Raises UndecodableError unless it is a time as Go writes it; a MicroTime has its six digits always."""
    layout = "2006-01-02T15:04:05.000000Z07:00" if micro else "2006-01-02T15:04:05Z07:00"
    form = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d" + (r"\.\d{6}" if micro else r"(\.\d+)?") + r"(Z|[-+]\d\d:\d\d)"
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or not re.fullmatch(form, text):
        raise UndecodableError(f'parsing time "{text}" as "{layout}": cannot parse "{text}" as "2006"')


def _bytes(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise UndecodableError("illegal base64 data at input byte 0") from error
    return text


def _mismatch(value: Any, go: str, path: str, kind: Kind) -> UndecodableError:
    """Of custom resources the metadata alone is read into Go's types, so that paths begin there."""
    inside = path.removeprefix("metadata.")
    owner = "ObjectMeta" if inside != path else kind.kind
    where = f"Go struct field {owner}.{inside if kind.custom else path} of type {go}"
    if kind.custom and path == "metadata":
        where = f"Go value of type {go}"
    return UndecodableError(f"json: cannot unmarshal {json_type(value)} into {where}")


def json_type(value: Any) -> str:
    """What encoding/json calls a value."""
    names: dict[type, str] = {dict: "object", list: "array", str: "string", bool: "bool"}
    return names.get(type(value), "number")
