"""The websocket of Mattermost: what happens in the chat, as it happens.

mattermostdriver's own is broken on today's Python, knows no resumption and cancels handlers in mid-work. What this one
holds to (api4/websocket.go, app/web_conn.go, app/web_hub.go):

* The token goes into the handshake's header. A wrong one still gets its upgrade, only never a `hello`.
* A token that is revoked later leaves the socket open, its pings answered, and no event ever comes again. So a `ping`
  action is sent besides, whose reply has a status; FAIL means: ask who we are by REST, then begin anew.
* Events are counted from `hello`, which is 0. A number left out means that something is lost.
* A connection that comes back with its id and the next number goes on where it was, as long as the server still has
  it: then there is no new `hello`. That is an optimisation; what is certain is a look by REST after each `hello`.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

import aiohttp
import msgspec

from bot.clients.errors import Forbidden, Unreachable, WireError, of_status
from bot.metrics import Metrics

MAX_FRAME = 16 * 1024 * 1024
"""Longest frame taken, in bytes: a post's props may have 800,000 characters, escaped twice."""


@dataclass(frozen=True)
class SocketTiming:
    """All in seconds."""

    heartbeat: float = 10.0
    """Between two pings of the protocol, which find a dead line."""
    ping: float = 10.0
    """Between two ping actions, which find a token that is not taken any more."""
    answer: float = 10.0
    """Until a handshake or a reply is given up."""
    first: float = 1.0
    """Longest wait before the second try; it doubles, and each wait is drawn evenly from nothing up to it."""
    longest: float = 60.0
    steady: float = 30.0
    """After so long a connection the waits begin at the first again."""


class Listener(Protocol):
    """Who hears of it. Nothing here may block: the server drops a reader that is 256 events behind."""

    def opened(self, *, gap: bool) -> None:
        """The line stands; `gap`: what happened before it may have been missed."""

    def happened(self, event: str, data: Any) -> None:
        """One event, in its order."""

    def closed(self, reason: str, *, refused: bool) -> None:
        """The line is gone; `refused`: because the token is not taken."""


class Frame(msgspec.Struct):
    """What comes in: an event, or a reply to an action of ours."""

    event: str | None = None
    data: Any = None
    seq: int | None = None
    status: str | None = None
    seq_reply: int | None = None


class _Gap(Exception):
    """A number was left out."""


def decode(text: str | bytes) -> Frame | None:
    """A frame from its text; None for what is none."""
    try:
        return _FRAME.decode(text)
    except (msgspec.MsgspecError, UnicodeError):
        return None


class Socket:
    """The one line to the server, for as long as the bot runs."""

    def __init__(  # an address, a token, who is told, and how to ask whether the token is still taken
        self,
        url: str,
        token: str,
        listener: Listener,
        check: Callable[[], Awaitable[Any]],
        metrics: Metrics,
        *,
        ca_file: str = "",
        timing: SocketTiming | None = None,
    ) -> None:
        parts = urlsplit(url)
        scheme = "ws" if parts.scheme == "http" else "wss"
        self._url = f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}/api/v4/websocket"
        self._token = token
        self._listener = listener
        self._check = check
        self._metrics = metrics
        self._ssl = ssl.create_default_context(cafile=ca_file) if ca_file else True
        self._timing = timing or SocketTiming()
        self._connection_id = ""
        self._next = 0
        self._open = False
        self._asked = 0

    async def run(self) -> None:
        """Connect, listen, and connect again, for ever."""
        timing = self._timing
        failures = 0
        # a cookie would beat the token (authentication.go)
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), trust_env=True) as session:
            while True:
                started = time.monotonic()
                error = await self._listen(session)
                self._listener.closed(error.reason, refused=isinstance(error, Forbidden))
                failures = 1 if time.monotonic() - started > timing.steady else failures + 1
                # spread evenly, so that a server that comes back is not met by all its bots at once
                longest = min(timing.longest, timing.first * 2 ** min(failures - 1, 16))
                await asyncio.sleep(error.retry_after or random.uniform(0, longest))

    async def _listen(self, session: aiohttp.ClientSession) -> WireError:
        """One connection, from its handshake to its end; returns why it ended."""
        self._open = False
        try:
            async with await self._connect(session) as socket:
                return await self._why(await self._read(socket))
        except _Gap:
            self._metrics.watch_gaps.labels("posts").inc()
            self._connection_id = ""
            return WireError("an event of the chat was lost on its way")
        except WireError as error:
            return await self._why(error)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return await self._why(Unreachable(f"the line to the chat broke ({type(error).__name__})", uncertain=False))

    async def _connect(self, session: aiohttp.ClientSession) -> aiohttp.ClientWebSocketResponse:
        timing = self._timing
        place = {"connection_id": self._connection_id, "sequence_number": self._next} if self._connection_id else {}
        try:
            async with asyncio.timeout(timing.answer):
                return await session.ws_connect(
                    f"{self._url}?{urlencode(place)}" if place else self._url,
                    headers={"Authorization": f"Bearer {self._token}"},
                    heartbeat=timing.heartbeat,
                    max_msg_size=MAX_FRAME,
                    ssl=self._ssl,
                    timeout=aiohttp.ClientWSTimeout(ws_close=2.0),
                )
        except aiohttp.WSServerHandshakeError as error:
            wait = error.headers.get("Retry-After") if error.headers else None
            raise of_status(error.status, f"the chat's websocket answered {error.status}", retry_after=wait) from error

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> WireError:
        """Take in frames until the line ends; returns why it did."""
        timing = self._timing
        opened = time.monotonic()
        ping_at, waits_since = opened, 0.0
        while True:
            now = time.monotonic()
            if waits_since and now > waits_since + timing.answer:
                return Unreachable("the chat's websocket does not answer", uncertain=False)
            if not self._open and now > opened + timing.answer:
                return Unreachable("the chat's websocket never said hello", uncertain=False)
            if now >= ping_at:
                await self._ping(socket)
                ping_at, waits_since = now + timing.ping, waits_since or now
            try:
                message = await socket.receive(timeout=max(ping_at - now, 0.01))
            except TimeoutError:
                continue
            if message.type is not aiohttp.WSMsgType.TEXT:
                return Unreachable("the chat's websocket was closed", uncertain=False)
            frame = decode(message.data)
            if frame is None:
                continue
            if frame.status is not None:
                waits_since = self._replied(frame, waits_since)
            elif frame.event is not None and frame.seq is not None:
                self._happened(frame.event, frame.data, frame.seq)

    async def _ping(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._asked += 1
        await socket.send_str(msgspec.json.encode({"seq": self._asked, "action": "ping"}).decode())

    def _replied(self, frame: Frame, waits_since: float) -> float:
        """A reply to a ping; returns since when one is still waited for, 0 for none."""
        if frame.status != "OK":
            raise Unreachable("the chat's websocket does not know us any more", uncertain=False)
        if self._connection_id:
            self._resumed()
        return 0.0 if frame.seq_reply == self._asked else waits_since

    def _resumed(self) -> None:
        """Something came that is no hello: the connection went on where it was."""
        if not self._open:
            self._open = True
            self._listener.opened(gap=False)

    def _happened(self, event: str, data: Any, number: int) -> None:
        if event == "hello":
            identity = data.get("connection_id") if isinstance(data, dict) else None
            self._connection_id = identity if isinstance(identity, str) else ""
            self._next = number + 1
            self._open = True
            self._listener.opened(gap=True)
            return
        if number < self._next or not self._connection_id:
            return  # sent again after a resumption, or before the hello that it is counted from
        if number > self._next:
            raise _Gap
        self._next += 1
        self._resumed()
        self._listener.happened(event, data)

    async def _why(self, error: WireError) -> WireError:
        """Whether it was the token: the websocket itself does not say."""
        if error.retry_after:
            return error
        try:
            await self._check()
        except Forbidden as refused:
            self._connection_id = ""
            return refused
        except WireError:
            return error
        if not self._open:
            self._connection_id = ""  # whatever it is that does not work, our place may be the reason
        return error


_FRAME = msgspec.json.Decoder(Frame)
