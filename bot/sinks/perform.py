"""From an effect to the sink that performs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from bot.core.effects import (
    Answer,
    CheckPosts,
    EditAlert,
    EditCard,
    Effect,
    FollowLog,
    KeepCosts,
    KeepStart,
    MakePlaceholder,
    OpenDialog,
    PatchWorkflow,
    PostAlert,
    PostCard,
    ReadAlerts,
    RemovePlaceholders,
    SayInThread,
    SetSuspend,
    StopFollowing,
    SubmitWorkflow,
    WakeAt,
)
from bot.core.events import EffectDone, EffectFailed
from bot.sinks.alerts import AlertSink
from bot.sinks.cards import CardSink
from bot.sinks.costs import CostSink
from bot.sinks.cronworkflows import CronWorkflowSink
from bot.sinks.dialogs import DialogSink
from bot.sinks.history import HistorySink
from bot.sinks.placeholders import PlaceholderSink
from bot.sinks.workflows import WorkflowSink


@dataclass(frozen=True)
class Sinks:
    """Everything the bot can do to the world."""

    workflows: WorkflowSink
    crons: CronWorkflowSink
    cards: CardSink
    dialogs: DialogSink
    placeholders: PlaceholderSink
    history: HistorySink
    costs: CostSink
    alerts: AlertSink

    async def perform(self, effect: Effect) -> EffectDone | EffectFailed | None:  # noqa: C901, PLR0912  # one case an effect
        """Perform it and return the event of its end; None for what the runtime itself takes care of."""
        match effect:
            case PatchWorkflow():
                return await self.workflows.patch(effect)
            case SubmitWorkflow():
                return await self.workflows.submit(effect)
            case SetSuspend():
                return await self.crons.suspend(effect)
            case PostCard():
                return await self.cards.post(effect)
            case EditCard():
                return await self.cards.edit(effect)
            case SayInThread():
                return await self.cards.say(effect)
            case CheckPosts():
                return await self.cards.check(effect)
            case ReadAlerts():
                return await self.alerts.read(effect)
            case PostAlert():
                return await self.alerts.post(effect)
            case EditAlert():
                return await self.alerts.edit(effect)
            case MakePlaceholder():
                return await self.placeholders.make(effect)
            case RemovePlaceholders():
                return await self.placeholders.remove(effect)
            case KeepStart():
                return await self.history.keep(effect)
            case KeepCosts():
                return await self.costs.keep(effect)
            case OpenDialog():
                return await self.dialogs.open(effect)
            case Answer() | WakeAt() | FollowLog() | StopFollowing():
                return None
            case _:
                assert_never(effect)
