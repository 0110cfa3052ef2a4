"""The kubelet and the executor: plays each pod by a script.

A script is a list of actions; the kubelet takes a pod that is bound to a node, pulls its image, starts it, and does
one action after the other on the simulated clock: lines into the log, results through a WorkflowTaskResult, an exit
code. The order of its writes is the executor's (argo-workflows v3.7.3 `workflow/executor/taskresult.go`,
`cmd/argoexec/commands/wait.go`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from bot.demo.argo_pods import PREFIX, REPORTED
from bot.demo.argo_spec import template_of
from bot.demo.clock import Timer
from bot.demo.events import Recorder
from bot.demo.kinds import NODES, PODS, TASK_RESULTS, WORKFLOWS
from bot.demo.pod_logs import PodLogs
from bot.demo.world import Change, Json, Key, Store, stamp

CREATION_SECONDS = 2.0
DEADLINE_TEXT = "Pod was active on the node longer than the specified deadline"
STOP_SECONDS = 2.0
"""From the signal to the end of a container that obeys it."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Time passes."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Log:
    """One line of output."""

    text: str


@dataclass(frozen=True, slots=True)
class Outputs:
    """Output parameters that the container leaves behind, by name; what the template declares otherwise gets its
    default.
    """

    values: dict[str, str]


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress that the container reports about itself, as done and all."""

    done: int
    all: int


@dataclass(frozen=True, slots=True)
class Gate:
    """Wait until a test opens it (`Kubelet.release`); gates stay open."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class Exit:
    """The container ends. Without one a script ends with 0."""

    code: int = 0
    reason: str = ""
    message: str = ""


Action = Wait | Log | Outputs | Progress | Gate | Exit
HANG = Gate("never")
Script = Callable[[Json, Json | None], Iterator[Action]]
"""Makes the actions of a pod; given the pod and its workflow."""


@dataclass
class _Play:
    pod: Json
    actions: Iterator[Action]
    outputs: dict[str, str] = field(default_factory=dict)
    timer: Timer | None = None
    deadline: Timer | None = None
    gate: str | None = None
    running: bool = False
    lost: bool = False
    """Its node is gone: nothing comes from it any more."""
    started: str = ""


class Kubelet:
    """All kubelets of the cluster in one."""

    def __init__(self, store: Store, logs: PodLogs, default: Script) -> None:
        self.store = store
        self.logs = logs
        self.default = default
        self.scripts: dict[tuple[str, str], Script] = {}
        """By template and workflow name, "" for any workflow, in place of the default."""
        self.open_gates: set[str] = set()
        self.pull_seconds: Callable[[Json], float] = lambda _pod: 5.0
        self.playing = True
        """Off: pods stay as their writers over HTTP leave them."""
        self._recorder = Recorder(store, "kubelet")
        self._plays: dict[Key, _Play] = {}
        store.subscribe(self._on_change)

    def release(self, gate: str) -> None:
        """Open a gate for all pods that wait at it or come to it later."""
        self.open_gates.add(gate)
        for key, play in list(self._plays.items()):
            if play.gate == gate:
                play.gate = None
                self._step(key, play)

    def waiting_at(self, namespace: str, pod: str) -> str | None:
        """The gate at which a pod waits."""
        play = self._plays.get((namespace, pod))
        return play.gate if play else None

    def stop(self, pod: Json, code: int = 143) -> None:
        """End the main container from outside: a SIGTERM, or with 137 a kill."""
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        play = self._plays.get(key)
        if play is not None and play.running and not play.lost:
            self._cancel(play)
            play.actions = iter([Wait(STOP_SECONDS), Exit(code, "Error")])
            self._step(key, play)

    def play_now(self, namespace: str, pod: str, actions: list[Action]) -> None:
        """Replace what is left of a pod's script."""
        play = self._plays[namespace, pod]
        self._cancel(play)
        play.actions = iter(actions)
        self._step((namespace, pod), play)

    def _on_change(self, change: Change) -> None:
        if change.kind == NODES and change.type == "DELETED":
            self._node_gone(change.object["metadata"]["name"])
        if change.kind != PODS:
            return
        if change.type == "DELETED":
            self.logs.drop(change.object["metadata"]["uid"])
            if (play := self._plays.pop(change.key, None)) is not None:
                self._cancel(play)
                if play.running and not play.lost:
                    # The executor is stopped with its pod, and closes its report first.
                    self._report(play, self._workflow(play.pod), {}, reported=True)
            return
        pod = change.object
        if not self.playing or not pod["spec"].get("nodeName"):
            return
        if "deletionTimestamp" in pod["metadata"]:
            self._deleting(change)
        elif change.key not in self._plays and pod["status"].get("phase") == "Pending":
            self._plays[change.key] = _Play(pod, iter(()))
            self.store.clock.soon(lambda: self._admit(change.key))

    def _deleting(self, change: Change) -> None:
        if change.previous is not None and "deletionTimestamp" not in change.previous["metadata"]:
            grace = min(STOP_SECONDS, float(change.object["metadata"].get("deletionGracePeriodSeconds") or 0))
            self.store.clock.call_later(grace, lambda: self._remove(change))

    def _remove(self, change: Change) -> None:
        pod = self.store.find(PODS, *change.key)
        if pod is not None and pod["metadata"]["uid"] == change.object["metadata"]["uid"]:
            self.store.mark_deleted(PODS, pod, grace=0)

    def _node_gone(self, node: str) -> None:
        # What is on a lost node is silent from now on; its pods stay until the cluster gives them up.
        for play in self._plays.values():
            if play.pod["spec"].get("nodeName") == node:
                self._cancel(play)
                play.actions = iter([HANG])
                play.lost = True

    def _admit(self, key: Key) -> None:
        play = self._plays.get(key)
        pod = self.store.find(PODS, *key)
        if play is None or pod is None:
            return
        play.pod = pod
        self._set_state(key, "Pending", _waiting("PodInitializing"), init={"running": {"startedAt": self._now()}})
        play.timer = self.store.clock.call_later(CREATION_SECONDS, lambda: self._pull(key))

    def _pull(self, key: Key) -> None:
        """One after the other, as the kubelet does; here they take their time together."""
        play = self._plays[key]
        seconds = self.pull_seconds(play.pod)
        for name, image in _images(play.pod):
            self._say(play.pod, "Pulling", f'Pulling image "{image}"', name)

        def pulled() -> None:
            for name, image in _images(play.pod):
                text = f'Successfully pulled image "{image}" in {seconds:g}s ({seconds:g}s including waiting)'
                self._say(play.pod, "Pulled", text, name)
            self._start(key)

        play.timer = self.store.clock.call_later(seconds, pulled)

    def _say(self, pod: Json, reason: str, text: str, container: str) -> None:
        self._recorder.event(pod, "Normal", reason, text, part=f"spec.containers{{{container}}}")

    def _start(self, key: Key) -> None:
        play = self._plays[key]
        workflow = self._workflow(play.pod)
        play.running, play.started = True, self._now()
        template = self._template_name(play.pod)
        name = workflow["metadata"]["name"] if workflow else ""
        script = self.scripts.get((template, name)) or self.scripts.get((template, ""), self.default)
        play.actions = iter([HANG]) if _pauses(play.pod) else script(play.pod, workflow)
        running: Json = {"running": {"startedAt": self._now()}}
        self._set_state(
            key, "Running", {"wait": running, "main": running}, init=self._ended(play, Exit(0, "Completed"))
        )
        self._report(play, workflow, {}, reported=False)
        if (seconds := play.pod["spec"].get("activeDeadlineSeconds")) is not None:
            play.deadline = self.store.clock.call_later(float(seconds), lambda: self._out_of_time(key, play))
        self._step(key, play)

    def _out_of_time(self, key: Key, play: _Play) -> None:
        if self._plays.get(key) is play and not play.lost:
            self._cancel(play)
            self._end(key, play, Exit(143, "Error"), {"reason": "DeadlineExceeded", "message": DEADLINE_TEXT})

    def _step(self, key: Key, play: _Play) -> None:
        for action in play.actions:
            match action:
                case Wait(seconds):
                    play.timer = self.store.clock.call_later(seconds, lambda: self._step(key, play))
                    return
                case Gate(name):
                    if name not in self.open_gates:
                        play.gate = name
                        return
                case Log(text):
                    self.logs.append(play.pod["metadata"]["uid"], self.store.clock.now(), text)
                case Outputs(values):
                    play.outputs |= values
                case Progress(done, out_of):
                    self._report(play, self._workflow(play.pod), {"progress": f"{done}/{out_of}"}, reported=False)
                case Exit():
                    self._end(key, play, action)
                    return
        self._end(key, play, Exit())

    def _end(self, key: Key, play: _Play, end: Exit, about_pod: Json | None = None) -> None:
        workflow = self._workflow(play.pod)
        parameters, complaint = self._parameters(play, workflow)
        self._report(play, workflow, {"outputs": {"parameters": parameters}} if parameters else {}, reported=True)
        reason = end.reason or ("Error" if end.code else "Completed")
        wait = self._ended(play, Exit(1, "Error", complaint)) if complaint else self._ended(play, Exit(0, "Completed"))
        states = {"wait": wait, "main": self._ended(play, Exit(end.code, reason, end.message))}
        self.logs.end(play.pod["metadata"]["uid"])
        del self._plays[key]
        if play.deadline is not None:
            play.deadline.cancel()
        failed = bool(end.code or complaint)
        phase, init = "Failed" if failed else "Succeeded", self._ended(play, Exit(0, "Completed"))
        self._set_state(key, phase, states, init, about_pod)

    def _parameters(self, play: _Play, workflow: Json | None) -> tuple[list[Json], str]:
        """What the executor reports, and its complaint about the first file that is missing: it gives up there."""
        template = template_of(_spec(workflow), self._template_name(play.pod)) or {}
        found: list[Json] = []
        for declared in (template.get("outputs") or {}).get("parameters") or ():
            source = declared.get("valueFrom") or {}
            value = play.outputs.get(declared["name"], source.get("default"))
            if value is None:
                return found, f"open {source.get('path')}: no such file or directory"
            found.append({**copy.deepcopy(declared), "value": value.removesuffix("\n")})
        return found, ""

    def _template_name(self, pod: Json) -> str:
        node = self._node(pod)
        return str(node.get("templateName", "")) if node else ""

    def _node(self, pod: Json) -> Json | None:
        workflow = self._workflow(pod)
        identity = (pod["metadata"].get("annotations") or {}).get(f"{PREFIX}/node-id", "")
        nodes: dict[str, Json] = ((workflow or {}).get("status") or {}).get("nodes") or {}
        return nodes.get(identity)

    def _workflow(self, pod: Json) -> Json | None:
        name = (pod["metadata"].get("labels") or {}).get(f"{PREFIX}/workflow", "")
        return self.store.find(WORKFLOWS, pod["metadata"]["namespace"], name)

    def _report(self, play: _Play, workflow: Json | None, extra: Json, *, reported: bool) -> None:
        meta = play.pod["metadata"]
        identity = (meta.get("annotations") or {}).get(f"{PREFIX}/node-id")
        if (
            not identity
            or workflow is None
            or workflow["metadata"].get("labels", {}).get(f"{PREFIX}/completed") == "true"
        ):
            return
        label = "true" if reported else "false"
        if self.store.find(TASK_RESULTS, meta["namespace"], identity) is None:
            owner = {key: workflow["metadata"][key] for key in ("name", "uid")}
            labels = {f"{PREFIX}/workflow": workflow["metadata"]["name"], REPORTED: label}
            result_meta = {"name": identity, "namespace": meta["namespace"], "labels": labels}
            result_meta["ownerReferences"] = [{"apiVersion": workflow["apiVersion"], "kind": "Workflow", **owner}]
            self.store.create(TASK_RESULTS, {"metadata": result_meta, **extra})
            return

        def edit(result: Json) -> None:
            result.update(extra)
            result["metadata"]["labels"][REPORTED] = label

        self.store.change(TASK_RESULTS, meta["namespace"], identity, edit)

    def _set_state(
        self, key: Key, phase: str, containers: dict[str, Json], init: Json, about_pod: Json | None = None
    ) -> None:
        def edit(pod: Json) -> None:
            state = pod["status"]
            state |= {"phase": phase, **(about_pod or {})}
            state.setdefault("startTime", self._now())
            state["initContainerStatuses"] = [_container("init", init, "argoexec")]
            images = {one["name"]: one.get("image", "") for one in pod["spec"]["containers"]}
            known = {name: containers.get(name, containers["main"]) for name in images}
            state["containerStatuses"] = [_container(name, value, images[name]) for name, value in known.items()]

        if self.store.find(PODS, *key) is not None:
            changed = self.store.change(PODS, *key, edit)
            if key in self._plays:
                self._plays[key].pod = changed

    def _ended(self, play: _Play, end: Exit) -> Json:
        state: Json = {"exitCode": end.code, "reason": end.reason, "startedAt": play.started, "finishedAt": self._now()}
        if end.message:
            state["message"] = end.message
        return {"terminated": state}

    def _now(self) -> str:
        return stamp(self.store.clock.now())

    def _cancel(self, play: _Play) -> None:
        play.gate = None
        if play.timer is not None:
            play.timer.cancel()


def _pauses(pod: Json) -> bool:
    """Whether it is nothing but the pause program, which waits for a signal."""
    return all("/pause:" in one.get("image", "") for one in pod["spec"]["containers"])


def _images(pod: Json) -> list[tuple[str, str]]:
    return [(one["name"], one.get("image", "")) for one in pod["spec"]["containers"]]


def _waiting(reason: str) -> dict[str, Json]:
    return {name: {"waiting": {"reason": reason}} for name in ("wait", "main")}


def _container(name: str, state: Json, image: str) -> Json:
    ready = "running" in state
    return {"name": name, "ready": ready, "restartCount": 0, "image": image, "imageID": image, "state": state}


def _spec(workflow: Json | None) -> Json:
    found: Any = workflow or {}
    return (found.get("status") or {}).get("storedWorkflowTemplateSpec") or found.get("spec") or {}
