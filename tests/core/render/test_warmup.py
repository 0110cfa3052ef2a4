"""The way to a GPU as it reads on the card, and in `/gpu warmup`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.core.card import Card, Stage, card_of
from bot.core.history import Usual
from bot.core.render.warmup import PoolTimes, folded_line, refused_words, soon, span, until_line, waiting_for, warmups
from bot.core.waiting import Longer
from bot.core.warmup import Leg, Step, Way
from tests.core.render.goldens import matches, shown
from tests.core.render.test_card import mentions
from tests.core.test_on_its_way import MORNING
from tests.core.test_warmup import minute
from tests.phrases import NOW, SETTINGS, node, workflow

SCHEDULER = "Unschedulable: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
WAITS = card_of(workflow(phase="Running", nodes=[node("gpu-warmup", "Pending", message=SCHEDULER)]), SETTINGS)
PULLS = card_of(workflow(phase="Running", nodes=[node("gpu-warmup", "Pending", message="ContainerCreating")]), SETTINGS)
TESTS = card_of(workflow(phase="Running", nodes=[node("compile-and-test", "Running")]), SETTINGS)
USUAL = {"queue": 2.0, "scale_up": 12.0, "node": 150.0, "ready": 20.0, "gpu": 60.0, "image": 50.0, "start": 2.0}
STEPS = [Step.QUEUE, Step.SCALE_UP, Step.NODE, Step.READY, Step.GPU, Step.PLACE, Step.IMAGE, Step.START]
ENDS = [1.0, 1.2, 3.7, 4.0, 5.5, 5.5, 6.5, 6.55]


def way(at: Step | None, *, late: bool = False, known: bool = False, cold: bool = True) -> Way:
    """The way of a run that is at that step; None for one whose tests have begun."""
    legs, begin, before = [], minute(-0.1), True
    for step, end in zip(STEPS, ENDS, strict=True):
        if not cold and step in {Step.SCALE_UP, Step.NODE, Step.READY, Step.GPU}:
            continue
        current = step is at
        before = before and not current
        usual = USUAL.get(step.value) if known else None
        since = begin if before or current else None
        legs.append(Leg(step, since, minute(end) if before else None, usual, current, late and current))
        begin = minute(end)
    return Way(tuple(legs), cold, seconds=333 if at is None else None)


SITUATIONS: dict[str, Card] = {
    "warmup_scale_up": replace(WAITS, way=way(Step.SCALE_UP)),
    "warmup_refused": replace(
        WAITS, way=replace(way(Step.NODE), refused="pod didn't trigger scale-up: 1 in backoff after failed scale-up")
    ),
    "warmup_node": replace(WAITS, way=replace(way(Step.NODE, known=True), starts=minute(6))),
    "warmup_ready_late": replace(WAITS, way=way(Step.READY, late=True, known=True)),
    "warmup_gpu": replace(WAITS, way=way(Step.GPU, known=True)),
    "warmup_gpu_late_until_the_morning": replace(
        WAITS,
        way=way(Step.GPU, late=True),
        until=MORNING,
        longer=Longer("a", MORNING, "U", "ben|@all", NOW),
        offer=None,
    ),
    "warmup_place_cold": replace(WAITS, way=way(Step.PLACE)),
    "warmup_place_warm": replace(WAITS, way=way(Step.PLACE, cold=False)),
    "warmup_image": replace(PULLS, way=way(Step.IMAGE, known=True)),
    "warmup_image_that_does_not_come": replace(PULLS, way=replace(way(Step.IMAGE), trouble="ImagePullBackOff")),
    "warmup_over_cold": replace(TESTS, way=way(None)),
    "warmup_over_warm": replace(TESTS, way=way(None, cold=False)),
    "warmup_over_unseen": replace(TESTS, way=replace(way(None), seconds=None)),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_each_situation_reads_so(name: str) -> None:
    """A golden file each; nobody is rung."""
    text = shown(SITUATIONS[name])

    assert set() == mentions(text)
    matches(name, text)


def test_the_answer() -> None:
    """All steps of each run, and what is usual for each pool."""
    queued = card_of(workflow("gpu-test-m3x8", phase="Pending", message="Waiting for a lock|@all"), SETTINGS)
    refused = replace(
        way(Step.NODE), refused="Node scale up in zones z associated with this pod failed: GCE quota exceeded."
    )
    cards = [
        replace(WAITS, way=replace(way(Step.GPU, known=True), starts=minute(6), behind=("j4t9",))),
        replace(WAITS, way=replace(way(Step.NODE, late=True), seconds=None)),
        replace(WAITS, way=refused),
        replace(WAITS, way=way(Step.PLACE)),
        replace(queued, way=replace(way(Step.QUEUE), behind=("k7m2", "x|y"))),
        replace(queued, way=way(Step.QUEUE)),
        replace(PULLS, way=way(Step.IMAGE, cold=False)),
        replace(PULLS, way=Way((Leg(Step.QUEUE, None, None, current=True),), cold=False)),
        TESTS,
        replace(TESTS, way=way(None)),
    ]
    times = [
        PoolTimes("H100", Usual(12, 296.0, USUAL), Usual(2)),
        PoolTimes("L40S", Usual(1), Usual(4, 25.0, {"place": 0.2, "image": 24.0})),
        PoolTimes("L|4", Usual(), Usual()),
    ]

    text = warmups(cards, times, SETTINGS, NOW)

    assert set() == mentions(text)
    matches("warmup_answer", text + "\n")


UNNAMED = (
    "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint(s)."
)
NAMED = "0/2 nodes are available: 2 node(s) had untolerated taint {dedicated: research}."
CPU = "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient nvidia.com/gpu."


@pytest.mark.parametrize(
    ("at", "detail", "words"),
    [
        (Step.READY, UNNAMED, "Its node is up, and not ready yet"),
        (Step.GPU, SCHEDULER, "Its node is ready, and its GPU is not there yet"),
        (Step.NODE, UNNAMED, "None of the 2 nodes takes it: 1 has a taint, 1 is of another kind"),
        (Step.READY, NAMED, "None of the 2 nodes takes it: 2 have the taint `dedicated=research`"),
        (Step.GPU, CPU, "No GPU is free on the only node; 1 has too little CPU free"),
        (Step.GPU, "", ""),
        (Step.GPU, "its own words", "its own words"),
        (None, SCHEDULER, "No GPU is free on any of the 3 nodes"),
    ],
)
def test_why_it_waits(at: Step | None, detail: str, words: str) -> None:
    """That the node is on its way, unless the scheduler says more than that."""
    assert words == waiting_for(way(at), detail)
    assert waiting_for(None, SCHEDULER) == "No GPU is free on any of the 3 nodes"


def test_more_runs_than_anybody_reads() -> None:
    """Ten are told, the others counted."""
    text = warmups([replace(WAITS, way=way(Step.GPU))] * 12, (), SETTINGS, NOW)

    assert "and 2 more\n" in text
    assert text.count("⏳ **k7m2**") == 10


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (60, "1 min"),
        (220, "3:40 min"),
        (3599, "59:59 min"),
        (3600, "1 h 00 min"),
        (3900, "1 h 05 min"),
        (None, "0 s"),
    ],
)
def test_lengths(seconds: float | None, text: str) -> None:
    """To the second, as long as that says anything."""
    assert text == span(seconds)


def test_what_is_not_known_is_not_said() -> None:
    """No limit, no refusal, no length, too few starts."""
    assert "" == until_line(replace(WAITS, until=None), SETTINGS)
    assert "" == refused_words(way(Step.NODE))
    assert "" == folded_line(way(Step.GPU))
    assert "" == soon(Usual(2))
    assert "Warm start 5:33 min" == folded_line(Way((), cold=False, seconds=333))
    assert "Thu 00:00 UTC" in until_line(Card("a", "a", Stage.WAITING, WAITS.asked, WAITS.origin, until=0.0), SETTINGS)
