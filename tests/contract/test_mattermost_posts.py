"""Mattermost: posts, threads, pages, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.talk import Talk

NOBODY = "x" * 26
"""An id that is one, of nothing."""
BUTTON = {
    "id": "stop",
    "name": "Cancel",
    "type": "button",
    "integration": {"url": "http://127.0.0.1:1/", "context": {}},
}


async def test_a_post_of_a_bot(talk: Talk) -> None:
    """201 with the stored post: not edited, not deleted, and marked as a bot's."""
    post = await talk.post("hello **you**", props={"key": "value"})

    assert post["message"] == "hello **you**"
    assert (post["user_id"], post["channel_id"], post["root_id"]) == (talk.account.user_id, talk.channel, "")
    assert (post["type"], post["edit_at"], post["delete_at"], post["reply_count"]) == ("", 0, 0, 0)
    assert post["create_at"] == post["update_at"]
    assert post["props"] == {"key": "value", "from_bot": "true"}
    assert await talk.stored(post["id"]) == post | {"pending_post_id": ""}


async def test_a_post_of_a_person(talk: Talk) -> None:
    """It is not marked."""
    post = await talk.post("hello", talk.as_anna)

    assert post["props"] == {}


async def test_a_message_has_16383_characters(talk: Talk) -> None:
    """Characters, not bytes; one more is 400, at creation and at an edit."""
    fits = await talk.post("✅" * 16383)
    refused = await talk.as_bot.post("/posts", {"channel_id": talk.channel, "message": "x" * 16384})
    edited = await talk.as_bot.put(f"/posts/{fits['id']}/patch", {"message": "x" * 16384})

    assert refused.error == (400, "model.post.is_valid.msg.app_error")
    assert edited.error == (400, "model.post.is_valid.msg.app_error")


async def test_props_have_800000_characters(talk: Talk) -> None:
    """More is 400."""
    fits = await talk.as_bot.post(
        "/posts", {"channel_id": talk.channel, "message": "big", "props": {"a": "x" * 799_000}}
    )
    refused = await talk.as_bot.post(
        "/posts", {"channel_id": talk.channel, "message": "big", "props": {"a": "x" * 800_000}}
    )

    assert fits.status == 201
    assert refused.error == (400, "model.post.is_valid.props.app_error")
    await talk.as_bot.delete(f"/posts/{fits.body['id']}")


async def test_a_message_may_be_empty(talk: Talk) -> None:
    """A post without a message is a post; one without a channel is not."""
    post = await talk.post("", props={"attachments": [{"text": "text"}]})
    nowhere = await talk.as_bot.post("/posts", {"message": "hello"})

    assert post["message"] == ""
    assert nowhere.error == (403, "api.context.permissions.app_error")


async def test_a_repeated_pending_post_id(talk: Talk) -> None:
    """The same pending_post_id within half a minute makes no second post: the answer is the first, whatever was sent."""
    pending = f"{talk.account.user_id}:one"
    first = await talk.post("first", pending_post_id=pending)
    second = await talk.post("second", pending_post_id=pending)
    other = await talk.post("other", pending_post_id=f"{talk.account.user_id}:two")

    assert (second["id"], second["message"]) == (first["id"], "first")
    assert (first["pending_post_id"], second["pending_post_id"]) == (pending, "")
    assert other["id"] != first["id"]
    assert (await talk.stored(first["id"]))["pending_post_id"] == ""


async def test_a_patch_of_the_message(talk: Talk) -> None:
    """What is not named stays; edit_at tells of it."""
    post = await talk.post("old", props={"key": "value"})
    edited = await talk.as_bot.put(f"/posts/{post['id']}/patch", {"message": "new"})

    assert edited.status == 200
    assert (edited.body["message"], edited.body["props"]["key"]) == ("new", "value")
    assert edited.body["edit_at"] == edited.body["update_at"] > post["update_at"]
    assert edited.body["create_at"] == post["create_at"]


async def test_a_patch_of_the_props(talk: Talk) -> None:
    """Props are replaced whole: what is not sent again is gone, the mark of a bot as well."""
    post = await talk.post("text", props={"key": "value", "other": "1"})
    edited = await talk.as_bot.put(f"/posts/{post['id']}/patch", {"props": {"key": "new"}})

    assert edited.body["message"] == "text"
    assert edited.body["props"] == {"key": "new"}


async def test_edits_of_props_alone_do_not_look_edited(talk: Talk) -> None:
    """edit_at moves with the message and with attachments, not with other props."""
    post = await talk.post("text", props={"key": "value"})
    silent = (await talk.as_bot.put(f"/posts/{post['id']}/patch", {"props": {"key": "new"}})).body
    shown = (await talk.as_bot.put(f"/posts/{post['id']}/patch", {"props": {"attachments": [{"text": "x"}]}})).body

    assert silent["edit_at"] == 0
    assert silent["update_at"] > post["update_at"]
    assert shown["edit_at"] == shown["update_at"]


async def test_a_patch_that_changes_nothing(talk: Talk) -> None:
    """It is taken, and update_at moves."""
    post = await talk.post("text")
    again = (await talk.as_bot.put(f"/posts/{post['id']}/patch", {"message": "text"})).body

    assert again["update_at"] > post["update_at"]
    assert again["edit_at"] == 0


async def test_posts_of_others(talk: Talk) -> None:
    """Nobody may edit or delete another's post; an administrator may."""
    post = await talk.post("of the bot")
    edited = await talk.as_anna.put(f"/posts/{post['id']}/patch", {"message": "of anna"})
    deleted = await talk.as_anna.delete(f"/posts/{post['id']}")
    by_admin = await talk.admin.delete(f"/posts/{post['id']}")

    assert edited.error == (403, "api.context.permissions.app_error")
    assert deleted.error == (403, "api.context.permissions.app_error")
    assert (by_admin.status, by_admin.body) == (200, {"status": "OK"})


async def test_a_deleted_post(talk: Talk) -> None:
    """Reading it is 404, editing it is 403, its thread is 404, and an answer to it is 400."""
    post = await talk.post("to be deleted")
    await talk.as_bot.delete(f"/posts/{post['id']}")
    read = await talk.as_bot.get(f"/posts/{post['id']}")
    edited = await talk.as_bot.put(f"/posts/{post['id']}/patch", {"message": "new"})
    thread = await talk.as_bot.get(f"/posts/{post['id']}/thread")
    body = {"channel_id": talk.channel, "message": "late", "root_id": post["id"]}
    answered = await talk.as_bot.post("/posts", body)
    again = await talk.as_bot.delete(f"/posts/{post['id']}")

    assert read.error == (404, "app.post.get.app_error")
    assert edited.error == (403, "api.context.permissions.app_error")
    assert thread.error == (404, "app.post.get.app_error")
    assert answered.error == (400, "api.post.create_post.root_id.app_error")
    assert again.error == (403, "api.context.permissions.app_error")


async def test_what_is_not_there(talk: Talk) -> None:
    """An id of nothing is 404 for a post; what is no id at all is 400; a route that is none is 404."""
    post = await talk.as_bot.get(f"/posts/{NOBODY}")
    patched = await talk.as_bot.put(f"/posts/{NOBODY}/patch", {"message": "new"})
    malformed = await talk.as_bot.get("/posts/nonsense")
    route = await talk.as_bot.get("/nonsense")

    assert post.error == (404, "app.post.get.app_error")
    assert patched.error == (403, "api.context.permissions.app_error")
    assert malformed.error == (400, "api.context.invalid_url_param.app_error")
    assert route.error == (404, "api.context.404.app_error")


async def test_bodies_that_are_none(talk: Talk) -> None:
    """No JSON: 400."""
    created = await talk.as_bot("POST", "/posts", b"{nonsense")
    post = await talk.post()
    patched = await talk.as_bot("PUT", f"/posts/{post['id']}/patch", b"{nonsense")

    assert created.error == (400, "api.context.invalid_body_param.app_error")
    assert patched.error == (400, "api.context.invalid_body_param.app_error")


async def test_a_thread(talk: Talk) -> None:
    """It holds the root and its answers; the order has the root first and then the answers by time."""
    root = await talk.post("root")
    replies = [await talk.post(text, root_id=root["id"]) for text in ("one", "two", "three")]
    thread = (await talk.as_bot.get(f"/posts/{root['id']}/thread")).body
    of_reply = (await talk.as_bot.get(f"/posts/{replies[0]['id']}/thread")).body

    ids = {root["id"], *(reply["id"] for reply in replies)}
    assert set(thread["posts"]) == set(thread["order"]) == set(of_reply["posts"]) == ids
    assert thread["posts"][root["id"]]["reply_count"] == 3
    assert all(thread["posts"][reply["id"]]["root_id"] == root["id"] for reply in replies)


async def test_a_thread_without_a_deleted_answer(talk: Talk) -> None:
    """A deleted answer is not in it, and does not count."""
    root = await talk.post("root")
    gone = await talk.post("gone", root_id=root["id"])
    stays = await talk.post("stays", root_id=root["id"])
    await talk.as_bot.delete(f"/posts/{gone['id']}")
    thread = (await talk.as_bot.get(f"/posts/{root['id']}/thread")).body

    assert set(thread["posts"]) == {root["id"], stays["id"]}
    assert thread["posts"][root["id"]]["reply_count"] == 1


async def test_answers_go_with_their_root(talk: Talk) -> None:
    """When a root is deleted its answers are gone as well."""
    root = await talk.post("root")
    reply = await talk.post("reply", root_id=root["id"])
    await talk.as_bot.delete(f"/posts/{root['id']}")
    page = await talk.channel_posts()

    assert (await talk.as_bot.get(f"/posts/{reply['id']}")).error == (404, "app.post.get.app_error")
    assert not {root["id"], reply["id"]} & set(page["order"])


async def test_what_cannot_be_answered(talk: Talk) -> None:
    """An answer to an answer, to a post of another channel, to nothing: 400."""
    root = await talk.post("root")
    reply = await talk.post("reply", root_id=root["id"])
    other = await talk.post("elsewhere", talk.as_ben, channel_id=talk.elsewhere)
    errors = []
    for wrong in (reply["id"], other["id"], NOBODY):
        body = {"channel_id": talk.channel, "message": "answer", "root_id": wrong}
        errors.append((await talk.as_ben.post("/posts", body)).error)

    assert errors[0] == errors[2] == (400, "api.post.create_post.root_id.app_error")
    assert errors[1] == (400, "api.post.create_post.channel_root_id.app_error")


async def test_pages_of_a_channel(talk: Talk) -> None:
    """The newest come first; the neighbours of a page are named."""
    first, second, third = [await talk.post(f"page {number}") for number in range(3)]
    newest = await talk.channel_posts(per_page="1")
    older = await talk.channel_posts(per_page="1", page="1")
    before = await talk.channel_posts(per_page="1", before=second["id"])

    assert newest["order"] == [third["id"]]
    assert (newest["prev_post_id"], newest["next_post_id"]) == (second["id"], "")
    assert older["order"] == [second["id"]]
    assert (older["prev_post_id"], older["next_post_id"]) == (first["id"], third["id"])
    assert before["order"] == [first["id"]]


async def test_a_page_brings_the_roots_of_its_answers(talk: Talk) -> None:
    """A root that is older than the page is among the posts, but not in the order."""
    root = await talk.post("root")
    await talk.post("between")
    reply = await talk.post("reply", root_id=root["id"])
    page = await talk.channel_posts(per_page="1")

    assert page["order"] == [reply["id"]]
    assert set(page["posts"]) >= {reply["id"], root["id"]}


async def test_roots_alone(talk: Talk) -> None:
    """collapsedThreads=true leaves the answers out, and says how many there are."""
    root = await talk.post("root")
    gone, reply = await talk.post("gone", root_id=root["id"]), await talk.post("reply", root_id=root["id"])
    await talk.as_bot.delete(f"/posts/{gone['id']}")
    page = await talk.channel_posts(collapsedThreads="true")

    assert page["order"][0] == root["id"]
    assert reply["id"] not in page["posts"]
    assert page["posts"][root["id"]]["reply_count"] == 1


async def test_what_changed_since(talk: Talk) -> None:
    """since gives what was made, edited or deleted after that time.

    Deleted posts come without their message; each edit leaves a deleted post of its own behind.
    """
    edited, deleted = await talk.post("to be edited"), await talk.post("to be deleted")
    moment = (await talk.post("the moment"))["update_at"]
    await talk.as_bot.put(f"/posts/{edited['id']}/patch", {"message": "edited"})
    await talk.as_bot.delete(f"/posts/{deleted['id']}")
    new = await talk.post("new")
    since = await talk.channel_posts(since=str(moment))

    (former,) = [post for post in since["posts"].values() if post["original_id"]]
    assert sorted(since["order"]) == sorted([edited["id"], deleted["id"], new["id"], former["id"]])
    assert since["posts"][edited["id"]]["message"] == "edited"
    assert since["posts"][deleted["id"]]["delete_at"] > 0
    assert former["original_id"] == edited["id"]
    assert former["message"] == since["posts"][deleted["id"]]["message"] == ""
    assert since["posts"][deleted["id"]]["props"]["deleteBy"] == talk.account.user_id
    assert former["delete_at"] == since["posts"][edited["id"]]["update_at"]
    assert former["create_at"] == edited["create_at"]


async def test_a_channel_that_is_archived(talk: Talk) -> None:
    """Posting and editing there is 400; restored, it goes on."""
    channel = await talk.office.create_channel(talk.team, "archived")
    await talk.office.add_member(talk.account.user_id, talk.team, channel)
    post = await talk.post("before", channel_id=channel)
    await talk.office.archive_channel(channel)
    posted = await talk.as_bot.post("/posts", {"channel_id": channel, "message": "late"})
    edited = await talk.as_bot.put(f"/posts/{post['id']}/patch", {"message": "late"})
    restored = await talk.admin.post(f"/channels/{channel}/restore")
    again = await talk.as_bot.put(f"/posts/{post['id']}/patch", {"message": "again"})

    assert posted.error == (400, "api.post.create_post.can_not_post_to_deleted.error")
    assert edited.error == (400, "api.post.patch_post.can_not_update_post_in_deleted.error")
    assert (restored.status, restored.body["delete_at"]) == (200, 0)
    assert again.status == 200


async def test_a_channel_that_one_is_not_in(talk: Talk) -> None:
    """Posting there and reading it is 403; its posts cannot be read either."""
    post = await talk.post("secret", talk.as_ben, channel_id=talk.elsewhere)
    posted = await talk.as_bot.post("/posts", {"channel_id": talk.elsewhere, "message": "hello"})
    page = await talk.as_bot.get(f"/channels/{talk.elsewhere}/posts")
    read = await talk.as_bot.get(f"/posts/{post['id']}")

    assert posted.error == (403, "api.context.permissions.app_error")
    assert page.error == (403, "api.context.permissions.app_error")
    assert read.error == (403, "api.context.permissions.app_error")


async def test_somebody_who_is_put_out(talk: Talk) -> None:
    """Out of a channel the bot may neither post nor edit there; back in, it may."""
    channel = await talk.office.create_channel(talk.team, "put-out")
    await talk.office.add_member(talk.account.user_id, talk.team, channel)
    post = await talk.post("before", channel_id=channel)
    await talk.office.remove_member(talk.account.user_id, channel)
    posted = await talk.as_bot.post("/posts", {"channel_id": channel, "message": "late"})
    edited = await talk.as_bot.put(f"/posts/{post['id']}/patch", {"message": "late"})
    thread = await talk.as_bot.get(f"/posts/{post['id']}/thread")
    await talk.office.add_member(talk.account.user_id, talk.team, channel)
    again = await talk.as_bot.put(f"/posts/{post['id']}/patch", {"message": "again"})

    assert posted.error == (403, "api.context.permissions.app_error")
    assert edited.error == (403, "api.context.permissions.app_error")
    assert thread.status == 200  # an open channel of its team
    assert again.status == 200


async def test_the_server_says_who_comes_and_goes(talk: Talk) -> None:
    """Its own posts have types of their own, and are written in the name of who did it."""
    channel = await talk.office.create_channel(talk.team, "coming-and-going")
    await talk.office.add_member(talk.account.user_id, talk.team, channel)
    await talk.office.remove_member(talk.account.user_id, channel)
    await talk.office.archive_channel(channel)
    await talk.admin.post(f"/channels/{channel}/restore")
    page = (await talk.admin.get(f"/channels/{channel}/posts")).body
    types = [page["posts"][post]["type"] for post in reversed(page["order"])]

    assert types[-4:] == [
        "system_add_to_channel",
        "system_remove_from_channel",
        "system_channel_deleted",
        "system_channel_restored",
    ]


async def test_who_nobody_knows(talk: Talk) -> None:
    """No token, or one of nobody: 401 with the id of an expired session."""
    for token in ("", "nonsense"):
        answer = await talk.admin.of(token).get("/users/me")
        assert answer.error == (401, "api.context.session_expired.app_error")


async def test_a_bot_that_is_switched_off(talk: Talk) -> None:
    """Its token is refused with 401; switched on again it is taken."""
    bot = await talk.office.create_bot("sleeper", talk.team, talk.channel)
    await talk.office.disable_bot(bot)
    off = await talk.admin.of(bot.token).get("/users/me")
    await talk.office.enable_bot(bot)
    on = await talk.admin.of(bot.token).get("/users/me")

    assert off.error == (401, "api.context.session_expired.app_error")
    assert (on.status, on.body["username"], on.body["is_bot"]) == (200, "sleeper", True)


async def test_people_by_their_names(talk: Talk) -> None:
    """Names that nobody has are left out; others' addresses are not shown."""
    found = (await talk.as_bot.post("/users/usernames", ["anna", "nobody"])).body

    assert [user["username"] for user in found] == ["anna"]
    assert found[0]["id"] == talk.anna.user_id


async def test_a_person_by_their_id(talk: Talk) -> None:
    """As they are called today, also by who shares nothing with them; a name that was given up is free for others."""
    body = {"email": "carla@people.example", "username": "carla", "password": "Rig-once-more-1"}
    carla = (await talk.admin.post("/users", body)).body["id"]
    before = await talk.as_bot.get(f"/users/{carla}")
    renamed = await talk.admin.put(f"/users/{carla}/patch", {"username": "carla.smith"})
    after = await talk.as_bot.get(f"/users/{carla}")
    taken = await talk.admin.put(f"/users/{talk.ben.user_id}/patch", {"username": "carla.smith"})
    await talk.admin.delete(f"/users/{carla}")
    gone = await talk.as_bot.get(f"/users/{carla}")

    assert [answer.body["username"] for answer in (before, renamed, after)] == ["carla", "carla.smith", "carla.smith"]
    assert before.body["delete_at"] == after.body["delete_at"] == 0
    assert "is_bot" not in before.body
    assert (gone.status, gone.body["username"], gone.body["delete_at"] > 0) == (200, "carla.smith", True)
    assert taken.error == (400, "app.user.save.username_exists.app_error")
    assert (await talk.as_bot.get(f"/users/{NOBODY}")).error == (404, "app.user.missing_account.const")
    assert (await talk.as_bot.get("/users/nobody")).error == (400, "api.context.invalid_url_param.app_error")
    assert (await talk.as_anna.put(f"/users/{carla}/patch", {"username": "eve"})).status == 403


async def test_a_reply_that_was_deleted(talk: Talk) -> None:
    """The thread does not have it any more; who asks for what has changed since gets it, with its props."""
    asked = await talk.post("@gputest nightly enable", talk.as_anna)
    answer = await talk.post("done", root_id=asked["id"], props={"gputest_answer": "r1"})
    await talk.admin.delete(f"/posts/{answer['id']}")
    thread = (await talk.as_bot.get(f"/posts/{asked['id']}/thread")).body
    page = await talk.channel_posts(per_page="200")
    changed = await talk.channel_posts(since=str(asked["create_at"] - 1))

    assert list(thread["posts"]) == [asked["id"]]
    assert answer["id"] not in page["posts"]
    found = changed["posts"][answer["id"]]
    assert found["delete_at"] > 0
    assert (found["user_id"], found["root_id"]) == (talk.account.user_id, asked["id"])
    assert found["props"]["gputest_answer"] == "r1"


async def test_a_post_that_was_edited(talk: Talk) -> None:
    """It says when; a pin and a reply are no edits."""
    post = await talk.post("good morning all", talk.as_anna)
    await talk.admin.post(f"/posts/{post['id']}/pin")
    await talk.post("morning", root_id=post["id"])
    untouched = await talk.stored(post["id"])
    await talk.as_anna.put(f"/posts/{post['id']}/patch", {"message": "@gputest dqn"})
    edited = await talk.stored(post["id"])

    assert untouched["edit_at"] == 0
    assert edited["edit_at"] > edited["create_at"]


async def test_channels_by_their_names(talk: Talk) -> None:
    """One that is not there is 404, and so is one that the bot is not in."""
    there = await talk.as_bot.get("/teams/name/contract/channels/name/gpu-tests")
    absent = await talk.as_bot.get("/teams/name/contract/channels/name/absent")
    secret = await talk.as_bot.get("/teams/name/contract/channels/name/elsewhere")
    no_team = await talk.as_bot.get("/teams/name/absent/channels/name/gpu-tests")

    assert (there.status, there.body["id"], there.body["type"]) == (200, talk.channel, "O")
    assert absent.error == (404, "app.channel.get_by_name.missing.app_error")
    assert secret.error == (404, "app.channel.get_by_name.missing.app_error")
    assert no_team.error == (404, "app.team.get_by_name.missing.app_error")


async def test_an_archived_channel_by_its_name(talk: Talk) -> None:
    """It is found only by who says that archived ones are meant as well."""
    channel = await talk.office.create_channel(talk.team, "once-there")
    await talk.office.add_member(talk.account.user_id, talk.team, channel)
    await talk.office.archive_channel(channel)
    plain = await talk.as_bot.get("/teams/name/contract/channels/name/once-there")
    meant = await talk.as_bot.get("/teams/name/contract/channels/name/once-there", include_deleted="true")

    assert plain.error == (404, "app.channel.get_by_name.missing.app_error")
    assert (meant.status, meant.body["id"]) == (200, channel)
    assert meant.body["delete_at"] > 0


async def test_where_one_is(talk: Talk) -> None:
    """The teams of a bot, and its channels in each."""
    teams = (await talk.as_bot.get("/users/me/teams")).body
    channels = (await talk.as_bot.get(f"/users/me/teams/{talk.team}/channels")).body
    nowhere = await talk.as_bot.get(f"/users/me/teams/{NOBODY}/channels")

    assert [team["name"] for team in teams] == ["contract"]
    names = {channel["name"] for channel in channels}
    assert {"gpu-tests", "town-square", "off-topic"} <= names
    assert "elsewhere" not in names
    assert nowhere.error == (403, "api.context.permissions.app_error")


async def test_where_a_button_leads_is_secret(talk: Talk) -> None:
    """Nobody reads the integration of an action again, not even who wrote it; the id that was given stays."""
    nameless = {key: value for key, value in BUTTON.items() if key != "id"}
    post = await talk.post("card", props={"attachments": [{"text": "text", "actions": [BUTTON, nameless]}]})
    read = await talk.stored(post["id"])
    page = await talk.channel_posts(per_page="1")

    for seen in (post, read, page["posts"][post["id"]]):
        first, second = seen["props"]["attachments"][0]["actions"]
        assert (first["id"], first["name"]) == ("stop", "Cancel")
        assert len(second["id"]) == 26
        assert "integration" not in first
        assert "integration" not in second


async def test_attachments_are_of_one_shape(talk: Talk) -> None:
    """They come back with all the fields of their type, and with no others; what is no attachment is left out.

    Of a list that is none, or empty, there stays a null.
    """
    given = {"text": "text", "color": "#fff", "unknown": 1, "fields": [{"title": "a", "value": "b", "short": True}]}
    post = await talk.post("card", props={"attachments": [given, "nonsense", {"text": 5}]})
    (attachment,) = post["props"]["attachments"]
    nothing = await talk.post("card", props={"attachments": "nonsense"})
    none = await talk.post("card", props={"attachments": []})

    texts = ("fallback", "pretext", "author_name", "author_link", "author_icon", "title", "title_link", "image_url")
    assert attachment == {
        **dict.fromkeys((*texts, "thumb_url", "footer", "footer_icon"), ""),
        "id": 0,
        "color": "#fff",
        "text": "text",
        "ts": None,
        "fields": [{"title": "a", "value": "b", "short": True}],
    }
    assert nothing["props"]["attachments"] is None
    assert none["props"]["attachments"] is None


async def test_buttons_are_of_one_shape(talk: Talk) -> None:
    """Fields of a button that are empty are left out, unknown ones too."""
    button = {"id": "stop", "name": "Cancel", "type": "button", "style": "danger", "tooltip": "x", "disabled": False}
    post = await talk.post("card", props={"attachments": [{"text": "text", "actions": [button, None]}]})
    (action,) = post["props"]["attachments"][0]["actions"]

    assert action == {"id": "stop", "name": "Cancel", "type": "button", "style": "danger"}


async def test_ephemeral_posts_are_for_administrators(talk: Talk) -> None:
    """A bot may not show one; an administrator's is stored nowhere."""
    body = {"user_id": talk.anna.user_id, "post": {"channel_id": talk.channel, "message": "psst"}}
    refused = await talk.as_bot.post("/posts/ephemeral", body)
    shown = await talk.admin.post("/posts/ephemeral", body)
    heard = await talk.anna.next_ephemeral()

    assert refused.error == (403, "api.context.permissions.app_error")
    assert (shown.status, shown.body["type"]) == (201, "system_ephemeral")
    assert (heard["message"], heard["id"]) == ("psst", shown.body["id"])
    assert (await talk.admin.get(f"/posts/{heard['id']}")).error == (404, "app.post.get.app_error")


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b"], ids=["a null", "half a pair"])
async def test_characters_that_the_database_does_not_take(talk: Talk, text: str) -> None:
    """A null character looks like a failure that passes (500), half a surrogate pair is stored as a replacement."""
    answer = await talk.as_bot.post("/posts", {"channel_id": talk.channel, "message": text})

    if "\x00" in text:
        assert answer.error == (500, "app.post.save.app_error")
    else:
        assert (answer.status, answer.body["message"]) == (201, "a\ufffdb")


async def test_reactions(talk: Talk) -> None:
    """They hang on the post, and update_at moves with them."""
    post = await talk.post("react!")
    await talk.anna.react(post["id"], "thumbsup")
    reactions: Any = (await talk.as_bot.get(f"/posts/{post['id']}/reactions")).body
    stored = await talk.stored(post["id"])

    assert [(each["user_id"], each["emoji_name"]) for each in reactions] == [(talk.anna.user_id, "thumbsup")]
    assert stored["update_at"] > post["update_at"]
    assert stored["edit_at"] == 0
