"""What is logged, and what is not."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

import pytest

from bot.logs import SECRET_KEYS, log, redact, set_up


@pytest.fixture
def stream() -> io.StringIO:
    """Where the log goes."""
    return io.StringIO()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    """The log, decoded."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize("key", sorted(SECRET_KEYS))
def test_secrets_are_blotted_out(key: str) -> None:
    """Whatever they hold, in whatever case their name is written; the rest stays."""
    event = redact(None, "info", {key: "s3cret", key.upper(): ["s3cret"], "event": "x", "run": "k7m2"})

    assert {key: "***", key.upper(): "***", "event": "x", "run": "k7m2"} == event


def test_an_event_is_one_line_of_json(stream: io.StringIO) -> None:
    """With its level, its time and its context; a secret stays out of it."""
    set_up(stream=stream)
    log(part="loop").info("two\nlines", token="s3cret", run="k7m2")
    (line,) = lines(stream)

    assert ("two\nlines", "info", "loop", "k7m2", "***") == tuple(
        line[key] for key in ("event", "level", "part", "run", "token")
    )
    assert line["timestamp"].endswith("Z")
    assert "s3cret" not in stream.getvalue()


def test_a_traceback_stays_in_its_line(stream: io.StringIO) -> None:
    """The whole chain, in one field."""
    set_up(stream=stream)
    try:
        raise RuntimeError("inner") from ValueError("cause")
    except RuntimeError:
        log().exception("it broke")
    (line,) = lines(stream)

    assert "ValueError: cause" in line["exception"]
    assert "RuntimeError: inner" in line["exception"]


def test_what_is_below_the_level_is_not_written(stream: io.StringIO) -> None:
    """As the configuration has it."""
    set_up("WARNING", stream=stream)
    log().info("chatter")
    log().warning("mind this")

    assert ["mind this"] == [line["event"] for line in lines(stream)]


def test_libraries_that_log_texts_of_errors_are_silent(stream: io.StringIO) -> None:
    """They hold what the server said, tokens included; others are heard from WARNING up."""
    set_up(stream=stream)
    logging.getLogger("mattermostdriver.client").error("Bearer s3cret")
    logging.getLogger("urllib3").warning("https://x?token=s3cret")
    logging.getLogger("other").warning("heard")
    logging.getLogger("other").info("not heard")

    assert "s3cret" not in stream.getvalue()
    assert "heard" in stream.getvalue()
    assert "not heard" not in stream.getvalue()


def test_a_person_at_a_terminal_reads_plain_words(stream: io.StringIO) -> None:
    """No JSON, and no secret either."""
    set_up(pretty=True, stream=stream)
    log().info("started", port=8080, password="s3cret")

    assert "started" in stream.getvalue()
    assert "8080" in stream.getvalue()
    assert "s3cret" not in stream.getvalue()
    assert not stream.getvalue().startswith("{")
