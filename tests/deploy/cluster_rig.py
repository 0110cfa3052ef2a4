"""deploy/ on the rig of real services: applying it, running its programs as its pods do, playing GitLab's runner."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.test_gitlab_jobs import FILE as GITLAB_JOBS
from tests.deploy.test_gitlab_jobs import resolved
from tests.real.rig.cluster import service_account
from tests.real.rig.kube_client import ARGO, KubeClient, KubeError, Manifest
from tests.real.rig.launcher import Rig
from tests.real.rig.pod_player import PodPlayer

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
ACCOUNTS = [
    service_account("gputest", "gputest-bot"),
    service_account("foxhunt", "argo-push-gate"),
    service_account("foxhunt", "argo-workflow"),
]
FOXHUNT = f"{ARGO}/namespaces/foxhunt"
WORKFLOWS = f"{FOXHUNT}/workflows"
PLURALS = {
    "Namespace": "namespaces", "NetworkPolicy": "networkpolicies", "PriorityClass": "priorityclasses",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies", "Ingress": "ingresses", "CiliumNetworkPolicy": "ciliumnetworkpolicies",
}  # fmt: skip
CLUSTER_WIDE = {
    "Namespace", "PriorityClass", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ClusterRole", "ClusterRoleBinding",
}  # fmt: skip
RESULTS = {
    "version": 1, "ref": "main", "commit": "c" * 40, "models": ["dqn"], "scope": "lib", "epochs": 3, "complete": True,
    "gpu": {"name": "", "driver": "", "compute_capability": ""}, "build": {"status": "passed", "seconds": 1, "errors": []},
    "suites": [{"model": "dqn", "suite": "dqn-lib", "status": "failed", "failed_tests": ["dqn::tests::one"]}],
}  # fmt: skip


def path_of(body: Manifest) -> str:
    """Where the API serves an object."""
    group, _, version = body["apiVersion"].rpartition("/")
    prefix = f"/apis/{group}/{version}" if group else f"/api/{version}"
    plural = PLURALS.get(body["kind"], body["kind"].lower() + "s")
    namespace = "" if body["kind"] in CLUSTER_WIDE else f"/namespaces/{body['metadata']['namespace']}"
    return f"{prefix}{namespace}/{plural}"


async def apply(kube: KubeClient, body: Manifest) -> None:
    """Server-side apply with strict validation: an unknown or doubled field is an error."""
    await kube.request(
        "PATCH", f"{path_of(body)}/{body['metadata']['name']}", body,
        {"fieldManager": "deploy", "force": "true", "fieldValidation": "Strict"}, "application/apply-patch+yaml",
    )  # fmt: skip


async def policy_in_force(rig: Rig) -> None:
    """A new admission policy takes a moment until it is asked."""
    bot = rig.kube.client(rig.kube.token("gputest", "gputest-bot"))
    for _ in range(600):
        try:
            await bot.request("POST", WORKFLOWS, run("probe", entrypoint="main"), {"dryRun": "All"})
        except KubeError as error:
            if "ValidatingAdmissionPolicy" in str(error):
                return
        await asyncio.sleep(0.1)
    raise AssertionError("the admission policy is not asked")


@contextlib.asynccontextmanager
async def pods_played(rig: Rig) -> AsyncIterator[PodPlayer]:
    """Kubelet and executor; the namespace is empty again afterwards."""
    async with rig.pod_player() as player:
        yield player
        for workflow in (await rig.kube.admin.get(WORKFLOWS))["items"]:
            path = f"{WORKFLOWS}/{workflow['metadata']['name']}"
            with contextlib.suppress(KubeError):
                await rig.kube.admin.merge(path, {"metadata": {"finalizers": None}, "spec": {"shutdown": "Terminate"}})
            await rig.kube.admin.delete(path)


def run(name: str, parameters: dict[str, str] | None = None, **spec: Any) -> Manifest:
    """A Workflow as the bot makes it."""
    arguments = [{"name": key, "value": value} for key, value in (parameters or {}).items()]
    return {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow",
        "metadata": {
            "name": name, "namespace": "foxhunt", "labels": {"workflows.argoproj.io/workflow-template": "gpu-test-pipeline"},
            "annotations": {"gputest.bot/request": "{}"}, "finalizers": ["gputest.bot/report"],
        },
        "spec": {"workflowTemplateRef": {"name": "gpu-test-pipeline"}, "arguments": {"parameters": arguments}} | spec,
    }  # fmt: skip


async def phase(rig: Rig, name: str, *wanted: str) -> Manifest:
    """Wait for a workflow's phase."""
    return await rig.kube.admin.until(
        f"{WORKFLOWS}/{name}", lambda seen: seen.get("status", {}).get("phase") in wanted, 60
    )


async def pod_with(rig: Rig, workflow: str, role: str) -> Manifest:
    """Wait for a workflow's pod by its role."""
    path = "/api/v1/namespaces/foxhunt/pods"

    def pick(pods: Manifest) -> list[Manifest]:
        labels = [(pod, pod["metadata"].get("labels", {})) for pod in pods["items"]]
        return [
            p
            for p, label in labels
            if label.get("workflows.argoproj.io/workflow") == workflow
            and role in json.dumps([label, p["metadata"]["annotations"]])
        ]

    return pick(await rig.kube.admin.until(path, lambda pods: bool(pick(pods)), 60))[0]


def environment(rig: Rig, pod: Manifest, folder: Path, account: str) -> dict[str, str]:
    """The environment of a pod's main container, with its account where the test can mount it."""
    [main] = [each for each in pod["spec"]["containers"] if each["name"] == "main"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "token").write_text(rig.kube.token("foxhunt", account))
    shutil.copy(rig.kube.ca_file, folder / "ca.crt")
    host, port = rig.kube.url.removeprefix("https://").split(":")
    api = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "GPUTEST_ACCOUNT": str(folder)}
    return {each["name"]: each["value"] for each in main["env"] if "value" in each} | api


async def program(file: str, *arguments: str, env: dict[str, str]) -> str:
    """Run one of the pods' programs as the pod does."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(DEPLOY / file), *arguments, env=env | {"PATH": os.environ["PATH"]},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await process.communicate()
    assert process.returncode == 0, output
    return output.decode()


def quantities(variables: dict[str, str], kind: str) -> dict[str, str]:
    """Resources of a build container, as the runner makes them of a job's variables."""
    found = {"cpu": variables[f"KUBERNETES_CPU_{kind}"], "memory": variables[f"KUBERNETES_MEMORY_{kind}"]}
    return found | {"nvidia.com/gpu": "1"}


def build_pod(job: str) -> Manifest:
    """The pod that the runner makes for a job: its variables, the runner's defaults, the helper container."""
    variables = resolved(job, yaml.safe_load(GITLAB_JOBS.read_text()))["variables"]
    values = yaml.safe_load((DEPLOY / "gitlab/runner-values.yaml").read_text())
    config = tomllib.loads(values["runners"]["config"])["runners"][0]["kubernetes"]
    key, _, pool = variables.get("KUBERNETES_NODE_SELECTOR_POOL", "").partition("=")
    helper = {"cpu": config["helper_cpu_request"], "memory": config["helper_memory_request"]}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": f"{job}-", "namespace": "default"},
        "spec": {
            "nodeSelector": config["node_selector"] | ({key: pool} if key else {}),
            "tolerations": [{"key": name, "operator": "Exists", "effect": effect} for name, effect in config["node_tolerations"].items()],
            "containers": [
                {"name": "build", "image": "x", "resources": {"requests": quantities(variables, "REQUEST"), "limits": quantities(variables, "LIMIT")}},
                {"name": "helper", "image": "x", "resources": {"requests": helper}},
            ],
        },
    }  # fmt: skip


async def add_node(rig: Rig, name: str, pool: str, memory: str, card: str) -> None:
    """A node of a GPU pool: eight cores less what the system keeps, one card in as many shares as the plugin makes of it."""
    sharing = yaml.safe_load(yaml.safe_load((DEPLOY / "gitlab/device-plugin.yaml").read_text())["data"][card])
    shares = sharing["sharing"]["timeSlicing"]["resources"][0]["replicas"]
    room = {"cpu": "7600m", "memory": memory, "pods": "110", "nvidia.com/gpu": str(shares)}
    await rig.kube.admin.create("/api/v1/nodes", {
        "metadata": {"name": name, "labels": {"k8s.scaleway.com/pool-name": pool}, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]},
        "status": {"capacity": room, "allocatable": room},
    })  # fmt: skip
