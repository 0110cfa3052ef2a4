"""What `argo retry` makes of a failed workflow.

argo-workflows v3.7.3 `workflow/util/util.go` (FormulateRetryWorkflow): the same object lives again, its failed nodes
and its exit handler forgotten, their ancestors running. Only what the default flags do.
"""

from __future__ import annotations

import copy
from typing import Any

from bot.demo.argo_nodes import FAILED
from bot.demo.argo_pods import PREFIX

Json = dict[str, Any]
GROUPS = ("DAG", "TaskGroup", "StepGroup", "Steps")


class CannotRetry(ValueError):
    """Only a failed workflow can be retried."""


def formulate_retry(wf: Json, now: str) -> tuple[Json, set[str]]:
    """The workflow as it is written back, and the ids of the nodes whose pods are to be deleted.

    Raises CannotRetry.
    """
    phase = (wf.get("status") or {}).get("phase", "")
    if phase not in FAILED:
        raise CannotRetry(f"Cannot retry a workflow in phase {phase}")
    again: Json = copy.deepcopy(wf)
    _reset_workflow(again, now)
    nodes: dict[str, Json] = again["status"]["nodes"]
    exit_name = f"{wf['metadata']['name']}.onExit"
    gone = {one for one, node in nodes.items() if node["name"].startswith(exit_name)}
    failed = {
        one for one, node in nodes.items() if node["phase"] in FAILED and node["type"] in ("Pod", "Container", "HTTP")
    }
    for one in failed - gone:
        gone |= {one} | _descendants(nodes, one)
    for one in failed:
        for ancestor in _ancestors(nodes, one):
            if ancestor not in gone and (nodes[ancestor]["type"] in GROUPS or nodes[ancestor]["type"] == "Retry"):
                _reset(nodes[ancestor], now)
    pods = {one for one in gone if nodes[one]["type"] == "Pod"}
    for one in gone:
        del nodes[one]
    for node in nodes.values():
        for edges in ("children", "outboundNodes"):
            if edges in node:
                node[edges] = [one for one in node[edges] if one not in gone]
    return again, pods


def _reset_workflow(wf: Json, now: str) -> None:
    labels, status = wf["metadata"].setdefault("labels", {}), wf["status"]
    labels.pop(f"{PREFIX}/completed", None)
    labels.pop(f"{PREFIX}/workflow-archiving-status", None)
    labels[f"{PREFIX}/phase"] = "Running"
    conditions = [one for one in status.get("conditions") or () if one["type"] != "Completed"]
    status["conditions"] = [*conditions, {"type": "Completed", "status": "False"}]
    status |= {"phase": "Running", "startedAt": now, "finishedAt": None}
    status.pop("message", None)
    wf["spec"].pop("shutdown", None)
    (status.get("storedWorkflowTemplateSpec") or {}).pop("shutdown", None)


def _reset(node: Json, now: str) -> None:
    if node["phase"] != "Skipped":
        node["phase"] = "Running"
    node.pop("message", None)
    node |= {"startedAt": now, "finishedAt": None}


def _descendants(nodes: dict[str, Json], one: str) -> set[str]:
    found: set[str] = set()
    queue = list(nodes[one].get("children", ()))
    while queue:
        child = queue.pop()
        if child in nodes and child not in found:
            found.add(child)
            queue += nodes[child].get("children", ())
    return found


def _ancestors(nodes: dict[str, Json], one: str) -> set[str]:
    found: set[str] = set()
    queue = [one]
    while queue:
        current = queue.pop()
        above = {other for other, node in nodes.items() if current in node.get("children", ())}
        boundary = nodes[current].get("boundaryID")
        if boundary in nodes:
            above.add(boundary)
        queue += above - found
        found |= above
    return found
