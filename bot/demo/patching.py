"""The three ways to patch an object: JSON patch, merge patch, and the strategic merge patch of built-in kinds.

https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-and-apply; RFC 6902, RFC 7386.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonpatch
import jsonpointer

from bot.demo import status

Json = dict[str, Any]

MAX_OPERATIONS = 10_000
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "containerStatuses": "name",
    "initContainerStatuses": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "conditions": "type",
    "addresses": "type",
    "ownerReferences": "uid",
    "taints": "key",
}
"""Lists that a strategic merge patch merges by key; finalizers are a set; all others are replaced."""


def json_patch(obj: Json, operations: Any) -> Json:
    """Apply RFC 6902 operations.

    Like the library that the real server uses (evanphx/json-patch), `test` for null holds where the path is absent.
    Raises ApiError: 400 for what is no patch, 413 for too many operations, 422 where an operation fails.
    """
    if not isinstance(operations, list) or not all(isinstance(one, dict) for one in operations):
        raise status.bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    if len(operations) > MAX_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise status.ApiError(413, "RequestEntityTooLarge", f"Request entity is too large: {message}")
    result: Any = copy.deepcopy(obj)
    try:
        for operation in operations:
            if operation.get("op") == "test" and operation.get("value") is None:
                if _value_at(result, operation["path"]) is not None:
                    raise status.patch_rejected()
                continue
            result = jsonpatch.JsonPatch([operation]).apply(result, in_place=True)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, KeyError, TypeError) as error:
        raise status.patch_rejected() from error
    if not isinstance(result, dict):
        raise status.patch_rejected()
    return result


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: null deletes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def strategic_patch(target: Any, patch: Any, field: str = "") -> Any:
    """A merge patch that merges the well-known lists by their keys."""
    if isinstance(patch, list):
        return _strategic_list(target if isinstance(target, list) else [], patch, field)
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if key.startswith(("$setElementOrder", "$retainKeys")):
            continue
        if key == "$deleteFromPrimitiveList/finalizers":
            merged["finalizers"] = [one for one in merged.get("finalizers", []) if one not in value]
        elif value is None:
            merged.pop(key, None)
        else:
            merged[key] = strategic_patch(merged.get(key), value, key)
    return merged


def _strategic_list(target: list[Any], patch: list[Any], field: str) -> list[Any]:
    if field == "finalizers":
        return target + [one for one in patch if one not in target]
    key = _MERGE_KEYS.get(field)
    if key is None or not all(isinstance(one, dict) for one in patch):
        return patch
    merged = {one.get(key): one for one in target}
    for one in patch:
        if one.get("$patch") == "delete":
            merged.pop(one.get(key), None)
        else:
            merged[one.get(key)] = strategic_patch(merged.get(one.get(key)), one)
    return list(merged.values())


def parse(body: bytes) -> Any:
    """The JSON of a patch. Raises ApiError 400."""
    try:
        return json.loads(body)
    except ValueError as error:
        raise status.bad_request(f"error decoding patch: {error}") from error


def _value_at(obj: Any, path: str) -> Any:
    try:
        return jsonpointer.resolve_pointer(obj, path)
    except jsonpointer.JsonPointerException:
        # The parents must be there: the real library refuses a test below something that does not exist.
        parent = jsonpointer.resolve_pointer(obj, path.rpartition("/")[0])
        if not isinstance(parent, dict):
            raise
        return None
