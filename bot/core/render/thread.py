"""What stands under a card: the failures, and the one notice that rings."""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.attempt import Reach
from bot.core.card import Card, Origin, OriginKind
from bot.core.memory import Ended
from bot.core.render.escape import again_harmless, code, fenced, mention, prose
from bot.core.render.outcome import headline
from bot.core.render.post import apart, fit
from bot.core.render.words import duration
from bot.core.results import RED, Suite, SuiteStatus
from bot.core.settings import Settings
from bot.core.verdict import ModelStatus, Verdict

NOTICE = "notice"
"""Key of the part that rings."""

MAX_FAILURES = 12
"""Replies with failures under one card; what is beyond is counted in the last one."""

MAX_TESTS = 40
"""Failed tests named in one reply."""

_MARKS = {
    Verdict.PASSED: "✅",
    Verdict.FAILED: "❌",
    Verdict.BROKEN: "🧱",
    Verdict.CANCELLED: "🚫",
    Verdict.TIMED_OUT: "⌛",
    Verdict.NO_GPU: "💤",
    Verdict.UNKNOWN: "❔",
}


@dataclass(frozen=True)
class Part:
    """One reply under a card. `key` names it within its attempt, so that it is said once."""

    key: str
    text: str
    asker: Origin | None = None
    """Who is rung by it: their name, as it is when it is said, goes in front; see `called`."""


def failure_parts(card: Card) -> tuple[Part, ...]:
    """A reply for each failed model and red shared suite."""
    if card.outcome is None:
        return ()
    groups = [(m.name, m.name, m.suites) for m in card.outcome.of(ModelStatus.FAILED)]
    groups += [(f"shared:{s.suite}", s.suite, (s,)) for s in card.outcome.shared_red]
    parts = [Part(f"failure:{key}", _failure(name, suites)) for key, name, suites in groups[:MAX_FAILURES]]
    if len(groups) > MAX_FAILURES:
        rest = ", ".join(prose(name, 30) for _, name, _ in groups[MAX_FAILURES:])
        parts.append(Part("failure:more", fit([f"Failed as well: {rest}"])))
    return tuple(parts)


def _failure(name: str, suites: tuple[Suite, ...]) -> str:
    return fit(apart([f"❌ **{prose(name, 30)}**", *(line for s in suites if s.status in RED for line in _suite(s))]))


def _suite(suite: Suite) -> list[str]:
    total = suite.passed + suite.failed
    how = {
        SuiteStatus.FAILED: f"{suite.failed} of {total} failed" if suite.failed else f"exit code {suite.exit_code}",
        SuiteStatus.BROKEN: "never got to test",
        SuiteStatus.TIMED_OUT: "timed out",
        SuiteStatus.KILLED: "was killed",
    }[suite.status]
    reason = f" ({prose(suite.reason, 200)})" if suite.reason else ""
    lines = [f"suite {code(suite.suite, 60)} · {how}{reason} · {duration(int(suite.seconds))}"]
    lines += [f"- {code(test, 160)}" for test in suite.failed_tests[:MAX_TESTS]]
    if len(suite.failed_tests) > MAX_TESTS:
        lines.append(f"- and {len(suite.failed_tests) - MAX_TESTS} more")
    if suite.tail:
        lines.append(fenced(suite.tail, 1500))
    return lines


def summary(card: Card) -> str:
    """The notice without the names: the whole verdict in its first 60 characters, for a push preview."""
    outcome = card.outcome
    if outcome is None:
        raise AssertionError("only an ended run has a summary")
    line = f"{_MARKS[outcome.verdict]} {headline(card)}"
    if outcome.verdict is Verdict.UNKNOWN and outcome.reason:
        line += f" · {prose(outcome.reason, 200)}"
    if outcome.verdict is Verdict.PASSED and card.seconds is not None:
        line += f", {duration(card.seconds)}"
    if outcome.verdict is Verdict.CANCELLED and outcome.results is not None:
        done = len(outcome.of(ModelStatus.PASSED)) + len(outcome.of(ModelStatus.FAILED))
        line += f" ({done} of {len(outcome.models)} done)"
    if outcome.verdict is Verdict.CANCELLED and outcome.reach is not Reach.TESTS:
        line += " before any test ran"
    elif outcome.verdict is Verdict.NO_GPU:
        line += ", so no test ran"
    elif outcome.verdict in {Verdict.UNKNOWN, Verdict.CANCELLED, Verdict.TIMED_OUT}:
        line += " · not a pass"
    return line


def notice(card: Card, ended: Ended, settings: Settings) -> Part | None:
    """The one message at the end of an attempt that rings for somebody; None where nobody is to be rung."""
    said = again_harmless(ended.summary)  # who may change the Workflow may have changed its journal
    if card.origin.kind is OriginKind.CHAT:
        # who stops their own run knows it
        own = ended.by == card.origin.user_id and ended.verdict == Verdict.CANCELLED
        return None if own else Part(NOTICE, fit([said]), card.origin)
    if card.origin.kind is OriginKind.CI and ended.verdict == Verdict.PASSED:
        return None  # green pushes stay silent
    ringing = " ".join(mention(name) for name in settings.owners)
    return Part(NOTICE, fit([f"{ringing} {said}".strip()]))


def called(text: str, user_name: str, *, there: bool = True) -> str:
    """A notice with the name in front of the one who asked; who is not there any more is named and not rung."""
    name = mention(user_name) if there else prose(user_name, 64)
    return f"{name} {text}".strip()
