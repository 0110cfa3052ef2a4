"""What the API server does with a JSON patch, in so far as the bot leans on it.

It tests strings by the bytes of their JSON, not by what they mean; it takes a test of an absent key for null as true; all
of a patch is applied or nothing of it; an object that is being deleted takes no new finalizer (evanphx/json-patch v4,
apimachinery's ValidateObjectMetaUpdate; seen on a kube-apiserver 1.34).
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any


class Refused(Exception):
    """The server's 422."""


def apply(body: dict[str, Any], patch: list[dict[str, Any]]) -> dict[str, Any]:
    """The object after the patch.

    Raises:
        Refused: a test failed, a place does not exist, or a finalizer comes too late.
    """
    result = deepcopy(body)
    for operation in patch:
        parent, key = _place(result, operation["path"])
        {"test": _test, "add": _add, "remove": _remove}[operation["op"]](parent, key, operation.get("value"))
    before, after = body["metadata"].get("finalizers") or [], result["metadata"].get("finalizers") or []
    if body["metadata"].get("deletionTimestamp") and set(after) - set(before):
        raise Refused("no new finalizers can be added if the object is being deleted")
    result["metadata"]["resourceVersion"] = str(int(body["metadata"]["resourceVersion"]) + 1)
    return result


def _place(body: Any, path: str) -> tuple[Any, str]:
    """The container of a path, and the last step."""
    *steps, last = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]
    for step in steps:
        body = _get(body, step)
        if not isinstance(body, dict | list):
            raise Refused(f"{path}: there is no such place")
    return body, last


def _get(container: Any, key: str) -> Any:
    if isinstance(container, list):
        return container[int(key)] if key.isdigit() and int(key) < len(container) else None
    return container.get(key)


def _test(container: Any, key: str, value: Any) -> None:
    found = _get(container, key)
    if found is None or value is None:
        same = found is None and value is None
    elif isinstance(found, str) and isinstance(value, str):
        same = _as_stored(found) == json.dumps(value)
    else:
        same = found == value
    if not same:
        raise Refused(f"{key}: testing value failed")


def _as_stored(text: str) -> str:
    """A string as Go encodes it: `<`, `>`, `&` escaped, other letters as they are."""
    encoded = json.dumps(text, ensure_ascii=False)
    for sign in "<>&\u2028\u2029":
        encoded = encoded.replace(sign, f"\\u{ord(sign):04x}")
    return encoded


def _add(container: Any, key: str, value: Any) -> None:
    if isinstance(container, list):
        container.insert(len(container) if key == "-" else int(key), value)
    else:
        container[key] = value


def _remove(container: Any, key: str, _value: Any) -> None:
    if _get(container, key) is None:
        raise Refused(f"{key}: there is nothing to remove")
    del container[int(key) if isinstance(container, list) else key]
