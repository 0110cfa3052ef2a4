"""From an effect to the sink that performs it."""

from __future__ import annotations

from typing import assert_never

from bot.core.effects import (
    Answer,
    CheckPosts,
    EditCard,
    Effect,
    FollowLog,
    OpenDialog,
    PatchWorkflow,
    PostCard,
    SayInThread,
    SetSuspend,
    StopFollowing,
    SubmitWorkflow,
    WakeAt,
)
from bot.core.events import EffectDone, EffectFailed
from bot.sinks.cards import CardSink
from bot.sinks.cronworkflows import CronWorkflowSink
from bot.sinks.dialogs import DialogSink
from bot.sinks.workflows import WorkflowSink


class Sinks:
    """Everything the bot can do to the world."""

    def __init__(self, workflows: WorkflowSink, crons: CronWorkflowSink, cards: CardSink, dialogs: DialogSink) -> None:
        self._workflows = workflows
        self._crons = crons
        self._cards = cards
        self._dialogs = dialogs

    async def perform(self, effect: Effect) -> EffectDone | EffectFailed | None:
        """Perform it and return the event of its end; None for what the runtime itself takes care of."""
        match effect:
            case PatchWorkflow():
                return await self._workflows.patch(effect)
            case SubmitWorkflow():
                return await self._workflows.submit(effect)
            case SetSuspend():
                return await self._crons.suspend(effect)
            case PostCard():
                return await self._cards.post(effect)
            case EditCard():
                return await self._cards.edit(effect)
            case SayInThread():
                return await self._cards.say(effect)
            case CheckPosts():
                return await self._cards.check(effect)
            case OpenDialog():
                return await self._dialogs.open(effect)
            case Answer() | WakeAt() | FollowLog() | StopFollowing():
                return None
            case _:
                assert_never(effect)
