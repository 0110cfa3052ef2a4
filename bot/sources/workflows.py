"""Workflows and CronWorkflows, watched."""

from __future__ import annotations

import base64
import binascii
import gzip
import zlib
from collections.abc import AsyncIterator, Callable
from functools import partial

import msgspec

from bot.clients.kube import Kube
from bot.clients.kube_watch import Encoded, Listed, Seen, Watch
from bot.core.events import (
    CronWorkflowChanged,
    CronWorkflowDeleted,
    CronWorkflowsListed,
    Event,
    WorkflowChanged,
    WorkflowDeleted,
    WorkflowsListed,
    WorkflowsSeen,
)
from bot.core.memory import FINALIZER
from bot.core.workflow import CronWorkflow, Node, Workflow
from bot.metrics import Metrics

API = "/apis/argoproj.io/v1alpha1"

Put = Callable[[Event], None]
Trouble = Callable[[str], None]


async def watch_workflows(
    kube: Kube, metrics: Metrics, namespace: str, template: str, put: Put, trouble: Trouble
) -> None:
    """Hand on every run of the template in the namespace, for ever.

    A namespace holds other teams' workflows as well: those go no further than this.
    """
    path = f"{API}/namespaces/{namespace}/workflows"

    decode = partial(decode_run, template=template)

    def page(workflows: tuple[Workflow, ...]) -> None:
        put(WorkflowsSeen(workflows))

    async for seen in Watch(kube, metrics, path, decode, on_trouble=trouble, on_page=page).events():
        put(workflow_event(seen))


async def watch_crons(kube: Kube, metrics: Metrics, namespace: str, put: Put, trouble: Trouble) -> None:
    """Hand on every CronWorkflow of the namespace, for ever."""
    path = f"{API}/namespaces/{namespace}/cronworkflows"
    async for seen in Watch(kube, metrics, path, _CRON.decode, on_trouble=trouble).events():
        put(cron_event(seen))


async def held_workflows(kube: Kube, metrics: Metrics, namespace: str) -> AsyncIterator[Workflow]:
    """Every Workflow that carries our finalizer now, listed once."""
    path = f"{API}/namespaces/{namespace}/workflows"
    listed = await Watch(kube, metrics, path, decode_workflow, on_trouble=lambda _: None).list_once()
    for workflow in listed.items:
        if FINALIZER in workflow.finalizers:
            yield workflow


def workflow_event(seen: Listed[Workflow] | Seen[Workflow]) -> Event:
    """From what the watch saw to what happened."""
    if isinstance(seen, Listed):
        return WorkflowsListed(seen.uids)
    return WorkflowDeleted(seen.object) if seen.type == "DELETED" else WorkflowChanged(seen.object)


def cron_event(seen: Listed[CronWorkflow] | Seen[CronWorkflow]) -> Event:
    """From what the watch saw to what happened."""
    if isinstance(seen, Listed):
        return CronWorkflowsListed(seen.items)
    return CronWorkflowDeleted(seen.object) if seen.type == "DELETED" else CronWorkflowChanged(seen.object)


def decode_run(raw: Encoded, template: str) -> Workflow | None:
    """A Workflow from its bytes, None for one of another template."""
    workflow = decode_workflow(raw)
    return workflow if workflow.template == template else None


def decode_workflow(raw: Encoded) -> Workflow:
    """A Workflow from its bytes, with its nodes unpacked where Argo packed them.

    A large status is kept as base64 of gzip of the nodes' JSON (packer.go). Other compressions (4.1 can be told to
    use them) stay unread, and the run's results are then said to be unknown.
    """
    workflow = _WORKFLOW.decode(raw)
    status = workflow.status
    if status is None or not status.compressed_nodes or status.nodes:
        return workflow
    try:
        nodes = _NODES.decode(gzip.decompress(base64.b64decode(status.compressed_nodes)))
    except (OSError, EOFError, zlib.error, binascii.Error, msgspec.MsgspecError):
        return workflow
    return msgspec.structs.replace(workflow, status=msgspec.structs.replace(status, nodes=nodes))


_WORKFLOW = msgspec.json.Decoder(Workflow)
_CRON = msgspec.json.Decoder(CronWorkflow)
_NODES = msgspec.json.Decoder(dict[str, Node])
