"""How far the chat was read: a time below which every command has its answer.

It is kept in the bot's own ConfigMap, so that a restart, a replica that takes over and a gap in the websocket all go on
from there. It moves with what is answered, not with what is read: a command that is being worked on holds it back. It
need not be exact, because an answer is looked for in the thread before anything is done; it only must not be too late.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec

from bot.clients.errors import Conflict, NotFound
from bot.clients.kube import Kube

KEY = "chat-read-until"
"""Key in the ConfigMap's data: a time in RFC 3339, to the millisecond."""


@dataclass
class Cursor:
    """A time in milliseconds, held back by what is not done yet."""

    reached: int
    _held: dict[str, int] = field(default_factory=dict)

    def saw(self, at: int) -> None:
        """Everything up to that time was seen."""
        self.reached = max(self.reached, at)

    def hold(self, key: str, at: int) -> None:
        """What was made at that time is not done."""
        self._held[key] = min(at, self._held.get(key, at))

    def release(self, key: str) -> None:
        """It is done."""
        self._held.pop(key, None)

    @property
    def value(self) -> int:
        """Up to here everything is done."""
        return min([self.reached, *(at - 1 for at in self._held.values())])


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _ConfigMap(msgspec.Struct):
    metadata: _Meta
    data: dict[str, str] | None = None


class CursorStore:
    """The cursor in the ConfigMap. Of two writers the one that has not seen the other's write loses."""

    def __init__(self, kube: Kube, namespace: str, name: str) -> None:
        self._kube = kube
        self._path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
        self._version = ""

    async def load(self) -> int | None:
        """The stored time; None where there is none, or none that can be read.

        Raises:
            WireError: the cluster can't be reached or refuses.
        """
        try:
            found = _CONFIG_MAP.decode(await self._kube.read(self._path))
        except NotFound:
            return None
        self._version = found.metadata.resource_version
        return parse((found.data or {}).get(KEY, ""))

    async def save(self, at: int) -> None:
        """Write the time. Where somebody wrote meanwhile, theirs stays unless ours is later.

        Raises:
            WireError: it was not written.
        """
        try:
            await self._write(at)
        except Conflict:
            stored = await self.load()
            if stored is None or stored < at:
                await self._write(at)

    async def _write(self, at: int) -> None:
        # a resourceVersion in a merge patch makes it conditional: 409 where the object has changed since
        patch = {"metadata": {"resourceVersion": self._version}, "data": {KEY: written(at)}}
        self._version = _CONFIG_MAP.decode(await self._kube.patch(self._path, patch)).metadata.resource_version


def written(at: int) -> str:
    """Milliseconds as people read them."""
    moment = datetime.fromtimestamp(at // 1000, UTC).replace(microsecond=at % 1000 * 1000)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse(text: str) -> int | None:
    """What `written` wrote; None for anything else."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return int(moment.timestamp()) * 1000 + moment.microsecond // 1000


_CONFIG_MAP = msgspec.json.Decoder(_ConfigMap)
