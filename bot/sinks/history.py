"""The history of starts: one text in a ConfigMap of the bot's own."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bot.clients.errors import Conflict, NotFound, WireError
from bot.clients.kube import Kube
from bot.core.effects import KeepStart
from bot.core.events import EffectDone, EffectFailed, Trouble
from bot.core.history import KEY, merged, read, written
from bot.core.kube import ConfigMap
from bot.sinks.trouble import failure

TRIES = 4
"""How often it is read anew and written where somebody else writes meanwhile."""


class HistorySink:
    """Writes to the history. `may` is the lease; it is asked right before each write."""

    def __init__(self, kube: Kube, namespace: str, name: str, may: Callable[[], bool]) -> None:
        self._kube = kube
        self._collection = f"/api/v1/namespaces/{namespace}/configmaps"
        self._name = name
        self._may = may

    async def keep(self, effect: KeepStart) -> EffectDone | EffectFailed:
        """Read what is kept, add the start, write it: only over what was read. Once there, it is not written again."""
        try:
            for _ in range(TRIES):
                try:
                    text = await self._once(effect)
                except Conflict:
                    continue
                if text is None:
                    return EffectFailed(effect.id, Trouble.BUSY, "another replica holds the Lease")
                return EffectDone(effect.id, text)
        except WireError as error:
            return failure(effect.id, error)
        return EffectFailed(effect.id, Trouble.CONFLICT, "somebody else writes the history all the time")

    async def _once(self, effect: KeepStart) -> str | None:
        """The text as it is then; None where this process may not write."""
        try:
            found: ConfigMap | None = _CONFIG_MAP.decode(await self._kube.read(f"{self._collection}/{self._name}"))
        except NotFound:
            found = None
        before = ((found.data if found else None) or {}).get(KEY, "")
        starts = read(before)
        if any(start.key == effect.start.key for start in starts):
            return before
        text = written(merged(starts, [effect.start]))
        if not self._may():
            return None
        if found is None:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self._name}, "data": {KEY: text}}
            await self._kube.create(self._collection, body)
        else:
            # a resourceVersion in a merge patch makes it conditional: 409 where the object has changed since
            patch = {"metadata": {"resourceVersion": found.metadata.resource_version}, "data": {KEY: text}}
            await self._kube.patch(f"{self._collection}/{self._name}", patch)
        return text


_CONFIG_MAP = msgspec.json.Decoder(ConfigMap)
