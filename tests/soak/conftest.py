"""The log of the bots that a random user plays with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot import logs


@pytest.fixture
def log_file(tmp_path: Path) -> Iterator[Path]:
    """Where the bot logs to."""
    path = tmp_path / "bot.log"
    with path.open("w", encoding="utf-8") as stream:
        logs.set_up("INFO", stream=stream)
        yield path
