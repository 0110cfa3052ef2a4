"""GPU pools and the autoscaler that brings their nodes up and takes them away.

A pool has no node until a pod asks for its GPU; then a node is ordered, boots, joins not ready, becomes ready, and
shows its GPU when the driver is installed. What the autoscaler says, it says where the real one does: in the
ConfigMap kube-system/cluster-autoscaler-status (YAML of 1.30 and later) and in events
(https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import yaml

from bot.demo.deleting import delete
from bot.demo.events import Recorder
from bot.demo.kinds import CONFIGMAPS, NODES, PODS
from bot.demo.world import Json, Store, stamp

POOL_LABEL, POOL_ID_LABEL = "k8s.scaleway.com/pool-name", "k8s.scaleway.com/pool"
GPU = "nvidia.com/gpu"
STATUS_NAME = "cluster-autoscaler-status"
IDLE_SECONDS = 600.0
"""How long a node is unneeded before it goes (--scale-down-unneeded-time)."""
BACKOFF_SECONDS = 300.0
"""How long a pool is left alone after a failed scale-up (--initial-node-group-backoff-duration)."""

OUT_OF_RESOURCE = frozenset({"OUT_OF_STOCK", "QUOTA_EXCEEDED"})
"""Codes of the autoscaler's class for lack of stock or quota; all others are of the class Other."""


@dataclass
class Pool:
    """One pool of nodes: its make, its limits, its speed, and what is wrong with it."""

    name: str
    gpu_product: str = ""
    gpus: int = 0
    cpu: str = "24"
    memory: str = "240Gi"
    minimum: int = 0
    maximum: int = 1
    boot_seconds: float = 150.0
    ready_seconds: float = 20.0
    driver_seconds: float = 60.0
    failure: str = ""
    """Error code with which new nodes fail: "OUT_OF_STOCK", "QUOTA_EXCEEDED", …; "" when all is well."""
    failure_message: str = ""
    never_joins: bool = False
    """Ordered nodes cost money but never register."""
    id: str = ""
    backoff_until: float = 0.0
    error: tuple[str, str] | None = None
    ordered: int = 0
    """Nodes that are on their way."""
    nodes: list[str] = field(default_factory=list)
    joining: set[str] = field(default_factory=set)
    """Nodes that are registered, but do not take pods yet."""

    @property
    def target(self) -> int:
        """How many nodes the provider is asked for."""
        return len(self.nodes) + self.ordered


def default_pools() -> list[Pool]:
    """The pools of the specifications, and a small one for everything else."""
    return [
        Pool("ci-training-h100", "NVIDIA-H100-80GB-HBM3", 1, maximum=2),
        Pool("ci-training", "NVIDIA-L40S", 1, cpu="8", memory="96Gi", maximum=1, boot_seconds=120.0),
        Pool("ci-compile", "NVIDIA-L4", 1, cpu="8", memory="48Gi", maximum=1, boot_seconds=100.0),
        Pool("services", cpu="4", memory="16Gi", minimum=1, maximum=3, boot_seconds=60.0),
    ]


class Autoscaler:
    """Adds and removes the nodes of the pools."""

    def __init__(self, store: Store, recorder: Recorder, pools: list[Pool]) -> None:
        self.store = store
        self.pools = {pool.name: pool for pool in pools}
        self.node_changed: Callable[[], None] = lambda: None
        """Called when a node can take more, so that the scheduler tries again."""
        self._recorder = recorder
        self._idle_since: dict[str, float] = {}
        self._last_status = ""
        for pool in pools:
            pool.id = pool.id or store.chance.uid()

    def start(self) -> None:
        """Bring the pools to their minimum at once."""
        for pool in self.pools.values():
            for _ in range(pool.minimum):
                self._register(pool)
                self._make_ready(pool.nodes[-1])
                self._show_gpus(pool, pool.nodes[-1])
        self.write_status()

    def ask_for(self, pod: Json) -> None:
        """The scheduler found no place for a pod: order a node where that helps."""
        wanted = (pod["spec"].get("nodeSelector") or {}).get(POOL_LABEL)
        gpus = gpus_of(pod)
        candidates = [
            pool
            for pool in self.pools.values()
            if pool.gpus >= gpus and (pool.name == wanted or (not wanted and not pool.gpus))
        ]
        now = self.store.clock.time()
        if not candidates:
            self._recorder.event(pod, "Normal", "NotTriggerScaleUp", "pod didn't trigger scale-up: no pool matches it")
        for pool in candidates:
            if pool.ordered or pool.joining:
                # What is on its way may be enough: the pods that are left ask again when it is there.
                continue
            if now < pool.backoff_until:
                why = "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
                self._recorder.event(pod, "Normal", "NotTriggerScaleUp", why)
            elif pool.target >= pool.maximum:
                self._recorder.event(
                    pod, "Normal", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached"
                )
            else:
                self._order(pool, pod)
                return

    def fail(self, pool: str, code: str = "OUT_OF_STOCK", message: str = "") -> None:
        """From now on new nodes of a pool fail with an error code of the provider."""
        texts = {
            "OUT_OF_STOCK": "the requested instance type is out of stock in fr-par-2",
            "QUOTA_EXCEEDED": "quota exceeded",
        }
        self.pools[pool].failure = code
        self.pools[pool].failure_message = message or texts.get(code, "node could not be created")

    def heal(self, pool: str) -> None:
        """New nodes of a pool come again, after its backoff."""
        self.pools[pool].failure = ""
        self.pools[pool].never_joins = False

    def lose(self, node: str) -> Json | None:
        """A node vanishes with all that runs on it; returns what it was."""
        obj = self.store.find(NODES, "", node)
        for pool in self.pools.values():
            if node in pool.nodes:
                pool.nodes.remove(node)
                pool.joining.discard(node)
        self._idle_since.pop(node, None)
        self.store.remove(NODES, "", node)
        self.write_status()
        return obj

    def _order(self, pool: Pool, pod: Json) -> None:
        before = pool.target
        pool.ordered += 1
        text = f"pod triggered scale-up: [{{{pool.id} {before}->{before + 1} (max: {pool.maximum})}}]"
        self._recorder.event(pod, "Normal", "TriggeredScaleUp", text)
        self.write_status()
        if pool.failure:
            self.store.clock.call_later(30.0, lambda: self._order_failed(pool))
        elif not pool.never_joins:
            self.store.clock.call_later(pool.boot_seconds, lambda: self._boot(pool))

    def _order_failed(self, pool: Pool) -> None:
        pool.ordered -= 1
        pool.error = (pool.failure or "creation_error", pool.failure_message or "node could not be created")
        pool.backoff_until = self.store.clock.time() + BACKOFF_SECONDS
        self.write_status()
        status = self.store.find(CONFIGMAPS, "kube-system", STATUS_NAME)
        if status is not None:
            # clusterstate.go: the class of the error, then its code
            code = f"{'OutOfResource' if pool.error[0] in OUT_OF_RESOURCE else 'Other'}.{pool.error[0]}"
            text = f"Failed adding 1 nodes to group {pool.id} due to {code}; source errors: {pool.error[1]}"
            self._recorder.event(status, "Warning", "ScaleUpFailed", text)
        self.store.clock.call_at(pool.backoff_until, self._backoff_over)

    def _backoff_over(self) -> None:
        for pool in self.pools.values():
            if pool.error and self.store.clock.time() >= pool.backoff_until:
                pool.error = None
        self.write_status()
        self.node_changed()

    def _boot(self, pool: Pool) -> None:
        pool.ordered -= 1
        name = self._register(pool)
        self.write_status()
        clock = self.store.clock
        clock.call_later(pool.ready_seconds, lambda: self._make_ready(name))
        clock.call_later(
            pool.ready_seconds + pool.driver_seconds * bool(pool.gpus), lambda: self._show_gpus(pool, name)
        )

    def _register(self, pool: Pool) -> str:
        name = f"scw-foxhunt-{pool.name}-{self.store.chance.uid()[:8]}"
        taints = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
        if pool.gpus:
            taints.append({"key": GPU, "value": "present", "effect": "NoSchedule"})
        labels = {POOL_LABEL: pool.name, POOL_ID_LABEL: pool.id, "kubernetes.io/hostname": name}
        if pool.gpus:
            labels["nvidia.com/gpu.product"] = pool.gpu_product
        capacity = {"cpu": pool.cpu, "memory": pool.memory, "pods": "110"}
        self.store.create(
            NODES,
            {
                "metadata": {"name": name, "labels": labels},
                "spec": {"providerID": f"scaleway://instance/fr-par-2/{self.store.chance.uid()}", "taints": taints},
                "status": {
                    "capacity": capacity,
                    "allocatable": dict(capacity),
                    "conditions": [self._ready_condition("False", "KubeletNotReady")],
                    "nodeInfo": self._node_info(),
                },
            },
        )
        pool.nodes.append(name)
        pool.joining.add(name)
        return name

    def _node_info(self) -> Json:
        """All of these are required; typed clients insist."""
        info = {
            "architecture": "amd64",
            "operatingSystem": "linux",
            "osImage": "Ubuntu 24.04",
            "kernelVersion": "6.8.0",
        }
        info |= {
            "containerRuntimeVersion": "containerd://2.0.0",
            "kubeletVersion": "v1.34.4",
            "kubeProxyVersion": "v1.34.4",
        }
        return {**info, **{key: self.store.chance.uid() for key in ("bootID", "machineID", "systemUUID")}}

    def _ready_condition(self, value: str, reason: str) -> Json:
        now = stamp(self.store.clock.now())
        return {"type": "Ready", "status": value, "reason": reason, "lastHeartbeatTime": now, "lastTransitionTime": now}

    def _make_ready(self, name: str) -> None:
        def edit(node: Json) -> None:
            node["status"]["conditions"] = [self._ready_condition("True", "KubeletReady")]
            node["spec"]["taints"] = [one for one in node["spec"].get("taints", ()) if one["key"] == GPU]

        self._edit(name, edit)

    def _show_gpus(self, pool: Pool, name: str) -> None:
        def edit(node: Json) -> None:
            if pool.gpus:
                node["status"]["capacity"][GPU] = node["status"]["allocatable"][GPU] = str(pool.gpus)

        pool.joining.discard(name)
        self._edit(name, edit)
        self.look_at_idle()

    def _edit(self, name: str, edit: Callable[[Json], None]) -> None:
        if self.store.find(NODES, "", name) is not None:
            self.store.change(NODES, "", name, edit)
            self.write_status()
            self.node_changed()

    def look_at_idle(self) -> None:
        """Note which nodes have nothing to do, and take them away when that lasts."""
        busy = {
            pod["spec"].get("nodeName")
            for pod in self.store.all(PODS)
            if pod["status"].get("phase") in ("Pending", "Running")
        }
        now = self.store.clock.time()
        for pool in self.pools.values():
            for name in list(pool.nodes):
                if name in busy or len(pool.nodes) <= pool.minimum:
                    self._idle_since.pop(name, None)
                elif name not in self._idle_since:
                    self._idle_since[name] = now
                    self.store.clock.call_later(IDLE_SECONDS, partial(self._still_idle, name, now))

    def _still_idle(self, name: str, since: float) -> None:
        if self._idle_since.get(name) != since:
            return
        node = self.store.find(NODES, "", name)
        pool = next((pool for pool in self.pools.values() if name in pool.nodes), None)
        if node is None or pool is None:
            return
        self._recorder.event(node, "Normal", "ScaleDown", "node removed by cluster autoscaler")
        pool.nodes.remove(name)
        self._idle_since.pop(name, None)
        delete(self.store, NODES, "", name, {})
        self.write_status()

    def keep_writing(self, seconds: float = 60.0) -> None:
        """From now on write the ConfigMap also when only its time has changed, as the real one does every ten seconds.

        A world that is stepped through whole nights does without.
        """
        self._last_status = ""
        self.write_status()
        self.store.clock.call_later(seconds, lambda: self.keep_writing(seconds))

    def write_status(self) -> None:
        """Write the ConfigMap, where something else than its time has changed."""
        body = {
            "autoscalerStatus": "Running",
            "clusterWide": self._cluster(),
            "nodeGroups": [self._group(pool) for pool in self.pools.values()],
        }
        text = yaml.safe_dump(body, sort_keys=False)
        if text == self._last_status:
            return
        self._last_status = text
        time = self.store.clock.now().strftime("%Y-%m-%d %H:%M:%S.%f000 +0000 UTC")
        data = {"status": yaml.safe_dump({"time": time}, sort_keys=False) + text}
        metadata = {
            "name": STATUS_NAME,
            "namespace": "kube-system",
            "annotations": {"cluster-autoscaler.kubernetes.io/last-updated": time},
        }
        if self.store.find(CONFIGMAPS, "kube-system", STATUS_NAME) is None:
            self.store.create(CONFIGMAPS, {"metadata": metadata, "data": data})
        else:
            self.store.change(CONFIGMAPS, "kube-system", STATUS_NAME, lambda obj: obj.update(data=data))

    def _cluster(self) -> Json:
        return {
            "health": {
                "status": "Healthy",
                "nodeCounts": _counts(*map(sum, zip(*map(self._count, self.pools.values()), strict=True))),
            },
            "scaleUp": {"status": "InProgress" if any(pool.ordered for pool in self.pools.values()) else "NoActivity"},
            "scaleDown": {"status": "NoCandidates"},
        }

    def _count(self, pool: Pool) -> tuple[int, int, int]:
        nodes = [self.store.find(NODES, "", name) for name in pool.nodes]
        ready = sum(1 for node in nodes if node and node["status"]["conditions"][0]["status"] == "True")
        return len(pool.nodes), ready, pool.ordered

    def _group(self, pool: Pool) -> Json:
        scale_up: Json = {"status": "InProgress" if pool.ordered else "NoActivity"}
        if pool.error:
            scale_up = {"status": "Backoff", "backoffInfo": {"errorCode": pool.error[0], "errorMessage": pool.error[1]}}
        health: Json = {
            "status": "Healthy",
            "nodeCounts": _counts(*self._count(pool)),
            "cloudProviderTarget": pool.target,
        }
        health |= {"minSize": pool.minimum, "maxSize": pool.maximum}
        return {"name": pool.id, "health": health, "scaleUp": scale_up, "scaleDown": {"status": "NoCandidates"}}


def gpus_of(pod: Json) -> int:
    """How many GPUs a pod asks for."""
    total = 0
    for container in pod["spec"].get("containers") or ():
        resources: Any = container.get("resources") or {}
        total += int((resources.get("limits") or {}).get(GPU) or (resources.get("requests") or {}).get(GPU) or 0)
    return total


def _counts(total: int, ready: int, unregistered: int) -> Json:
    registered = {"total": total, "ready": ready, "notStarted": total - ready}
    return {"registered": registered, "longUnregistered": 0, "unregistered": unregistered}
