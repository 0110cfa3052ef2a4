"""A run: what is held of it, what its card should show, and when to look at it again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from bot.core import warmup
from bot.core.card import Card, OriginKind, Stage, asked_of, behind, card_of, origin_of, stage_of, wants_posts
from bot.core.effects import (
    CheckPosts,
    EditCard,
    FollowLog,
    PatchWorkflow,
    PostCard,
    SayInThread,
    StopFollowing,
)
from bot.core.history import History
from bot.core.memory import (
    FINALIZER,
    Memory,
    read_memory,
    read_request,
)
from bot.core.pools import Pools, Sight, pods_of
from bot.core.pools_view import pool_error
from bot.core.progress import Marker, Progress, advance
from bot.core.settings import Settings
from bot.core.sightings import (
    NodeSeen,
    NodesListed,
    NoteSeen,
    NotesListed,
    PodSeen,
    PodsListed,
    Sighting,
    Source,
    StatusSeen,
)
from bot.core.waiting import limit
from bot.core.warmup import Warmup, Way, late_at
from bot.core.workflow import Workflow, instant

RunEffect = PatchWorkflow | PostCard | EditCard | SayInThread | CheckPosts

LOOK_BACK = 300.0
"""Seconds before the claim from which on a card is looked for: the clocks of two replicas and of the chat differ."""

UNSEEN = "An earlier attempt ended while I was away; its results are not known."
MADE_ANEW = "Its pod went, with its node or by somebody's hand; Argo made another one, and the step began again."


@dataclass
class Run:
    """Everything held of one run while it is owed. Owned by the loop."""

    workflow: Workflow
    memory: Memory | None = None
    pending: RunEffect | None = None
    failures: int = 0
    not_before: float = 0.0
    born_here: bool = False
    """This process claimed the run, so nobody else can have posted its card."""
    doubtful: bool = False
    """There may be a card of which nothing is known, so look before posting: a request to post it was never
    answered, or the memory of an older run is gone.
    """
    post: str = ""
    shown: Card | None = None
    edited_at: float = 0.0
    said: set[str] = field(default_factory=set)
    """Attempts whose notice and failures stand in the thread."""
    check: bool = True
    """What stands in the chat is still to be compared with what should: a sweep came, or others may have spoken."""
    card_lost: bool = False
    deleting_since: float | None = None
    """Since when it is deleted and told to end, as far as was seen; before it is told, Argo can't react."""
    gone: bool = False
    """The object does not exist any more: what is owed can be said, nothing can be written."""
    progress: Progress | None = None
    """What its log showed so far, of this attempt."""
    followed: str = ""
    """The attempt whose log is being followed, "" for none."""
    made_anew: str = ""
    """The attempt in which a pod that ran was made anew, "" for none; of that nothing stays on the Workflow."""
    warmup: Warmup | None = None
    """How far it has come on its way to a GPU; None where its pods can't be seen."""

    @property
    def uid(self) -> str:
        return self.workflow.metadata.uid

    @property
    def waits_for(self) -> str | None:
        """The id of the outstanding effect."""
        return self.pending.id if self.pending is not None else None


@dataclass(frozen=True)
class Moment:
    """What a decision depends on besides the run."""

    now: float
    settings: Settings
    installed_at: float
    effect_id: str
    history: History = field(default_factory=History)


def is_ours(workflow: Workflow, settings: Settings) -> bool:
    """A run is a workflow of the test template, however it was started."""
    return workflow.template == settings.template


def is_owed(workflow: Workflow, installed_at: float) -> bool:
    """Whether anything is still to be said about this run.

    An end before the bot's installation is not owed unless it carries our finalizer: a first start beside ten
    thousand old runs says nothing about them. One of the very second of the installation is: times are whole seconds.
    """
    memory = read_memory(workflow)
    if workflow.ended and memory is not None and memory.reported == workflow.attempt:
        return FINALIZER in workflow.finalizers
    if FINALIZER in workflow.finalizers or not workflow.ended:
        return True
    status = workflow.status
    finished = instant(status.finished_at if status else None)
    return finished is not None and finished.timestamp() >= installed_at


def is_older(version: str, than: str) -> bool:
    """Whether an object or a list was written before another of its resource; not where one of the two is not known.

    Versions of one resource are numbers that only grow (api-concepts).
    """
    return version.isdecimal() and than.isdecimal() and int(version) < int(than)


def observe(run: Run, workflow: Workflow, now: float) -> None:
    """Take in the latest state of the object; an older one that arrives late changes nothing."""
    if is_older(workflow.metadata.resource_version, run.workflow.metadata.resource_version):
        return
    if workflow.attempt == run.workflow.attempt and _began_again(run.workflow, workflow):
        run.made_anew = workflow.attempt
    run.workflow, run.gone = workflow, False
    run.memory = read_memory(workflow)
    if run.memory is not None and run.memory.post and not run.card_lost:
        run.post = run.memory.post
    if workflow.metadata.deletion_timestamp and workflow.terminated and run.deleting_since is None:
        run.deleting_since = now


def _began_again(before: Workflow, workflow: Workflow) -> bool:
    """Whether a step that ran waits again: Argo makes a pod anew that is gone before its end was seen.

    In between it writes "pod deleted" as an error (operator.go; seen on 3.7.3), which may have been seen or not.
    """
    pods = [node for node in before.nodes.values() if node.type == "Pod"]
    ran = {node.id for node in pods if node.phase == "Running" or node.message == "pod deleted"}
    return any(node.id in ran and node.phase == "Pending" for node in workflow.nodes.values())


def doubt(run: Run) -> None:
    """Another process may have spoken meanwhile: what this one knew of the chat is not known any more."""
    run.shown, run.said, run.born_here, run.failures, run.not_before = None, set(), False, 0, 0.0
    run.check = True
    run.followed, run.progress = "", None


def is_over(run: Run, moment: Moment) -> bool:
    """Ended, or gone, or deleted and not ending."""
    if run.workflow.ended or run.gone:
        return True
    return run.deleting_since is not None and moment.now - run.deleting_since >= moment.settings.deletion_seconds


def desired_card(run: Run, moment: Moment) -> Card:
    """The card that the run should have now."""
    told = {UNSEEN: _missed_an_end(run), MADE_ANEW: run.made_anew and run.made_anew == run.workflow.attempt}
    notes = tuple(note for note, holds in told.items() if holds)
    card = card_of(run.workflow, moment.settings, notes, deleted=is_over(run, moment))
    card = replace(card, way=shown_way(run, moment))
    if card.stage is not Stage.TESTING or run.progress is None:
        return card
    return replace(card, progress=run.progress, commit=card.commit or run.progress.commit)


def shown_way(run: Run, moment: Moment) -> Way | None:
    """Its warm-up as it is now; once it is over, from the history: another process may have seen more of it."""
    start = moment.history.start(run.uid, run.workflow.attempt)
    if start is not None:
        return warmup.remembered(start)
    if run.warmup is None or (run.warmup.start is None and run.workflow.ended):
        return None
    return warmup.way(run.warmup, moment.history, moment.settings, moment.now)


def look_at_warmup(run: Run, pools: Pools, settings: Settings) -> None:
    """Take in how far it has come on its way to a GPU."""
    known = all(pools.sight(source) is not Sight.PENDING for source in (Source.NODES, Source.EVENTS))
    if run.workflow.ended or not known or pools.sight(Source.PODS) not in {Sight.EVERYWHERE, Sight.OURS}:
        return  # of what is not listed yet nothing can be concluded
    seen = warmup.follow(run.workflow, pools, run.warmup, settings, behind(run.workflow))
    if not seen.over:
        held = pool_error(pools, settings, seen.pool, seen.queue)
        failed, retried = (held.error, held.over is not None) if held is not None else (None, False)
        seen = replace(seen, failed=failed, retried=retried)
    run.warmup = seen


def concerns(run: Run, seen: Sighting, pools: Pools) -> bool:
    """Whether what was seen may change how far a run has come."""
    held = run.warmup
    if run.workflow.ended or run.gone or (held is not None and held.over):
        return False
    meta = run.workflow.metadata
    match seen:
        case NodeSeen():
            return held is not None and seen.node.pool == held.pool
        case PodSeen():
            return (seen.pod.workflow, seen.pod.metadata.namespace) == (meta.name, meta.namespace)
        case NoteSeen():
            pods = pods_of(pools, meta.namespace, meta.name)
            return seen.note.kind == "ConfigMap" or any(pod.metadata.uid == seen.note.subject for pod in pods)
        case NodesListed() | PodsListed() | NotesListed() | StatusSeen():
            return True
        case _:
            return False


def _missed_an_end(run: Run) -> bool:
    attempt = run.workflow.attempt
    return run.memory is not None and bool(attempt) and run.memory.with_sight(attempt).missed == attempt


def wake_at(run: Run, moment: Moment) -> float | None:
    """When to look at this run again though nothing happens."""
    if run.pending is not None:
        return None
    times = [run.not_before] if run.not_before > moment.now else []
    if run.deleting_since is not None and not is_over(run, moment):
        times.append(run.deleting_since + moment.settings.deletion_seconds)
    if run.post and run.shown is not None and desired_card(run, moment) != run.shown:
        times.append(run.edited_at + moment.settings.coalesce_seconds)
    shown = shown_way(run, moment)
    late = late_at(shown, moment.settings) if shown else None
    times += [at for at in (limit_of(run, moment), late) if at is not None]
    return min((t for t in times if t > moment.now), default=None)


def follow(run: Run, moment: Moment) -> FollowLog | StopFollowing | None:
    """Whether the run's log should be followed from now on, or no more; None for no change."""
    stage, node = stage_of(run.workflow, moment.settings)
    wanted = stage is Stage.TESTING and node is not None and not run.gone
    attempt = run.workflow.attempt if wanted else ""
    if attempt == run.followed:
        return None
    run.followed, run.progress = attempt, None
    if node is None or not wanted:
        return StopFollowing(run.uid)
    meta = run.workflow.metadata
    return FollowLog(run.uid, attempt, meta.namespace, meta.name, node.id)


def learn(run: Run, markers: Iterable[Marker], settings: Settings) -> None:
    """Take in what the log showed."""
    progress = run.progress or Progress()
    asked = frozenset(asked_of(run.workflow, settings).models)
    for marker in markers:
        progress = advance(progress, marker, asked)
    run.progress = progress


def limit_of(run: Run, moment: Moment) -> float | None:
    """When the bot gives the run up; None where it does not wait for a GPU."""
    stage, node = stage_of(run.workflow, moment.settings)
    if stage is not Stage.WAITING or node is None or run.gone or run.workflow.spec.shutdown:
        return None
    return limit(run.workflow, node, moment.settings)


def look_back(workflow: Workflow, memory: Memory) -> float:
    """Since when a card of this run may stand in the chat, in Unix seconds.

    The object's own time counts as well: the memory may have been wiped, and its clock is the cluster's.
    """
    created = instant(workflow.metadata.creation_timestamp)
    times = [memory.first_claimed_at, *([created.timestamp()] if created else [])]
    return min(times) - LOOK_BACK


def channel_of(workflow: Workflow, settings: Settings) -> str:
    """Where the card of a run belongs."""
    channels, origin = settings.channels, origin_of(workflow)
    request = read_request(workflow)
    if request is not None and request.channel in channels.also:
        return request.channel
    by_origin = {OriginKind.CRON: channels.nightly, OriginKind.CI: channels.push}
    return by_origin.get(origin.kind) or channels.default


def is_settled(run: Run, moment: Moment) -> bool:
    """Nothing is owed any more: the run can be forgotten."""
    if run.pending is not None:
        return False
    if run.gone:
        quiet = run.memory is None or not wants_posts(run.workflow, moment.settings)
        return quiet or run.workflow.attempt in run.said
    if run.shown is not None and run.shown.outcome != desired_card(run, moment).outcome:
        return False  # another reported it, and an older state of ours stands there since
    return not is_owed(run.workflow, moment.installed_at)
