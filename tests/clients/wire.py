"""A server that answers exactly what a test wrote, byte for byte and cut where the test cuts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Reply:
    """One answer. `chunks` go out one after the other; `cut` drops the connection instead of ending the body."""

    status: int = 200
    chunks: list[bytes] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    silent: bool = False
    """Read the request and drop the connection without a word."""


CASES = Path(__file__).parents[1] / "cases"


def replies_of(case: str) -> dict[str, Reply]:
    """The answers in a file of tests/cases: blocks that begin with `### <name>`, a request line, and what came back."""
    found: dict[str, Reply] = {}
    for block in (CASES / case).read_text().split("### ")[1:]:
        name, _, exchange = block.partition("\n")
        head, _, body = exchange.partition("\n\n")
        _, status, *headers = head.splitlines()
        fields = dict(header.split(": ", 1) for header in headers)
        content = body.strip()
        found[name.split()[0]] = Reply(int(status.split()[1]), [content.encode()] if content else [], fields)
    return found


@dataclass
class Wire:
    """What came in, and what goes out next."""

    url: str = ""
    replies: list[Reply] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    exhausted: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request on one connection."""
        try:
            await self._answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client went first
        finally:
            writer.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.requests.append(head.split(b"\r\n", 1)[0].decode())
        lengths = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
        self.bodies.append(await reader.readexactly(int(lengths[0].split(b":")[1]) if lengths else 0))
        if not self.replies:
            self.exhausted.set()
            await asyncio.Event().wait()
        reply = self.replies.pop(0)
        if not reply.silent:
            await self._write(writer, reply)
        if not reply.cut:
            writer.close()
            await writer.wait_closed()

    async def _write(self, writer: asyncio.StreamWriter, reply: Reply) -> None:
        headers = {
            "Content-Type": "application/json",
            "Transfer-Encoding": "chunked",
            "Connection": "close",
        } | reply.headers
        lines = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
        writer.write(f"HTTP/1.1 {reply.status} X\r\n{lines}\r\n".encode())
        for chunk in reply.chunks:
            writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            await writer.drain()
            await asyncio.sleep(0)
        if not reply.cut:
            writer.write(b"0\r\n\r\n")
        await writer.drain()


@asynccontextmanager
async def wire(*replies: Reply) -> AsyncIterator[Wire]:
    """A server with these answers, in order; a request beyond them waits for ever and sets `exhausted`."""
    script = Wire(replies=list(replies))
    tasks: set[asyncio.Task[None]] = set()

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(script.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    script.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield script
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
