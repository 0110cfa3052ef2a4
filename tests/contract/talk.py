"""A chat with a few people in it, for the cases of Mattermost."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.contract.wire import Json, Wire
from tests.real.rig.person import BotAccount, Office, Person


@dataclass
class Talk:
    """Team, channel, people; all of them may be used by every case."""

    office: Office
    team: str
    channel: str
    elsewhere: str
    """A channel that only Ben is in."""
    anna: Person
    ben: Person
    account: BotAccount
    admin: Wire
    as_anna: Wire
    as_ben: Wire
    as_bot: Wire
    triggers: Any

    @classmethod
    @asynccontextmanager
    async def begin(cls, servers: Any) -> AsyncIterator[Talk]:
        """Set the chat up."""
        office = Office(servers.mattermost.client())
        team = await office.create_team("contract")
        channel = await office.create_channel(team, "gpu-tests")
        elsewhere = await office.create_channel(team, "elsewhere", private=True)
        async with AsyncExitStack() as exits:
            anna = await exits.enter_async_context(await office.create_person("anna", team, channel))
            ben = await exits.enter_async_context(await office.create_person("ben", team, channel, elsewhere))
            account = await office.create_bot("gputest", team, channel)
            wires = [Wire.chat(each.client) for each in (anna, ben)]
            admin = Wire.chat(office.admin)
            bot = admin.of(account.token)
            yield cls(office, team, channel, elsewhere, anna, ben, account, admin, *wires, bot, itertools.count(1))

    def forget(self) -> None:
        """Nothing that came by websocket is known any more."""
        for person in (self.anna, self.ben):
            for queue in (person._new_ephemerals, person._new_dialogs):
                while not queue.empty():
                    queue.get_nowait()
            person.ephemerals.clear()
            person.dialogs.clear()

    async def post(self, message: str = "hello", who: Wire | None = None, **fields: Any) -> Json:
        """The bot, or somebody else, posts in the channel; the post as the server answers it."""
        body = {"channel_id": self.channel, "message": message} | fields
        answer = await (who or self.as_bot).post("/posts", body)
        assert answer.status == 201, answer
        post: Json = answer.body
        return post

    async def stored(self, post: str) -> Json:
        """A post as it is stored."""
        answer = await self.admin.get(f"/posts/{post}")
        assert answer.status == 200, answer
        found: Json = answer.body
        return found

    async def channel_posts(self, channel: str = "", **query: str) -> Json:
        """A page of a channel."""
        answer = await self.as_bot.get(f"/channels/{channel or self.channel}/posts", **query)
        assert answer.status == 200, answer
        page: Json = answer.body
        return page

    async def command(self, url: str, **fields: Any) -> Json:
        """Register a slash command with a trigger of its own."""
        body = {"team_id": self.team, "trigger": f"case{next(self.triggers)}", "method": "P", "url": url} | fields
        answer = await self.admin.post("/commands", body)
        assert answer.status == 201, answer
        made: Json = answer.body
        return made

    async def type(self, text: str, who: Wire | None = None, **fields: Any) -> Any:
        """Anna, or somebody else, types a command."""
        body = {"channel_id": self.channel, "team_id": self.team, "command": text} | fields
        return await (who or self.as_anna).post("/commands/execute", body)
