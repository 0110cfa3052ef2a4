"""`status.nodes` of a Workflow: ids, names, phases, and the edges between nodes.

Shape and names follow argo-workflows v3.7.3: `workflow/controller/operator.go` (initializeNode, markNodePhase,
addChildNode) and `workflow/util/pod_name.go`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

FAILED = ("Failed", "Error")
EXECUTABLE = ("Pod", "HTTP", "Plugin", "Container", "Suspend")
_SEPARATOR = re.compile(r"^(\[\d+\])?\.")


def fnv32a(text: str) -> int:
    """The 32-bit FNV-1a hash."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def node_id(workflow: str, name: str) -> str:
    """The id of a node: the workflow's name for the root, else with a hash of the node's name."""
    return workflow if workflow == name else f"{workflow}-{fnv32a(name)}"


def pod_name(workflow: str, name: str, template: str) -> str:
    """The name of a node's pod (naming version 2)."""
    if workflow == name:
        return workflow
    prefix = f"{workflow}-{template}"[: 253 - 11]
    return f"{prefix}-{fnv32a(name)}"


def completed(node: Json) -> bool:
    """Whether it ran to an end: neither skipped nor omitted."""
    return node["phase"] in ("Succeeded", *FAILED)


def fulfilled(node: Json) -> bool:
    """Whether nothing more will happen to it; results that are still reported hold it open."""
    if node["phase"] in ("Skipped", "Omitted"):
        return True
    return completed(node) and node.get("taskResultSynced", True)


@dataclass(frozen=True)
class NewNode:
    """What a node is born with."""

    name: str
    type: str
    phase: str
    template: str = ""
    boundary: str = ""
    message: str = ""
    flag: Json = field(default_factory=dict)
    inputs: Json | None = None


class Nodes:
    """The nodes of one workflow, by name; writes go straight into the status."""

    def __init__(self, workflow: str, nodes: dict[str, Json], now: Callable[[], str]) -> None:
        self.workflow = workflow
        self.by_id = nodes
        self._now = now

    def __iter__(self) -> Iterator[Json]:
        return iter(list(self.by_id.values()))

    def get(self, name: str) -> Json | None:
        """The node of that name."""
        return self.by_id.get(node_id(self.workflow, name))

    def add(self, new: NewNode) -> Json:
        """Begin a node."""
        identity = node_id(self.workflow, new.name)
        boundary = self.by_id.get(new.boundary)
        display = new.name
        if boundary is not None:
            display = _SEPARATOR.sub("", new.name.removeprefix(boundary["name"]))
        node: Json = {"id": identity, "name": new.name, "displayName": display, "type": new.type}
        if new.template:
            node["templateName"] = new.template
        node |= {"templateScope": f"local/{self.workflow}", "phase": new.phase}
        if new.boundary:
            node["boundaryID"] = new.boundary
        if new.message:
            node["message"] = new.message
        if new.flag or new.type == "Skipped":
            node["nodeFlag"] = dict(new.flag)
        if new.inputs:
            node["inputs"] = new.inputs
        node |= {"startedAt": self._now(), "finishedAt": None}
        if new.type == "Pod":
            node["taskResultSynced"] = True
        if fulfilled(node):
            node["finishedAt"] = node["startedAt"]
        self.by_id[identity] = node
        return node

    def mark(self, node: Json, phase: str, message: str | None = None) -> Json:
        """Set phase and, where given, message; an end is stamped."""
        if node["phase"] != "Running" and phase in FAILED and "taskResultSynced" in node:
            node["taskResultSynced"] = True
        node["phase"] = phase
        if message is not None:
            node.pop("message", None)
            if message:
                node["message"] = message
        if fulfilled(node) and not node.get("finishedAt"):
            node["finishedAt"] = self._now()
        return node

    def connect(self, parent: Json, name: str) -> None:
        """Draw an edge from a node to the node of that name, which may not exist yet."""
        child = node_id(self.workflow, name)
        children = parent.setdefault("children", [])
        if child not in children:
            children.append(child)

    def outbound(self, node: Json) -> list[Json]:
        """The nodes from which execution goes on after this one."""
        match node["type"]:
            case "DAG" | "Steps" | "StepGroup" if node.get("outboundNodes") or node["type"] != "StepGroup":
                return [self.by_id[one] for one in node.get("outboundNodes", ()) if one in self.by_id]
            case "StepGroup":
                ends = [self.by_id[one] for one in node.get("children", ()) if one in self.by_id]
                return [end for child in ends for end in self.outbound(child)] or [node]
            case "Retry":
                tries = [self.by_id[one] for one in node.get("children", ()) if one in self.by_id]
                return self.outbound(tries[-1]) if tries else [node]
        return [node]

    def in_exit_handler(self, node: Json) -> bool:
        """Whether it belongs to the workflow's exit handler."""
        while (boundary := self.by_id.get(node.get("boundaryID", ""))) is not None:
            node = boundary
        return bool(node["displayName"].endswith(".onExit"))

    def sum_progress(self) -> str:
        """Give every node its progress and return the sum for the workflow, as "done/all"."""
        total = (0, 0)
        for node in self:
            if node["type"] in EXECUTABLE:
                done, out_of = _progress(node.get("progress"))
                if node["phase"] in ("Succeeded", "Skipped", "Omitted"):
                    done = out_of
                node["progress"] = f"{done}/{out_of}"
                total = (total[0] + done, total[1] + out_of)
        for node in self:
            if node["type"] not in EXECUTABLE:
                done, out_of = self._sum_of_children(node, set())
                if out_of:
                    node["progress"] = f"{done}/{out_of}"
        return f"{total[0]}/{total[1]}"

    def _sum_of_children(self, node: Json, visited: set[str]) -> tuple[int, int]:
        done, out_of = 0, 0
        for one in node.get("children", ()):
            child = self.by_id.get(one)
            if child is None or one in visited:
                continue
            visited.add(one)
            more = self._sum_of_children(child, visited)
            done, out_of = done + more[0], out_of + more[1]
            if child["type"] in EXECUTABLE:
                own = _progress(child.get("progress"))
                done, out_of = done + own[0], out_of + own[1]
        return done, out_of


def _progress(text: str | None) -> tuple[int, int]:
    done, _, out_of = (text or "0/1").partition("/")
    return int(done), int(out_of)
