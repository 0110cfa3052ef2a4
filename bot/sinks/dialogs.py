"""Dialogs: shown to one person, at once."""

from __future__ import annotations

from bot.clients.errors import WireError
from bot.clients.mattermost import Mattermost
from bot.core.effects import OpenDialog
from bot.core.events import EffectDone, EffectFailed, Trouble
from bot.core.render.dialogs import render_dialog
from bot.sinks.seal import Seal
from bot.sinks.trouble import failure


class DialogSink:
    """Opens dialogs. The trigger of a click or a command is the credential and lives for three seconds."""

    def __init__(self, chat: Mattermost, seal: Seal) -> None:
        self._chat = chat
        self._seal = seal

    async def open(self, effect: OpenDialog) -> EffectDone | EffectFailed:
        """Show the form."""
        if not self._seal.url:
            return EffectFailed(effect.id, Trouble.REFUSED, "my own address is not known (mattermost.commands_url)")
        dialog = render_dialog(effect.dialog) | {"state": self._seal.state(effect.state)}
        try:
            await self._chat.open_dialog(effect.trigger_id, self._seal.dialog_url(), dialog)
        except WireError as error:
            return failure(effect.id, error)
        return EffectDone(effect.id)
