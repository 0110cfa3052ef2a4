"""Everything that can be asked for, in the imperative.

Effects with an `id` come back as `EffectDone` or `EffectFailed`; the others do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.core.card import Card, Origin
from bot.core.dialogs import CancelDialog, StartDialog
from bot.core.history import Start
from bot.core.memory import Patch
from bot.core.signing import Signed


class Purpose(StrEnum):
    """What a patch of a Workflow is for. Each is a write that a crash can follow: a test kills the bot after each."""

    CLAIM = "claim"
    CLAIM_AGAIN = "claim-again"
    SEE = "see"
    JOURNAL = "journal"
    REMEMBER = "remember"
    FORGET_CARD = "forget-card"
    RELEASE = "release"
    LET_GO = "let-go"
    SHUT_DOWN = "shut-down"
    CANCEL = "cancel"
    WAIT_LONGER = "wait-longer"
    GIVE_UP = "give-up"


@dataclass(frozen=True)
class PatchWorkflow:
    """One JSON patch on a Workflow. Done: the Workflow as it is now. A failed test: CONFLICT with the latest."""

    id: str
    namespace: str
    name: str
    patch: Patch
    purpose: Purpose


@dataclass(frozen=True)
class PostCard:
    """Create the card. Done: the post's id.

    `look_first`: somebody may have created it already; look in the channel, back to `since`, before posting.
    """

    id: str
    key: str
    """`uid:gen`, kept in the post's props."""
    channel: str
    card: Card
    look_first: bool
    since: float


@dataclass(frozen=True)
class EditCard:
    """Make the card look like this. Done: None. GONE where a person deleted it."""

    id: str
    post: str
    channel: str
    key: str
    card: Card


@dataclass(frozen=True)
class ExitPost:
    """The post by which a run's own exit step may have spoken, where nobody took its call."""

    uid: str
    attempt: str
    channels: tuple[str, ...]
    since: float
    """Unix seconds; it is not older."""


@dataclass(frozen=True)
class SayInThread:
    """Post the parts that the thread does not hold yet, in order. Done: None."""

    id: str
    post: str
    channel: str
    key: str
    """`uid:attempt`; with a part's key it is kept in the reply's props."""
    parts: tuple[tuple[str, str], ...]
    unless: ExitPost | None = None
    """Where that post is found, the part called `notice` is not said: it would ring a second time."""
    asker: Origin | None = None
    """Whose name goes in front of the notice, as it is then: people are renamed while a run runs."""


@dataclass(frozen=True)
class CheckPosts:
    """Compare what stands in the chat about a run with what should. Done: the card's id. GONE: there is no card.

    Of a card or a reply that stands there twice the oldest stays. A card that somebody else changed is made to look
    like `card` again; None for one that nobody minds any more.
    """

    id: str
    channel: str
    key: str
    card: Card | None
    since: float
    post: str
    """The card as it is known; it counts even where it does not show among the posts since then."""


@dataclass(frozen=True)
class ReadAlerts:
    """Which alerts stand open in the chat, back to `since`? Done: them. Of doubles the oldest stays."""

    id: str
    channel: str
    since: float


@dataclass(frozen=True)
class PostAlert:
    """Say that something is wrong. Done: the post's id."""

    id: str
    channel: str
    key: str
    """Kind, subject and since, kept in the post's props."""
    text: str


@dataclass(frozen=True)
class EditAlert:
    """Say that it is over. Done: None. GONE where a person deleted it."""

    id: str
    post: str
    key: str
    text: str
    over: float
    """When it was over, in Unix seconds."""


@dataclass(frozen=True)
class SubmitWorkflow:
    """Create a run. Done: the Workflow. A taken name is success only if the request is ours, else EXISTS."""

    id: str
    namespace: str
    name: str
    template: str
    parameters: dict[str, str]
    request: str
    """The request annotation's text."""
    priority: int = 0
    """`spec.priority`, 0 for none: which run a queue serves first."""


@dataclass(frozen=True)
class SetSuspend:
    """Set a CronWorkflow's suspend flag and read it back. Done: the CronWorkflow as read."""

    id: str
    namespace: str
    name: str
    suspend: bool
    annotations: dict[str, str]


@dataclass(frozen=True)
class MakePlaceholder:
    """Create the pod that keeps a node of a pool up. Done: its name. The name is the request's: taken is done.

    It asks for one GPU; `until`: when it ends, in Unix seconds; `seconds`: how long it may run.
    """

    id: str
    namespace: str
    name: str
    pool: str
    until: float
    seconds: int
    user: str
    """Who asked for it."""


@dataclass(frozen=True)
class RemovePlaceholders:
    """Delete the placeholders of a pool ("" for none), and all that have ended or were to end by `before`.

    Done: the names of those that went.
    """

    id: str
    namespace: str
    pool: str
    before: float
    since: float | None = None
    """Since when the pool was kept warm, for the answer to who ended it."""


@dataclass(frozen=True)
class KeepStart:
    """Add a start to the history, if it is not there. Done: the history as it is now, as its text.

    The start's run goes on whatever comes of it.
    """

    id: str
    start: Start


@dataclass(frozen=True)
class KeepCosts:
    """Write the record of costs: one merge patch of the ConfigMap's data over the version that was read.

    `version`: "" to create it. Done: the version that it has then. CONFLICT where somebody wrote first.
    """

    id: str
    version: str
    data: dict[str, str | None]
    """What changes; None for a key that goes."""


@dataclass(frozen=True)
class OpenDialog:
    """Show a form to one person. Done: None. The trigger lives for three seconds, so it goes before everything else."""

    id: str
    trigger_id: str
    dialog: CancelDialog | StartDialog
    state: Signed


@dataclass(frozen=True)
class FollowLog:
    """Read the markers in the log of this run's test pod until told to stop; they come as `MarkersRead`."""

    uid: str
    attempt: str
    namespace: str
    workflow: str
    node: str
    """Argo's id of the node whose pod it is."""


@dataclass(frozen=True)
class StopFollowing:
    """The tests of this run are over, or somebody else follows it now."""

    uid: str


@dataclass(frozen=True)
class Answer:
    """Answer a command, a click or a dialog: a text that only the one who asked sees, "" for none.

    `errors` are for a dialog: pairs of field and text, which keep it open.
    """

    request_id: str
    text: str
    errors: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class WakeAt:
    """Come back with `Woke(key)` at `when` (Unix seconds). A later one with the same key replaces it."""

    key: str
    when: float


Effect = (
    PatchWorkflow
    | PostCard
    | EditCard
    | SayInThread
    | CheckPosts
    | ReadAlerts
    | PostAlert
    | EditAlert
    | SubmitWorkflow
    | SetSuspend
    | MakePlaceholder
    | RemovePlaceholders
    | KeepCosts
    | KeepStart
    | OpenDialog
    | FollowLog
    | StopFollowing
    | Answer
    | WakeAt
)
