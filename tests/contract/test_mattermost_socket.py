"""Mattermost: the websocket."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest

from tests.contract.talk import Talk
from tests.contract.wire import Integration, Socket, socket_of


async def test_it_says_hello(talk: Talk) -> None:
    """The first event is number 0 and names the connection."""
    async with socket_of(talk.as_bot) as socket:
        hello = await socket.next()

    assert (hello["event"], hello["seq"]) == ("hello", 0)
    assert len(hello["data"]["connection_id"]) == 26
    assert hello["data"]["server_version"].startswith("6.7.2.")
    assert hello["broadcast"]["user_id"] == talk.account.user_id


async def test_a_new_post(talk: Talk) -> None:
    """`posted` has the post as a string of JSON, the sender's name, and the channel; the numbers go up by one."""
    async with socket_of(talk.as_bot) as socket:
        await socket.event("hello")
        post = await talk.post("hello @gputest", talk.as_anna)
        event = await socket.event("posted")

    numbers = [frame["seq"] for frame in socket.seen]
    assert numbers == list(range(len(numbers)))
    data = event["data"]
    sent = json.loads(data["post"])
    assert (sent["id"], sent["message"], sent["user_id"]) == (post["id"], "hello @gputest", talk.anna.user_id)
    assert (data["sender_name"], data["channel_name"], data["channel_type"]) == ("@anna", "gpu-tests", "O")
    assert data["team_id"] == talk.team
    assert json.loads(data["mentions"]) == [talk.account.user_id]
    assert event["broadcast"]["channel_id"] == talk.channel


async def test_an_edited_post(talk: Talk) -> None:
    """`post_edited`, with the post as it is now and nothing else."""
    post = await talk.post("old")
    async with socket_of(talk.as_anna) as socket:
        await socket.event("hello")
        await talk.as_bot.put(f"/posts/{post['id']}/patch", {"message": "new"})
        event = await socket.event("post_edited")

    sent = json.loads(event["data"]["post"])
    assert (sent["id"], sent["message"]) == (post["id"], "new")
    assert sent["edit_at"] > 0


async def test_a_deleted_post(talk: Talk) -> None:
    """`post_deleted`, with the post as it was."""
    post = await talk.post("gone")
    async with socket_of(talk.as_anna) as socket:
        await socket.event("hello")
        await talk.as_bot.delete(f"/posts/{post['id']}")
        event = await socket.event("post_deleted")

    assert json.loads(event["data"]["post"])["id"] == post["id"]


async def test_buttons_are_sent_without_where_they_lead(talk: Talk) -> None:
    """As everywhere else."""
    button = {"id": "stop", "name": "Cancel", "type": "button", "integration": {"url": "http://127.0.0.1:1/"}}
    async with socket_of(talk.as_anna) as socket:
        await socket.event("hello")
        await talk.post("card", props={"attachments": [{"text": "text", "actions": [button]}]})
        event = await socket.event("posted")

    (action,) = json.loads(event["data"]["post"])["props"]["attachments"][0]["actions"]
    assert (action["id"], "integration" in action) == ("stop", False)


async def test_only_members_hear(talk: Talk) -> None:
    """What happens in a channel is told to those who are in it."""
    async with socket_of(talk.as_anna) as outside, socket_of(talk.as_ben) as inside:
        await outside.event("hello")
        await inside.event("hello")
        await talk.post("secret", talk.as_ben, channel_id=talk.elsewhere)
        event = await inside.event("posted")

        assert json.loads(event["data"]["post"])["message"] == "secret"
        assert await outside.is_silent("posted")


async def test_ephemeral_posts_come_to_one_user(talk: Talk, service: Integration) -> None:
    """`ephemeral_message`, to all connections of the one user and to no other."""
    command = await talk.command(f"{service.url}/commands")
    service.answer = {"text": "only you"}
    async with socket_of(talk.as_anna) as one, socket_of(talk.as_anna) as two, socket_of(talk.as_ben) as other:
        for socket in (one, two, other):
            await socket.event("hello")
        await talk.type(f"/{command['trigger']}")
        events = [await socket.event("ephemeral_message") for socket in (one, two)]

        assert {json.loads(event["data"]["post"])["message"] for event in events} == {"only you"}
        assert events[0]["broadcast"]["user_id"] == talk.anna.user_id
        assert await other.is_silent("ephemeral_message")


async def test_signing_in_by_a_challenge(talk: Talk) -> None:
    """Without a header the first action gives the token; then come hello and the reply."""
    async with socket_of(talk.as_bot, header=False) as socket:
        await socket.send(1, "authentication_challenge", token=talk.account.token)
        frames = [await socket.next(), await socket.next()]

    by_kind = {"hello" if "event" in frame else "reply": frame for frame in frames}
    assert by_kind["hello"]["event"] == "hello"
    assert (by_kind["reply"]["status"], by_kind["reply"]["seq_reply"]) == ("OK", 1)


async def test_a_token_that_is_none(talk: Talk) -> None:
    """In a challenge: the server closes. In the header: the handshake is taken, and nothing is heard."""
    async with socket_of(talk.as_bot, header=False) as socket:
        await socket.send(1, "authentication_challenge", token="nonsense")
        closed = await socket.next()

    assert closed == {}
    async with socket_of(talk.admin.of("nonsense")) as socket:
        await talk.post("hello")
        assert await socket.is_silent("posted")
        assert [frame for frame in socket.seen if frame.get("event") == "hello"] == []


async def test_pings(talk: Talk) -> None:
    """The action ping is answered with pong."""
    async with socket_of(talk.as_bot) as socket:
        await socket.event("hello")
        await socket.send(7, "ping")
        reply = await socket.reply(7)

    assert (reply["status"], reply["data"]["text"], reply["data"]["version"]) == ("OK", "pong", "6.7.2")


async def test_actions_that_are_none(talk: Talk) -> None:
    """An action that is not known fails, and the connection stays; so does one without a number."""
    async with socket_of(talk.as_bot) as socket:
        await socket.event("hello")
        await socket.send(3, "nonsense")
        unknown = await socket.reply(3)
        await socket.send(4, "ping")
        alive = await socket.reply(4)

    assert (unknown["status"], unknown["error"]["id"]) == ("FAIL", "api.web_socket_router.bad_action.app_error")
    assert alive["status"] == "OK"


async def test_coming_back(talk: Talk) -> None:
    """With the connection's id and the next number a client gets what it missed, in order, and no new hello."""
    async with socket_of(talk.as_bot) as socket:
        connection = (await socket.event("hello"))["data"]["connection_id"]
        await talk.post("heard", talk.as_anna)
        last = (await socket.event("posted"))["seq"]
    await asyncio.sleep(0.2)
    missed = [await talk.post(f"missed {number}", talk.as_anna) for number in range(2)]
    async with socket_of(talk.as_bot, connection_id=connection, sequence_number=str(last + 1)) as socket:
        events = [await socket.event("posted") for _ in missed]

    assert [json.loads(event["data"]["post"])["id"] for event in events] == [post["id"] for post in missed]
    assert "hello" not in {frame.get("event") for frame in socket.seen}
    assert socket.seen[0]["seq"] == last + 1


async def test_coming_back_to_what_is_not_known(talk: Talk) -> None:
    """An id of no connection begins a new one, with a hello."""
    async with socket_of(talk.as_bot, connection_id="x" * 26, sequence_number="5") as socket:
        hello = await socket.next()

    assert (hello["event"], hello["seq"]) == ("hello", 0)


async def test_coming_back_without_a_number(talk: Talk) -> None:
    """Where the connection is known, a number that is none is refused."""
    async with socket_of(talk.as_bot) as socket:
        connection = (await socket.event("hello"))["data"]["connection_id"]
    await asyncio.sleep(0.2)
    try:
        async with socket_of(talk.as_bot, connection_id=connection, sequence_number="nonsense") as socket:
            frame = await socket.next()
    except aiohttp.WSServerHandshakeError:
        frame = {}

    assert frame == {}


async def test_a_bot_that_is_switched_off_hears_nothing(talk: Talk) -> None:
    """Its connection stays open or is closed, but after a moment (it is told in the background) no event comes any more."""
    bot = await talk.office.create_bot("listener", talk.team, talk.channel)
    wire = talk.admin.of(bot.token)
    async with socket_of(wire) as socket:
        await socket.event("hello")
        await talk.office.disable_bot(bot)
        for _ in range(5):
            await talk.post("secret")
            try:
                silent = await socket.is_silent("posted", 0.5)
            except AssertionError:
                silent = True  # closed
            if silent:
                break

        assert silent


@pytest.mark.parametrize("kind", ["put out", "archived"])
async def test_what_happens_to_a_channel_is_told(talk: Talk, kind: str) -> None:
    """Who is put out of a channel hears user_removed with its id; an archived channel is told as channel_deleted."""
    channel = await talk.office.create_channel(talk.team, f"told-{kind.replace(' ', '-')}")
    await talk.office.add_member(talk.account.user_id, talk.team, channel)
    async with socket_of(talk.as_bot) as socket:
        await socket.event("hello")
        if kind == "put out":
            await talk.office.remove_member(talk.account.user_id, channel)
            event = await socket.event("user_removed")
            assert event["data"]["channel_id"] == channel
            assert event["broadcast"]["user_id"] == talk.account.user_id
        else:
            await talk.office.archive_channel(channel)
            event = await socket.event("channel_deleted")
            assert event["data"]["channel_id"] == channel


async def test_who_may_connect(talk: Talk) -> None:
    """A cookie will do; a token in the address is 401, a page of another site 403, and what is no upgrade 400."""
    nobody, token = talk.admin.of(""), talk.account.token
    address, session = f"{nobody.url}/websocket", nobody.session
    async with session.ws_connect(address, headers={"Cookie": f"MMAUTHTOKEN={token}"}) as opened:
        assert (await Socket(opened).next())["event"] == "hello"
    async with session.ws_connect(address, headers={"Origin": nobody.url.removesuffix("/api/v4")}) as opened:
        assert not opened.closed
    for query, headers, status in (
        ({"access_token": token}, {}, 401),
        ({}, {"Authorization": f"Bearer {token}", "Origin": "http://elsewhere.example"}, 403),
    ):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await session.ws_connect(address, params=query, headers=headers)
        assert refused.value.status == status
    assert (await talk.as_bot.get("/websocket")).status == 400


async def test_nothing_is_said_before_one_has_signed_in(talk: Talk) -> None:
    """Actions without a session have no answer; the challenge is taken all the same."""
    async with socket_of(talk.as_bot, header=False) as socket:
        await socket.send(1, "ping")
        await socket.send(2, "nonsense")
        await socket.send(0, "authentication_challenge", token=talk.account.token)
        await socket.send(3, "authentication_challenge", token=talk.account.token)
        await socket.reply(3)

    assert [frame.get("seq_reply") for frame in socket.seen if "status" in frame] == [3]


@pytest.mark.parametrize(
    "frame",
    ["{nonsense", "[1]", '"x"', "", '{"seq":"1","action":"ping"}', '{"seq":1.5,"action":"ping"}']
    + ['{"seq":1,"action":5}', '{"seq":1,"action":"ping","data":"x"}', b'{"seq":1,"action":"ping"}'],
    ids=str,
)
async def test_frames_that_are_none(talk: Talk, frame: str | bytes) -> None:
    """The server ends the connection without a word."""
    async with socket_of(talk.as_bot) as socket:
        await socket.event("hello")
        await (socket.socket.send_bytes(frame) if isinstance(frame, bytes) else socket.socket.send_str(frame))
        while await socket.next():
            pass

        assert socket.socket.close_code in (None, aiohttp.WSCloseCode.ABNORMAL_CLOSURE)


async def test_frames_that_are_taken(talk: Talk) -> None:
    """null has no action; what follows the first value is not read; a number of 0 is not given back."""
    async with socket_of(talk.as_bot) as socket:
        await socket.event("hello")
        for frame in ("null", '{"action":"ping"}', '{"seq":4,"action":"ping"} x'):
            await socket.socket.send_str(frame)
        await socket.reply(4)

    first, second, third = (frame for frame in socket.seen if "status" in frame)
    assert (first["error"]["id"], "seq_reply" in first) == ("api.web_socket_router.no_action.app_error", False)
    assert (second["error"]["id"], "seq_reply" in second) == ("api.web_socket_router.bad_seq.app_error", False)
    assert third["status"] == "OK"
