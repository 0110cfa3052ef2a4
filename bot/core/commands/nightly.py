"""`/nightly`: switch the nightly run.

    nightly := ( "enable" | "disable" ) [ "reason=" TEXT ] | "status" | "help"

`on` and `off` are taken too. Without a word it is `status`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.commands.grammar import Line, nearest, split, written
from bot.core.commands.spec import CommandSpec, ShowHelp
from bot.core.errors import UserError

SPEC = CommandSpec(
    trigger="nightly",
    summary="switches the nightly run",
    usage="enable | disable [reason=] | status | help",
    examples=(
        ("enable", "the nightly run starts at its next time"),
        ('disable reason="no H100 this week"', "it does not, and everybody can see why"),
        ("status", "on or off, and when it comes next"),
        ("help", "this text"),
    ),
)

_WORDS = {"enable": True, "on": True, "resume": True, "disable": False, "off": False, "suspend": False}


@dataclass(frozen=True)
class SwitchNightly:
    enable: bool
    reason: str = ""


@dataclass(frozen=True)
class ShowNightly:
    pass


Nightly = SwitchNightly | ShowNightly | ShowHelp


def parse(text: str) -> Nightly:
    """Read what was typed behind `/nightly`.

    Raises:
        UserError: not well formed, or no such word; the nearest one is named.

    """
    try:
        return _parse(split(text, SPEC.trigger, {"reason"}))
    except UserError as error:
        raise UserError(error.text, error.suggestion or f"/{SPEC.trigger} help") from error


def _parse(line: Line) -> Nightly:
    word = line.words[0].lower().removeprefix("-") if line.words else "status"
    reason = line.pairs.get("reason", "") if word in _WORDS else ""
    if len(line.words) > 1 or set(line.pairs) - ({"reason"} if word in _WORDS else set()):
        raise UserError("I take one word (enable, disable or status) and, in quotes, a reason.", _with_reason(line))
    if word in {"help", "h", "?"}:
        return ShowHelp(SPEC.trigger)
    if word == "status":
        return ShowNightly()
    if word not in _WORDS:
        near = nearest(word, ("enable", "disable", "status", "help"))
        hint = f" Did you mean {near}?" if near else ""
        raise UserError(
            f"No word `{word.replace('`', chr(39))[:60]}`.{hint} I take enable, disable, status.",
            f"/{SPEC.trigger} {near or 'status'}",
        )
    return SwitchNightly(_WORDS[word], reason[:200])


def _with_reason(line: Line) -> str:
    """The line with all that it says behind its word as the reason."""
    word, rest = line.words[0].lower().removeprefix("-") if line.words else "", line.words[1:]
    said = " ".join([*([line.pairs["reason"]] if "reason" in line.pairs else []), *rest])
    if word not in _WORDS or any(other.lower() in {*_WORDS, "status", "help"} for other in rest):
        return f"/{SPEC.trigger} status"
    return f"/{SPEC.trigger} {written([word], {'reason': said} if said else {})}"
