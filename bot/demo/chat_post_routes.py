"""The routes of posts: the state's rules are in `chat_posts` and `chat_pages`.

mattermost-server 6.7.2 `api4/post.go`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from aiohttp import web

from bot.demo import chat_errors
from bot.demo.chat_requests import Handler, answer, identity_in, joined_in, list_of, object_of, page_of, readable_of
from bot.demo.chat_shapes import EPHEMERAL, POST, POST_PATCH

if TYPE_CHECKING:
    from bot.demo.mattermost_api import ChatApi


class PostRoutes:
    """Handlers of posts."""

    def __init__(self, api: ChatApi) -> None:
        self._posts = api.posts
        self._state = api.state

    def table(self) -> list[tuple[str, str, Handler]]:
        """Method, path below /api/v4, handler."""
        return [
            ("POST", "/posts", self._create),
            ("POST", "/posts/ephemeral", self._create_ephemeral),
            ("POST", "/posts/ids", self._some),
            ("GET", "/posts/{post}", self._get),
            ("PUT", "/posts/{post}", self._put),
            ("PUT", "/posts/{post}/patch", self._patch),
            ("DELETE", "/posts/{post}", self._delete),
            ("POST", "/posts/{post}/pin", self._pin),
            ("POST", "/posts/{post}/unpin", self._unpin),
            ("GET", "/posts/{post}/thread", self._thread),
            ("GET", "/posts/{post}/files/info", self._files),
            ("GET", "/channels/{channel}/posts", self._page),
            ("GET", "/channels/{channel}/pinned", self._pinned),
        ]

    async def _create(self, request: web.Request, user: str) -> web.StreamResponse:
        return answer(self._posts.create(user, await object_of(request, "post", POST)), 201)

    async def _create_ephemeral(self, request: web.Request, user: str) -> web.StreamResponse:
        body = await readable_of(request, EPHEMERAL)
        for key in ("user_id", "post"):
            if not body.get(key) and body.get(key) != {}:
                raise chat_errors.bad_body(key)
        if not self._state.is_admin(user):
            raise chat_errors.no_permission()
        return answer(self._posts.ephemeral(body["user_id"], {**body["post"], "user_id": user}), 201)

    async def _some(self, request: web.Request, user: str) -> web.StreamResponse:
        return answer(self._posts.some(user, await list_of(request, "post_ids")))

    async def _get(self, request: web.Request, user: str) -> web.StreamResponse:
        return answer(self._posts.get(user, identity_in(request, "post")))

    async def _put(self, request: web.Request, user: str) -> web.StreamResponse:
        identity = identity_in(request, "post")
        body = await object_of(request, "post", POST)
        if body.get("id") != identity:
            raise chat_errors.bad_body("id")
        return answer(self._posts.replace(user, identity, body))

    async def _patch(self, request: web.Request, user: str) -> web.StreamResponse:
        identity = identity_in(request, "post")
        return answer(self._posts.edit(user, identity, await object_of(request, "post", POST_PATCH)))

    async def _delete(self, request: web.Request, user: str) -> web.StreamResponse:
        self._posts.delete(user, identity_in(request, "post"))
        return answer({"status": "OK"})

    async def _pin(self, request: web.Request, user: str) -> web.StreamResponse:
        self._posts.pin(user, identity_in(request, "post"), True)
        return answer({"status": "OK"})

    async def _unpin(self, request: web.Request, user: str) -> web.StreamResponse:
        self._posts.pin(user, identity_in(request, "post"), False)
        return answer({"status": "OK"})

    async def _thread(self, request: web.Request, user: str) -> web.StreamResponse:
        return answer(self._posts.thread(user, identity_in(request, "post"), dict(request.query)))

    async def _files(self, request: web.Request, user: str) -> web.StreamResponse:
        post = self._posts.get(user, identity_in(request, "post"))
        return answer(post["metadata"].get("files", []))

    async def _page(self, request: web.Request, user: str) -> web.StreamResponse:
        channel = joined_in(request, self._state, user)
        query = dict(request.query)
        if query.get("since") and not re.fullmatch(r"[+-]?[0-9]{1,18}", query["since"]):
            raise chat_errors.bad_body("since")
        for key in ("after", "before"):
            if query.get(key) and not re.fullmatch(r"[A-Za-z0-9]{26}", query[key]):
                raise chat_errors.bad_body(key)
        return answer(self._posts.page(channel, query, *page_of(request)))

    async def _pinned(self, request: web.Request, user: str) -> web.StreamResponse:
        return answer(self._posts.pinned(joined_in(request, self._state, user)))
