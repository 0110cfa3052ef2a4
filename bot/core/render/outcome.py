"""What came of a run: the verdict in a few words, and a line for each model of which something is to be said."""

from __future__ import annotations

from bot.core.attempt import Reach
from bot.core.card import Card
from bot.core.render.escape import code, prose
from bot.core.render.warmup import stuck_words
from bot.core.render.words import article, first_upper, listed, names_line, reason_words
from bot.core.results import RED as FAILING
from bot.core.results import BuildError, Suite, SuiteStatus
from bot.core.verdict import ModelOutcome, ModelStatus, Outcome, Verdict

MAX_LINES = 40
"""Models listed one by one; more are counted."""


MAX_TESTS = 3
"""Failed tests named per model on the card; all are in the thread."""


def headline(card: Card) -> str:
    """The whole verdict in a few words; the notice uses it too."""
    outcome, short = card.outcome, prose(card.short, 40)
    if outcome is None:
        raise AssertionError("only an ended run has a headline")
    total = len(outcome.models)
    if outcome.verdict is Verdict.PASSED:
        return f"{short}: {_all_green(total)}"
    if outcome.verdict is Verdict.FAILED:
        return f"{short}: {_failed_words(outcome, total)}"
    return {
        Verdict.BROKEN: f"{short} did not {_build_verb(outcome)}",
        Verdict.CANCELLED: f"{short} cancelled{_by(card)}",
        Verdict.TIMED_OUT: f"{short} out of time",
        Verdict.NO_GPU: f"{short} never got {article(card.asked.gpu)} {prose(card.asked.gpu, 40)}",
        Verdict.UNKNOWN: f"{short}: no verdict",
    }[outcome.verdict]


def _by(card: Card) -> str:
    return f" by {prose(card.cancelled.user_name, 64)}" if card.cancelled else ""


def _all_green(total: int) -> str:
    return "1 model green" if total == 1 else f"all {total} green"


def _failed_words(outcome: Outcome, total: int) -> str:
    failed = outcome.of(ModelStatus.FAILED)
    names = ", ".join(prose(m.name, 30) for m in failed[:5]) + (" …" if len(failed) > 5 else "")
    words = [f"{len(failed)} of {total} failed: {names}"] if failed else []
    if outcome.shared_red:
        shared = ", ".join(prose(s.suite, 30) for s in outcome.shared_red[:5])
        words.append(f"shared suites failed: {shared}{' …' if len(outcome.shared_red) > 5 else ''}")
    return ", ".join(words)


def _build_verb(outcome: Outcome) -> str:
    build = outcome.results.build if outcome.results else None
    return "link" if build and build.errors and all(e.kind == "link" for e in build.errors) else "compile"


def outcome_lines(outcome: Outcome) -> list[str]:
    """What came of each model, a line each."""
    if outcome.verdict is Verdict.BROKEN:
        return [*_build_lines(outcome), "No test ran."]
    if outcome.reach is not Reach.TESTS:
        return ["Nothing ran." if outcome.reach is Reach.QUEUE else "No test ran."]
    failed = outcome.of(ModelStatus.FAILED)
    lines = [_failed_line(model) for model in failed[:MAX_LINES]]
    lines += [f"❌ {_suite_words(suite)}" for suite in outcome.shared_red[:MAX_LINES]]
    passed = outcome.of(ModelStatus.PASSED)
    if passed:
        lines.append(_green_line(outcome, passed, bool(failed)))
    lines += _unknown_lines(outcome)
    if outcome.without_tests and outcome.verdict in {Verdict.PASSED, Verdict.FAILED}:
        lines.append(_without_tests(outcome))
    return lines


def _without_tests(outcome: Outcome) -> str:
    kinds = {s.scope for m in outcome.models for s in m.suites if s.status is SuiteStatus.SKIPPED}
    kind = (
        "integration tests"
        if kinds == {"integration"}
        else "library tests"
        if kinds == {"lib"}
        else "tests of one kind"
    )
    return f"No {kind}: {listed(outcome.without_tests)}"


def _green_line(outcome: Outcome, passed: tuple[ModelOutcome, ...], some_failed: bool) -> str:
    shared = outcome.shared and not outcome.shared_red and all(s.status is SuiteStatus.PASSED for s in outcome.shared)
    line = f"✅ {len(passed)} others" if some_failed and len(passed) > 3 else names_line("✅", [m.name for m in passed])
    return line + (", shared suites green" if shared else "")


def _unknown_lines(outcome: Outcome) -> list[str]:
    lines = []
    for model in outcome.of(ModelStatus.UNKNOWN) if outcome.results else ():
        why = next((s.reason for s in model.suites if s.status is SuiteStatus.UNKNOWN and s.reason), "")
        lines.append(f"❔ **{prose(model.name, 30)}**{': ' + prose(why, 100) if why else ''}")
    not_run = outcome.of(ModelStatus.NOT_RUN)
    if not_run:
        lines.append(names_line("⚪ Not run:", [m.name for m in not_run]))
    if not outcome.results:
        lines.append(f"Nothing is known of {_count(len(outcome.models))}")
    lines += [f"❔ {_suite_words(s)}" for s in outcome.shared if s.status is SuiteStatus.UNKNOWN]
    return lines[: MAX_LINES + 1]


def _failed_line(model: ModelOutcome) -> str:
    line = f"❌ **{prose(model.name, 30)}** {model.green}/{model.counted} suites"
    tests = [code(test, 80) for suite in model.suites for test in suite.failed_tests]
    other = [
        f"{prose(suite.suite, 40)} {_STATUS_WORDS[suite.status]}"
        for suite in model.suites
        if suite.status in FAILING and not (suite.status is SuiteStatus.FAILED and suite.failed_tests)
    ]
    shown = [*tests[:MAX_TESTS], *other[:MAX_TESTS]]
    more = len(tests) + len(other) - len(shown)
    return f"{line}: {', '.join(shown)}" + (f" and {more} more" if more else "")


def _suite_words(suite: Suite) -> str:
    tests = ", ".join(code(test, 80) for test in suite.failed_tests[:MAX_TESTS])
    return f"**{prose(suite.suite, 40)}** (shared) {_STATUS_WORDS[suite.status]}{': ' + tests if tests else ''}"


_STATUS_WORDS = {
    SuiteStatus.PASSED: "passed",
    SuiteStatus.FAILED: "failed",
    SuiteStatus.SKIPPED: "skipped",
    SuiteStatus.BROKEN: "never got to test",
    SuiteStatus.TIMED_OUT: "timed out",
    SuiteStatus.KILLED: "was killed",
    SuiteStatus.UNKNOWN: "unknown",
}


def _build_lines(outcome: Outcome) -> list[str]:
    build = outcome.results.build if outcome.results else None
    errors = build.errors if build else []
    lines = [_error_line(error) for error in errors[:5]]
    if len(errors) > 5:
        lines.append(f"and {len(errors) - 5} more errors")
    return lines or ["The build failed without a message that I can read."]


def _error_line(error: BuildError) -> str:
    where = f"{error.file}:{error.line}" if error.file and error.line else error.file
    return f"{code(where)} {prose(error.message, 200)}" if where else prose(error.message, 200)


def reason_lines(outcome: Outcome) -> list[str]:
    """Why it is no pass, where that is not seen from the models."""
    lines = [first_upper(prose(outcome.reason, 300))] if outcome.reason else []
    if outcome.verdict is Verdict.NO_GPU:
        last = f"The last word was: {reason_words(outcome.reason)}" if outcome.reason else "No node took it in time"
        return [stuck_words(outcome.stuck), last]
    if outcome.verdict in {Verdict.UNKNOWN, Verdict.CANCELLED, Verdict.TIMED_OUT}:
        lines.append("**Not a pass.**")
    return lines


def _count(models: int) -> str:
    return "the model" if models == 1 else f"the {models} models"
