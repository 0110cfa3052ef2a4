"""Commands that are typed as posts: `@gputest …` in a channel, anything in a direct message.

A post of a person has a type and props, both maybe empty. What has no such thing, what the server itself wrote, what we
or another bot or a webhook wrote is none: everybody may set the props that mark the last two, so they are a reason to
look away and never one to trust (app/post.go). Edits are no commands: only what was sent counts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from bot.core.commands.gputest import SPEC
from bot.core.commands.grammar import UNSEEN
from bot.core.events import CommandTyped
from bot.core.nesting import loads

DIRECT = "D"
"""Type of a channel of two."""

_FOREIGN = ("from_bot", "from_webhook", "from_plugin")
"""Props that mark what no person typed."""


@dataclass(frozen=True)
class Me:
    """Our own account."""

    id: str
    name: str


@dataclass(frozen=True)
class PostedCommand:
    """A command, and the post that it stands in."""

    command: CommandTyped
    post: str
    root: str
    """The post that begins its thread; the answer goes there."""
    at: int
    """When it was posted, in milliseconds."""


def to_event(event: str, data: Any, me: Me, triggers: Collection[str]) -> PostedCommand | None:
    """From an event of the websocket. `data.post` is a text of its own, holding JSON."""
    if event != "posted" or not isinstance(data, dict):
        return None
    try:
        post = loads(data["post"])
    except (KeyError, TypeError, ValueError):
        return None
    if not isinstance(post, dict):
        return None
    return to_command(post, _text(data, "channel_type"), _text(data, "team_id"), me, triggers)


def to_command(
    post: Mapping[str, Any], channel_type: str, team_id: str, me: Me, triggers: Collection[str]
) -> PostedCommand | None:
    """From a post as the server has it; None for what asks nothing of us."""
    identity, user, channel = _text(post, "id"), _text(post, "user_id"), _text(post, "channel_id")
    message, at, props = post.get("message"), post.get("create_at"), post.get("props")
    if not identity or not user or not channel or not isinstance(message, str) or not isinstance(at, int):
        return None
    if user == me.id or post.get("type") != "" or not isinstance(props, dict):
        return None
    if post.get("delete_at") or post.get("edit_at"):  # what it said when it was sent is not known any more
        return None
    if any(str(props.get(mark)).lower() == "true" for mark in _FOREIGN):
        return None
    said = addressed(message, me.name, direct=channel_type == DIRECT)
    if said is None:
        return None
    trigger, text = trigger_of(said, triggers)
    command = CommandTyped(
        request_id=request_id(identity),
        trigger=trigger,
        text=text,
        user_id=user,
        user_name="",
        channel_id=channel,
        team_id=team_id,
        aloud=True,
    )
    return PostedCommand(command, identity, _text(post, "root_id") or identity, at)


def request_id(post: str) -> str:
    """The name of the request that a post makes, the same however often it is read."""
    return hashlib.sha256(f"post\0{post}".encode()).hexdigest()[:32]


def addressed(message: str, name: str, *, direct: bool) -> str | None:
    """What was said to us, without our name; None for what was not said to us.

    A name ends where the server ends it: `@gputest:` and `@gputest.` are us, `@gputest-2` and `@gputest.x` are not.
    Signs of other scripts have no space behind them.
    """
    text = UNSEEN.sub("", message).strip()
    found = re.match(rf"(?i)@{re.escape(name)}(?![\w-]|[.]+[\w-])(?:[.:,;!?]*(?=\s|$)|[：，；！？、،؛؟—–]+)", text)
    if found:
        return text[found.end() :].strip()
    return text if direct else None


def trigger_of(said: str, triggers: Collection[str]) -> tuple[str, str]:
    """The command and its text. A slash in front changes nothing; without a command's name it is the first command."""
    first = said.split(None, 1)[0] if said else ""
    rest = said[len(first) :].strip()
    name = first.removeprefix("/").lower()
    if name in triggers or (first.startswith("/") and name):
        return name, rest
    return SPEC.trigger, said


def _text(body: Mapping[str, Any], key: str) -> str:
    value = body.get(key)
    return value if isinstance(value, str) else ""
