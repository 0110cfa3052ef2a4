"""What kubectl prints of each kind: columns, and the row of an object.

The columns are those of k8s.io/kubernetes `pkg/printers/internalversion/printers.go`, and of Argo's definitions.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

Json = dict[str, Any]
Row = Callable[[Json, datetime], list[Any]]
NONE, UNKNOWN = "<none>", "<unknown>"
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_YEAR = 365 * _DAY


def age(stamp: str | None, now: datetime) -> str:
    """A span as kubectl writes it: 45s, 7m3s, 12m, 3h5m, 5d (k8s.io/apimachinery `pkg/util/duration`)."""
    if not stamp:
        return UNKNOWN
    seconds = max(0, int((now - datetime.fromisoformat(stamp)).total_seconds()))
    for upto, (size, unit), (rest, small) in (
        (2 * _MINUTE, (1, "s"), (1, "")),
        (10 * _MINUTE, (_MINUTE, "m"), (1, "s")),
        (3 * _HOUR, (_MINUTE, "m"), (1, "")),
        (8 * _HOUR, (_HOUR, "h"), (_MINUTE, "m")),
        (2 * _DAY, (_HOUR, "h"), (1, "")),
        (8 * _DAY, (_DAY, "d"), (_HOUR, "h")),
        (2 * _YEAR, (_DAY, "d"), (1, "")),
    ):
        if seconds < upto:
            more = seconds % size // rest
            return f"{seconds // size}{unit}" + (f"{more}{small}" if small and more else "")
    return f"{seconds // _YEAR}y{seconds % _YEAR // _DAY}d"


def _age(obj: Json, now: datetime) -> str:
    return age(obj["metadata"].get("creationTimestamp"), now)


def _name(obj: Json) -> str:
    return str(obj["metadata"]["name"])


def _pod(obj: Json, now: datetime) -> list[Any]:
    spec, state = obj.get("spec") or {}, obj.get("status") or {}
    containers = state.get("containerStatuses") or []
    ready = sum(1 for one in containers if one.get("ready") and "running" in (one.get("state") or {}))
    restarts = str(sum(one.get("restartCount", 0) for one in containers))
    where = [state.get("podIP") or NONE, spec.get("nodeName") or NONE]
    total = f"{ready}/{len(spec.get('containers') or ())}"
    return [_name(obj), total, _pod_status(obj), restarts, _age(obj, now), *where, NONE, NONE]


def _pod_status(obj: Json) -> str:
    """What the column STATUS says: why a container waits or has ended goes before the phase."""
    state = obj.get("status") or {}
    text = str(state.get("reason") or state.get("phase") or "")
    started = _init_status(obj)
    if started:
        text = started
    else:
        running = False
        for one in reversed(state.get("containerStatuses") or ()):
            waiting, ended = ((one.get("state") or {}).get(name) or {} for name in ("waiting", "terminated"))
            if why := waiting.get("reason") or ended.get("reason"):
                text = str(why)
            elif ended:
                text = f"ExitCode:{ended.get('exitCode', 0)}"
            running = running or bool(one.get("ready"))
        if text == "Completed" and running:
            text = "NotReady"
    if "deletionTimestamp" in obj["metadata"] and state.get("phase") not in ("Succeeded", "Failed"):
        return "Terminating"
    return text


def _init_status(obj: Json) -> str:
    total = len((obj.get("spec") or {}).get("initContainers") or ())
    for number, one in enumerate((obj.get("status") or {}).get("initContainerStatuses") or ()):
        waiting, ended = ((one.get("state") or {}).get(name) or {} for name in ("waiting", "terminated"))
        if ended and ended.get("exitCode", 0) == 0:
            continue
        if ended:
            return f"Init:{ended.get('reason') or 'ExitCode:' + str(ended.get('exitCode'))}"
        if waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}"
        return f"Init:{number}/{total}"
    return ""


def _workflow(obj: Json, now: datetime) -> list[Any]:
    state = obj.get("status") or {}
    return [_name(obj), state.get("phase", ""), age(state.get("startedAt"), now), state.get("message", "")]


def _node(obj: Json, now: datetime) -> list[Any]:
    state = obj.get("status") or {}
    ready = next((one.get("status") for one in state.get("conditions") or () if one.get("type") == "Ready"), None)
    text = "Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"
    if (obj.get("spec") or {}).get("unschedulable"):
        text += ",SchedulingDisabled"
    role = "node-role.kubernetes.io/"
    labels = obj["metadata"].get("labels") or {}
    roles = ",".join(sorted(label.removeprefix(role) for label in labels if label.startswith(role)))
    known = {one.get("type"): one.get("address") for one in state.get("addresses") or ()}
    info = state.get("nodeInfo") or {}
    wide = [info.get(name) or UNKNOWN for name in ("osImage", "kernelVersion", "containerRuntimeVersion")]
    addresses = [known.get(name) or NONE for name in ("InternalIP", "ExternalIP")]
    return [_name(obj), text, roles or NONE, _age(obj, now), info.get("kubeletVersion", ""), *addresses, *wide]


def _event(obj: Json, now: datetime) -> list[Any]:
    about, source = obj.get("involvedObject") or {}, obj.get("source") or {}
    first = obj.get("firstTimestamp") or obj.get("eventTime")
    last = obj.get("lastTimestamp") or first
    subject = f"{about.get('kind', '').lower()}/{about.get('name', '')}"
    said = [about.get("fieldPath", ""), source.get("component") or obj.get("reportingComponent", "")]
    text = str(obj.get("message") or "").strip()
    head = [age(last, now), obj.get("type", ""), obj.get("reason", ""), subject]
    return [*head, *said, text, age(first, now), obj.get("count", 1), _name(obj)]


def _secret(obj: Json, now: datetime) -> list[Any]:
    return [_name(obj), obj.get("type", "Opaque"), len(obj.get("data") or {}), _age(obj, now)]


def _namespace(obj: Json, now: datetime) -> list[Any]:
    return [_name(obj), (obj.get("status") or {}).get("phase", ""), _age(obj, now)]


def _config_map(obj: Json, now: datetime) -> list[Any]:
    return [_name(obj), len(obj.get("data") or {}) + len(obj.get("binaryData") or {}), _age(obj, now)]


def _lease(obj: Json, now: datetime) -> list[Any]:
    return [_name(obj), (obj.get("spec") or {}).get("holderIdentity") or "", _age(obj, now)]


def _account(obj: Json, now: datetime) -> list[Any]:
    return [_name(obj), len(obj.get("secrets") or ()), _age(obj, now)]


def _class(obj: Json, now: datetime) -> list[Any]:
    policy = obj.get("preemptionPolicy", "PreemptLowerPriority")
    return [_name(obj), obj.get("value", 0), bool(obj.get("globalDefault")), _age(obj, now), policy]


def _role(obj: Json, _now: datetime) -> list[Any]:
    return [_name(obj), obj["metadata"].get("creationTimestamp", "")]


def _binding(obj: Json, now: datetime) -> list[Any]:
    ref = obj.get("roleRef") or {}
    named: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for one in obj.get("subjects") or ():
        text = one.get("name", "")
        if one.get("kind") == "ServiceAccount":
            text = f"{one.get('namespace', '')}/{text}"
        named.setdefault(one.get("kind", ""), []).append(text)
    listed = [", ".join(named[kind]) for kind in ("User", "Group", "ServiceAccount")]
    return [_name(obj), f"{ref.get('kind', '')}/{ref.get('name', '')}", _age(obj, now), *listed]


PLAIN: tuple[str, Row] = ("Name,Age", lambda obj, now: [_name(obj), _age(obj, now)])
_BINDINGS: tuple[str, Row] = ("Name,Role,Age,Users*,Groups*,ServiceAccounts*", _binding)
TABLES: dict[str, tuple[str, Row]] = {
    "pods": ("Name,Ready,Status,Restarts,Age,IP*,Node*,Nominated Node*,Readiness Gates*", _pod),
    "nodes": (
        "Name,Status,Roles,Age,Version,Internal-IP*,External-IP*,OS-Image*,Kernel-Version*,Container-Runtime*",
        _node,
    ),
    "events": ("Last Seen,Type,Reason,Object,Subobject*,Source*,Message,First Seen*,Count*,Name*", _event),
    "workflows": ("Name,Status,Age,Message", _workflow),
    "configmaps": ("Name,Data,Age", _config_map),
    "secrets": ("Name,Type,Data,Age", _secret),
    "namespaces": ("Name,Status,Age", _namespace),
    "serviceaccounts": ("Name,Secrets,Age", _account),
    "leases": ("Name,Holder,Age", _lease),
    "priorityclasses": ("Name,Value,Global-Default,Age,PreemptionPolicy", _class),
    "roles": ("Name,Created At", _role),
    "clusterroles": ("Name,Created At", _role),
    "rolebindings": _BINDINGS,
    "clusterrolebindings": _BINDINGS,
}
"""By resource its columns, * behind those that only `-o wide` shows, and what makes a row."""
