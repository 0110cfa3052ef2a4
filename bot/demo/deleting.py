"""Deletion: preconditions, propagation, finalizers, and the garbage collector that follows owner references.

https://kubernetes.io/docs/concepts/architecture/garbage-collection/
"""

from __future__ import annotations

from typing import Any

from bot.demo import status
from bot.demo.kinds import EVENTS, PODS, Kind
from bot.demo.world import Change, Json, Store

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
EVENT_LIFE = 3600.0
"""Seconds after which the API server drops an event (its --event-ttl)."""
POD_GRACE = 30
Place = tuple[Kind, str, str]
"""Where an object is: kind, namespace, name."""


def delete(store: Store, kind: Kind, namespace: str, name: str, options: Json) -> Json:
    """Delete as the API server does; returns the object when it stays for a while, else a Status of success.

    `options` are DeleteOptions, checked. Raises ApiError: 404, 409 where a precondition does not hold.
    """
    old = store.get(kind, namespace, name)
    _check_preconditions(kind, old, options.get("preconditions") or {})
    finalizers = list(old["metadata"].get("finalizers") or [])
    policy = options.get("propagationPolicy") or ""
    for wanted, finalizer in (("Foreground", FOREGROUND), ("Orphan", ORPHAN)):
        if policy == wanted and finalizer not in finalizers:
            finalizers.append(finalizer)
    grace = _grace(kind, old, options)
    if options.get("dryRun"):
        return old if kind == PODS or finalizers else success(kind, old)
    new = store.mark_deleted(kind, old, grace=grace, finalizers=finalizers)
    if kind == PODS or store.find(kind, namespace, name) is not None:
        return new
    return success(kind, old)


def success(kind: Kind, obj: Json) -> Json:
    """The Status that answers a deletion that took place."""
    details: Json = {"name": obj["metadata"]["name"]}
    if kind.group:
        details["group"] = kind.group
    details |= {"kind": kind.plural, "uid": obj["metadata"]["uid"]}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def _check_preconditions(kind: Kind, old: Json, wanted: Json) -> None:
    meta = old["metadata"]
    if wanted.get("uid") and wanted["uid"] != meta["uid"]:
        why = (
            f"the UID in the precondition ({wanted['uid']}) does not match the UID in record ({meta['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise status.precondition(kind, meta["name"], why)
    if wanted.get("resourceVersion") and wanted["resourceVersion"] != meta["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({wanted['resourceVersion']}) does not match "
            f"the ResourceVersion in record ({meta['resourceVersion']}). The object might have been modified"
        )
        raise status.precondition(kind, meta["name"], why)


def _grace(kind: Kind, old: Json, options: Json) -> int:
    # Only a pod that a kubelet has taken over is stopped gracefully; the kubelet removes it in the end.
    if kind != PODS or not old["spec"].get("nodeName") or old.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    asked = options.get("gracePeriodSeconds")
    return int(old["spec"].get("terminationGracePeriodSeconds", POD_GRACE) if asked is None else asked)


class Collector:
    """Deletes what lost its owner, and lets go of owners that wait for their dependents."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._owned: dict[str, set[Place]] = {}
        self._waiting: dict[Place, str] = {}
        store.subscribe(self._on_change)

    def _on_change(self, change: Change) -> None:
        clock = self._store.clock
        if change.kind == EVENTS:
            if change.type == "ADDED":
                namespace, name = change.key
                clock.call_later(EVENT_LIFE, lambda: self._store.remove(EVENTS, namespace, name))
            return
        place = (change.kind, *change.key)
        self._index(place, change)
        meta = change.object["metadata"]
        if change.type == "DELETED":
            self._waiting.pop(place, None)
            if meta["uid"] in self._owned:
                clock.soon(lambda: self._owner_gone(meta["uid"]))
            if self._waiting:
                clock.soon(self._look_at_waiting)
        elif "deletionTimestamp" in meta and {FOREGROUND, ORPHAN} & set(meta.get("finalizers") or ()):
            self._waiting[place] = meta["uid"]
            clock.soon(self._look_at_waiting)

    def _index(self, place: Place, change: Change) -> None:
        before = _owners(change.previous) if change.previous else set()
        now = _owners(change.object) if change.type != "DELETED" else set()
        for uid in before - now:
            places = self._owned.get(uid, set())
            places.discard(place)
            if not places:
                self._owned.pop(uid, None)
        for uid in now - before:
            self._owned.setdefault(uid, set()).add(place)

    def _owner_gone(self, uid: str) -> None:
        for kind, obj in self._dependents(uid):
            if len(obj["metadata"]["ownerReferences"]) == 1:
                delete(self._store, kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"], {})
            else:
                self._disown(kind, obj, uid)

    def _look_at_waiting(self) -> None:
        for (kind, *key), uid in list(self._waiting.items()):
            owner = self._store.find(kind, *key)
            if owner is None or owner["metadata"]["uid"] != uid:
                self._waiting.pop((kind, key[0], key[1]), None)
                continue
            finalizers = owner["metadata"].get("finalizers") or []
            if ORPHAN in finalizers:
                for dependent_kind, obj in self._dependents(uid):
                    self._disown(dependent_kind, obj, uid)
                self._drop(kind, (key[0], key[1]), ORPHAN)
            if FOREGROUND in finalizers:
                for dependent_kind, obj in self._dependents(uid):
                    if "deletionTimestamp" not in obj["metadata"]:
                        delete(
                            self._store,
                            dependent_kind,
                            obj["metadata"].get("namespace", ""),
                            obj["metadata"]["name"],
                            {},
                        )
                if not any(_blocks(obj, uid) for _kind, obj in self._dependents(uid)):
                    self._drop(kind, (key[0], key[1]), FOREGROUND)

    def _dependents(self, uid: str) -> list[tuple[Kind, Json]]:
        places = sorted(self._owned.get(uid, ()), key=lambda place: (place[0].plural, place[1], place[2]))
        found = [(kind, self._store.find(kind, namespace, name)) for kind, namespace, name in places]
        return [(kind, obj) for kind, obj in found if obj is not None]

    def _disown(self, kind: Kind, obj: Json, uid: str) -> None:
        def edit(copy: Json) -> None:
            owners: list[Any] = copy["metadata"]["ownerReferences"]
            copy["metadata"]["ownerReferences"] = [owner for owner in owners if owner.get("uid") != uid]

        self._store.change(kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"], edit)

    def _drop(self, kind: Kind, key: tuple[str, str], finalizer: str) -> None:
        def edit(copy: Json) -> None:
            copy["metadata"]["finalizers"].remove(finalizer)

        if self._store.find(kind, *key) is not None:
            self._store.change(kind, *key, edit)


def _owners(obj: Json) -> set[str]:
    return {owner["uid"] for owner in obj["metadata"].get("ownerReferences") or () if "uid" in owner}


def _blocks(obj: Json, uid: str) -> bool:
    owners = obj["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == uid and owner.get("blockOwnerDeletion") for owner in owners)
