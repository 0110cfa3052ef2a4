"""Placeholders: pods that do nothing but keep a node up."""

from __future__ import annotations

from typing import Any

import msgspec

from bot.clients.errors import Conflict, NotFound, WireError
from bot.clients.kube import Kube
from bot.core.effects import MakePlaceholder, RemovePlaceholders
from bot.core.events import EffectDone, EffectFailed
from bot.core.kube import Meta
from bot.core.settings import Settings
from bot.core.sightings import PLACEHOLDER, ROLE_LABEL, UNTIL_LABEL
from bot.core.workflow import Wire
from bot.sinks.trouble import failure

ASKED_BY = "gputest.bot/asked-by"
POOL_LABEL = "gputest.bot/pool"
"""Label of the pod: the pool whose node it keeps up."""

GRACE_SECONDS = 1
"""From the signal to the end: the pause program obeys at once. With 0 the object would be gone before its kubelet has
let go of the GPU, and the pod that takes its place could be refused on the node."""


class PlaceholderSink:
    """Makes and deletes them."""

    def __init__(self, kube: Kube, settings: Settings) -> None:
        self._kube = kube
        self._settings = settings

    async def make(self, effect: MakePlaceholder) -> EffectDone | EffectFailed:
        """Create the pod. A name that is taken is this very request's: it is there already."""
        path = f"/api/v1/namespaces/{effect.namespace}/pods"
        try:
            await self._kube.create(path, manifest(effect, self._settings))
        except Conflict:
            pass
        except WireError as error:
            return failure(effect.id, error)
        return EffectDone(effect.id, effect.name)

    async def remove(self, effect: RemovePlaceholders) -> EffectDone | EffectFailed:
        """Delete those that are meant, as they are now; one that goes meanwhile is gone as well."""
        path = f"/api/v1/namespaces/{effect.namespace}/pods"
        try:
            found = _LIST.decode(await self._kube.read(path, [("labelSelector", f"{ROLE_LABEL}={PLACEHOLDER}")])).items
            names = [
                pod.metadata.name
                for pod in found
                if _is_meant(pod, effect) and await self._delete(f"{path}/{pod.metadata.name}", pod.metadata.uid)
            ]
        except WireError as error:
            return failure(effect.id, error)
        return EffectDone(effect.id, tuple(names))

    async def _delete(self, path: str, uid: str) -> bool:
        try:
            await self._kube.delete(path, {"preconditions": {"uid": uid}})
        except (NotFound, Conflict):
            return False
        return True


def manifest(effect: MakePlaceholder, settings: Settings) -> dict[str, Any]:
    """The pod: one GPU of the pool, the lowest priority, nothing mounted, no rights, an end.

    It is owned by nothing: what is the bot's own lives in another namespace, and an owner has to be in the same.
    """
    gpu = settings.gpu_resources[0]
    resources = {"cpu": "10m", "memory": "16Mi", gpu: "1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": effect.name,
            "namespace": effect.namespace,
            "labels": {
                "app.kubernetes.io/managed-by": "gputest-bot",
                "app.kubernetes.io/part-of": "gputest",
                ROLE_LABEL: PLACEHOLDER,
                POOL_LABEL: effect.pool,
                UNTIL_LABEL: str(int(effect.until)),
            },
            "annotations": {ASKED_BY: effect.user},
        },
        "spec": {
            "priorityClassName": settings.warm.priority_class,
            "activeDeadlineSeconds": effect.seconds,
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            "restartPolicy": "Never",
            "serviceAccountName": "default",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "nodeSelector": {settings.pool_label: effect.pool},
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "node.cilium.io/agent-not-ready", "operator": "Exists", "effect": "NoSchedule"},
            ],
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65535,
                "runAsGroup": 65535,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "pause",
                    "image": settings.warm.image,
                    "resources": {"requests": resources, "limits": resources},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }
            ],
        },
    }


class _Status(Wire, frozen=True):
    phase: str | None = None


class _Pod(Wire, frozen=True):
    metadata: Meta
    status: _Status = _Status()


class _List(Wire, frozen=True):
    items: list[_Pod]


def _is_meant(pod: _Pod, effect: RemovePlaceholders) -> bool:
    labels = pod.metadata.labels or {}
    if pod.metadata.deletion_timestamp:
        return False
    until = labels.get(UNTIL_LABEL, "")
    over = not (until.isascii() and until.isdecimal()) or int(until) <= effect.before
    ended = pod.status.phase in {"Succeeded", "Failed"}
    return ended or over or labels.get(POOL_LABEL) == (effect.pool or None)


_LIST = msgspec.json.Decoder(_List)
