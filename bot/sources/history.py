"""The history of starts as it is kept (written by sinks/history.py): each replica knows what is usual."""

from __future__ import annotations

from collections.abc import Callable

from bot.clients.kube import Kube
from bot.core.events import Event, HistoryRead
from bot.core.history import KEY
from bot.core.kube import ConfigMap
from bot.metrics import Metrics
from bot.sources.config_maps import watch_config_map


async def watch_history(
    kube: Kube,
    metrics: Metrics,
    place: tuple[str, str],
    put: Callable[[Event], None],
    trouble: Callable[[str], None],
) -> None:
    """Hand on the history as it changes, for ever. `place`: namespace and name of its ConfigMap.

    Without the right to watch it nothing is usual.
    """
    await watch_config_map(kube, metrics, place, _read, put, trouble)


def _read(found: ConfigMap | None) -> HistoryRead | None:
    return None if found is None else HistoryRead((found.data or {}).get(KEY, ""))
