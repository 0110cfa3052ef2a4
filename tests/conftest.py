"""What all tests share."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

# the ordinary suite tries the same examples each time; HYPOTHESIS_PROFILE=explore looks for new ones
settings.register_profile(
    "ci", max_examples=50, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "explore", max_examples=1000, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """Who sets the log up, as every command does, does it for one test: the next would write to a closed stream."""
    before, level, handlers = structlog.get_config(), logging.root.level, logging.root.handlers[:]
    yield
    if structlog.get_config() != before:
        structlog.configure(**before)
        logging.root.handlers[:] = handlers
        logging.root.setLevel(level)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where files of tests run beside each other: first what takes longest for its one test, then the largest files."""
    if not hasattr(config, "workerinput"):
        return
    sizes = Counter(item.path for item in items)
    items.sort(key=lambda item: ("soak" not in item.path.parts, -sizes[item.path]))
