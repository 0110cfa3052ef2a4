"""Mattermost: threads and pages in detail, pins, and what hangs on posts."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp

from tests.contract.talk import Talk
from tests.contract.wire import Answer, Json, Wire

NOBODY = "x" * 26
NO_RIGHT = (403, "api.context.permissions.app_error")


async def five(talk: Talk, name: str) -> tuple[str, list[str]]:
    """A channel of its own with five posts, the third and fifth in the thread of the first; their ids."""
    channel = await talk.office.create_channel(talk.team, f"pages-{name}")
    await talk.office.add_member(talk.account.user_id, talk.team, channel)
    ids: list[str] = []
    for number in range(5):
        root = ids[0] if number in (2, 4) else ""
        ids.append((await talk.post(f"m{number}", channel_id=channel, root_id=root))["id"])
    return channel, ids


async def test_a_thread_in_parts(talk: Talk, name: str) -> None:
    """The post that was asked for stands first, and again among the others; `perPage` says whether more follow."""
    _, ids = await five(talk, name)
    whole = (await talk.as_bot.get(f"/posts/{ids[2]}/thread")).body
    part = (await talk.as_bot.get(f"/posts/{ids[0]}/thread", perPage="2", direction="down")).body

    assert whole["order"][0] == ids[2]
    assert sorted(whole["order"][1:]) == sorted([ids[0], ids[2], ids[4]])
    assert (whole["has_next"], set(whole["posts"])) == (False, {ids[0], ids[2], ids[4]})
    assert (part["order"], part["has_next"]) == ([ids[0], ids[0], ids[2]], True)


async def test_where_the_next_page_begins(talk: Talk, name: str) -> None:
    """Before and after a post; what is not known ends the list, and both at once mean after."""
    channel, ids = await five(talk, name)

    async def page(**query: str) -> tuple[list[str], str, str]:
        found = await talk.channel_posts(channel, **query)
        assert found["has_next"] is False
        return found["order"], found["prev_post_id"], found["next_post_id"]

    assert await page(per_page="2") == ([ids[4], ids[3]], ids[2], "")
    assert await page(per_page="2", page="1") == ([ids[2], ids[1]], ids[0], ids[3])
    assert await page(before=ids[4], per_page="2") == ([ids[3], ids[2]], ids[1], ids[4])
    assert await page(after=ids[0], per_page="2") == ([ids[2], ids[1]], ids[0], ids[3])
    assert await page(after=ids[0], per_page="2", page="1") == ([ids[4], ids[3]], ids[2], "")
    assert await page(after=ids[2], before=ids[4]) == ([ids[4], ids[3]], ids[2], "")
    assert await page(before=NOBODY) == ([], "", NOBODY)
    assert await page(after=NOBODY) == ([], NOBODY, "")
    assert (await page(per_page="0"))[0] == []


async def test_what_comes_beside_a_page(talk: Talk, name: str) -> None:
    """The whole threads of its posts; replies are counted only where these are left out, or a post is named."""
    channel, ids = await five(talk, name)
    whole = await talk.channel_posts(channel, per_page="1")
    bare = await talk.channel_posts(channel, per_page="1", skipFetchThreads="true")
    around = await talk.channel_posts(channel, after=ids[3])

    assert set(whole["posts"]) == set(around["posts"]) == {ids[0], ids[2], ids[4]}
    assert set(bare["posts"]) == {ids[0], ids[4]}
    counts = [page["posts"][ids[0]]["reply_count"] for page in (whole, bare, around)]
    assert counts == [0, 2, 2]


async def test_what_changed_since_with_its_roots(talk: Talk, name: str) -> None:
    """The root of a reply that changed is in the list, though it did not change itself."""
    channel, ids = await five(talk, name)
    stamp = (await talk.stored(ids[3]))["update_at"]
    since = await talk.channel_posts(channel, since=str(stamp))

    assert since["order"] == [ids[4], ids[0]]
    assert since["posts"][ids[0]]["reply_count"] == 0


async def test_pins(talk: Talk) -> None:
    """Every member may pin a post; it counts as changed, not as edited; a PUT that does not say so takes it off."""
    post = await talk.post("pin me")
    pinned = await talk.as_anna.post(f"/posts/{post['id']}/pin")
    listed = (await talk.as_ben.get(f"/channels/{talk.channel}/pinned")).body
    stored = await talk.stored(post["id"])
    await talk.as_bot.put(f"/posts/{post['id']}", {"id": post["id"], "message": "pin me"})
    unknown = await talk.as_anna.post(f"/posts/{NOBODY}/pin")
    secret = await talk.post("secret", talk.as_ben, channel_id=talk.elsewhere)
    elsewhere = await talk.as_anna.post(f"/posts/{secret['id']}/pin")

    assert (pinned.status, pinned.body) == (200, {"status": "OK"})
    assert post["id"] in listed["order"]
    assert (stored["is_pinned"], stored["edit_at"]) == (True, 0)
    assert (await talk.stored(post["id"]))["is_pinned"] is False
    assert unknown.error == NO_RIGHT
    assert elsewhere.error == NO_RIGHT


async def test_posts_by_their_ids(talk: Talk) -> None:
    """Those that one may read."""
    one, secret = await talk.post("one"), await talk.post("secret", talk.as_ben, channel_id=talk.elsewhere)
    found = (await talk.as_anna.post("/posts/ids", [one["id"], secret["id"], NOBODY])).body

    assert [post["id"] for post in found] == [one["id"]]


async def test_posts_that_one_may_not_make(talk: Talk) -> None:
    """With an id, as the server's own, or of a kind that is none: 400."""
    errors = [
        (await talk.as_bot.post("/posts", {"channel_id": talk.channel, "message": "x"} | fields)).error
        for fields in ({"id": NOBODY}, {"type": "system_join_channel"}, {"type": "gputest"})
    ]

    assert errors == [
        (400, "app.post.save.existing.app_error"),
        (400, "api.context.invalid_param.app_error"),
        (400, "model.post.is_valid.type.app_error"),
    ]
    assert (await talk.post("x", type="custom_gputest"))["type"] == "custom_gputest"


async def test_a_pending_post_that_was_deleted(talk: Talk) -> None:
    """Sent again it is 500, as long as the server remembers it."""
    pending = f"{talk.account.user_id}:gone"
    post = await talk.post("gone", pending_post_id=pending)
    await talk.as_bot.delete(f"/posts/{post['id']}")
    body = {"channel_id": talk.channel, "message": "gone", "pending_post_id": pending}
    again = await talk.as_bot.post("/posts", body)

    assert again.error == (500, "api.post.deduplicate_create_post.failed_to_get")


async def test_hashtags_and_channels_in_a_message(talk: Talk) -> None:
    """Hashtags begin with a letter and have three characters; channels that are named come in the props."""
    post = await talk.post("#tag1, (#two-b) #1 #ab ~gpu-tests ~elsewhere")

    assert post["hashtags"] == "#tag1 #two-b #ab"
    assert post["props"]["channel_mentions"] == {
        "gpu-tests": {"display_name": "gpu-tests", "team_name": "contract"},
    }


async def test_attachments_that_cannot_be_read(talk: Talk) -> None:
    """One field of another kind, and the attachment is left out; a null is an empty one; `short` may be a text."""
    wrong: list[Json] = [
        {"fields": {"a": 1}},
        {"fields": ["a"]},
        {"fields": [{"title": 5}]},
        {"fields": [{"short": "yes"}]},
        {"id": "5"},
        {"actions": {"a": 1}},
        {"actions": [{"name": 5}]},
        {"actions": [{"name": "x", "disabled": "true"}]},
        {"actions": [{"name": "x", "options": [{"text": 1}]}]},
        {"actions": [{"name": "x", "integration": {"url": "x", "context": [1]}}]},
    ]
    refused = await talk.post("card", props={"attachments": wrong})
    read = await talk.post("card", props={"attachments": [None, {"fields": [{"title": "a", "short": "True"}, None]}]})
    empty, filled = read["props"]["attachments"]

    assert refused["props"]["attachments"] is None
    assert refused["metadata"] == {"embeds": [{"type": "message_attachment"}]}
    assert (empty["text"], empty["fields"]) == ("", None)
    assert filled["fields"] == [{"title": "a", "value": None, "short": True}]


# files and reactions


async def upload(talk: Talk, who: Wire | None = None, file: str = "log.txt", **fields: str) -> Answer:
    """Send a file as a form."""
    form, wire = aiohttp.FormData(), who or talk.as_bot
    for key, value in ({"channel_id": talk.channel} | fields).items():
        form.add_field(key, value)
    form.add_field("files", b"hello", filename=file)
    async with wire.session.post(f"{wire.url}/files", data=form, **wire.options()) as response:
        return Answer(response.status, await response.json(content_type=None), response.headers)


async def test_a_file(talk: Talk) -> None:
    """It is its owner's until it hangs on a post; it hangs on one, and goes with it a moment later."""
    answer = await upload(talk, client_ids="mine")
    (info,) = answer.body["file_infos"]
    path = f"/files/{info['id']}"
    before = await talk.as_anna.get(path)
    stolen = await talk.post("stolen", talk.as_anna, file_ids=[info["id"]])
    post = await talk.post("log", file_ids=[info["id"], info["id"], NOBODY])
    again = await talk.post("again", file_ids=[info["id"]])
    read = await talk.as_anna.get(path)
    listed = (await talk.as_anna.get(f"/posts/{post['id']}/files/info")).body
    await talk.as_bot.delete(f"/posts/{post['id']}")

    assert (answer.status, answer.body["client_ids"]) == (201, ["mine"])
    assert (info["name"], info["extension"], info["size"]) == ("log.txt", "txt", 5)
    assert (info["mime_type"], info["channel_id"], "post_id" in info) == ("text/plain; charset=utf-8", "", False)
    assert before.error == NO_RIGHT
    assert "file_ids" not in stolen
    assert post["file_ids"] == [info["id"]]
    assert listed == post["metadata"]["files"] == [info | {"post_id": post["id"], "update_at": listed[0]["update_at"]}]
    assert "file_ids" not in again
    assert (read.body, read.headers["X-Content-Type-Options"]) == ("hello", "nosniff")
    assert read.headers["Content-Disposition"] == "attachment;filename=\"log.txt\"; filename*=UTF-8''log.txt"
    async with asyncio.timeout(5):
        while (gone := await talk.as_anna.get(path)).status == 200:
            await asyncio.sleep(0.05)
    assert gone.error == (404, "app.file_info.get.app_error")


async def test_files_that_are_none(talk: Talk) -> None:
    """Without a channel, a name or a content, or into a channel that one is not in."""

    async def simple(raw: bytes, **query: str) -> Any:
        return (await talk.as_anna("POST", "/files", raw, kind="text/plain", **query)).error

    assert (await upload(talk, talk.as_anna, channel_id=talk.elsewhere)).error == NO_RIGHT
    assert (await upload(talk, channel_id="short")).error == (400, "api.context.invalid_url_param.app_error")
    assert await simple(b"x", filename="a.txt") == (400, "api.context.invalid_url_param.app_error")
    assert await simple(b"x", channel_id=talk.channel) == (400, "api.context.invalid_url_param.app_error")
    assert await simple(b"", channel_id=talk.channel, filename="a.txt") == (
        *(400, "api.file.upload_file.read_request.app_error"),
    )


async def test_reactions_that_are_none(talk: Talk) -> None:
    """200 for one that is; 400 for what is no emoji, 403 in the name of others, 404 on what is gone."""
    post = await talk.post("react!")
    path = f"/posts/{post['id']}/reactions"

    async def react(**fields: str) -> Answer:
        body = {"user_id": talk.anna.user_id, "post_id": post["id"], "emoji_name": "ok"}
        return await talk.as_anna.post("/reactions", body | fields)

    nothing = await talk.as_bot.get(path)
    given, again = await react(), await react()
    seen = await talk.stored(post["id"])
    await talk.as_anna.delete(f"/users/me/posts/{post['id']}/reactions/ok")

    assert nothing.body is None
    assert (given.status, again.status) == (200, 200)
    assert given.body.keys() == {
        "user_id",
        "post_id",
        "emoji_name",
        *("create_at", "update_at", "delete_at", "remote_id"),
    }
    assert seen["has_reactions"] is True
    assert "has_reactions" not in await talk.stored(post["id"])
    assert (await react(emoji_name="")).error == (400, "api.reaction.save_reaction.invalid.app_error")
    assert (await react(emoji_name=":ok:")).error == (400, "model.reaction.is_valid.emoji_name.app_error")
    assert (await react(user_id=talk.ben.user_id)).error == (403, "api.reaction.save_reaction.user_id.app_error")
    await talk.as_bot.delete(f"/posts/{post['id']}")
    assert (await react()).error == (404, "app.post.get.app_error")
    assert (await talk.as_anna.get(f"/posts/{NOBODY}/reactions")).error == NO_RIGHT
