"""What stands under a card. The wording is in tests/golden/render."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.core.card import CI_LABEL, Card, card_of
from bot.core.memory import CANCEL_ANNOTATION, REQUEST_ANNOTATION, Cancelled, Ended, Request, write
from bot.core.render.post import MAX_MESSAGE
from bot.core.render.thread import MAX_FAILURES, called, failure_parts, notice, summary
from bot.core.verdict import Verdict
from bot.core.workflow import CRON_LABEL
from tests.phrases import NOW, SETTINGS, ended, green, node, results, suite, workflow

ANNA = {"annotations": {REQUEST_ANNOTATION: write(Request("gpu-test-k7m2", "r", "id-anna", "anna", "CHANNEL"))}}
OWNERS = replace(SETTINGS, owners=("olga", "Otto B"))


def over(text: str | None = None, **more: Any) -> Card:
    """The card of a run that ended."""
    return card_of(ended(text if text is not None else green(), **more), SETTINGS)


def rung(card: Card, settings: Any = OWNERS) -> str | None:
    """The notice of that end."""
    assert card.outcome is not None
    by = card.cancelled.user_id if card.cancelled else ""
    part = notice(card, Ended(card.attempt, card.outcome.verdict, "…", by), settings)
    if part is None or part.asker is None:
        return part.text if part is not None else None
    return called(part.text, part.asker.user_name)


def stopped_by(user: str) -> Card:
    """Anna's run, stopped by somebody from the chat."""
    note = write(Cancelled("2026-03-02T10:00:00Z", f"id-{user}", user, NOW))
    tests = node("compile-and-test", "Failed", message="workflow shutdown with strategy:  Stop")
    meta = {"annotations": ANNA["annotations"] | {CANCEL_ANNOTATION: note}}
    return card_of(workflow(phase="Failed", nodes=[tests], meta=meta, spec={"shutdown": "Stop"}), SETTINGS)


def test_who_is_rung() -> None:
    """The one who asked, else the owners; a green push rings for nobody, a red one for the owners."""
    red = results([suite("dqn", status="failed")])

    assert "@anna …" == rung(over(meta=ANNA))
    assert "@olga Otto B …" == rung(over())
    assert "@olga Otto B …" == rung(over(meta={"labels": {CRON_LABEL: "nightly"}}))
    assert rung(over(meta={"labels": {CI_LABEL: "main"}})) is None
    assert "@olga Otto B …" == rung(over(red, meta={"labels": {CI_LABEL: "main"}}))
    assert "…" == rung(over(), replace(SETTINGS, owners=()))


def test_a_journal_that_somebody_wrote_rings_nobody_else() -> None:
    """Who may change the Workflow may write its journal too; only the one who asked is rung, and nothing is bold."""
    part = notice(over(meta=ANNA), Ended("a", Verdict.FAILED, "@channel **boo** <!here>"), SETTINGS)

    assert part is not None
    assert "@\u200bchannel \\*\\*boo\\*\\* \\<!here\\>" in part.text


def test_who_stops_their_own_run_is_not_rung_for_it() -> None:
    """Whose run somebody else stopped is."""
    assert rung(stopped_by("anna")) is None
    assert "@anna …" == rung(stopped_by("ben"))


def test_who_is_not_there_any_more_is_named() -> None:
    """And rings nobody, nor does a name that is none."""
    assert "anna …" == called("…", "anna", there=False)
    assert "@anna …" == called("…", "Anna")
    assert "…" == called("…", "")


def test_an_own_stop_that_came_too_late_rings() -> None:
    """The verdict is another than cancelled."""
    card = stopped_by("anna")

    assert notice(card, Ended("a", Verdict.PASSED, "✅", "id-anna"), SETTINGS) is not None


def test_an_own_stop_stays_silent_once_the_run_lives_again() -> None:
    """What `argo retry` takes from the Workflow, the journal still knows; whoever else stopped it is told of."""
    card = over(meta=ANNA)

    assert notice(card, Ended("a", Verdict.CANCELLED, "🚫", "id-anna"), SETTINGS) is None
    assert notice(card, Ended("a", Verdict.CANCELLED, "🚫", "id-ben"), SETTINGS) is not None


def test_each_part_has_a_key_of_its_own() -> None:
    """A shared suite may be called like a model; each is said once."""
    suites = [suite("core", status="failed"), suite("shared", "core", "failed"), suite("dqn", status="failed")]
    parts = failure_parts(over(results(suites), parameters={"models": "dqn,core"}))

    assert ["failure:dqn", "failure:core", "failure:shared:core"] == [part.key for part in parts]


@pytest.mark.parametrize(("count", "parts"), [(0, 0), (1, 1), (MAX_FAILURES, MAX_FAILURES), (40, MAX_FAILURES + 1)])
def test_so_many_failures_have_a_reply_of_their_own(count: int, parts: int) -> None:
    """What is beyond is named in the last one."""
    text = results([suite(f"m{n:02d}", status="failed") for n in range(count)])

    assert parts == len(failure_parts(over(text, parameters={"models": "m00"})))


def test_a_run_under_way_has_neither() -> None:
    """No failures, and no summary."""
    running = card_of(workflow(phase="Running"), SETTINGS)

    assert () == failure_parts(running)
    with pytest.raises(AssertionError):
        summary(running)


def test_replies_are_below_the_limit_and_whole() -> None:
    """However long names, tests and tails are; no code span and no fence is cut open."""
    long = suite(
        "dqn",
        status="failed",
        failed_tests=[f"{'t' * 300}`@all`{n}" for n in range(200)],
        tail="`" * 1500,
        reason="r" * 500,
    )
    suites = [long | {"suite": f"{'s' * 100}{n}"} for n in range(20)]
    (part,) = failure_parts(over(results(suites), parameters={"models": "dqn"}))

    assert len(part.text) <= MAX_MESSAGE
    assert part.text.endswith("\n…")
    outside = [line for line in part.text.splitlines() if line.strip("`") and not line.startswith(("suite", "- `"))]
    assert [line for line in outside if "@" in line] == []


@pytest.mark.parametrize(
    ("text", "more", "says"),
    [
        (green(), {}, "✅ k7m2: all 10 green, 36 min"),
        (green(), {"finishedAt": None}, "✅ k7m2: all 10 green"),
        (None, {"message": "why"}, " · not a pass"),
    ],
)
def test_summaries(text: str | None, more: dict[str, Any], says: str) -> None:
    """The verdict first; its length where it is known; what is no pass says so."""
    assert summary(card_of(ended(text, **more), SETTINGS)).endswith(says)


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_has_a_summary(verdict: Verdict) -> None:
    """With its mark in front: a push preview shows 60 characters."""
    card = over(results([suite("dqn")]), parameters={"models": "dqn,ppo"})
    assert card.outcome is not None
    line = summary(replace(card, outcome=replace(card.outcome, verdict=verdict)))

    assert "k7m2" in line[:8]
