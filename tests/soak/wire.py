"""A bot's own line to one server: it can be cut, or held in either direction, while everybody else's is well.

Bytes pass as they are. Held ones come later, even where who sent them has given up: as from a process that was stopped
after it had asked whether it may write. What the bot writes to posts is noted as it leaves.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

_WRITE = re.compile(rb"(POST|PUT|DELETE) (/api/v4/posts[^ ?]*) HTTP/1.1\r\n")
_CHUNK = 65536


@dataclass
class Write:
    """A request that changes posts."""

    identity: str
    """Whose it is, as the Lease names them."""
    what: str
    left: float
    arrived: float | None = None
    """When its last part was handed on; None for one that never was."""


class Wire:
    """Everything between one bot and one server."""

    def __init__(self, who: Callable[[], str], target: str) -> None:
        self.writes: list[Write] = []
        self.url = ""
        self._who = who
        host, _, port = target.removeprefix("http://").partition(":")
        self._target = host, int(port)
        self._up, self._down = asyncio.Event(), asyncio.Event()
        self._is_cut = False
        self._lines: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.let_pass()

    async def start(self) -> None:
        """Listen on a free port of the loopback."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        """End everything."""
        self.cut()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        while self._lines:  # noqa: ASYNC110  # each ends by itself, now that it is aborted
            await asyncio.sleep(0)

    @property
    def is_well(self) -> bool:
        """Whether all passes."""
        return not self._is_cut and self._up.is_set() and self._down.is_set()

    def cut(self) -> None:
        """End each connection at once, and take no more."""
        self._is_cut = True
        self._up.set()
        self._down.set()
        for line in self._lines:
            line.transport.abort()

    def hold(self, *, requests: bool = False, answers: bool = False) -> None:
        """Keep back what goes that way."""
        if requests:
            self._up.clear()
        if answers:
            self._down.clear()

    def let_pass(self) -> None:
        """Mend it, and hand on what was held."""
        self._is_cut = False
        self._up.set()
        self._down.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._lines.add(writer)
        far: asyncio.StreamWriter | None = None
        try:
            if self._is_cut:
                return
            far_reader, far = await asyncio.open_connection(*self._target)
            self._lines.add(far)
            if self._is_cut:
                return
            identity = self._who()
            await asyncio.gather(self._ask(identity, reader, far), self._answer(far_reader, writer))
        except OSError:
            pass  # either side is gone, and the other will notice
        finally:
            for line in (writer, far):
                if line is not None:
                    self._lines.discard(line)
                    line.transport.abort()

    async def _ask(self, identity: str, reader: asyncio.StreamReader, far: asyncio.StreamWriter) -> None:
        write: Write | None = None
        while data := await reader.read(_CHUNK):
            found = _WRITE.match(data)
            if found is not None:
                write = Write(identity, f"{found[1].decode()} {found[2].decode()}", time.monotonic())
                self.writes.append(write)
            await self._up.wait()
            far.write(data)
            await far.drain()
            if write is not None and not self._is_cut:
                write.arrived = time.monotonic()
        with suppress(OSError, RuntimeError):
            far.write_eof()

    async def _answer(self, far: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await far.read(_CHUNK):
            await self._down.wait()
            writer.write(data)
            await writer.drain()
        writer.close()
