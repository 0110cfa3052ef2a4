"""What Argo says: the fields of its objects that the bot uses, as they are on the wire.

Decoded straight from the bytes of a list or a watch; fields that are not named here are never built.
Every field may be absent or null: an object is written in several steps and by several versions of Argo.

Source: the Go types of argo-workflows, pkg/apis/workflow/v1alpha1 (workflow_types.go, cron_workflow_types.go).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import msgspec

_BELOW_EXIT = re.compile(r"\.(?:onExit|hooks\.[^.\[(]+)(?=$|[.\[(])")
"""In a node's name: it is an exit handler or a hook, or a part of one."""

Scalar = str | int | float | bool | None
Nested = list[Any] | dict[str, Any]

TERMINAL = frozenset({"Succeeded", "Failed", "Error"})
"""Phases that end an attempt (workflow_phase.go); `argo retry` leaves them again."""

TEMPLATE_LABEL = "workflows.argoproj.io/workflow-template"
CRON_LABEL = "workflows.argoproj.io/cron-workflow"
CREATOR_LABEL = "workflows.argoproj.io/creator-preferred-username"
STOPPED_LABEL = "cronworkflows.argoproj.io/completed"
USED_ANNOTATION = "cronworkflows.argoproj.io/last-used-schedule"


def instant(text: str | None) -> datetime | None:
    """A Kubernetes time; None where it is absent, null, the zero time, or unreadable."""
    if not text:
        return None
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        return None
    value = value if value.tzinfo else value.replace(tzinfo=UTC)
    return value if 1970 < value.year < 9999 else None


class Wire(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A part of an object as Kubernetes spells it."""


class Parameter(Wire, frozen=True):
    name: str = ""
    value: Scalar | Nested = None  # minimal CRDs let everything through

    @property
    def text(self) -> str | None:
        """The value as Argo substitutes it (anystring.go): of a list or a mapping nothing; None where there is none."""
        if self.value is None or isinstance(self.value, str):
            return self.value
        if isinstance(self.value, bool):
            return str(self.value).lower()
        if isinstance(self.value, float) and self.value.is_integer():
            return str(int(self.value))
        return "" if isinstance(self.value, list | dict) else str(self.value)


class Parameters(Wire, frozen=True):
    """`spec.arguments` and a node's `inputs`."""

    parameters: list[Parameter] | None = None


class Outputs(Wire, frozen=True):
    parameters: list[Parameter] | None = None
    exit_code: str | None = None


class NodeFlag(Wire, frozen=True):
    hooked: bool = False
    retried: bool = False


class Memoization(Wire, frozen=True):
    hit: bool = False


class TemplateRef(Wire, frozen=True):
    name: str = ""
    template: str = ""
    cluster_scope: bool = False


class Node(Wire, frozen=True):
    """One entry of `status.nodes`."""

    id: str = ""
    name: str = ""
    display_name: str = ""
    type: str = ""
    template_name: str = ""
    template_ref: TemplateRef | None = None
    phase: str = ""
    boundary_id: str = msgspec.field(default="", name="boundaryID")
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None
    inputs: Parameters | None = None
    outputs: Outputs | None = None
    children: list[str] | None = None
    node_flag: NodeFlag | None = None
    memoization_status: Memoization | None = None
    host_node_name: str = ""  # of the pod's node, "" until it has one

    @property
    def template(self) -> str:
        """The template's name; nodes of a templateRef carry it there (util.go, `templateName` is empty)."""
        return self.template_ref.template if self.template_ref and self.template_ref.template else self.template_name

    @property
    def is_exit(self) -> bool:
        """Exit handlers and hooks, with what is below, are neither tests nor steps (types.go, IsExitNode)."""
        hooked = self.node_flag is not None and self.node_flag.hooked
        return hooked or self.display_name.endswith(".onExit") or _BELOW_EXIT.search(self.name) is not None

    @property
    def from_cache(self) -> bool:
        """Nothing ran: its outputs are those of an earlier run (operator.go, memoize)."""
        return self.memoization_status is not None and self.memoization_status.hit

    @property
    def done(self) -> bool:
        return self.phase in {"Succeeded", "Failed", "Error", "Skipped", "Omitted"}


class Metadata(Wire, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None


class Spec(Wire, frozen=True):
    workflow_template_ref: TemplateRef | None = None
    arguments: Parameters | None = None
    shutdown: str | None = None
    suspend: bool | None = None
    active_deadline_seconds: int | None = None


class StepTemplate(Wire, frozen=True):
    """A template of the run, as far as it limits how long its pod may wait and run."""

    name: str = ""
    timeout: str | None = None


class Executed(Wire, frozen=True):
    """The template merged with the Workflow, as it is executed."""

    active_deadline_seconds: int | None = None
    templates: list[StepTemplate] | None = None


class Waiting(Wire, frozen=True):
    """One lock that is waited for: a mutex names one holder, a semaphore all of them (workflow_types.go)."""

    mutex: str = ""
    semaphore: str = ""
    holder: str = ""
    holders: list[str] | None = None


class Lock(Wire, frozen=True):
    waiting: list[Waiting] | None = None


class Synchronization(Wire, frozen=True):
    mutex: Lock | None = None
    semaphore: Lock | None = None


class Status(Wire, frozen=True):
    phase: str | None = None
    message: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    nodes: dict[str, Node] | None = None
    compressed_nodes: str | None = None
    offload_node_status_version: str | None = None
    synchronization: Synchronization | None = None
    stored_workflow_template_spec: Executed | None = None


class Workflow(Wire, frozen=True):
    """An Argo Workflow, as far as the bot looks."""

    metadata: Metadata
    spec: Spec = Spec()
    status: Status | None = None

    @property
    def phase(self) -> str:
        return (self.status.phase if self.status else None) or ""

    @property
    def message(self) -> str:
        return (self.status.message if self.status else None) or ""

    @property
    def ended(self) -> bool:
        return self.phase in TERMINAL

    @property
    def deleted_before_its_end(self) -> bool:
        """Somebody deleted it while it was under way. Both times are RFC 3339 in UTC, which sort as text."""
        deleted, finished = self.metadata.deletion_timestamp, self.status.finished_at if self.status else None
        return bool(deleted) and (not finished or str(deleted) <= finished)

    @property
    def lasted_to_its_deadline(self) -> bool:
        """It ended no earlier than the time it had was up; counted from `startedAt` in whole seconds (operator.go)."""
        status = self.status
        stored = status.stored_workflow_template_spec if status else None
        limit = (stored.active_deadline_seconds if stored else None) or self.spec.active_deadline_seconds
        began, ended = (instant(status.started_at), instant(status.finished_at)) if status else (None, None)
        return bool(limit and began and ended and (ended - began).total_seconds() >= limit)

    @property
    def attempt(self) -> str:
        """What names one life of this object: `status.startedAt`, renewed by `argo retry`; "" before it starts.

        Compared by equality only (a retry stamps its client's clock). It is set before every terminal phase
        (operator.go, markWorkflowPhase), where `finishedAt` can be rewritten by a controller with stale data.
        """
        started = self.status.started_at if self.status else None
        return started or ""

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.annotations or {}

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels or {}

    @property
    def finalizers(self) -> list[str]:
        return self.metadata.finalizers or []

    @property
    def nodes(self) -> dict[str, Node]:
        return (self.status.nodes if self.status else None) or {}

    @property
    def hidden(self) -> str:
        """Why the nodes are out of our reach, "" where they are not (hydrator.go; packer.go)."""
        if self.status is None or self.status.nodes:
            return ""
        if self.status.offload_node_status_version:
            return "Argo keeps this run's nodes in its own database, out of my reach"
        return "Argo packed this run's nodes in a way that I can't read" if self.status.compressed_nodes else ""

    @property
    def terminated(self) -> bool:
        """Told to end at once. A `Stop` does not end a run that is in the queue (operator.go)."""
        return self.spec.shutdown == "Terminate"

    @property
    def suspended(self) -> bool:
        """Argo makes no new pods until somebody resumes it (util.go, IsWorkflowSuspended)."""
        return bool(self.spec.suspend) or any(n.type == "Suspend" and n.phase == "Running" for n in self.nodes.values())

    @property
    def waiting(self) -> list[Waiting]:
        """The locks that this workflow waits for as a whole."""
        locks = self.status.synchronization if self.status else None
        both = (locks.mutex, locks.semaphore) if locks else ()
        return [waiting for lock in both if lock for waiting in lock.waiting or []]

    @property
    def template(self) -> str:
        return self.spec.workflow_template_ref.name if self.spec.workflow_template_ref else ""

    def parameter(self, name: str) -> str | None:
        """The argument of that name, None where the template's own default applies."""
        for parameter in (self.spec.arguments.parameters if self.spec.arguments else None) or []:
            if parameter.name == name:
                return parameter.text
        return None


class ListMeta(Wire, frozen=True):
    resource_version: str = ""
    continue_: str | None = msgspec.field(default=None, name="continue")


class WorkflowList(Wire, frozen=True):
    metadata: ListMeta
    items: list[Workflow] | None = None


class CronSpec(Wire, frozen=True):
    suspend: bool | None = None
    schedule: str | None = None  # Argo up to 3.7
    schedules: list[str] | None = None  # Argo from 3.6
    timezone: str | None = None
    when: str | None = None  # from 3.6: a due time starts something only where this holds
    starting_deadline_seconds: int | None = None
    workflow_spec: Spec = Spec()


class ObjectRef(Wire, frozen=True):
    name: str = ""
    uid: str = ""


class Condition(Wire, frozen=True):
    type: str = ""
    status: str = ""
    message: str = ""


class CronStatus(Wire, frozen=True):
    active: list[ObjectRef] | None = None
    last_scheduled_time: str | None = None
    conditions: list[Condition] | None = None
    phase: str | None = None  # Active | Stopped, from 3.6
    failed: int | None = None
    succeeded: int | None = None


class CronWorkflow(Wire, frozen=True):
    """An Argo CronWorkflow, as far as the bot looks."""

    metadata: Metadata
    spec: CronSpec = CronSpec()
    status: CronStatus | None = None

    @property
    def schedules(self) -> tuple[str, ...]:
        """All schedules, whichever of the two fields holds them; empty strings are none."""
        many = [s for s in self.spec.schedules or [] if s]
        if many:
            return tuple(many)
        return (self.spec.schedule,) if self.spec.schedule else ()

    @property
    def suspended(self) -> bool:
        return bool(self.spec.suspend)

    @property
    def stopped(self) -> bool:
        """A stop strategy ended it for good: un-suspending alone starts nothing.

        Argo looks at the label (cron/controller.go, isCompleted) and at the phase (cron/operator.go): either is enough.
        """
        labelled = (self.metadata.labels or {}).get(STOPPED_LABEL) == "true"
        return labelled or bool(self.status and self.status.phase == "Stopped")

    @property
    def in_both_fields(self) -> bool:
        """Argo 3.6 and 3.7 take it for invalid (validate.go), 4.0 reads `schedules` alone."""
        return bool(self.spec.schedule) and bool(self.spec.schedules)


class CronWorkflowList(Wire, frozen=True):
    metadata: ListMeta
    items: list[CronWorkflow] | None = None
