"""Workflows for the cases of Argo: small templates, and waiting for what becomes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.contract.wire import Json, Wire
from tests.real.rig.kube_client import ARGO
from tests.real.rig.pod_player import PodPlayer
from tests.real.rig.pod_script import Action

WORKFLOWS = f"{ARGO}/namespaces/foxhunt/workflows"
TEMPLATES = f"{ARGO}/namespaces/foxhunt/workflowtemplates"
CRONS = f"{ARGO}/namespaces/foxhunt/cronworkflows"
RESULTS = f"{ARGO}/namespaces/foxhunt/workflowtaskresults"
PODS = "/api/v1/namespaces/foxhunt/pods"
ENDED = ("Succeeded", "Failed", "Error")


def pod_template(name: str, **fields: Any) -> Json:
    """A template of one container."""
    return {"name": name, "container": {"image": "nowhere/test:1", "command": ["test"]}} | fields


def dag(*tasks: Json | str) -> Json:
    """A template of tasks, each of the template of its name."""
    found = [{"name": task, "template": task} if isinstance(task, str) else task for task in tasks]
    return {"name": "main", "dag": {"tasks": found}}


def spec_of(*templates: Json, **fields: Any) -> Json:
    """A spec; the first template is its entrypoint."""
    return {"entrypoint": templates[0]["name"], "templates": list(templates)} | fields


RESULT = {"parameters": [{"name": "results", "globalName": "results", "valueFrom": {"path": "/out", "default": ""}}]}
"""Outputs as the test step declares them."""


def node(workflow: Json, display_name: str) -> Json:
    """A node by the name that is shown; {} where there is none."""
    nodes = (workflow.get("status", {}).get("nodes") or {}).values()
    found: Json = next((each for each in nodes if each["displayName"] == display_name), {})
    return found


def phase(workflow: Json) -> str:
    """The phase of a workflow; "" while it has none."""
    return str(workflow.get("status", {}).get("phase", ""))


class Runs:
    """Workflows of one case."""

    def __init__(self, servers: Any, player: PodPlayer, name: str) -> None:
        self.servers = servers
        self.player = player
        self.name = name
        self.client = servers.kube.admin
        self.wire = Wire.kube(servers.kube.admin)

    @property
    def is_40(self) -> bool:
        """Whether Argo 4.0 plays."""
        choice = getattr(self.servers, "choice", None)
        return choice is not None and choice.argo == "4.0"

    def script(self, step: str, *actions: Action, run: str | None = None) -> None:
        """What the pods of a step do."""
        self.player.script(step, actions, run or self.name)

    async def submit(self, spec: Json, name: str = "", **meta: Any) -> Json:
        """Create a workflow."""
        body = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "spec": spec}
        created: Json = await self.client.create(WORKFLOWS, body | {"metadata": {"name": name or self.name} | meta})
        return created

    async def one(self, template: Json | None = None, *actions: Action, **fields: Any) -> Json:
        """Create a workflow whose only step is `work`."""
        if actions:
            self.script("work", *actions)
        return await self.submit(spec_of(dag("work"), template or pod_template("work"), **fields))

    async def get(self, name: str = "") -> Json:
        """The workflow as it is."""
        found: Json = await self.client.get(f"{WORKFLOWS}/{name or self.name}")
        return found

    async def until(self, holds: Callable[[Json], Any], name: str = "", limit: float = 20.0) -> Json:
        """Wait until something holds of the workflow."""
        found: Json = await self.client.until(f"{WORKFLOWS}/{name or self.name}", lambda seen: bool(holds(seen)), limit)
        return found

    async def ended(self, name: str = "", limit: float = 20.0) -> Json:
        """Wait until the workflow has ended."""
        return await self.until(lambda seen: phase(seen) in ENDED, name, limit)

    async def running(self, step: str = "work", name: str = "") -> Json:
        """Wait until the pod of a step runs."""
        return await self.until(lambda seen: node(seen, step).get("phase") == "Running", name)

    async def shut_down(self, strategy: str, name: str = "") -> None:
        """What `argo stop` and `argo terminate` do."""
        await self.client.merge(f"{WORKFLOWS}/{name or self.name}", {"spec": {"shutdown": strategy}})

    async def pass_time(self, seconds: float) -> None:
        """Let time pass: really, or in a world that has a clock of its own."""
        leap = getattr(self.servers, "pass_time", asyncio.sleep)
        await leap(seconds)

    async def touch(self, name: str = "") -> None:
        """Something happens to the workflow that means nothing."""
        await self.client.merge(f"{WORKFLOWS}/{name or self.name}", {"metadata": {"annotations": {"touched": "yes"}}})

    async def pods(self, name: str = "") -> list[Json]:
        """The pods of the workflow."""
        query = {"labelSelector": f"workflows.argoproj.io/workflow={name or self.name}"}
        found: list[Json] = (await self.client.get(PODS, query))["items"]
        return found

    async def eventually(self, holds: Callable[[], Awaitable[bool]], limit: float = 20.0) -> None:
        """Look again and again until something is so."""
        async with asyncio.timeout(limit):
            while not await holds():
                await asyncio.sleep(0.05)

    async def until_gone(self, name: str = "", limit: float = 20.0) -> None:
        """Wait until the workflow is deleted."""
        want = name or self.name
        await self.client.until(
            WORKFLOWS, lambda listed: all(each["metadata"]["name"] != want for each in listed["items"]), limit
        )
