"""Everything that is watched for `/gpu`, by the name of its task."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from bot.core.sightings import StatusSeen
from bot.sources.autoscaler import watch_autoscaler
from bot.sources.kube_events import IMAGES, SCHEDULER, watch_autoscaler_events, watch_pod_events
from bot.sources.nodes import watch_nodes
from bot.sources.optional import Around
from bot.sources.pods import watch_pods


def pool_watches(around: Around) -> dict[str, Coroutine[Any, Any, None]]:
    """The watches to be started, none of which ends."""
    watches = {
        "nodes": watch_nodes(around),
        "gpu pods": watch_pods(around),
        "autoscaler events": watch_autoscaler_events(around),
        "scheduler events": watch_pod_events(around, SCHEDULER),
        "image events": watch_pod_events(around, IMAGES),
    }
    if around.settings.autoscaler_status:
        watches["autoscaler status"] = watch_autoscaler(around)
    else:
        around.tell(StatusSeen(None, there=False))
    return watches
