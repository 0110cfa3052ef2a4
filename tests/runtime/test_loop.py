"""The loop goes on, whatever one event or one effect does to it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import structlog

from bot.core import run_steps, runs
from bot.core.effects import Effect, PostCard
from bot.core.events import EffectDone, Installed, LeaseWon, Swept, WorkflowsSeen
from bot.core.state import State
from bot.metrics import Metrics
from bot.runtime.loop import Loop
from bot.tasks import Tasks
from tests.core.playbook import Playbook
from tests.phrases import NOW, SETTINGS, node, workflow_json

TESTING = [node("compile-and-test", "Running")]


class Driven:
    """A loop whose effects a playbook answers."""

    def __init__(self) -> None:
        self.book = Playbook()
        self.metrics = Metrics()
        self.done: list[Effect] = []
        self.tasks = Tasks(lambda name, error: None)
        self.told = 0
        log = structlog.get_logger()
        self.loop = Loop(
            State(SETTINGS), self.perform, self.tell, self.tasks, self.metrics, log, now=lambda: self.book.now
        )

    async def perform(self, effect: Effect) -> EffectDone | Any:
        """As the world would."""
        self.done.append(effect)
        return self.book.answer(effect)

    def tell(self, effect: Any) -> None:
        """A clock that can't take it."""
        self.told += 1
        raise OverflowError("timestamp out of range")

    async def until(self, reached: Any) -> None:
        """Turns of the loop until it is so."""
        async with asyncio.timeout(5):
            while not reached():
                await asyncio.sleep(0)


@pytest.fixture
async def driven() -> Any:
    """A loop that runs and leads."""
    driven = Driven()
    driven.loop.put(Installed(NOW - 86400))
    driven.loop.put(LeaseWon())
    driven.tasks.spawn(driven.loop.run(), name="loop", eternal=True)
    yield driven
    await driven.tasks.close()


async def test_an_effect_that_can_not_be_started_takes_no_other_with_it(driven: Driven) -> None:
    """A follower or a clock that raises: the card of the same event is posted all the same."""
    run = driven.book.write(workflow_json(phase="Running", nodes=TESTING))
    driven.loop.put(WorkflowsSeen((run,)))

    await driven.until(lambda: any(isinstance(effect, PostCard) for effect in driven.done))
    assert driven.told


async def test_runs_set_aside_are_counted_and_the_others_served(
    driven: Driven, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweep over one that raises: the healthy one's check goes out."""
    pages = [driven.book.write(workflow_json(f"gpu-test-{n}", phase="Running", nodes=TESTING)) for n in ("bad", "good")]
    driven.loop.put(WorkflowsSeen(tuple(pages)))
    await driven.until(
        lambda: len(driven.loop.state.runs) == 2 and all(r.post for r in driven.loop.state.runs.values())
    )
    await driven.loop.drain(5)
    desired = runs.desired_card

    def raises(run: runs.Run, moment: runs.Moment) -> Any:
        if run.uid == "uid-gpu-test-bad":
            raise ValueError("no card can be made of it")
        return desired(run, moment)

    for module in (runs, run_steps):
        monkeypatch.setattr(module, "desired_card", raises)
    driven.loop.put(Swept())

    await driven.until(lambda: "uid-gpu-test-bad" in driven.loop.state.aside)
    assert ["uid-gpu-test-good"] == list(driven.loop.state.runs)
    assert b"gputest_events_set_aside_total 1.0" in driven.metrics.exposition()
    assert [] == driven.loop.state.broken
