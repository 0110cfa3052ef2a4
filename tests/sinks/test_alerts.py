"""Alerts in the chat: posted, read back, edited; doubles go."""

from __future__ import annotations

import pytest

from bot.core.alerts import AlertPost
from bot.core.effects import EditAlert, PostAlert, ReadAlerts
from bot.core.events import EffectDone, EffectFailed, Trouble
from bot.core.settings import AlertKind
from bot.sinks.alerts import AlertSink
from tests.sinks.conftest import Sunk

KEY = "stock:ci-training-h100:1772445480"


@pytest.fixture
def sink(sunk: Sunk) -> AlertSink:
    return AlertSink(sunk.chat, sunk.metrics, lambda: sunk.leads)


async def posted(sunk: Sunk, sink: AlertSink, key: str = KEY, text: str = "⚠️ none") -> str:
    """An alert that is there, a minute after the one before."""
    await sunk.world.clock.advance(60)
    done = await sink.post(PostAlert("e1", sunk.channel, key, text))
    assert isinstance(done, EffectDone)
    return str(done.value)


async def read(sunk: Sunk, sink: AlertSink) -> object:
    """What stands open."""
    done = await sink.read(ReadAlerts("e2", sunk.channel, sunk.world.clock.time() - 3600))
    assert isinstance(done, EffectDone)
    return done.value


async def test_what_is_posted_is_read_back_until_it_is_over(sunk: Sunk, sink: AlertSink) -> None:
    """With its key and its text; a card beside it is none."""
    await sunk.chat.post({"channel_id": sunk.channel, "message": "a card"}, lambda: True)
    post = await posted(sunk, sink)

    assert (AlertPost(post, AlertKind.STOCK, "ci-training-h100", 1772445480.0, "⚠️ none"),) == await read(sunk, sink)
    done = await sink.edit(EditAlert("e3", post, KEY, "✅ none", 1772446000.5))
    assert EffectDone("e3") == done
    assert () == await read(sunk, sink)
    (root,) = [p for p in await sunk.chat.roots(sunk.channel, 0.0) if p.id == post]
    assert ("✅ none", "1772446000") == (root.message, root.props["gputest_alert_over"])


async def test_of_doubles_the_oldest_stays(sunk: Sunk, sink: AlertSink) -> None:
    """Of one kind and subject, and of what is over already; what has no readable key is left alone."""
    first = await posted(sunk, sink)
    await posted(sunk, sink, "stock:ci-training-h100:1772445999")
    other = await posted(sunk, sink, "idle:ci-training:1772445480")
    strange = await posted(sunk, sink, "strange")

    found = await read(sunk, sink)
    assert isinstance(found, tuple)
    assert [first, other] == [each.post for each in found]
    await sink.edit(EditAlert("e3", first, KEY, "✅ none", 1772446000.0))
    await posted(sunk, sink)
    found = await read(sunk, sink)
    assert isinstance(found, tuple)
    assert [other] == [each.post for each in found]
    assert {first, other, strange} == {post.id for post in await sunk.chat.roots(sunk.channel, 0.0)}


async def test_a_post_that_a_person_deleted(sunk: Sunk, sink: AlertSink) -> None:
    """It can't be edited any more, which is told from a right that is missing."""
    post = await posted(sunk, sink)
    await sunk.chat.delete(post, lambda: True)

    failed = await sink.edit(EditAlert("e3", post, KEY, "✅ none", 0.0))
    assert isinstance(failed, EffectFailed)
    assert failed.trouble is Trouble.GONE


async def test_without_the_lease_nothing_is_said(sunk: Sunk, sink: AlertSink) -> None:
    """It is asked right before each write."""
    post = await posted(sunk, sink)
    sunk.leads = False

    for failed in (
        await sink.post(PostAlert("e1", sunk.channel, KEY, "x")),
        await sink.edit(EditAlert("e3", post, KEY, "x", 0.0)),
    ):
        assert isinstance(failed, EffectFailed)
        assert failed.trouble is Trouble.BUSY
