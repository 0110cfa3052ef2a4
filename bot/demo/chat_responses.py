"""What integrations answer, as the server reads it, and what it makes of their texts.

mattermost-server 6.7.2 `model/command_response.go`, `app/slack.go`.
"""

from __future__ import annotations

import re

from bot.demo.chat_attachments import with_plain_values
from bot.demo.chat_integrations import Answer
from bot.demo.chat_shapes import COMMAND_RESPONSE, RESPONSE, decode, filled, read
from bot.demo.chat_state import ChatState, Json


def read_response(answer: Answer) -> Json:
    """An integration's response: JSON by its content type, anything else is the text. Raises ValueError."""
    if answer.content_type.split(";")[0].strip() != "application/json":
        return filled({"text": answer.body.decode(errors="replace")}, COMMAND_RESPONSE)
    body = decode(answer.body, whole=True)
    response = filled(read({} if body is None else body, COMMAND_RESPONSE), COMMAND_RESPONSE)
    more = response["extra_responses"]
    if more and None in more:
        raise ValueError("null among the extra responses")
    if more is not None:
        response["extra_responses"] = [{**filled(one, RESPONSE), "extra_responses": None} for one in more]
    for one in (response, *(response["extra_responses"] or ())):
        one["attachments"] = with_plain_values(one["attachments"])
    return response


def slack_text(text: str, state: ChatState) -> str:
    """What the server does to a text without skip_slack_parsing, in code as well."""
    return re.sub(r"<([^<|]+)\|([^>]+)>", r"[\2](\1)", slack_mentions(text, state))


def slack_mentions(text: str, state: ChatState) -> str:
    """The part of it that the client sees in the answer to its command."""
    text = text.replace("<!channel>", "@channel").replace("<!here>", "@here").replace("<!all>", "@all")
    for user in state.users.values():
        text = text.replace(f"<@{user['id']}>", f"@{user['username']}")
    return text
