"""What an alert says, and what stands there when it is over."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.core.alerts import Concern, Held
from bot.core.autoscaler import short_group
from bot.core.concerns import NAMED
from bot.core.misfits import Misfit
from bot.core.render.escape import code, mention, prose
from bot.core.render.scale_errors import error_words
from bot.core.render.scheduling import waiting_words
from bot.core.render.words import article, clock, duration
from bot.core.settings import AlertKind, Ring, Settings

OPEN, OVER = "⚠️", "✅"


def said(concern: Concern, since: float, settings: Settings) -> str:
    """The post of an alert: what is wrong, since when, why; and who is rung."""
    head, detail = _WORDS[concern.kind](concern)
    parts = [f"{OPEN} **{head}** · since {_clock(since, settings)}", *([detail] if detail else [])]
    ringing = [mention(name) for name in settings.owners] if settings.alerts.ring is Ring.OWNERS else []
    return " ".join([*ringing, " · ".join(parts)])


def over(held: Held, settings: Settings) -> str:
    """The same post once it is over, which comes first, and what was wrong struck out behind it.

    Of what ended while nobody looked, the moment is not known.
    """
    gone = held.gone if held.gone is not None else held.since
    length, at = duration(max(0, int(gone - held.since))), _clock(gone, settings)
    end = f"Over by {at}, after {length} at most" if held.missed else f"Over after {length}, at {at}"
    *who, rest = held.text.split(f"{OPEN} ", 1)
    head, since, detail = rest.partition("** · since ")
    return f"{''.join(who)}{OVER} **{end}**: ~~{head.removeprefix('**')}~~" + (f" · since {detail}" if since else "")


def _clock(at: float, settings: Settings) -> str:
    return clock(datetime.fromtimestamp(at, UTC), settings)


def _gpu(concern: Concern) -> str:
    """The GPU as people call it; a node group that belongs to no known pool by its own name."""
    return prose(concern.gpu, 40) or f"node group {code(short_group(concern.subject), 40)}"


def _error(concern: Concern) -> str:
    return error_words(concern.error) if concern.error is not None else ""


def _stock(concern: Concern) -> tuple[str, str]:
    return f"No {_gpu(concern)} to be had", _error(concern)


def _quota(concern: Concern) -> tuple[str, str]:
    return f"No further {_gpu(concern)}", _error(concern)


def _backoff(concern: Concern) -> tuple[str, str]:
    gpu = _gpu(concern)
    return f"{gpu[:1].upper()}{gpu[1:]}: no node comes, the autoscaler waits before it tries again", _error(concern)


def _no_place(concern: Concern) -> tuple[str, str]:
    names = _names(concern.names)
    if concern.why == Misfit.CAPABILITY:
        asked, has = concern.words.split(" ")
        gpu = _gpu(concern)
        return (
            f"{names} can't run on {article(gpu)} {gpu}",
            f"built for compute capability {prose(asked, 20)}, not {has}",
        )
    pool = f"pool {code(concern.gpu, 60)}" if concern.gpu else "its nodes"
    detail = {
        Misfit.NO_POOL: f"nobody knows a {pool}",
        Misfit.TAINT: f"the nodes of {pool} have a taint that is not tolerated",
        Misfit.SELECTOR: "no node is of the kind that is asked for",
    }[Misfit(concern.why)]
    if concern.why == Misfit.TAINT and "didn't trigger" not in concern.words:
        return f"No pool can take {names}", f"{detail}: {code(concern.words, 120)}"
    words = "" if concern.why == Misfit.NO_POOL else waiting_words(concern.words)
    return f"No pool can take {names}", f"{detail} ({words[:1].lower()}{words[1:]})" if words else detail


def _idle(concern: Concern) -> tuple[str, str]:
    one = len(concern.names) == 1
    return f"{_gpu(concern)}: {'a node is' if one else 'nodes are'} idle", f"nobody uses {_names(concern.names)}"


def _slow(concern: Concern) -> tuple[str, str]:
    known = concern.usual is not None
    usual = f"usual {duration(int(concern.usual or 0))}" if known else "what is usual is not known yet"
    gpu, words = _gpu(concern), waiting_words(concern.words)
    return (
        f"{_names(concern.names)} waits {'longer than usual' if known else 'long'} for {article(gpu)} {gpu}",
        " · ".join([usual, *([words[:1].lower() + words[1:]] if words else [])]),
    )


def _lost(concern: Concern) -> tuple[str, str]:
    run, node = concern.names
    what = "its node does not answer" if concern.why == "silent" else "its node is gone"
    return f"{prose(run, 40)} lost its node", f"{what}: {code(node, 80)}"


def _names(names: tuple[str, ...]) -> str:
    shown = [prose(name, 80) for name in names[:NAMED]]
    more = len(names) - len(shown)
    return " and ".join(filter(None, (", ".join(shown), f"{more} more" if more else "")))


_WORDS = {
    AlertKind.STOCK: _stock,
    AlertKind.QUOTA: _quota,
    AlertKind.BACKOFF: _backoff,
    AlertKind.NO_PLACE: _no_place,
    AlertKind.IDLE: _idle,
    AlertKind.SLOW: _slow,
    AlertKind.NODE_LOST: _lost,
}
