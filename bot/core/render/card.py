"""The card: one post that follows a run.

The message says state, name and what was asked, and changes with the stage only, so that search finds the verdict
(search does not see attachments). Everything that moves is in the attachment.
"""

from __future__ import annotations

from collections.abc import Iterable

from bot.core.attempt import Reach
from bot.core.card import Card, Stage
from bot.core.progress import ModelProgress, Progress
from bot.core.render.escape import code, prose
from bot.core.render.outcome import MAX_LINES, MAX_TESTS, headline, outcome_lines, reason_lines
from bot.core.render.post import AMBER, BLUE, GREEN, GREY, PURPLE, RED, Post
from bot.core.render.warmup import folded_line, refused_words, until_line, waiting_for, way_line
from bot.core.render.words import (
    article,
    asked_words,
    clock,
    duration,
    epochs_words,
    first_upper,
    names_line,
    origin_words,
    reason_words,
    ref_words,
)
from bot.core.settings import Settings
from bot.core.verdict import Outcome, Verdict

BREAK = "  \n"
"""A line break in Markdown."""

OVER = "The tests are over, the results are being reported"
ON_HOLD = "Argo starts nothing until somebody resumes it, or its pause is over"


def render_card(card: Card, settings: Settings) -> Post:
    """The post for a card."""
    if card.outcome is not None:
        return _ended(card, card.outcome, settings)
    return _running(card, settings)


def _running(card: Card, settings: Settings) -> Post:
    what = asked_words(card)
    since = f"since {clock(card.since, settings)}" if card.since else ""
    models = names_line("⚪", card.asked.models)
    way = _way_lines(card, settings)
    edge = RED if card.way is not None and card.way.late else AMBER
    head, color, lines = {
        Stage.QUEUED: (
            "🕓",
            GREY,
            [queue_words(card) or reason_words(card.detail), since and f"Asked {since.removeprefix('since ')}"],
        ),
        Stage.PAUSED: ("⏸️", GREY, [ON_HOLD, since]),
        Stage.UNSEEN: ("🔵", BLUE, [prose(card.detail, 160), since]),
        Stage.WAITING: (
            "🟡",
            edge,
            [waiting_for(card.way, card.detail) or f"No {prose(card.asked.gpu, 40)} node yet", *way, since],
        ),
        Stage.WARMING: ("🟡", edge, [reason_words(card.detail), *way, since]),
        Stage.TESTING: (
            "🔵",
            BLUE,
            [since, *way, *(_progress_lines(card, card.progress) if card.progress else [models])],
        ),
        Stage.FINISHING: ("🔵", BLUE, [reason_words(card.detail) or OVER, *way, since]),
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
    return Post(message, _join([*(first_upper(line) for line in lines if line), *_foot(card)]), color)


def _way_lines(card: Card, settings: Settings) -> list[str]:
    """The way to a GPU: step by step while it lasts, in one line afterwards."""
    way = card.way
    if card.stage in {Stage.WAITING, Stage.WARMING}:
        if way is None or way.current is None:
            return [until_line(card, settings)]
        refused = refused_words(way)
        return [refused and f"⚠️ {first_upper(refused)}", way_line(way, settings), until_line(card, settings)]
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
    lines += [names_line("✅", green)] if green else []
    lines += [names_line("❔", unclear)] if unclear else []
    running = [m.name for _, m in seen if m is not None and m.running and not m.red]
    lines += [names_line("⏳", running)] if running else []
    return [*lines, names_line("⚪", waiting)] if waiting else lines


def _red_line(model: ModelProgress) -> str:
    red, so_far = model.red, " so far" if model.running else ""
    more = f" and {len(red) - MAX_TESTS} more" if len(red) > MAX_TESTS else ""
    return f"❌ **{prose(model.name, 30)}**{so_far}: {', '.join(code(test, 80) for test in red[:MAX_TESTS])}{more}"


def _ended(card: Card, outcome: Outcome, settings: Settings) -> Post:
    head, color = _HEADS[outcome.verdict]
    # of a verdict on each model the lines below name them all
    named = outcome.verdict in {Verdict.PASSED, Verdict.FAILED}
    asked = f"{epochs_words(card.asked)} · {ref_words(card)}" if named else asked_words(card)
    message = f"{head} **{headline(card)}** · {asked}"
    way = _way_lines(card, settings)
    if outcome.verdict is Verdict.CANCELLED and outcome.reach is Reach.QUEUE:
        lines = [_never_began(card, outcome, settings)]
    else:
        lines = [*outcome_lines(outcome), *reason_lines(outcome), *way, _length(card, settings)]
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


def _length(card: Card, settings: Settings) -> str:
    if card.seconds is None or card.since is None:
        return ""
    return f"{duration(card.seconds)}, ended {clock(card.since, settings)}"


def _foot(card: Card) -> list[str]:
    link = f" · [Argo]({card.link})" if card.link else ""
    return [*(prose(note) for note in card.notes), f"{first_upper(origin_words(card.origin))}{link}"]


def _join(lines: Iterable[str]) -> str:
    return BREAK.join(lines)
