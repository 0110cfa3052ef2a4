"""What the chat says about the bot itself: who it is, where it is a member, what it may do there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bot.clients.errors import NotFound
from bot.clients.mattermost import Mattermost


@dataclass(frozen=True)
class Myself:
    """Our account."""

    id: str
    name: str
    is_bot: bool
    roles: tuple[str, ...]


class Survey:
    """Reads for a check-up. Each raises WireError: NotFound or Forbidden where the bot may not see it."""

    def __init__(self, chat: Mattermost) -> None:
        self._chat = chat

    async def myself(self) -> Myself:
        """Who the token makes us."""
        body = await self._get("survey_me", "/users/me")
        return Myself(str(body["id"]), str(body["username"]), bool(body.get("is_bot")), _roles(body))

    async def team(self, name: str) -> str:
        """The id of a team."""
        return str((await self._get("survey_team", f"/teams/name/{name}"))["id"])

    async def team_roles(self, team_id: str) -> tuple[str, ...]:
        """Our roles in a team that we are a member of."""
        return _roles(await self._get("survey_team_member", f"/teams/{team_id}/members/me"))

    async def channel(self, team: str, name: str) -> tuple[str, bool]:
        """The id of a channel, and whether it is archived."""
        path = f"/teams/name/{team}/channels/name/{name}"
        body = await self._get("survey_channel", path, include_deleted="true")
        return str(body["id"]), bool(body.get("delete_at"))

    async def channel_roles(self, channel_id: str) -> tuple[str, ...]:
        """Our roles in a channel that we are a member of."""
        return _roles(await self._get("survey_member", f"/channels/{channel_id}/members/me"))

    async def permissions(self, roles: tuple[str, ...]) -> frozenset[str] | None:
        """What these roles allow together; None where the server does not tell."""
        try:
            found = await self._chat.request("survey_roles", "post", "/roles/names", body=list(dict.fromkeys(roles)))
        except NotFound:
            return None
        return frozenset(permission for role in found or [] for permission in role.get("permissions") or [])

    async def settings(self) -> dict[str, str]:
        """The part of the server's configuration that clients are told."""
        found = await self._get("survey_config", "/config/client", format="old")
        return {str(key): str(value) for key, value in found.items()}

    async def _get(self, operation: str, path: str, **query: str) -> Any:
        return await self._chat.request(operation, "get", path, query=query)


def _roles(body: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(body.get("roles") or "").split())
