"""A script for the core: events in, effects out, no clock and no wire.

`playbook.tell(event)` returns the effects; `playbook.done(effect, value)` and `playbook.fail(effect, trouble)` are what
the world answers. The tiny cluster in here applies JSON patches as the API server does, so that a
whole life of a run can be told in a few lines.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import jsonpatch
import msgspec

from bot.core.effects import (
    Answer,
    CheckPosts,
    EditCard,
    Effect,
    FollowLog,
    OpenDialog,
    PatchWorkflow,
    PostCard,
    SayInThread,
    SetSuspend,
    StopFollowing,
    SubmitWorkflow,
    WakeAt,
)
from bot.core.events import EffectDone, EffectFailed, Event, Installed, LeaseWon, Trouble, WorkflowChanged
from bot.core.memory import FINALIZER
from bot.core.react import react
from bot.core.settings import Settings
from bot.core.state import State
from bot.core.workflow import Workflow
from tests.phrases import NOW, SETTINGS


@dataclass
class Playbook:
    """A core with a cluster of its own."""

    settings: Settings = SETTINGS
    now: float = NOW
    leader: bool = True
    state: State = field(init=False)
    cluster: dict[str, dict[str, Any]] = field(default_factory=dict)
    posts: dict[str, PostCard | EditCard] = field(default_factory=dict)
    thread: list[tuple[str, str]] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    wakes: dict[str, float] = field(default_factory=dict)
    version: int = 100

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """A new process on the same world."""
        self.state = State(self.settings)
        self.tell(Installed(NOW - 86400))
        if self.leader:
            self.tell(LeaseWon())

    def tell(self, event: Event) -> list[Effect]:
        """One event into the core."""
        effects = react(self.state, event, self.now)
        self.effects += effects
        return effects

    def write(self, body: dict[str, Any]) -> Workflow:
        """Store an object, as any writer would."""
        self.version += 1
        body["metadata"]["resourceVersion"] = str(self.version)
        self.cluster[body["metadata"]["name"]] = body
        return self.read(body["metadata"]["name"])

    def read(self, name: str) -> Workflow:
        """The object as it is now."""
        return msgspec.json.decode(json.dumps(self.cluster[name]), type=Workflow)

    def see(self, body: dict[str, Any]) -> None:
        """The cluster shows an object, which keeps what the bot wrote on it; then everything owed is done."""
        held = self.cluster.get(body["metadata"]["name"])
        if held is not None:
            for key in ("annotations", "finalizers"):
                if key in held["metadata"]:
                    body["metadata"][key] = held["metadata"][key]
        self.play(self.tell(WorkflowChanged(self.write(body))))

    def play(self, effects: list[Effect]) -> None:
        """Let the world do what is asked, until nothing is asked any more."""
        todo = list(effects)
        while todo:
            effect = todo.pop(0)
            event = self.answer(effect)
            if event is not None:
                todo += self.tell(event)

    def answer(self, effect: Effect) -> EffectDone | EffectFailed | None:
        """What the world answers to one effect."""
        match effect:
            case PatchWorkflow():
                return self._patch(effect)
            case PostCard():
                self.posts[f"post-{effect.key}"] = effect
                return EffectDone(effect.id, f"post-{effect.key}")
            case EditCard():
                self.posts[effect.post] = effect
                return EffectDone(effect.id)
            case SayInThread():
                held = {key for key, _ in self.thread}
                self.thread += [(f"{effect.key}:{k}", t) for k, t in effect.parts if f"{effect.key}:{k}" not in held]
                return EffectDone(effect.id)
            case CheckPosts():
                return EffectDone(effect.id, f"post-{effect.key}")
            case WakeAt():
                self.wakes[effect.key] = effect.when
                return None
            case Answer() | FollowLog() | StopFollowing():
                return None
            case SubmitWorkflow() | SetSuspend() | OpenDialog():
                raise AssertionError("tell the answer of a command by hand")

    def _patch(self, effect: PatchWorkflow) -> EffectDone | EffectFailed:
        try:
            body = jsonpatch.apply_patch(
                self.cluster[effect.name], _absent_as_null(effect.patch, self.cluster[effect.name])
            )
        except KeyError:
            return EffectFailed(effect.id, Trouble.GONE, "not found")
        except jsonpatch.JsonPatchException:
            return EffectFailed(effect.id, Trouble.CONFLICT, "a test failed", latest=self.read(effect.name))
        return EffectDone(effect.id, self.write(body))

    def has_finalizer(self, name: str = "gpu-test-k7m2") -> bool:
        """Whether the bot still holds the object."""
        return FINALIZER in self.cluster[name]["metadata"].get("finalizers", [])

    def notices(self) -> list[str]:
        """The texts of all notices in the thread."""
        return [text for key, text in self.thread if key.endswith(":notice")]


def _absent_as_null(patch: list[dict[str, Any]], body: dict[str, Any]) -> list[dict[str, Any]]:
    """The API server takes a test of an absent key for null as true; the library does not."""
    kept = []
    for op in patch:
        if op["op"] == "test" and op["value"] is None and jsonpatch.JsonPointer(op["path"]).resolve(body, None) is None:
            continue
        kept.append(op)
    return kept
