"""Everything the loop holds. Changed by `react` and by nothing else."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from bot.core.again import Again
from bot.core.alerts import Ledger
from bot.core.card import Card, Origin
from bot.core.cost_record import Costs
from bot.core.effects import (
    MakePlaceholder,
    OpenDialog,
    PatchWorkflow,
    RemovePlaceholders,
    SetSuspend,
    SubmitWorkflow,
)
from bot.core.history import History
from bot.core.memory import Memory
from bot.core.nightly import Nightly
from bot.core.pools import Pools
from bot.core.runs import Run
from bot.core.settings import Settings
from bot.core.verdict import Verdict
from bot.core.workflow import Workflow

KEPT_ANSWERS = 500
"""Answers kept for commands that are delivered again."""

KEPT_FORGOTTEN = 1000
"""Runs that are held no more, of which the last version is known."""

KEPT_ENDED = 200
"""Ended runs that `status` still knows by name."""


@dataclass(frozen=True)
class Asker:
    """Who waits for an answer, however they asked: by a command, a click or a dialog."""

    request_id: str
    user_id: str
    user_name: str
    channel_id: str
    aloud: bool = False
    """The answer is a reply that all can read, so it says something even where the card says it all."""
    form: bool = False
    """They wait in front of a form, which shows errors alone."""


AskEffect = SubmitWorkflow | SetSuspend | OpenDialog | PatchWorkflow | MakePlaceholder | RemovePlaceholders


@dataclass
class Asking:
    """A request on its way: what it waits for, and how often that was tried."""

    asker: Asker
    effect: AskEffect
    tries: int = 1
    identity: str = ""
    """What the name of a new run derives from; the same for whatever must make one run only."""
    uid: str = ""
    """The run that is to be stopped, or to wait."""
    until: float = 0.0
    """Until when it is to wait."""
    otherwise: str = ""
    """The answer where a dialog can't be opened."""


@dataclass(frozen=True)
class EndedRun:
    """What `status` says of a run that was reported."""

    name: str
    verdict: Verdict | None
    channel: str
    post: str
    finished: str = ""
    """When it ended, as Argo says it."""
    again: Again | None = None
    """How to run all of it once more."""
    failed: Again | None = None
    """How to run only what failed."""
    headline: str = ""
    """The whole verdict in a few words, as on its card."""
    origin: Origin | None = None
    """Who or what asked for it."""


@dataclass(frozen=True)
class Parting:
    """A run that was let go a while ago. Who was stopped in mid-write, and woken since, may still have spoken of it."""

    memory: Memory
    until: float
    """When nobody needs to look any more."""
    since: float
    """Since when there may be posts about it, in Unix seconds."""
    card: Card | None = None
    """How its card looked in the end; None where another process let it go."""


@dataclass
class State:
    """The bot's whole memory of this moment; all that must last is kept in the cluster and the chat."""

    settings: Settings
    leader: bool = False
    installed_at: float = float("inf")
    """When the bot was installed; until that is known no run is owed that ended without our finalizer."""
    runs: dict[str, Run] = field(default_factory=dict)
    """Runs that are owed something, by uid."""
    ended: dict[str, EndedRun] = field(default_factory=dict)
    partings: dict[str, Parting] = field(default_factory=dict)
    """Runs that were let go a while ago, by uid."""
    forgotten: OrderedDict[str, str] = field(default_factory=OrderedDict)
    """Version of runs that are held no more, by uid; "" for one that is gone. What is older comes from a watch that is
    behind, and is nothing new.
    """
    nightly: Nightly = field(default_factory=Nightly)
    pools: Pools = field(default_factory=Pools)
    history: History = field(default_factory=History)
    keeping: dict[tuple[str, str], str] = field(default_factory=dict)
    """Starts on their way into the history, by run and attempt: the id of the effect, "" where it failed."""
    listed: bool = False
    """The workflows were listed once: what is held is all there is."""
    asking: dict[str, Asking] = field(default_factory=dict)
    """Commands under way, by the id of their effect."""
    answers: OrderedDict[str, str] = field(default_factory=OrderedDict)
    """Answers given, by request id."""
    wakes: dict[str, float] = field(default_factory=dict)
    """Wake-ups asked for and not yet come, by key."""
    costs: Costs = field(default_factory=Costs)
    alerts: Ledger = field(default_factory=Ledger)
    cooling: str = ""
    """The id of the removal of placeholders that is under way, "" for none."""
    aside: dict[str, Workflow] = field(default_factory=dict)
    """Runs that could not be digested, by uid; tried again at the next sweep."""
    broken: list[tuple[str, Exception]] = field(default_factory=list)
    """Names of runs that were just set aside while others went on, and why; whoever logs takes them out."""
    effects: int = 0
    spoken: dict[str, list[float]] = field(default_factory=dict)
    """When each user asked for something during the last minute."""

    def new_id(self) -> str:
        """A name for an effect, unique in this process."""
        self.effects += 1
        return f"e{self.effects}"

    def remember_answer(self, request_id: str, text: str) -> None:
        """Keep an answer for a command that is delivered again."""
        self.answers[request_id] = text
        while len(self.answers) > KEPT_ANSWERS:
            self.answers.popitem(last=False)

    def forget_before(self, uid: str, version: str) -> None:
        """Keep in mind that nothing older is news of this run."""
        self.forgotten[uid] = version
        while len(self.forgotten) > KEPT_FORGOTTEN:
            self.forgotten.popitem(last=False)

    def keeps_ended(self, finished: str) -> bool:
        """Whether a run that ended then is among the newest; RFC 3339 times in UTC compare as text."""
        return len(self.ended) < KEPT_ENDED or finished > min(ended.finished for ended in self.ended.values())

    def remember_ended(self, uid: str, ended: EndedRun) -> None:
        """Keep what `status` may be asked about; the oldest gives way."""
        self.ended[uid] = ended
        if len(self.ended) > KEPT_ENDED:
            del self.ended[min(self.ended, key=lambda uid: self.ended[uid].finished)]

    def newest_ended(self) -> list[EndedRun]:
        """The ended runs that are kept, newest first; of one second, the one that was seen to end last."""
        newest = [*reversed(self.ended.values())]
        newest.sort(key=lambda ended: ended.finished, reverse=True)
        return newest
