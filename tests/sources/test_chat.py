"""Commands that are typed as posts, on the embedded chat and cluster: each is answered once, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bot.clients.kube import Kube
from bot.clients.mattermost import Mattermost
from bot.clients.mattermost_rooms import Account, Rooms
from bot.clients.mattermost_socket import Socket, SocketTiming
from bot.core.effects import Answer
from bot.core.events import CommandTyped
from bot.demo.embedded import EmbeddedWorld
from bot.logs import log
from bot.metrics import Metrics
from bot.sinks.replies import ANSWER_KEY, Replies
from bot.sources.chat import MAX_AGE, ChatCommands, Surroundings
from bot.sources.cursor import KEY, Cursor, CursorStore, parse, written
from bot.sources.installation import installed_at
from bot.sources.posts import Me, request_id
from bot.tasks import Tasks

QUICK = SocketTiming(heartbeat=0.4, ping=0.1, answer=0.5, first=0.02, longest=0.05)
TRIGGERS = ("gputest", "nightly")


def no_crash(name: str, error: BaseException) -> None:
    raise AssertionError(name) from error


class Listening:
    """One bot's ear, with a core that answers what it is told to."""

    def __init__(self, world: EmbeddedWorld, kube: Kube, metrics: Metrics) -> None:
        self.world = world
        self.asked: list[CommandTyped] = []
        self.holds = asyncio.Event()
        self.holds.set()
        self.leads = True
        self.missing = ""
        self.haste = 1.0
        self.tasks = Tasks(no_crash)
        self.chat = Mattermost(world.chat_url, world.bot_token, metrics)
        self.metrics = metrics
        self.store = CursorStore(kube, "foxhunt", "gputest-bot")
        self.source: ChatCommands

    async def begin(self) -> None:
        await self.chat.sign_in()
        around = Surroundings(
            rooms=Rooms(self.chat),
            replies=Replies(self.chat, lambda: self.leads),
            store=self.store,
            ask=self.ask,
            ready=lambda: self.missing,
            spawn=self.tasks.spawn,
            metrics=self.metrics,
            log=log(),
        )
        me = Me(self.chat.user_id, self.chat.user_name)
        self.source = ChatCommands(me, TRIGGERS, around, now=lambda: self.world.clock.millis() / 1000, haste=self.haste)
        socket = Socket(
            self.world.chat_url, self.world.bot_token, self.source, self.chat.sign_in, self.metrics, timing=QUICK
        )
        self.tasks.spawn(socket.run(), name="websocket", eternal=True)
        self.tasks.spawn(self.source.run(), name="posts", eternal=True)
        if self.leads:
            self.source.won()
        async with asyncio.timeout(5):
            while not self.source._connected or (self.leads and self.source._gap):
                await asyncio.sleep(0.01)

    def ask(self, command: CommandTyped) -> asyncio.Future[Answer]:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.asked.append(command)
        self.tasks.spawn(self._answer(command, future), name="core")
        return future

    async def _answer(self, command: CommandTyped, future: asyncio.Future[Answer]) -> None:
        await self.holds.wait()
        future.set_result(Answer(command.request_id, f"heard {command.trigger} {command.text}".strip()))

    async def end(self) -> None:
        """As a crash would end it."""
        await self.tasks.close()
        self.chat.close()


@pytest.fixture
async def world() -> AsyncIterator[EmbeddedWorld]:
    async with EmbeddedWorld(seed=3) as running:
        yield running


@pytest.fixture
async def kube(world: EmbeddedWorld) -> AsyncIterator[Kube]:
    client = await Kube.connect(Metrics(), url=world.kube_url, token=world.kube_token)
    await installed_at(client, "foxhunt", "gputest-bot")
    yield client
    await client.close()


@asynccontextmanager
async def bot(world: EmbeddedWorld, kube: Kube, **more: Any) -> AsyncIterator[Listening]:
    listening = Listening(world, kube, Metrics())
    for name, value in more.items():
        setattr(listening, name, value)
    await listening.begin()
    try:
        yield listening
    finally:
        await listening.end()


async def say(world: EmbeddedWorld, text: str, channel: str = "gpu-tests", root: str = "") -> str:
    return str((await world.chat.say("dev", channel, text, root=root)).response["id"])


def answers(world: EmbeddedWorld, root: str) -> list[str]:
    return [post["message"] for post in world.chat.thread(root) if post["props"].get(ANSWER_KEY)]


async def answered(world: EmbeddedWorld, root: str, count: int = 1) -> list[str]:
    await world.chat.until(lambda: len(answers(world, root)) >= count)
    return answers(world, root)


async def wait_for(check: Callable[[], Any]) -> None:
    async with asyncio.timeout(5):
        while not check():
            await asyncio.sleep(0.01)


async def quiet() -> None:
    """Long enough for anything that is under way to show."""
    await asyncio.sleep(0.3)


async def test_a_mention_and_a_direct_message_are_answered_in_their_threads(world: EmbeddedWorld, kube: Kube) -> None:
    """By one reply each, with the name of who asked; what is said to nobody or by a bot is left alone."""
    async with bot(world, kube) as one:
        mention = await say(world, "@gputest models=all epochs=5")
        assert await answered(world, mention) == ["heard gputest models=all epochs=5"]
        direct = await say(world, "nightly status", "@bot")
        assert await answered(world, direct) == ["heard nightly status"]
        reply = await say(world, "@gputest status", root=mention)
        assert await answered(world, mention, 2) == ["heard gputest models=all epochs=5", "heard gputest status"]
        await say(world, "hello all")
        await quiet()

    assert reply
    assert [(c.trigger, c.user_name, bool(c.team_id)) for c in one.asked] == [
        ("gputest", "dev", True),
        ("nightly", "dev", False),
        ("gputest", "dev", True),
    ]


async def test_another_bot_is_no_person(world: EmbeddedWorld, kube: Kube) -> None:
    """Two bots that speak to each other would never end; an account tells what the props of a post may not."""
    other = world.chat.state.add_user("helper", bot=True)
    world.chat.state.join(world.chat.channel_id(), other["id"])
    async with bot(world, kube) as one:
        post = world.chat.api.posts.create(
            other["id"], {"channel_id": world.chat.channel_id(), "message": "@gputest status"}
        )
        stored = world.chat.state.posts[post["id"]]
        stored["props"].pop("from_bot")
        one.source.happened("posted", {"channel_type": "O", "post": json.dumps(stored)})
        await quiet()

    assert one.asked == []


async def test_what_was_typed_while_nobody_listened_is_answered_once(world: EmbeddedWorld, kube: Kube) -> None:
    """Before a restart: the unanswered ones are, the answered ones are not again, the old ones are left alone."""
    async with bot(world, kube):
        first = await say(world, "@gputest one")
        await answered(world, first)
    missed = await say(world, "@gputest two")
    old = await say(world, "@gputest three")
    direct = await say(world, "four", "@bot")
    world.chat.state.posts[old]["create_at"] -= int((MAX_AGE + 5) * 1000)

    async with bot(world, kube) as two:
        assert await answered(world, missed) == ["heard gputest two"]
        assert await answered(world, direct) == ["heard gputest four"]
        await quiet()

    assert sorted(c.text for c in two.asked) == ["four", "two"]
    assert answers(world, first) == ["heard gputest one"]
    assert answers(world, old) == []


async def test_a_name_is_asked_for_once_a_minute(world: EmbeddedWorld) -> None:
    """Whoever is renamed is known by the new name soon; of a deactivated account that is said."""
    now = [0.0]
    chat = Mattermost(world.chat_url, world.bot_token, Metrics())
    rooms, anna = Rooms(chat, lambda: now[0]), world.chat.state.add_user("anna")
    first = await rooms.account(anna["id"])
    anna |= {"username": "anna.smith", "delete_at": 5}
    now[0] = 60
    kept = await rooms.account(anna["id"])
    now[0] = 61
    after = await rooms.account(anna["id"])
    chat.close()

    assert first == kept == Account(anna["id"], "anna", is_bot=False)
    assert after == Account(anna["id"], "anna.smith", is_bot=False, there=False)


async def test_what_was_edited_into_a_command_is_none(world: EmbeddedWorld, kube: Kube) -> None:
    """While the bot listens and while it is away: only what was sent counts."""
    async with bot(world, kube) as one:
        heard = await say(world, "good morning all")
        world.chat.edit("dev", heard, "@gputest one")
        await answered(world, await say(world, "@gputest zero"))
        missed = await say(world, "good morning again")
    world.chat.edit("dev", missed, "@gputest two")

    async with bot(world, kube) as two:
        await quiet()

    assert [c.text for c in (*one.asked, *two.asked)] == ["zero"]


async def test_an_answer_that_somebody_deleted_was_given(world: EmbeddedWorld, kube: Kube) -> None:
    """The command does not run again after a restart; who says that they answered it in our place is not believed."""
    async with bot(world, kube):
        post = await say(world, "@gputest nightly enable")
        await answered(world, post)
    (ours,) = [reply for reply in world.chat.thread(post) if reply["props"].get(ANSWER_KEY)]
    world.chat.delete("admin", ours["id"])
    missed = await say(world, "@gputest two")
    props = {ANSWER_KEY: request_id(missed)}
    body = {"channel_id": ours["channel_id"], "root_id": missed, "message": "done", "props": props}
    forged = world.chat.api.posts.create(world.chat.user_id("dev"), body)
    world.chat.delete("admin", forged["id"])

    async with bot(world, kube) as two:
        assert await answered(world, missed) == ["heard gputest two"]
        await quiet()

    assert [c.text for c in two.asked] == ["two"]
    assert answers(world, post) == []


async def test_a_cursor_from_the_future(world: EmbeddedWorld, kube: Kube) -> None:
    """Somebody's mistake, or a clock that was wrong: what was missed is read from as far back as anything counts."""
    async with bot(world, kube) as one:
        first = await say(world, "@gputest one")
        await answered(world, first)
    missed = await say(world, "@gputest two")
    world.chat.state.posts[missed]["create_at"] -= 90_000
    far = {"data": {KEY: "9999-01-01T00:00:00.000Z"}}
    await kube.patch("/api/v1/namespaces/foxhunt/configmaps/gputest-bot", far)

    async with bot(world, kube) as two:
        assert await answered(world, missed) == ["heard gputest two"]
        await two.source.stop(1)
        kept = await two.store.load()

    assert kept is not None
    assert kept <= world.clock.millis()
    assert [c.text for c in (*one.asked, *two.asked)] == ["one", "two"]


async def test_nothing_before_the_first_start_is_answered(world: EmbeddedWorld, kube: Kube) -> None:
    """With no cursor the start of the process is where it begins."""
    post = await say(world, "@gputest one")
    world.chat.state.posts[post]["create_at"] -= 5000
    async with bot(world, kube) as one:
        await quiet()

    assert one.asked == []
    assert answers(world, post) == []


async def test_a_crash_before_the_answer(world: EmbeddedWorld, kube: Kube) -> None:
    """The post stays unanswered, the cursor before it; the next process begins again with the same request."""
    async with bot(world, kube) as one:
        await answered(world, await say(world, "@gputest zero"))
        one.holds.clear()
        post = await say(world, "@gputest one")
        await wait_for(lambda: len(one.asked) == 2)
    assert answers(world, post) == []

    async with bot(world, kube) as two:
        assert await answered(world, post) == ["heard gputest one"]

    assert two.asked[0].request_id == one.asked[1].request_id


async def test_only_the_holder_of_the_lease_answers(world: EmbeddedWorld, kube: Kube) -> None:
    """The other is silent, and takes over what was left when its turn comes."""
    async with bot(world, kube) as one, bot(world, kube, leads=False) as two:
        both = await say(world, "@gputest one")
        assert await answered(world, both) == ["heard gputest one"]
        one.leads = False
        one.source.lost()
        between = await say(world, "@gputest two")
        await quiet()
        assert answers(world, between) == []
        two.leads = True
        two.source.won()
        assert await answered(world, between) == ["heard gputest two"]
        await quiet()

    assert [c.text for c in two.asked] == ["two"]
    assert answers(world, both) == ["heard gputest one"]


async def test_an_answer_that_was_not_confirmed_is_not_given_twice(world: EmbeddedWorld, kube: Kube) -> None:
    """The server commits it and the line breaks: it is found in the thread."""
    async with bot(world, kube) as one:
        fault = world.chat_faults.drop_after_commit(method="POST", path="/api/v4/posts$")
        post = await say(world, "@gputest one")
        await answered(world, post)
        await wait_for(lambda: not one.source._under_way)

    assert fault.hits == 1
    assert answers(world, post) == ["heard gputest one"]


async def test_a_busy_chat_is_tried_again(world: EmbeddedWorld, kube: Kube) -> None:
    """429 and 500 on the way to the answer delay it."""
    async with bot(world, kube):
        world.chat_faults.too_many(1, path="/thread")
        world.chat_faults.fail(500, method="POST", path="/api/v4/posts$")
        post = await say(world, "@gputest one")

        assert await answered(world, post) == ["heard gputest one"]


async def test_a_post_that_is_gone_is_given_up(world: EmbeddedWorld, kube: Kube) -> None:
    """Whoever deletes it wants nothing any more; the cursor passes it."""
    async with bot(world, kube) as one:
        one.missing = "the first list of the cluster"
        post = await say(world, "@gputest one")
        world.chat.delete("dev", post)
        one.missing = ""
        await wait_for(lambda: not one.source._under_way)

    assert one.asked == []


async def test_it_waits_until_the_rest_of_the_bot_is_ready(world: EmbeddedWorld, kube: Kube) -> None:
    """A command is not refused for coming early."""
    async with bot(world, kube) as one:
        one.missing = "the first list of the cluster"
        post = await say(world, "@gputest one")
        await quiet()
        assert one.asked == []
        one.missing = ""

        assert await answered(world, post) == ["heard gputest one"]


async def test_what_grew_old_in_the_hand_is_left_alone_and_said_so(
    world: EmbeddedWorld, kube: Kube, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command that was heard, and could not be answered for a quarter of an hour."""
    async with bot(world, kube) as one:
        one.missing = "the first list of the cluster"
        post = await say(world, "@gputest one")
        await wait_for(lambda: one.source._under_way)
        world.clock.leap(MAX_AGE + 5)
        await wait_for(lambda: not one.source._under_way)
        one.missing = ""
        await quiet()

    assert one.asked == []
    assert re.search(f"too old to be answered +post={post}", capsys.readouterr().out)


async def test_by_a_clock_in_a_hurry(world: EmbeddedWorld, kube: Kube) -> None:
    """A quarter of an hour is meant as people live it: twenty minutes of a demo's clock are seconds."""
    async with bot(world, kube):
        pass
    missed = await say(world, "@gputest one")
    world.clock.leap(20 * 60)

    async with bot(world, kube, haste=60.0):
        assert await answered(world, missed) == ["heard gputest one"]


async def test_a_gap_in_the_line_is_read_by_rest(world: EmbeddedWorld, kube: Kube) -> None:
    """The server forgot us while it was away."""
    async with bot(world, kube):
        world.chat_faults.away()
        world.chat.api.hub._connections.clear()
        post = await say(world, "@gputest one")
        world.chat_faults.away(False)

        assert await answered(world, post) == ["heard gputest one"]


async def test_a_refused_token_is_said(world: EmbeddedWorld, kube: Kube) -> None:
    """And forgotten when it is taken again."""
    async with bot(world, kube) as one:
        token, user = world.bot_token, world.chat.user_id("bot")
        world.chat.revoke("bot")
        await wait_for(lambda: one.source.refused)
        assert "401" in one.source.refused
        world.chat.state.tokens[token] = user
        await wait_for(lambda: not one.source.refused)


async def test_the_cursor_is_left_for_the_next_one(world: EmbeddedWorld, kube: Kube) -> None:
    """An orderly end waits for what is under way, and writes how far it came."""
    async with bot(world, kube) as one:
        one.holds.clear()
        post = await say(world, "@gputest one")
        await wait_for(lambda: one.asked)
        stopping = asyncio.get_running_loop().create_task(one.source.stop(5))
        await quiet()
        one.holds.set()
        await stopping
        stored = await one.store.load()

    assert answers(world, post) == ["heard gputest one"]
    assert stored == world.chat.state.posts[post]["create_at"]


async def test_many_posts_are_read_in_pages(world: EmbeddedWorld, kube: Kube) -> None:
    """Of more than 1000 rows `since` gives any 1000: the channel is read from its end instead."""
    async with bot(world, kube):
        await answered(world, await say(world, "@gputest zero"))
    first = await say(world, "@gputest one")
    for number in range(1100):
        world.chat.api.posts.create(
            world.chat.user_id("dev"), {"channel_id": world.chat.channel_id(), "message": f"talk {number}"}
        )
    last = await say(world, "@gputest two")

    async with bot(world, kube):
        assert await answered(world, first) == ["heard gputest one"]
        assert await answered(world, last) == ["heard gputest two"]


async def test_two_writers_of_the_cursor(world: EmbeddedWorld, kube: Kube) -> None:
    """The later time stays, whoever wrote it; the rest of the ConfigMap is left alone."""
    one, two = CursorStore(kube, "foxhunt", "gputest-bot"), CursorStore(kube, "foxhunt", "gputest-bot")
    assert await one.load() is None
    assert await two.load() is None
    await one.save(2000)
    await two.save(1000)
    assert await one.load() == 2000
    await two.save(3000)
    assert await one.load() == 3000
    await one.save(4000)

    body = json.loads(await kube.read("/api/v1/namespaces/foxhunt/configmaps/gputest-bot"))
    assert body["data"][KEY] == "1970-01-01T00:00:04.000Z"
    assert "purpose" in body["data"]
    assert await CursorStore(kube, "foxhunt", "unheard-of").load() is None


def test_the_cursor_is_held_back_by_what_is_not_done() -> None:
    """It stands before the oldest of them."""
    cursor = Cursor(100)
    cursor.saw(300)
    cursor.saw(200)
    cursor.hold("a", 250)
    cursor.hold("b", 220)
    cursor.hold("b", 240)
    assert cursor.value == 219
    cursor.release("b")
    assert cursor.value == 249
    cursor.release("a")
    cursor.release("a")
    assert cursor.value == 300


@pytest.mark.parametrize("text", ["", "yesterday", "2026-03-02T10:00:00", "0"])
def test_a_time_that_cannot_be_read_is_none(text: str) -> None:
    """What people or older versions may have put there."""
    assert parse(text) is None


def test_a_time_is_written_as_people_read_it() -> None:
    """To the millisecond, and back."""
    assert written(1772445600123) == "2026-03-02T10:00:00.123Z"
    assert parse(written(1772445600123)) == 1772445600123


async def test_a_cursor_that_cannot_be_kept(world: EmbeddedWorld, kube: Kube) -> None:
    """Without the right to write it everything is answered all the same, and what is missed is still read."""
    world.kube_faults.fail(403, method="PATCH", path="/configmaps/", times=None)
    async with bot(world, kube) as one:
        assert await answered(world, await say(world, "@gputest one")) == ["heard gputest one"]
        world.chat_faults.away()
        world.chat.api.hub._connections.clear()
        post = await say(world, "@gputest two")
        world.chat_faults.away(False)

        assert await answered(world, post) == ["heard gputest two"]
        await one.source.stop(5)


async def test_a_token_that_comes_back(world: EmbeddedWorld, kube: Kube) -> None:
    """A command that came in before it was refused is answered when it is taken again."""
    async with bot(world, kube) as one:
        token, user = world.bot_token, world.chat.user_id("bot")
        one.missing = "something"
        post = await say(world, "@gputest one")
        await wait_for(lambda: one.source._under_way)
        world.chat.revoke("bot")
        one.missing = ""
        await quiet()
        world.chat.state.tokens[token] = user

        assert await answered(world, post) == ["heard gputest one"]


async def test_a_lease_lost_in_mid_work(world: EmbeddedWorld, kube: Kube) -> None:
    """What is under way stays unanswered; won again, it is answered, once."""
    async with bot(world, kube) as one:
        one.holds.clear()
        post = await say(world, "@gputest one")
        await wait_for(lambda: one.asked)
        one.leads = False
        one.source.lost()
        one.source.lost()
        one.holds.set()
        await wait_for(lambda: not one.source._under_way)
        assert answers(world, post) == []
        one.leads = True
        one.source.won()

        assert await answered(world, post) == ["heard gputest one"]
