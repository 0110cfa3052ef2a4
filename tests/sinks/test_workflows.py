"""Writes to Workflows, with everything that can get lost on the way."""

from __future__ import annotations

import base64
import gzip
import json

import pytest

from bot.clients.kube import Kube
from bot.core.effects import PatchWorkflow, SubmitWorkflow
from bot.core.events import EffectDone, EffectFailed, Trouble
from bot.core.memory import FINALIZER, Memory, Request, claim_patch, read_request, write
from bot.core.packed import read_workflow
from bot.core.workflow import Workflow
from bot.metrics import Metrics
from bot.sinks.workflows import WorkflowSink
from tests.clients.wire import Reply, wire
from tests.phrases import node, workflow_json
from tests.sinks.conftest import Sunk

WORKFLOWS = r"/workflows"


def submit(name: str = "gpu-test-k7m2", request_id: str = "r1") -> SubmitWorkflow:
    """A run that Anna asked for."""
    request = write(Request(name, request_id, "anna-id", "anna", "channel"))
    return SubmitWorkflow("e1", "foxhunt", name, "gpu-test-pipeline", {"models": "dqn", "epochs": "5"}, request, 30)


def names(sunk: Sunk) -> list[str]:
    return [w["metadata"]["name"] for w in sunk.world.cluster.workflows()]


async def test_a_run_is_born_with_our_finalizer_and_who_asked(sunk: Sunk) -> None:
    """Template reference, string parameters, priority, finalizer, request: all in the one create."""
    done = await sunk.workflows.submit(submit())

    assert isinstance(done, EffectDone)
    assert isinstance(done.value, Workflow)
    body = sunk.world.cluster.workflow("gpu-test-k7m2")
    assert [FINALIZER] == body["metadata"]["finalizers"]
    assert {"name": "gpu-test-pipeline"} == body["spec"]["workflowTemplateRef"]
    assert 30 == body["spec"]["priority"]
    request = read_request(done.value)
    assert request is not None
    assert "anna" == request.user_name


async def test_a_create_whose_answer_is_lost_is_found_by_its_name(sunk: Sunk) -> None:
    """The server committed, the connection broke: success, and one run."""
    sunk.world.kube_faults.drop_after_commit(method="POST", path=WORKFLOWS)

    done = await sunk.workflows.submit(submit())

    assert isinstance(done, EffectDone)
    assert ["gpu-test-k7m2"] == names(sunk)


async def test_a_create_that_never_arrived_may_be_tried_again(sunk: Sunk) -> None:
    """Dropped before the commit: nothing is there, and that is known."""
    sunk.world.kube_faults.drop(method="POST", path=WORKFLOWS)

    failed = await sunk.workflows.submit(submit())

    assert isinstance(failed, EffectFailed)
    assert failed.trouble is Trouble.BUSY
    assert [] == names(sunk)


async def test_the_same_request_twice_makes_one_run(sunk: Sunk) -> None:
    """409 with our own request id is success."""
    await sunk.workflows.submit(submit())

    again = await sunk.workflows.submit(submit())

    assert isinstance(again, EffectDone)
    assert 1 == len(names(sunk))


async def test_a_name_of_another_request_is_taken(sunk: Sunk) -> None:
    """409 with somebody else's request id asks for another name."""
    await sunk.workflows.submit(submit())

    other = await sunk.workflows.submit(submit(request_id="r2"))

    assert isinstance(other, EffectFailed)
    assert other.trouble is Trouble.EXISTS


async def test_forbidden_is_refused_with_the_servers_reason(sunk: Sunk) -> None:
    """403 is final, and its text goes to people."""
    sunk.world.kube_faults.fail(403, method="POST", path=WORKFLOWS)

    failed = await sunk.workflows.submit(submit())

    assert isinstance(failed, EffectFailed)
    assert failed.trouble is Trouble.REFUSED


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_a_broken_server_and_no_object_is_busy(sunk: Sunk, status: int) -> None:
    """After a 5xx the object is looked for; it is not there, so the create can be repeated."""
    sunk.world.kube_faults.fail(status, method="POST", path=WORKFLOWS, body="<html>Bad Gateway</html>")

    failed = await sunk.workflows.submit(submit())

    assert isinstance(failed, EffectFailed)
    assert failed.trouble is Trouble.BUSY
    assert "<html>" not in failed.reason


async def test_too_many_requests_waits_as_long_as_it_is_told(sunk: Sunk) -> None:
    """429: nothing was done, and Retry-After counts."""
    sunk.world.kube_faults.fail(429, method="POST", path=WORKFLOWS, retry_after=7)

    failed = await sunk.workflows.submit(submit())

    assert isinstance(failed, EffectFailed)
    assert (Trouble.BUSY, 7.0) == (failed.trouble, failed.retry_after)


def claim(sunk: Sunk) -> PatchWorkflow:
    """The claim of a run that is there."""
    workflow = read_workflow(json.dumps(sunk.world.cluster.workflow("by-hand")).encode())
    memory = Memory(workflow.metadata.uid, "by-hand", "channel", 1.0)
    return PatchWorkflow("e1", "foxhunt", "by-hand", claim_patch(workflow, memory), "claim")


async def test_a_claim_adds_finalizer_and_memory(sunk: Sunk) -> None:
    """One patch for both; the answer is the object as it is then."""
    sunk.world.cluster.argo_down()
    sunk.world.cluster.submit("by-hand")

    done = await sunk.workflows.patch(claim(sunk))

    assert isinstance(done, EffectDone)
    assert [FINALIZER] == sunk.world.cluster.workflow("by-hand")["metadata"]["finalizers"]


async def test_the_answer_to_a_patch_has_its_nodes_unpacked() -> None:
    """Read packed, a run that passed would be one of which nothing is known."""
    body = workflow_json(phase="Succeeded", nodes=[node("compile-and-test", "Succeeded")])
    nodes = json.dumps(body["status"].pop("nodes")).encode()
    body["status"]["compressedNodes"] = base64.b64encode(gzip.compress(nodes)).decode()
    async with wire(Reply(chunks=[json.dumps(body).encode()])) as script:
        kube = await Kube.connect(Metrics(), url=script.url, token="t")
        try:
            done = await WorkflowSink(kube).patch(PatchWorkflow("e1", "foxhunt", "gpu-test-k7m2", [], "claim"))
        finally:
            await kube.close()

    assert isinstance(done, EffectDone)
    assert isinstance(done.value, Workflow)
    assert ["compile-and-test"] == [each.template for each in done.value.nodes.values()]


async def test_a_lost_race_brings_the_object_as_it_is(sunk: Sunk) -> None:
    """The second of two equal claims fails its test; the latest state comes with the failure."""
    sunk.world.cluster.argo_down()
    sunk.world.cluster.submit("by-hand")
    first, second = claim(sunk), claim(sunk)
    await sunk.workflows.patch(first)

    failed = await sunk.workflows.patch(second)

    assert isinstance(failed, EffectFailed)
    assert failed.trouble is Trouble.CONFLICT
    assert isinstance(failed.latest, Workflow)
    assert [FINALIZER] == failed.latest.finalizers


async def test_a_patch_whose_answer_is_lost_ends_in_what_is_there(sunk: Sunk) -> None:
    """The core sees the committed state and goes on from it."""
    sunk.world.cluster.argo_down()
    sunk.world.cluster.submit("by-hand")
    sunk.world.kube_faults.drop_after_commit(method="PATCH", path=WORKFLOWS)

    failed = await sunk.workflows.patch(claim(sunk))

    assert isinstance(failed, EffectFailed)
    assert failed.trouble is Trouble.CONFLICT
    assert isinstance(failed.latest, Workflow)
    assert [FINALIZER] == failed.latest.finalizers


async def test_a_patch_on_what_is_gone_says_so(sunk: Sunk) -> None:
    """404: there is nothing to write to."""
    sunk.world.cluster.argo_down()
    sunk.world.cluster.submit("by-hand")
    effect = claim(sunk)
    sunk.world.cluster.delete("by-hand")

    failed = await sunk.workflows.patch(effect)

    assert isinstance(failed, EffectFailed)
    assert failed.trouble is Trouble.GONE
