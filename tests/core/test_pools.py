"""What is held of nodes, pods, events and the autoscaler, and how it changes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bot.core import pools as held_pools
from bot.core.autoscaler import ErrorKind
from bot.core.kube import KubeEvent, Node, Pod, Taint, Toleration, newest_first, whole
from bot.core.pools import Pools, Sight, observe
from bot.core.pools_view import view
from bot.core.sightings import (
    GpuPod,
    NodeSeen,
    NodesListed,
    NodeState,
    NoteSeen,
    NotesListed,
    PodSeen,
    PodsListed,
    Source,
    SourceHidden,
    Standing,
    StatusSeen,
    gpu_pod,
    note,
    pool_node,
)
from tests.core.pool_phrases import (
    H100,
    LABEL,
    ONE_POOL,
    event,
    group,
    held,
    node,
    node_json,
    pod,
    status_text,
)
from tests.phrases import NOW, SETTINGS

CASES = Path(__file__).parents[1] / "cases"


def pods_of(name: str) -> list[GpuPod]:
    """The pods with GPUs of a case."""
    items = json.loads((CASES / name).read_text(encoding="utf-8"))["items"]
    found = (gpu_pod(msgspec.json.decode(json.dumps(item), type=Pod), SETTINGS) for item in items)
    return [each for each in found if each is not None]


def replace_uid(each: GpuPod) -> GpuPod:
    """The pods of the case have no uid; the API gives every pod one."""
    return replace(each, metadata=msgspec.structs.replace(each.metadata, uid=each.metadata.name))


# what is read of an object


def test_gates_are_no_demand() -> None:
    """Case c04: one pod waits and one is fresh; two are gated with three GPUs, one of them by Kueue; others don't count."""
    pods = {each.metadata.name: each for each in pods_of("c04.json")}
    waiting = [each for each in pods.values() if each.waits_for_node]
    gated = [each for each in pods.values() if each.standing is Standing.GATED]

    assert ["u-resnet", "fresh"] == [each.metadata.name for each in waiting]
    assert (Standing.UNPLACED, Standing.FRESH) == (pods["u-resnet"].standing, pods["fresh"].standing)
    assert (2, 3) == (len(gated), sum(each.gpus for each in gated))
    assert ["q-llama"] == [each.metadata.name for each in gated if each.by_kueue]
    assert Standing.PLACED is pods["pulling"].standing
    assert "ImagePullBackOff: Back-off pulling image" == pods["pulling"].trouble
    assert pods["dying"].ending
    assert "cpuonly" not in pods


def test_events_by_the_newest_of_their_times() -> None:
    """Case c01: series, then lastTimestamp, then eventTime, then creation; null and the year 1 are no times."""
    items = json.loads((CASES / "c01.json").read_text(encoding="utf-8"))["items"]
    events = newest_first([msgspec.json.decode(json.dumps(item), type=KubeEvent) for item in items])

    assert ["e4", "e2", "e3", "e1"] == [each.metadata.name for each in events]
    assert [1, 41, 359, 1] == [each.times for each in events]
    assert ["", "default-scheduler", "cluster-autoscaler", "default-scheduler"] == [each.writer for each in events]


def test_an_event_without_any_time_comes_last() -> None:
    """There is nothing to compare, and no error."""
    timeless = msgspec.json.decode(b'{"metadata": {"name": "t"}, "eventTime": "0001-01-01T00:00:00Z"}', type=KubeEvent)
    dated = msgspec.json.decode(b'{"metadata": {"creationTimestamp": "2026-03-02T10:00:00Z"}}', type=KubeEvent)

    assert [dated, timeless] == newest_first([timeless, dated])
    assert timeless.when is None


@pytest.mark.parametrize(
    ("spec", "gpus"),
    [
        ({"containers": [("main", {"requests": 1, "limits": 1})]}, 1),
        ({"containers": [("a", {"limits": 1}), ("b", {"limits": 2})]}, 3),
        ({"containers": [("main", {"limits": 1})], "initContainers": [("warm", {"limits": 4})]}, 4),
        ({"containers": [("main", {"limits": 2})], "initContainers": [("side", {"limits": 1}, "Always")]}, 3),
        (
            {
                "containers": [("main", {"limits": 1})],
                "initContainers": [("side", {"limits": 1}, "Always"), ("warm", {"limits": 3})],
            },
            4,
        ),
        (
            {
                "containers": [("main", {"limits": 1})],
                "initContainers": [("warm", {"limits": 3}), ("side", {"limits": 1}, "Always")],
            },
            3,
        ),
        ({"containers": [("main", None)], "initContainers": None}, 0),
        ({"containers": None}, 0),
    ],
)
def test_what_a_pod_asks_for(spec: dict, gpus: int) -> None:
    """Containers and sidecars add up; an init container counts beside the sidecars that were started before it."""

    def container(name: str, amounts: dict[str, int] | None, policy: str | None = None) -> dict:
        resources = {key: {"nvidia.com/gpu": str(count)} for key, count in (amounts or {}).items()}
        return {"name": name, "resources": resources if amounts is not None else None, "restartPolicy": policy}

    body = {
        "metadata": {},
        "spec": {key: value and [container(*each) for each in value] for key, value in spec.items()},
    }

    assert gpus == msgspec.json.decode(json.dumps(body), type=Pod).ask("nvidia.com/gpu")


def test_slices_of_a_gpu_are_demand_and_supply() -> None:
    """Under names of their own (MIG, `mixed`): a pod that asks for two waits, a node with seven is ready and shared."""
    asks = {"limits": {"nvidia.com/mig-1g.10gb": "2", "cpu": "4"}}
    body = {"metadata": {"uid": "u"}, "spec": {"containers": [{"resources": asks}, {"name": "side"}]}}
    waits = gpu_pod(msgspec.json.decode(json.dumps(body), type=Pod), SETTINGS)
    offers = {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "7", "cpu": "60"}
    ready = [{"type": "Ready", "status": "True"}]
    body = {"metadata": {"name": "n"}, "status": {"allocatable": offers, "conditions": ready}}
    has = pool_node(msgspec.json.decode(json.dumps(body), type=Node), SETTINGS)

    assert waits is not None
    assert (2, True) == (waits.gpus, waits.waits_for_node)
    assert (7, True, NodeState.READY) == (has.gpus, has.shared, has.state)


@pytest.mark.parametrize(
    ("quantity", "count"),
    [
        ("1", 1),
        (2, 2),
        ("1k", 1000),
        ("500m", 1),
        ("2e0", 2),
        ("1Ki", 1024),
        ("1M", 10**6),
        ("x", 0),
        ("-1", 0),
        ("NaN", 0),
    ],
)
def test_quantities_are_counts(quantity: str | int, count: int) -> None:
    """Rounded up; what is no quantity is none."""
    assert count == whole(quantity)


def test_a_pod_of_nulls_is_no_pod_with_gpus() -> None:
    """Everything may be null."""
    body = b'{"metadata": {"name": "n", "labels": null}, "spec": null, "status": null}'

    assert gpu_pod(msgspec.json.decode(body, type=Pod), SETTINGS) is None


def test_a_gate_that_was_taken_away_leaves_a_fresh_pod() -> None:
    """The stale condition of the gate is not the scheduler's word."""
    stale = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "Scheduling is blocked"}

    assert Standing.FRESH is pod(status={"conditions": [stale]}).standing


def test_a_bound_pod_has_its_node_whatever_its_gates() -> None:
    """Bound, with or without the condition that says so."""
    assert Standing.PLACED is pod(node="h100-a").standing
    assert Standing.PLACED is pod(status={"conditions": [{"type": "PodScheduled", "status": "True"}]}).standing


def test_the_pool_that_a_pod_asks_for() -> None:
    """By nodeSelector, or by a required affinity for one value; several values are no one pool."""

    def wants(*values: str, operator: str = "In", key: str = LABEL) -> dict:
        terms = [{"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        return {"nodeSelector": None, "affinity": {"nodeAffinity": required}}

    assert H100 == pod().pool
    assert "a" == pod(spec=wants("a")).pool
    assert "" == pod(spec=wants("a", "b")).pool
    assert "" == pod(spec=wants("a", operator="NotIn")).pool
    assert "" == pod(spec=wants("a", key="other")).pool
    assert "" == pod(spec={"nodeSelector": {}, "affinity": {"nodeAffinity": None}}).pool
    assert "" == pod(spec={"nodeSelector": {}}).pool


def test_trouble_with_an_init_containers_image() -> None:
    """It is the image, not the node, that the pod waits for; other reasons are the pod's own business."""
    creating = {"name": "wait", "state": {"waiting": {"reason": "PodInitializing"}}}
    image = {"name": "init", "state": {"waiting": {"reason": "ErrImagePull"}}}
    running = {"name": "side", "state": {"running": {}}}

    assert "ErrImagePull" == pod(node="a", status={"initContainerStatuses": [running, image]}).trouble
    assert "" == pod(node="a", status={"containerStatuses": [creating, {"name": "x", "state": None}]}).trouble


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({}, NodeState.READY),
        ({"gpus": 0}, NodeState.WITHOUT_GPU),
        ({"ready": "False"}, NodeState.NOT_READY),
        ({"ready": "Unknown"}, NodeState.SILENT),
        ({"conditions": None}, NodeState.NOT_READY),
        ({"spec": {"unschedulable": True}}, NodeState.CORDONED),
        ({"taints": [("node.kubernetes.io/unschedulable", "NoSchedule")]}, NodeState.CORDONED),
        ({"taints": [("ToBeDeletedByClusterAutoscaler", "NoSchedule")]}, NodeState.LEAVING),
        ({"taints": [("DeletionCandidateOfClusterAutoscaler", "PreferNoSchedule")]}, NodeState.READY),
        ({"taints": [("node.kubernetes.io/not-ready", "NoExecute")]}, NodeState.NOT_READY),
        ({"taints": [("node.kubernetes.io/unreachable", "NoExecute")]}, NodeState.SILENT),
        ({"taints": [("node.cilium.io/agent-not-ready", "NoSchedule")]}, NodeState.STARTING),
        ({"taints": [("nvidia.com/gpu", "NoSchedule")]}, NodeState.READY),
    ],
)
def test_states_of_a_node(more: dict, state: NodeState) -> None:
    """The first thing that keeps it from taking work."""
    assert state is node(**more).state


def test_what_is_kept_of_a_node() -> None:
    """Pool, the provider's id of it, sharing, and the taints that are somebody's will."""
    labels = {"k8s.scaleway.com/pool": "7be2f9d4", "nvidia.com/gpu.sharing-strategy": "time-slicing"}
    found = node(gpus=4, labels=labels, taints=[("nvidia.com/gpu", "NoSchedule"), ("team", "PreferNoSchedule")])

    assert (H100, "7be2f9d4", 4, True) == (found.pool, found.group, found.gpus, found.shared)
    assert ["nvidia.com/gpu"] == [str(taint) for taint in found.taints]
    assert not node(labels={"nvidia.com/gpu.sharing-strategy": "none"}).shared


def test_a_taint_with_a_value_keeps_it() -> None:
    """As kubectl writes it."""
    body = node_json()
    body["spec"] = {"taints": [{"key": "dedicated", "value": "research", "effect": "NoSchedule"}]}

    (taint,) = pool_node(msgspec.json.decode(json.dumps(body), type=Node), SETTINGS).taints

    assert "dedicated=research" == str(taint)


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "dedicated", "operator": "Exists"}, True),
        ({"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "dedicated", "value": "research"}, True),
        ({"key": "dedicated", "operator": "Equal", "value": "others"}, False),
        ({"key": "dedicated", "operator": None, "value": None, "effect": None}, False),
        ({"key": "nvidia.com/gpu", "operator": "Exists"}, False),
        ({"value": "research"}, False),
    ],
)
def test_what_a_toleration_covers(toleration: dict, covers: bool) -> None:
    """As the scheduler has it."""
    found = msgspec.json.decode(json.dumps(toleration), type=Toleration)

    assert covers is found.covers(Taint("dedicated", "research", "NoSchedule"))


def test_a_node_of_nulls() -> None:
    """It is there, and it is not ready."""
    found = pool_node(msgspec.json.decode(b'{"metadata": {"name": "n"}}', type=Node), SETTINGS)

    assert (NodeState.NOT_READY, 0, "", None) == (found.state, found.gpus, found.pool, found.created)


def test_events_about_other_things_are_not_kept() -> None:
    """Another reason, or a reason on another kind of object."""

    def kept(reason: str | None, kind: str) -> bool:
        body = {"metadata": {}, "reason": reason, "involvedObject": {"kind": kind, "name": "n"}}
        return note(msgspec.json.decode(json.dumps(body), type=KubeEvent)) is not None

    assert kept("ScaleDown", "Node")
    assert kept("TriggeredScaleUp", "Pod")
    assert not kept("TriggeredScaleUp", "Job")
    assert not kept("Pulled", "Pod")
    assert not kept(None, "Pod")


def test_an_event_without_a_uid_goes_by_name_and_without_a_time_by_none() -> None:
    """Nothing of it has to be there."""
    body = b'{"metadata": {}, "reason": "FailedScheduling", "involvedObject": {"kind": "Pod", "name": "p"}}'
    found = note(msgspec.json.decode(body, type=KubeEvent))

    assert found is not None
    assert ("p", "", None, 1) == (found.subject, found.message, found.at, found.times)


# what is held


def test_lists_replace_and_changes_change() -> None:
    """What a list lacks is gone, what a watch tells is taken in."""
    pools = held((node("a"), node("b")), (pod("p", node="a"), pod("q")))

    observe(pools, NodesListed((node("b"),)), NOW)
    observe(pools, NodeSeen(node("c")), NOW)
    observe(pools, NodeSeen(node("b"), gone=True), NOW)
    observe(pools, PodsListed((pod("q"),), everywhere=False), NOW)
    observe(pools, PodSeen(pod("r")), NOW)
    observe(pools, PodSeen(pod("q"), gone=True), NOW)
    observe(pools, PodSeen(pod("unheard-of"), gone=True), NOW)

    assert {"c"} == set(pools.nodes)
    assert {"uid-r"} == set(pools.pods)
    assert {} == pools.holders
    assert Sight.OURS is pools.sight(Source.PODS)


def test_a_pod_that_ended_is_gone() -> None:
    """However it is told."""
    pools = held((node("a"),), (pod("p", node="a"),))

    observe(pools, PodSeen(pod("p", node="a", phase="Succeeded")), NOW + 60)

    assert {} == pools.pods
    assert {"a": NOW + 60} == pools.idle_since


def test_a_node_is_idle_once_its_last_pod_went() -> None:
    """Not while another is there, and not after a new one came."""
    pools = held((node("a", gpus=2),), (pod("p", node="a"), pod("q", node="a")))

    observe(pools, PodSeen(pod("p", node="a"), gone=True), NOW + 1)
    assert {} == pools.idle_since
    observe(pools, PodSeen(pod("q", node="a"), gone=True), NOW + 2)
    assert {"a": NOW + 2} == pools.idle_since
    observe(pools, PodSeen(pod("r", node="a")), NOW + 3)
    assert {} == pools.idle_since
    observe(pools, PodSeen(pod("r", node="a"), gone=True), NOW + 4)
    observe(pools, NodeSeen(node("a"), gone=True), NOW + 5)
    assert {} == pools.idle_since


def test_a_pod_seen_in_another_order_is_on_one_node() -> None:
    """What was seen last holds, whatever it was before."""
    pools = held((node("a"), node("b")), (pod("p", node="a"),))

    observe(pools, PodSeen(pod("p", node="b")), NOW)

    assert {"b": {"uid-p"}} == pools.holders


def test_the_newest_event_of_a_reason_is_kept() -> None:
    """An older one that comes late changes nothing; those of a pod go with it."""
    new = event("FailedScheduling", "p", "new", when="2026-03-02T10:05:00Z")
    old = event("FailedScheduling", "p", "old", when="2026-03-02T10:01:00Z")
    pools = held(pods=(pod("p"),), notes=(new, old))

    assert replace(new, first=old.first) == pools.note("uid-p", "FailedScheduling")
    observe(pools, PodSeen(pod("p"), gone=True), NOW)
    assert pools.note("uid-p", "FailedScheduling") is None


def test_events_are_bounded() -> None:
    """Pods that nobody holds may have events without end."""
    pools = Pools()
    for number in range(held_pools.KEPT_SUBJECTS + 5):
        observe(pools, NoteSeen(event("FailedScheduling", f"p{number}", "m")), NOW)

    assert held_pools.KEPT_SUBJECTS == len(pools.notes)
    assert "uid-p0" not in pools.notes


def test_a_hidden_source_leaves_nothing_behind() -> None:
    """What was seen before the rights went is not shown as if it were still so."""
    pools = held((node(),), (pod(node="h100-a"),), (event("TriggeredScaleUp", "p", "m"),), status_text(group("g")))

    for source in Source:
        observe(pools, SourceHidden(source), NOW)

    assert ({}, {}, {}, None) == (pools.nodes, pools.pods, dict(pools.notes), pools.status)
    assert dict.fromkeys(Source, Sight.HIDDEN) == pools.sights


def test_a_group_is_known_by_the_label_of_a_node() -> None:
    """And stays known when the node is gone."""
    pools = held((node("a", labels={"k8s.scaleway.com/pool": "5a1d0c0e"}),), status=status_text(group("5a1d0c0e")))

    observe(pools, NodeSeen(node("a"), gone=True), NOW)

    assert ["5a1d0c0e"] == [each.name for each in view(pools, [], ONE_POOL, NOW).pools[0].groups]


@pytest.mark.parametrize("first", ["pod", "event"])
def test_a_group_is_known_by_the_pod_it_grew_for(first: str) -> None:
    """The pod insists on a pool, so the group has nodes of that pool; whichever of the two is seen first."""
    asked = NotesListed((event("TriggeredScaleUp", "p", "pod triggered scale-up: [{g-1 0->1 (max: 2)}]"),), True)
    listed = PodsListed((pod("p"),), everywhere=True)
    pools = Pools()

    for seen in (listed, asked) if first == "pod" else (asked, listed):
        observe(pools, seen, NOW)

    assert {"g-1": H100} == pools.group_pools


def test_a_pod_without_a_pool_teaches_nothing() -> None:
    """It may have gone anywhere."""
    asked = event("TriggeredScaleUp", "p", "pod triggered scale-up: [{g-1 0->1 (max: 2)}]")

    assert {} == held(pods=(pod("p", spec={"nodeSelector": {}}),), notes=(asked,)).group_pools


# the autoscaler


def test_case_b03_stays_apart() -> None:
    """The empty group by UUID is no pool's, is not lost and is not the other's; an alias makes it the pool's."""
    documents = list(yaml.safe_load_all((CASES / "b03.yaml").read_text(encoding="utf-8")))
    cpu = pool_node(msgspec.json.decode(json.dumps(documents[1]), type=Node), SETTINGS)
    pools = held((cpu,), status=documents[0]["data"]["status"])

    without = view(pools, [], SETTINGS, NOW)
    assert ["5a1d0c0e", "7be2f9d4"] == [each.short for each in without.strangers]
    assert [()] * 3 == [each.groups for each in without.pools]
    assert ["ci-training-h100", "ci-training", "ci-compile"] == [each.name for each in without.pools]

    named = view(pools, [], ONE_POOL, NOW)
    assert ["7be2f9d4"] == [each.short for each in named.pools[0].groups]
    assert ["5a1d0c0e"] == [each.short for each in named.strangers]
    assert ErrorKind.OTHER is named.pools[0].errors[0][1].error.kind


def test_an_error_has_its_begin_and_its_end() -> None:
    """It is told while it lasts, and when it was seen to be over."""
    broken = status_text(group("g", error=("QUOTA_EXCEEDED", "Quota exceeded")))
    pools = held(status=broken)
    begun = pools.errors["g"].error.at

    observe(pools, StatusSeen(status_text(group("g"))), NOW + 600)
    observe(pools, StatusSeen(status_text(group("g"), group("h"))), NOW + 900)

    assert begun is not None
    assert (9, 58) == (begun.hour, begun.minute)
    assert NOW + 600 == pools.errors["g"].over


def test_an_error_without_a_time_began_when_it_was_seen() -> None:
    """And it goes on from then, not from each time it is read again."""
    broken = group("g", error=("creation_error", "no node"), lastTransitionTime=None)
    pools = held(status=status_text(broken))
    observe(pools, StatusSeen(status_text(broken, group("h"))), NOW + 60)

    begun = pools.errors["g"].error.at
    assert begun is not None
    assert NOW == begun.timestamp()

    observe(pools, StatusSeen(status_text(group("h"))), NOW + 120)
    observe(pools, StatusSeen(status_text(group("g"))), NOW + 120)
    observe(pools, StatusSeen(status_text(broken)), NOW + 180)
    begun = pools.errors["g"].error.at
    assert begun is not None
    assert NOW + 180 == begun.timestamp()


def test_the_same_status_with_new_probe_times_is_not_read_again() -> None:
    """It is written every ten seconds; only the time of writing changes."""
    pools = held(status=status_text(group("g")))
    first = pools.status

    observe(pools, StatusSeen(status_text(group("g"), written="2026-03-02 10:06:00 +0000 UTC")), NOW)

    assert first is pools.status
    assert NOW == pools.status_at


def test_a_config_map_that_goes_is_no_longer_there() -> None:
    """Nothing to look at is not the same as nothing wrong."""
    pools = held(status=status_text(group("g")))

    observe(pools, StatusSeen(None, there=False), NOW)

    assert (Sight.NOTHING, None) == (pools.sight(Source.AUTOSCALER), pools.status)


def test_a_config_map_without_a_status_is_unreadable() -> None:
    """It is there, and says nothing."""
    pools = Pools()

    observe(pools, StatusSeen(None), NOW)

    assert pools.status is not None
    assert "the ConfigMap has no key `status`" == pools.status.problem
    assert pools.status_at is None


def test_errors_of_groups_come_by_events_too() -> None:
    """Where the ConfigMap is not visible they are all there is; an older one changes nothing."""
    failed = event("FailedToScaleUpGroup", "s", "Scale-up failed for group g-1: quota exceeded", kind="ConfigMap")
    late = event(
        "ScaleUpTimedOut",
        "s",
        "Nodes added to group g-2 failed to register within 15m0s",
        kind="ConfigMap",
        when="2026-03-02T10:03:00Z",
    )
    older = event(
        "ScaleUpTimedOut",
        "x",
        "Nodes added to group g-1 failed to register",
        kind="ConfigMap",
        when="2026-03-02T09:00:00Z",
    )
    unreadable = event("FailedToScaleUpGroup", "y", "Scale-up failed", kind="ConfigMap")
    pools = held(notes=(failed, late, older, unreadable))

    assert {"g-1": ErrorKind.QUOTA, "g-2": ErrorKind.TIMEOUT} == {
        name: each.error.kind for name, each in pools.errors.items()
    }
    assert "Nodes failed to register within 15m0s" == pools.errors["g-2"].error.text


UUID = "7be2f9d4-aaaa-4bbb-8ccc-ddddeeeeffff"
ADDING = f"Failed adding 1 nodes to group {UUID} due to {{}}; source errors: {{}}"


@pytest.mark.parametrize(
    ("code", "text", "kind", "kept"),
    [
        ("OutOfResource.OUT_OF_STOCK", "out of stock in fr-par-2", ErrorKind.STOCK, "OUT_OF_STOCK"),
        ("OutOfResource.QUOTA_EXCEEDED", "", ErrorKind.QUOTA, "QUOTA_EXCEEDED"),
        ("Other.cloudProviderError", "no: that won't do", ErrorKind.OTHER, "cloudProviderError"),
        ("42.x", "quota exceeded", ErrorKind.QUOTA, "x"),
        ("OutOfResource.", "quota exceeded", ErrorKind.QUOTA, ""),
        ("OUT_OF_STOCK", "none", ErrorKind.STOCK, "OUT_OF_STOCK"),
    ],
)
def test_nodes_that_the_provider_does_not_make(code: str, text: str, kind: ErrorKind, kept: str) -> None:
    """clusterstate.go prints class and code, and the provider's words; the class is no part of the code."""
    failed = event("ScaleUpFailed", "status", ADDING.format(code, text), kind="ConfigMap")
    unreadable = event("ScaleUpFailed", "other", "Failed adding 1 nodes to group g: no", kind="ConfigMap")
    pools = held(notes=(failed, unreadable))

    assert [UUID] == list(pools.errors)
    error = pools.errors[UUID].error
    assert (kind, kept, text) == (error.kind, error.code, error.text)


def test_of_two_groups_that_fail_both_are_known_in_whatever_order() -> None:
    """They are Events of one ConfigMap and one reason."""
    text = "Failed adding 1 nodes to group {} due to Other.x; source errors: y"
    late = event("ScaleUpFailed", "status", text.format("late"), kind="ConfigMap", when="2026-03-02T10:05:00Z")
    early = event("ScaleUpFailed", "status", text.format("early"), kind="ConfigMap", when="2026-03-02T10:01:00Z")

    for notes in ((late, early), (early, late)):
        assert {"late", "early"} == set(held(notes=notes).errors)


def test_an_event_that_a_later_status_knows_better() -> None:
    """After a start it may be read after the status: it is over where that was written later and names no error."""
    failed = event("ScaleUpFailed", "status", ADDING.format("Other.x", "y"), kind="ConfigMap")  # of 10:00

    def over(status: str | None, when: str = "") -> bool:
        pools = held(status=status)
        later = replace(failed, at=failed.at + 900) if when and failed.at else failed
        observe(pools, NoteSeen(later), NOW)
        return pools.errors[UUID].over is not None

    assert over(status_text(group(UUID)))
    assert over(status_text(group("another", error=("X", "y"))))
    assert not over(None)
    assert not over(status_text(group(UUID)), "later")
    assert not over(status_text(group(UUID), written="never"))
    assert not over(status_text(group(UUID), autoscalerStatus="Initializing"))
    assert not over("nodeGroups: [")
    pools = held(status=status_text(group(UUID, error=("QUOTA_EXCEEDED", "no"))))
    observe(pools, NoteSeen(replace(failed, at=NOW - 1)), NOW)
    assert pools.errors[UUID].over is None


def test_an_event_without_a_time_is_still_an_error() -> None:
    """It is known that it failed, not when."""
    pools = Pools()
    timeless = replace(event("FailedToScaleUpGroup", "s", "Scale-up failed for group g: x", kind="ConfigMap"), at=None)

    observe(pools, NoteSeen(timeless), NOW)
    observe(pools, NoteSeen(timeless), NOW)

    assert pools.errors["g"].error.at is None


def test_errors_are_bounded() -> None:
    """Groups may come and go."""
    pools = Pools()
    for number in range(held_pools.KEPT_ERRORS + 1):
        message = f"Scale-up failed for group g{number}: x"
        observe(pools, NoteSeen(event("FailedToScaleUpGroup", f"s{number}", message, kind="ConfigMap")), NOW)

    assert held_pools.KEPT_ERRORS == len(pools.errors)


SIGHTINGS = [
    NodesListed((node("a"), node("b", gpus=0))),
    NodesListed(()),
    NodeSeen(node("a", taints=[("ToBeDeletedByClusterAutoscaler", "NoSchedule")])),
    NodeSeen(node("a"), gone=True),
    PodsListed((pod("p"), pod("q", node="a")), everywhere=True),
    PodsListed((), everywhere=False),
    PodSeen(pod("p", node="a")),
    PodSeen(pod("p", message="0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")),
    PodSeen(pod("p", phase="Failed")),
    PodSeen(pod("q", node="a"), gone=True),
    NotesListed((event("TriggeredScaleUp", "p", "pod triggered scale-up: [{g 0->1 (max: 2)}]"),), True),
    NoteSeen(event("NotTriggerScaleUp", "p", "pod didn't trigger scale-up: 1 max node group size reached")),
    StatusSeen(status_text(group("g", error=("E", "m")))),
    StatusSeen(status_text(group("g"))),
    StatusSeen(None, there=False),
    StatusSeen("broken: ["),
    *(SourceHidden(source) for source in Source),
]


@given(st.lists(st.sampled_from(SIGHTINGS), max_size=25))
def test_any_order_of_sightings_can_be_shown(seen: list) -> None:
    """Watches are independent of each other: everything may come before or after everything else, and again."""
    pools = Pools()
    for each in seen:
        observe(pools, each, NOW)
        observe(pools, each, NOW)

    found = view(pools, [], SETTINGS, NOW)

    holding = {uid for uids in pools.holders.values() for uid in uids}
    assert {uid for uid, each in pools.pods.items() if each.node} == holding
    assert all(each.free is None or 0 <= each.free <= each.total for each in found.pools)
