"""Shared pieces of the deploy tests: the files under deploy/, and the matrix runner on the sample workspace."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the rigs beside these tests are imported as tests.deploy.…

from tests.deploy.matrix_rig import Matrix, SampleRepository  # noqa: E402


@pytest.fixture(scope="session")
def runner_binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runner, compiled as the pod does it: rustc on a flat folder of sources."""
    if shutil.which("rustc") is None:
        pytest.skip("no rustc on this machine")
    folder = tmp_path_factory.mktemp("runner")
    for source in (ROOT / "deploy/argo/runner/src").glob("*.rs"):
        shutil.copy(source, folder)
    binary = folder / "gputest-runner"
    build = ["rustc", "--edition", "2021", "-C", "debuginfo=0", "-D", "warnings", "-o", str(binary), "main.rs"]
    subprocess.run(build, cwd=folder, check=True)
    return binary


@pytest.fixture(scope="session")
def sample_repository(tmp_path_factory: pytest.TempPathFactory) -> SampleRepository:
    """A git repository of the sample workspace, with one branch per kind of trouble."""
    return SampleRepository.make(tmp_path_factory.mktemp("repository"))


@pytest.fixture(scope="session")
def matrix(
    runner_binary: Path, sample_repository: SampleRepository, tmp_path_factory: pytest.TempPathFactory
) -> Matrix:
    """The runner on one persistent checkout and target folder, as on the volume of the cluster."""
    return Matrix(runner_binary, sample_repository, tmp_path_factory.mktemp("volume"))
