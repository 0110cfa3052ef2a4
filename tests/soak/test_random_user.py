"""A random user on the demo: whatever is done, every run gets its card and its notices, and the log holds no error.

`make test` plays for seconds, CI for ten minutes; GPUTEST_SOAK is how many seconds, GPUTEST_SEED what is tried:

    GPUTEST_SOAK=3600 GPUTEST_SEED=7 make test-real ARGS=tests/soak
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from bot import logs, play
from bot.clients.kube_lease import LeaseTiming
from tests.soak.record import Record, real_now
from tests.soak.user import RandomUser

SHORT_SECONDS, LONG_SECONDS = 4.0, float(os.environ.get("GPUTEST_SOAK", "600"))
SPEED = 400.0
"""Simulated seconds in one: a run of a few library suites is about two."""

LEASE = LeaseTiming(duration=2.0, renew=0.5, margin=0.4)
PATIENCE = 0.2
REST_SECONDS = 60.0
"""Real seconds in which all has to come to rest at the end."""

EXPECTED_ERRORS = ("cannot start yet",)
"""What a bot says that was started while the chat or the cluster was away."""


@pytest.fixture
def log_file(tmp_path: Path) -> Iterator[Path]:
    """Where the bot logs to; the process's own set-up comes back afterwards."""
    before, level, handlers = structlog.get_config(), logging.root.level, logging.root.handlers[:]
    path = tmp_path / "bot.log"
    with path.open("w", encoding="utf-8") as stream:
        logs.set_up("INFO", stream=stream)
        yield path
        structlog.configure(**before)
        logging.root.handlers[:] = handlers
        logging.root.setLevel(level)


def errors_in(log: Path) -> list[str]:
    """The lines of the log that tell of an error, and those of libraries, which only log what is wrong."""
    found = []
    for line in log.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            entry = {"level": "error", "event": line}
        if entry["level"] in ("error", "critical") and entry["event"] not in EXPECTED_ERRORS:
            found.append(line)
    return found


async def soak(seconds: float, seed: int, log: Path, folder: Path) -> None:
    """Play, come to rest, and count."""
    options = play.Options(speed=SPEED, seed=seed, lease=LEASE, patience=PATIENCE)
    async with play.playing(options, folder) as running:
        record = Record(running.world)
        user = RandomUser(running, record, seed)
        await user.walk(seconds)
        running.world.cluster.suspend_cron("gpu-test-nightly")
        running.page.panel.set_speed(3 * SPEED)
        await come_to_rest(running, record)
        refused = running.world.kube_api.access.refused
        found = [*user.complaints, *record.complaints(), *(f"refused: {one}" for one in refused)]
    found += [f"log: {line}" for line in errors_in(log)]
    told = f"seed {seed}, {seconds:g} s, {user.done} deeds: {record.summary()}"
    print(told)
    if found:
        kept = folder / "diary.txt"
        kept.write_text("\n".join(user.diary), encoding="utf-8")
        shown = "\n".join(user.diary[-60:])
        pytest.fail(f"{told}\n\n" + "\n".join(found[:40]) + f"\n\nall of it is in {folder}; the end of it:\n{shown}")


async def come_to_rest(running: play.Play, record: Record) -> None:
    """Wait until nothing runs and nothing is owed, and one sweep more, which removes doubles."""
    limit = real_now() + REST_SECONDS
    while real_now() < limit and (running.bot.condition != "running" or record.restless()):
        await asyncio.sleep(0.05)
    running.world.clock.leap(31 * PATIENCE * SPEED)
    await asyncio.sleep(1)


@pytest.mark.timeout(120)
async def test_a_short_while(log_file: Path, tmp_path: Path) -> None:
    """The same things are tried each time."""
    await soak(SHORT_SECONDS, int(os.environ.get("GPUTEST_SEED", "1")), log_file, tmp_path)


@pytest.mark.real
@pytest.mark.timeout(LONG_SECONDS + 5 * REST_SECONDS)
async def test_a_long_while(log_file: Path, tmp_path: Path) -> None:
    """Other things each time; a failure tells the seed."""
    await soak(LONG_SECONDS, int(os.environ.get("GPUTEST_SEED") or random.randrange(10**6)), log_file, tmp_path)
