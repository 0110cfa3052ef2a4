"""The routes of users, teams and roles.

mattermost-server 6.7.2 `api4/user.go`, `api4/team.go`, `api4/role.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from bot.demo import chat_errors
from bot.demo.chat_errors import ChatError
from bot.demo.chat_requests import Handler, answer, identity_in, list_of, paged
from bot.demo.chat_state import Json, public_user

if TYPE_CHECKING:
    from bot.demo.mattermost_api import ChatApi


_PERMISSIONS = {
    "system_user": ["create_team", "view_members", "create_direct_channel"],
    "system_admin": ["manage_system", "manage_slash_commands", "manage_others_slash_commands", "create_post"],
    "team_user": ["view_team", "read_public_channel", "join_public_channels"],
    "channel_user": ["read_channel", "create_post", "edit_post", "delete_post", "use_channel_mentions"],
}
"""A few of what the default roles allow (model/role.go)."""


class People:
    """Handlers of who there is."""

    def __init__(self, api: ChatApi) -> None:
        self._state = api.state

    def table(self) -> list[tuple[str, str, Handler]]:
        """Method, path below /api/v4, handler."""
        return [
            ("GET", "/users/me", self._me),
            ("GET", "/users", self._users),
            ("POST", "/users/ids", self._users_by_ids),
            ("POST", "/users/usernames", self._users_by_names),
            ("GET", "/users/username/{username}", self._user_by_name),
            ("GET", "/users/email/{email}", self._user_by_email),
            ("GET", "/users/{user}", self._user),
            ("GET", "/users/{user}/teams", self._teams_of_user),
            ("GET", "/teams", self._teams),
            ("GET", "/teams/name/{team_name}", self._team_by_name),
            ("GET", "/teams/{team}", self._team),
            ("GET", "/teams/{team}/members", self._team_members),
            ("GET", "/teams/{team}/members/{user}", self._team_member),
            ("POST", "/roles/names", self._roles_by_names),
        ]

    async def _me(self, _request: web.Request, user: str) -> web.StreamResponse:
        return answer(public_user(self._state.users[user], own=True))

    async def _users(self, request: web.Request, user: str) -> web.StreamResponse:
        found, query = sorted(self._state.users.values(), key=lambda one: str(one["username"])), request.query
        if channel := query.get("in_channel"):
            self._state.check_joined(channel, user)
            found = [one for one in found if one["id"] in self._state.members[channel]]
        if team := query.get("in_team"):
            if not self._state.in_team(team, user):
                raise chat_errors.no_permission()
            found = [one for one in found if one["id"] in self._state.team_members.get(team, {})]
        if outside := query.get("not_in_channel"):
            if not self._state.is_member(outside, user):
                raise chat_errors.no_permission()
            found = [one for one in found if one["id"] not in self._state.members.get(outside, {})]
        return answer([public_user(one) for one in paged(request, found)])

    async def _users_by_ids(self, request: web.Request, _user: str) -> web.StreamResponse:
        ids = await list_of(request, "user_ids")
        return answer([public_user(self._state.users[one]) for one in ids if one in self._state.users])

    async def _users_by_names(self, request: web.Request, _user: str) -> web.StreamResponse:
        names = await list_of(request, "usernames")
        return answer([public_user(one) for one in self._state.users.values() if one["username"] in names])

    async def _user_by_name(self, request: web.Request, user: str) -> web.StreamResponse:
        name = request.match_info["username"]
        if name != name.lower():
            raise chat_errors.bad_body("username")
        found = self._state.user_named(name)
        return answer(public_user(found, own=found["id"] == user))

    async def _user_by_email(self, request: web.Request, _user: str) -> web.StreamResponse:
        email = request.match_info["email"]
        found = next((one for one in self._state.users.values() if one["email"] == email), None)
        if found is None:
            text = "Unable to find an existing account matching your email address for this team."
            text += " This team may require an invite from the team owner to join."
            raise ChatError(404, "app.user.missing_account.const", text)
        return answer(public_user(found))

    async def _user(self, request: web.Request, user: str) -> web.StreamResponse:
        identity = user_in(request, user)
        if identity not in self._state.users:
            raise chat_errors.no_user()
        return answer(public_user(self._state.users[identity], own=identity == user))

    async def _teams_of_user(self, request: web.Request, user: str) -> web.StreamResponse:
        identity = user_in(request, user)
        if identity != user and not self._state.is_admin(user):
            raise chat_errors.no_permission()
        return answer([one for one in self._state.teams.values() if identity in self._state.team_members[one["id"]]])

    async def _teams(self, request: web.Request, user: str) -> web.StreamResponse:
        found = [one for one in self._state.teams.values() if self._may_see(one, user)]
        return answer(paged(request, found))

    def _may_see(self, team: Json, user: str) -> bool:
        return bool(team["allow_open_invite"]) or self._state.in_team(team["id"], user)

    async def _team_by_name(self, request: web.Request, user: str) -> web.StreamResponse:
        team = self._state.team_named(request.match_info["team_name"])
        if not self._may_see(team, user):
            raise chat_errors.no_permission()
        return answer(team)

    async def _team(self, request: web.Request, user: str) -> web.StreamResponse:
        identity = identity_in(request, "team")
        if identity not in self._state.teams:
            raise ChatError(404, "app.team.get.find.app_error", "Unable to find the existing team.")
        if not self._may_see(self._state.teams[identity], user):
            raise chat_errors.no_permission()
        return answer(self._state.teams[identity])

    async def _team_members(self, request: web.Request, user: str) -> web.StreamResponse:
        team = self._joined(request, user)
        return answer(paged(request, list(self._state.team_members.get(team, {}).values())))

    async def _team_member(self, request: web.Request, user: str) -> web.StreamResponse:
        team, identity = self._joined(request, user), user_in(request, user)
        if identity not in self._state.team_members.get(team, {}):
            raise chat_errors.no_team_member()
        return answer(self._state.team_members[team][identity])

    def _joined(self, request: web.Request, user: str) -> str:
        team = identity_in(request, "team")
        if not self._state.in_team(team, user):
            raise chat_errors.no_permission()
        return team

    async def _roles_by_names(self, request: web.Request, _user: str) -> web.StreamResponse:
        names = await list_of(request, "rolenames")
        found = [{"name": name, "permissions": _PERMISSIONS[name]} for name in names if name in _PERMISSIONS]
        return answer(found or None)


def user_in(request: web.Request, user: str) -> str:
    """The id of the user in the path, who may be `me`. Raises ChatError 400."""
    return user if request.match_info["user"] == "me" else identity_in(request, "user")
