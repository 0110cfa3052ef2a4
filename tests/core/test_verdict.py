"""What an ended attempt means, and in which order that is asked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bot.core.attempt import failed_leaf
from bot.core.attempt import test_node as node_of_tests
from bot.core.card import Stage, card_of
from bot.core.render.card import render_card
from bot.core.settings import Steps
from bot.core.verdict import ModelStatus, Outcome, Verdict, deleted_outcome, expand_models, judge
from bot.core.workflow import Workflow
from tests.phrases import ALL, SETTINGS, ended, green, node, outputs, results, suite, workflow

CASES = Path(__file__).parents[1] / "cases"
SHARED = [suite("shared", "core"), suite("shared", "bayesian")]
RED = suite("dqn", status="failed", failed_tests=["a"])
STOPPED = "workflow shutdown with strategy:  Terminate"
DEADLINE = "Pod was active on the node longer than the specified deadline"
TWO = {"models": "dqn,ppo"}


def judged(text: str | None, phase: str = "Succeeded", exit_code: str = "0", **more: Any) -> Outcome:
    """The outcome of a run of two models that ended so."""
    return judge(ended(text, phase, exit_code, **({"parameters": TWO} | more)), SETTINGS)


def stopped(text: str | None, tests: dict[str, Any], shutdown: str = "Terminate") -> Outcome:
    """The outcome of a run that was stopped, with its test node as given."""
    last = node("compile-and-test", "Failed", **tests)
    if text is not None:
        last["outputs"] = outputs(text, last.get("outputs", {}).get("exitCode", "1"))
    run = workflow(phase="Failed", nodes=[last], parameters=TWO, spec={"shutdown": shutdown})
    return judge(run, SETTINGS)


def both(*more: dict[str, Any], **document: Any) -> str:
    """Results of the two models with the shared suites, all green but for `more`."""
    fine = [suite("dqn"), suite("ppo"), *SHARED]
    named = {s["suite"] for s in more}
    return results([*(s for s in fine if s["suite"] not in named), *more], **document)


def test_green_is_what_the_results_say() -> None:
    """Every model, every shared suite, and Argo agrees."""
    outcome = judged(both())

    assert (Verdict.PASSED, "") == (outcome.verdict, outcome.reason)
    assert ["dqn", "ppo"] == [m.name for m in outcome.of(ModelStatus.PASSED)]
    assert ["core", "bayesian"] == [s.suite for s in outcome.shared]
    assert [(1, 1), (1, 1)] == [(m.green, m.counted) for m in outcome.models]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Error"])
def test_a_phase_alone_is_never_a_pass(phase: str) -> None:
    """Without results nothing is known, whatever Argo calls it."""
    outcome = judged(None, phase)

    assert Verdict.UNKNOWN is outcome.verdict
    assert f"Argo says {phase}, but no results came" == outcome.reason
    assert {ModelStatus.UNKNOWN} == {m.status for m in outcome.models}


@pytest.mark.parametrize("status", ["failed", "broken", "timed_out", "killed"])
def test_each_red_suite_makes_the_run_red(status: str) -> None:
    """Of a model, or a shared one however green the models are."""
    of_model, shared = (
        judged(both(suite("dqn", status=status)), "Failed", "1"),
        judged(both(suite("shared", "core", status))),
    )

    assert (Verdict.FAILED, ["dqn"]) == (of_model.verdict, [m.name for m in of_model.of(ModelStatus.FAILED)])
    assert (Verdict.FAILED, ["core"]) == (shared.verdict, [s.suite for s in shared.shared_red])
    assert () == shared.of(ModelStatus.FAILED)


@pytest.mark.parametrize(
    ("more", "reason", "status"),
    [
        ([suite("dqn", status="unknown")], "not every model has a result", ModelStatus.UNKNOWN),
        ([suite("dqn", status="skipped", reason="no tests")], "not every model has a result", ModelStatus.UNKNOWN),
        ([suite("shared", "core", "unknown")], "a shared suite has no result", ModelStatus.PASSED),
        ([suite("shared", "core", "skipped")], "a shared suite has no result", ModelStatus.PASSED),
    ],
)
def test_what_was_not_tested_is_no_pass(more: list[dict[str, Any]], reason: str, status: ModelStatus) -> None:
    """Unknown, or skipped throughout: a filter that matched nothing is not green."""
    outcome = judged(both(*more))

    assert (Verdict.UNKNOWN, reason) == (outcome.verdict, reason)
    assert status is outcome.models[0].status


def test_a_model_without_integration_tests_can_pass() -> None:
    """A skipped suite beside a green one does not count, and is named."""
    outcome = judged(both(suite("dqn", "dqn-integ", "skipped")))

    assert Verdict.PASSED is outcome.verdict
    assert ("dqn",) == outcome.without_tests
    assert (1, 1) == (outcome.models[0].green, outcome.models[0].counted)


def test_a_model_that_is_missing_from_the_results_was_not_run() -> None:
    """Asked for and not there: no pass. Not asked for and there: shown all the same."""
    outcome = judged(results([suite("dqn"), suite("kan"), *SHARED]))

    assert (Verdict.UNKNOWN, "not every model has a result") == (outcome.verdict, outcome.reason)
    assert [("dqn", "passed"), ("ppo", "not_run"), ("kan", "passed")] == [(m.name, m.status) for m in outcome.models]


def test_results_that_break_off_are_no_pass() -> None:
    """What is there is green; the rest is not known, not even of the models that are there."""
    outcome = judged(both(complete=False))

    assert (Verdict.UNKNOWN, "the results break off in the middle") == (outcome.verdict, outcome.reason)
    assert {ModelStatus.UNKNOWN} == {m.status for m in outcome.models}


def test_red_results_that_break_off_are_red() -> None:
    """What failed has failed; why the rest is missing is said."""
    body = ended(both(RED, complete=False), "Failed", "1", parameters=TWO, message="")
    silent = judge(body, SETTINGS)
    tests = node(
        "compile-and-test", "Failed", message="OOMKilled (exit code 137)", outputs=outputs(both(RED, complete=False))
    )
    told = judge(workflow(phase="Failed", nodes=[tests], parameters=TWO), SETTINGS)

    assert (Verdict.FAILED, "the run ended before all suites ran") == (silent.verdict, silent.reason)
    oom = "the test pod ran out of memory (OOMKilled, exit code 137)"
    assert f"the run ended before all suites ran: {oom}" == told.reason


def test_a_run_of_no_model_is_no_pass() -> None:
    """Nothing asked for and nothing there."""
    outcome = judged(results([], models=[]), parameters={"models": " , "})

    assert (Verdict.UNKNOWN, "no model was tested") == (outcome.verdict, outcome.reason)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no results came"),
        ("  \n", "no results came"),
        ("{", "the results could not be read (Input data was truncated)"),
        (results([], version=2), "the results are of version 2, I read version 1"),
    ],
)
def test_results_that_can_not_be_read_are_no_pass(text: str, reason: str) -> None:
    """Each with its reason."""
    outcome = judged(text)

    assert (Verdict.UNKNOWN, f"Argo says Succeeded, but {reason}") == (outcome.verdict, outcome.reason)


def test_tests_that_never_started() -> None:
    """The warm-up failed, or there is no node at all; Argo's words say why."""
    warmup = workflow(phase="Failed", nodes=[node("gpu-warmup", "Failed", message="ImagePullBackOff")])
    none = workflow(phase="Error", message="spec is invalid")

    assert "the warm-up pod: ImagePullBackOff" == judge(warmup, SETTINGS).reason
    assert "Argo says Error: spec is invalid" == judge(none, SETTINGS).reason


def test_nodes_that_are_out_of_reach() -> None:
    """Argo keeps large runs elsewhere: unknown, and said so."""
    outcome = judge(workflow(phase="Succeeded", offloadNodeStatusVersion="fnv:1"), SETTINGS)

    assert Verdict.UNKNOWN is outcome.verdict
    assert "Argo keeps this run's nodes in its own database" in outcome.reason


def test_a_parameter_of_another_name_is_no_result() -> None:
    """Only the configured output parameter counts."""
    tests = node("compile-and-test", "Succeeded", outputs={"parameters": [{"name": "log", "value": green()}]})

    assert Verdict.UNKNOWN is judge(workflow(phase="Succeeded", nodes=[tests]), SETTINGS).verdict


def test_a_build_that_failed() -> None:
    """It did not compile and no test ran. The runner tests what builds beside what does not: then that is red."""
    build = {"build": {"status": "failed", "errors": [{"message": "E0308"}]}}
    broken = suite("dqn", status="broken")
    none = judged(results([broken, suite("ppo", status="broken")], **build), "Failed", "1")
    some = judged(both(broken, **build), "Failed", "1")

    assert (Verdict.BROKEN, "") == (none.verdict, none.reason)
    assert (Verdict.FAILED, ["dqn"]) == (some.verdict, [m.name for m in some.of(ModelStatus.FAILED)])


@pytest.mark.parametrize(
    ("tests", "message"),
    [({"message": DEADLINE}, ""), ({}, "Step exceeded its deadline"), ({"message": "Step exceeded its deadline"}, "")],
)
def test_out_of_time(tests: dict[str, Any], message: str) -> None:
    """Argo's texts, on the run, on the test or on any other node; with results and without."""
    for text in (None, both(), both(complete=False)):
        more = {"outputs": outputs(text)} if text else {}
        last = node("compile-and-test", "Failed", **tests, **more)
        run = workflow(phase="Failed", nodes=[last], parameters=TWO, message=message)

        assert Verdict.TIMED_OUT is judge(run, SETTINGS).verdict


def test_red_comes_before_out_of_time() -> None:
    """What failed is worth more than that the rest ran out of time."""
    last = node("compile-and-test", "Failed", message=DEADLINE, outputs=outputs(both(RED)))

    assert Verdict.FAILED is judge(workflow(phase="Failed", nodes=[last], parameters=TWO), SETTINGS).verdict


def test_a_deadline_of_the_exit_handler_is_none_of_the_run() -> None:
    """Its nodes are no tests."""
    late = node("notify", "Failed", display_name="run.onExit", message=DEADLINE)
    below = node("post", "Failed", name="run.onExit[0].post", display_name="post", message=DEADLINE)
    tests = node("compile-and-test", "Succeeded", outputs=outputs(both()))
    run = workflow(phase="Failed", nodes=[tests, late, below], parameters=TWO)

    assert Verdict.PASSED is judge(run, SETTINGS).verdict


@pytest.mark.parametrize(
    "tests",
    [
        {"message": STOPPED},
        {"message": "Stopped with strategy 'Stop'"},
        {"outputs": {"exitCode": "143"}},
        {"outputs": {"exitCode": "137"}},
    ],
)
@pytest.mark.parametrize("text", [None, both(complete=False), both(RED, complete=False)])
def test_a_run_that_was_stopped_while_it_tested_is_cancelled(tests: dict[str, Any], text: str | None) -> None:
    """By Argo's words on the node, or by the exit code of a pod that was told to stop; before everything else."""
    outcome = stopped(text, tests)

    assert (Verdict.CANCELLED, "") == (outcome.verdict, outcome.reason)


def test_a_run_that_was_stopped_before_it_tested_is_cancelled() -> None:
    """Argo may call a queued run that was terminated a success."""
    run = workflow(phase="Succeeded", spec={"shutdown": "Terminate"})

    assert Verdict.CANCELLED is judge(run, SETTINGS).verdict


@pytest.mark.parametrize(
    ("text", "verdict"), [(both(), Verdict.PASSED), (both(RED), Verdict.FAILED), (None, Verdict.UNKNOWN)]
)
def test_a_shutdown_after_the_tests_keeps_the_verdict(text: str | None, verdict: Verdict) -> None:
    """Only the exit handler was left, and the card says so."""
    succeeded = node("compile-and-test", "Succeeded", **({"outputs": outputs(text)} if text else {}))
    run = workflow(phase="Failed", nodes=[succeeded], parameters=TWO, spec={"shutdown": "Terminate"})
    outcome = judge(run, SETTINGS)

    assert verdict is outcome.verdict
    assert outcome.reason.startswith("terminated during the exit handler")


def test_complete_results_outlive_a_killed_pod() -> None:
    """The tests were through when the pod was told to stop."""
    outcome = stopped(both(), {"outputs": {"exitCode": "143"}})

    assert (Verdict.PASSED, "terminated during the exit handler") == (outcome.verdict, outcome.reason)


def test_tests_that_failed_by_themselves_are_not_cancelled() -> None:
    """The shutdown came after the node had failed with a code of its own."""
    outcome = stopped(both(RED, complete=False), {"message": "Error (exit code 1)"})

    assert (Verdict.FAILED, "terminated during the exit handler") == (outcome.verdict, outcome.reason)


@pytest.mark.parametrize(
    ("phase_of_tests", "verdict", "reason"),
    [
        ("Succeeded", Verdict.PASSED, "the tests passed; a later step of the workflow failed"),
        ("Failed", Verdict.UNKNOWN, "every suite is green, but Argo says Failed: why"),
    ],
)
def test_green_results_of_a_run_that_argo_calls_failed(phase_of_tests: str, verdict: Verdict, reason: str) -> None:
    """The tests are believed where a later step alone went wrong."""
    tests = node("compile-and-test", phase_of_tests, outputs=outputs(both()))
    outcome = judge(workflow(phase="Failed", nodes=[tests], parameters=TWO, message="why"), SETTINGS)

    assert (verdict, reason) == (outcome.verdict, outcome.reason)


def test_the_order_of_the_questions() -> None:
    """Everything wrong at once, taken away one by one."""
    tests = node("compile-and-test", "Failed", message=STOPPED)
    build = {"build": {"status": "failed"}}
    seen = []
    for shutdown, text in (
        ({"shutdown": "Stop"}, both(RED, complete=False, **build)),
        ({}, None),
        ({}, results([suite("dqn", status="broken"), suite("ppo", status="broken")], **build)),
        ({}, both(RED, complete=False)),
        ({}, both(complete=False)),
        ({}, results([suite("dqn"), *SHARED])),
        ({}, both(suite("shared", "core", "unknown"))),
        ({}, both()),
    ):
        more = {"outputs": outputs(text, "143")} if text else {}
        run = workflow(phase="Failed", nodes=[tests | more], parameters=TWO, spec=shutdown)
        seen.append((judge(run, SETTINGS).verdict, judge(run, SETTINGS).reason.split(",")[0].split(";")[0]))

    assert [
        (Verdict.CANCELLED, ""),
        (Verdict.UNKNOWN, f"the test pod: {STOPPED}"),
        (Verdict.BROKEN, ""),
        (Verdict.FAILED, f"the run ended before all suites ran: the test pod: {STOPPED}"),
        (Verdict.UNKNOWN, f"the results break off in the middle: the test pod: {STOPPED}"),
        (Verdict.UNKNOWN, "not every model has a result"),
        (Verdict.UNKNOWN, "a shared suite has no result"),
        (Verdict.UNKNOWN, "every suite is green"),
    ] == seen


def test_what_is_known_of_a_run_whose_object_went() -> None:
    """Deleted while it ran: cancelled, with what the results say so far."""
    running = workflow(phase="Running", nodes=[node("compile-and-test", "Running")], parameters=TWO)
    tested = workflow(phase="Running", nodes=[node("compile-and-test", "Succeeded", outputs=outputs(both()))])

    assert (Verdict.CANCELLED, "deleted while it ran") == (
        deleted_outcome(running, SETTINGS).verdict,
        deleted_outcome(running, SETTINGS).reason,
    )
    assert deleted_outcome(running, SETTINGS).results is None
    assert 2 == len(deleted_outcome(tested, SETTINGS).of(ModelStatus.PASSED))


@pytest.mark.parametrize(
    ("text", "models"),
    [
        (None, "dqn,ppo,tft"),
        ("all", ALL),
        ("ppo, all", ALL),
        ("kan,dqn", "dqn,kan"),
        (" kan , , dqn ", "dqn,kan"),
        ("zzz,dqn,zzz,dqn", "dqn,zzz"),
        ("", ""),
    ],
)
def test_which_models_a_run_was_asked_for(text: str | None, models: str) -> None:
    """In the order of the configuration; what it does not know keeps its place at the end."""
    assert tuple(m for m in models.split(",") if m) == expand_models(text, SETTINGS)


def test_the_node_of_a_retried_step_is_its_parent() -> None:
    """It holds the last try's outputs, wherever it stands among the nodes."""
    tries = [
        node("compile-and-test", "Failed", display_name="t(0)", nodeFlag={"retried": True}),
        node("compile-and-test", "Succeeded", display_name="t(1)"),
    ]
    parent = node("compile-and-test", "Succeeded", display_name="t", type="Retry")
    for nodes in ([*tries, parent], [parent, *tries]):
        found = node_of_tests(workflow(nodes=nodes), SETTINGS)

        assert found is not None
        assert "Retry" == found.type


@pytest.mark.parametrize("phase", ["Pending", "Running", "Failed", "Error"])
def test_of_several_nodes_the_worst_speaks_for_all(phase: str) -> None:
    """One that is not done, else one that failed: a later one that is fine hides neither."""
    nodes = [
        node("compile-and-test", p, display_name=f"{i}-{p}") for i, p in enumerate(["Succeeded", phase, "Succeeded"])
    ]
    found = node_of_tests(workflow(nodes=nodes), SETTINGS)

    assert found is not None
    assert phase == found.phase


def test_a_node_of_a_template_elsewhere_is_found_by_its_reference() -> None:
    """`templateName` is empty there."""
    there = node("", "Running", display_name="t", templateRef={"name": "other", "template": "compile-and-test"})

    assert node_of_tests(workflow(nodes=[there]), SETTINGS) is not None
    assert node_of_tests(workflow(nodes=[node("gpu-warmup", "Running")]), SETTINGS) is None


def test_the_most_telling_message() -> None:
    """A failed leaf's: composites, hooks, silent ones and tries that another followed say nothing of use."""
    superseded = node("t", "Failed", display_name="t(0)", message="first try", nodeFlag={"retried": True})
    last = node("t", "Failed", display_name="t(1)", message="last try", nodeFlag={"retried": True})
    stray = node("t", "Failed", display_name="s", message="stray", nodeFlag={"retried": True})
    parent = {"type": "Retry", "message": "No more retries left", "children": ["id-t(0)", "id-t(1)", "id-gone"]}
    failed, recovered = (node("t", phase, display_name="t", **parent) for phase in ("Failed", "Succeeded"))
    silent = node("x", "Failed")
    hook = node("h", "Failed", message="hook", nodeFlag={"hooked": True})
    fine = node("g", "Succeeded", message="fine")

    def told(*nodes: dict[str, Any]) -> str:
        leaf = failed_leaf(workflow(phase="Failed", nodes=list(nodes), message="of the run"))
        return leaf.message if leaf else ""

    assert "last try" == told(fine, silent, hook, failed, superseded, last)
    assert "" == told(recovered, superseded, last, hook)
    assert "stray" == told(stray)
    assert "stray" == told(node("d", "Succeeded", type="DAG", children=["id-s"]), stray)


def field(name: str, template: str) -> tuple[Workflow, Any]:
    """An object from the field, and settings for a template whose tests are called so."""
    body = json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))
    run = msgspec.json.decode(json.dumps(body.get("object", body)), type=Workflow)
    return run, replace(SETTINGS, steps=Steps(test=template))


def test_field_case_a02_terminated_during_the_exit_handler() -> None:
    """The test was through; without a results document it is no pass, and the exit handler's pod is not the reason."""
    run, settings = field("a02", "test-model")
    card = card_of(run, settings)
    text = render_card(card, settings).text

    assert card.outcome is not None
    assert Verdict.UNKNOWN is card.outcome.verdict
    assert 161 == card.seconds
    assert "Terminated during the exit handler" in text
    assert "strategy:" not in text
    assert [n.id for n in run.nodes.values() if not n.is_exit] == ["gputest-a02"]


def test_field_case_a03_a_hook_inside_a_retry() -> None:
    """The last try's reason, and no count of nodes sold as one of tests."""
    run, settings = field("a03", "test-model")
    card = card_of(run, settings)
    text = render_card(card, settings).text

    assert card.outcome is not None
    oom = "the test pod ran out of memory (OOMKilled, exit code 137)"
    assert f"{oom}; no results came" == card.outcome.reason
    assert "1/3" not in text
    assert "1 of 3" not in text


def test_field_case_a04_one_pod_a_model() -> None:
    """One is still under way, so the tests are; names of nodes are never cut apart for models."""
    run, settings = field("a04", "test-model")
    card = card_of(run, settings)
    post = render_card(card, settings)

    assert Stage.TESTING is card.stage
    assert "compiling and testing" in post.message
    assert "llama" not in post.text


def test_field_case_a07_queued_behind_others() -> None:
    """No start, no nodes: queued, with Argo's reason and the time it was asked for."""
    run, settings = field("a07", "compile-and-test")
    card = card_of(run, settings)
    post = render_card(card, settings)

    assert Stage.QUEUED is card.stage
    assert "" == card.attempt
    assert "too many workflows are already running" in post.text
    assert "Asked 09:59 UTC" in post.text
    assert "0/0" not in post.text


@pytest.mark.parametrize("phase", ["Omitted", "Skipped"])
def test_a_step_that_was_left_out_is_no_test(phase: str) -> None:
    """Its node is there, with outputs or without: nothing of it ran."""
    left_out = node("compile-and-test", phase, outputs=outputs(both()))
    run = workflow(phase="Failed", nodes=[node("gpu-warmup", "Failed", message="no driver"), left_out], parameters=TWO)
    outcome = judge(run, SETTINGS)

    assert Verdict.UNKNOWN is outcome.verdict
    assert "the warm-up pod: no driver" == outcome.reason
    assert outcome.results is None


def test_outputs_out_of_the_cache_are_no_pass() -> None:
    """Argo's memoize: the node succeeds with the results of an earlier run, and nothing was tested now."""
    hit = node("compile-and-test", "Succeeded", outputs=outputs(both()), memoizationStatus={"hit": True, "key": "k"})
    missed = hit | {"memoizationStatus": {"hit": False}}
    outcome = judge(workflow(phase="Succeeded", nodes=[node("gpu-warmup", "Succeeded"), hit], parameters=TWO), SETTINGS)

    assert Verdict.UNKNOWN is outcome.verdict
    assert outcome.reason.endswith("no test ran: Argo took the outputs of an earlier run from its cache")
    assert Verdict.PASSED is judge(workflow(phase="Succeeded", nodes=[missed], parameters=TWO), SETTINGS).verdict


def test_a_memoized_resubmit_ran_nothing() -> None:
    """Argo keeps the old pods' nodes as skipped, with their outputs."""
    kept = node("compile-and-test", "Skipped", type="Skipped", message="original pod: a-1", outputs=outputs(both()))
    card = card_of(workflow(phase="Succeeded", nodes=[kept], parameters=TWO), SETTINGS)

    assert render_card(card, SETTINGS).text.startswith("Nothing ran.  \nArgo says Succeeded, but no test ran  \n")


HELD = node("approve", "Running", type="Suspend")


@pytest.mark.parametrize(
    ("nodes", "spec"),
    [
        ([HELD], {}),
        ([], {"suspend": True}),
        ([node("gpu-warmup", "Succeeded"), HELD], {}),
    ],
)
def test_what_somebody_has_to_resume_is_not_queued(nodes: list[dict[str, Any]], spec: dict[str, Any]) -> None:
    """By the spec or by a step that waits for a person: no pod is made."""
    card = card_of(workflow(phase="Running", nodes=nodes, parameters=TWO, spec=spec), SETTINGS)
    post = render_card(card, SETTINGS)

    assert Stage.PAUSED is card.stage
    assert post.message.startswith("⏸️ **k7m2 suspended** · ")
    assert post.text.startswith("Argo starts nothing until somebody resumes it, or its pause is over")


def test_a_suspended_run_whose_pods_are_there_goes_on() -> None:
    """And one that waits for a lock waits for that."""
    testing = workflow(phase="Running", nodes=[node("compile-and-test", "Running"), HELD], spec={"suspend": True})
    lock = {"mutex": {"waiting": [{"mutex": "foxhunt/Mutex/gpu", "holder": "foxhunt/gpu-test-aaaa"}]}}
    waiting = workflow(phase="Pending", spec={"suspend": True}, synchronization=lock)
    warming = workflow(phase="Running", nodes=[node("gpu-warmup", "Running", hostNodeName="n")], spec={"suspend": True})

    assert [Stage.TESTING, Stage.QUEUED, Stage.WARMING] == [
        card_of(run, SETTINGS).stage for run in (testing, waiting, warming)
    ]


def test_nodes_beside_the_tests_do_not_speak_for_them() -> None:
    """A daemon that Argo leaves Running at the end, the containers of a containerSet, a step group of the same name."""
    tests = node("compile-and-test", "Succeeded", outputs=outputs(both()), children=["id-main"])
    beside = [
        node("gpu-warmup", "Running", daemoned=True),
        node("compile-and-test", "Succeeded", display_name="main", type="Container", boundaryID="id-compile-and-test"),
        node("", "Succeeded", display_name="[0]", type="StepGroup"),
    ]
    oom = node("compile-and-test", "Failed", display_name="main", type="Container", message="OOMKilled (exit code 137)")
    killed = [node("gpu-warmup", "Succeeded"), node("compile-and-test", "Failed"), oom]

    for nodes in ([tests, *beside], [*beside, tests]):
        assert Verdict.PASSED is judge(workflow(phase="Succeeded", nodes=nodes, parameters=TWO), SETTINGS).verdict
    assert "ran out of memory" in judge(workflow(phase="Failed", nodes=killed, parameters=TWO), SETTINGS).reason
