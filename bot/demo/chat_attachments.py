"""Attachments as the server keeps them: read into its type, written back with all of its fields and no others.

mattermost-server 6.7.2 `model/slack_attachment.go`, `model/integration_action.go` (PostAction), `model/post.go`
(Attachments, GenerateActionIds).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bot.demo.chat_shapes import ATTACHMENT, FIELD, OPTION, filled, read

Json = dict[str, Any]


def typed(attachments: Any, new_id: Callable[[], str]) -> list[Json] | None:
    """The attachments that can be read, their actions with ids; None where there are none."""
    found = []
    for one in attachments if isinstance(attachments, list) else ():
        try:
            found.append(_attachment(read({} if one is None else one, ATTACHMENT), new_id))
        except ValueError:
            continue
    return found or None


def _attachment(given: Json, new_id: Callable[[], str]) -> Json:
    shown = filled(given, ATTACHMENT)
    if shown["fields"] is not None:
        shown["fields"] = [filled(one, FIELD) for one in shown["fields"] if one is not None]
    actions = [_action(one, new_id) for one in shown.pop("actions") or () if one is not None]
    return {**shown, "actions": actions} if actions else shown


def _action(given: Json, new_id: Callable[[], str]) -> Json:
    kept = {key: value for key, value in given.items() if value}
    if "options" in kept:
        kept["options"] = [None if one is None else filled(one, OPTION) for one in kept["options"]]
    return {"id": new_id(), **kept}


def with_plain_values(attachments: list[Json | None] | None) -> list[Json] | None:
    """Attachments of an answer or a webhook, before they are posted: values of fields are texts."""
    shown = [filled(one, ATTACHMENT) for one in attachments or () if one is not None]
    for one in shown:
        fields = [filled(field, FIELD) for field in one["fields"] or () if field is not None]
        one["fields"] = [{**field, "value": _text(field["value"])} for field in fields] or None
        if not one["actions"]:
            del one["actions"]
    return shown or None


def _text(value: Any) -> Any:
    """How Go prints it (%v), as far as texts, numbers and flags go."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if value is None or isinstance(value, str) else str(value)
