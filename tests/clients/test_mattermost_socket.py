"""The websocket: what is heard, what is noticed, what is waited out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from bot.clients.errors import Forbidden, Unreachable
from bot.clients.mattermost import Mattermost
from bot.clients.mattermost_socket import Socket, SocketTiming, decode
from bot.demo.embedded import EmbeddedWorld
from bot.metrics import Metrics
from bot.tasks import Tasks

QUICK = SocketTiming(heartbeat=0.4, ping=0.1, answer=0.5, first=0.02, longest=0.05)


@dataclass
class Ear:
    """Who hears of it, and writes it down."""

    told: list[Any] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def opened(self, *, gap: bool) -> None:
        self.told.append(("opened", gap))
        self.changed.set()

    def happened(self, event: str, data: Any) -> None:
        post = json.loads(data["post"])["message"] if event == "posted" else ""
        self.told.append((event, post))
        self.changed.set()

    def closed(self, reason: str, *, refused: bool) -> None:
        self.told.append(("closed", refused, reason))
        self.changed.set()

    async def until(self, check: Callable[[list[Any]], Any]) -> None:
        async with asyncio.timeout(8):
            while not check(self.told):
                self.changed.clear()
                await self.changed.wait()

    def posts(self) -> list[str]:
        return [one[1] for one in self.told if one[0] == "posted"]


def no_crash(name: str, error: BaseException) -> None:
    raise AssertionError(name) from error


@asynccontextmanager
async def listening(url: str, token: str, check: Any = None, timing: SocketTiming = QUICK) -> AsyncIterator[Ear]:
    ear, tasks, metrics = Ear(), Tasks(no_crash), Metrics()
    chat = Mattermost(url, token, metrics)
    socket = Socket(url, token, ear, check or chat.sign_in, metrics, timing=timing)
    tasks.spawn(socket.run(), name="websocket", eternal=True)
    try:
        yield ear
    finally:
        await tasks.close()
        chat.close()


@pytest.fixture
async def world() -> AsyncIterator[EmbeddedWorld]:
    async with EmbeddedWorld(seed=3) as running:
        yield running


async def test_it_hears_what_is_posted(world: EmbeddedWorld) -> None:
    """After the hello, in order."""
    async with listening(world.chat_url, world.bot_token) as ear:
        await ear.until(lambda told: told == [("opened", True)])
        for text in ("one", "two"):
            await world.chat.say("dev", "gpu-tests", text)
        await ear.until(lambda _: ear.posts() == ["one", "two"])


async def test_a_line_that_is_cut_goes_on_where_it_was(world: EmbeddedWorld) -> None:
    """What was posted meanwhile comes afterwards, once; there is no gap to fill."""
    async with listening(world.chat_url, world.bot_token) as ear:
        await ear.until(lambda told: told)
        await world.chat.say("dev", "gpu-tests", "before")
        await ear.until(lambda _: ear.posts())
        world.chat_faults.cut_streams()
        await world.chat.say("dev", "gpu-tests", "meanwhile")
        await ear.until(lambda _: len(ear.posts()) == 2)
        await world.chat.say("dev", "gpu-tests", "after")
        await ear.until(lambda _: len(ear.posts()) == 3)

    assert ear.posts() == ["before", "meanwhile", "after"]
    assert [one[1] for one in ear.told if one[0] == "opened"] == [True, False]


async def test_a_server_that_has_forgotten_us_means_a_gap(world: EmbeddedWorld) -> None:
    """Another hello: the count begins anew, and what was missed has to be read."""
    async with listening(world.chat_url, world.bot_token) as ear:
        await ear.until(lambda told: told)
        world.chat_faults.away()
        world.chat.api.hub._connections.clear()
        await ear.until(lambda told: told[-1][0] == "closed")
        world.chat_faults.away(False)
        await ear.until(lambda told: told[-1] == ("opened", True))
        await world.chat.say("dev", "gpu-tests", "after")
        await ear.until(lambda _: ear.posts() == ["after"])


async def test_a_silent_line_is_noticed(world: EmbeddedWorld) -> None:
    """Half-open: nothing comes, not even an answer to a ping."""
    async with listening(world.chat_url, world.bot_token) as ear:
        await ear.until(lambda told: told)
        world.chat.api.hub.freeze()
        await ear.until(lambda told: "does not answer" in str(told[-1]))
        world.chat.api.hub.freeze(False)
        await ear.until(lambda told: told[-1][0] == "opened")

    assert not any(one[1] for one in ear.told if one[0] == "closed")


async def test_a_revoked_token_is_noticed_and_said(world: EmbeddedWorld) -> None:
    """The socket stays open and deaf; the reply to a ping tells. It is tried again, for a token may come back."""
    async with listening(world.chat_url, world.bot_token) as ear:
        await ear.until(lambda told: told)
        token, user = world.bot_token, world.chat.user_id("bot")
        world.chat.revoke("bot")
        await ear.until(lambda told: told[-1][0] == "closed" and told[-1][1])
        world.chat.state.tokens[token] = user
        await ear.until(lambda told: told[-1] == ("opened", True))


async def test_a_wrong_token_never_says_hello(world: EmbeddedWorld) -> None:
    """Its upgrade succeeds all the same."""
    async with listening(world.chat_url, "wrong") as ear:
        await ear.until(lambda told: told)

    assert ear.told[0][:2] == ("closed", True)


async def test_a_busy_server_is_given_its_time(world: EmbeddedWorld) -> None:
    """429 with Retry-After on the upgrade."""
    fault = world.chat_faults.too_many(1, path="websocket")
    async with listening(world.chat_url, world.bot_token) as ear:
        await ear.until(lambda told: told and told[0][0] == "closed")
        began = asyncio.get_running_loop().time()
        await ear.until(lambda told: told[-1][0] == "opened")

    assert fault.hits == 1
    assert asyncio.get_running_loop().time() - began > 0.9


Script = Callable[[web.WebSocketResponse, int], Awaitable[None]]


@asynccontextmanager
async def scripted(script: Script) -> AsyncIterator[tuple[str, list[dict[str, str]]]]:
    """A server that speaks as a test wants it to."""
    queries: list[dict[str, str]] = []

    async def serve(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        queries.append(dict(request.query))
        await script(socket, len(queries))
        async for message in socket:
            asked = json.loads(message.data)
            await socket.send_str(json.dumps({"status": "OK", "seq_reply": asked["seq"]}))
        return socket

    app = web.Application()
    app.router.add_get("/api/v4/websocket", serve)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", queries
    finally:
        await runner.cleanup()


def hello(number: int = 0) -> str:
    return json.dumps({"event": "hello", "data": {"connection_id": f"{number}".rjust(26, "k")}, "seq": 0})


def posted(number: int, text: str) -> str:
    return json.dumps({"event": "posted", "data": {"post": json.dumps({"message": text})}, "seq": number})


async def fine() -> None:
    """A token that is taken."""


async def test_a_number_left_out_means_a_new_connection() -> None:
    """It does not ask to go on: what is lost is lost there, and is read by REST."""

    async def script(socket: web.WebSocketResponse, connection: int) -> None:
        await socket.send_str(hello(connection))
        if connection == 1:
            await socket.send_str(posted(1, "one"))
            await socket.send_str(posted(3, "three"))

    async with scripted(script) as (url, queries), listening(url, "token", fine) as ear:
        await ear.until(lambda told: told[-1:] == [("opened", True)] and len(told) > 2)

    assert ear.posts() == ["one"]
    assert queries == [{}, {}]
    assert "lost on its way" in ear.told[-2][2]


async def test_a_repetition_is_heard_once() -> None:
    """After a resumption the server may send again what it already sent."""

    async def script(socket: web.WebSocketResponse, connection: int) -> None:
        if connection == 1:
            await socket.send_str(hello())
            for number, text in enumerate(("one", "two"), 1):
                await socket.send_str(posted(number, text))
            await socket.close()
        else:
            for number, text in enumerate(("two", "three"), 2):
                await socket.send_str(posted(number, text))

    async with scripted(script) as (url, queries), listening(url, "token", fine) as ear:
        await ear.until(lambda _: "three" in ear.posts())

    assert ear.posts() == ["one", "two", "three"]
    assert queries[1] == {"connection_id": "0".rjust(26, "k"), "sequence_number": "3"}
    assert [one for one in ear.told if one[0] == "opened"] == [("opened", True), ("opened", False)]


async def test_what_is_no_frame_is_passed_over() -> None:
    """Unknown events count, and so do those without data; what is no JSON, or has no number, does not."""

    async def script(socket: web.WebSocketResponse, _connection: int) -> None:
        await socket.send_str(posted(7, "before the hello"))
        await socket.send_str(hello())
        for text in ("no json", "[]", '"text"', '{"event": 7}', '{"event": "nameless"}', "null", '{"status": 7}'):
            await socket.send_str(text)
        await socket.send_str('{"event": "brand_new_event", "data": null, "broadcast": {}, "seq": 1}')
        await socket.send_str(posted(2, "two"))

    async with scripted(script) as (url, _), listening(url, "token", fine) as ear:
        await ear.until(lambda _: ear.posts())

    assert ear.told == [("opened", True), ("brand_new_event", ""), ("posted", "two")]


async def test_a_failed_reply_begins_anew() -> None:
    """Whatever its reason: we ask who we are by REST and connect again, with the token in the header."""

    async def script(socket: web.WebSocketResponse, connection: int) -> None:
        await socket.send_str(hello(connection))
        if connection == 1:
            error = {"id": "some.error.id", "message": "(localised)", "status_code": 401}
            await socket.send_str(json.dumps({"status": "FAIL", "error": error, "seq_reply": 2}))

    async with scripted(script) as (url, queries), listening(url, "token", fine) as ear:
        await ear.until(lambda told: len(told) == 3)

    assert [one[0] for one in ear.told] == ["opened", "closed", "opened"]
    assert ear.told[1][1] is False
    assert len(queries) == 2


@pytest.mark.parametrize("error", [Unreachable("no", uncertain=True), Forbidden("no")])
async def test_only_a_refusal_is_called_one(error: Exception) -> None:
    """A server that can't be asked has refused nothing."""

    async def check() -> None:
        raise error

    async def script(socket: web.WebSocketResponse, _connection: int) -> None:
        await socket.close()

    async with scripted(script) as (url, _), listening(url, "token", check) as ear:
        await ear.until(lambda told: told)

    assert ear.told[0][1] is isinstance(error, Forbidden)


async def test_a_server_without_hello_is_given_up() -> None:
    """It answers pings and never says hello."""

    async def script(_socket: web.WebSocketResponse, _connection: int) -> None: ...

    async with scripted(script) as (url, queries), listening(url, "token", fine) as ear:
        await ear.until(lambda told: told)

    assert "never said hello" in ear.told[0][2]
    assert queries[0] == {}


def test_frames_are_decoded_leniently() -> None:
    """Bytes that are no text are no frame."""
    assert decode(b"\xff\xfe") is None
    assert decode('{"event": "hello", "unheard": 1}') is not None
