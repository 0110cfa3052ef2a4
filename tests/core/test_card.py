"""What the card of a run shows: values from the Workflow, no wording."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.core.card import CI_LABEL, OriginKind, Stage, asked_of, card_of, origin_of, short_name, wants_posts
from bot.core.memory import CANCEL_ANNOTATION, REQUEST_ANNOTATION, Cancelled, Request, write
from bot.core.settings import Defaults
from bot.core.verdict import Verdict
from bot.core.workflow import CREATOR_LABEL, CRON_LABEL, instant
from tests.phrases import ALL, NOW, SETTINGS, ended, green, node, outputs, results, suite, workflow

PENDING = node("gpu-warmup", "Pending")
DONE = node("gpu-warmup", "Succeeded")


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("gpu-test-k7m2", "k7m2"),
        ("gpu-test-nightly-1772413200", "13200"),
        ("gpu-test-12345", "12345"),
        ("by-hand-x2b9c", "x2b9c"),
        ("single", "single"),
        ("", ""),
        ("trailing-", ""),
    ],
)
def test_what_people_call_a_run(name: str, short: str) -> None:
    """The suffix of its name; of a cron child's Unix time the last digits."""
    assert short == short_name(name)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-03-02T10:00:00Z", datetime(2026, 3, 2, 10, tzinfo=UTC)),
        ("2026-03-02T11:00:00+01:00", datetime(2026, 3, 2, 10, tzinfo=UTC)),
        ("2026-03-02T10:00:00.123456Z", datetime(2026, 3, 2, 10, 0, 0, 123456, UTC)),
        ("2026-03-02T10:00:00", datetime(2026, 3, 2, 10, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", None),
        ("1970-01-01T00:00:00Z", None),
        ("9999-12-31T23:59:59Z", None),
        ("yesterday", None),
        ("", None),
        (None, None),
    ],
)
def test_times_as_kubernetes_writes_them(text: str | None, value: datetime | None) -> None:
    """The zero time and what can't be read are no times."""
    assert value == instant(text)


def test_who_asked() -> None:
    """The chat's own request first, then what the labels tell, then nobody."""
    asked = write(Request("gpu-test-k7m2", "r", "id-anna", "anna", "C"))
    labels = {CRON_LABEL: "gpu-test-nightly", CI_LABEL: "main", CREATOR_LABEL: "olga"}
    chat = origin_of(workflow(meta={"annotations": {REQUEST_ANNOTATION: asked}, "labels": labels}))
    cron = origin_of(workflow(meta={"labels": labels}))
    push = origin_of(workflow(meta={"labels": {CI_LABEL: ""}}))
    by_hand = origin_of(workflow(meta={"labels": {CREATOR_LABEL: "olga"}}))

    assert (OriginKind.CHAT, "id-anna", "anna") == (chat.kind, chat.user_id, chat.user_name)
    assert (OriginKind.CRON, "gpu-test-nightly") == (cron.kind, cron.user_name)
    assert (OriginKind.CI, "") == (push.kind, push.user_name)
    assert (OriginKind.API, "olga") == (by_hand.kind, by_hand.user_name)
    assert (OriginKind.API, "") == (origin_of(workflow()).kind, origin_of(workflow()).user_name)


def test_what_was_asked_for() -> None:
    """The arguments; the template's defaults stand in for what nobody said."""
    said = asked_of(
        workflow(parameters={"models": "kan", "test-scope": "lib", "gpu-pool": "ci-training", "epochs": "7"}), SETTINGS
    )
    silent = asked_of(workflow(spec={"arguments": None}), SETTINGS)
    strange = asked_of(workflow(parameters={"gpu-pool": "tpu-pool"}), SETTINGS)

    assert (("kan",), False, "lib", "7", "main", "ci-training", "L40S") == (
        said.models,
        said.all_models,
        said.scope,
        said.epochs,
        said.ref,
        said.pool,
        said.gpu,
    )
    assert (("dqn", "ppo", "tft"), "all", "3", "HEAD", "H100") == (
        silent.models,
        silent.scope,
        silent.epochs,
        silent.ref,
        silent.gpu,
    )
    assert ("tpu-pool", True) == (strange.gpu, strange.all_models)


@pytest.mark.parametrize(
    ("value", "default", "wants"),
    [
        ("false", True, False),
        (" False ", True, False),
        ("true", False, True),
        ("maybe", True, True),
        (None, True, True),
        (None, False, False),
    ],
)
def test_who_wants_no_post(value: str | None, default: bool, wants: bool) -> None:
    """Only a clear no is one."""
    settings = replace(SETTINGS, defaults=Defaults(notify=default))

    assert wants is wants_posts(workflow(parameters={"notify": value} if value else {}), settings)


@pytest.mark.parametrize(
    ("phase", "nodes", "stage"),
    [
        ("", [], Stage.QUEUED),
        ("Pending", [], Stage.QUEUED),
        ("Running", [], Stage.QUEUED),
        ("Running", [PENDING], Stage.WAITING),
        ("Running", [PENDING | {"message": "Unschedulable: 0/3 nodes are available"}], Stage.WAITING),
        ("Running", [PENDING | {"message": 'pods "x" is forbidden: exceeded quota'}], Stage.WAITING),
        ("Running", [PENDING | {"message": "forbidden: exceeded quota: gpus"}], Stage.WAITING),
        ("Running", [PENDING | {"message": "ContainerCreating"}], Stage.WARMING),
        ("Running", [node("gpu-warmup", "Running")], Stage.WARMING),
        ("Running", [DONE], Stage.WARMING),
        ("Running", [DONE, node("compile-and-test", "Pending")], Stage.WAITING),
        ("Running", [DONE, node("compile-and-test", "Pending", message="PodInitializing")], Stage.WARMING),
        ("Running", [DONE, node("compile-and-test", "Running")], Stage.TESTING),
        ("Running", [DONE, node("compile-and-test", "Succeeded")], Stage.FINISHING),
        ("Running", [DONE, node("compile-and-test", "Failed")], Stage.FINISHING),
        ("Succeeded", [], Stage.ENDED),
        ("Error", [PENDING], Stage.ENDED),
        ("Running", [node("gpu-warmup", "Running", display_name="run.onExit")], Stage.QUEUED),
    ],
)
def test_where_a_run_is(phase: str, nodes: list[dict[str, Any]], stage: Stage) -> None:
    """From its nodes: to Argo a run whose only pod can't be placed is `Running`."""
    assert stage is card_of(workflow(phase=phase, nodes=nodes), SETTINGS).stage


@pytest.mark.parametrize(
    ("phase", "nodes", "detail"),
    [
        ("Pending", [], "Waiting for a lock"),
        ("Running", [PENDING | {"message": "Unschedulable: no"}], "Unschedulable: no"),
        ("Running", [PENDING | {"message": "ContainerCreating"}], "ContainerCreating"),
        ("Running", [node("gpu-warmup", "Running", message="stale")], ""),
        ("Running", [node("compile-and-test", "Running", message="stale")], ""),
        ("Failed", [], ""),
    ],
)
def test_why_it_waits(phase: str, nodes: list[dict[str, Any]], detail: str) -> None:
    """Argo's or the scheduler's words, while it waits only."""
    assert detail == card_of(workflow(phase=phase, nodes=nodes, message="Waiting for a lock"), SETTINGS).detail


def test_since_when() -> None:
    """The node's own time, else the start, else the creation; of an ended run the end."""
    asked = card_of(workflow(), SETTINGS).since
    started = card_of(workflow(phase="Running"), SETTINGS).since
    waiting = card_of(workflow(phase="Running", nodes=[PENDING]), SETTINGS).since
    over = card_of(ended(green()), SETTINGS)

    assert ["09:59", "10:00", "10:01", "10:36"] == [f"{t:%H:%M}" for t in (asked, started, waiting, over.since) if t]
    assert 36 * 60 == over.seconds


def test_a_length_that_can_not_be_is_unknown() -> None:
    """`argo retry` stamps its client's clock, which may be ahead; or one of the times is missing."""
    ahead = card_of(ended(green(), startedAt="2026-03-02T12:00:00Z"), SETTINGS)
    missing = card_of(ended(green(), finishedAt=None), SETTINGS)

    assert (None, None) == (ahead.seconds, missing.seconds)
    assert card_of(workflow(phase="Running"), SETTINGS).seconds is None


def test_an_ended_run_has_its_outcome_and_its_commit() -> None:
    """Judged once, and the commit as the runner resolved it."""
    card = card_of(ended(green("dqn"), parameters={"models": "dqn"}), SETTINGS, ("a note",))

    assert card.outcome is not None
    assert Verdict.PASSED is card.outcome.verdict
    assert ("3f2a9c1" + "0" * 33, ("a note",)) == (card.commit, card.notes)
    assert ("gpu-test-k7m2", "k7m2", "uid-gpu-test-k7m2", "2026-03-02T10:00:00Z") == (
        card.name,
        card.short,
        card.uid,
        card.attempt,
    )


def test_the_commit_is_known_while_the_exit_handler_runs() -> None:
    """The tests' node has its outputs; where it has none, nothing is claimed."""
    tests = node("compile-and-test", "Succeeded", outputs=outputs(results([suite("dqn")])))
    known = card_of(workflow(phase="Running", nodes=[tests]), SETTINGS)
    unknown = card_of(workflow(phase="Running", nodes=[node("compile-and-test", "Failed")]), SETTINGS)

    assert ("3f2a9c1" + "0" * 33, None) == (known.commit, known.outcome)
    assert "" == unknown.commit


def test_a_run_that_was_deleted_is_over() -> None:
    """Whatever stage it was in; one that ended is judged as it ended."""
    gone = card_of(workflow(phase="Running", nodes=[PENDING]), SETTINGS, deleted=True)
    over = card_of(ended(green()), SETTINGS, deleted=True)

    assert gone.outcome is not None
    assert over.outcome is not None
    assert (Stage.ENDED, Verdict.CANCELLED) == (gone.stage, gone.outcome.verdict)
    assert Verdict.PASSED is over.outcome.verdict


def test_who_stopped_it() -> None:
    """From the annotation, where it is of this attempt."""
    cancelled = Cancelled("2026-03-02T10:00:00Z", "id-ben", "ben", NOW)
    run = workflow(
        phase="Running", meta={"annotations": {CANCEL_ANNOTATION: write(cancelled)}}, spec={"shutdown": "Stop"}
    )

    assert cancelled == card_of(run, SETTINGS).cancelled


def test_a_link_where_argo_has_a_page() -> None:
    """None without its address."""
    settings = replace(SETTINGS, argo_url="https://argo.example/")

    assert "https://argo.example/workflows/foxhunt/gpu-test-k7m2" == card_of(workflow(), settings).link
    assert "" == card_of(workflow(), SETTINGS).link


def test_two_cards_that_are_equal_look_the_same() -> None:
    """Equality decides whether an edit is due: another version of the same object is none."""
    before, after = workflow(phase="Running", version=1), workflow(phase="Running", version=2)

    assert card_of(before, SETTINGS) == card_of(after, SETTINGS)
    assert card_of(before, SETTINGS) != card_of(workflow(phase="Running", parameters={"models": ALL[:3]}), SETTINGS)
