"""Mattermost: rate limiting, where it is switched on. These servers are others than those of the other cases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from bot.demo.chat_limits import RateLimits
from tests.contract.wire import Answer, Wire
from tests.embedded.rig import EmbeddedRig
from tests.real.rig.launcher import Rig

PER_SECOND, BURST = 2, 6
SETTINGS = {
    "RateLimitSettings_Enable": "true",
    "RateLimitSettings_PerSec": str(PER_SECOND),
    "RateLimitSettings_MaxBurst": str(BURST),
    "RateLimitSettings_VaryByUser": "true",
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def embedded_limits() -> AsyncIterator[EmbeddedRig]:
    """An embedded chat that limits."""
    async with EmbeddedRig.start() as rig:
        rig.world.chat.api.limits = RateLimits(rig.world.clock, PER_SECOND, BURST, by_user=True)
        yield rig


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def real_limits() -> AsyncIterator[Rig]:
    """A real chat that limits."""
    async with Rig.start(argo=None, mattermost_settings=SETTINGS) as rig:
        yield rig


@pytest.fixture(
    params=[
        pytest.param("embedded_limits", id="embedded"),
        pytest.param("real_limits", id="real", marks=pytest.mark.real),
    ]
)
def chat(request: pytest.FixtureRequest) -> Any:
    """The API as its administrator."""
    return request.getfixturevalue(request.param).mattermost.client()


async def until_refused(wire: Wire, method: str = "GET", path: str = "/users/me") -> list[Answer]:
    """Ask on and on; all answers, the refusal last."""
    answers = [await wire(method, path)]
    while answers[-1].status != 429:
        assert len(answers) < 3 * BURST
        answers.append(await wire(method, path))
    return answers


async def test_a_bucket_runs_empty(chat: Any) -> None:
    """One more than the burst may pass, each answer counts down, and what is beyond is told to wait, in plain text."""
    *passed, refused = await until_refused(Wire.chat(chat).of("a" * 26), path="/no/such/page")

    assert [each.status for each in passed] == [404] * len(passed)
    assert len(passed) > BURST
    assert [each.headers["X-RateLimit-Limit"] for each in passed[:3]] == [str(BURST + 1)] * 3
    assert [int(each.headers["X-RateLimit-Remaining"]) for each in passed[:3]] == [BURST, BURST - 1, BURST - 2]
    assert [int(each.headers["X-RateLimit-Reset"]) for each in passed[:3]] == [1, 1, 2]
    assert all("Retry-After" not in each.headers for each in passed)
    assert refused.body == "limit exceeded\n"
    assert refused.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert (refused.headers["Retry-After"], refused.headers["X-RateLimit-Remaining"]) == ("1", "0")
    assert "X-Request-Id" not in refused.headers


async def test_after_the_wait_it_passes_again(chat: Any) -> None:
    """A bucket fills by itself; what is refused costs nothing."""
    wire = Wire.chat(chat).of("b" * 26)
    await until_refused(wire)
    async with asyncio.timeout(3):
        while (await wire.get("/users/me")).status == 429:
            await asyncio.sleep(0.05)


async def test_whose_bucket_it_is(chat: Any) -> None:
    """Of the token, and of its user: tokens of nobody share one; who offers none is counted by their address."""
    wire = Wire.chat(chat)
    await until_refused(wire.of("c" * 26))

    assert (await wire.of("d" * 26).get("/users/me")).status == 429
    assert (await wire.of("").get("/users/me")).status == 401
    assert (await wire.get("/users/me")).status == 200


async def test_a_token_is_counted_twice(chat: Any) -> None:
    """For itself and for its user: each header is there two times, and a client that reads one number is wrong."""
    wire = Wire.chat(chat)
    async with wire.session.get(f"{wire.url}/users/me", **wire.options()) as response:
        assert response.status == 200
        assert response.headers.getall("X-RateLimit-Limit") == [str(BURST + 1)] * 2


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/../../hooks/none"), ("GET", "/websocket"), ("GET", "/no/such/page")]
)
async def test_everything_is_limited(chat: Any, method: str, path: str) -> None:
    """Hooks, the websocket and what does not exist: the limit stands before all of it."""
    wire = Wire.chat(chat).of(path.strip("/.").replace("/", "x").ljust(26, "e"))
    *_, refused = await until_refused(wire, method, path)

    assert refused.body == "limit exceeded\n"


async def test_a_websocket_is_refused_before_it_opens(chat: Any) -> None:
    """The upgrade is a request as any other."""
    wire = Wire.chat(chat).of("f" * 26)
    await until_refused(wire)
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        await wire.session.ws_connect(f"{wire.url}/websocket", headers={"Authorization": f"Bearer {wire.token}"})

    assert caught.value.status == 429
