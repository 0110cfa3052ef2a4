"""Attachments as the server keeps them: read into its type, written back with all of its fields and no others.

mattermost-server 6.7.2 `model/slack_attachment.go`, `model/integration_action.go` (PostAction), `model/post.go`
(Attachments, GenerateActionIds).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Json = dict[str, Any]

_TEXTS = (
    "fallback",
    "color",
    "pretext",
    "author_name",
    "author_link",
    "author_icon",
    "title",
    "title_link",
    "text",
    "image_url",
    "thumb_url",
    "footer",
    "footer_icon",
)
_ACTION_TEXTS = ("id", "type", "name", "style", "data_source", "default_option", "cookie")


def typed(attachments: Any, new_id: Callable[[], str]) -> list[Json] | None:
    """The attachments that can be read, their actions with ids; None where there are none."""
    found = [_attachment(one, new_id) for one in attachments] if isinstance(attachments, list) else []
    return [one for one in found if one is not None] or None


def _attachment(given: Any, new_id: Callable[[], str]) -> Json | None:
    if not isinstance(given, dict) or not _are_texts(given, _TEXTS):
        return None
    shown: Json = {"id": given.get("id") or 0, **{key: given.get(key) or "" for key in _TEXTS}}
    shown |= {"fields": given.get("fields"), "ts": given.get("ts")}
    if shown["fields"]:
        shown["fields"] = [{"title": "", "value": None, "short": False, **one} for one in shown["fields"] if one]
    actions = [_action(one, new_id) for one in given.get("actions") or () if isinstance(one, dict)]
    if actions:
        shown["actions"] = actions
    return shown


def _action(given: Json, new_id: Callable[[], str]) -> Json:
    kept = {key: given[key] for key in (*_ACTION_TEXTS, "options", "integration") if given.get(key)}
    if given.get("disabled"):
        kept["disabled"] = True
    return {"id": new_id(), **kept}


def _are_texts(given: Json, keys: tuple[str, ...]) -> bool:
    return all(given.get(key) is None or isinstance(given[key], str) for key in keys)
