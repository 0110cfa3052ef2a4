"""Nodes that exist in the API only: kwok keeps them ready and serves the logs of their pods.

kwok gets the stages of nodes and none of pods, so pods wait for the pod player. Its own server takes the kubelet's
place for `pods/log`: the API server asks it, and it reads the file that a ``Logs`` object names.
"""

import json
from datetime import UTC, datetime
from pathlib import Path

import aiohttp

from .build import binaries
from .cluster import Kube, answers, install
from .kube_client import Manifest
from .ports import free_ports
from .process import Service

_KWOK = "/apis/kwok.x-k8s.io/v1alpha1"
_NODES = "/api/v1/nodes"
_MANAGED = "kwok.x-k8s.io/node"
GPU = "nvidia.com/gpu"


class Nodes:
    """kwok, and the nodes that were added."""

    def __init__(self, kube: Kube, session: aiohttp.ClientSession, folder: Path, pool_label: str) -> None:
        self._kube = kube
        self._session = session
        self._folder = folder
        self._pool_label = pool_label
        (self._port,) = free_ports(1)

    async def install(self) -> None:
        """Install kwok's definitions, and the two stages that make a node ready and keep it so."""
        built = binaries("kwok")
        await install(self._kube.admin, json.loads((built / "crds.json").read_text()))
        for stage in json.loads((built / "node-stages.json").read_text()):
            await self._kube.admin.create(f"{_KWOK}/stages", stage)

    def service(self) -> Service:
        """Return kwok; it serves with the API server's certificate, which is for the same address."""
        certificate = self._kube.ca_file
        command: list[str | Path] = [
            binaries("kwok") / "bin" / "kwok",
            *("--kubeconfig", self._kube.kubeconfig(self._folder / "kwok.kubeconfig")),
            f"--manage-nodes-with-annotation-selector={_MANAGED}=fake",
            "--enable-crds=Stage,Logs",
            *("--server-address", f"127.0.0.1:{self._port}", "--node-ip", "127.0.0.1", "--node-port", str(self._port)),
            *("--tls-cert-file", certificate, "--tls-private-key-file", certificate.with_suffix(".key")),
        ]
        url = f"https://127.0.0.1:{self._port}/healthz"
        return Service("kwok", command, self._folder, lambda: answers(self._session, url), grace=3.0)

    async def add_node(self, name: str, pool: str, gpus: int = 0, taint: str | None = None) -> None:
        """Add a ready node; ``taint`` is written as kubectl writes it, ``key=value:Effect`` or ``key:Effect``."""
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", self._pool_label: pool}
        room = {"cpu": "32", "memory": "256Gi", "pods": "110", GPU: str(gpus)}
        node: Manifest = {
            "metadata": {"name": name, "labels": labels, "annotations": {_MANAGED: "fake"}},
            "spec": {"taints": [_parse_taint(taint)] if taint else []},
            "status": {"capacity": room, "allocatable": room},
        }
        await self._kube.admin.create(_NODES, node)
        try:
            await self._kube.admin.until(f"{_NODES}/{name}", _ready, limit=5)
        except TimeoutError:
            await self._show_stages_again()
            await self._kube.admin.until(f"{_NODES}/{name}", _ready)

    async def _show_stages_again(self) -> None:
        """Touch the stages: kwok 0.7 now and then starts with none.

        It keeps what it read by the list's version, which is still empty while the objects of its first list are told
        (pkg/config/resources/cache.go), and looks again only when a stage changes.
        """
        for stage in (await self._kube.admin.get(f"{_KWOK}/stages"))["items"]:
            path = f"{_KWOK}/stages/{stage['metadata']['name']}"
            await self._kube.admin.merge(path, {"metadata": {"annotations": {"touched": _now()}}})

    async def lose_node(self, name: str) -> None:
        """Let a node fall silent: NotReady and unreachable, as the node controller would mark it; pods stay."""
        path = f"{_NODES}/{name}"
        # First out of kwok's hands, or it would make the node ready again.
        await self._kube.admin.merge(path, {"metadata": {"annotations": {_MANAGED: None}}})
        taints = (await self._kube.admin.get(path))["spec"].get("taints", [])
        taints += [
            {"key": "node.kubernetes.io/unreachable", "effect": effect} for effect in ("NoSchedule", "NoExecute")
        ]
        await self._kube.admin.merge(path, {"spec": {"taints": taints}})
        condition = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "lastTransitionTime": _now()}
        condition["message"] = "Kubelet stopped posting node status."
        await self._kube.admin.merge(f"{path}/status", {"status": {"conditions": [condition]}})

    async def remove_node(self, name: str) -> None:
        """Remove a node, as an autoscaler does; its pods stay where they are."""
        await self._kube.admin.delete(f"{_NODES}/{name}")

    async def write_log(self, namespace: str, pod: str, container: str, text: str) -> None:
        """Append lines to the log of a container of a pod that is bound to one of these nodes."""
        log = self._folder / f"log-{namespace}-{pod}-{container}"
        known = log.exists()
        with log.open("a") as handle:
            # The format of container runtimes: time, stream, F for a full line, text.
            handle.writelines(f"{_now()} stdout F {line}\n" for line in text.splitlines())
        if not known:
            spec = {"logs": [{"containers": [container], "logsFile": str(log), "follow": True}]}
            body: Manifest = {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Logs", "metadata": {"name": pod}}
            await self._kube.admin.ensure(f"{_KWOK}/namespaces/{namespace}/logs", body | {"spec": spec})


def _ready(node: Manifest) -> bool:
    conditions = node.get("status", {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _parse_taint(text: str) -> Manifest:
    key_value, _, effect = text.rpartition(":")
    key, _, value = key_value.partition("=")
    return {"key": key, "value": value, "effect": effect}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
