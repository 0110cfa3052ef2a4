"""Mattermost: what the websocket tells of posts, people and channels, and in which shape."""

from __future__ import annotations

import json

import pytest

from tests.contract.talk import Talk
from tests.contract.wire import Integration, Json, socket_of


async def test_typing(talk: Talk) -> None:
    """The other members are told; in a channel that one is not in, it fails."""
    async with socket_of(talk.as_anna) as anna, socket_of(talk.as_ben) as ben:
        for socket in (anna, ben):
            await socket.event("hello")
        await anna.send(1, "user_typing", channel_id=talk.channel, parent_id="")
        done = await anna.reply(1)
        event = await ben.event("typing")
        await anna.send(2, "user_typing", channel_id=talk.elsewhere)
        refused = await anna.reply(2)

    assert done == {"status": "OK", "seq_reply": 1}
    assert event["data"] == {"parent_id": "", "user_id": talk.anna.user_id}
    assert event["broadcast"]["omit_users"] == {talk.anna.user_id: True}
    assert (refused["status"], refused["error"]["id"]) == ("FAIL", "api.websocket_handler.invalid_param.app_error")
    assert "typing" not in {frame.get("event") for frame in anna.seen}


@pytest.mark.parametrize("word", ["@all", "@channel", "@here"])
async def test_everybody_is_mentioned(talk: Talk, word: str) -> None:
    """All members but the author, by @here those who are there; the names of others, the author's own and those in
    code mention nobody.
    """
    async with socket_of(talk.as_ben) as socket:
        await socket.event("hello")
        await talk.post(f"{word} look", talk.as_anna)
        everybody = await socket.event("posted")
        await talk.post("@anna @nobody `@ben`", talk.as_anna)
        nobody = await socket.event("posted")

    expected = {talk.ben.user_id} | ({talk.account.user_id} if word != "@here" else set())
    assert expected <= set(json.loads(everybody["data"]["mentions"]))
    assert talk.anna.user_id not in json.loads(everybody["data"]["mentions"])
    assert "mentions" not in nobody["data"]


async def test_attachments_mention(talk: Talk) -> None:
    """By pretext and text, not by their title."""
    async with socket_of(talk.as_anna) as socket:
        await socket.event("hello")
        await talk.post("", props={"attachments": [{"text": "@ben", "pretext": "and", "title": "@anna"}]})
        event = await socket.event("posted")

    assert json.loads(event["data"]["mentions"]) == [talk.ben.user_id]


async def test_what_the_author_hears(talk: Talk) -> None:
    """A person's own post counts as seen; `posted` has the pending id with which it was sent."""
    async with socket_of(talk.as_anna) as socket:
        await socket.event("hello")
        await talk.post("mine", talk.as_anna, pending_post_id="anna:mine")
        frames = [await socket.next() for _ in range(2)]

    by_name = {frame["event"]: frame for frame in frames}
    assert by_name["channel_viewed"]["data"] == {"channel_id": talk.channel}
    assert json.loads(by_name["posted"]["data"]["post"])["pending_post_id"] == "anna:mine"


async def test_the_life_of_a_channel_is_told(talk: Talk, name: str) -> None:
    """Created, somebody added, archived and restored; who comes and goes is said by "System"."""
    async with socket_of(talk.as_anna) as anna, socket_of(talk.as_bot) as bot:
        for socket in (anna, bot):
            await socket.event("hello")
        body = {"team_id": talk.team, "name": name, "display_name": "New", "type": "O"}
        channel = (await talk.as_anna.post("/channels", body)).body["id"]
        created = await anna.event("channel_created")
        await talk.as_anna.post(f"/channels/{channel}/members", {"user_id": talk.account.user_id})
        await talk.as_anna.post(f"/channels/{channel}/members", {"user_id": talk.account.user_id})
        heard: dict[str, Json] = {}
        while {"posted", "user_added"} - heard.keys():  # in any order
            frame = await bot.next()
            heard[frame["event"]] = frame
        await talk.as_anna.delete(f"/channels/{channel}")
        archived = await bot.event("channel_deleted")
        await talk.admin.post(f"/channels/{channel}/restore")
        restored = await bot.event("channel_restored")

    assert created["data"] == {"channel_id": channel, "team_id": talk.team}
    said = heard["posted"]["data"]
    assert (said["sender_name"], json.loads(said["mentions"])) == ("System", [talk.account.user_id])
    assert heard["user_added"]["data"] == {"user_id": talk.account.user_id, "team_id": talk.team}
    assert sum(frame.get("event") == "user_added" for frame in bot.seen) == 1
    assert (archived["broadcast"]["team_id"], restored["data"]) == (talk.team, {"channel_id": channel})


async def test_a_direct_channel_is_told(talk: Talk) -> None:
    """To both; its posts come under the sender's name."""
    other = await talk.office.create_person("dora", talk.team)
    async with socket_of(talk.as_anna) as socket:
        await socket.event("hello")
        pair = [talk.anna.user_id, other.user_id]
        channel = (await talk.as_anna.post("/channels/direct", pair)).body["id"]
        told = await socket.event("direct_added")
        await other.client.post("/posts", {"channel_id": channel, "message": "hello"})
        posted = await socket.event("posted")

    assert told["data"] == {"creator_id": talk.anna.user_id, "teammate_id": other.user_id}
    assert told["broadcast"]["channel_id"] == channel
    assert (posted["data"]["channel_type"], posted["data"]["channel_display_name"]) == ("D", "@dora")


async def test_the_shape_of_an_ephemeral_post(talk: Talk) -> None:
    """It has no time of a change, and its broadcast names the user and the channel."""
    async with socket_of(talk.as_anna) as socket:
        await socket.event("hello")
        body = {"user_id": talk.anna.user_id, "post": {"channel_id": talk.channel, "message": "psst"}}
        await talk.admin.post("/posts/ephemeral", body)
        event = await socket.event("ephemeral_message")

    post: Json = json.loads(event["data"]["post"])
    assert (post["type"], post["update_at"], post["reply_count"]) == ("system_ephemeral", 0, 0)
    assert post["participants"] is None
    assert (event["broadcast"]["user_id"], event["broadcast"]["channel_id"]) == (talk.anna.user_id, talk.channel)


async def test_the_shape_of_a_dialog(talk: Talk, service: Integration) -> None:
    """All of its fields, and no others."""
    command = await talk.command(f"{service.url}/commands")
    await talk.type(f"/{command['trigger']}")
    form = {"title": "Run", "elements": [{"name": "n", "type": "text", "more": 1}], "more": 1}
    body = {"trigger_id": service.last.form["trigger_id"], "url": f"{service.url}/d", "dialog": form, "more": 1}
    await talk.as_bot.post("/actions/dialogs/open", body)
    opened = await talk.anna.next_dialog()

    assert opened.keys() == {"trigger_id", "url", "dialog"}
    texts = ("callback_id", "title", "introduction_text", "icon_url", "submit_label", "state")
    assert opened["dialog"].keys() == {*texts, "elements", "notify_on_cancel"}
    (element,) = opened["dialog"]["elements"]
    assert element == {
        **dict.fromkeys(("display_name", "subtype", "default", "placeholder", "help_text", "data_source"), ""),
        "name": "n",
        "type": "text",
        "optional": False,
        "min_length": 0,
        "max_length": 0,
        "options": None,
    }
