"""The rig's player of pods, counting by the clock of the embedded world."""

from __future__ import annotations

import asyncio

from bot.demo.clock import Clock
from tests.real.rig.kube_client import KubeClient
from tests.real.rig.pod_part import PodPart
from tests.real.rig.pod_player import PodPlayer


def player_by(clock: Clock, kube: KubeClient, namespace: str) -> PodPlayer:
    """A player whose pods sleep, and run out of time, by a clock that may jump."""

    class Part(PodPart):
        def expire(self, deadline: asyncio.Timeout, seconds: float) -> None:
            clock.call_later(seconds, lambda: _now(deadline))

        async def sleep(self, seconds: float) -> None:
            await clock.sleep(seconds)

    player = PodPlayer(kube, namespace)
    player.part = Part
    return player


def _now(deadline: asyncio.Timeout) -> None:
    try:
        deadline.reschedule(asyncio.get_running_loop().time())
    except RuntimeError:
        pass  # the script has come to its end before
