"""A whole bot on an embedded world, for what comes in by HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest

from bot.app import Bot, Wiring, running
from bot.config import Secrets, parse
from bot.demo import EmbeddedWorld
from bot.demo.chat import TEAM


@dataclass
class House:
    """The bot, its world, and a client at its door."""

    world: EmbeddedWorld
    bot: Bot
    session: aiohttp.ClientSession

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.bot.port}"


@pytest.fixture
async def house() -> AsyncIterator[House]:
    """A bot that is ready."""
    async with EmbeddedWorld(speed=0) as world, aiohttp.ClientSession() as session:
        config = parse(
            {
                "mattermost": {"url": world.chat_url, "team": TEAM, "channel": "gpu-tests"},
                "bot": {"host": "127.0.0.1", "port": 0, "namespace": "gputest"},
            }
        )
        secrets = Secrets(world.bot_token, ("COMMAND", "OTHER"), "EXIT")
        world.cluster.ensure_namespace("gputest")
        async with running(config, secrets, Wiring(kube_url=world.kube_url, kube_token=world.kube_token)) as bot:
            async with asyncio.timeout(10):
                while not (bot.is_ready and bot.loop.state.leader):
                    await asyncio.sleep(0.005)
            yield House(world, bot, session)
