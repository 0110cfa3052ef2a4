"""The loop: one event at a time into the core, its effects out to the sinks.

Two lanes: what people wait for goes before what the cluster tells. Of one object only the latest pending event is kept,
at the place of the first, so that a burst costs one decision.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import Any

from bot.core.effects import Answer, Effect, FollowLog, StopFollowing, WakeAt
from bot.core.events import (
    Clicked,
    CommandTyped,
    CronWorkflowChanged,
    DialogSubmitted,
    EffectDone,
    EffectFailed,
    Event,
    Trouble,
    WorkflowChanged,
    WorkflowDeleted,
)
from bot.core.react import react, set_aside
from bot.core.render import answers
from bot.core.state import State
from bot.metrics import Metrics
from bot.tasks import Tasks

PEOPLE = CommandTyped | Clicked | DialogSubmitted
"""What somebody waits for."""

Told = WakeAt | FollowLog | StopFollowing
"""What is told to the clock and to the log's followers, and has no end of its own."""

Perform = Callable[[Effect], Awaitable[EffectDone | EffectFailed | None]]


class Loop:
    """Owns the state. Nothing else changes it."""

    def __init__(  # the seams of the whole program meet here, once
        self,
        state: State,
        perform: Perform,
        tell: Callable[[Told], None],
        tasks: Tasks,
        metrics: Metrics,
        log: Any,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.state = state
        self._perform = perform
        self._tell = tell
        self._tasks = tasks
        self._metrics = metrics
        self._log = log
        self._now = now
        self._people: deque[Event] = deque()
        self._world: OrderedDict[object, Event] = OrderedDict()
        self._ready = asyncio.Event()
        self._waiting: dict[str, asyncio.Future[Answer]] = {}
        self._outstanding = 0

    def put(self, event: Event) -> None:
        """Hand in an event. Never blocks."""
        if isinstance(event, PEOPLE | EffectDone | EffectFailed):
            self._people.append(event)
        else:
            self._world[_key(event)] = event
        self._ready.set()

    def ask(self, request: CommandTyped | Clicked | DialogSubmitted) -> asyncio.Future[Answer]:
        """Hand in what a person asks and get the future of its answer; the same request twice shares one future."""
        future = self._waiting.get(request.request_id)
        if future is None:
            future = self._waiting[request.request_id] = asyncio.get_running_loop().create_future()
            self.put(request)
        return future

    async def run(self) -> None:
        """Take in events for ever."""
        while True:
            while not self._people and not self._world:
                self._ready.clear()
                await self._ready.wait()
            event = self._people.popleft() if self._people else self._world.popitem(last=False)[1]
            self._digest(event)
            await asyncio.sleep(0)  # sources and sinks get their turn after each event

    async def drain(self, seconds: float) -> None:
        """Wait until nothing is outstanding, at most so long."""
        deadline = time.monotonic() + seconds
        while (self._people or self._outstanding) and time.monotonic() < deadline:  # noqa: ASYNC110  # three conditions
            await asyncio.sleep(0.02)

    def _digest(self, event: Event) -> None:
        self._metrics.events.labels(type(event).__name__).inc()
        try:
            effects = react(self.state, event, self._now())
        except Exception:  # noqa: BLE001  # whatever it is, the other runs go on
            incident = f"{type(event).__name__}-{int(self._now())}"
            self._metrics.aside.inc()
            self._log.exception("event set aside", event_type=type(event).__name__, incident=incident)
            set_aside(self.state, event)
            if isinstance(event, PEOPLE):
                self._answer(Answer(event.request_id, answers.internal_error(incident)))
            return
        self._metrics.held.set(len(self.state.runs))
        for name, error in self.state.broken:
            self._metrics.aside.inc()
            self._log.error("run set aside", workflow=name, event_type=type(event).__name__, exc_info=error)
        self.state.broken.clear()
        for effect in effects:
            try:
                self._start(effect)
            except Exception:  # noqa: BLE001  # the other effects are wanted as well
                self._log.exception("effect could not be started", effect=type(effect).__name__)

    def _start(self, effect: Effect) -> None:
        match effect:
            case Answer():
                self._answer(effect)
            case WakeAt() | FollowLog() | StopFollowing():
                self._tell(effect)
            case _:
                self._outstanding += 1
                self._tasks.spawn(
                    self._perform_and_tell(effect, effect.id), name=f"{type(effect).__name__} {effect.id}"
                )

    async def _perform_and_tell(self, effect: Effect, effect_id: str) -> None:
        told = _told(effect)
        try:
            result = await self._perform(effect)
        except Exception as error:  # noqa: BLE001  # whatever it is, the core has to hear of it
            self._log.exception("effect broke", **told, id=effect_id)
            result = EffectFailed(
                effect_id, Trouble.UNCERTAIN, f"something broke inside the bot ({type(error).__name__})"
            )
        finally:
            self._outstanding -= 1
        outcome = result.trouble.value if isinstance(result, EffectFailed) else "done"
        self._metrics.effects.labels(told["effect"], outcome).inc()
        if isinstance(result, EffectFailed):
            self._log.warning("effect failed", **told, id=effect_id, trouble=outcome, reason=result.reason)
        else:
            self._log.info("effect done", **told, id=effect_id)
        if result is not None:
            self.put(result)

    def _answer(self, effect: Answer) -> None:
        future = self._waiting.pop(effect.request_id, None)
        if future is not None and not future.done():
            future.set_result(effect)


def _key(event: Event) -> object:
    """What an event is about; a later event about the same takes its place in the queue."""
    match event:
        case WorkflowChanged() | WorkflowDeleted():
            return ("workflow", event.workflow.metadata.uid)
        case CronWorkflowChanged():
            return ("cron", event.cron.metadata.name)
        case _:
            return object()


def _told(effect: Effect) -> dict[str, str]:
    """Of an effect what a log should have: what it is, and the object or the post's key that it is about."""
    fields = {"effect": type(effect).__name__, "what": getattr(effect, "purpose", "")}
    return fields | {"about": getattr(effect, "name", "") or getattr(effect, "key", "")}
