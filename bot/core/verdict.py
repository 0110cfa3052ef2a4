"""What an ended attempt means.

The order of the questions matters. A shutdown is asked first, since Argo calls some terminated runs
Succeeded. Then the results are asked, and Argo's phase last of all: a phase alone is never a pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from bot.core.attempt import Reach, cause_of, is_unplaced, reach_of, results_of, test_node, warmup_node
from bot.core.memory import read_cancelled
from bot.core.results import RAN, RED, SHARED, NoResults, Results, Suite, SuiteStatus
from bot.core.settings import Settings
from bot.core.waiting import read_gave_up
from bot.core.workflow import Node, Workflow


class Verdict(StrEnum):
    """How an attempt ended, as people see it."""

    PASSED = "passed"
    FAILED = "failed"
    BROKEN = "broken"  # it did not compile or link: no test ran
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    NO_GPU = "no_gpu"  # it was given up while it waited for one
    UNKNOWN = "unknown"


class ModelStatus(StrEnum):
    """How one model came out of a run."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not_run"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ModelOutcome:
    """One model's line on the card. `suites` are those that count, skipped ones included."""

    name: str
    status: ModelStatus
    suites: tuple[Suite, ...] = ()

    @property
    def green(self) -> int:
        return sum(1 for s in self.suites if s.status is SuiteStatus.PASSED)

    @property
    def counted(self) -> int:
        """Suites that could have failed: all but the skipped ones."""
        return sum(1 for s in self.suites if s.status is not SuiteStatus.SKIPPED)


@dataclass(frozen=True)
class Outcome:
    """What an ended attempt means: one verdict, a line a model, and the reason in plain words."""

    verdict: Verdict
    models: tuple[ModelOutcome, ...]
    shared: tuple[Suite, ...] = ()
    reason: str = ""
    results: Results | None = None
    argo_phase: str = ""
    stuck: str = ""
    """The step of its warm-up at which the bot gave it up."""
    reach: Reach = Reach.TESTS

    def of(self, status: ModelStatus) -> tuple[ModelOutcome, ...]:
        return tuple(m for m in self.models if m.status is status)

    @property
    def shared_red(self) -> tuple[Suite, ...]:
        return tuple(s for s in self.shared if s.status in RED)

    @property
    def without_tests(self) -> tuple[str, ...]:
        """Models with a skipped suite, i.e. without tests of one kind."""
        return tuple(m.name for m in self.models if any(s.status is SuiteStatus.SKIPPED for s in m.suites))


def expand_models(text: str | None, settings: Settings) -> tuple[str, ...]:
    """The models a run was asked for, in the order of the configuration; unknown ones keep their place at the end."""
    if text is None:
        return settings.defaults.models
    asked = [part.strip() for part in text.split(",") if part.strip()]
    if "all" in asked:
        return settings.model_names
    known = [name for name in settings.model_names if name in asked]
    return tuple(dict.fromkeys(known + asked))


def judge(workflow: Workflow, settings: Settings) -> Outcome:
    """What this ended attempt means. It has to be called on a terminal workflow only."""
    results = results_of(workflow, settings)
    asked = expand_models(workflow.parameter(settings.parameters.models), settings)
    document = results if isinstance(results, Results) else None
    models, shared = _outcomes(asked, document)
    verdict, reason = _verdict(workflow, settings, models, shared, results)
    gave_up, reach = read_gave_up(workflow), reach_of(workflow, settings)
    stuck = gave_up.step if gave_up is not None and verdict is Verdict.NO_GPU else ""
    return Outcome(verdict, models, shared, reason, document, workflow.phase, stuck, reach)


def deleted_outcome(workflow: Workflow, settings: Settings) -> Outcome:
    """What is known of a run whose object went before it ended."""
    results = results_of(workflow, settings)
    document = results if isinstance(results, Results) else None
    models, shared = _outcomes(expand_models(workflow.parameter(settings.parameters.models), settings), document)
    reach = reach_of(workflow, settings)
    return Outcome(Verdict.CANCELLED, models, shared, _deleted_words(reach), document, workflow.phase, reach=reach)


def _deleted_words(reach: Reach) -> str:
    return "deleted while it waited" if reach is Reach.QUEUE else "deleted while it ran"


def _outcomes(asked: tuple[str, ...], results: Results | None) -> tuple[tuple[ModelOutcome, ...], tuple[Suite, ...]]:
    by_model: dict[str, list[Suite]] = {name: [] for name in asked}
    for suite in [suite.counted for suite in results.suites] if results else []:
        # one that was interrupted says as little as one that was not reached
        lost = suite.interrupted and results is not None and not results.complete
        known = msgspec.structs.replace(suite, status=SuiteStatus.UNKNOWN) if lost else suite
        by_model.setdefault(suite.model, []).append(known)
    shared = tuple(by_model.pop(SHARED, []))
    return tuple(_outcome(name, suites, results) for name, suites in by_model.items()), shared


def _outcome(name: str, suites: list[Suite], results: Results | None) -> ModelOutcome:
    statuses = {suite.status for suite in suites}
    if statuses & RED:
        status = ModelStatus.FAILED
    elif SuiteStatus.UNKNOWN in statuses:
        status = ModelStatus.UNKNOWN
    elif SuiteStatus.PASSED in statuses:
        # a document that broke off may lack suites of this model: what is there is green, the rest is not known
        status = ModelStatus.PASSED if results and (results.complete or results.planned) else ModelStatus.UNKNOWN
    elif statuses:
        status = ModelStatus.UNKNOWN  # only skipped suites: nothing was tested
    else:
        status = ModelStatus.NOT_RUN if results else ModelStatus.UNKNOWN
    return ModelOutcome(name, status, tuple(suites))


def _verdict(
    workflow: Workflow,
    settings: Settings,
    models: tuple[ModelOutcome, ...],
    shared: tuple[Suite, ...],
    results: Results | NoResults,
) -> tuple[Verdict, str]:
    exit_only = _shut_down_after_tests(workflow, settings)
    if workflow.spec.shutdown in {"Stop", "Terminate"} and not exit_only:
        return _stopped(workflow, settings)
    note = "terminated during the exit handler" if exit_only else ""
    if isinstance(results, NoResults):
        return _without_results(workflow, settings, results, note)
    if _is_broken(workflow, settings, results):
        return Verdict.BROKEN, note
    red = any(m.status is ModelStatus.FAILED for m in models) or any(s.status in RED for s in shared)
    if red:
        return Verdict.FAILED, note or _cut_short(workflow, settings, results)
    if _deadline(workflow, settings):
        return Verdict.TIMED_OUT, note
    if not results.complete:
        cause = cause_of(workflow, settings)
        return Verdict.UNKNOWN, note or f"the results break off in the middle{': ' + cause if cause else ''}"
    if any(m.status is not ModelStatus.PASSED for m in models):
        return Verdict.UNKNOWN, note or "not every model has a result"
    if any(s.status is not SuiteStatus.PASSED for s in shared):
        return Verdict.UNKNOWN, note or "a shared suite has no result"
    if not models:
        return Verdict.UNKNOWN, note or "no model was tested"
    if workflow.phase != "Succeeded" and not note:
        return _green_but_not_succeeded(workflow, settings)
    return Verdict.PASSED, note


def _stopped(workflow: Workflow, settings: Settings) -> tuple[Verdict, str]:
    """Somebody stopped it, or the bot did at its limit for waiting."""
    gave_up = read_gave_up(workflow) if read_cancelled(workflow) is None else None
    reach = reach_of(workflow, settings)
    if gave_up is not None and reach is not Reach.TESTS:
        return Verdict.NO_GPU, gave_up.reason
    if gave_up is not None:
        return Verdict.CANCELLED, "its time to wait for a GPU was over just as it got one"
    return Verdict.CANCELLED, _deleted_words(reach) if workflow.deleted_before_its_end else ""


def _green_but_not_succeeded(workflow: Workflow, settings: Settings) -> tuple[Verdict, str]:
    """Every suite is green, yet Argo says no: believe the tests only where the exit handler alone went wrong."""
    node = test_node(workflow, settings)
    if node is not None and node.phase == "Succeeded":
        return Verdict.PASSED, "the tests passed; a later step of the workflow failed"
    return Verdict.UNKNOWN, f"every suite is green, but Argo says {workflow.phase}: {workflow.message}".rstrip(": ")


def _is_broken(workflow: Workflow, settings: Settings, results: Results) -> bool:
    """It did not build, and so nothing was tested. A build that was stopped did not fail."""
    if results.build is None or results.build.status == "passed" or any(s.status in RAN for s in results.suites):
        return False
    return results.complete or not (_deadline(workflow, settings) or _ended_from_outside(workflow, settings))


def _ended_from_outside(workflow: Workflow, settings: Settings) -> bool:
    """The test pod was told to stop, or killed: 143 and 137 are 128 and the signal."""
    node = test_node(workflow, settings)
    return node is not None and node.outputs is not None and node.outputs.exit_code in {"143", "137"}


def _without_results(workflow: Workflow, settings: Settings, results: NoResults, note: str) -> tuple[Verdict, str]:
    waiting = _waited_for_a_gpu(workflow, settings)
    if waiting is not None:
        return Verdict.NO_GPU, waiting.message if is_unplaced(waiting) else ""
    if _deadline(workflow, settings):
        return Verdict.TIMED_OUT, note
    cause = cause_of(workflow, settings)
    if cause and reach_of(workflow, settings) is Reach.TESTS:
        cause = f"{cause}; {results.reason}"
    parts = [note, cause or f"Argo says {workflow.phase}, but {results.reason}"]
    return Verdict.UNKNOWN, "; ".join(part for part in parts if part)


def _waited_for_a_gpu(workflow: Workflow, settings: Settings) -> Node | None:
    """The node of the pod that no node had taken when the run was given up; None where it got one.

    A template's `timeout` ends a node with that one word, but the next look at its pod makes it Pending again, and so
    it stays in an ended Workflow (seen on 3.7.3).
    """
    given_up = {"timeout", "Step exceeded its deadline"}
    warmup = warmup_node(workflow, settings)
    for node in (warmup, test_node(workflow, settings)):
        if node is None or node.host_node_name:
            continue
        if node.phase == "Pending" and is_unplaced(node):
            return node
        if node is warmup and node.phase in {"Failed", "Error"} and node.message in given_up:
            return node
    return None


def _cut_short(workflow: Workflow, settings: Settings, results: Results) -> str:
    if results.complete:
        return ""
    cause = "out of time" if _deadline(workflow, settings) else cause_of(workflow, settings)
    return f"the run ended before all suites ran{': ' + cause if cause else ''}"


def _shut_down_after_tests(workflow: Workflow, settings: Settings) -> bool:
    """A shutdown that came when only the exit handler was left does not undo the verdict.

    A pod that was told to stop ends with 143 (or 137, when it did not listen), and its own text then replaces Argo's.
    """
    node = test_node(workflow, settings)
    if not workflow.spec.shutdown or node is None:
        return False
    if node.phase == "Succeeded":
        return True
    results = results_of(workflow, settings)
    if isinstance(results, Results) and results.complete:
        return True
    stopped = _ended_from_outside(workflow, settings) or _stopped_text(node.message)
    return node.phase == "Failed" and not stopped


def _stopped_text(message: str) -> bool:
    """Argo's words on a node that a shutdown ended (exec_control.go; one of them has two spaces)."""
    return message.startswith(("workflow shutdown with strategy", "Stopped with strategy"))


def _deadline(workflow: Workflow, settings: Settings) -> bool:
    """Argo marks what the deadline ended by these texts alone (operator.go, exec_control.go; the kubelet's own).

    A pod that ends when it is told to puts its own text, `Error (exit code 143)`, in their place.
    """
    if workflow.lasted_to_its_deadline and _ended_from_outside(workflow, settings):
        return True
    texts = ("Step exceeded its deadline", "Pod was active on the node longer than the specified deadline")
    node = test_node(workflow, settings)
    messages = [workflow.message, node.message if node else ""]
    messages += [n.message for n in workflow.nodes.values() if not n.is_exit]
    return any(text in message for message in messages for text in texts)
