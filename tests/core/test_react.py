"""The only entrance of the core, and steps that other tests do not come by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from bot.core.card import Stage
from bot.core.effects import (
    CheckPosts,
    EditCard,
    FollowLog,
    PatchWorkflow,
    PostCard,
    SayInThread,
    StopFollowing,
    WakeAt,
)
from bot.core.events import (
    EffectDone,
    EffectFailed,
    LeaseLost,
    MarkersRead,
    Swept,
    Trouble,
    Woke,
    WorkflowChanged,
    WorkflowDeleted,
    WorkflowsListed,
    WorkflowsSeen,
)
from bot.core.memory import (
    CANCEL_ANNOTATION,
    FINALIZER,
    REQUEST_ANNOTATION,
    RUN_ANNOTATION,
    Cancelled,
    Memory,
    Request,
    write,
)
from bot.core.progress import Marker
from bot.core.react import set_aside
from bot.core.run_steps import next_effect
from bot.core.runs import Moment, Run, desired_card, is_settled
from tests.core.playbook import Playbook
from tests.phrases import NOW, SETTINGS, ended, green, node, outputs, workflow, workflow_json

UID, FIRST = "uid-gpu-test-k7m2", "2026-03-02T10:00:00Z"
TESTING = [node("compile-and-test", "Running")]
MEMORY = Memory(UID, "gpu-test-k7m2", "CHANNEL", NOW, post="P")
MOMENT = Moment(NOW, SETTINGS, NOW - 1e6, "e1")


def ended_json(**meta: Any) -> dict[str, Any]:
    """A green run."""
    tests = node("compile-and-test", "Succeeded", outputs=outputs(green()))
    return workflow_json(phase="Succeeded", nodes=[tests], meta=meta)


def running() -> Playbook:
    """A run whose tests run, its card up to date."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=TESTING))
    book.effects.clear()
    return book


def test_a_page_of_a_list_is_as_many_changes() -> None:
    """Pages come one by one; only the end of the list says what is gone."""
    book = Playbook()
    pages = [
        workflow("gpu-test-aaaa"),
        workflow("gpu-test-bbbb"),
        workflow("other", spec={"workflowTemplateRef": None}),
    ]
    effects = book.tell(WorkflowsSeen(tuple(pages)))

    assert ["gpu-test-aaaa", "gpu-test-bbbb"] == [e.name for e in effects if isinstance(e, PatchWorkflow)]
    assert not book.state.listed
    book.tell(WorkflowsListed(frozenset({"uid-gpu-test-aaaa", "uid-gpu-test-bbbb"})))
    assert 2 == len(book.state.runs)
    assert book.state.listed


def test_what_was_never_held_can_not_go() -> None:
    """A deletion of somebody else's, or of one that was let go."""
    assert [] == Playbook().tell(WorkflowDeleted(workflow()))


@pytest.mark.parametrize("event", [EffectDone, EffectFailed])
def test_the_answer_that_can_not_be_digested_sets_its_run_aside(event: type) -> None:
    """Found by what it waits for; an answer that nobody waits for sets nothing aside."""
    book = running()
    run = book.state.runs[UID]
    run.pending = PostCard("e77", "k", "CHANNEL", run.shown, look_first=False, since=0.0)  # type: ignore[arg-type]
    wrong = {EffectDone: EffectDone("e77"), EffectFailed: EffectFailed("e77", Trouble.BUSY, "")}[event]
    set_aside(book.state, replace(wrong, id="e0"))
    assert UID in book.state.runs
    set_aside(book.state, wrong)

    assert ({}, [UID]) == (book.state.runs, list(book.state.aside))


def test_a_run_that_was_set_aside_is_left_alone_until_the_next_sweep() -> None:
    """Then it is looked at again, as the watch shows it."""
    book = running()
    set_aside(book.state, Woke(f"run:{UID}"))
    assert [] == book.tell(WorkflowChanged(book.read("gpu-test-k7m2")))
    book.tell(Swept())
    book.tell(WorkflowChanged(book.read("gpu-test-k7m2")))

    assert [UID] == list(book.state.runs)


def test_an_event_of_another_kind_sets_nothing_aside() -> None:
    """It belongs to no run."""
    book = running()
    set_aside(book.state, Swept())

    assert ({}, [UID]) == (book.state.aside, list(book.state.runs))


def test_a_log_is_followed_while_the_tests_run_and_by_the_leader_only() -> None:
    """It begins with the tests and ends with them, or with the lease."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=TESTING))
    begun = [e for e in book.effects if isinstance(e, FollowLog)]
    lost = book.tell(LeaseLost())
    idle = Playbook()
    idle.see(workflow_json())

    assert [(UID, FIRST, "gpu-test-k7m2", "id-compile-and-test")] == [
        (e.uid, e.attempt, e.workflow, e.node) for e in begun
    ]
    assert [StopFollowing(UID)] == lost
    assert [] == idle.tell(LeaseLost())


def test_markers_move_the_card() -> None:
    """Those of this attempt; of a run that is not followed they mean nothing."""
    book = running()
    marker = Marker("suite_started", model="dqn")
    book.now += 60
    book.play(book.tell(MarkersRead(UID, FIRST, (marker,))))
    shown = [e.card.progress for e in book.effects if isinstance(e, EditCard)]

    assert ["dqn"] == [model.name for progress in shown if progress for model in progress.models]
    assert [] == book.tell(MarkersRead(UID, "2026-03-02T09:00:00Z", (marker,)))
    assert [] == book.tell(MarkersRead("gone", FIRST, (marker,)))


def test_markers_of_models_that_nobody_asked_for_change_nothing() -> None:
    """The tests may print what they like."""
    book = running()
    book.now += 60
    book.play(book.tell(MarkersRead(UID, FIRST, (Marker("suite_started", model="x"), Marker("compiled")))))

    (run,) = book.state.runs.values()
    assert run.progress is not None
    assert ((), True) == (run.progress.models, run.progress.compiled)


def test_a_wake_up_is_asked_for_once() -> None:
    """The same one is not asked for again with each event."""
    book = running()
    waiting = node("gpu-warmup", "Pending", message="Unschedulable: 0/3 nodes")
    book.see(workflow_json(phase="Running", nodes=[waiting]))
    book.effects.clear()
    for number in range(3):
        book.see(workflow_json(phase="Running", nodes=[waiting | {"message": f"Unschedulable: 0/{number} nodes"}]))

    assert 1 == len([e for e in book.effects if isinstance(e, WakeAt)])


def test_who_stops_their_own_run_is_not_rung_and_it_is_let_go() -> None:
    """No reply, no notice, and nothing is owed."""
    book = Playbook()
    cancelled = {
        REQUEST_ANNOTATION: write(Request("gpu-test-k7m2", "r", "anna", "anna", "CHANNEL")),
        CANCEL_ANNOTATION: write(Cancelled(FIRST, "anna", "anna", NOW)),
    }
    tests = node("compile-and-test", "Failed", message="workflow shutdown with strategy:  Stop")
    book.see(workflow_json(phase="Failed", nodes=[tests], spec={"shutdown": "Stop"}, meta={"annotations": cancelled}))

    assert [] == book.thread
    assert not book.has_finalizer()
    assert {} == book.state.runs


def test_an_older_double_of_the_card_is_the_one_that_stays() -> None:
    """What was said below the other went with it, so it is said again where it is missing."""
    book = running()
    (check,) = book.tell(Swept())
    assert isinstance(check, CheckPosts)
    (remember,) = book.tell(EffectDone(check.id, "older"))
    run = book.state.runs[UID]

    assert "older" == run.post
    assert set() == run.said
    assert isinstance(remember, PatchWorkflow)


def test_a_patch_without_an_answer_changes_nothing_that_is_held() -> None:
    """The watch will show it."""
    book = Playbook()
    (claim,) = book.tell(WorkflowChanged(workflow()))
    before = book.state.runs[UID].workflow
    book.tell(EffectDone(claim.id))

    assert before == book.state.runs[UID].workflow
    assert book.state.runs[UID].born_here


def test_a_card_that_goes_with_its_object_is_posted_once_more_without_writing() -> None:
    """The object is gone and a person deleted the card: what is owed is said on a new one."""
    book = running()
    edit = book.tell(WorkflowDeleted(book.read("gpu-test-k7m2")))[0]
    assert isinstance(edit, EditCard)
    after = book.tell(EffectFailed(edit.id, Trouble.GONE, "deleted"))

    assert [PostCard] == [type(e) for e in after]
    book.play(after)
    assert [f"{UID}:{FIRST}:notice"] == [key for key, _ in book.thread]


def held(run: Any, memory: Memory, **more: Any) -> Run:
    """A run as it is held."""
    meta = msgspec.structs.replace(run.metadata, annotations={RUN_ANNOTATION: write(memory)})
    return Run(msgspec.structs.replace(run, metadata=meta), memory, **more)


def test_what_was_released_asks_for_nothing() -> None:
    """However it came to be held still."""
    done = msgspec.structs.replace(MEMORY, reported=FIRST, seen=FIRST)
    run = held(ended(green()), done, post="P", said={FIRST}, check=False)
    run.shown = desired_card(run, MOMENT)

    assert next_effect(run, MOMENT) is None
    assert is_settled(run, MOMENT)


def test_an_object_that_went_before_it_was_claimed_asks_for_nothing() -> None:
    """Nothing was promised."""
    run = Run(workflow(phase="Running"), gone=True)

    assert next_effect(run, MOMENT) is None
    assert is_settled(run, MOMENT)


def test_a_run_with_something_under_way_is_not_settled() -> None:
    """Whatever it is."""
    run = held(ended(green()), MEMORY)
    assert next_effect(run, MOMENT) is not None

    assert next_effect(run, MOMENT) is None
    assert not is_settled(run, MOMENT)


def test_a_run_claimed_too_late_for_a_finalizer_is_reported_all_the_same() -> None:
    """It was being deleted when it was first seen: the memory alone is written."""
    book = Playbook()
    body = ended_json(deletionTimestamp=FIRST)
    book.see(body)

    assert 1 == len(book.posts)
    assert ["@olga ✅ k7m2: all 10 green, 36 min"] == book.notices()
    assert not book.has_finalizer()
    assert {} == book.state.runs


def test_stages_of_a_card_are_told_apart() -> None:
    """Each change of stage is one edit, at once."""
    book = Playbook()
    for nodes in ([], [node("gpu-warmup", "Pending")], [node("gpu-warmup", "Running")], TESTING):
        book.see(workflow_json(phase="Running", nodes=nodes))
    stages = [e.card.stage for e in book.effects if isinstance(e, PostCard | EditCard)]

    assert [Stage.QUEUED, Stage.WAITING, Stage.WARMING, Stage.TESTING] == stages
    assert FINALIZER in book.read("gpu-test-k7m2").finalizers
    assert not [e for e in book.effects if isinstance(e, SayInThread)]
