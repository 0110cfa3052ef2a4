"""A phrase book for pools: nodes, pods, events and the autoscaler's status, as the API writes them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import msgspec
import yaml

from bot.core.card import Card, card_of
from bot.core.kube import KubeEvent, Node, Pod
from bot.core.pools import Pools, observe
from bot.core.settings import Pool
from bot.core.sightings import (
    GpuPod,
    NodesListed,
    Note,
    NotesListed,
    PodsListed,
    PoolNode,
    Source,
    SourceHidden,
    StatusSeen,
    gpu_pod,
    note,
    pool_node,
)
from tests.phrases import NOW, SETTINGS, workflow

LABEL = "k8s.scaleway.com/pool-name"
H100, L40S, L4 = "ci-training-h100", "ci-training", "ci-compile"
POOLS = (
    Pool(H100, "H100", "90", max_nodes=1, groups=("7be2f9d4-aaaa-4bbb-8ccc-ddddeeeeffff",)),
    Pool(L40S, "L40S", "89", max_nodes=1),
    Pool(L4, "L4", "89"),
)
ONE_POOL = replace(SETTINGS, pools=POOLS[:1])
THREE_POOLS = replace(SETTINGS, pools=POOLS)


def at(clock: str, day: int = 2) -> str:
    """A time of the day of `NOW` as the API writes it; NOW is 10:06."""
    return f"2026-03-{day:02d}T{clock}:00Z"


def node_json(
    name: str = "h100-a", pool: str = H100, gpus: int = 1, *, ready: str = "True", taints: Any = None, **more: Any
) -> dict[str, Any]:
    """A node; `taints` as pairs of key and effect."""
    labels = {LABEL: pool, "kubernetes.io/hostname": name} | more.pop("labels", {})
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": labels, "creationTimestamp": at("08:00")},
        "spec": {"taints": [{"key": k, "effect": e} for k, e in taints]} if taints else {} | more.pop("spec", {}),
        "status": {
            "allocatable": {"cpu": "32", "nvidia.com/gpu": str(gpus)},
            "conditions": [{"type": "Ready", "status": ready}],
        }
        | more,
    }


def node(name: str = "h100-a", pool: str = H100, gpus: int = 1, **more: Any) -> PoolNode:
    """The same, as it is kept."""
    return pool_node(msgspec.json.decode(json.dumps(node_json(name, pool, gpus, **more)), type=Node), SETTINGS)


def pod_json(name: str = "p", gpus: int = 1, **more: Any) -> dict[str, Any]:
    """A pod that asks for GPUs; `node`, `pool`, `workflow`, `message`, `gates`, `phase`, `spec` and `status` change it."""
    labels = {"workflows.argoproj.io/workflow": more["workflow"]} if "workflow" in more else {}
    labels |= more.get("labels", {})
    spec: dict[str, Any] = {
        "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}],
        "nodeSelector": {LABEL: more.get("pool", H100)},
    }
    if "node" in more:
        spec["nodeName"] = more["node"]
    if "gates" in more:
        spec["schedulingGates"] = [{"name": gate} for gate in more["gates"]]
    status: dict[str, Any] = {"phase": more.get("phase", "Pending")}
    if "message" in more:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": more["message"]}
        status["conditions"] = [condition]
    meta = {
        "name": name,
        "namespace": more.get("namespace", "foxhunt"),
        "uid": f"uid-{name}",
        "labels": labels,
        "creationTimestamp": more.get("created", at("09:50")),
        "deletionTimestamp": more.get("deleted"),
    }
    return {"metadata": meta, "spec": spec | more.get("spec", {}), "status": status | more.get("status", {})}


def pod(name: str = "p", gpus: int = 1, **more: Any) -> GpuPod:
    """The same, as it is kept."""
    found = gpu_pod(msgspec.json.decode(json.dumps(pod_json(name, gpus, **more)), type=Pod), SETTINGS)
    assert found is not None
    return found


def placeholder(name: str = "gpu-warm-1", until: object = int(NOW) + 1800, **more: Any) -> GpuPod:
    """A pod that keeps a node up, as it is kept."""
    return pod(name, labels={"gputest.bot/role": "placeholder", "gputest.bot/until": str(until)}, **more)


def event(reason: str, about: str, message: str, *, kind: str = "Pod", when: str = at("10:00")) -> Note:
    """An Event, as it is kept; about a pod by its name."""
    subject = {"kind": kind, "name": about, "uid": f"uid-{about}" if kind == "Pod" else ""}
    body = {
        "metadata": {"name": f"{about}.{reason}", "creationTimestamp": when},
        "reason": reason,
        "message": message,
        "involvedObject": subject,
        "lastTimestamp": when,
    }
    found = note(msgspec.json.decode(json.dumps(body), type=KubeEvent))
    assert found is not None
    return found


def status_text(*groups: dict[str, Any], written: str = "2026-03-02 10:05:50 +0000 UTC", **more: Any) -> str:
    """The autoscaler's status in YAML."""
    document = {"time": written, "autoscalerStatus": "Running", "nodeGroups": list(groups)} | more
    return yaml.safe_dump(document, sort_keys=False)


def group(name: str, ready: int = 0, target: int = 0, largest: int = 2, **up: Any) -> dict[str, Any]:
    """One node group of it; `scaleUp` is NoActivity unless `error` says why it is in backoff."""
    error = up.pop("error", None)
    scale_up: dict[str, Any] = {"status": "NoActivity"} | up
    if error is not None:
        scale_up = {
            "status": "Backoff",
            "backoffInfo": {"errorCode": error[0], "errorMessage": error[1]},
            "lastTransitionTime": at("09:58"),
        } | up
    return {
        "name": name,
        "health": {
            "status": "Healthy",
            "nodeCounts": {"registered": {"total": ready, "ready": ready}},
            "cloudProviderTarget": target,
            "minSize": 0,
            "maxSize": largest,
        },
        "scaleUp": scale_up,
    }


def held(
    nodes: tuple[PoolNode, ...] = (),
    pods: tuple[GpuPod, ...] = (),
    notes: tuple[Note, ...] = (),
    status: str | None = None,
    *,
    everywhere: bool = True,
    hidden: tuple[Source, ...] = (),
) -> Pools:
    """Pools after all four sources were listed once."""
    pools = Pools()
    observe(pools, NodesListed(nodes), NOW)
    observe(pools, PodsListed(pods, everywhere), NOW)
    observe(pools, NotesListed(notes, everywhere), NOW)
    observe(pools, StatusSeen(status, there=status is not None), NOW)
    for source in hidden:
        observe(pools, SourceHidden(source), NOW)
    return pools


def run(name: str = "gpu-test-k7m2", user: str = "anna", **more: Any) -> Card:
    """The card of a run that somebody asked for in the chat."""
    request = {"name": name, "request_id": "r", "user_id": f"U-{user}", "user_name": user, "channel": "CHANNEL"}
    meta = {"annotations": {"gputest.bot/request": json.dumps(request)}}
    return card_of(workflow(name, meta=meta, **more), SETTINGS)
