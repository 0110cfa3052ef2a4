"""Linters of the locked development packages are content with deploy/, the scripts and the Dockerfile, and can be discontent."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.deploy.deploy_files import DEPLOY, FILES, ROOT, lint, strict

SCRIPTS = [
    *(file for folder in ("deploy", "tests/deploy", "tests/real") for file in (ROOT / folder).rglob("*.sh")),
    ROOT / ".ci/run",
]
SCRIPTS = [file for file in SCRIPTS if not {"node_modules", "target"} & set(file.parts)]
NOT_FOR_THE_CLUSTER = {"Kustomization", "Component"}


def test_yamllint() -> None:
    """Every YAML file, GitLab's too."""
    config = ROOT / "tests/deploy/yamllint.yaml"
    done = lint("yamllint", "--strict", "-c", config, *FILES, *DEPLOY.rglob("*.yml"), ROOT / "config.yaml")

    assert done.returncode == 0, done.stdout
    assert lint("yamllint", "-c", config, "-", text="a: 1\na: 2\n").returncode == 1


def test_kubernetes_schemas() -> None:
    """Every manifest as it stands in its file; what the kustomizations make of them is checked where they are built."""
    objects = [each for file in FILES for each in yaml.safe_load_all(file.read_text())]
    manifests = [each for each in objects if "kind" in each and each["kind"] not in NOT_FOR_THE_CLUSTER]
    done = strict(yaml.safe_dump_all(manifests))

    assert done.returncode == 0, done.stdout + done.stderr
    assert len(manifests) >= 40
    wrong = yaml.safe_load((DEPLOY / "bot/service.yaml").read_text())
    wrong["spec"]["port"] = 1
    assert strict(yaml.safe_dump(wrong)).returncode == 1


def test_shellcheck() -> None:
    """Every script, and what the templates hand to a shell."""
    done = lint("shellcheck", *SCRIPTS)
    inline = []
    for file in FILES:
        for each in yaml.safe_load_all(file.read_text()):
            if each.get("kind") == "WorkflowTemplate":
                containers = [t["container"] for t in each["spec"]["templates"] if "container" in t]
                inline += [(c["command"] + c.get("args", []))[2] for c in containers if "-c" in c["command"]]

    assert done.returncode == 0, done.stdout
    assert len(SCRIPTS) >= 6
    assert len(inline) == 2
    for text in inline:
        assert lint("shellcheck", "--shell=sh", "-", text=text).returncode == 0, text
    assert lint("shellcheck", "--shell=sh", "-", text="rm $1\n").returncode == 1


def test_hadolint() -> None:
    """The Dockerfile."""
    done = lint("hadolint", ROOT / "Dockerfile")

    assert (done.returncode, done.stdout) == (0, "")
    assert "DL3006" in lint("hadolint", "-", text="FROM python\n").stdout


@pytest.mark.cargo
@pytest.mark.timeout(120)
@pytest.mark.parametrize("folder", ["deploy/argo/runner", "tests/sample-workspace"])
def test_clippy_and_rustfmt(folder: str, tmp_path: Path) -> None:
    """The Rust of the pods; the runner uses nothing that came after the image's Rust, which its Cargo.toml names."""
    environment = os.environ | {"CARGO_TARGET_DIR": str(tmp_path)}
    lints = ["--", "-D", "warnings", "-D", "clippy::incompatible_msrv"]
    for command in (["fmt", "--all", "--check"], ["clippy", "--offline", "--all-targets", "--all-features", *lints]):
        done = subprocess.run(
            ["cargo", *command], cwd=ROOT / folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert 'rust-version = "1.89"' in (ROOT / "deploy/argo/runner/Cargo.toml").read_text()
