"""Cards and threads in the chat, with what people and networks do to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.core.card import Origin, OriginKind, card_of
from bot.core.dialogs import CancelDialog
from bot.core.effects import EditCard, OpenDialog, PostCard, SayInThread
from bot.core.events import EffectDone, EffectFailed, Trouble
from bot.core.signing import Deed, Signed, unseal
from bot.demo.chat_errors import ChatError
from tests.phrases import SETTINGS, ended, green, workflow
from tests.sinks.conftest import Sunk

POSTS = r"/api/v4/posts$"


def card(sunk: Sunk, *, look: bool = False) -> PostCard:
    since = sunk.world.clock.time() - 300
    return PostCard("e1", "uid-1:1", sunk.channel, card_of(workflow(), SETTINGS), look, since)


async def posted(sunk: Sunk) -> str:
    """A card that is there."""
    done = await sunk.cards.post(card(sunk))
    assert isinstance(done, EffectDone)
    return str(done.value)


async def clicked(sunk: Sunk, post: str) -> dict[str, Any]:
    """Cancel is clicked; nobody answers at the bot's address, and what was sent there is known."""
    with pytest.raises(ChatError):
        await sunk.world.chat.click("dev", post, "Cancel")
    return sunk.world.chat.api.integrations.calls[-1][1]


async def test_a_card_carries_its_key_and_its_button(sunk: Sunk) -> None:
    """The key is in the props; the button's context is sealed for this channel, and nobody sees it."""
    post = await posted(sunk)

    (stored,) = sunk.world.chat.cards()
    assert post == stored["id"]
    assert "uid-1:1" == stored["props"]["gputest_card"]
    assert "k7m2 queued" in stored["message"]
    call = await clicked(sunk, post)
    signed = unseal(call["context"]["sealed"], b"key", 0.0)
    assert isinstance(signed, Signed)
    assert (Deed.ASK_CANCEL, sunk.channel, "uid-gpu-test-k7m2") == (signed.deed, signed.channel, signed.uid)


async def test_an_answer_that_is_lost_is_uncertain_and_then_found(sunk: Sunk) -> None:
    """The post was made; looking for its key finds it, and no second one is made."""
    sunk.world.chat_faults.drop_after_commit(method="POST", path=POSTS)

    failed = await sunk.cards.post(card(sunk))
    found = await sunk.cards.post(card(sunk, look=True))

    assert isinstance(failed, EffectFailed)
    assert failed.trouble is Trouble.UNCERTAIN
    assert isinstance(found, EffectDone)
    assert [found.value] == [p["id"] for p in sunk.world.chat.cards()]


async def test_of_doubles_the_oldest_stays(sunk: Sunk) -> None:
    """Two processes posted the same card: the younger is deleted and counted."""
    first = await posted(sunk)
    await sunk.world.clock.advance(60)
    sunk_second = await sunk.cards.post(card(sunk))
    assert isinstance(sunk_second, EffectDone)
    assert first != sunk_second.value

    found = await sunk.cards.post(card(sunk, look=True))

    assert isinstance(found, EffectDone)
    assert first == found.value
    assert [first] == [p["id"] for p in sunk.world.chat.cards() if not p.get("delete_at")]
    assert b"gputest_doubles_total 1.0" in sunk.metrics.exposition()


async def test_who_does_not_lead_writes_nothing(sunk: Sunk) -> None:
    """The lease is asked in the worker thread, right before the write."""
    sunk.leads = False

    failed = await sunk.cards.post(card(sunk))

    assert isinstance(failed, EffectFailed)
    assert failed.trouble is Trouble.BUSY
    assert [] == sunk.world.chat.cards()


async def test_an_edit_replaces_message_text_and_buttons(sunk: Sunk) -> None:
    """The verdict is in the message, and Cancel gives way to Run again."""
    post = await posted(sunk)

    done = await sunk.cards.edit(EditCard("e2", post, sunk.channel, "uid-1:1", card_of(ended(green()), SETTINGS)))

    assert isinstance(done, EffectDone)
    (stored,) = sunk.world.chat.cards()
    assert "all 10 green" in stored["message"]
    assert ["Run again"] == [a["name"] for a in stored["props"]["attachments"][0]["actions"]]


async def test_a_deleted_card_is_gone_for_edits_and_replies(sunk: Sunk) -> None:
    """A person deleted the post: both say GONE, whichever way the server puts it."""
    post = await posted(sunk)
    sunk.world.chat.delete("admin", post)

    edited = await sunk.cards.edit(EditCard("e2", post, sunk.channel, "uid-1:1", card_of(workflow(), SETTINGS)))
    said = await sunk.cards.say(SayInThread("e3", post, sunk.channel, "uid-1:a", (("notice", "hello"),)))

    for failed in (edited, said):
        assert isinstance(failed, EffectFailed)
        assert failed.trouble is Trouble.GONE


async def test_a_thread_that_broke_off_is_finished_and_not_repeated(sunk: Sunk) -> None:
    """The second of three replies was made and its answer lost: the next try makes the third alone."""
    post = await posted(sunk)
    parts = (("failure:dqn", "one"), ("failure:kan", "two"), ("notice", "three"))
    effect = SayInThread("e3", post, sunk.channel, "uid-1:a", parts)
    sunk.world.chat_faults.fail(500, method="POST", path=POSTS, times=1)
    first = await sunk.cards.say(effect)
    assert isinstance(first, EffectFailed)
    sunk.world.chat_faults.drop_after_commit(method="POST", path=POSTS)
    await sunk.cards.say(effect)

    done = await sunk.cards.say(effect)

    assert isinstance(done, EffectDone)
    assert ["one", "two", "three"] == [p["message"] for p in sunk.world.chat.thread(post) if p["id"] != post]


async def said(sunk: Sunk, asker: Origin) -> str:
    """The notice under a card, as it is posted."""
    post = await posted(sunk)
    parts = (("failure:dqn", "one"), ("notice", "❌ k7m2"))
    done = await sunk.cards.say(SayInThread("e3", post, sunk.channel, "uid-1:a", parts, asker=asker))
    assert isinstance(done, EffectDone)
    *_, first, last = (p["message"] for p in sunk.world.chat.thread(post))
    assert "one" == first
    return str(last)


async def test_a_notice_rings_by_todays_name(sunk: Sunk) -> None:
    """Whoever was called so when they asked is called otherwise now, and somebody else has their name."""
    state = sunk.world.chat.state
    anna = state.add_user("anna")
    asker = Origin(OriginKind.CHAT, anna["id"], "anna")
    anna["username"] = "anna.smith"
    state.add_user("anna")

    assert "@anna.smith ❌ k7m2" == await said(sunk, asker)


@pytest.mark.parametrize("user_id", ["x" * 26, "me", "../channels", "", "x"])
async def test_who_is_nobody_is_named_and_not_rung(sunk: Sunk, user_id: str) -> None:
    """An account that was never there: somebody else wrote that request."""
    assert "admin ❌ k7m2" == await said(sunk, Origin(OriginKind.CHAT, user_id, "admin"))


async def test_who_has_left_is_named_and_not_rung(sunk: Sunk) -> None:
    """A deactivated account keeps its name."""
    anna = sunk.world.chat.state.add_user("anna")
    anna["delete_at"] = 1

    assert "anna ❌ k7m2" == await said(sunk, Origin(OriginKind.CHAT, anna["id"], "anna"))


@pytest.mark.parametrize("status", [403, 429, 503])
async def test_a_name_that_cannot_be_looked_up_is_the_old_one(sunk: Sunk, status: int) -> None:
    """The notice does not wait for it."""
    anna = sunk.world.chat.state.add_user("anna")
    sunk.world.chat_faults.fail(status, method="GET", path=r"/api/v4/users/", times=None)

    assert "@anna ❌ k7m2" == await said(sunk, Origin(OriginKind.CHAT, anna["id"], "anna"))


async def test_a_busy_chat_says_how_long(sunk: Sunk) -> None:
    """429 in plain text: nothing was done."""
    sunk.world.chat_faults.too_many(9)

    failed = await sunk.cards.post(card(sunk))

    assert isinstance(failed, EffectFailed)
    assert (Trouble.BUSY, 9.0) == (failed.trouble, failed.retry_after)


async def test_a_chat_that_is_away_is_no_uncertainty(sunk: Sunk) -> None:
    """Connection refused: nothing was sent."""
    sunk.world.chat_faults.away()

    failed = await sunk.cards.post(card(sunk))

    assert isinstance(failed, EffectFailed)
    assert failed.trouble in {Trouble.BUSY, Trouble.UNCERTAIN}
    sunk.world.chat_faults.away(away=False)
    assert [] == sunk.world.chat.cards()


async def test_a_revoked_token_is_refused(sunk: Sunk) -> None:
    """401: asking again the same way is pointless."""
    sunk.world.chat.revoke("bot")

    failed = await sunk.cards.post(card(sunk))

    assert isinstance(failed, EffectFailed)
    assert failed.trouble is Trouble.REFUSED


async def test_a_form_needs_a_fresh_trigger(sunk: Sunk) -> None:
    """Opened within the trigger's life; refused after it."""
    post = await posted(sunk)
    trigger = (await clicked(sunk, post))["trigger_id"]
    form = OpenDialog("e4", trigger, CancelDialog("k7m2", "anna", 4, 10), Signed(Deed.CANCEL, 1e12, user="dev"))

    opened = await sunk.dialogs.open(form)
    await sunk.world.clock.advance(4)
    late = await sunk.dialogs.open(replace(form, id="e5"))

    assert isinstance(opened, EffectDone)
    assert "Stop k7m2?" == sunk.world.chat.dialogs["dev"][-1]["dialog"]["title"]
    assert isinstance(late, EffectFailed)
    assert late.trouble is Trouble.REFUSED


@pytest.mark.parametrize("status", [502, 503])
async def test_a_proxys_page_never_reaches_people(sunk: Sunk, status: int) -> None:
    """HTML in an error body is not repeated."""
    sunk.world.chat_faults.fail(status, method="POST", path=POSTS, body="<html>gateway</html>")

    failed = await sunk.cards.post(card(sunk))

    assert isinstance(failed, EffectFailed)
    assert "html" not in failed.reason
