"""What the push gate does with Workflows beside starting one: it ends those that nobody needs any more.

    push_gate.py supersede   a newer push of a branch ends the branch's queued runs (never one that has begun)
    push_gate.py stop-child  the CI run ended early: the test run that it started ends with it

It talks to the Kubernetes API with the pod's own account, standard library only. Each patch tests what it relies on, so
that a run that begins or ends at the same moment is left alone.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
TIMEOUT_SECONDS = 20.0
DONE = ("Succeeded", "Failed", "Error")
BRANCH_LABEL = "gputest.bot/ci"
COMPLETED_LABEL = "workflows.argoproj.io/completed"


class Cluster:
    """The Workflows of one namespace."""

    def __init__(self, env: dict[str, str]) -> None:
        base = env.get("GPUTEST_API") or "https://{}:{}".format(
            env.get("KUBERNETES_SERVICE_HOST", "kubernetes.default.svc"), env.get("KUBERNETES_SERVICE_PORT", "443")
        )
        self._base = f"{base}/apis/argoproj.io/v1alpha1/namespaces/{env['GPUTEST_NAMESPACE']}/workflows"
        account = Path(env.get("GPUTEST_ACCOUNT", ACCOUNT))
        token, authority = account / "token", account / "ca.crt"
        self._token = token.read_text().strip() if token.exists() else ""
        self._context = ssl.create_default_context(cafile=str(authority)) if authority.exists() else None

    def _call(self, path: str, patch: list[dict[str, Any]] | None = None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json-patch+json"}
        data = None if patch is None else json.dumps(patch).encode()
        request = urllib.request.Request(
            self._base + path, data=data, headers=headers, method="GET" if patch is None else "PATCH"
        )
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS, context=self._context) as answer:
            return json.loads(answer.read())

    def unfinished_of(self, branch: str) -> list[dict[str, Any]]:
        """The branch's test runs that have not ended."""
        selector = urllib.parse.quote(f"{BRANCH_LABEL}={branch},{COMPLETED_LABEL}!=true")
        return list(self._call(f"?labelSelector={selector}")["items"])

    def get(self, name: str) -> dict[str, Any] | None:
        """One Workflow, None where there is none."""
        try:
            found: dict[str, Any] = self._call(f"/{urllib.parse.quote(name)}")
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise
        return found

    def shut_down(self, workflow: dict[str, Any], strategy: str) -> bool:
        """End a Workflow if it is still in the phase in which it was seen; False where it moved on."""
        metadata, phase = workflow["metadata"], workflow.get("status", {}).get("phase")
        patch: list[dict[str, Any]] = [{"op": "test", "path": "/metadata/uid", "value": metadata["uid"]}]
        if phase is None:
            patch.append({"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]})
        else:
            patch.append({"op": "test", "path": "/status/phase", "value": phase})
        patch.append({"op": "add", "path": "/spec/shutdown", "value": strategy})
        try:
            self._call(f"/{urllib.parse.quote(metadata['name'])}", patch)
        except urllib.error.HTTPError as error:
            if error.code in (404, 409, 422):
                return False
            raise
        return True


def supersede(cluster: Cluster, branch: str, own: str) -> list[str]:
    """End the branch's older runs that still wait for the lock, and say which.

    Only Terminate reaches a run that waits there; Argo may call it Succeeded, which is why the gate's failure condition
    asks for the shutdown and not for the phase alone.
    """
    ended = []
    for workflow in cluster.unfinished_of(branch):
        name, phase = workflow["metadata"]["name"], workflow.get("status", {}).get("phase") or "Pending"
        if name != own and phase == "Pending" and cluster.shut_down(workflow, "Terminate"):
            ended.append(name)
    return ended


def stop_child(cluster: Cluster, name: str) -> bool:
    """Stop the test run of a CI run that ended before it; its own exit step still reports it."""
    child = cluster.get(name)
    if child is None or child.get("status", {}).get("phase") in DONE:
        return False
    waits = (child.get("status", {}).get("phase") or "Pending") == "Pending"
    return cluster.shut_down(child, "Terminate" if waits else "Stop")


def main(arguments: list[str], env: dict[str, str]) -> int:
    """Do what was asked for; an API that does not answer is told, and never fails the gate or its exit step."""
    if arguments not in (["supersede"], ["stop-child"]):
        print(__doc__)
        return 2
    try:
        cluster, child = Cluster(env), env["GPUTEST_CHILD"]
        if arguments == ["supersede"]:
            print("superseded: " + (", ".join(supersede(cluster, env["GPUTEST_BRANCH"], child)) or "none"))
        else:
            print(f"{child}: " + ("stopped" if stop_child(cluster, child) else "nothing to stop"))
    except (OSError, ValueError, KeyError) as error:
        print(f"nothing done: {type(error).__name__} {getattr(error, 'code', '')}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], dict(os.environ)))
