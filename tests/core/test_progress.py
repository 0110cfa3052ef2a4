"""Markers in the runner's log, and what they add up to."""

from __future__ import annotations

import json

import pytest

from bot.core.progress import (
    MAX_LINE,
    MAX_MODELS,
    MAX_RED,
    PREFIX,
    Marker,
    ModelProgress,
    Progress,
    advance,
    read_marker,
)
from bot.core.results import SuiteStatus


def line(event: str, **more: object) -> str:
    """A marker as the runner prints it."""
    return PREFIX + json.dumps({"event": event} | more)


def after(*markers: Marker, asked: tuple[str, ...] = ()) -> Progress:
    """The progress after these markers."""
    progress = Progress()
    for marker in markers:
        progress = advance(progress, marker, asked)
    return progress


def started(model: str, suite: str = "lib") -> Marker:
    return Marker("suite_started", model=model, suite=suite)


def finished(model: str, status: str = "passed", suite: str = "lib", failed: tuple[str, ...] = ()) -> Marker:
    return Marker("suite_finished", model=model, suite=suite, status=SuiteStatus(status), failed_tests=[*failed])


def test_a_marker_is_read() -> None:
    """The line's prefix, then JSON."""
    assert Marker("resolved", commit="3f2a9c1") == read_marker(line("resolved", commit="3f2a9c1"))
    assert Marker(
        "suite_finished", model="dqn", suite="s", status=SuiteStatus.FAILED, failed_tests=["a"]
    ) == read_marker(line("suite_finished", model="dqn", suite="s", status="failed", failed_tests=["a"]))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "running 9 tests",
        f" {PREFIX}{{}}",
        PREFIX,
        f"{PREFIX}{{}}",
        f"{PREFIX}[]",
        f'{PREFIX}{{"event": 1}}',
        line("suite_finished", status="green"),
        line("resolved", commit=None),
        line("resolved", commit="x" * MAX_LINE),
    ],
)
def test_what_is_no_marker(text: str) -> None:
    """Other output, half a marker, a value that does not exist, a line without end."""
    assert read_marker(text) is None


def test_a_marker_of_a_newer_runner_changes_nothing() -> None:
    """An event that is not known is a view less, not an error."""
    marker = read_marker(line("cooling_down", model="dqn"))

    assert marker is not None
    assert Progress() == after(marker)


def test_the_commit_and_the_compiler() -> None:
    """What is seen before the first test."""
    assert Progress(commit="3f2a9c1") == after(Marker("resolved", commit="3f2a9c1"), Marker("compiling"))
    assert after(Marker("compiled")).compiled


@pytest.mark.parametrize("no_commit", ["", "main", "3f2a9c", "3F2A9C1", "--upload-pack=x", "3f2a9c1 "])
def test_what_is_no_commit_is_not_shown_as_one(no_commit: str) -> None:
    """The tests may print a marker of their own."""
    assert Progress(commit="3f2a9c1") == after(
        Marker("resolved", commit="3f2a9c1"), Marker("resolved", commit=no_commit)
    )


def test_models_come_in_the_order_in_which_they_started() -> None:
    """One runs at a time; what comes again keeps its place."""
    progress = after(started("dqn"), finished("dqn"), started("kan"), finished("kan"), started("dqn", "integ"))

    assert ("dqn", "kan") == tuple(model.name for model in progress.models)
    assert [True, False] == [model.running for model in progress.models]
    assert progress.compiled


def test_the_next_one_ends_the_one_before() -> None:
    """A finish that was lost in the log leaves nothing running for ever."""
    progress = after(started("dqn"), started("kan"))

    assert [False, True] == [model.running for model in progress.models]


def test_green_and_red_suites_of_a_model() -> None:
    """Passed ones are counted, red ones name their tests, or themselves where no test is named."""
    progress = after(
        finished("dqn"),
        finished("dqn", "failed", "integ", ("a", "b")),
        finished("dqn", "timed_out", "smoke"),
        finished("dqn", "skipped", "none"),
    )

    assert ModelProgress("dqn", passed=1, red=("a", "b", "smoke")) == progress.model("dqn")
    assert progress.model("kan") is None


def test_a_marker_that_comes_again_names_nothing_twice() -> None:
    """The log is read again from a second before after a cut."""
    once, twice = finished("dqn", "failed", "integ", ("a",)), finished("dqn", "failed", "integ", ("a", "b"))

    assert ("a", "b") == after(once, once, twice).models[0].red


def test_shared_suites_are_no_model() -> None:
    """They run for every selection."""
    assert () == after(started("shared"), finished("shared", "failed")).models


def test_what_nobody_asked_for_is_not_kept() -> None:
    """Anything can be printed as a marker."""
    markers = [started("dqn"), started("rm -rf"), finished("kan"), finished("dqn2")]

    assert ["dqn", "kan"] == [model.name for model in after(*markers, asked=("dqn", "kan", "ppo")).models]


@pytest.mark.parametrize("asked", [(), tuple(f"m{n}" for n in range(3000))])
def test_ever_new_names_are_kept_up_to_a_number(asked: tuple[str, ...]) -> None:
    """Whatever was asked for; those that are known still move."""
    progress = after(*(started(f"m{n}") for n in range(3000)), finished("m1"), asked=asked)

    assert MAX_MODELS == len(progress.models)
    assert ModelProgress("m1", passed=1) == progress.model("m1")
    assert not progress.models[-1].running


def test_ever_new_tests_are_kept_up_to_a_number() -> None:
    """In one marker, and in thousands of them."""
    many = after(finished("dqn", "failed", "integ", tuple(f"t{n}" for n in range(3000))))
    each = after(*(finished("dqn", "failed", "integ", (f"t{n}" * 300,)) for n in range(3000)))

    assert MAX_RED == len(many.models[0].red) == len(each.models[0].red)
    assert max(len(name) for name in each.models[0].red) <= 200
