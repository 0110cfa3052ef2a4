"""Kubernetes Events, as controllers record them:
https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/.
"""

from __future__ import annotations

from typing import Any

from bot.demo.kinds import EVENTS
from bot.demo.world import Store, stamp

Json = dict[str, Any]


class Recorder:
    """Records events of one component; a repeated one counts up."""

    def __init__(self, store: Store, component: str) -> None:
        self._store = store
        self._component = component
        self._names: dict[tuple[str, str, str], str] = {}

    def event(
        self, about: Json, sort: str, reason: str, message: str, annotations: Json | None = None, part: str = ""
    ) -> None:
        """Say something about an object, or with `part` about that field of it; `sort` is Normal or Warning."""
        meta = about["metadata"]
        namespace = meta.get("namespace") or "default"
        now = stamp(self._store.clock.now())
        key = (meta.get("uid", meta["name"]), reason, message + part)
        name = self._names.get(key, "")
        if name and self._store.find(EVENTS, namespace, name) is not None:

            def again(event: Json) -> None:
                event |= {"count": event["count"] + 1, "lastTimestamp": now}

            self._store.change(EVENTS, namespace, name, again)
            return
        name = f"{meta['name']}.{self._store.revision + 1:x}"
        self._names[key] = name
        event: Json = {"metadata": {"name": name, "namespace": namespace}}
        if annotations:
            event["metadata"]["annotations"] = annotations
        event |= {
            "involvedObject": {
                "kind": about["kind"],
                "namespace": meta.get("namespace", ""),
                "name": meta["name"],
                "uid": meta.get("uid", ""),
                "apiVersion": about["apiVersion"],
                "resourceVersion": meta.get("resourceVersion", ""),
                **({"fieldPath": part} if part else {}),
            },
            "reason": reason,
            "message": message,
            "source": {"component": self._component},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": sort,
            "eventTime": None,
            "reportingComponent": self._component,
            "reportingInstance": "",
        }
        self._store.create(EVENTS, event)
