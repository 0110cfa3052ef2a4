"""What a chat server, or something before it, may answer in place of a plain object."""

from __future__ import annotations

import json

import pytest

from bot.clients.errors import ServerFault
from bot.clients.mattermost import Mattermost
from bot.metrics import Metrics
from tests.clients.wire import Reply, wire


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8", "text/plain"])
async def test_a_thread_with_such_a_post_is_read(content_type: str) -> None:
    """Whatever a proxy calls the type of the answer."""
    posts = {"p1": {"id": "p1", "create_at": 1, "props": {"x": "DEEP"}}, "p2": {"id": "p2", "create_at": 2}}
    body = json.dumps({"order": ["p1", "p2"], "posts": posts}).replace('"DEEP"', "[" * 5000 + "]" * 5000).encode()
    async with wire(Reply(chunks=[body], headers={"Content-Type": content_type})) as script:
        chat = Mattermost(script.url, "t", Metrics())
        try:
            found = await chat.thread("p1")
        finally:
            chat.close()

    assert ["p1", "p2"] == sorted(post.id for post in found)


async def test_a_page_of_a_proxy_is_no_thread() -> None:
    """200 with a log-in form: a fault of who answered, not an object."""
    async with wire(Reply(chunks=[b"<html>please log in</html>"], headers={"Content-Type": "text/html"})) as script:
        chat = Mattermost(script.url, "t", Metrics())
        try:
            with pytest.raises(ServerFault, match="no JSON"):
                await chat.thread("p1")
        finally:
            chat.close()
