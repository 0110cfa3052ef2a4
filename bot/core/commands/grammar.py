"""What is well formed: words, `key=value` pairs, quotes; forgiving where a phone's keyboard interferes.

    line   := { word | pair }
    pair   := key "=" value | "--" key ( "=" | space ) value
    value  := word | quote text quote

Valid: `models=all epochs=5`, `models = "dqn, ppo"`, `—epochs 5`, `dqn ppo`. A keyboard's no-break spaces separate,
its zero-width characters vanish, its curly quotes quote, its em dash is the `--` that was typed, its full-width
letters and digits are plain ones. Invalid: `models="dqn` (the quote is never closed), `=5`, `epochs=`.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from bot.core.errors import UserError

MAX_LINE = 2000
"""Longest line read, in characters; a longer one is no command."""

_ZERO_WIDTH = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f"))
_QUOTES = {ord(c): '"' for c in "“”„‟«»＂"} | {ord(c): "'" for c in "‘’‚‛‹›＇`´"}
_QUOTED = re.compile(r"""("[^"]*"|(?<!\w)'[^']*')""")
_DASHES = re.compile(r"(?<![^\s])(?:[—―–]|--?)(?=[A-Za-z][\w-]*\s*(?:=|\s))")
_JOINTS = re.compile(r"\s*([=,])\s*")
_TOKEN = re.compile(r"""(?:[^\s"']|(?<=\w)'(?=\w))+(?:"[^"]*"|'[^']*')?|"[^"]*"|'[^']*'|["']""")


@dataclass(frozen=True)
class Line:
    """A line taken apart: bare words in order, and pairs by key (lower case)."""

    words: tuple[str, ...]
    pairs: dict[str, str]


def normalise(text: str) -> str:
    """The line as it was meant: plain spaces, quotes, dashes and letters."""
    text = text.translate(_ZERO_WIDTH).translate(_QUOTES)
    text = unicodedata.normalize("NFKC", text)
    text = "".join(" " if c.isspace() or unicodedata.category(c) == "Cc" else c for c in text)
    return text.strip()


def split(text: str) -> Line:
    """Take a line apart.

    Raises:
        UserError: an unclosed quote, a key without value, a value without key, a key given twice with two values.

    """
    if len(text) > MAX_LINE:
        raise UserError(f"That line has {len(text)} characters, I read up to {MAX_LINE}.")
    tokens = _TOKEN.findall(_tidy(normalise(text)))
    for token in tokens:
        if token in {'"', "'"}:
            raise UserError(f"A quote ({_shown(token)}) is opened and never closed.")
    words: list[str] = []
    pairs: dict[str, str] = {}
    index = 0
    while index < len(tokens):
        token = tokens[index]
        index += 1
        if token.startswith("--") and "=" not in token:
            key = token[2:]
            if index == len(tokens) or tokens[index].startswith("--"):
                raise UserError(f"{_shown(token)} needs a value.")
            _put(pairs, key, _unquote(tokens[index]))
            index += 1
        elif "=" in token and token[0] not in "\"'":
            key, _, value = token.removeprefix("--").partition("=")
            _put(pairs, key, _unquote(value))
        else:
            words.append(_unquote(token))
    return Line(tuple(w for w in words if w), pairs)


def _tidy(text: str) -> str:
    """Close up `key = value` and `a, b`, and write long options alike; what is quoted stays as it is."""
    parts = _QUOTED.split(text)
    for index in range(0, len(parts), 2):
        parts[index] = _JOINTS.sub(r"\1", _DASHES.sub("--", parts[index]))
    return "".join(parts)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, None where nothing is near."""
    matches = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.5)
    return matches[0] if matches else None


def whole_number(key: str, text: str, lowest: int, highest: int) -> int:
    """Read a whole number in ASCII digits.

    Raises:
        UserError: anything else, with the range in which the number is expected.

    """
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise UserError(f"{key}={_shown(text)}: I need a whole number, {lowest} to {highest}.")
    number = int(text)
    if not lowest <= number <= highest:
        raise UserError(f"{key}={number} is outside {lowest} to {highest}.")
    return number


def yes_or_no(key: str, text: str) -> bool:
    """Read a switch.

    Raises:
        UserError: anything but the usual words for on and off.

    """
    lowered = text.lower()
    if lowered in {"true", "yes", "on", "1"}:
        return True
    if lowered in {"false", "no", "off", "0"}:
        return False
    raise UserError(f"{key}={_shown(text)}: I need `true` or `false`.")


def _put(pairs: dict[str, str], key: str, value: str) -> None:
    key = key.lower()
    if not key:
        raise UserError(f"={_shown(value)} has no key in front of it.")
    if not value:
        raise UserError(f"{_shown(key)} needs a value, as in `{_bare(key)}=…`.")
    if pairs.get(key, value) != value:
        raise UserError(f"{_shown(key)} is given twice: {_shown(pairs[key])} and {_shown(value)}.")
    pairs[key] = value


def _unquote(token: str) -> str:
    if len(token) >= 2 and token[0] == token[-1] and token[0] in "\"'":
        return token[1:-1].strip()
    return token.strip()


def _bare(text: str) -> str:
    return text.replace("`", "'")[:60]


def _shown(text: str) -> str:
    """User text inside a refusal: in code, cut, unable to leave its code span."""
    return f"`{_bare(text) or ' '}`"
