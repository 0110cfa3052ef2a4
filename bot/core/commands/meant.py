"""What was probably meant where `/gputest` was not understood, as a line to copy.

The words and keys of the command stand here, beside those that people bring from other tools.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from bot.core.commands.grammar import DASHES, Line, nearest, written
from bot.core.errors import UserError
from bot.core.settings import Settings

TRIGGER = "gputest"

KEYS = {
    "models": "models",
    "model": "models",
    "scope": "scope",
    "test-scope": "scope",
    "epochs": "epochs",
    "epoch": "epochs",
    "ref": "ref",
    "commit-ref": "ref",
    "commit": "ref",
    "branch": "ref",
    "pool": "pool",
    "gpu-pool": "pool",
    "cap": "cap",
    "cuda-compute-cap": "cap",
    "notify": "notify",
}
WORDS = ("status", "list", "cancel", "rerun", "help")

_MEANT = {"stop": "cancel", "kill": "cancel", "abort": "cancel", "retry": "rerun", "again": "rerun", "runs": "list"}
"""Words that other tools have for ours."""

_NOISE = ("run", "start", "test", "tests")
"""First words of other tools that ours does without."""

EVERY = ("*", "everything", "every")
"""What people say for all models."""

BETWEEN = ("and", "&", "+", "|")
"""What people put between models."""


def unknown_model(item: str, text: str, line: Line, settings: Settings) -> UserError:
    """No such model. What was meant may be a model, a word of ours, or a pair."""
    shown, rest = f"No model `{plain(item.removeprefix('-'))}`.", Line((), line.pairs)
    models = f" Models: {', '.join(settings.model_names)}."
    first = line.words[0] if line.words else ""
    if item == first.lower() and item in _NOISE:
        return UserError(f"{shown} A run starts without `{item}`.", line_of(line.words[1:], line.pairs))
    pair = _pair_meant(item, line)
    if pair is not None:
        key, value, words = pair
        best = line_with(Line(words, line.pairs), key, value)
        if "=" in item:
            return UserError(f"{shown} Leave out its quotes.", best)
        return UserError(f"{shown} Did you mean `{key}={plain(value)}`?", best)
    parts = [part for part in re.split(r"[|&+/]", item) if part]
    if len(parts) > 1 and set(parts) <= {name.lower() for name in settings.model_names}:
        fixed = [one for other in items_of(text) for one in (parts if other == item else [other])]
        return UserError(
            f"{shown} Did you mean {', '.join(parts)}?{models}", line_with(rest, "models", ",".join(fixed))
        )
    near = _nearest_model(item, first.lower(), settings)
    if near in WORDS:
        return UserError(f"{shown} Did you mean {near}?", line_of((near, *line.words[1:]), line.pairs))
    if near is None:
        return UserError(f"{shown}{models}")
    fixed = [("-" if item.startswith("-") else "") + near if other == item else other for other in items_of(text)]
    return UserError(f"{shown} Did you mean {near}?{models}", line_with(rest, "models", ",".join(fixed)))


def _nearest_model(item: str, first: str, settings: Settings) -> str | None:
    """The model that was probably meant, or at the head of a line a word of ours; what has signs in it is neither."""
    name = item.strip(DASHES + ".:!?()[]*") or item
    if item in EVERY:
        return "all"
    if item == first and name in _MEANT:
        return _MEANT[name]
    if not re.fullmatch(r"[\w.-]+", name):
        return None
    return nearest(name, (*settings.model_names, "all", *(WORDS if item == first else ())))


def _pair_meant(item: str, line: Line) -> tuple[str, str, tuple[str, ...]] | None:
    """A pair that was written as words: `epochs:5`, `epochs 5`; with the words that are left without it."""
    for index, word in enumerate(line.words):
        found = re.fullmatch(r"-?(\w[\w-]*)(?:[:=](.+))?", word)
        key = KEYS.get(found[1].lower().replace("_", "-")) if found else None
        if not found or not key or word.lower() != item:
            continue
        after = line.words[index + 1 : index + 2] if found[2] is None else ()
        value = found[2] or "".join(after)
        if value:
            return key, value, (*line.words[:index], *line.words[index + 1 + len(after) :])
    return None


def line_of(words: Iterable[str], pairs: dict[str, str]) -> str:
    """Words and pairs as a whole line to copy."""
    return f"/{TRIGGER} {written(words, pairs)}".rstrip()


def line_with(line: Line, key: str, value: str | None) -> str:
    """The line with another value for a key, to copy; None leaves the key out."""
    pairs: dict[str, str] = {}
    for typed, said in line.pairs.items():
        if KEYS.get(typed.replace("_", "-")) != key:
            pairs[typed] = said
        elif value is not None:
            pairs[key] = value
    if value is not None and key not in pairs:
        pairs = {key: value} | pairs if key == "models" else pairs | {key: value}
    return line_of(line.words, pairs)


def items_of(text: str) -> list[str]:
    """What is named in a list of models, a minus in front of what is taken out, without what stands between."""
    items: list[str] = []
    minus = ""
    for part in re.split(r"[,;\s]+", text.lower()):
        name = part.lstrip(DASHES)
        minus = "-" if name != part else minus
        if name and name not in BETWEEN:
            items.append(minus + name)
            minus = ""
    return items


def plain(text: str) -> str:
    """User text in a refusal: no backticks, so that it can't leave its code span; cut."""
    return text.replace("`", "'")[:120]
