"""Mattermost: mattermostdriver over a pooled session of ours, run in threads.

The driver opens a connection per call, knows no timeout and drops status and error id of what it raises, so its client
is replaced at the seam it offers (`client_cls`). Pools of threads keep answers, edits and checks apart: twenty slow
edits must not hold up one dialog, nor a sweep one card. A thread can't be cancelled and a timeout of `requests` is per
read, so every call has a total deadline of its own here; a result that comes later is dropped.

API: https://api.mattermost.com (v4)
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Literal
from urllib.parse import quote, urlsplit

import requests
from mattermostdriver import Driver
from mattermostdriver.client import Client
from requests.adapters import HTTPAdapter

from bot.clients.errors import ServerFault, Unreachable, WireError, of_status
from bot.core.nesting import loads
from bot.metrics import Metrics

CONNECT_TIMEOUT, READ_TIMEOUT = 3.05, 8.0
DEADLINE = 10.0
"""Total seconds of one call."""

PER_PAGE = 200
"""Posts a page when looking for a card. Pages of 30 and 60 come from a cache, 200 does not (post_layer.go)."""

Lane = Literal["answers", "edits", "checks"]
_HOOK_ID = re.compile(r"[A-Za-z0-9]{26}")


@dataclass(frozen=True)
class StoredPost:
    """A post as the server keeps it, as far as we look."""

    id: str
    user_id: str
    create_at: float
    root_id: str
    deleted: bool
    props: dict[str, Any]
    message: str = ""
    replies: int = 0


class PooledClient(Client):  # type: ignore[misc]  # the driver carries no types
    """The driver's client over one kept-alive session a thread, with timeouts and errors that tell something."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__(options)
        self._local = threading.local()

    def make_request(  # the driver's own signature
        self,
        method: str,
        endpoint: str,
        options: Any = None,
        params: Any = None,
        data: Any = None,
        files: Any = None,
        basepath: str | None = None,
    ) -> requests.Response:
        """One request.

        Raises:
            WireError: as `errors` has them.
        """
        base = self.url
        if basepath is not None:
            base = f"{self._options['scheme']}://{self._options['url']}:{self._options['port']}{basepath}"
        try:
            response = self._session().request(
                method,
                base + endpoint,
                headers=self.auth_header(),
                # a body on GET and DELETE makes some proxies refuse the request
                json=options if method.lower() in {"post", "put"} and not (data or files) else None,
                params=params,
                data=data,
                files=files,
                verify=self._options["verify"],
                timeout=(CONNECT_TIMEOUT, READ_TIMEOUT),
            )
        except requests.ConnectTimeout as error:
            raise Unreachable("Mattermost cannot be reached: no answer to a connection", uncertain=False) from error
        except requests.exceptions.SSLError as error:
            reason = "Mattermost cannot be reached: TLS failed (plain http there, or a certificate for ca_file?)"
            raise Unreachable(reason, uncertain=False) from error
        except requests.ConnectionError as error:
            raise _no_connection(error) from error
        except requests.RequestException as error:
            raise Unreachable("Mattermost did not answer", uncertain=True) from error
        if response.status_code >= 300:
            raise _error(response)
        return response

    def get(self, endpoint: str, options: Any = None, params: Any = None) -> Any:
        """One read, decoded. The driver's own gives out the bare response where a proxy names the type otherwise.

        Raises:
            WireError: as `errors` has them.
        """
        return _body(self.make_request("get", endpoint, options=options, params=params))

    def _session(self) -> requests.Session:
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is None:
            session = requests.Session()
            adapter = HTTPAdapter(pool_connections=1, pool_maxsize=1, max_retries=0)
            session.mount("http://", adapter)
            session.mount("https://", adapter)
            # a session cookie would beat the token, and then want a CSRF header (authentication.go)
            session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
            self._local.session = session
        return session


@dataclass
class _Wanted:
    """A read of a channel that has not begun, and how far back it has to go (Unix seconds)."""

    read: asyncio.Task[list[StoredPost]]
    since: float


def _no_connection(error: requests.ConnectionError) -> Unreachable:
    """Before the request was sent where the name or the port is wrong; else it may have come there."""
    shown = repr(error)
    if "NameResolutionError" in shown or "Name or service not known" in shown:
        return Unreachable("Mattermost cannot be reached: there is no such host", uncertain=False)
    if "NewConnectionError" in shown or "refused" in shown:
        return Unreachable("Mattermost cannot be reached: nothing listens there", uncertain=False)
    return Unreachable("Mattermost cannot be reached: the connection broke off", uncertain=True)


class Mattermost:
    """What the bot does in Mattermost, as its own user."""

    def __init__(self, url: str, token: str, metrics: Metrics, *, verify: bool | str = True) -> None:
        parts = urlsplit(url)
        scheme = parts.scheme or "https"
        self._driver = Driver(
            {
                "scheme": scheme,
                "url": parts.hostname or "localhost",
                "port": parts.port or (443 if scheme == "https" else 80),
                "basepath": parts.path.rstrip("/") + "/api/v4",
                "verify": verify,
                "token": token,
            },
            client_cls=PooledClient,
        )
        self._driver.client.token = token
        self._subpath = parts.path.rstrip("/")
        self._metrics = metrics
        self._lanes: dict[Lane, ThreadPoolExecutor] = {
            "answers": ThreadPoolExecutor(4, thread_name_prefix="mattermost-answers"),
            "edits": ThreadPoolExecutor(8, thread_name_prefix="mattermost-edits"),
            "checks": ThreadPoolExecutor(2, thread_name_prefix="mattermost-checks"),
        }
        self._wanted: dict[str, _Wanted] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self.user_id = ""
        self.user_name = ""

    def close(self) -> None:
        """Let the threads end; calls under way are not waited for."""
        for wanted in self._wanted.values():
            wanted.read.cancel()
        for pool in self._lanes.values():
            pool.shutdown(wait=False, cancel_futures=True)

    async def sign_in(self) -> str:
        """The bot's own user id; fails where the token does not work.

        Raises:
            WireError: Forbidden for a token that is revoked or wrong.
        """
        me = await self._call("answers", "me", lambda: self._driver.users.get_user("me"))
        self.user_id, self.user_name = str(me["id"]), str(me.get("username", ""))
        return self.user_id

    async def channel_id(self, team: str, channel: str) -> str:
        """The id of a channel by the names in its address. NotFound where the bot can't see it.

        An archived one counts: it may be restored, and until then the bot serves everything else.
        """
        path = f"/teams/name/{quote(team, safe='')}/channels/name/{quote(channel, safe='')}"
        found = await self.request("channel", "get", path, query={"include_deleted": "true"})
        return str(found["id"])

    async def post(self, body: dict[str, Any], may: Callable[[], bool]) -> str:
        """Create a post; `may` is asked in the worker thread, right before the write. Returns its id."""
        created = await self._call("edits", "post", lambda: self._driver.posts.create_post(body), may)
        return str(created["id"])

    async def edit(self, post: str, body: dict[str, Any], may: Callable[[], bool]) -> None:
        """Replace message and props of one of our posts."""
        await self._call("edits", "edit", lambda: self._driver.posts.patch_post(post, body), may)

    async def delete(self, post: str, may: Callable[[], bool]) -> None:
        """Delete one of our posts."""
        await self._call("edits", "delete", lambda: self._driver.posts.delete_post(post), may)

    async def thread(self, post: str, lane: Lane = "edits") -> list[StoredPost]:
        """A post and its replies. NotFound where the root was deleted."""
        found = await self._call(lane, "thread", lambda: self._driver.posts.get_thread(post))
        return [_stored(p) for p in (found.get("posts") or {}).values()]

    async def roots(self, channel: str, since: float) -> list[StoredPost]:
        """Our own root posts of a channel, newest first, back to `since` (Unix seconds)."""
        return [p for p in await self._roots(channel, since) if p.user_id == self.user_id]

    async def webhook_posts(self, channel: str, since: float) -> list[StoredPost]:
        """Posts that came through an incoming webhook, newest first, back to `since` (Unix seconds)."""
        return [p for p in await self._roots(channel, since) if p.props.get("from_webhook") == "true"]

    async def _roots(self, channel: str, since: float) -> list[StoredPost]:
        """Root posts of a channel, newest first.

        A sweep asks once for each of its runs. Whoever asks while a read is under way shares the next one with all
        others who do: each is answered by a read that began after it had asked, and they cost two reads, not hundreds.
        """
        wanted = self._wanted.get(channel)
        if wanted is None:
            read = asyncio.get_running_loop().create_task(self._read_roots(channel), name=f"roots of {channel}")
            read.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may be left to ask
            wanted = self._wanted[channel] = _Wanted(read, since)
        wanted.since = min(wanted.since, since)
        posts = await asyncio.shield(wanted.read)
        return [p for p in posts if p.create_at >= since]

    async def _read_roots(self, channel: str) -> list[StoredPost]:
        async with self._turns.setdefault(channel, asyncio.Lock()):
            since = self._wanted.pop(channel).since
            roots: list[StoredPost] = []
            page = 0
            while True:
                params = {"collapsedThreads": "true", "per_page": PER_PAGE, "page": page}
                found = await self._call(
                    "edits", "roots", partial(self._driver.posts.get_posts_for_channel, channel, params)
                )
                posts = [_stored(found["posts"][post]) for post in found.get("order") or []]
                roots += [p for p in posts if not p.root_id and not p.deleted]
                if len(posts) < PER_PAGE or posts[-1].create_at < since:
                    return roots
                page += 1

    async def open_dialog(self, trigger_id: str, url: str, dialog: dict[str, Any]) -> None:
        """Show a form to the person whose trigger it is.

        Raises:
            WireError: Invalid once the trigger is expired (three seconds on servers of the 6 series).
        """
        body = {"trigger_id": trigger_id, "url": url, "dialog": dialog}
        await self._call(
            "answers", "dialog", lambda: self._driver.client.make_request("post", "/actions/dialogs/open", options=body)
        )

    async def user_ids(self, names: list[str]) -> dict[str, str]:
        """The ids of users by their names; names that nobody has are left out."""
        if not names:
            return {}
        found = await self._call("answers", "users", lambda: self._driver.users.get_users_by_usernames(names))
        return {str(user["username"]): str(user["id"]) for user in found}

    async def request(
        self,
        operation: str,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: Any = None,
    ) -> Any:
        """One request by its path, for what the driver lacks or builds wrongly; returns the decoded body.

        Raises:
            WireError: as `errors` has them.
        """

        def send() -> Any:
            return _body(self._driver.client.make_request(method, path, options=body, params=query))

        return await self._call("edits", operation, send)

    async def respond(self, response_url: str, text: str) -> None:
        """Answer a slash command late, to the one who typed it.

        The address is built from a header that the *user's* client sends, so only its last part is believed and the
        rest is ours (api4/command.go). It lives for 30 minutes and five uses.
        """
        hook = response_url.rsplit("/", 1)[-1]
        if not _HOOK_ID.fullmatch(hook):
            return
        body = {"response_type": "ephemeral", "text": text, "skip_slack_parsing": True}

        def send() -> Any:
            return self._driver.client.make_request(
                "post", f"/hooks/commands/{hook}", options=body, basepath=self._subpath
            )

        await self._call("answers", "respond", send)

    async def _call(
        self, lane: Lane, operation: str, call: Callable[[], Any], may: Callable[[], bool] | None = None
    ) -> Any:
        started = time.monotonic()
        outcome = "error"

        def guarded() -> Any:
            if time.monotonic() - started > DEADLINE:
                raise Unreachable("Mattermost is too slow at the moment", uncertain=False)
            if may is not None and not may():
                raise Unreachable("another replica speaks now", uncertain=False)
            return call()

        try:
            future = asyncio.get_running_loop().run_in_executor(self._lanes[lane], guarded)
            # not wait_for: that of Python 3.11 swallows a cancellation that comes together with the result
            async with asyncio.timeout(DEADLINE):
                result = await future
            outcome = "ok"
        except TimeoutError as error:
            outcome = "timeout"
            raise Unreachable("Mattermost did not answer in time", uncertain=True) from error
        except WireError as error:
            outcome = type(error).__name__
            raise
        finally:
            self._metrics.calls.labels("mattermost", operation, outcome).observe(time.monotonic() - started)
        return result


def _stored(post: dict[str, Any]) -> StoredPost:
    return StoredPost(
        id=str(post["id"]),
        user_id=str(post.get("user_id", "")),
        create_at=float(post.get("create_at", 0)) / 1000,
        root_id=str(post.get("root_id") or ""),
        deleted=bool(post.get("delete_at")),
        props=post.get("props") or {},
        message=str(post.get("message") or ""),
        replies=int(post.get("reply_count") or 0),
    )


def _body(response: requests.Response) -> Any:
    try:
        return loads(response.content)
    except ValueError as error:
        raise ServerFault("Mattermost answered with something that is no JSON") from error


def _error(response: requests.Response) -> WireError:
    try:
        body = response.json()
        message, code = str(body.get("message") or ""), str(body.get("id") or "")
    except (json.JSONDecodeError, requests.JSONDecodeError, AttributeError):
        message, code = "", ""
    reason = f"Mattermost answered {response.status_code}" + (f": {message}" if message else "")
    if not code and response.status_code in {400, 403, 404}:
        # every error of Mattermost has an id (model.AppError); something before it has answered, and knows nothing
        return ServerFault(f"{reason} without its reason")
    return of_status(response.status_code, reason, code=code, retry_after=response.headers.get("Retry-After"))
