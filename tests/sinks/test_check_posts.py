"""What a sweep finds in the chat, and puts right: doubles, a card that somebody changed, one that is gone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from bot.core.card import card_of
from bot.core.effects import CheckPosts, EditCard, PostCard, SayInThread
from bot.core.events import EffectDone, EffectFailed, Trouble
from tests.phrases import SETTINGS, workflow
from tests.sinks.conftest import Sunk

CARD = card_of(workflow(), SETTINGS)


def check(sunk: Sunk, key: str = "uid-1:1", **more: Any) -> CheckPosts:
    since = sunk.world.clock.time() - 600
    return replace(CheckPosts("e9", sunk.channel, key, CARD, since, ""), **more)


async def posted(sunk: Sunk, key: str = "uid-1:1") -> str:
    """A card; the server has forgotten by then what was posted under the same key."""
    await sunk.world.clock.advance(60)
    since = sunk.world.clock.time() - 600
    done = await sunk.cards.post(PostCard("e1", key, sunk.channel, CARD, look_first=False, since=since))
    assert isinstance(done, EffectDone)
    return str(done.value)


async def said(sunk: Sunk, post: str, part: str = "notice") -> None:
    """A reply, made without a look at the thread."""
    effect = SayInThread("e2", post, sunk.channel, "uid-1:a", ())
    await sunk.world.clock.advance(60)
    await sunk.chat.post(sunk.cards._reply(effect, f"uid-1:a:{part}", f"{part} is said"), lambda: True)


def there(sunk: Sunk) -> list[str]:
    return [post["id"] for post in sunk.world.chat.cards() if not post.get("delete_at")]


def replies(sunk: Sunk, post: str) -> list[str]:
    return [p["message"] for p in sunk.world.chat.thread(post) if p["id"] != post and not p.get("delete_at")]


async def test_what_is_as_it_should_be_is_only_read(sunk: Sunk) -> None:
    """Two reads, and no write: it can be done at every sweep."""
    post = await posted(sunk)
    await said(sunk, post)

    done = await sunk.cards.check(check(sunk))

    assert EffectDone("e9", post) == done
    assert 0 == sunk.world.chat.edits(post)
    assert ["notice is said"] == replies(sunk, post)
    assert b"gputest_doubles_total 0.0" in sunk.metrics.exposition()


async def test_of_doubles_the_oldest_stays(sunk: Sunk) -> None:
    """Of cards and of replies; other runs' cards are nobody's doubles."""
    first, _, other = await posted(sunk), await posted(sunk), await posted(sunk, "uid-12:1")
    for part in ("failure:dqn", "notice", "failure:dqn", "notice", "notice"):
        await said(sunk, first, part)

    done = await sunk.cards.check(check(sunk))

    assert EffectDone("e9", first) == done
    assert {first, other} == set(there(sunk))
    assert ["failure:dqn is said", "notice is said"] == replies(sunk, first)
    assert b"gputest_doubles_total 4.0" in sunk.metrics.exposition()


async def test_a_card_of_an_earlier_number_is_a_double_too(sunk: Sunk) -> None:
    """A person had deleted the first, and a late request made it once more beside the second."""
    second, late = await posted(sunk, "uid-1:2"), await posted(sunk, "uid-1:1")

    done = await sunk.cards.check(check(sunk, "uid-1:2"))

    assert EffectDone("e9", second) == done
    assert [second] == there(sunk) != [late]


async def test_a_card_that_somebody_changed_is_made_right(sunk: Sunk) -> None:
    """Its words are what people go by."""
    post = await posted(sunk)
    sunk.world.chat.edit("admin", post, "all fine")

    await sunk.cards.check(check(sunk))

    (stored,) = sunk.world.chat.cards()
    assert "k7m2 queued" in stored["message"]


async def test_a_card_that_nobody_minds_is_left_as_it_is(sunk: Sunk) -> None:
    """Of a run that was let go only doubles are looked for."""
    post = await posted(sunk)
    sunk.world.chat.edit("admin", post, "well done!")

    await sunk.cards.check(check(sunk, card=None))

    (stored,) = sunk.world.chat.cards()
    assert "well done!" == stored["message"]


async def test_a_card_that_is_gone(sunk: Sunk) -> None:
    """A person deleted it, and no event tells."""
    sunk.world.chat.delete("admin", await posted(sunk))

    failed = await sunk.cards.check(check(sunk))

    assert isinstance(failed, EffectFailed)
    assert Trouble.GONE is failed.trouble


async def test_what_a_person_marks_as_ours_is_theirs(sunk: Sunk) -> None:
    """Anybody may give a post the props of ours: it is no double, and it does not stand for what is to be said."""
    post = await posted(sunk)
    chat = sunk.world.chat
    props = {"gputest_reply": "uid-1:a:notice"}
    body = {"channel_id": sunk.channel, "root_id": post, "message": "all fine", "props": props}
    chat.api.posts.create(chat.user_id("dev"), body)

    done = await sunk.cards.say(SayInThread("e3", post, sunk.channel, "uid-1:a", (("notice", "dqn failed"),)))
    await sunk.cards.check(check(sunk))

    assert isinstance(done, EffectDone)
    assert ["all fine", "dqn failed"] == replies(sunk, post)


async def test_without_the_lease_doubles_stay(sunk: Sunk) -> None:
    """Another speaks now; it is the other's business."""
    first, second = await posted(sunk), await posted(sunk)
    sunk.leads = False

    failed = await sunk.cards.check(check(sunk))

    assert isinstance(failed, EffectFailed)
    assert Trouble.BUSY is failed.trouble
    assert {first, second} == set(there(sunk))


async def test_a_sweep_of_many_reads_the_channel_twice(sunk: Sunk) -> None:
    """Who asks while a read is under way shares the next: a card posted meanwhile is seen by the check that came after."""
    keys = [f"uid-{number}:1" for number in range(40)]
    posts = [await posted(sunk, key) for key in keys[:-1]]
    held = sunk.world.chat_faults.hold(method="GET", path=r"/posts\?")
    loop = asyncio.get_running_loop()
    first = loop.create_task(sunk.cards.check(check(sunk, keys[0], since=0.0)))
    await held.arrived.wait()
    posts.append(await posted(sunk, keys[-1]))
    others = [loop.create_task(sunk.cards.check(check(sunk, key, since=0.0))) for key in keys[1:]]
    await asyncio.sleep(0)
    held.release()

    done = await asyncio.gather(first, *others)

    assert [EffectDone("e9", post) for post in posts] == done
    assert b'gputest_call_seconds_count{operation="roots",outcome="ok",system="mattermost"} 2.0' in (
        sunk.metrics.exposition()
    )
    assert b'operation="thread"' not in sunk.metrics.exposition(), "without two replies there are no doubles"


async def test_a_read_that_fails_fails_for_all_who_share_it_and_for_nobody_later(sunk: Sunk) -> None:
    """The next sweep reads anew."""
    post = await posted(sunk)
    sunk.world.chat_faults.fail(500, method="GET", path=r"/posts\?")

    failed = await asyncio.gather(*(sunk.cards.check(check(sunk)) for _ in range(3)))

    assert [Trouble.UNCERTAIN] * 3 == [one.trouble for one in failed if isinstance(one, EffectFailed)]
    assert EffectDone("e9", post) == await sunk.cards.check(check(sunk))


async def test_a_card_that_clocks_hide_is_known_by_its_id(sunk: Sunk) -> None:
    """The bot's clock runs ahead of the chat's: the card is older than it looks for, and not gone."""
    post = await posted(sunk)
    ahead = sunk.world.clock.time() + 360

    assert EffectDone("e9", post) == await sunk.cards.check(check(sunk, since=ahead, post=post))
    other = await sunk.cards.check(check(sunk, "uid-2:1", since=ahead, post=post))
    assert isinstance(other, EffectFailed)
    assert Trouble.GONE is other.trouble


async def test_a_page_before_the_server_says_nothing_about_the_card(sunk: Sunk) -> None:
    """A proxy's 404 is no answer of Mattermost's."""
    post = await posted(sunk)
    sunk.world.chat_faults.fail(404, method="GET", path=r"/thread", body="<html>404</html>")
    failed = await sunk.cards.check(check(sunk, since=sunk.world.clock.time() + 360, post=post))

    assert isinstance(failed, EffectFailed)
    assert Trouble.UNCERTAIN is failed.trouble


async def test_an_edit_limit_leaves_the_card_behind(sunk: Sunk) -> None:
    """PostEditTimeLimit: no later try changes it, so the sweep lets it be, and the run goes on without."""
    post = await posted(sunk)
    sunk.world.chat.edit("admin", post, "all fine")
    sunk.world.chat.state.edit_limit = 1
    await sunk.world.clock.advance(60)

    assert EffectDone("e9", post) == await sunk.cards.check(check(sunk))
    failed = await sunk.cards.edit(EditCard("e3", post, sunk.channel, "uid-1:1", CARD))
    assert isinstance(failed, EffectFailed)
    assert Trouble.FINAL is failed.trouble


async def test_a_sweep_in_an_archived_channel_is_refused(sunk: Sunk) -> None:
    """That is not for ever."""
    post = await posted(sunk)
    sunk.world.chat.edit("admin", post, "all fine")
    sunk.world.chat.state.channel(sunk.channel)["delete_at"] = 1

    failed = await sunk.cards.check(check(sunk))
    assert isinstance(failed, EffectFailed)
    assert Trouble.REFUSED is failed.trouble
