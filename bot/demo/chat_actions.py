"""Buttons, menus and dialogs.

https://developers.mattermost.com/integrate/plugins/interactive-messages/ and …/interactive-dialogs/;
mattermost-server 6.7.2 `app/integration_action.go`, `api4/integration_action.go`.
"""

from __future__ import annotations

import copy
import json
import re
from typing import Any

from bot.demo import chat_errors
from bot.demo.chat_commands import slack_text
from bot.demo.chat_errors import ChatError
from bot.demo.chat_integrations import Integrations
from bot.demo.chat_posts import Posts
from bot.demo.chat_state import ChatState, Event, Json

RETAINED = ("from_webhook", "override_username", "override_icon_url")


class Actions:
    """What happens when somebody clicks."""

    def __init__(self, state: ChatState, posts: Posts, integrations: Integrations) -> None:
        self.state = state
        self._posts = posts
        self._integrations = integrations

    async def click(self, user: str, identity: str, action_id: str, body: Json) -> str:
        """POST /posts/ID/actions/ID; returns the client's trigger id.

        Raises ChatError: 403, 404 for what has no such action, 400 when the integration fails.
        """
        stored = self.state.posts.get(identity)
        post = stored if stored is not None and not stored["delete_at"] else self._from_cookie(identity, body)
        known = post or stored
        if known is None or not self.state.is_member(known["channel_id"], user):
            raise chat_errors.no_permission()
        if post is None:
            raise chat_errors.no_post()
        action = _find_action(post, action_id)
        if action is None or not action.get("integration"):
            raise ChatError(404, "api.post.do_action.action_id.app_error", "Invalid action id.")
        client_trigger, trigger = self._integrations.make_trigger(user)
        request = self._request(user, post, action, body) | {"trigger_id": trigger}
        answer = await self._integrations.post_json(action["integration"].get("url", ""), request)
        try:
            response: Any = json.loads(answer.body) if answer.body else {}
        except ValueError as error:
            raise chat_errors.action_failed() from error
        if not isinstance(response, dict):
            raise chat_errors.action_failed()
        self._apply(user, post, response)
        return client_trigger

    def _from_cookie(self, identity: str, body: Json) -> Json | None:
        cookie = self.state.cookies.get(str(body.get("cookie") or ""))
        return cookie["post"] if cookie and cookie["post_id"] == identity else None

    def _request(self, user: str, post: Json, action: Json, body: Json) -> Json:
        channel = self.state.channel(post["channel_id"])
        team = self.state.teams.get(channel["team_id"], {})
        context = copy.deepcopy(action["integration"].get("context"))
        request: Json = {"user_id": user, "user_name": self.state.users[user]["username"]}
        request |= {"channel_id": channel["id"], "channel_name": channel["name"], "team_id": channel["team_id"]}
        request |= {"team_domain": team.get("name", ""), "post_id": post["id"], "trigger_id": ""}
        request |= {"type": action.get("type", ""), "data_source": ""}
        if action.get("type") == "select" and body.get("selected_option"):
            request["data_source"] = action.get("data_source", "")
            context = {**(context or {}), "selected_option": body["selected_option"]}
        if context:
            request["context"] = context
        return request

    def _apply(self, user: str, post: Json, response: Json) -> None:
        update = response.get("update")
        if isinstance(update, dict):
            self._update(post, update)
        if response.get("ephemeral_text"):
            text = str(response["ephemeral_text"])
            if not response.get("skip_slack_parsing"):
                text = slack_text(text, self.state)
            root = post["root_id"] or post["id"]
            self._posts.ephemeral(user, {"channel_id": post["channel_id"], "root_id": root, "message": text})

    def _update(self, post: Json, update: Json) -> None:
        current = self.state.posts.get(post["id"])
        if current is None:
            raise chat_errors.no_post()
        # Not a patch: a message or files that are left out are emptied, props that are left out stay.
        changed: Json = {"message": update.get("message") or "", "file_ids": update.get("file_ids") or []}
        props = update.get("props")
        if props is None:
            changed["props"] = current["props"]
        else:
            kept = {key: current["props"][key] for key in RETAINED if key in current["props"]}
            changed["props"] = {key: value for key, value in props.items() if key not in RETAINED} | kept
        self._posts.update(current, changed)

    def open_dialog(self, body: Json) -> None:
        """POST /actions/dialogs/open: the trigger id is the only right that is asked for. Raises ChatError 400."""
        if not body.get("url"):
            raise chat_errors.bad_body("url")
        client, user = self._integrations.read_trigger(str(body.get("trigger_id") or ""))
        dialog = {**body, "trigger_id": client}
        self.state.publish(Event("open_dialog", {"dialog": json.dumps(dialog, ensure_ascii=False)}, user=user))

    async def submit_dialog(self, user: str, body: Json) -> Json:
        """POST /actions/dialogs/submit; returns the errors to show, or nothing. Raises ChatError."""
        if not body.get("url"):
            raise chat_errors.bad_body("url")
        if not self.state.is_member(str(body.get("channel_id") or ""), user):
            raise chat_errors.no_permission()
        if body.get("team_id") not in self.state.teams:
            raise chat_errors.no_permission()
        request = {key: body.get(key, "") for key in ("callback_id", "state", "channel_id", "team_id")}
        request |= {"type": "dialog_submission", "user_id": user, "submission": body.get("submission") or {}}
        request["cancelled"] = bool(body.get("cancelled"))
        answer = await self._integrations.post_json(str(body["url"]), request)
        try:
            response: Any = json.loads(answer.body)
        except ValueError:
            return {}
        return (
            {key: response[key] for key in ("errors", "error") if response.get(key)}
            if isinstance(response, dict)
            else {}
        )


def is_action_id(text: str) -> bool:
    """Whether the route of actions takes it: others get a 404 page."""
    return re.fullmatch(r"[A-Za-z0-9]+", text) is not None


def _find_action(post: Json, action_id: str) -> Json | None:
    for attachment in post["props"].get("attachments") or ():
        for action in attachment.get("actions") or ():
            if action.get("id") == action_id:
                found: Json = action
                return found
    return None
