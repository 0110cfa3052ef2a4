"""The way to a GPU in words: on the card while a run waits, in one line afterwards, and as `/gpu warmup` tells it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from bot.core.autoscaler import shorten
from bot.core.card import Card
from bot.core.history import Usual
from bot.core.pools import Sight
from bot.core.render.escape import code, prose
from bot.core.render.post import apart, fit
from bot.core.render.scale_errors import error_words
from bot.core.render.scheduling import waiting_words
from bot.core.scheduling import Cause, read_reason
from bot.core.settings import Settings
from bot.core.sightings import Source
from bot.core.warmup import Leg, Step, Way

MAX_RUNS = 10
"""Runs whose steps `/gpu warmup` tells; more are counted."""

_WORDS = {
    Step.QUEUE: "queue",
    Step.SCALE_UP: "scale-up",
    Step.NODE: "node",
    Step.READY: "ready",
    Step.GPU: "GPU",
    Step.PLACE: "place",
    Step.IMAGE: "image",
    Step.START: "start",
}
"""A step on the card, in a word."""

_LONG = {
    Step.QUEUE: "its turn",
    Step.SCALE_UP: "the autoscaler asks for a node",
    Step.NODE: "the node registers",
    Step.READY: "the node is ready",
    Step.GPU: "its GPU can be used",
    Step.PLACE: "a place on a node with a free GPU",
    Step.IMAGE: "the test image is there",
    Step.START: "the tests begin",
}
"""The same in `/gpu warmup`."""

_WAITS_FOR = {
    Step.QUEUE: "its turn",
    Step.SCALE_UP: "the autoscaler to ask for a node",
    Step.NODE: "the node to register",
    Step.READY: "the node to get ready",
    Step.GPU: "the node's GPU to be usable",
    Step.PLACE: "a free GPU",
    Step.IMAGE: "the test image",
    Step.START: "the tests to begin",
}
"""The same of the step that it is at."""


_NEVER = {
    Step.SCALE_UP: "The autoscaler asked for no node",
    Step.NODE: "The node that was asked for never came",
    Step.READY: "Its node never got ready",
    Step.GPU: "Its node got ready, and its GPU never could be used",
    Step.PLACE: "No GPU got free for it",
}
"""What did not happen where a run was given up at a step."""


@dataclass(frozen=True)
class PoolTimes:
    """What is usual for one pool."""

    gpu: str
    cold: Usual
    warm: Usual


def way_line(way: Way, settings: Settings) -> str:
    """The steps of a run that waits, in a line: what is done, what it is at, what is left."""
    legs = [leg for leg in way.legs if _on_card(leg, way)]
    parts = [_leg(leg, way, settings) for leg in legs]
    if way.starts is not None:
        parts.append(f"starts ≈ {_hour(way.starts, settings)}")
    return f"Warm-up: {' · '.join(parts)}"


def _on_card(leg: Leg, way: Way) -> bool:
    """The queue was on the card before; a place comes with the GPU where one comes just for this run."""
    return leg.step is not Step.QUEUE and (leg.step is not Step.PLACE or leg.current or not way.cold)


def _leg(leg: Leg, way: Way, settings: Settings) -> str:
    usual = f" (usual {span(leg.usual)})" if leg.usual is not None else ""
    word = _WORDS[leg.step]
    if leg.current:
        since = f" since {_hour(leg.begin, settings)}" if leg.begin is not None else ""
        return f"{_mark(leg, way)} {word}{since}{usual}"
    if leg.begin is None:
        return f"⚪ {word}"
    return f"✅ {word}" + (f" {span(leg.seconds)}" if leg.seconds else "")


def _mark(leg: Leg, way: Way) -> str:
    """Of the step that a run is at: whether something is known to be in its way, or it lasts too long."""
    stuck = leg.late or refused_words(way) or (way.trouble and leg.step is Step.IMAGE)
    return "⚠️" if stuck else "⏳"


def waiting_for(way: Way | None, detail: str) -> str:
    """Why it waits, in words: that its node is on its way, where the scheduler says nothing that goes beyond that.

    Of a node that is not ready yet newer schedulers say "had untolerated taint(s)", and nothing more.
    """
    leg = way.current if way is not None else None
    reading = read_reason(detail)
    if leg is not None and leg.step in _COMING and reading is not None:
        odd = [
            each for each in reading.obstacles if each.cause not in _EXPECTED and (each.cause, each.detail) != _UNNAMED
        ]
        if not odd:
            return _COMING[leg.step]
    return waiting_words(detail) or prose(detail, 300)


_COMING = {
    Step.READY: "Its node is up, and not ready yet",
    Step.GPU: "Its node is ready, and its GPU is not there yet",
}
_EXPECTED = frozenset({Cause.NOT_READY, Cause.STARTING, Cause.GPU, Cause.SELECTOR, Cause.CONTROL_PLANE, Cause.NO_NODES})
_UNNAMED = (Cause.TAINT, "")


def refused_words(way: Way) -> str:
    """Why the autoscaler brings no node, "" where it said nothing of the kind."""
    if way.failed is not None and not way.retried:
        return f"no node is coming: {error_words(way.failed)}"
    _, failed, reason = way.refused.partition(" failed: ")
    if failed:
        return f"no node is coming: {error_words(shorten(reason))}"
    words = waiting_words(way.refused) or prose(way.refused, 200)
    if words:
        return f"no node is coming: {words[:1].lower()}{words[1:]}"
    return f"the last try brought no node: {error_words(way.failed)}" if way.failed is not None else ""


def stuck_words(step: str) -> str:
    """What did not happen for a run that was given up; "" where that is not known."""
    return next((words for known, words in _NEVER.items() if known.value == step), "")


def until_line(card: Card, settings: Settings) -> str:
    """Until when it waits, "" where it does not, or for ever."""
    if card.until is None:
        return ""
    who = f", as {prose(card.longer.user_name, 64)} asked" if card.longer is not None else ""
    return f"I wait until {_moment(card.until, card, settings)}{who}, then give up"


def _moment(at: float, card: Card, settings: Settings) -> str:
    """A clock time with its zone; with its day where that is another than that on which the wait began."""
    zone = ZoneInfo(settings.timezone)
    when = datetime.fromtimestamp(at, UTC).astimezone(zone)
    other = card.since is None or when.date() != card.since.astimezone(zone).date()
    return f"{when:%a %H:%M %Z}" if other else f"{when:%H:%M %Z}"


def folded_line(way: Way) -> str:
    """How long the start of a run took, once it is over; "" where that is not known."""
    if way.seconds is None:
        return ""
    legs = [leg for leg in way.legs if leg.step is not Step.QUEUE and not (way.cold and leg.step is Step.PLACE)]
    parts = [f"{_WORDS[leg.step]} {span(leg.seconds)}" for leg in legs if leg.seconds]
    return f"{'Warm-up' if way.cold else 'Warm start'} {span(way.seconds)}" + (f": {', '.join(parts)}" if parts else "")


def span(seconds: float | None) -> str:
    """A length to the second, as long as that says anything: `12 s`, `3:40 min`, `1 h 05 min`."""
    whole = round(seconds or 0.0)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes >= 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{minutes}:{rest:02d} min" if rest else f"{minutes} min"


def soon(usual: Usual) -> str:
    """How long a start takes, to stand behind a pool's state; "" where too few were seen."""
    return f"≈ {span(usual.seconds)} to start" if usual.seconds is not None else ""


def waits_until(short: str, until: float, settings: Settings) -> str:
    """It waits longer."""
    return f"⏳ **{prose(short, 40)}** waits for a GPU until {_day(until, settings)}."


def waits_already(short: str, until: float, user_name: str, settings: Settings) -> str:
    """Somebody asked for that before."""
    by = prose(user_name, 64)
    return f"⏳ **{prose(short, 40)}** waits until {_day(until, settings)} already: {by} asked for it."


def wait_failed(reason: str, short: str) -> str:
    """The cluster did not take the longer wait, or did not say."""
    return f"⚠️ I could not let {code(short, 40)} wait longer: {prose(reason, 300)}. Its card shows how it is."


def _day(at: float, settings: Settings) -> str:
    return f"{datetime.fromtimestamp(at, UTC).astimezone(ZoneInfo(settings.timezone)):%a %H:%M %Z}"


def warmups(
    cards: Sequence[Card],
    times: Iterable[PoolTimes],
    settings: Settings,
    now: float,
    sights: Mapping[Source, Sight] | None = None,
) -> str:
    """The answer to `/gpu warmup`: every run on its way, and what is usual for each pool."""
    sights = sights or {}
    zone = datetime.fromtimestamp(now, UTC).astimezone(ZoneInfo(settings.timezone)).tzname() or ""
    lines = [f"**Warm-up, {_hour(now, settings)} {zone}**"]
    under_way = [(card, card.way) for card in cards if card.way is not None and card.way.current is not None]
    for card, way in under_way[:MAX_RUNS]:
        lines += _run(card, way, settings)
    if len(under_way) > MAX_RUNS:
        lines.append(f"and {len(under_way) - MAX_RUNS} more")
    lines += _unseen(sights) or ([] if under_way else ["No run is on its way to a GPU."])
    lines.append("Usual, by the last starts of each pool:")
    lines += [f"  - {_pool(pool)}" for pool in times]
    return fit(apart(lines))


def _unseen(sights: Mapping[Source, Sight]) -> list[str]:
    """What can't be told for want of sight."""
    looked = (Source.PODS, Source.NODES, Source.EVENTS)
    if any(sights.get(source) is Sight.PENDING for source in looked):
        return ["⏳ Just started: not everything is seen yet."]
    if sights.get(Source.PODS) is Sight.HIDDEN:
        return ["👁 Pods are not visible here: how far a run is on its way to a GPU I can't tell."]
    hidden = [source.value for source in looked if sights.get(source) is Sight.HIDDEN]
    return [f"👁 Not visible here, and left out: the steps of {' and '.join(hidden)}."] if hidden else []


def _run(card: Card, way: Way, settings: Settings) -> list[str]:
    by = f" ({prose(card.origin.user_name, 64)})" if card.origin.user_name else ""
    asked, head = way.legs[0].begin, f"**{prose(card.short, 40)}**{by} · {prose(card.asked.gpu, 40)}"
    since = f" · asked {_hour(asked, settings)}" if asked is not None else ""
    if way.legs[0].current:
        # the steps of a run that waits for its turn have all yet to come
        return [f"🕓 {head} · {_step(way.legs[0], way, card, settings).removeprefix('⏳ ')}"]
    lines = [f"⏳ {head}{since}"]
    for leg in way.legs:
        if leg.step is Step.PLACE and way.cold and not leg.current:
            continue
        lines.append(f"  - {_step(leg, way, card, settings)}")
    if way.starts is not None:
        lines.append(f"  - starts ≈ {_hour(way.starts, settings)}")
    return lines


def _step(leg: Leg, way: Way, card: Card, settings: Settings) -> str:
    word = _LONG[leg.step]
    usual = f" (usual {span(leg.usual)})" if leg.usual is not None else ""
    if leg.current:
        since = f" since {_hour(leg.begin, settings)}" if leg.begin is not None else ""
        why = _why(leg, way, card)
        return f"{_mark(leg, way)} waits{since} for {_WAITS_FOR[leg.step]}{usual}" + (f" · {why}" if why else "")
    if leg.begin is None:
        return f"⚪ {word}{usual}"
    names = ", ".join(prose(name, 40) for name in way.behind)
    behind = f", behind {names}" if names and leg.step is Step.QUEUE else ""
    return f"✅ {word}" + (f": {span(leg.seconds)}" if leg.seconds is not None else "") + behind


def _why(leg: Leg, way: Way, card: Card) -> str:
    """What is known of why a step lasts."""
    if leg.step is Step.QUEUE:
        names = ", ".join(prose(name, 40) for name in way.behind)
        return f"behind {names}" if names else prose(card.detail, 160)
    if refused := refused_words(way):
        return refused
    words = waiting_for(way, card.detail)
    return words[:1].lower() + words[1:]


def _pool(pool: PoolTimes) -> str:
    kinds = [_kind("cold", pool.cold), _kind("warm", pool.warm)]
    return f"**{prose(pool.gpu, 40)}**: {'; '.join(kind for kind in kinds if kind) or 'no start seen yet'}"


def _kind(name: str, usual: Usual) -> str:
    if not usual.count:
        return ""
    seen = f"{usual.count} start{'' if usual.count == 1 else 's'}"
    if usual.seconds is None:
        return f"{name}: {seen} seen, too few to tell"
    told = [step for step in Step if step is not Step.QUEUE and round(usual.steps.get(step.value, 0.0))]
    steps = [f"{_WORDS[step]} {span(usual.steps[step.value])}" for step in told]
    return f"{name} {span(usual.seconds)} ({', '.join([*steps, seen])})"


def _hour(at: float | None, settings: Settings) -> str:
    return f"{datetime.fromtimestamp(at or 0.0, UTC).astimezone(ZoneInfo(settings.timezone)):%H:%M}"
