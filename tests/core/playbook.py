"""A script for the core: events in, effects out, no clock and no wire.

`playbook.tell(event)` returns the effects; `playbook.done(effect, value)` and `playbook.fail(effect, trouble)` are what
the world answers. The tiny cluster in here applies JSON patches as the API server does, so that a
whole life of a run can be told in a few lines.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jsonpatch
import msgspec

from bot.core.alerting import WAKE_ALERTS
from bot.core.alerts import AlertPost, read_key
from bot.core.effects import (
    Answer,
    CheckPosts,
    EditAlert,
    EditCard,
    Effect,
    FollowLog,
    KeepStart,
    MakePlaceholder,
    OpenDialog,
    PatchWorkflow,
    PostAlert,
    PostCard,
    ReadAlerts,
    RemovePlaceholders,
    SayInThread,
    SetSuspend,
    StopFollowing,
    SubmitWorkflow,
    WakeAt,
)
from bot.core.events import EffectDone, EffectFailed, Event, Installed, LeaseWon, Trouble, Woke, WorkflowChanged
from bot.core.history import Start, merged, written
from bot.core.memory import FINALIZER
from bot.core.react import react
from bot.core.render.thread import NOTICE, called
from bot.core.settings import Settings
from bot.core.state import State
from bot.core.workflow import Workflow
from tests.phrases import NOW, SETTINGS


def _open_alerts(alerts: dict[str, tuple[str, str, bool]]) -> Iterator[AlertPost]:
    for post, (key, text, over) in alerts.items():
        found = read_key(key)
        assert found is not None
        if not over:
            yield AlertPost(post, *found, text)


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
    history: tuple[Start, ...] = ()
    alerts: dict[str, tuple[str, str, bool]] = field(default_factory=dict)
    """Key, text and whether it is over, of each alert in the chat, by its post."""

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
                said = [(k, _called(effect, k, t)) for k, t in effect.parts]
                self.thread += [(f"{effect.key}:{k}", t) for k, t in said if f"{effect.key}:{k}" not in held]
                return EffectDone(effect.id)
            case CheckPosts():
                return EffectDone(effect.id, f"post-{effect.key}")
            case WakeAt():
                self.wakes[effect.key] = effect.when
                return None
            case Answer() | FollowLog() | StopFollowing():
                return None
            case ReadAlerts():
                return EffectDone(effect.id, tuple(_open_alerts(self.alerts)))
            case PostAlert():
                post = f"alert-{len(self.alerts) + 1}"
                self.alerts[post] = effect.key, effect.text, False
                return EffectDone(effect.id, post)
            case EditAlert():
                self.alerts[effect.post] = effect.key, effect.text, True
                return EffectDone(effect.id)
            case KeepStart():
                self.history = merged(self.history, [effect.start])
                return EffectDone(effect.id, written(self.history))
            case RemovePlaceholders():
                return EffectDone(effect.id, ())
            case SubmitWorkflow() | SetSuspend() | OpenDialog() | MakePlaceholder():
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

    def look(self, seconds: float = 0.0) -> None:
        """Time passes, and the bot looks at what is wrong."""
        self.now += seconds
        self.play(self.tell(Woke(WAKE_ALERTS)))

    def said(self) -> list[str]:
        """The alerts in the chat."""
        return [text for _, text, _ in self.alerts.values()]

    def has_finalizer(self, name: str = "gpu-test-k7m2") -> bool:
        """Whether the bot still holds the object."""
        return FINALIZER in self.cluster[name]["metadata"].get("finalizers", [])

    def notices(self) -> list[str]:
        """The texts of all notices in the thread."""
        return [text for key, text in self.thread if key.endswith(":notice")]


def _called(effect: SayInThread, part: str, text: str) -> str:
    return called(text, effect.asker.user_name) if part == NOTICE and effect.asker is not None else text


def _absent_as_null(patch: list[dict[str, Any]], body: dict[str, Any]) -> list[dict[str, Any]]:
    """The API server takes a test of an absent key for null as true; the library does not."""
    kept = []
    for op in patch:
        if op["op"] == "test" and op["value"] is None and jsonpatch.JsonPointer(op["path"]).resolve(body, None) is None:
            continue
        kept.append(op)
    return kept
