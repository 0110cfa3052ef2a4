"""The kubelet's part for placeholders: they run as soon as they have a node, and go when they are told to.

The pod player knows the pods of Argo's steps only, and kwok has no stages of pods here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime

import aiohttp

from tests.real.rig.kube_client import KubeClient, KubeError, Manifest

PODS = "/api/v1/namespaces/foxhunt/pods"
SELECTOR = "gputest.bot/role=placeholder"


class PauseKubelet:
    """Plays them, and remembers when the API showed the last of each."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube
        self._seen: set[str] = set()

    async def play(self) -> None:
        """For ever; a watch that ends is begun anew."""
        while True:
            with suppress(KubeError, aiohttp.ClientError, TimeoutError):
                listed = await self._kube.get(PODS, {"labelSelector": SELECTOR})
                for pod in listed["items"]:
                    await self._take(pod)
                version = listed["metadata"]["resourceVersion"]
                async for kind, pod in self._kube.watch(PODS, version, SELECTOR):
                    if kind in {"ADDED", "MODIFIED"}:
                        await self._take(pod)
            await asyncio.sleep(0.05)

    async def _take(self, pod: Manifest) -> None:
        path, uid = f"{PODS}/{pod['metadata']['name']}", pod["metadata"]["uid"]
        if pod["metadata"].get("deletionTimestamp"):
            # the containers obey the signal, and the kubelet says that they are gone
            await self._kube.delete(path, {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})
        elif pod["spec"].get("nodeName") and uid not in self._seen:
            self._seen.add(uid)
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            running = {"phase": "Running", "startTime": now}
            await self._kube.merge(f"{path}/status", {"metadata": {"uid": uid}, "status": running})


@asynccontextmanager
async def playing(kube: KubeClient) -> AsyncIterator[PauseKubelet]:
    """A kubelet for as long as the block lasts."""
    kubelet = PauseKubelet(kube)
    task = asyncio.create_task(kubelet.play(), name="pause kubelet")  # noqa: TID251  # the bot's tasks are its own
    try:
        yield kubelet
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
