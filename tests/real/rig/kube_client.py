"""A small client of the Kubernetes API over plain HTTP: objects as dictionaries, paths as written in the API."""

import asyncio
import io
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import aiohttp

Manifest = dict[str, Any]

ARGO = "/apis/argoproj.io/v1alpha1"
MERGE_PATCH = "application/merge-patch+json"
_TIMEOUT = aiohttp.ClientTimeout(total=30)


class KubeError(Exception):
    """The API server refused a request."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason


class KubeClient:
    """The API server as one user sees it."""

    def __init__(self, session: aiohttp.ClientSession, url: str, token: str, trust: ssl.SSLContext) -> None:
        self._session = session
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"}
        self._trust = trust

    async def request(
        self,
        method: str,
        path: str,
        body: Manifest | None = None,
        params: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Manifest:
        """Send one request; raise KubeError for a refusal."""
        async with self._session.request(
            method,
            self._url + path,
            # As a stream: aiohttp warns of large bodies in memory, and Argo's definitions are large.
            data=None if body is None else io.BytesIO(json.dumps(body).encode()),
            params=params,
            headers=self._headers | {"Content-Type": content_type},
            ssl=self._trust,
            timeout=_TIMEOUT,
        ) as response:
            return _answer(response.status, await response.text())

    async def text(self, path: str, params: Mapping[str, str] | None = None) -> str:
        """Read what is not an object, such as the log of a pod."""
        async with self._session.get(
            self._url + path, params=params, headers=self._headers, ssl=self._trust, timeout=_TIMEOUT
        ) as response:
            text = await response.text()
            if response.status != 200:
                _answer(response.status, text)
            return text

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Manifest:
        """Read one object or a list."""
        return await self.request("GET", path, params=params)

    async def create(self, path: str, body: Manifest) -> Manifest:
        """Create an object in a collection."""
        return await self.request("POST", path, body)

    async def ensure(self, path: str, body: Manifest) -> None:
        """Create an object unless it is there."""
        try:
            await self.create(path, body)
        except KubeError as error:
            if error.reason != "AlreadyExists":
                raise

    async def replace(self, path: str, body: Manifest) -> Manifest:
        """Write an object whole."""
        return await self.request("PUT", path, body)

    async def merge(self, path: str, patch: Manifest) -> Manifest:
        """Change parts of an object by a merge patch: lists are replaced, null removes."""
        return await self.request("PATCH", path, patch, content_type=MERGE_PATCH)

    async def delete(self, path: str, body: Manifest | None = None) -> None:
        """Delete an object; one that is gone already is fine."""
        try:
            await self.request("DELETE", path, body)
        except KubeError as error:
            if error.status != 404:
                raise

    async def watch(self, path: str, resource_version: str, selector: str = "") -> AsyncIterator[tuple[str, Manifest]]:
        """Yield (type, object) until the server ends the stream; raise KubeError when the version has expired."""
        params = {"watch": "1", "resourceVersion": resource_version, "allowWatchBookmarks": "true"}
        if selector:
            params["labelSelector"] = selector
        async with self._session.get(
            self._url + path,
            params=params,
            headers=self._headers,
            ssl=self._trust,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        ) as response:
            if response.status != 200:
                _answer(response.status, await response.text())
            buffered = b""
            # Read in chunks, not lines: a workflow's line is longer than the client's limit for one.
            async for chunk in response.content.iter_any():
                *lines, buffered = (buffered + chunk).split(b"\n")
                for line in lines:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        _raise_status(event["object"])
                    yield event["type"], event["object"]

    async def until(self, path: str, holds: Callable[[Manifest], bool], limit: float = 30.0) -> Manifest:
        """Read an object again and again until something holds of it."""
        seen: Manifest = {}
        try:
            async with asyncio.timeout(limit):
                while not holds(seen := await self.get(path)):
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise TimeoutError(f"{path} did not come to be as awaited in {limit:g} s; last: {seen}") from None
        return seen


def _answer(status: int, text: str) -> Manifest:
    try:
        answer = json.loads(text)
    except ValueError:
        raise KubeError(status, "NotJSON", text[:300]) from None
    if status >= 400:
        _raise_status(answer)
    if not isinstance(answer, dict):
        raise KubeError(status, "NotAnObject", text[:300])
    return answer


def _raise_status(status: Manifest) -> None:
    raise KubeError(int(status.get("code", 0)), str(status.get("reason", "")), str(status.get("message", "")))
