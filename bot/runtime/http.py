"""HTTP in: slash commands, the workflow's exit call, probes, metrics.

A slash command is always answered with 200 and JSON: anything else shows the user nothing but "failed". `{}` posts
nothing. `skip_slack_parsing` keeps the server from rewriting `<…>` and mentions in what we say.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from bot.clients.errors import WireError
from bot.clients.mattermost import Mattermost
from bot.config import Secrets
from bot.core.effects import Answer
from bot.core.events import Clicked, DialogSubmitted, Woke
from bot.core.react import WAKE_RUN
from bot.core.render import answers
from bot.core.signing import BadSignature, unseal
from bot.metrics import Metrics
from bot.runtime.loop import Loop
from bot.sources.clicks import to_click, to_submission
from bot.sources.slash import SlashRequest, is_known, offered_token, to_request
from bot.tasks import Tasks

ANSWER_WITHIN = 0.8
"""Seconds until a slash command is told to wait for its answer; Mattermost's users look away after one."""

CLICK_WITHIN = 20.0
"""Seconds until a click or dialog gives up; the server waits for 30."""

MAX_BODY = 128 * 1024
"""Longest body taken in, in bytes."""


async def _nothing() -> None:
    pass


@dataclass
class Doors:
    """What the handlers need. `ready` says what is still missing, "" for nothing."""

    loop: Loop
    chat: Mattermost
    secrets: Secrets
    tasks: Tasks
    metrics: Metrics
    log: Any
    ready: Callable[[], str]
    key: bytes = field(default=b"", repr=False)
    """Signs buttons and dialogs."""
    learned: Callable[[], tuple[str, ...]] = tuple
    """The tokens of the slash commands that the bot registered itself; taken besides those of `secrets`."""
    learn: Callable[[], Awaitable[None]] = _nothing
    """Look for such tokens."""
    now: Callable[[], float] = time.time
    """By which seals expire."""


def application(doors: Doors) -> web.Application:
    """The web application; nothing is mounted under /plugins, where Mattermost would send session tokens."""
    app = web.Application(client_max_size=MAX_BODY)
    handlers = Handlers(doors)
    app.add_routes(
        [
            web.post("/commands", handlers.command),
            web.get("/commands", handlers.command),
            web.post("/actions", handlers.action),
            web.post("/dialogs", handlers.dialog),
            web.post("/exit", handlers.exit),
            web.get("/healthz", handlers.health),
            web.get("/readyz", handlers.readiness),
            web.get("/metrics", handlers.exposition),
        ]
    )
    return app


class Handlers:
    """One method a door."""

    def __init__(self, doors: Doors) -> None:
        self._doors = doors

    async def command(self, request: web.Request) -> web.Response:
        """A slash command. A command set up with GET sends the same fields in its query."""
        form = await _form(request)
        token = offered_token(request.headers.get("Authorization", ""), form)
        if not self._knows(token):
            await self._doors.learn()  # another replica may have just made the command, or somebody its token anew
        if not self._knows(token):
            self._doors.log.warning("slash command with an unknown token", command=form.get("command", "")[:40])
            return _reply(answers.unknown_token())
        missing = self._doors.ready()
        if missing:
            return _reply(answers.not_ready(missing))
        asked = to_request(form)
        future = self._doors.loop.ask(asked.command)
        try:
            return _reply((await asyncio.wait_for(asyncio.shield(future), ANSWER_WITHIN)).text)
        except TimeoutError:
            self._doors.tasks.spawn(self._follow_up(asked, future), name=f"answer {asked.command.request_id[:8]}")
            return _reply(answers.working())

    def _knows(self, token: str) -> bool:
        return is_known(token, (*self._doors.secrets.command_tokens, *self._doors.learned()))

    async def _follow_up(self, asked: SlashRequest, future: asyncio.Future[Answer]) -> None:
        text = (await future).text
        if not text:
            return
        try:
            await self._doors.chat.respond(asked.response_url, text)
        except WireError as error:
            self._doors.log.warning("a late answer was lost", reason=error.reason)

    async def action(self, request: web.Request) -> web.Response:
        """A click. Anybody in the chat can make a post whose button calls us: only our own seal counts."""
        body = await _json(request)
        context = body.get("context")
        sealed = context.get("sealed") if isinstance(context, dict) else None
        signed = unseal(sealed, self._doors.key, self._doors.now())
        if isinstance(signed, BadSignature):
            self._doors.log.warning("a click with a bad seal", expired=signed.expired, user=_text(body, "user_id"))
            return _ephemeral(answers.bad_click(expired=signed.expired))
        missing = self._doors.ready()
        if missing:
            return _ephemeral(answers.not_ready(missing))
        answer = await self._within(to_click(body, signed))
        return _ephemeral(answer.text if answer is not None else answers.too_slow())

    async def _within(self, asked: Clicked | DialogSubmitted) -> Answer | None:
        """The answer, None where it takes too long: what was asked for goes on all the same."""
        try:
            return await asyncio.wait_for(asyncio.shield(self._doors.loop.ask(asked)), CLICK_WITHIN)
        except TimeoutError:
            return None

    async def dialog(self, request: web.Request) -> web.Response:
        """A dialog that was sent off. Its state came through the browser: only our own seal counts."""
        body = await _json(request)
        signed = unseal(body.get("state"), self._doors.key, self._doors.now())
        if isinstance(signed, BadSignature):
            self._doors.log.warning("a form with a bad seal", expired=signed.expired, user=_text(body, "user_id"))
            return web.json_response({"error": answers.bad_form(expired=signed.expired)})
        if body.get("cancelled"):
            return web.json_response({})
        missing = self._doors.ready()
        if missing:
            return web.json_response({"error": answers.not_ready(missing)})
        answer = await self._within(to_submission(body, signed))
        if answer is None:
            return web.json_response({"error": answers.too_slow()})
        if not answer.errors:
            return web.json_response({})
        fields = {field: text for field, text in answer.errors if field}
        general = next((text for field, text in answer.errors if not field), "")
        return web.json_response({"errors": fields} | ({"error": general} if general else {}))

    async def exit(self, request: web.Request) -> web.Response:
        """The exit step says that a run ends. A hint: the watch is what counts, and the 200 is no promise."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        known = self._doors.secrets.exit_token
        if not known or scheme.lower() != "bearer" or not is_known(token, (known,)):
            return web.json_response({"error": "the exit call needs the bot's exit token"}, status=401)
        if self._doors.ready():
            return web.json_response({"error": "not ready"}, status=503)
        try:
            body = await request.json()
            uid = str(body["uid"])
        except (ValueError, KeyError, TypeError):
            return web.json_response({"error": "send JSON with the run's uid"}, status=400)
        self._doors.loop.put(Woke(WAKE_RUN + uid))
        return web.json_response({"ok": True})

    async def health(self, _request: web.Request) -> web.Response:
        """The loop turns: this very answer comes out of it."""
        return web.json_response({"status": "ok"})

    async def readiness(self, _request: web.Request) -> web.Response:
        """Ready once the chat and the cluster were seen; the body names what is missing."""
        missing = self._doors.ready()
        leader = self._doors.loop.state.leader
        return web.json_response(
            {"ready": not missing, "missing": missing, "leader": leader}, status=503 if missing else 200
        )

    async def exposition(self, _request: web.Request) -> web.Response:
        """Metrics in the text format of Prometheus."""
        return web.Response(body=self._doors.metrics.exposition(), content_type="text/plain", charset="utf-8")


_UNREADABLE = (ValueError, LookupError, RecursionError, web.HTTPException)
"""What a body can do: be none, name an encoding that does not exist, be nested without end, be too large."""


async def _form(request: web.Request) -> Mapping[str, str]:
    if request.method == "GET":
        return {key: str(value) for key, value in request.query.items()}
    if request.content_type != "application/x-www-form-urlencoded":
        return {}  # slash commands come in no other form, and a multipart body is a parser of its own
    try:
        posted = await request.post()
    except _UNREADABLE:
        return {}
    return {key: value for key, value in posted.items() if isinstance(value, str)}


async def _json(request: web.Request) -> dict[str, Any]:
    try:
        body = await request.json()
    except _UNREADABLE:
        return {}
    return body if isinstance(body, dict) else {}


def _text(body: dict[str, Any], key: str) -> str:
    value = body.get(key)
    return value if isinstance(value, str) else ""


def _ephemeral(text: str) -> web.Response:
    """The answer to a click. Never an `update`: a card has one writer."""
    return web.json_response({"ephemeral_text": text, "skip_slack_parsing": True} if text else {})


def _reply(text: str) -> web.Response:
    if not text:
        return web.json_response({})
    return web.json_response({"response_type": "ephemeral", "text": text, "skip_slack_parsing": True})
