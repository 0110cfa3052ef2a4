"""The next step of a run, which brings the world closer to what it should be.

The steps, in this order, each one effect, each safe to repeat:

    claim -> journal the end -> post the card -> remember the card -> edit the card -> remember the attempt
          -> say failures and notice in the thread -> release

and once a sweep, where none of these is missing: compare what stands in the chat with what should.

`next_effect` looks at the Workflow, its memory and what this process knows, and returns the first step that is
missing. Nothing else decides what is said about a run.
"""

from __future__ import annotations

import msgspec

from bot.core.attempt import exit_step_said
from bot.core.card import Card, wants_posts
from bot.core.effects import (
    CheckPosts,
    EditCard,
    ExitPost,
    PatchWorkflow,
    PostCard,
    Purpose,
    SayInThread,
)
from bot.core.memory import (
    FINALIZER,
    Ended,
    Memory,
    Patch,
    claim_patch,
    let_go_patch,
    memory_patch,
    release_patch,
    shutdown_patch,
)
from bot.core.render.thread import Part, failure_parts, notice, summary
from bot.core.runs import Moment, Run, RunEffect, channel_of, desired_card, is_over, limit_of, look_back
from bot.core.waiting import GaveUp, give_up_patch
from bot.core.workflow import Workflow, instant

DAY, CLOCK_SKEW = 86400.0, 300.0

MAX_REASON = 600
"""Characters kept of the last reason for waiting."""


def next_effect(run: Run, moment: Moment) -> RunEffect | None:
    """The first step that is missing, None where nothing is or something is under way."""
    if run.pending is not None or moment.now < run.not_before:
        return None
    steps = (_hold, _show, _see, _give_up, _finish, _check)
    return next((effect for step in steps if (effect := step(run, moment)) is not None), None)


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
    if workflow.metadata.deletion_timestamp and not workflow.ended and not workflow.terminated:
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
    # an ended card holds up the release, and little of it still changes
    settled = run.shown is not None and run.shown.stage is card.stage and run.shown.outcome == card.outcome
    if settled and card.outcome is None and moment.now < run.edited_at + moment.settings.coalesce_seconds:
        return None
    return _pending(run, EditCard(moment.effect_id, run.post, memory.channel, f"{run.uid}:{memory.gen}", card))


def _see(run: Run, moment: Moment) -> RunEffect | None:
    """Remember that this attempt was seen alive: its end might come, and `argo retry` too, while nobody looks."""
    memory, workflow = run.memory, run.workflow
    if memory is None or is_over(run, moment) or memory.with_sight(workflow.attempt) == memory:
        return None
    return _patch(run, moment, memory_patch(workflow, memory.with_sight(workflow.attempt)), Purpose.SEE)


def _last_word(card: Card) -> str:
    """The most telling reason why it waited: the provider's, the autoscaler's, the scheduler's."""
    way = card.way
    if way is not None and way.failed is not None and (way.failed.code or way.failed.text):
        return ": ".join(part for part in (way.failed.code, way.failed.text) if part)
    return way.refused if way is not None and way.refused else card.detail


def _give_up(run: Run, moment: Moment) -> RunEffect | None:
    """Stop a run that has waited long enough for a GPU."""
    at = limit_of(run, moment)
    if run.memory is None or at is None or moment.now < at or not run.workflow.attempt:
        return None
    card = desired_card(run, moment)
    leg = card.way.current if card.way is not None else None
    step = leg.step.value if leg is not None else ""
    gave_up = GaveUp(run.workflow.attempt, moment.now, _last_word(card)[:MAX_REASON], step)
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


def check_parted(effect_id: str, memory: Memory, since: float, card: Card | None) -> CheckPosts:
    """Look for doubles of a run that was let go, and for an edit of its card that came late."""
    return CheckPosts(effect_id, memory.channel, f"{memory.uid}:{memory.gen}", card, since, memory.post)


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
    """The replies of one end. Of an attempt that was retried since, only what was journaled is left.

    None of one that began after all where it was told as deleted in the queue: how Argo ends it then is no news.
    """
    if entry.attempt and run.memory is not None and run.memory.ended("") is not None:
        return []
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


def _patch(run: Run, moment: Moment, patch: Patch, purpose: Purpose) -> RunEffect:
    meta = run.workflow.metadata
    return _pending(run, PatchWorkflow(moment.effect_id, meta.namespace, meta.name, patch, purpose))


def _pending(run: Run, effect: RunEffect) -> RunEffect:
    run.pending = effect
    return effect
