"""A wire that a test can cut: an HTTP proxy on the loopback between the bot and one server.

It passes everything through, streams and websockets too, and keeps a note of each request. A `Trap` waits for a
request; when its one comes, the server is given it or not, and then the trap's deed is done in place of the answer:

    trap = proxy.trap(lambda request: request.method == "POST", bot.kill, server_hears=True)
    await trap.sprung()
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
from aiohttp import web

_NOT_PASSED = {"host", "connection", "keep-alive", "transfer-encoding", "content-length", "upgrade", "te", "trailer"}
_READ_ONLY = {"GET", "HEAD", "OPTIONS"}
_NO_LIMIT = aiohttp.ClientTimeout(total=None, sock_connect=5)


@dataclass(frozen=True)
class Seen:
    """One request of the bot."""

    method: str
    path: str
    query: dict[str, str]
    raw: bytes = field(repr=False)

    @property
    def body(self) -> Any:
        """What the body holds, None where it is no JSON."""
        try:
            return json.loads(self.raw)
        except ValueError:
            return None

    @property
    def mutates(self) -> bool:
        """Whether it may change something."""
        return self.method not in _READ_ONLY


@dataclass
class Trap:
    """Waits for one request."""

    matches: Callable[[Seen], bool]
    deed: Callable[[], Any]
    server_hears: bool
    _sprung: asyncio.Event = field(default_factory=asyncio.Event)
    status: int = 0
    """What the server answered, where it was asked."""

    async def sprung(self, limit: float = 20.0) -> None:
        """Wait until the request has come and the deed is done."""
        await asyncio.wait_for(self._sprung.wait(), limit)

    @property
    def is_sprung(self) -> bool:
        return self._sprung.is_set()

    def spring(self) -> None:
        self.deed()
        self._sprung.set()


@dataclass
class Hold:
    """Keeps requests of a kind back until it lets go; then the server gets them."""

    matches: Callable[[Seen], bool]
    once: bool
    forgotten: tuple[str, ...]
    """Fields of the body that are left out then, as if too much time had passed for them to count."""
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    let_go: asyncio.Event = field(default_factory=asyncio.Event)


def without(seen: Seen, fields: tuple[str, ...]) -> Seen:
    """The request without some fields of its body."""
    body = seen.body
    if not isinstance(body, dict) or not any(name in body for name in fields):
        return seen
    kept = {name: value for name, value in body.items() if name not in fields}
    return replace(seen, raw=json.dumps(kept).encode())


class Proxy:
    """Everything between the bot and one server."""

    def __init__(self, session: aiohttp.ClientSession, upstream: str, trust: ssl.SSLContext | bool = True) -> None:
        self._session = session
        self._upstream = upstream
        self._trust = trust
        self.url = ""
        self.seen: list[Seen] = []
        """Every request since the start, oldest first."""
        self.answered: list[tuple[Seen, int]] = []
        """Every request that the server answered, and the status, in the order of the answers."""
        self.forgets: tuple[str, ...] = ()
        """Fields of bodies that no server gets to see."""
        self._traps: list[Trap] = []
        self._holds: list[Hold] = []

    def trap(self, matches: Callable[[Seen], bool], deed: Callable[[], Any], *, server_hears: bool) -> Trap:
        """Set a trap for the next request of a kind."""
        trap = Trap(matches, deed, server_hears)
        self._traps.append(trap)
        return trap

    def hold(self, matches: Callable[[Seen], bool], *, once: bool = False, forgotten: tuple[str, ...] = ()) -> Hold:
        """Keep back requests of a kind, or the next one of them alone."""
        hold = Hold(matches, once, forgotten)
        self._holds.append(hold)
        return hold

    def clear(self) -> None:
        """Take all traps away, and let go of what is held."""
        self.forgets = ()
        self._traps.clear()
        for hold in self._holds:
            hold.let_go.set()
        self._holds.clear()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Proxy]:
        """Serve on a free port of the loopback."""
        app = web.Application(client_max_size=64 * 1024**2)
        app.router.add_route("*", "/{path:.*}", self._handle)
        # a bot that is dead takes its watches with it
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            self.clear()
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._websocket(request)
        body = await request.read()
        seen = Seen(request.method, request.path, dict(request.query), body)
        self.seen.append(seen)
        if not seen.mutates:
            return await self._forward(request, seen)
        # what has left the bot reaches the server, whether the bot lives on or not
        return await asyncio.shield(self._mutate(request, seen))

    async def _mutate(self, request: web.Request, seen: Seen) -> web.StreamResponse:
        seen = without(seen, self.forgets)
        for hold in [hold for hold in self._holds if hold.matches(seen)]:
            if hold.once:
                self._holds.remove(hold)
            hold.reached.set()
            await hold.let_go.wait()
            seen = without(seen, hold.forgotten)
        trap = next((trap for trap in self._traps if trap.matches(seen)), None)
        if trap is None:
            return await self._forward(request, seen)
        self._traps.remove(trap)
        if trap.server_hears:
            async with self._ask(request, seen.raw) as answer:
                await answer.read()
                trap.status = answer.status
                self.answered.append((seen, answer.status))
        trap.spring()
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=502)

    async def _forward(self, request: web.Request, seen: Seen) -> web.StreamResponse:
        try:
            async with self._ask(request, seen.raw) as answer:
                self.answered.append((seen, answer.status))
                response = web.StreamResponse(status=answer.status, reason=answer.reason)
                for name, value in answer.headers.items():
                    if name.lower() not in _NOT_PASSED:
                        response.headers.add(name, value)
                await response.prepare(request)
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
                await response.write_eof()
                return response
        except (aiohttp.ClientError, OSError, TimeoutError):
            # the server is away, or the bot is: for either the line is simply dead
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=502)

    def _ask(self, request: web.Request, body: bytes) -> Any:
        return self._session.request(
            request.method,
            self._upstream + request.raw_path,
            data=body or None,
            headers=_passed(request),
            ssl=self._trust,
            timeout=_NO_LIMIT,
            allow_redirects=False,
        )

    async def _websocket(self, request: web.Request) -> web.StreamResponse:
        ours = web.WebSocketResponse(autoping=False)
        try:
            async with self._session.ws_connect(
                self._upstream + request.raw_path, headers=_passed(request), autoping=False, ssl=self._trust
            ) as theirs:
                await ours.prepare(request)
                loop = asyncio.get_running_loop()
                both = [loop.create_task(_pass_on(*ends)) for ends in ((ours, theirs), (theirs, ours))]
                try:
                    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for one in both:
                        one.cancel()
                    await asyncio.gather(*both, return_exceptions=True)
                with contextlib.suppress(aiohttp.ClientError, OSError):
                    await ours.close()
        except aiohttp.WSServerHandshakeError as error:
            return web.Response(status=error.status)
        except (aiohttp.ClientError, OSError):
            return web.Response(status=502)
        return ours


def _passed(request: web.Request) -> dict[str, str]:
    kept = {name: value for name, value in request.headers.items() if name.lower() not in _NOT_PASSED}
    return {name: value for name, value in kept.items() if not name.lower().startswith("sec-websocket")}


async def _pass_on(source: Any, target: Any) -> None:
    with contextlib.suppress(aiohttp.ClientError, OSError):
        while True:
            message = await source.receive()
            match message.type:
                case aiohttp.WSMsgType.TEXT:
                    await target.send_str(message.data)
                case aiohttp.WSMsgType.BINARY:
                    await target.send_bytes(message.data)
                case aiohttp.WSMsgType.PING:
                    await target.ping(message.data)
                case aiohttp.WSMsgType.PONG:
                    await target.pong(message.data)
                case _:
                    return
