"""Counters and times."""

from __future__ import annotations

import re

from bot.metrics import Metrics


def test_two_bots_in_one_process_count_apart() -> None:
    """Each has a registry of its own."""
    one, other = Metrics(), Metrics()
    one.doubles.inc()

    assert b"gputest_doubles_total 1.0" in one.exposition()
    assert b"gputest_doubles_total 0.0" in other.exposition()


def test_everything_is_called_after_the_bot_and_says_what_it_is() -> None:
    """In the text format of Prometheus."""
    text = Metrics().exposition().decode()
    names = re.findall(r"^# TYPE (\S+)", text, re.MULTILINE)

    assert len(names) > 8
    assert all(name.startswith("gputest_") for name in names)
    assert set(names) == set(re.findall(r"^# HELP (\S+) \S", text, re.MULTILINE))


def test_calls_have_a_time_by_system_operation_and_outcome() -> None:
    """Labels are few: no names of runs, users or channels."""
    metrics = Metrics()
    metrics.calls.labels("mattermost", "post", "ok").observe(0.02)
    metrics.events.labels("WorkflowChanged").inc()
    metrics.effects.labels("PostCard", "done").inc()
    text = metrics.exposition().decode()

    assert 'gputest_call_seconds_bucket{le="0.025",operation="post",outcome="ok",system="mattermost"} 1.0' in text
    assert 'gputest_call_seconds_count{operation="post",outcome="ok",system="mattermost"} 1.0' in text
    assert 'gputest_events_total{event="WorkflowChanged"} 1.0' in text
    assert 'gputest_effects_total{effect="PostCard",outcome="done"} 1.0' in text


def test_gauges_start_at_nothing() -> None:
    """A process that has just started leads nobody and holds nothing."""
    text = Metrics().exposition().decode()

    assert {"gputest_leader 0.0", "gputest_runs_held 0.0", "gputest_chat_listening 0.0"} <= set(text.splitlines())
