"""Reading requests to the Mattermost API, and writing answers."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from bot.demo import chat_errors

Json = dict[str, Any]


def answer(body: Any, code: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """An answer with a JSON body; the content type has no charset, and clients compare it as a whole."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return web.Response(status=code, body=text.encode(), content_type="application/json", headers=headers)


def identity_in(request: web.Request, name: str) -> str:
    """An id in the path. Raises ChatError 400 for what is none."""
    identity = request.match_info[name]
    if len(identity) != 26 or not identity.isalnum():
        raise chat_errors.bad_url(f"{name}_id")
    return identity


def paged(request: web.Request, found: list[Any]) -> list[Any]:
    """The page that the query asks for."""
    per_page = min(int(request.query.get("per_page") or 60), 200)
    start = int(request.query.get("page") or 0) * per_page
    return found[start : start + per_page]


async def json_of(request: web.Request, name: str) -> Any:
    """The JSON of a body. Raises ChatError 400."""
    try:
        raw = await request.read()
        body = json.loads(raw)
        return _go_strings(body) if b"\\u" in raw else body
    except ValueError as error:
        raise chat_errors.bad_body(name) from error


def _go_strings(value: Any) -> Any:
    """Half of a surrogate pair is no character: Go's decoder takes U+FFFD for it."""
    if isinstance(value, dict):
        return {key: _go_strings(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_go_strings(one) for one in value]
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


async def object_of(request: web.Request, name: str, *, optional: bool = False) -> Json:
    """The JSON object of a body. Raises ChatError 400."""
    if optional and not await request.read():
        return {}
    body = await json_of(request, name)
    if not isinstance(body, dict):
        raise chat_errors.bad_body(name)
    return body


async def list_of(request: web.Request, name: str) -> list[str]:
    """The strings of a body. Raises ChatError 400."""
    body = await json_of(request, name)
    if not isinstance(body, list) or not body:
        raise chat_errors.bad_body(name)
    return [str(one) for one in body]
