"""How long a run waits for a GPU, and who may let it wait longer."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from bot.core.card import Stage, card_of
from bot.core.memory import CANCEL_ANNOTATION, Cancelled, write
from bot.core.verdict import Verdict, judge
from bot.core.waiting import (
    GAVE_UP_ANNOTATION,
    WAIT_ANNOTATION,
    GaveUp,
    Longer,
    argo_limit,
    give_up_patch,
    limit,
    longer_patch,
    next_clock,
    offer,
    read_gave_up,
    read_longer,
    seconds_of,
    shown_limit,
)
from bot.core.workflow import Node, Workflow
from tests.core.api_server import Refused, apply
from tests.phrases import NOW, SETTINGS, node, workflow, workflow_json

FIRST = "2026-03-02T10:00:00Z"
ASKED = NOW - 300  # 10:01, when its first pod was made
UNPLACED = node(
    "gpu-warmup", "Pending", message="Unschedulable: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
)
LONGER = Longer(FIRST, NOW + 36_000, "U-ben", "ben", NOW)


def waiting(*, timeout: str | None = None, deadline: int | None = None, **more: Any) -> tuple[Workflow, Node]:
    """A run that waits, and the node of its pod; with the limits that its template has."""
    stored = {"activeDeadlineSeconds": deadline, "templates": [{"name": "gpu-warmup", "timeout": timeout}]}
    found = workflow(phase="Running", nodes=[UNPLACED], storedWorkflowTemplateSpec=stored, **more)
    return found, found.nodes["id-gpu-warmup"]


def noted(name: str, value: Any) -> dict[str, Any]:
    """Metadata with one of our annotations."""
    return {"annotations": {name: write(value)}}


def test_the_limit_is_counted_from_the_pod() -> None:
    """Time in the queue is not waiting for a GPU."""
    run, pod = waiting()

    assert limit(run, pod, SETTINGS) == ASKED + 2400
    assert limit(run, pod, replace(SETTINGS, wait_seconds=0.0)) is None
    assert limit(*waiting()[:1], Node(phase="Pending"), SETTINGS) is None


def test_somebody_wants_it_to_wait_longer() -> None:
    """Never shorter, and only for the attempt that was meant."""
    run, pod = waiting(meta=noted(WAIT_ANNOTATION, LONGER))
    short, _ = waiting(meta=noted(WAIT_ANNOTATION, replace_until(NOW)))
    other, _ = waiting(meta=noted(WAIT_ANNOTATION, Longer("2026-03-01T10:00:00Z", NOW + 36_000, "U", "ben", NOW)))
    strange, _ = waiting(meta={"annotations": {WAIT_ANNOTATION: "soon"}})

    assert LONGER == read_longer(run)
    assert limit(run, pod, SETTINGS) == NOW + 36_000
    assert [ASKED + 2400] * 3 == [limit(each, pod, SETTINGS) for each in (short, other, strange)]


def replace_until(until: float) -> Longer:
    """The same wish for another time."""
    return Longer(LONGER.attempt, until, LONGER.user_id, LONGER.user_name, LONGER.at)


@pytest.mark.parametrize(
    ("timeout", "deadline", "seconds"),
    [
        (None, None, None),
        ("45m", None, ASKED + 2700),
        ("45m", 5400, ASKED + 2700),
        ("2h", 5400, NOW - 360 + 5400),
        ("{{inputs.parameters.limit}}", None, None),
        (None, 5400, NOW - 360 + 5400),
    ],
)
def test_argos_own_limits(timeout: str | None, deadline: int | None, seconds: float | None) -> None:
    """The run's deadline counts from its start, the step's timeout from the making of its pod."""
    run, pod = waiting(timeout=timeout, deadline=deadline)

    assert seconds == argo_limit(run, pod)
    shown = shown_limit(run, pod, SETTINGS)
    assert shown == min(ASKED + 2400, seconds if seconds is not None else ASKED + 2400)


def test_argos_limits_of_a_run_that_argo_has_not_taken_up() -> None:
    """No status, no limit; the deadline may stand in the Workflow itself."""
    pod = Node(started_at="2026-03-02T10:01:00Z")

    assert argo_limit(workflow(), pod) is None
    assert argo_limit(workflow(phase="Running", spec={"activeDeadlineSeconds": 60}), pod) == NOW - 300
    assert shown_limit(workflow(), pod, replace(SETTINGS, wait_seconds=0.0)) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("45m", 2700.0),
        ("1h30m", 5400.0),
        ("90", 90.0),
        ("1.5h", 5400.0),
        ("100ms", 0.1),
        ("", None),
        ("m", None),
        ("5 m", None),
    ],
)
def test_lengths_as_argo_reads_them(text: str, seconds: float | None) -> None:
    """Go's durations, and plain seconds."""
    assert seconds == seconds_of(text)


@pytest.mark.parametrize(
    ("after", "then"),
    [
        ("2026-03-02T10:00", "2026-03-03T07:00"),
        ("2026-03-02T06:59", "2026-03-02T07:00"),
        ("2026-03-02T07:00", "2026-03-03T07:00"),
        ("2026-03-28T23:00", "2026-03-29T07:00"),  # the night has an hour less
        ("2026-10-24T23:00", "2026-10-25T07:00"),  # and one more
    ],
)
def test_the_next_time_by_the_clock(after: str, then: str) -> None:
    """By the clocks of the zone, whatever they do in the night."""
    zone = ZoneInfo("Europe/Paris")
    begin, end = (datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() for text in (after, then))

    assert end == next_clock("07:00", "Europe/Paris", begin)


def test_a_time_that_the_clocks_skip_or_show_twice() -> None:
    """Such a night has one moment for it all the same, and it lies ahead."""
    for day in ("2026-03-28T22:00", "2026-10-24T22:00"):
        begin = datetime.fromisoformat(day).replace(tzinfo=ZoneInfo("Europe/Paris")).timestamp()
        assert 0 < next_clock("02:30", "Europe/Paris", begin) - begin < 6 * 3600


def test_the_later_limit_that_is_offered() -> None:
    """The next morning, where that adds something and Argo would not end it before."""
    morning = datetime.fromisoformat("2026-03-03T07:00:00Z").timestamp()
    assert offer(*waiting(), SETTINGS) == morning
    assert offer(*waiting(timeout="24h", deadline=100_000), SETTINGS) == morning
    assert offer(*waiting(), replace(SETTINGS, wait_until="10:52")) == ASKED + 51 * 60
    assert offer(*waiting(), replace(SETTINGS, wait_until="10:50")) == morning + 230 * 60

    assert offer(*waiting(timeout="45m", deadline=5400), SETTINGS) is None
    assert offer(*waiting(), replace(SETTINGS, wait_until="")) is None
    assert offer(*waiting(), replace(SETTINGS, wait_seconds=0.0)) is None
    assert offer(*waiting(meta=noted(WAIT_ANNOTATION, LONGER)), SETTINGS) is None


def test_of_a_wish_and_the_limit_one_wins() -> None:
    """A click and giving up at the same moment: what comes second is refused, and looks again."""
    body = workflow_json(phase="Running", nodes=[UNPLACED], meta={"annotations": {"a": "b"}})
    seen = workflow(phase="Running", nodes=[UNPLACED], meta={"annotations": {"a": "b"}})
    gave_up = GaveUp(FIRST, NOW, "0/3 nodes")

    wished = apply(body, longer_patch(seen, LONGER))
    with pytest.raises(Refused):
        apply(wished, give_up_patch(seen, gave_up))
    ended = apply(body, give_up_patch(seen, gave_up))
    with pytest.raises(Refused):
        apply(ended, longer_patch(seen, LONGER))

    assert ended["spec"]["shutdown"] == "Stop"
    assert write(LONGER) == wished["metadata"]["annotations"][WAIT_ANNOTATION]


def test_the_first_annotation_brings_its_container_along() -> None:
    """Where there is none, it is tested for null: a blind add could wipe what Argo wrote in between."""
    body = workflow_json(phase="Running", nodes=[UNPLACED])
    ended = apply(body, give_up_patch(workflow(phase="Running", nodes=[UNPLACED]), GaveUp(FIRST, NOW, "")))

    assert [GAVE_UP_ANNOTATION] == list(ended["metadata"]["annotations"])


def test_a_run_that_was_given_up_never_got_a_gpu() -> None:
    """It was stopped, and yet nobody cancelled it; unless somebody did as well."""
    gave_up = GaveUp(FIRST, NOW, "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
    stopped = node("gpu-warmup", "Failed", message="Stopped with strategy 'Stop'")
    meta = noted(GAVE_UP_ANNOTATION, gave_up)
    run = workflow(phase="Failed", nodes=[stopped], meta=meta, spec={"shutdown": "Stop"})
    both = {"annotations": meta["annotations"] | {CANCEL_ANNOTATION: write(Cancelled(FIRST, "U-ben", "ben", NOW))}}

    outcome = judge(run, SETTINGS)
    assert (Verdict.NO_GPU, gave_up.reason) == (outcome.verdict, outcome.reason)
    cancelled = judge(workflow(phase="Failed", nodes=[stopped], meta=both, spec={"shutdown": "Stop"}), SETTINGS)
    assert cancelled.verdict is Verdict.CANCELLED
    assert read_gave_up(workflow(phase="Running", meta=meta)) is None
    again = workflow(
        phase="Failed", nodes=[stopped], meta=meta, spec={"shutdown": "Stop"}, startedAt="2026-03-02T11:00:00Z"
    )
    assert judge(again, SETTINGS).verdict is Verdict.CANCELLED


def test_what_the_card_holds_of_it() -> None:
    """Only while it waits for a GPU."""
    run, _ = waiting(meta=noted(WAIT_ANNOTATION, LONGER))
    card = card_of(run, SETTINGS)
    assert (Stage.WAITING, NOW + 36_000, LONGER, None) == (card.stage, card.until, card.longer, card.offer)
    pulling = workflow(phase="Running", nodes=[node("gpu-warmup", "Pending", message="ContainerCreating")])
    card = card_of(pulling, SETTINGS)
    assert (Stage.WARMING, None, None, None) == (card.stage, card.until, card.longer, card.offer)
