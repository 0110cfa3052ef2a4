"""One run that can't be digested takes no other with it."""

from __future__ import annotations

from typing import Any

import pytest

from bot.core import run_steps, runs
from bot.core.effects import EditCard, PatchWorkflow
from bot.core.events import (
    Event,
    LeaseWon,
    MarkersRead,
    Swept,
    WorkflowChanged,
    WorkflowDeleted,
    WorkflowsListed,
    WorkflowsSeen,
)
from bot.core.progress import Marker
from bot.core.react import set_aside
from tests.core.playbook import Playbook
from tests.phrases import node, workflow_json

BAD, GOOD = "uid-gpu-test-bad", "uid-gpu-test-good"
TESTING = [node("compile-and-test", "Running")]


@pytest.fixture
def book(monkeypatch: pytest.MonkeyPatch) -> Playbook:
    """Two runs under test; from now on one of them raises whenever its card is made."""
    book = Playbook()
    for name in ("gpu-test-bad", "gpu-test-good"):
        book.see(workflow_json(name, phase="Running", nodes=TESTING))
    book.effects.clear()
    desired = runs.desired_card

    def raises(run: runs.Run, moment: runs.Moment) -> Any:
        if run.uid == BAD:
            raise ValueError("no card can be made of it")
        return desired(run, moment)

    for module in (runs, run_steps):
        monkeypatch.setattr(module, "desired_card", raises)
    return book


def of_good(book: Playbook) -> WorkflowChanged:
    return WorkflowChanged(book.read("gpu-test-good"))


@pytest.mark.parametrize("event", [Swept(), LeaseWon()])
def test_what_concerns_all_runs_reaches_the_others(book: Playbook, event: Event) -> None:
    """The effects for the healthy one come out, and whoever logs hears of the other."""
    effects = book.tell(event)

    assert effects
    assert [GOOD] == list(book.state.runs)
    assert [BAD] == list(book.state.aside)
    ((name, error),) = book.state.broken
    assert ("gpu-test-bad", "no card can be made of it") == (name, str(error))


def test_a_page_of_a_list_goes_on_behind_it(book: Playbook) -> None:
    """Whatever stands before it and after it."""
    first, last = (book.write(workflow_json(f"gpu-test-{name}", phase="Running")) for name in ("first", "last"))
    effects = book.tell(WorkflowsSeen((first, book.read("gpu-test-bad"), last)))

    assert ["gpu-test-first", "gpu-test-last"] == [e.name for e in effects if isinstance(e, PatchWorkflow)]
    assert [BAD] == list(book.state.aside)


def test_a_list_without_any_of_them(book: Playbook) -> None:
    """Both are gone: the end of one is said, and nothing is kept of the other."""
    book.play(book.tell(WorkflowsListed(frozenset())))

    assert 1 == len(book.notices())
    assert [BAD] == list(book.state.aside)
    book.tell(WorkflowsListed(frozenset()))
    assert {} == book.state.aside


def test_it_is_tried_again_at_each_sweep_as_it_is_then(book: Playbook, monkeypatch: pytest.MonkeyPatch) -> None:
    """Meanwhile only the object is kept; then it goes on as if nothing had been."""
    book.tell(Swept())
    latest = book.write(
        book.cluster["gpu-test-bad"] | {"spec": {**book.cluster["gpu-test-bad"]["spec"], "priority": 1}}
    )
    assert [] == book.tell(WorkflowChanged(latest))
    assert {BAD: latest} == book.state.aside
    book.tell(Swept())
    assert [BAD] == list(book.state.aside)

    monkeypatch.undo()
    effects = book.tell(Swept())

    assert {} == book.state.aside
    assert [BAD] == [e.key.removesuffix(":1") for e in effects if isinstance(e, EditCard)]


def test_who_does_not_lead_holds_it_again_too(book: Playbook, monkeypatch: pytest.MonkeyPatch) -> None:
    """To speak about it once the lease is won."""
    book.tell(Swept())
    book.state.leader = False
    monkeypatch.undo()

    assert [] == book.tell(Swept())
    assert {BAD, GOOD} == set(book.state.runs)


def test_one_that_is_deleted_while_it_is_aside_is_forgotten(book: Playbook) -> None:
    """There is nothing to try again."""
    book.tell(Swept())
    book.tell(WorkflowDeleted(book.read("gpu-test-bad")))

    assert {} == book.state.aside


def test_markers_that_can_not_be_digested_set_their_run_aside(book: Playbook) -> None:
    """As any event of a run does."""
    set_aside(book.state, MarkersRead(GOOD, "x", (Marker("compiling"),)))

    assert GOOD in book.state.aside
