"""From the populate job's volume to the tests that read it: databento's library, the job's program, the runner, the helper."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.deploy import market_data
from tests.deploy.deploy_files import DEPLOY
from tests.deploy.matrix_rig import Matrix

pytestmark = [pytest.mark.cargo, pytest.mark.timeout(300)]

sys.path.insert(0, str(DEPLOY / "training"))
import populate  # noqa: E402

SMOKE = {"GPUTEST_MODELS": "dqn", "GPUTEST_SCOPE": "integration"}


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    """The test data volume after a refresh."""
    market_data.write_quarter(tmp_path / "training", count=120)
    (tmp_path / "test-data").mkdir()
    assert populate.main([str(tmp_path / "training"), str(tmp_path / "test-data")]) == 0
    return tmp_path / "test-data"


def test_the_smoke_tests_read_what_the_job_left(matrix: Matrix, volume: Path) -> None:
    """All eight."""
    smoke = matrix.run(TEST_DATA_DIR=str(volume), **SMOKE).suites["dqn-smoke"]

    assert (smoke["status"], smoke["passed"]) == ("passed", 8)


def test_a_volume_without_its_data_is_red(matrix: Matrix, volume: Path) -> None:
    """The developer's own few bars are in the checkout all the same, and are not taken in its place."""
    shutil.rmtree(volume / "trades")
    outcome = matrix.run(TEST_DATA_DIR=str(volume), **SMOKE)

    assert outcome.not_green() == {"dqn-smoke": "failed"}
    assert f"test data is missing: {volume}/trades/ES.FUT/ES.FUT_2025-Q2.dbn.zst" in outcome.output
    assert 0 < outcome.suites["dqn-smoke"]["failed"] < 8
