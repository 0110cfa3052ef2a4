"""Label and field selectors of list and watch.

Grammar: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors and
https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/; what is said of a selector that
cannot be read follows k8s.io/apimachinery `pkg/labels/selector.go` and `pkg/fields/selector.go`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from bot.demo.kinds import Kind
from bot.demo.names import key_errors, label_errors
from bot.demo.status import bad_request

Json = dict[str, Any]
Match = Callable[[Json], bool]
Test = Callable[[dict[str, str]], bool]

_TOKEN = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+|$)")
_SYMBOLS = ("==", "!=", "=", "!", "(", ")", ",", "<", ">", "")
_OPERATORS = ("in", "notin", "=", "==", "!=", ">", "<")
_FIELD = re.compile(r"(?P<key>.*?)(?P<op>==|!=|=)(?P<value>.*)", re.DOTALL)
_FIELD_END = re.compile(r"(?<!\\)(?:\\\\)*,")

_FIELDS: dict[str, tuple[str, ...]] = {
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
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
    """Read a label selector. Raises ApiError 400 where the real server cannot read it either."""
    tests = _Labels(text).tests()
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
    tests = [_field_test(kind, text, part) for part in _split_fields(text) if part]
    return everything if not tests else lambda obj: all(test(obj) for test in tests)


class _Labels:
    """The reader of label selectors; its methods are those of the real one."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)

    def tests(self) -> list[Test]:
        tests: list[Test] = []
        while self._next:
            if self._next != "!" and self._next in _SYMBOLS:
                raise bad_request(f"found '{self._next}', expected: !, identifier, or 'end of string'")
            tests.append(self._requirement())
            if end := self._take():
                if end != ",":
                    raise bad_request(f"found '{end}', expected: ',' or 'end of string'")
                if self._next != "!" and self._next in _SYMBOLS:
                    raise bad_request(f"found '{self._next}', expected: identifier after ','")
        return tests

    @property
    def _next(self) -> str:
        return self._tokens[0] if self._tokens else ""

    def _take(self) -> str:
        return self._tokens.pop(0) if self._tokens else ""

    def _requirement(self) -> Test:
        absent = self._next == "!"
        if absent:
            self._take()
        key = self._identifier()
        _check("<nil>", key, key_errors(key))
        if absent or self._next in ("", ","):
            return lambda labels: (key in labels) is not absent
        operator = self._take()
        if operator not in _OPERATORS:
            raise _unreadable(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
        if operator in ("<", ">"):
            return _number_test(key, self._value(), more=operator == ">")
        values = self._values() if operator in ("in", "notin") else {self._value()}
        for number, value in enumerate(sorted(values)):
            _check(f"values[{number}][{key}]", value, label_errors(value))
        if operator in ("notin", "!="):
            return lambda labels: labels.get(key) not in values
        return lambda labels: labels.get(key) in values

    def _identifier(self) -> str:
        if self._next in _SYMBOLS:
            raise _unreadable(f"found '{self._next}', expected: identifier")
        return self._take()

    def _value(self) -> str:
        return "" if self._next in ("", ",") else self._identifier()

    def _values(self) -> set[str]:
        if (opened := self._take()) != "(":
            raise _unreadable(f"found '{opened}' expected: '('")
        values = {"" if self._next in (",", ")") else self._identifier()}
        while (end := self._take()) != ")":
            if end != ",":
                raise _unreadable(f"found '{end}', expected: ',' or ')'")
            values.add("" if self._next in (",", ")") else self._identifier())
        return values


def _number_test(key: str, text: str, *, more: bool) -> Test:
    if not re.fullmatch(r"[-+]?\d+", text):
        errors = ["for 'Gt', 'Lt' operators, the value must be an integer"]
        _check("values[0]", text, errors)
    limit = int(text)

    def test(labels: dict[str, str]) -> bool:
        value = labels.get(key, "")
        return bool(re.fullmatch(r"[-+]?\d+", value)) and (int(value) > limit if more else int(value) < limit)

    return test


def _check(field: str, value: str, errors: list[str]) -> None:
    if errors:
        raise _unreadable(f"{field}: Invalid value: {json.dumps(value, ensure_ascii=False)}: {errors[0]}")


def _unreadable(why: str) -> Exception:
    return bad_request(f"unable to parse requirement: {why}")


def _split_fields(text: str) -> list[str]:
    """The parts between commas; a comma behind a backslash belongs to a value."""
    parts, begin = [], 0
    for found in _FIELD_END.finditer(text):
        parts.append(text[begin : found.end() - 1])
        begin = found.end()
    return [*parts, text[begin:]]


def _field_test(kind: Kind, text: str, part: str) -> Match:
    found = _FIELD.fullmatch(part)
    if found is None:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
    path, value = found["key"], found["value"]
    if strange := re.search(r"(?<!\\)(?:\\\\)*([=])", value):
        raise bad_request(f"invalid field selector: unescaped character in value: {ord(strange[1])}")
    if wrong := re.search(r"(?:^|[^\\])(?:\\\\)*(\\(?:[^\\,=]|$))", value):
        raise bad_request(f"invalid field selector: invalid escape sequence: {wrong[1]}")
    value = re.sub(r"\\(.)", r"\1", value)
    known = _FIELDS.get(kind.plural, ())
    if path not in ("metadata.name", "metadata.namespace", *known):
        if kind.custom or known:
            raise bad_request(f"field label not supported: {path}")
        raise bad_request(f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"')
    # of an Event `source` is the component's name (registry/core/event/strategy.go)
    keys = ("source", "component") if path == "source" else tuple(path.split("."))
    return _equality(keys, value, wanted=found["op"] != "!=")


def _equality(path: tuple[str, ...], value: str, *, wanted: bool) -> Match:
    def match(obj: Json) -> bool:
        at: Any = obj
        for key in path:
            at = at.get(key) if isinstance(at, dict) else None
        text = str(at).lower() if isinstance(at, bool) else str(at or "")
        return (text == value) is wanted

    return match
