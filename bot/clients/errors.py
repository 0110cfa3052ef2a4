"""What can go wrong on a wire, by what the caller has to do about it.

WireError
├── Unconfigured     there is no usable address or token
├── Unreachable      nothing was sent, or nothing came back; `uncertain` tells which
├── Throttled        the server asks to wait (429); nothing was done
├── ServerFault      5xx; it may or may not have been done
├── NotFound         404
├── Conflict         409
├── Invalid          400 or 422: the same request will fail again
├── Forbidden        401 or 403
└── Gone             410: the place in the list or the watch is lost
"""

from __future__ import annotations

import time
from datetime import UTC
from email.utils import parsedate_to_datetime


class WireError(Exception):
    """A call that did not succeed. `reason` is plain words without secrets; `code` is the system's own error id."""

    def __init__(self, reason: str, *, code: str = "", retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.retry_after = retry_after


class Unconfigured(WireError):
    pass


class Unreachable(WireError):
    def __init__(self, reason: str, *, uncertain: bool) -> None:
        super().__init__(reason)
        self.uncertain = uncertain


class Throttled(WireError):
    pass


class ServerFault(WireError):
    pass


class NotFound(WireError):
    pass


class Conflict(WireError):
    pass


class Invalid(WireError):
    pass


class Forbidden(WireError):
    pass


class Gone(WireError):
    pass


_BY_STATUS: dict[int, type[WireError]] = {
    400: Invalid,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    405: Invalid,
    409: Conflict,
    410: Gone,
    413: Invalid,
    422: Invalid,
    429: Throttled,
    501: Invalid,
}


def of_status(status: int, reason: str, *, code: str = "", retry_after: str | None = None) -> WireError:
    """The error for an HTTP status. `retry_after`: the header's value, in seconds or as a date (RFC 9110 10.2.3)."""
    kind = _BY_STATUS.get(status, ServerFault)
    seconds = _seconds(retry_after or "")
    return kind(reason, code=code, retry_after=min(max(seconds, 0.0), 300.0) if seconds is not None else None)


def _seconds(text: str) -> float | None:
    # with two limiters in a row some servers send the header twice, joined by a comma
    first = text.split(",", maxsplit=1)[0].strip()
    if first.isdecimal():
        return float(first)
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    # a date without a zone is UTC, as all of HTTP's are
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - time.time()
