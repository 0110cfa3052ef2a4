"""A phrase book: objects as Argo and the runner write them, for tests that read as sentences."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from bot.core.settings import Channels, Settings
from bot.core.workflow import CronWorkflow, Workflow

NOW = 1_772_445_960.0  # 2026-03-02T10:06:00Z
ALL = "dqn,ppo,tft,mamba2,tggn,tlob,liquid,kan,xlstm,diffusion"
SETTINGS = Settings(
    channels=Channels(default="CHANNEL", names=(("CHANNEL", "gpu-tests"),)),
    owners=("olga",),
    timezone="UTC",
    fresh_seconds=3600.0,
)


def suite(model: str, name: str = "", status: str = "passed", **more: Any) -> dict[str, Any]:
    """One suite of a results document."""
    counts = {"passed": {"passed": 9}, "failed": {"passed": 8, "failed": 1, "exit_code": 101}}.get(status, {})
    return (
        {"model": model, "suite": name or f"{model}-lib", "scope": "lib", "status": status, "seconds": 41.0}
        | counts
        | more
    )


def results(suites: list[dict[str, Any]] | None = None, **more: Any) -> str:
    """A results document as the runner writes it."""
    models = list(dict.fromkeys(s["model"] for s in suites or [] if s["model"] != "shared"))
    document = {
        "version": 1,
        "ref": "main",
        "commit": "3f2a9c1" + "0" * 33,
        "models": models,
        "scope": "all",
        "epochs": 5,
        "gpu": {"name": "NVIDIA H100 80GB HBM3", "driver": "570.124.06", "compute_capability": "9.0"},
        "build": {"status": "passed", "seconds": 312.0, "errors": []},
        "suites": suites or [],
        "complete": True,
    }
    return json.dumps(document | more)


def green(models: str = ALL) -> str:
    """Results in which everything passed, the shared suites too."""
    shared = [suite("shared", "core"), suite("shared", "bayesian")]
    return results([suite(m) for m in models.split(",")] + shared)


def node(template: str, phase: str, **more: Any) -> dict[str, Any]:
    """One entry of status.nodes."""
    name = more.pop("display_name", template)
    return {
        "id": f"id-{name}",
        "name": f"run.{name}",
        "displayName": name,
        "type": "Pod",
        "templateName": template,
        "phase": phase,
        "startedAt": "2026-03-02T10:01:00Z",
    } | more


def outputs(text: str, exit_code: str = "0") -> dict[str, Any]:
    """A node's outputs with a results document."""
    return {"parameters": [{"name": "results", "value": text}], "exitCode": exit_code}


def workflow_json(  # noqa: PLR0913
    name: str = "gpu-test-k7m2",
    *,
    phase: str = "",
    nodes: list[dict[str, Any]] | None = None,
    parameters: dict[str, str] | None = None,
    version: int = 1,
    meta: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
    **status: Any,
) -> dict[str, Any]:
    """A Workflow of the test template, as JSON."""
    asked = {"models": "all", "epochs": "5", "commit-ref": "main"} | (parameters or {})
    ended = phase in {"Succeeded", "Failed", "Error"}
    times = {"startedAt": "2026-03-02T10:00:00Z", "finishedAt": "2026-03-02T10:36:00Z" if ended else None}
    body: dict[str, Any] = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {
            "name": name,
            "namespace": "foxhunt",
            "uid": f"uid-{name}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-03-02T09:59:58Z",
        }
        | (meta or {}),
        "spec": {
            "workflowTemplateRef": {"name": "gpu-test-pipeline"},
            "arguments": {"parameters": [{"name": k, "value": v} for k, v in asked.items()]},
        }
        | (spec or {}),
    }
    if phase or status or nodes:
        body["status"] = {
            "phase": phase,
            "nodes": {n["id"]: n for n in nodes or []},
            **(times if phase else {}),
        } | status
    return body


def workflow(name: str = "gpu-test-k7m2", **more: Any) -> Workflow:
    """The same, decoded."""
    return msgspec.json.decode(json.dumps(workflow_json(name, **more)), type=Workflow)


def ended(text: str | None, phase: str = "Succeeded", exit_code: str = "0", **more: Any) -> Workflow:
    """A run that ended with this results document, or with none."""
    test = node("compile-and-test", "Succeeded" if exit_code == "0" else "Failed")
    if text is not None:
        test["outputs"] = outputs(text, exit_code)
    return workflow(phase=phase, nodes=[node("gpu-warmup", "Succeeded"), test], **more)


def cron(name: str = "gpu-test-nightly", *, suspend: bool = True, **spec: Any) -> CronWorkflow:
    """The nightly CronWorkflow."""
    body = {
        "metadata": {"name": name, "namespace": "foxhunt", "uid": "uid-cron", "resourceVersion": "1"},
        "spec": {"suspend": suspend, "schedules": ["0 2 * * *"], "timezone": "Europe/Paris"} | spec,
    }
    return msgspec.json.decode(json.dumps(body), type=CronWorkflow)
