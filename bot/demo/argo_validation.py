"""What the controller checks of a Workflow's spec when it first sees it.

argo-workflows v3.7.3: `workflow/validate/validate.go`. A spec that asks for what is not played here is refused as
well, in words of our own, so that it does not pass for something else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Any

from bot.demo.argo_spec import InvalidSpec, template_of

Json = dict[str, Any]

_TYPES = ("container", "containerSet", "steps", "script", "resource", "dag", "suspend", "data", "http", "plugin")
_TOLD = "container, containerSet, steps, script, resource, dag, suspend, template, template ref"
_STRATEGIES = ("", "OnPodCompletion", "OnPodSuccess", "OnWorkflowCompletion", "OnWorkflowSuccess")
_UNPLAYED_TASK = ("withItems", "withParam", "withSequence", "templateRef", "hooks", "inline")
_UNPLAYED_TEMPLATE = ("containerSet", "data", "http", "plugin", "daemon", "memoize", "synchronization")
_NAME_IN_DEPENDS = re.compile(r"([A-Za-z][\w-]*)(?:\.\w+)?")
_VARIABLE = re.compile(r"\{\{\s*((workflow|inputs)\.parameters\.([\w-]+))\s*\}\}")


def check(spec: Json, name: str, own: Json | None = None) -> None:
    """Raises InvalidSpec as the validator does when a workflow is first seen.

    `own` is the workflow's spec where it refers to a template: of a parameter that it names itself the template's
    enum is not looked at.
    """
    if len(name) > 63:
        raise InvalidSpec(f'workflow name "{name}" must not be more than 63 characters long (currently {len(name)})')
    if (own or {}).get("templates"):
        raise InvalidSpec("Templates is invalid field in spec if workflow referred WorkflowTemplate reference")
    _check_names("spec.templates", spec.get("templates") or [])
    _check_names("spec.arguments.parameters", (spec.get("arguments") or {}).get("parameters") or [])
    if not spec.get("entrypoint"):
        raise InvalidSpec("spec.entrypoint is required")
    strategy = (spec.get("podGC") or {}).get("strategy") or ""
    if strategy not in _STRATEGIES:
        raise InvalidSpec(f"podGC.strategy unknown strategy '{strategy}'")
    _check_arguments(spec, own)
    for needed in filter(None, (spec["entrypoint"], spec.get("onExit"))):
        if template_of(spec, needed) is None:
            raise InvalidSpec(f"template name '{needed}' undefined")
    for template in spec.get("templates") or ():
        _check_template(spec, template)


def unplayed(spec: Json) -> str:
    """The first thing in a spec that is not played here; "" where there is none."""
    return next(_unplayed(spec), "")


def _unplayed(spec: Json) -> Iterator[str]:
    yield from (f"spec.{field}" for field in ("hooks",) if spec.get(field))
    locks = spec.get("synchronization") or {}
    yield from (f"spec.synchronization.{field}" for field in ("semaphore", "semaphores") if locks.get(field))
    for template in spec.get("templates") or ():
        where = f"templates.{template.get('name')}"
        yield from (f"{where}.{field}" for field in _UNPLAYED_TEMPLATE if template.get(field))
        for task in _tasks(template):
            yield from (f"{where}.{task.get('name')}.{field}" for field in _UNPLAYED_TASK if task.get(field))
        if "{{=" in json.dumps(template):
            yield f"{where}: expressions in {{{{=…}}}}"


def _check_names(where: str, listed: list[Json]) -> None:
    known: set[str] = set()
    for number, one in enumerate(listed):
        name = one.get("name") or ""
        if not name:
            raise InvalidSpec(f"{where}[{number}].name is required")
        if name in known:
            raise InvalidSpec(f"{where}[{number}].name '{name}' is not unique")
        known.add(name)


def _check_arguments(spec: Json, own: Json | None) -> None:
    parameters = {one.get("name"): one for one in (spec.get("arguments") or {}).get("parameters") or ()}
    parameters |= {one.get("name"): one for one in ((own or {}).get("arguments") or {}).get("parameters") or ()}
    for parameter in parameters.values():
        where = f"spec.arguments.{parameter.get('name')}"
        if parameter.get("value") is None and parameter.get("valueFrom") is None:
            raise InvalidSpec(f"{where}.value or {where}.valueFrom is required")
        if "enum" in parameter and parameter.get("value") not in parameter["enum"]:
            raise InvalidSpec(f"{where}.value should be present in {where}.enum list")


def _check_template(spec: Json, template: Json) -> None:
    name = template["name"]
    types = [one for one in _TYPES if template.get(one) is not None]
    if not types:
        raise InvalidSpec(f"template '{name}' type is unknown")
    if len(types) > 1:
        raise InvalidSpec(f"templates.{name} multiple template types specified. choose one of: {_TOLD}")
    for kind in ("container", "script"):
        if kind in types and not template[kind].get("image"):
            raise InvalidSpec(f"templates.{name}.{kind}.image may not be empty")
    if "dag" in types:
        _check_order(name, template["dag"].get("tasks") or [])
    for task in _tasks(template):
        _check_task(spec, name, task)
    known = {
        "workflow": {one["name"] for one in (spec.get("arguments") or {}).get("parameters") or ()},
        "inputs": {one["name"] for one in (template.get("inputs") or {}).get("parameters") or ()},
    }
    for variable, scope, parameter in _VARIABLE.findall(json.dumps(template)):
        if parameter not in known[scope]:
            raise InvalidSpec(f"templates.{name}: failed to resolve {{{{{variable}}}}}")


def _tasks(template: Json) -> list[Json]:
    steps = [step for group in template.get("steps") or () for step in group]
    return [*((template.get("dag") or {}).get("tasks") or ()), *steps]


def _check_order(name: str, tasks: list[Json]) -> None:
    if not tasks:
        raise InvalidSpec(f"templates.{name} must have at least one task")
    after: dict[str, set[str]] = {}
    for task in tasks:
        if task["name"] in after:
            raise InvalidSpec(f"templates.{name} sorting failed: duplicated nodeName {task['name']}")
        after[task["name"]] = {*(task.get("dependencies") or ()), *_NAME_IN_DEPENDS.findall(task.get("depends") or "")}
    for dependencies in after.values():
        for one in sorted(dependencies - after.keys()):
            raise InvalidSpec(f"templates.{name} sorting failed: invalid dependency {one}")
    try:
        TopologicalSorter(after).prepare()
    except CycleError as error:
        raise InvalidSpec(f"templates.{name} sorting failed: graph with cycle") from error


def _check_task(spec: Json, name: str, task: Json) -> None:
    where = f"templates.{name}.tasks.{task.get('name')}"
    used = task.get("template")
    if not used and not any(task.get(field) for field in ("templateRef", "inline")):
        raise InvalidSpec(f"{where} failed to get a template")
    if not used or "{{" in used:
        return
    template = template_of(spec, used)
    if template is None:
        raise InvalidSpec(f"{where} template name '{used}' undefined")
    given = {one.get("name") for one in (task.get("arguments") or {}).get("parameters") or ()}
    for one in (template.get("inputs") or {}).get("parameters") or ():
        if one["name"] not in given and all(one.get(field) is None for field in ("value", "default", "valueFrom")):
            raise InvalidSpec(f"{where} templates.{used} inputs.parameters.{one['name']} was not supplied")
