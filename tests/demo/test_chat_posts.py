"""Posts over REST: what the server takes, refuses, and gives back."""

from __future__ import annotations

import json
from collections.abc import Callable

import aiohttp
import pytest

from bot.demo import EmbeddedWorld

from .conftest import Client

As = Callable[[str], Client]
POSTS = "/api/v4/posts"
BUTTON = {"name": "Cancel", "integration": {"url": "http://127.0.0.1:1/", "context": {"secret": 1}}}


def body(world: EmbeddedWorld, message: str, **more: object) -> dict:
    """A post into the first channel."""
    return {"channel_id": world.chat.channel_id(), "message": message, **more}


async def test_no_session_no_answer(chat_as: As) -> None:
    """401 with the server's error body."""
    status, error = await chat_as("")("GET", "/api/v4/users/me")

    assert status == 401
    assert error["id"] == "api.context.session_expired.app_error"
    assert error.keys() == {"id", "message", "detailed_error", "request_id", "status_code"}


async def test_a_bots_post_is_marked_and_its_buttons_keep_their_secret(world: EmbeddedWorld, chat_as: As) -> None:
    """props.from_bot is added; actions get ids; where they lead is never shown."""
    bot = chat_as("bot")
    attachments = [{"text": "x", "actions": [dict(BUTTON)]}]
    status, post = await bot("POST", POSTS, json=body(world, "card", props={"attachments": attachments}))
    action = post["props"]["attachments"][0]["actions"][0]

    assert status == 201
    assert post["props"]["from_bot"] == "true"
    assert (action["name"], len(action["id"])) == ("Cancel", 26)
    assert "integration" not in action
    _, read = await bot("GET", f"{POSTS}/{post['id']}")

    assert "integration" not in json.dumps(read)
    assert world.chat.state.posts[post["id"]]["props"]["attachments"][0]["actions"][0]["integration"]["context"] == {
        "secret": 1
    }


async def test_writing_back_what_was_read_kills_the_buttons(world: EmbeddedWorld, chat_as: As) -> None:
    """As on the real server: props replace all props."""
    bot = chat_as("bot")
    attachments = [{"text": "x", "actions": [dict(BUTTON)]}]
    _, post = await bot("POST", POSTS, json=body(world, "card", props={"attachments": attachments}))
    await bot("PUT", f"{POSTS}/{post['id']}/patch", json={"props": post["props"]})

    assert "integration" not in json.dumps(world.chat.state.posts[post["id"]])


async def test_the_same_pending_id_makes_one_post(world: EmbeddedWorld, chat_as: As) -> None:
    """For thirty seconds; then it makes another."""
    bot = chat_as("bot")
    asked = body(world, "once", pending_post_id="bot:1")
    _, first = await bot("POST", POSTS, json=asked)
    await world.clock.advance(29)
    status, second = await bot("POST", POSTS, json=asked)

    assert (status, second["id"]) == (201, first["id"])
    await world.clock.advance(2)

    assert (await bot("POST", POSTS, json=asked))[1]["id"] != first["id"]


@pytest.mark.parametrize(
    ("message", "status", "identity"),
    [
        ("ä" * 16_383, 201, None),
        ("ä" * 16_384, 400, "model.post.is_valid.msg.app_error"),
        ("a\x00b", 500, "app.post.save.app_error"),
    ],
)
async def test_limits_of_messages(
    world: EmbeddedWorld, chat_as: As, message: str, status: int, identity: str | None
) -> None:
    """16,383 characters, and nothing that PostgreSQL does not take."""
    code, answer = await chat_as("bot")("POST", POSTS, json=body(world, message))

    assert code == status
    assert identity is None or answer["id"] == identity


async def test_limit_of_props(world: EmbeddedWorld, chat_as: As) -> None:
    """20,000 characters are fine, more than 800,000 are not."""
    bot = chat_as("bot")

    assert (await bot("POST", POSTS, json=body(world, "x", props={"a": "y" * 20_000})))[0] == 201
    status, error = await bot("POST", POSTS, json=body(world, "x", props={"a": "y" * 800_000}))

    assert (status, error["id"]) == (400, "model.post.is_valid.props.app_error")


async def test_replies_need_a_root_of_the_same_channel(world: EmbeddedWorld, chat_as: As) -> None:
    """A reply to a reply, to nothing, or across channels is refused."""
    dev = chat_as("dev")
    _, root = await dev("POST", POSTS, json=body(world, "root"))
    _, reply = await dev("POST", POSTS, json=body(world, "reply", root_id=root["id"]))
    elsewhere = {"channel_id": world.chat.channel_id("town-square"), "message": "x", "root_id": root["id"]}

    for wrong in (body(world, "x", root_id=reply["id"]), body(world, "x", root_id="z" * 26)):
        status, error = await dev("POST", POSTS, json=wrong)
        assert (status, error["id"]) == (400, "api.post.create_post.root_id.app_error")
    status, error = await dev("POST", POSTS, json=elsewhere)
    assert (status, error["id"]) == (400, "api.post.create_post.channel_root_id.app_error")
    _, thread = await dev("GET", f"{POSTS}/{root['id']}/thread")

    assert set(thread["order"]) == {root["id"], reply["id"]}
    assert thread["posts"][root["id"]]["reply_count"] == 1


async def test_edits(world: EmbeddedWorld, chat_as: As) -> None:
    """A changed message or attachment marks it as edited; other people's posts are not theirs to edit."""
    dev = chat_as("dev")
    _, post = await dev("POST", POSTS, json=body(world, "one", props={"a": 1}))
    _, edited = await dev("PUT", f"{POSTS}/{post['id']}/patch", json={"message": "two"})

    assert (edited["message"], edited["props"]) == ("two", {"a": 1})
    assert edited["edit_at"] == edited["update_at"] > post["update_at"]
    _, props = await dev("PUT", f"{POSTS}/{post['id']}/patch", json={"props": {"b": 2}})

    assert (props["props"], props["edit_at"]) == ({"b": 2}, edited["edit_at"])
    status, error = await chat_as("viewer")("PUT", f"{POSTS}/{post['id']}/patch", json={"message": "x"})

    assert (status, error["id"]) == (403, "api.context.permissions.app_error")
    world.chat.state.edit_limit = 60
    await world.clock.advance(61)
    status, error = await dev("PUT", f"{POSTS}/{post['id']}/patch", json={"message": "late"})

    assert (status, error["id"]) == (400, "api.post.update_post.permissions_time_limit.app_error")
    assert (await dev("PUT", f"{POSTS}/{post['id']}/patch", json={"props": {"c": 3}}))[0] == 200


async def test_deleted_posts(world: EmbeddedWorld, chat_as: As) -> None:
    """Gone for reading, forbidden for editing, still in what changed since."""
    dev = chat_as("dev")
    _, post = await dev("POST", POSTS, json=body(world, "one"))
    _, reply = await dev("POST", POSTS, json=body(world, "two", root_id=post["id"]))
    assert (await dev("DELETE", f"{POSTS}/{post['id']}"))[1] == {"status": "OK"}

    status, error = await dev("GET", f"{POSTS}/{post['id']}")
    assert (status, error["id"]) == (404, "app.post.get.app_error")
    assert (await dev("PUT", f"{POSTS}/{post['id']}/patch", json={"message": "x"}))[0] == 403
    channel = f"/api/v4/channels/{world.chat.channel_id()}/posts"
    _, since = await dev("GET", f"{channel}?since={post['update_at']}")

    assert all(since["posts"][one]["delete_at"] for one in (post["id"], reply["id"]))
    assert (await dev("GET", channel))[1]["order"] == []


async def test_pages_of_a_channel(world: EmbeddedWorld, chat_as: As) -> None:
    """Newest first, at most 200 a page, roots only when threads are collapsed, before and after a post."""
    dev = chat_as("dev")
    ids = [(await dev("POST", POSTS, json=body(world, str(n))))[1]["id"] for n in range(5)]
    await dev("POST", POSTS, json=body(world, "reply", root_id=ids[0]))
    channel = f"/api/v4/channels/{world.chat.channel_id()}/posts"

    async def order(query: str) -> list[str]:
        return (await dev("GET", f"{channel}?{query}"))[1]["order"]

    assert await order("collapsedThreads=true&per_page=200") == ids[::-1]
    assert await order("collapsedThreads=true&per_page=2&page=1") == ids[2:0:-1]
    assert await order(f"before={ids[2]}&per_page=1") == [ids[1]]
    assert await order(f"after={ids[2]}&per_page=1") == [ids[3]]
    assert len(await order("per_page=200")) == 6
    assert (await dev("GET", f"{channel}?since=abc"))[0] == 400


async def test_only_members_read_and_write(world: EmbeddedWorld, chat_as: As) -> None:
    """A private channel is closed to others; the administrator may."""
    secret = world.chat.add_channel("secret", private=True, members=("dev",))

    assert (await chat_as("viewer")("POST", POSTS, json={"channel_id": secret, "message": "x"}))[0] == 403
    assert (await chat_as("viewer")("GET", f"/api/v4/channels/{secret}/posts"))[0] == 403
    assert (await chat_as("dev")("POST", POSTS, json={"channel_id": secret, "message": "x"}))[0] == 201
    assert (await chat_as("admin")("GET", f"/api/v4/channels/{secret}/posts"))[0] == 200


async def test_ephemeral_posts_are_for_administrators(world: EmbeddedWorld, chat_as: As) -> None:
    """An ordinary bot may not make them by REST."""
    asked = {"user_id": world.chat.user_id("dev"), "post": body(world, "psst")}

    assert (await chat_as("bot")("POST", f"{POSTS}/ephemeral", json=asked))[0] == 403
    assert (await chat_as("admin")("POST", f"{POSTS}/ephemeral", json=asked))[0] == 201
    assert [post["message"] for post in world.chat.ephemeral_to("dev")] == ["psst"]
    assert world.chat.posts() == []


async def test_users_teams_channels(world: EmbeddedWorld, chat_as: As) -> None:
    """By id, by name, in bulk, and the errors of what is not there."""
    bot = chat_as("bot")
    _, me = await bot("GET", "/api/v4/users/me")
    _, team = await bot("GET", "/api/v4/teams/name/foxhunt")
    _, channel = await bot("GET", f"/api/v4/teams/{team['id']}/channels/name/gpu-tests")
    dev = world.chat.user_id("dev")

    assert (me["username"], me["is_bot"]) == ("gputest", True)
    assert channel["id"] == world.chat.channel_id()
    assert (await bot("GET", "/api/v4/users/username/dev"))[1]["id"] == dev
    assert [one["id"] for one in (await bot("POST", "/api/v4/users/ids", json=[dev]))[1]] == [dev]
    assert (await bot("GET", f"/api/v4/channels/{channel['id']}/members/{me['id']}"))[1]["user_id"] == me["id"]
    direct = (await bot("POST", "/api/v4/channels/direct", json=[me["id"], dev]))[1]
    assert (direct["type"], direct["team_id"]) == ("D", "")
    status, error = await bot("GET", "/api/v4/users/username/nobody")
    assert (status, error["id"]) == (404, "app.user.get_by_username.app_error")
    assert (await bot("GET", "/api/v4/users/short"))[0] == 400
    assert (await bot("GET", "/api/v4/nothing"))[1]["id"] == "api.context.404.app_error"
    _, config = await bot("GET", "/api/v4/config/client?format=old")
    assert config["MaxPostSize"] == "16383"


async def test_files_and_reactions(world: EmbeddedWorld, chat_as: As) -> None:
    """A file is uploaded, attached and read; a reaction comes and goes."""
    bot = chat_as("bot")
    form = aiohttp.FormData()
    form.add_field("channel_id", world.chat.channel_id())
    form.add_field("files", b"hello", filename="log.txt")
    status, uploaded = await bot("POST", "/api/v4/files", data=form)
    identity = uploaded["file_infos"][0]["id"]
    _, post = await bot("POST", POSTS, json=body(world, "see", file_ids=[identity, "z" * 26]))

    assert status == 201
    assert post["file_ids"] == [identity]
    assert post["metadata"]["files"][0]["name"] == "log.txt"
    async with bot.stream(f"/api/v4/files/{identity}") as response:
        assert await response.read() == b"hello"
    reaction = {"user_id": world.chat.user_id("bot"), "post_id": post["id"], "emoji_name": "eyes"}
    assert (await bot("POST", "/api/v4/reactions", json=reaction))[0] == 200
    assert (await bot("GET", f"{POSTS}/{post['id']}"))[1]["metadata"]["reactions"][0]["emoji_name"] == "eyes"
    await bot("DELETE", f"/api/v4/users/me/posts/{post['id']}/reactions/eyes")
    assert (await bot("GET", f"{POSTS}/{post['id']}/reactions"))[1] is None


async def test_incoming_webhook(world: EmbeddedWorld, session: aiohttp.ClientSession) -> None:
    """Answers ok in plain text, marks its posts, cuts what is too long."""
    url = world.chat_url + world.chat.add_webhook()
    async with session.post(url, json={"text": "x" * 20_000, "props": {"key": "run"}}) as response:
        assert (response.status, await response.text()) == (200, "ok")
    posts = world.chat.posts()

    assert [len(post["message"]) for post in posts] == [16_383, 20_000 - 16_383]
    assert (posts[0]["props"]["from_webhook"], posts[0]["props"]["key"]) == ("true", "run")
    async with session.post(url, json={}) as response:
        assert response.status == 400


async def test_faults(world: EmbeddedWorld, chat_as: As) -> None:
    """The rate limiter speaks plain text; an answer can be lost after the post was stored."""
    bot = chat_as("bot")
    world.chat_faults.too_many(3)
    async with bot.stream("/api/v4/users/me") as response:
        assert (response.status, response.content_type, response.headers["Retry-After"]) == (429, "text/plain", "3")
        assert await response.text() == "limit exceeded\n"
    world.chat_faults.drop_after_commit(method="POST", path="/posts$")
    with pytest.raises(aiohttp.ClientError):
        await bot("POST", POSTS, json=body(world, "stored", pending_post_id="p"))

    assert [post["message"] for post in world.chat.posts()] == ["stored"]
    assert (await bot("POST", POSTS, json=body(world, "stored", pending_post_id="p")))[0] == 201
    assert len(world.chat.posts()) == 1
    held = world.chat_faults.hold(method="POST")
    held.release()
    world.chat_faults.fail(503, retry_after=2)
    assert (await bot("GET", "/api/v4/users/me"))[0] == 503
