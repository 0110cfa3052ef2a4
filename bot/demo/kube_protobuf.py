"""Bodies in protobuf, as kubectl sends them where it creates something by itself: `create configmap`, `create
namespace`, `auth can-i`.

The envelope: https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding; the numbers of the fields
stand in the generated.proto of k8s.io/api. Other kinds in protobuf are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bot.demo import status

Json = dict[str, Any]
Message = dict[int, tuple[str, Any]]
"""By number: the field's name, and str, bytes, bool, a message, a list of one of them, or "map"."""

MAGIC = b"k8s\x00"
_META: Message = {1: ("name", str), 2: ("generateName", str), 3: ("namespace", str), 11: ("labels", "map")}
_META |= {12: ("annotations", "map"), 14: ("finalizers", [str])}
_ATTRIBUTES: Message = {
    number: (name, str)
    for number, name in enumerate(("namespace", "verb", "group", "version", "resource", "subresource", "name"), 1)
}
_ASKED: Message = {
    1: ("resourceAttributes", _ATTRIBUTES),
    2: ("nonResourceAttributes", {1: ("path", str), 2: ("verb", str)}),
}
_KINDS: dict[str, Message] = {
    "ConfigMap": {1: ("metadata", _META), 2: ("data", "map"), 4: ("immutable", bool)},
    "Namespace": {1: ("metadata", _META)},
    "SelfSubjectAccessReview": {1: ("metadata", _META), 2: ("spec", _ASKED)},
    "SelfSubjectReview": {1: ("metadata", _META)},
}


def read(raw: bytes, what: str) -> Json:
    """The object. Raises ApiError: 415 for a kind whose protobuf is not known here, 400 for what is no protobuf."""
    if what not in _KINDS:
        raise status.unsupported_media_type(["application/json", "application/yaml"])
    if not raw.startswith(MAGIC):
        text = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        raise status.bad_request(f"the object provided is unrecognized (must be of type {what}): {text}")
    envelope: Message = {1: ("type", {1: ("apiVersion", str), 2: ("kind", str)}), 2: ("raw", bytes)}
    try:
        outer = _message(envelope, raw.removeprefix(MAGIC))
        return {**outer.get("type", {}), **_message(_KINDS[what], outer.get("raw", b""))}
    except (IndexError, ValueError) as error:
        raise status.bad_request(f"the object provided is unrecognized (must be of type {what}): {error}") from error


def _message(fields: Message, raw: bytes) -> Json:
    found: Json = {}
    for number, value in _fields(raw):
        if number not in fields:
            continue
        name, kind = fields[number]
        if kind == "map":
            pair = _message({1: ("key", str), 2: ("value", str)}, value)
            found.setdefault(name, {})[pair.get("key", "")] = pair.get("value", "")
        elif isinstance(kind, list):
            found.setdefault(name, []).append(value.decode())
        elif isinstance(kind, dict):
            found[name] = _message(kind, value)
        else:
            found[name] = value.decode() if kind is str else kind(value)
    # Go writes empty strings too.
    return {name: value for name, value in found.items() if value not in ("", {})}


def _fields(raw: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each field: an int, or bytes."""
    at = 0
    while at < len(raw):
        key, at = _varint(raw, at)
        match key & 7:
            case 0:
                value, at = _varint(raw, at)
                yield key >> 3, value
            case 2:
                length, at = _varint(raw, at)
                if at + length > len(raw):
                    raise ValueError("unexpected EOF")
                yield key >> 3, raw[at : at + length]
                at += length
            case wire:
                raise ValueError(f"proto: illegal wireType {wire}")


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = raw[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
