"""The websocket of the embedded Mattermost: authentication, events in sequence, and resuming after a cut.

https://api.mattermost.com/#tag/WebSocket; mattermost-server 6.7.2 `api4/websocket.go`, `app/web_conn.go`,
`app/web_hub.go`, `app/websocket_router.go`. A connection outlives its socket for a while: what happens in between
waits in its queue, and what was sent last stays known, so that a client that comes back with its sequence number
misses nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from typing import Any

from aiohttp import WSMsgType, web

from bot.demo.chat_errors import ChatError
from bot.demo.chat_shapes import MESSAGE, decode, read
from bot.demo.chat_state import VERSION, ChatState, Event, Json
from bot.demo.faults import Faults

AUTHENTICATION_SECONDS = 5.0
QUEUE_SIZE = 256
DEAD_QUEUE_SIZE = 128
REAPED_AFTER = 300.0
MAX_MESSAGE = 8 * 1024
PING_SECONDS = 60.0


class Connection:
    """One logical connection of a user; sockets may come and go."""

    def __init__(self, identity: str, token: str, user: str) -> None:
        self.id = identity
        self.token = token
        self.user = user
        self.sequence = 0
        self.waiting: deque[Json] = deque()
        self.sent: deque[Json] = deque(maxlen=DEAD_QUEUE_SIZE)
        self.news = asyncio.Event()
        self.socket: web.WebSocketResponse | None = None
        self.overrun = False
        self.inactive_since: float | None = None

    def push(self, message: Json) -> None:
        """Queue an event or a reply; a reader that is too slow loses the connection."""
        if len(self.waiting) >= QUEUE_SIZE:
            self.overrun = True
        else:
            self.waiting.append(message)
        self.news.set()


class Hub:
    """All connections."""

    def __init__(self, state: ChatState, faults: Faults) -> None:
        self.state = state
        self.frozen = False
        """Half-open: sockets stay up, and nothing arrives."""
        self._faults = faults
        self._connections: list[Connection] = []
        state.listeners.append(self._on_event)

    def freeze(self, frozen: bool = True) -> None:
        """Let the sockets fall silent without closing them, or let them speak again."""
        self.frozen = frozen
        for connection in self._connections:
            connection.news.set()

    @property
    def connected(self) -> list[str]:
        """The user ids of all open sockets."""
        return [one.user for one in self._connections if one.socket is not None and one.user]

    def _on_event(self, event: Event) -> None:
        for connection in self._connections:
            if self._concerns(connection, event):
                broadcast = {
                    "omit_users": {event.but_for: True} if event.but_for else None,
                    "user_id": event.user,
                    "channel_id": event.channel,
                    "team_id": event.team,
                }
                connection.push({"event": event.name, "data": event.data, "broadcast": broadcast})

    def _concerns(self, connection: Connection, event: Event) -> bool:
        # A revoked token keeps its socket, but hears nothing more.
        if not self._is_authenticated(connection):
            return False
        if event.admins is not None and event.admins != self.state.is_admin(connection.user):
            return False
        if event.but_for == connection.user:
            return False
        if event.user:
            return event.user == connection.user
        return event.members is None or connection.user in event.members

    def _is_authenticated(self, connection: Connection) -> bool:
        return bool(connection.user) and self.state.user_of(connection.token) == connection.user

    async def serve(self, request: web.Request, token: str, user: str) -> web.WebSocketResponse:
        """Answer GET /api/v4/websocket."""
        socket = web.WebSocketResponse(max_msg_size=MAX_MESSAGE, heartbeat=PING_SECONDS, compress=False)
        await socket.prepare(request)
        connection = self._connection(request, token, user)
        if connection is None:
            _cut(request)
            return socket
        connection.socket = socket
        connection.inactive_since = None

        def cut() -> None:
            _cut(request)

        self._faults.stream_opened(cut)
        reader = asyncio.ensure_future(self._read(connection, socket))  # noqa: TID251  # ends with this handler
        try:
            await self._write(connection, socket, reader)
        except ConnectionError:
            pass
        finally:
            if not socket.closed:
                # What the server ends it ends without a word.
                cut()
            reader.cancel()
            self._faults.stream_closed(cut)
            connection.socket = None
            connection.inactive_since = self.state.clock.wire_time()
            if not connection.user:
                self._connections.remove(connection)
        await socket.close()
        return socket

    def _connection(self, request: web.Request, token: str, user: str) -> Connection | None:
        """A new connection, or the one that the client comes back to; None where the request is malformed."""
        self._reap()
        asked = request.query.get("connection_id", "")
        known = None
        if asked and user:
            if len(asked) != 26:
                return None
            known = next((one for one in self._connections if one.id == asked and one.user == user), None)
            if known is not None and known.socket is not None:
                # The server still thinks that the old socket lives.
                known = None
        if known is None:
            connection = Connection(self.state.new_id(), token, user)
            self._connections.append(connection)
            if user:
                connection.push(self._hello(connection))
            return connection
        number = request.query.get("sequence_number", "")
        if not number.isdigit():
            return None
        self._resume(known, int(number))
        return known

    def _resume(self, connection: Connection, sequence: int) -> None:
        if sequence == 0:
            connection.sequence = 0
            return
        found = [one for one in connection.sent if one.get("seq", -1) >= sequence]
        if found and found[0]["seq"] == sequence:
            connection.waiting.extendleft(reversed(found))
        elif connection.sent and connection.sent[-1]["seq"] != sequence - 1:
            # Something was lost: begin anew under another name, and let the client catch up by itself.
            connection.sent.clear()
            connection.id = self.state.new_id()
            connection.sequence = 0
            connection.waiting.appendleft(self._hello(connection))
        connection.news.set()

    def _hello(self, connection: Connection) -> Json:
        data = {"connection_id": connection.id, "server_version": f"{VERSION}.{VERSION}.embedded.false"}
        broadcast = {"omit_users": None, "user_id": connection.user, "channel_id": "", "team_id": ""}
        return {"event": "hello", "data": data, "broadcast": broadcast}

    def _reap(self) -> None:
        now = self.state.clock.wire_time()
        self._connections = [
            one for one in self._connections if one.inactive_since is None or now - one.inactive_since < REAPED_AFTER
        ]

    async def _write(self, connection: Connection, socket: web.WebSocketResponse, reader: asyncio.Future[None]) -> None:
        reader.add_done_callback(lambda _done: connection.news.set())
        loop = asyncio.get_running_loop()
        deadline = loop.time() + AUTHENTICATION_SECONDS
        while not reader.done() and not connection.overrun:
            if not self.frozen:
                while connection.waiting:
                    await self._send(connection, socket, connection.waiting.popleft())
            if not connection.user and loop.time() >= deadline:
                return
            try:
                async with asyncio.timeout_at(None if connection.user else deadline):
                    await connection.news.wait()
            except TimeoutError:
                continue
            connection.news.clear()

    async def _send(self, connection: Connection, socket: web.WebSocketResponse, message: Json) -> None:
        if "event" in message and "seq" not in message:
            message = {**message, "seq": connection.sequence}
            connection.sequence += 1
            connection.sent.append(message)
        await socket.send_str(json.dumps(message, ensure_ascii=False, separators=(",", ":")))

    async def _read(self, connection: Connection, socket: web.WebSocketResponse) -> None:
        async for message in socket:
            try:
                given = decode(message.data.encode() if message.type is WSMsgType.TEXT else b"")
                request: Json = read({} if given is None else given, MESSAGE)
            except ValueError:
                return
            if not self._serve_request(connection, request):
                return

    def _serve_request(self, connection: Connection, request: Json) -> bool:
        """Answer one message of a client; False closes the socket."""
        sequence, action, data = request.get("seq", 0), request.get("action", ""), request.get("data", {})
        if not action:
            return self._fail(connection, sequence, "no_action", "No websocket action.", 400)
        if sequence <= 0:
            return self._fail(connection, sequence, "bad_seq", "Invalid sequence for WebSocket message.", 400)
        if action == "authentication_challenge":
            return self._authenticate(connection, sequence, data.get("token"))
        if not self._is_authenticated(connection):
            text = "WebSocket connection is not authenticated. Please log in and try again."
            return self._fail(connection, sequence, "not_authenticated", text, 401)
        if action == "ping":
            now = int(self.state.clock.time() * 1000)
            pong = {"text": "pong", "version": VERSION, "server_time": now, "node_id": ""}
            connection.push({"status": "OK", "data": pong, "seq_reply": sequence})
        elif action == "user_typing":
            return self._tell_typing(connection, sequence, data)
        else:
            return self._fail(connection, sequence, "bad_action", "Unknown WebSocket action.", 500)
        return True

    def _tell_typing(self, connection: Connection, sequence: int, data: Json) -> bool:
        channel, root = data.get("channel_id"), data.get("parent_id")
        if channel not in list(self.state.channels) or not self.state.is_member(str(channel), connection.user):
            error = ChatError(400, "api.websocket_handler.invalid_param.app_error", "Invalid channel_id parameter.")
            return self._refuse(connection, sequence, error)
        told = {"parent_id": root if isinstance(root, str) else "", "user_id": connection.user}
        self.state.publish(Event("typing", told, channel=str(channel), but_for=connection.user))
        connection.push({"status": "OK", "seq_reply": sequence})
        return True

    def _authenticate(self, connection: Connection, sequence: int, token: Any) -> bool:
        if connection.user:
            return True
        user = self.state.user_of(token) if isinstance(token, str) else ""
        if not user:
            return False
        connection.token, connection.user = str(token), user
        connection.push(self._hello(connection))
        connection.push({"status": "OK", "seq_reply": sequence})
        return True

    def _fail(self, connection: Connection, sequence: int, word: str, text: str, code: int) -> bool:
        return self._refuse(connection, sequence, ChatError(code, f"api.web_socket_router.{word}.app_error", text))

    def _refuse(self, connection: Connection, sequence: int, error: ChatError) -> bool:
        if connection.user:
            # Who has not signed in gets no answer.
            body = error.body("")
            del body["request_id"]
            number = {"seq_reply": sequence} if sequence else {}
            connection.push({"status": "FAIL", "error": body, **number})
        return True


def _cut(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()
