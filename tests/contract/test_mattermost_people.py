"""Mattermost: people, teams and channels as others see them, and what may be done with channels."""

from __future__ import annotations

import pytest_asyncio

from tests.contract.talk import Talk
from tests.contract.wire import Json, Wire

NOBODY = "x" * 26
NO_RIGHT = (403, "api.context.permissions.app_error")
BAD_BODY = (400, "api.context.invalid_body_param.app_error")


@pytest_asyncio.fixture(loop_scope="session")
async def stranger(talk: Talk, name: str) -> Wire:
    """Somebody who is in another team."""
    team = await talk.office.create_team(f"{name}-team")
    return Wire.chat((await talk.office.create_person(f"{name}-stranger", team)).client)


async def test_what_a_stranger_may_not(talk: Talk, stranger: Wire) -> None:
    """Whatever is in a team that one is not in is 403, its open channels too."""
    post = await talk.post("hello")
    paths = [
        f"/posts/{post['id']}",
        f"/posts/{post['id']}/thread",
        f"/posts/{post['id']}/reactions",
        f"/posts/{post['id']}/files/info",
        f"/channels/{talk.channel}",
        f"/channels/{talk.channel}/posts",
        f"/channels/{talk.channel}/pinned",
        f"/channels/{talk.channel}/stats",
        f"/channels/{talk.channel}/members",
        f"/teams/{talk.team}",
        f"/teams/{talk.team}/channels",
        f"/teams/{talk.team}/channels/name/gpu-tests",
        "/teams/name/contract/channels/name/gpu-tests",
        f"/teams/{talk.team}/members/{talk.anna.user_id}",
        f"/teams/{talk.team}/commands/autocomplete",
        f"/teams/{talk.team}/commands/autocomplete_suggestions?user_input=/",
        f"/users/{talk.anna.user_id}/teams",
        f"/users/{talk.anna.user_id}/teams/{talk.team}/channels",
        f"/users?in_team={talk.team}",
        f"/users?in_channel={talk.channel}",
        f"/teams/{NOBODY}/channels",
        f"/teams/{NOBODY}/members/me",
    ]
    errors = {path: (await stranger.get(path)).error for path in paths}

    assert errors == dict.fromkeys(paths, NO_RIGHT)


async def test_a_person_as_others_see_them(talk: Talk) -> None:
    """With their address, which is shown unless it is switched off; how they are told is theirs alone."""
    anna = (await talk.as_bot.get(f"/users/{talk.anna.user_id}")).body
    own = (await talk.as_anna.get("/users/me")).body
    bot = (await talk.as_anna.get(f"/users/{talk.account.user_id}")).body
    by_email = (await talk.as_bot.get("/users/email/anna@people.example")).body

    assert anna["email"] == "anna@people.example"
    assert by_email["id"] == anna["id"]
    assert set(own) - set(anna) == {"notify_props", "last_password_update"}
    assert (bot["is_bot"], bot["email"]) == (True, "gputest@localhost")
    assert set(bot) - set(anna) == {"is_bot"}


async def test_names_in_another_case(talk: Talk) -> None:
    """A user's is refused, a team's and a channel's is found."""
    user = await talk.as_bot.get("/users/username/Anna")
    team = await talk.as_bot.get("/teams/name/CONTRACT")
    channel = await talk.as_bot.get(f"/teams/{talk.team}/channels/name/GPU-Tests")

    assert user.error == BAD_BODY
    assert (team.body["id"], channel.body["id"]) == (talk.team, talk.channel)


async def test_lists_of_ids_that_are_none(talk: Talk) -> None:
    """400."""
    for path in ("/users/ids", "/users/usernames", "/roles/names", "/posts/ids", "/channels/direct"):
        for body in ([], [5], {"a": 1}, b"x"):
            assert (await talk.as_bot.post(path, body)).error == BAD_BODY, (path, body)


async def test_members_of_a_team(talk: Talk) -> None:
    """One by one; who is none is 404."""
    anna = await talk.as_bot.get(f"/teams/{talk.team}/members/{talk.anna.user_id}")
    nobody = await talk.as_bot.get(f"/teams/{talk.team}/members/{NOBODY}")

    assert (anna.body["user_id"], anna.body["roles"]) == (talk.anna.user_id, "team_user")
    assert nobody.error == (404, "app.team.get_member.missing.app_error")


async def test_tokens_are_given_by_administrators(talk: Talk) -> None:
    """And with a description."""
    path = f"/users/{talk.account.user_id}/tokens"
    own = await talk.as_anna.post("/users/me/tokens", {"description": "mine"})
    bare = await talk.admin.post(path, {})

    assert own.error == NO_RIGHT
    assert bare.error == BAD_BODY


async def new_channel(talk: Talk, name: str, who: Wire | None = None, **fields: str) -> Json:
    """Anna, or somebody else, makes a channel."""
    body = {"team_id": talk.team, "name": name, "display_name": "New", "type": "O"} | fields
    answer = await (who or talk.as_anna).post("/channels", body)
    assert answer.status == 201, answer
    made: Json = answer.body
    return made


async def test_a_new_channel(talk: Talk, name: str) -> None:
    """Its maker is in it, and the server says so."""
    channel = await new_channel(talk, name)
    page = (await talk.as_anna.get(f"/channels/{channel['id']}/posts")).body
    stats = (await talk.as_anna.get(f"/channels/{channel['id']}/stats")).body

    assert (channel["creator_id"], channel["display_name"]) == (talk.anna.user_id, "New")
    assert channel.keys() >= {"group_constrained", "shared", "policy_id", "total_msg_count_root", "last_root_post_at"}
    (post,) = page["posts"].values()
    assert (post["type"], post["message"]) == ("system_join_channel", "anna joined the channel.")
    assert (stats["member_count"], stats["pinnedpost_count"], stats["files_count"]) == (1, 0, 0)
    later = (await talk.as_anna.get(f"/channels/{channel['id']}")).body
    assert (later["total_msg_count"], later["last_post_at"]) == (0, post["create_at"])


async def test_channels_that_one_may_not_make(talk: Talk, stranger: Wire, name: str) -> None:
    """A name is taken once, also by one that is archived, and has small letters; a direct one is made otherwise."""
    channel = await new_channel(talk, name)
    await talk.as_anna.delete(f"/channels/{channel['id']}")
    body = {"team_id": talk.team, "name": f"{name}-b", "display_name": "New", "type": "O"}
    errors = [
        (await talk.as_anna.post("/channels", body | fields)).error
        for fields in ({"name": name}, {"name": "a b"}, {"name": ""}, {"type": "X"}, {"type": ""}, {"type": "D"})
    ]

    assert errors == [
        (400, "store.sql_channel.save_channel.exists.app_error"),
        (400, "model.channel.is_valid.1_or_more.app_error"),
        (400, "model.channel.is_valid.1_or_more.app_error"),
        (400, "model.channel.is_valid.type.app_error"),
        (400, "model.channel.is_valid.type.app_error"),
        (400, "api.channel.create_channel.direct_channel.app_error"),
    ]
    assert (await stranger.post("/channels", body)).error == NO_RIGHT
    assert (await talk.as_anna.post("/channels", body | {"team_id": NOBODY})).error == NO_RIGHT


async def test_direct_channels(talk: Talk) -> None:
    """One for two, whoever asks for it first; not for others; nobody can be added or leave, and it has no end."""
    pair = [talk.anna.user_id, talk.account.user_id]
    channel = (await talk.as_anna.post("/channels/direct", pair)).body
    again = await talk.as_anna.post("/channels/direct", pair[::-1])
    others = await talk.as_ben.post("/channels/direct", pair)
    unknown = await talk.as_anna.post("/channels/direct", [talk.anna.user_id, NOBODY])
    path = f"/channels/{channel['id']}"
    added = await talk.as_anna.post(f"{path}/members", {"user_id": talk.ben.user_id})

    assert (channel["type"], channel["display_name"], channel["team_id"]) == ("D", "", "")
    assert channel["name"] == "__".join(sorted(pair))
    assert again.body["id"] == channel["id"]
    assert others.error == NO_RIGHT
    assert unknown.error == (400, "api.channel.create_direct_channel.invalid_user.app_error")
    assert added.error == (400, "api.channel.add_user_to_channel.type.app_error")
    left = await talk.as_anna.delete(f"{path}/members/me")
    assert left.error == (400, "api.channel.remove_channel_member.type.app_error")
    assert (await talk.as_anna.delete(path)).error == (400, "api.channel.delete_channel.type.invalid")


async def test_channels_of_a_group(talk: Talk) -> None:
    """Three to eight people, who asked among them."""
    made = await talk.as_anna.post("/channels/group", [talk.ben.user_id, talk.account.user_id])
    few = await talk.as_anna.post("/channels/group", [talk.ben.user_id])
    unknown = await talk.as_anna.post("/channels/group", [talk.ben.user_id, NOBODY])

    assert (made.status, made.body["type"], made.body["display_name"]) == (201, "G", "anna, ben, gputest")
    assert few.error == (400, "api.channel.create_group.bad_size.app_error")
    assert unknown.error == (400, "api.channel.create_group.bad_user.app_error")


async def test_what_members_may(talk: Talk, name: str) -> None:
    """Add and remove others, and archive the channel; who is in no more may not. Nobody leaves town-square."""
    channel = await new_channel(talk, name)
    path = f"/channels/{channel['id']}"
    unknown = await talk.as_anna.post(f"{path}/members", {"user_id": NOBODY})
    added = await talk.as_anna.post(f"{path}/members", {"user_id": talk.ben.user_id})
    removed = await talk.as_ben.delete(f"{path}/members/{talk.anna.user_id}")
    again = await talk.as_ben.delete(f"{path}/members/{talk.anna.user_id}")
    not_there = await talk.as_anna.delete(path)
    square = (await talk.as_anna.get(f"/teams/{talk.team}/channels/name/town-square")).body["id"]

    assert unknown.error == (404, "app.user.missing_account.const")
    assert (added.status, removed.status) == (201, 200)
    assert added.body["notify_props"]["desktop"] == "default"
    assert again.error == (404, "app.channel.get_member.missing.app_error")
    assert not_there.error == NO_RIGHT
    assert (await talk.as_ben.delete(path)).status == 200
    assert (await talk.as_ben.delete(path)).error == (400, "api.channel.delete_channel.deleted.app_error")
    left = await talk.as_anna.delete(f"/channels/{square}/members/me")
    assert left.error == (400, "api.channel.remove.default.app_error")
    assert (await talk.admin.delete(f"/channels/{square}")).error == (
        400,
        "api.channel.delete_channel.cannot.app_error",
    )
