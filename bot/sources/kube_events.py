"""Events that tell why a pod waits: those of the cluster-autoscaler, and of our own pods the scheduler's and kubelet's.

Narrow watches instead of one of everything: a busy cluster writes hundreds of Events a minute.
"""

from __future__ import annotations

import msgspec

from bot.clients.kube_watch import Encoded, Listed, Seen
from bot.core.kube import KubeEvent
from bot.core.sightings import Note, NoteSeen, NotesListed, Sighting, Source, note
from bot.sources.optional import Around, Wanted, watch_where_allowed

AUTOSCALER = ("fieldSelector", "source=cluster-autoscaler")
"""The name by which it records (cluster-autoscaler/utils/kubernetes/factory.go), on every provider."""

SCHEDULER = ("fieldSelector", "reason=FailedScheduling")


IMAGES = ("fieldSelector", "reason=Pulled")
"""When the image of a container is there: no field of a pod tells it."""


async def watch_autoscaler_events(around: Around) -> None:
    """Hand on what the autoscaler says of pods, nodes and groups, for ever."""
    ours = f"/api/v1/namespaces/{around.settings.namespace}/events"
    wanted = Wanted(Source.EVENTS, [("/api/v1/events", True), (ours, False)], [AUTOSCALER])
    await watch_where_allowed(around, wanted, decode_note, note_sighting)


async def watch_pod_events(around: Around, selector: tuple[str, str]) -> None:
    """Hand on Events of pods of our namespace, for ever. Pods of others say what matters in their status."""
    ours = f"/api/v1/namespaces/{around.settings.namespace}/events"

    def take(seen: Listed[Note] | Seen[Note], _everywhere: bool) -> Sighting | None:
        if isinstance(seen, Listed):
            for item in seen.items:
                around.tell(NoteSeen(item))
            return None
        return note_sighting(seen, False)

    await watch_where_allowed(around, Wanted(Source.EVENTS, [(ours, False)], [selector]), decode_note, take)


def note_sighting(seen: Listed[Note] | Seen[Note], everywhere: bool) -> Sighting | None:
    """From what the watch saw to what is held. An Event that expires tells nothing new."""
    if isinstance(seen, Listed):
        return NotesListed(seen.items, everywhere)
    return None if seen.type == "DELETED" else NoteSeen(seen.object)


def decode_note(raw: Encoded) -> Note | None:
    """An Event from its bytes, None for one that tells nothing about GPUs."""
    return note(_EVENT.decode(raw))


_EVENT = msgspec.json.Decoder(KubeEvent)
