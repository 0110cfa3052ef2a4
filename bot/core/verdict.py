"""What an ended attempt means.

The order of the questions matters. A shutdown is asked first, since Argo calls some terminated runs
Succeeded. Then the results are asked, and Argo's phase last of all: a phase alone is never a pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.core.results import RED, SHARED, NoResults, Results, Suite, SuiteStatus, read_results
from bot.core.settings import Settings
from bot.core.workflow import Node, Workflow


class Verdict(StrEnum):
    """How an attempt ended, as people see it."""

    PASSED = "passed"
    FAILED = "failed"
    BROKEN = "broken"  # it did not compile or link: no test ran
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
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


def test_node(workflow: Workflow, settings: Settings) -> Node | None:
    """The node of the test step. Of a retried step it is the Retry parent, which holds the last child's outputs."""
    best: Node | None = None
    for node in workflow.nodes.values():
        if node.is_exit or node.template != settings.steps.test or (node.node_flag and node.node_flag.retried):
            continue
        if best is None or node.type == "Retry" or (best.type != "Retry" and node.type == "Pod"):
            best = node
    return best


def results_of(workflow: Workflow, settings: Settings) -> Results | NoResults:
    """The results document of this attempt, from its node; `status.outputs` would survive a retry."""
    if workflow.offloaded:
        return NoResults("Argo keeps this run's nodes in its own database, out of my reach")
    node = test_node(workflow, settings)
    if node is None:
        return NoResults("the tests never started")
    for parameter in (node.outputs.parameters if node.outputs else None) or []:
        if parameter.name == settings.steps.results:
            return read_results(parameter.text)
    return NoResults("no results came")


def judge(workflow: Workflow, settings: Settings) -> Outcome:
    """What this ended attempt means. It has to be called on a terminal workflow only."""
    results = results_of(workflow, settings)
    asked = expand_models(workflow.parameter(settings.parameters.models), settings)
    document = results if isinstance(results, Results) else None
    models, shared = _outcomes(asked, document)
    verdict, reason = _verdict(workflow, settings, models, shared, results)
    return Outcome(verdict, models, shared, reason, document, workflow.phase)


def deleted_outcome(workflow: Workflow, settings: Settings) -> Outcome:
    """What is known of a run whose object went before it ended."""
    results = results_of(workflow, settings)
    document = results if isinstance(results, Results) else None
    models, shared = _outcomes(expand_models(workflow.parameter(settings.parameters.models), settings), document)
    return Outcome(Verdict.CANCELLED, models, shared, "deleted while it ran", document, workflow.phase)


def _outcomes(asked: tuple[str, ...], results: Results | None) -> tuple[tuple[ModelOutcome, ...], tuple[Suite, ...]]:
    by_model: dict[str, list[Suite]] = {name: [] for name in asked}
    for suite in results.suites if results else []:
        by_model.setdefault(suite.model, []).append(suite)
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
        status = ModelStatus.PASSED if results and results.complete else ModelStatus.UNKNOWN
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
        return Verdict.CANCELLED, ""
    note = "terminated during the exit handler" if exit_only else ""
    if isinstance(results, NoResults):
        return _without_results(workflow, settings, results, note)
    if results.build and results.build.status != "passed":
        return Verdict.BROKEN, note
    red = any(m.status is ModelStatus.FAILED for m in models) or any(s.status in RED for s in shared)
    if red:
        return Verdict.FAILED, note or _cut_short(workflow, results)
    if _deadline(workflow, settings):
        return Verdict.TIMED_OUT, note
    if not results.complete:
        return Verdict.UNKNOWN, note or "the results break off in the middle"
    if any(m.status is not ModelStatus.PASSED for m in models):
        return Verdict.UNKNOWN, note or "not every model has a result"
    if any(s.status is not SuiteStatus.PASSED for s in shared):
        return Verdict.UNKNOWN, note or "a shared suite has no result"
    if not models:
        return Verdict.UNKNOWN, note or "no model was tested"
    if workflow.phase != "Succeeded" and not note:
        return _green_but_not_succeeded(workflow, settings)
    return Verdict.PASSED, note


def _green_but_not_succeeded(workflow: Workflow, settings: Settings) -> tuple[Verdict, str]:
    """Every suite is green, yet Argo says no: believe the tests only where the exit handler alone went wrong."""
    node = test_node(workflow, settings)
    if node is not None and node.phase == "Succeeded":
        return Verdict.PASSED, "the tests passed; a later step of the workflow failed"
    return Verdict.UNKNOWN, f"every suite is green, but Argo says {workflow.phase}: {workflow.message}".rstrip(": ")


def _without_results(workflow: Workflow, settings: Settings, results: NoResults, note: str) -> tuple[Verdict, str]:
    if _deadline(workflow, settings):
        return Verdict.TIMED_OUT, note
    leaf = failure_message(workflow)
    parts = [note, f"Argo says {workflow.phase}, but {results.reason}", leaf]
    return Verdict.UNKNOWN, "; ".join(part for part in parts if part)


def _cut_short(workflow: Workflow, results: Results) -> str:
    if results.complete:
        return ""
    leaf = failure_message(workflow)
    return f"the run ended before all suites ran{': ' + leaf if leaf else ''}"


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
    killed = node.outputs is not None and node.outputs.exit_code in {"143", "137"}
    return node.phase == "Failed" and not killed and not _stopped_text(node.message)


def _stopped_text(message: str) -> bool:
    """Argo's words on a node that a shutdown ended (exec_control.go; one of them has two spaces)."""
    return message.startswith(("workflow shutdown with strategy", "Stopped with strategy"))


def _deadline(workflow: Workflow, settings: Settings) -> bool:
    """Argo marks what the deadline ended by these texts alone (operator.go, exec_control.go; the kubelet's own)."""
    texts = ("Step exceeded its deadline", "Pod was active on the node longer than the specified deadline")
    node = test_node(workflow, settings)
    messages = [workflow.message, node.message if node else ""]
    messages += [n.message for n in workflow.nodes.values() if not n.is_exit]
    return any(text in message for message in messages for text in texts)


def failure_message(workflow: Workflow) -> str:
    """The most telling message: a failed leaf's, since composites say nothing of use (a DAG's is empty)."""
    nodes = workflow.nodes
    for node in nodes.values():
        if node.phase not in {"Failed", "Error"} or node.is_exit or not node.message:
            continue
        if node.type in {"Pod", "Container", "HTTP", "Plugin", "Skipped"} and not _superseded(node, nodes):
            return node.message
    return workflow.message


def _superseded(node: Node, nodes: dict[str, Node]) -> bool:
    """A failed try below a Retry node that went on to succeed."""
    if not (node.node_flag and node.node_flag.retried):
        return False
    return any(
        parent.type == "Retry" and node.id in (parent.children or []) and parent.phase not in {"Failed", "Error"}
        for parent in nodes.values()
    )
