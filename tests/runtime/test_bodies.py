"""What a body can be: the bot answers as Mattermost wants it, and goes on."""

from __future__ import annotations

import time
from typing import Any

import pytest

from bot.core.signing import Deed, Signed, key_of, seal
from tests.runtime.conftest import House


@pytest.mark.parametrize("charset", ["klingon", "base64"])
@pytest.mark.parametrize("path", ["/commands", "/actions", "/dialogs"])
async def test_an_encoding_that_is_none(house: House, path: str, charset: str) -> None:
    """The header names one that does not exist, or that makes no text."""
    kind = "application/x-www-form-urlencoded" if path == "/commands" else "application/json"
    headers = {"Content-Type": f"{kind}; charset={charset}"}

    async with house.session.post(f"{house.url}{path}", data=b"{}", headers=headers) as response:
        answer: dict[str, Any] = await response.json()

    assert response.status == 200
    assert "nothing" in str(answer)


@pytest.mark.parametrize("path", ["/actions", "/dialogs"])
async def test_brackets_without_end(house: House, path: str) -> None:
    """JSON that is deeper than Python goes."""
    headers = {"Content-Type": "application/json"}

    async with house.session.post(f"{house.url}{path}", data=b"[" * 100_000, headers=headers) as response:
        assert response.status == 200


@pytest.mark.parametrize("path", ["/actions", "/dialogs"])
async def test_a_cluster_that_takes_its_time(house: House, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mattermost would show an error of its own after half a minute: before that the person is told."""
    monkeypatch.setattr("bot.runtime.http.CLICK_WITHIN", 0.0)
    channel = house.world.chat.channel_id()
    signed = Signed(Deed.CANCEL, time.time() + 60, channel, "anna", "anna", uid="none", short="k7m2")
    sealed = seal(signed, key_of(house.world.bot_token))
    body = {"user_id": "anna", "channel_id": channel, "state": sealed, "context": {"sealed": sealed}}

    async with house.session.post(f"{house.url}{path}", json=body) as response:
        answer = await response.json()

    assert response.status == 200
    assert "takes its time" in str(answer)
