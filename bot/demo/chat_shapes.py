"""Request bodies as the server's decoder reads them: into a type, where a field of another kind is an error.

Go's encoding/json, as mattermost-server 6.7.2 uses it: names of fields are compared without regard to case, fields that
are not known are left out, null is the same as nothing, and what follows the first value is not read. The shapes are
the fields of `model.Post`, `model.CommandArgs`, `model.CommandResponse`, `model.PostAction` and so on.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

Json = dict[str, Any]
MAX_DEPTH = 100
"""Deeper bodies are refused here; the server takes 10000."""
Shape = Any
"""str, int, bool; dict for an object of anything; object for anything; [Shape] for a list; {name: Shape} for an object
with these fields; or one of the classes below."""


class Texts:
    """An object whose values are all strings (map[string]string)."""


class LooseFlag:
    """A flag that may be a string, and not null (model.SlackCompatibleBool)."""


def decode(raw: bytes, *, whole: bool = False) -> Any:
    """The first JSON value of a body, or the one that is the whole of it. Raises ValueError."""
    text = raw.decode("utf-8", "replace").lstrip(" \t\r\n")
    try:
        value, end = json.JSONDecoder(parse_constant=_no_number).raw_decode(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if whole and text[end:].strip(" \t\r\n"):
        raise ValueError("something follows the value")
    return _go_strings(value, MAX_DEPTH)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _go_strings(value: Any, depth: int) -> Any:
    """Half of a surrogate pair is no character: Go's decoder takes U+FFFD for it."""
    if not depth:
        raise ValueError("nested too deeply")
    if isinstance(value, dict):
        return {_go_strings(key, depth): _go_strings(one, depth - 1) for key, one in value.items()}
    if isinstance(value, list):
        return [_go_strings(one, depth - 1) for one in value]
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def read(value: Any, shape: Shape) -> Any:
    """The value in that shape; fields that are not there, or null, are left out. Raises ValueError."""
    if isinstance(shape, list):
        return [_zero(shape[0]) if one is None else read(one, shape[0]) for one in _expect(value, list)]
    if isinstance(shape, dict):
        return _fields(_expect(value, dict), shape)
    if shape is Texts:
        return {key: "" if one is None else _expect(one, str) for key, one in _expect(value, dict).items()}
    if shape is LooseFlag:
        return _loose_flag(value)
    return value if shape is object else _expect(value, shape)


def _expect(value: Any, kind: type) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{value!r:.40} is no {kind.__name__}")
    return value


def _loose_flag(value: Any) -> bool:
    text = value.lower() if isinstance(value, str) else value
    if text in (True, "true"):
        return True
    if text in (False, "false"):
        return False
    raise ValueError(f"{value!r:.40} is no flag")


def _fields(value: Json, shape: Json) -> Json:
    names = {name.lower(): name for name in shape}
    found: Json = {}
    for key, one in value.items():
        name = key if key in shape else names.get(key.lower(), "")
        if name and (one is not None or shape[name] is LooseFlag):
            found[name] = read(one, shape[name])
    return found


def filled(value: Json, shape: Json) -> Json:
    """With all fields of the shape, as an encoder writes them: texts are empty, lists and objects null."""
    return {name: value.get(name, _zero(kind)) for name, kind in shape.items()}


def _zero(shape: Shape) -> Any:
    if shape is str:
        return ""
    if shape is int:
        return 0
    return False if shape in (bool, LooseFlag) else None


def _texts(names: str) -> dict[str, type]:
    return dict.fromkeys(names.split(), str)


POST: Json = {
    **_texts("id user_id channel_id root_id original_id message message_source type hashtags pending_post_id"),
    **dict.fromkeys(("create_at", "update_at", "edit_at", "delete_at", "reply_count", "last_reply_at"), int),
    "is_pinned": bool,
    "has_reactions": bool,
    "is_following": bool,
    "remote_id": str,
    "metadata": dict,
    "props": dict,
    "filenames": [str],
    "file_ids": [str],
}
POST_PATCH: Json = {"is_pinned": bool, "message": str, "props": dict, "file_ids": [str], "has_reactions": bool}
EPHEMERAL: Json = {"user_id": str, "post": POST}
COMMAND: Json = {
    **_texts("id token creator_id team_id trigger method username icon_url auto_complete_desc auto_complete_hint"),
    **dict.fromkeys(("create_at", "update_at", "delete_at"), int),
    **_texts("display_name description url plugin_id autocomplete_icon_data"),
    "auto_complete": bool,
    "autocomplete_data": dict,
}
COMMAND_ARGS: Json = _texts("user_id channel_id team_id root_id parent_id trigger_id command")
OPTION: Json = _texts("text value")
ACTION: Json = {
    **_texts("id type name style data_source default_option cookie"),
    "disabled": bool,
    "options": [OPTION],
    "integration": {"url": str, "context": dict},
}
FIELD: Json = {"title": str, "value": object, "short": LooseFlag}
ATTACHMENT: Json = {
    "id": int,
    **_texts("fallback color pretext author_name author_link author_icon title title_link text"),
    "fields": [FIELD],
    **_texts("image_url thumb_url footer footer_icon"),
    "ts": object,
    "actions": [ACTION],
}
RESPONSE: Json = {
    **_texts("response_type text username channel_id icon_url type"),
    "props": dict,
    **_texts("goto_location trigger_id"),
    "skip_slack_parsing": bool,
    "attachments": [ATTACHMENT],
}
COMMAND_RESPONSE: Json = {**RESPONSE, "extra_responses": [RESPONSE]}
ACTION_RESPONSE: Json = {"update": POST, "ephemeral_text": str, "skip_slack_parsing": bool}
CLICK: Json = {"selected_option": str, "cookie": str}
ELEMENT: Json = {
    **_texts("display_name name type subtype default placeholder help_text"),
    "optional": bool,
    "min_length": int,
    "max_length": int,
    "data_source": str,
    "options": [OPTION],
}
DIALOG: Json = {
    **_texts("callback_id title introduction_text icon_url"),
    "elements": [ELEMENT],
    "submit_label": str,
    "notify_on_cancel": bool,
    "state": str,
}
OPEN_DIALOG: Json = {"trigger_id": str, "url": str, "dialog": DIALOG}
SUBMIT_DIALOG: Json = {
    **_texts("type url callback_id state user_id channel_id team_id"),
    "submission": dict,
    "cancelled": bool,
}
DIALOG_RESPONSE: Json = {"error": str, "errors": Texts}
REACTION: Json = {"user_id": str, "post_id": str, "emoji_name": str, "create_at": int}
CHANNEL: Json = {
    **_texts("id team_id type display_name name header purpose creator_id"),
    **dict.fromkeys(("create_at", "update_at", "delete_at"), int),
    "props": dict,
}
CHANNEL_PATCH: Json = _texts("display_name name header purpose")
HOOK: Json = {
    **_texts("text username icon_url channel type icon_emoji"),
    "props": dict,
    "attachments": [ATTACHMENT],
}
WEBHOOK: Json = {**_texts("id user_id channel_id team_id display_name description"), "channel_locked": bool}
USER: Json = _texts("username email password nickname first_name last_name position locale")
LOGIN: Json = _texts("id login_id password token device_id")
TEAM: Json = _texts("name display_name type description email company_name allowed_domains")
TEAM_MEMBER: Json = _texts("team_id user_id")
BOT: Json = _texts("username display_name description")
TOKEN: Json = _texts("description")
MESSAGE: Json = {"seq": int, "action": str, "data": dict}
"""What a client sends on the websocket."""
