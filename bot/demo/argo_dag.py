"""The tasks of a DAG: which may run, which are left out, and what becomes of the whole.

argo-workflows v3.7.3: `workflow/controller/dag.go`, `workflow/common/ancestry.go`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Protocol

from bot.demo.argo_expr import evaluate
from bot.demo.argo_nodes import FAILED, Nodes, completed, fulfilled
from bot.demo.argo_operation import Operation
from bot.demo.argo_spec import text_of
from bot.demo.world import Json

_TASK = re.compile(r"[A-Za-z0-9][-A-Za-z0-9]*(?:\.[A-Z][A-Za-z]+)?")
_RESULTS = {
    "Succeeded": "Succeeded",
    "Failed": "Failed",
    "Errored": "Error",
    "Skipped": "Skipped",
    "Omitted": "Omitted",
}


@dataclass(frozen=True)
class Call:
    """One use of a template."""

    name: str
    """Of the node."""
    template: str
    arguments: Json
    boundary: str = ""
    exit_handler: bool = False
    flag: tuple[str, ...] = ()


class Executor(Protocol):
    """What executes the templates of tasks."""

    op: Operation
    nodes: Nodes

    def call(self, call: Call, step: Json, name: str, boundary: str, scope: dict[str, str]) -> Json:
        """Execute one task, unless its `when` says no."""
        ...

    def skip(self, name: str, step: Json, boundary: str, phase: str, message: str) -> Json:
        """Note a task that is not executed."""
        ...


class Dag:
    """The tasks of one DAG node."""

    def __init__(self, templates: Executor, call: Call, node: Json, template: Json) -> None:
        self._templates = templates
        self._nodes = templates.nodes
        self._call = call
        self._dag_node = node
        self._tasks: dict[str, Json] = {task["name"]: task for task in template["dag"]["tasks"]}
        self._fail_fast = template["dag"].get("failFast", True)
        self._visited: set[str] = set()

    def node(self, task: str) -> Json | None:
        return self._nodes.get(f"{self._dag_node['name']}.{task}")

    def leaves(self) -> list[str]:
        needed = {one for task in self._tasks for one in self._dependencies(task)}
        return [task for task in self._tasks if task not in needed]

    def execute(self, task: str) -> None:
        """Execute a task, and before it what it depends on."""
        if task in self._visited:
            return
        self._visited.add(task)
        node = self.node(task)
        if node is not None and fulfilled(node):
            return
        dependencies = self._dependencies(task)
        name = f"{self._dag_node['name']}.{task}"
        if node is None:
            for dependency in dependencies:
                self.execute(dependency)
            ready = [self.node(dependency) for dependency in dependencies]
            if any(one is None or not fulfilled(one) for one in ready):
                return
            self._connect(name, dependencies)
            if not self._wanted(task):
                self._templates.skip(
                    name, self._tasks[task], self._dag_node["id"], "Omitted", "omitted: depends condition not met"
                )
                return
        else:
            for dependency in dependencies:
                self.execute(dependency)
        self._templates.call(self._call, self._tasks[task], name, self._dag_node["id"], self._scope(task))

    def _connect(self, name: str, dependencies: list[str]) -> None:
        if not dependencies:
            self._nodes.connect(self._dag_node, name)
        for dependency in dependencies:
            before = self.node(dependency)
            for end in self._nodes.outbound(before) if before is not None else ():
                self._nodes.connect(end, name)

    def _logic(self, task: str) -> str:
        depends = self._tasks[task].get("depends")
        return str(depends) if depends else " && ".join(self._tasks[task].get("dependencies") or ())

    def _dependencies(self, task: str) -> list[str]:
        return list(dict.fromkeys(word.partition(".")[0] for word in _TASK.findall(self._logic(task))))

    def _wanted(self, task: str) -> bool:
        logic = self._logic(task)
        if not logic:
            return True

        def resolve(word: str) -> bool:
            name, _, result = word.partition(".")
            phase = (self.node(name) or {}).get("phase", "")
            if result:
                return bool(phase == _RESULTS.get(result, ""))
            goes_on = self._tasks[name].get("continueOn") or {}
            allowed = {"Succeeded", "Skipped"}
            allowed |= {"Error"} if goes_on.get("error") else set()
            allowed |= {"Failed"} if goes_on.get("failed") else set()
            return phase in allowed

        return evaluate(logic, resolve)

    def _scope(self, task: str) -> dict[str, str]:
        scope: dict[str, str] = {}
        for dependency in self._dependencies(task):
            scope |= self._scope(dependency)
            if (node := self.node(dependency)) is not None:
                add_to_scope(scope, f"tasks.{dependency}", node)
        return scope

    def scope_of_all(self) -> dict[str, str]:
        scope: dict[str, str] = {}
        for task in self._tasks:
            if (node := self.node(task)) is not None:
                add_to_scope(scope, f"tasks.{task}", node)
        return scope

    def phase(self, targets: list[str]) -> str:
        """The phase of the whole: that of its targets, where an omitted one inherits that of its branch."""
        if self._templates.op.shutdown:
            return "Failed"
        phases = self._branch_phases(targets)
        if phases is None:
            return "Running"
        result = "Succeeded"
        for target in targets:
            phase = phases[target]
            goes_on = self._tasks[target].get("continueOn") or {}
            if phase == "":
                result = "Running"
                if not self._fail_fast:
                    break
            elif phase in FAILED and not goes_on.get("failed" if phase == "Failed" else "error"):
                result = phase
                if self._fail_fast:
                    break
        return result

    def _branch_phases(self, targets: list[str]) -> dict[str, str] | None:
        phases = dict.fromkeys(targets, "")
        names = {f"{self._dag_node['name']}.{target}": target for target in targets}
        queue: list[tuple[str, str]] = [(child, "Succeeded") for child in self._dag_node.get("children", ())]
        seen: set[tuple[str, str]] = set(queue)
        while queue:
            identity, phase = queue.pop(0)
            node = self._nodes.by_id.get(identity)
            if node is None or not fulfilled(node):
                return None
            if completed(node):
                phase = node["phase"]
            target = names.get(node["name"])
            if target is not None and phases[target] not in FAILED:
                phases[target] = phase
            for child in node.get("children", ()) if node["type"] != "Retry" else self._after_retry(node):
                if (child, phase) not in seen:
                    seen.add((child, phase))
                    queue.append((child, phase))
        return phases

    def _after_retry(self, node: Json) -> list[str]:
        tries: list[str] = node.get("children", [])
        last: Any = self._nodes.by_id.get(tries[-1]) if tries else None
        return list(last.get("children", ())) if last else []


def add_to_scope(scope: dict[str, str], prefix: str, node: Json) -> None:
    """Make a node's status and outputs known as variables."""
    scope[f"{prefix}.id"] = node["id"]
    scope[f"{prefix}.status"] = node["phase"]
    scope[f"{prefix}.startedAt"] = node.get("startedAt") or ""
    scope[f"{prefix}.finishedAt"] = node.get("finishedAt") or ""
    outputs = node.get("outputs") or {}
    if "exitCode" in outputs:
        scope[f"{prefix}.exitCode"] = outputs["exitCode"]
    if "result" in outputs:
        scope[f"{prefix}.outputs.result"] = outputs["result"]
    for parameter in outputs.get("parameters") or ():
        scope[f"{prefix}.outputs.parameters.{parameter['name']}"] = text_of(parameter.get("value"))
