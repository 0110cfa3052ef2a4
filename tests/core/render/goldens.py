"""Golden files of what is rendered. `GOLDEN=write` writes them anew; read the difference before you commit it."""

from __future__ import annotations

import os
from pathlib import Path

from bot.core.card import Card
from bot.core.memory import Ended
from bot.core.render.card import render_card
from bot.core.render.thread import called, failure_parts, notice, summary
from tests.phrases import SETTINGS

FOLDER = Path(__file__).parents[2] / "golden" / "render"


def matches(name: str, text: str) -> None:
    """Compare with the golden file of that name."""
    path = FOLDER / f"{name}.md"
    if os.environ.get("GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    assert path.read_text(encoding="utf-8") == text


def posts_of(card: Card) -> list[str]:
    """Everything that stands in the chat of that card: message, attachment, replies."""
    post = render_card(card, SETTINGS)
    posts = [post.message, post.text]
    if card.outcome is not None:
        by = card.cancelled.user_id if card.cancelled else ""
        last = notice(card, Ended(card.attempt, card.outcome.verdict, summary(card), by), SETTINGS)
        posts += [part.text for part in failure_parts(card)]
        if last is not None:
            posts.append(called(last.text, last.asker.user_name) if last.asker else last.text)
    return posts


def shown(card: Card) -> str:
    """The same to read, with what can't be seen written out."""
    post = render_card(card, SETTINGS)
    message, text, *replies = posts_of(card)
    lines = ["## card", message, f"[{post.color}]", text]
    for number, reply in enumerate(replies, 1):
        lines += ["", f"## reply {number}", reply]
    return "\n".join(lines).replace("\u200b", "·").replace("  \n", "\n") + "\n"
