"""The websocket: authentication, events, resuming, silence."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from bot.demo import EmbeddedWorld

Socket = aiohttp.ClientWebSocketResponse


def connect(world: EmbeddedWorld, session: aiohttp.ClientSession, user: str = "bot", query: str = "") -> Any:
    """A socket that authenticates by header."""
    headers = {"Authorization": f"Bearer {world.tokens[user]}"} if user else {}
    return session.ws_connect(f"{world.chat_url}/api/v4/websocket{query}", headers=headers)


async def read(socket: Socket) -> dict[str, Any]:
    """The next message."""
    return await socket.receive_json(timeout=5)


async def test_hello_and_events_in_sequence(world: EmbeddedWorld, session: aiohttp.ClientSession) -> None:
    """hello is number 0; a post comes as a JSON string with its channel, sender and mentions."""
    async with connect(world, session) as socket:
        hello = await read(socket)

        assert (hello["event"], hello["seq"]) == ("hello", 0)
        assert len(hello["data"]["connection_id"]) == 26
        said = await world.chat.say("dev", "gpu-tests", "@gputest status")
        posted = await read(socket)

        assert (posted["event"], posted["seq"]) == ("posted", 1)
        assert json.loads(posted["data"]["post"])["message"] == "@gputest status"
        assert posted["data"]["channel_type"] == "O"
        assert posted["data"]["sender_name"] == "@dev"
        assert json.loads(posted["data"]["mentions"]) == [world.chat.user_id("bot")]
        assert posted["broadcast"]["channel_id"] == world.chat.channel_id()
        world.chat.edit("dev", said.response["id"], "changed")
        world.chat.delete("dev", said.response["id"])

        assert [(await read(socket))["event"] for _ in range(2)] == ["post_edited", "post_deleted"]


async def test_events_reach_members_only(world: EmbeddedWorld, session: aiohttp.ClientSession) -> None:
    """A direct message is heard by its two ends, an ephemeral post by one."""
    async with connect(world, session, "bot") as bot, connect(world, session, "viewer") as viewer:
        await read(bot)
        await read(viewer)
        await world.chat.say("dev", "@bot", "hello")
        await world.chat.say("dev", "gpu-tests", "all")

        assert (await read(bot))["event"] == "direct_added"
        assert (await read(bot))["data"]["channel_type"] == "D"
        assert json.loads((await read(viewer))["data"]["post"])["message"] == "all"


async def test_authentication_by_challenge(world: EmbeddedWorld, session: aiohttp.ClientSession) -> None:
    """hello and OK in either order; a wrong token closes without a word; what else is said before is not answered."""
    async with connect(world, session, "") as socket:
        await socket.send_json({"seq": 1, "action": "ping"})
        challenge = {"seq": 2, "action": "authentication_challenge", "data": {"token": world.tokens["bot"]}}
        await socket.send_json(challenge)
        answers = [await read(socket), await read(socket)]

        assert {"status": "OK", "seq_reply": 2} in answers
        await socket.send_json({"seq": 3, "action": "ping"})
        assert (await read(socket))["data"]["text"] == "pong"
    async with connect(world, session, "") as socket:
        await socket.send_json({"seq": 1, "action": "authentication_challenge", "data": {"token": "wrong"}})
        assert (await socket.receive(timeout=5)).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)


async def test_resuming_replays_what_was_missed(world: EmbeddedWorld, session: aiohttp.ClientSession) -> None:
    """No hello: first what was sent and not seen, then what happened meanwhile, in sequence."""
    async with connect(world, session) as socket:
        identity = (await read(socket))["data"]["connection_id"]
        await world.chat.say("dev", "gpu-tests", "one")
        await read(socket)
        await world.chat.say("dev", "gpu-tests", "two")
        await read(socket)
    await gone(world)
    await world.chat.say("dev", "gpu-tests", "three")
    async with connect(world, session, "bot", f"?connection_id={identity}&sequence_number=2") as socket:
        events = [await read(socket), await read(socket)]

        assert [json.loads(event["data"]["post"])["message"] for event in events] == ["two", "three"]
        assert [event["seq"] for event in events] == [2, 3]


async def gone(world: EmbeddedWorld) -> None:
    """Until the server has noticed that the bot's socket is closed."""
    async with asyncio.timeout(5):
        while world.chat.user_id("bot") in world.chat.api.hub.connected:
            await asyncio.sleep(0)


async def test_what_is_lost_begins_anew(world: EmbeddedWorld, session: aiohttp.ClientSession) -> None:
    """A sequence number that is no longer known: hello with another id and number 0."""
    async with connect(world, session) as socket:
        identity = (await read(socket))["data"]["connection_id"]
        for number in range(140):
            await world.chat.say("dev", "gpu-tests", str(number))
            await read(socket)
    await gone(world)
    async with connect(world, session, "bot", f"?connection_id={identity}&sequence_number=3") as socket:
        hello = await read(socket)

        assert (hello["event"], hello["seq"]) == ("hello", 0)
        assert hello["data"]["connection_id"] != identity
    async with connect(world, session, "bot", f"?connection_id={'z' * 26}&sequence_number=3") as socket:
        assert (await read(socket))["event"] == "hello"


async def test_a_revoked_token_falls_silent(world: EmbeddedWorld, session: aiohttp.ClientSession) -> None:
    """The socket stays open, nothing comes, and a ping is told not_authenticated."""
    async with connect(world, session) as socket:
        await read(socket)
        world.chat.revoke("bot")
        await world.chat.say("dev", "gpu-tests", "unheard")
        await socket.send_json({"seq": 1, "action": "ping"})

        assert (await read(socket))["status"] == "FAIL"


async def test_half_open_and_cut(world: EmbeddedWorld, session: aiohttp.ClientSession) -> None:
    """Frozen sockets deliver later; cut ones end."""
    async with connect(world, session) as socket:
        await read(socket)
        world.chat.api.hub.freeze()
        await world.chat.say("dev", "gpu-tests", "late")
        with pytest.raises(TimeoutError):
            await socket.receive(timeout=0.05)
        world.chat.api.hub.freeze(False)
        assert (await read(socket))["event"] == "posted"
        world.chat_faults.cut_streams()
        ended = await socket.receive(timeout=5)
        assert ended.type in (
            aiohttp.WSMsgType.CLOSE,
            aiohttp.WSMsgType.CLOSED,
            aiohttp.WSMsgType.ERROR,
            aiohttp.WSMsgType.CLOSING,
        )
