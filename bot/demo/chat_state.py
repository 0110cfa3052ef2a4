"""The state of the embedded Mattermost: people, teams, channels, posts, commands, and what was made to happen.

Plain data; rules about posts are in `chat_posts`, about integrations in `chat_commands` and `chat_actions`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from bot.demo import chat_errors
from bot.demo.chance import Chance
from bot.demo.clock import Clock

Json = dict[str, Any]
MAX_POST_SIZE = 16_383
"""Runes in a message: a quarter of the column's 65535."""
VERSION = "6.7.2"
CHANNEL_NOTIFY_PROPS = {
    **dict.fromkeys(("desktop", "email", "ignore_channel_mentions", "push"), "default"),
    "mark_unread": "all",
}
NOTIFY_PROPS = {
    "channel": "true",
    "comments": "never",
    "desktop": "mention",
    "desktop_sound": "true",
    "email": "true",
    "desktop_threads": "all",
    "email_threads": "all",
    "first_name": "false",
    "mention_keys": "",
    "push": "mention",
    "push_status": "away",
    "push_threads": "all",
}


@dataclass
class Event:
    """What goes out on the websockets, and to whom."""

    name: str
    data: Json
    channel: str = ""
    user: str = ""
    team: str = ""
    admins: bool | None = None
    """True: only to administrators, False: only to others."""
    but_for: str = ""
    """A user who is not told."""
    members: frozenset[str] | None = None
    """The members of the channel, or of the team, when it happened."""


@dataclass
class CommandHook:
    """Where a response_url leads."""

    command: str
    user: str
    channel: str
    root: str
    born: float
    uses: int = 0


@dataclass
class ChatState:
    """Everything that the server remembers."""

    clock: Clock
    chance: Chance
    users: dict[str, Json] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    """Tokens to user ids."""
    sessions: set[str] = field(default_factory=set)
    """Those of them that came of a password; the others are personal access tokens."""
    teams: dict[str, Json] = field(default_factory=dict)
    channels: dict[str, Json] = field(default_factory=dict)
    members: dict[str, dict[str, Json]] = field(default_factory=dict)
    """By channel: its members by user."""
    team_members: dict[str, dict[str, Json]] = field(default_factory=dict)
    """By team: its members by user."""
    posts: dict[str, Json] = field(default_factory=dict)
    """Every post that was stored, the deleted ones too, in order of creation, with the integrations of its actions."""
    commands: dict[str, Json] = field(default_factory=dict)
    incoming: dict[str, Json] = field(default_factory=dict)
    command_hooks: dict[str, CommandHook] = field(default_factory=dict)
    files: dict[str, tuple[Json, bytes]] = field(default_factory=dict)
    reactions: dict[str, list[Json]] = field(default_factory=dict)
    cookies: dict[str, Json] = field(default_factory=dict)
    """What the cookies of ephemeral posts' buttons stand for."""
    requests: list[tuple[str, str, str, int]] = field(default_factory=list)
    """Every request: user id, method, path, status."""
    edit_limit: int = -1
    """PostEditTimeLimit: seconds in which a message may be edited, -1 for ever."""
    listeners: list[Callable[[Event], None]] = field(default_factory=list)
    _last_stamp: int = 0

    def stamp(self) -> int:
        """Now in milliseconds, later than any stamp before."""
        self._last_stamp = max(self.clock.millis(), self._last_stamp + 1)
        return self._last_stamp

    def new_id(self) -> str:
        """A fresh id."""
        return self.chance.mattermost_id()

    def publish(self, event: Event) -> None:
        """Tell the websockets."""
        if event.channel:
            event.members = frozenset(self.members.get(event.channel, ()))
        elif event.team:
            event.members = frozenset(self.team_members.get(event.team, ()))
        for listener in list(self.listeners):
            listener(event)

    def add_user(
        self, username: str, *, admin: bool = False, bot: bool = False, token: str = "", in_teams: bool = True
    ) -> Json:
        """A person or a bot, with a personal access token if one is given; in every team that there is."""
        now, identity = self.stamp(), self.new_id()
        user: Json = {
            "id": identity,
            "create_at": now,
            "update_at": now,
            "delete_at": 0,
            "username": username,
            "auth_data": "",
            "auth_service": "",
            "email": f"{username}@localhost",
            "nickname": "",
            "first_name": "",
            "last_name": "",
            "position": "",
            "roles": "system_admin system_user" if admin else "system_user",
            "locale": "en",
            "timezone": {"automaticTimezone": "", "manualTimezone": "", "useAutomaticTimezone": "true"},
        }
        user["disable_welcome_email"] = False
        if bot:
            user["is_bot"] = True
        self.users[identity] = user
        if token:
            self.tokens[token] = identity
        for team in self.teams if in_teams else ():
            self.join_team(team, identity)
        return user

    def add_team(self, name: str) -> Json:
        """An open team, with nobody in it."""
        now, identity = self.stamp(), self.new_id()
        team = {"id": identity, "create_at": now, "update_at": now, "delete_at": 0, "name": name, "display_name": name}
        team |= {"type": "O", "allow_open_invite": True, "description": "", "email": "", "company_name": ""}
        team |= {"allowed_domains": "", "invite_id": self.new_id(), "scheme_id": None, "group_constrained": None}
        self.teams[identity] = {**team, "policy_id": None}
        self.team_members[identity] = {}
        return self.teams[identity]

    def join_team(self, team: str, user: str) -> Json:
        """Make somebody a member of a team."""
        member: Json = {"team_id": team, "user_id": user, "roles": "team_user", "delete_at": 0}
        member |= {"scheme_guest": False, "scheme_user": True, "scheme_admin": False, "explicit_roles": ""}
        return self.team_members[team].setdefault(user, member)

    def in_team(self, team: str, user: str) -> bool:
        """Whether they belong to a team, or administer them all."""
        return self.is_admin(user) or user in self.team_members.get(team, {})

    def user_of(self, token: str) -> str:
        """The id of the user whose token it is; "" for nobody, or for one who is switched off."""
        user = self.tokens.get(token, "")
        return "" if self.users.get(user, {}).get("delete_at") else user

    def add_channel(
        self, name: str, *, team: str = "", sort: str = "O", display_name: str | None = None, creator: str = ""
    ) -> Json:
        """A channel: O open, P private, D direct, G of a group."""
        now, identity = self.stamp(), self.new_id()
        channel: Json = {
            "id": identity,
            "create_at": now,
            "update_at": now,
            "delete_at": 0,
            "team_id": team,
            "type": sort,
        }
        channel |= {"display_name": name if display_name is None else display_name, "name": name, "header": ""}
        channel |= {"purpose": "", "last_post_at": 0, "total_msg_count": 0, "extra_update_at": 0, "creator_id": creator}
        channel |= {"scheme_id": None, "props": None, "group_constrained": None, "shared": None, "policy_id": None}
        channel |= {"total_msg_count_root": 0, "last_root_post_at": 0}
        self.channels[identity] = channel
        self.members[identity] = {}
        return channel

    def join(self, channel: str, user: str) -> Json:
        """Make somebody a member."""
        member: Json = {"channel_id": channel, "user_id": user, "roles": "channel_user", "last_viewed_at": 0}
        member |= {"msg_count": 0, "mention_count": 0, "mention_count_root": 0, "msg_count_root": 0}
        member |= {"notify_props": dict(CHANNEL_NOTIFY_PROPS), "last_update_at": self.stamp(), "explicit_roles": ""}
        member |= {"scheme_guest": False, "scheme_user": True, "scheme_admin": False}
        return self.members[channel].setdefault(user, member)

    def direct_channel(self, first: str, second: str) -> Json:
        """The direct channel of two people, made on first use."""
        name = "__".join(sorted((first, second)))
        found = next((one for one in self.channels.values() if one["type"] == "D" and one["name"] == name), None)
        if found is not None:
            return found
        made = self.add_channel(name, sort="D", display_name="", creator=first) | {"shared": False}
        self.channels[made["id"]] = made
        for user in {first, second}:
            self.join(made["id"], user)
        data = {"creator_id": first, "teammate_id": second}
        self.publish(Event("direct_added", data, channel=made["id"]))
        return made

    def user_named(self, name: str) -> Json:
        """A user by name. Raises ChatError 404."""
        found = next((user for user in self.users.values() if user["username"] == name.lower()), None)
        if found is None:
            text = (
                "Unable to find an existing account matching your username for this team. "
                "This team may require an invite from the team owner to join."
            )
            raise chat_errors.ChatError(404, "app.user.get_by_username.app_error", text)
        return found

    def team_named(self, name: str) -> Json:
        """A team by name. Raises ChatError 404."""
        found = next((team for team in self.teams.values() if team["name"] == name.lower()), None)
        if found is None:
            raise chat_errors.no_team()
        return found

    def channel(self, identity: str) -> Json:
        """A channel by id. Raises ChatError 404."""
        if identity not in self.channels:
            raise chat_errors.no_channel()
        return self.channels[identity]

    def channel_named(self, team: str, name: str) -> Json:
        """A channel by name. Raises ChatError 404."""
        for channel in self.channels.values():
            if channel["team_id"] == team and channel["name"] == name.lower():
                return channel
        raise chat_errors.no_channel_named()

    def is_admin(self, user: str) -> bool:
        """Whether they administer the system."""
        return user in self.users and "system_admin" in self.users[user]["roles"]

    def may_read(self, channel: str, user: str) -> bool:
        """Whether they may look into it: members, and everybody of the team where it is open."""
        found = self.channels.get(channel, {})
        return self.is_member(channel, user) or (found.get("type") == "O" and self.in_team(found["team_id"], user))

    def check_joined(self, channel: str, user: str) -> None:
        """Raises ChatError 403 unless there is such a channel and they are a member of it."""
        if channel not in self.channels or not self.is_member(channel, user):
            raise chat_errors.no_permission()

    def is_member(self, channel: str, user: str) -> bool:
        """Whether they may read and write there."""
        return self.is_admin(user) or user in self.members.get(channel, {})


def public_user(user: Json, *, own: bool = False) -> Json:
    """A user as others see them, or as they see themselves."""
    shown = {key: value for key, value in user.items() if key != "owner_id"}
    if not own:
        return shown
    return {**shown, "notify_props": dict(NOTIFY_PROPS), "last_password_update": user["create_at"]}


def without_integrations(post: Json) -> Json:
    """A post as clients get it: its buttons keep ids and names, but not where they lead (StripActionIntegrations)."""
    attachments: Iterable[Any] = (post.get("props") or {}).get("attachments") or ()
    if not any(isinstance(one, dict) and one.get("actions") for one in attachments):
        return post
    shown = copy.deepcopy(post)
    for attachment in shown["props"]["attachments"]:
        for action in attachment.get("actions") or ():
            action.pop("integration", None)
    return shown
