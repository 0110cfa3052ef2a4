"""The three ways to patch an object: JSON patch, merge patch, and the strategic merge patch of built-in kinds.

https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-and-apply; RFC 6902, RFC 7386.
"""

from __future__ import annotations

import copy
import json
from json import decoder, scanner
from typing import Any

import jsonpatch
import jsonpointer

from bot.demo import status

Json = dict[str, Any]

MAX_OPERATIONS = 10_000
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

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


class RawText(str):
    """A string of a patch that still knows how it was written."""

    __slots__ = ("written",)
    written: str


class RawNumber(RawText):
    """A number of a patch, as it was written."""


def json_patch(obj: Json, operations: Any) -> Json:
    """Apply RFC 6902 operations, from `parse`.

    Like the library that the real server uses (evanphx/json-patch v4), `test` for null holds where the path is absent,
    and compares strings and numbers by the bytes of their JSON: those of the patch as they came, those of the object
    as Go's encoder writes them. Raises ApiError: 400 for what is no patch, 413 for too many operations, 422 where an
    operation fails.
    """
    if not isinstance(operations, list) or not all(isinstance(one, dict) for one in operations):
        raise status.bad_request(
            "error decoding patch: json: cannot unmarshal into Go value of type []handlers.jsonPatchOp"
        )
    if len(operations) > MAX_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        raise status.ApiError(413, "RequestEntityTooLarge", f"Request entity is too large: {message}")
    result: Any = copy.deepcopy(obj)
    try:
        for operation in operations:
            if operation.get("op") == "test":
                if not _is_written_alike(_value_at(result, operation["path"]), operation.get("value")):
                    raise status.patch_rejected()
                continue
            result = jsonpatch.JsonPatch([_lenient(result, plain(operation))]).apply(result, in_place=True)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, KeyError, TypeError) as error:
        raise status.patch_rejected() from error
    if not isinstance(result, dict):
        raise status.patch_rejected()
    return result


def _lenient(obj: Any, operation: Json) -> Json:
    """In an object the library replaces what is not there; RFC 6902 says that it must not."""
    if operation.get("op") == "replace" and operation.get("path"):
        parent = jsonpointer.resolve_pointer(obj, operation["path"].rpartition("/")[0])
        if isinstance(parent, dict):
            return {**operation, "op": "add"}
    return operation


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
    if "$patch" in patch:
        # replace: nothing of what was there stays; delete: nothing at all.
        return {key: value for key, value in patch.items() if key != "$patch" and patch["$patch"] == "replace"}
    if "$retainKeys" in patch:
        merged = {key: value for key, value in merged.items() if key in patch["$retainKeys"]}
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


def parse(body: bytes, *, as_written: bool = False) -> Any:
    """The JSON of a patch, for a JSON patch with what its strings and numbers looked like. Raises ApiError 400."""
    try:
        return json.loads(body, cls=_KeepsWriting if as_written else None)
    except ValueError as error:
        why = str(error) if body else "unexpected end of JSON input"
        raise status.bad_request(f"error decoding patch: {why}") from error


def plain(value: Any) -> Any:
    """The same without what it looked like."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, RawNumber):
        return json.loads(value.written)
    return str(value) if isinstance(value, str) else value


class _KeepsWriting(json.JSONDecoder):
    def __init__(self, **options: Any) -> None:
        super().__init__(parse_int=_number, parse_float=_number, **options)
        self.parse_string = _string
        self.scan_once = scanner.py_make_scanner(self)  # type: ignore[attr-defined]  # not in its stub


def _number(written: str) -> RawNumber:
    number = RawNumber(written)
    number.written = written
    return number


def _string(document: str, begin: int, strict: bool) -> tuple[RawText, int]:
    value, end = decoder.scanstring(document, begin, strict)  # type: ignore[attr-defined]  # not in its stub
    text = RawText(value)
    text.written = document[begin - 1 : end]
    return text, end


def _is_written_alike(stored: Any, given: Any) -> bool:
    if isinstance(given, dict):
        same_keys = isinstance(stored, dict) and stored.keys() == given.keys()
        return same_keys and all(_is_written_alike(stored[key], one) for key, one in given.items())
    if isinstance(given, list):
        same_length = isinstance(stored, list) and len(stored) == len(given)
        return same_length and all(map(_is_written_alike, stored, given))
    if isinstance(given, RawText):
        return not isinstance(stored, dict | list | bool | None) and _go_json(stored) == given.written
    return type(stored) is type(given) and bool(stored == given)


def _go_json(value: Any) -> str:
    """A string or number as encoding/json writes it: safe inside HTML."""
    text = json.dumps(value, ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _value_at(obj: Any, path: str) -> Any:
    try:
        return jsonpointer.resolve_pointer(obj, path)
    except jsonpointer.JsonPointerException:
        # The parents must be there: the real library refuses a test below something that does not exist.
        parent = jsonpointer.resolve_pointer(obj, path.rpartition("/")[0])
        if not isinstance(parent, dict):
            raise
        return None
