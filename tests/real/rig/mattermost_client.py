"""A small client of Mattermost's REST API (version 4)."""

import json
from typing import Any

import aiohttp

_TIMEOUT = aiohttp.ClientTimeout(total=35)  # An integration may take 30 s before the server gives it up.


class MattermostError(Exception):
    """Mattermost refused a request."""

    def __init__(self, status: int, error_id: str, message: str) -> None:
        super().__init__(f"{status} {error_id}: {message}")
        self.status = status
        self.error_id = error_id


class MattermostClient:
    """The chat as one user sees it.

    The session must not keep cookies: a cookie goes before the Authorization header, and then asks for a CSRF token.
    """

    def __init__(self, session: aiohttp.ClientSession, url: str, token: str) -> None:
        self.session = session
        self.url = url
        self.token = token

    async def get(self, path: str, **query: str) -> Any:
        """Read."""
        return await self._request("GET", path, None, query)

    async def post(self, path: str, body: Any = None) -> Any:
        """Create, or have something done."""
        return await self._request("POST", path, body, {})

    async def put(self, path: str, body: Any = None) -> Any:
        """Change."""
        return await self._request("PUT", path, body, {})

    async def delete(self, path: str) -> Any:
        """Remove."""
        return await self._request("DELETE", path, None, {})

    async def _request(self, method: str, path: str, body: Any, query: dict[str, str]) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        async with self.session.request(
            method, f"{self.url}/api/v4{path}", json=body, params=query, headers=headers, timeout=_TIMEOUT
        ) as response:
            return _answer(response.status, await response.text())


async def log_in(session: aiohttp.ClientSession, url: str, name: str, password: str) -> str:
    """Sign a user in, and return the token of the new session."""
    body = {"login_id": name, "password": password}
    async with session.post(f"{url}/api/v4/users/login", json=body, timeout=_TIMEOUT) as response:
        _answer(response.status, await response.text())
        return response.headers["Token"]


def _answer(status: int, text: str) -> Any:
    try:
        answer = json.loads(text)
    except ValueError:
        answer = {"message": text[:300]}
    if status >= 400:
        raise MattermostError(status, str(answer.get("id", "")), str(answer.get("message", "")))
    return answer
