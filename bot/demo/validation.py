"""What the API server checks of every object before it stores it.

Rules and texts: k8s.io/apimachinery `pkg/api/validation/objectmeta.go`, and of built-in kinds
`pkg/apis/core/validation/validation.go`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from bot.demo import status
from bot.demo.go_types import json_type
from bot.demo.kinds import CONFIGMAPS, EVENTS, LEASES, PODS, Kind
from bot.demo.names import config_key_errors, key_errors, label_errors, subdomain_errors
from bot.demo.status import Cause

Json = dict[str, Any]

MAX_ANNOTATIONS = 256 * 1024
MAX_CONFIGMAP = 1024 * 1024
_OWN_FINALIZERS = ("orphan", "foregroundDeletion", "kubernetes")


def validate(kind: Kind, obj: Json, old: Json | None = None) -> None:
    """Raises ApiError 422 with all wrong fields; `old` is what the object replaces."""
    meta = obj["metadata"]
    name = meta.get("name") or ""
    if not name:
        text = "Required value: name or generateName is required"
        raise status.invalid(kind, "", ("metadata.name", "FieldValueRequired", text))
    causes = [*_metadata(kind, meta, old), *_content(kind, obj)]
    if old is not None and "deletionTimestamp" in old["metadata"]:
        causes += _finalizers_of_deleted(meta, old["metadata"])
    if causes:
        raise status.invalid(kind, name, *causes)


def _invalid(field: str, value: str, errors: list[str]) -> Iterator[Cause]:
    for error in errors:
        yield field, "FieldValueInvalid", f"Invalid value: {json.dumps(value, ensure_ascii=False)}: {error}"


def _metadata(kind: Kind, meta: Json, old: Json | None) -> Iterator[Cause]:
    # Names of roles may hold colons and more.
    if old is None and kind.group != "rbac.authorization.k8s.io":
        if prefix := meta.get("generateName"):
            # A name may not end with a dash, its beginning may.
            whole = f"{prefix[:-2]}a" if prefix.endswith("-") and len(prefix) > 1 else prefix
            errors = subdomain_errors(whole)
            yield from _invalid("metadata.generateName", prefix, errors)
        yield from _invalid("metadata.name", meta["name"], subdomain_errors(meta["name"]))
    for key, value in (meta.get("labels") or {}).items():
        yield from _invalid("metadata.labels", key, key_errors(key))
        yield from _invalid("metadata.labels", value, label_errors(value))
    annotations = meta.get("annotations") or {}
    for key in annotations:
        yield from _invalid("metadata.annotations", key, key_errors(key.lower()))
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > MAX_ANNOTATIONS:
        text = f"Too long: may not be more than {MAX_ANNOTATIONS} bytes"
        yield "metadata.annotations", "FieldValueTooLong", text
    for number, finalizer in enumerate(meta.get("finalizers") or ()):
        yield from _invalid("metadata.finalizers", finalizer, key_errors(finalizer))
        if "/" not in finalizer and finalizer not in _OWN_FINALIZERS and not kind.custom:
            errors = ["name is neither a standard finalizer name nor is it fully qualified"]
            yield from _invalid(f"metadata.finalizers[{number}]", finalizer, errors)
    for owner in meta.get("ownerReferences") or ():
        for field, what in (("apiVersion", "version must"), ("kind", "must"), ("name", "must"), ("uid", "must")):
            if not owner.get(field):
                yield from _invalid(f"metadata.ownerReferences.{field}", "", [f"{what} not be empty"])


def _content(kind: Kind, obj: Json) -> Iterator[Cause]:
    if kind == CONFIGMAPS:
        yield from _config_map(obj)
    elif kind == EVENTS:
        given = (obj.get("involvedObject") or {}).get("namespace") or ""
        if given != obj["metadata"]["namespace"] and (given or obj["metadata"]["namespace"] != "default"):
            yield from _invalid("involvedObject.namespace", given, ["does not match event.namespace"])
    elif kind == LEASES:
        spec = obj.get("spec") or {}
        for field, least, rule in (
            ("leaseDurationSeconds", 1, "must be greater than 0"),
            ("leaseTransitions", 0, "must be greater than or equal to 0"),
        ):
            if (value := spec.get(field)) is not None and value < least:
                yield f"spec.{field}", "FieldValueInvalid", f"Invalid value: {value}: {rule}"
    elif kind == PODS and not (obj.get("spec") or {}).get("containers"):
        yield "spec.containers", "FieldValueRequired", "Required value"
    elif kind.custom:
        if kind.spec_required and obj.get("spec") is None:
            yield "spec", "FieldValueRequired", "Required value"
        for field in ("spec", "status", "outputs"):
            if not isinstance(obj.get(field, {}), dict):
                name = json_type(obj[field]).replace("number", "integer").replace("bool", "boolean")
                text = f'Invalid value: "{name}": {field} in body must be of type object: "{name}"'
                yield field, "FieldValueTypeInvalid", text


def _config_map(obj: Json) -> Iterator[Cause]:
    text, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    if sum(len(value.encode()) for value in (*text.values(), *binary.values())) > MAX_CONFIGMAP:
        yield "[]", "FieldValueTooLong", f"Too long: may not be more than {MAX_CONFIGMAP} bytes"
    for field, data in (("data", text), ("binaryData", binary)):
        for key in data:
            yield from _invalid(f"{field}[{key}]", key, config_key_errors(key))
            if field == "data" and key in binary:
                yield from _invalid(f"data[{key}]", key, ["duplicate of key present in binaryData"])


def _finalizers_of_deleted(meta: Json, old: Json) -> list[Cause]:
    extra = sorted(set(meta.get("finalizers") or ()) - set(old.get("finalizers") or ()))
    if not extra:
        return []
    listed = ", ".join(f'"{one}"' for one in extra)
    text = (
        "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
        f"[]string{{{listed}}}"
    )
    return [("metadata.finalizers", "FieldValueForbidden", text)]
