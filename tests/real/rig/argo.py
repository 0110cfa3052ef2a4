"""Argo Workflows: its custom resource definitions and its controller."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from .build import binaries
from .cluster import Kube, install
from .kube_client import Manifest
from .process import Service

ArgoVersion = Literal["3.7", "4.0"]
Crds = Literal["minimal", "full"]

CONTROLLER_NAMESPACE = "argo"
WORKFLOW_NAMESPACE = "foxhunt"
# The controller serves its health here, on all addresses, and has no setting for it. It lives on if it cannot.
HEALTH_PORT = 6060

_RECIPES: dict[ArgoVersion, str] = {"3.7": "argo37", "4.0": "argo40"}
_SETS: dict[str, tuple[ArgoVersion, Crds]] = {"3": ("3.7", "minimal"), "4": ("4.0", "full")}
_CONFIG_MAP = "workflow-controller-configmap"
# Both versions print this when their caches are filled and they begin to take workflows.
_STARTED = "Starting workflow"


def argo_of_environment() -> dict[str, str]:
    """Options of a rig by the variable ``ARGO``: ``3`` (or nothing) or ``4``, each with the definitions that it ships.

    Raises ValueError for anything else: a set that is misspelt must not pass for the other.
    """
    asked = os.environ.get("ARGO") or "3"
    if asked not in _SETS:
        raise ValueError(f"ARGO={asked}: there are {' and '.join(_SETS)}")
    version, crds = _SETS[asked]
    return {"argo": version, "crds": crds}


async def install_argo(kube: Kube, version: ArgoVersion, crds: Crds) -> None:
    """Install Argo's custom resource definitions; 3.7 ships with the minimal ones in force, 4.0 with the full."""
    text = (binaries(_RECIPES[version]) / f"crds-{crds}.json").read_text()
    await install(kube.admin, json.loads(text))


async def configure(kube: Kube, settings: Mapping[str, str]) -> None:
    """Write the ConfigMap without which the controller does not start."""
    # Its metrics would be served on all addresses.
    data = {"metricsConfig": "enabled: false\n"} | dict(settings)
    body: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": _CONFIG_MAP}, "data": data}
    await kube.admin.create(f"/api/v1/namespaces/{CONTROLLER_NAMESPACE}/configmaps", body)


def controller(kube: Kube, version: ArgoVersion, folder: Path, variables: Mapping[str, str]) -> Service:
    """Return the workflow controller, which reacts fast and runs alone; ``variables`` of its environment go first."""
    command: list[str | Path] = [
        binaries(_RECIPES[version]) / "bin" / "workflow-controller",
        *("--kubeconfig", kube.kubeconfig(folder / "controller.kubeconfig", namespace=CONTROLLER_NAMESPACE)),
        *("--namespaced", "-n", CONTROLLER_NAMESPACE, "--managed-namespace", WORKFLOW_NAMESPACE),
        *("--executor-image", "argoexec:fake", "--loglevel", "info"),
        *("--qps", "200", "--burst", "400"),
    ]
    environment = {
        "LEADER_ELECTION_DISABLE": "true",
        "DEFAULT_REQUEUE_TIME": "200ms",
        "CRON_SYNC_PERIOD": "1s",
        "INFORMER_WRITE_BACK": "true",
    }

    async def started() -> bool:
        return _STARTED in service.printed()

    service = Service("workflow-controller", command, folder, started, environment | dict(variables), grace=3.0)
    return service


async def formulate(
    version: ArgoVersion, verb: Literal["retry", "resubmit"], workflow: Manifest, parameters: Sequence[str]
) -> Manifest:
    """Return {"workflow", "podsToDelete"} as `argo retry` or `argo resubmit` would make them, by Argo's own code."""
    program = await asyncio.create_subprocess_exec(
        str(binaries(_RECIPES[version]) / "bin" / "retry"),
        verb,
        *parameters,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await program.communicate(json.dumps(workflow).encode())
    if program.returncode != 0:
        raise RuntimeError(f"argo {verb}: {errors.decode().strip()}")
    answer: Manifest = json.loads(output)
    return answer
