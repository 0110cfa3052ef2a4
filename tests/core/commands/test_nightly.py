"""`/nightly`: what is parsed. What people read is in tests/core/command_lines.tsv."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.commands.nightly import Nightly, ShowNightly, SwitchNightly, parse
from bot.core.commands.spec import ShowHelp
from bot.core.errors import UserError


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("", ShowNightly()),
        ("status", ShowNightly()),
        ("enable", SwitchNightly(enable=True)),
        ("Off reason='no H100'", SwitchNightly(enable=False, reason="no H100")),
        ("disable --reason x", SwitchNightly(enable=False, reason="x")),
        ("resume", SwitchNightly(enable=True)),
        ("?", ShowHelp("nightly")),
    ],
)
def test_what_is_asked_for(text: str, asked: Nightly) -> None:
    """Without a word it is the status."""
    assert asked == parse(text)


def test_a_reason_is_cut() -> None:
    """It stands in an annotation and in an answer."""
    assert SwitchNightly(enable=False, reason="x" * 200) == parse(f"disable reason={'x' * 300}")


@given(
    st.one_of(
        st.text(max_size=200),
        st.lists(st.sampled_from(["enable", "off", "reason=", "reason=a", "'", "x", "status", "help", "="])).map(
            " ".join
        ),
    )
)
def test_no_text_raises_anything_but_a_user_error(text: str) -> None:
    """And each refusal has a line to copy."""
    try:
        parse(text)
    except UserError as error:
        assert error.text
        assert error.suggestion.startswith("/nightly ")
