"""Workflows and CronWorkflows, watched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial

import msgspec

from bot.clients.errors import NotFound
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
from bot.core.packed import read_cron, read_workflow
from bot.core.workflow import CronWorkflow, Workflow
from bot.metrics import Metrics

API = "/apis/argoproj.io/v1alpha1"

READERS = 10
"""Runs that are read at the same time."""

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


async def look_again(kube: Kube, held: Iterable[Workflow], put: Put) -> None:
    """Read runs anew and hand on how they are now, or that they are gone: the watch may be behind.

    Raises:
        WireError: as `errors` has them; then nothing was handed on.
    """
    readers = asyncio.Semaphore(READERS)

    async def read(workflow: Workflow) -> Event:
        meta = workflow.metadata
        path = f"{API}/namespaces/{meta.namespace}/workflows/{meta.name}"
        async with readers:
            try:
                found = read_workflow(await kube.read(path))
            except NotFound:
                return WorkflowDeleted(workflow)
            except msgspec.MsgspecError:
                found = workflow  # the watch has reported it
        return WorkflowsSeen((found,)) if found.metadata.uid == meta.uid else WorkflowDeleted(workflow)

    for event in await asyncio.gather(*(read(workflow) for workflow in held)):
        put(event)


async def watch_crons(kube: Kube, metrics: Metrics, namespace: str, put: Put, trouble: Trouble) -> None:
    """Hand on every CronWorkflow of the namespace, for ever."""
    path = f"{API}/namespaces/{namespace}/cronworkflows"
    async for seen in Watch(kube, metrics, path, read_cron, on_trouble=trouble).events():
        put(cron_event(seen))


async def held_workflows(kube: Kube, metrics: Metrics, namespace: str) -> AsyncIterator[Workflow]:
    """Every Workflow that carries our finalizer now, listed once."""
    path = f"{API}/namespaces/{namespace}/workflows"
    listed = await Watch(kube, metrics, path, read_workflow, on_trouble=lambda _: None).list_once()
    for workflow in listed.items:
        if FINALIZER in workflow.finalizers:
            yield workflow


def workflow_event(seen: Listed[Workflow] | Seen[Workflow]) -> Event:
    """From what the watch saw to what happened."""
    if isinstance(seen, Listed):
        return WorkflowsListed(seen.uids, seen.version)
    return WorkflowDeleted(seen.object) if seen.type == "DELETED" else WorkflowChanged(seen.object)


def cron_event(seen: Listed[CronWorkflow] | Seen[CronWorkflow]) -> Event:
    """From what the watch saw to what happened."""
    if isinstance(seen, Listed):
        return CronWorkflowsListed(seen.items)
    return CronWorkflowDeleted(seen.object) if seen.type == "DELETED" else CronWorkflowChanged(seen.object)


def decode_run(raw: Encoded, template: str) -> Workflow | None:
    """A Workflow from its bytes, None for one of another template."""
    workflow = read_workflow(raw)
    return workflow if workflow.template == template else None
