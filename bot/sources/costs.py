"""The record of costs as it is kept (written by sinks/costs.py): each replica can say what was before it began."""

from __future__ import annotations

from collections.abc import Callable

from bot.clients.kube import Kube
from bot.core.events import CostsRead, Event
from bot.core.kube import ConfigMap
from bot.metrics import Metrics
from bot.sources.config_maps import watch_config_map


async def watch_costs(
    kube: Kube,
    metrics: Metrics,
    place: tuple[str, str],
    put: Callable[[Event], None],
    trouble: Callable[[str], None],
) -> None:
    """Hand on the record as it changes, for ever. `place`: namespace and name of its ConfigMap.

    Without the right to watch it nothing is kept over a restart.
    """
    await watch_config_map(kube, metrics, place, _read, put, trouble)


def _read(found: ConfigMap | None) -> CostsRead:
    if found is None:
        return CostsRead({}, "")
    return CostsRead(found.data or {}, found.metadata.resource_version)
