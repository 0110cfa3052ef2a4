"""Alerts are said once and with their end: damped, through restarts, with two replicas, whatever the chat does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.core.alerting import WAKE_ALERTS, WINDOW_SECONDS
from bot.core.alerts import AlertPost
from bot.core.effects import EditAlert, Effect, PostAlert, ReadAlerts, WakeAt
from bot.core.events import EffectDone, EffectFailed, LeaseLost, LeaseWon, PoolsSeen, Swept, Trouble, Woke
from bot.core.settings import AlertKind, Channels
from bot.core.sightings import NodesListed, NotesListed, PodsListed, StatusSeen
from tests.core.playbook import Playbook
from tests.core.pool_phrases import H100, THREE_POOLS, group, node, status_text
from tests.phrases import NOW

UUID = "7be2f9d4-aaaa-4bbb-8ccc-ddddeeeeffff"
KEY = f"stock:{H100}:{int(NOW) - 480}"  # since 09:58
SETTLE = THREE_POOLS.settle_seconds


def broken(book: Playbook) -> list[Effect]:
    """The autoscaler says that the provider has no H100."""
    error = ("OUT_OF_STOCK", "no resources available")
    return book.tell(PoolsSeen(StatusSeen(status_text(group(UUID, error=error)))))


def mended(book: Playbook) -> list[Effect]:
    """It says that all is well."""
    return book.tell(PoolsSeen(StatusSeen(status_text(group(UUID)))))


def book_of(**more: Any) -> Playbook:
    """A bot that sees everything and has read what stands in the chat."""
    book = Playbook(more.pop("settings", THREE_POOLS), **more)
    for seen in (NodesListed(()), PodsListed((), everywhere=True), NotesListed((), everywhere=True)):
        book.play(book.tell(PoolsSeen(seen)))
    mended(book)
    book.look(SETTLE)
    return book


def alerted(**more: Any) -> Playbook:
    """The alert stands in the chat."""
    book = book_of(**more)
    broken(book)
    book.look(5)
    book.look(60)
    assert [KEY] == [key for key, _, _ in book.alerts.values()]
    return book


def one(effects: list[Effect], kind: type[Effect]) -> Any:
    """The one effect, of that kind."""
    (effect,) = effects
    assert isinstance(effect, kind)
    return effect


def test_said_once_it_has_held_and_edited_once_it_is_over() -> None:
    """One post: who is rung, what it is, since when, why; then the same post with its end."""
    book = book_of()
    broken(book)
    book.look(5)
    assert {} == book.alerts
    assert book.now + 60 == book.wakes[WAKE_ALERTS]

    book.look(59)
    assert [] == book.said()
    book.look(1)
    text = "**No H100 to be had** · since 09:58 UTC · the provider has none in stock (`OUT_OF_STOCK`: no resources available)"
    assert [f"@olga ⚠️ {text}"] == book.said()

    mended(book)
    book.look(5)
    book.look(119)
    assert "Over" not in book.said()[0]
    book.look(1)
    ended = text.replace("**No H100 to be had**", "**Over after 9 min, at 10:07 UTC**: ~~No H100 to be had~~")
    assert [f"@olga ✅ {ended}"] == book.said()
    book.look(600)
    assert 1 == len(book.alerts)
    broken(book)
    book.look(5)
    book.look(60)
    assert 2 == len(book.alerts)


def test_what_comes_and_goes_is_damped() -> None:
    """Before it was said it leaves no trace; after it was said it is the same one."""
    book = book_of()
    for _ in range(5):
        broken(book)
        book.look(40)
        mended(book)
        book.look(40)
    assert {} == book.alerts

    book = alerted()
    for _ in range(5):
        mended(book)
        book.look(100)
        broken(book)
        book.look(100)
    ((_, text, over),) = book.alerts.values()
    assert (False, False) == (over, "Over" in text)


def test_only_the_holder_of_the_lease_speaks() -> None:
    """Another sees the same and is silent; when it takes over, it waits, reads, and goes on with what stands there."""
    first, second = alerted(), Playbook(THREE_POOLS, leader=False)
    for seen in (NodesListed(()), PodsListed((), everywhere=True), NotesListed((), everywhere=True)):
        assert [] == second.tell(PoolsSeen(seen))
    assert [] == broken(second)
    assert [] == second.tell(Woke(WAKE_ALERTS))
    assert [] == second.tell(Swept())
    assert [] == first.tell(LeaseLost())
    assert WAKE_ALERTS not in first.state.wakes

    second.alerts, second.now = first.alerts, first.now
    second.play(second.tell(LeaseWon()))
    second.look(5)
    assert second.wakes[WAKE_ALERTS] == first.now + SETTLE
    second.look(SETTLE - 5)
    second.look(600)
    assert 1 == len(second.alerts)
    mended(second)
    second.look(5)
    second.look(120)
    assert ["@olga ✅ **Over after 20 min, at 10:17 UTC**"] == [text.split(": ~~")[0] for text in second.said()]


def test_over_while_nobody_looked() -> None:
    """A new process finds the post and nothing wrong: it says by when that was over."""
    book = alerted()
    book.restart()
    for seen in (NodesListed(()), PodsListed((), everywhere=True), NotesListed((), everywhere=True)):
        book.play(book.tell(PoolsSeen(seen)))
    mended(book)
    book.look(SETTLE)
    book.look(120)

    ((key, text, over),) = book.alerts.values()
    assert (KEY, True, "@olga ✅ **Over by 10:07 UTC, after 10 min at most**") == (key, over, text.split(": ~~")[0])


def test_a_new_process_goes_on_with_what_is_still_wrong() -> None:
    """No second post, and its end is known."""
    book = alerted()
    book.restart()
    for seen in (NodesListed(()), PodsListed((), everywhere=True), NotesListed((), everywhere=True)):
        book.play(book.tell(PoolsSeen(seen)))
    broken(book)
    book.look(SETTLE)
    book.look(300)
    assert 1 == len(book.alerts)
    mended(book)
    book.look(5)
    book.look(120)
    assert "Over after 15 min, at 10:12 UTC" in book.said()[0]


def test_an_answer_that_is_lost() -> None:
    """The post may be there: it is read before anything is said, and what is found is not said again."""
    book = book_of()
    broken(book)
    book.look(5)
    book.now += 60
    posting = one(book.tell(Woke(WAKE_ALERTS)), PostAlert)
    assert (KEY, "CHANNEL") == (posting.key, posting.channel)
    book.answer(posting)
    waits = book.tell(EffectFailed(posting.id, Trouble.UNCERTAIN, "no answer"))
    assert [WakeAt(WAKE_ALERTS, book.now + SETTLE)] == waits
    assert [] == book.tell(EffectDone(posting.id, "late"))

    book.look(SETTLE)
    book.look(600)
    assert 1 == len(book.alerts)
    mended(book)
    book.look(5)
    book.look(120)
    assert [True] == [over for _, _, over in book.alerts.values()]


def test_over_while_it_is_being_said() -> None:
    """The post comes late, and its end after it."""
    book = book_of()
    broken(book)
    book.look(5)
    book.now += 60
    posting = one(book.tell(Woke(WAKE_ALERTS)), PostAlert)
    mended(book)
    assert [] == book.tell(Woke(WAKE_ALERTS))
    answer = book.answer(posting)
    assert answer is not None
    book.play(book.tell(answer))
    book.look(120)
    assert [True] == [over for _, _, over in book.alerts.values()]


def test_back_while_its_end_is_being_said() -> None:
    """That is another one, since then."""
    book = alerted()
    mended(book)
    book.look(5)
    book.now += 120
    editing = one(book.tell(Woke(WAKE_ALERTS)), EditAlert)
    broken(book)
    assert [] == book.tell(Woke(WAKE_ALERTS))
    answer = book.answer(editing)
    assert answer is not None
    book.play(book.tell(answer))
    book.look(60)
    assert [True, False] == [over for _, _, over in book.alerts.values()]
    assert f"stock:{H100}:{int(book.now) - 60}" == [key for key, _, _ in book.alerts.values()][1]


@pytest.mark.parametrize("trouble", [Trouble.GONE, Trouble.FINAL])
def test_an_end_that_can_not_be_written(trouble: Trouble) -> None:
    """A person deleted the post, or the server lets nobody edit it any more: that is the end of it."""
    book = alerted()
    mended(book)
    book.look(5)
    book.now += 120
    editing = one(book.tell(Woke(WAKE_ALERTS)), EditAlert)
    book.play(book.tell(EffectFailed(editing.id, trouble, "no")))
    book.alerts.clear()
    book.look(600)
    assert {} == book.alerts
    assert {} == book.state.alerts.held


@pytest.mark.parametrize(
    ("trouble", "after", "pause"),
    [
        (Trouble.BUSY, None, 5.0),
        (Trouble.BUSY, 90.0, 90.0),
        (Trouble.REFUSED, None, 600.0),
        (Trouble.GONE, 900.0, 900.0),
    ],
)
def test_a_chat_that_does_not_take_it(trouble: Trouble, after: float | None, pause: float) -> None:
    """It is tried again, later where the chat asks for it, and seldom where it refuses."""
    book = book_of()
    broken(book)
    book.look(5)
    book.now += 60
    posting = one(book.tell(Woke(WAKE_ALERTS)), PostAlert)
    again = book.tell(EffectFailed(posting.id, trouble, "no", retry_after=after))
    assert [WakeAt(WAKE_ALERTS, book.now + pause)] == again

    book.look(pause)
    assert 1 == len(book.alerts)


def test_a_sweep_looks_for_doubles_of_what_stands_open() -> None:
    """And for a while after it is over; where nothing is said, nothing is read."""
    assert [] == [e for e in _swept(book_of()) if isinstance(e, ReadAlerts)]
    book = alerted()
    (reading,) = _swept(book)
    assert isinstance(reading, ReadAlerts)
    assert ("CHANNEL", book.now - WINDOW_SECONDS) == (reading.channel, reading.since)
    assert [] == _swept(book)  # one is under way
    kept = AlertPost("alert-0", AlertKind.STOCK, H100, NOW - 480, "⚠️ older")
    book.play(book.tell(EffectDone(reading.id, (kept,))))
    mended(book)
    book.look(5)
    book.look(120)
    said = "✅ **Over after 9 min, at 10:07 UTC**: ~~older~~"
    assert (said, True) == book.alerts["alert-0"][1:3]
    assert isinstance(_swept(book)[0], ReadAlerts)
    book.now += THREE_POOLS.linger_seconds
    assert [] == [e for e in _swept(book) if isinstance(e, ReadAlerts)]


def _swept(book: Playbook) -> list[Effect]:
    """What a sweep asks for of alerts."""
    book.tell(Swept())
    return [each for each in book.tell(Woke(WAKE_ALERTS)) if not isinstance(each, WakeAt)]


def test_a_channel_of_their_own() -> None:
    """And nobody is rung where config.yaml says so."""
    settings = replace(THREE_POOLS, channels=Channels(default="CHANNEL", alerts="ALERTS"))
    book = book_of(settings=settings)
    broken(book)
    book.look(5)
    book.now += 60
    assert "ALERTS" == one(book.tell(Woke(WAKE_ALERTS)), PostAlert).channel


def test_a_read_that_says_nothing() -> None:
    """An answer of another kind is no list of posts."""
    book = book_of()
    book.tell(LeaseWon())
    book.now += SETTLE
    reading = one(book.tell(Woke(WAKE_ALERTS)), ReadAlerts)
    book.tell(EffectDone(reading.id, "?"))
    assert book.state.alerts.read


def test_a_node_gets_idle_without_any_event() -> None:
    """It is looked again when its time has come."""
    book = book_of()
    book.tell(PoolsSeen(NodesListed((node(ready="True"),))))
    book.look(5)
    assert book.now + 1800 == book.wakes[WAKE_ALERTS]
    book.look(1800)
    assert ["@olga ⚠️ **H100: a node is idle** · since 10:06 UTC · nobody uses h100-a"] == book.said()
