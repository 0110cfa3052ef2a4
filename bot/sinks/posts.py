"""What cards and alerts have in common: posts of ours that are edited for as long as they tell something."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from bot.clients.errors import Forbidden, Invalid, NotFound, WireError
from bot.clients.mattermost import Mattermost, StoredPost
from bot.core.events import EffectDone, EffectFailed, Trouble
from bot.logs import log
from bot.metrics import Metrics
from bot.sinks.trouble import failure

FINAL = frozenset(
    {
        "api.post.update_post.permissions_time_limit.app_error",
        "model.post.is_valid.props.app_error",
        "model.post.is_valid.msg.app_error",
    }
)
"""Refusals of an edit that no later try changes: the server's PostEditTimeLimit, or a post too large for it."""

_NOT_A_ROOT = frozenset({"api.post.create_post.root_id.app_error"})
"""Refusals that mean: the card is not there any more. That of an archived channel is none of them: it may come back."""


async def edit_post(
    chat: Mattermost, effect_id: str, post: str, body: dict[str, Any], may: Callable[[], bool]
) -> EffectDone | EffectFailed:
    """Replace message and props of one of our posts. GONE: it was deleted; FINAL: no later try changes it."""
    try:
        await chat.edit(post, body, may)
    except Forbidden as error:
        # editing a deleted post is answered with 403 (api4/post.go), as is a lost right: looking tells which
        gone = not await _there(chat, post)
        return failure(effect_id, NotFound(error.reason) if gone else error)
    except Invalid as error:
        if error.code in FINAL:
            return EffectFailed(effect_id, Trouble.FINAL, error.reason)
        return failure(effect_id, as_gone(error))
    except WireError as error:
        return failure(effect_id, error)
    return EffectDone(effect_id)


async def _there(chat: Mattermost, post: str) -> bool:
    try:
        await chat.thread(post)
    except NotFound:
        return False
    except WireError:
        return True  # not known; the refusal stands
    return True


def as_gone(error: WireError) -> WireError:
    """The error, as NotFound where it means that the card is not there."""
    if isinstance(error, Invalid) and error.code in _NOT_A_ROOT:
        return NotFound(error.reason, code=error.code)
    return error


def oldest_first(posts: Iterable[StoredPost]) -> list[StoredPost]:
    """By the server's time, and by id within a millisecond."""
    return sorted(posts, key=lambda post: (post.create_at, post.id))


async def remove_doubles(
    chat: Mattermost, doubles: Iterable[StoredPost], metrics: Metrics, may: Callable[[], bool]
) -> None:
    """Delete posts of ours that say what another one says; raises WireError at the first that stays."""
    for double in doubles:
        metrics.doubles.inc()
        log().warning("a double is removed", post=double.id, created=double.create_at)
        await chat.delete(double.id, may)
