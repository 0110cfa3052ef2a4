"""`/gpu`: where the GPUs are, who uses them, who waits and why.

    gpu  := [ "status" | "pools" | "queue" | "warmup" | "cost" | warm | cool | "help" ]
    warm := "warm" POOL [ ( "for=" | "for" ) SPAN ]
    cool := "cool" POOL
    SPAN := minutes, or hours and minutes: 45, 30m, 1h, 1h30m

Without a word it is `status`: one look at all pools. POOL is a pool's name, or what people call its GPU.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from bot.core.commands.grammar import Line, nearest, split
from bot.core.commands.spec import CommandSpec, ShowHelp
from bot.core.errors import UserError

SPEC = CommandSpec(
    trigger="gpu",
    summary="shows the GPUs",
    usage="[status | pools | queue | warmup | cost | warm POOL [for=] | cool POOL | help]",
    examples=(
        ("status", "one look: pools, who uses them, who waits"),
        ("pools", "each pool with its nodes, and what the autoscaler says of it"),
        ("queue", "everything that waits, and why"),
        ("warmup", "how far each run is on its way to a GPU, and how long that usually takes"),
        ("cost", "what the nodes cost today and this month, by pool and by what started the runs"),
        ("warm h100 for=30m", "brings a node up and keeps it for that long, unless a run needs it sooner"),
        ("cool h100", "lets it go again"),
        ("help", "this text"),
    ),
)


class Part(StrEnum):
    """What is to be shown of the GPUs."""

    STATUS = "status"
    POOLS = "pools"
    QUEUE = "queue"


@dataclass(frozen=True)
class ShowGpus:
    part: Part


@dataclass(frozen=True)
class ShowWarmup:
    """How far each run is on its way to a GPU, and what is usual."""


@dataclass(frozen=True)
class ShowCost:
    """What the nodes cost."""


@dataclass(frozen=True)
class WarmPool:
    """Keep a node of a pool up. `pool` as it was typed; `minutes` None where nothing was said."""

    pool: str
    minutes: int | None


@dataclass(frozen=True)
class CoolPool:
    """Keep it up no more."""

    pool: str


Gpu = ShowGpus | ShowWarmup | ShowCost | WarmPool | CoolPool | ShowHelp

_SPAN = re.compile(r"(?:(?P<hours>[0-9]{1,3})\s*h(?:ours?)?)?\s*(?:(?P<minutes>[0-9]{1,4})\s*(?:m(?:in(?:utes?)?)?)?)?")

_KNOWN = "status, pools, queue, warmup, cost or help; with a pool, warm or cool"

_WORDS = {part.value: part for part in Part} | {"pool": Part.POOLS, "nodes": Part.POOLS, "waiting": Part.QUEUE}


def parse(text: str, pool: str = "") -> Gpu:
    """Read what was typed behind `/gpu`. `pool` stands in a line to copy where one is missing.

    Raises:
        UserError: not well formed, or no such word; the nearest one is named.
    """
    line = split(text, SPEC.trigger, {"for"})
    if line.words and line.words[0].lower() in {"warm", "cool"}:
        return _warmth(line, pool)
    if line.pairs or len(line.words) > 1:
        raise UserError(f"I take one word: {_KNOWN}.", f"/{SPEC.trigger} status")
    word = line.words[0].lower() if line.words else Part.STATUS.value
    if word == "help":
        return ShowHelp(SPEC.trigger)
    if word in {"warmup", "warm-up"}:
        return ShowWarmup()
    if word in {"cost", "costs"}:
        return ShowCost()
    if word not in _WORDS:
        near = nearest(word, (*_WORDS, "warmup", "cost", "warm", "cool", "help"))
        hint = f" Did you mean {near}?" if near else ""
        raise UserError(
            f"No word `{word.replace('`', chr(39))[:60]}`.{hint} I take {_KNOWN}.",
            _line(near or "status", pool),
        )
    return ShowGpus(_WORDS[word])


def _line(word: str, pool: str) -> str:
    """A line to copy: with a pool where the word needs one, the pools where none is known."""
    if word not in {"warm", "cool"}:
        return f"/{SPEC.trigger} {word}"
    return f"/{SPEC.trigger} {word} {pool}" if pool else f"/{SPEC.trigger} pools"


def _warmth(line: Line, known: str) -> WarmPool | CoolPool:
    word, *rest = line.words
    word = word.lower()
    if not rest:
        raise UserError(f"Which pool shall I {'keep warm' if word == 'warm' else 'let cool'}?", _line(word, known))
    pool, *span = rest
    if span[:1] and span[0].lower() == "for":
        span = span[1:]
    text = " ".join([*([line.pairs["for"]] if "for" in line.pairs else []), *span])
    if set(line.pairs) - {"for"} or (word == "cool" and text) or ("for" in line.pairs and span):
        more = " and, with for=, how long" if word == "warm" else ""
        raise UserError(f"Behind {word} I take a pool{more}.", f"/{SPEC.trigger} {word} {pool}")
    if word == "cool":
        return CoolPool(pool)
    return WarmPool(pool, _minutes(text, pool) if text else None)


def _minutes(text: str, pool: str) -> int:
    found = _SPAN.fullmatch(text.lower())
    if found is None:
        shown = text.replace("`", "'")[:60]
        raise UserError(f"for=`{shown}`: I take a time such as 30m or 1h30m.", f"/{SPEC.trigger} warm {pool} for=30m")
    return 60 * int(found["hours"] or 0) + int(found["minutes"] or 0)
