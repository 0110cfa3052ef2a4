"""Watches: a stream of JSON lines, one for each change.

https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes; what is sent when an
object begins or ceases to match a selector follows k8s.io/apiserver `pkg/storage/cacher/cache_watcher.go`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from aiohttp import web

from bot.demo import kube_views, status
from bot.demo.kinds import PODS, WORKFLOWS, Kind
from bot.demo.kube_options import check_list, flag, number
from bot.demo.selectors import Match
from bot.demo.status import ApiError
from bot.demo.world import Change

if TYPE_CHECKING:
    from bot.demo.kube_api import KubeApi

Json = dict[str, Any]
BOOKMARK_EVERY = 60.0
"""Real seconds between bookmarks, as the watch cache of the API server sends them."""
BOOKMARK_BEFORE_END = 2.0
"""Real seconds before the end of a watch at which a last one is sent."""


async def serve_watch(api: KubeApi, request: web.Request, kind: Kind, match: Match) -> web.StreamResponse:
    """Answer a watch: everything since resourceVersion, or first the present state when it is absent or 0.

    A resourceVersion that is forgotten gets an ERROR event of code 410 in a stream of status 200. Raises ApiError: 422
    for parameters that do not go together, 500 for a resourceVersion that is none.
    """
    query = request.query
    check_list(query, watch=True)
    if kube_views.wants_yaml(request.headers.get("Accept", "")):
        raise status.not_acceptable("only the following media types are accepted: application/json;stream=watch")
    seconds = number(query, "timeoutSeconds") or 1800
    if (version := query.get("resourceVersion", "")) and not version.isdecimal():
        raise ApiError(500, "", status.bad_version(version))
    watch = _Watch(api, request, kind, match)
    unsubscribe = api.store.subscribe(watch.on_change)
    try:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        try:
            first = list(_first_lines(api, watch, query.get("resourceVersion", "")))
        except ApiError as error:
            await response.prepare(request)
            await response.write(_line("ERROR", json.dumps(error.status).encode()))
            await response.write_eof()
            return response
        await response.prepare(request)
        await watch.send(response, first)
        await watch.run(response, seconds)
    finally:
        unsubscribe()
    return response


def _first_lines(api: KubeApi, watch: _Watch, revision: str) -> Iterator[bytes]:
    if api.gone_next > 0:
        api.gone_next -= 1
        raise status.expired(f"too old resource version: {revision or 0} ({api.store.revision})")
    if watch.begins or (watch.begins is None and revision in ("", "0")):
        for obj in api.store.all(watch.kind):
            if watch.match(obj):
                yield watch.line("ADDED", obj)
        watch.has_news = True
        watch.begun = True
        if watch.begins and watch.bookmarks:
            yield watch.bookmark()
        return
    if revision in ("", "0"):
        return
    for change in api.store.since(watch.kind, int(revision)):
        if line := watch.line_of(change):
            yield line


class _Watch:
    def __init__(self, api: KubeApi, request: web.Request, kind: Kind, match: Match) -> None:
        self.api = api
        self.kind = kind
        self.match = match
        self.bookmarks = flag(request.query, "allowWatchBookmarks")
        self.begins = flag(request.query, "sendInitialEvents") if "sendInitialEvents" in request.query else None
        """Whether the present state comes first; None: where there is no version to begin at."""
        self._view = kube_views.wanted_view(request.headers.get("Accept", ""))
        self._include = request.query.get("includeObject", "Metadata")
        self._request = request
        self.begun = False
        """Whether the present state was sent, and no bookmark since."""
        self._named = False
        self._pending: list[bytes] = []
        self._news = asyncio.Event()
        self._cut = False
        self.has_news = False
        """Whether there was anything since the beginning: without it there is no bookmark."""

    def on_change(self, change: Change) -> None:
        if change.kind != self.kind:
            return
        self.has_news = True
        if line := self.line_of(change):
            self._pending.append(line)
            self._news.set()

    def line_of(self, change: Change) -> bytes | None:
        """The event for a change as this selector sees it."""
        before = change.previous is not None and self.match(change.previous)
        now = change.type != "DELETED" and self.match(change.object)
        if now and not before:
            return self.line("ADDED", change.object, change)
        if now:
            return self.line("MODIFIED", change.object, change)
        if before and change.previous is not None:
            # The last state that matched, at the revision of the change.
            last = change.previous if change.type != "DELETED" else change.object
            meta = {**last["metadata"], "resourceVersion": str(change.revision)}
            return self.line("DELETED", {**last, "metadata": meta})
        return None

    def line(self, what: str, obj: Json, change: Change | None = None) -> bytes:
        if self._view == "Table":
            version = {"resourceVersion": obj["metadata"]["resourceVersion"]}
            obj = kube_views.table(self.kind, [obj], version, self.api.store.clock.now(), self._include)
            # The first table of a stream names the columns for all of them.
            obj["columnDefinitions"], self._named = None if self._named else obj["columnDefinitions"], True
        elif self._view.startswith("PartialObjectMetadata"):
            obj = kube_views.partial(obj)
        elif change is not None:
            return _line(what, change.encoded)
        return _line(what, json.dumps(obj, separators=(",", ":"), ensure_ascii=False).encode())

    async def run(self, response: web.StreamResponse, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        next_bookmark = min(loop.time() + BOOKMARK_EVERY, max(loop.time(), end - BOOKMARK_BEFORE_END))
        self.api.faults.stream_opened(self._on_cut)
        self.api.bookmark_callbacks.add(self._bookmark)
        try:
            while loop.time() < end and not self._cut:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(min(end, next_bookmark)):
                        await self._news.wait()
                self._news.clear()
                if loop.time() >= next_bookmark:
                    last = end - BOOKMARK_BEFORE_END
                    next_bookmark = min(next_bookmark + BOOKMARK_EVERY, last) if next_bookmark < last else end + 1.0
                    if self.has_news:
                        self._bookmark()
                await self._flush(response)
            if not self._cut:
                await self._flush(response)
                await response.write_eof()
            elif self._request.transport is not None:
                self._request.transport.abort()
        finally:
            self.api.faults.stream_closed(self._on_cut)
            self.api.bookmark_callbacks.discard(self._bookmark)

    def _on_cut(self) -> None:
        self._cut = True
        self._news.set()

    async def _flush(self, response: web.StreamResponse) -> None:
        pending, self._pending = self._pending, []
        await self.send(response, pending)

    async def send(self, response: web.StreamResponse, lines: list[bytes]) -> None:
        for line in lines:
            if self.api.half_lines > 0:
                self.api.half_lines -= 1
                await response.write(line[: len(line) // 2])
                if self._request.transport is not None:
                    self._request.transport.close()
                raise ConnectionResetError("the watch was cut in the middle of a line")
            await response.write(line)

    def _bookmark(self) -> None:
        if self.bookmarks:
            self._pending.append(self.bookmark())
            self._news.set()

    def bookmark(self) -> bytes:
        """A BOOKMARK of now; the first one after the present state says that it is that."""
        obj: Json = {"kind": self.kind.kind, "apiVersion": self.kind.api_version}
        obj["metadata"] = {"resourceVersion": str(self.api.store.revision), "creationTimestamp": None}
        if self.begun:
            self.begun = False
            obj["metadata"]["annotations"] = {"k8s.io/initial-events-end": "true"}
        # The zero values of Go's types travel with it, and are no state of anything.
        if self.kind == PODS:
            obj |= {"spec": {"containers": None}, "status": {}}
        elif self.kind == WORKFLOWS:
            obj |= {"spec": {"arguments": {}}, "status": {"startedAt": None, "finishedAt": None}}
        if self._view.startswith("PartialObjectMetadata"):
            obj = kube_views.partial(obj)
        return _line("BOOKMARK", json.dumps(obj, separators=(",", ":")).encode())


def _line(what: str, obj: bytes) -> bytes:
    return b'{"type":"' + what.encode() + b'","object":' + obj + b"}\n"
