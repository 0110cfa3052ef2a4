"""The state of the embedded cluster: objects, one counter of revisions, and a bounded memory of changes.

This is what etcd and the API server's storage layer do together, without HTTP: every write gets the next revision, an
object with finalizers outlives its deletion, and a watcher can read what happened since a revision as long as it is
remembered. Objects are plain JSON. What the store hands out is shared: to change it, hand in a new one.
"""

from __future__ import annotations

import copy
import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from bot.demo import status
from bot.demo.chance import Chance
from bot.demo.clock import Clock
from bot.demo.kinds import Kind
from bot.demo.validation import validate

Json = dict[str, Any]
Key = tuple[str, str]

FIRST_REVISION = 1000
"""Where the world begins; nothing is known of what was before."""
HISTORY = 4096
"""Changes remembered for each kind: a watch that asks for older ones is answered 410."""

_SERVER_OWNED = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
)


@dataclass(frozen=True)
class Change:
    """One write: what an object was before, and is now. A deletion's object is its last state at the revision of the
    deletion.
    """

    revision: int
    type: str
    kind: Kind
    object: Json
    previous: Json | None

    @property
    def key(self) -> Key:
        """Namespace and name of the object."""
        return key_of(self.object)

    @cached_property
    def encoded(self) -> bytes:
        """The object as JSON, made once for all watchers."""
        return json.dumps(self.object, separators=(",", ":"), ensure_ascii=False).encode()


def key_of(obj: Json) -> Key:
    """Namespace and name."""
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def stamp(when: datetime) -> str:
    """A time as Kubernetes writes it: whole seconds, UTC."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Store:
    """All objects of the cluster."""

    def __init__(self, clock: Clock, chance: Chance) -> None:
        self.clock = clock
        self.chance = chance
        self.revision = FIRST_REVISION
        self._objects: dict[Kind, dict[Key, Json]] = {}
        self._history: dict[Kind, deque[Change]] = {}
        self._floor: dict[Kind, int] = {}
        self._subscribers: list[Callable[[Change], None]] = []

    def subscribe(self, callback: Callable[[Change], None]) -> Callable[[], None]:
        """Hear of every change, inside the write; returns what ends it."""
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback)

    def find(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """The object, or None."""
        return self._objects.get(kind, {}).get((namespace if kind.namespaced else "", name))

    def get(self, kind: Kind, namespace: str, name: str) -> Json:
        """The object. Raises ApiError 404."""
        found = self.find(kind, namespace, name)
        if found is None:
            raise status.not_found(kind, name)
        return found

    def all(self, kind: Kind, namespace: str = "") -> list[Json]:
        """All objects of a kind, of one namespace or of all, by name as etcd orders them."""
        objects = self._objects.get(kind, {})
        return [objects[key] for key in sorted(objects) if not namespace or key[0] == namespace]

    def list_at(self, kind: Kind, revision: int) -> list[Json]:
        """All objects as they were at a revision, for the pages of one consistent list.

        Raises ApiError 410 when the changes since are forgotten.
        """
        objects = dict(self._objects.get(kind, {}))
        for change in reversed(list(self.since(kind, revision))):
            if change.previous is None:
                objects.pop(change.key, None)
            else:
                objects[change.key] = change.previous
        return [objects[key] for key in sorted(objects)]

    def since(self, kind: Kind, revision: int) -> Iterator[Change]:
        """The changes after a revision. Raises ApiError 410 (Expired) when some are forgotten."""
        floor = self._floor.get(kind, FIRST_REVISION)
        if revision < floor:
            raise status.expired(f"too old resource version: {revision} ({floor})")
        return iter([change for change in self._history.get(kind, ()) if change.revision > revision])

    def forget(self) -> None:
        """Compact: whoever resumes from an earlier revision is told 410."""
        for kind in self._objects:
            self._history[kind] = deque()
            self._floor[kind] = self.revision

    def create(self, kind: Kind, obj: Json, *, dry_run: bool = False) -> Json:
        """Add an object; fills in name, uid, times and revision.

        Raises ApiError: 409 where the name is taken, 422 where a field is invalid.
        """
        obj = {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
        meta: Json = dict(obj.get("metadata") or {})
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = f"{meta['generateName'][:58]}{self.chance.suffix()}"
        if not kind.namespaced:
            meta.pop("namespace", None)
        for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink"):
            meta.pop(key, None)
        meta |= {"uid": self.chance.uid(), "creationTimestamp": stamp(self.clock.now())}
        if kind.generation:
            meta["generation"] = 1
        obj["metadata"] = meta
        validate(kind, obj)
        if there := self._objects.setdefault(kind, {}).get(key_of(obj)):
            raise status.already_exists(kind, meta["name"], deleted="deletionTimestamp" in there["metadata"])
        return obj if dry_run else self._record("ADDED", kind, obj, None)

    def replace(self, kind: Kind, obj: Json, *, dry_run: bool = False) -> Json:
        """Overwrite an object; with metadata.resourceVersion only if it is still that.

        A write that changes nothing makes no revision. One that takes the last finalizer from an object under
        deletion removes it. Raises ApiError: 404, 409 on a lost race, 422 where a field is invalid.
        """
        namespace, name = key_of(obj)
        old = self.get(kind, namespace, name)
        meta: Json = dict(obj["metadata"])
        expected = meta.get("resourceVersion")
        if expected and expected != old["metadata"]["resourceVersion"]:
            raise status.conflict(kind, name)
        if meta.get("uid") and meta["uid"] != old["metadata"]["uid"]:
            text = f'Invalid value: "{meta["uid"]}": field is immutable'
            raise status.invalid(kind, name, ("metadata.uid", "FieldValueInvalid", text))
        marked = meta.get("deletionTimestamp")
        if marked and marked != old["metadata"].get("deletionTimestamp"):
            text = f'Invalid value: "{marked}": field is immutable'
            raise status.invalid(kind, name, ("metadata.deletionTimestamp", "FieldValueInvalid", text))
        meta.pop("managedFields", None)
        # What only the server writes stays as it is, whatever the client sends.
        for key in _SERVER_OWNED:
            meta.pop(key, None)
            if key in old["metadata"]:
                meta[key] = old["metadata"][key]
        for key in ("labels", "annotations", "finalizers", "ownerReferences"):
            if key in meta and not meta[key]:
                del meta[key]
        obj = {**obj, "metadata": meta}
        validate(kind, obj, old)
        if obj == old:
            return old
        if kind.generation and _generation_moves(kind, old, obj):
            meta["generation"] = old["metadata"].get("generation", 0) + 1
        if dry_run:
            return obj
        if "deletionTimestamp" in meta and not meta.get("finalizers") and not _graceful(meta):
            return self._remove(kind, obj, old)
        return self._record("MODIFIED", kind, obj, old)

    def change(self, kind: Kind, namespace: str, name: str, edit: Callable[[Json], None]) -> Json:
        """Read, edit a copy, and write it back, as a controller does. Raises ApiError 404."""
        obj = copy.deepcopy(self.get(kind, namespace, name))
        edit(obj)
        return self.replace(kind, obj)

    def mark_deleted(self, kind: Kind, old: Json, *, grace: int = 0, finalizers: list[str] | None = None) -> Json:
        """Set the deletion timestamp; the object goes at once unless a finalizer or a grace period holds it."""
        meta = dict(old["metadata"])
        if finalizers is not None:
            meta["finalizers"] = finalizers
            if not finalizers:
                del meta["finalizers"]
        if not meta.get("finalizers") and not grace:
            return self._remove(kind, old, old)
        if "deletionTimestamp" not in meta or (grace == 0 and meta.get("deletionGracePeriodSeconds")):
            meta |= {"deletionTimestamp": stamp(self.clock.now()), "deletionGracePeriodSeconds": grace}
            if kind.generation:
                meta["generation"] = meta.get("generation", 0) + 1
        obj = {**old, "metadata": meta}
        return old if obj == old else self._record("MODIFIED", kind, obj, old)

    def remove(self, kind: Kind, namespace: str, name: str) -> None:
        """Take an object away if it is there, ignoring grace and finalizers: what a kubelet or a lost disk does."""
        old = self.find(kind, namespace, name)
        if old is not None:
            self._remove(kind, old, old)

    def _remove(self, kind: Kind, obj: Json, old: Json) -> Json:
        del self._objects[kind][key_of(old)]
        return self._record("DELETED", kind, obj, old)

    def _record(self, what: str, kind: Kind, obj: Json, old: Json | None) -> Json:
        self.revision += 1
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.revision)}}
        if what != "DELETED":
            self._objects.setdefault(kind, {})[key_of(obj)] = obj
        change = Change(self.revision, what, kind, obj, old)
        history = self._history.setdefault(kind, deque())
        history.append(change)
        if len(history) > HISTORY:
            self._floor[kind] = history.popleft().revision
        for subscriber in list(self._subscribers):
            subscriber(change)
        return obj


def _graceful(meta: Json) -> bool:
    return bool(meta.get("deletionGracePeriodSeconds"))


def _generation_moves(kind: Kind, old: Json, new: Json) -> bool:
    if kind.generation == "spec":
        return bool(old.get("spec") != new.get("spec"))
    return {k: v for k, v in old.items() if k != "metadata"} != {k: v for k, v in new.items() if k != "metadata"}
