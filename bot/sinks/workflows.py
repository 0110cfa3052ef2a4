"""Workflows: create them, patch them."""

from __future__ import annotations

from typing import Any

import msgspec

from bot.clients.errors import Conflict, Invalid, NotFound, ServerFault, Unreachable, WireError
from bot.clients.kube import Kube
from bot.core.effects import PatchWorkflow, SubmitWorkflow
from bot.core.events import EffectDone, EffectFailed, Trouble
from bot.core.memory import FINALIZER, REQUEST_ANNOTATION, read_request
from bot.core.packed import read_workflow
from bot.core.workflow import TEMPLATE_LABEL
from bot.sinks.trouble import failure

API = "/apis/argoproj.io/v1alpha1"


class WorkflowSink:
    """Writes to Workflows."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    async def submit(self, effect: SubmitWorkflow) -> EffectDone | EffectFailed:
        """Create the run. A name that is taken, or an answer that never came, is settled by reading the object."""
        path = f"{API}/namespaces/{effect.namespace}/workflows"
        try:
            return EffectDone(effect.id, read_workflow(await self._kube.create(path, manifest(effect))))
        except (Conflict, Unreachable, ServerFault) as error:
            if isinstance(error, Unreachable) and not error.uncertain:
                return failure(effect.id, error)
            return await self._settle(effect, f"{path}/{effect.name}", error)
        except WireError as error:
            return failure(effect.id, error)

    async def _settle(self, effect: SubmitWorkflow, path: str, error: WireError) -> EffectDone | EffectFailed:
        try:
            found = read_workflow(await self._kube.read(path))
        except NotFound:
            return EffectFailed(effect.id, Trouble.BUSY, error.reason, retry_after=error.retry_after)
        except WireError as second:
            return EffectFailed(effect.id, Trouble.UNCERTAIN, second.reason, retry_after=second.retry_after)
        request, mine = read_request(found), msgspec.json.decode(effect.request)
        if request is not None and request.request_id == mine["request_id"]:
            return EffectDone(effect.id, found)
        return EffectFailed(effect.id, Trouble.EXISTS, f"the name {effect.name} is taken")

    async def patch(self, effect: PatchWorkflow) -> EffectDone | EffectFailed:
        """Apply one JSON patch. A refused test and a lost answer both end in reading the object as it is now."""
        path = f"{API}/namespaces/{effect.namespace}/workflows/{effect.name}"
        try:
            return EffectDone(effect.id, read_workflow(await self._kube.patch(path, effect.patch)))
        except (Invalid, Conflict) as error:
            return await self._latest(effect.id, path, error)
        except (Unreachable, ServerFault) as error:
            if isinstance(error, Unreachable) and not error.uncertain:
                return failure(effect.id, error)
            return await self._latest(effect.id, path, error)
        except WireError as error:
            return failure(effect.id, error)

    async def _latest(self, effect_id: str, path: str, error: WireError) -> EffectDone | EffectFailed:
        try:
            latest = read_workflow(await self._kube.read(path))
        except WireError as second:
            return failure(effect_id, second)
        return EffectFailed(effect_id, Trouble.CONFLICT, error.reason, latest=latest, retry_after=error.retry_after)


def manifest(effect: SubmitWorkflow) -> dict[str, Any]:
    """The Workflow to create: a reference to the template, its parameters, a priority, nothing of its own.

    The label is what `argo submit --from` writes (convert.go); Argo before 4.1 adds it to nothing else.
    """
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {
            "name": effect.name,
            "namespace": effect.namespace,
            "labels": {TEMPLATE_LABEL: effect.template},
            "annotations": {REQUEST_ANNOTATION: effect.request},
            "finalizers": [FINALIZER],
        },
        "spec": {
            "workflowTemplateRef": {"name": effect.template},
            "arguments": {"parameters": [{"name": k, "value": v} for k, v in effect.parameters.items()]},
            **({"priority": effect.priority} if effect.priority else {}),
        },
    }
