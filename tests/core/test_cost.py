"""What nodes cost: a month of runs against a calculation by hand, and everything that can come between."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.cost import KEPT_RUNS, KEPT_SLICES, Meter, Slice, Use, learn
from bot.core.cost_record import KEPT_BYTES, KEPT_MONTHS, Gap, Record, added, change, pieces, read, written
from bot.core.cost_view import CostView, view
from bot.core.effects import Answer, KeepCosts
from bot.core.events import CommandTyped, CostsRead, EffectFailed, PoolsSeen, Trouble, Woke
from bot.core.kube import Meta
from bot.core.render.cost import cost
from bot.core.settings import Pool
from bot.core.sightings import NodeSeen, NodesListed, NoteSeen, PodSeen, Source, SourceHidden, Standing
from tests.core.cost_world import PARIS, World, minutes
from tests.core.playbook import Playbook
from tests.core.pool_phrases import H100, L4, L40S, event, pod
from tests.core.render.goldens import matches
from tests.phrases import workflow

ZONE = ZoneInfo("Europe/Paris")


@cache
def month_of_march() -> World:
    """March 2026 in Paris, whose clocks go forward in the night to the 29th; the bot is there from the end of February.

    Minutes by hand, for each node from its creation to its end:

    a  over the month's beginning   February: 10 idle, 20 manual; March: 20 manual, 10 idle
    b  a nightly                    5 idle, 35 nightly, 10 idle
    s  two runs share an L4         5 idle, 30 push, then 30 of both (15 each), then 30 manual, 10 idle
    c  replaced under its name      the first 29: 10 idle, 19 push; the second 36: 2 push (its pod is still there), 4 idle,
                                    20 push, 10 idle
    m  over midnight                5 idle, 5 manual; the day after: 35 manual, 10 idle
    e  the bot is away on the 20th  10 idle, 15 manual until the last record at 10:25, 255 unseen until 14:40, since when
                                    the push that is there when it is back holds its GPU: 30 push, 10 idle
    f  gone while it is away        10 idle until that record
    g  came and went meanwhile      not seen
    d  two days with 23 hours       47 hours: 30 warm, the rest idle
    n  the night of the change      5 idle, 45 nightly (01:35 to 03:20 with 02:00 to 03:00 left out), 10 idle
    h  over the month's end         March: 10 idle, 50 manual; April: 10 manual, 10 idle
    """
    world = World()
    world.to("02-28 20:00")
    world.start()
    world.up("a", H100, "02-28 23:30")
    world.on("run-a", "a", "02-28 23:40")
    world.off("run-a", "03-01 00:20")
    world.down("a", "03-01 00:30")

    world.up("b", H100, "03-03 02:01")
    world.on("run-b", "b", "03-03 02:06", Use.NIGHTLY)
    world.off("run-b", "03-03 02:41")
    world.down("b", "03-03 02:51")

    world.up("s", L4, "03-05 10:00", gpus=2)
    world.on("run-s1", "s", "03-05 10:05", Use.PUSH)
    world.on("run-s2", "s", "03-05 10:35")
    world.off("run-s1", "03-05 11:05")
    world.off("run-s2", "03-05 11:35")
    world.down("s", "03-05 11:45")

    world.up("c", H100, "03-10 09:00", uid="first")
    world.on("run-c1", "c", "03-10 09:10", Use.PUSH)
    world.up("c", H100, "03-10 09:29", uid="second")
    world.off("run-c1", "03-10 09:31")
    world.on("run-c2", "c", "03-10 09:35", Use.PUSH)
    world.off("run-c2", "03-10 09:55")
    world.down("c", "03-10 10:05")

    world.up("m", H100, "03-14 23:50")
    world.on("run-m", "m", "03-14 23:55")
    world.off("run-m", "03-15 00:35")
    world.down("m", "03-15 00:45")

    world.up("e", H100, "03-20 10:00")
    world.on("run-e1", "e", "03-20 10:10")
    world.up("f", L4, "03-20 10:15")
    world.to("03-20 10:30")
    world.stop()
    world.off("run-e1", "03-20 10:50")
    world.up("g", L4, "03-20 11:00")
    world.down("g", "03-20 11:30")
    world.down("f", "03-20 12:00")
    world.on("run-e2", "e", "03-20 14:40", Use.PUSH)
    world.to("03-20 15:00")
    world.start()
    world.off("run-e2", "03-20 15:10")
    world.down("e", "03-20 15:20")

    world.up("d", L40S, "03-28 12:00")
    world.on("gpu-warm-1", "d", "03-28 13:00", Use.WARM)
    world.off("gpu-warm-1", "03-28 13:30")
    world.up("n", H100, "03-29 01:30")
    world.on("run-n", "n", "03-29 01:35", Use.NIGHTLY)
    world.off("run-n", "03-29 03:20")
    world.down("n", "03-29 03:30")
    world.down("d", "03-30 12:00")

    world.up("h", H100, "03-31 23:00")
    world.on("run-h", "h", "03-31 23:10")
    world.off("run-h", "04-01 00:10")
    world.down("h", "04-01 00:20")
    world.to("04-01 08:00")
    return world


def shown(world: World, name: str = "bot") -> str:
    """What `/gpu cost` says of it now."""
    book = world.bots[name].book
    book.now = world.now
    (effect,) = book.tell(CommandTyped(f"r{len(book.effects)}", "gpu", "cost", "U1", "anna", "CHANNEL"))
    assert isinstance(effect, Answer)
    return effect.text


# a month


def test_a_month_agrees_with_the_hand() -> None:
    """Each pool, each trigger, to the minute; what was before and after is in its own month."""
    record = month_of_march().record()

    assert minutes(record, "2026-03") == {
        H100: {"manual": 20 + 40 + 15 + 50, "push": 41 + 30, "nightly": 35 + 45, "unseen": 255,
               "idle": 10 + 15 + 24 + 15 + 20 + 15 + 10},
        L4: {"push": 45, "manual": 45, "idle": 15 + 10},
        L40S: {"warm": 30, "idle": 47 * 60 - 30},
    }  # fmt: skip
    assert minutes(record, "2026-02") == {H100: {"idle": 10, "manual": 20}}
    assert minutes(record, "2026-04") == {H100: {"manual": 10, "idle": 10}}


def test_days_begin_at_midnight_of_the_zone_and_one_of_them_has_23_hours() -> None:
    """Over midnight on both days; the day on which the clocks go forward is an hour short."""
    record = month_of_march().record()

    assert minutes(record, "2026-03-14") == {H100: {"idle": 5, "manual": 5}}
    assert minutes(record, "2026-03-15") == {H100: {"manual": 35, "idle": 10}}
    assert [minutes(record, f"2026-03-{day}")[L40S]["idle"] / 60 for day in (28, 29, 30)] == [11.5, 23, 12]


def test_what_could_not_be_seen_is_in_the_record() -> None:
    """From the last record to the return, and the node that went meanwhile."""
    world = month_of_march()
    (gap,) = world.record().gaps
    assert gap == Gap(world.at("03-20 10:25"), world.at("03-20 15:00"), {L4: 1})


def test_the_answer() -> None:
    """€2.73 × 640 min, €1.40 × 47 h, €0.75 × 115 min: as one reads it, on the first of April."""
    assert shown(month_of_march()) == (
        "**GPU cost, Wed 1 Apr, 08:00 CEST**\n"
        "Today **€0.91** · April **€0.91** · March €96.36\n"
        "**H100**, €2.73 a node and hour: today €0.91 (20 min) · April €0.91 (20 min) · March €29.12 (10 h 40 min)\n"
        "**L40S**, €1.40 a node and hour: today €0.00 · April €0.00 · March €65.80 (47 h)\n"
        "**L4**, €0.75 a node and hour: today €0.00 · April €0.00 · March €1.44 (1 h 55 min)\n"
        "April by trigger: manual €0.46 (10 min) · push €0.00 · nightly €0.00 · idle €0.46 (10 min)\n"
        "_From the creation of a node to its end; pods that share a node share its time. Idle: while it starts, between"
        " pods, after the last._"
    )


def test_the_answer_of_the_month_itself() -> None:
    """On its last evening: each trigger with its hours, and what nobody saw."""
    world = month_of_march()
    now = world.at("03-31 23:59")

    text = cost(view(world.record(), PARIS, now, kept=True), PARIS, now)

    assert text.splitlines()[5] == (
        "March by trigger: manual €6.25 (2 h 50 min) · push €3.79 (1 h 56 min) · nightly €3.64 (1 h 20 min)"
        " · kept warm €0.70 (30 min) · idle €70.37 (48 h 44 min) · not seen whose €11.60 (4 h 15 min)"
    )
    assert text.splitlines()[-2] == "👁 Counted since 28 Feb 20:00; of what was before I know nothing."
    assert text.splitlines()[-1] == (
        "👁 Nobody watched once this month, 4 h 35 min in all: nodes that came and went then are missing, and one node that went"
        " meanwhile cost up to €3.44 more than is shown."
    )


# bots that come and go


def busy_day(world: World) -> None:
    """A node from 10:00 to 12:00, a run from 10:10 to 11:10, another from 11:20 to 11:50."""
    world.up("a", H100, "03-03 10:00")
    world.on("run-1", "a", "03-03 10:10")
    world.off("run-1", "03-03 11:10")
    world.on("run-2", "a", "03-03 11:20", Use.PUSH)
    world.off("run-2", "03-03 11:50")
    world.down("a", "03-03 12:00")
    world.to("03-03 14:00")


DAY = {H100: {"manual": 60, "push": 30, "idle": 30}}


def test_two_replicas_see_the_same_and_one_writes() -> None:
    """The other says the same, and goes on where the first has left off."""
    world = World()
    world.to("03-03 09:00")
    world.start("one")
    world.start("two", leads=False)
    world.up("a", H100, "03-03 10:00")
    world.on("run-1", "a", "03-03 10:10")
    world.to("03-03 10:44")
    assert shown(world, "one") == shown(world, "two")
    world.stop("one")
    world.lead("two")
    world.off("run-1", "03-03 11:10")
    world.down("a", "03-03 11:20")
    world.to("03-03 12:00")

    assert minutes(world.record(), "2026-03") == {H100: {"manual": 60, "idle": 20}}
    assert world.record().gaps == ()


def test_a_late_write_of_the_one_before_changes_nothing() -> None:
    """It has not seen what the other wrote: it is refused, and what it saw is in the other's record anyway."""
    world = World()
    world.to("03-03 09:00")
    old = world.start("one")
    world.start("two", leads=False)
    world.up("a", H100, "03-03 10:00")
    world.on("run-1", "a", "03-03 10:10")
    world.lead("two")
    world.to("03-03 10:30")
    assert old.book.state.leader is False
    assert old.book.tell(Woke("cost")) == []
    world.off("run-1", "03-03 11:10")
    world.down("a", "03-03 11:20")
    world.to("03-03 12:00")

    assert minutes(world.record(), "2026-03") == {H100: {"manual": 60, "idle": 20}}


def test_a_write_whose_answer_is_lost_is_counted_once() -> None:
    """The watch shows it, and what it has is not counted again."""
    world = World(lose_answers=3)
    world.to("03-03 09:00")
    world.start()
    busy_day(world)

    assert minutes(world.record(), "2026-03") == DAY


def test_somebody_else_writes_into_it() -> None:
    """The write over an older version is refused, and the next one goes over theirs."""
    world = World()
    world.to("03-03 09:00")
    bot = world.start()
    world.up("a", H100, "03-03 10:00")
    world.to("03-03 10:05")
    world.version += 1  # the watch has not told yet
    world.on("run-1", "a", "03-03 10:10")
    world.off("run-1", "03-03 11:10")
    world.to("03-03 11:15")
    world._tell(bot, CostsRead(dict(world.data), str(world.version)))
    world.down("a", "03-03 11:20")
    world.to("03-03 12:00")

    assert minutes(world.record(), "2026-03") == {H100: {"manual": 60, "idle": 20}}


@pytest.mark.parametrize("text", [None, "{", '{"v":2,"since":0,"until":9e9}'])
def test_a_record_that_goes_or_can_not_be_read_is_written_anew(text: str | None) -> None:
    """What this process knows of it is not lost."""
    world = World()
    world.to("03-03 09:00")
    bot = world.start()
    world.up("a", H100, "03-03 10:00")
    world.on("run-1", "a", "03-03 10:10")
    world.to("03-03 10:40")
    world.data = {} if text is None else world.data | {"state": text}
    world.version = 0 if text is None else world.version + 1
    world._tell(bot, CostsRead(dict(world.data), str(world.version) if world.version else ""))
    world.off("run-1", "03-03 11:10")
    world.down("a", "03-03 11:20")
    world.to("03-03 12:00")

    assert minutes(world.record(), "2026-03") == {H100: {"manual": 60, "idle": 20}}


@given(st.lists(st.integers(min_value=0, max_value=170), max_size=4, unique=True).map(sorted))
def test_whenever_it_is_started_anew_no_time_of_a_node_is_lost(restarts: list[int]) -> None:
    """The node's two hours are there to the second; only who used it may be unseen, for at most ten minutes each."""
    world = World()
    world.to("03-03 09:00")
    world.start()
    story = [
        (60, lambda: world.up("a", H100, "03-03 10:00")),
        (70, lambda: world.on("run-1", "a", "03-03 10:10")),
        (130, lambda: world.off("run-1", "03-03 11:10")),
        (140, lambda: world.on("run-2", "a", "03-03 11:20", Use.PUSH)),
        (170, lambda: world.off("run-2", "03-03 11:50")),
    ]
    for minute in sorted({*restarts, *(at for at, _ in story)}):
        for at, deed in story:
            if at == minute:
                deed()
        if minute in restarts:
            world.to(world.at("03-03 09:00") + 60 * minute)
            world.stop()
            world.start()
    world.down("a", "03-03 12:00")
    world.to("03-03 14:00")

    found = minutes(world.record(), "2026-03")[H100]
    assert sum(found.values()) == pytest.approx(120, abs=0.05)
    assert found.get("unseen", 0.0) <= 10.0 * len(restarts) + 0.05
    assert found["manual"] <= 60.05
    assert found["push"] <= 30.05
    assert world.record().gaps == ()


def test_it_is_written_when_something_changes_and_every_ten_minutes() -> None:
    """Never twice within a minute, and not at all by who does not lead."""
    world = World()
    world.to("03-03 09:00")
    world.start()
    busy_day(world)

    pauses = [later - earlier for earlier, later in zip(world.writes, world.writes[1:], strict=False)]
    assert min(pauses) >= 60
    assert max(pauses) <= 600
    assert len(world.writes) <= 5 * 6 + 12


def test_a_burst_is_one_write() -> None:
    """Forty pods within a minute."""
    world = World()
    world.to("03-03 09:00")
    world.start()
    world.up("a", H100, "03-03 10:00", gpus=40)
    world.to("03-03 10:05")
    before = len(world.writes)
    for number in range(40):
        world.on(f"run-{number}", "a", "03-03 10:05")
    world.to("03-03 10:06")

    assert len(world.writes) - before <= 2


def test_a_refusal_is_not_asked_again_and_again() -> None:
    """Without the right to write it is tried every ten minutes; then all is written."""
    world = World()
    world.to("03-03 09:00")
    bot = world.start()
    world.up("a", H100, "03-03 10:00")
    world.to("03-03 10:30")
    (effect,) = bot.book.tell(Woke("cost"))
    assert isinstance(effect, KeepCosts)
    bot.book.now = world.now
    (wake,) = bot.book.tell(EffectFailed(effect.id, Trouble.REFUSED, "forbidden"))
    assert wake.when == world.now + 600  # type: ignore[union-attr]
    bot.wakes["cost"] = wake.when  # type: ignore[union-attr]
    world.down("a", "03-03 11:00")
    world.to("03-03 12:00")

    assert minutes(world.record(), "2026-03") == {H100: {"idle": 60}}


def test_before_everything_is_seen_nothing_is_written() -> None:
    """Neither without the runs, nor without the pods."""
    world = World()
    world.to("03-03 09:00")
    bot = world.start()
    bot.book.state.listed = False
    world.to("03-03 09:30")
    assert world.writes == []

    bot.book.state.listed = True
    world.to("03-03 09:32")
    assert len(world.writes) == 1
    assert bot.book.tell(Woke("cost")) != []
    assert bot.book.tell(Woke("cost")) == []  # one is under way


# what can't be seen


def test_without_the_right_to_see_nodes_the_pods_time_counts() -> None:
    """And it is said."""
    world = World(nodes_visible=False)
    world.to("03-03 09:00")
    world.start()
    busy_day(world)

    assert minutes(world.record(), "2026-03") == {H100: {"manual": 60, "push": 30}}
    assert shown(world).splitlines()[-1] == (
        "👁 I could not see nodes: only the time of pods that I see is counted, and starting and idle time"
        " comes on top. `deploy/bot/rbac-cluster.yaml` is the right to see them."
    )


def test_while_they_are_not_visible_it_says_so_without_a_time() -> None:
    """Two pods on one node are one node."""
    world = World(nodes_visible=False)
    world.to("03-03 09:00")
    world.start()
    world.on("run-1", "a", "03-03 10:10")
    world.on("training", "a", "03-03 10:20", Use.OTHER)
    world.to("03-03 10:30")

    assert "👁 I could not see nodes: only the time" in shown(world)
    assert "manual €0.68 (15 min) · push €0.00 · nightly €0.00 · other pods €0.23 (5 min)" in shown(world)


def test_the_right_is_granted_in_mid_run() -> None:
    """What the pods counted is not counted again; the nodes go on, and others that were there are counted whole."""
    world = World(nodes_visible=False)
    world.to("03-03 09:00")
    bot = world.start()
    world.on("run-1", "a", "03-03 10:10")
    world.up("b", L4, "03-03 10:20")
    world.up("a", H100, "03-03 10:30")
    world.nodes["a"] = replace(world.nodes["a"], created=world.at("03-03 10:00"))
    world.nodes_visible = True
    world._tell(bot, PoolsSeen(NodesListed(tuple(world.nodes.values()))))
    world.off("run-1", "03-03 11:10")
    world.down("a", "03-03 11:20")
    world.down("b", "03-03 11:20")
    world.to("03-03 12:00")

    found = minutes(world.record(), "2026-03")
    assert found[H100] == {"manual": 60, "idle": 10}
    assert "👁 I could not see nodes until 3 Mar 10:" in shown(world)
    assert sum(found[L4].values()) == pytest.approx(60, abs=10)


def test_the_right_is_taken_away() -> None:
    """Nodes end for the meter, and their pods go on."""
    world = World()
    world.to("03-03 09:00")
    bot = world.start()
    world.up("a", H100, "03-03 10:00")
    world.on("run-1", "a", "03-03 10:10")
    world.to("03-03 10:40")
    world._tell(bot, PoolsSeen(SourceHidden(Source.NODES)))
    world.nodes_visible = False
    world.off("run-1", "03-03 11:10")
    world.to("03-03 12:00")

    assert minutes(world.record(), "2026-03") == {H100: {"idle": 10, "manual": 60}}


def test_without_the_right_to_see_pods_nobody_is_called_idle() -> None:
    """The node's time is all there is."""
    world = World()
    world.to("03-03 09:00")
    bot = world.start()
    world._tell(bot, PoolsSeen(SourceHidden(Source.PODS)))
    world.up("a", H100, "03-03 10:00")
    world.down("a", "03-03 10:30")
    world.to("03-03 12:00")

    assert minutes(world.record(), "2026-03") == {H100: {"unseen": 30}}


def test_a_pod_that_was_there_tells_itself_since_when() -> None:
    """At the very first start, with nodes that are older than the bot: all of their time counts."""
    world = World()
    world.up("a", H100, "03-03 10:00")
    world.on("run-1", "a", "03-03 10:10")
    world.on("training", "a", "03-03 10:20", Use.OTHER)
    world.up("b", H100, "03-03 10:20")
    world.to("03-03 10:30")
    world.start()
    world.to("03-03 10:40")
    world.down("a", "03-03 10:50")
    world.down("b", "03-03 10:50")
    world.to("03-03 11:00")

    assert minutes(world.record(), "2026-03") == {H100: {"manual": 25, "other": 15, "unseen": 20, "idle": 20}}
    assert "Counted since 3 Mar 10:00" in shown(world)


def test_a_short_break_is_no_gap_and_a_long_one_is() -> None:
    """Though no node was there: one may have come and gone."""
    world = World()
    world.to("03-03 09:00")
    world.start()
    world.to("03-03 10:00")
    world.stop()
    world.to("03-03 10:10")
    world.start()
    world.to("03-03 11:00")
    world.stop()
    world.to("03-03 16:00")
    world.start()
    world.to("03-03 16:30")

    (gap,) = world.record().gaps
    assert gap.end == world.at("03-03 16:00")
    since = "⚪ No node seen since 3 Mar 09:00, when the counting began; of what was before I know nothing."
    assert shown(world).splitlines()[1] == since
    assert "Nobody watched once this month, 5 h" in shown(world)


def test_two_gaps_and_nodes_without_a_price() -> None:
    """What they cost at most can't be told."""
    world = World(settings=replace(PARIS, pools=(*PARIS.pools[:2], Pool(L4, "L4", "89"))))
    for day in (3, 4):
        world.to(f"03-0{day} 09:00")
        world.start()
        world.up("a", L4, f"03-0{day} 10:00")
        world.up("b", H100, f"03-0{day} 10:00")
        world.to(f"03-0{day} 10:30")
        world.stop()
        world.down("a", f"03-0{day} 12:00")
        world.down("b", f"03-0{day} 12:00")
    world.to("03-05 09:00")
    world.start()
    world.to("03-05 09:30")

    text = shown(world)
    assert "Nobody watched 2 times this month" in text
    assert "4 nodes that went meanwhile cost more than is shown" in text
    assert "**L4**, no price: today 0 min · March 42 min" in text
    assert "March **€1.91 and 42 min without a price**" in text


def test_without_a_record_it_says_what_it_saw_itself() -> None:
    """Nothing is kept over a restart, and that is said; no price at all leaves hours."""
    world = World(settings=replace(PARIS, pools=(Pool(H100, "H100", "90"), Pool("other", "H100", "90"))))
    world.to("03-03 09:00")
    bot = world.start()
    bot.book.state.costs.loaded = False
    world.up("a", H100, "03-03 10:00")
    world.up("b", "other", "03-03 10:00")
    world.up("strange", "strange", "03-03 10:00")
    world.up("cpu", "services", "03-03 10:00", gpus=0)
    world.to("03-03 11:00")

    text = shown(world).splitlines()
    assert text[1] == "Today **3 h** · March **3 h**"
    assert text[2] == "**H100** (ci-training-h100), no price: today 1 h · March 1 h"
    assert text[3] == "**H100** (other), no price: today 1 h · March 1 h"
    assert text[4] == "**Pools that config.yaml does not name**, no price: today 1 h · March 1 h"
    assert text[-1] == "👁 There is no record that I may read and write, so this is what I have seen since my start."


def test_other_sightings_divide_nothing() -> None:
    """An Event, a pod without a node, a pod that changes its node."""
    world = World()
    world.to("03-03 09:00")
    bot = world.start()
    world.up("a", H100, "03-03 10:00")
    world.up("b", H100, "03-03 10:00")
    world.on("run-1", "a", "03-03 10:10")
    world._tell(bot, PoolsSeen(NoteSeen(event("FailedScheduling", "x", "0/1 nodes"))))
    world._tell(bot, PoolsSeen(PodSeen(pod("waits"))))
    world.on("run-1", "b", "03-03 10:20")
    world.down("a", "03-03 10:30")
    world.down("b", "03-03 10:30")
    world.to("03-03 11:00")

    assert minutes(world.record(), "2026-03") == {H100: {"idle": 40, "manual": 20}}


def test_what_is_seen_again_unchanged_divides_nothing() -> None:
    """A kubelet reports every few minutes: five hundred of them must not fill what is held."""
    world = World()
    world.to("03-03 09:00")
    bot = world.start(leads=False)
    world.up("a", H100, "03-03 10:00")
    world.on("run-1", "a", "03-03 10:10")
    for minute in range(11, 59):
        world.to(f"03-03 10:{minute}")
        world._tell(bot, PoolsSeen(NodeSeen(world.nodes["a"])))
        world._tell(bot, PoolsSeen(PodSeen(world.pods["run-1"])))
    assert len(bot.book.state.costs.meter.slices) == 1  # the ten minutes before the run

    world._tell(bot, PoolsSeen(PodSeen(replace(world.pods["run-1"], standing=Standing.ENDED))))
    assert len(bot.book.state.costs.meter.slices) == 2


def test_a_node_of_a_later_clock_and_one_without_a_time_of_creation() -> None:
    """Never less than nothing: they count from when they were seen."""
    world = World()
    world.to("03-03 09:00")
    bot = world.start()
    world.up("a", H100, "03-03 10:00")
    late = replace(world.nodes.pop("a"), created=world.now + 600, metadata=Meta("late", "", "1"))
    unknown = replace(late, created=None, metadata=Meta("unknown", "", "2"))
    another = replace(unknown, metadata=Meta("unknown", "", "3"))
    for nodes in ((late, unknown), (late, another)):
        world._tell(bot, PoolsSeen(NodesListed(nodes)))
    world.to("03-03 10:30")
    world._tell(bot, PoolsSeen(NodesListed(())))
    world.to("03-03 11:00")

    assert minutes(world.record(), "2026-03") == {H100: {"idle": 60}}


# the record


def test_days_of_a_time() -> None:
    """Of 23, 24 and 25 hours, by the zone; also where midnight itself is left out."""

    def hours(zone: str, begin: datetime, end: datetime) -> list[tuple[str, float]]:
        of = ZoneInfo(zone)
        times = begin.replace(tzinfo=of).timestamp(), end.replace(tzinfo=of).timestamp()
        return [(day, seconds / 3600) for day, seconds in pieces(*times, of)]

    assert hours("Europe/Paris", datetime(2026, 10, 24, 12), datetime(2026, 10, 26, 12)) == [
        ("2026-10-24", 12.0),
        ("2026-10-25", 25.0),
        ("2026-10-26", 12.0),
    ]
    assert hours("Europe/Paris", datetime(2026, 3, 29), datetime(2026, 3, 30)) == [("2026-03-29", 23.0)]
    assert hours("America/Santiago", datetime(2026, 9, 5, 12), datetime(2026, 9, 7)) == [
        ("2026-09-05", 12.0),
        ("2026-09-06", 23.0),
    ]
    assert hours("America/Santiago", datetime(2026, 4, 4, 12), datetime(2026, 4, 6)) == [
        ("2026-04-04", 13.0),
        ("2026-04-05", 24.0),
    ]
    assert list(pieces(5.0, 5.0, ZONE)) == []


@given(
    st.floats(0, 4e9), st.floats(0, 1e7), st.sampled_from(["UTC", "Europe/Paris", "America/Santiago", "Asia/Beirut"])
)
def test_no_second_is_lost_between_days(begin: float, length: float, zone: str) -> None:
    """Whatever the zone does at midnight."""
    found = list(pieces(begin, begin + length, ZoneInfo(zone)))
    assert sum(seconds for _, seconds in found) == pytest.approx(length, abs=1e-3)
    assert [day for day, _ in found] == sorted({day for day, _ in found})


def full(months: int, pools: int) -> Record:
    """A record in which each day has every use of so many pools."""
    uses = {use.value: 86399.9 for use in Use}
    days = {
        f"{2025 + month // 12}-{month % 12 + 1:02}-{day + 1:02}": {
            f"pool-with-a-long-name-{n}": uses for n in range(pools)
        }
        for month in range(months)
        for day in range(31)
    }
    return Record(days, 1.0, 2.0, {f"uid-{n:036}": H100 for n in range(500)})


def test_its_size_is_what_the_documents_say() -> None:
    """A month of four pools is below 25 KB; 13 months are kept, and less where there are many pools; the last always."""
    four = written(full(15, 4))
    assert max(len(text) for key, text in four.items() if key != "state") < 25_000
    assert len(four) == 1 + KEPT_MONTHS
    assert "2025-02" not in four

    for pools in (40, 400):
        many = written(full(15, pools))
        months = sorted(set(many) - {"state"})
        assert months[-1] == "2026-03"
        assert len(months) < KEPT_MONTHS
        assert len(months) == 1 or sum(len(many[month]) for month in months) <= KEPT_BYTES


def test_it_is_read_as_it_was_written() -> None:
    """But for what is below a tenth of a second; a month that a person spoiled is not there."""
    record = replace(full(2, 1), gaps=(Gap(1.0, 2.0, {H100: 1}),), blind=3.0)
    data = written(record)

    assert read(data, "7") == replace(record, version="7")
    assert read(data | {"2025-02": "{"}, "7").days.keys() == {d for d in record.days if d.startswith("2025-01")}
    assert read({}, "7") == Record(version="7")


def test_only_what_differs_is_sent() -> None:
    """And what is not kept any more goes."""
    assert change({"a": "1", "b": "2", "old": "3"}, {"a": "1", "b": "3", "c": "4"}) == {"b": "3", "c": "4", "old": None}


def test_a_use_of_another_version_is_not_lost() -> None:
    """It counts as not seen whose."""
    record = Record({"2026-03-03": {H100: {"spot": 3600.0, "unseen": 1800.0}}}, since=1.0, until=2.0)
    (h100, *_) = view(record, PARIS, World().at("03-03 12:00"), kept=True).pools
    assert h100.month == {Use.UNSEEN: 5400.0}


def test_what_no_record_takes_does_not_grow_for_ever() -> None:
    """The oldest slices and the oldest runs give way."""
    world = World()
    world.to("03-03 09:00")
    bot = world.start(leads=False)
    world.up("a", H100, "03-03 10:00")
    bot.book.state.costs.meter.slices = [Slice(H100, 0.0, 1.0, 1.0, Use.IDLE)] * (KEPT_SLICES + 5)
    world.down("a", "03-03 10:30")
    assert len(bot.book.state.costs.meter.slices) == KEPT_SLICES

    meter = Meter()
    for number in range(KEPT_RUNS + 5):
        learn(meter, workflow(f"run-{number}"))
    assert len(meter.triggers) == KEPT_RUNS
    assert "run-0" not in meter.triggers


def test_a_record_of_the_future_is_not_added_to_until_then() -> None:
    """A clock that was ahead when it was written."""
    record = Record(since=1.0, until=100.0)
    meter = Meter(began=1.0, slices=[Slice(H100, 50.0, 90.0, 1.0, Use.IDLE), Slice(H100, 90.0, 160.0, 0.5, Use.IDLE)])
    found = added(record, meter, ZONE, 90.0)
    assert found.until == 100.0
    assert found.days == {"1970-01-01": {H100: {"idle": 30.0}}}


def test_amounts_of_a_meter_that_has_not_begun() -> None:
    """Just started: nothing was seen, and nothing is said to be."""
    world = World()
    world.to("03-03 09:00")
    book = Playbook(settings=PARIS, now=world.now)
    (effect,) = book.tell(CommandTyped("r1", "gpu", "cost", "U1", "anna", "CHANNEL"))
    assert isinstance(effect, Answer)
    assert effect.text.splitlines()[1:] == [
        "⚪ No node seen since 3 Mar 09:00, when the counting began; of what was before I know nothing.",
        "👁 There is no record that I may read and write, so this is what I have seen since my start.",
    ]


def test_no_node_for_long() -> None:
    """Where the counting began before the last month, that month is told of as well."""
    world = World()
    world.to("03-03 09:00")
    nothing = CostView((), date(2026, 3, 1), None, None, None, kept=True)

    text = cost(nothing, PARIS, world.now)

    assert text.splitlines()[1:] == ["⚪ No node was up in March, nor in February."]


def test_answers_to_be_read() -> None:
    """Of the month by hand on its last evening and on the morning after, and where nodes can't be seen."""
    world = month_of_march()
    evening = world.at("03-31 23:59")
    matches("cost_last_evening", cost(view(world.record(), PARIS, evening, kept=True), PARIS, evening) + "\n")
    matches("cost_first_morning", shown(world) + "\n")

    blind = World(nodes_visible=False)
    blind.to("03-03 09:00")
    blind.start()
    busy_day(blind)
    matches("cost_without_nodes", shown(blind) + "\n")
