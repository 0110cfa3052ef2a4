"""Keeping a pool warm: a pod that does nothing asks for a GPU, so that a node comes up and stays.

It gives way. Whatever may preempt takes its place by the scheduler alone, since its priority is below all others. Test
runs never preempt, so that none evicts a training: for them the holder of the Lease takes the pod away as soon as the
scheduler says that somebody waits in its pool. It ends by itself: the kubelet ends it after its time, and a pod that
never got a node, which no kubelet knows, is removed by the bot when its time is over.

What there is stands in the cluster: the pods carry their role, their pool and their end in labels, and nothing of them
is kept elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container

from bot.core import policy
from bot.core.commands.gpu import SPEC, CoolPool, WarmPool
from bot.core.commands.grammar import nearest
from bot.core.effects import Effect, MakePlaceholder, RemovePlaceholders, WakeAt
from bot.core.errors import UserError
from bot.core.events import EffectDone, EffectFailed, Trouble
from bot.core.pools import Pools, Sight
from bot.core.render import warming as words
from bot.core.settings import Pool, Settings
from bot.core.sightings import GpuPod, PodSeen, PodsListed, Sighting, Source, Standing
from bot.core.state import Asker, State

WAKE_WARM = "warm"
"""Key of the wake-up at which a placeholder's time is over."""

NAME_PREFIX = "gpu-warm"

AGAIN_SECONDS, REFUSED_SECONDS = 2.0, 60.0
"""Until a removal that failed is tried again; longer where the cluster refused it."""


def warm(state: State, asker: Asker, asked: WarmPool, now: float) -> MakePlaceholder:
    """The effect that keeps a pool warm.

    Raises:
        UserError: not allowed, no such pool, too long, or there is no need.
    """
    settings, pools = state.settings, state.pools
    pool, name = check_warm(state, asker, asked), pod_name(asker.request_id)
    kept = [pod for pod in pools.placeholders.values() if not pod.ending and pod.metadata.name != name]
    typed = f"/{SPEC.trigger} cool {asked.pool}"
    for pod in kept:
        if pod.pool == pool.name:
            raise UserError(words.warm_already(pool, pod.until or now, settings, now), typed)
    if len({pod.pool for pod in kept}) >= settings.warm.max_pools:
        others = [settings.pool(pod.pool) or Pool(pod.pool, pod.pool, "") for pod in kept]
        raise UserError(words.warm_elsewhere(others, settings), f"/{SPEC.trigger} cool {others[0].name}")
    if any(_waits_in(pod, {pool.name}) for pod in pools.pods.values()):
        raise UserError(words.somebody_waits(pool), f"/{SPEC.trigger} queue")
    seconds = 60 * (asked.minutes or settings.warm.minutes)
    return MakePlaceholder(state.new_id(), settings.namespace, name, pool.name, now + seconds, seconds, asker.user_name)


def check_warm(state: State, asker: Asker, asked: WarmPool) -> Pool:
    """The pool that is meant, if the asker may keep it warm for so long.

    Raises:
        UserError: not allowed, no such pool, too long, or the pods can't be seen.
    """
    settings = state.settings
    pool = pool_of(settings, asked.pool, "warm")
    policy.check_warm(settings, asker.user_id, asker.channel_id, pool.name)
    limit = settings.warm.max_minutes
    if asked.minutes is not None and not 1 <= asked.minutes <= limit:
        raise UserError(
            f"A pool can be kept warm for 1 to {limit} minutes at a time.",
            f"/{SPEC.trigger} warm {asked.pool} for={min(max(asked.minutes, 1), limit)}m",
        )
    if not _sees_pods(state.pools):
        raise UserError("I can't see the pods at the moment, so I would not notice who needs the GPU.")
    return pool


def cool(state: State, asker: Asker, asked: CoolPool, now: float) -> RemovePlaceholders:
    """The effect that keeps a pool warm no more.

    Raises:
        UserError: not allowed, or no such pool.
    """
    pool = check_cool(state, asker, asked)
    begun = [pod.created for pod in state.pools.placeholders.values() if pod.pool == pool.name and pod.created]
    since = min(begun, default=None)
    return RemovePlaceholders(state.new_id(), state.settings.namespace, pool.name, now, since)


def check_cool(state: State, asker: Asker, asked: CoolPool) -> Pool:
    """The pool that is meant, if the asker may let it cool.

    Raises:
        UserError: not allowed, or no such pool.
    """
    pool = pool_of(state.settings, asked.pool, "cool")
    policy.check_warm(state.settings, asker.user_id, asker.channel_id, pool.name)
    return pool


def pool_of(settings: Settings, typed: str, deed: str) -> Pool:
    """The pool by its name or by its GPU's.

    Raises:
        UserError: there is none of that name, or several.
    """
    lowered = typed.lower()
    by_name = [pool for pool in settings.pools if pool.name.lower() == lowered]
    found = by_name or [pool for pool in settings.pools if pool.gpu.lower() == lowered]
    if len(found) == 1:
        return found[0]
    if found:
        raise UserError(words.several_pools(typed, found), f"/{SPEC.trigger} {deed} {found[0].name}")
    near = nearest(typed, [name for pool in settings.pools for name in (pool.gpu, pool.name)])
    best = near or (settings.pools[0].name if settings.pools else "")
    raise UserError(words.no_such_pool(typed, settings.pools), f"/{SPEC.trigger} {deed} {best.lower()}" if best else "")


def pod_name(request_id: str) -> str:
    """The placeholder's name, which derives from the request: the same command delivered twice makes one."""
    return f"{NAME_PREFIX}-{hashlib.sha256(request_id.encode()).hexdigest()[:16]}"


# what comes of it


def saw(state: State, seen: Sighting, now: float) -> list[Effect]:
    """Pods were seen: a placeholder may have to give way, or what is left of one is to be removed."""
    if isinstance(seen, PodsListed):
        return won(state, now)
    if not isinstance(seen, PodSeen):
        return []
    if seen.pod.until is not None and seen.pod.standing is Standing.ENDED:
        return _remove(state, "", now)  # it ended by itself, and its object stays until somebody deletes it
    kept = {pod.pool for pod in state.pools.placeholders.values()}
    return look(state, now) if seen.pod.until is not None or _waits_in(seen.pod, kept) else []


def won(state: State, now: float) -> list[Effect]:
    """The Lease was won, or there was a gap: remove what ended while nobody looked. A list of pods does not name it."""
    return _remove(state, "", now) if _sees_pods(state.pools) else []


def look(state: State, now: float) -> list[Effect]:
    """Remove the placeholder whose time is over, or whose place somebody needs; else come back in time."""
    kept = [pod for pod in state.pools.placeholders.values() if not pod.ending]
    if not state.leader or not kept:
        return []
    if any((pod.until or 0.0) <= now for pod in kept):
        return _remove(state, "", now)
    wanted = next((pod.pool for pod in kept if _is_wanted(state.pools, pod)), None)
    if wanted is not None:
        return _remove(state, wanted, now)
    when = min(pod.until or 0.0 for pod in kept)
    if state.wakes.get(WAKE_WARM) == when:
        return []
    state.wakes[WAKE_WARM] = when
    return [WakeAt(WAKE_WARM, when)]


def removed(state: State, event: EffectDone | EffectFailed, now: float) -> list[Effect]:
    """A removal came to its end. What went shows as a pod that goes; what is still there is looked at in a moment."""
    state.cooling = ""
    pause = AGAIN_SECONDS
    if isinstance(event, EffectFailed):
        pause = max(event.retry_after or 0.0, REFUSED_SECONDS if event.trouble is Trouble.REFUSED else AGAIN_SECONDS)
    elif not state.pools.placeholders:
        return []
    state.wakes[WAKE_WARM] = now + pause
    return [WakeAt(WAKE_WARM, now + pause)]


def _sees_pods(pools: Pools) -> bool:
    return pools.sight(Source.PODS) in {Sight.EVERYWHERE, Sight.OURS}


def _remove(state: State, pool: str, now: float) -> list[Effect]:
    if not state.leader or state.cooling:
        return []
    effect = RemovePlaceholders(state.new_id(), state.settings.namespace, pool, now)
    state.cooling = effect.id
    return [effect]


def _is_wanted(pools: Pools, placeholder: GpuPod) -> bool:
    return any(_waits_in(pod, {placeholder.pool}) for pod in pools.pods.values())


def _waits_in(pod: GpuPod, pools: Container[str]) -> bool:
    """Whether a pod that does work was found no place in these pools; one the scheduler has not seen may get one."""
    return pod.until is None and pod.pool in pools and pod.standing is Standing.UNPLACED and not pod.ending
