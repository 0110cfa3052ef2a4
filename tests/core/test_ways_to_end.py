"""Every way to end, as the core sees it: what is called what, what is said of it, and when not to ring."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.core.attempt import Reach, cause_of, exit_step_said
from bot.core.card import Stage, card_of
from bot.core.causes import in_plain_words
from bot.core.effects import EditCard, ExitPost, PatchWorkflow, SayInThread
from bot.core.events import EffectFailed, Trouble, WorkflowChanged, WorkflowDeleted
from bot.core.memory import RUN_ANNOTATION, Ended, Memory, read_memory, write
from bot.core.render.answers import ended_line
from bot.core.render.card import render_card
from bot.core.render.thread import summary
from bot.core.state import EndedRun
from bot.core.verdict import ModelStatus, Verdict, judge
from bot.core.workflow import Workflow
from tests.core.playbook import Playbook
from tests.phrases import NOW, SETTINGS, ended, green, node, outputs, results, suite, workflow, workflow_json

UNPLACED = "Unschedulable: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
NOT_CREATED = "workflow shutdown with strategy: Terminate"
OMITTED = node("compile-and-test", "Omitted", type="Skipped", message="omitted: depends condition not met")


def failed(*nodes: dict[str, Any], phase: str = "Failed", **more: Any) -> Workflow:
    """A run that ended with these nodes."""
    return workflow(phase=phase, nodes=list(nodes), **more)


def end_of_tests(phase: str, message: str, text: str | None = None, code: str = "1", **more: Any) -> dict[str, Any]:
    """The test step's node as it ended."""
    found = outputs(text, code) if text is not None else {"exitCode": code}
    return node("compile-and-test", phase, message=message, outputs=found, **more)


def exit_node(said: str | None) -> dict[str, Any]:
    """The exit step's node, with what it said that it said."""
    parameters = [] if said is None else [{"name": "said", "value": said}]
    return node("notify-result", "Succeeded", display_name="run.onExit", outputs={"parameters": parameters})


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("main: OOMKilled (exit code 137)", "the test pod ran out of memory (OOMKilled, exit code 137)"),
        ("OOMKilled (exit code 137)", "the test pod ran out of memory (OOMKilled, exit code 137)"),
        ("main: Error (exit code 143)", "the test pod was ended from outside (exit code 143)"),
        ("main: Error (exit code 137)", "the test pod was killed (exit code 137)"),
        ("main: Error (exit code 3): out of luck", "the test pod ended with exit code 3: out of luck"),
        ("pod deleted", "the test pod is gone: its node was lost, or somebody deleted it"),
        (
            "pod failed: neither main nor wait container completed successfully",
            "the test pod failed without a word on how its containers ended: its node was lost, most likely",
        ),
        ("The node was low on resource: memory.", "the test pod: The node was low on resource: memory."),
    ],
)
def test_argos_words_on_a_pod_become_ours(message: str, words: str) -> None:
    """What the kubelet and Argo write of containers is said in plain words, with the code that people look for."""
    assert words == in_plain_words("the test pod", message)


def test_out_of_memory_names_what_was_reached_and_is_no_pass() -> None:
    """The results break off: a model whose suites are all listed and green is green, the run has no verdict."""
    begun = results([suite("dqn"), suite("ppo", status="unknown")], complete=False)

    outcome = judge(failed(end_of_tests("Failed", "main: OOMKilled (exit code 137)", begun, "137")), SETTINGS)

    assert Verdict.UNKNOWN == outcome.verdict
    assert "ran out of memory" in outcome.reason
    assert ["dqn"] == [m.name for m in outcome.of(ModelStatus.PASSED)]


def test_a_document_without_its_plan_calls_nothing_green() -> None:
    """Where models are asked for of which no suite is listed, more suites of the others may be missing, too."""
    begun = results([suite("dqn")], models=["dqn", "ppo"], complete=False)

    outcome = judge(failed(end_of_tests("Failed", "main: OOMKilled (exit code 137)", begun, "137")), SETTINGS)

    assert () == outcome.of(ModelStatus.PASSED)


def test_a_pod_that_is_gone_is_named() -> None:
    """Argo says Error, `pod deleted`."""
    outcome = judge(failed(node("compile-and-test", "Error", message="pod deleted"), phase="Error"), SETTINGS)

    assert (Verdict.UNKNOWN, Reach.TESTS) == (outcome.verdict, outcome.reach)
    assert "the test pod is gone: its node was lost, or somebody deleted it; no results came" == outcome.reason


def test_succeeded_without_results_is_no_pass() -> None:
    """A 3.7.3 controller calls a lost pod Succeeded."""
    outcome = judge(failed(node("compile-and-test", "Succeeded"), phase="Succeeded"), SETTINGS)

    assert (Verdict.UNKNOWN, "Argo says Succeeded, but no results came") == (outcome.verdict, outcome.reason)


@pytest.mark.parametrize(
    "warmup",
    [
        node("gpu-warmup", "Pending", message=UNPLACED),  # what 3.7.3 leaves behind after its timeout
        node("gpu-warmup", "Failed", message="timeout"),
        node("gpu-warmup", "Failed", message="Step exceeded its deadline"),
    ],
)
def test_a_run_that_was_given_up_without_a_node_never_got_a_gpu(warmup: dict[str, Any]) -> None:
    """A verdict of its own, said without a word about models."""
    run = failed(warmup, OMITTED)
    card = card_of(run, SETTINGS)
    post = render_card(card, SETTINGS)

    assert card.outcome is not None
    assert (Verdict.NO_GPU, Reach.WARM_UP) == (card.outcome.verdict, card.outcome.reach)
    assert post.message.startswith("💤 **k7m2 never got an H100**")
    assert "No test ran." in post.text
    assert ("No GPU is free" in post.text) is (warmup["phase"] == "Pending")
    assert "💤 k7m2 never got an H100, so no test ran" == summary(card)


def test_a_pod_that_had_a_node_did_get_its_gpu() -> None:
    """An image that does not come in time is no missing GPU."""
    pulling = node("gpu-warmup", "Pending", message="ImagePullBackOff: Back-off pulling image", hostNodeName="gpu-1")

    assert Verdict.UNKNOWN == judge(failed(pulling, OMITTED), SETTINGS).verdict


def test_a_test_pod_that_still_waits_at_the_end_never_got_a_gpu() -> None:
    """Somebody else took the node between warm-up and tests."""
    run = failed(node("gpu-warmup", "Succeeded", hostNodeName="gpu-1"), node("compile-and-test", "Pending"))

    assert Verdict.NO_GPU == judge(run, SETTINGS).verdict


def test_a_warm_up_that_fails_is_named_and_no_test_ran() -> None:
    """While the exit step runs and afterwards."""
    broken = node("gpu-warmup", "Failed", message="main: Error (exit code 1): no driver")
    before = render_card(card_of(failed(broken, OMITTED, phase="Running"), SETTINGS), SETTINGS)
    after = render_card(card_of(failed(broken, OMITTED), SETTINGS), SETTINGS)

    assert "The warm-up pod ended with exit code 1: no driver; no test ran" in before.text
    assert "No test ran." in after.text
    assert "The warm-up pod ended with exit code 1: no driver" in after.text
    assert "results are being reported" not in before.text


def test_without_a_cause_argos_phase_is_named() -> None:
    """No node, no message."""
    assert "Argo says Error, but no test ran" == judge(failed(phase="Error"), SETTINGS).reason
    assert (
        "Argo says Error: no such template" == judge(failed(phase="Error", message="no such template"), SETTINGS).reason
    )


def test_a_step_of_another_name_is_named_by_it() -> None:
    """A template may have more steps than ours."""
    other = node("fetch-data", "Failed", message="main: Error (exit code 2)")

    assert "the step fetch-data ended with exit code 2" == cause_of(failed(other), SETTINGS)


def test_the_deadline_in_the_middle_of_a_suite_is_out_of_time() -> None:
    """The runner calls the suite that ran killed; stopped by us it is no failure of the model."""
    stopped = results(
        [suite("dqn"), suite("ppo", status="killed", exit_code=None, reason="the run was stopped")], complete=False
    )
    late = end_of_tests("Failed", "Step exceeded its deadline", stopped, "143")

    outcome = judge(failed(late), SETTINGS)

    assert Verdict.TIMED_OUT == outcome.verdict
    assert () == outcome.of(ModelStatus.FAILED)
    assert ["ppo"] == [m.name for m in outcome.models if m.name == "ppo" and m.status is ModelStatus.UNKNOWN]


@pytest.mark.parametrize(
    ("spec", "stored", "verdict"),
    [
        ({"activeDeadlineSeconds": 2160}, {}, Verdict.TIMED_OUT),
        ({}, {"activeDeadlineSeconds": 2160}, Verdict.TIMED_OUT),
        ({"activeDeadlineSeconds": 9}, {"activeDeadlineSeconds": 2161}, Verdict.UNKNOWN),
        ({}, {}, Verdict.UNKNOWN),
    ],
)
def test_a_pod_that_ended_by_itself_at_the_deadline_is_out_of_time(
    spec: dict[str, Any], stored: dict[str, Any], verdict: Verdict
) -> None:
    """Its own text has replaced Argo's: then the length of the run tells. It lasted 36 minutes."""
    late = end_of_tests("Failed", "main: Error (exit code 143)", code="143")

    assert verdict == judge(failed(late, spec=spec, storedWorkflowTemplateSpec=stored), SETTINGS).verdict


def test_a_suite_that_was_killed_by_a_signal_is_red() -> None:
    """SIGSEGV in a test binary has an exit code of its own."""
    text = results([suite("dqn", status="killed", exit_code=139)])

    assert Verdict.FAILED == judge(ended(text, "Failed", "1"), SETTINGS).verdict


def test_red_and_out_of_time_is_red_and_says_why_it_is_short() -> None:
    """What failed before the deadline has failed."""
    text = results([suite("dqn", status="failed"), suite("ppo", status="unknown")], complete=False)
    late = end_of_tests("Failed", "Step exceeded its deadline", text, "143")

    outcome = judge(failed(late), SETTINGS)

    assert (Verdict.FAILED, "the run ended before all suites ran: out of time") == (outcome.verdict, outcome.reason)


@pytest.mark.parametrize(
    ("suites", "complete", "code", "message", "verdict"),
    [
        ([suite("dqn", status="broken")], True, "1", "main: Error (exit code 1)", Verdict.BROKEN),
        ([suite("dqn", status="broken"), suite("ppo")], True, "1", "main: Error (exit code 1)", Verdict.FAILED),
        ([suite("dqn", status="unknown")], False, "143", "main: Error (exit code 143)", Verdict.UNKNOWN),
        ([suite("dqn", status="unknown")], False, "143", "Step exceeded its deadline", Verdict.TIMED_OUT),
    ],
)
def test_it_did_not_build_only_where_nothing_ran_and_nobody_stopped_it(
    suites: list[dict[str, Any]], complete: bool, code: str, message: str, verdict: Verdict
) -> None:
    """The runner tests what builds beside what does not, and a build that is stopped has not failed."""
    build = {"status": "failed", "seconds": 1.0, "errors": [{"kind": "compile", "message": "the run was stopped"}]}
    text = results(suites, build=build, complete=complete)

    assert verdict == judge(failed(end_of_tests("Failed", message, text, code)), SETTINGS).verdict


def test_terminated_in_the_queue_is_cancelled_and_nothing_ran() -> None:
    """Argo calls it Succeeded, with nodes whose pods were never made."""
    run = failed(
        node("gpu-warmup", "Failed", message=NOT_CREATED), OMITTED, phase="Succeeded", spec={"shutdown": "Terminate"}
    )
    card = card_of(run, SETTINGS)

    assert card.outcome is not None
    assert (Verdict.CANCELLED, Reach.QUEUE) == (card.outcome.verdict, card.outcome.reach)
    assert render_card(card, SETTINGS).text.startswith("Nothing ran: stopped while it waited in the queue for ")
    assert "🚫 k7m2 cancelled before any test ran" == summary(card)


def test_deleted_in_the_queue_is_one_line_and_tells_how_long_it_waited() -> None:
    """From when it was made: Argo calls it started only when it looks at it."""
    created, deleted = "2026-03-02T09:44:00Z", "2026-03-02T09:56:00Z"
    meta = {"creationTimestamp": created, "deletionTimestamp": deleted, "annotations": {}}
    card = card_of(workflow(phase="Pending", meta=meta), SETTINGS, deleted=True)
    unknown = card_of(workflow(phase="Pending", meta=meta | {"creationTimestamp": None}), SETTINGS, deleted=True)

    post = render_card(replace(card, notes=()), SETTINGS)
    first, *foot = post.text.split("  \n")
    assert "Nothing ran: deleted while it waited in the queue for 12 min, until 09:56 UTC" == first
    assert 1 == len(foot)
    assert post.message.startswith("🚫 **k7m2 cancelled** · all models, ")
    assert "Nothing ran: deleted while it waited in the queue, until" in render_card(unknown, SETTINGS).text
    assert "in the queue  \n" in render_card(replace(card, seconds=None, since=None), SETTINGS).text


def test_a_retried_run_waited_from_its_retry() -> None:
    """What came before was another attempt."""
    never_made = node("gpu-warmup", "Failed", message=NOT_CREATED), OMITTED
    meta = failed().metadata
    memory = Memory(meta.uid, meta.name, "C", 0.0, journal=(Ended("", "", ""),))
    retried = Memory(meta.uid, meta.name, "C", 0.0, journal=(Ended("an earlier one", "", ""),))
    seconds = []
    for each in (memory, retried):
        more = {"annotations": {RUN_ANNOTATION: write(each)}, "creationTimestamp": "2026-03-02T08:00:00Z"}
        run = failed(*never_made, spec={"shutdown": "Terminate"}, meta=more)
        seconds.append(card_of(run, SETTINGS).seconds)

    assert [9360, 2160] == seconds


def test_terminated_during_warm_up_ran_no_test() -> None:
    """A pod was there, so something ran."""
    run = failed(node("gpu-warmup", "Failed", message=NOT_CREATED.replace(": ", ":  ")), OMITTED)

    assert Reach.WARM_UP == judge(run, SETTINGS).reach


def test_nodes_out_of_reach_are_not_called_a_queue() -> None:
    """Offloaded nodes may hold tests, and an exit step that spoke."""
    run = workflow(phase="Failed", offloadNodeStatusVersion="fnv:1")

    assert Reach.TESTS == judge(run, SETTINGS).reach
    assert "unknown" == exit_step_said(run, SETTINGS)


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ({"deletionTimestamp": "2026-03-02T10:30:00Z"}, "deleted while it ran"),
        ({"deletionTimestamp": "2026-03-02T10:40:00Z"}, ""),  # after its end
        ({}, ""),
    ],
)
def test_deleted_while_it_ran_is_said(meta: dict[str, str], words: str) -> None:
    """The bot ends a deleted run by a shutdown; who reads the card should know of the deletion."""
    killed = end_of_tests("Failed", "main: Error (exit code 143)", code="143")

    outcome = judge(failed(killed, meta=meta, spec={"shutdown": "Terminate"}), SETTINGS)

    assert (Verdict.CANCELLED, words) == (outcome.verdict, outcome.reason)


def test_deleted_in_the_queue_is_not_called_running() -> None:
    """It never ran."""
    run = failed(phase="Succeeded", meta={"deletionTimestamp": "2026-03-02T10:30:00Z"}, spec={"shutdown": "Terminate"})

    assert "deleted while it waited" == judge(run, SETTINGS).reason


def test_a_queued_card_says_for_which_run_it_waits() -> None:
    """By the run's short name and the lock's own; each once."""
    mutex = {"mutex": "foxhunt/Mutex/cargo-target-cuda-test", "holder": "foxhunt/gpu-test-j4t9"}
    semaphore = {"semaphore": "foxhunt/ConfigMap/gpus/h100", "holders": ["foxhunt/gpu-test-j4t9/id-1", "odd"]}
    locks = {"mutex": {"waiting": [mutex]}, "semaphore": {"waiting": [semaphore]}}
    run = workflow(phase="Pending", message="Waiting for a lock", synchronization=locks)
    card = card_of(run, SETTINGS)

    assert (("j4t9",), "cargo-target-cuda-test") == (card.behind, card.lock)
    text = render_card(card, SETTINGS).text
    assert "Waits for **j4t9**: one run at a time (lock `cargo-target-cuda-test`)" in text


def test_a_lock_without_a_holder_shows_argos_words() -> None:
    """Nothing is claimed about who holds it."""
    run = workflow(phase="Pending", message="Waiting for a lock", synchronization={"mutex": {}})

    assert "Waiting for a lock" in render_card(card_of(run, SETTINGS), SETTINGS).text


def test_status_knows_a_run_that_never_got_a_gpu() -> None:
    """In the words of the card."""
    line = ended_line("k7m2", EndedRun("gpu-test-k7m2", Verdict.NO_GPU, "CHANNEL", "post"), SETTINGS)

    assert "💤 **k7m2** never got a GPU (`gpu-test-k7m2`)" == line


@pytest.mark.parametrize(("said", "looked_for"), [("no", False), ("yes", True), ("unknown", True), (None, True)])
def test_the_notice_is_withheld_where_the_exit_step_spoke(said: str | None, looked_for: bool) -> None:
    """On anything but a plain no, its post is looked for."""
    book = Playbook()
    test = node("compile-and-test", "Succeeded", outputs=outputs(green()))

    book.see(workflow_json(phase="Succeeded", nodes=[node("gpu-warmup", "Succeeded"), test, exit_node(said)]))

    (said_in_thread,) = [e for e in book.effects if isinstance(e, SayInThread)]
    began = 1_772_445_600.0  # 2026-03-02T10:00:00Z
    post = ExitPost("uid-gpu-test-k7m2", "2026-03-02T10:00:00Z", ("CHANNEL",), began - 300)
    assert (post if looked_for else None) == said_in_thread.unless


def test_an_exit_step_that_never_began_said_nothing() -> None:
    """Terminate runs no exit handler."""
    assert "no" == exit_step_said(ended(green()), SETTINGS)


def test_an_end_of_before_a_retry_is_looked_for_too() -> None:
    """Its exit node is gone with the retry."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=[node("compile-and-test", "Running")]))
    body = workflow_json(
        phase="Failed", nodes=[end_of_tests("Failed", "", results([suite("dqn", status="failed")]))], version=1
    )
    body["metadata"] |= {k: v for k, v in book.cluster["gpu-test-k7m2"]["metadata"].items() if k != "resourceVersion"}
    journal = book.tell(WorkflowChanged(book.write(body)))[0]
    book.answer(journal)
    book.restart()
    book.effects.clear()

    book.see(
        workflow_json(phase="Running", startedAt="2026-03-02T11:00:00Z", nodes=[node("compile-and-test", "Running")])
    )

    (said,) = [e for e in book.effects if isinstance(e, SayInThread)]
    assert said.unless is not None
    assert "2026-03-02T10:00:00Z" == said.unless.attempt


def test_an_attempt_without_a_start_is_looked_for_within_a_day() -> None:
    """A run that was gone before it started, its nodes out of reach."""
    book = Playbook()
    book.see(workflow_json())
    gone = workflow(
        phase="",
        meta=book.cluster["gpu-test-k7m2"]["metadata"] | {"resourceVersion": "999"},
        offloadNodeStatusVersion="x",
    )
    del book.cluster["gpu-test-k7m2"]
    book.play(book.tell(WorkflowDeleted(gone)))

    (said,) = [e for e in book.effects if isinstance(e, SayInThread)]
    assert said.unless is not None
    assert NOW - 86400 == said.unless.since


def test_an_attempt_is_remembered_as_soon_as_it_was_seen() -> None:
    """A run from the chat is claimed before it starts; without this its unseen end would leave no trace."""
    book = Playbook()
    book.see(workflow_json())
    book.see(workflow_json(phase="Running", nodes=[node("compile-and-test", "Running")]))
    memory = read_memory(book.read("gpu-test-k7m2"))
    assert memory is not None
    assert ("2026-03-02T10:00:00Z", "") == (memory.seen, memory.missed)

    book.restart()
    again = {"phase": "Running", "startedAt": "2026-03-02T11:00:00Z"}
    book.see(workflow_json(**again, nodes=[node("gpu-warmup", "Running")]))
    book.see(workflow_json(**again, nodes=[node("compile-and-test", "Running")]))

    assert "while I was away" in render_card(list(book.posts.values())[-1].card, SETTINGS).text
    assert len([e for e in book.effects if isinstance(e, PatchWorkflow) and e.purpose == "see"]) == 2


def test_a_day_without_chat_is_waited_out() -> None:
    """Thousands of refusals in a row still end in a pause, not in a number too large to compute."""
    book = Playbook()
    book.see(workflow_json())
    run = book.state.runs["uid-gpu-test-k7m2"]
    held = book.cluster["gpu-test-k7m2"]["metadata"]
    body = workflow_json(phase="Running", nodes=[node("compile-and-test", "Running")])
    body["metadata"] |= {k: held[k] for k in ("annotations", "finalizers")}
    edit = book.tell(WorkflowChanged(book.write(body)))[0]
    assert isinstance(edit, EditCard)
    run.failures = 5000

    book.tell(EffectFailed(edit.id, Trouble.REFUSED, "the channel is archived"))

    assert NOW + SETTINGS.retry_max_seconds == run.not_before


def test_a_pod_that_is_made_anew_leads_the_card_back() -> None:
    """Argo makes a lost pod anew in the same attempt: finishing, waiting, testing again, one end."""
    book = Playbook()
    stages = [("Running", ""), ("Error", "pod deleted"), ("Pending", UNPLACED), ("Running", "")]
    for phase, message in stages:
        book.see(workflow_json(phase="Running", nodes=[node("compile-and-test", phase, message=message)]))
    done = node("compile-and-test", "Succeeded", outputs=outputs(green()))
    book.see(workflow_json(phase="Succeeded", nodes=[done]))

    shown = [e.card.stage for e in book.effects if isinstance(e, EditCard)]
    assert [Stage.FINISHING, Stage.WAITING, Stage.TESTING, Stage.ENDED] == shown
    assert ["@olga ✅ k7m2: all 10 green, 36 min"] == book.notices()
