"""What is wrong with the GPUs: each kind, what is no reason to speak, and what can't be known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.core import alerts, runs
from bot.core.alerts import Concern, Found, Held, Ledger
from bot.core.concerns import Look, concerns
from bot.core.history import History, Start
from bot.core.kube import Taint, Toleration
from bot.core.misfits import Misfit
from bot.core.pools import Pools, observe
from bot.core.runs import Run
from bot.core.settings import AlertKind, Alerts
from bot.core.sightings import NodeSeen, NodesListed, NoteSeen, NotesListed, PodSeen, PodsListed, Source, StatusSeen
from tests.core.pool_phrases import (
    H100,
    L4,
    L40S,
    THREE_POOLS,
    at,
    event,
    group,
    held,
    node,
    placeholder,
    pod,
    status_text,
)
from tests.core.test_warmup import PULLS, RUN, TESTS, WAITS, mine
from tests.phrases import NOW, workflow

UUID = "7be2f9d4-aaaa-4bbb-8ccc-ddddeeeeffff"
OTHER_KIND = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
BUSY = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
NO_GROUP = "pod didn't trigger scale-up: 2 node(s) didn't match Pod's node affinity/selector"
UID = f"uid-{RUN}"


def look(pools: Pools, *workflows: Any, now: float = NOW, **more: Any) -> Look:
    """A look at pools and runs."""
    settings = more.pop("settings", THREE_POOLS)
    found = {each.metadata.uid: Run(each) for each in workflows}
    for run in found.values():
        runs.look_at_warmup(run, pools, settings)
    more.setdefault("history", History())
    more.setdefault("ledger", Ledger())
    return Look(pools, found, settings=settings, now=now, **more)


def wrong(pools: Pools, *workflows: Any, **more: Any) -> list[Concern]:
    """What is wrong."""
    return list(concerns(look(pools, *workflows, **more)).concerns)


def kinds(found: list[Concern]) -> list[tuple[str, str]]:
    """Kind and subject of each."""
    return [(concern.kind.value, concern.subject) for concern in found]


# scale-ups


def test_what_the_status_calls_broken_and_nothing_else() -> None:
    """By stock, by quota and otherwise; a group that belongs to no pool by its own name; over is over."""
    status = status_text(
        group(UUID, error=("OUT_OF_STOCK", "no resources available")),
        group(L40S, error=("QUOTA_EXCEEDED", "Quota exceeded")),
        group("9c3b8e11-aaaa", error=("OTHER", "internal error")),
        group(L4),
    )
    pools = held(status=status)

    found = wrong(pools)
    assert [("stock", H100), ("quota", L40S), ("backoff", "9c3b8e11-aaaa")] == kinds(found)
    assert {NOW - 480} == {concern.since for concern in found}
    observe(pools, StatusSeen(status_text(group(UUID), group(L40S), group("9c3b8e11-aaaa"))), NOW)
    assert [] == wrong(pools)


@pytest.mark.parametrize("code", ["OUT_OF_STOCK", "QUOTA_EXCEEDED"])
def test_a_problem_that_status_and_event_tell_is_one(code: str) -> None:
    """Of a pool, whichever of the two comes first."""
    status = StatusSeen(status_text(group(UUID, error=(code, "no further one"))))
    text = f"Failed adding 1 nodes to group {UUID} due to OutOfResource.{code}; source errors: no further one"
    told = NoteSeen(event("ScaleUpFailed", "status", text, kind="ConfigMap", when=at("10:06")))
    kind = {"OUT_OF_STOCK": "stock", "QUOTA_EXCEEDED": "quota"}[code]

    for first, second in ((status, told), (told, status)):
        pools = held()
        observe(pools, first, NOW)
        assert [(kind, H100)] == kinds(wrong(pools))
        observe(pools, second, NOW)
        (concern,) = wrong(pools)
        assert concern.error is not None
        assert (kind, H100, code, "no further one") == (
            concern.kind,
            concern.subject,
            concern.error.code,
            concern.error.text,
        )


def test_what_was_said_of_a_backoff_stays_true_when_its_reason_shows() -> None:
    """The old form of the status names no reason; an Event does, a moment later."""
    pools = held(status=status_text(group(UUID, error=("QUOTA_EXCEEDED", "Quota exceeded"))))
    ledger = Ledger()
    ledger.held[AlertKind.BACKOFF, H100] = Held(Concern(AlertKind.BACKOFF, H100, NOW), NOW, NOW, post="p")

    assert [("quota", H100), ("backoff", H100)] == kinds(wrong(pools, ledger=ledger))
    ledger.held[AlertKind.BACKOFF, H100].post = ""
    assert [("quota", H100)] == kinds(wrong(pools, ledger=ledger))


def test_without_a_status_an_error_counts_until_a_node_comes_or_for_half_an_hour() -> None:
    """A managed autoscaler shows Events alone."""
    failed = event(
        "FailedToScaleUpGroup",
        "status",
        f"Scale-up failed for group {H100}: out of stock",
        kind="ConfigMap",
        when=at("10:00"),
    )
    pools = held(notes=(failed,))

    found = concerns(look(pools))
    assert [("stock", H100)] == kinds(list(found.concerns))
    assert AlertKind.STOCK in found.known
    assert NOW - 360 + 1800 == found.later
    assert [] == wrong(pools, now=NOW + 1440)
    observe(pools, NodesListed((replace(node(), created=NOW - 300),)), NOW)
    assert [] == wrong(pools)
    without_time = replace(failed, at=None)
    assert [] == wrong(held(notes=(without_time,)))


def test_a_scale_up_that_failed_for_one_pod() -> None:
    """Its Event names the provider's words; it is over when the pod is."""
    words = "Node scale up in zones fr-par-2 associated with this pod failed: GCE quota exceeded. Pod is at risk."
    pools = held(pods=(pod(message=OTHER_KIND),), notes=(event("FailedScaleUp", "p", words),))

    (concern,) = wrong(pools)
    assert (AlertKind.QUOTA, H100, "H100") == (concern.kind, concern.subject, concern.gpu)
    observe(pools, PodSeen(pod(), gone=True), NOW)
    assert [] == wrong(pools)


# pods that no pool can take


def misfit(*nodes: Any, notes: tuple[Any, ...] = (), **more: Any) -> list[Concern]:
    """What is wrong with one pod that waits."""
    more.setdefault("message", OTHER_KIND)
    return wrong(held(nodes=nodes, pods=(pod(**more),), notes=notes))


def test_a_pool_that_nobody_knows() -> None:
    """Not configured, without a node, and none of the autoscaler's groups; a group of that name will do."""
    (concern,) = misfit(pool="ci-trainign")
    assert (f"foxhunt/ci-trainign/{Misfit.NO_POOL.value}", ("p",)) == (concern.subject, concern.names)
    other = pod(pool="ci-trainign", message=OTHER_KIND)
    assert [] == wrong(held(pods=(other,), status=status_text(group("ci-trainign"))))


@pytest.mark.parametrize(
    "more",
    [
        {"message": BUSY},
        {"message": ""},
        {"message": "something else"},
        {"deleted": at("10:00"), "message": OTHER_KIND},
        {"gates": ("x",), "message": ""},
        {"message": OTHER_KIND},
    ],
)
def test_a_pod_that_may_still_get_a_place(more: dict[str, Any]) -> None:
    """A busy GPU gets free, a cold pool may grow: nothing is concluded from what nobody has said."""
    assert [] == misfit(**more)


def test_a_taint_that_nobody_tolerates() -> None:
    """All nodes of its pool have one, though they are up; where one has none it is something else."""
    words = "0/2 nodes are available: 1 node(s) had untolerated taint {dedicated: research}, 1 node(s) didn't match node selector."
    tainted = node(taints=[("dedicated", "NoSchedule")])

    (concern,) = misfit(tainted, message=words)
    assert (Misfit.TAINT.value, "dedicated") == (concern.why, concern.words)
    (concern,) = misfit(tainted, node("h100-b"), message=words)
    assert Misfit.SELECTOR.value == concern.why
    tolerates = {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}
    (concern,) = misfit(tainted, message=words, spec=tolerates)
    assert Misfit.SELECTOR.value == concern.why
    assert Toleration(key="dedicated", operator="Exists").covers(Taint(key="dedicated", effect="NoSchedule"))


def test_the_autoscaler_says_that_no_group_would_do() -> None:
    """By its selector or by a taint; not where a group is only full, or where a node is on its way after all."""
    (concern,) = misfit(notes=(event("NotTriggerScaleUp", "p", NO_GROUP),))
    assert (Misfit.SELECTOR.value, NO_GROUP) == (concern.why, concern.words)
    tainted = "pod didn't trigger scale-up: 1 node(s) had untolerated taint {a: b}, 1 Insufficient cpu"
    (concern,) = misfit(notes=(event("NotTriggerScaleUp", "p", tainted),))
    assert Misfit.TAINT.value == concern.why
    full = "pod didn't trigger scale-up: 1 node(s) didn't match node selector, 1 max node group size reached"
    assert [] == misfit(notes=(event("NotTriggerScaleUp", "p", full),))
    assert [] == misfit(notes=(event("NotTriggerScaleUp", "p", "it is late"),))
    assert [] == misfit(notes=(event("NotTriggerScaleUp", "p", OTHER_KIND),))
    grows = event("TriggeredScaleUp", "p", f"pod triggered scale-up: [{{{UUID} 0->1 (max: 2)}}]", when=at("10:01"))
    assert [] == misfit(notes=(event("NotTriggerScaleUp", "p", NO_GROUP), grows))


def test_many_pods_that_want_the_same_are_one() -> None:
    """A job of thousands is one alert, named after the oldest; runs by their short names, placeholders not at all."""
    pods = [pod(f"p{n}", pool="gone", message=OTHER_KIND, created=at(f"09:{59 - n}")) for n in range(5)]
    theirs = pod("t", pool="gone", message=OTHER_KIND, namespace="research")
    assert ("research/t",) == wrong(held(pods=(theirs,)))[0].names
    mine_too = pod("q", pool="gone", message=OTHER_KIND, workflow=RUN, created=at("09:00"))
    keeps = placeholder("w", pool="gone", message=OTHER_KIND)
    (concern,) = wrong(held(pods=(*pods, mine_too, keeps)))

    assert ("k7m2", "p4", "p3") == concern.names[:3]
    assert 6 == len(concern.names)
    assert NOW - 66 * 60 == concern.since


def test_a_run_for_another_gpu_than_its_pool_has() -> None:
    """Whoever starts one without the bot may ask for that."""
    wants = {"gpu-pool": L4, "cuda-compute-cap": "90"}
    (concern,) = wrong(held(), workflow(RUN, phase="Running", parameters=wants))

    assert (f"cap/{UID}", ("k7m2",), "90 89") == (concern.subject, concern.names, concern.words)
    assert [] == wrong(held(), workflow(RUN, phase="Running", parameters=wants | {"cuda-compute-cap": "89"}))
    assert [] == wrong(held(), workflow(RUN, phase="Running", parameters=wants | {"gpu-pool": "nowhere"}))
    assert [] == wrong(held(), workflow(RUN, phase="Running", parameters=wants | {"notify": "false"}))
    assert [] == wrong(held(), workflow(RUN, phase="Failed", parameters=wants))


# idle nodes


def test_a_node_that_nobody_uses() -> None:
    """Since its last pod went; where nobody saw that, since it is seen. All of a pool are one."""
    pools = held(nodes=(node(), node("h100-b")), pods=(pod(node="h100-a"),))
    ledger = Ledger()
    assert NOW + 1800 == concerns(look(pools, ledger=ledger)).later
    observe(pools, PodSeen(pod(node="h100-a"), gone=True), NOW + 60)

    (concern,) = wrong(pools, ledger=ledger, now=NOW + 1800)
    assert (H100, ("h100-b",), NOW, True) == (concern.subject, concern.names, concern.since, concern.at_once)
    (concern,) = wrong(pools, ledger=ledger, now=NOW + 1860)
    assert ("h100-b", "h100-a") == concern.names
    observe(pools, PodSeen(pod(node="h100-a")), NOW + 1900)
    observe(pools, NodeSeen(node("h100-b"), gone=True), NOW + 1900)
    assert [] == wrong(pools, ledger=ledger, now=NOW + 4000)
    assert {} == ledger.idle_from


def test_a_node_that_was_idle_before_this_process_began() -> None:
    """Nobody knows since when, but an alert that stands open does; not of a node that came later."""
    ledger = Ledger()
    ledger.held[AlertKind.IDLE, H100] = Held(Concern(AlertKind.IDLE, H100, NOW), NOW, NOW - 4000, post="p")
    young = replace(node("h100-b"), created=NOW - 60)

    (concern,) = wrong(held(nodes=(node(), young)), ledger=ledger)
    assert (("h100-a",), NOW - 4000) == (concern.names, concern.since)
    ledger = Ledger()
    ledger.held[AlertKind.IDLE, H100] = Held(Concern(AlertKind.IDLE, H100, NOW), NOW, NOW - 4000)
    assert [] == wrong(held(nodes=(node(),)), ledger=ledger)


def test_a_node_that_is_kept_up_on_purpose_or_can_not_work() -> None:
    """The pool's smallest size; a node without its GPU or cordoned; where pods of others are hidden nothing is idle."""
    late = {"now": NOW + 9000}
    smallest = group(UUID, ready=1, target=1)
    smallest["health"]["minSize"] = 1
    free = Ledger(idle_from={"h100-a": NOW})
    assert [] == wrong(held(nodes=(node(),), status=status_text(smallest)), ledger=free, **late)
    assert [] == wrong(held(nodes=(node(gpus=0),)), ledger=Ledger(idle_from={"h100-a": NOW}), **late)
    assert [] == wrong(held(nodes=(node(),), everywhere=False), ledger=Ledger(idle_from={"h100-a": NOW}), **late)
    assert [("idle", H100)] == kinds(wrong(held(nodes=(node(),)), ledger=Ledger(idle_from={"h100-a": NOW}), **late))


# runs


def starts(seconds: int) -> History:
    """Three cold starts that took so long."""
    known = [Start(f"r{n}", "a", H100, cold=True, at=int(NOW), seconds=seconds) for n in range(3)]
    return History({start.key: start for start in known})


def test_a_run_that_waits_longer_than_usual() -> None:
    """Counted from its first pod: twenty minutes, and twice what is usual."""
    pools = held(pods=(mine(),))
    waits = workflow(RUN, phase="Running", nodes=[WAITS])  # its pod was made at 10:01

    found = concerns(look(pools, waits, now=NOW, history=starts(900)))
    assert ((), NOW - 300 + 1800) == (found.concerns, found.later)
    (concern,) = wrong(pools, waits, now=NOW + 1500, history=starts(900))
    assert (AlertKind.SLOW, UID, 900, NOW - 300) == (concern.kind, concern.subject, concern.usual, concern.since)
    (concern,) = wrong(pools, waits, now=NOW + 900)
    assert concern.usual is None


def test_a_run_that_does_not_wait() -> None:
    """It tests, or has no pod, or has ended, or wants no posts; its pool may be none of ours."""
    late, pools = NOW + 9000, held(pods=(mine(),))
    for each in (
        workflow(RUN, phase="Running", nodes=[TESTS]),
        workflow(RUN, phase="Running"),
        workflow(RUN, phase="Failed", nodes=[WAITS]),
        workflow(RUN, phase="Running", nodes=[WAITS], parameters={"notify": "false"}),
    ):
        assert [] == wrong(pools, each, now=late)
    begun = held((node(),), pods=(mine(placed="10:02", started="10:03"),))
    assert [] == wrong(begun, workflow(RUN, phase="Running", nodes=[{**TESTS, "phase": "Pending"}]), now=late)
    elsewhere = workflow(RUN, phase="Running", nodes=[PULLS], parameters={"gpu-pool": "theirs"})
    assert "theirs" == next(c.gpu for c in wrong(pools, elsewhere, now=late) if c.kind is AlertKind.SLOW)


def lost(*nodes: Any, ledger: Ledger | None = None, pods: Any = None, **more: Any) -> list[Concern]:
    """What is wrong with a run that was placed."""
    found = (mine(placed="10:02"),) if pods is None else pods
    warms = more.pop("run", workflow(RUN, phase="Running", nodes=[PULLS]))
    return wrong(held(nodes=nodes, pods=found), *([warms] if warms else []), ledger=ledger or Ledger(), **more)


def test_a_node_lost_in_a_run() -> None:
    """Gone is said at once; one that does not answer may come back. It stays so while the run has no other place."""
    ledger = Ledger()
    (concern,) = lost(ledger=ledger)
    assert (AlertKind.NODE_LOST, UID, ("k7m2", "h100-a")) == (concern.kind, concern.subject, concern.names)
    assert (True, "gone") == (concern.at_once, concern.why)
    (concern,) = lost(ledger=ledger, pods=(), now=NOW + 60)
    assert NOW == concern.since
    assert [] == lost(node(), ledger=ledger)

    (concern,) = lost(node(ready="Unknown"), ledger=ledger)
    assert (False, "silent") == (concern.at_once, concern.why)
    another = workflow(RUN, phase="Running", nodes=[PULLS], startedAt="2026-03-02T11:00:00Z")
    assert [] == lost(ledger=ledger, pods=(), run=another)
    assert [] == lost(pods=(mine(placed="10:02", deleted=at("10:03")),))
    assert [] == lost(run=None)
    assert [] == lost(pods=(mine(placed="10:02", namespace="research"),))
    assert [] == lost(pods=(mine(),))
    ledger = Ledger()
    lost(ledger=ledger)
    assert [] == lost(ledger=ledger, pods=(), run=None)


# what is known


def test_what_can_not_be_seen_is_not_over() -> None:
    """Each kind needs its sources; one that is not said is not known either."""
    every = set(AlertKind)
    assert every == concerns(look(held())).known
    assert set() == concerns(look(Pools())).known
    scale_ups = {AlertKind.STOCK, AlertKind.QUOTA, AlertKind.BACKOFF}
    assert every - scale_ups == concerns(look(held(status="nodeGroups: ["))).known
    blind = held(hidden=(Source.EVENTS, Source.AUTOSCALER))
    assert every - scale_ups == concerns(look(blind)).known
    nodeless = concerns(look(held(hidden=(Source.NODES,))))
    assert scale_ups | {AlertKind.SLOW} == nodeless.known
    podless = held(hidden=(Source.PODS,), pods=(pod(pool="gone", message=OTHER_KIND),))
    assert scale_ups == concerns(look(podless)).known
    assert scale_ups | {AlertKind.IDLE} == concerns(look(held(), listed=False)).known
    ours = Pools()
    for seen in (PodsListed((), everywhere=False), NotesListed((), everywhere=False)):
        observe(ours, seen, NOW)
    assert {AlertKind.SLOW} == concerns(look(ours)).known


def test_a_kind_that_is_not_said() -> None:
    """Neither it nor its end."""
    silent = replace(THREE_POOLS, alerts=Alerts(silent=(AlertKind.STOCK,)))
    pools = held(status=status_text(group(UUID, error=("OUT_OF_STOCK", "none"))))

    found = concerns(look(pools, settings=silent))
    assert () == found.concerns
    assert AlertKind.STOCK not in found.known


def test_keys() -> None:
    """Kind, subject and since; a subject may hold colons, and what is no key is none."""
    assert "idle:a:b:12" == alerts.alert_key(AlertKind.IDLE, "a:b", 12.9)
    assert (AlertKind.IDLE, "a:b", 12.0) == alerts.read_key("idle:a:b:12")
    for text in ("", "idle", "idle:x", "idle:x:y", "other:x:12", "idle:x:²"):
        assert alerts.read_key(text) is None
    assert Found((), frozenset()).later is None
