"""Creating, replacing and patching objects.

https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-and-apply; order and texts of the refusals follow
k8s.io/apiserver `pkg/endpoints/handlers` and `pkg/registry/generic/registry/store.go`.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from aiohttp import web

from bot.demo import decoding, patching, status
from bot.demo.go_types import UndecodableError, decode, json_type
from bot.demo.kinds import EVENTS, NAMESPACES, PODS, Kind
from bot.demo.kube_options import WriteOptions, write_options
from bot.demo.kube_requests import Target, body_of, warn
from bot.demo.world import Store

Json = dict[str, Any]
Written = tuple[Json, int]
"""What is answered: an object, and the HTTP status."""

MAX_OBJECT = 3 * 512 * 1024
"""Bytes that the real storage takes for an object (etcd's --max-request-bytes)."""
_CHANGEABLE = (
    "spec.containers[*].image",
    "spec.initContainers[*].image",
    "spec.activeDeadlineSeconds",
    "spec.tolerations",
    "spec.terminationGracePeriodSeconds",
)


async def create(store: Store, request: web.Request, target: Target) -> Written:
    """POST to a collection. Raises ApiError."""
    body = await body_of(request, target.kind.kind)
    options = write_options(request.query, "CreateOptions")
    decoding.check_kind(target.kind, body)
    return _create(store, target, _decoded(request, target.kind, body, options), options)


def _create(store: Store, target: Target, obj: Json, options: WriteOptions) -> Written:
    kind, meta = target.kind, obj["metadata"]
    if kind.namespaced:
        if not target.namespace:
            raise status.method_not_allowed()
        _check_namespace(target, meta)
        meta["namespace"] = target.namespace
        if store.find(NAMESPACES, "", target.namespace) is None:
            raise status.not_found(NAMESPACES, target.namespace)
    if meta.get("resourceVersion"):
        raise status.bad_request("resourceVersion should not be set on objects to be created")
    if kind.status_subresource:
        obj["status"] = {"phase": "Pending"} if kind == PODS else obj.get("status", {})
    if kind == EVENTS:
        obj = {**obj, **{name: obj.get(name, "") for name in ("reportingComponent", "reportingInstance")}}
        obj.setdefault("eventTime", None)
    elif kind == NAMESPACES:
        obj |= {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
    _check_size(obj)
    return store.create(kind, obj, dry_run=options.dry_run), 201


async def update(store: Store, request: web.Request, target: Target) -> Written:
    """PUT of an object. Raises ApiError."""
    kind = target.kind
    body = await body_of(request, kind.kind)
    options = write_options(request.query, "UpdateOptions")
    decoding.check_kind(kind, body)
    obj = _decoded(request, kind, body, options)
    _check_place(target, obj["metadata"])
    old = store.get(kind, target.namespace, target.name)
    given = obj["metadata"].get("uid")
    if given and given != old["metadata"]["uid"]:
        why = f"Precondition failed: UID in precondition: {given}, UID in object meta: {old['metadata']['uid']}"
        raise status.conflict(kind, target.name, why)
    return _write(store, target, obj, options), 200


async def patch(store: Store, request: web.Request, target: Target) -> Written:
    """PATCH of an object. Raises ApiError."""
    kind, content_type = target.kind, request.content_type
    raw = await request.read()
    accepted = [patching.JSON_PATCH, patching.MERGE_PATCH]
    if not kind.custom:
        accepted.append(patching.STRATEGIC_PATCH)
    if content_type not in accepted:
        raise status.unsupported_media_type(accepted)
    options = write_options(request.query, "PatchOptions")
    old = store.get(kind, target.namespace, target.name)
    parsed = patching.parse(raw, as_written=content_type == patching.JSON_PATCH)
    if content_type == patching.JSON_PATCH:
        patched = patching.plain(patching.json_patch(old, parsed))
    elif not isinstance(parsed, dict):
        why = f"cannot unmarshal {json_type(parsed)} into Go value of type map[string]interface {{}}"
        raise status.bad_request(f"error decoding patch: json: {why}")
    elif content_type == patching.MERGE_PATCH:
        patched = patching.merge_patch(old, parsed)
    else:
        patched = patching.strategic_patch(old, parsed)
    obj = _patched(request, target, patched, options)
    return _write(store, target, obj, options), 200


def _patched(request: web.Request, target: Target, patched: Json, options: WriteOptions) -> Json:
    kind = target.kind
    given, version = patched.get("kind"), patched.get("apiVersion")
    if kind.custom and (not given or not isinstance(given, str)):
        raise status.invalid_patch("Object 'Kind' is missing", patched)
    if given not in (None, kind.kind) or version not in (None, kind.api_version):
        if kind.custom and given != kind.kind:
            raise status.wrong_kind(kind, str(given), target.name)
        raise status.invalid_patch(f'no kind "{given}" is registered for version "{version}"', patched)
    obj = _decoded(request, kind, patched, options, patched=True)
    _check_place(target, obj["metadata"])
    return obj


def _decoded(request: web.Request, kind: Kind, body: Json, options: WriteOptions, *, patched: bool = False) -> Json:
    """The object as the server reads it; fields that the kind does not have are said, or refused."""
    try:
        obj, unknown = decode(kind, body)
    except UndecodableError as error:
        raise _undecodable(kind, body, str(error), patched=patched) from error
    told = [f'unknown field "{one}"' for one in unknown]
    if told and options.validation == "Strict":
        raise _undecodable(kind, body, f"strict decoding error: {', '.join(told)}", patched=patched)
    if options.validation != "Ignore":
        warn(request, *told)
    return obj


def _undecodable(kind: Kind, body: Json, why: str, *, patched: bool) -> status.ApiError:
    if patched:
        return status.invalid_patch(why, body)
    version = kind.api_version.rpartition("/")[2]
    return status.bad_request(f'{kind.kind} in version "{version}" cannot be handled as a {kind.kind}: {why}')


def _check_place(target: Target, meta: Json) -> None:
    if not meta.get("name"):
        why = "was undeterminable: name must be provided"
        raise status.bad_request(f"the name of the object ({target.name} based on URL) {why}")
    if meta["name"] != target.name:
        raise _other_name(meta["name"], target)
    if target.kind.namespaced:
        _check_namespace(target, meta)
        meta["namespace"] = target.namespace


def _check_namespace(target: Target, meta: Json) -> None:
    if (meta.get("namespace") or target.namespace) != target.namespace:
        message = "the namespace of the provided object does not match the namespace sent on the request"
        raise status.bad_request(message)


def _other_name(name: str, target: Target) -> status.ApiError:
    return status.bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")


def _check_size(obj: Json) -> None:
    if len(json.dumps(obj, separators=(",", ":"), ensure_ascii=False).encode()) > MAX_OBJECT:
        raise status.ApiError(500, "", "etcdserver: request is too large")


def _write(store: Store, target: Target, obj: Json, options: WriteOptions) -> Json:
    kind, meta = target.kind, obj["metadata"]
    if meta.get("resourceVersion") in (None, "", "0"):
        meta.pop("resourceVersion", None)
        if not kind.unconditional_update:
            text = "Invalid value: 0: must be specified for an update"
            causes = ("metadata.resourceVersion", "FieldValueInvalid", text)
            raise status.invalid_by_resource(kind, target.name, causes)
    old = store.get(kind, target.namespace, target.name)
    if kind.status_subresource:
        if target.subresource == "status":
            kept = {key: value for key, value in old.items() if key not in ("status", "metadata")}
            obj = {**kept, "metadata": meta, "status": obj.get("status", {})}
        else:
            obj = {**obj, "status": old.get("status", {})}
            if kind == PODS and _fixed(obj) != _fixed(old):
                text = f"Forbidden: pod updates may not change fields other than {', '.join(_CHANGEABLE)}"
                raise status.invalid(kind, target.name, ("spec", "FieldValueForbidden", text))
    _check_size(obj)
    return store.replace(kind, obj, dry_run=options.dry_run)


def _fixed(pod: Json) -> Json:
    """What of a pod's spec stays as it was created."""
    spec = {key: value for key, value in pod["spec"].items() if f"spec.{key}" not in _CHANGEABLE}
    for key in ("containers", "initContainers"):
        spec[key] = [{name: one[name] for name in one if name != "image"} for one in spec.get(key) or ()]
    return spec


async def bind(store: Store, request: web.Request, target: Target) -> Json:
    """POST of a Binding: a pod is put on a node. Raises ApiError."""
    body = await body_of(request, "Binding")
    pod = store.get(PODS, target.namespace, target.name)
    goal = body.get("target")
    node = goal.get("name") if isinstance(goal, dict) else None
    if not node or not isinstance(node, str):
        raise status.invalid(PODS, target.name, ("target.name", "FieldValueRequired", "Required value"))
    if pod["spec"].get("nodeName"):
        raise status.conflict(
            PODS, target.name, f'pod {target.name} is already assigned to node "{pod["spec"]["nodeName"]}"'
        )
    if not write_options(request.query, "CreateOptions").dry_run:
        store.replace(PODS, bound(pod, node, store.clock.now()))
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def bound(pod: Json, node: str, now: datetime) -> Json:
    """A pod after the scheduler has bound it to a node."""
    when = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    state = pod.get("status", {})
    conditions = [one for one in state.get("conditions") or () if one["type"] != "PodScheduled"]
    conditions.append({"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": when})
    return {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": {**state, "conditions": conditions}}
