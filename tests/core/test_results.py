"""The runner's results document."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.core.results import RED, NoResults, Results, Suite, SuiteStatus, is_commit, read_results
from tests.phrases import results, suite


def test_a_document_is_read_whole() -> None:
    """Each field of a suite and of the build is where it belongs."""
    text = results(
        [suite("dqn", status="failed", failed_tests=["a::b"], reason="r", tail="t", ignored=1, filtered=2)],
        build={"status": "failed", "errors": [{"kind": "link", "message": "m", "file": "f.rs", "line": 3}]},
    )
    read = read_results(text)

    assert isinstance(read, Results)
    (dqn,) = read.suites
    assert ("dqn", "dqn-lib", SuiteStatus.FAILED, 8, 1, 1, 2, 101) == (
        dqn.model,
        dqn.suite,
        dqn.status,
        dqn.passed,
        dqn.failed,
        dqn.ignored,
        dqn.filtered,
        dqn.exit_code,
    )
    assert (["a::b"], "r", "t", 41.0) == (dqn.failed_tests, dqn.reason, dqn.tail, dqn.seconds)
    assert read.build is not None
    assert ("link", "m", "f.rs", 3) == tuple(
        getattr(read.build.errors[0], k) for k in ("kind", "message", "file", "line")
    )
    assert read.gpu is not None
    assert ("9.0", "main", 5, True) == (read.gpu.compute_capability, read.ref, read.epochs, read.complete)


def test_only_the_version_is_needed() -> None:
    """Everything else has a default that claims nothing: the document is not complete."""
    assert Results(version=1) == read_results('{"version": 1}')
    assert not Results(version=1).complete


def test_fields_that_are_not_known_are_left_alone() -> None:
    """A newer runner may say more within the same version."""
    assert isinstance(read_results(json.dumps(json.loads(results([suite("dqn")])) | {"later": {"a": [1]}})), Results)


@pytest.mark.parametrize("text", [None, "", "  \n\t"])
def test_no_text_is_no_results(text: str | None) -> None:
    """An output parameter that was never written is empty."""
    assert NoResults("no results came") == read_results(text)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "null",
        "{}",
        '{"version": "1"}',
        '{"version": 1, "suites": [{"model": "dqn"}]}',
        '{"version": 1, "suites": [{"model": "dqn", "suite": "s", "status": "green"}]}',
        '{"version": 1, "complete": "yes"}',
        '{"version": 1, "suites": null}',
        "no test ran",
        "[" * 5000,
        '{"version": 1e400}',
    ],
)
def test_what_can_not_be_read_has_a_reason(text: str) -> None:
    """Never an exception, and never a document."""
    read = read_results(text)

    assert isinstance(read, NoResults)
    assert read.reason.startswith("the results could not be read (")


@pytest.mark.parametrize("version", [0, 2, -1, 10**15])
def test_another_version_is_not_guessed_at(version: int) -> None:
    """It says which it is and which is read."""
    assert NoResults(f"the results are of version {version}, I read version 1") == read_results(
        json.dumps({"version": version})
    )


def test_what_is_red() -> None:
    """What never got to test, ran out of time or was killed is no better than what failed."""
    assert {"failed", "broken", "timed_out", "killed"} == RED


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"passed": 9}, SuiteStatus.PASSED),
        ({"passed": 9, "failed": 1}, SuiteStatus.FAILED),
        ({"passed": 9, "failed_tests": ["a"]}, SuiteStatus.FAILED),
        ({"passed": 9, "exit_code": 101}, SuiteStatus.FAILED),
        ({"passed": 9, "exit_code": 0}, SuiteStatus.PASSED),
        ({"passed": 0, "filtered": 12}, SuiteStatus.UNKNOWN),
        ({"passed": 0, "ignored": 2}, SuiteStatus.UNKNOWN),
        ({}, SuiteStatus.PASSED),
    ],
)
def test_a_pass_that_contradicts_itself_is_none(more: dict[str, Any], status: SuiteStatus) -> None:
    """The counts are believed before the word."""
    assert status is Suite("dqn", "dqn-lib", SuiteStatus.PASSED, **more).counted.status
    assert SuiteStatus.SKIPPED is Suite("dqn", "dqn-lib", SuiteStatus.SKIPPED, **more).counted.status


@pytest.mark.parametrize("text", ['"passed": 1' + "0" * 4300, '"passed": -1', '"seconds": 1e300', '"exit_code": 1e20'])
def test_numbers_that_are_none_are_not_read(text: str) -> None:
    """No count of tests is negative or has four thousand digits."""
    found = read_results('{"version": 1, "suites": [{"model": "dqn", "suite": "x", "status": "passed", ' + text + "}]}")

    assert isinstance(found, NoResults)


@pytest.mark.parametrize(
    ("text", "is_one"), [("3f2a9c1", True), ("a" * 40, True), ("HEAD", False), ("--x", False), ("", False)]
)
def test_what_a_commit_looks_like(text: str, is_one: bool) -> None:
    """Hexadecimal digits, seven at least."""
    assert is_one is is_commit(text)
