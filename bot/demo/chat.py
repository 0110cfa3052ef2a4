"""The embedded chat as a whole, and the phrases with which a test or the chat page speaks in it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass

from bot.demo.chance import Chance
from bot.demo.chat_state import Event, Json
from bot.demo.clock import Clock
from bot.demo.mattermost_api import ChatApi

TEAM = "foxhunt"
CHANNEL = "gpu-tests"


@dataclass(frozen=True, slots=True)
class Said:
    """What came of something that a user typed or clicked."""

    response: Json
    """Of the server: the command's response, or the post."""
    ephemeral: list[Json]
    """Posts that only this user was shown meanwhile."""
    dialogs: list[Json]
    """Dialogs that opened for this user meanwhile."""

    @property
    def text(self) -> str:
        """The ephemeral answer as one text."""
        return "\n".join(post["message"] for post in self.ephemeral)


class Chat:
    """The server with its people: dev, viewer, admin, and the bot, all in one team and its first channel.

    Without `furnished` there is the administrator alone, as on a server that was just installed.
    """

    def __init__(self, clock: Clock, chance: Chance, *, bot: str = "gputest", furnished: bool = True) -> None:
        self.clock = clock
        self.api = ChatApi(clock, chance)
        self.state = self.api.state
        self.tokens: dict[str, str] = {}
        self.events: list[Event] = []
        """Everything that was published, for tests."""
        self.dialogs: dict[str, list[Json]] = {}
        """By user name: the dialogs that were opened, the last one last."""
        self._changed = asyncio.Event()
        self._bot = bot
        self.state.listeners.append(self._on_event)
        self.team_id: str = self.state.add_team(TEAM)["id"] if furnished else ""
        for name in ("admin", "dev", "viewer", bot) if furnished else ("admin",):
            token = self.state.new_id()
            self.tokens["bot" if name == bot else name] = token
            self.state.add_user(name, admin=name == "admin", bot=name == bot, token=token)
        for channel in ("town-square", CHANNEL) if furnished else ():
            self.add_channel(channel)

    # Who and where.

    def user_id(self, name: str) -> str:
        """The id of a user; "bot" is the bot, whatever its name."""
        return str(self.state.user_named(self._bot if name == "bot" else name)["id"])

    def channel_id(self, name: str = CHANNEL) -> str:
        """The id of a channel; "@name" is the direct channel of dev with somebody, "@a,@b" that of two."""
        if name in self.state.channels:
            return name
        if name.startswith("@"):
            people = [self.user_id(one.strip().lstrip("@")) for one in name.split(",")]
            first = people[1] if len(people) > 1 else self.user_id("dev")
            return str(self.state.direct_channel(first, people[0])["id"])
        return str(self.state.channel_named(self.team_id, name)["id"])

    def add_user(self, name: str, *, admin: bool = False) -> str:
        """Another person, in all open channels; returns their token."""
        token = self.state.new_id()
        user = self.state.add_user(name, admin=admin, token=token)
        self.tokens[name] = token
        for channel in self.state.channels.values():
            if channel["type"] == "O":
                self.state.join(channel["id"], user["id"])
        return token

    def add_channel(self, name: str, *, private: bool = False, members: tuple[str, ...] | None = None) -> str:
        """Another channel, with everybody in it unless members are named; returns its id."""
        channel = self.state.add_channel(name, team=self.team_id, sort="P" if private else "O")
        joining = self.state.users if members is None else [self.user_id(one) for one in members]
        for user in joining:
            self.state.join(channel["id"], user)
        return str(channel["id"])

    def add_webhook(self, channel: str = CHANNEL, display_name: str = "argo") -> str:
        """An incoming webhook; returns its path."""
        identity = self.state.new_id()
        hook = {
            "id": identity,
            "channel_id": self.channel_id(channel),
            "team_id": self.team_id,
            "display_name": display_name,
        }
        self.state.incoming[identity] = {**hook, "user_id": self.user_id("admin")}
        return f"/hooks/{identity}"

    def revoke(self, name: str) -> None:
        """Take away a user's token: REST says 401, sockets stay open and silent."""
        self.state.tokens.pop(self.tokens[name], None)

    # What is there to read.

    def posts(self, channel: str = CHANNEL) -> list[Json]:
        """The posts of a channel that are not deleted, the oldest first, as clients see them."""
        identity = self.channel_id(channel)
        found = [post for post in self.state.posts.values() if post["channel_id"] == identity and not post["delete_at"]]
        return [self.api.posts.view(post) for post in sorted(found, key=lambda one: int(one["create_at"]))]

    def cards(self, channel: str = CHANNEL) -> list[Json]:
        """The bot's posts that begin a thread."""
        return [post for post in self.posts(channel) if not post["root_id"] and post["user_id"] == self.user_id("bot")]

    def thread(self, root: str) -> list[Json]:
        """The replies to a post."""
        found = [post for post in self.state.posts.values() if post["root_id"] == root and not post["delete_at"]]
        return [self.api.posts.view(post) for post in sorted(found, key=lambda one: int(one["create_at"]))]

    def edits(self, identity: str) -> int:
        """How often a post was edited."""
        edited = [event for event in self.events if event.name == "post_edited"]
        return sum(1 for event in edited if json.loads(event.data["post"])["id"] == identity)

    def ephemeral_to(self, name: str) -> list[Json]:
        """Everything that only this user was shown."""
        identity = self.user_id(name)
        shown = [event for event in self.events if event.name == "ephemeral_message" and event.user == identity]
        return [json.loads(event.data["post"]) for event in shown]

    async def until(self, reached: Callable[[], bool], seconds: float = 10.0) -> None:
        """Wait until something in the chat is so; the cluster's clock is not stepped.

        Raises TimeoutError after some real seconds.
        """
        async with asyncio.timeout(seconds):
            while not reached():
                self._changed.clear()
                await self._changed.wait()

    async def next_post(self, channel: str = CHANNEL, *, after: int = 0) -> Json:
        """The first post in a channel after so many; waits for it."""
        await self.until(lambda: len(self.posts(channel)) > after)
        return self.posts(channel)[after]

    # What people do.

    async def say(self, user: str, channel: str, text: str, *, root: str = "") -> Said:
        """Type something: a slash command is executed, anything else posted. Raises ChatError as the server answers."""
        identity, where = self.user_id(user), self.channel_id(channel)
        mark = len(self.events)
        if text.startswith("/"):
            args = {"channel_id": where, "team_id": self.team_id, "root_id": root, "command": text}
            response = await self.api.commands.execute(identity, args, self.api.url)
        else:
            response = self.api.posts.create(identity, {"channel_id": where, "root_id": root, "message": text})
        return self._said(user, response, mark)

    async def click(self, user: str, post: str, button: str, *, option: str = "") -> Said:
        """Press a button or choose in a menu, by the action's name or id. Raises LookupError, ChatError."""
        action_id = self.button(post, button)
        mark = len(self.events)
        body = {"selected_option": option} if option else {}
        trigger = await self.api.actions.click(self.user_id(user), post, action_id, body)
        return self._said(user, {"status": "OK", "trigger_id": trigger}, mark)

    async def click_ephemeral(self, user: str, post: Json, button: str) -> Said:
        """Press a button of an ephemeral post. Raises LookupError, ChatError."""
        action = _button_in(post, button)
        mark = len(self.events)
        body = {"cookie": action.get("cookie", "")}
        trigger = await self.api.actions.click(self.user_id(user), post["id"], action["id"], body)
        return self._said(user, {"status": "OK", "trigger_id": trigger}, mark)

    def button(self, post: str, name: str) -> str:
        """The id of a button. Raises LookupError."""
        return str(_button_in(self.state.posts[post], name)["id"])

    async def submit(
        self, user: str, values: Json | None = None, *, cancelled: bool = False, channel: str = CHANNEL
    ) -> Said:
        """Answer the dialog that was opened last for a user. Raises LookupError, ChatError; errors shown are the
        response.
        """
        if not self.dialogs.get(user):
            raise LookupError(f"no dialog is open for {user}")
        opened = self.dialogs[user].pop()
        dialog = opened["dialog"]
        body = {"url": opened["url"], "callback_id": dialog.get("callback_id", ""), "state": dialog.get("state", "")}
        body |= {"channel_id": self.channel_id(channel), "team_id": self.team_id, "cancelled": cancelled}
        body["submission"] = values or {}
        mark = len(self.events)
        response = await self.api.actions.submit_dialog(self.user_id(user), body)
        if response:
            # A refused dialog stays open.
            self.dialogs[user].append(opened)
        return self._said(user, response, mark)

    def delete(self, user: str, post: str) -> None:
        """Delete a post. Raises ChatError."""
        self.api.posts.delete(self.user_id(user), post)

    def edit(self, user: str, post: str, text: str) -> None:
        """Edit a post's text. Raises ChatError."""
        self.api.posts.edit(self.user_id(user), post, {"message": text})

    def _said(self, user: str, response: Json, mark: int) -> Said:
        identity = self.user_id(user)
        since = [event for event in self.events[mark:] if event.user == identity]
        ephemeral = [json.loads(event.data["post"]) for event in since if event.name == "ephemeral_message"]
        dialogs = [json.loads(event.data["dialog"]) for event in since if event.name == "open_dialog"]
        return Said(response, ephemeral, dialogs)

    def _on_event(self, event: Event) -> None:
        self.events.append(event)
        if event.name == "open_dialog" and event.user in self.state.users:
            name = self.state.users[event.user]["username"]
            self.dialogs.setdefault(name, []).append(json.loads(event.data["dialog"]))
        self._changed.set()


def _button_in(post: Json, name: str) -> Json:
    for attachment in (post.get("props") or {}).get("attachments") or ():
        for action in attachment.get("actions") or ():
            if name in (action.get("name"), action.get("id")):
                found: Json = action
                return found
    raise LookupError(f"the post has no button {name!r}")
