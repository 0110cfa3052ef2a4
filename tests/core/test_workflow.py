"""Argo's objects as they are on the wire: everything may be absent or null."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from bot.core.workflow import CronWorkflow, Node, Parameter, Workflow
from tests.phrases import cron, node, workflow


def decoded(body: dict[str, Any]) -> Workflow:
    """The object as a watch brings it."""
    return msgspec.json.decode(json.dumps(body), type=Workflow)


@pytest.mark.parametrize(
    "body",
    [
        {"metadata": {}},
        {"metadata": {"labels": None, "annotations": None, "finalizers": None}, "spec": {"arguments": None}},
        {"metadata": {}, "spec": {"arguments": {"parameters": None}, "workflowTemplateRef": None}, "status": None},
        {"metadata": {}, "status": {"phase": None, "nodes": None, "message": None, "startedAt": None}},
    ],
)
def test_an_object_of_which_nothing_is_there(body: dict[str, Any]) -> None:
    """Each question has an answer that claims nothing."""
    run = decoded(body)

    assert ("", "", "", False, "") == (run.phase, run.message, run.attempt, run.ended, run.template)
    assert ({}, {}, [], {}, False) == (run.annotations, run.labels, run.finalizers, run.nodes, run.suspended)
    assert run.parameter("models") is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("5", "5"),
        (5, "5"),
        (0.5, "0.5"),
        (5.0, "5"),
        (True, "true"),
        (False, "false"),
        (None, None),
        ("", ""),
        (["dqn"], ""),
        ({"a": 1}, ""),
    ],
)
def test_values_of_parameters_as_argo_substitutes_them(value: Any, text: str | None) -> None:
    """Minimal CRDs let numbers and booleans through."""
    assert text == Parameter("epochs", value).text
    assert text == decoded(
        {
            "metadata": {},
            "spec": {
                "arguments": {"parameters": [{"value": "7"}, {"name": "other"}, {"name": "epochs", "value": value}]}
            },
        }
    ).parameter("epochs")


@pytest.mark.parametrize(
    ("phase", "ended"), [("Succeeded", True), ("Failed", True), ("Error", True), ("Running", False)]
)
def test_phases_that_end(phase: str, ended: bool) -> None:
    """`argo retry` leaves them again; the attempt is named by its start."""
    assert ended is workflow(phase=phase).ended
    assert "2026-03-02T10:00:00Z" == workflow(phase=phase).attempt


def test_nodes_out_of_reach() -> None:
    """Kept in Argo's database; not where they are here as well."""
    assert "database" in workflow(phase="Succeeded", offloadNodeStatusVersion="fnv:1").hidden
    assert "" == workflow(phase="Succeeded", offloadNodeStatusVersion="fnv:1", nodes=[node("a", "Running")]).hidden
    assert "" == workflow(phase="Succeeded").hidden
    assert "" == workflow().hidden


@pytest.mark.parametrize(
    ("fields", "is_exit"),
    [
        ({}, False),
        ({"display_name": "run.onExit"}, True),
        ({"display_name": "x", "node_flag": {"hooked": True}}, True),
        ({"display_name": "x", "node_flag": {"retried": True}}, False),
        ({"name": "run.onExit[0].post"}, True),
        ({"name": "run.onExit(0)"}, True),
        ({"name": "run.test.hooks.failed"}, True),
        ({"name": "run.test.hooks.failed.post"}, True),
        ({"name": "run.onExitless"}, False),
        ({"name": "run.hooks"}, False),
        ({"name": "onExit"}, False),
    ],
)
def test_exit_handlers_and_hooks(fields: dict[str, Any], is_exit: bool) -> None:
    """They and what is below them are neither tests nor steps."""
    made = msgspec.convert(
        {"name": "run.test", "displayName": "test"} | {_camel(k): v for k, v in fields.items()}, Node
    )

    assert is_exit is made.is_exit


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


@pytest.mark.parametrize(("phase", "done"), [("Omitted", True), ("Skipped", True), ("Pending", False), ("", False)])
def test_nodes_that_are_done(phase: str, done: bool) -> None:
    """Whatever came of them."""
    assert done is Node(phase=phase).done


@pytest.mark.parametrize(
    ("spec", "schedules"),
    [
        ({"schedule": "0 2 * * *", "schedules": None}, ("0 2 * * *",)),
        ({"schedules": ["0 2 * * *", "", "@daily"]}, ("0 2 * * *", "@daily")),
        ({"schedule": "old", "schedules": ["new"]}, ("new",)),
        ({"schedule": "", "schedules": []}, ()),
        ({"schedule": None, "schedules": None}, ()),
        ({"schedules": [""], "schedule": "old"}, ("old",)),
    ],
)
def test_schedules_of_every_version(spec: dict[str, Any], schedules: tuple[str, ...]) -> None:
    """Whichever of the two fields holds them."""
    assert schedules == cron(**spec).schedules


def test_flags_of_a_cron_workflow() -> None:
    """Suspended by its spec, stopped by its status."""
    bare = msgspec.json.decode(b'{"metadata":{},"spec":{},"status":null}', type=CronWorkflow)
    stopped = msgspec.json.decode(b'{"metadata":{},"status":{"phase":"Stopped"}}', type=CronWorkflow)
    labelled = msgspec.json.decode(
        b'{"metadata":{"labels":{"cronworkflows.argoproj.io/completed":"true"}},"status":{"phase":"Active"}}',
        type=CronWorkflow,
    )

    assert (False, False) == (bare.suspended, bare.stopped)
    assert (False, True) == (stopped.suspended, stopped.stopped)
    assert labelled.stopped
    assert cron(suspend=True).suspended
