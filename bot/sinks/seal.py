"""Buttons and dialogs as Mattermost takes them, with what they ask for under our seal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bot.core.buttons import Button
from bot.core.signing import CARD_SECONDS, Signed, seal


@dataclass(frozen=True)
class Seal:
    """The key, and the address by which Mattermost reaches us; without an address a card has no buttons."""

    key: bytes = field(repr=False)
    url: str
    now: Callable[[], float] = time.time
    exit_secret: str = field(default="", repr=False)
    """Shared with the exit step, which marks its posts with it."""

    def actions(self, buttons: Iterable[Button], channel: str) -> list[dict[str, Any]]:
        """The `actions` of an attachment; their context is kept by the server and shown to nobody."""
        if not self.url:
            return []
        return [self._action(button, channel) for button in buttons]

    def _action(self, button: Button, channel: str) -> dict[str, Any]:
        signed = msgspec.structs.replace(button.signed, channel=channel, expires=self.now() + CARD_SECONDS)
        return {
            "id": button.id,
            "type": "button",
            "name": button.label,
            "style": button.style,
            "integration": {"url": f"{self.url}/actions", "context": {"sealed": seal(signed, self.key)}},
        }

    def dialog_url(self) -> str:
        """Where Mattermost sends a dialog that is sent off."""
        return f"{self.url}/dialogs"

    def state(self, signed: Signed) -> str:
        """The state of a dialog. It goes through the browser."""
        return seal(signed, self.key)
