"""What a Workflow is to do: its spec merged over its WorkflowTemplate's, and with its parameters filled in.

argo-workflows v3.7.3: `workflow/util/merge.go`, `util/template`.
"""

from __future__ import annotations

import json
import re
from typing import Any

Json = dict[str, Any]
Parameters = dict[str, str]

_TAG = re.compile(r"\{\{\s*([^{}=][^{}]*?)\s*\}\}")
_MERGED_BY = {
    "templates": "name",
    "volumes": "name",
    "parameters": "name",
    "artifacts": "name",
    "imagePullSecrets": "name",
    "tolerations": "key",
    "hostAliases": "ip",
}
_FOLLOWED = ("entrypoint", "suspend", "shutdown")
"""Fields of a running Workflow that are read again; all others are as they were at its start."""


class InvalidSpec(ValueError):
    """A spec that the controller refuses; the text goes into the status."""


def merge_specs(workflow: Json, template: Json) -> Json:
    """The Workflow's spec over the WorkflowTemplate's; `suspend` is the Workflow's alone."""
    merged: Json = _merge(template, workflow, "")
    merged.pop("suspend", None)
    if "suspend" in workflow:
        merged["suspend"] = workflow["suspend"]
    return merged


def _merge(base: Any, over: Any, field: str) -> Any:
    if isinstance(base, dict) and isinstance(over, dict):
        merged = dict(base)
        for key, value in over.items():
            merged[key] = _merge(base[key], value, key) if key in base else value
        return merged
    key = _MERGED_BY.get(field)
    if key is not None and isinstance(base, list) and isinstance(over, list):
        by_key = {one.get(key): one for one in base}
        for one in over:
            by_key[one.get(key)] = _merge(by_key[one.get(key)], one, "") if one.get(key) in by_key else one
        return list(by_key.values())
    return over


def follow(stored: Json, spec: Json) -> Json:
    """The stored spec with what may change while the workflow runs."""
    followed = {key: value for key, value in stored.items() if key not in _FOLLOWED or key == "entrypoint"}
    for key in _FOLLOWED:
        if spec.get(key) is not None:
            followed[key] = spec[key]
    return followed


def template_of(spec: Json, name: str) -> Json | None:
    """The template of that name."""
    return next((one for one in spec.get("templates") or () if one.get("name") == name), None)


def global_parameters(wf: Json, spec: Json) -> Parameters:
    """The `workflow.…` variables that hold from the start."""
    meta = wf["metadata"]
    values: Parameters = {
        "workflow.name": meta["name"],
        "workflow.namespace": meta["namespace"],
        "workflow.uid": meta["uid"],
        "workflow.mainEntrypoint": spec.get("entrypoint", ""),
        "workflow.serviceAccountName": spec.get("serviceAccountName", "default"),
        "workflow.creationTimestamp": meta["creationTimestamp"],
        "workflow.scheduledTime": (meta.get("annotations") or {}).get("workflows.argoproj.io/scheduled-time", ""),
        "workflow.priority": str(spec.get("priority", 0)),
    }
    parameters = (spec.get("arguments") or {}).get("parameters") or []
    for one in parameters:
        values[f"workflow.parameters.{one['name']}"] = text_of(one.get("value"))
    values["workflow.parameters"] = json.dumps([{"name": one["name"], "value": one.get("value")} for one in parameters])
    for key, value in (meta.get("labels") or {}).items():
        values[f"workflow.labels.{key}"] = value
    for key, value in (meta.get("annotations") or {}).items():
        values[f"workflow.annotations.{key}"] = value
    for one in ((wf.get("status") or {}).get("outputs") or {}).get("parameters") or ():
        values[f"workflow.outputs.parameters.{one['name']}"] = text_of(one.get("value"))
    return values


def text_of(value: Any) -> str:
    """A parameter's value as the text that Argo makes of it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def substitute(part: Any, values: Parameters) -> Any:
    """Fill in `{{…}}`; what has no value yet stays as it is."""

    def fill(match: re.Match[str]) -> str:
        name = match.group(1)
        return json.dumps(values[name])[1:-1] if name in values else match.group(0)

    return json.loads(_TAG.sub(fill, json.dumps(part)))


def bind_inputs(template: Json, arguments: Json) -> tuple[Json, Parameters]:
    """A template's inputs with their values, and the same as variables.

    Raises InvalidSpec for one without value and default.
    """
    given = {one["name"]: one for one in arguments.get("parameters") or ()}
    inputs: list[Json] = []
    values: Parameters = {}
    for one in (template.get("inputs") or {}).get("parameters") or ():
        supplied = given.get(one["name"], {})
        value = supplied.get("value", one.get("value", one.get("default")))
        if value is None:
            raise InvalidSpec(f"inputs.parameters.{one['name']} was not supplied")
        inputs.append({**one, "value": text_of(value)})
        values[f"inputs.parameters.{one['name']}"] = text_of(value)
    return ({"parameters": inputs} if inputs else {}), values
