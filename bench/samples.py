"""Workflows as large as real ones: a finished run of ten models is about 21 KB."""

from __future__ import annotations

import json
from typing import Any

from tests.phrases import green, node, outputs, workflow_json


def finished(number: int, *, padding: int = 14_000) -> dict[str, Any]:
    """A finished run that was reported long ago."""
    test = node("compile-and-test", "Succeeded", outputs=outputs(green()))
    name = f"gpu-test-{number:05d}x"
    body = workflow_json(name, phase="Succeeded", nodes=[node("gpu-warmup", "Succeeded"), test])
    del body["metadata"]["uid"], body["metadata"]["resourceVersion"], body["metadata"]["creationTimestamp"]
    body["metadata"]["labels"] = {"workflows.argoproj.io/completed": "true", "workflows.argoproj.io/phase": "Succeeded"}
    body["status"]["finishedAt"] = "2026-01-02T10:36:00Z"
    body["status"]["startedAt"] = "2026-01-02T10:00:00Z"
    body["status"]["storedTemplates"] = {"padding": {"name": "x" * padding}}
    return body


def line(number: int) -> bytes:
    """The same as a line of a watch."""
    body = finished(number)
    body["metadata"] |= {"uid": f"uid-{number}", "resourceVersion": str(number)}
    return json.dumps({"type": "MODIFIED", "object": body}).encode()
