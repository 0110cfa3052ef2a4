"""What a test can tell the pod player to do with a pod: a script is a sequence of these.

    [Pending("0/3 nodes are available: 3 Insufficient nvidia.com/gpu."), Running(), Wait("gate"),
     Outputs({"results": "{}"}), Exit(0)]

A script that ends without ``Exit`` or another end leaves the pod as it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Pending:
    """The scheduler finds no node: the pod's condition says so."""

    message: str
    reason: str = "Unschedulable"


@dataclass(frozen=True)
class Bind:
    """Put the pod on a node, as the scheduler would."""

    node: str


@dataclass(frozen=True)
class Bound:
    """Wait until the real scheduler has put the pod on a node."""

    limit: float = 30.0


@dataclass(frozen=True)
class Waiting:
    """The kubelet cannot start the containers yet: ContainerCreating, ImagePullBackOff."""

    reason: str
    message: str = ""


@dataclass(frozen=True)
class Running:
    """All containers run; the executor announces its task result, unless it has not come to that yet."""

    announced: bool = True


@dataclass(frozen=True)
class Progress:
    """The program reports how far it is, as ``N/M``."""

    text: str


@dataclass(frozen=True)
class Log:
    """The main container prints; needs a rig with kwok, and a pod that is bound to one of its nodes."""

    text: str


@dataclass(frozen=True)
class Outputs:
    """The program has written its output files; they are reported when it ends.

    None stands for a file that is missing: as with the real executor, later parameters are then not read either.
    """

    parameters: Mapping[str, str | None] = field(default_factory=dict)
    result: str | None = None
    """What the program printed, as far as another step asks for it."""


@dataclass(frozen=True)
class Exit:
    """The main container ends; the outputs are reported before that shows."""

    code: int = 0
    message: str = ""
    reason: str = ""
    """Left empty, it is Completed or Error by the code."""


@dataclass(frozen=True)
class OOMKilled:
    """The kernel ends the main container for its memory."""


@dataclass(frozen=True)
class Evicted:
    """The kubelet evicts the pod: it fails as a whole, with no word on its containers."""

    message: str = "The node was low on resource: memory."
    reported: bool = True
    """Whether the executor still gets to report. Where it does not, the controller may wait for it for minutes."""


@dataclass(frozen=True)
class NodeLost:
    """The node is gone, and its pods are removed from the API without having ended."""


@dataclass(frozen=True)
class Orphaned:
    """The node is gone, and the pod is called Failed without a word on how its containers ended."""


@dataclass(frozen=True)
class Wait:
    """Wait until the test opens a gate by ``player.release(name)``; gates stay open."""

    gate: str


@dataclass(frozen=True)
class Sleep:
    """Let real time pass, for what has to be seen in between."""

    seconds: float


@dataclass(frozen=True)
class Hang:
    """Never end by itself: only a shutdown, a deadline or a deletion ends the pod."""


Action = (
    Pending
    | Bind
    | Bound
    | Waiting
    | Running
    | Progress
    | Log
    | Outputs
    | Exit
    | OOMKilled
    | Evicted
    | NodeLost
    | Orphaned
    | Wait
    | Sleep
    | Hang
)
Script = Sequence[Action]

SUCCEED: Script = (Running(), Exit(0))
"""What happens to a pod that no script is for."""
