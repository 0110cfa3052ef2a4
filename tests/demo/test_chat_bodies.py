"""Whatever is sent to the embedded chat, it answers as a server does: nothing falls over."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import aiohttp
import pytest

from bot.demo import EmbeddedWorld
from bot.demo.chat_shapes import decode

ODD: tuple[Any, ...] = (None, True, -1, 1.5, "", "x", "x" * 26, "a\x00", [], [1], [None], {}, {"a": {"b": [None]}})
FIELDS = (
    *("id", "user_id", "channel_id", "team_id", "post_id", "root_id", "message", "props", "file_ids", "type", "post"),
    *("command", "trigger", "url", "method", "dialog", "trigger_id", "submission", "cookie", "emoji_name", "name"),
    *("username", "email", "password", "login_id", "description", "attachments", "text", "channel", "create_at"),
)
RAW = (b"", b"{", b"null", b"NaN", b"\xff", b"[" * 5000, b'{"a":' * 3000, b'{"create_at":1' + b"0" * 5000 + b"}")
KINDS = ("application/json", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x")
QUERY = ("page", "per_page", "since", "before", "after", "perPage", "fromCreateAt", "fromPost", "in_channel", "format")


@pytest.fixture
def places(world: EmbeddedWorld) -> dict[str, str]:
    """What stands for each part of a path."""
    world.register_command("t", "http://127.0.0.1:1/")
    button = {"id": "a", "name": "n", "type": "button", "integration": {"url": "http://127.0.0.1:1/"}}
    asked = {"channel_id": world.chat.channel_id(), "props": {"attachments": [{"text": "x", "actions": [button]}]}}
    return {
        "post": world.chat.api.posts.create(world.chat.user_id("dev"), asked)["id"],
        "channel": world.chat.channel_id(),
        "user": world.chat.user_id("viewer"),
        "team": world.chat.team_id,
        "command": next(iter(world.chat.state.commands)),
        "bot": world.chat.user_id("bot"),
        "hook": world.chat.add_webhook().rsplit("/", 1)[1],
        "team_name": "foxhunt",
        "channel_name": "gpu-tests",
        "username": "dev",
        "email": "dev@localhost",
        "action": "a",
        "emoji": "ok",
    }


async def test_every_route_with_everything_odd(
    world: EmbeddedWorld, session: aiohttp.ClientSession, places: dict[str, str]
) -> None:
    """No request ends in a traceback, whatever is in its body, its query or its content type."""
    routes = [(one.method, one.resource.canonical) for one in world.chat.api.app.router.routes() if one.resource]
    odd, kinds, numbers = (
        itertools.cycle(ODD),
        itertools.cycle(KINDS),
        itertools.cycle(("x", "-1", "--5", "²", "9" * 30)),
    )
    fallen = []
    for method, canonical in sorted(routes):
        if method == "*" or "websocket" in canonical:
            continue
        path = re.sub(r"\{(\w+)\}", lambda part: places.get(part[1], "x" * 26), canonical)
        bodies = [
            *RAW,
            *(json.dumps({key: next(odd) for key in FIELDS}).encode() for _ in ODD),
            json.dumps(ODD).encode(),
        ]
        for body in bodies:
            headers = {"Authorization": f"Bearer {world.tokens['admin']}", "Content-Type": next(kinds)}
            query = {key: next(numbers) for key in QUERY}
            async with session.request(
                method, world.chat_url + path, data=body, params=query, headers=headers
            ) as response:
                if "Server got itself in trouble" in await response.text(errors="replace"):
                    fallen.append((method, canonical, body[:200]))
            for user in world.chat.state.users.values():
                user["delete_at"] = 0

    assert fallen == []


@pytest.mark.parametrize("raw", RAW[:2] + RAW[3:4] + RAW[5:])
def test_json_that_is_none(raw: bytes) -> None:
    """Not even deep nesting, or a number without end, is more than an error."""
    with pytest.raises(ValueError, match=r"."):
        decode(raw)
