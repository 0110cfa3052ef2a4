"""Argo: CronWorkflows."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio

from tests.contract.runs import CRONS, WORKFLOWS, Runs, dag, phase, pod_template, spec_of
from tests.contract.wire import Json
from tests.real.rig.pod_script import Exit, Running

PREFIX = "workflows.argoproj.io"


def cron(name: str, line: str, **fields: Any) -> Json:
    """A CronWorkflow."""
    body: Json = {"apiVersion": "argoproj.io/v1alpha1", "kind": "CronWorkflow", "metadata": {"name": name}}
    spec = {"schedules": [line], "workflowSpec": spec_of(dag("work"), pod_template("work"))}
    return body | {"spec": spec | fields}


@pytest_asyncio.fixture(loop_scope="session")
async def every_minute(runs: Runs) -> AsyncIterator[Json]:
    """A CronWorkflow that runs each minute, for as long as the case takes."""
    runs.player.script("work", [Running(), Exit(0)])
    extra = {"labels": {"case/label": "x"}, "annotations": {"case/note": "y"}, "finalizers": ["case/held"]}
    body = cron(runs.name, "* * * * *", workflowMetadata=extra, concurrencyPolicy="Forbid", startingDeadlineSeconds=0)
    yield await runs.client.create(CRONS, body)
    await runs.client.delete(f"{CRONS}/{runs.name}")
    for child in await children(runs):
        await runs.client.merge(f"{WORKFLOWS}/{child['metadata']['name']}", {"metadata": {"finalizers": None}})


async def children(runs: Runs) -> list[Json]:
    """The workflows that a CronWorkflow has made."""
    found: list[Json] = (await runs.client.get(WORKFLOWS, {"labelSelector": f"{PREFIX}/cron-workflow={runs.name}"}))[
        "items"
    ]
    return found


async def test_a_child_of_the_schedule(runs: Runs, every_minute: Json) -> None:
    """Its name ends in the second that it was meant for; label, owner and annotation say where it is from.

    What workflowMetadata names comes along, finalizers too.
    """
    listed = await runs.client.until(
        WORKFLOWS,
        lambda seen: any(each["metadata"]["name"].startswith(f"{runs.name}-") for each in seen["items"]),
        limit=75,
    )
    (child,) = [each for each in listed["items"] if each["metadata"]["name"].startswith(f"{runs.name}-")]
    meta = child["metadata"]
    done = await runs.ended(meta["name"])

    found = re.fullmatch(rf"{runs.name}-(\d{{10}})", meta["name"])
    assert found
    planned = datetime.fromtimestamp(int(found[1]), UTC)
    assert planned.second == 0
    assert meta["labels"][f"{PREFIX}/cron-workflow"] == runs.name
    assert meta["labels"]["case/label"] == "x"
    assert meta["annotations"][f"{PREFIX}/scheduled-time"] == planned.isoformat().replace("+00:00", "Z")
    assert meta["annotations"]["case/note"] == "y"
    assert meta["finalizers"] == ["case/held"]
    (owner,) = meta["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("CronWorkflow", runs.name, every_minute["metadata"]["uid"])
    assert phase(done) == "Succeeded"
    seen = await runs.client.get(f"{CRONS}/{runs.name}")
    assert seen["status"]["lastScheduledTime"] == planned.isoformat().replace("+00:00", "Z")


@pytest.mark.parametrize(
    "wrong",
    [{"schedules": ["nonsense"]}, {"schedule": "0 3 * * *"}, {"timezone": "Mars/Olympus"}],
    ids=["nonsense", "both spellings", "time zone"],
)
async def test_schedules_that_are_none(runs: Runs, wrong: Json) -> None:
    """The API server takes them, and only the controller's log says what is wrong: the object gets no condition."""
    await runs.client.create(CRONS, cron(runs.name, "0 2 * * *", **wrong))
    await runs.pass_time(1.5)
    seen = await runs.client.get(f"{CRONS}/{runs.name}")
    await runs.client.delete(f"{CRONS}/{runs.name}")

    assert not (seen.get("status") or {}).get("conditions")
