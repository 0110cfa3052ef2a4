"""Argo: locks, being stopped, running out of time, being cleaned away, and living again."""

from __future__ import annotations

from tests.contract.runs import PODS, RESULT, WORKFLOWS, Runs, dag, node, phase, pod_template, spec_of
from tests.contract.wire import Json
from tests.real.rig.pod_script import Exit, Hang, Orphaned, Outputs, Pending, Running, Wait

PREFIX = "workflows.argoproj.io"


def locked(name: str, **fields: object) -> Json:
    """A workflow that wants a mutex."""
    return spec_of(dag("work"), pod_template("work"), synchronization={"mutexes": [{"name": name}]}, **fields)


# locks


async def test_waiting_for_a_lock(runs: Runs) -> None:
    """The second one is Pending and says for what it waits and who has it; it starts when the first has ended."""
    first, second = f"{runs.name}-a", f"{runs.name}-b"
    runs.script("work", Running(), Wait("lock"), Exit(0), run=first)
    await runs.submit(locked(runs.name), first)
    holding = await runs.running(name=first)
    await runs.submit(locked(runs.name), second)
    waiting = await runs.until(lambda seen: seen.get("status", {}).get("message"), second)
    await runs.player.release("lock")
    await runs.ended(first)
    done = await runs.ended(second)

    lock = f"foxhunt/Mutex/{runs.name}"
    assert phase(waiting) == "Pending"
    assert waiting["status"]["message"] == f"Waiting for {lock} lock. Lock status: 0/1"
    assert waiting["status"]["synchronization"] == {
        "mutex": {"waiting": [{"mutex": lock, "holder": f"foxhunt/{first}"}]}
    }
    assert not waiting["status"].get("nodes")
    assert waiting["status"]["startedAt"] is None
    assert holding["status"]["synchronization"]["mutex"]["holding"][0]["mutex"] == lock
    assert (phase(done), "message" in done["status"]) == ("Succeeded", False)
    assert done["status"]["startedAt"]


async def test_the_higher_priority_goes_first(runs: Runs) -> None:
    """Of those who wait the one with the higher priority gets the lock, whoever came first."""
    runs.player.script("work", [Running(), Wait("priority"), Exit(0)], f"{runs.name}-a")
    await runs.submit(locked(runs.name), f"{runs.name}-a")
    await runs.running(name=f"{runs.name}-a")
    for suffix, priority in (("low", 1), ("high", 5)):
        runs.script("work", Running(), Wait(f"priority {suffix}"), Exit(0), run=f"{runs.name}-{suffix}")
        await runs.submit(locked(runs.name, priority=priority), f"{runs.name}-{suffix}")
        await runs.until(lambda seen: phase(seen) == "Pending", f"{runs.name}-{suffix}")
    await runs.player.release("priority")
    await runs.running(name=f"{runs.name}-high")
    low = await runs.get(f"{runs.name}-low")
    for suffix in ("high", "low"):
        await runs.player.release(f"priority {suffix}")
        await runs.ended(f"{runs.name}-{suffix}")

    assert phase(low) == "Pending"


async def test_ended_in_the_queue(runs: Runs) -> None:
    """Terminated while it waits for a lock: the workflow is Succeeded though its step, which never ran, is Failed."""
    first, second = f"{runs.name}-a", f"{runs.name}-b"
    runs.script("work", Running(), Wait("queue"), Exit(0), run=first)
    await runs.submit(locked(runs.name), first)
    await runs.running(name=first)
    await runs.submit(locked(runs.name), second)
    await runs.until(lambda seen: phase(seen) == "Pending", second)
    await runs.shut_down("Terminate", second)
    ended = await runs.ended(second)
    await runs.player.release("queue")
    await runs.ended(first)

    assert phase(ended) == "Succeeded"
    assert "message" not in ended["status"]
    assert node(ended, second)["phase"] == "Failed"
    assert node(ended, "work")["message"] == "workflow shutdown with strategy: Terminate"
    assert await runs.pods(second) == []


async def test_stopped_in_the_queue(runs: Runs) -> None:
    """Stop does not reach a workflow that waits for a lock: it keeps its place, and fails when its turn comes."""
    first, second = f"{runs.name}-a", f"{runs.name}-b"
    runs.script("work", Running(), Wait("stop queue"), Exit(0), run=first)
    await runs.submit(locked(runs.name), first)
    await runs.running(name=first)
    await runs.submit(locked(runs.name), second)
    await runs.until(lambda seen: phase(seen) == "Pending", second)
    await runs.shut_down("Stop", second)
    waiting = await runs.until(lambda seen: seen["spec"].get("shutdown"), second)
    await runs.player.release("stop queue")
    ended = await runs.ended(second)

    assert phase(waiting) == "Pending"
    assert (phase(ended), ended["status"]["message"]) == ("Failed", "Stopped with strategy 'Stop'")


async def test_retried_and_back_in_the_queue(runs: Runs) -> None:
    """A retried workflow that waits for its lock is Running to 3.7, and nothing ends it before its turn comes.

    4.0 calls it Pending, and lets it be terminated, as one that was never tried before.
    """
    first, second = f"{runs.name}-a", f"{runs.name}-b"
    runs.script("work", Running(), Exit(1), run=second)
    await runs.submit(locked(runs.name), second)
    await runs.ended(second)
    runs.script("work", Running(), Wait("retried queue"), Exit(0), run=first)
    await runs.submit(locked(runs.name), first)
    await runs.running(name=first)
    await runs.pass_time(1.1)
    await runs.servers.argo_retry(second)
    waits = await runs.until(lambda seen: "lock" in seen["status"].get("message", ""), second)
    await runs.shut_down("Terminate", second)
    await runs.pass_time(2.0)
    told = await runs.get(second)
    await runs.player.release("retried queue")
    await runs.ended(first)
    ended = await runs.ended(second)

    assert waits["status"]["synchronization"]["mutex"]["waiting"][0]["holder"].endswith(first)
    assert (phase(waits), phase(told)) == (("Pending", "Succeeded") if runs.is_40 else ("Running", "Running"))
    assert phase(ended) == ("Succeeded" if runs.is_40 else "Failed")


async def test_a_controller_that_is_started_anew(runs: Runs) -> None:
    """What runs goes on, what holds a lock holds it still, and who waits for it gets it after that."""
    first, second = f"{runs.name}-a", f"{runs.name}-b"
    runs.script("work", Running(), Wait("anew"), Exit(0), run=first)
    await runs.submit(locked(runs.name), first)
    await runs.running(name=first)
    await runs.submit(locked(runs.name), second)
    await runs.until(lambda seen: phase(seen) == "Pending", second)
    await runs.servers.restart("workflow-controller")
    await runs.pass_time(1.0)
    held, waiting = await runs.get(first), await runs.get(second)
    await runs.player.release("anew")
    ended = await runs.ended(first)

    assert (phase(held), phase(waiting)) == ("Running", "Pending")
    assert (phase(ended), phase(await runs.ended(second))) == ("Succeeded", "Succeeded")


async def test_what_happens_while_the_controller_is_away(runs: Runs) -> None:
    """It is seen when it is back: a pod that ended meanwhile, and a workflow that was made."""
    other = f"{runs.name}-new"
    runs.script("work", Running(), Wait("away"), Exit(0))
    runs.script("work", Running(), Exit(0), run=other)
    await runs.submit(spec_of(dag("work"), pod_template("work")))
    await runs.running()
    await runs.servers.stop("workflow-controller")
    await runs.player.release("away")
    await runs.submit(spec_of(dag("work"), pod_template("work")), other)
    await runs.pass_time(1.0)
    untouched, unseen = await runs.get(), await runs.get(other)
    await runs.servers.start_again("workflow-controller")

    assert (phase(untouched), phase(unseen)) == ("Running", "")
    assert (phase(await runs.ended()), phase(await runs.ended(other))) == ("Succeeded", "Succeeded")


# being lost


async def test_a_pod_that_failed_without_an_end(runs: Runs) -> None:
    """Its node is gone, and nobody says how its containers ended: 3.7 takes that for a success, 4.0 does not."""
    runs.script("work", Running(announced=False), Orphaned())
    await runs.submit(spec_of(dag("work"), pod_template("work")))
    done = await runs.ended()
    because = "pod failed: neither main nor wait container completed successfully"
    says = ("Failed", because) if runs.is_40 else ("Succeeded", None)

    assert (node(done, "work")["phase"], node(done, "work").get("message")) == says
    assert phase(done) == says[0]


# being stopped


async def test_stop(runs: Runs) -> None:
    """The running step is ended by a signal, the exit handler still runs, and the workflow says how it ended.

    The step says one of three, by what the controller saw first: that it was shut down, how its program ended, or (one
    time in a hundred) that its pod is gone.
    """
    runs.script("work", Running(), Hang())
    runs.script("bye", Running(), Exit(0))
    await runs.submit(spec_of(dag("work"), pod_template("work", outputs=RESULT), pod_template("bye"), onExit="bye"))
    await runs.running()
    await runs.shut_down("Stop")
    done = await runs.ended()

    assert (phase(done), done["status"]["message"]) == ("Failed", "Stopped with strategy 'Stop'")
    work = node(done, "work")
    assert (work["phase"], work["message"]) in {
        ("Failed", "main: Error (exit code 143)"),
        ("Failed", "workflow shutdown with strategy:  Stop"),
        ("Error", "pod deleted"),
    }
    assert node(done, f"{runs.name}.onExit")["phase"] == "Succeeded"


async def test_terminate(runs: Runs) -> None:
    """The exit handler does not run."""
    runs.script("work", Running(), Hang())
    await runs.submit(spec_of(dag("work"), pod_template("work"), pod_template("bye"), onExit="bye"))
    await runs.running()
    await runs.shut_down("Terminate")
    done = await runs.ended()

    assert (phase(done), done["status"]["message"]) == ("Failed", "Stopped with strategy 'Terminate'")
    assert node(done, f"{runs.name}.onExit") == {}


async def test_stop_before_a_node_was_found(runs: Runs) -> None:
    """A pod that is pending is deleted, and its node says that the workflow was shut down (with two spaces)."""
    await runs.one(None, Pending("0/1 nodes are available"), Wait("never"))
    await runs.until(lambda seen: node(seen, "work").get("message"))
    await runs.shut_down("Stop")
    done = await runs.ended()

    assert phase(done) == "Failed"
    assert node(done, "work")["message"] == "workflow shutdown with strategy:  Stop"

    async def gone() -> bool:
        return await runs.pods() == []

    await runs.eventually(gone)


async def test_stop_between_two_steps(runs: Runs) -> None:
    """What was not started yet has no node."""
    after = {"name": "after", "template": "work", "depends": "work"}
    runs.script("work", Running(), Hang())
    await runs.submit(spec_of(dag("work", after), pod_template("work")))
    await runs.running()
    await runs.shut_down("Stop")
    done = await runs.ended()

    assert phase(done) == "Failed"
    assert node(done, "after").get("phase") in {None, "Omitted"}


# running out of time


async def test_the_time_of_the_workflow(runs: Runs) -> None:
    """activeDeadlineSeconds is handed on to the pods, so the kubelet ends the running step; the exit handler is free."""
    runs.script("work", Running(), Hang())
    runs.script("bye", Running(), Exit(0))
    await runs.submit(
        spec_of(dag("work"), pod_template("work"), pod_template("bye"), onExit="bye", activeDeadlineSeconds=2)
    )
    await runs.running()
    done = await runs.ended()
    limits = {
        pod["metadata"]["name"].split("-")[2]: pod["spec"].get("activeDeadlineSeconds") for pod in await runs.pods()
    }

    assert phase(done) == "Failed"
    assert node(done, "work")["phase"] == "Failed"
    assert node(done, "work")["message"] == "Pod was active on the node longer than the specified deadline"
    assert node(done, f"{runs.name}.onExit")["phase"] == "Succeeded"
    assert "message" not in done["status"]
    assert limits == {"work": 1, "bye": None}


async def test_the_time_of_the_workflow_while_it_waits(runs: Runs) -> None:
    """A step that still waits for a node is not ended by the deadline, but by the first event after it.

    The controller asks to look again at the deadline, and forgets it as soon as anything else happens.
    """
    await runs.one(None, Pending("0/1 nodes are available"), Wait("never"), activeDeadlineSeconds=2)
    await runs.until(lambda seen: node(seen, "work").get("message"))
    await runs.pass_time(3.5)
    late = await runs.get()
    await runs.touch()
    done = await runs.ended()

    assert (phase(late), node(late, "work")["phase"]) == ("Running", "Pending")
    assert (phase(done), node(done, "work")["phase"]) == ("Failed", "Failed")
    assert node(done, "work")["message"] == "Step exceeded its deadline"


async def test_the_time_of_a_template(runs: Runs) -> None:
    """`timeout` is handed on to the pod; while it waits for a node, only the first event after it ends the step."""
    template = pod_template("work", timeout="3s")
    await runs.one(template, Pending("0/1 nodes are available"), Wait("never"))
    await runs.until(lambda seen: node(seen, "work").get("message"))
    await runs.pass_time(4.5)
    late, (pod,) = await runs.get(), await runs.pods()
    await runs.touch()
    done = await runs.ended()

    assert phase(late) == "Running"
    assert pod["spec"]["activeDeadlineSeconds"] == 2
    assert (phase(done), node(done, "work")["phase"]) == ("Failed", "Failed")
    assert node(done, "work")["message"] == "timeout"


async def test_too_little_time_for_a_template(runs: Runs) -> None:
    """A timeout of two seconds is none: the step is an Error before it has a pod."""
    await runs.one(pod_template("work", timeout="2s"))
    done = await runs.ended()

    assert (phase(done), node(done, "work")["phase"]) == ("Error", "Error")
    assert node(done, "work")["message"] == f"task '{runs.name}.work' errored: {runs.name}.work exceeded its deadline"
    assert await runs.pods() == []


async def test_the_time_of_a_pod(runs: Runs) -> None:
    """A template's activeDeadlineSeconds is the pod's: the kubelet ends it, and its words are the node's."""
    template = pod_template("work", activeDeadlineSeconds=1)
    await runs.one(template, Running(), Hang())
    done = await runs.ended()
    pods = await runs.pods()

    assert pods[0]["spec"]["activeDeadlineSeconds"] == 1
    assert phase(done) == "Failed"
    assert node(done, "work")["message"] == "Pod was active on the node longer than the specified deadline"


# being cleaned away


async def test_the_time_to_live(runs: Runs) -> None:
    """After secondsAfterCompletion the workflow is deleted; a finalizer holds it, marked, until it is taken off."""
    runs.script("work", Running(), Exit(0))
    spec = spec_of(dag("work"), pod_template("work"), ttlStrategy={"secondsAfterCompletion": 1})
    await runs.submit(spec, finalizers=["case/held"])
    await runs.ended()
    held = await runs.until(lambda seen: seen["metadata"].get("deletionTimestamp"))
    await runs.client.merge(f"{WORKFLOWS}/{runs.name}", {"metadata": {"finalizers": None}})
    await runs.until_gone()

    assert held["metadata"]["finalizers"] == ["case/held"]
    assert phase(held) == "Succeeded"


async def test_a_workflow_that_is_deleted_while_it_runs(runs: Runs) -> None:
    """Held by a finalizer it goes on to its end, deleted or not; with shutdown it ends at once."""
    runs.script("work", Running(), Hang())
    await runs.submit(spec_of(dag("work"), pod_template("work")), finalizers=["case/held"])
    await runs.running()
    await runs.client.delete(f"{WORKFLOWS}/{runs.name}")
    marked = await runs.until(lambda seen: seen["metadata"].get("deletionTimestamp"))
    await runs.shut_down("Terminate")
    done = await runs.ended()
    await runs.client.merge(f"{WORKFLOWS}/{runs.name}", {"metadata": {"finalizers": None}})
    await runs.until_gone()

    assert phase(marked) == "Running"
    assert phase(done) == "Failed"


async def test_pods_are_cleaned_away(runs: Runs) -> None:
    """With podGC OnPodCompletion a pod is deleted some seconds after its end; the nodes know all about it still."""
    template = pod_template("work", outputs=RESULT)
    runs.script("work", Running(), Outputs({"results": "kept"}), Exit(0))
    await runs.submit(spec_of(dag("work"), template, podGC={"strategy": "OnPodCompletion"}))
    done = await runs.ended()
    mine = f"{runs.name}-work-"
    await runs.client.until(
        PODS, lambda listed: all(not pod["metadata"]["name"].startswith(mine) for pod in listed["items"])
    )

    assert node(done, "work")["outputs"]["parameters"][0]["value"] == "kept"


# living again


async def test_retry(runs: Runs) -> None:
    """`argo retry` makes the same object live again: a new start, the failed step anew, what succeeded is kept."""
    after = {"name": "after", "template": "after", "depends": "work"}
    runs.script("work", Running(), Exit(0))
    runs.script("after", Running(), Exit(1))
    templates = (dag("work", after), pod_template("work"), pod_template("after"))
    await runs.submit(spec_of(*templates), annotations={"case/note": "mine"})
    failed = await runs.ended()
    await runs.pass_time(1.1)  # startedAt has whole seconds
    runs.script("after", Running(), Wait("retried"), Exit(0))
    again = await runs.servers.argo_retry(runs.name)
    running = await runs.until(lambda seen: node(seen, "after").get("phase") == "Running")
    await runs.player.release("retried")
    done = await runs.ended()

    assert again["metadata"]["uid"] == failed["metadata"]["uid"]
    assert again["metadata"]["labels"].get(f"{PREFIX}/completed") in {None, "false"}
    assert running["metadata"]["labels"][f"{PREFIX}/phase"] == "Running"
    assert running["metadata"]["annotations"]["case/note"] == "mine"
    assert running["status"]["startedAt"] > failed["status"]["startedAt"]
    assert running["status"]["finishedAt"] is None
    assert node(running, "work")["finishedAt"] == node(failed, "work")["finishedAt"]
    assert node(running, "after")["id"] == node(failed, "after")["id"]
    assert phase(done) == "Succeeded"


async def test_retry_after_a_stop(runs: Runs) -> None:
    """The shutdown is taken back, and the exit handler runs anew."""
    runs.script("work", Running(), Hang())
    runs.script("bye", Running(), Exit(0))
    await runs.submit(spec_of(dag("work"), pod_template("work"), pod_template("bye"), onExit="bye"))
    await runs.running()
    await runs.shut_down("Stop")
    await runs.ended()
    runs.script("work", Running(), Exit(0))
    again = await runs.servers.argo_retry(runs.name)
    done = await runs.until(lambda seen: phase(seen) == "Succeeded")

    assert not again["spec"].get("shutdown")
    assert node(again, f"{runs.name}.onExit") == {}
    assert node(done, f"{runs.name}.onExit")["phase"] == "Succeeded"
    assert "message" not in done["status"]


async def test_resubmit(runs: Runs) -> None:
    """`argo resubmit` makes another workflow of the same spec, which says what it is from; our annotations come along."""
    runs.script("work", Running(), Exit(1))
    meta = {"annotations": {"case/note": "mine"}, "labels": {"case/label": "x"}, "finalizers": ["case/held"]}
    await runs.submit(spec_of(dag("work"), pod_template("work")), **meta)
    old = await runs.ended()
    runs.player.script("work", [Running(), Exit(0)])
    new = await runs.servers.argo_resubmit(runs.name)
    done = await runs.ended(new["metadata"]["name"])
    await runs.client.merge(f"{WORKFLOWS}/{runs.name}", {"metadata": {"finalizers": None}})

    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert new["metadata"]["name"].startswith(f"{runs.name}-")
    assert new["metadata"]["labels"][f"{PREFIX}/resubmitted-from-workflow"] == runs.name
    assert new["metadata"]["labels"]["case/label"] == "x"
    assert f"{PREFIX}/completed" not in new["metadata"]["labels"]
    assert new["metadata"]["annotations"]["case/note"] == "mine"
    assert not new["metadata"].get("finalizers")
    assert phase(done) == "Succeeded"
