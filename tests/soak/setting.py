"""For how long and how fast a random user plays, and what is looked at in the end."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.clients.kube_lease import LeaseTiming
from bot.demo import EmbeddedWorld
from bot.demo.page import ChatPage
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


def same_seed() -> int:
    """What is tried each time."""
    return int(os.environ.get("GPUTEST_SEED", "1"))


def another_seed() -> int:
    """Something else each time, unless it is told."""
    return int(os.environ.get("GPUTEST_SEED") or random.randrange(10**6))


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


async def come_to_rest(world: EmbeddedWorld, page: ChatPage, record: Record, condition: Callable[[], str]) -> None:
    """Start nothing more, wait until nothing runs and nothing is owed, and one sweep more, which removes doubles."""
    world.cluster.suspend_cron("gpu-test-nightly")
    page.panel.set_speed(3 * SPEED)
    limit = real_now() + REST_SECONDS
    while real_now() < limit and (condition() != "running" or record.restless()):
        await asyncio.sleep(0.05)
    world.clock.leap(31 * PATIENCE * SPEED)
    await asyncio.sleep(1)
    while real_now() < limit and condition() != "running":  # so much at once may have cost somebody the Lease
        await asyncio.sleep(0.05)


def complaints(world: EmbeddedWorld, user: RandomUser, record: Record) -> list[str]:
    """What the user saw, what the record misses, and what the bot asked for without the right to it."""
    return [*user.complaints, *record.complaints(), *(f"refused: {one}" for one in world.kube_api.access.refused)]


def judge(told: str, user: RandomUser, summary: str, found: list[str], folder: Path) -> None:
    """Print what there was, and fail with what was found and the end of the diary."""
    told = f"{told}, {user.done} deeds: {summary}"
    print(told)
    if found:
        (folder / "diary.txt").write_text("\n".join(user.diary), encoding="utf-8")
        shown = "\n".join(user.diary[-60:])
        pytest.fail(f"{told}\n\n" + "\n".join(found[:40]) + f"\n\nall of it is in {folder}; the end of it:\n{shown}")
