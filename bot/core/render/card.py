"""The card: one post that follows a run.

The message says state, name and what was asked, and changes with the stage only, so that search finds the verdict
(search does not see attachments). Everything that moves is in the attachment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from bot.core.card import Asked, Card, Origin, OriginKind, Stage
from bot.core.progress import ModelProgress, Progress
from bot.core.render.escape import code, prose
from bot.core.render.post import AMBER, BLUE, GREEN, GREY, PURPLE, RED, Post
from bot.core.render.scheduling import waiting_words
from bot.core.render.warmup import folded_line, refused_words, stuck_words, until_line, waiting_for, way_line
from bot.core.results import RED as FAILING
from bot.core.results import BuildError, Suite, SuiteStatus
from bot.core.settings import Settings
from bot.core.verdict import ModelOutcome, ModelStatus, Outcome, Reach, Verdict

BREAK = "  \n"
"""A line break in Markdown."""

MAX_NAMES = 60
"""Names in one line."""
MAX_LINES = 40
"""Models listed one by one; more are counted."""

OVER = "The tests are over, the results are being reported"
ON_HOLD = "Argo starts nothing until somebody resumes it, or its pause is over"

MAX_TESTS = 3
"""Failed tests named per model on the card; all are in the thread."""


def render_card(card: Card, settings: Settings) -> Post:
    """The post for a card."""
    if card.outcome is not None:
        return _ended(card, card.outcome, settings)
    return _running(card, settings)


def _running(card: Card, settings: Settings) -> Post:
    what = _what(card)
    since = f"since {clock(card.since, settings)}" if card.since else ""
    models = _names("⚪", card.asked.models)
    way = _way_lines(card, settings)
    edge = RED if card.way is not None and card.way.late else AMBER
    head, color, lines = {
        Stage.QUEUED: (
            "🕓",
            GREY,
            [queue_words(card) or _reason(card.detail), since and f"Asked {since.removeprefix('since ')}"],
        ),
        Stage.PAUSED: ("⏸️", GREY, [ON_HOLD, since]),
        Stage.UNSEEN: ("🔵", BLUE, [prose(card.detail, 160), since]),
        Stage.WAITING: (
            "🟡",
            edge,
            [waiting_for(card.way, card.detail) or f"No {prose(card.asked.gpu, 40)} node yet", *way, since],
        ),
        Stage.WARMING: ("🟡", edge, [_reason(card.detail), *way, since]),
        Stage.TESTING: (
            "🔵",
            BLUE,
            [since, *way, *(_progress_lines(card, card.progress) if card.progress else [models])],
        ),
        Stage.FINISHING: ("🔵", BLUE, [_reason(card.detail) or OVER, *way, since]),
    }[card.stage]
    verb = {
        Stage.QUEUED: "queued",
        Stage.PAUSED: "suspended",
        Stage.UNSEEN: "under way",
        Stage.WAITING: f"waiting for {article(card.asked.gpu)} {prose(card.asked.gpu, 40)}",
        Stage.WARMING: "warming up",
        Stage.TESTING: _testing(card.progress),
        Stage.FINISHING: "finishing",
    }[card.stage]
    message = f"{head} **{prose(card.short, 40)} {verb}** · {what}"
    return Post(message, _join([*(_first_upper(line) for line in lines if line), *_foot(card)]), color)


def _way_lines(card: Card, settings: Settings) -> list[str]:
    """The way to a GPU: step by step while it lasts, in one line afterwards."""
    way = card.way
    if card.stage in {Stage.WAITING, Stage.WARMING}:
        if way is None or way.current is None:
            return [until_line(card, settings)]
        refused = refused_words(way)
        return [refused and f"⚠️ {_first_upper(refused)}", way_line(way, settings), until_line(card, settings)]
    return [folded_line(way)] if way is not None else []


def queue_words(card: Card) -> str:
    """For which run it waits, "" where that is not known.

    Which one comes next is Argo's to choose, so no place in line is promised.
    """
    if not card.behind:
        return ""
    names = ", ".join(f"**{prose(name, 40)}**" for name in card.behind)
    return f"Waits for {names}: one run at a time" + (f" (lock {code(card.lock, 60)})" if card.lock else "")


def _testing(progress: Progress | None) -> str:
    if progress is None:
        return "compiling and testing"
    return "testing" if progress.compiled else "compiling"


def _progress_lines(card: Card, progress: Progress) -> list[str]:
    """What the log showed so far: how many are through, what is red, what runs. A view only, never a verdict."""
    seen = [(name, progress.model(name)) for name in card.asked.models]
    done = [m for _, m in seen if m is not None and not m.running]
    lines = [f"**{len(done)} of {len(seen)}**"] if progress.compiled else []
    red = [m for _, m in seen if m is not None and m.red]
    lines += [_red_line(m) for m in red[:MAX_LINES]]
    green = [m.name for m in done if not m.red and m.passed]
    unclear = [m.name for m in done if not m.red and not m.passed]
    waiting = [name for name, m in seen if m is None]
    lines += [_names("✅", green)] if green else []
    lines += [_names("❔", unclear)] if unclear else []
    running = [m.name for _, m in seen if m is not None and m.running and not m.red]
    lines += [_names("⏳", running)] if running else []
    return [*lines, _names("⚪", waiting)] if waiting else lines


def _red_line(model: ModelProgress) -> str:
    red, so_far = model.red, " so far" if model.running else ""
    more = f" and {len(red) - MAX_TESTS} more" if len(red) > MAX_TESTS else ""
    return f"❌ **{prose(model.name, 30)}**{so_far}: {', '.join(code(test, 80) for test in red[:MAX_TESTS])}{more}"


def _ended(card: Card, outcome: Outcome, settings: Settings) -> Post:
    head, color = _HEADS[outcome.verdict]
    # of a verdict on each model the lines below name them all
    named = outcome.verdict in {Verdict.PASSED, Verdict.FAILED}
    message = f"{head} **{headline(card)}** · {_epochs(card.asked) + ' · ' + _ref(card) if named else _what(card)}"
    way = _way_lines(card, settings)
    if outcome.verdict is Verdict.CANCELLED and outcome.reach is Reach.QUEUE:
        lines = [_never_began(card, outcome, settings)]
    else:
        lines = [*_outcome_lines(outcome), *_reason_lines(outcome), *way, _length(card, settings)]
    return Post(message, _join(line for line in [*lines, *_foot(card)] if line), color)


def _never_began(card: Card, outcome: Outcome, settings: Settings) -> str:
    """All that is to be said of a run of which nothing ran: why, and how long it waited."""
    waited = f" for {duration(card.seconds)}" if card.seconds is not None else ""
    end = f", until {clock(card.since, settings)}" if card.since is not None else ""
    return f"Nothing ran: {prose(outcome.reason, 300) or 'stopped while it waited'} in the queue{waited}{end}"


_HEADS = {
    Verdict.PASSED: ("✅", GREEN),
    Verdict.FAILED: ("❌", RED),
    Verdict.BROKEN: ("🧱", RED),
    Verdict.CANCELLED: ("🚫", GREY),
    Verdict.TIMED_OUT: ("⌛", RED),
    Verdict.NO_GPU: ("💤", AMBER),
    Verdict.UNKNOWN: ("❔", PURPLE),
}


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


def _outcome_lines(outcome: Outcome) -> list[str]:
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
    return f"No {kind}: {_listed(outcome.without_tests)}"


def _green_line(outcome: Outcome, passed: tuple[ModelOutcome, ...], some_failed: bool) -> str:
    shared = outcome.shared and not outcome.shared_red and all(s.status is SuiteStatus.PASSED for s in outcome.shared)
    line = f"✅ {len(passed)} others" if some_failed and len(passed) > 3 else _names("✅", [m.name for m in passed])
    return line + (", shared suites green" if shared else "")


def _unknown_lines(outcome: Outcome) -> list[str]:
    lines = []
    for model in outcome.of(ModelStatus.UNKNOWN) if outcome.results else ():
        why = next((s.reason for s in model.suites if s.status is SuiteStatus.UNKNOWN and s.reason), "")
        lines.append(f"❔ **{prose(model.name, 30)}**{': ' + prose(why, 100) if why else ''}")
    not_run = outcome.of(ModelStatus.NOT_RUN)
    if not_run:
        lines.append(_names("⚪ Not run:", [m.name for m in not_run]))
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


def _reason_lines(outcome: Outcome) -> list[str]:
    lines = [_first_upper(prose(outcome.reason, 300))] if outcome.reason else []
    if outcome.verdict is Verdict.NO_GPU:
        last = f"The last word was: {_reason(outcome.reason)}" if outcome.reason else "No node took it in time"
        return [stuck_words(outcome.stuck), last]
    if outcome.verdict in {Verdict.UNKNOWN, Verdict.CANCELLED, Verdict.TIMED_OUT}:
        lines.append("**Not a pass.**")
    return lines


def _length(card: Card, settings: Settings) -> str:
    if card.seconds is None or card.since is None:
        return ""
    return f"{duration(card.seconds)}, ended {clock(card.since, settings)}"


def duration(seconds: int) -> str:
    """A length as people say it: `41 s`, `36 min`, `1 h 30 min`."""
    if seconds < 60:
        return f"{seconds} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def clock(when: datetime, settings: Settings) -> str:
    """A clock time in the configured zone, which is named."""
    return f"{when.astimezone(ZoneInfo(settings.timezone)):%H:%M %Z}"


def article(gpu: str) -> str:
    """`an H100`, `an L4`, `a T4`: GPU names are spelled out, and so is the article."""
    return "an" if gpu[:1].upper() in {*"AEFHILMNORSX8"} else "a"


def origin_words(origin: Origin) -> str:
    """Who or what asked, without ringing anybody."""
    name = prose(origin.user_name, 64)
    return {
        OriginKind.CHAT: f"for {name}",
        OriginKind.CRON: f"by the schedule {name}",
        OriginKind.CI: f"by a push to {name}" if name else "by a push",
        OriginKind.API: f"by {name}, not from the chat" if name else "not from the chat",
    }[origin.kind]


def models_words(asked: Asked) -> str:
    """Which models, in a line."""
    if asked.all_models:
        return "all models"
    more = f" and {len(asked.models) - 6} more" if len(asked.models) > 6 else ""
    if not asked.models:
        return "no model"
    return ", ".join(prose(m, 30) for m in asked.models[:6]) + more


def _what(card: Card) -> str:
    asked = card.asked
    models = models_words(asked)
    scope = "" if asked.scope == "all" else f", {prose(asked.scope, 20)} tests"
    return f"{models}{scope}, {_epochs(asked)} · {_ref(card)}"


def _epochs(asked: Asked) -> str:
    return f"{prose(asked.epochs, 12)} {'epoch' if asked.epochs == '1' else 'epochs'}"


def _ref(card: Card) -> str:
    if re.fullmatch("[0-9a-f]{40}", card.asked.ref):
        return code(card.asked.ref[:7])
    ref = "default branch" if card.asked.ref == "HEAD" else code(card.asked.ref, 80)
    return f"{ref} {code(card.commit[:7])}" if card.commit else ref


def _foot(card: Card) -> list[str]:
    link = f" · [Argo]({card.link})" if card.link else ""
    return [*(prose(note) for note in card.notes), f"{_first_upper(origin_words(card.origin))}{link}"]


def _reason(detail: str) -> str:
    return waiting_words(detail) or prose(detail, 300)


def _names(mark: str, names: Iterable[str]) -> str:
    return f"{mark} {_listed(list(names))}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(prose(name, 30) for name in names[:MAX_NAMES]) + more


def _count(models: int) -> str:
    return "the model" if models == 1 else f"the {models} models"


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _join(lines: Iterable[str]) -> str:
    return BREAK.join(lines)
