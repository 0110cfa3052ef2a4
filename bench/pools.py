"""What watching a large cluster costs: its nodes, and pods that all ask for a GPU, which is the worst they can do."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.figures import Figure
from bench.services import Start, at_rest, say
from tests.real.rig.kube_client import Manifest
from tests.real.rig.launcher import POOL_LABEL
from tests.real.rig.nodes import GPU
from tests.real.stage import DEPLOY, RealStage

NODES, PODS = int(os.environ.get("BENCH_NODES", "500")), int(os.environ.get("BENCH_PODS", "5000"))
POOLS = ("ci-training-h100", "ci-training", "ci-compile")
A_NODE = 8
"""Pods that have a place on a node, with one GPU each; the others wait for one."""

PATH = "/api/v1/namespaces/research/pods"
WAITS = (
    f"0/{NODES} nodes are available: {NODES} Insufficient nvidia.com/gpu. preemption: 0/{NODES} nodes are available."
)


def node(number: int) -> Manifest:
    """A node of a pool, with the labels, conditions and images that a real one carries; about 6 KB."""
    name = f"gpu-{number:04d}"
    labels = {f"example.com/label-{i}": f"value-{i}" for i in range(30)}
    labels |= {"kubernetes.io/hostname": name, POOL_LABEL: POOLS[number % 3]}
    room = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: str(A_NODE)}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": "2026-01-02T10:00:00Z"}
    images = [{"names": [f"registry.example.com/team/image-{i}@sha256:{'0' * 64}"], "sizeBytes": i} for i in range(30)]
    status = {"capacity": room, "allocatable": room, "conditions": [ready], "images": images}
    return {"metadata": {"name": name, "labels": labels}, "status": status}


def pod(number: int) -> Manifest:
    """A pod of another team that asks for a GPU, as large as real ones; about 5 KB."""
    gpu = {GPU: "1"}
    environment = [{"name": f"SETTING_{i}", "value": "x" * 40} for i in range(40)]
    container = {
        "name": "main",
        "image": "registry.example.com/train:1",
        "env": environment,
        "resources": {"limits": gpu, "requests": gpu},
    }
    spec: dict[str, Any] = {"containers": [container], "nodeSelector": {POOL_LABEL: POOLS[number % 3]}}
    if number < NODES * A_NODE:
        spec["nodeName"] = f"gpu-{number % NODES:04d}"
    return {"metadata": {"name": f"train-{number:05d}", "labels": {"app": "train"}}, "spec": spec}


def condition(number: int) -> Manifest:
    """What the kubelet or the scheduler says of it."""
    if number < NODES * A_NODE:
        return {"status": {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}]}}
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": WAITS}
    return {"status": {"phase": "Pending", "conditions": [waits]}}


async def _many(what: str, count: int, one: Callable[[int], Awaitable[None]]) -> None:
    numbers: Iterator[int] = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await one(number)

    await asyncio.gather(*(work() for _ in range(16)))
    say(f"{count} {what}")


@asynccontextmanager
async def crowded(stage: RealStage) -> AsyncIterator[None]:
    """The nodes and pods, as long as the block lasts. No kubelet and no kwok keeps them: they are objects."""
    admin = stage.rig.kube.admin
    await admin.ensure("/api/v1/namespaces", {"metadata": {"name": "research"}})
    await admin.ensure("/api/v1/namespaces/research/serviceaccounts", {"metadata": {"name": "default"}})

    async def make_node(number: int) -> None:
        body = node(number)
        await admin.create("/api/v1/nodes", body)

    async def make_pod(number: int) -> None:
        body = pod(number)
        await admin.create(PATH, body)
        await admin.merge(f"{PATH}/{body['metadata']['name']}/status", condition(number))

    await _many("nodes made", NODES, make_node)
    await _many("pods made", PODS, make_pod)
    try:
        yield
    finally:
        await _many("pods gone", PODS, lambda n: _gone(stage, f"{PATH}/train-{n:05d}"))
        await _many("nodes gone", NODES, lambda n: _gone(stage, f"/api/v1/nodes/gpu-{n:04d}"))


async def _gone(stage: RealStage, path: str) -> None:
    await stage.rig.kube.admin.delete(path, {"gracePeriodSeconds": 0} if "/pods/" in path else None)


async def _sees_all(stage: RealStage, port: int) -> None:
    """The figure is of a bot that holds all of it, not of one that sees nothing."""
    form = {"token": "x", "command": "/gpu", "text": "", "user_id": stage.anna.user_id, "channel_id": stage.channel}
    form |= {"trigger_id": str(time.time()), "user_name": "anna", "team_id": stage.team}
    async with stage.rig.session.post(f"http://127.0.0.1:{port}/commands", data=form) as response:
        text = str((await response.json())["text"])
    nodes = sum(int(found) for found in re.findall(r"(\d+) nodes", text.split("⏳", maxsplit=1)[0]))
    gpus = sum(int(found) for found in re.findall(r"of (\d+) GPUs free", text))
    if (nodes, gpus) != (NODES, NODES * A_NODE) or text.count("train-") < len(POOLS):
        raise AssertionError(f"the bot holds {nodes} nodes and {gpus} GPUs:\n{text}")


async def watching(stage: RealStage, folder: Path) -> list[Figure]:
    """Memory over that of a bot in an empty cluster, and the requests of a minute in which nothing happens."""
    await stage.apply(DEPLOY / "bot" / "rbac-cluster.yaml")
    alone, among, quiet = [], [], []
    for _ in range(3):
        empty = Start(stage, folder)
        await empty.run(10.0)
        alone.append(empty.memory)
    async with crowded(stage):
        for number in range(3):
            full = Start(stage, folder)

            async def rest(port: int, *, last: bool = number == 2) -> None:
                await _sees_all(stage, port)
                if last:
                    quiet.append((await at_rest(stage, port)).ours[0])

            await full.run(10.0, rest)
            among.append(full.memory)
    what = f"{NODES} nodes and {PODS} pods with a GPU"
    return [
        Figure(f"memory with {what}", "MB", tuple(among), tuple(alone), 60),
        Figure(f"requests in a minute at rest, {what}", "", tuple(quiet), (0.0,), 10),
    ]
