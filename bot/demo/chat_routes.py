"""The smaller routes of the API: users, teams, channels, members, incoming webhooks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from aiohttp import web

from bot.demo import chat_errors
from bot.demo.chat_errors import ChatError
from bot.demo.chat_requests import answer, identity_in, list_of, object_of, paged
from bot.demo.chat_state import Event, Json, public_user

if TYPE_CHECKING:
    from bot.demo.mattermost_api import ChatApi

Handler = Callable[[web.Request, str], Awaitable[web.StreamResponse]]

_PERMISSIONS = {
    "system_user": ["create_team", "view_members", "create_direct_channel"],
    "system_admin": ["manage_system", "manage_slash_commands", "manage_others_slash_commands", "create_post"],
    "team_user": ["view_team", "read_public_channel", "join_public_channels"],
    "channel_user": ["read_channel", "create_post", "edit_post", "delete_post", "use_channel_mentions"],
}
"""A few of what the default roles allow (model/role.go)."""


class Routes:
    """Handlers that need little more than the state."""

    def __init__(self, api: ChatApi) -> None:
        self._api = api
        self._state = api.state

    def table(self) -> list[tuple[str, str, Handler]]:
        """Method, path below /api/v4, handler."""
        return [
            ("GET", "/users/me", self._me),
            ("GET", "/users", self._users),
            ("POST", "/users/ids", self._users_by_ids),
            ("POST", "/users/usernames", self._users_by_names),
            ("GET", "/users/username/{name}", self._user_by_name),
            ("GET", "/users/{user}", self._user),
            ("GET", "/users/{user}/teams", self._teams_of_user),
            ("GET", "/users/{user}/teams/{team}/channels", self._channels_of_user),
            ("GET", "/teams", self._teams),
            ("GET", "/teams/name/{name}", self._team_by_name),
            ("GET", "/teams/name/{name}/channels/name/{channel}", self._channel_by_names),
            ("GET", "/teams/{team}", self._team),
            ("GET", "/teams/{team}/channels", self._public_channels),
            ("GET", "/teams/{team}/members/{user}", self._team_member),
            ("POST", "/roles/names", self._roles_by_names),
            ("GET", "/teams/{team}/channels/name/{name}", self._channel_by_name),
            ("POST", "/channels", self._create_channel),
            ("POST", "/channels/direct", self._direct_channel),
            ("GET", "/channels/{channel}", self._channel),
            ("DELETE", "/channels/{channel}", self._archive_channel),
            ("POST", "/channels/{channel}/restore", self._restore_channel),
            ("GET", "/channels/{channel}/members", self._members),
            ("POST", "/channels/{channel}/members", self._add_member),
            ("GET", "/channels/{channel}/members/{user}", self._member),
            ("DELETE", "/channels/{channel}/members/{user}", self._remove_member),
            ("POST", "/hooks/incoming", self._create_hook),
        ]

    async def _me(self, _request: web.Request, user: str) -> web.StreamResponse:
        return answer(public_user(self._state.users[user], own=True))

    async def _users(self, request: web.Request, _user: str) -> web.StreamResponse:
        users = list(self._state.users.values())
        if channel := request.query.get("in_channel"):
            users = [one for one in users if one["id"] in self._state.members.get(channel, {})]
        return answer([public_user(one) for one in paged(request, users)])

    async def _users_by_ids(self, request: web.Request, _user: str) -> web.StreamResponse:
        ids = await list_of(request, "user_ids")
        return answer([public_user(self._state.users[one]) for one in ids if one in self._state.users])

    async def _users_by_names(self, request: web.Request, _user: str) -> web.StreamResponse:
        names = await list_of(request, "usernames")
        return answer([public_user(one) for one in self._state.users.values() if one["username"] in names])

    async def _user_by_name(self, request: web.Request, _user: str) -> web.StreamResponse:
        return answer(public_user(self._state.user_named(request.match_info["name"])))

    async def _user(self, request: web.Request, user: str) -> web.StreamResponse:
        identity = self._user_in(request, user)
        if identity not in self._state.users:
            raise chat_errors.no_user()
        return answer(public_user(self._state.users[identity], own=identity == user))

    def _user_in(self, request: web.Request, user: str) -> str:
        named = request.match_info["user"]
        return user if named == "me" else identity_in(request, "user")

    async def _teams_of_user(self, request: web.Request, user: str) -> web.StreamResponse:
        identity = self._user_in(request, user)
        return answer([one for one in self._state.teams.values() if identity in self._state.team_members[one["id"]]])

    async def _channels_of_user(self, request: web.Request, user: str) -> web.StreamResponse:
        identity, team = self._user_in(request, user), request.match_info["team"]
        if not self._state.in_team(team, user):
            raise chat_errors.no_permission()
        joined = [one for one in self._state.channels.values() if identity in self._state.members[one["id"]]]
        return answer([one for one in joined if one["team_id"] in (team, "")])

    async def _teams(self, request: web.Request, _user: str) -> web.StreamResponse:
        return answer(paged(request, list(self._state.teams.values())))

    def _named_team(self, name: str) -> Json:
        found = next((team for team in self._state.teams.values() if team["name"] == name), None)
        if found is None:
            raise chat_errors.no_team()
        return found

    async def _team_by_name(self, request: web.Request, user: str) -> web.StreamResponse:
        team = self._named_team(request.match_info["name"])
        if not team["allow_open_invite"] and not self._state.in_team(team["id"], user):
            raise chat_errors.no_permission()
        return answer(team)

    async def _team(self, request: web.Request, _user: str) -> web.StreamResponse:
        identity = identity_in(request, "team")
        if identity not in self._state.teams:
            raise ChatError(404, "app.team.get.find.app_error", "Unable to find the existing team.")
        return answer(self._state.teams[identity])

    async def _team_member(self, request: web.Request, user: str) -> web.StreamResponse:
        member: Json = {"team_id": identity_in(request, "team"), "user_id": self._user_in(request, user)}
        return answer({**member, "roles": "team_user", "delete_at": 0, "scheme_user": True, "scheme_admin": False})

    async def _roles_by_names(self, request: web.Request, _user: str) -> web.StreamResponse:
        names = await list_of(request, "rolenames")
        return answer([{"name": name, "permissions": _PERMISSIONS[name]} for name in names if name in _PERMISSIONS])

    async def _public_channels(self, request: web.Request, _user: str) -> web.StreamResponse:
        team = identity_in(request, "team")
        found = [one for one in self._state.channels.values() if one["team_id"] == team and one["type"] == "O"]
        return answer(paged(request, [one for one in found if not one["delete_at"]]))

    async def _channel_by_name(self, request: web.Request, user: str) -> web.StreamResponse:
        channel = self._state.channel_named(identity_in(request, "team"), request.match_info["name"])
        return self._visible(request, channel, user)

    async def _channel_by_names(self, request: web.Request, user: str) -> web.StreamResponse:
        team = self._named_team(request.match_info["name"])
        return self._visible(request, self._state.channel_named(team["id"], request.match_info["channel"]), user)

    def _visible(self, request: web.Request, channel: Json, user: str) -> web.Response:
        archived = channel["delete_at"] and request.query.get("include_deleted") != "true"
        if archived or (channel["type"] != "O" and not self._state.is_member(channel["id"], user)):
            raise chat_errors.no_channel_named()
        return answer(channel)

    async def _create_channel(self, request: web.Request, user: str) -> web.StreamResponse:
        body = await object_of(request, "channel")
        if body.get("team_id") not in self._state.teams or not body.get("name"):
            raise chat_errors.bad_body("channel")
        channel = self._state.add_channel(
            str(body["name"]),
            team=body["team_id"],
            sort=body.get("type") or "O",
            display_name=body.get("display_name") or "",
        )
        self._state.join(channel["id"], user)
        return answer(channel, 201)

    async def _direct_channel(self, request: web.Request, user: str) -> web.StreamResponse:
        ids = await list_of(request, "user_ids")
        if len(ids) != 2 or any(one not in self._state.users for one in ids):
            raise chat_errors.bad_body("user_ids")
        if user not in ids and not self._state.is_admin(user):
            raise chat_errors.no_permission()
        return answer(self._state.direct_channel(ids[0], ids[1]), 201)

    async def _channel(self, request: web.Request, user: str) -> web.StreamResponse:
        channel = self._state.channel(identity_in(request, "channel"))
        if channel["type"] != "O" and not self._state.is_member(channel["id"], user):
            raise chat_errors.no_permission()
        return answer(channel)

    async def _archive_channel(self, request: web.Request, user: str) -> web.StreamResponse:
        channel = self._state.channel(identity_in(request, "channel"))
        if not self._state.is_admin(user):
            raise chat_errors.no_permission()
        name = self._state.users[user]["username"]
        props = {"username": name}
        self._system_post(user, channel["id"], "channel_deleted", f"{name} archived the channel.", props)
        channel["delete_at"] = channel["update_at"] = self._state.stamp()
        event = {"channel_id": channel["id"], "delete_at": channel["delete_at"]}
        self._state.publish(Event("channel_deleted", event, team=channel["team_id"]))
        return answer({"status": "OK"})

    async def _restore_channel(self, request: web.Request, user: str) -> web.StreamResponse:
        channel = self._state.channel(identity_in(request, "channel"))
        if not self._state.is_admin(user):
            raise chat_errors.no_permission()
        channel |= {"delete_at": 0, "update_at": self._state.stamp()}
        self._state.publish(Event("channel_restored", {"channel_id": channel["id"]}, team=channel["team_id"]))
        name = self._state.users[user]["username"]
        props = {"username": name}
        self._system_post(user, channel["id"], "channel_restored", f"{name} unarchived the channel.", props)
        return answer(channel)

    def _system_post(self, user: str, channel: str, sort: str, text: str, props: Json) -> None:
        """What the server itself says in a channel, in somebody's name."""
        post = {"channel_id": channel, "message": text, "type": f"system_{sort}", "props": props}
        self._api.posts.create(user, post, from_api=False)

    def _joined_channel(self, request: web.Request, user: str) -> str:
        identity = identity_in(request, "channel")
        if identity not in self._state.channels or not self._state.is_member(identity, user):
            raise chat_errors.no_permission()
        return identity

    async def _members(self, request: web.Request, user: str) -> web.StreamResponse:
        members = self._state.members[self._joined_channel(request, user)]
        return answer(paged(request, list(members.values())))

    async def _add_member(self, request: web.Request, user: str) -> web.StreamResponse:
        channel = identity_in(request, "channel")
        body = await object_of(request, "member")
        joining = body.get("user_id")
        if joining not in self._state.users:
            raise chat_errors.bad_body("user_id")
        own_way_in = joining == user and self._state.channel(channel)["type"] == "O"
        if not self._state.is_member(channel, user) and not own_way_in:
            raise chat_errors.no_permission()
        team = self._state.channel(channel)["team_id"]
        if team and joining not in self._state.team_members[team]:
            text = "No team member found for that user ID and team ID."
            raise ChatError(404, "app.team.get_member.missing.app_error", text)
        known = joining in self._state.members[channel]
        member = self._state.join(channel, str(joining))
        if not known:
            self._say_who_joined(user, channel, str(joining))
        self._state.publish(Event("user_added", {"user_id": joining, "team_id": ""}, channel=channel))
        return answer(member, 201)

    def _say_who_joined(self, user: str, channel: str, joining: str) -> None:
        by, who = self._state.users[user]["username"], self._state.users[joining]["username"]
        if user == joining:
            self._system_post(user, channel, "join_channel", f"{who} joined the channel.", {"username": who})
            return
        props = {"addedUserId": joining, "addedUsername": who, "userId": user, "username": by}
        self._system_post(user, channel, "add_to_channel", f"{who} added to the channel by {by}.", props)

    async def _member(self, request: web.Request, user: str) -> web.StreamResponse:
        members = self._state.members[self._joined_channel(request, user)]
        identity = self._user_in(request, user)
        if identity not in members:
            raise ChatError(
                404,
                "app.channel.get_member.missing.app_error",
                "No channel member found for that user ID and channel ID.",
            )
        return answer(members[identity])

    async def _remove_member(self, request: web.Request, user: str) -> web.StreamResponse:
        channel, identity = self._joined_channel(request, user), self._user_in(request, user)
        if identity != user and not self._state.is_admin(user):
            raise chat_errors.no_permission()
        if self._state.members[channel].pop(identity, None) is not None:
            # Who is out hears of it in an event of their own.
            self._state.publish(Event("user_removed", {"user_id": identity, "remover_id": user}, channel=channel))
            self._state.publish(Event("user_removed", {"channel_id": channel, "remover_id": user}, user=identity))
            name = self._state.users[identity]["username"]
            sort = "leave_channel" if identity == user else "remove_from_channel"
            text = f"{name} left the channel." if identity == user else f"@{name} removed from the channel."
            props = {"username": name} if identity == user else {"removedUserId": identity, "removedUsername": name}
            self._system_post(user, channel, sort, text, props)
        return answer({"status": "OK"})

    async def _create_hook(self, request: web.Request, user: str) -> web.StreamResponse:
        body = await object_of(request, "incoming_webhook")
        channel = self._state.channel(str(body.get("channel_id")))
        if not self._state.is_admin(user):
            raise chat_errors.no_permission()
        hook: Json = {
            "id": self._state.new_id(),
            "channel_id": channel["id"],
            "team_id": channel["team_id"],
            "user_id": user,
        }
        hook |= {"display_name": body.get("display_name") or "", "description": body.get("description") or ""}
        hook |= {"create_at": self._state.stamp(), "delete_at": 0, "channel_locked": False}
        self._state.incoming[hook["id"]] = hook
        return answer(hook, 201)
