"""Slash commands that register themselves, on the embedded Mattermost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bot.clients.mattermost import Mattermost
from bot.clients.mattermost_commands import CommandRegister
from bot.clients.mattermost_rooms import Rooms
from bot.core.asking import COMMANDS
from bot.core.registration import wanted
from bot.demo.embedded import EmbeddedWorld
from bot.metrics import Metrics
from bot.sinks.slash_commands import SlashCommands

URL = "http://bot:8080/commands"
WISHES = wanted(COMMANDS, URL)


class Log:
    """What was logged."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def _take(self, text: str, **more: Any) -> None:
        self.lines.append(" ".join([text, *(str(value) for value in more.values())]))

    info = warning = _take


@pytest.fixture
async def world() -> AsyncIterator[EmbeddedWorld]:
    async with EmbeddedWorld(seed=3) as running:
        yield running


@asynccontextmanager
async def commands(world: EmbeddedWorld, user: str, url: str = URL) -> AsyncIterator[tuple[SlashCommands, Log]]:
    """The bot's commands, with the rights of a user: only an administrator may manage them there."""
    chat = Mattermost(world.chat_url, world.tokens[user], Metrics())
    try:
        me = await chat.sign_in()
        rooms, log = Rooms(chat), Log()
        register = CommandRegister(chat, await rooms.team_id("foxhunt"))
        yield SlashCommands(register, rooms, wanted(COMMANDS, url) if url else (), me, log), log
    finally:
        chat.close()


def there(world: EmbeddedWorld) -> dict[str, dict[str, Any]]:
    return {command["trigger"]: command for command in world.chat.state.commands.values()}


async def test_they_are_made_with_what_they_say_of_themselves(world: EmbeddedWorld) -> None:
    """And their tokens are known from then on."""
    async with commands(world, "admin") as (slash, _):
        await slash.register(lambda: True)

    made = there(world)
    assert sorted(made) == sorted(spec.trigger for spec in COMMANDS)
    assert set(slash.tokens) == {command["token"] for command in made.values()}
    for spec in COMMANDS:
        command = made[spec.trigger]
        assert (command["url"], command["method"], command["auto_complete"]) == (URL, "P", True)
        assert (command["auto_complete_hint"], command["auto_complete_desc"]) == (spec.usage, spec.summary)


async def test_a_second_start_changes_nothing(world: EmbeddedWorld) -> None:
    """Neither does a replica that starts at the same time."""
    async with commands(world, "admin") as (one, _), commands(world, "admin") as (two, _):
        await asyncio.gather(one.register(lambda: True), two.register(lambda: True))
        before = dict(world.chat.state.commands)
        await one.register(lambda: True)

    assert sorted(there(world)) == sorted(spec.trigger for spec in COMMANDS)
    assert len(world.chat.state.commands) == len(COMMANDS)
    assert world.chat.state.commands == before
    assert set(one.tokens) == set(two.tokens)


async def test_a_moved_bot_corrects_them(world: EmbeddedWorld) -> None:
    """The tokens stay."""
    async with commands(world, "admin", "http://old:8080/commands") as (slash, _):
        await slash.register(lambda: True)
        old = slash.tokens
    async with commands(world, "admin") as (slash, _):
        await slash.register(lambda: True)

    assert {command["url"] for command in there(world).values()} == {URL}
    assert slash.tokens == old


async def test_without_the_right_an_admin_is_told_what_to_enter(world: EmbeddedWorld) -> None:
    """Trigger, address and hint, once."""
    async with commands(world, "bot") as (slash, log):
        await slash.register(lambda: True)
        await slash.learn()

    assert there(world) == {}
    assert slash.tokens == ()
    assert f"trigger word gputest · request URL {URL} · method POST" in log.lines[0]
    assert len([line for line in log.lines if "trigger word" in line]) == 1


async def test_somebody_elses_trigger_is_left_alone(world: EmbeddedWorld) -> None:
    """It is said whose it is; the others are made."""
    bot = world.chat.state.add_user("robot", admin=True, bot=True, token="robot-token")
    world.chat.tokens["robot"] = "robot-token"
    theirs = world.register_command("gputest", "http://other/hook")
    async with commands(world, "robot") as (slash, log):
        await slash.register(lambda: True)

    made = there(world)
    assert made["gputest"]["url"] == "http://other/hook"
    assert made["nightly"]["creator_id"] == bot["id"]
    assert theirs not in slash.tokens
    assert any("/gputest belongs to admin and leads to http://other/hook" in line for line in log.lines)


async def test_one_made_by_hand_is_as_good(world: EmbeddedWorld) -> None:
    """It leads to us: its token is taken, and it is left as it is."""
    world.chat.state.add_user("robot", admin=True, bot=True, token="robot-token")
    world.chat.tokens["robot"] = "robot-token"
    token = world.register_command("gputest", URL, hint="by hand")
    async with commands(world, "robot") as (slash, _):
        await slash.register(lambda: True)

    assert there(world)["gputest"]["auto_complete_hint"] == "by hand"
    assert token in slash.tokens


async def test_a_double_of_ours_goes(world: EmbeddedWorld) -> None:
    """The server does not keep two at once from making the same; the older stays."""
    async with commands(world, "admin") as (slash, _):
        await slash.register(lambda: True)
        old = there(world)["gputest"]
        double = "d" * 26
        world.chat.state.commands[double] = {**old, "id": double, "create_at": old["create_at"] + 5, "token": "d"}
        await slash.register(lambda: True)

    assert double not in world.chat.state.commands
    assert old["id"] in world.chat.state.commands
    assert "d" not in slash.tokens


async def test_only_the_holder_of_the_lease_writes(world: EmbeddedWorld) -> None:
    """A Lease that is lost in mid-work ends it; every replica may read."""
    async with commands(world, "admin") as (slash, _):
        await slash.register(lambda: False)
        assert there(world) == {}
        turns = iter([True, True, False, False, False, False, False])
        await slash.register(lambda: next(turns, False))
        assert len(there(world)) == 1


async def test_a_token_made_anew_is_learned(world: EmbeddedWorld) -> None:
    """By looking again, not too often."""
    async with commands(world, "admin") as (slash, _):
        await slash.register(lambda: True)
        command = there(world)["gputest"]
        new = world.chat.api.commands.new_token(world.chat.user_id("admin"), command["id"])
        await slash.learn()
        asked = len(world.chat.state.requests)
        await slash.learn()

    assert new in slash.tokens
    assert len(world.chat.state.requests) == asked


async def test_a_busy_chat_is_tried_again(world: EmbeddedWorld) -> None:
    """Whatever passes is waited out."""
    world.chat_faults.too_many(1, path="/commands")
    async with commands(world, "admin") as (slash, log):
        await slash.register(lambda: True)

    assert len(there(world)) == len(COMMANDS)
    assert any("could not register the slash commands yet" in line for line in log.lines)


async def test_without_an_address_nothing_is_done(world: EmbeddedWorld) -> None:
    """`mattermost.commands_url` is empty."""
    async with commands(world, "admin", "") as (slash, log):
        await slash.register(lambda: True)
        await slash.learn()

    assert there(world) == {}
    assert log.lines == []
