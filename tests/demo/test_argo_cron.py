"""CronWorkflows: names, times, suspension, history, and ten nights in a moment."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.demo import EmbeddedWorld
from bot.demo.argo_schedule import next_time
from bot.demo.cluster import Cluster
from bot.demo.kinds import CRON_WORKFLOWS
from bot.demo.pods import Exit

NIGHTLY = "gpu-test-nightly"
DAY = 86_400.0


@pytest.fixture
def cluster(world: EmbeddedWorld) -> Cluster:
    """The cluster, with test pods that end at once."""
    world.cluster.script("compile-and-test", [Exit(0)])
    return world.cluster


def cron(cluster: Cluster) -> dict[str, Any]:
    """The nightly."""
    return cluster.store.get(CRON_WORKFLOWS, "foxhunt", NIGHTLY)


def edit(cluster: Cluster, **spec: Any) -> None:
    """Change its spec."""
    cluster.patch(CRON_WORKFLOWS, NIGHTLY, lambda obj: obj["spec"].update(spec))


async def test_a_child_at_its_time(cluster: Cluster) -> None:
    """Name by unix time, label, annotation, owner, and a finalizer from birth."""
    edit(cluster, suspend=False, workflowMetadata={"finalizers": ["bot.example/report"], "labels": {"a": "b"}})
    await cluster.until(lambda: bool(cluster.workflows()), limit=DAY)
    meta = cluster.workflows()[0]["metadata"]
    when = int(datetime(2026, 3, 3, 2, 0, tzinfo=UTC).timestamp())

    assert meta["name"] == f"{NIGHTLY}-{when}"
    assert meta["finalizers"] == ["bot.example/report"]
    assert meta["labels"]["a"] == "b"
    assert meta["labels"]["workflows.argoproj.io/cron-workflow"] == NIGHTLY
    assert meta["annotations"]["workflows.argoproj.io/scheduled-time"] == "2026-03-03T02:00:00Z"
    assert meta["ownerReferences"][0]["kind"] == "CronWorkflow"
    assert cron(cluster)["status"]["lastScheduledTime"] == "2026-03-03T02:00:00Z"
    assert [one["name"] for one in cron(cluster)["status"]["active"]] == [meta["name"]]


async def test_suspended_it_runs_nothing(cluster: Cluster) -> None:
    """Nor does it catch up when it is resumed without a starting deadline."""
    await cluster.clock.advance(2 * DAY)
    edit(cluster, suspend=False)
    await cluster.clock.advance(60)

    assert cluster.workflows() == []


async def test_it_catches_up_within_its_starting_deadline(cluster: Cluster) -> None:
    """Un-suspending soon after a missed time runs it once, with that time."""
    edit(cluster, suspend=False, startingDeadlineSeconds=7200)
    await cluster.clock.advance(DAY)
    edit(cluster, suspend=True)
    await cluster.until(lambda: cluster.clock.now() >= datetime(2026, 3, 4, 2, 0, tzinfo=UTC), limit=DAY)
    await cluster.clock.advance(3600)
    names = {wf["metadata"]["name"] for wf in cluster.workflows()}
    edit(cluster, suspend=False)
    await cluster.clock.advance(1)
    fresh = {wf["metadata"]["name"] for wf in cluster.workflows()} - names

    assert fresh == {f"{NIGHTLY}-{int(datetime(2026, 3, 4, 2, 0, tzinfo=UTC).timestamp())}"}


async def test_history_keeps_three_good_and_one_bad(cluster: Cluster) -> None:
    """Whatever their time to live says; those that are held stay with a deletionTimestamp."""
    edit(cluster, suspend=False, workflowMetadata={"finalizers": ["bot.example/report"]})
    for _ in range(5):
        await cluster.clock.advance(DAY)
    cluster.script("compile-and-test", [Exit(1)])
    for _ in range(3):
        await cluster.clock.advance(DAY)

    def alive(phase: str) -> int:
        found = [wf for wf in cluster.workflows() if wf["status"]["phase"] == phase]
        return sum(1 for wf in found if "deletionTimestamp" not in wf["metadata"])

    assert len(cluster.workflows()) == 8
    assert alive("Succeeded") <= 3
    assert alive("Failed") <= 1
    assert (cron(cluster)["status"]["succeeded"], cron(cluster)["status"]["failed"]) == (5, 3)


async def test_forbid_skips_while_one_runs(cluster: Cluster) -> None:
    """An active child keeps the next one away."""
    cluster.hang()
    edit(cluster, suspend=False, schedules=["*/30 * * * *"])
    await cluster.clock.advance(3600)

    assert len(cluster.workflows()) == 1


async def test_bad_schedules_are_only_logged(cluster: Cluster) -> None:
    """No schedule, both spellings, nonsense: nothing runs, and the object does not tell."""
    for spec in ({"schedules": []}, {"schedules": ["0 2 * * *"], "schedule": "0 3 * * *"}, {"schedules": ["nonsense"]}):
        edit(cluster, **spec)
        await cluster.clock.advance(DAY)

        assert "conditions" not in cron(cluster).get("status", {})
    assert cluster.workflows() == []


async def test_a_missing_template_is_a_condition(cluster: Cluster) -> None:
    """No workflow is created."""
    edit(cluster, suspend=False, workflowSpec={"workflowTemplateRef": {"name": "none"}})
    await cluster.clock.advance(DAY)

    assert cluster.workflows() == []
    assert cron(cluster)["status"]["conditions"][0]["type"] == "SpecError"


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "expected"),
    [
        ("30 1 * * *", "America/Los_Angeles", "2026-11-01T08:00:00", ["01T08:30", "01T09:30", "02T09:30"]),
        ("30 2 * * *", "America/Los_Angeles", "2026-03-08T00:00:00", ["09T09:30", "10T09:30", "11T09:30"]),
        ("0 2 * * *", "", "2026-03-02T10:00:00", ["03T02:00", "04T02:00", "05T02:00"]),
        ("0 2 * * MON-FRI", "Europe/Paris", "2026-03-06T10:00:00", ["09T01:00", "10T01:00", "11T01:00"]),
    ],
)
def test_times_as_robfig_cron_finds_them(schedule: str, zone: str, after: str, expected: list[str]) -> None:
    """At a change of the clock a lost hour is skipped, a doubled one runs twice."""
    at = datetime.fromisoformat(after).replace(tzinfo=UTC)
    found = []
    for _ in range(3):
        at = next_time(schedule, zone, at)
        found.append(at.strftime("%dT%H:%M"))

    assert found == expected


async def test_ten_nights_are_quick_and_the_same() -> None:
    """Ten nights of ten models take seconds, and a seed repeats them to the byte."""

    async def nights(seed: int = 7) -> list[Any]:
        async with EmbeddedWorld(seed=seed, speed=0) as world:
            seen: list[Any] = []
            world.cluster.store.subscribe(lambda change: seen.append((change.type, change.key, change.encoded)))
            world.cluster.suspend_cron(NIGHTLY, suspend=False)
            await world.clock.advance(10 * DAY)
            return seen

    begin = time.monotonic()
    first = await nights()

    assert time.monotonic() - begin < 10
    assert first == await nights()
    assert first != await nights(8)
    assert sum(1 for what, key, _ in first if what == "ADDED" and key[1].startswith(f"{NIGHTLY}-17")) >= 10
