"""What an HTTP status comes down to, and how long to wait."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from bot.clients.errors import Forbidden, Invalid, ServerFault, Throttled, of_status


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("7", 7.0),
        ("0", 0.0),
        ("1, 1", 1.0),
        ("86400", 300.0),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("Mon, 02 Mar 2026 10:06:00 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 300.0),
        ("Mon, 99 Foo 2026 10:06:00 GMT", None),
    ],
)
def test_how_long_to_wait(header: str | None, seconds: float | None) -> None:
    """Seconds or a date, never below none, never longer than five minutes; what can't be read says nothing."""
    assert seconds == of_status(429, "busy", retry_after=header).retry_after


def test_a_date_is_a_wait_from_now() -> None:
    """It is the server's clock against ours."""
    after = of_status(503, "busy", retry_after=formatdate(time.time() + 60, usegmt=True)).retry_after

    assert after is not None
    assert 50 < after <= 60


@pytest.mark.parametrize(
    ("status", "kind"), [(401, Forbidden), (429, Throttled), (501, Invalid), (502, ServerFault), (599, ServerFault)]
)
def test_what_a_status_comes_down_to(status: int, kind: type[Exception]) -> None:
    """By what the caller has to do about it."""
    assert kind is type(of_status(status, "x"))
