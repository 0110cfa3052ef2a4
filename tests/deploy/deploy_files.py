"""The files under deploy/, read for tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
BIN = Path(sys.executable).parent
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


def lint(tool: str, *arguments: str | Path, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a linter."""
    return subprocess.run([BIN / tool, *arguments], input=text, capture_output=True, text=True, check=False)


def strict(text: str) -> subprocess.CompletedProcess[str]:
    """Check manifests against the schemas of Kubernetes, unknown fields refused; definitions' own kinds are left out."""
    return lint("kubernetes-validate", "--strict", "--no-warn", "--quiet", "-k", "1.34.0", "-", text=text)


def kubectl() -> str:
    """kubectl, which is no Python package: where it is missing a test is left out, but never in CI."""
    found = shutil.which("kubectl")
    if found is None:
        assert "CI" not in os.environ, "kubectl is missing"
        pytest.skip("kubectl is not installed")
    return found


def built(folder: str) -> list[dict[str, Any]]:
    """A kustomization's objects, by the kustomize that kubectl carries."""
    done = subprocess.run([kubectl(), "kustomize", DEPLOY / folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))
