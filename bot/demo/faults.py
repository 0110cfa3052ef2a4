"""Switches that break a server on purpose.

Each fault is armed for requests that match a method and a path, a number of times or until it is cleared. They are
the same for both servers; what an error body looks like is each server's own business.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import web

from bot.demo.clock import Clock

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
ErrorBody = Callable[[int, int | None], web.Response]
"""Makes the answer for a status code and a Retry-After."""


@dataclass
class Fault:
    """One armed fault; `times` left, None for ever."""

    what: str
    method: str = ""
    path: re.Pattern[str] = field(default_factory=lambda: re.compile(""))
    times: int | None = 1
    status: int = 500
    retry_after: int | None = None
    seconds: float = 0.0
    body: str | None = None
    content_type: str = "text/plain"
    released: asyncio.Event = field(default_factory=asyncio.Event)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a request has met this fault, so that a test can wait for it."""
    hits: int = 0

    def release(self) -> None:
        """Let held requests go on, and disarm."""
        self.times = 0
        self.released.set()

    def meets(self, request: web.Request) -> bool:
        """Whether this request is to fail."""
        if self.times == 0 or (self.method and self.method != request.method):
            return False
        return self.path.search(request.path_qs) is not None


class Faults:
    """The faults of one server."""

    def __init__(self, clock: Clock, error_body: ErrorBody) -> None:
        self._clock = clock
        self._error_body = error_body
        self._armed: list[Fault] = []
        self._streams: set[Callable[[], None]] = set()
        self.is_away = False

    def away(self, away: bool = True) -> None:
        """Cut every connection at once and take no more, or come back."""
        self.is_away = away
        if away:
            self.cut_streams()

    def fail(
        self,
        status: int = 500,
        *,
        method: str = "",
        path: str = "",
        times: int | None = 1,
        retry_after: int | None = None,
        body: str | None = None,
        content_type: str = "text/html",
    ) -> Fault:
        """Answer with an error and do nothing; `body` stands for a proxy's page in place of the server's own error."""
        fault = self._arm("fail", method, path, times)
        fault.status, fault.retry_after, fault.body, fault.content_type = status, retry_after, body, content_type
        return fault

    def too_many(self, retry_after: int = 1, *, method: str = "", path: str = "", times: int | None = 1) -> Fault:
        """Answer 429 with Retry-After."""
        return self.fail(429, method=method, path=path, times=times, retry_after=retry_after)

    def delay(self, seconds: float, *, method: str = "", path: str = "", times: int | None = 1) -> Fault:
        """Answer late."""
        fault = self._arm("delay", method, path, times)
        fault.seconds = seconds
        return fault

    def hold(self, *, method: str = "", path: str = "", times: int | None = 1) -> Fault:
        """Keep the request waiting until `release`; `arrived` tells that it came."""
        return self._arm("hold", method, path, times)

    def hold_answer(self, *, method: str = "", path: str = "", times: int | None = 1) -> Fault:
        """Do the work, and keep the answer back until `release`."""
        return self._arm("hold_answer", method, path, times)

    def drop(self, *, method: str = "", path: str = "", times: int | None = 1) -> Fault:
        """Close the connection and do nothing."""
        return self._arm("drop", method, path, times)

    def drop_after_commit(self, *, method: str = "", path: str = "", times: int | None = 1) -> Fault:
        """Do the work, then close the connection before the answer: the client cannot know the outcome."""
        return self._arm("drop_after_commit", method, path, times)

    def cut_streams(self) -> None:
        """Cut all watches, log streams and websockets now."""
        for stream in list(self._streams):
            stream()

    def clear(self) -> None:
        """Disarm everything and come back."""
        for fault in self._armed:
            fault.release()
        self._armed.clear()
        self.is_away = False

    def stream_opened(self, cut: Callable[[], None]) -> None:
        """Register what cuts a stream."""
        self._streams.add(cut)

    def stream_closed(self, cut: Callable[[], None]) -> None:
        """The stream is over."""
        self._streams.discard(cut)

    async def around(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Serve a request with whatever is armed for it."""
        if self.is_away:
            return _abort(request)
        dropped = False
        answer_held: Fault | None = None
        for fault in self._take(request):
            match fault.what:
                case "fail":
                    if fault.body is not None:
                        return web.Response(status=fault.status, text=fault.body, content_type=fault.content_type)
                    return self._error_body(fault.status, fault.retry_after)
                case "delay":
                    await self._clock.wire_sleep(fault.seconds)
                case "hold":
                    await fault.released.wait()
                case "drop":
                    return _abort(request)
                case "drop_after_commit":
                    dropped = True
                case "hold_answer":
                    answer_held = fault
        try:
            response = await handler(request)
        except ConnectionError:
            return _abort(request)  # who asked is gone
        if answer_held is not None:
            await answer_held.released.wait()
        return _abort(request) if dropped or self.is_away else response

    def _arm(self, what: str, method: str, path: str, times: int | None) -> Fault:
        fault = Fault(what, method, re.compile(path), times)
        self._armed.append(fault)
        return fault

    def _take(self, request: web.Request) -> list[Fault]:
        taken = [fault for fault in self._armed if fault.meets(request)]
        for fault in taken:
            fault.hits += 1
            if fault.times is not None:
                fault.times -= 1
            fault.arrived.set()
        self._armed = [fault for fault in self._armed if fault.times != 0]
        return taken


def _abort(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)
