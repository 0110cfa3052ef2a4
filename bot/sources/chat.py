"""Commands from the chat itself, answered in their threads: all that the bot needs where nothing can reach it by HTTP.

Only the holder of the Lease takes them. The websocket says what is typed now; what was typed while nobody listened (a
restart, another holder, a gap in the line) is read by REST from the cursor on. Both ways meet in `_take`, where each
post is served once:

    is our answer in the thread, or was it? → ask the core → is it there now? → answer → let the cursor pass

A process that ends in between leaves the post unanswered and the cursor before it, so the next one begins again; the
run's name derives from the post, so there is one run.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from bot.clients.errors import Forbidden, Invalid, NotFound, WireError
from bot.clients.mattermost_rooms import Rooms
from bot.core.effects import Answer
from bot.core.events import CommandTyped
from bot.core.render.reply import in_thread
from bot.metrics import Metrics
from bot.sources.cursor import Cursor, CursorStore
from bot.sources.posts import Me, PostedCommand, to_command, to_event

MAX_AGE = 15 * 60.0
"""Seconds after which a command that nobody answered is left alone: whoever typed it has gone on."""

OVERLAP = 60_000
"""Milliseconds that are read again: posts do not always appear in the order of their times (post_layer.go)."""

SAVE_SECONDS, IDLE_SAVE_SECONDS = 10.0, 120.0
"""Least distance of two writes of the cursor: after an answer, and while nobody asks anything."""

RETRY_FIRST, RETRY_LONGEST = 0.5, 10.0
"""Seconds until something that failed is tried again; each wait is twice the one before."""

READY_SECONDS = 0.2
"""Between two looks whether the rest of the bot is ready to take commands."""

KEPT = 2000
"""Posts that are known to be done."""

EXPIRED = "api.context.session_expired.app_error"
"""Error of a token that is not taken: it may be again, unlike a right that is missing."""

_GAP = "gap"
"""What holds the cursor while something may have been missed."""


class Replies(Protocol):
    """Where answers go."""

    async def has(self, root: str, request: str) -> bool: ...

    def request_of(self, post: Mapping[str, Any]) -> str: ...

    async def say(self, channel: str, root: str, request: str, text: str) -> None: ...


class Spawn(Protocol):
    """`Tasks.spawn`."""

    def __call__(self, work: Coroutine[Any, Any, Any], *, name: str, eternal: bool = False) -> asyncio.Task[Any]: ...


@dataclass(frozen=True)
class Surroundings:
    """What the source reaches for. `ready`: what the bot still waits for, "" for nothing."""

    rooms: Rooms
    replies: Replies
    store: CursorStore
    ask: Callable[[CommandTyped], asyncio.Future[Answer]]
    ready: Callable[[], str]
    spawn: Spawn
    metrics: Metrics
    log: Any


class ChatCommands:
    """Listens to the websocket, and reads what it missed."""

    def __init__(
        self,
        me: Me,
        triggers: Collection[str],
        around: Surroundings,
        *,
        now: Callable[[], float] = time.time,
        haste: float = 1.0,
    ) -> None:
        self._me = me
        self._triggers = triggers
        self._around = around
        self._now = now
        # lines and processes take real time, however fast the clock goes by which posts are dated
        self._max_age, self._overlap = MAX_AGE * haste, int(OVERLAP * haste)
        self._began = _millis(now())
        self._cursor = Cursor(self._began)
        self._floor = self._began
        self._saved = 0
        self._saved_at = self._closed_at = 0.0
        self._leading = self._loaded = self._connected = self._stopping = self._answered = False
        self._gap = True
        self._stir = asyncio.Event()
        self._under_way: dict[str, PostedCommand] = {}
        self._done: OrderedDict[str, None] = OrderedDict()
        self.refused = ""
        """Why the chat does not take our token any more, "" while it does."""

    # what the websocket says

    def opened(self, *, gap: bool) -> None:
        """The line stands."""
        self._around.log.info("listening to the chat", resumed=not gap)
        self._around.metrics.listening.set(1)
        self._connected, self.refused = True, ""
        # a line that goes on after a while still has to bring what it kept; until then the cursor must not pass it
        if gap or self._now() - self._closed_at > self._overlap / 2000:
            self._lose_track()
        self._stir.set()

    def happened(self, event: str, data: Any) -> None:
        """Something was posted, or anything else happened."""
        if not self._leading or self._stopping:
            return
        found = to_event(event, data, self._me, self._triggers)
        if found is not None:
            self._take(found)

    def closed(self, reason: str, *, refused: bool) -> None:
        """The line is gone; it comes back by itself."""
        self._around.log.warning("the chat's websocket ended", reason=reason, refused=refused)
        self._around.metrics.listening.set(0)
        self._connected, self._closed_at = False, self._now()
        self.refused = reason if refused else self.refused

    # what the Lease says

    def won(self) -> None:
        """From now on commands are ours."""
        self._leading, self._loaded = True, False
        self._stir.set()

    def lost(self) -> None:
        """They are another's; what is under way stays unanswered here, and the other begins it again."""
        if self._leading:
            self._leading = False
            self._around.spawn(self._save(), name="last cursor")

    async def stop(self, seconds: float) -> None:
        """Take nothing more, wait for what is under way, and leave the cursor for the next one."""
        self._stopping = True
        deadline = time.monotonic() + seconds
        while self._leading and self._under_way and time.monotonic() < deadline:  # noqa: ASYNC110  # three conditions
            await asyncio.sleep(0.02)
        if self._leading:
            await self._save()

    # reading what was missed, and keeping the place

    async def run(self) -> None:
        """Catch up where there is a gap, and keep the cursor, for ever."""
        failures = 0
        while True:
            with contextlib.suppress(TimeoutError):  # nothing happened, but the cursor may be due
                # not wait_for: that of Python 3.11 swallows a cancellation that comes together with the event
                async with asyncio.timeout(SAVE_SECONDS):
                    await self._stir.wait()
            self._stir.clear()
            try:
                await self._keep_up()
                failures = 0
            except WireError as error:
                failures += 1
                self._around.log.warning("could not read on in the chat", reason=error.reason)
                await _wait(error, failures)
                self._stir.set()

    async def _keep_up(self) -> None:
        if not self._leading or self._stopping:
            return
        if not self._loaded:
            await self._load()
        if self._connected and self._gap:
            await self._catch_up()
        wait = SAVE_SECONDS if self._answered else IDLE_SAVE_SECONDS
        if self._now() >= self._saved_at + wait:
            await self._save()

    async def _load(self) -> None:
        stored = await self._around.store.load()
        if stored is None:
            # the bot's first start here: nothing before it was typed to it
            self._floor = stored = self._began
            await self._write(stored)
        else:
            self._floor = 0
        if stored > _millis(self._now()) + self._overlap:
            # a clock was wrong: nothing is known of what was answered, but the threads tell
            stored = _millis(self._now() - self._max_age)
        self._saved = stored
        self._cursor = Cursor(stored)
        for request, posted in self._under_way.items():
            self._cursor.hold(request, posted.at)
        self._loaded = True
        self._lose_track()

    def _lose_track(self) -> None:
        self._gap = True
        self._cursor.hold(_GAP, self._cursor.value + 1)

    async def _catch_up(self) -> None:
        """Take every command since the cursor that has no answer yet, nor had one that somebody deleted."""
        self._gap = False
        since = max(self._cursor.value - self._overlap, self._floor, _millis(self._now() - self._max_age))
        found: list[PostedCommand] = []
        try:
            for room in await self._around.rooms.joined():
                for post in await self._around.rooms.posts_since(room, since):
                    if request := self._around.replies.request_of(post):
                        self._finished(request)  # a thread does not show what was deleted in it
                    command = to_command(post, room.type, room.team_id, self._me, self._triggers)
                    if command is not None:
                        found.append(command)
        except BaseException:
            self._gap = True
            raise
        for command in sorted(found, key=lambda one: (one.at, one.post)):
            self._take(command)
        if not self._gap:
            self._cursor.release(_GAP)
        self._around.log.info("read what may have been missed in the chat", commands=len(found))

    async def _save(self) -> None:
        """Keep the cursor, where it has moved."""
        if not self._loaded:
            return
        if self._connected:
            # what is older than that has come through a line that stood; a gap holds the cursor by itself
            self._cursor.saw(_millis(self._now()) - self._overlap)
        value = self._cursor.value
        if value > self._saved:
            await self._write(value)

    async def _write(self, value: int) -> None:
        """A cursor that can't be kept is no reason to answer nobody."""
        self._saved_at, self._answered = self._now(), False
        try:
            await self._around.store.save(value)
        except WireError as error:
            self._around.log.warning("the chat's cursor was not kept", reason=error.reason)
        else:
            self._saved = value

    # one command

    def _take(self, posted: PostedCommand) -> None:
        request = posted.command.request_id
        if request in self._done or request in self._under_way:
            return
        self._cursor.saw(min(posted.at, _millis(self._now())))
        if self._is_old(posted):
            self._leave(posted)
            return
        self._under_way[request] = posted
        self._cursor.hold(request, posted.at)
        self._around.spawn(self._serve(posted), name=f"post {posted.post}")

    async def _serve(self, posted: PostedCommand) -> None:
        request = posted.command.request_id
        try:
            done = await self._answer(posted)
        finally:
            del self._under_way[request]
        if not done:
            return
        self._cursor.release(request)
        self._answered = True
        self._finished(request)

    def _finished(self, request: str) -> None:
        self._done[request] = None
        while len(self._done) > KEPT:
            self._done.popitem(last=False)

    async def _answer(self, posted: PostedCommand) -> bool:
        """See to it that the post is answered; False where that is another's business now."""
        failures = 0
        while self._leading and not self._is_old(posted):
            if self._around.ready():
                await asyncio.sleep(READY_SECONDS)
                continue
            try:
                await self._answer_once(posted)
            except (NotFound, Invalid, Forbidden) as error:
                if error.code != EXPIRED:
                    # the post is deleted, the channel archived, the bot put out of it: there is nothing to answer to
                    self._around.log.warning("a command in the chat can't be answered", reason=error.reason)
                    return True
                failures += 1
                await _wait(error, failures)
            except WireError as error:
                failures += 1
                self._around.log.warning("a command in the chat is not answered yet", reason=error.reason)
                await _wait(error, failures)
            else:
                return True
        if self._leading:
            self._leave(posted)
        return self._leading

    async def _answer_once(self, posted: PostedCommand) -> None:
        around, command = self._around, posted.command
        if await around.replies.has(posted.root, command.request_id):
            return
        # by id: the name that comes with an event is what the sender's client shows
        account = await around.rooms.account(command.user_id)
        if account.is_bot:
            return
        # shielded, for others may wait for the same answer
        answer = await asyncio.shield(around.ask(replace(command, user_name=account.name)))
        text = in_thread(answer.text, self._me.name, self._triggers)
        await around.replies.say(command.channel_id, posted.root, command.request_id, text)

    def _leave(self, posted: PostedCommand) -> None:
        self._around.log.info("a command in the chat was too old to be answered", post=posted.post)

    def _is_old(self, posted: PostedCommand) -> bool:
        return posted.at < _millis(self._now() - self._max_age)


def _millis(seconds: float) -> int:
    return int(seconds * 1000)


async def _wait(error: WireError, failures: int) -> None:
    longest = min(RETRY_LONGEST, RETRY_FIRST * 2 ** min(failures - 1, 10))
    await asyncio.sleep(error.retry_after or random.uniform(longest / 2, longest))
