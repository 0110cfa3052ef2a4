"""One set of real services for all tests of faults, with proxies and bots of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.real.bots import Trial
from tests.real.bots import trial as made_trial
from tests.real.stage import real_stage


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def whole_trial(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Trial]:
    """Started once."""
    folder = tmp_path_factory.mktemp("trial")
    async with real_stage(folder) as stage, made_trial(stage, folder) as trial:
        yield trial


@pytest_asyncio.fixture(loop_scope="session")
async def trial(whole_trial: Trial) -> AsyncIterator[Trial]:
    """Without the traps and scripts of the test before."""
    await whole_trial.reset()
    yield whole_trial
    await whole_trial.reset()
    await whole_trial.stage.clear()
