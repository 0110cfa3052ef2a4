"""Slash commands as the server keeps them. What should be there is decided elsewhere.

A command belongs to one team and has one token. Reading them with their tokens, making and changing them all need
`manage_slash_commands` in the team (api4/command.go). A change keeps the token and overwrites everything else.
"""

from __future__ import annotations

from typing import Any

from bot.clients.mattermost import Mattermost
from bot.core.registration import Registered, Wanted


class CommandRegister:
    """The custom slash commands of one team."""

    def __init__(self, chat: Mattermost, team_id: str) -> None:
        self._chat = chat
        self._team_id = team_id

    async def listed(self) -> list[Registered]:
        """All of them, with their tokens.

        Raises:
            WireError: Forbidden without the right; Invalid (501) where the server has custom commands switched off.
        """
        query = {"team_id": self._team_id, "custom_only": "true"}
        found = await self._chat.request("commands", "get", "/commands", query=query)
        return [_registered(body) for body in found or []]

    async def offered(self) -> list[str]:
        """The triggers that everybody in the team is offered while typing; no right is needed, no address is told."""
        found = await self._chat.request("commands_offered", "get", f"/teams/{self._team_id}/commands/autocomplete")
        return [str(body["trigger"]) for body in found or []]

    async def create(self, wanted: Wanted) -> Registered:
        """Make one.

        Raises:
            WireError: Invalid where the trigger is taken.
        """
        body = {"team_id": self._team_id, **_body(wanted)}
        return _registered(await self._chat.request("command_create", "post", "/commands", body=body))

    async def correct(self, command_id: str, wanted: Wanted) -> Registered:
        """Make one as it should be."""
        body = {"id": command_id, "team_id": self._team_id, **_body(wanted)}
        return _registered(await self._chat.request("command_correct", "put", f"/commands/{command_id}", body=body))

    async def remove(self, command_id: str) -> None:
        """Delete one; only ever a double of our own."""
        await self._chat.request("command_remove", "delete", f"/commands/{command_id}")


def _body(wanted: Wanted) -> dict[str, Any]:
    return {
        "trigger": wanted.trigger,
        "method": "P",
        "url": wanted.url,
        "auto_complete": True,
        "auto_complete_hint": wanted.hint,
        "auto_complete_desc": wanted.description,
        "display_name": wanted.name,
        "description": wanted.description,
    }


def _registered(body: dict[str, Any]) -> Registered:
    return Registered(
        id=str(body["id"]),
        creator_id=str(body.get("creator_id") or ""),
        created_at=int(body.get("create_at") or 0),
        method=str(body.get("method") or ""),
        token=str(body.get("token") or ""),
        auto_complete=bool(body.get("auto_complete")),
        wanted=Wanted(
            trigger=str(body["trigger"]),
            url=str(body.get("url") or ""),
            hint=str(body.get("auto_complete_hint") or ""),
            description=str(body.get("auto_complete_desc") or ""),
            name=str(body.get("display_name") or ""),
        ),
    )
