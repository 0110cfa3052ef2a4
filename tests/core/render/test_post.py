"""The shape of a post."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.core.render.post import MAX_MESSAGE, Post, apart, fit


def test_attachments_as_mattermost_takes_them() -> None:
    """None without a text; the message is what a notification shows; buttons where there are some."""
    post = Post("message", "text", "#123456")
    base = {"color": "#123456", "text": "text", "fallback": "message"}

    assert [] == Post("message").attachments([{"id": "x"}])
    assert [base] == post.attachments() == post.attachments([])
    assert [base | {"actions": [{"id": "x"}]}] == post.attachments([{"id": "x"}])


def test_lines_that_fit_stay_as_they_are() -> None:
    """To the last sign."""
    assert "" == fit([])
    assert "ab\ncd" == fit(["ab", "cd"], 5)


def test_a_line_that_does_not_fit_is_left_out_whole_if_it_holds_code() -> None:
    """Cut open, a code span would let out the mention that it holds."""
    assert "ab\n…" == fit(["ab", "`@all`", "cd"], 9)
    assert "ab\nplai…" == fit(["ab", "plain text"], 8)
    assert "ab…" == fit(["abc", "cd"], 3)


@given(st.lists(st.text(st.sampled_from("ab`@"), max_size=12), max_size=12), st.integers(2, 60))
def test_what_fits_is_never_longer(lines: list[str], limit: int) -> None:
    """And consists of whole lines, but for the last."""
    shown = fit(lines, limit)

    assert len(shown) <= limit
    assert shown == "\n".join(lines) or shown.endswith("…")
    assert all(given == kept for given, kept in zip(lines, shown.split("\n")[:-1], strict=False))


def test_what_follows_a_list_is_set_apart_from_it() -> None:
    """Else it is taken for a part of the last point. A block of code is not, and one empty line is enough."""
    assert ["a", "- b", "  - c", "", "d", "- e"] == apart(["a", "- b", "  - c", "d", "- e"])
    assert ["- a", "```", "- b", "", "c"] == apart(["- a", "```", "- b", "", "c"])


def test_the_limit_is_that_of_the_server() -> None:
    """A quarter of a column of 65535 bytes."""
    assert 16383 == MAX_MESSAGE == len(fit(["x" * 20000]))
