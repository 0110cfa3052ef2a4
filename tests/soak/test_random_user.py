"""A random user on the demo: whatever is done, every run gets its card and its notices, and the log holds no error.

`make test` plays for seconds, CI for ten minutes; GPUTEST_SOAK is how many seconds, GPUTEST_SEED what is tried:

    GPUTEST_SOAK=3600 GPUTEST_SEED=7 make test-real ARGS=tests/soak/test_random_user.py
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bot import play
from tests.soak.record import Record
from tests.soak.setting import (
    LEASE,
    LONG_SECONDS,
    PATIENCE,
    REST_SECONDS,
    SHORT_SECONDS,
    SPEED,
    another_seed,
    come_to_rest,
    complaints,
    errors_in,
    judge,
    same_seed,
)
from tests.soak.user import RandomUser


async def soak(seconds: float, seed: int, log: Path, folder: Path) -> None:
    """Play, come to rest, and count."""
    options = play.Options(speed=SPEED, seed=seed, lease=LEASE, patience=PATIENCE)
    async with play.playing(options, folder) as running:
        record = Record(running.world)
        user = RandomUser(running, record, seed)
        await user.walk(seconds)
        await come_to_rest(running.world, running.page, record, lambda: running.bot.condition)
        found = complaints(running.world, user, record)
    found += [f"log: {line}" for line in errors_in(log)]
    judge(f"seed {seed}, {seconds:g} s", user, record.summary(), found, folder)


@pytest.mark.timeout(120)
async def test_a_short_while(log_file: Path, tmp_path: Path) -> None:
    """The same things are tried each time."""
    await soak(SHORT_SECONDS, same_seed(), log_file, tmp_path)


@pytest.mark.real
@pytest.mark.timeout(LONG_SECONDS + 5 * REST_SECONDS)
async def test_a_long_while(log_file: Path, tmp_path: Path) -> None:
    """Other things each time; a failure tells the seed."""
    await soak(LONG_SECONDS, another_seed(), log_file, tmp_path)
