"""The routes of slash commands, buttons, dialogs and webhooks: what they do is in `chat_commands` and `chat_actions`.

mattermost-server 6.7.2 `api4/command.go`, `api4/integration_action.go`, `web/webhook.go`, `app/webhook.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from aiohttp import web

from bot.demo import chat_errors
from bot.demo.chat_attachments import with_plain_values
from bot.demo.chat_errors import ChatError
from bot.demo.chat_integrations import Answer
from bot.demo.chat_requests import Handler, OpenHandler, answer, identity_in, object_of, readable_of
from bot.demo.chat_responses import slack_text
from bot.demo.chat_shapes import CLICK, COMMAND, COMMAND_ARGS, HOOK, OPEN_DIALOG, SUBMIT_DIALOG, WEBHOOK, decode, read
from bot.demo.chat_state import MAX_POST_SIZE, Json

if TYPE_CHECKING:
    from bot.demo.mattermost_api import ChatApi


class IntegrationRoutes:
    """Handlers of what leads to other servers and comes from them."""

    def __init__(self, api: ChatApi) -> None:
        self._state = api.state
        self._posts = api.posts
        self._commands = api.commands
        self._actions = api.actions

    def table(self) -> list[tuple[str, str, Handler]]:
        """Method, path below /api/v4, handler."""
        return [
            ("POST", "/posts/{post}/actions/{action}", self._click),
            ("POST", "/actions/dialogs/submit", self._submit_dialog),
            ("POST", "/commands", self._create_command),
            ("GET", "/commands", self._list_commands),
            ("POST", "/commands/execute", self._execute),
            ("GET", "/commands/{command}", self._get_command),
            ("PUT", "/commands/{command}", self._put_command),
            ("DELETE", "/commands/{command}", self._delete_command),
            ("PUT", "/commands/{command}/regen_token", self._regenerate_token),
            ("GET", "/teams/{team}/commands/autocomplete", self._autocomplete),
            ("GET", "/teams/{team}/commands/autocomplete_suggestions", self._suggestions),
            ("POST", "/hooks/incoming", self._create_hook),
        ]

    def open_table(self) -> list[tuple[str, str, OpenHandler]]:
        """Method, path, handler of what asks for no session."""
        return [
            ("POST", "/api/v4/actions/dialogs/open", self._open_dialog),
            ("POST", "/hooks/commands/{hook}", self._command_hook),
            ("POST", "/hooks/{hook}", self._incoming_hook),
        ]

    async def _click(self, request: web.Request, user: str) -> web.StreamResponse:
        identity = identity_in(request, "post")
        body = await readable_of(request, CLICK)
        trigger = await self._actions.click(user, identity, request.match_info["action"], body)
        return answer({"status": "OK", "trigger_id": trigger})

    async def _open_dialog(self, request: web.Request) -> web.StreamResponse:
        self._actions.open_dialog(await object_of(request, "dialog", OPEN_DIALOG))
        return answer({"status": "OK"})

    async def _submit_dialog(self, request: web.Request, user: str) -> web.StreamResponse:
        return answer(await self._actions.submit_dialog(user, await object_of(request, "dialog", SUBMIT_DIALOG)))

    async def _create_command(self, request: web.Request, user: str) -> web.StreamResponse:
        return answer(self._commands.register(user, await object_of(request, "command", COMMAND)), 201)

    async def _list_commands(self, request: web.Request, user: str) -> web.StreamResponse:
        team = request.query.get("team_id", "")
        if not team:
            raise chat_errors.bad_body("team_id")
        only = request.query.get("custom_only") == "true"
        return answer(self._commands.listed(user, team, custom_only=only))

    async def _get_command(self, request: web.Request, user: str) -> web.StreamResponse:
        return answer(self._commands.get(user, identity_in(request, "command")))

    async def _put_command(self, request: web.Request, user: str) -> web.StreamResponse:
        identity = identity_in(request, "command")
        return answer(self._commands.overwrite(user, identity, await object_of(request, "command", COMMAND)))

    async def _delete_command(self, request: web.Request, user: str) -> web.StreamResponse:
        self._commands.delete(user, identity_in(request, "command"))
        return answer({"status": "OK"})

    async def _regenerate_token(self, request: web.Request, user: str) -> web.StreamResponse:
        return answer({"token": self._commands.new_token(user, identity_in(request, "command"))})

    async def _autocomplete(self, request: web.Request, user: str) -> web.StreamResponse:
        return answer(self._commands.autocomplete(user, identity_in(request, "team")))

    async def _suggestions(self, request: web.Request, user: str) -> web.StreamResponse:
        team, typed = identity_in(request, "team"), request.query.get("user_input", "")
        return answer(self._commands.suggestions(user, team, typed))

    async def _execute(self, request: web.Request, user: str) -> web.StreamResponse:
        # The address of a response_url is the one that the client called, whoever that was.
        site = f"{request.scheme}://{request.host}"
        args = await object_of(request, "command_args", COMMAND_ARGS)
        return answer(await self._commands.execute(user, args, site))

    async def _command_hook(self, request: web.Request) -> web.StreamResponse:
        sent = Answer(200, "", request.headers.get("Content-Type", ""), await request.read())
        self._commands.use_hook(request.match_info["hook"], sent)
        return _ok()

    async def _create_hook(self, request: web.Request, user: str) -> web.StreamResponse:
        body = await object_of(request, "incoming_webhook", WEBHOOK)
        channel = self._state.channel(body.get("channel_id", ""))
        if not self._state.is_admin(user):
            raise chat_errors.no_permission()
        hook: Json = {"id": self._state.new_id(), "channel_id": channel["id"], "team_id": channel["team_id"]}
        hook |= {"user_id": user, "username": "", "icon_url": ""}
        hook |= {"display_name": body.get("display_name", ""), "description": body.get("description", "")}
        now = self._state.stamp()
        hook |= {"create_at": now, "update_at": now, "delete_at": 0, "channel_locked": bool(body.get("channel_locked"))}
        self._state.incoming[hook["id"]] = hook
        return answer(hook, 201)

    async def _incoming_hook(self, request: web.Request) -> web.StreamResponse:
        hook = self._state.incoming.get(request.match_info["hook"])
        if hook is None:
            raise ChatError(400, "web.incoming_webhook.invalid.app_error", "Invalid webhook.")
        try:
            body = read(decode(await _payload(request)), HOOK)
        except ValueError as error:
            text = "Unable to parse incoming data."
            raise ChatError(400, "model.incoming_hook.parse_data.app_error", text) from error
        self._post_from_hook(hook, body)
        return _ok()

    def _post_from_hook(self, hook: Json, body: Json) -> None:
        text, attachments = body.get("text", ""), with_plain_values(body.get("attachments"))
        if not text and not attachments:
            raise ChatError(400, "web.incoming_webhook.text.app_error", "No text specified.")
        sort = body.get("type") or ("slack_attachment" if attachments else "")
        if sort.startswith("system_"):
            raise ChatError(400, "api.context.invalid_param.app_error", "Invalid post.type parameter.")
        channel = self._channel_of(hook, body.get("channel", ""))
        props = {**body.get("props", {}), "from_webhook": "true", "webhook_display_name": hook["display_name"]}
        if attachments:
            props["attachments"] = attachments
        post: Json = {"channel_id": channel, "props": props, "type": sort}
        text = slack_text(text, self._state)
        # Unlike all others, a webhook's long text is cut into several posts.
        for start in range(0, max(len(text), 1), MAX_POST_SIZE):
            part = {**post, "message": text[start : start + MAX_POST_SIZE]}
            self._posts.create(hook["user_id"], part, from_api=False)

    def _channel_of(self, hook: Json, name: str) -> str:
        """The channel that a webhook names, by `name`, `#name` or `@user`. Raises ChatError."""
        if not name:
            return str(hook["channel_id"])
        try:
            if name.startswith("@"):
                user = self._state.user_named(name[1:])
                return str(self._state.direct_channel(hook["user_id"], user["id"])["id"])
            return str(self._state.channel_named(hook["team_id"], name.removeprefix("#"))["id"])
        except ChatError as error:
            what = "user" if name.startswith("@") else "channel"
            code = 400 if what == "user" else 404
            raise ChatError(code, f"web.incoming_webhook.{what}.app_error", f"Couldn't find the {what}.") from error


async def _payload(request: web.Request) -> bytes:
    """The JSON that came to a webhook: the body, or a field of a form. Raises ValueError."""
    kind = request.headers.get("Content-Type", "").split(";")[0].strip()
    if kind == "multipart/form-data":
        return str((await request.post()).get("payload", "")).encode()
    raw = await request.read()
    if kind == "application/x-www-form-urlencoded":
        return parse_qs(raw.decode(errors="replace")).get("payload", [""])[0].encode()
    return raw


def _ok() -> web.Response:
    return web.Response(body=b"ok", headers={"Content-Type": "text/plain"})
