"""Slash commands: registering, executing, and what comes back through the response or the response_url.

https://developers.mattermost.com/integrate/slash-commands/custom/; mattermost-server 6.7.2 `app/command.go`,
`api4/command.go`, `app/webhook.go` (HandleCommandWebhook), `model/command_response.go`.
"""

from __future__ import annotations

import re

import aiohttp

from bot.demo import chat_errors
from bot.demo.chat_errors import ChatError
from bot.demo.chat_integrations import Answer, Integrations
from bot.demo.chat_mentions import channels_in, names_in
from bot.demo.chat_posts import Posts
from bot.demo.chat_responses import read_response, slack_mentions, slack_text
from bot.demo.chat_shapes import COMMAND, filled
from bot.demo.chat_state import ChatState, CommandHook, Json

HOOK_SECONDS = 30 * 60.0
HOOK_USES = 5
BUILT_IN = frozenset(
    (
        *("away", "code", "collapse", "custom_status", "dnd", "echo", "expand", "groupmsg", "header", "help"),
        *("invite", "invite_people", "join", "kick", "leave", "logout", "me", "msg", "mute", "offline", "online"),
        *("open", "purpose", "remove", "rename", "search", "secure-connection", "settings", "share-channel"),
        *("shortcuts", "shrug", "status"),
    )
)
"""The triggers that the server keeps for itself; what they do is not played."""
_LEFT_OUT = ("autocomplete_data", "autocomplete_icon_data")


class Commands:
    """The slash commands of the server."""

    def __init__(self, state: ChatState, posts: Posts, integrations: Integrations) -> None:
        self.state = state
        self._posts = posts
        self._integrations = integrations

    def register(self, user: str, body: Json) -> Json:
        """Create a command. Raises ChatError: 403 for all but administrators, 400 for a bad or taken trigger."""
        if not self.state.is_admin(user) or body.get("team_id") not in self.state.teams:
            raise chat_errors.no_permission()
        command = self._checked(body, "")
        now = self.state.stamp()
        command |= {"id": self.state.new_id(), "token": self.state.new_id(), "create_at": now, "update_at": now}
        command |= {"delete_at": 0, "creator_id": user}
        self.state.commands[command["id"]] = command
        return command

    def overwrite(self, user: str, identity: str, body: Json) -> Json:
        """PUT a command: its token stays. Raises ChatError."""
        if body.get("id") != identity:
            raise chat_errors.bad_body("command")
        if identity in self.state.commands and body.get("team_id") != self.state.commands[identity]["team_id"]:
            raise ChatError(400, "api.command.team_mismatch.app_error", "Unable to update commands across teams.")
        old = self.get(user, identity)
        kept = {key: old[key] for key in ("id", "token", "create_at", "creator_id", "delete_at")}
        command = {**self._checked(body, identity), **kept, "update_at": self.state.stamp()}
        self.state.commands[identity] = command
        return command

    def get(self, user: str, identity: str) -> Json:
        """A command with its token. Raises ChatError 404, for those as well who may not see it."""
        if identity not in self.state.commands or not self.state.is_admin(user):
            raise ChatError(404, "store.sql_command.save.get.app_error", "Unable to get the command.")
        return self.state.commands[identity]

    def delete(self, user: str, identity: str) -> None:
        """Remove a command. Raises ChatError."""
        del self.state.commands[self.get(user, identity)["id"]]

    def new_token(self, user: str, identity: str) -> str:
        """Give a command another token. Raises ChatError."""
        command = self.get(user, identity)
        command["token"] = self.state.new_id()
        return str(command["token"])

    def listed(self, user: str, team: str, *, custom_only: bool) -> list[Json]:
        """The commands of a team, with tokens for those who may manage them. Raises ChatError 403."""
        if not self.state.is_admin(user):
            if custom_only:
                raise chat_errors.no_permission()
            return self.autocomplete(user, team)
        return [command for command in self.state.commands.values() if command["team_id"] == team]

    def autocomplete(self, user: str, team: str) -> list[Json]:
        """The commands that a composer offers, without secrets. Raises ChatError 403."""
        if not self.state.in_team(team, user):
            raise chat_errors.no_permission()
        offered = [one for one in self.state.commands.values() if one["team_id"] == team and one["auto_complete"]]
        secret = dict.fromkeys(("token", "url", "creator_id", "method", "username", "icon_url"), "")
        return [{**command, **secret} for command in offered]

    def suggestions(self, user: str, team: str, typed: str) -> list[Json]:
        """What a composer offers while somebody types: a command as a whole. Raises ChatError: 403, 400."""
        offered = self.autocomplete(user, team)
        if not typed:
            raise chat_errors.bad_body("userInput")
        found = [one for one in offered if one["trigger"].startswith(typed.removeprefix("/").lower())]
        return [
            {
                "Complete": one["trigger"],
                "Suggestion": one["trigger"],
                "Hint": one["auto_complete_hint"],
                "Description": one["auto_complete_desc"],
                "IconData": "",
            }
            for one in sorted(found, key=lambda one: str(one["trigger"]))
        ]

    def _checked(self, body: Json, identity: str) -> Json:
        command: Json = {key: value for key, value in filled(body, COMMAND).items() if key not in _LEFT_OUT}
        command["trigger"] = command["trigger"].lower()
        trigger, url = command["trigger"], command["url"]
        if not 1 <= len(trigger.encode()) <= 128 or trigger.startswith("/") or " " in trigger:
            raise ChatError(400, "model.command.is_valid.trigger.app_error", "Invalid trigger.")
        if not 1 <= len(url) <= 1024:
            raise ChatError(400, "model.command.is_valid.url.app_error", "Invalid URL.")
        if not url.startswith(("http://", "https://")):
            message = "Invalid URL. Must be a valid URL and start with http:// or https://."
            raise ChatError(400, "model.command.is_valid.url_http.app_error", message)
        if command["method"] not in ("P", "G"):
            raise ChatError(400, "model.command.is_valid.method.app_error", "Invalid Method.")
        if len(command["display_name"].encode()) > 64:
            raise ChatError(400, "model.command.is_valid.display_name.app_error", "Invalid title.")
        if len(command["description"].encode()) > 128:
            raise ChatError(400, "model.command.is_valid.description.app_error", "Invalid description.")
        same = [
            one
            for one in self.state.commands.values()
            if one["team_id"] == command["team_id"] and one["id"] != identity
        ]
        if trigger in BUILT_IN or any(one["trigger"] == trigger for one in same):
            message = "This trigger word is already in use. Please choose another word."
            raise ChatError(400, "api.command.duplicate_trigger.app_error", message)
        return command

    async def execute(self, user: str, args: Json, site: str) -> Json:
        """POST /commands/execute; returns the integration's response with the client's trigger id.

        Raises ChatError: 400 for what is no command, 404 for one that nobody registered, 500 when the integration
        fails.
        """
        text, channel = args.get("command", ""), args.get("channel_id", "")
        if len(text) <= 1 or not text.startswith("/") or len(channel) != 26:
            raise ChatError(400, "api.command.execute_command.start.app_error", "No command trigger found.")
        self.state.check_joined(channel, user)
        where = self.state.channels[channel]
        team = where["team_id"] if where["type"] in "OP" else args.get("team_id", "")
        if team not in self.state.teams or not self.state.in_team(team, user):
            raise chat_errors.no_permission()
        trigger, rest = _split(text)
        command: Json | None = next(
            (one for one in self.state.commands.values() if (one["team_id"], one["trigger"]) == (team, trigger)), None
        )
        if command is None:
            message = (
                f"Command with a trigger of '{trigger}' not found. "
                'To send a message beginning with "/", try adding an empty space at the beginning of the message.'
            )
            raise ChatError(404, "api.command.execute_command.not_found.app_error", message)
        client_trigger, trigger_id = self._integrations.make_trigger(user)
        hook = self.state.new_id()
        root = args.get("root_id", "")
        self.state.command_hooks[hook] = CommandHook(command["id"], user, channel, root, self.state.clock.wire_time())
        fields = self._fields(command, user, where, rest)
        fields += [("trigger_id", trigger_id), ("response_url", f"{site}/hooks/commands/{hook}")]
        response = await self._call(command, trigger, fields)
        if not response["skip_slack_parsing"]:
            response["text"] = slack_mentions(response["text"], self.state)
        response["trigger_id"] = client_trigger
        self._respond(self.state.command_hooks[hook], response, trigger)
        return response

    def _fields(self, command: Json, user: str, channel: Json, text: str) -> list[tuple[str, str]]:
        team = self.state.teams[command["team_id"]]
        fields = [
            ("token", command["token"]),
            ("team_id", team["id"]),
            ("team_domain", team["name"]),
            ("channel_id", channel["id"]),
            ("channel_name", channel["name"]),
            ("user_id", user),
            ("user_name", self.state.users[user]["username"]),
            ("command", f"/{command['trigger']}"),
            ("text", text),
        ]
        names = names_in(text)
        for one in self.state.team_members[team["id"]]:
            if self.state.users[one]["username"] in names:
                fields += [("user_mentions", self.state.users[one]["username"]), ("user_mentions_ids", one)]
        names = channels_in(text)
        for other in self.state.channels.values():
            if other["type"] == "O" and other["team_id"] == team["id"] and other["name"] in names:
                fields += [("channel_mentions", other["name"]), ("channel_mentions_ids", other["id"])]
        return fields

    async def _call(self, command: Json, trigger: str, fields: list[tuple[str, str]]) -> Json:
        failed = ChatError(
            500, "api.command.execute_command.failed.app_error", f"Command with a trigger of '{trigger}' failed."
        )
        try:
            answer = await self._integrations.call_command(command, fields)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise failed from error
        if answer.status != 200:
            message = f"Command with a trigger of '{trigger}' returned response {answer.status} {answer.reason}."
            raise ChatError(500, "api.command.execute_command.failed_resp.app_error", message)
        try:
            return read_response(answer)
        except ValueError as error:
            raise failed from error

    def use_hook(self, hook: str, answer: Answer) -> None:
        """POST /hooks/commands/ID. Raises ChatError: 404 after 30 minutes, 400 after five uses."""
        found = self.state.command_hooks.get(hook)
        if found is None or self.state.clock.wire_time() - found.born > HOOK_SECONDS:
            raise ChatError(404, "app.command_webhook.get.missing", "Unable to find the webhook.")
        try:
            response = read_response(answer)
        except ValueError as error:
            message = "Unable to parse incoming data."
            raise ChatError(400, "web.command_webhook.parse.app_error", message) from error
        command = self.state.commands.get(found.command)
        if command is None:
            raise ChatError(400, "web.command_webhook.command.app_error", "Couldn't find the command.")
        if found.uses >= HOOK_USES:
            raise ChatError(400, "app.command_webhook.try_use.invalid", "Invalid webhook.")
        found.uses += 1
        self._respond(found, response, "")

    def _respond(self, hook: CommandHook, response: Json, trigger: str) -> None:
        failure: ChatError | None = None
        for one in (response, *(response["extra_responses"] or ())):
            try:
                self._post(hook, one)
            except ChatError as error:
                failure = error
        if failure is not None:
            message = f"Command '{trigger}' failed to post response. Please contact your System Administrator."
            raise ChatError(500, "api.command.execute_command.create_post_failed.app_error", message)

    def _post(self, hook: CommandHook, response: Json) -> None:
        channel = response["channel_id"] or hook.channel
        if channel != hook.channel and hook.user not in self.state.members.get(channel, {}):
            raise chat_errors.no_permission()
        if response["type"].startswith("system_"):
            raise ChatError(400, "api.context.invalid_param.app_error", "Invalid post.type parameter.")
        text, attachments = response["text"], response["attachments"]
        if not response["skip_slack_parsing"]:
            text = slack_text(text, self.state)
        props = {**(response["props"] or {}), "from_webhook": "true"}
        post: Json = {"channel_id": channel, "root_id": hook.root, "message": text, "props": props}
        post["type"] = response["type"]
        if attachments is not None:
            props["attachments"] = attachments
            post["type"] = post["type"] or "slack_attachment"
        if response["response_type"] == "in_channel":
            self._posts.create(hook.user, post, from_api=False)
        elif text or attachments is not None:
            self._posts.ephemeral(hook.user, {**post, "user_id": hook.user})


def _split(text: str) -> tuple[str, str]:
    """Trigger and text of a command.

    The server takes one byte for the space between them: of one that has more, like a no-break space, the others stay,
    and are no text (app/command.go, tryExecuteCustomCommand). They come back as half characters (surrogateescape).
    """
    trigger = re.split(r"\s", text, maxsplit=1)[0]
    rest = text[len(trigger) :].encode(errors="replace")[1:]
    return trigger[1:].lower(), rest.decode(errors="surrogateescape")
