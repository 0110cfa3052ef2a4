"""An embedded world with a stepped clock, and the sinks on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from bot.clients.kube import Kube
from bot.clients.mattermost import Mattermost
from bot.core.settings import Settings
from bot.demo import EmbeddedWorld
from bot.metrics import Metrics
from bot.sinks.cards import CardSink
from bot.sinks.cronworkflows import CronWorkflowSink
from bot.sinks.dialogs import DialogSink
from bot.sinks.seal import Seal
from bot.sinks.workflows import WorkflowSink
from tests.phrases import SETTINGS


@dataclass
class Sunk:
    """The world, and what writes to it."""

    world: EmbeddedWorld
    kube: Kube
    chat: Mattermost
    metrics: Metrics
    settings: Settings
    workflows: WorkflowSink
    crons: CronWorkflowSink
    cards: CardSink
    dialogs: DialogSink
    leads: bool = True

    @property
    def channel(self) -> str:
        return self.world.chat.channel_id()


@pytest.fixture
async def sunk() -> AsyncIterator[Sunk]:
    """Everything connected; nothing is broken yet."""
    async with EmbeddedWorld(speed=0) as world:
        metrics = Metrics()
        kube = await Kube.connect(metrics, url=world.kube_url, token=world.kube_token)
        chat = Mattermost(world.chat_url, world.bot_token, metrics)
        await chat.sign_in()
        seal = Seal(b"key", "http://127.0.0.1:9")
        found: list[Sunk] = []
        cards = CardSink(chat, SETTINGS, metrics, lambda: found[0].leads, seal)
        sunk = Sunk(
            world,
            kube,
            chat,
            metrics,
            SETTINGS,
            WorkflowSink(kube),
            CronWorkflowSink(kube),
            cards,
            DialogSink(chat, seal),
        )
        found.append(sunk)
        yield sunk
        chat.close()
        await kube.close()
