"""Which buttons a card has: at most two, each with what it asks for."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from bot.core.again import everything, what_failed
from bot.core.card import Card, Stage
from bot.core.settings import Settings
from bot.core.signing import Deed, Signed

MAX_PARAMETERS = 8000
"""Characters of parameters that a button carries; a run with more was not asked for in the chat."""


@dataclass(frozen=True)
class Button:
    """A button. `id` is letters and digits only: with anything else the server finds no route (api4)."""

    id: str
    label: str
    style: str
    signed: Signed
    """What it asks for; channel and expiry are added when it is sealed."""


def buttons_of(card: Card, settings: Settings) -> tuple[Button, ...]:
    """Cancel while it runs, and wait longer while it waits; afterwards what failed, or all of it, once more."""
    signed = Signed(deed=Deed.ASK_CANCEL, expires=0.0, uid=card.uid, attempt=card.attempt, short=card.short)
    if card.stage is not Stage.ENDED:
        cancel = Button("cancel", "Cancel", "danger", signed)
        if card.offer is not None:
            wait = msgspec.structs.replace(signed, deed=Deed.WAIT, until=card.offer)
            return Button("wait", f"Wait until {settings.wait_until}", "default", wait), cancel
        return (cancel,) if card.stage is not Stage.FINISHING else ()
    again = what_failed(card, settings)
    if again is None:
        again, label = everything(card, settings), "Run again"
    elif again.failed:
        label = f"Rerun {again.count} failed"
    else:
        label = f"Run the other {again.count}"
    if sum(map(len, again.parameters.values())) > MAX_PARAMETERS:
        return ()
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
