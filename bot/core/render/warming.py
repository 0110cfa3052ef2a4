"""What `/gpu warm` and `/gpu cool` answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from bot.core.effects import MakePlaceholder, RemovePlaceholders
from bot.core.render.escape import code, prose
from bot.core.render.money import hours, money, span
from bot.core.render.words import article
from bot.core.settings import Pool, Settings


def kept(effect: MakePlaceholder, settings: Settings, now: float) -> str:
    """A pool is kept warm: until when, and what it costs."""
    pool = settings.pool(effect.pool) or Pool(effect.pool, effect.pool, "")
    minutes = effect.seconds // 60
    lines = [
        (
            f"🔥 **{_gpu(pool)}** is kept warm until {_clock(effect.until, settings, now)} ({span(minutes)}), or until"
            f" somebody needs the GPU: then it gives way at once. {code(f'/gpu cool {pool.name}', 80)} ends it sooner."
        )
    ]
    if pool.price_per_hour is None:
        lines.append("What it costs I can't say: config.yaml has no price for this pool.")
    else:
        price = money(pool.price_per_hour, settings.currency)
        most = money(pool.price_per_hour * effect.seconds / 3600, settings.currency)
        lines.append(
            f"That costs up to {most} ({span(minutes)} at {price} a node and hour), and after it what the node stays up"
            " until the autoscaler takes it away. Nothing more where a node is up and used anyway."
        )
    return "\n".join(lines)


def not_kept(reason: str, *, refused: bool) -> str:
    """The cluster did not take the pod, or did not say."""
    text = f"⚠️ I could not keep it warm: {prose(reason, 300)}."
    if refused:
        return f"{text} An administrator has to apply `deploy/bot/rbac-warm.yaml` once."
    return f"{text} See how it is with `/gpu pools`."


def let_go(effect: RemovePlaceholders, count: int, settings: Settings, now: float) -> str:
    """A pool is not kept warm any more, and what that cost; or it was not."""
    pool = settings.pool(effect.pool) or Pool(effect.pool, effect.pool, "")
    if not count:
        return f"**{_gpu(pool)}** is not kept warm, so there is nothing to end."
    kept_for = ""
    if effect.since is not None:
        seconds = max(0.0, now - effect.since)
        kept_for = f" after {hours(seconds)}"
        if pool.price_per_hour is not None:
            kept_for += f", which cost up to {money(pool.price_per_hour * seconds / 3600, settings.currency)}"
    return (
        f"❄️ **{_gpu(pool)}** is not kept warm any more{kept_for}. Its node costs until the autoscaler takes it away,"
        " usually some minutes after the last pod."
    )


def not_let_go(reason: str) -> str:
    """The cluster did not delete the pod, or did not say."""
    return f"⚠️ I could not let it cool: {prose(reason, 300)}. See how it is with `/gpu pools`."


def warm_already(pool: Pool, until: float, settings: Settings, now: float) -> str:
    """It is kept warm; a pod's time can't be made longer."""
    return (
        f"**{_gpu(pool)}** is kept warm until {_clock(until, settings, now)} already. For another time end this first."
    )


def warm_elsewhere(pools: Sequence[Pool], settings: Settings) -> str:
    """As many pools as may be are kept warm."""
    most = settings.warm.max_pools
    names = " and ".join(f"**{_gpu(pool)}**" for pool in pools[:3])
    number = "one pool is" if most == 1 else f"{most} pools are"
    return f"At most {number} kept warm at a time; now it is {names}."


def somebody_waits(pool: Pool) -> str:
    """A node comes by itself."""
    gpu = f"{article(pool.gpu)} {_gpu(pool)}"
    return f"Somebody waits for {gpu} already: a node comes for them, so there is nothing to warm."


def no_such_pool(typed: str, pools: Sequence[Pool]) -> str:
    """No pool of that name."""
    names = ", ".join(f"{_gpu(pool)} ({prose(pool.name, 60)})" for pool in pools[:10])
    return f"No pool {code(typed, 60)}. " + (f"I know {names}." if names else "config.yaml names none.")


def several_pools(typed: str, pools: Sequence[Pool]) -> str:
    """More than one pool has that GPU."""
    return f"{code(typed, 60)} is the GPU of several pools: {', '.join(code(pool.name, 60) for pool in pools[:10])}."


def _gpu(pool: Pool) -> str:
    return prose(pool.gpu, 40)


def _clock(at: float, settings: Settings, now: float) -> str:
    zone = ZoneInfo(settings.timezone)
    when, today = (datetime.fromtimestamp(each, UTC).astimezone(zone) for each in (at, now))
    return f"{when:%H:%M %Z}" if when.date() == today.date() else f"{when:%a %-d %b %H:%M %Z}"
