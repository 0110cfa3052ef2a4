"""Files and reactions.

mattermost-server 6.7.2 `api4/file.go`, `app/file.go`, `api4/reaction.go`, `model/reaction.go`.
"""

from __future__ import annotations

import json
import mimetypes
import re
from urllib.parse import quote

from aiohttp import BodyPartReader, web

from bot.demo import chat_errors
from bot.demo.chat_errors import ChatError
from bot.demo.chat_requests import Handler, answer, identity_in, object_of
from bot.demo.chat_shapes import REACTION
from bot.demo.chat_state import ChatState, Event, Json

MAX_EMOJI = 64
TYPES = mimetypes.MimeTypes().types_map[1] | {
    ".gz": "application/gzip",
    ".log": "text/x-log",
    ".md": "text/markdown",
    ".yaml": "application/x-yaml",
    ".yml": "application/x-yaml",
}
"""Media types by the end of a name; those of the real server come from its machine as well."""


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
        body = await object_of(request, "reaction", REACTION)
        identity, emoji = body.get("post_id", ""), body.get("emoji_name", "")
        if len(identity) != 26 or len(body.get("user_id", "")) != 26 or not 1 <= len(emoji) <= MAX_EMOJI:
            raise ChatError(400, "api.reaction.save_reaction.invalid.app_error", "Reaction is not valid.")
        if body["user_id"] != user:
            text = "You cannot save reaction for the other user."
            raise ChatError(403, "api.reaction.save_reaction.user_id.app_error", text)
        post = self._state.posts.get(identity)
        if post is None or not self._state.is_member(post["channel_id"], user):
            raise chat_errors.no_permission()
        if post["delete_at"]:
            raise chat_errors.no_post()
        if self._state.channel(post["channel_id"])["delete_at"]:
            text = "You cannot react in an archived channel."
            raise ChatError(403, "api.reaction.save.archived_channel.app_error", text)
        if not re.fullmatch(r"[a-zA-Z0-9+_-]+", emoji):
            raise ChatError(400, "model.reaction.is_valid.emoji_name.app_error", "Invalid emoji name.")
        now = self._state.stamp()
        reaction: Json = {"user_id": user, "post_id": identity, "emoji_name": emoji, "create_at": now}
        reaction |= {"update_at": now, "delete_at": 0, "remote_id": ""}
        given = self._state.reactions.setdefault(identity, [])
        if not any((one["user_id"], one["emoji_name"]) == (user, emoji) for one in given):
            given.append(reaction)
            self._touch(post)
        self._state.publish(Event("reaction_added", {"reaction": json.dumps(reaction)}, channel=post["channel_id"]))
        return answer(reaction)

    def _touch(self, post: Json) -> None:
        marked = {"update_at": self._state.stamp(), "has_reactions": bool(self._state.reactions[post["id"]])}
        self._state.posts[post["id"]] = {**post, **marked}

    async def _reactions(self, request: web.Request, user: str) -> web.StreamResponse:
        identity = identity_in(request, "post")
        post = self._state.posts.get(identity)
        allowed = self._state.is_admin(user) or (post and self._state.may_read(post["channel_id"], user))
        if not allowed:
            raise chat_errors.no_permission()
        return answer(self._state.reactions.get(identity) or None)

    async def _unreact(self, request: web.Request, user: str) -> web.StreamResponse:
        post, emoji = self._state.posts.get(identity_in(request, "post")), request.match_info["emoji"]
        if (
            post is None
            or request.match_info["user"] not in ("me", user)
            or not self._state.is_member(post["channel_id"], user)
        ):
            raise chat_errors.no_permission()
        given = self._state.reactions.setdefault(post["id"], [])
        for one in [one for one in given if (one["user_id"], one["emoji_name"]) == (user, emoji)]:
            given.remove(one)
            self._touch(post)
        told = {"user_id": user, "post_id": post["id"], "emoji_name": emoji, "create_at": 0}
        told |= {"update_at": self._state.stamp(), "delete_at": 0, "remote_id": ""}
        self._state.publish(Event("reaction_removed", {"reaction": json.dumps(told)}, channel=post["channel_id"]))
        return answer({"status": "OK"})

    async def _upload(self, request: web.Request, user: str) -> web.StreamResponse:
        simple = request.content_type != "multipart/form-data"
        try:
            channel, uploads, clients = await (self._read_simple(request) if simple else self._read_form(request))
        except ValueError as error:
            raise _unreadable() from error
        self._state.check_joined(channel, user)
        infos = [self._store(user, name, content) for name, content in uploads]
        return answer({"file_infos": infos, "client_ids": None if simple else clients}, 201)

    def _store(self, user: str, name: str, content: bytes) -> Json:
        now, identity = self._state.stamp(), self._state.new_id()
        extension = name.rpartition(".")[2].lower() if "." in name else ""
        kind = TYPES.get(f".{extension}", "")
        info: Json = {"id": identity, "user_id": user, "channel_id": "", "create_at": now, "update_at": now}
        info |= {"delete_at": 0, "name": name, "extension": extension, "size": len(content)}
        info |= {"mime_type": f"{kind}; charset=utf-8" if kind.startswith("text/") else kind}
        info |= {"mini_preview": None, "remote_id": ""}
        self._state.files[identity] = (info, content)
        return info

    async def _read_simple(self, request: web.Request) -> tuple[str, list[tuple[str, bytes]], list[str]]:
        """The body is the file."""
        channel, name, content = request.query.get("channel_id", ""), request.query.get("filename", ""), b""
        if len(channel) != 26:
            raise chat_errors.bad_url("channel_id")
        if not name:
            raise chat_errors.bad_url("filename")
        content = await request.read()
        if not content:
            raise _unreadable()
        return channel, [(name, content)], []

    async def _read_form(self, request: web.Request) -> tuple[str, list[tuple[str, bytes]], list[str]]:
        channel, uploads, clients = None, [], []
        async for part in await request.multipart():
            if not isinstance(part, BodyPartReader):
                raise _unreadable()
            if part.filename is not None:
                uploads.append((re.sub(r".*[/\\]", "", part.filename), bytes(await part.read())))
            elif part.name == "channel_id":
                channel = await part.text()
            elif part.name == "client_ids" and not uploads:
                clients.append(await part.text())
            else:
                raise chat_errors.bad_body(part.name or "files")
        if channel is None:
            raise chat_errors.bad_body("channel_id")
        if len(channel) != 26:
            raise chat_errors.bad_url("channel_id")
        if clients and len(clients) != len(uploads):
            raise chat_errors.bad_body("client_ids")
        return channel, uploads, clients

    def _file(self, request: web.Request, user: str) -> tuple[Json, bytes]:
        """A file that one has uploaded, or that hangs on a post that one may read. Raises ChatError: 404, 403."""
        found = self._state.files.get(identity_in(request, "file"))
        if found is None:
            raise ChatError(404, "app.file_info.get.app_error", "Unable to get the file info.")
        post = self._state.posts.get(found[0].get("post_id", ""))
        if found[0]["user_id"] != user and not (post and self._state.may_read(post["channel_id"], user)):
            raise chat_errors.no_permission()
        return found

    async def _download(self, request: web.Request, user: str) -> web.StreamResponse:
        info, content = self._file(request, user)
        name = quote(info["name"])
        headers = {"Content-Type": info["mime_type"] or "application/octet-stream"}
        headers |= {"X-Content-Type-Options": "nosniff", "Cache-Control": "private, no-cache"}
        headers |= {"X-Frame-Options": "DENY", "Content-Security-Policy": "Frame-ancestors 'none'"}
        headers["Content-Disposition"] = f"attachment;filename=\"{name}\"; filename*=UTF-8''{name}"
        return web.Response(body=content, headers=headers)

    async def _file_info(self, request: web.Request, user: str) -> web.StreamResponse:
        return answer(self._file(request, user)[0])


def _unreadable() -> ChatError:
    text = "Unable to upload file(s). Error reading or parsing request data."
    return ChatError(400, "api.file.upload_file.read_request.app_error", text)
