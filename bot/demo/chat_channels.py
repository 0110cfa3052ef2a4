"""The routes of channels and their members.

mattermost-server 6.7.2 `api4/channel.go`, `app/channel.go`, `model/channel.go` (IsValid).
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING

from aiohttp import web

from bot.demo import chat_errors
from bot.demo.chat_errors import ChatError
from bot.demo.chat_people import user_in
from bot.demo.chat_requests import Handler, answer, identity_in, joined_in, list_of, object_of, paged
from bot.demo.chat_shapes import CHANNEL
from bot.demo.chat_state import Event, Json

if TYPE_CHECKING:
    from bot.demo.mattermost_api import ChatApi

DEFAULT = "town-square"
MAX_NAME = 64
SMALLEST_GROUP, LARGEST_GROUP = 3, 8


class Channels:
    """Handlers of where people speak."""

    def __init__(self, api: ChatApi) -> None:
        self._posts = api.posts
        self._state = api.state

    def table(self) -> list[tuple[str, str, Handler]]:
        """Method, path below /api/v4, handler."""
        return [
            ("GET", "/users/{user}/channels", self._channels_of_user),
            ("GET", "/users/{user}/teams/{team}/channels", self._channels_of_user),
            ("GET", "/teams/name/{team_name}/channels/name/{channel_name}", self._by_names),
            ("GET", "/teams/{team}/channels", self._public),
            ("GET", "/teams/{team}/channels/name/{channel_name}", self._by_name),
            ("POST", "/channels", self._create),
            ("POST", "/channels/direct", self._create_direct),
            ("POST", "/channels/group", self._create_group),
            ("GET", "/channels/{channel}", self._get),
            ("DELETE", "/channels/{channel}", self._archive),
            ("POST", "/channels/{channel}/restore", self._restore),
            ("GET", "/channels/{channel}/stats", self._stats),
            ("GET", "/channels/{channel}/members", self._members),
            ("POST", "/channels/{channel}/members", self._add_member),
            ("GET", "/channels/{channel}/members/{user}", self._member),
            ("DELETE", "/channels/{channel}/members/{user}", self._remove_member),
        ]

    async def _channels_of_user(self, request: web.Request, user: str) -> web.StreamResponse:
        identity, team = user_in(request, user), request.match_info.get("team", "")
        if (identity != user and not self._state.is_admin(user)) or (team and not self._state.in_team(team, user)):
            raise chat_errors.no_permission()
        joined = [one for one in self._state.channels.values() if identity in self._state.members[one["id"]]]
        found = [one for one in joined if not one["delete_at"] and (not team or one["team_id"] in (team, ""))]
        return answer(sorted(found, key=_by_title))

    async def _public(self, request: web.Request, user: str) -> web.StreamResponse:
        team = identity_in(request, "team")
        if not self._state.in_team(team, user):
            raise chat_errors.no_permission()
        found = [one for one in self._state.channels.values() if one["team_id"] == team and one["type"] == "O"]
        return answer(paged(request, sorted((one for one in found if not one["delete_at"]), key=_by_title)))

    async def _by_name(self, request: web.Request, user: str) -> web.StreamResponse:
        return self._named(request, identity_in(request, "team"), user)

    async def _by_names(self, request: web.Request, user: str) -> web.StreamResponse:
        return self._named(request, self._state.team_named(request.match_info["team_name"])["id"], user)

    def _named(self, request: web.Request, team: str, user: str) -> web.Response:
        channel = self._state.channel_named(team, request.match_info["channel_name"])
        archived = channel["delete_at"] and request.query.get("include_deleted") != "true"
        if archived or (channel["type"] != "O" and not self._state.is_member(channel["id"], user)):
            raise chat_errors.no_channel_named()
        if not self._state.may_read(channel["id"], user):
            raise chat_errors.no_permission()
        return answer(channel)

    async def _create(self, request: web.Request, user: str) -> web.StreamResponse:
        body = await object_of(request, "channel", CHANNEL)
        sort, team, name = (body.get(key, "") for key in ("type", "team_id", "name"))
        if sort in ("O", "P") and (team not in self._state.teams or not self._state.in_team(team, user)):
            raise chat_errors.no_permission()
        self._check_new(sort, team, name)
        channel = self._state.add_channel(
            name, team=team, sort=sort, display_name=body.get("display_name", ""), creator=user
        )
        channel |= {key: body.get(key, "") for key in ("header", "purpose")}
        made = answer(channel, 201)
        self._state.join(channel["id"], user)
        self._say_who_joined(user, channel["id"], user)
        data = {"channel_id": channel["id"], "team_id": team}
        self._state.publish(Event("channel_created", data, user=user))
        return made

    def _check_new(self, sort: str, team: str, name: str) -> None:
        if sort in ("D", "G"):
            text = "Must use createDirectChannel API service for direct message channel creation."
            raise ChatError(400, "api.channel.create_channel.direct_channel.app_error", text)
        if not re.fullmatch(r"[a-z0-9]([a-z0-9_-]*[a-z0-9])?", name):
            text = "Name must be 1 or more lowercase alphanumeric character."
            raise ChatError(400, "model.channel.is_valid.1_or_more.app_error", text)
        if sort not in ("O", "P"):
            raise ChatError(400, "model.channel.is_valid.type.app_error", "Invalid type.")
        if len(name) > MAX_NAME:
            raise ChatError(500, "app.channel.create_channel.internal_error", "Unable to save channel.")
        if any((one["team_id"], one["name"]) == (team, name) for one in self._state.channels.values()):
            text = "A channel with that name already exists on the same team."
            raise ChatError(400, "store.sql_channel.save_channel.exists.app_error", text)

    async def _create_direct(self, request: web.Request, user: str) -> web.StreamResponse:
        ids = await list_of(request, "user_ids")
        if len(ids) != 2:
            raise chat_errors.bad_body("user_ids")
        if any(len(one) != 26 for one in ids):
            raise chat_errors.bad_body("user_id")
        if user not in ids and not self._state.is_admin(user):
            raise chat_errors.no_permission()
        if any(one not in self._state.users for one in ids):
            text = "Invalid user ID for direct channel creation."
            raise ChatError(400, "api.channel.create_direct_channel.invalid_user.app_error", text)
        return answer(self._state.direct_channel(ids[0], ids[1]), 201)

    async def _create_group(self, request: web.Request, user: str) -> web.StreamResponse:
        ids = sorted({*await list_of(request, "user_ids"), user})
        if not SMALLEST_GROUP <= len(ids) <= LARGEST_GROUP:
            text = "Group message channels must contain at least 3 and no more than 8 users."
            raise ChatError(400, "api.channel.create_group.bad_size.app_error", text)
        if any(one not in self._state.users for one in ids):
            raise ChatError(
                400, "api.channel.create_group.bad_user.app_error", "One of the provided users does not exist."
            )
        name = hashlib.sha1("".join(ids).encode(), usedforsecurity=False).hexdigest()
        found = next((one for one in self._state.channels.values() if one["name"] == name), None)
        if found is None:
            title = ", ".join(sorted(self._state.users[one]["username"] for one in ids))
            found = self._state.add_channel(name, sort="G", display_name=title)
            for one in ids:
                self._state.join(found["id"], one)
            self._state.publish(Event("group_added", {"teammate_ids": json.dumps(ids)}, channel=found["id"]))
        return answer(found, 201)

    async def _get(self, request: web.Request, user: str) -> web.StreamResponse:
        channel = self._state.channel(identity_in(request, "channel"))
        if not self._state.may_read(channel["id"], user):
            raise chat_errors.no_permission()
        return answer(channel)

    async def _archive(self, request: web.Request, user: str) -> web.StreamResponse:
        channel = self._state.channel(identity_in(request, "channel"))
        if channel["type"] not in "OP":
            text = "Unable to delete direct or group message channels"
            raise ChatError(400, "api.channel.delete_channel.type.invalid", text)
        if not self._state.is_member(channel["id"], user):
            raise chat_errors.no_permission()
        if channel["delete_at"]:
            text = "The channel has been archived or deleted."
            raise ChatError(400, "api.channel.delete_channel.deleted.app_error", text)
        if channel["name"] == DEFAULT:
            text = f"Unable to delete the default channel {DEFAULT}."
            raise ChatError(400, "api.channel.delete_channel.cannot.app_error", text)
        name = self._state.users[user]["username"]
        self._system_post(user, channel["id"], "channel_deleted", f"{name} archived the channel.", {"username": name})
        channel["delete_at"] = channel["update_at"] = self._state.stamp()
        event = {"channel_id": channel["id"], "delete_at": channel["delete_at"]}
        self._state.publish(Event("channel_deleted", event, team=channel["team_id"]))
        return answer({"status": "OK"})

    async def _restore(self, request: web.Request, user: str) -> web.StreamResponse:
        channel = self._state.channel(identity_in(request, "channel"))
        if not self._state.is_admin(user):
            raise chat_errors.no_permission()
        if not channel["delete_at"]:
            text = "Unable to unarchive channel. The channel is not archived."
            raise ChatError(400, "api.channel.restore_channel.restored.app_error", text)
        channel |= {"delete_at": 0, "update_at": self._state.stamp()}
        self._state.publish(Event("channel_restored", {"channel_id": channel["id"]}, team=channel["team_id"]))
        name = self._state.users[user]["username"]
        text = f"{name} unarchived the channel."
        self._system_post(user, channel["id"], "channel_restored", text, {"username": name})
        return answer(channel)

    def _system_post(self, user: str, channel: str, sort: str, text: str, props: Json) -> None:
        """What the server itself says in a channel, in somebody's name."""
        post = {"channel_id": channel, "message": text, "type": f"system_{sort}", "props": props}
        self._posts.create(user, post, from_api=False)

    async def _stats(self, request: web.Request, user: str) -> web.StreamResponse:
        channel = joined_in(request, self._state, user)
        posts = [one for one in self._state.posts.values() if one["channel_id"] == channel and not one["delete_at"]]
        stats = {"channel_id": channel, "member_count": len(self._state.members[channel]), "guest_count": 0}
        stats["pinnedpost_count"] = sum(1 for one in posts if one["is_pinned"])
        return answer(stats | {"files_count": sum(len(one.get("file_ids") or ()) for one in posts)})

    async def _members(self, request: web.Request, user: str) -> web.StreamResponse:
        members = self._state.members[joined_in(request, self._state, user)]
        return answer(paged(request, list(members.values())))

    async def _add_member(self, request: web.Request, user: str) -> web.StreamResponse:
        identity = identity_in(request, "channel")
        try:
            joining = (await object_of(request, "user_id")).get("user_id")
        except ChatError:
            joining = None
        if not isinstance(joining, str) or len(joining) != 26:
            raise chat_errors.bad_body("user_id")
        channel = self._state.channel(identity)
        if channel["type"] not in "OP":
            text = "Can not add user to this channel type."
            raise ChatError(400, "api.channel.add_user_to_channel.type.app_error", text)
        if not self._state.is_member(identity, user) and not (
            joining == user and channel["type"] == "O" and self._state.in_team(channel["team_id"], user)
        ):
            raise chat_errors.no_permission()
        if joining not in self._state.users:
            raise chat_errors.no_user()
        if joining not in self._state.team_members[channel["team_id"]]:
            raise chat_errors.no_team_member()
        known = joining in self._state.members[identity]
        member = self._state.join(identity, joining)
        if not known:
            self._say_who_joined(user, identity, joining)
            data = {"user_id": joining, "team_id": channel["team_id"]}
            self._state.publish(Event("user_added", data, channel=identity))
        return answer(member, 201)

    def _say_who_joined(self, user: str, channel: str, joining: str) -> None:
        by, who = self._state.users[user]["username"], self._state.users[joining]["username"]
        if user == joining:
            self._system_post(user, channel, "join_channel", f"{who} joined the channel.", {"username": who})
            return
        props = {"addedUserId": joining, "addedUsername": who, "userId": user, "username": by}
        self._system_post(user, channel, "add_to_channel", f"{who} added to the channel by {by}.", props)

    async def _member(self, request: web.Request, user: str) -> web.StreamResponse:
        members = self._state.members[joined_in(request, self._state, user)]
        identity = user_in(request, user)
        if identity not in members:
            raise chat_errors.no_channel_member()
        return answer(members[identity])

    async def _remove_member(self, request: web.Request, user: str) -> web.StreamResponse:
        channel, identity = self._state.channel(identity_in(request, "channel")), user_in(request, user)
        if identity not in self._state.users:
            raise chat_errors.no_user()
        if channel["type"] not in "OP":
            text = "Unable to remove user from a channel."
            raise ChatError(400, "api.channel.remove_channel_member.type.app_error", text)
        if identity != user and not self._state.is_member(channel["id"], user):
            raise chat_errors.no_permission()
        if channel["name"] == DEFAULT:
            text = f"Unable to remove user from the default channel {DEFAULT}."
            raise ChatError(400, "api.channel.remove.default.app_error", text)
        if self._state.members[channel["id"]].pop(identity, None) is None:
            raise chat_errors.no_channel_member()
        self._say_who_left(user, channel["id"], identity)
        return answer({"status": "OK"})

    def _say_who_left(self, user: str, channel: str, leaving: str) -> None:
        # Who is out hears of it in an event of their own.
        told = {"remover_id": user}
        self._state.publish(Event("user_removed", {"user_id": leaving, **told}, channel=channel))
        self._state.publish(Event("user_removed", {"channel_id": channel, **told}, user=leaving))
        name = self._state.users[leaving]["username"]
        if leaving == user:
            self._system_post(user, channel, "leave_channel", f"@{name} left the channel.", {"username": name})
            return
        props = {"removedUserId": leaving, "removedUsername": name}
        self._system_post(user, channel, "remove_from_channel", f"@{name} removed from the channel.", props)


def _by_title(channel: Json) -> str:
    return str(channel["display_name"]).lower()
