"""Bare requests: what a server says, its errors too, as status, headers and body."""

from __future__ import annotations

import asyncio
import io
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web
from multidict import CIMultiDictProxy

from tests.real.rig.kube_client import KubeClient
from tests.real.rig.mattermost_client import MattermostClient

Json = dict[str, Any]
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


@dataclass(frozen=True)
class Answer:
    """What a server said."""

    status: int
    body: Any
    headers: CIMultiDictProxy[str]

    @property
    def error(self) -> tuple[int, str]:
        """Status and error id of Mattermost, or reason of Kubernetes."""
        return self.status, str(self.body.get("id") or self.body.get("reason") or "")


class Wire:
    """One user's way to one server."""

    def __init__(self, session: aiohttp.ClientSession, url: str, token: str, trust: Any = True) -> None:
        self.session = session
        self.url = url
        self.token = token
        self._trust = trust

    @classmethod
    def kube(cls, client: KubeClient) -> Wire:
        """The Kubernetes API as that client's user."""
        token = client._headers["Authorization"].removeprefix("Bearer ")
        return cls(client._session, client._url, token, client._trust)

    @classmethod
    def chat(cls, client: MattermostClient) -> Wire:
        """Mattermost as that client's user."""
        return cls(client.session, f"{client.url}/api/v4", client.token)

    def of(self, token: str) -> Wire:
        """The same server as somebody else; "" for nobody."""
        return Wire(self.session, self.url, token, self._trust)

    def options(self, headers: Mapping[str, str] | None = None) -> Json:
        """Arguments of every request."""
        known = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return {"headers": {**known, **(headers or {})}, "ssl": self._trust}

    async def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        kind: str = "application/json",
        headers: Mapping[str, str] | None = None,
        **query: str,
    ) -> Answer:
        """Send one request; a body that is bytes goes as it is."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        more = {**(headers or {}), **({"Content-Type": kind} if data is not None else {})}
        # As a stream: aiohttp warns of large bodies in memory.
        stream = None if data is None else io.BytesIO(data)
        async with self.session.request(
            method, self.url + path, data=stream, params=query, **self.options(more)
        ) as response:
            text = await response.text()
            try:
                answer = json.loads(text)
            except ValueError:
                answer = text
            return Answer(response.status, answer, response.headers)

    async def get(self, path: str, **query: str) -> Answer:
        """Read."""
        return await self("GET", path, **query)

    async def post(self, path: str, body: Any = None, **query: str) -> Answer:
        """Create, or have something done."""
        return await self("POST", path, body, **query)

    async def put(self, path: str, body: Any = None, **query: str) -> Answer:
        """Change."""
        return await self("PUT", path, body, **query)

    async def patch(self, path: str, body: Any, kind: str = MERGE, **query: str) -> Answer:
        """Change a part of an object of Kubernetes."""
        return await self("PATCH", path, body, kind=kind, **query)

    async def delete(self, path: str, body: Any = None, **query: str) -> Answer:
        """Remove."""
        return await self("DELETE", path, body, **query)

    @asynccontextmanager
    async def watch(self, path: str, **query: str) -> AsyncIterator[Watch]:
        """Open a watch."""
        timeout = aiohttp.ClientTimeout(total=60)
        async with self.session.get(
            self.url + path, params={"watch": "1"} | query, timeout=timeout, **self.options()
        ) as response:
            yield Watch(response)


class Watch:
    """A stream of changes, read one by one."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self._buffer = b""

    async def next(self, limit: float = 10.0) -> Json:
        """The next event; {} at the end of the stream."""
        async with asyncio.timeout(limit):
            while b"\n" not in self._buffer:
                chunk = await self.response.content.readany()
                if not chunk:
                    return {}
                self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        event: Json = json.loads(line)
        return event

    async def of(self, name: str, limit: float = 10.0) -> Json:
        """The next event of the object of that name."""
        while event := await self.next(limit):
            if event["object"]["metadata"].get("name") == name:
                return event
        raise AssertionError("the watch ended")


@dataclass(frozen=True)
class Call:
    """A request that came to an integration."""

    method: str
    path: str
    headers: Mapping[str, str]
    form: Mapping[str, str]
    pairs: tuple[tuple[str, str], ...]
    """All fields of the form in their order, those of one name too."""
    json: Any


@dataclass
class Integration:
    """A server that Mattermost calls; it answers what it is told, and remembers what came."""

    url: str = ""
    calls: list[Call] = field(default_factory=list)
    status: int = 200
    answer: Any = field(default_factory=dict)
    """JSON, or a text that is sent as it is."""
    content_type: str = "application/json"

    async def serve(self, request: web.Request) -> web.Response:
        """Answer one request."""
        raw = await request.text()
        posted = await request.post() if "urlencoded" in request.content_type else request.query
        pairs = tuple((key, str(value)) for key, value in posted.items())
        body = json.loads(raw) if request.content_type == "application/json" and raw else None
        self.calls.append(Call(request.method, request.path, dict(request.headers), dict(pairs), pairs, body))
        text = self.answer if isinstance(self.answer, str) else json.dumps(self.answer)
        return web.Response(status=self.status, text=text, content_type=self.content_type)

    @property
    def last(self) -> Call:
        """The last request that came."""
        return self.calls[-1]


@asynccontextmanager
async def integration() -> AsyncIterator[Integration]:
    """Such a server on the loopback."""
    served = Integration()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", served.serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        served.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield served
    finally:
        await runner.cleanup()


class Socket:
    """A websocket of the chat, read frame by frame."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.seen: list[Json] = []

    async def next(self, limit: float = 5.0) -> Json:
        """The next frame; {} where the server has closed."""
        message = await self.socket.receive(timeout=limit)
        if message.type is not aiohttp.WSMsgType.TEXT:
            return {}
        frame: Json = json.loads(message.data)
        self.seen.append(frame)
        return frame

    async def event(self, name: str, limit: float = 5.0) -> Json:
        """The next event of that name."""
        until = time.monotonic() + limit
        while frame := await self.next(max(0.1, until - time.monotonic())):
            if frame.get("event") == name:
                return frame
        raise AssertionError("the server closed the websocket")

    async def reply(self, number: int, limit: float = 5.0) -> Json:
        """The reply to an action."""
        until = time.monotonic() + limit
        while frame := await self.next(max(0.1, until - time.monotonic())):
            if frame.get("seq_reply") == number:
                return frame
        raise AssertionError("the server closed the websocket")

    async def send(self, number: int, action: str, **data: Any) -> None:
        """Send an action."""
        await self.socket.send_str(json.dumps({"seq": number, "action": action, "data": data}))

    async def is_silent(self, name: str, seconds: float = 0.3) -> bool:
        """Whether no event of that name comes within a moment."""
        try:
            await self.event(name, seconds)
        except TimeoutError:
            return True
        return False


@asynccontextmanager
async def socket_of(wire: Wire, *, header: bool = True, **query: str) -> AsyncIterator[Socket]:
    """Open the chat's websocket as that user; without `header` nobody is signed in yet."""
    headers = {"Authorization": f"Bearer {wire.token}"} if header else {}
    async with wire.session.ws_connect(f"{wire.url}/websocket", headers=headers, params=query) as opened:
        yield Socket(opened)
