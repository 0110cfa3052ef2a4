"""Everything that can happen, in the past tense. The clock, the lease and a lost answer are events as well."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from bot.core.alerts import AlertPost
from bot.core.progress import Marker
from bot.core.sightings import Sighting
from bot.core.signing import Signed
from bot.core.workflow import CronWorkflow, Workflow


@dataclass(frozen=True)
class Installed:
    """When the bot first ran in this cluster, in Unix seconds. Comes before the first list."""

    at: float


@dataclass(frozen=True)
class LeaseWon:
    """From now on this process may speak about runs."""


@dataclass(frozen=True)
class LeaseLost:
    """Another process may speak now, or nobody knows: fall silent."""


@dataclass(frozen=True)
class WorkflowsSeen:
    """A page of a list."""

    workflows: tuple[Workflow, ...]


@dataclass(frozen=True)
class WorkflowsListed:
    """The list is complete: what it does not name is gone, unless it is known to have been written after `version`.

    Sent at the start and after each gap of the watch.
    """

    uids: frozenset[str]
    version: str = ""
    """The list's resourceVersion: the moment that it is of."""


@dataclass(frozen=True)
class WorkflowChanged:
    workflow: Workflow


@dataclass(frozen=True)
class WorkflowDeleted:
    workflow: Workflow


@dataclass(frozen=True)
class CronWorkflowsListed:
    crons: tuple[CronWorkflow, ...]


@dataclass(frozen=True)
class CronWorkflowChanged:
    cron: CronWorkflow


@dataclass(frozen=True)
class CronWorkflowDeleted:
    cron: CronWorkflow


@dataclass(frozen=True)
class CommandTyped:
    """A person sent a command. `request_id` is the same for the same sending, however often it arrives."""

    request_id: str
    trigger: str
    text: str
    user_id: str
    user_name: str
    channel_id: str
    team_id: str = ""
    trigger_id: str = ""
    """Opens a dialog for three seconds; "" where the command did not come from a slash."""
    aloud: bool = False
    """It was typed as a post, and is answered in its thread."""


@dataclass(frozen=True)
class Clicked:
    """A button of ours was clicked; its context was signed by us. What is allowed is still to be asked."""

    request_id: str
    signed: Signed
    user_id: str
    user_name: str
    channel_id: str
    trigger_id: str


@dataclass(frozen=True)
class DialogSubmitted:
    """A dialog of ours was sent off; its state was signed by us for this user."""

    request_id: str
    signed: Signed
    user_id: str
    user_name: str
    channel_id: str
    values: dict[str, str]


class Trouble(StrEnum):
    """Why an effect failed, as far as it matters for what comes next."""

    CONFLICT = "conflict"  # somebody else wrote first; `latest` is how it is now
    GONE = "gone"  # the thing is not there any more
    EXISTS = "exists"  # the name is taken
    FINAL = "final"  # it can never be done to this post, as the server is set up
    REFUSED = "refused"  # asking again the same way is pointless
    BUSY = "busy"  # nothing was done; later it may be
    UNCERTAIN = "uncertain"  # it may have been done: look before doing it again


@dataclass(frozen=True)
class EffectDone:
    """`value` is the object as it is now, the id of the post, names of what was removed, open alerts, or None."""

    id: str
    value: Workflow | CronWorkflow | str | tuple[str, ...] | tuple[AlertPost, ...] | None = None


@dataclass(frozen=True)
class EffectFailed:
    id: str
    trouble: Trouble
    reason: str
    """For people: what happened, in plain words and without a secret."""
    latest: Workflow | CronWorkflow | None = None
    retry_after: float | None = None
    """Seconds the other side asked us to wait."""


@dataclass(frozen=True)
class MarkersRead:
    """The log of a run's test pod showed markers."""

    uid: str
    attempt: str
    markers: tuple[Marker, ...]


@dataclass(frozen=True)
class PoolsSeen:
    """A watch of nodes, pods, events or the autoscaler's status saw something."""

    what: Sighting


@dataclass(frozen=True)
class HistoryRead:
    """The history of starts as it is kept; "" where there is none yet."""

    text: str


@dataclass(frozen=True)
class CostsRead:
    """The record of costs as it is kept; empty where there is none."""

    data: dict[str, str]
    version: str


@dataclass(frozen=True)
class Woke:
    """A `WakeAt` came due."""

    key: str


@dataclass(frozen=True)
class Swept:
    """Time to compare everything held with what is known to be stored."""


Event = (
    Installed
    | LeaseWon
    | LeaseLost
    | WorkflowsSeen
    | WorkflowsListed
    | WorkflowChanged
    | WorkflowDeleted
    | CronWorkflowsListed
    | CronWorkflowChanged
    | CronWorkflowDeleted
    | CommandTyped
    | Clicked
    | DialogSubmitted
    | EffectDone
    | EffectFailed
    | MarkersRead
    | PoolsSeen
    | CostsRead
    | HistoryRead
    | Woke
    | Swept
)

Lane = Literal["people", "world"]
