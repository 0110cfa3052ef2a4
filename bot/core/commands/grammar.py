"""What is well formed: words, `key=value` pairs, quotes; forgiving where a phone's keyboard interferes.

    line   := { word | pair }
    pair   := key "=" value | dashes key ( "=" | space ) value
    value  := word | quote text quote
    dashes := "-" | "--" | "–" | "—"

Valid: `models=all epochs=5`, `models = "dqn, ppo"`, `—epochs 5`, `dqn ppo`. A keyboard's no-break spaces separate,
its zero-width characters vanish, its curly quotes quote, its em dash is the `--` that was typed, its full-width
letters and the digits of every script are plain ones. Dashes before anything but a known key are one minus:
`all —diffusion` is `all -diffusion`. Of a line that was copied, the backticks around it and the command's own name
are no part. Invalid: `models="dqn` (the quote is never closed), `=5`, `epochs=`, `epochs= ref=main`.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from bot.core.errors import UserError

MAX_LINE = 2000
"""Longest line read, in characters; a longer one is no command."""

DASHES = "-‒–—―"

UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""What can't be seen: Default_Ignorable_Code_Point (Unicode, DerivedCoreProperties.txt)."""

_HYPHENS = dict.fromkeys(map(ord, "‐‑−"), "-")
_QUOTES = {ord(c): '"' for c in "“”„‟«»＂"} | {ord(c): "'" for c in "‘’‚‛‹›＇`´"}
_PLAIN = _HYPHENS | _QUOTES
_IN_DOUBLE, _IN_SINGLE = '"[^"]*"', r"'(?:[^']|(?<=\w)'(?=\w))*'"
_AS_CODE = re.compile(r"(`+)\s*(?P<line>[^`]*[^`\s])\s*\1")
_QUOTED = re.compile(rf"({_IN_DOUBLE}|(?<!\w){_IN_SINGLE})")
_BEFORE, _AFTER = re.compile(r"\s+="), re.compile(r"=\s++(?![\w-]+=)")
_COMMA = re.compile(r"\s*,(?!\s*+[\w-]++=)\s*")
_TOKEN = re.compile(rf"""(?:[^\s"']|(?<=\w)'(?=\w))+(?:{_IN_DOUBLE}|{_IN_SINGLE})?|{_IN_DOUBLE}|{_IN_SINGLE}|["']""")


@dataclass(frozen=True)
class Line:
    """A line taken apart: bare words in order, and pairs by key (lower case)."""

    words: tuple[str, ...]
    pairs: dict[str, str]


def normalise(text: str) -> str:
    """The line as it was meant: plain spaces, quotes, dashes, letters and digits."""
    text = "".join(str(unicodedata.decimal(c, c)) for c in text)
    text = UNSEEN.sub("", unicodedata.normalize("NFKC", text.translate(_QUOTES))).translate(_PLAIN)
    text = "".join(" " if c.isspace() or unicodedata.category(c) in {"Cc", "Cs"} else c for c in text)
    return text.strip()


def split(text: str, trigger: str, keys: Container[str] = ()) -> Line:
    """Take a line apart. `keys` may be written as options, `--epochs 5`; `trigger` is for lines to copy.

    Raises:
        UserError: an unclosed quote, a key without value, a value without key, a key given twice with two values.

    """
    if len(text) > MAX_LINE:
        raise UserError(f"That line has {len(text)} characters, I read up to {MAX_LINE}.")
    tokens = _TOKEN.findall(_tidy(normalise(_copied(text, trigger))))
    for token in tokens:
        if token in {'"', "'"}:
            rest = _tidy(" ".join(t for t in tokens if t not in {'"', "'"}))
            typed = next((c for c in reversed(text) if normalise(c) == token), token)
            quote = "A backtick" if typed == "`" else f"A quote ({_shown(typed)})"
            raise UserError(f"{quote} is opened and never closed.", f"/{trigger} {rest}")
    words: list[str] = []
    pairs: dict[str, str] = {}
    waiting = list(tokens)
    while waiting:
        token = waiting.pop(0)
        if _is_pair(token):
            key, _, value = token.lstrip(DASHES).partition("=")
        elif _is_option(token, keys):
            key, value = token.lstrip(DASHES), ""
            if waiting and not _is_pair(waiting[0]) and not _is_option(waiting[0], keys):
                value = waiting.pop(0)
        else:
            words.append(_one_minus(_unquote(token)))
            continue
        key, value = key.lower(), _unquote(value)
        if pairs.get(key, value) != value and value:
            others = [t for t in tokens if t.lstrip(DASHES).partition("=")[0].lower() != key]
            best = f"/{trigger} {' '.join([*others, written((), {key: value})])}"
            raise UserError(f"{_shown(key)} is given twice: {_shown(pairs[key])} and {_shown(value)}.", best)
        _put(pairs, key, value)
    return Line(tuple(w for w in words if w), pairs)


def _copied(text: str, trigger: str) -> str:
    """Without what came along with a line that was copied: the backticks around it, the command's own name."""
    text = text.strip()
    as_code = _AS_CODE.fullmatch(text)
    text = as_code["line"] if as_code else text
    name, _, rest = text.partition(" ")
    return rest if name.lower() == f"/{trigger}" else text


def _is_pair(token: str) -> bool:
    return "=" in token and token[0] not in "\"'"


def _is_option(token: str, keys: Container[str]) -> bool:
    return token[0] in DASHES and token.lstrip(DASHES).lower().replace("_", "-") in keys


def _one_minus(word: str) -> str:
    bare = word.lstrip(DASHES)
    return f"-{bare}" if bare != word else word


def _tidy(text: str) -> str:
    """Close up `key = value` and `a, b`; what is quoted stays as it is."""
    parts = _QUOTED.split(text)
    for index in range(0, len(parts), 2):
        parts[index] = _COMMA.sub(",", _AFTER.sub("=", _BEFORE.sub("=", parts[index])))
    return "".join(parts)


def written(words: Iterable[str], pairs: Mapping[str, str]) -> str:
    """Words and pairs as a line that is read as the same."""
    return " ".join([*(_quoted(word) for word in words), *(f"{key}={_quoted(value)}" for key, value in pairs.items())])


def _quoted(text: str) -> str:
    if not re.search(r"""[\s"'=]|^,|,$""", text):
        return text
    return f"'{text}'" if '"' in text else f'"{text}"'


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, None where nothing is near."""
    spelled = {name.lower(): name for name in known}
    matches = difflib.get_close_matches(word.lower(), spelled, n=1, cutoff=0.6)
    return spelled[matches[0]] if matches else None


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
    if not key:
        raise UserError(f"Nothing stands in front of {_shown('=' + value)}.")
    if not value:
        raise UserError(f"Nothing stands behind {_shown(key + '=')}.")
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
