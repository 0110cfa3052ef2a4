"""What the API server checks of every object before it stores it.

Rules and texts: k8s.io/apimachinery `pkg/api/validation/objectmeta.go` and `pkg/util/validation`.
"""

from __future__ import annotations

import re
from typing import Any

from bot.demo import status
from bot.demo.kinds import CONFIGMAPS, Kind

Json = dict[str, Any]

MAX_ANNOTATIONS = 256 * 1024
MAX_CONFIGMAP = 1024 * 1024
_NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_LABEL = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_LABEL_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{_LABEL}')"
)
_NAME_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_NAME}')"
)


def validate(kind: Kind, obj: Json, old: Json | None = None) -> None:
    """Raises ApiError 422 for the first wrong field; `old` is what the object replaces."""
    meta = obj["metadata"]
    name = meta.get("name") or ""
    if not name:
        text = "Required value: name or generateName is required"
        raise status.invalid(kind, "", "metadata.name", "FieldValueRequired", text)
    # Names of roles may hold colons and more.
    if (
        old is None
        and kind.group != "rbac.authorization.k8s.io"
        and not (len(name) <= 253 and re.fullmatch(_NAME, name))
    ):
        raise status.invalid(kind, name, "metadata.name", "FieldValueInvalid", f'Invalid value: "{name}": {_NAME_RULE}')
    for value in (meta.get("labels") or {}).values():
        if not isinstance(value, str) or len(value) > 63 or not re.fullmatch(_LABEL, value):
            text = f'Invalid value: "{value}": {_LABEL_RULE}'
            raise status.invalid(kind, name, "metadata.labels", "FieldValueInvalid", text)
    _validate_sizes(kind, name, obj)
    if old is not None and "deletionTimestamp" in old["metadata"]:
        _validate_finalizers(kind, name, meta, old["metadata"])


def _validate_sizes(kind: Kind, name: str, obj: Json) -> None:
    annotations = obj["metadata"].get("annotations") or {}
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > MAX_ANNOTATIONS:
        text = f"Too long: may not be more than {MAX_ANNOTATIONS} bytes"
        raise status.invalid(kind, name, "metadata.annotations", "FieldValueTooLong", text)
    if kind == CONFIGMAPS:
        data = {**(obj.get("data") or {}), **(obj.get("binaryData") or {})}
        if sum(len(value.encode()) for value in data.values()) > MAX_CONFIGMAP:
            text = f"Too long: may not be more than {MAX_CONFIGMAP} bytes"
            raise status.invalid(kind, name, "[]", "FieldValueTooLong", text)


def _validate_finalizers(kind: Kind, name: str, meta: Json, old: Json) -> None:
    extra = sorted(set(meta.get("finalizers") or ()) - set(old.get("finalizers") or ()))
    if extra:
        listed = ", ".join(f'"{one}"' for one in extra)
        text = (
            "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
            f"[]string{{{listed}}}"
        )
        raise status.invalid(kind, name, "metadata.finalizers", "FieldValueForbidden", text)
