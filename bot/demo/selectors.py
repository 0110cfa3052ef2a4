"""Label and field selectors of list and watch.

Grammar: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors and
https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from bot.demo.kinds import Kind
from bot.demo.status import bad_request

Json = dict[str, Any]
Match = Callable[[Json], bool]

_SET = re.compile(r"^\s*(?P<key>[^\s!=,()]+)\s+(?P<op>in|notin)\s+\((?P<values>[^)]*)\)\s*$")
_EQUAL = re.compile(r"^\s*(?P<key>[^\s!=,()]+)\s*(?P<op>==|=|!=)\s*(?P<value>[^\s!=,()]*)\s*$")
_EXISTS = re.compile(r"^\s*(?P<no>!?)\s*(?P<key>[^\s!=,()]+)\s*$")

_FIELDS: dict[str, tuple[str, ...]] = {
    "pods": ("spec.nodeName", "spec.restartPolicy", "spec.serviceAccountName", "status.phase", "status.podIP"),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
}


def everything(_obj: Json) -> bool:
    """The empty selector."""
    return True


def label_selector(text: str) -> Match:
    """Read a label selector.

    Raises ApiError 400 where the real server cannot parse it either.
    """
    tests = [_requirement(part, text) for part in _split(text) if part.strip()]
    if not tests:
        return everything

    def match(obj: Json) -> bool:
        labels = obj["metadata"].get("labels") or {}
        return all(test(labels) for test in tests)

    return match


def field_selector(text: str, kind: Kind) -> Match:
    """Read a field selector of a kind.

    Every kind has metadata.name and metadata.namespace; custom resources have no others.
    Raises ApiError 400 for other fields.
    """
    tests: list[Match] = []
    for part in filter(str.strip, text.split(",")):
        found = _EQUAL.match(part)
        if found is None:
            raise bad_request(f"invalid selector: {text!r}; can't understand {part!r}")
        path = found["key"]
        if path not in ("metadata.name", "metadata.namespace", *_FIELDS.get(kind.plural, ())):
            raise bad_request(f"field label not supported: {path}")
        # of an Event `source` is the component's name (registry/core/event/strategy.go)
        keys = ("source", "component") if path == "source" else tuple(path.split("."))
        tests.append(_field_test(keys, found["value"], wanted=found["op"] != "!="))
    return everything if not tests else lambda obj: all(test(obj) for test in tests)


def _split(text: str) -> list[str]:
    # Commas inside the parentheses of a set do not separate requirements.
    return re.split(r",(?![^(]*\))", text)


def _requirement(part: str, whole: str) -> Callable[[dict[str, str]], bool]:
    if found := _SET.match(part):
        key, values = found["key"], {value.strip() for value in found["values"].split(",")}
        if found["op"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if found := _EQUAL.match(part):
        key, value = found["key"], found["value"]
        if found["op"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if found := _EXISTS.match(part):
        key, absent = found["key"], bool(found["no"])
        return lambda labels: (key in labels) is not absent
    raise bad_request(f"unable to parse requirement: found '{part.strip()}' in '{whole}'")


def _field_test(path: tuple[str, ...], value: str, *, wanted: bool) -> Match:
    def match(obj: Json) -> bool:
        at: Any = obj
        for key in path:
            at = at.get(key) if isinstance(at, dict) else None
        text = str(at).lower() if isinstance(at, bool) else str(at or "")
        return (text == value) is wanted

    return match
