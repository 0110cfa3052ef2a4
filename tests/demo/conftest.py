"""A stepped world and ordinary HTTP clients for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from bot.demo import EmbeddedWorld

Json = dict[str, Any]
NAMESPACE = "/apis/argoproj.io/v1alpha1/namespaces/foxhunt"


def workflow(name: str, **fields: Any) -> Json:
    """A Workflow that runs nothing."""
    body = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": name}, "spec": {}}
    return body | fields


@pytest.fixture
async def world() -> AsyncIterator[EmbeddedWorld]:
    """A world whose clock is stepped by hand."""
    async with EmbeddedWorld(seed=1, speed=0) as running:
        yield running


class Client:
    """A bare HTTP client with a token."""

    def __init__(self, session: aiohttp.ClientSession, url: str, token: str) -> None:
        self.session = session
        self.url = url
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def __call__(self, method: str, path: str, **options: Any) -> tuple[int, Json]:
        """Status and JSON of an answer."""
        headers = {**self.headers, **options.pop("headers", {})}
        async with self.session.request(method, self.url + path, headers=headers, **options) as response:
            return response.status, await response.json(content_type=None)

    async def patch(self, path: str, body: Any, kind: str = "merge-patch") -> tuple[int, Json]:
        """A patch of the Kubernetes API."""
        return await self("PATCH", path, json=body, headers={"Content-Type": f"application/{kind}+json"})

    def stream(self, path: str, **options: Any) -> Any:
        """An answer to be read line by line."""
        return self.session.get(self.url + path, headers=self.headers, **options)


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    """One client session."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as running:
        yield running


@pytest.fixture
def kube(world: EmbeddedWorld, session: aiohttp.ClientSession) -> Client:
    """The Kubernetes API as the administrator."""
    return Client(session, world.kube_url, world.admin_token)


@pytest.fixture
def chat_as(world: EmbeddedWorld, session: aiohttp.ClientSession) -> Callable[[str], Client]:
    """Mattermost as one of its users; "" for nobody."""
    return lambda user: Client(session, world.chat_url, world.tokens[user] if user else "")
