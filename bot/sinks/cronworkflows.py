"""CronWorkflows: the suspend flag."""

from __future__ import annotations

from bot.clients.errors import WireError
from bot.clients.kube import Kube
from bot.core.effects import SetSuspend
from bot.core.events import EffectDone, EffectFailed
from bot.core.packed import read_cron
from bot.sinks.trouble import failure
from bot.sinks.workflows import API


class CronWorkflowSink:
    """Writes to CronWorkflows."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    async def suspend(self, effect: SetSuspend) -> EffectDone | EffectFailed:
        """Set the flag by a merge patch, as `argo cron suspend` does, then read it back.

        What is told to the person is what was read, never what was asked for: a patch whose answer is lost, and
        another writer (GitOps), both show in it.
        """
        path = f"{API}/namespaces/{effect.namespace}/cronworkflows/{effect.name}"
        body = {"metadata": {"annotations": effect.annotations}, "spec": {"suspend": effect.suspend}}
        lost: WireError | None = None
        try:
            await self._kube.patch(path, body)
        except WireError as error:
            lost = error
        try:
            found = read_cron(await self._kube.read(path))
        except WireError as error:
            return failure(effect.id, lost or error)
        if lost is not None and found.suspended is not effect.suspend:
            return failure(effect.id, lost)
        return EffectDone(effect.id, found)
