"""Ending test runs that nobody needs any more."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.api_rig import Web, serve

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "deploy/scripts"))
import push_gate  # noqa: E402


def workflow(name: str, phase: str | None, branch: str = "main", **spec: Any) -> dict[str, Any]:
    """A Workflow that a push made."""
    labels = {"gputest.bot/ci": branch}
    if phase in push_gate.DONE:
        labels["workflows.argoproj.io/completed"] = "true"
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "7", "labels": labels}
    return {"metadata": metadata, "spec": spec, "status": {} if phase is None else {"phase": phase}}


@pytest.fixture
def api() -> Iterator[Web]:
    """An API server with a namespace of runs."""
    runs = [
        workflow("queued", "Pending"), workflow("fresh", None), workflow("running", "Running"), workflow("done", "Failed"),
        workflow("other", "Pending", branch="feature"), workflow("own", "Pending"),
    ]  # fmt: skip
    with serve(Web(workflows={run["metadata"]["name"]: run for run in runs})) as web:
        yield web


def environment(api: Web, child: str = "own") -> dict[str, str]:
    """The step's environment."""
    return {"GPUTEST_API": api.url, "GPUTEST_NAMESPACE": "foxhunt", "GPUTEST_CHILD": child, "GPUTEST_BRANCH": "main"}


def shut_down(api: Web) -> dict[str, str]:
    """Map the runs that were told to end to how."""
    return {name: run["spec"]["shutdown"] for name, run in api.workflows.items() if "shutdown" in run["spec"]}


def test_a_newer_push_ends_queued_runs_of_its_branch(api: Web) -> None:
    """Those that wait, not one that has begun, not another branch's, not its own."""
    assert push_gate.main(["supersede"], environment(api)) == 0

    assert shut_down(api) == {"queued": "Terminate", "fresh": "Terminate"}


def test_a_run_that_begins_meanwhile_is_left_alone(api: Web) -> None:
    """The patch tests the phase in which the run was seen."""
    cluster = push_gate.Cluster(environment(api))
    seen = workflow("queued", "Pending")
    api.workflows["queued"]["status"]["phase"] = "Running"

    assert cluster.shut_down(seen, "Terminate") is False
    assert shut_down(api) == {}


@pytest.mark.parametrize(("child", "how"), [("running", "Stop"), ("queued", "Terminate")])
def test_the_child_of_an_ended_ci_run_ends_with_it(api: Web, child: str, how: str) -> None:
    """Stopped while it runs, so that its exit step reports; terminated while it waits, since Stop does nothing there."""
    assert push_gate.main(["stop-child"], environment(api, child)) == 0

    assert shut_down(api) == {child: how}


@pytest.mark.parametrize("child", ["done", "never-made"])
def test_a_child_that_ended_or_never_was_is_left_alone(api: Web, child: str) -> None:
    """A shutdown after the end would make a passed run look cancelled."""
    assert push_gate.main(["stop-child"], environment(api, child)) == 0

    assert shut_down(api) == {}


def test_an_api_that_does_not_answer_fails_nothing(api: Web) -> None:
    """The gate's verdict does not hang on housekeeping."""
    unreachable = environment(api) | {"GPUTEST_API": "http://127.0.0.1:9"}

    assert push_gate.main(["supersede"], unreachable) == 0
    assert push_gate.main(["stop-child"], unreachable) == 0


def test_anything_else_is_a_usage_error(api: Web) -> None:
    """A typo in the manifest is red."""
    assert push_gate.main(["stop"], environment(api)) == 2
