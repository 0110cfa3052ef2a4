"""Argo: what a Workflow looks like while it runs, and at its end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.runs import RESULT, RESULTS, TEMPLATES, Runs, dag, node, phase, pod_template, spec_of
from tests.contract.wire import Json
from tests.real.rig.pod_script import (
    Evicted,
    Exit,
    Hang,
    NodeLost,
    OOMKilled,
    Outputs,
    Pending,
    Progress,
    Running,
    Wait,
    Waiting,
)

PREFIX = "workflows.argoproj.io"


def fnv(text: str) -> int:
    """The hash in the ids of nodes."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


async def test_nodes_of_a_dag(runs: Runs) -> None:
    """The root bears the workflow's name; a task's node has its parent as boundary, and an id made from its name."""
    runs.script("work", Running(), Wait("dag"), Exit(0))
    await runs.one()
    running = await runs.running()
    root, work = node(running, runs.name), node(running, "work")

    assert (root["id"], root["name"], root["type"], root["phase"]) == (runs.name, runs.name, "DAG", "Running")
    assert (root["templateName"], root["children"]) == ("main", [work["id"]])
    assert work["id"] == f"{runs.name}-{fnv(f'{runs.name}.work')}"
    assert (work["name"], work["type"], work["templateName"]) == (f"{runs.name}.work", "Pod", "work")
    assert work["boundaryID"] == runs.name
    assert (work["progress"], running["status"]["progress"]) == ("0/1", "0/1")
    assert work["finishedAt"] is None
    await runs.player.release("dag")
    done = await runs.ended()
    assert (phase(done), done["status"]["progress"]) == ("Succeeded", "1/1")
    assert node(done, "work")["outputs"] == {"exitCode": "0"}
    assert node(done, runs.name)["outboundNodes"] == [work["id"]]
    assert "message" not in done["status"]


async def test_what_is_noted_on_the_workflow(runs: Runs) -> None:
    """Labels for phase and completion, and how pods are named; times of start and end."""
    runs.script("work", Running(), Wait("labels"), Exit(0))
    await runs.one()
    running = await runs.running()
    await runs.player.release("labels")
    done = await runs.ended()

    assert running["metadata"]["labels"] == {f"{PREFIX}/phase": "Running", f"{PREFIX}/completed": "false"}
    assert done["metadata"]["labels"] == {f"{PREFIX}/phase": "Succeeded", f"{PREFIX}/completed": "true"}
    assert done["metadata"]["annotations"][f"{PREFIX}/pod-name-format"] == "v2"
    assert running["status"]["finishedAt"] is None
    assert running["status"]["startedAt"] == done["status"]["startedAt"] <= done["status"]["finishedAt"]
    assert {"type": "Completed", "status": "True"} in done["status"]["conditions"]


async def test_pods_of_steps(runs: Runs) -> None:
    """Name, labels, annotations and owner of a pod; the executor is told the template in its first container."""
    runs.script("work", Running(), Wait("pod"), Exit(0))
    await runs.one()
    running = await runs.running()
    (pod,) = await runs.pods()
    await runs.player.release("pod")
    await runs.ended()

    work = node(running, "work")
    assert pod["metadata"]["name"] == f"{runs.name}-work-{fnv(f'{runs.name}.work')}"
    assert pod["metadata"]["labels"] == {f"{PREFIX}/workflow": runs.name, f"{PREFIX}/completed": "false"}
    assert pod["metadata"]["annotations"][f"{PREFIX}/node-id"] == work["id"]
    assert pod["metadata"]["annotations"][f"{PREFIX}/node-name"] == work["name"]
    (owner,) = pod["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Workflow", runs.name, True)
    assert [each["name"] for each in pod["spec"]["containers"]] == ["wait", "main"]
    assert [each["name"] for each in pod["spec"]["initContainers"]] == ["init"]
    variables = {each["name"]: each.get("value") for each in pod["spec"]["initContainers"][0]["env"]}
    assert '"name":"work"' in variables["ARGO_TEMPLATE"]
    assert variables["ARGO_NODE_ID"] == work["id"]


async def test_waiting_for_a_node(runs: Runs) -> None:
    """A pod that finds no node: the node is Pending and says why, in the scheduler's words."""
    text = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    await runs.one(None, Pending(text), Wait("node"), Running(), Wait("run"), Exit(0))
    waiting = await runs.until(lambda seen: node(seen, "work").get("message"))
    await runs.player.release("node")
    running = await runs.running()
    await runs.player.release("run")
    await runs.ended()

    assert (node(waiting, "work")["phase"], phase(waiting)) == ("Pending", "Running")
    assert node(waiting, "work")["message"] == f"Unschedulable: {text}"
    assert "message" not in node(running, "work")


async def test_waiting_for_an_image(runs: Runs) -> None:
    """A container that does not start: its reason and message."""
    await runs.one(None, Waiting("ImagePullBackOff", 'Back-off pulling image "x"'), Wait("image"), Running(), Exit(0))
    waiting = await runs.until(lambda seen: node(seen, "work").get("message"))
    await runs.player.release("image")
    await runs.ended()

    assert node(waiting, "work")["message"] == 'ImagePullBackOff: Back-off pulling image "x"'


async def test_outputs(runs: Runs) -> None:
    """Output parameters stand at the node with where they came from; one with a global name at the workflow, too."""
    template = pod_template("work", outputs=RESULT)
    await runs.one(template, Running(), Outputs({"results": '{"a": "b"}\n'}), Exit(0))
    done = await runs.ended()

    (parameter,) = node(done, "work")["outputs"]["parameters"]
    assert parameter["name"] == "results"
    assert parameter["value"] == '{"a": "b"}'
    assert parameter["valueFrom"] == {"path": "/out", "default": ""}
    assert node(done, "work")["outputs"]["exitCode"] == "0"
    (exported,) = done["status"]["outputs"]["parameters"]
    assert (exported["name"], exported["value"]) == ("results", '{"a": "b"}')


async def test_an_output_that_is_missing(runs: Runs) -> None:
    """Without a default the step is an Error that names the file; with one it has the default."""
    bare = {"parameters": [{"name": "results", "valueFrom": {"path": "/out"}}]}
    await runs.one(pod_template("work", outputs=bare), Running(), Outputs({"results": None}), Exit(0))
    failed = await runs.ended()
    other = f"{runs.name}-default"
    runs.script("work", Running(), Outputs({"results": None}), Exit(0), run=other)
    await runs.submit(spec_of(dag("work"), pod_template("work", outputs=RESULT)), other)
    done = await runs.ended(other)

    assert phase(failed) == "Error"
    assert node(failed, "work")["phase"] == "Error"
    assert node(failed, "work")["message"] == "wait: Error (exit code 1): open /out: no such file or directory"
    assert (phase(done), node(done, "work")["outputs"]["parameters"][0]["value"]) == ("Succeeded", "")


async def test_outputs_of_what_failed(runs: Runs) -> None:
    """A step that fails reports its outputs all the same."""
    template = pod_template("work", outputs=RESULT)
    await runs.one(template, Running(), Outputs({"results": "half"}), Exit(3))
    done = await runs.ended()

    work = node(done, "work")
    assert (work["phase"], work["outputs"]["exitCode"]) == ("Failed", "3")
    assert work["outputs"]["parameters"][0]["value"] == "half"


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (Exit(1), "main: Error (exit code 1)"),
        (Exit(2, "out of patience"), "main: Error (exit code 2): out of patience"),
        (OOMKilled(), "main: OOMKilled (exit code 137)"),
        (Evicted("The node was low on resource: memory."), "The node was low on resource: memory."),
    ],
    ids=["exit 1", "with a message", "out of memory", "evicted"],
)
async def test_steps_that_fail(runs: Runs, end: Any, message: str) -> None:
    """The node says why; the DAG and the workflow are Failed and say nothing of it."""
    await runs.one(None, Running(), end)
    done = await runs.ended()

    assert (phase(done), node(done, "work")["phase"]) == ("Failed", "Failed")
    assert node(done, "work")["message"] == message
    assert node(done, runs.name)["phase"] == "Failed"
    assert "message" not in done["status"]


async def test_a_pod_that_vanishes(runs: Runs) -> None:
    """A running pod that is gone without a last report is made anew: the step begins once more, under the same node."""
    await runs.one(None, Running(), Wait("lost"), NodeLost())
    await runs.running()
    (first,) = await runs.pods()
    runs.script("work", Running(), Wait("once more"), Exit(0))
    await runs.player.release("lost")
    found: list[Json] = []

    async def again() -> bool:
        found[:] = [pod for pod in await runs.pods() if pod["metadata"]["uid"] != first["metadata"]["uid"]]
        return bool(found) and found[0]["status"].get("phase") == "Running"

    await runs.eventually(again)
    await runs.player.release("once more")

    assert found[0]["metadata"]["name"] == first["metadata"]["name"]
    assert phase(await runs.ended()) == "Succeeded"


async def test_a_pod_that_is_deleted(runs: Runs) -> None:
    """Where the executor has made its last report the step is an Error, and nothing is made anew.

    Of a step that has just begun the controller does not believe it yet, and makes the pod anew all the same.
    """
    await runs.one(None, Running(), Wait("deleted"), NodeLost())
    running = await runs.running()
    reported = {"metadata": {"labels": {f"{PREFIX}/report-outputs-completed": "true"}}}
    await runs.client.merge(f"{RESULTS}/{node(running, 'work')['id']}", reported)
    await runs.pass_time(1.5)
    await runs.player.release("deleted")
    done = await runs.ended()

    assert (phase(done), node(done, "work")["phase"]) == ("Error", "Error")
    assert node(done, "work")["message"] == "pod deleted"
    assert await runs.pods() == []


async def test_a_pod_that_vanishes_while_it_waits(runs: Runs) -> None:
    """A pending pod that is gone is made anew."""
    await runs.one(None, Pending("0/1 nodes are available"), Wait("lost waiting"), NodeLost())
    await runs.until(lambda seen: node(seen, "work").get("message"))
    (first,) = await runs.pods()
    runs.script("work", Running(), Wait("second"), Exit(0))
    await runs.player.release("lost waiting")
    await runs.running()
    (second,) = await runs.pods()
    await runs.player.release("second")

    assert phase(await runs.ended()) == "Succeeded"
    assert second["metadata"]["name"] == first["metadata"]["name"]
    assert second["metadata"]["uid"] != first["metadata"]["uid"]


async def test_what_is_left_out(runs: Runs) -> None:
    """What depends on a step that failed is Omitted, and says that its condition was not met."""
    after = {"name": "after", "template": "work", "depends": "work"}
    runs.script("work", Running(), Exit(1))
    await runs.submit(spec_of(dag("work", after), pod_template("work")))
    done = await runs.ended()

    omitted = node(done, "after")
    assert (omitted["type"], omitted["phase"]) == ("Skipped", "Omitted")
    assert omitted["message"] == "omitted: depends condition not met"
    assert node(done, "work")["children"] == [omitted["id"]]
    assert phase(done) == "Failed"


async def test_what_is_skipped(runs: Runs) -> None:
    """A `when` that is false: Skipped, with the condition; the workflow succeeds."""
    task = {"name": "work", "template": "work", "when": "{{workflow.parameters.wanted}} == true"}
    arguments = {"parameters": [{"name": "wanted", "value": "false"}]}
    await runs.submit(spec_of(dag(task), pod_template("work"), arguments=arguments))
    done = await runs.ended()

    assert (phase(done), node(done, "work")["phase"], node(done, "work")["type"]) == ("Succeeded", "Skipped", "Skipped")
    assert node(done, "work")["message"] == "when 'false == true' evaluated false"


async def test_the_exit_handler(runs: Runs) -> None:
    """It runs after all, is marked as a hook, knows the outcome, and does not change it."""
    bye = pod_template("bye", inputs={"parameters": [{"name": "status", "value": "{{workflow.status}}"}]})
    runs.script("work", Running(), Exit(1))
    runs.script("bye", Running(), Exit(0))
    await runs.submit(spec_of(dag("work"), pod_template("work"), bye, onExit="bye"))
    done = await runs.ended()

    handler = node(done, f"{runs.name}.onExit")
    assert (handler["type"], handler["templateName"], handler["phase"]) == ("Pod", "bye", "Succeeded")
    assert handler["nodeFlag"] == {"hooked": True}
    assert "boundaryID" not in handler
    assert handler["inputs"]["parameters"][0]["value"] == "Failed"
    assert phase(done) == "Failed"


async def test_an_exit_handler_that_fails(runs: Runs) -> None:
    """It makes a workflow that had succeeded fail."""
    runs.script("work", Running(), Exit(0))
    runs.script("bye", Running(), Exit(1))
    await runs.submit(spec_of(dag("work"), pod_template("work"), pod_template("bye"), onExit="bye"))
    done = await runs.ended()

    assert (phase(done), done["status"]["message"]) == ("Failed", "main: Error (exit code 1)")


async def test_progress(runs: Runs) -> None:
    """What a program says of its progress stands at its node, and counts for the workflow."""
    await runs.one(None, Running(), Progress("3/10"), Wait("progress"), Exit(0))
    seen = await runs.until(lambda found: node(found, "work").get("progress") == "3/10")
    await runs.player.release("progress")
    done = await runs.ended()

    assert seen["status"]["progress"] == "3/10"
    assert (node(done, "work")["progress"], done["status"]["progress"]) == ("10/10", "10/10")


async def test_steps(runs: Runs) -> None:
    """Steps make a node for each group, and outputs of one are arguments of the next."""
    main = {
        "name": "main",
        "steps": [[{"name": "first", "template": "first"}], [{"name": "second", "template": "second"}]],
    }
    main["steps"][1][0]["arguments"] = {  # type: ignore[index]
        "parameters": [{"name": "text", "value": "{{steps.first.outputs.parameters.results}}"}]
    }
    second = pod_template("second", inputs={"parameters": [{"name": "text"}]})
    runs.script("first", Running(), Outputs({"results": "handed on"}), Exit(0))
    runs.script("second", Running(), Exit(0))
    await runs.submit(spec_of(main, pod_template("first", outputs=RESULT), second))
    done = await runs.ended()

    assert (node(done, runs.name)["type"], node(done, "[0]")["type"]) == ("Steps", "StepGroup")
    assert node(done, "[0]")["children"] == [node(done, "first")["id"]]
    assert node(done, "second")["inputs"]["parameters"][0]["value"] == "handed on"


async def template_named(runs: Runs, name: str, **spec: Any) -> None:
    """A WorkflowTemplate with one step."""
    parameters = [{"name": "models", "value": "dqn"}, {"name": "scope", "value": "all", "enum": ["lib", "all"]}]
    body = {"apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowTemplate", "metadata": {"name": name}}
    body["spec"] = spec_of(dag("work"), pod_template("work"), arguments={"parameters": parameters}) | spec
    await runs.client.create(TEMPLATES, body)


def by_reference(template: str, **parameters: str) -> Json:
    """A spec that refers to a template."""
    arguments = {"parameters": [{"name": key, "value": value} for key, value in parameters.items()]}
    return {"workflowTemplateRef": {"name": template}, "arguments": arguments}


async def test_a_workflow_of_a_template(runs: Runs) -> None:
    """The template's spec is kept in the status, with the workflow's own arguments over it; spec stays as it was."""
    await template_named(runs, runs.name)
    runs.script("work", Running(), Exit(0))
    await runs.submit(by_reference(runs.name, models="all"))
    done = await runs.ended()

    assert phase(done) == "Succeeded"
    stored = done["status"]["storedWorkflowTemplateSpec"]
    given = {each["name"]: each["value"] for each in stored["arguments"]["parameters"]}
    assert given == {"models": "all", "scope": "all"}
    assert stored["entrypoint"] == "main"
    assert "templates" not in done["spec"]
    assert done["spec"]["workflowTemplateRef"] == {"name": runs.name}


async def test_a_template_that_is_not_there(runs: Runs) -> None:
    """The workflow is an Error, and says so."""
    await runs.submit(by_reference("no-such-template"))
    done = await runs.ended()

    assert phase(done) == "Error"
    assert done["status"]["message"] == 'workflowtemplates.argoproj.io "no-such-template" not found'
    assert not done["status"].get("nodes")


async def test_a_parameter_that_is_not_allowed_by_the_template(runs: Runs) -> None:
    """Of a template that is referred to the enum is not looked at: the workflow runs with any value."""
    await template_named(runs, runs.name)
    runs.script("work", Running(), Exit(0))
    await runs.submit(by_reference(runs.name, scope="nonsense"))

    assert phase(await runs.ended()) == "Succeeded"


async def test_a_parameter_that_is_not_allowed(runs: Runs) -> None:
    """A value that is not in the workflow's own enum: it fails before anything is started."""
    arguments = {"parameters": [{"name": "scope", "value": "nonsense", "enum": ["lib", "all"]}]}
    await runs.submit(spec_of(dag("work"), pod_template("work"), arguments=arguments))
    done = await runs.ended()

    assert phase(done) == "Failed"
    text = "spec.arguments.scope.value should be present in spec.arguments.scope.enum list"
    assert done["status"]["message"] == f"invalid spec: {text}"


async def test_a_parameter_without_a_value(runs: Runs) -> None:
    """The workflow fails before anything is started."""
    arguments = {"parameters": [{"name": "models"}]}
    await runs.submit(spec_of(dag("work"), pod_template("work"), arguments=arguments))
    done = await runs.ended()

    assert phase(done) == "Failed"
    text = "spec.arguments.models.value or spec.arguments.models.valueFrom is required"
    assert done["status"]["message"] == f"invalid spec: {text}"


async def test_a_name_that_is_too_long(runs: Runs) -> None:
    """The API server takes it, Argo does not: more than 63 characters fail."""
    name = runs.name.ljust(64, "x")
    await runs.submit(spec_of(dag("work"), pod_template("work")), name)
    done = await runs.ended(name)

    assert phase(done) == "Failed"
    text = f'workflow name "{name}" must not be more than 63 characters long (currently 64)'
    assert done["status"]["message"] == f"invalid spec: {text}"


async def test_a_suspended_workflow(runs: Runs) -> None:
    """suspend holds it before its first step; without it it goes on."""
    runs.script("work", Running(), Exit(0))
    await runs.submit(spec_of(dag("work"), pod_template("work"), suspend=True))
    held = await runs.until(lambda seen: phase(seen) == "Running")
    await runs.client.merge(
        f"{TEMPLATES.replace('workflowtemplates', 'workflows')}/{runs.name}", {"spec": {"suspend": None}}
    )
    done = await runs.ended()

    assert not held["status"].get("nodes")
    assert phase(done) == "Succeeded"


async def test_hanging_pods_are_left_alone(runs: Runs) -> None:
    """A pod that says nothing keeps its node running."""
    await runs.one(None, Running(), Hang())
    running = await runs.running()
    await runs.shut_down("Terminate")
    await runs.ended()

    assert phase(running) == "Running"
