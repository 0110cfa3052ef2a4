"""Executing templates: DAGs, steps, retries, suspensions, and containers that become pods.

argo-workflows v3.7.3: `workflow/controller/operator.go` (executeTemplate, processNodeRetries), `dag.go`, `steps.go`,
`workflow/common/ancestry.go`.
"""

from __future__ import annotations

import re
from dataclasses import replace

from bot.demo.argo_dag import Call, Dag, add_to_scope
from bot.demo.argo_expr import ExpressionError, evaluate
from bot.demo.argo_nodes import FAILED, NewNode, fulfilled, pod_name
from bot.demo.argo_operation import Operation, seconds_of
from bot.demo.argo_pods import make_pod
from bot.demo.argo_spec import InvalidSpec, bind_inputs, substitute, template_of
from bot.demo.kinds import PODS
from bot.demo.status import ApiError
from bot.demo.world import Json


class Templates:
    """Executes the templates of one workflow in one pass."""

    def __init__(self, operation: Operation) -> None:
        self.op = operation
        self.nodes = operation.nodes

    def execute_entry(self) -> Json:
        """The workflow's own template. Raises InvalidSpec where it cannot be executed."""
        spec = self.op.spec
        call = Call(self.op.meta["name"], spec["entrypoint"], spec.get("arguments") or {})
        return self.execute(call)

    def execute_exit(self, name: str, template: str) -> Json:
        """The workflow's exit handler."""
        arguments = self.op.spec.get("arguments") or {}
        return self.execute(Call(name, template, arguments, exit_handler=True, flag=("hooked",)))

    def execute(self, call: Call) -> Json:
        """Begin or continue the node of a call; returns it."""
        node = self.nodes.get(call.name)
        if node is not None and fulfilled(node):
            return node
        template = template_of(self.op.spec, call.template)
        if template is None:
            raise InvalidSpec(f"template {call.template} not found")
        declared = substitute({"inputs": template.get("inputs") or {}}, self.op.globals)
        inputs, values = bind_inputs(declared, call.arguments)
        filled = substitute(
            {key: value for key, value in template.items() if key != "inputs"}, self.op.globals | values
        )
        if template.get("retryStrategy") and not call.name.endswith(")"):
            return self._retry(call, filled)
        if "dag" in filled:
            return self._dag(call, filled, inputs)
        if "steps" in filled:
            return self._steps(call, filled, inputs)
        if "suspend" in filled:
            return self._suspend(call, filled, inputs)
        return self._pod(call, filled, inputs)

    def _new(self, call: Call, sort: str, phase: str, inputs: Json | None = None, message: str = "") -> Json:
        flag = dict.fromkeys(call.flag, True)
        return self.nodes.add(NewNode(call.name, sort, phase, call.template, call.boundary, message, flag, inputs))

    def _pod(self, call: Call, template: Json, inputs: Json) -> Json:
        node = self.nodes.get(call.name) or self._new(call, "Pod", "Pending", inputs)
        now, timeout = self.op.store.clock.time(), template.get("timeout")
        until = seconds_of(node["startedAt"]) + _duration(timeout) if timeout else None
        if until is not None and node["phase"] == "Pending" and now > until:
            return self.nodes.mark(node, "Failed", "timeout")
        name = pod_name(self.op.meta["name"], node["name"], node.get("templateName", ""))
        if self.op.store.find(PODS, self.op.key[0], name) is not None:
            return node
        if not self.op.may_execute(exit_handler=call.exit_handler):
            return self.nodes.mark(node, "Failed", f"workflow shutdown with strategy: {self.op.shutdown}")
        seconds = self._seconds_of_pod(call, template)
        if until is not None:
            left = int(until - now)
            if left <= 1:
                raise InvalidSpec(f"{call.name} exceeded its deadline")
            seconds = left if seconds is None else min(left, seconds)
        if seconds is not None and seconds <= 0:
            return node
        task = {**template, "inputs": inputs} if inputs else template
        pod = make_pod(self.op.wf, self.op.spec, task, node, exit_handler=call.exit_handler)
        if seconds is not None:
            pod["spec"]["activeDeadlineSeconds"] = seconds
        try:
            self.op.store.create(PODS, pod)
        except ApiError as error:
            return self.nodes.mark(node, "Pending", str(error))
        return node

    def _seconds_of_pod(self, call: Call, template: Json) -> int | None:
        """How long a pod may run: what its template says, and not beyond the workflow's deadline."""
        own = template.get("activeDeadlineSeconds")
        seconds = int(own) if own is not None else None
        if self.op.deadline is None or call.exit_handler:
            return seconds
        left = int(self.op.deadline - self.op.store.clock.time())
        return left if seconds is None else min(left, seconds)

    def _suspend(self, call: Call, template: Json, inputs: Json) -> Json:
        node = self.nodes.get(call.name) or self._new(call, "Suspend", "Running", inputs)
        duration = (template.get("suspend") or {}).get("duration")
        if duration:
            until = seconds_of(node["startedAt"]) + _duration(duration)
            if self.op.store.clock.time() >= until:
                return self.nodes.mark(node, "Succeeded")
            self.op.requeue(until)
        return node

    def _retry(self, call: Call, template: Json) -> Json:
        node = self.nodes.get(call.name) or self._new(call, "Retry", "Running")
        strategy = template["retryStrategy"]
        tries = [self.nodes.by_id[one] for one in node.get("children", ()) if one in self.nodes.by_id]
        last = tries[-1] if tries else None
        if last is not None and fulfilled(last):
            if "outputs" in last:
                node["outputs"] = last["outputs"]
            if last["phase"] not in FAILED:
                return self.nodes.mark(node, "Succeeded", "")
            if self.op.shutdown:
                return self.nodes.mark(node, last["phase"], f"Stopped with strategy '{self.op.shutdown}'")
            limit = strategy.get("limit")
            if limit is not None and len(tries) > int(limit):
                return self.nodes.mark(node, last["phase"], "No more retries left")
            last = None
        if last is None:
            name = f"{call.name}({len(tries)})"
            self.nodes.connect(node, name)
        else:
            name = last["name"]
        self.execute(replace(call, name=name, boundary=call.boundary, flag=("retried",)))
        return node

    def _steps(self, call: Call, template: Json, inputs: Json) -> Json:
        node = self.nodes.get(call.name) or self._new(call, "Steps", "Running", inputs)
        scope: dict[str, str] = {}
        previous: Json | None = None
        for index, group_steps in enumerate(template["steps"]):
            name = f"{call.name}[{index}]"
            group = self.nodes.get(name)
            if group is None:
                group = self.nodes.add(NewNode(name, "StepGroup", "Running", "", node["id"]))
                for parent in self.nodes.outbound(previous) if previous is not None else [node]:
                    self.nodes.connect(parent, name)
            self._step_group(call, node, group, group_steps, scope)
            if not fulfilled(group):
                return node
            if group["phase"] in FAILED:
                self._end(node, template, scope, [group])
                return self.nodes.mark(node, "Failed", f"child '{group['id']}' failed")
            previous = group
        self._end(node, template, scope, [previous] if previous else [])
        return self.nodes.mark(node, "Succeeded")

    def _step_group(self, call: Call, node: Json, group: Json, steps: list[Json], scope: dict[str, str]) -> None:
        children: list[Json] = []
        for step in steps:
            name = f"{group['name']}.{step['name']}"
            child = self.nodes.get(name)
            if child is None or not fulfilled(child):
                self.nodes.connect(group, name)
                child = self.call(call, step, name, node["id"], scope)
            children.append(child)
            add_to_scope(scope, f"steps.{step['name']}", child)
        if all(fulfilled(child) for child in children) and not fulfilled(group):
            bad = next((child for child in children if child["phase"] in FAILED), None)
            if bad is not None:
                self.nodes.mark(group, "Failed", f"child '{bad['id']}' failed")
            else:
                self.nodes.mark(group, "Succeeded")

    def _dag(self, call: Call, template: Json, inputs: Json) -> Json:
        node = self.nodes.get(call.name) or self._new(call, "DAG", "Running", inputs)
        dag = Dag(self, call, node, template)
        targets = (template["dag"].get("target") or "").split() or dag.leaves()
        for target in targets:
            dag.execute(target)
        phase = dag.phase(targets)
        if phase == "Running":
            return node
        ends = [end for target in targets if (end := dag.node(target)) is not None]
        self._end(node, template, dag.scope_of_all(), ends, with_outputs=phase == "Succeeded")
        return self.nodes.mark(node, phase)

    def _end(
        self, node: Json, template: Json, scope: dict[str, str], ends: list[Json], *, with_outputs: bool = True
    ) -> None:
        node["outboundNodes"] = [one["id"] for end in ends for one in self.nodes.outbound(end)]
        declared = (template.get("outputs") or {}).get("parameters") or []
        if declared and with_outputs:
            filled = substitute(declared, self.op.globals | scope)
            parameters = [
                {**one, "value": (one.get("valueFrom") or {}).get("parameter", one.get("value", ""))} for one in filled
            ]
            node["outputs"] = {"parameters": parameters}

    def call(self, call: Call, step: Json, name: str, boundary: str, scope: dict[str, str]) -> Json:
        """Execute one step or task, unless its `when` says no."""
        filled = substitute(step, self.op.globals | scope)
        if self.nodes.get(name) is None and filled.get("when"):
            try:
                wanted = evaluate(filled["when"])
            except ExpressionError as error:
                return self.skip(name, step, boundary, "Error", str(error))
            if not wanted:
                return self.skip(name, step, boundary, "Skipped", f"when '{filled['when']}' evaluated false")
        used = Call(name, filled.get("template", ""), filled.get("arguments") or {}, boundary, call.exit_handler)
        try:
            return self.execute(used)
        except InvalidSpec as error:
            parent, existing = self.nodes.by_id.get(boundary, {}), self.nodes.get(name)
            message = f"task '{name}' errored: {error}" if parent.get("type") == "DAG" else str(error)
            if existing is not None:
                return self.nodes.mark(existing, "Error", message)
            return self.skip(name, step, boundary, "Error", message)

    def skip(self, name: str, step: Json, boundary: str, phase: str, message: str) -> Json:
        new = NewNode(name, "Skipped", phase, step.get("template", ""), boundary, message)
        return self.nodes.add(new)


def _duration(text: str | int) -> float:
    """Seconds of a Go duration such as 1h30m, or of a bare number."""
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
    found = re.findall(r"([0-9.]+)(ms|h|m|s)", str(text))
    return sum(float(number) * units[unit] for number, unit in found) if found else float(text)
