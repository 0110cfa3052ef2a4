"""How a command describes itself; help is made from this."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CommandSpec:
    """A slash command. Every line of `examples` must parse; a test sees to it."""

    trigger: str
    summary: str
    usage: str
    examples: tuple[tuple[str, str], ...]
    """Pairs of a line as typed and what it does."""


@dataclass(frozen=True)
class ShowHelp:
    """Somebody asks how a command is used."""

    trigger: str
