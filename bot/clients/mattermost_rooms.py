"""Where the bot is a member, what was posted there, and who posted it.

Reading what was missed follows store/sqlstore/post_store.go: `since` goes by the time of the last *change*, takes no
pages, and of more than 1000 rows gives any 1000. Then, and where it gives nothing although there is something
(MM#34055), the channel is read in pages from its end.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bot.clients.errors import NotFound
from bot.clients.mattermost import PER_PAGE, Mattermost

SINCE_LIMIT = 1000
"""Rows after which an answer to `since` is not whole."""

ACCOUNT_SECONDS = 60.0
"""How long a name is taken for the one that somebody has."""

_ID = re.compile(r"[A-Za-z0-9]{26}")


@dataclass(frozen=True)
class Room:
    """A channel that the bot is a member of. `type`: O open, P private, D direct, G a group of people."""

    id: str
    type: str
    team_id: str
    last_post_at: int
    """Milliseconds."""


@dataclass(frozen=True)
class Account:
    """A user or a bot."""

    id: str
    name: str
    is_bot: bool
    there: bool = True
    """Not deactivated."""


class Rooms:
    """Reads of the chat that the cards have no need of."""

    def __init__(self, chat: Mattermost, now: Callable[[], float] = time.monotonic) -> None:
        self._chat = chat
        self._now = now
        self._accounts: dict[str, tuple[float, Account]] = {}

    async def joined(self) -> list[Room]:
        """Every channel of the bot in every team, and its direct messages, each once."""
        rooms: dict[str, Room] = {}
        for team in await self._get("my_teams", "/users/me/teams"):
            try:
                found = await self._get("my_channels", f"/users/me/teams/{team['id']}/channels")
            except NotFound:
                continue  # in the team, and in none of its channels
            for body in found:
                rooms[body["id"]] = Room(
                    str(body["id"]), str(body["type"]), str(body.get("team_id") or ""), int(body["last_post_at"])
                )
        return list(rooms.values())

    async def team_id(self, name: str) -> str:
        """The id of a team by the name in its address. NotFound where the bot can't see it."""
        return str((await self._get("team", f"/teams/name/{name}"))["id"])

    async def posts_since(self, room: Room, since: int) -> list[dict[str, Any]]:
        """The posts of a channel that were made after `since` (milliseconds), oldest first, as the server has them."""
        if room.last_post_at <= since:
            return []
        found = await self._get("posts_since", f"/channels/{room.id}/posts", since=str(since))
        rows = [found["posts"][post] for post in found.get("order") or []]
        if not rows or len(rows) >= SINCE_LIMIT:
            rows = await self._pages_since(room.id, since)
        made = {row["id"]: row for row in rows if row["create_at"] > since}
        return sorted(made.values(), key=lambda row: (row["create_at"], row["id"]))

    async def _pages_since(self, channel: str, since: int) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        before: dict[str, str] = {}
        while True:
            path = f"/channels/{channel}/posts"
            found = await self._get("posts_page", path, per_page=str(PER_PAGE), **before)
            page = [found["posts"][post] for post in found.get("order") or []]
            rows += page
            if len(page) < PER_PAGE or page[-1]["create_at"] <= since:
                return rows
            before = {"before": page[-1]["id"]}

    async def account(self, user_id: str) -> Account:
        """Who that is, as they are called today: asked once a minute.

        Raises:
            WireError: NotFound for what is nobody's id.
        """
        at, known = self._accounts.get(user_id, (0.0, None))
        if known is None or self._now() - at > ACCOUNT_SECONDS:
            if not _ID.fullmatch(user_id):  # it may come from an annotation, and goes into a path
                raise NotFound("nobody has that id")
            body = await self._get("user", f"/users/{user_id}")
            there = not body.get("delete_at")
            known = Account(user_id, str(body["username"]), bool(body.get("is_bot")), there)
            self._accounts[user_id] = self._now(), known
        return known

    async def _get(self, operation: str, path: str, **query: str) -> Any:
        return await self._chat.request(operation, "get", path, query=query)
