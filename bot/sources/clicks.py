"""Clicks and dialogs, as Mattermost sends them: JSON, without any signature of its own.

`user_id` is the server's word on who clicked; everything else may have been made up by whoever made the post or the
request, but for what stands under our seal. `team_id` is empty in a direct message.
"""

from __future__ import annotations

import hashlib
from typing import Any

from bot.core.events import Clicked, DialogSubmitted
from bot.core.signing import Signed


def to_click(body: dict[str, Any], signed: Signed) -> Clicked:
    """What happened. A click is the same click if its trigger is: the server makes a new one each time."""
    return Clicked(
        request_id=_identity("click", body, _text(body, "trigger_id")),
        signed=signed,
        user_id=_text(body, "user_id"),
        user_name=_text(body, "user_name"),
        channel_id=_text(body, "channel_id"),
        trigger_id=_text(body, "trigger_id"),
    )


def to_submission(body: dict[str, Any], signed: Signed) -> DialogSubmitted:
    """What happened. The same form sent twice with the same values is one submission."""
    submission = body.get("submission")
    values = {str(k): _plain(v) for k, v in submission.items()} if isinstance(submission, dict) else {}
    return DialogSubmitted(
        request_id=_identity("dialog", body, f"{signed.expires} {sorted(values.items())}"),
        signed=signed,
        user_id=_text(body, "user_id"),
        user_name=signed.user_name,
        channel_id=_text(body, "channel_id"),
        values=values,
    )


def _plain(value: object) -> str:
    """A field as text; clients send numbers and booleans as such, and whole numbers sometimes as 5.0."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _identity(kind: str, body: dict[str, Any], what: str) -> str:
    parts = [kind, _text(body, "user_id"), _text(body, "channel_id"), _text(body, "post_id"), what]
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()[:32]


def _text(body: dict[str, Any], key: str) -> str:
    value = body.get(key)
    return value if isinstance(value, str) else ""
