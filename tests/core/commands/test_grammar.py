"""What is well formed, whatever the command."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.commands.grammar import MAX_LINE, Line, nearest, normalise, split, whole_number, written, yes_or_no
from bot.core.errors import UserError

KEYS = {"models", "epochs", "test-scope", "reason"}


def refused(text: str) -> UserError:
    """Why a line is refused."""
    with pytest.raises(UserError) as caught:
        split(text, "gputest", KEYS)
    return caught.value


@pytest.mark.parametrize(
    ("text", "words", "pairs"),
    [
        ("", (), {}),
        ("a b", ("a", "b"), {}),
        ("a,b , c", ("a,b,c",), {}),
        ("a, b, k=v", ("a,b,",), {"k": "v"}),
        ("k=a, l = v", (), {"k": "a,", "l": "v"}),
        ("k=v", (), {"k": "v"}),
        ("K = V", (), {"k": "V"}),
        ("k= v l =w", (), {"k": "v", "l": "w"}),
        ("k='a b'", (), {"k": "a b"}),
        ("k = \"a, 'b' = c\" d", ("d",), {"k": "a, 'b' = c"}),
        ("'a b' c", ("a b", "c"), {}),
        ("it's", ("it's",), {}),
        ("'it's fine' x", ("it's fine", "x"), {}),
        ("k=a=b", (), {"k": "a=b"}),
        ("--epochs 5 a", ("a",), {"epochs": "5"}),
        ("--epochs=5", (), {"epochs": "5"}),
        ("-epochs 5", (), {"epochs": "5"}),
        ("--test_scope lib", (), {"test_scope": "lib"}),
        ("--reason 'a b'", (), {"reason": "a b"}),
        ("--reason 'a = b' c", ("c",), {"reason": "a = b"}),
        ("--other 5", ("-other", "5"), {}),
        ("- a", ("-", "a"), {}),
        ("'' \"\" a", ("a",), {}),
        ("k=v k=v", (), {"k": "v"}),
        ("k=v --K=v", (), {"k": "v"}),
    ],
)
def test_lines_are_taken_apart(text: str, words: tuple[str, ...], pairs: dict[str, str]) -> None:
    """Words in order, pairs by key in lower case."""
    assert Line(words, pairs) == split(text, "gputest", KEYS)


@pytest.mark.parametrize(
    ("text", "why", "best"),
    [
        ("'", "A quote (`'`) is opened and never closed.", "/gputest "),
        ('a k="b c', 'A quote (`"`) is opened and never closed.', "/gputest a k=b c"),
        ("`dqn", "A backtick is opened and never closed.", "/gputest dqn"),
        ("k=“b c", "A quote (`“`) is opened and never closed.", "/gputest k=b c"),
        ("don't k=‘b c", "A quote (`‘`) is opened and never closed.", "/gputest don't k=b c"),
        ("k=", "Nothing stands behind `k=`.", ""),
        ("k= l=v", "Nothing stands behind `k=`.", ""),
        ("k=''", "Nothing stands behind `k=`.", ""),
        ("=v", "Nothing stands in front of `=v`.", ""),
        ("--=v", "Nothing stands in front of `=v`.", ""),
        ("--epochs", "Nothing stands behind `epochs=`.", ""),
        ("--epochs k=v", "Nothing stands behind `epochs=`.", ""),
        ("--epochs --models a", "Nothing stands behind `epochs=`.", ""),
        ("a k=v k=w", "`k` is given twice: `v` and `w`.", "/gputest a k=w"),
        ("k='v w' k=\"x y\"", "`k` is given twice: `v w` and `x y`.", '/gputest k="x y"'),
        ("x" * (MAX_LINE + 1), "That line has 2001 characters, I read up to 2000.", ""),
    ],
)
def test_lines_that_are_refused(text: str, why: str, best: str) -> None:
    """With a line to copy where one follows from it."""
    error = refused(text)

    assert (why, best) == (error.text, error.suggestion)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("a\u00a0b\u202fc\u2003d\u3000e\u2028f\u0085g\th\r\ni", "a b c d e f g h  i"),
        ("\u200ba\u200db\ufeff\u2060\u00ad\u200e", "ab"),
        ("\u202ea\u202c\u2066b\u2069", "ab"),
        ("dqn\u061c\u034f\u115f\u17b4\u180e\u2064\u206f\u3164\ufe0f\uffa0\ufff0\U000e0041\U000e0100 ppo", "dqn ppo"),
        ("\u0600\u06dd\u00e9 e\u0301", "\u0600\u06dd\u00e9 \u00e9"),
        ("“a” „b‟ «c» ＂d＂", '"a" "b" "c" "d"'),
        ("‘a’ ‚b‛ ‹c› ＇d＇ `e` ´f´", "'a' 'b' 'c' 'd' 'e' 'f'"),
        ("\u1fef", "'"),
        ("ａｂｃ＝１２３，ｄ", "abc=123,d"),
        ("a\u2010b\u2011c\u2212d", "a-b-c-d"),
        ("a—b–c", "a—b–c"),
        ("a\x00b\x1bc\x7fd", "a b c d"),
        ("a\ud800b", "a b"),
        ("é ü ñ 中 م 🚀", "é ü ñ 中 م 🚀"),
    ],
)
def test_what_a_keyboard_makes_of_it_is_undone(typed: str, meant: str) -> None:
    """Spaces, quotes, hyphens and letters are plain ones; what can't be seen is gone."""
    assert meant == normalise(typed)


@given(st.text(max_size=200))
def test_what_is_normal_stays_as_it_is(text: str) -> None:
    """A second time changes nothing, nothing of it is invisible, and it can be encoded."""
    once = normalise(text)

    assert once == normalise(once).strip()
    assert not set(once) & set("\n\r\t\0\u200b\u202e`")
    assert once == once.encode().decode()


@given(st.text(max_size=300))
def test_no_line_raises_anything_but_a_user_error(text: str) -> None:
    """Whatever is typed."""
    try:
        line = split(text, "gputest", KEYS)
    except UserError as error:
        assert error.text
    else:
        assert all(line.words)
        assert all(line.pairs)
        assert all(line.pairs.values())


PLAIN = st.text(st.sampled_from("abcäö,.;:=-+/_ '\"@|中"), min_size=1, max_size=12).map(str.strip).filter(bool)


@given(st.dictionaries(st.sampled_from(["models", "ref", "x"]), PLAIN))
def test_a_line_that_is_written_is_read_as_the_same(pairs: dict[str, str]) -> None:
    """As far as it can be written at all: a text with both kinds of quotes can't, and was never read as one."""
    said = {key: value for key, value in pairs.items() if not {"'", '"'} <= set(value)}

    assert {k: v.replace(" ", "") for k, v in said.items()} == {
        k: v.replace(" ", "") for k, v in split(written((), said), "gputest").pairs.items()
    }


@pytest.mark.parametrize(
    ("word", "near"),
    [("mamba", "mamba2"), ("DQN1", "dqn"), ("resnet", None), ("", None), ("h10o", "H100"), ("xyz", None)],
)
def test_the_nearest_word(word: str, near: str | None) -> None:
    """In the spelling in which it is known; what is not near is no guess."""
    assert near == nearest(word, ["dqn", "ppo", "mamba2", "H100"])


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("010", 10), ("100", 100)])
def test_whole_numbers(text: str, number: int) -> None:
    """Of plain digits, within their range."""
    assert number == whole_number("epochs", text, 1, 100)


@pytest.mark.parametrize(
    "text", ["", "0", "101", "-1", "+5", "5.0", "1e2", "٥", "²", "５", "1 0", "9" * 10, "0x5", "1_0"]
)
def test_what_is_no_such_number(text: str) -> None:
    """Outside of the range, or written in any other way."""
    with pytest.raises(UserError, match="1 to 100"):
        whole_number("epochs", text, 1, 100)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("true", True),
        ("YES", True),
        ("on", True),
        ("1", True),
        ("false", False),
        ("No", False),
        ("off", False),
        ("0", False),
    ],
)
def test_switches(text: str, meant: bool) -> None:
    """The usual words, in any case."""
    assert meant is yes_or_no("notify", text)


@pytest.mark.parametrize("text", ["", "maybe", "2", "tru", "`@all`"])
def test_what_is_no_switch(text: str) -> None:
    """It is shown, and can't leave its code span."""
    with pytest.raises(UserError) as caught:
        yes_or_no("notify", text)

    shown = text.replace("`", "'") or " "
    assert f"notify=`{shown}`: I need `true` or `false`." == caught.value.text
