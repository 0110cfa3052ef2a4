"""Who has won the Lease reads what is held before it says anything."""

from __future__ import annotations

import asyncio

import pytest

from bot import app
from bot.app import Bot, Wiring
from bot.clients.errors import ServerFault
from bot.config import Config, Secrets
from bot.core.events import Event, LeaseLost, LeaseWon


class Looking:
    """A first look that fails once, and then takes until it may end."""

    def __init__(self) -> None:
        self.looks = 0
        self.may_end = asyncio.Event()

    async def __call__(self) -> None:
        self.looks += 1
        if self.looks == 1:
            raise ServerFault("broken")
        await self.may_end.wait()


async def turn() -> None:
    """Everything that can go on goes on."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def looking(monkeypatch: pytest.MonkeyPatch) -> Looking:
    monkeypatch.setattr(app, "LOOK_SECONDS", 0.0)
    return Looking()


def bot_that(looking: Looking, told: list[Event]) -> Bot:
    """A bot that was not started, and what its core would be told."""
    bot = Bot(Config(), Secrets("token-of-the-bot", ()), Wiring())
    bot._look, bot.loop.put = looking, told.append  # type: ignore[method-assign]
    return bot


async def test_nothing_is_said_before_all_that_is_held_was_read(looking: Looking) -> None:
    """It is tried again where the cluster does not answer."""
    told: list[Event] = []
    bot = bot_that(looking, told)
    bot._won()
    await turn()
    assert looking.looks == 2
    assert told == []

    looking.may_end.set()
    await turn()

    assert told == [LeaseWon()]
    bot._chat.close()


async def test_a_lease_that_is_lost_meanwhile_makes_nobody_speak(looking: Looking) -> None:
    """The first look ends with it."""
    told: list[Event] = []
    bot = bot_that(looking, told)
    bot._won()
    await turn()
    bot._lost()
    looking.may_end.set()
    await turn()

    assert told == [LeaseLost()]
    bot._chat.close()
