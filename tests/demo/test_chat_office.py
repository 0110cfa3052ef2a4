"""Setting a bare chat up over its API, as an administrator does."""

from __future__ import annotations

import aiohttp
import pytest

from bot.demo import EmbeddedWorld
from tests.demo.conftest import Client
from tests.real.rig.mattermost_client import MattermostClient, MattermostError, log_in
from tests.real.rig.person import Office

API = "/api/v4"


async def test_from_nothing_to_a_bot_that_speaks(session: aiohttp.ClientSession) -> None:
    """A team, a channel, a person who signs in with a password, a bot with a token."""
    async with EmbeddedWorld(speed=0, furnished=False) as world:
        office = Office(MattermostClient(session, world.chat_url, world.tokens["admin"]))
        team = await office.create_team("ml")
        channel = await office.create_channel(team, "gpu-tests")
        anna = await office.create_person("anna", team, channel)
        account = await office.create_bot("gputest", team, channel)
        bot = MattermostClient(session, world.chat_url, account.token)
        await bot.post("/posts", {"channel_id": channel, "message": "hello @anna"})
        texts = [post["message"] for post in await anna.posts(channel)]

        assert texts[-1] == "hello @anna"
        assert texts[:-1] == [
            *("admin joined the channel.", "anna added to the channel by admin."),
            "gputest added to the channel by admin.",
        ]
        assert (await bot.get("/users/me"))["is_bot"] is True


async def test_names_and_passwords(session: aiohttp.ClientSession) -> None:
    """A name is taken once, a wrong password is refused, and who is in no team sees nothing of it."""
    async with EmbeddedWorld(speed=0, furnished=False) as world:
        admin = MattermostClient(session, world.chat_url, world.tokens["admin"])
        office = Office(admin)
        team = await office.create_team("ml")
        await office.create_person("anna", team)
        with pytest.raises(MattermostError, match="username_exists"):
            await office.create_bot("anna", team)
        with pytest.raises(MattermostError, match="invalid_credentials"):
            await log_in(session, world.chat_url, "anna", "nonsense")
        with pytest.raises(MattermostError, match="team.save.existing"):
            await office.create_team("ml")
        body = {"email": "x@people.example", "username": "stranger", "password": "Rig-123456789"}
        stranger_id = (await admin.post("/users", body))["id"]
        token = await log_in(session, world.chat_url, "stranger", body["password"])
        stranger = Client(session, world.chat_url, token)

        assert (await stranger("GET", f"{API}/users/me/teams"))[1] == []
        assert (await stranger("GET", f"{API}/teams/name/ml"))[0] == 403
        assert (await stranger("POST", f"{API}/teams", json={"name": "mine"}))[0] == 403
        assert (await stranger("POST", f"{API}/users/{stranger_id}/tokens", json={"description": "x"}))[0] == 403
        with pytest.raises(MattermostError, match="team.get_member.missing"):
            await office.admin.post(
                f"/channels/{await office.create_channel(team, 'gpu-tests')}/members", {"user_id": stranger_id}
            )
