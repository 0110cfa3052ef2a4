"""Slash commands, as Mattermost sends them.

The request is a form with `token, team_id, channel_id, user_id, user_name, command, text, trigger_id, response_url`
and the token again in `Authorization: Token …` (app/command.go). There is no signature and no timestamp: the token
is all there is, so it is compared in constant time, and `trigger_id`, unique for each sending, names the request.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from bot.core.events import CommandTyped


@dataclass(frozen=True)
class SlashRequest:
    """A slash command that came in with a token we know."""

    command: CommandTyped
    response_url: str


def is_known(token: str, known: tuple[str, ...]) -> bool:
    """Whether the token is one of ours; takes the same time whichever it is."""
    found = False
    for candidate in known:
        found |= hmac.compare_digest(token.encode(errors="replace"), candidate.encode())
    return found


def offered_token(authorization: str, form: Mapping[str, str]) -> str:
    """The token of a request: from the header, else from the form."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "token" and token else form.get("token", "")


def to_request(form: Mapping[str, str]) -> SlashRequest:
    """From the form's fields to what happened. Fields that are missing are empty; nothing here raises."""
    trigger = form.get("command", "").strip().removeprefix("/").lower()
    identity = [form.get(key, "") for key in ("team_id", "channel_id", "user_id", "command", "text", "trigger_id")]
    command = CommandTyped(
        request_id=hashlib.sha256("\0".join(identity).encode(errors="replace")).hexdigest()[:32],
        trigger=trigger,
        # Of a wide space behind the trigger the server takes one byte; the others come here as replacement characters.
        text=form.get("text", "").lstrip("\ufffd"),
        user_id=form.get("user_id", ""),
        user_name=form.get("user_name", ""),
        channel_id=form.get("channel_id", ""),
        team_id=form.get("team_id", ""),
        trigger_id=form.get("trigger_id", ""),
    )
    return SlashRequest(command, form.get("response_url", ""))
