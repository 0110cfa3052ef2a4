"""What an administrator sets up over the API: teams, people, bots and their tokens; and signing in with a password.

mattermost-server 6.7.2 `api4/user.go`, `api4/team.go`, `api4/bot.go`, `app/channel.go` (the system's own posts).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from aiohttp import web

from bot.demo import chat_errors
from bot.demo.chat_errors import ChatError
from bot.demo.chat_requests import Handler, answer, identity_in, object_of, readable_of
from bot.demo.chat_shapes import BOT, LOGIN, TEAM, TEAM_MEMBER, TOKEN, USER
from bot.demo.chat_state import Event, Json, public_user

if TYPE_CHECKING:
    from bot.demo.mattermost_api import ChatApi

DEFAULT_CHANNELS = {"town-square": "Town Square", "off-topic": "Off-Topic"}
_PATCHED = ("username", "nickname", "first_name", "last_name", "position")


class Office:
    """Handlers of what only has to be done once."""

    def __init__(self, api: ChatApi) -> None:
        self._api = api
        self._state = api.state
        self._passwords: dict[str, str] = {}

    def table(self) -> list[tuple[str, str, Handler]]:
        """Method, path below /api/v4, handler."""
        return [
            ("POST", "/users", self._create_user),
            ("PUT", "/users/{user}/patch", self._patch_user),
            ("DELETE", "/users/{user}", self._deactivate_user),
            ("POST", "/users/{user}/tokens", self._create_token),
            ("POST", "/teams", self._create_team),
            ("POST", "/teams/{team}/members", self._add_to_team),
            ("POST", "/bots", self._create_bot),
            ("POST", "/bots/{bot}/disable", self._disable_bot),
            ("POST", "/bots/{bot}/enable", self._enable_bot),
        ]

    async def log_in(self, request: web.Request) -> web.StreamResponse:
        """POST /users/login, for nobody in particular: the session's token is in a header. Raises ChatError 401."""
        body = await readable_of(request, LOGIN)
        if not body.get("password"):
            raise ChatError(400, "api.user.login.blank_pwd.app_error", "Password field must not be blank")
        user = next((one for one in self._state.users.values() if one["username"] == body.get("login_id")), None)
        if user is None or self._passwords.get(user["id"]) != body.get("password"):
            identity = "api.user.login.invalid_credentials_email_username"
            raise ChatError(401, identity, "Enter a valid email or username and/or password.")
        token = self._new_token(user["id"])
        self._state.sessions.add(token)
        return answer(public_user(user, own=True), headers={"Token": token})

    def _new_token(self, user: str) -> str:
        token = self._state.new_id()
        self._state.tokens[token] = user
        return token

    def _require_admin(self, user: str) -> None:
        if not self._state.is_admin(user):
            raise chat_errors.no_permission()

    def _check_name(self, name: str) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9._-]{2,21}", name):
            text = (
                "Username must begin with a letter, and contain between 3 to 22 lowercase characters made up of "
                'numbers, letters, and the symbols ".", "-", and "_".'
            )
            raise ChatError(400, "model.user.is_valid.username.app_error", text)
        if any(one["username"] == name for one in self._state.users.values()):
            text = "An account with that username already exists."
            raise ChatError(400, "app.user.save.username_exists.app_error", text)

    async def _create_user(self, request: web.Request, user: str) -> web.StreamResponse:
        self._require_admin(user)
        body = await object_of(request, "user", USER)
        name = body.get("username", "")
        self._check_name(name)
        created = self._state.add_user(name, in_teams=False)
        created["email"] = body.get("email") or created["email"]
        self._passwords[created["id"]] = body.get("password", "")
        return answer(public_user(created, own=True), 201)

    async def _patch_user(self, request: web.Request, user: str) -> web.StreamResponse:
        """The names, which is what others go by."""
        known, body = self._person(request, user), await object_of(request, "user", USER)
        if "username" in body and body["username"] != known["username"]:
            self._check_name(body["username"])
        known |= {key: body[key] for key in _PATCHED if key in body} | {"update_at": self._state.stamp()}
        own = public_user(known, own=True)
        self._state.publish(Event("user_updated", {"user": public_user(known)}, but_for=known["id"]))
        self._state.publish(Event("user_updated", {"user": own}, user=known["id"]))
        return answer(public_user(known, own=True))

    async def _deactivate_user(self, request: web.Request, user: str) -> web.StreamResponse:
        known = self._person(request, user)
        now = self._state.stamp()
        known |= {"delete_at": now, "update_at": now}
        return answer({"status": "OK"})

    def _person(self, request: web.Request, user: str) -> Json:
        """Who is meant, for an administrator or themselves."""
        identity = user if request.match_info["user"] == "me" else identity_in(request, "user")
        if identity != user:
            self._require_admin(user)
        if identity not in self._state.users:
            raise chat_errors.no_user()
        return self._state.users[identity]

    async def _create_token(self, request: web.Request, user: str) -> web.StreamResponse:
        identity = user if request.match_info["user"] == "me" else identity_in(request, "user")
        self._require_admin(user)
        if identity not in self._state.users:
            raise chat_errors.no_user()
        body = await object_of(request, "token", TOKEN)
        if not body.get("description"):
            raise chat_errors.bad_body("description")
        token: Json = {"id": self._state.new_id(), "token": self._new_token(identity), "user_id": identity}
        return answer({**token, "description": body["description"], "is_active": True})

    async def _create_team(self, request: web.Request, user: str) -> web.StreamResponse:
        self._require_admin(user)
        body = await object_of(request, "team", TEAM)
        name = body.get("name", "")
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]*[a-z0-9]", name):
            text = "Name must be 2 or more lowercase alphanumeric characters."
            raise ChatError(400, "model.team.is_valid.characters.app_error", text)
        if any(team["name"] == name for team in self._state.teams.values()):
            raise ChatError(400, "app.team.save.existing.app_error", "Must call update for existing team.")
        team = self._state.add_team(name)
        team |= {"display_name": body.get("display_name") or name, "allow_open_invite": False}
        for channel, title in DEFAULT_CHANNELS.items():
            self._state.add_channel(channel, team=team["id"], display_name=title)
        self._join(team["id"], user)
        return answer(team, 201)

    def _join(self, team: str, user: str) -> Json:
        member = self._state.join_team(team, user)
        for channel in list(self._state.channels.values()):
            if channel["team_id"] == team and channel["name"] in DEFAULT_CHANNELS:
                self._state.join(channel["id"], user)
        return member

    async def _add_to_team(self, request: web.Request, user: str) -> web.StreamResponse:
        team, body = identity_in(request, "team"), await object_of(request, "team_member", TEAM_MEMBER)
        if team not in self._state.teams or body.get("user_id") not in self._state.users:
            raise chat_errors.bad_body("team_member")
        self._require_admin(user)
        return answer(self._join(team, body["user_id"]), 201)

    async def _create_bot(self, request: web.Request, user: str) -> web.StreamResponse:
        self._require_admin(user)
        body = await object_of(request, "bot", BOT)
        name = body.get("username", "")
        self._check_name(name)
        bot = self._state.add_user(name, bot=True, in_teams=False)
        bot |= {"first_name": body.get("display_name", ""), "owner_id": user}
        return answer(_bot_view(bot), 201)

    async def _disable_bot(self, request: web.Request, user: str) -> web.StreamResponse:
        return self._switch(request, user, self._state.stamp())

    async def _enable_bot(self, request: web.Request, user: str) -> web.StreamResponse:
        return self._switch(request, user, 0)

    def _switch(self, request: web.Request, user: str, delete_at: int) -> web.Response:
        bot = self._state.users.get(identity_in(request, "bot"), {})
        if not bot.get("is_bot") or not self._state.is_admin(user):
            raise ChatError(404, "store.sql_bot.get.missing.app_error", "Bot does not exist.")
        bot |= {"delete_at": delete_at, "update_at": self._state.stamp()}
        return answer(_bot_view(bot))


def _bot_view(bot: Json) -> Json:
    shown: Json = {"user_id": bot["id"], "username": bot["username"], "display_name": bot["first_name"]}
    shown["owner_id"] = bot.get("owner_id", "")
    return shown | {key: bot[key] for key in ("create_at", "update_at", "delete_at")}
