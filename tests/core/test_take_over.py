"""Who takes over may be behind: what it makes of an old view is put right, and what is old news starts nothing."""

from __future__ import annotations

from typing import Any

from bot.core.effects import EditCard
from bot.core.events import LeaseWon, Woke, WorkflowChanged, WorkflowDeleted
from bot.core.state import KEPT_FORGOTTEN, State
from tests.core.playbook import Playbook
from tests.phrases import SETTINGS, green, node, outputs, workflow_json

TESTING = [node("compile-and-test", "Running")]


def green_end(**more: Any) -> dict[str, Any]:
    """It ended, and all passed."""
    passed = node("compile-and-test", "Succeeded") | {"outputs": outputs(green())}
    return workflow_json(phase="Succeeded", nodes=[passed], **more)


def running() -> Playbook:
    """A run that tests, its card up to date."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=TESTING))
    return book


def test_a_card_that_was_edited_by_an_old_view_gets_its_end() -> None:
    """The one before has reported the run and let it go; who takes over hears of it after it has shown it as running."""
    book = running()
    behind = Playbook(leader=False, cluster=book.cluster, posts=book.posts, version=1000)
    behind.tell(WorkflowChanged(book.read("gpu-test-k7m2")))
    book.see(green_end())
    (last,) = [post.card for post in book.posts.values()]

    edits = [effect for effect in behind.tell(LeaseWon()) if isinstance(effect, EditCard)]
    assert [False] == [edit.card.outcome is not None for edit in edits]
    behind.play(list(edits))
    behind.play(behind.tell(WorkflowChanged(book.read("gpu-test-k7m2"))))

    assert [last] == [post.card for post in book.posts.values()]
    assert {} == behind.state.runs


def test_a_run_that_was_deleted_while_nobody_led_gets_its_time_to_end() -> None:
    """Who stood by has seen it deleted for long, and is the first who can tell Argo to end it."""
    book = Playbook()
    book.see(workflow_json(phase="Pending", startedAt=None))
    behind = Playbook(leader=False, cluster=book.cluster, posts=book.posts, version=1000)
    deleted = {**book.cluster["gpu-test-k7m2"]["metadata"], "deletionTimestamp": "2026-03-02T10:06:00Z"}
    behind.tell(WorkflowChanged(behind.write(workflow_json(phase="Pending", startedAt=None, meta=deleted))))
    behind.now += 2 * SETTINGS.deletion_seconds

    behind.play(behind.tell(LeaseWon()))

    assert "Terminate" == book.cluster["gpu-test-k7m2"]["spec"]["shutdown"]
    assert [] == behind.notices()
    assert behind.has_finalizer()

    behind.now += SETTINGS.deletion_seconds
    behind.play(behind.tell(Woke("run:uid-gpu-test-k7m2")))

    assert 1 == len(behind.notices())
    assert not behind.has_finalizer()


def test_what_a_watch_brings_late_of_a_run_that_was_let_go_is_no_news() -> None:
    """It goes on from where it was cut; a run that is started again is news."""
    book = running()
    old = book.read("gpu-test-k7m2")
    book.see(green_end())

    assert [] == book.tell(WorkflowChanged(old))
    assert {} == book.state.runs

    book.see(workflow_json(phase="Running", startedAt="2026-03-02T11:00:00Z", nodes=TESTING))

    assert 1 == len(book.state.runs)


def test_what_a_watch_brings_late_of_a_run_that_is_gone_is_no_news() -> None:
    """It was deleted after its end, and who stands by was told so before the watch was."""
    book = running()
    standby = Playbook(leader=False)
    old = book.read("gpu-test-k7m2")
    standby.tell(WorkflowChanged(old))
    standby.tell(WorkflowDeleted(old))
    standby.tell(LeaseWon())

    assert [] == standby.tell(WorkflowChanged(old))
    assert {} == standby.state.runs


def test_only_so_many_runs_are_kept_in_mind() -> None:
    """The oldest gives way."""
    state = State(SETTINGS)
    for number in range(KEPT_FORGOTTEN + 1):
        state.forget_before(f"uid-{number}", "7")

    assert KEPT_FORGOTTEN == len(state.forgotten)
    assert "uid-0" not in state.forgotten
