"""People in the chat: they sign in, type commands, click, fill in dialogs and read what is there.

``Office`` is the administrator: it makes teams, channels, people, bots and slash commands. ``Person`` is one user
with a browser's websocket open, on which ephemeral messages and dialogs arrive: those are stored nowhere.
"""

import asyncio
import contextlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import aiohttp

from .mattermost_client import MattermostClient, log_in

Post = dict[str, Any]
Dialog = dict[str, Any]
_LIMIT = 10.0
_RECONNECT_SECONDS = 0.3


@dataclass(frozen=True)
class BotAccount:
    """A bot of the chat, and the token that it signs in with."""

    user_id: str
    username: str
    token: str


@dataclass(frozen=True)
class SlashCommand:
    """A custom slash command; the token comes with each of its requests."""

    id: str
    trigger: str
    token: str


class Office:
    """What an administrator does to set the chat up, and later to disturb it."""

    def __init__(self, admin: MattermostClient) -> None:
        self.admin = admin

    async def create_team(self, name: str) -> str:
        """Make an open team and return its id."""
        team = await self.admin.post("/teams", {"name": name, "display_name": name, "type": "O"})
        return str(team["id"])

    async def create_channel(self, team_id: str, name: str, *, private: bool = False) -> str:
        """Make a channel and return its id."""
        kind = "P" if private else "O"
        body = {"team_id": team_id, "name": name, "display_name": name, "type": kind}
        return str((await self.admin.post("/channels", body))["id"])

    async def create_person(self, name: str, team_id: str, *channel_ids: str) -> "Person":
        """Make a user who is in a team and some channels; enter the person to open the websocket."""
        password = f"Rig-{secrets.token_hex(12)}"
        body = {"email": f"{name}@people.example", "username": name, "password": password}
        user = await self.admin.post("/users", body)
        await self.add_member(user["id"], team_id, *channel_ids)
        token = await log_in(self.admin.session, self.admin.url, name, password)
        return Person(MattermostClient(self.admin.session, self.admin.url, token), user["id"], name, team_id)

    async def create_bot(self, username: str, team_id: str, *channel_ids: str) -> BotAccount:
        """Make a bot account with a token, in a team and some channels."""
        bot = await self.admin.post("/bots", {"username": username, "display_name": username})
        await self.add_member(bot["user_id"], team_id, *channel_ids)
        answer = await self.admin.post(f"/users/{bot['user_id']}/tokens", {"description": "the rig"})
        return BotAccount(bot["user_id"], username, answer["token"])

    async def create_command(self, team_id: str, trigger: str, url: str, hint: str = "") -> SlashCommand:
        """Register a slash command of a team that calls a URL by POST."""
        command: dict[str, Any] = {"team_id": team_id, "trigger": trigger, "method": "P", "url": url}
        command |= {"auto_complete": True, "auto_complete_hint": hint}
        answer = await self.admin.post("/commands", command)
        return SlashCommand(answer["id"], trigger, answer["token"])

    async def add_member(self, user_id: str, team_id: str, *channel_ids: str) -> None:
        """Let a user or a bot into a team and some of its channels."""
        await self.admin.post(f"/teams/{team_id}/members", {"team_id": team_id, "user_id": user_id})
        for channel_id in channel_ids:
            await self.admin.post(f"/channels/{channel_id}/members", {"user_id": user_id})

    async def remove_member(self, user_id: str, channel_id: str) -> None:
        """Put a user or a bot out of a channel."""
        await self.admin.delete(f"/channels/{channel_id}/members/{user_id}")

    async def archive_channel(self, channel_id: str) -> None:
        """Archive a channel."""
        await self.admin.delete(f"/channels/{channel_id}")

    async def delete_post(self, post_id: str) -> None:
        """Delete anybody's post."""
        await self.admin.delete(f"/posts/{post_id}")

    async def rename(self, user_id: str, name: str) -> None:
        """Give a user another name; the old one is free then."""
        await self.admin.put(f"/users/{user_id}/patch", {"username": name})

    async def disable_bot(self, bot: BotAccount) -> None:
        """Switch a bot account off; its token then opens nothing."""
        await self.admin.post(f"/bots/{bot.user_id}/disable")

    async def enable_bot(self, bot: BotAccount) -> None:
        """Switch a bot account on again."""
        await self.admin.post(f"/bots/{bot.user_id}/enable")


class Person:
    """A user who types, clicks and reads; with ``async with`` also one whose browser is open."""

    def __init__(self, client: MattermostClient, user_id: str, name: str, team_id: str) -> None:
        self.client = client
        self.user_id = user_id
        self.name = name
        self.team_id = team_id
        self.ephemerals: list[Post] = []
        """All ephemeral messages that have come, oldest first."""
        self.dialogs: list[Dialog] = []
        """All dialogs that were opened: ``trigger_id``, ``url`` and ``dialog``."""
        self._new_ephemerals: asyncio.Queue[Post] = asyncio.Queue()
        self._new_dialogs: asyncio.Queue[Dialog] = asyncio.Queue()
        self._connected, self._pong = asyncio.Event(), asyncio.Event()
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._listening: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._listening = loop.create_task(self._listen(), name=f"websocket of {self.name}")
        try:
            await self.reconnected()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def type(self, channel_id: str, text: str, root_id: str = "") -> dict[str, Any]:
        """Type something: a text that begins with a slash is a command, and its answer is returned."""
        if text.startswith("/"):
            body = {"channel_id": channel_id, "team_id": self.team_id, "command": text, "root_id": root_id}
            answer: dict[str, Any] = await self.client.post("/commands/execute", body)
        else:
            answer = await self.client.post("/posts", {"channel_id": channel_id, "message": text, "root_id": root_id})
        return answer

    async def posts(self, channel_id: str) -> list[Post]:
        """Return the newest posts of a channel as they are stored, oldest first."""
        return _in_order(await self.client.get(f"/channels/{channel_id}/posts", per_page="200"))

    async def post(self, post_id: str) -> Post:
        """Return one post as it is stored."""
        post: Post = await self.client.get(f"/posts/{post_id}")
        return post

    async def thread(self, post_id: str) -> list[Post]:
        """Return a post and the answers to it, oldest first."""
        return _in_order(await self.client.get(f"/posts/{post_id}/thread"))

    async def click(self, post: Post, button: str, selected: str = "") -> dict[str, Any]:
        """Click the button, or choose from the menu, that has this name or id on a post."""
        action = _action(post, button)
        body: dict[str, str] = {"selected_option": selected} if selected else {}
        if cookie := action.get("cookie"):
            body["cookie"] = cookie
        answer: dict[str, Any] = await self.client.post(f"/posts/{post['id']}/actions/{action['id']}", body)
        return answer

    async def submit_dialog(
        self, opened: Dialog, channel_id: str, values: Mapping[str, Any], *, cancelled: bool = False
    ) -> dict[str, Any]:
        """Send a dialog off, or close it; the answer holds the errors that it would show."""
        dialog = opened["dialog"]
        body = {
            "url": opened["url"],
            "callback_id": dialog.get("callback_id", ""),
            "state": dialog.get("state", ""),
            "channel_id": channel_id,
            "team_id": self.team_id,
            "submission": dict(values),
            "cancelled": cancelled,
        }
        answer: dict[str, Any] = await self.client.post("/actions/dialogs/submit", body)
        return answer

    async def delete_post(self, post_id: str) -> None:
        """Delete an own post."""
        await self.client.delete(f"/posts/{post_id}")

    async def react(self, post_id: str, emoji: str) -> None:
        """Put an emoji on a post."""
        await self.client.post("/reactions", {"user_id": self.user_id, "post_id": post_id, "emoji_name": emoji})

    async def next_ephemeral(self, timeout: float = _LIMIT) -> Post:
        """Wait for the next ephemeral message that was not taken yet."""
        return await asyncio.wait_for(self._new_ephemerals.get(), timeout)

    async def next_dialog(self, timeout: float = _LIMIT) -> Dialog:
        """Wait for the next dialog that was not taken yet."""
        return await asyncio.wait_for(self._new_dialogs.get(), timeout)

    async def reconnected(self, timeout: float = _LIMIT) -> None:
        """Wait until the browser is connected, as after a restart of the server."""
        await asyncio.wait_for(self._connected.wait(), timeout)

    async def awake(self, timeout: float = _LIMIT) -> None:
        """Wait until the line answers: while its loop stood still, the server may have given it up."""
        self._pong.clear()
        async with asyncio.timeout(timeout):
            while not self._pong.is_set():
                await self._connected.wait()
                with contextlib.suppress(TimeoutError, ConnectionError):
                    await self._said_and_heard()
                await asyncio.sleep(0.01)  # the reader has to see that the line is gone

    async def _said_and_heard(self) -> None:
        if self._socket is None:
            raise ConnectionError
        await self._socket.send_json({"seq": 1, "action": "ping"})
        async with asyncio.timeout(1):
            await self._pong.wait()

    async def _listen(self) -> None:
        url = f"{self.client.url}/api/v4/websocket"
        headers = {"Authorization": f"Bearer {self.client.token}"}
        while True:
            try:
                async with self.client.session.ws_connect(url, headers=headers) as socket:
                    self._socket = socket
                    async for message in socket:
                        self._take(json.loads(message.data))
            except aiohttp.ClientError:
                pass  # The server is away for a while; a browser tries again, too.
            self._connected.clear()
            await asyncio.sleep(_RECONNECT_SECONDS)

    def _take(self, event: dict[str, Any]) -> None:
        if "seq_reply" in event:
            self._pong.set()
        match event.get("event"):
            case "hello":
                self._connected.set()
            case "ephemeral_message":
                post = json.loads(event["data"]["post"])
                self.ephemerals.append(post)
                self._new_ephemerals.put_nowait(post)
            case "open_dialog":
                dialog = json.loads(event["data"]["dialog"])
                self.dialogs.append(dialog)
                self._new_dialogs.put_nowait(dialog)

    async def _close(self) -> None:
        if self._listening:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)


def _in_order(answer: dict[str, Any]) -> list[Post]:
    return sorted(answer["posts"].values(), key=lambda post: (post["create_at"], post["id"]))


def _action(post: Post, button: str) -> dict[str, Any]:
    actions = [
        action
        for attachment in post.get("props", {}).get("attachments") or []
        for action in attachment.get("actions") or []
    ]
    for action in actions:
        if button in {action["id"], action.get("name")}:
            found: dict[str, Any] = action
            return found
    names = ", ".join(str(action.get("name")) for action in actions) or "none"
    raise LookupError(f"the post has no button {button!r}; it has {names}")
