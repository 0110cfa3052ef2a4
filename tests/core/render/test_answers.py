"""Answers and refusals. What commands get is in command_lines.tsv; here is what else can be said."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.core.card import Card, Origin, OriginKind, Stage, card_of
from bot.core.commands.gputest import SPEC
from bot.core.errors import UserError
from bot.core.nightly import NightlyView
from bot.core.render import answers, nightly
from bot.core.render.post import MAX_MESSAGE
from bot.core.settings import Defaults
from bot.core.state import EndedRun
from bot.core.verdict import Verdict
from tests.core.render.test_card import mentions
from tests.phrases import SETTINGS, ended, green, node, workflow

BAD = "*x* `@all` |\n# [l](http://y) :tada:"
VIEW = NightlyView("nightly", True, ("0 2 * * *",), "Europe/Paris", None, False, 0, (), None, "")


def queued(name: str = "gpu-test-k7m2", **more: Any) -> Card:
    """The card of a queued run."""
    return card_of(workflow(name, **more), SETTINGS)


def test_refusals_say_what_did_not_happen() -> None:
    """Nothing started, changed or done; a line to copy where there is one."""
    error, bare = UserError("No.", "/gputest help"), UserError("No.")

    assert "🤔 No. Nothing was started.\n`/gputest help`" == answers.refusal(error)
    assert "🤔 No." == answers.refusal(bare, started=True)
    assert "🤔 No. Nothing was changed.\n`/gputest help`" == answers.nothing_changed(error)
    assert "🤔 No. Nothing was changed." == answers.nothing_changed(bare)
    assert "🤔 No. Nothing was done.\n`/gputest help`" == answers.click_refused(error)
    assert "🤔 No. Nothing was done." == answers.click_refused(bare)


def test_a_line_to_copy_is_shown_whole_or_not_at_all() -> None:
    """As it is read in its code span."""
    assert "/gputest dqn ref='a" == answers.copied("/gputest dqn ref=`a")
    assert "x" * 300 == answers.copied("x" * 300)
    assert "" == answers.copied("x" * 301) == answers.copied("")


@pytest.mark.parametrize(
    "text",
    [
        answers.submit_failed(BAD, BAD),
        answers.submit_refused(BAD),
        answers.cancel_failed(BAD, BAD),
        nightly.failed(BAD),
        nightly.unknown(BAD, listed=True),
        answers.no_such_command(BAD, ()),
        answers.run_unknown(BAD, [BAD]),
        answers.run_not_found(BAD, [BAD]),
        answers.started(BAD, "gpu-tests", posts=True),
        answers.started(BAD, "", posts=False),
        answers.started_before(BAD),
        answers.being_stopped(BAD),
        answers.nothing_to_rerun(BAD, Verdict.FAILED),
        answers.no_dialog(BAD),
        answers.not_ready(BAD),
        answers.internal_error(BAD),
        answers.ended_line(BAD, EndedRun(BAD, None, "C", "P", origin=Origin(OriginKind.CHAT, "U", BAD)), SETTINGS),
        nightly.status(replace(VIEW, name=BAD, schedules=(BAD,), timezone=BAD, running=(BAD,), complaint=BAD)),
        answers.run_line(replace(queued(), detail=BAD, short=BAD), SETTINGS),
    ],
)
def test_what_comes_from_outside_is_harmless(text: str) -> None:
    """In whichever sentence it stands."""
    assert set() == mentions(text)
    assert "\n#" not in text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (answers.bad_click(expired=True), "That button is too old; nothing was done."),
        (answers.bad_click(expired=False), "none of mine, or from before I got another token, so I did nothing."),
        (answers.bad_click(expired=False), "`/gputest rerun` and `/gputest cancel`"),
        (answers.bad_form(expired=True), "This form is too old."),
        (answers.bad_form(expired=False), "none of mine, or from before I got another token. Close it and open it"),
        (answers.unknown_token(), "`GPUTEST_COMMAND_TOKENS`"),
        (answers.too_slow(), "`/gputest list` shows what came of it."),
        (answers.working(), "the answer follows"),
        (answers.not_ready("the chat"), "wait for the chat. Nothing was started"),
        (answers.internal_error("k7m2"), "nothing was started. Its log has it as `k7m2`."),
        (nightly.unknown("n", listed=False), "I have just started"),
        (answers.ended_already(queued()), "**k7m2** has ended already."),
        (answers.ended_already(card_of(ended(green()), SETTINGS)), "Too late: k7m2: all 10 green."),
        (answers.run_unknown(None, []), "No run to do that with. None is under way."),
        (answers.run_unknown("x", [], ended=True), "No run is called `x`. I know none that has ended."),
        (answers.run_not_found("x", []), "🤔 No run is called `x`. I know none at the moment."),
    ],
)
def test_sentences_for_what_goes_wrong(text: str, says: str) -> None:
    """What happened, and that nothing was done."""
    assert says in text


def test_the_help_names_the_defaults() -> None:
    """A branch is shown as such, the default branch is called so."""
    other = replace(SETTINGS, defaults=Defaults(models=("kan",), ref="trunk", epochs=1, scope="lib"))
    assert answers.help_text(SPEC, SETTINGS).endswith(
        "Without a word on it: dqn,ppo,tft, 3 epochs, scope all, the default branch"
    )
    assert answers.help_text(SPEC, other).endswith("Without a word on it: kan, 1 epochs, scope lib, `trunk`")


@pytest.mark.parametrize("stage", Stage)
def test_every_stage_has_its_word(stage: Stage) -> None:
    """None is forgotten."""
    line = answers.run_line(replace(queued(), stage=stage), SETTINGS)

    assert "since 09:59 UTC: **k7m2** · all models · not from the chat" in line


@pytest.mark.parametrize("verdict", [*Verdict, None])
def test_every_verdict_has_its_mark(verdict: Verdict | None) -> None:
    """None is forgotten; of a run whose end was not seen nothing is claimed."""
    line = answers.ended_line("k7m2", EndedRun("gpu-test-k7m2", verdict, "C", "P"), SETTINGS)

    assert line.endswith(" (`gpu-test-k7m2`)")
    assert line[0] in "✅❌🧱🚫⌛💤❔"
    assert ("❔ **k7m2** unknown" in line) is (verdict in {None, Verdict.UNKNOWN})


def test_what_came_of_a_run_and_who_asked() -> None:
    """Its headline, when it ended, and the asker by a name that rings nobody; in each answer a line of its own."""
    anna = Origin(OriginKind.CHAT, "U", "anna")
    run = EndedRun(
        "gpu-test-k7m2", Verdict.FAILED, "C", "P", "2026-03-02T10:36:00Z", None, None, "k7m2: 1 failed", anna
    )
    line = "❌ **k7m2: 1 failed** · ended 2 Mar 10:36 UTC · for anna"

    assert f"{line} (`gpu-test-k7m2`)" == answers.ended_line("k7m2", run, SETTINGS)
    assert f"Ended last:\n{line}\n{line}" in answers.status([], [("k7m2", run)] * 2, SETTINGS, listed=True)


def test_a_run_in_the_queue_reads_as_on_its_card() -> None:
    """For whom it waits, and not Argo's words on the lock."""
    words = "Waiting for foxhunt/Mutex/cargo lock. Lock status: 0/1"
    card = replace(queued(), detail=words, behind=("j4t9",), lock="cargo")

    assert answers.run_line(card, SETTINGS).endswith(" · waits for **j4t9**: one run at a time (lock `cargo`)")
    assert answers.run_line(replace(card, behind=()), SETTINGS).endswith(f" · {words}")


def test_a_run_without_a_time_or_a_reason() -> None:
    """What is not known is left out."""
    bare = replace(queued(), since=None)
    waiting = card_of(
        workflow(phase="Running", nodes=[node("gpu-warmup", "Pending", message="strange words")]), SETTINGS
    )

    assert "🕓 queued: **k7m2** · all models · not from the chat" == answers.run_line(bare, SETTINGS)
    assert answers.run_line(waiting, SETTINGS).endswith("· not from the chat · strange words")
    known = replace(waiting, detail="0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
    assert answers.run_line(known, SETTINGS).endswith(" · no GPU is free on any of the 3 nodes")


def test_lists_are_below_the_limit() -> None:
    """However many runs there are, and whatever they are called."""
    cards = [replace(queued(), detail=BAD * 20, short=BAD * 3)] * 60
    gone = [(BAD, EndedRun(BAD * 30, Verdict.FAILED, "C", "P"))] * 60

    for text in (
        answers.status(cards, gone, SETTINGS, listed=True),
        answers.run_list(cards, gone, SETTINGS, listed=True),
        answers.run_list([], gone, SETTINGS, listed=True),
    ):
        assert len(text) <= MAX_MESSAGE
        assert set() == mentions(text)


def test_many_schedules_and_runs_are_below_the_limit() -> None:
    """A CronWorkflow may have as many as it likes."""
    text = nightly.status(replace(VIEW, schedules=("* * * * *" * 20,) * 500, running=("x" * 200,) * 500))

    assert len(text) < 4000


def test_when_the_nightly_comes_next() -> None:
    """In its own zone and in UTC; not while it is off, stopped, or without a time."""
    coming = replace(VIEW, upcoming=datetime(2026, 3, 3, 1, tzinfo=UTC))
    next_one = " · next Tue 3 Mar 02:00 CET (01:00 UTC)"

    assert nightly.status(coming).endswith(next_one)
    assert nightly.status(replace(coming, timezone="")).endswith("(UTC, assumed) · next Tue 3 Mar 01:00 UTC")
    for view in (VIEW, replace(coming, enabled=False), replace(coming, stopped=True)):
        assert "next" not in nightly.status(view)


def test_what_was_switched_is_what_was_read_back() -> None:
    """On, off, undone, or set without effect."""
    off = replace(VIEW, enabled=False)

    assert nightly.switched(VIEW, wanted=True).startswith("✅ 🌙 Nightly (nightly) is **on**")
    assert nightly.switched(off, wanted=False).startswith("✅ 🌙 Nightly (nightly) is **off**")
    assert "read back that nightly is **on**" in nightly.switched(VIEW, wanted=False)
    assert "read back that nightly is **off**" in nightly.switched(off, wanted=True)
    assert nightly.switched(replace(VIEW, stopped=True), wanted=True).startswith("⚠️ The flag is set")
    unread = nightly.switched(replace(VIEW, unreadable=VIEW.schedules), wanted=True)
    assert unread.startswith("⚠️ The flag is set, but it will not run.")
    assert unread.endswith(
        "⚠️ Argo starts nothing by `0 2 * * *`: it wants five fields, with weekdays from 0 (Sunday) to 6."
    )
    some = replace(VIEW, schedules=("soon", *VIEW.schedules), unreadable=("soon",))
    assert nightly.switched(some, wanted=True).startswith("✅ 🌙 Nightly")
