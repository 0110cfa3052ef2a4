"""deploy/ with the minimal definitions of both Argo versions, and its scripts with kubectl on the real API server and controller."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shlex
import subprocess
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.deploy.cluster_rig import ACCOUNTS, FOXHUNT, RESULTS, WORKFLOWS, apply, path_of, phase
from tests.deploy.deploy_files import DEPLOY, built, kubectl, parameters, several
from tests.real.rig.build import binaries
from tests.real.rig.cluster import install
from tests.real.rig.kube_client import KubeError, Manifest
from tests.real.rig.launcher import Rig
from tests.real.rig.pod_player import PodPlayer
from tests.real.rig.pod_script import Exit, Outputs, Running

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(120)]

JOBS = "/apis/batch/v1/namespaces/foxhunt/jobs"
PODS = "/api/v1/namespaces/foxhunt/pods"
POOL = "k8s.scaleway.com/pool-name"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["3.7", "4.0"])
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    """Both versions with their minimal definitions, everything of deploy/ applied."""
    async with Rig.start(argo=request.param, crds="minimal", mattermost=False, service_accounts=ACCOUNTS) as rig:
        for body in built("overlays/complete"):
            await apply(rig.kube.admin, body)
        yield rig


@pytest_asyncio.fixture(loop_scope="module")
async def player(rig: Rig) -> AsyncIterator[PodPlayer]:
    """Kubelet and executor."""
    async with rig.pod_player() as player:
        player.script("notify-result", [Running(), Outputs({"said": "no"}), Exit(0)])
        yield player


async def script(rig: Rig, folder: Path, name: str, *arguments: str) -> asyncio.subprocess.Process:
    """Start one of the scripts for people, with a kubeconfig of the rig."""
    kubectl()
    config = rig.kube.kubeconfig(folder / "config", namespace="foxhunt")
    environment = os.environ | {"KUBECONFIG": str(config), "GPUTEST_POLL_SECONDS": "0.2", "GPUTEST_CLIENT": "kubectl"}
    return await asyncio.create_subprocess_exec(
        "bash", str(DEPLOY / "scripts" / name), *arguments,
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


async def ended(process: asyncio.subprocess.Process) -> tuple[int | None, str]:
    """Its exit status and what it printed."""
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, output.decode()


async def test_the_minimal_definitions_keep_every_field(rig: Rig) -> None:
    """Applied strictly by the fixture; what is stored is what the file says."""
    for body in built("overlays/complete"):
        if body["apiVersion"] == "argoproj.io/v1alpha1":
            stored = await rig.kube.admin.get(f"{path_of(body)}/{body['metadata']['name']}")
            assert stored["spec"] == body["spec"], body["metadata"]["name"]


async def test_the_optional_parts_are_accepted(rig: Rig) -> None:
    """Ingress, ServiceMonitor and Cilium's policy by their own definitions; the optional rights and the secrets' example."""
    for name in ("prometheus-operator", "cilium"):
        await install(rig.kube.admin, json.loads((binaries(name) / "crds.json").read_text()))
    rights = [f"bot/{file.name}" for file in sorted((DEPLOY / "bot").glob("rbac-*.yaml"))]
    beside = [body for name in (*rights, "bot/secrets.example.yaml") for body in several(name)]
    optional = [*built("overlays/with-extras"), *beside]
    for body in optional:
        await apply(rig.kube.admin, body)

    assert {"Ingress", "ServiceMonitor", "CiliumNetworkPolicy", "ClusterRole", "Secret"} <= {
        b["kind"] for b in optional
    }
    wrong = next(body for body in optional if body["kind"] == "CiliumNetworkPolicy")
    wrong["spec"]["egres"] = []
    with pytest.raises(KubeError, match="egres: field not declared"):
        await apply(rig.kube.admin, wrong)


@pytest.mark.parametrize(("code", "word"), [(0, "passed"), (1, "did not pass")])
async def test_argo_test_sh_starts_a_run_and_ends_with_its_verdict(
    rig: Rig, player: PodPlayer, tmp_path: Path, code: int, word: str
) -> None:
    """By kubectl alone: the run has the options as parameters and is held for the bot, whose overlay is applied."""
    player.script("compile-and-test", [Running(), Outputs({"results": json.dumps(RESULTS)}), Exit(code)])
    options = ["--models", "dqn", "--scope", "lib", "--ref", "release/1.2", "--watch"]
    status, output = await ended(await script(rig, tmp_path, "argo-test.sh", *options))

    name = output.split("submitted ")[1].split()[0]
    body = await phase(rig, name, "Succeeded", "Failed")
    assert (status, output.splitlines()[-1]) == (code, f"{name} {word}")
    assert body["spec"]["priority"] == 30
    assert body["metadata"]["finalizers"] == ["gputest.bot/report"]
    assert parameters(body["spec"]) == {
        "models": "dqn", "test-scope": "lib", "epochs": "3", "commit-ref": "release/1.2", "gpu-pool": "ci-training-h100",
        "cuda-compute-cap": "90", "notify": "true",
    }  # fmt: skip


async def populate_job(rig: Rig) -> str:
    """Wait for the job that the script makes; its name."""
    found = await rig.kube.admin.until(JOBS, lambda jobs: bool(jobs["items"]), 30)
    return str(found["items"][0]["metadata"]["name"])


def conditions(*names: str) -> dict[str, Any]:
    """A job's status as its controller writes it at the end."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    status: dict[str, Any] = {
        "startTime": now,
        "conditions": [{"type": each, "status": "True", "lastTransitionTime": now} for each in names],
    }
    return {"status": status | ({"completionTime": now, "succeeded": 1} if "Complete" in names else {"failed": 1})}


@pytest_asyncio.fixture(loop_scope="module")
async def no_jobs(rig: Rig) -> AsyncIterator[None]:
    """Nothing of a refresh is left for the next one."""
    yield
    at_once = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
    for path in (JOBS, PODS, "/api/v1/nodes", "/api/v1/namespaces/foxhunt/events"):
        for each in (await rig.kube.admin.get(path))["items"]:
            with contextlib.suppress(KubeError):
                await rig.kube.admin.delete(f"{path}/{each['metadata']['name']}", at_once)


@pytest.mark.usefixtures("no_jobs")
@pytest.mark.parametrize(
    ("end", "code", "word"),
    [
        (["SuccessCriteriaMet", "Complete"], 0, "refreshed"),
        (["FailureTarget", "Failed"], 1, "not refreshed, the old data is in place"),
    ],
    ids=["complete", "failed"],
)
async def test_a_refresh_ends_as_its_job(rig: Rig, tmp_path: Path, end: list[str], code: int, word: str) -> None:
    """The job controller is played by its last word; the program itself is tested in test_populate.py."""
    process = await script(rig, tmp_path, "refresh-test-data.sh")
    name = await populate_job(rig)
    await rig.kube.admin.merge(f"{JOBS}/{name}/status", conditions(*end))
    status, output = await ended(process)

    assert status == code, output
    assert output.splitlines()[-1].startswith(word)
    program = await rig.kube.admin.get("/api/v1/namespaces/foxhunt/configmaps/populate-test-data")
    assert program["data"]["populate.py"] == (DEPLOY / "training/populate.py").read_text()


@pytest.mark.usefixtures("no_jobs")
async def test_a_refresh_sees_who_holds_the_volume(rig: Rig, tmp_path: Path) -> None:
    """A training on another pool's node: the script ends before it makes a job. On the tests' own pool it is no hindrance."""
    claim = {"name": "d", "persistentVolumeClaim": {"claimName": "training-data-pvc"}}
    pod: Manifest = {
        "metadata": {"name": "train-7", "namespace": "foxhunt"},
        "spec": {"nodeName": "l40s-1", "volumes": [claim], "containers": [{"name": "x", "image": "x"}]},
    }
    await rig.kube.admin.create("/api/v1/nodes", {"metadata": {"name": "l40s-1", "labels": {POOL: "ci-training"}}})
    await rig.kube.admin.create(PODS, pod)
    status, output = await ended(await script(rig, tmp_path, "refresh-test-data.sh"))
    jobs = (await rig.kube.admin.get(JOBS))["items"]
    await rig.kube.admin.merge("/api/v1/nodes/l40s-1", {"metadata": {"labels": {POOL: "ci-training-h100"}}})
    free = await script(rig, tmp_path, "refresh-test-data.sh")
    name = await populate_job(rig)
    await rig.kube.admin.merge(f"{JOBS}/{name}/status", conditions("SuccessCriteriaMet", "Complete"))

    assert (status, jobs) == (3, []), output
    assert "training-data-pvc is held by pod train-7 on node l40s-1 (pool ci-training)" in output
    assert (await ended(free))[0] == 0


@pytest.mark.usefixtures("no_jobs")
async def test_a_refresh_that_cannot_mount_ends_with_the_reason(rig: Rig, tmp_path: Path) -> None:
    """The attach controller's event is found, and the job is removed instead of waiting for its deadline."""
    process = await script(rig, tmp_path, "refresh-test-data.sh")
    name = await populate_job(rig)
    about = {"kind": "Pod", "namespace": "foxhunt", "name": f"{name}-x7k2p"}
    message = 'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) train-7'
    await rig.kube.admin.create(
        "/api/v1/namespaces/foxhunt/events",
        {
            "metadata": {"generateName": "attach-"},
            "involvedObject": about,
            "reason": "FailedAttachVolume",
            "message": message,
        },
    )
    status, output = await ended(process)

    assert status == 3, output
    assert message in output
    with pytest.raises(KubeError, match="404"):
        await rig.kube.admin.get(f"{JOBS}/{name}")


async def test_a_push_that_touches_no_tested_crate_starts_nothing(rig: Rig, player: PodPlayer) -> None:
    """The detector says false: the gate is left out, the CI run passes, and no GPU is asked for."""
    player.script("detect-changes", [Running(), Outputs({"ml-changed": "false", "branch-label": "main"}), Exit(0)])
    player.script("stop-child", [Running(), Exit(0)])
    before = {each["metadata"]["name"] for each in (await rig.kube.admin.get(WORKFLOWS))["items"]}
    reference = {"workflowTemplateRef": {"name": "ci-pipeline"}}
    arguments = {"arguments": {"parameters": [{"name": "commit-sha", "value": "d" * 40}]}}
    await rig.kube.admin.create(
        WORKFLOWS,
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": {"name": "docs-only", "namespace": "foxhunt"},
            "spec": reference | arguments,
        },
    )
    body = await phase(rig, "docs-only", "Succeeded", "Failed", "Error")
    nodes = {each["displayName"]: each["phase"] for each in body["status"]["nodes"].values()}

    assert body["status"]["phase"] == "Succeeded"
    assert (nodes["gpu-test"], nodes["supersede"]) == ("Skipped", "Skipped")
    assert {each["metadata"]["name"] for each in (await rig.kube.admin.get(WORKFLOWS))["items"]} == before | {
        "docs-only"
    }


async def test_the_documented_command_wakes_the_nightly(rig: Rig, tmp_path: Path) -> None:
    """It is made suspended; what deploy/README.md says to type is taken, and needs its `--type merge`."""
    [line] = re.findall(r"`(kubectl [^`]*patch cronworkflow[^`]*)`", (DEPLOY / "README.md").read_text())
    path = f"{FOXHUNT}/cronworkflows/gpu-test-nightly"
    environment = os.environ | {"KUBECONFIG": str(rig.kube.kubeconfig(tmp_path / "config"))}
    suspended = [(await rig.kube.admin.get(path))["spec"]["suspend"]]
    statuses = []
    for command in (line.replace("--type merge ", ""), line):
        done = await asyncio.to_thread(subprocess.run, shlex.split(command), env=environment, capture_output=True)
        statuses.append(done.returncode)
        suspended.append((await rig.kube.admin.get(path))["spec"]["suspend"])
    await rig.kube.admin.merge(path, {"spec": {"suspend": True}})

    assert statuses == [1, 0]
    assert suspended == [True, True, False]
