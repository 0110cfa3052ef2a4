"""List, then watch, for ever.

A watch ends often and in many ways: its time is over, a proxy cuts it (even within a line or a character), the
server has forgotten our place (410, as a status or as an ERROR event in a 200), it answers 200 with nothing. Each of
them ends here: go on from the last version seen, or list again and let the caller compare. Source:
https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec

from bot.clients.errors import Forbidden, Gone, ServerFault, WireError
from bot.clients.kube import Kube, whole_lines
from bot.core.nesting import shallow
from bot.metrics import Metrics

PAGE = 250
"""Objects a page of a list."""

WATCH_SECONDS = 290
"""How long we ask the server to keep a watch open."""


@dataclass(frozen=True)
class Backoff:
    """Waits before a list or watch is tried again, in seconds: `first`, doubled each time up to `longest`."""

    first: float = 0.5
    longest: float = 30.0

    def wait(self, failures: int) -> float:
        """The wait after so many failures in a row; jitter keeps many watchers from coming back together."""
        longest = min(self.first * float(2 ** min(failures - 1, 12)), self.longest)
        return longest * random.uniform(0.5, 1.0)


class HasMetadata(Protocol):
    """A decoded object, as far as the watch itself looks."""

    @property
    def metadata(self) -> Metadata: ...


class Metadata(Protocol):
    """What names an object, and the place that the watch goes on from."""

    @property
    def uid(self) -> str: ...

    @property
    def resource_version(self) -> str: ...


T = TypeVar("T", bound=HasMetadata)


@dataclass(frozen=True)
class Listed(Generic[T]):
    """Everything there is, at one moment."""

    items: tuple[T, ...]
    uids: frozenset[str] = frozenset()
    version: str = ""


@dataclass(frozen=True)
class Seen(Generic[T]):
    """One object, added, modified or deleted."""

    type: str
    object: T


@dataclass(frozen=True)
class Selection:
    """What of a collection is watched."""

    query: Sequence[tuple[str, str]] = ()
    """Selectors."""
    optional: bool = False
    """Without the rights for it the watch ends with Forbidden, instead of waiting for them."""
    seconds: int = WATCH_SECONDS
    """How long the server is asked to keep it open."""
    backoff: Backoff = Backoff()


Encoded = bytes | memoryview | msgspec.Raw
"""An object's JSON."""

_USUAL = re.compile(rb'\{"type": ?"(ADDED|MODIFIED|DELETED)", ?"object": ?(?=\{)')
"""How a line of a watch begins (apimachinery, watch.go: WatchEvent has these two fields, in this order)."""


class _Envelope(msgspec.Struct):
    type: str
    object: msgspec.Raw = msgspec.Raw(b"{}")


class _Details(msgspec.Struct, rename="camel"):
    retry_after_seconds: int | None = None


class _Meta(msgspec.Struct, rename="camel"):
    uid: str = ""
    resource_version: str = ""
    continue_: str | None = msgspec.field(default=None, name="continue")


class _Page(msgspec.Struct):
    metadata: _Meta
    items: list[msgspec.Raw] | None = None


class _Bookmark(msgspec.Struct):
    metadata: _Meta


class _Status(msgspec.Struct):
    code: int = 0
    message: str = ""
    reason: str = ""
    kind: str = ""
    details: _Details | None = None

    def error(self) -> WireError:
        """What a watch reports; servers differ in whether they name the code."""
        if self.code == 410 or self.reason in {"Gone", "Expired"}:
            return Gone(self.message)
        after = self.details.retry_after_seconds if self.details else None
        return WireError(f"the watch reported: {self.message or self.code}", retry_after=min(after or 0, 300) or None)


class Watch(Generic[T]):
    """One watched collection. `decode` gives None for an object that nobody wants to hear of."""

    def __init__(
        self,
        kube: Kube,
        metrics: Metrics,
        path: str,
        decode: Callable[[Encoded], T | None],
        *,
        on_trouble: Callable[[str], None],
        selection: Selection = Selection(),
        on_page: Callable[[tuple[T, ...]], None] | None = None,
    ) -> None:
        """`on_page` takes the objects of a list page by page; `Listed` then names them and holds none.

        `decode` may return None for an object that is of no interest.
        """
        self._kube = kube
        self._metrics = metrics
        self._path = path
        self._decode = decode
        self._on_trouble = on_trouble
        self._selection = selection
        self._seconds = selection.seconds
        self._backoff = selection.backoff
        self._on_page = on_page
        self._version = ""
        self._resource = path.rsplit("/", 1)[-1]

    async def events(self) -> AsyncIterator[Listed[T] | Seen[T]]:
        """Never ends. Whatever goes wrong is waited out; a gap shows as a new `Listed`.

        Raises:
            Forbidden: the rights are missing and the watch is optional.
        """
        failures = 0
        while True:
            try:
                if not self._version:
                    yield await self.list_once()
                    failures = 0
                progressed = False
                async for seen in self._watch():
                    progressed = True
                    failures = 0
                    if seen is not None:
                        yield seen
                # a watch that ends at once and silently is a fault, not a pause: do not spin on it
                failures = 0 if progressed else failures + 1
            except Gone:
                self._version = ""
                failures += 1
                self._metrics.watch_gaps.labels(self._resource).inc()
            except WireError as error:
                if self._selection.optional and isinstance(error, Forbidden) and error.code != "Unauthorized":
                    raise
                failures += 1
                self._on_trouble(error.reason)
                if error.retry_after:
                    await asyncio.sleep(error.retry_after)
            if failures:
                await asyncio.sleep(self._backoff.wait(failures))
            if failures >= 3:
                self._version = ""  # whatever it is that does not work, our place may be the reason

    async def list_once(self) -> Listed[T]:
        """Everything there is, page by page. A page whose token is too old raises Gone."""
        items: list[T] = []
        uids: set[str] = set()
        token = ""
        while True:
            query = [*self._selection.query, ("limit", str(PAGE))] + ([("continue", token)] if token else [])
            page = _page(await self._kube.read(self._path, query))
            found: list[T] = []
            for raw in page.items or []:
                item = self._digest(raw, uids)
                if item is not None:
                    found.append(item)
            if self._on_page is not None:
                self._on_page(tuple(found))
            else:
                items += found
            token = page.metadata.continue_ or ""
            if not token:
                self._version = page.metadata.resource_version
                return Listed(tuple(items), frozenset(uids), self._version)
            await asyncio.sleep(0)  # let people's commands through between pages

    async def _watch(self) -> AsyncIterator[Seen[T] | None]:
        query = [
            *self._selection.query,
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", self._version),
            ("timeoutSeconds", str(self._seconds)),
        ]
        async with self._kube.stream(self._path, query, seconds=self._seconds + 15) as reader:
            async for line in whole_lines(reader):
                try:
                    yield self.of_line(line)
                except RecursionError:
                    yield self.of_line(shallow(line))
                except msgspec.MsgspecError:
                    return  # not JSON, or half of it: cut on the way; the next watch brings it again

    def of_line(self, line: bytes) -> Seen[T] | None:
        """What one line of the watch tells, None where it only moves our place.

        Raises:
            WireError: it tells of an error; Gone where our place is lost.
            msgspec.MsgspecError: it is no JSON.
        """
        head = _USUAL.match(line)
        if head is not None:
            # decoded where it lies: an envelope would have the same bytes scanned twice
            raw = memoryview(line)[head.end() : -1]
            try:
                return self._taken(head[1].decode(), self._decode(raw), raw)
            except msgspec.MsgspecError:
                pass  # the long way finds out what is wrong
        try:
            envelope = _ENVELOPE.decode(line)
        except msgspec.ValidationError:
            bare = _STATUS.decode(line)  # an error without the event around it
            raise bare.error() if bare.kind == "Status" else ServerFault("the watch brought what is no event") from None
        if envelope.type == "ERROR":
            raise _STATUS.decode(envelope.object).error()
        item = None if envelope.type == "BOOKMARK" else self._digest(envelope.object)
        return self._taken(envelope.type, item, envelope.object)

    def _taken(self, kind: str, item: T | None, raw: Encoded) -> Seen[T] | None:
        found = item or _BOOKMARK.decode(raw)
        self._version = found.metadata.resource_version or self._version
        return Seen(kind, item) if item is not None else None

    def _digest(self, raw: msgspec.Raw, uids: set[str] | None = None) -> T | None:
        """One object; one that can't be read is left out and reported, so that it can't stop the others.

        `uids` takes its uid, for it is there all the same.
        """
        try:
            item = self._decode(raw)
        except msgspec.MsgspecError as error:
            self._on_trouble(f"an object of {self._resource} could not be read: {error}")
            with suppress(msgspec.MsgspecError):
                (uids if uids is not None else set()).add(_BOOKMARK.decode(raw).metadata.uid)
            return None
        if item is not None and uids is not None:
            uids.add(item.metadata.uid)
        return item


def _page(body: bytes) -> _Page:
    try:
        page = _PAGE.decode(body)
    except RecursionError:
        return _page(shallow(body))
    except msgspec.MsgspecError as error:
        raise ServerFault(f"the cluster's list could not be read: {error}") from error
    if not page.metadata.resource_version:
        raise ServerFault("the cluster's list says of no moment that it is of")
    return page


_PAGE = msgspec.json.Decoder(_Page)
_ENVELOPE = msgspec.json.Decoder(_Envelope)
_BOOKMARK = msgspec.json.Decoder(_Bookmark)
_STATUS = msgspec.json.Decoder(_Status)
