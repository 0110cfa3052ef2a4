"""The Mattermost server's HTTP face: REST API v4, hooks, and the websocket.

https://api.mattermost.com/; behaviour where the documentation is silent follows mattermost-server 6.7.2. Routes are
in one table; what they do is in `chat_posts`, `chat_commands`, `chat_actions` and `chat_routes`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

from aiohttp import web

from bot.demo import chat_errors
from bot.demo.chance import Chance
from bot.demo.chat_actions import Actions, is_action_id
from bot.demo.chat_commands import Commands
from bot.demo.chat_errors import ChatError
from bot.demo.chat_files import Files
from bot.demo.chat_integrations import Answer, Integrations
from bot.demo.chat_limits import RateLimits, add
from bot.demo.chat_office import Office
from bot.demo.chat_posts import Posts
from bot.demo.chat_requests import answer, identity_in, object_of
from bot.demo.chat_routes import Routes
from bot.demo.chat_socket import Hub
from bot.demo.chat_state import MAX_POST_SIZE, VERSION, ChatState, Json
from bot.demo.clock import Clock
from bot.demo.faults import Faults

MAX_BODY = 100 * 1024 * 1024
Handler = Callable[[web.Request, str], Awaitable[web.StreamResponse]]


class ChatApi:
    """The aiohttp application, and what it is made of."""

    def __init__(self, clock: Clock, chance: Chance) -> None:
        self.state = ChatState(clock, chance)
        self.faults = Faults(clock, self._fault_body)
        self.integrations = Integrations(self.state)
        self.posts = Posts(self.state)
        self.commands = Commands(self.state, self.posts, self.integrations)
        self.actions = Actions(self.state, self.posts, self.integrations)
        self.hub = Hub(self.state, self.faults)
        self.limits: RateLimits | None = None
        """None: not limited, as a server is by itself."""
        self.url = ""
        self.app = web.Application(client_max_size=MAX_BODY)
        self._add_routes()

    def _add_routes(self) -> None:
        api, routes, office = "/api/v4", Routes(self), Office(self)
        handlers = (*routes.table(), *office.table(), *Files(self.state).table())
        table: list[tuple[str, str, Handler]] = [
            *[(method, api + path, handler) for method, path, handler in handlers],
            ("POST", f"{api}/posts", self._create_post),
            ("POST", f"{api}/posts/ephemeral", self._create_ephemeral),
            ("GET", f"{api}/posts/{{post}}", self._get_post),
            ("PUT", f"{api}/posts/{{post}}", self._put_post),
            ("PUT", f"{api}/posts/{{post}}/patch", self._patch_post),
            ("DELETE", f"{api}/posts/{{post}}", self._delete_post),
            ("GET", f"{api}/posts/{{post}}/thread", self._get_thread),
            ("GET", f"{api}/channels/{{channel}}/posts", self._get_page),
            ("POST", f"{api}/posts/{{post}}/actions/{{action}}", self._click),
            ("POST", f"{api}/actions/dialogs/submit", self._submit_dialog),
            ("POST", f"{api}/commands", self._create_command),
            ("GET", f"{api}/commands", self._list_commands),
            ("POST", f"{api}/commands/execute", self._execute),
            ("GET", f"{api}/commands/{{command}}", self._get_command),
            ("PUT", f"{api}/commands/{{command}}", self._put_command),
            ("DELETE", f"{api}/commands/{{command}}", self._delete_command),
            ("PUT", f"{api}/commands/{{command}}/regen_token", self._regenerate_token),
            ("GET", f"{api}/teams/{{team}}/commands/autocomplete", self._autocomplete),
        ]
        for method, path, handler in table:
            self.app.router.add_route(method, path, self._with_session(handler))
        open_to_all: list[tuple[str, str, Callable[[web.Request], Awaitable[web.StreamResponse]]]] = [
            ("GET", f"{api}/system/ping", self._ping),
            ("GET", f"{api}/config/client", self._client_config),
            ("GET", f"{api}/websocket", self._websocket),
            ("POST", f"{api}/users/login", office.log_in),
            ("POST", f"{api}/actions/dialogs/open", self._open_dialog),
            ("POST", "/hooks/commands/{hook}", self._command_hook),
            ("POST", "/hooks/{hook}", self._incoming_hook),
        ]
        for method, path, open_handler in open_to_all:
            self.app.router.add_route(method, path, self._with_errors(open_handler))
        self.app.router.add_route("*", api + "/{rest:.*}", self._with_errors(self._no_such_route))

    def _with_session(self, handler: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def serve(request: web.Request) -> web.StreamResponse:
            user = self.user_of(request)
            if user is None:
                raise chat_errors.session_expired()
            return await handler(request, user)

        return self._with_errors(serve)

    def _with_errors(
        self, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def serve(request: web.Request) -> web.StreamResponse:
            request_id = self.state.new_id()
            try:
                response = await handler(request)
            except ChatError as error:
                response = answer(error.body(request_id), error.code)
            if not response.prepared:
                response.headers["X-Request-Id"] = request_id
                response.headers["X-Version-Id"] = f"{VERSION}.{VERSION}.embedded.false"
            self.state.requests.append((self.user_of(request) or "", request.method, request.path, response.status))
            return response

        async def limited(request: web.Request) -> web.StreamResponse:
            if self.limits is None:
                return await serve(request)
            known = handler != self._no_such_route
            token, user = self._token(request), self.user_of(request) or ""
            refusal, headers = self.limits.check(token, user, known_route=known)
            if refusal is not None:
                return refusal
            response = await serve(request)
            add(headers, response)
            return response

        async def with_faults(request: web.Request) -> web.StreamResponse:
            return await self.faults.around(request, limited)

        return with_faults

    def user_of(self, request: web.Request) -> str | None:
        """The user of the Authorization header (`Bearer` or `Token`)."""
        return self.state.user_of(self._token(request)) or None

    def _token(self, request: web.Request) -> str:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return token.strip() if scheme.lower() in ("bearer", "token") else ""

    def _fault_body(self, code: int, retry_after: int | None) -> web.Response:
        if code == 429:
            # The rate limiter answers before the API does: plain text, and no id.
            seconds = str(retry_after or 1)
            headers = {"Retry-After": seconds, "X-RateLimit-Limit": "101", "X-RateLimit-Remaining": "0"}
            headers["X-RateLimit-Reset"] = seconds
            return web.Response(status=429, text="limit exceeded\n", content_type="text/plain", headers=headers)
        error = ChatError(code, "app.embedded.fault.app_error", "Something went wrong.")
        headers = {"Retry-After": str(retry_after)} if retry_after else {}
        return answer(error.body(self.state.new_id()), code, headers)

    async def _no_such_route(self, _request: web.Request) -> web.StreamResponse:
        raise chat_errors.no_such_page()

    async def _ping(self, _request: web.Request) -> web.StreamResponse:
        return answer(
            {"ActiveSearchBackend": "database", "AndroidLatestVersion": "", "IosLatestVersion": "", "status": "OK"}
        )

    async def _client_config(self, _request: web.Request) -> web.StreamResponse:
        config = {"Version": VERSION, "BuildNumber": "embedded", "MaxPostSize": str(MAX_POST_SIZE), "SiteURL": self.url}
        config |= {"EnableCommands": "true", "EnableIncomingWebhooks": "true", "EnableFileAttachments": "true"}
        config |= {"EnablePostUsernameOverride": "false", "EnablePostIconOverride": "false", "SiteName": "Mattermost"}
        return answer({**config, "PostEditTimeLimit": str(self.state.edit_limit), "DefaultClientLocale": "en"})

    async def _websocket(self, request: web.Request) -> web.StreamResponse:
        token = self._token(request)
        return await self.hub.serve(request, token, self.state.user_of(token))

    async def _create_post(self, request: web.Request, user: str) -> web.StreamResponse:
        return answer(self.posts.create(user, await object_of(request, "post")), 201)

    async def _create_ephemeral(self, request: web.Request, user: str) -> web.StreamResponse:
        body = await object_of(request, "body")
        if not self.state.is_admin(user):
            raise chat_errors.no_permission()
        post = body.get("post") or {}
        return answer(self.posts.ephemeral(str(body.get("user_id")), {**post, "user_id": user}), 201)

    async def _get_post(self, request: web.Request, user: str) -> web.StreamResponse:
        return answer(self.posts.get(user, identity_in(request, "post")))

    async def _put_post(self, request: web.Request, user: str) -> web.StreamResponse:
        identity = identity_in(request, "post")
        body = await object_of(request, "post")
        if body.get("id") != identity:
            raise chat_errors.bad_body("id")
        return answer(self.posts.replace(user, identity, body))

    async def _patch_post(self, request: web.Request, user: str) -> web.StreamResponse:
        identity = identity_in(request, "post")
        return answer(self.posts.edit(user, identity, await object_of(request, "post")))

    async def _delete_post(self, request: web.Request, user: str) -> web.StreamResponse:
        self.posts.delete(user, identity_in(request, "post"))
        return answer({"status": "OK"})

    async def _get_thread(self, request: web.Request, user: str) -> web.StreamResponse:
        return answer(self.posts.thread(user, identity_in(request, "post")))

    async def _get_page(self, request: web.Request, user: str) -> web.StreamResponse:
        channel = identity_in(request, "channel")
        if not self.state.is_member(channel, user) or channel not in self.state.channels:
            raise chat_errors.no_permission()
        for key in ("since", "page", "per_page"):
            text = request.query.get(key, "")
            if text and not text.lstrip("-").isdigit():
                raise chat_errors.bad_body(key)
        return answer(self.posts.page(channel, dict(request.query)))

    async def _click(self, request: web.Request, user: str) -> web.StreamResponse:
        action = request.match_info["action"]
        if not is_action_id(action):
            raise chat_errors.no_such_page()
        body = await object_of(request, "action", optional=True)
        trigger = await self.actions.click(user, identity_in(request, "post"), action, body)
        return answer({"status": "OK", "trigger_id": trigger})

    async def _open_dialog(self, request: web.Request) -> web.StreamResponse:
        self.actions.open_dialog(await object_of(request, "dialog"))
        return answer({"status": "OK"})

    async def _submit_dialog(self, request: web.Request, user: str) -> web.StreamResponse:
        return answer(await self.actions.submit_dialog(user, await object_of(request, "dialog")))

    async def _create_command(self, request: web.Request, user: str) -> web.StreamResponse:
        return answer(self.commands.register(user, await object_of(request, "command")), 201)

    async def _list_commands(self, request: web.Request, user: str) -> web.StreamResponse:
        return answer(self.commands.listed(user, request.query.get("team_id", "")))

    async def _get_command(self, request: web.Request, user: str) -> web.StreamResponse:
        return answer(self.commands.get(user, identity_in(request, "command")))

    async def _put_command(self, request: web.Request, user: str) -> web.StreamResponse:
        identity = identity_in(request, "command")
        return answer(self.commands.overwrite(user, identity, await object_of(request, "command")))

    async def _delete_command(self, request: web.Request, user: str) -> web.StreamResponse:
        self.commands.delete(user, identity_in(request, "command"))
        return answer({"status": "OK"})

    async def _regenerate_token(self, request: web.Request, user: str) -> web.StreamResponse:
        return answer({"token": self.commands.new_token(user, identity_in(request, "command"))})

    async def _autocomplete(self, request: web.Request, _user: str) -> web.StreamResponse:
        return answer(self.commands.autocomplete(identity_in(request, "team")))

    async def _execute(self, request: web.Request, user: str) -> web.StreamResponse:
        # The address of a response_url is the one that the client called, whoever that was.
        site = f"{request.scheme}://{request.host}"
        return answer(await self.commands.execute(user, await object_of(request, "command_args"), site))

    async def _command_hook(self, request: web.Request) -> web.StreamResponse:
        sent = Answer(200, "", request.headers.get("Content-Type", ""), await request.read())
        self.commands.use_hook(request.match_info["hook"], sent)
        return web.Response(text="ok")

    async def _incoming_hook(self, request: web.Request) -> web.StreamResponse:
        hook = self.state.incoming.get(request.match_info["hook"])
        if hook is None:
            raise ChatError(400, "web.incoming_webhook.invalid.app_error", "Invalid webhook.")
        if request.content_type == "application/json":
            body = await object_of(request, "payload")
        else:
            form = await request.post()
            try:
                body = json.loads(str(form.get("payload", "")))
            except ValueError as error:
                raise ChatError(
                    400, "web.incoming_webhook.parse.app_error", "Unable to parse incoming data."
                ) from error
        self._post_from_hook(hook, body)
        return web.Response(text="ok")

    def _post_from_hook(self, hook: Json, body: Json) -> None:
        text, attachments = str(body.get("text") or ""), body.get("attachments")
        if not text and not attachments:
            raise ChatError(400, "web.incoming_webhook.text.app_error", "No text specified.")
        channel = hook["channel_id"]
        if name := body.get("channel"):
            try:
                channel = self.state.channel_named(hook["team_id"], str(name).lstrip("#"))["id"]
            except ChatError as error:
                raise ChatError(404, "web.incoming_webhook.channel.app_error", "Couldn't find the channel.") from error
        props = {**(body.get("props") or {}), "from_webhook": "true", "webhook_display_name": hook["display_name"]}
        if attachments:
            props["attachments"] = attachments
        post: Json = {
            "channel_id": channel,
            "props": props,
            "type": body.get("type") or ("slack_attachment" if attachments else ""),
        }
        # Unlike all others, a webhook's long text is cut into several posts.
        for start in range(0, max(len(text), 1), MAX_POST_SIZE):
            self.posts.create(hook["user_id"], {**post, "message": text[start : start + MAX_POST_SIZE]}, from_api=False)
