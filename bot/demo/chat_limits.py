"""Rate limiting, as a Mattermost server does it where it is switched on; by itself it is not.

mattermost-server 6.7.2 `app/ratelimit.go`, by the algorithm of throttled (GCRA): a bucket of `burst` + 1 requests that
fills again at `per_second`. It stands before everything else, hooks and the websocket's upgrade included, and knows
nothing of JSON.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp import web

from bot.demo.clock import Clock

Headers = list[tuple[str, str]]


@dataclass
class RateLimits:
    """RateLimitSettings: PerSec, MaxBurst, VaryByUser; without the last all of this machine share one bucket."""

    clock: Clock
    per_second: float = 10.0
    burst: int = 100
    by_user: bool = False
    _full_at: dict[str, float] = field(default_factory=dict)
    """Key -> when its bucket is full again, in the time that clients feel."""

    def take(self, key: str) -> tuple[bool, Headers]:
        """Count a request; whether it may pass, and what the server says about it."""
        now, interval = self.clock.wire_time(), 1.0 / self.per_second
        room = interval * (self.burst + 1)
        before = max(now, self._full_at.get(key, now))
        early = before + interval - room - now
        passes = early <= 1e-9
        if passes:
            self._full_at[key] = before + interval
        wait = self._full_at.get(key, now) - now
        headers = [
            ("X-RateLimit-Limit", str(self.burst + 1)),
            ("X-RateLimit-Remaining", str(max(0, math.floor((room - wait) / interval + 1e-9)))),
            ("X-RateLimit-Reset", str(math.ceil(wait))),
        ]
        return passes, headers if passes else [*headers, ("Retry-After", str(math.ceil(early)))]

    def check(self, token: str, user: str, *, known_route: bool = True) -> tuple[web.Response | None, Headers]:
        """The refusal, None for none, and the headers of the answer.

        Where it varies by user, a token on a route that there is counts twice: for itself and for its user, and all
        tokens of nobody share one bucket there. The second adds its headers to the first (web/handlers.go).
        """
        keys = ["address"]
        if self.by_user and token:
            keys = [f"token {token}", *([f"user {user}"] if known_route else [])]
        headers: Headers = []
        for key in keys:
            passes, said = self.take(key)
            headers += said
            if not passes:
                return _refusal(headers), headers
        return None, headers


def add(headers: Headers, response: web.StreamResponse) -> None:
    """Write them on an answer that has not begun; those of the same name beside each other."""
    for name, value in headers if not response.prepared else ():
        response.headers.add(name, value)


def _refusal(headers: Headers) -> web.Response:
    more: Mapping[str, str] = {"X-Content-Type-Options": "nosniff"}
    response = web.Response(status=429, text="limit exceeded\n", content_type="text/plain", headers=more)
    add(headers, response)
    return response
