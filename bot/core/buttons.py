"""Which buttons a card has: at most two, each with what it asks for."""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.again import everything, what_failed
from bot.core.card import Card, Stage
from bot.core.settings import Settings
from bot.core.signing import Deed, Signed


@dataclass(frozen=True)
class Button:
    """A button. `id` is letters and digits only: with anything else the server finds no route (api4)."""

    id: str
    label: str
    style: str
    signed: Signed
    """What it asks for; channel and expiry are added when it is sealed."""


def buttons_of(card: Card, settings: Settings) -> tuple[Button, ...]:
    """Cancel while it runs; afterwards what failed, or all of it, once more."""
    signed = Signed(deed=Deed.ASK_CANCEL, expires=0.0, uid=card.uid, attempt=card.attempt, short=card.short)
    if card.stage is not Stage.ENDED:
        return (Button("cancel", "Cancel", "danger", signed),) if card.stage is not Stage.FINISHING else ()
    again = what_failed(card, settings)
    if again is None:
        again, label = everything(card, settings), "Run again"
    elif again.failed:
        label = f"Rerun {again.count} failed"
    else:
        label = f"Run the other {again.count}"
    rerun = Signed(
        deed=Deed.RERUN,
        expires=0.0,
        uid=card.uid,
        attempt=card.attempt,
        short=card.short,
        ref=again.ref,
        parameters=again.parameters,
    )
    return (Button("rerun", label, "default", rerun),)
