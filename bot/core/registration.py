"""Which slash commands there should be, and what has to be done to those that are there.

Ours is what our own account made. What a person made by hand and points to us is as good: its token is taken and it is
left as it is. A trigger that leads elsewhere is somebody else's, and is named, never touched.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from bot.core.commands.spec import CommandSpec

MAX_NAME, MAX_DESCRIPTION = 64, 128
"""Bytes that the server takes (model/command.go)."""


@dataclass(frozen=True)
class Wanted:
    """A slash command as it should be; the method is always POST, since GET puts the token into access logs."""

    trigger: str
    url: str
    hint: str
    description: str
    name: str


@dataclass(frozen=True)
class Registered:
    """A slash command as it is."""

    id: str
    creator_id: str
    created_at: int
    method: str
    token: str = field(repr=False)
    auto_complete: bool
    wanted: Wanted


@dataclass(frozen=True)
class Plan:
    """What to do. Nothing, where all is as it should be."""

    create: tuple[Wanted, ...] = ()
    correct: tuple[tuple[str, Wanted], ...] = ()
    """Pairs of the id and how it should be."""
    remove: tuple[str, ...] = ()
    """Ids of doubles of our own; two replicas that started at once may have made them."""
    taken: tuple[Registered, ...] = ()
    """Triggers that lead elsewhere."""
    tokens: tuple[str, ...] = field(default=(), repr=False)
    """Of every command that leads to us."""

    @property
    def settled(self) -> bool:
        """Whether nothing is to be done, as far as we may."""
        return not (self.create or self.correct or self.remove)


def wanted(specs: Iterable[CommandSpec], url: str) -> tuple[Wanted, ...]:
    """The commands that lead to `url`, made from what they say of themselves."""
    return tuple(
        Wanted(
            trigger=spec.trigger,
            url=url,
            hint=spec.usage,
            description=_cut(spec.summary, MAX_DESCRIPTION),
            name=_cut(f"GPU tests: {spec.trigger}", MAX_NAME),
        )
        for spec in specs
    )


def plan(wishes: Iterable[Wanted], found: Iterable[Registered], me: str) -> Plan:
    """Compare. `me`: the user id of our own account."""
    present = sorted(found, key=lambda command: (command.created_at, command.id))
    result = Plan()
    for wish in wishes:
        same = [command for command in present if command.wanted.trigger == wish.trigger]
        ours = [command for command in same if command.creator_id == me]
        by_hand = [command for command in same if command.creator_id != me and command.wanted.url == wish.url]
        taken = [command for command in same if command not in ours and command not in by_hand]
        leading = ours[:1] + by_hand
        wrong = [c for c in ours[:1] if c.wanted != wish or c.method != "P" or not c.auto_complete]
        result = Plan(
            create=(*result.create, *(() if same else (wish,))),
            correct=(*result.correct, *((command.id, wish) for command in wrong)),
            remove=(*result.remove, *(command.id for command in ours[1:])),
            taken=(*result.taken, *taken),
            tokens=(*result.tokens, *(command.token for command in leading if command.token)),
        )
    return result


def _cut(text: str, size: int) -> str:
    return text.encode()[:size].decode(errors="ignore")
