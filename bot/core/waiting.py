"""How long a run waits for a GPU: the limit, who asked for a later one, and giving up.

The limit is the bot's own, counted from the making of the pod that waits. Argo has limits as well, of the step and of
the run; they end a run that no bot looks after, and nobody can wait beyond them. Two annotations carry what lasts:

* `gputest.bot/wait` says until when somebody wants it to wait. It counts only for the attempt that it names.
* `gputest.bot/gave-up` says that the bot ended the attempt at its limit, and the last reason for waiting.

Giving up tests that the first has not changed since it was read, so that a click and the limit can't both win.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TypeVar
from zoneinfo import ZoneInfo

import msgspec

from bot.core.memory import Patch, shutdown_patch, write
from bot.core.settings import Settings
from bot.core.workflow import Node, Workflow, instant

WAIT_ANNOTATION = "gputest.bot/wait"
GAVE_UP_ANNOTATION = "gputest.bot/gave-up"

WORTH_SECONDS = 600.0
"""A later limit is offered only where it adds that much."""


class Longer(msgspec.Struct, frozen=True):
    """Somebody wants an attempt to wait until then."""

    attempt: str
    until: float  # Unix seconds
    user_id: str
    user_name: str
    at: float


class GaveUp(msgspec.Struct, frozen=True):
    """The bot ended an attempt that had waited long enough."""

    attempt: str
    at: float
    reason: str  # the scheduler's last words
    step: str = ""  # of the warm-up, at which it was; "" where that was not seen


_Note = TypeVar("_Note", Longer, GaveUp)


def read_longer(workflow: Workflow) -> Longer | None:
    """Until when somebody wants this attempt to wait; None where nobody asked, or for another attempt."""
    return _read(workflow, WAIT_ANNOTATION, _LONGER)


def read_gave_up(workflow: Workflow) -> GaveUp | None:
    """That the bot ended this attempt at its limit; None where it did not."""
    return _read(workflow, GAVE_UP_ANNOTATION, _GAVE_UP) if workflow.spec.shutdown else None


def limit(workflow: Workflow, node: Node, settings: Settings) -> float | None:
    """Until when the pod of this node is waited for, by the bot's limit; None for no limit."""
    began = instant(node.started_at)
    if began is None or not settings.wait_seconds:
        return None
    own = began.timestamp() + settings.wait_seconds
    longer = read_longer(workflow)
    return max(own, longer.until) if longer is not None else own


def shown_limit(workflow: Workflow, node: Node, settings: Settings) -> float | None:
    """Until when it waits, whoever ends it then; None for no limit."""
    limits = (limit(workflow, node, settings), argo_limit(workflow, node))
    return min((at for at in limits if at is not None), default=None)


def argo_limit(workflow: Workflow, node: Node) -> float | None:
    """When Argo itself ends it: by the run's deadline, or by the `timeout` of the step (operator.go)."""
    status, stored = workflow.status, workflow.status.stored_workflow_template_spec if workflow.status else None
    run, step = instant(status.started_at if status else None), instant(node.started_at)
    deadline = (stored.active_deadline_seconds if stored else None) or workflow.spec.active_deadline_seconds
    timeout = next((t.timeout for t in (stored.templates if stored else None) or [] if t.name == node.template), None)
    limits = [run.timestamp() + deadline] if run is not None and deadline else []
    length = seconds_of(timeout or "")
    if step is not None and length is not None:
        limits.append(step.timestamp() + length)
    return min(limits, default=None)


def offer(workflow: Workflow, node: Node, settings: Settings) -> float | None:
    """The later limit that is offered: the next `wait_until` by the clock; None where it would be no use."""
    own = limit(workflow, node, settings)
    if own is None or not settings.wait_until or read_longer(workflow) is not None:
        return None
    later, last = next_clock(settings.wait_until, settings.timezone, own + WORTH_SECONDS), argo_limit(workflow, node)
    return later if last is None or later < last else None


def next_clock(text: str, zone: str, after: float) -> float:
    """The first moment after `after` at which the clocks of a zone show that time; where they skip it, just behind."""
    hour, minute = (int(part) for part in text.split(":"))
    day = datetime.fromtimestamp(after, UTC).astimezone(ZoneInfo(zone))
    found = day.replace(hour=hour, minute=minute, second=0, microsecond=0, fold=0)
    while found.timestamp() <= after:
        found = (found + timedelta(days=1)).replace(hour=hour, minute=minute)
    return found.timestamp()


def seconds_of(text: str) -> float | None:
    """A length as Argo reads it, `45m`, `1h30m`, `90`; None for anything else (ParseStringToDuration)."""
    if text.isdecimal():
        return float(text)
    if not text or not _LENGTH.fullmatch(text):
        return None
    return sum(float(m["number"]) * _UNITS[m["unit"]] for m in _PART.finditer(text))


def longer_patch(workflow: Workflow, longer: Longer) -> Patch:
    """Wait until then, if the run is still as it was seen and nobody has stopped it."""
    return [
        {"op": "test", "path": "/status/phase", "value": workflow.phase},
        {"op": "test", "path": "/spec/shutdown", "value": None},
        *_unchanged(workflow),
        *_annotated(workflow, WAIT_ANNOTATION, write(longer)),
    ]


def give_up_patch(workflow: Workflow, gave_up: GaveUp) -> Patch:
    """Stop the run, if it is still as it was seen and nobody has asked for more time."""
    note = _annotated(workflow, GAVE_UP_ANNOTATION, write(gave_up))
    return [*shutdown_patch(workflow, "Stop"), *_unchanged(workflow), *note]


def _unchanged(workflow: Workflow) -> Patch:
    """Nobody has asked for more time since; without any annotation the container itself is tested."""
    if workflow.metadata.annotations is None:
        return []
    path = "/metadata/annotations/" + WAIT_ANNOTATION.replace("/", "~1")
    return [{"op": "test", "path": path, "value": workflow.annotations.get(WAIT_ANNOTATION)}]


def _annotated(workflow: Workflow, name: str, text: str) -> Patch:
    if workflow.metadata.annotations is None:
        return [
            {"op": "test", "path": "/metadata/annotations", "value": None},
            {"op": "add", "path": "/metadata/annotations", "value": {name: text}},
        ]
    return [{"op": "add", "path": "/metadata/annotations/" + name.replace("/", "~1"), "value": text}]


def _read(workflow: Workflow, name: str, decoder: msgspec.json.Decoder[_Note]) -> _Note | None:
    text = workflow.annotations.get(name)
    if not text:
        return None
    try:
        found = decoder.decode(text)
    except (msgspec.ValidationError, msgspec.DecodeError):
        return None
    return found if found.attempt == workflow.attempt else None


_LONGER = msgspec.json.Decoder(Longer)
_GAVE_UP = msgspec.json.Decoder(GaveUp)
_PART = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<unit>h|ms|m|s)")
_LENGTH = re.compile(rf"(?:{_PART.pattern.replace('?P<number>', '?:').replace('?P<unit>', '?:')})+")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
