"""The chat page: a small web client of the embedded Mattermost, with the side panel of the simulated cluster.

It is served at the address of the chat, beside `/api/v4`, and uses that as any client does: with a personal token, REST
and the websocket. Only what a real chat has not is under `/demo`: who can sign in, the panel, and Markdown as HTML.
These work while the chat is switched off. Whatever calls them must come from the page itself: a page of another site
could reach the loopback, but not with our Host, nor with a body of JSON.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from bot.demo.chat import CHANNEL, TEAM
from bot.demo.chat_requests import answer
from bot.demo.embedded import EmbeddedWorld
from bot.demo.markdown import Markdown
from bot.demo.panel import BadDeed, BotControl, Panel
from bot.demo.world import Json

FOLDER = Path(__file__).with_name("chat_page")
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy: nothing from elsewhere, nothing inline."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
LOOK_SECONDS = 0.4
"""Real seconds between two looks at the cluster for the panel; what has not changed is not sent."""

MAX_TEXTS = 500
USERS = {"dev": "may run, cancel, keep GPUs warm, switch the nightly run", "viewer": "may only look"}
"""Who can sign in, and in words what the roles of `bot.play` let them do."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ChatPage:
    """Adds the page to the chat's server; to be made before that starts."""

    def __init__(self, world: EmbeddedWorld, bot: BotControl, speed: float) -> None:
        self._world = world
        self._stopped = asyncio.Event()
        self.panel = Panel(world, bot, speed)
        self.markdown = Markdown(self._is_user, self._is_channel)
        router = world.chat.api.app.router
        for path in ("/", "/channels/{channel}", "/{team}/channels/{channel}", "/{team}/pl/{post}"):
            router.add_get(path, self._guarded(self._index))
        router.add_get("/page/{file}", self._guarded(self._file))
        router.add_get("/demo/session", self._guarded(self._session))
        router.add_get("/demo/panel", self._guarded(self._watch_panel))
        router.add_post("/demo/panel", self._guarded(self._do))
        router.add_post("/demo/markdown", self._guarded(self._render))

    def stop(self) -> None:
        """End the streams, so that the server can close."""
        self._stopped.set()

    def _is_user(self, name: str) -> bool:
        return any(user["username"] == name for user in self._world.chat.state.users.values())

    def _is_channel(self, name: str) -> bool:
        channels = self._world.chat.state.channels.values()
        return any(one["name"] == name and one["type"] == "O" and not one["delete_at"] for one in channels)

    def _guarded(self, handler: Handler) -> Handler:
        async def serve(request: web.Request) -> web.StreamResponse:
            if request.url.host not in ("127.0.0.1", "localhost"):
                raise web.HTTPForbidden(text="The demo is for this machine.\n")
            return await handler(request)

        return serve

    async def _index(self, _request: web.Request) -> web.StreamResponse:
        return _page_file("index.html")

    async def _file(self, request: web.Request) -> web.StreamResponse:
        return _page_file(request.match_info["file"])

    async def _session(self, _request: web.Request) -> web.StreamResponse:
        tokens = self._world.tokens
        users = [{"name": name, "may": may, "token": tokens[name]} for name, may in USERS.items()]
        return answer({"users": users, "team": TEAM, "channel": CHANNEL}, headers=HEADERS)

    async def _render(self, request: web.Request) -> web.StreamResponse:
        texts = (await _body(request)).get("texts")
        if not isinstance(texts, list) or len(texts) > MAX_TEXTS:
            raise web.HTTPBadRequest(text="texts: a list of strings\n")
        return answer({"html": [self.markdown.render(str(text)) for text in texts]}, headers=HEADERS)

    async def _do(self, request: web.Request) -> web.StreamResponse:
        body = await _body(request)
        try:
            said = await self._done(body)
        except BadDeed as error:
            return answer({"error": str(error)}, 400, HEADERS)
        return answer({"said": said}, headers=HEADERS)

    async def _done(self, body: Json) -> str:
        match body:
            case {"switch": str(name), "on": bool(on)}:
                return await self.panel.switch(name, on)
            case {"do": str(name)}:
                return self.panel.do(name)
            case {"speed": int() | float() as speed}:
                return self.panel.set_speed(float(speed))
        raise BadDeed("Nothing that the panel can do.")

    async def _watch_panel(self, request: web.Request) -> web.StreamResponse:
        """The panel's view, and again whenever it has changed: a stream of server-sent events."""
        headers = {**HEADERS, "Content-Type": "text/event-stream"}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        last = ""
        while not self._stopped.is_set():
            view = self.panel.view()
            unchanged = json.dumps({**view, "clock": {**view["clock"], "now": 0}}, ensure_ascii=False)
            if unchanged != last or view["clock"]["skipping"]:
                last = unchanged
                try:
                    await response.write(f"data: {json.dumps(view, ensure_ascii=False)}\n\n".encode())
                except ConnectionError:
                    break  # the page was closed
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._stopped.wait()
            except TimeoutError:
                continue
        return response


def _page_file(name: str) -> web.Response:
    """A file of the page, by a name that stands in its folder. Raises HTTPNotFound."""
    found = next((one for one in FOLDER.iterdir() if one.name == name and one.suffix in TYPES), None)
    if found is None:
        raise web.HTTPNotFound(text="There is no such file.\n")
    return web.Response(body=found.read_bytes(), content_type=TYPES[found.suffix], charset="utf-8", headers=HEADERS)


async def _body(request: web.Request) -> Any:
    """The JSON object of a request that a foreign page could not send. Raises HTTPException."""
    if request.content_type != "application/json":
        raise web.HTTPUnsupportedMediaType(text="send application/json\n")
    try:
        body = await request.json()
    except ValueError as error:
        raise web.HTTPBadRequest(text="no JSON\n") from error
    if not isinstance(body, dict):
        raise web.HTTPBadRequest(text="no JSON object\n")
    return body
