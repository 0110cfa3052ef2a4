"""`/gpu`: where the GPUs are, who uses them, who waits and why.

    gpu := [ "status" | "pools" | "queue" | "help" ]

Without a word it is `status`: one look at all pools.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.core.commands.grammar import nearest, split
from bot.core.commands.spec import CommandSpec, ShowHelp
from bot.core.errors import UserError

SPEC = CommandSpec(
    trigger="gpu",
    summary="shows the GPUs",
    usage="[status | pools | queue | help]",
    examples=(
        ("status", "one look: pools, who uses them, who waits"),
        ("pools", "each pool with its nodes, and what the autoscaler says of it"),
        ("queue", "everything that waits, and why"),
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


Gpu = ShowGpus | ShowHelp

_WORDS = {part.value: part for part in Part} | {"pool": Part.POOLS, "nodes": Part.POOLS, "waiting": Part.QUEUE}


def parse(text: str) -> Gpu:
    """Read what was typed behind `/gpu`.

    Raises:
        UserError: not well formed, or no such word; the nearest one is named.
    """
    line = split(text, SPEC.trigger)
    if line.pairs or len(line.words) > 1:
        raise UserError("I take one word: status, pools or queue.", f"/{SPEC.trigger} status")
    word = line.words[0].lower() if line.words else Part.STATUS.value
    if word == "help":
        return ShowHelp(SPEC.trigger)
    if word not in _WORDS:
        near = nearest(word, (*_WORDS, "help"))
        hint = f" Did you mean {near}?" if near else ""
        raise UserError(
            f"No word `{word.replace('`', chr(39))[:60]}`.{hint} I take status, pools, queue.",
            f"/{SPEC.trigger} {near or 'status'}",
        )
    return ShowGpus(_WORDS[word])
