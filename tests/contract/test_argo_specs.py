"""Argo: specs that it cannot read, and specs that it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.runs import CRONS, TEMPLATES, Runs, dag, phase, pod_template, spec_of
from tests.contract.test_argo_cron import cron
from tests.contract.test_kube_objects import template
from tests.contract.wire import Json

WORK = pod_template("work")


def task(name: str, **fields: Any) -> Json:
    """A task of the template `work`."""
    return {"name": name, "template": "work"} | fields


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"templates": "x"}, "cannot restore slice from string"),
        ({"templates": ["x"]}, "cannot restore struct from: string"),
        ({"arguments": []}, "cannot restore struct from: slice"),
        ({"arguments": {"parameters": [{"name": 5, "value": "x"}]}}, "cannot convert int64 to string"),
        ({"activeDeadlineSeconds": "x"}, "unrecognized type: int64"),
        ({"suspend": "yes"}, "unrecognized type: bool"),
        ({"nodeSelector": "x"}, "cannot restore map from string"),
        ({"ttlStrategy": "x"}, "cannot restore struct from: string"),
        ({"workflowTemplateRef": "x"}, "cannot restore struct from: string"),
    ],
)
async def test_specs_that_cannot_be_read(runs: Runs, fields: Json, why: str) -> None:
    """The API server takes them; the controller ends the workflow as Failed and says why. That of 4.0 dies of it."""
    if runs.is_40:
        pytest.skip("no later case would find a controller")
    await runs.submit(spec_of(dag("work"), WORK) | fields)
    done = await runs.ended()

    assert (phase(done), done["status"]["message"]) == ("Failed", f"cannot unmarshall spec: {why}")
    assert done["metadata"]["labels"]["workflows.argoproj.io/completed"] == "true"
    assert not done["status"].get("nodes")


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        (spec_of(dag("work"), WORK, WORK), "spec.templates[2].name 'work' is not unique"),
        (spec_of(dag(), WORK), "templates.main must have at least one task"),
        (spec_of({"name": "main"}), "template 'main' type is unknown"),
        (spec_of({"name": "main", "container": {"command": ["a"]}}), "templates.main.container.image may not be empty"),
        (spec_of(dag(task("a"), task("a")), WORK), "templates.main sorting failed: duplicated nodeName a"),
        (
            spec_of(dag(task("a", dependencies=["z"])), WORK),
            "templates.main sorting failed: invalid dependency z",
        ),
        (
            spec_of(dag(task("a", dependencies=["b"]), task("b", dependencies=["a"])), WORK),
            "templates.main sorting failed: graph with cycle",
        ),
        (
            spec_of(dag("work"), pod_template("work", inputs={"parameters": [{"name": "q"}]})),
            "templates.main.tasks.work templates.work inputs.parameters.q was not supplied",
        ),
        (
            spec_of(pod_template("main", container={"image": "x", "command": ["{{workflow.parameters.no}}"]})),
            "templates.main: failed to resolve {{workflow.parameters.no}}",
        ),
        (spec_of(dag("work"), WORK, podGC={"strategy": "Never"}), "podGC.strategy unknown strategy 'Never'"),
        (
            spec_of(
                dag("work"), WORK, arguments={"parameters": [{"name": "p", "value": "1"}, {"name": "p", "value": "2"}]}
            ),
            "spec.arguments.parameters[1].name 'p' is not unique",
        ),
    ],
)
async def test_specs_that_are_refused(runs: Runs, spec: Json, why: str) -> None:
    """They end as Failed without a node; nothing is started."""
    await runs.submit(spec)
    done = await runs.ended()

    assert (phase(done), done["status"]["message"]) == ("Failed", f"invalid spec: {why}")
    assert not done["status"].get("nodes")
    assert await runs.pods() == []


async def test_a_reference_and_templates(runs: Runs) -> None:
    """A workflow of a WorkflowTemplate has no templates of its own."""
    await runs.client.create(TEMPLATES, template(runs.name) | {"spec": spec_of(dag("work"), WORK)})
    await runs.submit(spec_of(dag("work"), WORK, workflowTemplateRef={"name": runs.name}))
    done = await runs.ended()

    assert phase(done) == "Failed"
    assert done["status"]["message"] == (
        "invalid spec: Templates is invalid field in spec if workflow referred WorkflowTemplate reference"
    )


async def test_a_cron_that_cannot_be_read(runs: Runs) -> None:
    """It is taken, runs nothing, and can be put right."""
    await runs.client.create(CRONS, cron(runs.name, "0 2 * * *", suspend="maybe"))
    await runs.pass_time(1.5)
    right = await runs.client.merge(f"{CRONS}/{runs.name}", {"spec": {"suspend": True}})
    await runs.client.delete(f"{CRONS}/{runs.name}")

    assert right["spec"]["suspend"] is True
