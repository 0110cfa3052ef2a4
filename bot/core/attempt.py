"""What the nodes of an attempt say: which step is which, how far it got, what came out, what ended it."""

from __future__ import annotations

from enum import StrEnum

from bot.core.causes import in_plain_words
from bot.core.results import NoResults, Results, read_results
from bot.core.settings import Settings
from bot.core.workflow import Node, Workflow


class Reach(StrEnum):
    """How far an attempt got."""

    QUEUE = "queue"  # nothing of it ran
    WARM_UP = "warm_up"  # no test was started
    TESTS = "tests"


def test_node(workflow: Workflow, settings: Settings) -> Node | None:
    """The node of the test step. Of a retried step it is the Retry parent, which holds the last child's outputs.

    Of several, one that is not done speaks for all, then one that failed.
    """
    nodes = [
        node
        for node in workflow.nodes.values()
        if node.template == settings.steps.test and not node.is_exit and not (node.node_flag and node.node_flag.retried)
    ]
    return max(
        nodes,
        key=lambda n: (n.type == "Retry", not n.done, n.phase in {"Failed", "Error"}, n.type == "Pod"),
        default=None,
    )


def warmup_node(workflow: Workflow, settings: Settings) -> Node | None:
    """The node of the warm-up step."""
    return next((n for n in workflow.nodes.values() if n.template == settings.steps.warmup and not n.is_exit), None)


def is_unplaced(node: Node) -> bool:
    """No node yet: the scheduler said so, or nobody has said anything (a fresh pod, a scheduling gate)."""
    return not node.message or node.message.startswith(("Unschedulable", "pods ")) or "exceeded quota" in node.message


def reach_of(workflow: Workflow, settings: Settings) -> Reach:
    """How far this attempt got."""
    node = test_node(workflow, settings)
    skipped = node is None or node.phase in {"Omitted", "Skipped"} or (workflow.ended and node.phase == "Pending")
    if workflow.hidden or not skipped:
        return Reach.TESTS
    pods = [node for node in workflow.nodes.values() if node.type == "Pod" and not node.is_exit]
    return Reach.WARM_UP if any(not _never_created(node) for node in pods) else Reach.QUEUE


def _never_created(node: Node) -> bool:
    """The shutdown came before the pod: one space in this text, where that on a pod's node has two (workflowpod.go)."""
    return node.message.startswith("workflow shutdown with strategy: ") and "  " not in node.message


def results_of(workflow: Workflow, settings: Settings) -> Results | NoResults:
    """The results document of this attempt, from its node; `status.outputs` would survive a retry."""
    if workflow.hidden:
        return NoResults(workflow.hidden)
    node = test_node(workflow, settings)
    if node is None or reach_of(workflow, settings) is not Reach.TESTS:
        return NoResults("no test ran")
    if node.from_cache:
        return NoResults("no test ran: Argo took the outputs of an earlier run from its cache")
    for parameter in (node.outputs.parameters if node.outputs else None) or []:
        if parameter.name == settings.steps.results:
            return read_results(parameter.text)
    return NoResults("no results came")


def exit_step_said(workflow: Workflow, settings: Settings) -> str:
    """Whether the exit step spoke for itself: yes, no or unknown. One that never began said nothing."""
    exits = [node for node in workflow.nodes.values() if node.is_exit and node.display_name.endswith(".onExit")]
    if not exits:
        return "unknown" if workflow.hidden else "no"
    said = [
        p.text
        for n in exits
        for p in (n.outputs.parameters if n.outputs else None) or []
        if p.name == settings.steps.said
    ]
    return "no" if said and all(text == "no" for text in said) else "unknown"


def cause_of(workflow: Workflow, settings: Settings) -> str:
    """What ended the attempt, in plain words; "" where nothing says so. A DAG's own message is empty."""
    leaf = failed_leaf(workflow)
    if leaf is None:
        return f"Argo says {workflow.phase}: {workflow.message}" if workflow.ended and workflow.message else ""
    names = {settings.steps.test: "the test pod", settings.steps.warmup: "the warm-up pod"}
    return in_plain_words(names.get(leaf.template, f"the step {leaf.display_name}"), leaf.message)


def failed_leaf(workflow: Workflow) -> Node | None:
    """The failed node that tells most: no composite, no hook, no try that another followed, none without a message."""
    nodes = workflow.nodes
    for node in nodes.values():
        if node.phase not in {"Failed", "Error"} or node.is_exit or not node.message:
            continue
        if node.type in {"Pod", "Container", "HTTP", "Plugin", "Skipped"} and not _superseded(node, nodes):
            return node
    return None


def _superseded(node: Node, nodes: dict[str, Node]) -> bool:
    """A failed try below a Retry node that went on to another."""
    if not (node.node_flag and node.node_flag.retried):
        return False
    for parent in nodes.values():
        tries = [child for child in parent.children or [] if child in nodes and not nodes[child].is_exit]
        if parent.type == "Retry" and node.id in tries:
            return parent.phase not in {"Failed", "Error"} or node.id != tries[-1]
    return False
