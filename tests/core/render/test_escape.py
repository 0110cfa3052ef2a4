"""Text from outside, made harmless for Mattermost's Markdown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.render.escape import again_harmless, clean, code, fenced, mention, prose, unmarked

E07 = json.loads((Path(__file__).parents[2] / "cases" / "e07.json").read_text(encoding="utf-8"))
Z = "\u200b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a|b `c` *d* _e_ ~f~ [g](h) <i> #j \\", "a\\|b \\`c\\` \\*d\\* \\_e\\_ \\~f\\~ \\[g\\](h) \\<i\\> \\#j \\\\"),
        ("@all @here x@y", f"@{Z}all @{Z}here x@{Z}y"),
        (":tada: 10:30 a:b:c", f":{Z}tada: 10:30 a:{Z}b:c"),
        ("http://x https://y mailto:z FTP://w", f"http{Z}://x https{Z}://y mailto{Z}:z FTP{Z}://w"),
        ("two\nlines\tand  spaces", "two lines and spaces"),
        ("\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07 \x1bM", "red link"),
        ("a\x00b\x07c\ud800d", "abcd"),
        ("\u202eevil\u202c \u2066x\u2069", "evil x"),
        ("", ""),
        ("x" * 10, "xxxx…"),
        ("x" * 300, "x" * 300),
    ],
)
def test_prose(text: str, shown: str) -> None:
    """One line in a sentence: no Markdown, no mention, no emoji, no link; cut before it is escaped."""
    assert shown == prose(text, 5 if text == "x" * 10 else 300)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain @all *b*", "`plain @all *b*`"),
        ("`tick` ``two``", "`'tick' ''two''`"),
        ("a|b", "`a¦b`"),
        ("a\nb", "`a b`"),
        ("", "` `"),
        ("\x00", "` `"),
        ("x" * 10, "`xxxx…`"),
        ("x" * 120, f"`{'x' * 120}`"),
    ],
)
def test_code(text: str, shown: str) -> None:
    """A code span: never empty, never left open, and no table is cut by it."""
    assert shown == code(text, 5 if text == "x" * 10 else 120)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb", "```\na\nb\n```"),
        ("a ``` b", "````\na ``` b\n````"),
        ("`````", "``````\n`````\n``````"),
        ("\n\nx\n", "```\nx\n```"),
        ("\x1b[1mbold\x1b[0m", "```\nbold\n```"),
        ("0123456789", "```\n…6789\n```"),
    ],
)
def test_fenced(text: str, shown: str) -> None:
    """A block: its fence is longer than any run of backticks, and of a long text the end is kept."""
    assert shown == fenced(text, 5 if text == "0123456789" else 3000)


@pytest.mark.parametrize(
    ("name", "rings"),
    [
        ("anna", "@anna"),
        ("Anna.B-1_x", "@anna.b-1_x"),
        ("7anna", "@7anna"),
        ("", ""),
        ("anna olga", "anna olga"),
        ("an@na", f"an@{Z}na"),
        ("x" * 65, "x" * 63 + "…"),
        ("änna", "änna"),
        ("channel", "channel"),
        ("All", "All"),
        ("HERE", "HERE"),
        ("here.", "here."),
        ("channel-", "channel-"),
        ("_all", "\\_all"),
        ("channels", "@channels"),
    ],
)
def test_the_one_way_to_ring_somebody(name: str, rings: str) -> None:
    """A name that is none of Mattermost's rings nobody; nor do the words for everybody, whatever ends them."""
    assert rings == mention(name)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("✅ k7m2: all 10 green, 36 min", "✅ k7m2: all 10 green, 36 min"),
        ("@channel **boo** `x` [a](http://e)", f"@{Z}channel \\*\\*boo\\*\\* \\`x\\` \\[a\\](http{Z}://e)"),
        ("a\\_b \\\\*", "a\\_b \\\\\\*"),
        (":tada:\nx\x00", f":{Z}tada: x"),
        ("a\\", "a\\\\"),
    ],
)
def test_what_was_escaped_once_and_may_have_been_changed(text: str, shown: str) -> None:
    """What is escaped stays as it is, what is not is escaped."""
    assert shown == again_harmless(text)


@given(st.text(max_size=80))
def test_nothing_is_escaped_twice(text: str) -> None:
    """A sentence of ours comes through as it was; anything else is as harmless as prose."""
    ours = prose(text)
    shown = again_harmless(text)

    assert ours == again_harmless(ours)
    assert not re.search(f"@(?!{Z})", shown)
    assert not set(re.sub(r"\\[\\`*_~\[\]<>|#]", "", shown)) & set("\\`*_~[]<>|#\n")


@given(st.text(max_size=80))
def test_nothing_gets_out_of_prose(text: str) -> None:
    """No bare mention, no line break, nothing that Markdown reads."""
    shown = prose(text)
    bare = re.sub(r"\\[\\`*_~\[\]<>|#]", "", shown)

    assert not re.search(f"@(?!{Z})", shown)
    assert not set(bare) & set("\\`*_~[]<>|#\n")
    assert len(shown) <= 2 * len(text) + 1
    assert shown == shown.encode().decode()


@given(st.text(max_size=200))
def test_nothing_gets_out_of_code(text: str) -> None:
    """One span on one line, whatever is in it."""
    shown = code(text)

    assert re.fullmatch(r"`[^`|\n]+`", shown)
    assert len(shown) <= 122


@given(st.text(st.sampled_from("`a\n~ @")), st.integers(2, 40))
def test_nothing_gets_out_of_a_fence(text: str, limit: int) -> None:
    """It is closed by its own last line and by no other."""
    first, *lines, last = fenced(text, limit).split("\n")

    assert first == last
    assert set(first) == {"`"}
    assert not any(line.startswith(first) for line in lines)


@given(st.text())
def test_clean_text_can_be_stored(text: str) -> None:
    """PostgreSQL refuses NUL, JSON refuses lone surrogates."""
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]", clean(text))


@pytest.mark.parametrize("row", E07["rows"], ids=lambda row: row[0])
def test_field_case_e07_cells_stay_on_their_line(row: list[str]) -> None:
    """A pipe, a newline, a fence or an emoji in a name or a message changes nothing of the shape around it."""
    line = f"| {' | '.join(prose(cell) for cell in row)} |"

    assert 1 == len(line.splitlines())
    assert 4 == len(re.findall(r"(?<!\\)\|", line))
    assert not re.search(r"(?<!\\)`", line)
    assert ":tada:" not in line


def test_a_sentence_without_its_marks() -> None:
    """For where no Markdown is read: as it was meant, and what was escaped is plain again."""
    assert "No model mamba of k7m2, a*b_c" == unmarked("No model `mamba` of **k7m2**, a\\*b\\_c")
