"""The twenty training jobs, resolved: each one's final variables, image, tags and stage against the routing table."""

from __future__ import annotations

import copy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "deploy/gitlab/training-jobs.gitlab-ci.yml"
RESOLVER = ROOT / "tests/deploy/gitlab-ci-local/node_modules/.bin/gitlab-ci-local"
RL = ["dqn", "ppo"]
SUPERVISED = ["tft", "mamba2", "tggn", "tlob", "liquid", "kan", "xlstm", "diffusion"]
ROUTES = {
    "rl": {
        "KUBERNETES_CPU_REQUEST": "3000m", "KUBERNETES_CPU_LIMIT": "3800m",
        "KUBERNETES_MEMORY_REQUEST": "8Gi", "KUBERNETES_MEMORY_LIMIT": "16Gi",
    },
    "supervised": {
        "KUBERNETES_NODE_SELECTOR_POOL": "k8s.scaleway.com/pool-name=ci-training",
        "KUBERNETES_CPU_REQUEST": "1000m", "KUBERNETES_CPU_LIMIT": "2000m",
        "KUBERNETES_MEMORY_REQUEST": "16Gi", "KUBERNETES_MEMORY_LIMIT": "40Gi",
    },
}  # fmt: skip


def expected() -> dict[str, dict[str, Any]]:
    """The routing table, job by job."""
    jobs = {}
    for family, models in (("rl", RL), ("supervised", SUPERVISED)):
        for model in models:
            jobs[f"train-validate-{model}"] = ROUTES[family] | {"MODEL": model}
            epochs = "8" if family == "rl" else "15"
            jobs[f"hyperopt-{model}"] = ROUTES[family] | {"MODEL": model, "HYPEROPT_EPOCHS": epochs}
    return jobs


def merge(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """GitLab's deep merge: maps by key, everything else replaced."""
    merged = copy.deepcopy(under)
    for key, value in over.items():
        merged[key] = (
            merge(merged[key], value) if isinstance(value, dict) and isinstance(merged.get(key), dict) else value
        )
    return merged


def resolved(name: str, raw: dict[str, Any]) -> dict[str, Any]:
    """A job with everything that it extends."""
    job = dict(raw[name])
    parents = job.pop("extends", [])
    base: dict[str, Any] = {}
    for parent in [parents] if isinstance(parents, str) else parents:
        base = merge(base, resolved(parent, raw))
    return merge(base, job)


def check(jobs: dict[str, dict[str, Any]]) -> None:
    """Compare resolved jobs with the routing table."""
    assert len(jobs) == 20
    assert {name: job["variables"] for name, job in jobs.items()} == expected()
    for name, job in jobs.items():
        image = job["image"] if isinstance(job["image"], str) else job["image"]["name"]
        assert (job["stage"], image, job["tags"]) == (
            "train",
            "${REGISTRY}/training:${CI_COMMIT_SHA}",
            ["kapsule", "gpu"],
        )
        assert job["rules"] == [{"when": "manual", "allow_failure": True}]
        assert [name.rsplit("-", 1)[0]] == [line.split()[0] for line in job["script"]]


def test_the_twenty_jobs_are_routed() -> None:
    """RL to the runner's default pool, supervised models to ci-training, hyperopt with its own epochs."""
    raw = yaml.safe_load(FILE.read_text())

    check({name: resolved(name, raw) for name in raw if not name.startswith(".")})


def test_the_templates_are_the_specifications() -> None:
    """The two bases carry their names, and the RL base names no pool."""
    raw = yaml.safe_load(FILE.read_text())

    assert raw[".train-rl-base"]["variables"] == ROUTES["rl"]
    assert raw[".train-validate-base"]["variables"] == ROUTES["supervised"]
    users = {name: job["extends"][0] for name, job in raw.items() if not name.startswith(".")}
    assert {name for name, base in users.items() if base == ".train-rl-base"} == {
        "train-validate-dqn", "train-validate-ppo", "hyperopt-dqn", "hyperopt-ppo",
    }  # fmt: skip


@pytest.mark.real
def test_a_real_resolver_agrees(tmp_path: Path) -> None:
    """gitlab-ci-local, which tests/real/install.sh installs, reads the file as GitLab does, schema included."""
    assert RESOLVER.exists(), "not installed: run tests/real/install.sh"
    shutil.copy(FILE, tmp_path)
    (tmp_path / ".gitlab-ci.yml").write_text(f"stages: [train]\ninclude:\n  - local: {FILE.name}\n")
    for command in (
        ["init", "--quiet", "--initial-branch=main"],
        ["remote", "add", "origin", "https://gitlab.example.com/foxhunt/foxhunt.git"],
        ["add", "--all"],
        ["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "-m", "x"],
    ):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    done = subprocess.run([RESOLVER, "--preview"], cwd=tmp_path, capture_output=True, text=True, check=True)
    preview = yaml.safe_load(done.stdout[done.stdout.index("---") :])

    check({name: job for name, job in preview.items() if name != "stages"})
