"""What the bot has promised, on the Workflow itself: each write against the rules of the API server."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.memory import (
    CANCEL_ANNOTATION,
    FINALIZER,
    MAX_JOURNAL,
    MAX_SUMMARY,
    REQUEST_ANNOTATION,
    RUN_ANNOTATION,
    Cancelled,
    Ended,
    Memory,
    Patch,
    Request,
    cancel_patch,
    claim_patch,
    clip,
    let_go_patch,
    memory_patch,
    read_cancelled,
    read_memory,
    read_request,
    release_patch,
    shutdown_patch,
    write,
)
from bot.core.workflow import Workflow
from tests.core.api_server import Refused, apply
from tests.phrases import NOW, workflow, workflow_json

UID = "uid-gpu-test-k7m2"
MEMORY = Memory(UID, "gpu-test-k7m2", "CHANNEL", NOW)
CANCELLED = Cancelled("2026-03-02T10:00:00Z", "anna", "anna", NOW)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
Body = dict[str, Any]


def read(body: Body) -> Workflow:
    """The object as the bot sees it."""
    return msgspec.json.decode(json.dumps(body), type=Workflow)


def held(body: Body | None = None, memory: Memory = MEMORY) -> Body:
    """The object after the bot claimed it."""
    body = body or workflow_json(phase="Running")
    return apply(body, claim_patch(read(body), memory))


@pytest.mark.parametrize(
    ("meta", "finalizers"),
    [
        ({}, [FINALIZER]),
        ({"annotations": {"a": "b"}}, [FINALIZER]),
        ({"annotations": {}, "finalizers": []}, [FINALIZER]),
        ({"finalizers": ["argo/x"]}, ["argo/x", FINALIZER]),
        ({"annotations": {"a": "b"}, "finalizers": ["argo/x", "argo/y"]}, ["argo/x", "argo/y", FINALIZER]),
        ({"finalizers": [FINALIZER]}, [FINALIZER]),
        ({"finalizers": [FINALIZER, "argo/x"]}, [FINALIZER, "argo/x"]),
    ],
)
def test_a_claim_adds_memory_and_finalizer(meta: Body, finalizers: list[str]) -> None:
    """Whatever is there already stays."""
    after = held(workflow_json(meta=meta))

    assert finalizers == after["metadata"]["finalizers"]
    assert MEMORY == read_memory(read(after))
    assert (meta.get("annotations") or {}).items() <= after["metadata"]["annotations"].items()


def test_of_two_claims_one_wins() -> None:
    """Two replicas saw the same object; the second is refused, whatever was there."""
    for meta in ({}, {"annotations": {"a": "b"}}, {"annotations": {"a": "b"}, "finalizers": ["x"]}):
        body = workflow_json(meta=meta)

        with pytest.raises(Refused):
            apply(held(body), claim_patch(read(body), MEMORY))


@pytest.mark.parametrize(
    ("seen", "meanwhile"),
    [
        ({}, {"annotations": {"argo": "was here"}}),
        ({}, {"finalizers": ["argo/x"]}),
        ({"finalizers": ["argo/x"]}, {"finalizers": ["argo/y"]}),
        ({"finalizers": []}, {"finalizers": ["argo/y"]}),
    ],
)
def test_a_claim_overwrites_nothing_that_came_meanwhile(seen: Body, meanwhile: Body) -> None:
    """Containers that were not there are added only while they are not there."""
    patch = claim_patch(workflow(meta=seen), MEMORY)

    with pytest.raises(Refused):
        apply(workflow_json(meta=meanwhile), patch)


def test_an_object_that_is_being_deleted_is_claimed_without_a_finalizer() -> None:
    """None can be added any more; the memory can."""
    meta = {"deletionTimestamp": "2026-03-02T10:06:00Z", "finalizers": ["argo/x"]}
    after = held(workflow_json(meta=meta))

    assert ["argo/x"] == after["metadata"]["finalizers"]
    assert MEMORY == read_memory(read(after))


def test_a_claim_that_sees_the_deletion_too_late_is_refused() -> None:
    """The server forbids it, and the bot reads again."""
    patch = claim_patch(workflow(), MEMORY)

    with pytest.raises(Refused, match="no new finalizers"):
        apply(workflow_json(meta={"deletionTimestamp": "2026-03-02T10:06:00Z"}), patch)


@given(TEXTS, TEXTS)
def test_memory_is_replaced_where_it_is_still_what_was_seen(name: str, summary: str) -> None:
    """Whatever letters stand in it: what the server stores equals, byte by byte, what the bot tests."""
    memory = msgspec.structs.replace(MEMORY, name=name).with_end(Ended("a", "passed", summary[:100]))
    body = held(memory=memory)
    later = msgspec.structs.replace(memory, post="P")
    after = apply(body, memory_patch(read(body), later))

    assert later == read_memory(read(after))
    with pytest.raises(Refused):
        apply(after, memory_patch(read(body), memory))


@given(TEXTS)
def test_what_is_written_holds_nothing_that_can_be_encoded_in_two_ways(text: str) -> None:
    """Plain ASCII without `<`, `>`, `&`: Go and Python agree on its bytes."""
    written = write(Request(text, text, text, text, text))

    assert written.isascii()
    assert not set(written) & set("<>&\x7f")
    assert text == msgspec.json.decode(written, type=Request).name


def test_a_release_removes_the_finalizer_and_says_what_was_reported() -> None:
    """In one step, wherever the finalizer stands; other people's stay."""
    body = held(workflow_json(phase="Succeeded", meta={"finalizers": ["argo/x"]}))
    done = msgspec.structs.replace(MEMORY, reported="2026-03-02T10:00:00Z")
    after = apply(body, release_patch(read(body), done))

    assert ["argo/x"] == after["metadata"]["finalizers"]
    assert done == read_memory(read(after))
    with pytest.raises(Refused):
        apply(after, release_patch(read(body), done))


@pytest.mark.parametrize(
    "meanwhile",
    [
        {"status": {"phase": "Running", "startedAt": "2026-03-02T11:00:00Z"}},
        {"status": {"phase": "Succeeded", "startedAt": "2026-03-02T11:00:00Z"}},
        {"status": {"phase": "Failed", "startedAt": "2026-03-02T10:00:00Z"}},
        {"status": {}},
        {"finalizers": ["argo/y", FINALIZER]},
        {"finalizers": []},
    ],
)
def test_a_release_of_anything_else_than_this_end_is_refused(meanwhile: Body) -> None:
    """Retried, ended otherwise, or the finalizer's place moved: nothing is lost."""
    body = held(workflow_json(phase="Succeeded"))
    patch = release_patch(read(body), MEMORY)
    body["status"] = meanwhile.get("status", body["status"])
    body["metadata"]["finalizers"] = meanwhile.get("finalizers", body["metadata"]["finalizers"])

    with pytest.raises(Refused):
        apply(body, patch)


def test_a_release_without_a_finalizer_writes_the_memory_alone() -> None:
    """Claimed too late for one."""
    body = held(workflow_json(phase="Succeeded", meta={"deletionTimestamp": "2026-03-02T10:06:00Z"}))
    after = apply(body, release_patch(read(body), msgspec.structs.replace(MEMORY, reported="a")))

    assert "finalizers" not in after["metadata"]


def test_a_release_of_an_end_without_a_start() -> None:
    """Refused by Argo before it began: no `startedAt`, and none is expected."""
    body = held(workflow_json())
    body["status"] = {"phase": "Error"}

    assert [] == apply(body, release_patch(read(body), MEMORY))["metadata"]["finalizers"]
    assert {"op": "test", "path": "/status/startedAt", "value": None} in release_patch(workflow(), MEMORY)


def test_letting_go_removes_our_finalizer_alone() -> None:
    """Of an object that is being deleted and will not end."""
    body = held(workflow_json(phase="Running", meta={"finalizers": ["argo/x"]}))

    assert ["argo/x"] == apply(body, let_go_patch(read(body)))["metadata"]["finalizers"]


@pytest.mark.parametrize("phase", ["", "Pending", "Running"])
def test_a_shutdown_stops_what_has_not_ended(phase: str) -> None:
    """As it was seen: without a status, without a phase, or with this one."""
    body = workflow_json(phase=phase)

    assert "Terminate" == apply(body, shutdown_patch(read(body), "Terminate"))["spec"]["shutdown"]


@pytest.mark.parametrize("phase", ["", "Pending", "Running"])
def test_a_shutdown_of_what_ended_meanwhile_is_refused(phase: str) -> None:
    """It would make a pass look cancelled."""
    patch = shutdown_patch(workflow(phase=phase), "Stop")

    with pytest.raises(Refused):
        apply(workflow_json(phase="Succeeded"), patch)


def test_a_status_without_a_phase_is_stopped_too() -> None:
    """The controller has written its first fields only."""
    body = workflow_json()
    body["status"] = {"startedAt": None}

    assert "Stop" == apply(body, shutdown_patch(read(body), "Stop"))["spec"]["shutdown"]


@pytest.mark.parametrize(("phase", "strategy"), [("", "Terminate"), ("Pending", "Terminate"), ("Running", "Stop")])
@pytest.mark.parametrize("meta", [{}, {"annotations": {"a": "b"}}])
def test_a_cancel_says_who_did_it(phase: str, strategy: str, meta: Body) -> None:
    """A queue ignores `Stop`; other annotations stay."""
    body = workflow_json(phase=phase, meta=meta)
    cancelled = msgspec.structs.replace(CANCELLED, attempt=read(body).attempt)
    after = apply(body, cancel_patch(read(body), cancelled))

    assert strategy == after["spec"]["shutdown"]
    assert cancelled == read_cancelled(read(after))
    assert (meta.get("annotations") or {}).items() <= after["metadata"]["annotations"].items()


def test_a_cancel_beside_the_claim_is_refused_and_read_again() -> None:
    """Annotations that were not there are there now."""
    body = workflow_json(phase="Running")

    with pytest.raises(Refused):
        apply(held(body), cancel_patch(read(body), CANCELLED))


@pytest.mark.parametrize(
    ("attempt", "shutdown", "counts"),
    [
        ("2026-03-02T10:00:00Z", "Stop", True),
        ("", "Terminate", True),
        ("2026-03-02T09:00:00Z", "Stop", False),
        ("2026-03-02T10:00:00Z", None, False),
    ],
)
def test_who_stopped_it_counts_for_that_life_only(attempt: str, shutdown: str | None, counts: bool) -> None:
    """Not for an earlier attempt, and not where nothing stops it any more (`argo retry` clears it)."""
    note = write(msgspec.structs.replace(CANCELLED, attempt=attempt))
    run = workflow(
        phase="Running",
        meta={"annotations": {CANCEL_ANNOTATION: note}},
        spec={"shutdown": shutdown} if shutdown else {},
    )

    assert (read_cancelled(run) is not None) is counts


def test_a_copied_annotation_does_not_count() -> None:
    """`argo resubmit` copies them: the card and the person belong to another run."""
    request = write(Request("gpu-test-k7m2", "r", "anna", "anna", "C"))
    copied = workflow(
        "gpu-test-zz99", meta={"annotations": {RUN_ANNOTATION: write(MEMORY), REQUEST_ANNOTATION: request}}
    )
    own = workflow(meta={"annotations": {RUN_ANNOTATION: write(MEMORY), REQUEST_ANNOTATION: request}})

    assert (None, None) == (read_memory(copied), read_request(copied))
    assert MEMORY == read_memory(own)
    assert "anna" == getattr(read_request(own), "user_id", "")


def test_a_memory_of_a_later_version_does_not_count() -> None:
    """Its fields may mean something else."""
    later = write(msgspec.structs.replace(MEMORY, v=2))

    assert read_memory(workflow(meta={"annotations": {RUN_ANNOTATION: later}})) is None


NEAR = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["uid", "name", "v", "journal", "at"]), inner),
    max_leaves=8,
)


@given(st.one_of(st.text(), NEAR.map(json.dumps)))
def test_no_text_in_an_annotation_raises(text: str) -> None:
    """Anybody with the rights can write there."""
    names = (RUN_ANNOTATION, REQUEST_ANNOTATION, CANCEL_ANNOTATION)
    bare = workflow(phase="Running", spec={"shutdown": "Stop"})
    run = msgspec.structs.replace(
        bare, metadata=msgspec.structs.replace(bare.metadata, annotations=dict.fromkeys(names, text))
    )

    assert (None, None, None) == (read_memory(run), read_request(run), read_cancelled(run))


def test_the_journal_keeps_the_last_ends() -> None:
    """An end that comes again replaces itself; the oldest give way."""
    memory = MEMORY
    for number in range(MAX_JOURNAL + 2):
        memory = memory.with_end(Ended(f"a{number}", "passed", "s"))
    memory = memory.with_end(Ended("a5", "failed", "t"))

    assert [f"a{n}" for n in (2, 3, 4, 6, 7, 8, 9, 5)] == [entry.attempt for entry in memory.journal]
    assert Ended("a5", "failed", "t") == memory.ended("a5")
    assert memory.ended("a0") is None


def test_a_summary_is_cut_to_its_bytes() -> None:
    """Annotations of an object share 256 KiB."""
    entry = MEMORY.with_end(Ended("a", "failed", "ä" * MAX_SUMMARY)).journal[0]

    assert MAX_SUMMARY - 3 <= len(entry.summary.encode()) <= MAX_SUMMARY
    assert entry.summary.endswith("ä…")


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(3, 60))
def test_a_cut_text_is_never_longer_and_never_broken(text: str, limit: int) -> None:
    """At a character, with an ellipsis where something is missing."""
    cut = clip(text, limit)

    assert len(cut.encode()) <= limit
    assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1]))


def test_annotations_have_a_limit_that_the_longest_memory_stays_below() -> None:
    """Escapes included: 256 KiB for all annotations of an object."""
    memory: Memory = MEMORY
    for number in range(MAX_JOURNAL):
        memory = memory.with_end(Ended(f"2026-03-02T10:00:0{number}Z", "timed_out", "\u20ac<&" * MAX_SUMMARY))
    patch: Patch = memory_patch(workflow(), memory)

    assert len(patch[-1]["value"][RUN_ANNOTATION]) < 256 * 1024


@pytest.mark.parametrize(
    ("memory", "missed"),
    [
        (MEMORY, ""),
        (msgspec.structs.replace(MEMORY, seen="a1"), "a2"),
        (msgspec.structs.replace(MEMORY, seen="a1", reported="a1"), ""),
        (msgspec.structs.replace(MEMORY, seen="a1").with_end(Ended("a1", "failed", "s")), ""),
        (msgspec.structs.replace(MEMORY, seen="a1", reported="a0", missed="a0"), "a2"),
        (msgspec.structs.replace(MEMORY, seen="a1", reported="a1", missed="a0"), "a0"),
    ],
)
def test_an_attempt_whose_end_nobody_saw_is_missed(memory: Memory, missed: str) -> None:
    """Another is alive, and of the one before neither journal nor report knows an end; that stays known."""
    later = memory.with_sight("a2")

    assert ("a2", missed) == (later.seen, later.missed)
    assert later == later.with_sight("a2") == later.with_sight("")
