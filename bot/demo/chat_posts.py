"""Posts: creating, editing, deleting.

Rules follow mattermost-server 6.7.2 `app/post.go`, `api4/post.go`, `model/post.go`, `store/sqlstore/post_store.go`.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from bot.demo import chat_errors
from bot.demo.chat_attachments import typed
from bot.demo.chat_errors import ChatError
from bot.demo.chat_mentions import channels_in, hashtags_in, mentioned_in
from bot.demo.chat_pages import Reading
from bot.demo.chat_shapes import POST, filled
from bot.demo.chat_state import MAX_POST_SIZE, ChatState, Event, Json, without_integrations

DEDUPLICATION_SECONDS = 30.0
MAX_PROPS = 800_000
MAX_FILE_IDS = 300
"""Characters of the list of files: room for ten."""
SORTS = ("", "slack_attachment", "me")
COMING_AND_GOING = frozenset(
    f"system_{what}"
    for what in ("join_leave", "add_remove", "join_channel", "leave_channel", "add_to_channel", "remove_from_channel")
)


class Posts(Reading):
    """The rules of posts over the state: what may be written, and what the others hear of it."""

    def __init__(self, state: ChatState) -> None:
        super().__init__(state)
        self._pending: dict[str, tuple[float, str]] = {}

    def create(self, user: str, asked: Json, *, from_api: bool = True) -> Json:
        """Store a post of a user. The same pending_post_id within 30 s returns the first one.

        Raises ChatError: 403 for those who are no members, 400 for what is too long or answers a reply.
        """
        state = self.state
        channel = state.channels.get(asked.get("channel_id", ""))
        if channel is None or (from_api and not state.is_member(channel["id"], user)):
            raise chat_errors.no_permission()
        if from_api:
            _check_sort(asked)
        pending = asked.get("pending_post_id") or ""
        if pending and (seen := self._seen(pending)) is not None:
            return self.view(seen)
        if channel["delete_at"]:
            raise ChatError(
                400, "api.post.create_post.can_not_post_to_deleted.error", "Can not post to deleted channel."
            )
        self._check_root(asked, channel)
        post = self._new(user, asked, keep_time=from_api and state.is_admin(user))
        self._check(post, "save")
        if pending:
            self._pending[pending] = (state.clock.wire_time(), post["id"])
        state.posts[post["id"]] = post
        self._attach(post)
        if post["root_id"]:
            self._by_root.setdefault(post["root_id"], []).append(post["id"])
        _count(channel, post)
        self._announce(post, channel, pending)
        if from_api and "from_bot" not in post["props"] and "from_webhook" not in post["props"]:
            state.publish(Event("channel_viewed", {"channel_id": channel["id"]}, user=user))
        return {**self.view(post), "pending_post_id": pending}

    def _seen(self, pending: str) -> Json | None:
        now = self.state.clock.wire_time()
        when, identity = self._pending.get(pending, (-1e18, ""))
        if now - when >= DEDUPLICATION_SECONDS:
            return None
        found = self.state.posts[identity]
        if found["delete_at"]:
            text = "Failed to fetch original post after deduplicating a client repeating the same request."
            raise ChatError(500, "api.post.deduplicate_create_post.failed_to_get", text)
        return found

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
        post: Json = {"id": self.state.new_id(), "create_at": created or now, "update_at": created or now}
        post |= {"edit_at": asked.get("edit_at") or 0, "delete_at": 0, "is_pinned": bool(asked.get("is_pinned"))}
        post |= {"user_id": user, "channel_id": asked["channel_id"], "root_id": asked.get("root_id") or ""}
        post |= {"original_id": "", "message": asked.get("message") or "", "type": asked.get("type") or ""}
        post |= {"props": props, "pending_post_id": ""}
        files = list(asked.get("file_ids") or ())
        if files:
            post["file_ids"] = files
        self._fill(post)
        return post

    def _fill(self, post: Json) -> None:
        """What the server reads out of a post: attachments, hashtags, the channels that are named."""
        props = post["props"]
        if props.get("attachments") is not None:
            props["attachments"] = typed(props["attachments"], self.state.new_id)
        post["hashtags"] = hashtags_in(post["message"])
        team = self.state.teams.get(self.state.channels[post["channel_id"]]["team_id"], {})
        names = channels_in(post["message"])
        found = {
            one["name"]: {"display_name": one["display_name"], "team_name": team["name"]}
            for one in (self.state.channels.values() if names else ())
            if team and one["team_id"] == team["id"] and one["type"] == "O" and one["name"] in names
        }
        props.pop("channel_mentions", None)
        if found:
            props["channel_mentions"] = found

    def _attach(self, post: Json) -> None:
        """Hang the files on the post: those that its author has uploaded and that hang on no other."""
        kept = []
        for identity in dict.fromkeys(post.pop("file_ids", ())):
            info, _content = self.state.files.get(identity, ({}, b""))
            if info and info["user_id"] == post["user_id"] and not info.get("post_id"):
                info["post_id"] = post["id"]
                kept.append(identity)
        if kept:
            post["file_ids"] = kept

    def _check(self, post: Json, doing: str) -> None:
        text = post["message"] + json.dumps(post["props"], ensure_ascii=False)
        if len(post["message"]) > MAX_POST_SIZE:
            raise ChatError(400, "model.post.is_valid.msg.app_error", "Invalid message.")
        if len(json.dumps(post["props"], ensure_ascii=False, separators=(",", ":"))) > MAX_PROPS:
            raise ChatError(400, "model.post.is_valid.props.app_error", "Invalid props.")
        if post["type"] not in SORTS and not post["type"].startswith(("custom_", "system_")):
            raise ChatError(400, "model.post.is_valid.type.app_error", "Invalid type.")
        if len(json.dumps(post.get("file_ids") or (), separators=(",", ":"))) > MAX_FILE_IDS:
            message = (
                "Invalid file ids. Note that uploads are limited to 10 files maximum. "
                "Please use additional posts for more files."
            )
            raise ChatError(400, "model.post.is_valid.file_ids.app_error", message)
        if "\x00" in post["message"] or "\\u0000" in text:
            # What PostgreSQL does not take looks like a passing failure, and is not.
            raise ChatError(500, f"app.post.{doing}.app_error", f"Unable to {doing} the Post.")

    def _announce(self, post: Json, channel: Json, pending: str) -> None:
        user = self.state.users.get(post["user_id"], {})
        sender = "System" if post["type"].startswith("system_") else "@" + user.get("username", "unknown")
        data: Json = {
            "channel_display_name": sender if channel["type"] == "D" else channel["display_name"],
            "channel_name": channel["name"],
            "channel_type": channel["type"],
            "post": json.dumps({**self.view(post), "pending_post_id": pending}, ensure_ascii=False),
            "sender_name": sender,
            "set_online": True,
            "team_id": channel["team_id"],
        }
        members = [self.state.users[one] for one in self.state.members[channel["id"]]]
        mentioned = mentioned_in(post, members)
        if channel["type"] == "D":
            mentioned = [one["id"] for one in members if one["id"] != post["user_id"]]
        if post["type"] == "system_add_to_channel":
            mentioned = [post["props"]["addedUserId"]]
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
        changed = {"message": body.get("message") or "", "props": copy.deepcopy(body.get("props") or {})}
        return self.update(post, changed | {key: bool(body.get(key)) for key in ("is_pinned", "has_reactions")})

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
        if not new.get("file_ids"):
            new.pop("file_ids", None)
        self._fill(new)
        self._check(new, "update")
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
        self._tell_edited(new)
        return shown

    def _tell_edited(self, post: Json) -> None:
        data = {"post": json.dumps(self.view(post), ensure_ascii=False)}
        self.state.publish(Event("post_edited", data, channel=post["channel_id"]))

    def pin(self, user: str, identity: str, pinned: bool) -> None:
        """POST /posts/ID/pin and unpin: for every member. Raises ChatError: 403, 404."""
        post = self.state.posts.get(identity)
        if post is None or not self.state.is_member(post["channel_id"], user):
            raise chat_errors.no_permission()
        if post["delete_at"]:
            raise chat_errors.no_post()
        self.update(post, {"is_pinned": pinned})

    def delete(self, user: str, identity: str) -> None:
        """Delete a post and its replies. Raises ChatError 403."""
        post = self._editable(user, identity)
        shown = {key: value for key, value in self.view(post).items() if key != "metadata"}
        before, now = json.dumps(shown, ensure_ascii=False), self.state.stamp()
        for one in [post, *self._replies(identity)]:
            props = {**one["props"], "deleteBy": user}
            self.state.posts[one["id"]] = {**one, "props": props, "delete_at": now, "update_at": now}
            for file in one.get("file_ids") or ():
                self.state.files.pop(file, None)
        channel = post["channel_id"]
        self.state.publish(Event("post_deleted", {"post": before}, channel=channel, admins=False))
        self.state.publish(Event("post_deleted", {"post": before, "delete_by": user}, channel=channel, admins=True))

    def ephemeral(self, user: str, post: Json) -> Json:
        """Show a post to one user alone: on their websockets, and nowhere else."""
        shown = filled(copy.deepcopy(post), POST)
        shown |= {"id": self.state.new_id(), "create_at": self.state.stamp(), "user_id": post.get("user_id", user)}
        shown |= {"update_at": 0, "type": "system_ephemeral", "props": shown["props"] or {}, "participants": None}
        for key in ("message_source", "filenames", "file_ids", "has_reactions", "is_following", "remote_id"):
            del shown[key]
        if shown["props"].get("attachments") is not None:
            shown["props"]["attachments"] = typed(shown["props"]["attachments"], self.state.new_id)
        shown["metadata"] = self._metadata(shown)
        _give_cookies(self.state, shown)
        shown = without_integrations(shown)
        data = {"post": json.dumps(shown, ensure_ascii=False)}
        self.state.publish(Event("ephemeral_message", data, user=user, channel=shown["channel_id"]))
        return shown


def _check_sort(asked: Json) -> None:
    if (asked.get("type") or "").startswith("system_"):
        raise ChatError(400, "api.context.invalid_param.app_error", "Invalid post.type parameter.")
    if asked.get("id"):
        raise ChatError(400, "app.post.save.existing.app_error", "You cannot update an existing Post.")


def _count(channel: Json, post: Json) -> None:
    """Who comes and goes is no message."""
    channel["last_post_at"] = post["create_at"]
    comes_and_goes = post["type"] in COMING_AND_GOING
    channel["total_msg_count"] += not comes_and_goes
    if not post["root_id"]:
        channel["last_root_post_at"] = post["create_at"]
        channel["total_msg_count_root"] += not comes_and_goes


def _attachments(props: Json) -> list[Any]:
    attachments = props.get("attachments")
    return attachments if isinstance(attachments, list) else []


def _give_cookies(state: ChatState, post: Json) -> None:
    for attachment in _attachments(post["props"]):
        for action in attachment.get("actions") or ():
            if action.get("integration"):
                cookie = state.new_id()
                state.cookies[cookie] = {"post_id": post["id"], "post": post | {"props": copy.deepcopy(post["props"])}}
                action["cookie"] = cookie
