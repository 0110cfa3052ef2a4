"""The way to a GPU in the embedded world: its own autoscaler, scheduler and kubelet, and the bot's card beside them.

The same steps are played on real nodes in tests/real/test_warmup.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot import play
from bot.demo.kinds import CONFIGMAPS, EVENTS

from .test_play import LEASE, card, demo, is_ready  # noqa: F401  # a fixture

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
    took = (cold["steps"]["node"], cold["steps"]["ready"], cold["steps"]["gpu"])
    assert took == pytest.approx((500, 300, 400), abs=60)  # of a machine with other work: 60 ms
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


async def test_a_quota_that_is_used_up_for_as_long_as_a_run_waits(demo: play.Play) -> None:  # noqa: F811
    """The autoscaler tries again and again: the card says why all the time, the step gets red, the end names it."""
    chat, autoscaler = demo.world.chat, demo.world.cluster.autoscaler
    for name, pool in autoscaler.pools.items():
        if pool.gpus:
            autoscaler.fail(name, "QUOTA_EXCEEDED")
    await chat.say("dev", "gpu-tests", "/gputest models=dqn epochs=2 pool=ci-compile ref=v1.3")
    reason = "the provider's quota is used up (`QUOTA_EXCEEDED`: quota exceeded)"
    await chat.until(lambda: f": {reason}" in card(demo))
    await chat.until(lambda: "⚠️ node since" in card(demo))
    assert f": {reason}" in card(demo)
    assert reason in (await chat.say("dev", "gpu-tests", "/gpu warmup")).text
    await chat.until(lambda: "never got an L4" in card(demo))

    assert "The last word was: QUOTA\\\\_EXCEEDED: quota exceeded" in card(demo)


@pytest.mark.parametrize(
    ("code", "head"), [("OUT_OF_STOCK", "**No H100 to be had**"), ("QUOTA_EXCEEDED", "**No further H100**")]
)
async def test_one_alert_for_a_problem_of_the_provider(tmp_path: Path, code: str, head: str) -> None:
    """Status and Events tell of it, and each try again: it is said once, and of the pool."""
    options = play.Options(speed=200.0, lease=LEASE, patience=0.05)
    async with play.playing(options, tmp_path) as playing:
        await is_ready(playing)
        chat, cluster = playing.world.chat, playing.world.cluster
        cluster.autoscaler.fail(H100, code)

        def alerts() -> list[str]:
            return [post["message"] for post in chat.posts() if post["props"].get("gputest_alert")]

        def failures() -> int:
            return sum(event["count"] for event in cluster.store.all(EVENTS) if event["reason"] == "ScaleUpFailed")

        await chat.say("dev", "gpu-tests", "/gputest dqn scope=lib")
        await chat.until(lambda: bool(alerts()))
        so_far = failures()
        await chat.until(lambda: failures() >= so_far + 2)

        (alert,) = alerts()
        assert alert.startswith(f"@dev ⚠️ {head} · since ")
        assert f"(`{code}`: " in alert
        answer = (await chat.say("dev", "gpu-tests", "/gpu")).text
        assert "due to" not in answer
