"""A random user where the bot has two replicas, which are ended, started and cut off all the while.

`make test` plays for seconds, CI for ten minutes; GPUTEST_SOAK is how many seconds, GPUTEST_SEED what is tried:

    GPUTEST_SOAK=3600 GPUTEST_SEED=7 make test-real ARGS=tests/soak/test_two_bots.py
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot import play
from bot.demo import EmbeddedWorld
from tests.soak.pair_record import PairRecord
from tests.soak.replicas import two_playing
from tests.soak.rolling import RollingUser
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

TWO_LEASE = replace(LEASE, retry=0.3)
"""The one that stands by looks often enough for a take-over within the two seconds of the Lease."""


async def soak(seconds: float, seed: int, log: Path, folder: Path) -> None:
    """Play, come to rest, and count."""
    options = play.Options(speed=SPEED, seed=seed, lease=TWO_LEASE, patience=PATIENCE)
    records: list[PairRecord] = []

    def watch(world: EmbeddedWorld) -> None:
        records.append(PairRecord(world, TWO_LEASE.margin))

    async with two_playing(options, watch) as pair:
        (record,) = records
        record.pair = pair
        user = RollingUser(pair, record, seed)
        await user.walk(seconds)
        await come_to_rest(pair.world, pair.page, record, lambda: pair.condition)
        found = complaints(pair.world, user, record)
        summary = record.summary()
        await user.rest()
    found += [f"log: {line}" for line in errors_in(log)]
    judge(f"two bots, seed {seed}, {seconds:g} s", user, summary, found, folder)


@pytest.mark.timeout(120)
async def test_a_short_while(log_file: Path, tmp_path: Path) -> None:
    """The same things are tried each time."""
    await soak(SHORT_SECONDS, same_seed(), log_file, tmp_path)


@pytest.mark.real
@pytest.mark.timeout(LONG_SECONDS + 5 * REST_SECONDS)
async def test_a_long_while(log_file: Path, tmp_path: Path) -> None:
    """Other things each time; a failure tells the seed."""
    await soak(LONG_SECONDS, another_seed(), log_file, tmp_path)
