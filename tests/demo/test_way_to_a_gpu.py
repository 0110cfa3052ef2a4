"""The way to a GPU in the embedded world: its own autoscaler, scheduler and kubelet, and the bot's card beside them.

The same steps are played on real nodes in tests/real/test_warmup.py.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot import play
from bot.demo.kinds import CONFIGMAPS

from .test_play import card, demo  # noqa: F401  # a fixture

H100 = "ci-training-h100"


def starts(world: play.Play) -> list[dict[str, Any]]:
    """What the history has."""
    found = world.world.cluster.store.find(CONFIGMAPS, "gputest", "gputest-bot-history")
    kept: list[dict[str, Any]] = json.loads(found["data"]["starts.json"])["starts"] if found else []
    return kept


async def test_a_cold_start_then_warm_ones(demo: play.Play) -> None:  # noqa: F811
    """Every step shows on the card; what is usual is known after a few; nothing was refused."""
    chat, cluster = demo.world.chat, demo.world.cluster
    pool = cluster.autoscaler.pools[H100]
    # long enough for each step to be seen, at this speed
    pool.boot_seconds, pool.ready_seconds, pool.driver_seconds = 500.0, 300.0, 400.0
    cluster.kubelet.pull_seconds = lambda _pod: 200.0
    await chat.say("dev", "gpu-tests", "/gputest dqn scope=lib")
    for words in ("⏳ node since", "⏳ GPU since", "⏳ image since", "Warm-up 2"):
        await chat.until(lambda words=words: words in card(demo))  # type: ignore[misc]
    await chat.until(lambda: "Run again" in card(demo) or "Rerun" in card(demo))
    for number in range(2, 5):
        await chat.say("dev", "gpu-tests", f"/gputest dqn scope=lib epochs={number}")
        await chat.until(lambda number=number: card(demo).count("ended ") == number)  # type: ignore[misc]
    answer = (await chat.say("dev", "gpu-tests", "/gpu warmup")).text

    (cold, *warm) = starts(demo)
    assert cold["cold"]
    assert (cold["steps"]["node"], cold["steps"]["ready"], cold["steps"]["gpu"]) == pytest.approx(
        (500, 300, 400), abs=9
    )
    assert cold["seconds"] == sum(length for step, length in cold["steps"].items() if step != "queue")
    assert [False] * 3 == [start["cold"] for start in warm]
    assert "**H100**: cold: 1 start seen, too few to tell; warm " in answer
    assert "≈" in (await chat.say("dev", "gpu-tests", "/gpu")).text
    assert demo.world.kube_api.access.refused == []


@pytest.mark.parametrize(
    ("break_", "stuck", "end"),
    [
        ({"never_joins": True}, "⚠️ node since", "The node that was asked for never came"),
        ({"ready_seconds": 1e6, "minimum": 1}, "⚠️ ready since", "Its node never got ready"),
        ({"driver_seconds": 1e6, "minimum": 1}, "⚠️ GPU since", "Its node got ready, and its GPU never could be used"),
    ],
)
async def test_the_step_that_is_stuck(demo: play.Play, break_: dict[str, Any], stuck: str, end: str) -> None:  # noqa: F811
    """It is named while it lasts, and when the run is given up; `minimum` keeps the autoscaler from taking the node."""
    chat = demo.world.chat
    for name, value in break_.items():
        setattr(demo.world.cluster.autoscaler.pools[H100], name, value)
    await chat.say("dev", "gpu-tests", "/gputest dqn scope=lib")
    await chat.until(lambda: stuck in card(demo))
    await chat.until(lambda: "never got an H100" in card(demo))

    assert end in card(demo)


async def test_a_provider_that_has_none(demo: play.Play) -> None:  # noqa: F811
    """The card says so while the run waits."""
    chat, autoscaler = demo.world.chat, demo.world.cluster.autoscaler
    autoscaler.fail(H100)
    await chat.say("dev", "gpu-tests", "/gputest dqn scope=lib")
    await chat.until(lambda: "⚠️ No node is coming: the provider has none in stock (`OUT_OF_STOCK`" in card(demo))
