"""The scheduler: pods to nodes, by pool, taint and free GPUs.

Texts as of kube-scheduler; CPU and memory are not counted. A pod that finds no place takes that of pods with a lower
priority, unless its class forbids that (https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/).
"""

from __future__ import annotations

from bot.demo.deleting import delete
from bot.demo.events import Recorder
from bot.demo.kinds import NODES, PODS, PRIORITY_CLASSES
from bot.demo.kube_writes import bound
from bot.demo.pools import GPU, Autoscaler, gpus_of
from bot.demo.status import ApiError
from bot.demo.world import Change, Json, Key, Store, stamp


class Scheduler:
    """Binds what can be bound, and says of the rest why not."""

    def __init__(self, store: Store, recorder: Recorder, autoscaler: Autoscaler) -> None:
        self.working = True
        self._store = store
        self._recorder = recorder
        self._autoscaler = autoscaler
        self._queued = False
        autoscaler.node_changed = self.try_again
        store.subscribe(self._on_change)

    def try_again(self) -> None:
        """Look at all waiting pods."""
        if not self._queued:
            self._queued = True
            self._store.clock.soon(self._schedule_all)

    def _on_change(self, change: Change) -> None:
        if change.kind == PODS:
            ended = change.type == "DELETED" or change.object["status"].get("phase") in ("Succeeded", "Failed")
            if ended or not change.object["spec"].get("nodeName"):
                self.try_again()

    def _schedule_all(self) -> None:
        self._queued = False
        if not self.working:
            return
        waiting = [pod for pod in self._store.all(PODS) if _waits(pod)]
        for pod in sorted(waiting, key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"])):
            self._schedule(pod)
        self._autoscaler.look_at_idle()

    def _schedule(self, pod: Json) -> None:
        if pod["spec"].get("schedulingGates"):
            self._condition(pod, "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
            return
        reasons: dict[str, int] = {}
        nodes = self._store.all(NODES)
        for node in nodes:
            why = self._why_not(pod, node)
            if not why:
                self._bind(pod, node)
                return
            reasons[why] = reasons.get(why, 0) + 1
        if self._preempt(pod, nodes):
            return
        listed = ", ".join(f"{count} {why}" for why, count in sorted(reasons.items()))
        message = f"0/{len(nodes)} nodes are available: {listed}."
        if nodes:
            none = f"0/{len(nodes)} nodes are available: {len(nodes)} Preemption is not helpful for scheduling."
            never = "not eligible due to preemptionPolicy=Never."
            message += f" preemption: {none if self._may_preempt(pod) else never}"
        if self._condition(pod, "Unschedulable", message):
            self._recorder.event(pod, "Warning", "FailedScheduling", message)
        self._autoscaler.ask_for(pod)

    def _why_not(self, pod: Json, node: Json) -> str:
        labels = node["metadata"].get("labels") or {}
        if any(labels.get(key) != value for key, value in (pod["spec"].get("nodeSelector") or {}).items()):
            return "node(s) didn't match Pod's node affinity/selector"
        if node["spec"].get("unschedulable"):
            return "node(s) were unschedulable"
        for taint in node["spec"].get("taints") or ():
            if taint["effect"] == "NoSchedule" and not _tolerates(pod, taint):
                return f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
        wanted = gpus_of(pod)
        if wanted and wanted > self._free_gpus(node):
            return f"Insufficient {GPU}"
        return ""

    def _free_gpus(self, node: Json) -> int:
        used = sum(map(gpus_of, self._pods_on(node)))
        return int(node["status"].get("allocatable", {}).get(GPU, 0)) - used

    def _pods_on(self, node: Json) -> list[Json]:
        name, over = node["metadata"]["name"], ("Succeeded", "Failed")
        pods = self._store.all(PODS)
        return [one for one in pods if one["spec"].get("nodeName") == name and one["status"].get("phase") not in over]

    def _preempt(self, pod: Json, nodes: list[Json]) -> bool:
        """Send away what has a lower priority on the node where that costs least; the pod waits until it is gone."""
        if not self._may_preempt(pod):
            return False
        found = [(victims, node) for node in nodes if (victims := self._victims(pod, node))]
        if not found:
            return False
        victims, node = min(found, key=lambda one: (self._priority(one[0][-1]), len(one[0])))
        meta = pod["metadata"]
        for victim in victims:
            if "deletionTimestamp" not in victim["metadata"]:
                text = f"Preempted by pod {meta['uid']} on node {node['metadata']['name']}"
                self._recorder.event(victim, "Normal", "Preempted", text)
                delete(self._store, PODS, victim["metadata"]["namespace"], victim["metadata"]["name"], {})
        name = node["metadata"]["name"]
        if pod["status"].get("nominatedNodeName") != name:
            key = (meta["namespace"], meta["name"])
            self._store.change(PODS, *key, lambda copy: copy["status"].update(nominatedNodeName=name))
        return True

    def _victims(self, pod: Json, node: Json) -> list[Json]:
        """The pods that would have to go from a node, the least important first; none where that would not help."""
        if self._why_not(pod, node) != f"Insufficient {GPU}":
            return []
        mine, missing = self._priority(pod), gpus_of(pod) - self._free_gpus(node)
        victims: list[Json] = []
        for one in sorted(self._pods_on(node), key=self._priority):
            if missing > 0 and gpus_of(one) and self._priority(one) < mine:
                victims.append(one)
                missing -= gpus_of(one)
        return victims if missing <= 0 else []

    def _priority(self, pod: Json) -> int:
        return int(self._class_of(pod).get("value", 0))

    def _may_preempt(self, pod: Json) -> bool:
        return bool(self._class_of(pod).get("preemptionPolicy") != "Never")

    def _class_of(self, pod: Json) -> Json:
        name = pod["spec"].get("priorityClassName")
        return (self._store.find(PRIORITY_CLASSES, "", name) if name else None) or {}

    def _bind(self, pod: Json, node: Json) -> None:
        try:
            changed = self._store.replace(PODS, bound(pod, node["metadata"]["name"], self._store.clock.now()))
        except ApiError:
            # Changed or gone since it was listed: its own change brings it here again.
            return
        meta = pod["metadata"]
        text = f"Successfully assigned {meta['namespace']}/{meta['name']} to {node['metadata']['name']}"
        self._recorder.event(changed, "Normal", "Scheduled", text)

    def _condition(self, pod: Json, reason: str, message: str) -> bool:
        """Write why a pod waits; says whether that is news."""
        key: Key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        current = next((one for one in pod["status"].get("conditions") or () if one["type"] == "PodScheduled"), None)
        if current is not None and (current.get("reason"), current.get("message")) == (reason, message):
            return False
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
            "lastProbeTime": None,
            "lastTransitionTime": stamp(self._store.clock.now()),
        }

        def edit(copy: Json) -> None:
            others = [one for one in copy["status"].get("conditions") or () if one["type"] != "PodScheduled"]
            copy["status"]["conditions"] = [*others, condition]

        self._store.change(PODS, *key, edit)
        return True


def _waits(pod: Json) -> bool:
    pending = pod["status"].get("phase", "Pending") == "Pending"
    return pending and not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]


def _tolerates(pod: Json, taint: Json) -> bool:
    for one in pod["spec"].get("tolerations") or ():
        if one.get("key") and one["key"] != taint["key"]:
            continue
        if one.get("effect") and one["effect"] != taint["effect"]:
            continue
        if one.get("operator") == "Exists" or one.get("value", "") == taint.get("value", ""):
            return True
    return False
