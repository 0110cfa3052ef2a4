"""What came of a run's outstanding effect."""

from __future__ import annotations

from bot.core.effects import (
    CheckPosts,
    EditCard,
    PatchWorkflow,
    PostCard,
    Purpose,
    SayInThread,
)
from bot.core.events import EffectDone, EffectFailed, Trouble
from bot.core.runs import Moment, Run, observe
from bot.core.workflow import Workflow, instant

LONGEST_DOUBLING = 16
"""Failures in a row after which the pause grows no more; a day without chat is thousands of them."""


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
