"""The small Argo: what a run looks like from birth to end, in Argo's own words."""

from __future__ import annotations

from typing import Any

import pytest

from bot.demo import EmbeddedWorld
from bot.demo.argo_nodes import node_id
from bot.demo.cluster import Cluster
from bot.demo.kinds import PODS, TASK_RESULTS, WORKFLOW_TEMPLATES, WORKFLOWS
from bot.demo.pods import Exit, Gate, Log, Outputs, Wait
from bot.demo.runs import make_results

PREFIX = "workflows.argoproj.io"


@pytest.fixture
def cluster(world: EmbeddedWorld) -> Cluster:
    """The cluster, with test pods that wait to be told."""
    world.cluster.hang()
    return world.cluster


def nodes(cluster: Cluster, name: str) -> dict[str, dict[str, Any]]:
    """The nodes of a workflow by display name."""
    return {node["displayName"]: node for node in cluster.workflow(name)["status"]["nodes"].values()}


async def test_a_green_run(cluster: Cluster) -> None:
    """Warm-up, test, exit handler; outputs, labels, conditions and progress as Argo writes them."""
    name = cluster.submit("run-1", models="dqn")
    await cluster.until_running(name)
    wf = cluster.workflow(name)

    assert wf["metadata"]["labels"] == {f"{PREFIX}/phase": "Running", f"{PREFIX}/completed": "false"}
    assert wf["status"]["startedAt"] == "2026-03-02T10:00:00Z"
    assert wf["status"]["finishedAt"] is None
    cluster.finish(name, results=make_results(models=("dqn",)))
    await cluster.until_ended(name)
    wf = cluster.workflow(name)
    found = nodes(cluster, name)
    test, root, end = found["compile-and-test"], found["run-1"], found["run-1.onExit"]

    assert wf["status"]["phase"] == "Succeeded"
    assert "message" not in wf["status"]
    assert wf["metadata"]["labels"][f"{PREFIX}/completed"] == "true"
    assert {"type": "Completed", "status": "True"} in wf["status"]["conditions"]
    assert wf["status"]["progress"] == "3/3"
    assert {one["name"] for one in wf["status"]["outputs"]["parameters"]} == {"results", "said"}
    assert test["id"] == node_id("run-1", "run-1.compile-and-test")
    assert (test["type"], test["boundaryID"], test["templateName"]) == ("Pod", "run-1", "compile-and-test")
    assert test["outputs"]["exitCode"] == "0"
    assert test["outputs"]["parameters"][0]["globalName"] == "results"
    assert (root["type"], root["children"]) == ("DAG", [node_id("run-1", "run-1.gpu-warmup")])
    assert root["outboundNodes"] == [test["id"]]
    assert end["nodeFlag"] == {"hooked": True}
    assert "boundaryID" not in end
    assert "synchronization" not in wf["status"]


async def test_a_red_run_has_an_empty_message(cluster: Cluster) -> None:
    """A DAG says nothing about a failed child; the pod's node does."""
    name = cluster.submit("run-1")
    await cluster.until_running(name)
    cluster.fail(name)
    await cluster.until_ended(name)

    assert cluster.phase(name) == "Failed"
    assert "message" not in cluster.workflow(name)["status"]
    assert nodes(cluster, name)["compile-and-test"]["message"] == "main: Error (exit code 1)"
    assert nodes(cluster, name)["run-1.onExit"]["phase"] == "Succeeded"


async def test_killed_for_memory_without_results(cluster: Cluster) -> None:
    """The default stands in for the missing output."""
    name = cluster.submit("run-1")
    await cluster.until_running(name)
    cluster.run_out_of_memory(name)
    await cluster.until_ended(name)
    test = nodes(cluster, name)["compile-and-test"]

    assert test["message"] == "main: OOMKilled (exit code 137)"
    assert test["outputs"]["parameters"][0]["value"] == ""


async def test_a_failed_warm_up_omits_the_test(cluster: Cluster) -> None:
    """What depends on a failed task is omitted, and the exit handler runs."""
    cluster.script("gpu-warmup", [Exit(1)])
    name = cluster.submit("run-1")
    await cluster.until_ended(name)
    found = nodes(cluster, name)

    assert (found["compile-and-test"]["type"], found["compile-and-test"]["phase"]) == ("Skipped", "Omitted")
    assert found["compile-and-test"]["message"] == "omitted: depends condition not met"
    assert cluster.phase(name) == "Failed"


async def test_waiting_for_a_gpu_shows_in_the_node(cluster: Cluster) -> None:
    """The workflow runs while its pod is unschedulable."""
    name = cluster.submit("run-1")
    await cluster.clock.advance(1)
    warm_up = nodes(cluster, name)["gpu-warmup"]

    assert cluster.phase(name) == "Running"
    assert warm_up["phase"] == "Pending"
    assert warm_up["message"].startswith("Unschedulable: 0/1 nodes are available: ")
    await cluster.until_running(name)

    assert "message" not in nodes(cluster, name)["gpu-warmup"]


async def test_the_mutex_makes_a_queue(cluster: Cluster) -> None:
    """The second waits without nodes and without a start; priority goes before age."""
    for name in ("one", "two"):
        cluster.submit(name)
        await cluster.clock.advance(2)
    spec = {"workflowTemplateRef": {"name": "gpu-test-pipeline"}, "priority": 9}
    cluster.store.create(WORKFLOWS, {"metadata": {"name": "three", "namespace": "foxhunt"}, "spec": spec})
    await cluster.clock.advance(1)
    two = cluster.workflow("two")["status"]

    assert two["phase"] == "Pending"
    assert two["message"] == "Waiting for foxhunt/Mutex/cargo-target-cuda-test lock. Lock status: 0/1"
    assert two["startedAt"] is None
    assert "nodes" not in two
    waiting = [{"mutex": "foxhunt/Mutex/cargo-target-cuda-test", "holder": "foxhunt/one"}]
    assert two["synchronization"] == {"mutex": {"waiting": waiting}}
    await cluster.until_running("one")
    cluster.finish("one")
    await cluster.until_ended("one")
    await cluster.clock.advance(1)

    assert (cluster.phase("two"), cluster.phase("three")) == ("Pending", "Running")


async def test_stop_runs_the_exit_handler(cluster: Cluster) -> None:
    """Stop: Failed with its own texts, and the exit handler's pod."""
    name = cluster.submit("run-1")
    await cluster.until_running(name)
    cluster.stop(name)
    await cluster.until_ended(name)
    found = nodes(cluster, name)

    assert cluster.workflow(name)["status"]["message"] == "Stopped with strategy 'Stop'"
    assert found["compile-and-test"]["message"] == "main: Error (exit code 143)"
    assert found["run-1.onExit"]["phase"] == "Succeeded"


async def test_terminate_runs_none(cluster: Cluster) -> None:
    """Terminate: Failed, no exit handler."""
    name = cluster.submit("run-1")
    await cluster.until_running(name)
    cluster.terminate(name)
    await cluster.until_ended(name)

    assert cluster.workflow(name)["status"]["message"] == "Stopped with strategy 'Terminate'"
    assert "run-1.onExit" not in nodes(cluster, name)


async def test_terminate_while_the_gpu_is_awaited(cluster: Cluster) -> None:
    """The pending pod is deleted; what comes after it is omitted."""
    name = cluster.submit("run-1")
    await cluster.clock.advance(1)
    cluster.terminate(name)
    await cluster.clock.advance(1)

    assert cluster.phase(name) == "Failed"
    assert cluster.pod(name, "gpu-warmup") is None
    assert nodes(cluster, name)["compile-and-test"]["phase"] == "Omitted"


async def test_terminate_in_the_queue_counts_as_succeeded(cluster: Cluster) -> None:
    """The mistake of 3.7; Stop does nothing at all there."""
    cluster.submit("one")
    cluster.submit("two")
    await cluster.clock.advance(1)
    cluster.stop("two")
    await cluster.clock.advance(1)

    assert cluster.phase("two") == "Pending"
    cluster.terminate("two")
    await cluster.clock.advance(1)
    two = cluster.workflow("two")["status"]

    assert (two["phase"], two.get("message")) == ("Succeeded", None)
    assert two["finishedAt"] is not None


async def test_the_deadline_ends_a_run(cluster: Cluster) -> None:
    """activeDeadlineSeconds is handed on to the pod, whose kubelet ends it; the exit handler still runs."""
    name = cluster.submit("run-1")
    await cluster.until_running(name)
    await cluster.until_ended(name)
    wf = cluster.workflow(name)

    assert wf["status"]["phase"] == "Failed"
    text = "Pod was active on the node longer than the specified deadline"
    assert nodes(cluster, name)["compile-and-test"]["message"] == text
    assert nodes(cluster, name)["run-1.onExit"]["phase"] == "Succeeded"
    assert wf["status"]["finishedAt"] > "2026-03-02T11:30:00Z"


async def test_a_deleted_pod_is_an_error(cluster: Cluster) -> None:
    """The node of a running pod that vanishes is Error "pod deleted"."""
    name = cluster.submit("run-1")
    await cluster.until_running(name)
    await cluster.clock.advance(20)
    cluster.delete_pod(name)
    await cluster.until_ended(name)

    assert cluster.phase(name) == "Error"
    assert nodes(cluster, name)["compile-and-test"]["message"] == "pod deleted"


async def test_a_pod_that_vanishes_young_is_made_anew(cluster: Cluster) -> None:
    """Within ten seconds of its node's start the controller takes it for a late informer."""
    cluster.script("gpu-warmup", [Gate("never")])
    cluster.submit("one")
    await cluster.until_running("one", "gpu-warmup")
    cluster.terminate("one")
    await cluster.until_ended("one")
    await cluster.clock.advance(5)
    cluster.kubelet.pull_seconds = lambda _pod: 0.0
    name = cluster.submit("two")
    await cluster.until_running(name, "gpu-warmup")
    first = cluster.pod(name, "gpu-warmup")
    cluster.delete_pod(name, "gpu-warmup")
    await cluster.until_running(name, "gpu-warmup")
    second = cluster.pod(name, "gpu-warmup")
    assert first is not None
    assert second is not None

    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    assert cluster.phase(name) == "Running"


async def test_a_missing_output_file_fails_the_executor(cluster: Cluster) -> None:
    """Without a default the wait container ends with an error, though the program succeeded."""
    template = {
        "name": "main",
        "container": {"image": "x"},
        "outputs": {"parameters": [{"name": "x", "valueFrom": {"path": "/x"}}]},
    }
    spec = {"entrypoint": "main", "templates": [template]}
    cluster.store.create(WORKFLOWS, {"metadata": {"name": "no-file", "namespace": "foxhunt"}, "spec": spec})
    await cluster.until_ended("no-file")
    status = cluster.workflow("no-file")["status"]

    assert status["phase"] == "Error"
    assert status["message"] == "wait: Error (exit code 1): open /x: no such file or directory"


async def test_a_lost_node(cluster: Cluster) -> None:
    """Nothing comes from it; its pod is given up and made anew elsewhere, and the run goes on."""
    name = cluster.submit("run-1")
    await cluster.until_running(name)
    first = cluster.pod(name)
    cluster.lose_node(name)
    await cluster.clock.advance(100)
    await cluster.until_running(name)
    second = cluster.pod(name)
    assert first is not None
    assert second is not None

    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    assert first["spec"]["nodeName"] != second["spec"]["nodeName"]


async def test_eviction_gives_the_pods_message(cluster: Cluster) -> None:
    """pod.status.message wins."""
    name = cluster.submit("run-1")
    await cluster.until_running(name)
    cluster.evict(name)
    await cluster.clock.advance(1)

    assert nodes(cluster, name)["compile-and-test"]["message"] == "The node was low on resource: memory."


async def test_retry_lives_again_under_the_same_uid(cluster: Cluster) -> None:
    """uid, outputs and annotations stay; startedAt is new; the completed label goes; failed nodes begin anew."""
    name = cluster.submit("run-1")
    await cluster.until_running(name)
    cluster.fail(name)
    await cluster.until_ended(name)
    before = cluster.workflow(name)
    await cluster.clock.advance(60)
    cluster.retry(name)
    again = cluster.workflow(name)

    assert again["metadata"]["uid"] == before["metadata"]["uid"]
    assert f"{PREFIX}/completed" not in again["metadata"]["labels"]
    assert (again["status"]["phase"], again["status"]["finishedAt"]) == ("Running", None)
    assert again["status"]["startedAt"] > before["status"]["startedAt"]
    assert again["status"]["outputs"] == before["status"]["outputs"]
    assert set(nodes(cluster, name)) == {"run-1", "gpu-warmup"}
    await cluster.until_running(name)
    cluster.finish(name)
    await cluster.until_ended(name)

    assert cluster.phase(name) == "Succeeded"


async def test_resubmit_copies_annotations_not_finalizers(cluster: Cluster) -> None:
    """A new uid with the old annotations."""
    name = cluster.submit("run-1")
    cluster.patch(
        WORKFLOWS, name, lambda wf: wf["metadata"].update(annotations={"bot": "x"}, finalizers=["bot.example/y"])
    )
    fresh = cluster.workflow(cluster.resubmit(name))["metadata"]

    assert fresh["annotations"]["bot"] == "x"
    assert "finalizers" not in fresh
    assert fresh["labels"][f"{PREFIX}/resubmitted-from-workflow"] == name


async def test_time_to_live_and_pod_gc(cluster: Cluster) -> None:
    """Pods go 5 s after their end, the workflow an hour after its own; with a finalizer it stays to be read."""
    name = cluster.submit("run-1")
    await cluster.clock.advance(1)
    cluster.patch(WORKFLOWS, name, lambda wf: wf["metadata"].update(finalizers=["bot.example/report"]))
    await cluster.until_running(name)
    cluster.finish(name)
    await cluster.until_ended(name)
    await cluster.clock.advance(6)

    assert cluster.store.all(PODS) == []
    assert cluster.store.all(TASK_RESULTS) == []
    await cluster.clock.advance(3600)
    held = cluster.workflow(name)

    assert "deletionTimestamp" in held["metadata"]
    assert held["status"]["phase"] == "Succeeded"
    cluster.patch(WORKFLOWS, name, lambda wf: wf["metadata"].pop("finalizers"))

    assert cluster.store.find(WORKFLOWS, "foxhunt", name) is None


async def test_a_held_running_workflow_that_is_deleted_goes_on(cluster: Cluster) -> None:
    """Until it is terminated."""
    name = cluster.submit("run-1")
    cluster.patch(WORKFLOWS, name, lambda wf: wf["metadata"].update(finalizers=["bot.example/report"]))
    await cluster.until_running(name)
    cluster.delete(name)
    await cluster.clock.advance(60)

    assert cluster.phase(name) == "Running"
    cluster.terminate(name)
    await cluster.until_ended(name)

    assert cluster.phase(name) == "Failed"


@pytest.mark.parametrize(
    ("spec", "phase", "message"),
    [
        ({}, "Failed", "invalid spec: spec.entrypoint is required"),
        ({"workflowTemplateRef": {"name": "none"}}, "Error", 'workflowtemplates.argoproj.io "none" not found'),
        (
            {"workflowTemplateRef": {"name": "gpu-test-pipeline"}, "arguments": {"parameters": [{"name": "x"}]}},
            "Failed",
            "invalid spec: spec.arguments.x.value or spec.arguments.x.valueFrom is required",
        ),
        (
            {
                "entrypoint": "main",
                "arguments": {"parameters": [{"name": "scope", "value": "some", "enum": ["lib"]}]},
                "templates": [{"name": "main", "container": {"image": "x", "command": ["y"]}}],
            },
            "Failed",
            "invalid spec: spec.arguments.scope.value should be present in spec.arguments.scope.enum list",
        ),
    ],
)
async def test_invalid_specs_end_at_once(cluster: Cluster, spec: dict[str, Any], phase: str, message: str) -> None:
    """Accepted by the API, and failed by the controller without a node."""
    cluster.store.create(WORKFLOWS, {"metadata": {"name": "bad", "namespace": "foxhunt"}, "spec": spec})
    await cluster.clock.advance(0)
    status = cluster.workflow("bad")["status"]

    assert (status["phase"], status["message"]) == (phase, message)
    assert "nodes" not in status


async def test_the_template_is_read_once(cluster: Cluster) -> None:
    """A later edit of the template does not touch a running workflow; the workflow's own arguments win."""
    name = cluster.submit("run-1", epochs="5")
    await cluster.clock.advance(0)
    cluster.patch(WORKFLOW_TEMPLATES, "gpu-test-pipeline", lambda obj: obj["spec"].update(onExit=""))
    stored = cluster.workflow(name)["status"]["storedWorkflowTemplateSpec"]
    values = {one["name"]: one["value"] for one in stored["arguments"]["parameters"]}

    assert stored["onExit"] == "notify-result"
    assert (values["epochs"], values["models"]) == ("5", "dqn,ppo,tft")


async def test_conditions_and_outputs_between_tasks(cluster: Cluster) -> None:
    """`when` reads an output of a task before; depends can ask for a failure; steps run in groups."""
    templates = [
        {
            "name": "main",
            "dag": {
                "tasks": [
                    {"name": "look", "template": "look"},
                    {
                        "name": "yes",
                        "template": "say",
                        "dependencies": ["look"],
                        "when": "{{tasks.look.outputs.parameters.found}} == true",
                    },
                    {
                        "name": "no",
                        "template": "say",
                        "depends": "look",
                        "when": "{{tasks.look.outputs.parameters.found}} == false",
                    },
                    {"name": "rescue", "template": "say", "depends": "look.Failed || yes.Failed"},
                    {"name": "both", "template": "pair", "depends": "yes && (no.Skipped || no.Succeeded)"},
                ]
            },
        },
        {
            "name": "look",
            "container": {"image": "x"},
            "outputs": {"parameters": [{"name": "found", "valueFrom": {"path": "/f"}}]},
        },
        {"name": "say", "container": {"image": "x"}},
        {
            "name": "pair",
            "steps": [
                [{"name": "a", "template": "say"}, {"name": "b", "template": "say"}],
                [{"name": "c", "template": "say"}],
            ],
        },
    ]
    cluster.script("look", [Outputs({"found": "true\n"})])
    body = {
        "metadata": {"name": "flow", "namespace": "foxhunt"},
        "spec": {"entrypoint": "main", "templates": templates},
    }
    cluster.store.create(WORKFLOWS, body)
    await cluster.until_ended("flow")
    found = nodes(cluster, "flow")

    assert cluster.phase("flow") == "Succeeded"
    assert found["yes"]["phase"] == "Succeeded"
    assert (found["no"]["phase"], found["no"]["message"]) == ("Skipped", "when 'true == false' evaluated false")
    assert found["rescue"]["phase"] == "Omitted"
    assert (found["both"]["type"], found["[0]"]["type"], found["c"]["phase"]) == ("Steps", "StepGroup", "Succeeded")
    assert found["[0]"]["children"] == [found["a"]["id"], found["b"]["id"]]


async def test_retry_strategy_makes_attempts(cluster: Cluster) -> None:
    """A Retry node with an attempt for each try; its outcome is the last one's."""
    spec = {
        "entrypoint": "main",
        "templates": [{"name": "main", "retryStrategy": {"limit": "1"}, "container": {"image": "x"}}],
    }
    cluster.script("main", [Exit(3)])
    cluster.store.create(WORKFLOWS, {"metadata": {"name": "again", "namespace": "foxhunt"}, "spec": spec})
    await cluster.until_ended("again")
    found = nodes(cluster, "again")

    assert set(found) == {"again", "again(0)", "again(1)"}
    assert (found["again"]["type"], found["again"]["message"]) == ("Retry", "No more retries left")
    assert found["again(1)"]["nodeFlag"] == {"retried": True}


async def test_scripts_gates_and_live_lines(cluster: Cluster) -> None:
    """A pod plays its script: lines, a gate that a test opens, outputs, an exit code."""
    cluster.script("compile-and-test", [Log("compiling"), Wait(5), Gate("compiled"), Log("testing"), Exit(0)])
    name = cluster.submit("run-1")
    await cluster.until_running(name)
    await cluster.clock.advance(100)
    pod = cluster.pod(name)
    assert pod is not None

    assert cluster.kubelet.waiting_at("foxhunt", pod["metadata"]["name"]) == "compiled"
    assert [line for _, line in cluster.logs.lines(pod["metadata"]["uid"])] == ["compiling"]
    cluster.release("compiled")
    await cluster.until_ended(name)

    assert cluster.phase(name) == "Succeeded"


async def test_pods_played_over_http_finish_a_run(world: EmbeddedWorld, kube: Any) -> None:
    """A harness that writes pod status and task results itself brings a run to its end, as on a bare API server."""
    cluster = world.cluster
    cluster.manual()
    name = cluster.submit("run-1")
    await cluster.clock.advance(0)
    pods, results = (
        "/api/v1/namespaces/foxhunt/pods",
        "/apis/argoproj.io/v1alpha1/namespaces/foxhunt/workflowtaskresults",
    )

    async def play(template: str, output: str, value: str) -> None:
        pod = cluster.pod(name, template)
        assert pod is not None
        path = f"{pods}/{pod['metadata']['name']}"
        await kube("POST", f"{path}/binding", json={"target": {"kind": "Node", "name": "fake"}})
        running = [{"name": one, "state": {"running": {}}} for one in ("wait", "main")]
        await kube.patch(f"{path}/status", {"status": {"phase": "Running", "containerStatuses": running}})
        node = pod["metadata"]["annotations"][f"{PREFIX}/node-id"]
        meta = {"name": node, "labels": {f"{PREFIX}/workflow": name, f"{PREFIX}/report-outputs-completed": "false"}}
        what = {"apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowTaskResult"}
        await kube("POST", results, json={**what, "metadata": meta})
        if output:
            parameter = {"name": output, "globalName": output, "value": value}
            await kube.patch(f"{results}/{node}", {"outputs": {"parameters": [parameter]}})
        done = {f"{PREFIX}/report-outputs-completed": "true"}
        await kube.patch(f"{results}/{node}", {"metadata": {"labels": done}})
        ended = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": "2026-03-02T10:00:01Z"}}
        states = [{"name": one, "state": ended} for one in ("wait", "main")]
        await kube.patch(f"{path}/status", {"status": {"phase": "Succeeded", "containerStatuses": states}})
        await cluster.clock.advance(0)

    await play("gpu-warmup", "", "")
    await play("compile-and-test", "results", "{}")
    await play("notify-result", "said", "no")

    assert cluster.phase(name) == "Succeeded"
    assert {"name": "results", "value": "{}"} in cluster.workflow(name)["status"]["outputs"]["parameters"]
