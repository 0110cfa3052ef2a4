"""Other shapes of an answer: PartialObjectMetadata for clients that need only metadata, Table for people at kubectl.

https://kubernetes.io/docs/reference/using-api/api-concepts/#alternate-representations-of-resources
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from bot.demo.kinds import Kind

Json = dict[str, Any]
Row = Callable[[Json], list[Any]]
META = "meta.k8s.io/v1"


def wanted_view(accept: str) -> str:
    """What the Accept header asks for first: "Table", "PartialObjectMetadata", "PartialObjectMetadataList" or ""."""
    for choice in accept.split(","):
        media_type, *parameters = [part.strip() for part in choice.split(";")]
        if media_type not in ("application/json", "application/*", "*/*"):
            continue
        values = dict(parameter.partition("=")[::2] for parameter in parameters)
        if values.get("v", "v1") != "v1":
            continue
        return values.get("as", "")
    return ""


def partial(obj: Json) -> Json:
    """Metadata alone."""
    return {"kind": "PartialObjectMetadata", "apiVersion": META, "metadata": obj["metadata"]}


def table(kind: Kind, objects: list[Json], metadata: Json, now: datetime, include: str) -> Json:
    """A table as kubectl prints it; `include` is the query parameter includeObject (Metadata unless given)."""
    columns, row = _TABLES.get(kind.plural, _PLAIN)
    rows = []
    for obj in objects:
        cells = row(obj)
        entry: Json = {"cells": [age(cell[1], now) if isinstance(cell, tuple) else cell for cell in cells]}
        if include == "Object":
            entry["object"] = obj
        elif include != "None":
            entry["object"] = partial(obj)
        rows.append(entry)
    definitions = [
        {"name": name, "type": "string", "format": "name" if name == "Name" else "", "description": "", "priority": 0}
        for name in columns
    ]
    return {"kind": "Table", "apiVersion": META, "metadata": metadata, "columnDefinitions": definitions, "rows": rows}


def age(stamp: str | None, now: datetime) -> str:
    """A span as kubectl writes it: 45s, 12m, 3h, 5d."""
    if not stamp:
        return "<unknown>"
    seconds = max(0, int((now - datetime.fromisoformat(stamp)).total_seconds()))
    for unit, size, upto in (("s", 1, 120), ("m", 60, 7200), ("h", 3600, 172_800)):
        if seconds < upto:
            return f"{seconds // size}{unit}"
    return f"{seconds // 86_400}d"


def _since(obj: Json) -> tuple[str, str | None]:
    return "age", obj["metadata"].get("creationTimestamp")


def _pod(obj: Json) -> list[Any]:
    state = obj.get("status", {})
    containers = state.get("containerStatuses") or []
    ready = sum(1 for container in containers if container.get("ready"))
    total = len(obj.get("spec", {}).get("containers") or [])
    text = "Terminating" if "deletionTimestamp" in obj["metadata"] else state.get("reason") or state.get("phase", "")
    return [obj["metadata"]["name"], f"{ready}/{total}", text, 0, _since(obj)]


def _workflow(obj: Json) -> list[Any]:
    state = obj.get("status", {})
    return [obj["metadata"]["name"], state.get("phase", ""), ("age", state.get("startedAt")), state.get("message", "")]


def _node(obj: Json) -> list[Any]:
    conditions = {one["type"]: one["status"] for one in obj.get("status", {}).get("conditions") or ()}
    ready = "Ready" if conditions.get("Ready") == "True" else "NotReady"
    if obj.get("spec", {}).get("unschedulable"):
        ready += ",SchedulingDisabled"
    gpus = obj.get("status", {}).get("allocatable", {}).get("nvidia.com/gpu", "0")
    pool = obj["metadata"].get("labels", {}).get("k8s.scaleway.com/pool-name", "")
    return [obj["metadata"]["name"], ready, pool, gpus, _since(obj)]


def _event(obj: Json) -> list[Any]:
    about = obj.get("involvedObject", {})
    seen = obj.get("lastTimestamp") or obj["metadata"].get("creationTimestamp")
    subject = f"{about.get('kind', '').lower()}/{about.get('name', '')}"
    return [("age", seen), obj.get("type", ""), obj.get("reason", ""), subject, obj.get("message", "")]


def _cron(obj: Json) -> list[Any]:
    spec = obj.get("spec", {})
    schedules = spec.get("schedules") or [spec.get("schedule", "")]
    last = obj.get("status", {}).get("lastScheduledTime")
    return [obj["metadata"]["name"], ",".join(schedules), str(bool(spec.get("suspend"))), ("age", last), _since(obj)]


_PLAIN: tuple[list[str], Row] = (["Name", "Age"], lambda obj: [obj["metadata"]["name"], _since(obj)])
_TABLES: dict[str, tuple[list[str], Row]] = {
    "pods": (["Name", "Ready", "Status", "Restarts", "Age"], _pod),
    "workflows": (["Name", "Status", "Age", "Message"], _workflow),
    "cronworkflows": (["Name", "Schedules", "Suspend", "Last Run", "Age"], _cron),
    "nodes": (["Name", "Status", "Pool", "GPUs", "Age"], _node),
    "events": (["Last Seen", "Type", "Reason", "Object", "Message"], _event),
    "configmaps": (
        ["Name", "Data", "Age"],
        lambda obj: [obj["metadata"]["name"], len(obj.get("data") or {}), _since(obj)],
    ),
    "leases": (
        ["Name", "Holder", "Age"],
        lambda obj: [obj["metadata"]["name"], obj.get("spec", {}).get("holderIdentity", ""), _since(obj)],
    ),
}
