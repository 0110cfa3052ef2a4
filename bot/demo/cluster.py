"""The embedded cluster as a whole, and the phrases with which a test or the side panel moves it."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from pathlib import Path

import yaml

from bot.demo.access import Access
from bot.demo.argo import ArgoController
from bot.demo.argo_cron import CronController
from bot.demo.argo_nodes import FAILED
from bot.demo.argo_pods import PREFIX
from bot.demo.argo_retry import formulate_retry
from bot.demo.chance import Chance
from bot.demo.clock import Clock
from bot.demo.deleting import Collector, delete
from bot.demo.events import Recorder
from bot.demo.kinds import BY_OBJECT, CRON_WORKFLOWS, NAMESPACES, NODES, PODS, WORKFLOWS, Kind
from bot.demo.kube_api import KubeApi
from bot.demo.pod_logs import PodLogs
from bot.demo.pods import HANG, Action, Exit, Kubelet, Outputs, Script
from bot.demo.pools import Autoscaler, Pool, default_pools
from bot.demo.runs import DemoRuns, make_results
from bot.demo.scheduler import Scheduler
from bot.demo.world import Change, Json, Store, stamp

TEST_TEMPLATE = "compile-and-test"
DEFAULT_OBJECTS = Path(__file__).with_name("default_objects.yaml")
LOST_POD_SECONDS = 60.0
"""From the loss of a node until its pods are declared failed; half as much again and they are deleted."""


class Cluster:
    """State, controllers and API of the cluster; all names below are in `namespace` unless they say otherwise."""

    def __init__(
        self, clock: Clock, chance: Chance, *, namespace: str = "foxhunt", pools: list[Pool] | None = None
    ) -> None:
        self.clock = clock
        self.namespace = namespace
        self.store = Store(clock, chance)
        self.logs = PodLogs()
        self.access = Access(self.store)
        self.api = KubeApi(self.store, self.access, self.logs)
        self.runs = DemoRuns(chance)
        self.collector = Collector(self.store)
        self.argo = ArgoController(self.store, Recorder(self.store, "workflow-controller"))
        self.cron = CronController(self.store)
        self.kubelet = Kubelet(self.store, self.logs, self.runs.script)
        self.argo.signal = self.kubelet.stop
        self.autoscaler = Autoscaler(self.store, Recorder(self.store, "cluster-autoscaler"), pools or default_pools())
        self.scheduler = Scheduler(self.store, Recorder(self.store, "default-scheduler"), self.autoscaler)
        self.skipped: list[str] = []
        """Objects of the manifests whose kinds are not played."""
        self._changed = asyncio.Event()
        self.store.subscribe(self._on_change)

    def start(self, manifests: Iterable[Path]) -> None:
        """Make the namespaces and the first nodes, and create what the manifests describe."""
        for name in ("default", "kube-system", "argo", self.namespace):
            self.ensure_namespace(name)
        self.autoscaler.start()
        for path in manifests:
            files = sorted(path.rglob("*.y*ml")) if path.is_dir() else [path]
            for file in files:
                for obj in yaml.safe_load_all(file.read_text()):
                    self._load(obj)

    def ensure_namespace(self, name: str) -> None:
        """Create a namespace unless it is there."""
        if self.store.find(NAMESPACES, "", name) is None:
            spec = {"finalizers": ["kubernetes"]}
            self.store.create(NAMESPACES, {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Active"}})

    def _load(self, obj: Json | None) -> None:
        if not isinstance(obj, dict) or "kind" not in obj:
            return
        if obj["kind"] == "List":
            for item in obj.get("items") or ():
                self._load(item)
            return
        kind = BY_OBJECT.get((obj.get("apiVersion", ""), obj["kind"]))
        if kind is None:
            self.skipped.append(f"{obj['kind']} {obj.get('metadata', {}).get('name', '')}")
            return
        meta = dict(obj["metadata"])
        if kind.namespaced:
            meta.setdefault("namespace", self.namespace)
            self.ensure_namespace(meta["namespace"])
        if self.store.find(kind, meta.get("namespace", ""), meta["name"]) is None:
            self.store.create(kind, {**obj, "metadata": meta})

    # What there is.

    def workflow(self, name: str) -> Json:
        """A workflow. Raises ApiError 404."""
        return self.store.get(WORKFLOWS, self.namespace, name)

    def workflows(self) -> list[Json]:
        """All workflows, the oldest first."""
        return sorted(self.store.all(WORKFLOWS, self.namespace), key=lambda wf: int(wf["metadata"]["resourceVersion"]))

    def phase(self, name: str) -> str:
        """The phase of a workflow; "" while it has none, or is gone."""
        found = self.store.find(WORKFLOWS, self.namespace, name)
        return str(((found or {}).get("status") or {}).get("phase", ""))

    def pod(self, workflow: str, template: str = TEST_TEMPLATE) -> Json | None:
        """The pod of a template of a workflow."""
        prefix = f"{workflow}-{template}-"
        pods = self.store.all(PODS, self.namespace)
        return next((pod for pod in pods if pod["metadata"]["name"].startswith(prefix)), None)

    def is_running(self, workflow: str, template: str = TEST_TEMPLATE) -> bool:
        """Whether that pod runs."""
        pod = self.pod(workflow, template)
        return pod is not None and pod["status"].get("phase") == "Running"

    # Waiting without sleeping.

    async def until(self, reached: Callable[[], bool], limit: float = 86_400.0) -> None:
        """Go on until something is so: a stopped clock is stepped, on a running one it is waited for (`limit` real
        seconds).

        Raises TimeoutError.
        """
        if self.clock.speed == 0:
            await self.clock.run_until(reached, limit)
            return
        async with asyncio.timeout(limit):
            while not reached():
                self._changed.clear()
                await self._changed.wait()

    async def until_running(self, workflow: str, template: str = TEST_TEMPLATE) -> None:
        """Go on until the pod of a template runs."""
        await self.until(lambda: self.is_running(workflow, template))

    async def until_ended(self, workflow: str) -> None:
        """Go on until the workflow has ended."""
        await self.until(lambda: self.phase(workflow) in ("Succeeded", *FAILED))

    def _on_change(self, _change: Change) -> None:
        self._changed.set()

    # Making things happen.

    def submit(
        self, name: str = "", *, template: str = "gpu-test-pipeline", labels: Json | None = None, **parameters: str
    ) -> str:
        """Somebody submits a run without the bot; parameters with underscores for dashes. Returns its name."""
        arguments = [{"name": key.replace("_", "-"), "value": value} for key, value in parameters.items()]
        meta: Json = {"namespace": self.namespace, "labels": labels or {}}
        meta |= {"name": name} if name else {"generateName": f"{template}-"}
        spec = {"workflowTemplateRef": {"name": template}, "arguments": {"parameters": arguments}}
        return str(self.store.create(WORKFLOWS, {"metadata": meta, "spec": spec})["metadata"]["name"])

    def script(self, template: str, actions: Iterable[Action] | Script, *, workflow: str = "") -> None:
        """From now on the pods of a template play this, of one workflow or of all."""
        if callable(actions):
            self.kubelet.scripts[template, workflow] = actions
        else:
            fixed = list(actions)
            self.kubelet.scripts[template, workflow] = lambda _pod, _workflow: iter(fixed)

    def forget_scripts(self) -> None:
        """Pods play what they do without a script again, and all gates are shut."""
        self.kubelet.scripts.clear()
        self.kubelet.open_gates.clear()

    def release(self, gate: str) -> None:
        """Open a gate of a script."""
        self.kubelet.release(gate)

    def hang(self, template: str = TEST_TEMPLATE) -> None:
        """From now on the pods of a template start and never end by themselves."""
        self.script(template, [HANG])

    def log(self, workflow: str, *lines: str, template: str = TEST_TEMPLATE) -> None:
        """A running pod writes lines."""
        pod = self._running_pod(workflow, template)
        for line in lines:
            self.logs.append(pod["metadata"]["uid"], self.clock.now(), line)

    def finish(
        self,
        workflow: str,
        *,
        results: str | None = None,
        code: int = 0,
        reason: str = "",
        template: str = TEST_TEMPLATE,
    ) -> None:
        """A running pod ends now; with all suites green unless results say otherwise, without results for ""."""
        pod = self._running_pod(workflow, template)
        text = make_results() if results is None else results
        actions: list[Action] = [Outputs({"results": text})] if text else []
        self.kubelet.play_now(self.namespace, pod["metadata"]["name"], [*actions, Exit(code, reason)])

    def fail(self, workflow: str, suite: str = "dqn-early-stop", *tests: str) -> None:
        """The test pod ends with one red suite."""
        failed = {suite: list(tests) or ["early_stops_on_plateau"]}
        self.finish(workflow, results=make_results(failed=failed), code=1)

    def run_out_of_memory(self, workflow: str, template: str = TEST_TEMPLATE) -> None:
        """The main container is killed for memory before it leaves results."""
        self.finish(workflow, results="", code=137, reason="OOMKilled", template=template)

    def evict(self, workflow: str, message: str = "The node was low on resource: memory.") -> None:
        """The kubelet evicts the test pod."""
        pod = self._running_pod(workflow, TEST_TEMPLATE)
        self.kubelet.play_now(self.namespace, pod["metadata"]["name"], [HANG])

        def edit(copy_: Json) -> None:
            copy_["status"] |= {"phase": "Failed", "reason": "Evicted", "message": message}
            copy_["status"].pop("containerStatuses", None)

        self.store.change(PODS, self.namespace, pod["metadata"]["name"], edit)

    def lose_node(self, workflow: str, template: str = TEST_TEMPLATE) -> str:
        """The node under a pod vanishes; the pod is declared failed and then deleted by the cluster. Returns the
        node.
        """
        pod = self._running_pod(workflow, template)
        node = str(pod["spec"]["nodeName"])
        self.remove_node(node)
        return node

    def remove_node(self, node: str) -> None:
        """A node vanishes with everything on it."""
        pods = [pod for pod in self.store.all(PODS) if pod["spec"].get("nodeName") == node]
        self.autoscaler.lose(node)
        for pod in pods:
            meta = pod["metadata"]
            self.clock.call_later(LOST_POD_SECONDS, partial(self._declare_failed, meta))
            self.clock.call_later(LOST_POD_SECONDS * 1.5, partial(self._forget_pod, meta))

    def _declare_failed(self, meta: Json) -> None:
        pod = self.store.find(PODS, meta["namespace"], meta["name"])
        if (
            pod is not None
            and pod["metadata"]["uid"] == meta["uid"]
            and pod["status"]["phase"] in ("Pending", "Running")
        ):
            self.store.change(
                PODS, meta["namespace"], meta["name"], lambda copy_: copy_["status"].update(phase="Failed")
            )

    def _forget_pod(self, meta: Json) -> None:
        pod = self.store.find(PODS, meta["namespace"], meta["name"])
        if pod is not None and pod["metadata"]["uid"] == meta["uid"]:
            self.store.remove(PODS, meta["namespace"], meta["name"])

    def delete_pod(self, workflow: str, template: str = TEST_TEMPLATE) -> None:
        """Somebody deletes a pod."""
        pod = self.pod(workflow, template)
        if pod is not None:
            delete(self.store, PODS, self.namespace, pod["metadata"]["name"], {"gracePeriodSeconds": 0})

    def delete(self, workflow: str) -> None:
        """Somebody deletes a workflow: `kubectl delete wf`."""
        delete(self.store, WORKFLOWS, self.namespace, workflow, {"propagationPolicy": "Background"})

    def stop(self, workflow: str) -> None:
        """`argo stop`."""
        self.patch(WORKFLOWS, workflow, lambda wf: wf["spec"].update(shutdown="Stop"))

    def terminate(self, workflow: str) -> None:
        """`argo terminate`."""
        self.patch(WORKFLOWS, workflow, lambda wf: wf["spec"].update(shutdown="Terminate"))

    def retry(self, workflow: str) -> None:
        """`argo retry`. Raises CannotRetry unless it failed."""
        again, nodes = formulate_retry(self.workflow(workflow), stamp(self.clock.now()))
        for pod in self.store.all(PODS, self.namespace):
            labels, annotations = pod["metadata"].get("labels") or {}, pod["metadata"].get("annotations") or {}
            if labels.get(f"{PREFIX}/workflow") == workflow and annotations.get(f"{PREFIX}/node-id") in nodes:
                self.store.remove(PODS, self.namespace, pod["metadata"]["name"])
        self.store.replace(WORKFLOWS, again)

    def resubmit(self, workflow: str) -> str:
        """`argo resubmit`: a new workflow with the old one's annotations and owners. Returns its name."""
        old = self.workflow(workflow)
        meta, gone = old["metadata"], ("phase", "completed", "workflow-archiving-status", "creator")
        labels = {
            key: value
            for key, value in (meta.get("labels") or {}).items()
            if key not in {f"{PREFIX}/{one}" for one in gone}
        }
        labels[f"{PREFIX}/resubmitted-from-workflow"] = workflow
        new_meta: Json = {"namespace": meta["namespace"], "generateName": meta.get("generateName") or f"{workflow}-"}
        new_meta |= {"labels": labels, "annotations": dict(meta.get("annotations") or {})}
        if meta.get("ownerReferences"):
            new_meta["ownerReferences"] = copy.deepcopy(meta["ownerReferences"])
        spec = {key: value for key, value in old["spec"].items() if key != "shutdown"}
        return str(
            self.store.create(WORKFLOWS, {"metadata": new_meta, "spec": copy.deepcopy(spec)})["metadata"]["name"]
        )

    def patch(self, kind: Kind, name: str, edit: Callable[[Json], None]) -> Json:
        """Somebody edits an object."""
        return self.store.change(kind, self.namespace, name, edit)

    def suspend_cron(self, name: str, *, suspend: bool = True) -> None:
        """`argo cron suspend` and `argo cron resume`."""
        self.patch(CRON_WORKFLOWS, name, lambda cron: cron["spec"].update(suspend=suspend))

    def argo_down(self) -> None:
        """The controller is away: nothing is reconciled."""
        self.argo.stopped = self.cron.stopped = True

    def argo_up(self) -> None:
        """The controller is back, and looks at everything."""
        self.argo.start_again()
        self.cron.start_again()

    def manual(self) -> None:
        """Neither scheduler nor kubelet play: a test does their part over HTTP, as on a bare API server."""
        self.scheduler.working = False
        self.kubelet.playing = False

    def say_old_log_lines(self, workflow: str, lines: Iterable[str], seconds_ago: float = 60.0) -> None:
        """Lines that a pod wrote a while ago."""
        pod = self._running_pod(workflow, TEST_TEMPLATE)
        for line in lines:
            self.logs.append(pod["metadata"]["uid"], self.clock.now() - timedelta(seconds=seconds_ago), line)

    def nodes(self) -> list[Json]:
        """All nodes."""
        return self.store.all(NODES)

    def _running_pod(self, workflow: str, template: str) -> Json:
        pod = self.pod(workflow, template)
        if pod is None or pod["status"].get("phase") != "Running":
            raise LookupError(f"no running pod of {template} in {workflow}: go on with until_running first")
        return pod
