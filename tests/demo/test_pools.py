"""GPU pools: from nothing to a node and back, and what can go wrong with it."""

from __future__ import annotations

import yaml

from bot.demo import EmbeddedWorld
from bot.demo.cluster import Cluster
from bot.demo.kinds import CONFIGMAPS, EVENTS, PODS, WORKFLOW_TEMPLATES
from bot.demo.pods import Exit, Wait
from bot.demo.pools import GPU, POOL_LABEL

H100 = "ci-training-h100"


def group(cluster: Cluster, pool: str = H100) -> dict:
    """The autoscaler's status of a pool."""
    data = cluster.store.get(CONFIGMAPS, "kube-system", "cluster-autoscaler-status")["data"]["status"]
    identity = cluster.autoscaler.pools[pool].id
    return next(one for one in yaml.safe_load(data)["nodeGroups"] if one["name"] == identity)


def reasons(cluster: Cluster) -> set[str]:
    """The reasons of all events."""
    return {event["reason"] for event in cluster.store.all(EVENTS)}


def gpu_nodes(cluster: Cluster) -> list[dict]:
    """The nodes of the H100 pool."""
    return [node for node in cluster.nodes() if node["metadata"]["labels"][POOL_LABEL] == H100]


async def test_a_node_comes_in_steps_and_goes_when_idle(world: EmbeddedWorld) -> None:
    """Ordered, registered, ready, its GPU shown; gone ten minutes after the last pod."""
    cluster = world.cluster
    cluster.script("compile-and-test", [Wait(5), Exit(0)])
    name = cluster.submit("run-1")
    await cluster.clock.advance(1)

    assert group(cluster)["health"]["cloudProviderTarget"] == 1
    assert group(cluster)["scaleUp"] == {"status": "InProgress"}
    assert {"FailedScheduling", "TriggeredScaleUp"} <= reasons(cluster)
    await cluster.until(lambda: bool(gpu_nodes(cluster)))

    assert gpu_nodes(cluster)[0]["status"]["conditions"][0]["status"] == "False"
    await cluster.until(lambda: gpu_nodes(cluster)[0]["status"]["conditions"][0]["status"] == "True")

    assert GPU not in gpu_nodes(cluster)[0]["status"]["allocatable"]
    await cluster.until_running(name)

    assert gpu_nodes(cluster)[0]["status"]["allocatable"][GPU] == "1"
    assert len(gpu_nodes(cluster)) == 1
    await cluster.until_ended(name)
    await cluster.clock.advance(580)

    assert len(gpu_nodes(cluster)) == 1
    await cluster.clock.advance(30)

    assert gpu_nodes(cluster) == []
    assert group(cluster)["health"]["cloudProviderTarget"] == 0


async def test_out_of_stock_backs_off_and_tries_again(world: EmbeddedWorld) -> None:
    """Backoff with the provider's code and words; after it, with stock, the node comes."""
    cluster = world.cluster
    cluster.hang()
    cluster.autoscaler.fail(H100, "OUT_OF_STOCK")
    name = cluster.submit("run-1")
    await cluster.clock.advance(31)
    backoff = group(cluster)["scaleUp"]

    assert backoff["status"] == "Backoff"
    assert backoff["backoffInfo"]["errorCode"] == "OUT_OF_STOCK"
    assert "ScaleUpFailed" in reasons(cluster)
    cluster.autoscaler.heal(H100)
    await cluster.until_running(name)

    assert group(cluster)["scaleUp"] == {"status": "NoActivity"}


async def test_a_pool_has_an_end(world: EmbeddedWorld) -> None:
    """More pods than nodes wait; the pool grows to its maximum only."""
    cluster = world.cluster
    cluster.hang("gpu-warmup")
    cluster.patch(WORKFLOW_TEMPLATES, "gpu-test-pipeline", lambda obj: obj["spec"].pop("synchronization"))
    for number in range(4):
        cluster.submit(f"run-{number}")
    await cluster.clock.advance(3600)

    assert len(gpu_nodes(cluster)) == 2
    assert "NotTriggerScaleUp" in reasons(cluster)


async def test_gated_pods_ask_for_nothing(world: EmbeddedWorld) -> None:
    """A scheduling gate holds a pod, and the autoscaler is not asked."""
    cluster = world.cluster
    spec = {
        "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
        "nodeSelector": {POOL_LABEL: H100},
        "containers": [{"name": "main", "resources": {"limits": {GPU: "1"}}}],
    }
    cluster.store.create(
        PODS, {"metadata": {"name": "gated", "namespace": "foxhunt"}, "spec": spec, "status": {"phase": "Pending"}}
    )
    await cluster.clock.advance(600)
    pod = cluster.store.get(PODS, "foxhunt", "gated")

    assert pod["status"]["conditions"][0]["reason"] == "SchedulingGated"
    assert gpu_nodes(cluster) == []
