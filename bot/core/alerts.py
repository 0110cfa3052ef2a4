"""Alerts: what is wrong with the GPUs now, what of it was said, and what is to be said next.

An alert is one post. Its props carry its key (kind, subject, since), so that a restart and another replica find it and
go on with it; it is edited when it is over. What comes and goes is damped on both sides: it has to hold for a while
before it is said, and to be over for a while before that is said. Of one kind and subject one alert at most is open.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from bot.core.autoscaler import ScaleError
from bot.core.settings import AlertKind, Alerts

Subject = tuple[AlertKind, str]


@dataclass(frozen=True)
class Concern:
    """Something that is wrong now."""

    kind: AlertKind
    subject: str
    """What it is about, the same as long as it lasts: a pool, a run, pods of one namespace that want the same."""
    since: float
    gpu: str = ""
    names: tuple[str, ...] = ()
    """Pods, nodes or runs that it concerns."""
    why: str = ""
    words: str = ""
    """What the scheduler or the autoscaler says."""
    error: ScaleError | None = None
    usual: float | None = None
    """Seconds that are usual instead."""
    at_once: bool = False
    """It is said as soon as it is seen: it does not come and go, or it has waited for its limit already."""

    @property
    def key(self) -> Subject:
        return self.kind, self.subject


@dataclass(frozen=True)
class Found:
    """All that is wrong. `known`: kinds of which all was seen; of the others nothing is over."""

    concerns: tuple[Concern, ...]
    known: frozenset[AlertKind]
    later: float | None = None
    """When something gets wrong if nothing happens until then."""


@dataclass(frozen=True)
class AlertPost:
    """A post of an alert that is not over, as the chat has it."""

    post: str
    kind: AlertKind
    subject: str
    since: float
    text: str


@dataclass
class Held:
    """Something that is wrong, or was until a moment ago."""

    concern: Concern
    seen: float
    """Since when this process sees it; infinity for one that it has only read of."""
    since: float
    gone: float | None = None
    """Since when it is over."""
    post: str = ""
    text: str = ""
    """As it stands in the chat."""

    @property
    def key(self) -> str:
        """The alert's name, kept in the props of its post."""
        return alert_key(self.concern.kind, self.concern.subject, self.since)

    @property
    def missed(self) -> bool:
        """It was over before this process looked."""
        return self.seen == float("inf")


@dataclass(frozen=True)
class Pending:
    """What is under way: the id of an effect, what it does and about what."""

    id: str
    step: Literal["read", "say", "end"]
    about: Subject | None = None
    text: str = ""


@dataclass
class Ledger:
    """What is held of alerts. Owned by the loop."""

    held: dict[Subject, Held] = field(default_factory=dict)
    read: bool = False
    """What stands in the chat is known. Nothing is said before that."""
    ready: float = 0.0
    """When it can be read: nobody's earlier request is under way any more."""
    pending: Pending | None = None
    failures: int = 0
    not_before: float = 0.0
    look_until: float = 0.0
    """Until when doubles of an alert that is over may still come."""
    idle_from: dict[str, float] = field(default_factory=dict)
    """Nodes without a pod, and since when they are seen so."""
    lost: dict[str, tuple[str, float, str]] = field(default_factory=dict)
    """Runs whose node was lost, by uid: the attempt, when that was seen, the node."""


def alert_key(kind: AlertKind, subject: str, since: float) -> str:
    """What the props of a post say of its alert."""
    return f"{kind.value}:{subject}:{int(since)}"


def read_key(text: str) -> tuple[AlertKind, str, float] | None:
    """Kind, subject and since from a post's props; None where it is no key of ours."""
    kind, _, rest = text.partition(":")
    subject, _, since = rest.rpartition(":")
    if kind not in set(AlertKind) or not (since.isascii() and since.isdecimal()):
        return None
    return AlertKind(kind), subject, float(since)


def observe(ledger: Ledger, found: Found, now: float) -> None:
    """Take in what is wrong now. What was never said and is over leaves no trace."""
    seen = {concern.key: concern for concern in found.concerns}
    for key, concern in seen.items():
        held = ledger.held.get(key)
        if held is None:
            ledger.held[key] = Held(concern, now, concern.since)
        else:
            held.concern, held.gone, held.seen = concern, None, min(held.seen, now)
    for key, held in list(ledger.held.items()):
        if key in seen or key[0] not in found.known:
            continue
        if held.post or (ledger.pending is not None and ledger.pending.about == key):
            held.gone = now if held.gone is None else held.gone
        else:
            del ledger.held[key]


def doubt(ledger: Ledger, ready: float) -> None:
    """Somebody else may have spoken, or a request may have been heard: what stands in the chat is to be read."""
    ledger.read, ledger.ready, ledger.pending = False, ready, None
    for held in ledger.held.values():
        held.post = held.text = ""


def adopt(ledger: Ledger, posts: Iterable[AlertPost]) -> None:
    """Go on with the alerts that stand in the chat."""
    ledger.read = True
    for post in posts:
        key = post.kind, post.subject
        held = ledger.held.get(key)
        if held is None:
            concern = Concern(post.kind, post.subject, post.since)
            held = ledger.held[key] = Held(concern, float("inf"), post.since)
        held.post, held.text, held.since = post.post, post.text, post.since


def to_say(ledger: Ledger, settings: Alerts, now: float) -> Held | None:
    """The first that has held for long enough and was not said."""
    unsaid = (held for held in ledger.held.values() if _is_unsaid(held))
    return next((held for held in unsaid if now >= _say_at(held, settings)), None)


def to_end(ledger: Ledger, settings: Alerts, now: float) -> Held | None:
    """The first that was said and is over for long enough."""
    over = (held for held in ledger.held.values() if held.post and held.gone is not None)
    return next((held for held in over if now >= (held.gone or 0.0) + settings.over_after_seconds), None)


def due(ledger: Ledger, settings: Alerts) -> float | None:
    """When the next of them is to be said, or to be said to be over."""
    says = [_say_at(held, settings) for held in ledger.held.values() if _is_unsaid(held)]
    ends = [held.gone + settings.over_after_seconds for held in ledger.held.values() if held.post and held.gone]
    return min([*says, *ends], default=None)


def said(ledger: Ledger, key: Subject, post: str, text: str) -> None:
    """It stands in the chat."""
    held = ledger.held[key]
    held.post, held.text = post, text


def ended(ledger: Ledger, key: Subject, now: float) -> None:
    """Its end stands in the chat, or nobody can write it there. What has come back meanwhile is another one."""
    held = ledger.held.pop(key)
    if held.gone is None:
        ledger.held[key] = Held(held.concern, now, now)


def _is_unsaid(held: Held) -> bool:
    return not held.post and held.gone is None


def _say_at(held: Held, settings: Alerts) -> float:
    return held.seen + (0.0 if held.concern.at_once else settings.say_after_seconds)
