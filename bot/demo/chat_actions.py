"""Buttons, menus and dialogs.

https://developers.mattermost.com/integrate/plugins/interactive-messages/ and …/interactive-dialogs/;
mattermost-server 6.7.2 `app/integration_action.go`, `api4/integration_action.go`.
"""

from __future__ import annotations

import copy
import json

from bot.demo import chat_errors
from bot.demo.chat_errors import ChatError
from bot.demo.chat_integrations import Integrations
from bot.demo.chat_posts import Posts
from bot.demo.chat_responses import slack_text
from bot.demo.chat_shapes import ACTION_RESPONSE, DIALOG, DIALOG_RESPONSE, ELEMENT, OPTION, decode, filled, read
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
        if body.get("cookie") and body["cookie"] not in self.state.cookies:
            raise chat_errors.action_failed()
        stored = self.state.posts.get(identity)
        post = stored if stored is not None and not stored["delete_at"] else self._from_cookie(identity, body)
        known = post or stored
        if not self.state.is_admin(user) and (known is None or not self.state.is_member(known["channel_id"], user)):
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
            given = decode(answer.body, whole=True) if answer.body else {}
            response: Json = read({} if given is None else given, ACTION_RESPONSE)
        except ValueError as error:
            raise chat_errors.action_failed() from error
        self._apply(user, post, response)
        return client_trigger

    def _from_cookie(self, identity: str, body: Json) -> Json | None:
        cookie = self.state.cookies.get(body.get("cookie", ""))
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
        if "update" in response:
            self._update(post, response["update"])
        if text := response.get("ephemeral_text"):
            if not response.get("skip_slack_parsing"):
                text = slack_text(text, self.state)
            root = post["root_id"] or post["id"]
            self._posts.ephemeral(user, {"channel_id": post["channel_id"], "root_id": root, "message": text})

    def _update(self, post: Json, update: Json) -> None:
        current = self.state.posts.get(post["id"])
        if current is None:
            raise chat_errors.no_post()
        # Not a patch: a message or files that are left out are emptied, props that are left out stay.
        changed: Json = {"message": update.get("message", ""), "file_ids": update.get("file_ids", [])}
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
        client, user = self._integrations.read_trigger(body.get("trigger_id", ""))
        dialog = {"trigger_id": client, "url": body["url"], "dialog": _dialog(body.get("dialog", {}))}
        self.state.publish(Event("open_dialog", {"dialog": json.dumps(dialog, ensure_ascii=False)}, user=user))

    async def submit_dialog(self, user: str, body: Json) -> Json:
        """POST /actions/dialogs/submit; returns the errors to show, or nothing. Raises ChatError."""
        if not body.get("url"):
            raise chat_errors.bad_body("url")
        channel, team = body.get("channel_id", ""), body.get("team_id", "")
        if channel not in self.state.channels or not self.state.is_member(channel, user):
            raise chat_errors.no_permission()
        if team not in self.state.teams or not self.state.in_team(team, user):
            raise chat_errors.no_permission()
        request = {key: body.get(key, "") for key in ("callback_id", "state", "channel_id", "team_id")}
        request |= {"type": "dialog_submission", "user_id": user, "submission": body.get("submission")}
        request["cancelled"] = bool(body.get("cancelled"))
        answer = await self._integrations.post_json(body["url"], request)
        try:
            response: Json = read(decode(answer.body) or {}, DIALOG_RESPONSE)
        except ValueError:
            return {}
        return {key: value for key, value in response.items() if value}


def _dialog(given: Json) -> Json:
    """A dialog as the client gets it, with all of its fields."""
    shown = filled(given, DIALOG)
    elements = [filled(one or {}, ELEMENT) for one in shown["elements"] or ()]
    for one in elements:
        if one["options"]:
            one["options"] = [None if option is None else filled(option, OPTION) for option in one["options"]]
    return {**shown, "elements": elements or shown["elements"]}


def _find_action(post: Json, action_id: str) -> Json | None:
    for attachment in post["props"].get("attachments") or ():
        for action in attachment.get("actions") or ():
            if action.get("id") == action_id:
                found: Json = action
                return found
    return None
