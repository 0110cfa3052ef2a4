"""A run on its way to a GPU: its card follows, its start is remembered, and at its limit it is given up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from bot.core.buttons import buttons_of
from bot.core.card import Stage
from bot.core.effects import Answer, EditCard, Effect, KeepStart, PatchWorkflow, PostCard, Purpose
from bot.core.events import (
    Clicked,
    CommandTyped,
    EffectDone,
    EffectFailed,
    HistoryRead,
    LeaseLost,
    PoolsSeen,
    Swept,
    Trouble,
    Woke,
    WorkflowChanged,
)
from bot.core.history import written
from bot.core.render.card import render_card
from bot.core.settings import Right, Role
from bot.core.sightings import (
    NodeSeen,
    NodesListed,
    NoteSeen,
    NotesListed,
    PodSeen,
    PodsListed,
    Sighting,
    Source,
    SourceHidden,
    StatusSeen,
)
from bot.core.waiting import read_longer
from tests.core.playbook import Playbook
from tests.core.pool_phrases import ONE_POOL, event, group, status_text
from tests.core.test_warmup import GROWN, KNOWN, RUN, WAITS, WARMED, mine, minute, new_node, pulled
from tests.phrases import NOW, SETTINGS, green, node, outputs, workflow_json

UID = f"uid-{RUN}"
KEY = f"run:{UID}"
TESTS = node("compile-and-test", "Running")
LIMIT = minute(41)  # its pod was made at 10:01
MORNING = minute(21 * 60)
PATIENT = replace(SETTINGS, warmup_late_seconds=1e6)


def saw(book: Playbook, seen: Sighting) -> None:
    """A watch of the pools saw something; the world does what is asked, and time passes until the card may be edited."""
    book.play(book.tell(PoolsSeen(seen)))
    book.now += SETTINGS.coalesce_seconds
    book.play(book.tell(Woke(KEY)))


def waiting(settings: Any = SETTINGS, **more: Any) -> Playbook:
    """The run waits for a node: its pod is seen, its pool is empty."""
    book = Playbook(settings, **more)
    for seen in (NodesListed(()), PodsListed((mine(),), everywhere=True), NotesListed((), everywhere=True)):
        book.tell(PoolsSeen(seen))
    book.see(workflow_json(phase="Running", nodes=[WAITS]))
    return book


def card(book: Playbook) -> str:
    """What its card says below its first line."""
    effect = book.posts[f"post-{UID}:1"]
    return render_card(effect.card, book.settings).text.replace("  \n", "\n")


def started(book: Playbook) -> None:
    """Node, place, image and tests come."""
    saw(book, NodeSeen(new_node(1)))
    saw(book, PodSeen(mine(placed="10:05")))
    saw(book, PodSeen(mine(), gone=True))
    image = pulled("test", "10:08")
    assert image is not None
    saw(book, NoteSeen(image))
    book.see(workflow_json(phase="Running", nodes=[WARMED, TESTS]))
    saw(book, PodSeen(mine("test", placed="10:07", started="10:09")))


def test_the_card_follows_each_step() -> None:
    """No event of the run itself: what the pools tell is enough."""
    book = waiting()
    assert "Warm-up: ⏳ scale-up since 10:01 · ⚪ node · ⚪ ready · ⚪ GPU · ⚪ image · ⚪ start\n" in card(book)

    saw(book, NoteSeen(event("TriggeredScaleUp", "warm", GROWN, when="2026-03-02T10:02:00Z")))
    assert "Warm-up: ✅ scale-up 1 min · ⏳ node since 10:02 · ⚪ ready · ⚪ GPU · ⚪ image · ⚪ start\n" in card(book)
    started(book)

    assert "Warm-up 8 min: scale-up 1 min, node 1 min, ready 1 min, GPU 1 min, image 3 min, start 1 min\n" in card(book)


@pytest.mark.parametrize(
    "seen",
    [
        NodeSeen(new_node(1, pool="ci-compile")),
        PodSeen(replace(mine("x"), workflow="another")),
        NoteSeen(event("TriggeredScaleUp", "x", GROWN)),
        StatusSeen(None, there=False),
        SourceHidden(Source.AUTOSCALER),
    ],
)
def test_what_is_of_others_changes_nothing(seen: Sighting) -> None:
    """No look at the run, no edit."""
    book = waiting()
    book.effects.clear()

    saw(book, seen)

    assert [] == [effect for effect in book.effects if isinstance(effect, EditCard)]


def test_a_run_without_any_look_yet_takes_no_note_of_a_node() -> None:
    """Its pods can't be seen: it is told by Argo's words alone."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=[WAITS]))
    book.effects.clear()
    saw(book, NodeSeen(new_node(1)))

    assert "Warm-up" not in card(book)
    assert "I wait until 10:41 UTC, then give up" in card(book)


def test_its_start_is_remembered_once() -> None:
    """By the holder of the Lease; the card of a run that is told of by the history stays as it was."""
    book = waiting()
    started(book)
    saw(book, PodSeen(mine("test", placed="10:07", started="10:09")))
    (start,) = book.history
    assert (start.run, start.cold, start.seconds, start.steps["gpu"]) == (UID, True, 480, 60)
    assert len([effect for effect in book.effects if isinstance(effect, KeepStart)]) == 1
    before = card(book)

    book.restart()
    book.tell(HistoryRead(written(book.history)))
    book.see(workflow_json(phase="Running", nodes=[WARMED, TESTS]))
    assert card(book) == before
    tests = node("compile-and-test", "Succeeded", outputs=outputs(green()))
    book.see(workflow_json(phase="Succeeded", nodes=[WARMED, tests]))

    assert "Warm-up 8 min: node 2 min, ready 1 min, GPU 1 min, image 3 min, start 1 min" in card(book)


def test_who_does_not_hold_the_lease_writes_nothing() -> None:
    """It looks on, so that it can answer and take over."""
    book = waiting()
    book.tell(LeaseLost())
    book.effects.clear()
    started(book)

    assert [] == book.effects
    assert book.state.runs[UID].warmup is not None
    assert book.state.runs[UID].warmup.start is not None


def test_a_history_that_can_not_be_written_is_tried_again_at_the_next_sweep() -> None:
    """And not before; the run goes on meanwhile."""
    book = waiting()

    def answer(effect: Effect) -> EffectDone | EffectFailed | None:
        if isinstance(effect, KeepStart):
            return EffectFailed(effect.id, Trouble.REFUSED, "forbidden")
        return Playbook.answer(book, effect)

    book.answer = answer  # type: ignore[method-assign]
    started(book)
    saw(book, PodSeen(mine("test", placed="10:07", started="10:09")))
    assert len([effect for effect in book.effects if isinstance(effect, KeepStart)]) == 1
    book.play(book.tell(Swept()))

    assert len([effect for effect in book.effects if isinstance(effect, KeepStart)]) == 2
    assert "Warm-up 8 min" in card(book)


def test_the_event_of_the_image_may_come_last() -> None:
    """It is waited for a moment before the start is remembered; without it the step has no length."""
    for late in (True, False):
        book = waiting()
        saw(book, NodeSeen(new_node(1)))
        saw(book, PodSeen(mine(placed="10:05")))
        saw(book, PodSeen(mine(), gone=True))
        book.see(workflow_json(phase="Running", nodes=[WARMED, TESTS]))
        book.now = minute(9.1)
        saw(book, PodSeen(mine("test", placed="10:07", started="10:09")))
        assert () == book.history
        image = pulled("test", "10:08")
        assert image is not None
        book.now = minute(9.2 if late else 9.6)
        saw(book, NoteSeen(image) if late else PodSeen(mine("test", placed="10:07", started="10:09")))
        (start,) = book.history
        assert start.steps.get("image") == (180 if late else None)


def test_a_run_that_ends_at_once_is_remembered_as_well() -> None:
    """Nothing more will come of it."""
    book = waiting()
    saw(book, NodeSeen(new_node(1)))
    saw(book, PodSeen(mine(placed="10:05")))
    saw(book, PodSeen(mine(), gone=True))
    book.now = minute(9.1)
    book.see(workflow_json(phase="Running", nodes=[WARMED, TESTS]))
    saw(book, PodSeen(mine("test", placed="10:07", started="10:09")))
    assert () == book.history
    tests = node("compile-and-test", "Succeeded", outputs=outputs(green()))
    book.see(workflow_json(phase="Succeeded", nodes=[WARMED, tests]))

    assert 1 == len(book.history)


def test_nothing_is_concluded_before_everything_was_listed() -> None:
    """After a restart the pods may come before the nodes."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=[WAITS]))
    for seen in (PodsListed((mine(placed="10:05"),), everywhere=True), NotesListed((), everywhere=True)):
        saw(book, seen)
    assert book.state.runs[UID].warmup is None
    saw(book, NodesListed((new_node(1),)))

    assert "Warm-up: ✅ node 2 min · ✅ ready 1 min · ✅ GPU 1 min · ⏳ image" in card(book)


def test_what_was_learned_is_not_forgotten_by_an_older_text() -> None:
    """A watch may show an older state after our own write."""
    book = Playbook()
    book.tell(HistoryRead(written(KNOWN)))
    book.tell(HistoryRead(written(KNOWN[:1])))
    book.tell(HistoryRead("nonsense"))

    assert {start.key for start in KNOWN} == set(book.state.history.starts)


def test_a_step_that_lasts_too_long_shows_red_without_any_event() -> None:
    """One edit, at the moment when it is late."""
    book = waiting()
    late = book.wakes[KEY]
    assert "⏳ scale-up" in card(book)
    book.now = late
    book.play(book.tell(Woke(KEY)))
    book.now += 10
    book.play(book.tell(Woke(KEY)))

    assert "⚠️ scale-up since 10:01" in card(book)
    assert render_card(book.posts[f"post-{UID}:1"].card, SETTINGS).color == "#c9372c"


def test_the_provider_makes_no_node() -> None:
    """By the autoscaler's own account: said on the card as long as it holds, and when the run is given up."""
    book = waiting(replace(ONE_POOL, warmup_late_seconds=1e6))
    uuid = ONE_POOL.pools[0].groups[0]
    saw(book, StatusSeen(status_text(group(uuid, error=("OUT_OF_STOCK", "no H100 left in fr-par-2")))))
    text = "⚠️ No node is coming: the provider has none in stock (`OUT_OF_STOCK`: no H100 left in fr-par-2)\nWarm-up: "
    assert text in card(book)
    assert "no node is coming: the provider has none" in ask(book, "warmup")
    saw(book, StatusSeen(status_text(group(uuid))))
    assert "No node is coming" not in card(book)
    failed = event(
        "FailedToScaleUpGroup",
        "status",
        f"Scale-up failed for group {uuid}: Quota exceeded",
        kind="ConfigMap",
        when="2026-03-02T10:06:00Z",
    )
    saw(book, NoteSeen(failed))
    assert "⚠️ No node is coming: the provider's quota is used up (Quota exceeded)\n" in card(book)

    book.play(end_of_waiting(book))
    stopped = node("gpu-warmup", "Failed", message="Stopped with strategy 'Stop'")
    book.see(workflow_json(phase="Failed", nodes=[stopped], spec={"shutdown": "Stop"}))
    assert "The last word was: Quota exceeded" in card(book)


def test_between_two_tries_the_reason_stays() -> None:
    """The status names none while the next try is under way, and that is when the card may be written."""
    book = waiting(replace(ONE_POOL, warmup_late_seconds=1e6))
    uuid = ONE_POOL.pools[0].groups[0]
    backoff = group(uuid, error=("OUT_OF_STOCK", "no H100 left"), lastTransitionTime="2026-03-02T10:03:00Z")
    reason = "the provider has none in stock (`OUT_OF_STOCK`: no H100 left)"
    for _ in range(2):
        saw(book, StatusSeen(status_text(backoff)))
        assert f"⚠️ No node is coming: {reason}\n" in card(book)
        saw(book, StatusSeen(status_text(group(uuid, status="InProgress"))))
        assert f"⚠️ The last try brought no node: {reason}\n" in card(book)
    assert f"the last try brought no node: {reason}" in ask(book, "warmup")
    refusal = "pod didn't trigger scale-up: 1 max node group size reached"
    saw(book, NoteSeen(event("NotTriggerScaleUp", "warm", refusal, when="2026-03-02T10:04:00Z")))
    assert "⚠️ No node is coming: " in card(book)
    assert "The last try" not in card(book)

    book.play(end_of_waiting(book))
    stopped = node("gpu-warmup", "Failed", message="Stopped with strategy 'Stop'")
    book.see(workflow_json(phase="Failed", nodes=[stopped], spec={"shutdown": "Stop"}))
    assert "The last word was: OUT\\_OF\\_STOCK: no H100 left" in card(book)


def test_a_node_that_comes_ends_what_was_said_of_the_try_before() -> None:
    """The next try was better."""
    book = waiting(replace(ONE_POOL, warmup_late_seconds=1e6))
    uuid = ONE_POOL.pools[0].groups[0]
    backoff = group(uuid, error=("OUT_OF_STOCK", "none"), lastTransitionTime="2026-03-02T10:02:00Z")
    saw(book, StatusSeen(status_text(backoff)))
    saw(book, StatusSeen(status_text(group(uuid, status="InProgress"))))
    assert "The last try" in card(book)
    saw(book, NodeSeen(new_node(0, "")))

    assert "The last try" not in card(book)
    assert "⏳ ready" in card(book)


def test_without_a_status_only_what_failed_while_it_waits_counts() -> None:
    """Nothing says when an Event's error is over: that of yesterday's run is not this one's."""
    book = waiting(replace(ONE_POOL, warmup_late_seconds=1e6))
    words = "Failed adding 1 nodes to group {} due to OutOfResource.OUT_OF_STOCK; source errors: none"
    text = words.format(ONE_POOL.pools[0].groups[0])
    for when, said in (("2026-03-02T09:40:00Z", False), ("2026-03-02T10:05:00Z", True)):
        saw(book, NoteSeen(event("ScaleUpFailed", "status", text, kind="ConfigMap", when=when)))
        assert said is ("⚠️ No node is coming: the provider has none in stock" in card(book))
    saw(book, NodeSeen(replace(new_node(0, ""), created=NOW)))
    assert "No node is coming" not in card(book)


def test_what_the_autoscaler_refused_is_its_last_word() -> None:
    """It says more than the scheduler."""
    book = waiting(replace(ONE_POOL, warmup_late_seconds=1e6))
    refusal = "pod didn't trigger scale-up: 1 max node group size reached"
    saw(book, NoteSeen(event("NotTriggerScaleUp", "warm", refusal, when="2026-03-02T10:02:00Z")))
    book.play(end_of_waiting(book))
    stopped = node("gpu-warmup", "Failed", message="Stopped with strategy 'Stop'")
    book.see(workflow_json(phase="Failed", nodes=[stopped], spec={"shutdown": "Stop"}))

    assert "The last word was: " in card(book)
    assert "No node of the kind" not in card(book)


# the limit


def end_of_waiting(book: Playbook) -> list[Effect]:
    """The limit is reached; what is asked for then."""
    book.now = LIMIT
    return book.tell(Woke(KEY))


def test_at_its_limit_a_run_is_given_up() -> None:
    """One patch stops it and says why; it ends as one that never got a GPU."""
    book = waiting()
    assert "I wait until 10:41 UTC, then give up" in card(book)
    book.play(end_of_waiting(book))

    assert book.read(RUN).spec.shutdown == "Stop"
    stopped = node("gpu-warmup", "Failed", message="Stopped with strategy 'Stop'")
    body = workflow_json(phase="Failed", nodes=[stopped], spec={"shutdown": "Stop"})
    book.see(body)
    assert ["@olga 💤 k7m2 never got an H100, so no test ran"] == book.notices()
    assert "The autoscaler asked for no node\nThe last word was: No node of the kind it asks for is up" in card(book)
    assert not book.has_finalizer()


def test_where_its_pods_can_not_be_seen_it_is_given_up_as_well() -> None:
    """At which step it was is not known then."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=[WAITS]))
    book.play(end_of_waiting(book))
    stopped = node("gpu-warmup", "Failed", message="Stopped with strategy 'Stop'")
    book.see(workflow_json(phase="Failed", nodes=[stopped], spec={"shutdown": "Stop"}))

    assert "No test ran.\nThe last word was: No node of the kind it asks for is up" in card(book)


def test_it_is_not_given_up_twice_and_not_once_it_has_a_place() -> None:
    """Stopped is stopped; what pulls its image waits for no GPU."""
    book = waiting()
    book.play(end_of_waiting(book))
    book.effects.clear()
    book.now += 100
    book.play(book.tell(Woke(KEY)))
    assert [] == [e for e in book.effects if isinstance(e, PatchWorkflow)]

    pulling = Playbook()
    pulling.see(workflow_json(phase="Running", nodes=[node("gpu-warmup", "Pending", message="ContainerCreating")]))
    pulling.effects.clear()
    pulling.now = LIMIT + 100
    pulling.play(pulling.tell(Woke(KEY)))
    assert [] == [e for e in pulling.effects if isinstance(e, PatchWorkflow)]


def test_a_click_that_came_first_is_kept() -> None:
    """The patch finds another wish than it knew, loses, and looks again."""
    book = waiting(PATIENT)
    (give_up,) = [e for e in end_of_waiting(book) if isinstance(e, PatchWorkflow)]
    assert give_up.purpose is Purpose.GIVE_UP
    body = book.cluster[RUN]
    wish = {"attempt": "2026-03-02T10:00:00Z", "until": MORNING, "user_id": "ben", "user_name": "ben", "at": NOW}
    body["metadata"]["annotations"]["gputest.bot/wait"] = msgspec.json.encode(wish).decode()
    book.write(body)
    book.play([give_up])

    assert not book.read(RUN).spec.shutdown
    assert "I wait until Tue 07:00 UTC, as ben asked, then give up" in card(book)
    assert book.wakes[KEY] == MORNING


def test_just_as_it_was_given_up_it_got_its_gpu() -> None:
    """Neither never got one, nor cancelled by somebody."""
    book = waiting()
    book.play(end_of_waiting(book))
    tests = node("compile-and-test", "Failed", message="workflow shutdown with strategy:  Stop")
    book.see(workflow_json(phase="Failed", nodes=[WARMED, tests], spec={"shutdown": "Stop"}))

    assert "Its time to wait for a GPU was over just as it got one" in card(book)


# the button


def click(book: Playbook, who: str = "anna", request: str = "c1", **more: Any) -> list[Effect]:
    """Somebody clicks the button that lets it wait longer."""
    effects = [e for e in book.effects if isinstance(e, PostCard | EditCard) and e.card.offer]
    (button, _) = buttons_of(effects[-1].card, book.settings)
    signed = msgspec.structs.replace(button.signed, channel="CHANNEL", **more)
    return book.tell(Clicked(request, signed, who, who, "CHANNEL", "T"))


def heard(book: Playbook, effects: list[Effect]) -> str:
    """The answer to a click, after whatever had to be done."""
    book.effects.clear()
    book.effects += effects
    book.play(effects)
    (answer,) = [e for e in book.effects if isinstance(e, Answer)]
    return answer.text


def test_it_waits_until_the_morning() -> None:
    """The card says until when and who asked; the button is gone; at the old limit nothing happens."""
    book = waiting()
    assert heard(book, click(book)) == "⏳ **k7m2** waits for a GPU until Tue 07:00 UTC."
    book.now += 10
    book.play(book.tell(WorkflowChanged(book.read(RUN))))
    assert "I wait until Tue 07:00 UTC, as anna asked, then give up" in card(book)
    assert ["Cancel"] == [b.label for b in buttons_of(book.posts[f"post-{UID}:1"].card, SETTINGS)]

    book.play(end_of_waiting(book))
    assert not book.read(RUN).spec.shutdown
    book.now = MORNING
    book.play(book.tell(Woke(KEY)))
    assert book.read(RUN).spec.shutdown == "Stop"


def test_the_same_click_again_does_nothing_more() -> None:
    """Delivered twice, or clicked by another on a card that has not changed yet."""
    book = waiting()
    first = click(book)
    text = heard(book, first)
    version = book.version
    assert heard(book, click_again(book, "anna", "c1")) == text
    assert heard(book, click_again(book, "ben", "c2")) == (
        "⏳ **k7m2** waits until Tue 07:00 UTC already: anna asked for it."
    )
    longer = read_longer(book.read(RUN))
    assert version == book.version
    assert longer is not None
    assert longer.user_name == "anna"


def click_again(book: Playbook, who: str, request: str, **more: Any) -> list[Effect]:
    """The button as it was before anybody clicked."""
    card = replace(book.posts[f"post-{UID}:1"].card, offer=MORNING, stage=Stage.WAITING, outcome=None)
    (button, _) = buttons_of(card, book.settings)
    signed = msgspec.structs.replace(button.signed, channel="CHANNEL", **more)
    return book.tell(Clicked(request, signed, who, who, "CHANNEL", "T"))


def test_two_clicks_at_the_same_moment() -> None:
    """The second finds the wish of the first, and both are told the same."""
    book = waiting()
    (first,) = click(book, "anna", "c1")
    (second,) = click(book, "ben", "c2")

    assert heard(book, [first]) == heard(book, [second]) == "⏳ **k7m2** waits for a GPU until Tue 07:00 UTC."


def test_who_may_let_it_wait_longer() -> None:
    """Whoever may start runs; that is asked at the click."""
    looks = replace(SETTINGS, roles=(Role("team", ("ian",), may=(Right.RUN,), user_ids=("ian",)), Role("all")))
    book = waiting(looks)

    assert heard(book, click(book, "vera")) == "🤔 You may not start runs here. Ask ian. Nothing was done."


def test_clicks_that_come_too_late() -> None:
    """It has a GPU, or the time that the button offers is over."""
    book = waiting()
    assert heard(book, click_again(book, "anna", "c1", until=NOW - 1)) == (
        "🤔 That time is over; the card has the limit that holds now. Nothing was done."
    )
    book.see(workflow_json(phase="Running", nodes=[WARMED, TESTS]))
    assert heard(book, click_again(book, "anna", "c2")) == "🤔 **k7m2** waits for no GPU any more. Nothing was done."


def test_a_click_that_the_cluster_does_not_take() -> None:
    """Refused is said; what has got its GPU meanwhile is no failure."""
    book = waiting()
    (patch,) = click(book, "anna", "c1")
    assert isinstance(patch, PatchWorkflow)
    (answer,) = book.tell(EffectFailed(patch.id, Trouble.REFUSED, "no"))
    assert isinstance(answer, Answer)
    assert answer.text == "⚠️ I could not let `k7m2` wait longer: no. Its card shows how it is."

    (patch,) = click(book, "anna", "c2")
    assert isinstance(patch, PatchWorkflow)
    latest = book.write(workflow_json(phase="Running", nodes=[WARMED, TESTS]))
    (answer,) = book.tell(EffectFailed(patch.id, Trouble.CONFLICT, "changed", latest=latest))
    assert isinstance(answer, Answer)
    assert answer.text == "It waits for no GPU any more; its card shows how it is."


# /gpu warmup


def ask(book: Playbook, text: str) -> str:
    """What somebody reads who types it."""
    (answer,) = book.tell(CommandTyped(f"r{len(book.effects)}", "gpu", text, "U1", "anna", "CHANNEL"))
    assert isinstance(answer, Answer)
    return answer.text


def test_the_way_and_what_is_usual() -> None:
    """Every step of each run, and the times of each pool; also from a bot that does not lead."""
    book = Playbook(ONE_POOL)
    assert "⏳ Just started: not everything is seen yet.\n" in ask(book, "warmup")
    for seen in (NodesListed(()), PodsListed((), everywhere=True), NotesListed((), everywhere=True)):
        book.tell(PoolsSeen(seen))
    assert ask(book, "warmup") == (
        "**Warm-up, 10:06 UTC**\nNo run is on its way to a GPU.\nUsual, by the last starts of each pool:\n"
        "  - **H100**: no start seen yet"
    )
    for source in (Source.NODES, Source.EVENTS):
        book.tell(PoolsSeen(SourceHidden(source)))
    assert "👁 Not visible here, and left out: the steps of nodes and events.\n" in ask(book, "warmup")
    book.tell(PoolsSeen(SourceHidden(Source.PODS)))
    assert "👁 Pods are not visible here: how far a run is on its way to a GPU I can't tell.\n" in ask(book, "warmup")
    book = waiting(ONE_POOL)
    book.tell(HistoryRead(written(KNOWN)))
    saw(book, NodeSeen(new_node(0)))
    book.now = minute(4.5)

    assert ask(book, "warm-up") == (
        "**Warm-up, 10:04 UTC**\n"
        "⏳ **k7m2** · H100 · asked 09:59\n"
        "  - ✅ its turn: 1:02 min\n"
        "  - ✅ the node registers: 2 min\n"
        "  - ✅ the node is ready: 1 min\n"
        "  - ⏳ waits since 10:04 for the node's GPU to be usable (usual 1 min) · its node is ready, and its GPU is not there yet\n"
        "  - ⚪ the test image is there (usual 50 s)\n"
        "  - ⚪ the tests begin (usual 2 s)\n"
        "  - starts ≈ 10:05\n\n"
        "Usual, by the last starts of each pool:\n"
        "  - **H100**: cold 6:40 min (scale-up 10 s, node 2:30 min, ready 20 s, GPU 1 min, image 50 s, start 2 s, 3 starts)"
    )


def test_how_long_a_start_would_take_now() -> None:
    """Beside each pool in `/gpu` and `/gpu pools`, and where all are cold."""
    book = Playbook(ONE_POOL)
    for seen in (NodesListed(()), PodsListed((), everywhere=True), NotesListed((), everywhere=True)):
        book.tell(PoolsSeen(seen))
    book.tell(HistoryRead(written(KNOWN)))
    assert "⚪ All pools are cold, and nobody waits. H100 ≈ 6:40 min to start." in ask(book, "")
    assert "⚪ **H100** 0/1 node · cold · ≈ 6:40 min to start" in ask(book, "pools")

    warm = [msgspec.structs.replace(start, run=f"w{n}", cold=False, seconds=25) for n, start in enumerate(KNOWN)]
    book.tell(HistoryRead(written(warm)))
    book.tell(PoolsSeen(NodesListed((new_node(1),))))
    assert "warm, idle · ≈ 25 s to start" in ask(book, "") or "warm · ≈ 25 s to start" in ask(book, "")
    book.tell(PoolsSeen(PodsListed((mine(placed="10:05"),), everywhere=True)))
    assert "to start" not in ask(book, "")
