"""Answers as everybody in a channel reads them."""

from __future__ import annotations

from bot.core.render.post import MAX_MESSAGE
from bot.core.render.reply import in_thread

TRIGGERS = ("gputest", "nightly")


def test_lines_to_copy_are_written_as_posts() -> None:
    """A slash command needs Mattermost to reach the bot; a post does not."""
    text = "Try `/gputest models=all` or `/nightly status`, `/gputest`; not `/gputests` nor `a /gputest`."

    assert in_thread(text, "gputest", TRIGGERS) == (
        "Try `@gputest models=all` or `@gputest nightly status`, `@gputest`; not `/gputests` nor `a /gputest`."
    )


def test_it_rings_for_nobody() -> None:
    """A name outside of code is split; in code it is not read as one, and stays fit to be copied."""
    assert in_thread("@all @\u200bolga `ref=a@b` ```\n@here\n```", "gputest", TRIGGERS) == (
        "@\u200ball @\u200bolga `ref=a@b` ```\n@here\n```"
    )


def test_it_is_never_empty_and_never_too_long() -> None:
    """A run whose card is in the same channel is acknowledged all the same."""
    assert "card is in this channel" in in_thread("", "gputest", TRIGGERS)
    assert len(in_thread("x" * 20000, "gputest", TRIGGERS)) == MAX_MESSAGE
