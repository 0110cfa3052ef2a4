"""Priorities of pods: what keeps a node warm gives way, and nothing else is evicted by a test run."""

from __future__ import annotations

from typing import Any

from bot.demo import EmbeddedWorld
from bot.demo.cluster import Cluster
from bot.demo.kinds import EVENTS, NODES, PODS
from bot.demo.pools import GPU, POOL_LABEL

H100 = "ci-training-h100"
SECONDS = 5.0
"""Within which a placeholder is gone and what takes its place is bound."""


def make(cluster: Cluster, name: str, priority: str = "", **spec: Any) -> None:
    """Somebody creates a pod that asks for one GPU of the H100 pool."""
    body: dict[str, Any] = {
        "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": {"limits": {GPU: "1"}}}],
        "nodeSelector": {POOL_LABEL: H100},
        "tolerations": [{"key": GPU, "operator": "Exists"}],
        "terminationGracePeriodSeconds": 1,
    }
    named = {"priorityClassName": priority} if priority else {}
    meta = {"namespace": "foxhunt", "name": name}
    cluster.store.create(PODS, {"metadata": meta, "spec": body | named | spec, "status": {"phase": "Pending"}})


def node_of(cluster: Cluster, name: str) -> str:
    """The node of a pod; "" for none, "gone" for a pod that is not there."""
    pod = cluster.store.find(PODS, "foxhunt", name)
    return "gone" if pod is None else str(pod["spec"].get("nodeName", ""))


async def kept_warm(world: EmbeddedWorld) -> Cluster:
    """The only node that there may be is up, and a placeholder has its GPU."""
    cluster = world.cluster
    cluster.autoscaler.pools[H100].maximum = 1
    make(cluster, "gpu-warm-1", "gpu-placeholder")
    await cluster.until(lambda: bool(node_of(cluster, "gpu-warm-1")))
    await cluster.clock.advance(60)
    return cluster


async def test_a_placeholder_brings_a_node_up_and_gives_way_to_an_ordinary_pod(world: EmbeddedWorld) -> None:
    """Gone within five seconds, and the other is on its node; it is said where it was sent away."""
    cluster = await kept_warm(world)
    node = node_of(cluster, "gpu-warm-1")
    assert cluster.store.get(PODS, "foxhunt", "gpu-warm-1")["status"]["phase"] == "Running"

    make(cluster, "training")
    await cluster.clock.advance(SECONDS)

    assert (node_of(cluster, "gpu-warm-1"), node_of(cluster, "training")) == ("gone", node)
    assert len([one for one in cluster.store.all(NODES) if one["metadata"]["labels"][POOL_LABEL] == H100]) == 1
    (said,) = [event for event in cluster.store.all(EVENTS) if event["reason"] == "Preempted"]
    assert said["message"].endswith(f"on node {node}")
    assert cluster.store.get(PODS, "foxhunt", "training")["status"]["nominatedNodeName"] == node


async def test_a_test_run_evicts_nobody(world: EmbeddedWorld) -> None:
    """Its class never preempts, not even a placeholder: that is the bot's to take away. The scheduler says why."""
    cluster = await kept_warm(world)
    make(cluster, "test", "gpu-test-manual")
    await cluster.clock.advance(60)

    assert node_of(cluster, "test") == ""
    (condition,) = cluster.store.get(PODS, "foxhunt", "test")["status"]["conditions"]
    assert condition["message"].endswith("preemption: not eligible due to preemptionPolicy=Never.")


async def test_an_ordinary_pod_evicts_no_other(world: EmbeddedWorld) -> None:
    """Of the same priority nobody goes, nor where the room would not do."""
    cluster = await kept_warm(world)
    make(cluster, "training")
    await cluster.clock.advance(SECONDS)
    make(cluster, "another")
    await cluster.clock.advance(60)

    assert node_of(cluster, "another") == ""
    assert node_of(cluster, "training")


async def test_two_gpus_are_not_got_from_one(world: EmbeddedWorld) -> None:
    """Sending the placeholder away would not help, so it stays."""
    cluster = await kept_warm(world)
    container = {"name": "main", "image": "x", "resources": {"limits": {GPU: "2"}}}
    make(cluster, "large", containers=[container])
    await cluster.clock.advance(60)

    assert node_of(cluster, "gpu-warm-1") not in {"", "gone"}
    assert node_of(cluster, "large") == ""


async def test_a_placeholder_ends_by_itself(world: EmbeddedWorld) -> None:
    """The kubelet ends it after its time, and it stays as an object until somebody deletes it."""
    cluster = world.cluster
    make(cluster, "gpu-warm-1", "gpu-placeholder", activeDeadlineSeconds=600)
    await cluster.until(lambda: bool(node_of(cluster, "gpu-warm-1")))
    await cluster.clock.advance(700)

    assert cluster.store.get(PODS, "foxhunt", "gpu-warm-1")["status"]["reason"] == "DeadlineExceeded"
