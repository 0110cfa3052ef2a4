"""Reading requests to the Mattermost API, and writing answers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from aiohttp import web

from bot.demo import chat_errors
from bot.demo.chat_shapes import decode, read

if TYPE_CHECKING:
    from bot.demo.chat_state import ChatState

Json = dict[str, Any]
OpenHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]
"""Of a route that anybody may ask."""
Handler = Callable[[web.Request, str], Awaitable[web.StreamResponse]]
"""Of one that is asked by a user, whose id it gets."""
DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE = 60, 200


def answer(body: Any, code: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """An answer with a JSON body; the content type has no charset, and clients compare it as a whole."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return web.Response(status=code, body=text.encode(), content_type="application/json", headers=headers)


def credential_of(request: web.Request) -> tuple[str, str]:
    """The token that somebody shows, and where: a cookie goes before the header, that before the query.

    app/authentication.go, ParseAuthTokenFromRequest.
    """
    if (cookie := request.cookies.get("MMAUTHTOKEN")) is not None:
        return cookie, "cookie"
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() in ("bearer", "token"):
        return token, "header"
    return request.query.get("access_token", ""), "query"


def identity_in(request: web.Request, name: str) -> str:
    """An id in the path, of which the route has checked the letters. Raises ChatError 400 for what is none."""
    identity = request.match_info[name]
    if len(identity) != 26:
        raise chat_errors.bad_url(f"{name}_id")
    return identity


def joined_in(request: web.Request, state: ChatState, user: str) -> str:
    """The channel in the path. Raises ChatError 403 unless the user is a member of it."""
    channel = identity_in(request, "channel")
    state.check_joined(channel, user)
    return channel


def page_of(request: web.Request) -> tuple[int, int]:
    """Number and size of the page that the query asks for; what is no number counts as not given."""
    page, size = (request.query.get(key, "") for key in ("page", "per_page"))
    return _natural(page, 0), min(_natural(size, DEFAULT_PAGE_SIZE), MAX_PAGE_SIZE)


def _natural(text: str, default: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else default


def paged(request: web.Request, found: list[Any]) -> list[Any]:
    """The page that the query asks for."""
    page, size = page_of(request)
    return found[page * size : (page + 1) * size]


async def object_of(request: web.Request, name: str, shape: Json | None = None) -> Json:
    """The JSON object of a body, in that shape; null is an empty one. Raises ChatError 400."""
    try:
        body = decode(await request.read())
        found: Json = read({} if body is None else body, dict if shape is None else shape)
    except ValueError as error:
        raise chat_errors.bad_body(name) from error
    return found


async def readable_of(request: web.Request, shape: Json) -> Json:
    """The same where the server takes no notice of what it can't read."""
    try:
        return await object_of(request, "", shape)
    except chat_errors.ChatError:
        return {}


async def list_of(request: web.Request, name: str) -> list[str]:
    """The strings of a body. Raises ChatError 400."""
    try:
        found: list[str] = read(decode(await request.read()), [str])
    except ValueError as error:
        raise chat_errors.bad_body(name) from error
    if not found:
        raise chat_errors.bad_body(name)
    return found
