"""A run: what is held of it, and the next step that brings the world closer to what it should be.

The steps, in this order, each one effect, each safe to repeat:

    claim -> journal the end -> post the card -> remember the card -> edit the card -> remember the attempt
          -> say failures and notice in the thread -> release

and once a sweep, where none of these is missing: compare what stands in the chat with what should.

`next_effect` looks at the Workflow, its memory and what this process knows, and returns the first step that is
missing. Nothing else decides what is said about a run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import msgspec

from bot.core import warmup
from bot.core.card import Card, OriginKind, Stage, asked_of, behind, card_of, origin_of, stage_of, wants_posts
from bot.core.effects import (
    CheckPosts,
    EditCard,
    ExitPost,
    FollowLog,
    PatchWorkflow,
    PostCard,
    Purpose,
    SayInThread,
    StopFollowing,
)
from bot.core.events import EffectDone, EffectFailed, Trouble
from bot.core.history import History
from bot.core.memory import (
    FINALIZER,
    Ended,
    Memory,
    Patch,
    claim_patch,
    let_go_patch,
    memory_patch,
    read_memory,
    read_request,
    release_patch,
    shutdown_patch,
)
from bot.core.pools import Pools, Sight, pods_of
from bot.core.progress import Marker, Progress, advance
from bot.core.render.thread import Part, failure_parts, notice, summary
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
)
from bot.core.verdict import exit_step_said
from bot.core.waiting import GaveUp, give_up_patch, limit
from bot.core.warmup import Warmup, Way, late_at
from bot.core.workflow import Workflow, instant

RunEffect = PatchWorkflow | PostCard | EditCard | SayInThread | CheckPosts

LOOK_BACK = 300.0
"""Seconds before the claim from which on a card is looked for: the clocks of two replicas and of the chat differ."""

DAY, CLOCK_SKEW = 86400.0, 300.0

LONGEST_DOUBLING = 16
"""Failures in a row after which the pause grows no more; a day without chat is thousands of them."""

MAX_REASON = 600
"""Characters kept of the last reason for waiting."""

UNSEEN = "An earlier attempt ended while I was away; its results are not known."


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
    gone: bool = False
    """The object does not exist any more: what is owed can be said, nothing can be written."""
    progress: Progress | None = None
    """What its log showed so far, of this attempt."""
    followed: str = ""
    """The attempt whose log is being followed, "" for none."""
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


def is_older(workflow: Workflow, than: Workflow) -> bool:
    """Whether the object was written before `than` was. Versions of one resource are ordered (api-concepts)."""
    mine, other = workflow.metadata.resource_version, than.metadata.resource_version
    return mine.isdecimal() and other.isdecimal() and int(mine) < int(other)


def observe(run: Run, workflow: Workflow, now: float) -> None:
    """Take in the latest state of the object; an older one that arrives late changes nothing."""
    if is_older(workflow, run.workflow):
        return
    run.workflow, run.gone = workflow, False
    run.memory = read_memory(workflow)
    if run.memory is not None and run.memory.post and not run.card_lost:
        run.post = run.memory.post
    if workflow.metadata.deletion_timestamp and run.deleting_since is None:
        run.deleting_since = now


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
    notes = (UNSEEN,) if _missed_an_end(run) else ()
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
    run.warmup = warmup.follow(run.workflow, pools, run.warmup, settings, behind(run.workflow))


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
            return any(pod.metadata.uid == seen.note.subject for pod in pods_of(pools, meta.namespace, meta.name))
        case NodesListed() | PodsListed() | NotesListed():
            return True
        case _:
            return False


def _missed_an_end(run: Run) -> bool:
    attempt = run.workflow.attempt
    return run.memory is not None and bool(attempt) and run.memory.with_sight(attempt).missed == attempt


def next_effect(run: Run, moment: Moment) -> RunEffect | None:
    """The first step that is missing, None where nothing is or something is under way."""
    if run.pending is not None or moment.now < run.not_before:
        return None
    steps = (_hold, _show, _see, _give_up, _finish, _check)
    return next((effect for step in steps if (effect := step(run, moment)) is not None), None)


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
    times += [at for at in (_limit(run, moment), late_at(shown, moment.settings) if shown else None) if at is not None]
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


def _hold(run: Run, moment: Moment) -> RunEffect | None:
    """Claim the run, let an abandoned one end, and journal its end before it is said."""
    if run.gone:
        return None
    workflow, memory = run.workflow, run.memory
    if memory is None or (FINALIZER not in workflow.finalizers and not workflow.metadata.deletion_timestamp):
        if memory is not None and workflow.ended and memory.reported == workflow.attempt:
            return None  # released
        claimed = _new_memory(workflow, moment)
        if memory is not None:
            claimed = memory.with_sight(workflow.attempt)
        purpose = Purpose.CLAIM if memory is None else Purpose.CLAIM_AGAIN
        return _patch(run, moment, claim_patch(workflow, claimed), purpose)
    if run.card_lost:
        # who takes over from us waits for our POST as after a claim
        fresh = msgspec.structs.replace(
            memory, gen=memory.gen + 1, post="", claimed_at=moment.now, since=memory.first_claimed_at
        )
        return _patch(run, moment, memory_patch(workflow, fresh), Purpose.FORGET_CARD)
    if workflow.metadata.deletion_timestamp and not workflow.ended and not workflow.spec.shutdown:
        return _patch(run, moment, shutdown_patch(workflow, "Terminate"), Purpose.SHUT_DOWN)
    if is_over(run, moment) and memory.ended(workflow.attempt) is None:
        entry = _end_of(workflow.attempt, desired_card(run, moment))
        ended = memory.with_sight(workflow.attempt).with_end(entry)
        return _patch(run, moment, memory_patch(workflow, ended), Purpose.JOURNAL)
    return None


def _show(run: Run, moment: Moment) -> RunEffect | None:
    """Bring the card to its desired state."""
    memory = run.memory
    if memory is None or not wants_posts(run.workflow, moment.settings):
        return None
    card = desired_card(run, moment)
    if not run.post:
        look = run.doubtful or not run.born_here
        ready = memory.claimed_at + moment.settings.settle_seconds
        # of a claim from the future the clock is wrong, or the annotation: it is not waited for
        if look and not run.doubtful and memory.claimed_at <= moment.now < ready and not run.gone:
            run.not_before = ready  # whoever claimed it may still be posting
            return None
        key, since = f"{run.uid}:{memory.gen}", look_back(run.workflow, memory)
        return _pending(run, PostCard(moment.effect_id, key, memory.channel, card, look, since))
    if memory.post != run.post and not run.gone:
        seen = msgspec.structs.replace(memory.with_sight(run.workflow.attempt), post=run.post)
        return _patch(run, moment, memory_patch(run.workflow, seen), Purpose.REMEMBER)
    return _edit(run, moment, card, memory)


def _edit(run: Run, moment: Moment, card: Card, memory: Memory) -> RunEffect | None:
    if card == run.shown:
        return None
    settled = run.shown is not None and run.shown.stage is card.stage and run.shown.outcome == card.outcome
    if settled and moment.now < run.edited_at + moment.settings.coalesce_seconds:
        return None
    return _pending(run, EditCard(moment.effect_id, run.post, memory.channel, f"{run.uid}:{memory.gen}", card))


def _see(run: Run, moment: Moment) -> RunEffect | None:
    """Remember that this attempt was seen alive: its end might come, and `argo retry` too, while nobody looks."""
    memory, workflow = run.memory, run.workflow
    if memory is None or is_over(run, moment) or memory.with_sight(workflow.attempt) == memory:
        return None
    return _patch(run, moment, memory_patch(workflow, memory.with_sight(workflow.attempt)), Purpose.SEE)


def _limit(run: Run, moment: Moment) -> float | None:
    """When the bot gives the run up; None where it does not wait for a GPU."""
    stage, node = stage_of(run.workflow, moment.settings)
    if stage is not Stage.WAITING or node is None or run.gone or run.workflow.spec.shutdown:
        return None
    return limit(run.workflow, node, moment.settings)


def _give_up(run: Run, moment: Moment) -> RunEffect | None:
    """Stop a run that has waited long enough for a GPU."""
    at = _limit(run, moment)
    if run.memory is None or at is None or moment.now < at or not run.workflow.attempt:
        return None
    card = desired_card(run, moment)
    leg = card.way.current if card.way is not None else None
    step = leg.step.value if leg is not None else ""
    gave_up = GaveUp(run.workflow.attempt, moment.now, card.detail[:MAX_REASON], step)
    return _patch(run, moment, give_up_patch(run.workflow, gave_up), Purpose.GIVE_UP)


def _finish(run: Run, moment: Moment) -> RunEffect | None:
    """Say each journaled end once, then let the object go."""
    memory, workflow = run.memory, run.workflow
    if memory is None:
        return None
    posts = wants_posts(workflow, moment.settings)
    over = is_over(run, moment)
    current = workflow.attempt if over else None
    for entry in _unsaid(run, memory, current) if posts and run.post else ():
        parts = _parts(run, moment, entry, complete=entry.attempt == current)
        if not parts:
            run.said.add(entry.attempt)
            continue
        key = f"{run.uid}:{entry.attempt}"
        said = tuple((part.key, part.text) for part in parts)
        unless = _exit_post(run, moment, entry, memory.channel)
        asker = parts[-1].asker
        return _pending(run, SayInThread(moment.effect_id, run.post, memory.channel, key, said, unless, asker))
    if not over or run.gone or (posts and (run.shown is None or desired_card(run, moment) != run.shown)):
        return None
    if not workflow.ended:
        return _patch(run, moment, let_go_patch(workflow), Purpose.LET_GO) if FINALIZER in workflow.finalizers else None
    if memory.reported == workflow.attempt and FINALIZER not in workflow.finalizers:
        return None
    done = msgspec.structs.replace(memory, reported=workflow.attempt, seen=workflow.attempt)
    return _patch(run, moment, release_patch(workflow, done), Purpose.RELEASE)


def _check(run: Run, moment: Moment) -> RunEffect | None:
    """Find doubles, a card that somebody changed and one that somebody deleted: what no event tells."""
    memory = run.memory
    if not run.check or run.gone or memory is None or not run.post or run.shown != desired_card(run, moment):
        return None
    since = look_back(run.workflow, memory)
    key = f"{memory.uid}:{memory.gen}"
    return _pending(run, CheckPosts(moment.effect_id, memory.channel, key, run.shown, since, run.post))


def look_back(workflow: Workflow, memory: Memory) -> float:
    """Since when a card of this run may stand in the chat, in Unix seconds.

    The object's own time counts as well: the memory may have been wiped, and its clock is the cluster's.
    """
    created = instant(workflow.metadata.creation_timestamp)
    times = [memory.first_claimed_at, *([created.timestamp()] if created else [])]
    return min(times) - LOOK_BACK


def check_parted(effect_id: str, memory: Memory, since: float) -> CheckPosts:
    """Look for doubles of a run that was let go."""
    return CheckPosts(effect_id, memory.channel, f"{memory.uid}:{memory.gen}", None, since, memory.post)


def _unsaid(run: Run, memory: Memory, current: str | None) -> list[Ended]:
    """Journaled ends that are owed: all after the last reported one; a gone run's end was never journaled."""
    entries = list(memory.journal)
    attempts = [entry.attempt for entry in entries]
    if memory.reported and memory.reported in attempts:  # one that was deleted before it began is called ""
        entries = entries[attempts.index(memory.reported) + 1 :]
    if run.gone and current is not None and current not in attempts:
        entries.append(Ended(attempt=current, verdict="", summary=""))
    return [entry for entry in entries if entry.attempt not in run.said]


def _parts(run: Run, moment: Moment, entry: Ended, *, complete: bool) -> list[Part]:
    """The replies of one end. Of an attempt that was retried since, only what was journaled is left."""
    card = desired_card(run, moment)
    if complete and card.outcome is not None:
        entry = _end_of(entry.attempt, card)
    parts = list(failure_parts(card)) if complete else []
    last = notice(card, entry, moment.settings)
    return [*parts, last] if last else parts


def _end_of(attempt: str, card: Card) -> Ended:
    verdict = card.outcome.verdict if card.outcome else ""
    return Ended(attempt, verdict, summary(card), card.cancelled.user_id if card.cancelled else "")


def _exit_post(run: Run, moment: Moment, entry: Ended, channel: str) -> ExitPost | None:
    """What to look for before the notice; None where the exit step did not speak for itself.

    What it said of an attempt that was retried since is gone from the Workflow, and anything but a plain `no` may
    mean that its pod died between the post and its word on it.
    """
    workflow, settings = run.workflow, moment.settings
    if entry.attempt == workflow.attempt and exit_step_said(workflow, settings) == "no":
        return None
    began = instant(entry.attempt)
    since = began.timestamp() - CLOCK_SKEW if began else moment.now - DAY
    return ExitPost(run.uid, entry.attempt, tuple(dict.fromkeys((channel, settings.channels.default))), since)


def _new_memory(workflow: Workflow, moment: Moment) -> Memory:
    return Memory(
        uid=workflow.metadata.uid,
        name=workflow.metadata.name,
        channel=channel_of(workflow, moment.settings),
        claimed_at=moment.now,
        seen=workflow.attempt,
    )


def channel_of(workflow: Workflow, settings: Settings) -> str:
    """Where the card of a run belongs."""
    channels, origin = settings.channels, origin_of(workflow)
    request = read_request(workflow)
    if request is not None and request.channel in channels.also:
        return request.channel
    by_origin = {OriginKind.CRON: channels.nightly, OriginKind.CI: channels.push}
    return by_origin.get(origin.kind) or channels.default


def _patch(run: Run, moment: Moment, patch: Patch, purpose: Purpose) -> RunEffect:
    meta = run.workflow.metadata
    return _pending(run, PatchWorkflow(moment.effect_id, meta.namespace, meta.name, patch, purpose))


def _pending(run: Run, effect: RunEffect) -> RunEffect:
    run.pending = effect
    return effect


def done(run: Run, event: EffectDone, moment: Moment) -> None:
    """The outstanding effect of this run came to its end."""
    effect, run.pending = run.pending, None
    run.failures, run.not_before = 0, 0.0
    match effect:
        case PatchWorkflow():
            _patched(run, effect, event, moment)
        case PostCard():
            run.post, run.shown, run.edited_at = (
                str(event.value),
                None if effect.look_first else effect.card,
                moment.now,
            )
            run.doubtful = run.check = False
        case EditCard():
            run.shown, run.edited_at = effect.card, moment.now
        case SayInThread():
            run.said.add(effect.key.removeprefix(f"{run.uid}:"))
        case CheckPosts():
            _checked(run, effect, str(event.value))
        case _:
            raise AssertionError(f"a run has no such effect: {effect}")


def _checked(run: Run, effect: CheckPosts, post: str) -> None:
    run.check, run.shown = False, effect.card
    if post != run.post:
        # an older double is the one that stays; what was said below the other went with it
        run.post, run.said = post, set()


def _patched(run: Run, effect: PatchWorkflow, event: EffectDone, moment: Moment) -> None:
    if effect.purpose is Purpose.CLAIM:
        created = instant(run.workflow.metadata.creation_timestamp)
        run.born_here = created is None or moment.now - created.timestamp() < moment.settings.fresh_seconds
        run.doubtful, run.check = run.doubtful or not run.born_here, False
    if effect.purpose is Purpose.FORGET_CARD:
        run.card_lost, run.post, run.shown, run.born_here = False, "", None, True
    if isinstance(event.value, Workflow):
        observe(run, event.value, moment.now)


def failed(run: Run, event: EffectFailed, moment: Moment) -> None:
    """The outstanding effect did not succeed: wait, look again, or take another way."""
    effect, run.pending = run.pending, None
    settings = moment.settings
    run.failures += 1
    doubled = 2 ** min(run.failures - 1, LONGEST_DOUBLING)
    backoff = min(settings.retry_seconds * doubled, settings.retry_max_seconds)
    match event.trouble:
        case Trouble.CONFLICT:
            if isinstance(event.latest, Workflow):
                observe(run, event.latest, moment.now)
            run.not_before = 0.0 if run.failures <= 5 else moment.now + backoff
        case Trouble.GONE if isinstance(effect, PatchWorkflow):
            run.gone = True
        case Trouble.GONE if isinstance(effect, EditCard | SayInThread | CheckPosts):
            run.card_lost, run.post, run.shown = True, "", None
            if run.gone:
                run.card_lost = False
        case Trouble.FINAL if isinstance(effect, EditCard):
            # the card stays behind; the notice says how it ended
            run.shown, run.edited_at, run.failures = effect.card, moment.now, 0
        case Trouble.UNCERTAIN:
            run.doubtful = run.doubtful or isinstance(effect, PostCard)
            run.not_before = moment.now + max(settings.settle_seconds, backoff)
        case _:
            run.not_before = moment.now + max(event.retry_after or 0.0, backoff)


def is_settled(run: Run, moment: Moment) -> bool:
    """Nothing is owed any more: the run can be forgotten."""
    if run.pending is not None:
        return False
    if run.gone:
        quiet = run.memory is None or not wants_posts(run.workflow, moment.settings)
        return quiet or run.workflow.attempt in run.said
    return not is_owed(run.workflow, moment.installed_at)
