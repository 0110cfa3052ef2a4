"""Posts: creating, editing, deleting, listing.

Rules follow mattermost-server 6.7.2 `app/post.go`, `api4/post.go`, `model/post.go`, `store/sqlstore/post_store.go`.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from bot.demo import chat_errors
from bot.demo.chat_attachments import typed
from bot.demo.chat_errors import ChatError
from bot.demo.chat_state import MAX_POST_SIZE, ChatState, Event, Json, without_integrations

DEDUPLICATION_SECONDS = 30.0
MAX_PROPS = 800_000
MAX_FILES = 10
SINCE_LIMIT = 1000


class Posts:
    """The rules of posts over the state."""

    def __init__(self, state: ChatState) -> None:
        self.state = state
        self._pending: dict[str, tuple[float, str]] = {}
        self._by_root: dict[str, list[str]] = {}

    def create(self, user: str, asked: Json, *, from_api: bool = True) -> Json:
        """Store a post of a user. The same pending_post_id within 30 s returns the first one.

        Raises ChatError: 403 for those who are no members, 400 for what is too long or answers a reply.
        """
        state = self.state
        channel = state.channels.get(asked.get("channel_id", ""))
        if channel is None or (from_api and not state.is_member(channel["id"], user)):
            raise chat_errors.no_permission()
        pending = asked.get("pending_post_id") or ""
        if pending and (seen := self._seen(pending)) is not None:
            return self.view(seen)
        if channel["delete_at"]:
            raise ChatError(
                400, "api.post.create_post.can_not_post_to_deleted.error", "Can not post to deleted channel."
            )
        self._check_root(asked, channel)
        post = self._new(user, asked, keep_time=from_api and state.is_admin(user))
        self._check(post)
        if pending:
            self._pending[pending] = (state.clock.wire_time(), post["id"])
        state.posts[post["id"]] = post
        if post["root_id"]:
            self._by_root.setdefault(post["root_id"], []).append(post["id"])
        channel["last_post_at"] = post["create_at"]
        channel["total_msg_count"] += 1
        self._announce(post, channel)
        return {**self.view(post), "pending_post_id": pending}

    def _seen(self, pending: str) -> Json | None:
        now = self.state.clock.wire_time()
        when, identity = self._pending.get(pending, (-1e18, ""))
        return self.state.posts.get(identity) if now - when < DEDUPLICATION_SECONDS else None

    def _check_root(self, asked: Json, channel: Json) -> None:
        root = asked.get("root_id") or ""
        if not root:
            return
        found = self.state.posts.get(root)
        if found is not None and found["channel_id"] != channel["id"]:
            text = "Invalid ChannelId for RootId parameter."
            raise ChatError(400, "api.post.create_post.channel_root_id.app_error", text)
        if found is None or found["delete_at"] or found["root_id"]:
            raise ChatError(400, "api.post.create_post.root_id.app_error", "Invalid RootId parameter.")

    def _new(self, user: str, asked: Json, *, keep_time: bool) -> Json:
        now = self.state.stamp()
        created = int(asked.get("create_at") or 0) if keep_time else 0
        props = copy.deepcopy(asked.get("props") or {})
        props.pop("add_channel_member", None)
        if self.state.users.get(user, {}).get("is_bot"):
            props["from_bot"] = "true"
        post: Json = {"id": self.state.new_id(), "create_at": created or now, "update_at": created or now, "edit_at": 0}
        post |= {"delete_at": 0, "is_pinned": False, "user_id": user, "channel_id": asked["channel_id"]}
        post |= {"root_id": asked.get("root_id") or "", "original_id": "", "message": str(asked.get("message") or "")}
        post |= {"type": asked.get("type") or "", "props": props, "hashtags": "", "pending_post_id": ""}
        files = [one for one in asked.get("file_ids") or () if one in self.state.files]
        if files:
            post["file_ids"] = files
        _read_attachments(self.state, props)
        return post

    def _check(self, post: Json) -> None:
        text = post["message"] + json.dumps(post["props"], ensure_ascii=False)
        if len(post["message"]) > MAX_POST_SIZE:
            raise ChatError(400, "model.post.is_valid.msg.app_error", "Invalid message.")
        if len(json.dumps(post["props"], ensure_ascii=False, separators=(",", ":"))) > MAX_PROPS:
            raise ChatError(400, "model.post.is_valid.props.app_error", "Invalid props.")
        if len(post.get("file_ids") or ()) > MAX_FILES:
            message = (
                "Invalid file ids. Note that uploads are limited to 5 files maximum. "
                "Please use additional posts for more files."
            )
            raise ChatError(400, "model.post.is_valid.file_ids.app_error", message)
        if "\x00" in post["message"] or "\\u0000" in text:
            # What PostgreSQL does not take looks like a passing failure, and is not.
            raise ChatError(500, "app.post.save.app_error", "Unable to save the Post.")

    def _announce(self, post: Json, channel: Json) -> None:
        user = self.state.users.get(post["user_id"], {})
        data: Json = {
            "channel_display_name": channel["display_name"],
            "channel_name": channel["name"],
            "channel_type": channel["type"],
            "post": json.dumps(self.view(post), ensure_ascii=False),
            "sender_name": "@" + user.get("username", "unknown"),
            "set_online": True,
            "team_id": channel["team_id"],
        }
        mentioned = self.state.mentioned(post["message"])
        if channel["type"] == "D":
            mentioned = [one for one in self.state.members[channel["id"]] if one != post["user_id"]]
        if mentioned:
            data["mentions"] = json.dumps(mentioned)
        self.state.publish(Event("posted", data, channel=channel["id"]))

    def edit(self, user: str, identity: str, patch: Json) -> Json:
        """PUT /posts/ID/patch: message and props as given; props replace all props, file ids are ignored.

        Raises ChatError: 403 for what is not theirs or is gone, 400 after the time limit.
        """
        post = self._editable(user, identity)
        self._check_open(post, "patch_post")
        changed = {key: patch[key] for key in ("message", "is_pinned", "has_reactions") if patch.get(key) is not None}
        if patch.get("props") is not None:
            changed["props"] = copy.deepcopy(patch["props"])
        return self.update(post, changed)

    def replace(self, user: str, identity: str, body: Json) -> Json:
        """PUT /posts/ID: what is missing is emptied, but for the files."""
        post = self._editable(user, identity)
        return self.update(
            post, {"message": body.get("message") or "", "props": copy.deepcopy(body.get("props") or {})}
        )

    def _editable(self, user: str, identity: str) -> Json:
        post = self.state.posts.get(identity)
        if post is None or post["delete_at"] or not self.state.is_member(post["channel_id"], user):
            raise chat_errors.no_permission()
        if post["user_id"] != user and not self.state.is_admin(user):
            raise chat_errors.no_permission()
        return post

    def _check_open(self, post: Json, route: str) -> None:
        if self.state.channel(post["channel_id"])["delete_at"]:
            message = "Can not update a post in a deleted channel."
            raise ChatError(400, f"api.post.{route}.can_not_update_post_in_deleted.error", message)

    def update(self, post: Json, changed: Json) -> Json:
        """Write an edit, whoever makes it. Raises ChatError 400."""
        state = self.state
        if post["delete_at"]:
            message = f"Already deleted id={post['id']}."
            raise ChatError(400, "api.post.update_post.permissions_details.app_error", message)
        new = {**post, **changed}
        age = state.clock.millis() - post["create_at"]
        if 0 <= state.edit_limit < age / 1000 and new["message"] != post["message"]:
            message = (
                f"Post edit is only allowed for {state.edit_limit} seconds. "
                "Please ask your System Administrator for details."
            )
            raise ChatError(400, "api.post.update_post.permissions_time_limit.app_error", message)
        self._check_open(post, "update_post")
        _read_attachments(state, new["props"])
        self._check(new)
        now = state.stamp()
        same_attachments = post["props"].get("attachments") == new["props"].get("attachments")
        if new["message"] != post["message"] or not same_attachments or new.get("file_ids") != post.get("file_ids"):
            new["edit_at"] = now
        new["update_at"] = now
        state.posts[post["id"]] = new
        # What it was before stays among the posts, as a deleted one.
        former = {**post, "id": state.new_id(), "original_id": post["id"], "update_at": now, "delete_at": now}
        state.posts[former["id"]] = former
        shown = self.view(new)
        data = {"post": json.dumps(shown, ensure_ascii=False)}
        state.publish(Event("post_edited", data, channel=post["channel_id"]))
        return shown

    def delete(self, user: str, identity: str) -> None:
        """Delete a post and its replies. Raises ChatError 403."""
        post = self._editable(user, identity)
        before, now = json.dumps(self.view(post), ensure_ascii=False), self.state.stamp()
        for one in [post, *self._replies(identity)]:
            props = {**one["props"], "deleteBy": user}
            self.state.posts[one["id"]] = {**one, "props": props, "delete_at": now, "update_at": now}
        channel = post["channel_id"]
        self.state.publish(Event("post_deleted", {"post": before}, channel=channel, admins=False))
        self.state.publish(Event("post_deleted", {"post": before, "delete_by": user}, channel=channel, admins=True))

    def get(self, user: str, identity: str) -> Json:
        """One post. Raises ChatError: 404, 403."""
        post = self.state.posts.get(identity)
        if post is None or post["delete_at"]:
            raise chat_errors.no_post()
        channel = self.state.channel(post["channel_id"])
        if channel["type"] != "O" and not self.state.is_member(channel["id"], user):
            raise chat_errors.no_permission()
        return self.view(post)

    def thread(self, user: str, identity: str) -> Json:
        """A post with its root and all replies. Raises ChatError: 404, 403."""
        post = self.get(user, identity)
        root = post["root_id"] or post["id"]
        found = [self.state.posts[root], *self._replies(root)]
        return self._listed([one for one in found if not one["delete_at"]])

    def _replies(self, root: str) -> list[Json]:
        found = [self.state.posts[one] for one in self._by_root.get(root, ())]
        return [one for one in found if not one["delete_at"]]

    def page(self, channel: str, query: dict[str, str]) -> Json:
        """GET /channels/ID/posts: a page by creation, newest first, or what changed since a time."""
        posts = [one for one in self.state.posts.values() if one["channel_id"] == channel]
        posts.sort(key=lambda one: one["create_at"], reverse=True)
        roots_only = query.get("collapsedThreads") == "true"
        if roots_only:
            posts = [one for one in posts if not one["root_id"]]
        since = int(query.get("since") or 0)
        if since > 0:
            # Deleted posts are among them, so that a client can take them away.
            return self._listed([one for one in posts if one["update_at"] > since][:SINCE_LIMIT], roots=not roots_only)
        posts = [one for one in posts if not one["delete_at"]]
        for key in ("before", "after"):
            if pivot := self.state.posts.get(query.get(key, "")):
                at = pivot["create_at"]
                posts = [one for one in posts if (one["create_at"] < at if key == "before" else one["create_at"] > at)]
        per_page = min(int(query.get("per_page") or 60), 200)
        start = int(query.get("page") or 0) * per_page
        if query.get("after"):
            posts = list(reversed(list(reversed(posts))[start : start + per_page]))
            return self._listed(posts, roots=not roots_only)
        shown = posts[start : start + per_page]
        older = posts[start + per_page : start + per_page + 1]
        newer = posts[start - 1 : start] if start else []
        listed = self._listed(shown, roots=not roots_only)
        return listed | {
            "prev_post_id": older[0]["id"] if older else "",
            "next_post_id": newer[0]["id"] if newer else "",
        }

    def _listed(self, posts: list[Json], *, roots: bool = False) -> Json:
        shown = {one["id"]: self.view(one) for one in posts}
        for one in shown.values():
            if one["delete_at"]:
                one["message"] = ""
        if roots:
            for one in posts:
                root = self.state.posts.get(one["root_id"])
                if root is not None and not root["delete_at"]:
                    shown.setdefault(root["id"], self.view(root))
        order = sorted((one["id"] for one in posts), key=lambda one: int(shown[one]["create_at"]), reverse=True)
        return {"order": order, "posts": shown, "next_post_id": "", "prev_post_id": ""}

    def ephemeral(self, user: str, post: Json) -> Json:
        """Show a post to one user alone: on their websockets, and nowhere else."""
        identity, now = self.state.new_id(), self.state.stamp()
        shown: Json = {
            "id": identity,
            "create_at": now,
            "update_at": now,
            "edit_at": 0,
            "delete_at": 0,
            "is_pinned": False,
        }
        shown |= {
            "user_id": post.get("user_id", user),
            "channel_id": post["channel_id"],
            "root_id": post.get("root_id") or "",
        }
        shown |= {"original_id": "", "message": post.get("message") or "", "type": "system_ephemeral"}
        shown |= {
            "props": copy.deepcopy(post.get("props") or {}),
            "hashtags": "",
            "pending_post_id": "",
            "metadata": {},
        }
        _read_attachments(self.state, shown["props"])
        _give_cookies(self.state, shown)
        shown = without_integrations(shown)
        self.state.publish(Event("ephemeral_message", {"post": json.dumps(shown, ensure_ascii=False)}, user=user))
        return shown

    def view(self, post: Json) -> Json:
        """A post as the API gives it."""
        shown = dict(without_integrations(post))
        root = post["root_id"] or post["id"]
        replies = self._replies(root)
        shown |= {"reply_count": len(replies), "last_reply_at": 0, "participants": None}
        shown["metadata"] = self._metadata(post)
        return shown

    def _metadata(self, post: Json) -> Json:
        metadata: Json = {}
        if post["props"].get("attachments"):
            metadata["embeds"] = [{"type": "message_attachment"}]
        if post.get("file_ids"):
            metadata["files"] = [self.state.files[one][0] for one in post["file_ids"]]
        if self.state.reactions.get(post["id"]):
            metadata["reactions"] = self.state.reactions[post["id"]]
        return metadata


def _attachments(props: Json) -> list[Any]:
    attachments = props.get("attachments")
    return attachments if isinstance(attachments, list) else []


def _read_attachments(state: ChatState, props: Json) -> None:
    if props.get("attachments") is not None:
        props["attachments"] = typed(props["attachments"], state.new_id)


def _give_cookies(state: ChatState, post: Json) -> None:
    for attachment in _attachments(post["props"]):
        for action in attachment.get("actions") or ():
            if action.get("integration"):
                cookie = state.new_id()
                state.cookies[cookie] = {"post_id": post["id"], "post": post | {"props": copy.deepcopy(post["props"])}}
                action["cookie"] = cookie
