"""What the loop holds, and how much of it."""

from __future__ import annotations

from bot.core.state import KEPT_ANSWERS, KEPT_ENDED, EndedRun, State
from tests.phrases import SETTINGS


def test_names_of_effects_are_unique() -> None:
    """Each is another."""
    state = State(SETTINGS)

    assert 100 == len({state.new_id() for _ in range(100)})


def test_answers_are_kept_for_commands_that_come_again() -> None:
    """The oldest give way."""
    state = State(SETTINGS)
    for number in range(KEPT_ANSWERS + 10):
        state.remember_answer(f"r{number}", f"answer {number}")

    assert KEPT_ANSWERS == len(state.answers)
    assert ("r10", f"answer {KEPT_ANSWERS + 9}") == (next(iter(state.answers)), state.answers[f"r{KEPT_ANSWERS + 9}"])


def ended(number: int) -> EndedRun:
    """A run that ended at that second."""
    return EndedRun(
        f"gpu-test-{number}", None, "C", "P", finished=f"2026-03-02T10:{number // 60:02d}:{number % 60:02d}Z"
    )


def test_of_ended_runs_the_newest_are_kept() -> None:
    """In whatever order they are seen: a list comes in the order of names."""
    state = State(SETTINGS)
    for number in [*range(1, KEPT_ENDED + 11, 2), *range(0, KEPT_ENDED + 11, 2)]:
        state.remember_ended(f"u{number}", ended(number))

    assert KEPT_ENDED == len(state.ended)
    assert [f"gpu-test-{n}" for n in (KEPT_ENDED + 10, KEPT_ENDED + 9)] == [e.name for e in state.newest_ended()[:2]]
    assert "u5" not in state.ended


def test_of_one_second_the_last_to_end_is_the_newest() -> None:
    """Argo's times have whole seconds: of two runs that ended in one, the later seen comes first in a list."""
    state = State(SETTINGS)
    for name in ("first", "second"):
        state.remember_ended(name, EndedRun(name, None, "C", "P", finished="2026-03-02T10:00:00Z"))

    assert ["second", "first"] == [run.name for run in state.newest_ended()]
