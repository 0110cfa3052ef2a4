"""The log of the bots that a random user plays with."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from bot import logs


@pytest.fixture
def log_file(tmp_path: Path) -> Iterator[Path]:
    """Where the bot logs to; the process's own set-up comes back afterwards."""
    before, level, handlers = structlog.get_config(), logging.root.level, logging.root.handlers[:]
    path = tmp_path / "bot.log"
    with path.open("w", encoding="utf-8") as stream:
        logs.set_up("INFO", stream=stream)
        yield path
        structlog.configure(**before)
        logging.root.handlers[:] = handlers
        logging.root.setLevel(level)
