"""Calls from the server to integrations, and the trigger ids with which they may open dialogs.

mattermost-server 6.7.2 `services/httpservice`, `model/integration_action.go`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from dataclasses import dataclass
from urllib.parse import urlencode

import aiohttp

from bot.demo.chat_errors import ChatError, action_failed
from bot.demo.chat_state import ChatState, Json

TRIGGER_SECONDS = 3
TIMEOUT_SECONDS = 30.0
MAX_RESPONSE = 1024 * 1024
USER_AGENT = "Mattermost-Bot/1.1"


@dataclass(frozen=True, slots=True)
class Answer:
    """What an integration said."""

    status: int
    reason: str
    content_type: str
    body: bytes


class Integrations:
    """The server's HTTP client; a fresh connection for every call, as the real one makes them."""

    def __init__(self, state: ChatState) -> None:
        self.state = state
        self.triggers_live = TRIGGER_SECONDS
        """Seconds; newer servers give 30."""
        self.calls: list[tuple[str, Json]] = []
        """What was sent, for tests: URL and fields or body."""
        self._secret = state.new_id().encode()
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Open the client."""
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS, connect=3.0)
        connector = aiohttp.TCPConnector(force_close=True)
        self._session = aiohttp.ClientSession(timeout=timeout, connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    async def stop(self) -> None:
        """Close the client."""
        if self._session is not None:
            await self._session.close()

    def make_trigger(self, user: str) -> tuple[str, str]:
        """The id that the client knows, and the signed one for the integration."""
        client = self.state.new_id()
        millis = int(self.state.clock.wire_time() * 1000)
        text = f"{client}:{user}:{millis}:"
        signature = base64.b64encode(self._sign(text)).decode()
        return client, base64.b64encode((text + signature).encode()).decode()

    def read_trigger(self, trigger: str) -> tuple[str, str]:
        """Client id and user of a trigger. Raises ChatError 400."""
        prefix, of = "interactive_message.decode_trigger_id", "trigger ID for interactive dialog"
        try:
            text = base64.b64decode(trigger, validate=True).decode(errors="replace")
        except ValueError as error:
            raise ChatError(400, f"{prefix}.base64_decode_failed", f"Failed to decode base64 for {of}.") from error
        parts = text.split(":")
        if len(parts) != 4:
            raise ChatError(400, f"{prefix}.missing_data", "Trigger ID missing required data for interactive dialog.")
        client, user, millis, signature = parts
        now = int(self.state.clock.wire_time() * 1000)
        if now - (int(millis) if re.fullmatch(r"[0-9]{1,18}", millis) else 0) > self.triggers_live * 1000:
            message = (
                "Trigger ID for interactive dialog is expired. Trigger IDs live for a maximum of "
                f"{self.triggers_live} seconds."
            )
            raise ChatError(400, f"{prefix}.expired", message)
        try:
            signed = base64.b64decode(signature, validate=True)
        except ValueError as error:
            text = "Failed to decode base64 signature of trigger ID for interactive dialog."
            raise ChatError(400, f"{prefix}.base64_decode_failed_signature", text) from error
        if not hmac.compare_digest(signed, self._sign(f"{client}:{user}:{millis}:")):
            raise ChatError(400, f"{prefix}.verify_signature_failed", f"Signature verification failed of {of}.")
        return client, user

    async def post_json(self, url: str, body: Json) -> Answer:
        """POST to a button's or a dialog's URL. Raises ChatError 400 unless it answers 200."""
        headers = {"Accept": "application/json", "Content-Type": "application/json", "User-Agent": USER_AGENT}
        self.calls.append((url, body))
        try:
            answer = await self._request("POST", url, headers, json.dumps(body).encode())
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise action_failed() from error
        if answer.status != 200:
            raise action_failed()
        return answer

    async def call_command(self, command: Json, fields: list[tuple[str, str]]) -> Answer:
        """Send a slash command's form, or query for method G. Raises aiohttp.ClientError, TimeoutError, ValueError."""
        headers = {"Accept": "application/json", "Authorization": f"Token {command['token']}", "User-Agent": USER_AGENT}
        self.calls.append((command["url"], dict(fields)))
        form = urlencode(sorted(fields, key=lambda one: one[0]), errors="surrogateescape")
        if command["method"] == "G":
            joint = "&" if "?" in command["url"] else "?"
            return await self._request("GET", f"{command['url']}{joint}{form}", headers, None)
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        return await self._request("POST", command["url"], headers, form.encode())

    async def _request(self, method: str, url: str, headers: dict[str, str], data: bytes | None) -> Answer:
        if self._session is None:
            raise ValueError("the chat server is not started")
        async with self._session.request(method, url, headers=headers, data=data, allow_redirects=True) as response:
            body = await response.content.read(MAX_RESPONSE)
            while not response.content.at_eof() and len(body) < MAX_RESPONSE:
                body += await response.content.read(MAX_RESPONSE - len(body))
            return Answer(response.status, response.reason or "", response.headers.get("Content-Type", ""), body)

    def _sign(self, text: str) -> bytes:
        return hmac.new(self._secret, text.encode(), hashlib.sha256).digest()
