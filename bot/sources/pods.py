"""Pods that ask for GPUs: of all namespaces where the rights allow it, else of the namespace of the workflows.

The API server has no selector for what a pod asks for, so every pod that has not ended comes by; all but those with
GPUs are let go as soon as they are decoded.
"""

from __future__ import annotations

import msgspec

from bot.clients.kube_watch import Encoded, Listed, Seen
from bot.core.kube import Pod
from bot.core.sightings import GpuPod, PodSeen, PodsListed, Sighting, Source, gpu_pod
from bot.sources.optional import Around, Wanted, watch_where_allowed

ALIVE = ("fieldSelector", "status.phase!=Succeeded,status.phase!=Failed")


async def watch_pods(around: Around) -> None:
    """Hand on every pod that asks for GPUs, for ever."""
    settings = around.settings

    def decode(raw: Encoded) -> GpuPod | None:
        return gpu_pod(_POD.decode(raw), settings)

    scopes = [("/api/v1/pods", True), (f"/api/v1/namespaces/{settings.namespace}/pods", False)]
    await watch_where_allowed(around, Wanted(Source.PODS, scopes, [ALIVE]), decode, pod_sighting)


def pod_sighting(seen: Listed[GpuPod] | Seen[GpuPod], everywhere: bool) -> Sighting:
    """From what the watch saw to what is held. A pod that ends leaves the selection, which shows as DELETED."""
    if isinstance(seen, Listed):
        return PodsListed(seen.items, everywhere)
    return PodSeen(seen.object, gone=seen.type == "DELETED")


_POD = msgspec.json.Decoder(Pod)
