"""One line of JSON an event, to standard error; no secret in any of them."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog

SECRET_KEYS = frozenset({"token", "authorization", "password", "secret", "cookie", "response_url", "trigger_id"})
"""Fields whose value is never written, whatever it is."""


def redact(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Blot out the fields that hold secrets by their name."""
    for key in event:
        if key.lower() in SECRET_KEYS:
            event[key] = "***"
    return event


def set_up(level: str = "INFO", *, pretty: bool = False, stream: TextIO | None = None) -> None:
    """Configure logging for the process. `pretty`: for a person at a terminal; `stream` in place of standard error."""
    stream = stream or sys.stderr
    renderer: Any = structlog.dev.ConsoleRenderer() if pretty else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            redact,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level]),
        logger_factory=structlog.PrintLoggerFactory(file=stream),
        cache_logger_on_first_use=False,
    )
    # libraries log through the standard module; mattermostdriver logs texts of errors at ERROR
    logging.basicConfig(level=logging.WARNING, stream=stream, force=True)
    for noisy in ("mattermostdriver", "apscheduler", "urllib3"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)


def log(**context: Any) -> Any:
    """A logger with that context."""
    return structlog.get_logger(**context)
