"""What the bot has promised about a run, kept on the Workflow itself: no database.

Three annotations and a finalizer:

* `gputest.bot/request` says who asked. Written once, with the object. It counts only while its `name` is the
  object's own, because `argo resubmit` copies annotations and would have the wrong person rung.
* `gputest.bot/run` is the memory: which card belongs to the run, which ends were seen, which one was reported.
  It counts only while its `uid` is the object's own, for the same reason.
* `gputest.bot/cancelled` says who stopped it from the chat.
* the finalizer `gputest.bot/report` keeps an ended Workflow until its end was said.

Every write is one JSON patch (RFC 6902) that tests what it replaces, so that of two writers one loses cleanly.
The API server treats a test of an absent key for null as true and refuses a failed test with 422.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from bot.core.workflow import Workflow

FINALIZER = "gputest.bot/report"
RUN_ANNOTATION = "gputest.bot/run"
REQUEST_ANNOTATION = "gputest.bot/request"
CANCEL_ANNOTATION = "gputest.bot/cancelled"

MAX_SUMMARY = 4096
"""Longest summary of one journaled end, in UTF-8 bytes (all annotations of an object share 256 KiB)."""

MAX_JOURNAL = 8
"""Ends kept in the journal; the oldest go first."""

Patch = list[dict[str, Any]]


class Ended(msgspec.Struct, frozen=True):
    """One journaled end: seen, and owed until `Memory.reported` says so."""

    attempt: str
    verdict: str
    summary: str
    by: str = ""  # id of the user who stopped it from the chat; a retry takes that from the Workflow


class Memory(msgspec.Struct, frozen=True):
    """The bot's annotation on a Workflow. `gen` counts cards: a person may delete one."""

    uid: str
    name: str
    channel: str
    claimed_at: float  # Unix seconds
    since: float = 0.0  # Unix seconds of the first claim, where another card was posted since; 0 where it is the same
    v: int = 1
    gen: int = 1
    post: str = ""
    journal: tuple[Ended, ...] = ()
    reported: str = ""  # the attempt whose end was said last
    seen: str = ""  # the attempt that was last seen alive
    missed: str = ""  # the attempt before which one ended unseen

    @property
    def first_claimed_at(self) -> float:
        """Since when there may be a card, in Unix seconds."""
        return self.since or self.claimed_at

    def ended(self, attempt: str) -> Ended | None:
        """The journaled end of that attempt, None where it was not journaled."""
        return next((entry for entry in self.journal if entry.attempt == attempt), None)

    def with_sight(self, attempt: str) -> Memory:
        """The same memory, with that attempt seen alive; an earlier one of which no end is known was missed."""
        if not attempt or attempt == self.seen:
            return self
        known = not self.seen or self.seen == self.reported or self.ended(self.seen) is not None
        return msgspec.structs.replace(self, seen=attempt, missed=self.missed if known else attempt)

    def with_end(self, entry: Ended) -> Memory:
        """The same memory with that end journaled; the oldest entries give way."""
        kept = [e for e in self.journal if e.attempt != entry.attempt]
        short = msgspec.structs.replace(entry, summary=clip(entry.summary, MAX_SUMMARY))
        return msgspec.structs.replace(self, journal=tuple([*kept, short][-MAX_JOURNAL:]))


class Request(msgspec.Struct, frozen=True):
    """Who asked for a run in the chat, and where."""

    name: str  # of the Workflow
    request_id: str
    user_id: str
    user_name: str
    channel: str
    ref: str = ""  # as it was asked for first, where the run has its commit in its place


class Cancelled(msgspec.Struct, frozen=True):
    """Who stopped a run from the chat. It counts only for the attempt it names."""

    attempt: str
    user_id: str
    user_name: str
    at: float  # Unix seconds


def renamed(request: str, name: str) -> str:
    """The same request's text for a Workflow of another name."""
    return write(msgspec.structs.replace(_REQUEST.decode(request), name=name))


def clip(text: str, limit: int) -> str:
    """`text` cut to at most `limit` UTF-8 bytes, at a character, with an ellipsis where something is missing."""
    raw = text.encode()
    if len(raw) <= limit:
        return text
    return raw[: limit - 3].decode(errors="ignore") + "…"


def read_memory(workflow: Workflow) -> Memory | None:
    """The memory of this very object; None for none, a copied one, or one that can't be read."""
    text = workflow.annotations.get(RUN_ANNOTATION)
    if not text:
        return None
    try:
        memory = _MEMORY.decode(text)
    except (msgspec.ValidationError, msgspec.DecodeError):
        return None
    return memory if memory.uid == workflow.metadata.uid and memory.v == 1 else None


def read_request(workflow: Workflow) -> Request | None:
    """Who asked in the chat; None where nobody did or the annotation came with a copy."""
    text = workflow.annotations.get(REQUEST_ANNOTATION)
    if not text:
        return None
    try:
        request = _REQUEST.decode(text)
    except (msgspec.ValidationError, msgspec.DecodeError):
        return None
    return request if request.name == workflow.metadata.name else None


def read_cancelled(workflow: Workflow) -> Cancelled | None:
    """Who stopped this attempt from the chat; None where nobody did."""
    text = workflow.annotations.get(CANCEL_ANNOTATION)
    if not text:
        return None
    try:
        cancelled = _CANCELLED.decode(text)
    except (msgspec.ValidationError, msgspec.DecodeError):
        return None
    stopped = bool(workflow.spec.shutdown)
    return cancelled if stopped and cancelled.attempt in {workflow.attempt, ""} else None


def write(value: msgspec.Struct) -> str:
    """The annotation's text: JSON in plain ASCII, and `<`, `>`, `&` escaped as well.

    The API server tests strings of a patch by their JSON bytes, not by what they mean (evanphx/json-patch), and its
    own encoder escapes these three and leaves the rest of Unicode alone. Only a text in which there is nothing
    to choose compares equal however it travelled.
    """
    text = json.dumps(msgspec.to_builtins(value), separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").replace("\x7f", "\\u007f")


def claim_patch(workflow: Workflow, memory: Memory) -> Patch:
    """Take the run: our annotation, and the finalizer where it is missing and can still be added."""
    ops = _annotate(workflow, memory)
    if FINALIZER in workflow.finalizers or workflow.metadata.deletion_timestamp:
        return ops  # born with it, or too late: an object that is being deleted takes no new finalizer
    if workflow.metadata.finalizers is None:
        return [
            *ops,
            {"op": "test", "path": "/metadata/finalizers", "value": None},
            {"op": "add", "path": "/metadata/finalizers", "value": [FINALIZER]},
        ]
    return [
        *ops,
        {"op": "test", "path": "/metadata/finalizers", "value": workflow.finalizers},
        {"op": "add", "path": "/metadata/finalizers/-", "value": FINALIZER},
    ]


def memory_patch(workflow: Workflow, memory: Memory) -> Patch:
    """Replace our annotation by `memory`, if it is still what `workflow` shows."""
    return _annotate(workflow, memory)


def release_patch(workflow: Workflow, memory: Memory) -> Patch:
    """Say in one step that this end is reported and let the object go, if it is still this end.

    A run that was retried meanwhile has another `startedAt` or no terminal phase: the test fails and nothing is lost.
    """
    status = workflow.status
    ops: Patch = [
        {"op": "test", "path": "/status/phase", "value": workflow.phase},
        {"op": "test", "path": "/status/startedAt", "value": status.started_at if status else None},
        *_annotate(workflow, memory),
    ]
    if FINALIZER in workflow.finalizers:
        path = f"/metadata/finalizers/{workflow.finalizers.index(FINALIZER)}"
        ops += [{"op": "test", "path": path, "value": FINALIZER}, {"op": "remove", "path": path}]
    return ops


def let_go_patch(workflow: Workflow) -> Patch:
    """Drop the finalizer of an object that is being deleted and will not end any more."""
    path = f"/metadata/finalizers/{workflow.finalizers.index(FINALIZER)}"
    return [{"op": "test", "path": path, "value": FINALIZER}, {"op": "remove", "path": path}]


def shutdown_patch(workflow: Workflow, strategy: str) -> Patch:
    """Stop or terminate the run, if it has not ended: a shutdown set later would make a pass look cancelled."""
    unseen = {"op": "test", "path": "/status", "value": None}
    as_seen = {"op": "test", "path": "/status/phase", "value": workflow.phase or None}
    return [
        unseen if workflow.status is None else as_seen,
        {"op": "add", "path": "/spec/shutdown", "value": strategy},
    ]


def cancel_patch(workflow: Workflow, cancelled: Cancelled) -> Patch:
    """Stop the run and say who did; a queue ignores `Stop` and takes `Terminate` (operator.go)."""
    strategy = "Stop" if workflow.phase == "Running" else "Terminate"
    path = "/metadata/annotations/" + CANCEL_ANNOTATION.replace("/", "~1")
    if workflow.metadata.annotations is None:
        note: Patch = [
            {"op": "test", "path": "/metadata/annotations", "value": None},
            {"op": "add", "path": "/metadata/annotations", "value": {CANCEL_ANNOTATION: write(cancelled)}},
        ]
    else:
        note = [{"op": "add", "path": path, "value": write(cancelled)}]
    return [*shutdown_patch(workflow, strategy), *note]


def _annotate(workflow: Workflow, memory: Memory) -> Patch:
    text = write(memory)
    if workflow.metadata.annotations is None:
        # a blind add of the container could wipe annotations that Argo wrote in between
        return [
            {"op": "test", "path": "/metadata/annotations", "value": None},
            {"op": "add", "path": "/metadata/annotations", "value": {RUN_ANNOTATION: text}},
        ]
    path = "/metadata/annotations/" + RUN_ANNOTATION.replace("~", "~0").replace("/", "~1")
    old = workflow.annotations.get(RUN_ANNOTATION)
    return [{"op": "test", "path": path, "value": old}, {"op": "add", "path": path, "value": text}]


_MEMORY = msgspec.json.Decoder(Memory)
_CANCELLED = msgspec.json.Decoder(Cancelled)
_REQUEST = msgspec.json.Decoder(Request)
