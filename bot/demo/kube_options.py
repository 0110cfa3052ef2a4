"""Parameters of requests: what they mean, and which of them do not go together.

Rules and texts: k8s.io/apimachinery `pkg/apis/meta/{v1,internalversion}/validation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from multidict import MultiMapping

from bot.demo import status
from bot.demo.go_types import json_type
from bot.demo.status import Cause, bad_request

Json = dict[str, Any]
Query = MultiMapping[str]

MAX_MANAGER = 128
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_POLICIES = ("Foreground", "Background", "Orphan")
_DELETE_TYPES = {
    "gracePeriodSeconds": (int, "int64"),
    "preconditions": (dict, "v1.Preconditions"),
    "orphanDependents": (bool, "bool"),
    "propagationPolicy": (str, "v1.DeletionPropagation"),
    "dryRun": (list, "[]string"),
}


def flag(query: Mapping[str, str], name: str) -> bool:
    """Whether a parameter is on: it is there, and is neither 0 nor false."""
    return name in query and query[name].lower() not in ("0", "false")


def number(query: Mapping[str, str], name: str) -> int | None:
    """A number. Raises ApiError 400."""
    if (text := query.get(name)) is None:
        return None
    if not text.removeprefix("-").isdecimal():
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How something is to be written."""

    dry_run: bool
    validation: str
    """Strict: fields that the kind does not have are refused; Warn, or nothing: the client is warned of them."""


def write_options(query: Query, options: str) -> WriteOptions:
    """Read the parameters of a write; `options` is their kind, such as CreateOptions. Raises ApiError 422."""
    causes = [*_dry_run(query.getall("dryRun", []))]
    manager, validation = query.get("fieldManager", ""), query.get("fieldValidation", "")
    if options == "PatchOptions" and "force" in query:
        causes.append(("force", "FieldValueForbidden", "Forbidden: may not be specified for non-apply patch"))
    if len(manager) > MAX_MANAGER:
        causes.append(("fieldManager", "FieldValueTooLong", f"Too long: may not be more than {MAX_MANAGER} bytes"))
    if validation not in _VALIDATIONS:
        causes.append(_unsupported("fieldValidation", f'"{validation}"', *_VALIDATIONS))
    if causes:
        raise status.invalid_options(options, *causes)
    return WriteOptions(bool(query.getall("dryRun", [])), validation)


def delete_options(query: Query, body: Json) -> Json:
    """The options of a deletion: those of the body, else those of the parameters. Raises ApiError: 400, 422."""
    options: Json = dict(body)
    if not body:
        options |= {name: query[name] for name in ("propagationPolicy",) if name in query}
        if (grace := number(query, "gracePeriodSeconds")) is not None:
            options["gracePeriodSeconds"] = grace
        if "orphanDependents" in query:
            options["orphanDependents"] = flag(query, "orphanDependents")
        if "dryRun" in query:
            options["dryRun"] = query.getall("dryRun")
    elif body.get("kind", "DeleteOptions") != "DeleteOptions":
        raise bad_request(f'no kind "{body["kind"]}" is registered for version "{body.get("apiVersion", "")}"')
    options = {name: value for name, value in options.items() if value is not None}
    for name, (wanted, go) in _DELETE_TYPES.items():
        value = options.get(name)
        if value is not None and (not isinstance(value, wanted) or (wanted is int and isinstance(value, bool))):
            where = f"Go struct field DeleteOptions.{name} of type {go}"
            raise bad_request(f"json: cannot unmarshal {json_type(value)} into {where}")
    _check_deletion(options)
    return options


def _check_deletion(options: Json) -> None:
    causes = [*_dry_run(options.get("dryRun") or [])]
    policy = options.get("propagationPolicy")
    if policy is not None and "orphanDependents" in options:
        text = f'Invalid value: "{policy}": orphanDependents and deletionPropagation cannot be both set'
        causes.append(("propagationPolicy", "FieldValueInvalid", text))
    elif policy is not None and policy not in _POLICIES:
        causes.append(_unsupported("propagationPolicy", f'"{policy}"', *_POLICIES, "nil"))
    if causes:
        raise status.invalid_options("DeleteOptions", *causes)
    if options.get("orphanDependents"):
        options["propagationPolicy"] = "Orphan"


def check_list(query: Query, *, watch: bool) -> None:
    """Raises ApiError 422 where parameters of a list or a watch do not go together."""
    match, version, more = (query.get(name, "") for name in ("resourceVersionMatch", "resourceVersion", "continue"))
    told: list[str] = []
    causes: list[Cause] = []
    if watch:
        if "sendInitialEvents" in query and match != "NotOlderThan":
            told.append("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
        if match and "sendInitialEvents" not in query:
            told.append("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
        causes = [_forbidden("resourceVersionMatch", text) for text in told]
        if match and match != "NotOlderThan":
            causes.append(_unsupported("resourceVersionMatch", f'"{match}"', "NotOlderThan"))
        if more:
            causes.append(
                _forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
            )
    else:
        if match and not version:
            told.append("resourceVersionMatch is forbidden unless resourceVersion is provided")
        if match and more:
            told.append("resourceVersionMatch is forbidden when continue is provided")
        if match == "Exact" and version == "0":
            told.append('resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
        causes = [_forbidden("resourceVersionMatch", text) for text in told]
        if match not in ("", "Exact", "NotOlderThan"):
            causes.append(_unsupported("resourceVersionMatch", f'"{match}"', "Exact", "NotOlderThan", ""))
        if "sendInitialEvents" in query:
            causes.append(_forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if causes:
        raise status.invalid_options("ListOptions", *causes)


def _dry_run(given: list[Any]) -> list[Cause]:
    if all(one == "All" for one in given):
        return []
    listed = ",".join(f'"{one}"' for one in given)
    return [_unsupported("dryRun", f"[{listed}]", "All")]


def _unsupported(field: str, value: str, *supported: str) -> Cause:
    listed = ", ".join(f'"{one}"' for one in supported)
    return field, "FieldValueNotSupported", f"Unsupported value: {value}: supported values: {listed}"


def _forbidden(field: str, text: str) -> Cause:
    return field, "FieldValueForbidden", f"Forbidden: {text}"
