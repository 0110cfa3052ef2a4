"""The record of costs: one ConfigMap of the bot's own."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bot.clients.errors import NotFound, WireError
from bot.clients.kube import Kube
from bot.core.effects import KeepCosts
from bot.core.events import EffectDone, EffectFailed, Trouble
from bot.core.kube import ConfigMap
from bot.sinks.trouble import failure


class CostSink:
    """Writes it. `may` is the lease; it is asked right before each write."""

    def __init__(self, kube: Kube, namespace: str, name: str, may: Callable[[], bool]) -> None:
        self._kube = kube
        self._collection = f"/api/v1/namespaces/{namespace}/configmaps"
        self._name = name
        self._may = may

    async def keep(self, effect: KeepCosts) -> EffectDone | EffectFailed:
        """Write over the version that was read, or create it: whoever wrote meanwhile makes it a CONFLICT."""
        if not self._may():
            return EffectFailed(effect.id, Trouble.CONFLICT, "another replica holds the lease")
        try:
            body = await (self._patch(effect) if effect.version else self._create(effect))
        except NotFound:
            return EffectFailed(effect.id, Trouble.CONFLICT, "somebody deleted the record of costs")
        except WireError as error:
            return failure(effect.id, error)
        return EffectDone(effect.id, _CONFIG_MAP.decode(body).metadata.resource_version)

    async def _create(self, effect: KeepCosts) -> bytes:
        data = {key: text for key, text in effect.data.items() if text is not None}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self._name}, "data": data}
        return await self._kube.create(self._collection, body)

    async def _patch(self, effect: KeepCosts) -> bytes:
        # a resourceVersion in a merge patch makes it conditional: 409 where the object has changed since
        patch = {"metadata": {"resourceVersion": effect.version}, "data": effect.data}
        return await self._kube.patch(f"{self._collection}/{self._name}", patch)


_CONFIG_MAP = msgspec.json.Decoder(ConfigMap)
