"""The files under deploy/, read for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
FILES = sorted(file for file in DEPLOY.rglob("*.yaml") if "target" not in file.parts)
TEN = ["dqn", "ppo", "tft", "mamba2", "tggn", "tlob", "liquid", "kan", "xlstm", "diffusion"]


def load(name: str) -> dict[str, Any]:
    """Read a file of one object."""
    found: dict[str, Any] = yaml.safe_load((DEPLOY / name).read_text())
    return found


def several(name: str) -> list[dict[str, Any]]:
    """Read a file of several objects."""
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def documents(name: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Read a file of several objects, by kind and name."""
    return {(each["kind"], each["metadata"]["name"]): each for each in several(name)}


def parameters(spec: dict[str, Any]) -> dict[str, str]:
    """The parameters of a Workflow's spec, by name."""
    return {each["name"]: each.get("value") for each in spec["arguments"]["parameters"]}
