"""The cluster-autoscaler's own account: the ConfigMap `cluster-autoscaler-status`, in both of its forms.

Up to 1.29 it is prose with counts in brackets (clusterstate/api/utils.go at that time), from 1.30 on YAML
(clusterstate/api/types.go). A managed control plane may show neither. Nothing here raises: what can't be read is said
to be so, and what can is kept. None stands for "it does not say"; the year 1 means "never" and is read as None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import yaml

from bot.core.workflow import instant

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MAX_TEXT = 400_000
"""Longest status read, in characters; a thousand groups stay below it."""


class Form(StrEnum):
    """Which of the two forms it is."""

    TEXT = "text"
    YAML = "yaml"
    UNREADABLE = "unreadable"


class ErrorKind(StrEnum):
    """What a provider's error comes down to."""

    QUOTA = "quota"
    STOCK = "stock"
    ADDRESSES = "addresses"
    RIGHTS = "rights"
    TIMEOUT = "timeout"
    OTHER = "other"


@dataclass(frozen=True)
class ScaleError:
    """Why a group does not grow. `text` is the provider's message, shortened; "" where only a code came."""

    kind: ErrorKind
    code: str = ""
    text: str = ""
    at: datetime | None = None


@dataclass(frozen=True)
class NodeGroup:
    """One group of nodes as the autoscaler sees it."""

    name: str
    """As the provider writes it, an URL for one, a UUID for another."""
    health: str = ""
    ready: int | None = None
    registered: int | None = None
    unready: int | None = None
    without_resource: int | None = None
    """Of the unready those that lack only their GPU."""
    starting: int | None = None
    unregistered: int | None = None
    """Machines that were asked for and are no nodes yet."""
    long_unregistered: int | None = None
    target: int | None = None
    smallest: int | None = None
    largest: int | None = None
    scale_up: str = ""
    scale_up_since: datetime | None = None
    scale_down: str = ""
    candidates: int | None = None
    error: ScaleError | None = None

    @property
    def short(self) -> str:
        """What people call it: the last part of an URL, the first eight digits of a UUID."""
        return short_group(self.name)

    @property
    def in_backoff(self) -> bool:
        return self.scale_up == "Backoff"

    @property
    def growing(self) -> bool:
        return self.scale_up == "InProgress" or (
            self.target is not None and self.registered is not None and self.target > self.registered
        )


@dataclass(frozen=True)
class AutoscalerStatus:
    """The ConfigMap's text, read."""

    form: Form
    groups: tuple[NodeGroup, ...] = ()
    running: bool = True
    """False while it initialises."""
    health: str = ""
    """Of the whole cluster: it says nothing of a single group."""
    problem: str = ""
    """What could not be read, "" for nothing."""


def short_group(name: str) -> str:
    """The last part of an URL or path, the first eight digits of a UUID, else the name."""
    last = name.rstrip("/").rsplit("/", 1)[-1]
    return last[:8] if _UUID.fullmatch(last) else last


def read_status(text: str | None) -> AutoscalerStatus:
    """Read the value of the key `status`."""
    if text is None:
        return AutoscalerStatus(Form.UNREADABLE, problem="the ConfigMap has no key `status`")
    if not text.strip():
        return AutoscalerStatus(Form.UNREADABLE, problem="it is empty")
    if len(text) > MAX_TEXT:
        return AutoscalerStatus(Form.UNREADABLE, problem=f"it has {len(text)} characters")
    if text.lstrip().startswith("Cluster-autoscaler status at"):
        return _read_text(text)
    return _read_yaml(text)


def without_probes(text: str) -> str:
    """The text without the times that change every ten seconds: two that are equal so tell the same."""
    return _PROBES.sub("", text)


def written_at(text: str) -> datetime | None:
    """When it was written, which changes every ten seconds and is therefore no part of what was read."""
    match = _WRITTEN.search(text)
    return _time(match["time"]) if match else None


def shorten(message: str, code: str = "") -> ScaleError:
    """A provider's error, on one line and without what nobody reads.

    Providers repeat a sentence for each machine, wrap it in their client's words, and add links to their manuals.
    """
    code = code.strip()
    text = " ".join(message.split())
    inner = _AZURE.search(text)
    if inner is not None:
        code, text = (inner["code"] if code in {"", "cloudProviderError"} else code), inner["message"]
    parts = (_INSTANCE.sub("", part).strip(" .,") for part in _PARTS.split(text))
    kept: list[str] = []
    for part in parts:
        sentence = _MANUAL.sub("", part).strip(" .,;:")
        if sentence and sentence not in kept:
            kept.append(sentence)
    text = "; ".join(kept)
    return ScaleError(_kind(f"{code} {text}"), code, text if len(text) <= 160 else text[:159] + "…")


def _kind(text: str) -> ErrorKind:
    return next((kind for pattern, kind in _KINDS if pattern.search(text)), ErrorKind.OTHER)


# the YAML form


def _read_yaml(text: str) -> AutoscalerStatus:
    try:
        content = yaml.load(text, _Loader)  # noqa: S506  # it is safe_load's, in C where PyYAML has it
    except (yaml.YAMLError, ValueError, RecursionError):
        return AutoscalerStatus(Form.UNREADABLE, problem="it is neither of the two known forms")
    if not isinstance(content, Mapping) or not content.keys() & {"autoscalerStatus", "nodeGroups", "clusterWide"}:
        return AutoscalerStatus(Form.UNREADABLE, problem="it is neither of the two known forms")
    listed, problem = _list(content.get("nodeGroups"))
    groups = tuple(_yaml_group(entry) for entry in listed if _text(_map(entry).get("name")))
    if not problem and len(groups) < len(listed):
        problem = f"{len(listed) - len(groups)} of {len(listed)} groups have no name"
    return AutoscalerStatus(
        Form.YAML,
        groups,
        running=_text(content.get("autoscalerStatus")) in {"Running", ""},
        health=_text(_map(_map(content.get("clusterWide")).get("health")).get("status")),
        problem=problem,
    )


def _yaml_group(entry: Any) -> NodeGroup:
    entry = _map(entry)
    health, up, down = (_map(entry.get(key)) for key in ("health", "scaleUp", "scaleDown"))
    counts = _map(health.get("nodeCounts"))
    registered = _map(counts.get("registered"))
    unready = _map(registered.get("unready"))
    backoff = _map(up.get("backoffInfo"))
    since = _time(up.get("lastTransitionTime"))
    status = _text(up.get("status"))
    error = None
    if backoff or status == "Backoff":
        found = shorten(_text(backoff.get("errorMessage")), _text(backoff.get("errorCode")))
        error = ScaleError(found.kind, found.code, found.text, since)
    return NodeGroup(
        name=_text(entry.get("name")),
        health=_text(health.get("status")),
        ready=_count(registered.get("ready")),
        registered=_count(registered.get("total")),
        unready=_count(unready.get("total")),
        without_resource=_count(unready.get("resourceUnready")),
        starting=_count(registered.get("notStarted")),
        unregistered=_count(counts.get("unregistered")),
        long_unregistered=_count(counts.get("longUnregistered")),
        target=_count(health.get("cloudProviderTarget")),
        smallest=_count(health.get("minSize")),
        largest=_count(health.get("maxSize")),
        scale_up=status,
        scale_up_since=since,
        scale_down=_text(down.get("status")),
        candidates=_count(down.get("candidates")),
        error=error,
    )


# the text form


def _read_text(text: str) -> AutoscalerStatus:
    lines = text.splitlines()
    if len(lines) > 1 and lines[1].strip() == "Initializing":
        return AutoscalerStatus(Form.TEXT, running=False)
    blocks = list(_blocks(lines[1:]))
    cluster = next((block for name, block in blocks if name is None), {})
    groups = tuple(_text_group(name, block) for name, block in blocks if name is not None)
    problem = "" if cluster else "it breaks off before its first part"
    if not problem and groups and not blocks[-1][1].keys() >= {"Health", "ScaleUp"}:
        problem = f"it breaks off in the group {groups[-1].short}"
    return AutoscalerStatus(Form.TEXT, groups, health=_word(cluster.get("Health")), problem=problem)


def _blocks(lines: Iterable[str]) -> Iterable[tuple[str | None, dict[str, list[str]]]]:
    """The cluster's block (name None) and one for each group: condition -> its line and the lines below it."""
    name: str | None = None
    block: dict[str, list[str]] = {}
    condition: list[str] = []
    for line in lines:
        match = _FIELD.match(line)
        if match is None:
            continue
        key, value = match["key"], match["value"].strip()
        if key == "Name":
            if block or name is not None:
                yield name, block
            name, block = value, {}
        elif key in {"Health", "ScaleUp", "ScaleDown"}:
            condition = block[key] = [value]
        elif key in {"LastProbeTime", "LastTransitionTime"}:
            condition.append(f"{key} {value}")
    if block or name is not None:
        yield name, block


def _text_group(name: str, block: Mapping[str, list[str]]) -> NodeGroup:
    health, up, down = (block.get(key) for key in ("Health", "ScaleUp", "ScaleDown"))
    counts = _numbers(health)
    since = _transition(up)
    status = _word(up)
    return NodeGroup(
        name=name,
        health=_word(health),
        ready=counts.get("ready"),
        registered=counts.get("registered"),
        unready=counts.get("unready"),
        without_resource=counts.get("resourceUnready"),
        starting=counts.get("notStarted"),
        long_unregistered=counts.get("longUnregistered"),
        target=counts.get("cloudProviderTarget", _numbers(up).get("cloudProviderTarget")),
        smallest=counts.get("minSize", counts.get("min")),
        largest=counts.get("maxSize", counts.get("max")),
        scale_up=status,
        scale_up_since=since,
        scale_down=_word(down),
        candidates=_numbers(down).get("candidates"),
        # this form names no reason for a backoff
        error=ScaleError(ErrorKind.OTHER, at=since) if status == "Backoff" else None,
    )


def _word(condition: list[str] | None) -> str:
    word = condition[0].partition(" ")[0] if condition else ""
    return word if word.isalpha() else ""


def _numbers(condition: list[str] | None) -> dict[str, int]:
    return {m["key"]: int(m["number"]) for m in _NUMBER.finditer(condition[0])} if condition else {}


def _transition(condition: list[str] | None) -> datetime | None:
    for line in condition or []:
        if line.startswith("LastTransitionTime "):
            return _time(line.removeprefix("LastTransitionTime "))
    return None


# what both forms share


def _time(value: Any) -> datetime | None:
    """A time in RFC 3339 or as Go prints it: `2026-03-02 10:00:00.123456789 +0000 UTC m=+5.1`. Year 1 is None."""
    if isinstance(value, datetime):
        return instant(value.isoformat())
    match = _GO_TIME.match(str(value or "").strip())
    if match is None:
        return None
    fraction = (match["fraction"] or ".0")[:7]
    zone = match["zone"] or "Z"
    return instant(f"{match['date']}T{match['time']}{fraction}{zone if zone == 'Z' else zone[:3] + ':' + zone[-2:]}")


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else "" if value is None else str(value)


def _count(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if value >= 0 else None
    return int(value) if isinstance(value, str) and value.strip().isdecimal() else None


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> tuple[list[Any], str]:
    if value is None:
        return [], ""
    return (value, "") if isinstance(value, list) else ([], "its nodeGroups are no list")


_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PROBES = re.compile(
    r"^(?:\s*-?\s*(?:lastProbeTime|LastProbeTime|time):.*|Cluster-autoscaler status at .*)$| m=[+-][0-9.]+$",
    re.MULTILINE,
)
_WRITTEN = re.compile(r"^(?:time:|Cluster-autoscaler status at) *[\"']?(?P<time>\d.*)", re.MULTILINE)
_FIELD = re.compile(r"^\s*(?P<key>[A-Za-z]+):(?P<value>.*)$")
_NUMBER = re.compile(r"(?P<key>[A-Za-z]+)=(?P<number>\d+)")
_GO_TIME = re.compile(
    r"^(?P<date>\d{4}-\d\d-\d\d)[T ](?P<time>\d\d:\d\d:\d\d)(?P<fraction>\.\d+)?\s*(?P<zone>Z|[+-]\d\d:?\d\d)?"
)

_AZURE = re.compile(r"Code=\"(?P<code>[^\"]+)\" Message=\"(?P<message>(?:[^\"\\]|\\.)+)")
_INSTANCE = re.compile(r"^Instance '[^']*' creation failed: |^Status Reason: ")
_PARTS = re.compile(r"\.?, ?(?=Instance ')|\. +(?=[A-Z])|\n")
_MANUAL = re.compile(
    r"(?i)(?:please |you can |to request )?(?:read|see|visit|refer|learn) [^.]*https?://.*$|https?://\S+"
    r"|pod is at risk of not being scheduled|^launching a new ec2 instance$"
)

_KINDS: tuple[tuple[re.Pattern[str], ErrorKind], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kind)
    for pattern, kind in (
        (r"quota|(?:limit|count).?exceeded|exceed\w* \w*limit", ErrorKind.QUOTA),
        (r"out.?of.?(?:stock|resource|capacity)|stock.?out|resource_pool_exhausted", ErrorKind.STOCK),
        (r"insufficient.{0,12}capacity|not.{0,20}sufficient .*capacity|no capacity|unfulfillable", ErrorKind.STOCK),
        (r"skunotavailable|allocationfailed|cannot provision any more|placeholder-cannot-be", ErrorKind.STOCK),
        (r"ip.space|addresses|subnet", ErrorKind.ADDRESSES),
        (r"permission|forbidden|unauthori[sz]ed|accessdenied|credential", ErrorKind.RIGHTS),
        (r"time(?:d)? ?out|failed to (?:register|appear)|deadline", ErrorKind.TIMEOUT),
    )
)
