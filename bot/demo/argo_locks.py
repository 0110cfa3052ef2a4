"""Workflow-level mutexes: who holds them, and who waits in which order.

argo-workflows v3.7.3 `workflow/sync`: higher priority first, then older; the lock belongs to a workflow until it is
completed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Key = tuple[str, str]


@dataclass
class _Mutex:
    holder: Key | None = None
    waiting: dict[Key, tuple[int, str, str]] = field(default_factory=dict)

    def first(self) -> Key | None:
        return min(self.waiting, key=lambda key: self.waiting[key]) if self.waiting else None


class Locks:
    """All mutexes of the controller."""

    def __init__(self) -> None:
        self._mutexes: dict[str, _Mutex] = {}

    def acquire(self, wf: Json, spec: Json) -> str:
        """Take every mutex that the spec names, or none; returns "" or the message of who waits.

        `status.synchronization` is written either way.
        """
        key = (wf["metadata"]["namespace"], wf["metadata"]["name"])
        names = mutex_names(spec, key[0])
        for name in names:
            mutex = self._mutexes.setdefault(name, _Mutex())
            if mutex.holder != key:
                mutex.waiting[key] = (-int(spec.get("priority") or 0), wf["metadata"]["creationTimestamp"], key[1])
        for name in names:
            mutex = self._mutexes[name]
            if mutex.holder not in (None, key) or (mutex.holder is None and mutex.first() != key):
                _write_status(
                    wf, "waiting", [{"mutex": name, "holder": "/".join(mutex.holder or mutex.first() or key)}]
                )
                return f"Waiting for {name} lock. Lock status: {0 if mutex.holder else 1}/1"
        for name in names:
            self._mutexes[name].holder = key
            self._mutexes[name].waiting.pop(key, None)
        if names:
            _write_status(wf, "holding", [{"mutex": name, "holder": "/".join(key)} for name in names])
        return ""

    def release(self, key: Key) -> list[Key]:
        """Let go of everything; returns who may try now."""
        freed: list[Key] = []
        for mutex in self._mutexes.values():
            mutex.waiting.pop(key, None)
            if mutex.holder == key:
                mutex.holder = None
            if mutex.holder is None and (first := mutex.first()) is not None:
                freed.append(first)
        return freed


def mutex_names(spec: Json, namespace: str) -> list[str]:
    """The mutexes of a spec, as Argo writes them; the singular form is the one of before 3.6."""
    synchronization = spec.get("synchronization") or {}
    mutexes = list(synchronization.get("mutexes") or [])
    if synchronization.get("mutex"):
        mutexes.append(synchronization["mutex"])
    return [f"{one.get('namespace') or namespace}/Mutex/{one['name']}" for one in mutexes]


def _write_status(wf: Json, what: str, entries: list[Json]) -> None:
    wf["status"]["synchronization"] = {"mutex": {what: entries}}
