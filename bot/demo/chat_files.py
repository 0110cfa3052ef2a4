"""Files and reactions."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from aiohttp import BodyPartReader, web

from bot.demo import chat_errors
from bot.demo.chat_errors import ChatError
from bot.demo.chat_requests import answer, identity_in, object_of
from bot.demo.chat_state import ChatState, Event, Json

Handler = Callable[[web.Request, str], Awaitable[web.StreamResponse]]


class Files:
    """Handlers of what hangs on posts."""

    def __init__(self, state: ChatState) -> None:
        self._state = state

    def table(self) -> list[tuple[str, str, Handler]]:
        """Method, path below /api/v4, handler."""
        return [
            ("POST", "/reactions", self._react),
            ("GET", "/posts/{post}/reactions", self._reactions),
            ("DELETE", "/users/{user}/posts/{post}/reactions/{emoji}", self._unreact),
            ("POST", "/files", self._upload),
            ("GET", "/files/{file}", self._download),
            ("GET", "/files/{file}/info", self._file_info),
        ]

    async def _react(self, request: web.Request, user: str) -> web.StreamResponse:
        body = await object_of(request, "reaction")
        post = self._state.posts.get(str(body.get("post_id")))
        if body.get("user_id") != user or post is None or not self._state.is_member(post["channel_id"], user):
            raise chat_errors.no_permission()
        reaction = {
            "user_id": user,
            "post_id": post["id"],
            "emoji_name": str(body.get("emoji_name")),
            "create_at": self._state.stamp(),
        }
        given = self._state.reactions.setdefault(post["id"], [])
        if not any((one["user_id"], one["emoji_name"]) == (user, reaction["emoji_name"]) for one in given):
            given.append(reaction)
            self._state.posts[post["id"]] = {**post, "update_at": self._state.stamp()}
        self._state.publish(Event("reaction_added", {"reaction": json.dumps(reaction)}, channel=post["channel_id"]))
        return answer(reaction, 201)

    async def _reactions(self, request: web.Request, _user: str) -> web.StreamResponse:
        return answer(self._state.reactions.get(identity_in(request, "post"), []))

    async def _unreact(self, request: web.Request, user: str) -> web.StreamResponse:
        post, emoji = self._state.posts.get(identity_in(request, "post")), request.match_info["emoji"]
        if post is None or request.match_info["user"] not in ("me", user):
            raise chat_errors.no_permission()
        given = self._state.reactions.get(post["id"], [])
        for one in [one for one in given if (one["user_id"], one["emoji_name"]) == (user, emoji)]:
            given.remove(one)
            self._state.publish(Event("reaction_removed", {"reaction": json.dumps(one)}, channel=post["channel_id"]))
        return answer({"status": "OK"})

    async def _upload(self, request: web.Request, user: str) -> web.StreamResponse:
        channel, uploads = await self._read_upload(request)
        if not self._state.is_member(channel, user):
            raise chat_errors.no_permission()
        infos = []
        for name, content in uploads:
            now, identity = self._state.stamp(), self._state.new_id()
            info: Json = {
                "id": identity,
                "user_id": user,
                "post_id": "",
                "channel_id": channel,
                "create_at": now,
                "update_at": now,
            }
            info |= {"delete_at": 0, "name": name, "extension": name.rpartition(".")[2], "size": len(content)}
            info |= {
                "mime_type": "text/plain; charset=utf-8"
                if name.endswith((".txt", ".log"))
                else "application/octet-stream"
            }
            self._state.files[identity] = (info, content)
            infos.append(info)
        return answer({"file_infos": infos, "client_ids": []}, 201)

    async def _read_upload(self, request: web.Request) -> tuple[str, list[tuple[str, bytes]]]:
        if request.content_type != "multipart/form-data":
            # The simple form: the body is the file.
            return request.query.get("channel_id", ""), [(request.query.get("filename", ""), await request.read())]
        channel, uploads = "", []
        async for part in await request.multipart():
            if not isinstance(part, BodyPartReader):
                continue
            if part.name == "channel_id":
                channel = await part.text()
            elif part.name == "files":
                uploads.append((part.filename or "", bytes(await part.read())))
            elif part.name != "client_ids":
                raise chat_errors.bad_body(part.name or "files")
        return channel, uploads

    def _file(self, request: web.Request, user: str) -> tuple[Json, bytes]:
        found = self._state.files.get(identity_in(request, "file"))
        if found is None:
            raise ChatError(404, "app.file_info.get.app_error", "Unable to get the file info.")
        if found[0]["user_id"] != user and not self._state.is_member(found[0]["channel_id"], user):
            raise chat_errors.no_permission()
        return found

    async def _download(self, request: web.Request, user: str) -> web.StreamResponse:
        info, content = self._file(request, user)
        return web.Response(body=content, headers={"Content-Type": info["mime_type"]})

    async def _file_info(self, request: web.Request, user: str) -> web.StreamResponse:
        return answer(self._file(request, user)[0])
