"""The Mattermost server's HTTP face: REST API v4, hooks, and the websocket.

https://api.mattermost.com/; behaviour where the documentation is silent follows mattermost-server 6.7.2. Routes are
in the tables of `chat_post_routes`, `chat_integration_routes`, `chat_people`, `chat_channels`, `chat_office` and
`chat_files`; here is what all of them share.
"""

from __future__ import annotations

import json
import re
from urllib.parse import urlsplit

from aiohttp import web

from bot.demo import chat_errors
from bot.demo.chance import Chance
from bot.demo.chat_actions import Actions
from bot.demo.chat_channels import Channels
from bot.demo.chat_commands import Commands
from bot.demo.chat_errors import ChatError
from bot.demo.chat_files import Files
from bot.demo.chat_integration_routes import IntegrationRoutes
from bot.demo.chat_integrations import Integrations
from bot.demo.chat_limits import RateLimits, add
from bot.demo.chat_office import Office
from bot.demo.chat_people import People
from bot.demo.chat_post_routes import PostRoutes
from bot.demo.chat_posts import Posts
from bot.demo.chat_requests import Handler, OpenHandler, answer, credential_of
from bot.demo.chat_socket import Hub
from bot.demo.chat_state import MAX_POST_SIZE, VERSION, ChatState
from bot.demo.clock import Clock
from bot.demo.faults import Faults

MAX_BODY = 100 * 1024 * 1024
_LETTERS = {
    **dict.fromkeys(("post", "channel", "user", "team", "file", "command", "bot", "action"), "[A-Za-z0-9]+"),
    "team_name": "[A-Za-z0-9_-]+",
    "channel_name": "[A-Za-z0-9_-]+",
    "username": "[A-Za-z0-9_.-]+",
    "email": ".+",
    "emoji": "[A-Za-z0-9_+-]+",
}
"""Of what a part of a path may consist (api4/api.go); what has other letters is no route."""


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
        api, integrations, office = "/api/v4", IntegrationRoutes(self), Office(self)
        parts = (PostRoutes(self), integrations, People(self), Channels(self), office, Files(self.state))
        table = [row for part in parts for row in part.table()]
        for method, path, handler in table:
            self.app.router.add_route(method, _route(api + path), self._with_session(handler))
        open_to_all: list[tuple[str, str, OpenHandler]] = [
            ("GET", f"{api}/system/ping", self._ping),
            ("GET", f"{api}/config/client", self._client_config),
            ("GET", f"{api}/license/client", self._client_license),
            ("GET", f"{api}/websocket", self._websocket),
            ("POST", f"{api}/users/login", office.log_in),
            *integrations.open_table(),
        ]
        for method, path, open_handler in open_to_all:
            self.app.router.add_route(method, path, self._with_errors(open_handler))
        self.app.router.add_route("*", api + "/{rest:.*}", self._with_errors(self._no_such_route))

    def _with_session(self, handler: Handler) -> OpenHandler:
        async def serve(request: web.Request) -> web.StreamResponse:
            user = self.user_of(request)
            if user is None or self._is_forgeable(request):
                raise chat_errors.session_expired()
            return await handler(request, user)

        return self._with_errors(serve)

    def _with_errors(self, handler: OpenHandler) -> OpenHandler:
        async def serve(request: web.Request) -> web.StreamResponse:
            request_id = self.state.new_id()
            try:
                if credential_of(request)[1] == "query" and self.user_of(request):
                    raise chat_errors.token_in_query()
                response = await handler(request)
            except ChatError as error:
                response = answer(error.body(request_id), error.code)
            if not response.prepared and handler != self._no_such_route:
                if request.method == "GET":
                    response.headers["Expires"] = "0"
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
        """The user of the cookie, of the Authorization header, or of the query."""
        return self.state.user_of(self._token(request)) or None

    def _token(self, request: web.Request) -> str:
        return credential_of(request)[0]

    def _is_forgeable(self, request: web.Request) -> bool:
        """Whether a page of another site could have sent it: a cookie goes with every request (checkCSRFToken).

        Personal access tokens have nothing that such a page would lack.
        """
        token, place = credential_of(request)
        by_session = place == "cookie" and token in self.state.sessions and request.method != "GET"
        return by_session and request.headers.get("X-Requested-With") != "XMLHttpRequest"

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

    async def _no_such_route(self, request: web.Request) -> web.StreamResponse:
        # Not an answer of the API: it has another content type, and no id.
        error = chat_errors.no_such_page(request.path).body("")
        del error["request_id"]
        text = json.dumps(error, ensure_ascii=False, separators=(",", ":"))
        return web.Response(status=404, text=text, content_type="text/plain")

    async def _ping(self, _request: web.Request) -> web.StreamResponse:
        versions = ("AndroidLatestVersion", "AndroidMinVersion", "IosLatestVersion", "IosMinVersion")
        return answer({**dict.fromkeys(versions, ""), "status": "OK"})

    async def _client_config(self, request: web.Request) -> web.StreamResponse:
        self._require_old_format(request, "config")
        config = {"Version": VERSION, "BuildNumber": "embedded", "SiteURL": self.url, "SiteName": "Mattermost"}
        config |= {"DefaultClientLocale": "en", "WebsocketURL": ""}
        if self.user_of(request) is not None:
            config |= {"MaxPostSize": str(MAX_POST_SIZE), "PostEditTimeLimit": str(self.state.edit_limit)}
            config |= dict.fromkeys(("EnableCommands", "EnableIncomingWebhooks", "EnableFileAttachments"), "true")
            config |= dict.fromkeys(("EnablePostUsernameOverride", "EnablePostIconOverride"), "false")
            config |= {"EnableUserAccessTokens": "true", "EnableBotAccountCreation": "true"}
            config |= {"MaxFileSize": str(MAX_BODY), "TeammateNameDisplay": "username", "CollapsedThreads": "disabled"}
        return answer(config)

    async def _client_license(self, request: web.Request) -> web.StreamResponse:
        self._require_old_format(request, "license")
        return answer({"IsLicensed": "false"})

    def _require_old_format(self, request: web.Request, what: str) -> None:
        wanted = request.query.get("format", "")
        if not wanted:
            text = f"New format for the client {'configuration' if what == 'config' else what} is not supported yet."
            text += " Please specify format=old in the query string."
            raise ChatError(501, f"api.{what}.client.old_format.app_error", text)
        if wanted != "old":
            raise chat_errors.bad_body("format")

    async def _websocket(self, request: web.Request) -> web.StreamResponse:
        if "websocket" not in request.headers.get("Upgrade", "").lower():
            text = "Failed to upgrade websocket connection."
            error = ChatError(500, "api.web_socket.connect.upgrade.app_error", text).body(self.state.new_id())
            return web.Response(status=400, text=f"Bad Request\n{json.dumps(error)}")
        origin = request.headers.get("Origin", "")
        if origin and urlsplit(origin).netloc.lower() != request.host.lower():
            return web.Response(status=403, text="Forbidden\n")
        token = self._token(request)
        return await self.hub.serve(request, token, self.state.user_of(token))


def _route(path: str) -> str:
    """The path with the letters that each part of it may have, as aiohttp writes them."""
    return re.sub(r"\{(\w+)\}", lambda part: f"{{{part[1]}:{_LETTERS[part[1]]}}}", path)
