"""The way to a GPU, step by step, from what Argo, the pods, the nodes and the Events say."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.history import History, Start
from bot.core.kube import KubeEvent
from bot.core.pools import Pools, observe
from bot.core.sightings import (
    NodeSeen,
    NodesListed,
    Note,
    NoteSeen,
    PodSeen,
    PodsListed,
    Source,
    SourceHidden,
    note,
)
from bot.core.warmup import Leg, Step, Warmup, Way, finished, follow, late_at, remembered, way
from bot.core.workflow import Workflow
from tests.core.pool_phrases import H100, at, event, held, node, pod
from tests.phrases import NOW, SETTINGS, workflow
from tests.phrases import node as step

RUN = "gpu-test-k7m2"
FIRST = "2026-03-02T10:00:00Z"
SCHEDULER = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
GROWN = "pod triggered scale-up: [{7be2f9d4 0->1 (max: 2)}]"
TEN = NOW - 360  # 10:00; NOW is 10:06


def minute(minutes: float) -> float:
    """A moment after ten o'clock, in Unix seconds."""
    return TEN + 60 * minutes


def run(*nodes: dict[str, Any], **more: Any) -> Workflow:
    """The run, with Argo's nodes; it began at ten and was asked for two seconds before."""
    return workflow(RUN, phase="Running", nodes=list(nodes), **more)


WAITS = step("gpu-warmup", "Pending", message=f"Unschedulable: {SCHEDULER}")
PULLS = step("gpu-warmup", "Pending", message="ContainerCreating")
WARMED = step("gpu-warmup", "Succeeded")
TEST_PULLS = step("compile-and-test", "Pending", message="ContainerCreating")
TEST_WAITS = step("compile-and-test", "Pending", message="Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.")
TESTS = step("compile-and-test", "Running")


def mine(name: str = "warm", placed: str = "", started: str = "", **more: Any) -> Any:
    """A pod of the run; `placed` and `started` as times of the day."""
    status: dict[str, Any] = {}
    if placed:
        more["node"] = more.get("node", "h100-a")
        condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at(placed)}
        status["conditions"] = [condition]
    if started:
        status["phase"] = "Running"
        status["containerStatuses"] = [
            {"name": "wait", "state": {"running": {"startedAt": at("09:00")}}},
            {"name": "main", "state": {"running": {"startedAt": at(started)}}},
        ]
    message = {} if placed else {"message": SCHEDULER}
    return pod(name, workflow=RUN, created=more.pop("created", at("10:01")), status=status, **message, **more)


def new_node(gpus: int = 1, ready: str = "10:04", **more: Any) -> Any:
    """A node that came at 10:03."""
    created = at(more.pop("created", "10:03"))
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    if ready:
        condition["lastTransitionTime"] = at(ready)
    return replace(node(gpus=gpus, conditions=[condition], **more), created=TEN + _seconds(created))


def _seconds(text: str) -> float:
    hours, minutes = int(text[11:13]), int(text[14:16])
    return (hours - 10) * 3600 + minutes * 60


def legs(warmup: Warmup, history: History | None = None, now: float = NOW) -> str:
    """The steps in short: done with their length, the current one in brackets, the others with a dot."""
    shown = way(warmup, history or History(), SETTINGS, now).legs
    words = []
    for leg in shown:
        if leg.current:
            words.append(f"[{leg.step}]" + ("!" if leg.late else ""))
        elif leg.begin is None:
            words.append(f".{leg.step}")
        else:
            words.append(f"{leg.step} {'?' if leg.seconds is None else leg.seconds}")
    return ", ".join(words)


def look(workflow: Workflow, pools: Pools, before: Warmup | None = None) -> Warmup:
    """One look."""
    return follow(workflow, pools, before, SETTINGS)


def pulled(name: str, clock: str, path: str | None = "spec.containers{main}") -> Note | None:
    """The kubelet's Event of an image."""
    about = {"kind": "Pod", "name": name, "uid": f"uid-{name}", "fieldPath": path}
    body = {"metadata": {"name": "e"}, "reason": "Pulled", "involvedObject": about, "lastTimestamp": at(clock)}
    return note(msgspec.json.decode(json.dumps(body), type=KubeEvent))


def test_a_cold_start_from_its_first_step_to_its_last() -> None:
    """Queue, scale-up, node, ready, GPU, place, image, start: each ends when the cluster says so."""
    pools = held()
    seen = follow(run(), pools, None, SETTINGS, ("j4t9",))
    assert legs(seen) == "[queue], .place, .image, .start"

    observe(pools, PodSeen(mine()), NOW)
    seen = look(run(WAITS), pools, seen)
    assert legs(seen) == "queue 62, [scale_up], .node, .ready, .gpu, .place, .image, .start"
    observe(pools, NoteSeen(event("TriggeredScaleUp", "warm", GROWN, when=at("10:02"))), NOW)
    seen = look(run(WAITS), pools, seen)
    assert legs(seen) == "queue 62, scale_up 60, [node], .ready, .gpu, .place, .image, .start"
    observe(pools, NodeSeen(new_node(0, "")), NOW)
    seen = look(run(WAITS), pools, seen)
    assert legs(seen) == "queue 62, scale_up 60, node 60, [ready], .gpu, .place, .image, .start"
    observe(pools, NodeSeen(new_node(0)), NOW)
    seen = look(run(WAITS), pools, seen)
    assert legs(seen) == "queue 62, scale_up 60, node 60, ready 60, [gpu], .place, .image, .start"
    observe(pools, NodeSeen(new_node(1)), minute(5))
    seen = look(run(WAITS), pools, seen)
    assert legs(seen) == "queue 62, scale_up 60, node 60, ready 60, gpu 60, [place], .image, .start"
    observe(pools, PodSeen(mine(placed="10:06")), NOW)
    seen = look(run(PULLS), pools, seen)
    assert legs(seen) == "queue 62, scale_up 60, node 60, ready 60, gpu 60, place 60, [image], .start"

    observe(pools, PodSeen(mine(), gone=True), NOW)
    seen = look(run(WARMED), pools, seen)
    observe(pools, PodSeen(mine("test", placed="10:07", created=at("10:07"))), NOW)
    seen = look(run(WARMED, TEST_PULLS), pools, seen)
    assert legs(seen) == "queue 62, scale_up 60, node 60, ready 60, gpu 60, place 60, [image], .start"
    image = pulled("test", "10:08")
    assert image is not None
    observe(pools, NoteSeen(image), NOW)
    seen = look(run(WARMED, TEST_PULLS), pools, seen)
    assert legs(seen).endswith("image 120, [start]")
    observe(pools, PodSeen(mine("test", placed="10:07", started="10:09", created=at("10:07"))), NOW)
    seen = look(run(WARMED, TESTS), pools, seen)

    assert legs(seen) == "queue 62, scale_up 60, node 60, ready 60, gpu 60, place 60, image 120, start 60"
    assert seen.behind == ("j4t9",)
    assert (True, 480) == (way(seen, History(), SETTINGS, NOW).cold, way(seen, History(), SETTINGS, NOW).seconds)
    start = finished(seen, "uid")
    assert start is not None
    assert (start.pool, start.cold, start.at, start.seconds, start.steps["gpu"]) == (
        H100,
        True,
        int(minute(9)),
        480,
        60,
    )
    assert look(run(WARMED, TESTS), held(), seen) is seen
    unseen = replace(seen, image=None)
    assert look(run(WARMED, TESTS), held(), unseen) == unseen


def test_a_warm_start_has_no_steps_of_a_node() -> None:
    """The node was there before it asked."""
    old = replace(node(), created=minute(-60), ready_at=minute(-59))
    pools = held((old,), (mine(placed="10:02"),))

    seen = look(run(PULLS), pools)

    assert legs(seen) == "queue 62, place 60, [image], .start"
    assert not seen.cold


def test_a_node_that_came_before_but_was_ready_later() -> None:
    """Another run had asked for it: what is left of its way counts, and no more."""
    early = new_node(1, "10:04", created="09:59")
    pools = held((early,), (mine(placed="10:05"),))

    seen = look(run(PULLS), pools)

    assert legs(seen) == "queue 62, ready 180, gpu 60, place 0, [image], .start"


def test_a_pool_that_is_in_use_waits_for_a_place() -> None:
    """No node comes, and none is needed: somebody else has the GPU."""
    busy = replace(node(), created=minute(-60), ready_at=minute(-59))
    pools = held((busy,), (pod("other", node="h100-a"), mine()))

    assert legs(look(run(WAITS), pools)) == "queue 62, [place], .image, .start"


def test_where_nodes_and_events_are_hidden() -> None:
    """Only what can be seen is a step; a scale-up that was seen makes it a cold start."""
    blind = held((), (mine(),), hidden=(Source.NODES, Source.EVENTS))
    assert legs(look(run(WAITS), blind)) == "queue 62, [place], .image, .start"

    half = held((), (mine(),), (event("TriggeredScaleUp", "warm", GROWN, when=at("10:02")),), hidden=(Source.NODES,))
    seen = look(run(WAITS), half)
    assert legs(seen) == "queue 62, scale_up 60, [place], .image, .start"
    observe(half, PodSeen(mine(placed="10:05")), NOW)
    assert legs(look(run(PULLS), half, seen)) == "queue 62, scale_up 60, place 180, [image], .start"


def test_a_scale_up_that_nobody_told_of() -> None:
    """A managed autoscaler may write no Event: its node shows all the same."""
    pools = held((new_node(0),), (mine(),))

    assert legs(look(run(WAITS), pools)) == "queue 62, node 120, ready 60, [gpu], .place, .image, .start"


def test_what_argo_says_before_the_pods_do() -> None:
    """Two watches are not in step: a step that must be over is over, its length is not known."""
    pools = held((), ())

    assert legs(look(run(PULLS), pools)) == "queue 62, place ?, [image], .start"
    assert legs(look(run(WAITS), pools)) == "queue 62, [place], .image, .start"
    cold = replace(look(run(WAITS), held((), (mine(),))), placed=True)
    assert legs(cold).startswith("queue 62, scale_up ?, node ?, ready ?, gpu ?, place ?, [image]")


def test_a_restart_in_the_middle() -> None:
    """Everything but the moment of the GPU can be read anew; that moment is the pod's at the latest."""
    pools = Pools()
    observe(pools, NodesListed((new_node(1),)), NOW)
    observe(pools, PodsListed((mine(placed="10:05"),), everywhere=True), NOW)
    assert legs(look(run(PULLS), pools)) == "queue 62, node 120, ready 60, gpu 60, place 0, [image], .start"

    observe(pools, PodsListed((mine("test", placed="10:07", started="10:09"),), everywhere=True), NOW)
    late = look(run(WARMED, TESTS), pools)
    assert legs(late) == "queue 62, node 120, ready 60, gpu 180, place 0, image ?, start 120"
    observe(pools, PodsListed((mine(),), everywhere=True), NOW)
    assert legs(look(run(WAITS), pools)).endswith("ready 60, gpu 0, [place], .image, .start")


def test_the_furthest_of_two_nodes_that_come() -> None:
    """Of those made for it; one that is silent or of another pool is not on its way."""
    far, near = new_node(0, name="b"), new_node(0, "", name="a")
    silent = node("c", ready="Unknown")
    other = node("d", "ci-compile", ready="False")
    pools = held((far, near, silent, other), (mine(),))

    assert legs(look(run(WAITS), pools)).startswith("queue 62, node 120, ready 60, [gpu]")


def test_it_loses_its_place_between_its_two_pods() -> None:
    """The test pod waits again: since then, for a place; what was before stays."""
    pools = held((new_node(1),), (mine(placed="10:05"),))
    seen = look(run(PULLS), pools)
    observe(pools, PodSeen(mine(), gone=True), NOW)
    observe(pools, PodSeen(mine("test", created=at("10:06"))), NOW)

    seen = look(run(WARMED, TEST_WAITS), pools, seen)
    shown = way(seen, History(), SETTINGS, NOW)
    assert legs(seen) == "queue 62, node 120, ready 60, gpu 60, [place], .image, .start"
    assert shown.current == Leg(Step.PLACE, NOW, None, current=True)
    observe(pools, PodSeen(mine("test", placed="10:07", created=at("10:06"))), NOW)
    seen = look(run(WARMED, TEST_PULLS), pools, seen)

    assert legs(seen) == "queue 62, node 120, ready 60, gpu 60, place 0, [image], .start"


def test_what_the_autoscaler_refuses_and_what_the_kubelet_complains_of() -> None:
    """The last word counts; once the pod has a node, neither matters any more."""
    pools = held((), (mine(),))
    observe(pools, NoteSeen(event("TriggeredScaleUp", "warm", GROWN, when=at("10:02"))), NOW)
    refusal = "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
    observe(pools, NoteSeen(event("NotTriggerScaleUp", "warm", refusal, when=at("10:03"))), NOW)
    seen = look(run(WAITS), pools)
    assert seen.refused == refusal

    waiting = {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    broken = mine(placed="10:04")
    observe(pools, PodSeen(replace(broken, trouble="ImagePullBackOff: no such image")), NOW)
    assert waiting
    seen = look(run(PULLS), pools, seen)
    assert (seen.refused, seen.trouble) == ("", "ImagePullBackOff: no such image")
    observe(pools, PodSeen(broken, gone=True), NOW)
    assert look(run(PULLS), pools, seen).trouble == ""


def test_of_several_scale_ups_the_first_ends_the_step() -> None:
    """Each that fails is followed by another: what waits for a node is late all the same."""
    pools = held((), (mine(),))
    seen = None
    for clock in ("10:02", "10:08", "10:13"):
        observe(pools, NoteSeen(event("TriggeredScaleUp", "warm", GROWN, when=at(clock))), NOW)
        seen = look(run(WAITS), pools, seen)
        assert legs(seen).startswith("queue 62, scale_up 60, [node],")
    assert seen is not None
    assert legs(seen, now=minute(13)).startswith("queue 62, scale_up 60, [node]!,")


def test_the_first_scale_up_is_known_after_a_restart() -> None:
    """An Event that came again says when it came first; of several Events the oldest counts, in whatever order."""
    about = {"kind": "Pod", "name": "warm", "uid": "uid-warm"}

    def grown(**times: str) -> Note:
        body = {"metadata": {"name": "e"}, "reason": "TriggeredScaleUp", "message": GROWN, "involvedObject": about}
        found = note(msgspec.json.decode(json.dumps(body | times), type=KubeEvent))
        assert found is not None
        return found

    again = grown(firstTimestamp=at("10:02"), lastTimestamp=at("10:13"))
    series = grown(eventTime=at("10:03"), lastTimestamp=at("10:12"))
    timeless = grown()
    for notes in ((again,), (series, again), (again, series), (timeless, again)):
        assert look(run(WAITS), held((), (mine(),), notes)).scale_up == minute(2)
    assert look(run(WAITS), held((), (mine(),), (timeless,))).scale_up is None


def test_a_retry_begins_anew_and_the_queue_is_kept() -> None:
    """The attempt gets its name when it leaves the queue; another one has another way."""
    queued = follow(workflow(RUN), held(), None, SETTINGS, ("j4t9", "m3x8"))
    assert queued.attempt == ""
    seen = look(run(WAITS), held((), (mine(),)), queued)
    assert ("j4t9", "m3x8") == seen.behind
    again = look(run(WAITS, startedAt="2026-03-02T11:00:00Z"), held((), (mine(),)), seen)
    assert (again.behind, again.attempt) == ((), "2026-03-02T11:00:00Z")


def test_a_template_without_a_warm_up() -> None:
    """The test pod's own way."""
    pools = held((new_node(1),), (mine("test", placed="10:05", started="10:06"),))

    assert legs(look(run(TESTS), pools)) == "queue 62, node 120, ready 60, gpu 60, place 0, image ?, start 60"


KNOWN = [
    Start(
        f"u{n}",
        FIRST,
        H100,
        True,
        n,
        400,
        {"scale_up": 10, "node": 150, "ready": 20, "gpu": 60, "place": 0, "image": 50, "start": 2},
    )
    for n in range(3)
]
HISTORY = History({start.key: start for start in KNOWN})


def test_when_its_tests_begin_if_all_goes_as_usual() -> None:
    """From the end of the last step on; not once that time is over, nor where something is not known."""
    pools = held((new_node(0),), (mine(),))
    seen = look(run(WAITS), pools)
    assert way(seen, HISTORY, SETTINGS, NOW).starts is None  # 60 + 0 + 50 + 2 from 10:04 on is over
    assert way(seen, HISTORY, SETTINGS, minute(5)).starts == minute(4) + 112
    assert way(seen, History(), SETTINGS, minute(5)).starts is None
    queued = follow(run(), held(), None, SETTINGS)
    assert way(queued, HISTORY, SETTINGS, NOW).starts is None


def test_a_step_is_late_after_twice_its_usual_length() -> None:
    """And not before a while; the queue is never late; what is late stays so."""
    pools = held((new_node(0),), (mine(),))
    seen = look(run(WAITS), pools)
    shown = way(seen, HISTORY, SETTINGS, NOW)
    assert late_at(shown, SETTINGS) == minute(14)
    slow = replace(SETTINGS, warmup_late_seconds=30.0)
    assert late_at(way(seen, HISTORY, slow, minute(5)), slow) == minute(6)
    late = way(seen, HISTORY, slow, minute(6))
    assert (late.late, late_at(late, slow)) == (True, None)
    assert late_at(way(follow(run(), held(), None, SETTINGS), HISTORY, SETTINGS, NOW), SETTINGS) is None
    done = look(run(TESTS), held((), (mine("test", placed="10:05", started="10:06"),)))
    assert late_at(way(done, HISTORY, SETTINGS, NOW), SETTINGS) is None


def test_what_is_remembered_of_a_start() -> None:
    """Lengths alone: enough for one line on a card after a restart."""
    shown = remembered(KNOWN[0])

    assert (400, True) == (shown.seconds, shown.cold)
    assert ["scale_up", "node", "ready", "gpu", "place", "image", "start"] == [leg.step for leg in shown.legs]
    assert [10, 150, 20, 60, 0, 50, 2] == [leg.seconds for leg in shown.legs]
    assert shown.current is None


def test_a_start_whose_length_is_not_known_is_not_remembered() -> None:
    """It has not begun, or nobody saw when."""
    assert finished(look(run(WAITS), held((), (mine(),))), "uid") is None
    assert finished(Warmup(FIRST, H100, start=NOW), "uid") is None


def test_clocks_that_disagree_give_no_negative_lengths() -> None:
    """The node's clock, the scheduler's and ours are three."""
    pools = held((new_node(1, "10:02", created="10:03"),), (mine(placed="10:01"),))

    lengths = [leg.seconds for leg in way(look(run(PULLS), pools), History(), SETTINGS, NOW).legs]

    assert all(length is None or length >= 0 for length in lengths)


@pytest.mark.parametrize("path", [None, "spec.initContainers{init}", "spec.containers{wait}"])
def test_images_of_other_containers_tell_nothing(path: str | None) -> None:
    """Argo's own containers have an image of their own."""
    assert pulled("p", "10:00", path) is None


def test_hidden_pods_are_forgotten_by_workflow_too() -> None:
    """A right that is taken away."""
    pools = held((), (mine(),))
    observe(pools, SourceHidden(Source.PODS), NOW)

    assert {} == pools.of_workflow


def test_of_two_pods_of_a_run_one_goes() -> None:
    """The other is still its."""
    pools = held((), (mine(), mine("test")))
    observe(pools, PodSeen(mine(), gone=True), NOW)

    assert {f"foxhunt/{RUN}": {"uid-test"}} == pools.of_workflow


def test_an_empty_way_has_no_step_that_it_is_at() -> None:
    """Nothing is late either."""
    assert (Way((), cold=False).current, Way((), cold=False).late) == (None, False)


MOMENTS = [f"10:{minute:02}" for minute in range(10)]
SIGHTINGS = st.lists(
    st.one_of(
        st.builds(
            lambda gpus, ready, created: NodeSeen(new_node(gpus, ready, created=created)),
            st.integers(0, 1),
            st.sampled_from(["", *MOMENTS]),
            st.sampled_from(MOMENTS),
        ),
        st.builds(lambda clock: NodeSeen(new_node(created=clock), gone=True), st.sampled_from(MOMENTS)),
        st.builds(
            lambda name, placed, started, gone: PodSeen(
                mine(name, placed=placed, started=started if placed else ""), gone=gone
            ),
            st.sampled_from(["warm", "test"]),
            st.sampled_from(["", *MOMENTS]),
            st.sampled_from(["", *MOMENTS]),
            st.booleans(),
        ),
        st.builds(
            lambda reason, clock: NoteSeen(event(reason, "warm", GROWN, when=at(clock))),
            st.sampled_from(["TriggeredScaleUp", "NotTriggerScaleUp", "FailedScaleUp"]),
            st.sampled_from(MOMENTS),
        ),
        st.builds(SourceHidden, st.sampled_from(Source)),
    ),
    max_size=14,
)
STAGES = [(), (WAITS,), (PULLS,), (WARMED,), (WARMED, TEST_WAITS), (WARMED, TEST_PULLS), (WARMED, TESTS)]


@given(SIGHTINGS, st.lists(st.sampled_from(STAGES), min_size=1, max_size=6))
def test_whatever_is_seen_in_whatever_order(sightings: list[Any], stages: list[tuple[dict[str, Any], ...]]) -> None:
    """Looking twice changes nothing, no length is negative, at most one step is the one that it is at."""
    pools = held()
    seen: Warmup | None = None
    for number, sighting in enumerate(sightings):
        observe(pools, sighting, NOW)
        argo = run(*stages[number % len(stages)])
        seen = look(argo, pools, seen)
        assert seen == look(argo, pools, seen)
        shown = way(seen, HISTORY, SETTINGS, NOW)
        assert sum(leg.current for leg in shown.legs) <= 1
        assert all(leg.seconds is None or leg.seconds >= 0 for leg in shown.legs)
        assert shown.seconds is None or shown.seconds >= 0
        assert shown.current is not None or seen.start is not None
        start = finished(seen, "uid")
        assert (start is None) == (shown.seconds is None)
        assert start is None or start.steps == remembered(start).lengths
