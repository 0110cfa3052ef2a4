"""Prove the rig itself: ``python -m tests.real.rig.selftest``.

Starts everything, has a small workflow of two steps played to its end, and a slash command answered by a small HTTP
server, and prints how long each part took.
"""

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import get_args

from aiohttp import web

from .argo import WORKFLOW_NAMESPACE, ArgoVersion, Crds
from .kube_client import ARGO, Manifest
from .launcher import POOL_LABEL, Rig
from .person import Office
from .pod_script import Bound, Exit, Log, Outputs, Pending, Progress, Running, Script, Wait
from .ports import free_ports

WORKFLOWS = f"{ARGO}/namespaces/{WORKFLOW_NAMESPACE}/workflows"
_NO_GPU = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."


def two_steps(name: str) -> Manifest:
    """Return a workflow whose second step takes the output of the first."""
    container = {"image": "nowhere/test:1", "command": ["test"]}
    results = {"name": "results", "valueFrom": {"path": "/tmp/results.json"}, "globalName": "results"}
    argument = {"name": "results", "value": "{{steps.compile-and-test.outputs.parameters.results}}"}
    report = {"name": "report", "template": "report", "arguments": {"parameters": [argument]}}
    steps = [[{"name": "compile-and-test", "template": "compile-and-test"}], [report]]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": name},
        "spec": {
            "entrypoint": "main",
            "schedulerName": "the-pod-player",  # The real scheduler, if there is one, leaves these pods alone.
            "templates": [
                {"name": "main", "steps": steps},
                {"name": "compile-and-test", "container": container, "outputs": {"parameters": [results]}},
                {"name": "report", "container": container, "inputs": {"parameters": [{"name": "results"}]}},
            ],
        },
    }


def node(workflow: Manifest, display_name: str) -> Manifest:
    """Return the node of a workflow that is shown under a name."""
    nodes = (workflow.get("status", {}).get("nodes") or {}).values()
    found: Manifest = next((each for each in nodes if each["displayName"] == display_name), {})
    return found


async def play_workflow(rig: Rig) -> None:
    """Have a workflow wait for a GPU, run, report and succeed; raise if anything is not as it should be."""
    admin = rig.kube.admin
    results = '{"dqn": "passed"}'
    async with rig.pod_player() as player:
        script: Script = [Pending(_NO_GPU), Wait("gpu"), Running(), Progress("1/2"), Wait("results")]
        player.script("compile-and-test", [*script, Outputs({"results": results}), Exit(0)])
        await admin.create(WORKFLOWS, two_steps("selftest"))
        path = f"{WORKFLOWS}/selftest"
        await admin.until(path, lambda seen: _NO_GPU in str(node(seen, "compile-and-test").get("message")))
        await player.release("gpu")
        await admin.until(path, lambda seen: node(seen, "compile-and-test").get("progress") == "1/2")
        await player.release("results")
        done = await admin.until(path, lambda seen: seen.get("status", {}).get("phase") == "Succeeded")

    outputs = node(done, "compile-and-test")["outputs"]
    assert outputs["parameters"][0]["value"] == results, outputs
    assert outputs["exitCode"] == "0", outputs
    assert node(done, "report")["inputs"]["parameters"][0]["value"] == results
    assert done["status"]["outputs"]["parameters"][0]["name"] == "results", done["status"]["outputs"]


def one_gpu(name: str, pool: str) -> Manifest:
    """Return a workflow of one step that wants a GPU of a pool."""
    gpu = {"nvidia.com/gpu": "1"}
    container = {"image": "nowhere/test:1", "command": ["test"], "resources": {"requests": gpu, "limits": gpu}}
    train = {
        "name": "train",
        "nodeSelector": {POOL_LABEL: pool},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "container": container,
    }
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": name},
        "spec": {"entrypoint": "train", "templates": [train]},
    }


async def play_nodes(rig: Rig) -> None:
    """Have the real scheduler refuse a pod, then place it on a new node, whose kubelet serves its log."""
    admin = rig.kube.admin
    pods = f"/api/v1/namespaces/{WORKFLOW_NAMESPACE}/pods"
    async with rig.pod_player() as player:
        player.script("train", [Bound(), Running(), Log("epoch 1\nepoch 2"), Wait("read"), Exit(0)])
        await rig.nodes.add_node("plain-1", pool="ci-compile")
        await admin.create(WORKFLOWS, one_gpu("on-a-node", "ci-training"))
        path = f"{WORKFLOWS}/on-a-node"
        await admin.until(path, lambda seen: "0/1 nodes are available" in str(node(seen, "on-a-node").get("message")))
        await rig.nodes.add_node("gpu-1", pool="ci-training", gpus=1, taint="nvidia.com/gpu=true:NoSchedule")
        await player.arrived("read")
        pod = await admin.get(f"{pods}/on-a-node")
        log = await admin.text(f"{pods}/on-a-node/log", {"container": "main"})
        await player.release("read")
        await admin.until(path, lambda seen: seen.get("status", {}).get("phase") == "Succeeded")

    assert pod["spec"]["nodeName"] == "gpu-1", pod["spec"]
    assert log == "epoch 1\nepoch 2\n", log


@asynccontextmanager
async def small_server(answer: Callable[[web.Request], web.Response]) -> AsyncIterator[str]:
    """Serve one answer to every request, and give the server's URL."""

    async def handle(request: web.Request) -> web.Response:
        await request.post()
        return answer(request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    (port,) = free_ports(1)
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


async def type_command(rig: Rig) -> None:
    """Have a person type a slash command and read the answer, which nobody else sees."""
    office = Office(rig.mattermost.client())
    team = await office.create_team("selftest")
    channel = await office.create_channel(team, "gpu")
    async with small_server(lambda _: web.json_response({"text": "hello, anna"})) as url:
        await office.create_command(team, "gputest", f"{url}/command")
        async with await office.create_person("anna", team, channel) as anna:
            await anna.type(channel, "/gputest status")
            answer = await anna.next_ephemeral()

            assert answer["message"] == "hello, anna", answer
            assert answer["id"] not in {post["id"] for post in await anna.posts(channel)}


async def selftest(argo: ArgoVersion, crds: Crds, *, everything: bool) -> None:
    """Start the rig, and try it."""
    began = time.monotonic()
    async with Rig.start(argo=argo, crds=crds, scheduler=everything, kwok=everything) as rig:
        for name, seconds in rig.timings.items():
            print(f"  {name:22}{seconds:6.2f} s")
        print(f"all ready after {time.monotonic() - began:.2f} s, in {rig.folder}")
        for what in (play_workflow, type_command, *((play_nodes,) if everything else ())):
            began = time.monotonic()
            await what(rig)
            print(f"  {what.__name__:22}{time.monotonic() - began:6.2f} s")
        began = time.monotonic()
    print(f"all stopped after {time.monotonic() - began:.2f} s")


async def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.real.rig.selftest")
    parser.add_argument("--argo", choices=get_args(ArgoVersion), default="3.7")
    parser.add_argument("--crds", choices=get_args(Crds), default="minimal")
    parser.add_argument("--small", action="store_true", help="without the scheduler and kwok")
    choice = parser.parse_args()
    task = asyncio.current_task()
    if task:
        # As after Ctrl-C: everything is stopped in order.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await selftest(choice.argo, choice.crds, everything=not choice.small)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(_main()))
