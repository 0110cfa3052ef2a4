"""What the card of a run shows: values only, no wording.

`card_of` is the desired state. Two cards that are equal look the same, so equality decides whether an edit is due.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bot.core.attempt import Reach, cause_of, is_unplaced, reach_of, results_of, test_node, warmup_node
from bot.core.memory import Cancelled, Request, read_cancelled, read_memory, read_request
from bot.core.progress import Progress
from bot.core.results import NoResults, Results, is_commit
from bot.core.settings import Settings
from bot.core.verdict import Outcome, deleted_outcome, expand_models, judge
from bot.core.waiting import Longer, offer, read_longer, shown_limit
from bot.core.warmup import Way
from bot.core.workflow import CREATOR_LABEL, CRON_LABEL, Node, Workflow, instant


class Stage(StrEnum):
    """Where a run is on its way."""

    QUEUED = "queued"
    PAUSED = "paused"  # until somebody resumes it
    UNSEEN = "unseen"  # under way, its steps out of our reach
    WAITING = "waiting"  # for a node with a GPU
    WARMING = "warming"
    TESTING = "testing"  # compiling included
    FINISHING = "finishing"  # tests are over, the exit handler runs
    ENDED = "ended"


class OriginKind(StrEnum):
    """What started a run."""

    CHAT = "chat"
    CRON = "cron"
    CI = "ci"
    API = "api"  # kubectl, argo, anything else


@dataclass(frozen=True)
class Origin:
    """Who or what asked. `user_name` is a Mattermost name for the chat, else what Argo knows, else ""."""

    kind: OriginKind
    user_id: str = ""
    user_name: str = ""


@dataclass(frozen=True)
class Asked:
    """What a run was asked to do."""

    models: tuple[str, ...]
    all_models: bool
    scope: str
    epochs: str
    ref: str
    pool: str
    gpu: str
    first_ref: str = ""
    """The ref that was asked for first, where `ref` is the commit that it was at the time."""


@dataclass(frozen=True)
class Card:
    """Everything on the card of a run."""

    short: str
    name: str
    stage: Stage
    asked: Asked
    origin: Origin
    since: datetime | None = None
    """When this stage began, as far as Argo says."""
    detail: str = ""
    """Argo's or the scheduler's words on why it waits; at the end, why there are no results."""
    behind: tuple[str, ...] = ()
    """Short names of the runs that hold what it waits for."""
    lock: str = ""
    """Name of the lock that they hold."""
    outcome: Outcome | None = None
    commit: str = ""
    seconds: int | None = None
    """Length of the ended attempt; of one that never left the queue, how long it waited."""
    link: str = ""
    notes: tuple[str, ...] = ()
    uid: str = ""
    attempt: str = ""
    progress: Progress | None = None
    """What the runner's log showed so far; only while the tests run."""
    cancelled: Cancelled | None = None
    """Who stopped it from the chat."""
    way: Way | None = None
    """Its warm-up, step by step."""
    until: float | None = None
    """Until when it waits for a GPU, in Unix seconds; None where it does not wait."""
    longer: Longer | None = None
    """Who asked for that."""
    offer: float | None = None
    """The later limit that its button offers."""


CI_LABEL = "gputest.bot/ci"
"""Set by the CI manifest on runs that a push started; its value is the branch."""


def short_name(name: str) -> str:
    """What people call a run: the suffix of its Workflow's name; of a cron child's Unix time the last five digits."""
    suffix = name.rsplit("-", 1)[-1]
    return suffix[-5:] if suffix.isdigit() and len(suffix) > 5 else suffix


def origin_of(workflow: Workflow) -> Origin:
    """Who asked: the chat request if it is this object's own, else what the labels tell."""
    request = read_request(workflow)
    if request is not None:
        return _chat(request)
    labels = workflow.labels
    if labels.get(CRON_LABEL):
        return Origin(OriginKind.CRON, user_name=labels[CRON_LABEL])
    if CI_LABEL in labels:
        return Origin(OriginKind.CI, user_name=labels[CI_LABEL])
    return Origin(OriginKind.API, user_name=labels.get(CREATOR_LABEL, ""))


def _chat(request: Request) -> Origin:
    return Origin(OriginKind.CHAT, request.user_id, request.user_name)


def asked_of(workflow: Workflow, settings: Settings) -> Asked:
    """What the run was asked to do; the template's defaults stand in for what nobody said."""
    names, defaults = settings.parameters, settings.defaults
    models = expand_models(workflow.parameter(names.models), settings)
    pool_name = workflow.parameter(names.pool) or defaults.pool
    pool, request = settings.pool(pool_name), read_request(workflow)
    return Asked(
        models=models,
        all_models=set(models) == set(settings.model_names),
        scope=workflow.parameter(names.scope) or defaults.scope,
        epochs=workflow.parameter(names.epochs) or str(defaults.epochs),
        ref=workflow.parameter(names.ref) or defaults.ref,
        pool=pool_name,
        gpu=pool.gpu if pool else pool_name,
        first_ref=request.ref if request is not None else "",
    )


def wants_posts(workflow: Workflow, settings: Settings) -> bool:
    """False for a run that was started with `notify=false`."""
    value = workflow.parameter(settings.parameters.notify)
    return (value if value is not None else str(settings.defaults.notify)).strip().lower() != "false"


def stage_of(workflow: Workflow, settings: Settings) -> tuple[Stage, Node | None]:
    """Where the run is, and the node that says so. A Workflow whose only pod can't be placed is `Running` to Argo."""
    if workflow.ended:
        return Stage.ENDED, None
    if workflow.hidden:
        return Stage.UNSEEN, None
    test = test_node(workflow, settings)
    if test is not None and test.done:
        return Stage.FINISHING, test
    if test is not None:
        if test.phase != "Pending":
            return Stage.TESTING, test
        return (Stage.WAITING if is_unplaced(test) else Stage.WARMING), test
    warmup = warmup_node(workflow, settings)
    if workflow.suspended and not workflow.waiting and (warmup is None or warmup.done):
        return Stage.PAUSED, None
    if warmup is None:
        return Stage.QUEUED, None
    if warmup.phase == "Pending" and is_unplaced(warmup):
        return Stage.WAITING, warmup
    return Stage.WARMING, warmup


def card_of(workflow: Workflow, settings: Settings, notes: tuple[str, ...] = (), *, deleted: bool = False) -> Card:
    """The card that this run should have now. `deleted`: its object went, or will never end by itself."""
    stage, node = stage_of(workflow, settings)
    if deleted and stage is not Stage.ENDED:
        stage, node = Stage.ENDED, None
    status = workflow.status
    started = instant(status.started_at if status else None)
    finished = instant(status.finished_at if status else None)
    since = instant(node.started_at) if node else started or instant(workflow.metadata.creation_timestamp)
    outcome = None
    if stage is Stage.ENDED:
        outcome = judge(workflow, settings) if workflow.ended else deleted_outcome(workflow, settings)
    if outcome is not None and outcome.reach is Reach.QUEUE:
        started, finished = _waited(workflow, started, finished)
    results = outcome.results if outcome else None
    if results is None and stage is Stage.FINISHING:
        found = results_of(workflow, settings)
        results = found if isinstance(found, Results) else None
    waits = node if stage is Stage.WAITING else None
    return Card(
        short=short_name(workflow.metadata.name),
        name=workflow.metadata.name,
        stage=stage,
        asked=asked_of(workflow, settings),
        origin=origin_of(workflow),
        since=finished if stage is Stage.ENDED else since,
        detail=_detail(workflow, settings, stage, node),
        behind=behind(workflow) if stage is Stage.QUEUED else (),
        lock=_lock(workflow) if stage is Stage.QUEUED else "",
        outcome=outcome,
        commit=results.commit if results and is_commit(results.commit) else "",
        seconds=_length(started, finished) if outcome else None,
        link=_link(workflow, settings),
        notes=notes,
        uid=workflow.metadata.uid,
        attempt=workflow.attempt,
        cancelled=read_cancelled(workflow),
        until=shown_limit(workflow, waits, settings) if waits else None,
        longer=read_longer(workflow) if waits else None,
        offer=offer(workflow, waits, settings) if waits else None,
    )


def _waited(
    workflow: Workflow, started: datetime | None, finished: datetime | None
) -> tuple[datetime | None, datetime | None]:
    """From when to when an attempt was in the queue. Argo calls the first one started only when it looks at it."""
    memory, meta = read_memory(workflow), workflow.metadata
    first = memory is None or all(end.attempt in {"", workflow.attempt} for end in memory.journal)
    return instant(meta.creation_timestamp) if first else started, finished or instant(meta.deletion_timestamp)


def _length(started: datetime | None, finished: datetime | None) -> int | None:
    """Seconds of an attempt; unknown where one of the clocks that wrote the two times was wrong."""
    if started is None or finished is None or finished < started:
        return None
    return int((finished - started).total_seconds())


def behind(workflow: Workflow) -> tuple[str, ...]:
    """Who holds the locks: `namespace/workflow`, or with a node's id behind it (sync/manager.go)."""
    holders = [holder for w in workflow.waiting for holder in w.holders or [w.holder]]
    return tuple(dict.fromkeys(short_name(h.split("/")[1]) for h in holders if "/" in h))


def _lock(workflow: Workflow) -> str:
    """The lock's own name: the last part of `namespace/Mutex/name`."""
    return next((part.rsplit("/", 1)[-1] for w in workflow.waiting for part in (w.mutex, w.semaphore) if part), "")


def _detail(workflow: Workflow, settings: Settings, stage: Stage, node: Node | None) -> str:
    if stage is Stage.QUEUED:
        return workflow.message
    if stage is Stage.UNSEEN:
        return workflow.hidden
    if stage is Stage.FINISHING and isinstance(results_of(workflow, settings), NoResults):
        words = [cause_of(workflow, settings), "" if reach_of(workflow, settings) is Reach.TESTS else "no test ran"]
        return "; ".join(word for word in words if word)
    if stage in {Stage.WAITING, Stage.WARMING} and node is not None and node.phase == "Pending":
        return node.message
    return ""


def _link(workflow: Workflow, settings: Settings) -> str:
    if not settings.argo_url:
        return ""
    return f"{settings.argo_url.rstrip('/')}/workflows/{workflow.metadata.namespace}/{workflow.metadata.name}"
