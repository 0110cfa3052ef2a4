"""What the embedded world itself saw of each run, and what the chat then owes: an account that asks the bot nothing.

The store tells every change of a Workflow, the chat keeps every post that there ever was. Of a run that was ours:

    one card, unless it was started with notify=false
    one notice for each end of each attempt, but for who stopped their own run
    no finalizer, no card in mid-air, once all has come to rest

What cannot be owed is known by what the world allowed: a run that was gone, or an end that was overwritten by a retry,
before a bot that was well had the time to see it.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from bot.demo import EmbeddedWorld
from bot.demo.kinds import WORKFLOWS
from bot.demo.world import Change

Json = dict[str, Any]
TEMPLATE = "gpu-test-pipeline"
FINALIZER = "gputest.bot/report"
CARD, REPLY, ANSWER = "gputest_card", "gputest_reply", "gputest_answer"
ENDED = ("Succeeded", "Failed", "Error")
FINAL_MARKS = "✅❌🧱🚫⌛💤❔"
"""How the card of an ended run begins."""

TIME_TO_SEE = 10.0
"""Real seconds that a bot that is well may take until it has written down what it saw."""


def real_now() -> float:
    """Seconds of a clock that only runs on."""
    return time.monotonic()


class Health:
    """When bot and servers were well, and the bot might speak."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._spans: list[tuple[float, float]] = []

    def note(self, *, well: bool) -> None:
        """Say how it is now; to be called often."""
        now = real_now()
        if well and self._since is None:
            self._since = now
        elif not well and self._since is not None:
            self._spans.append((self._since, now))
            self._since = None

    def seconds(self, begin: float, end: float) -> float:
        """For how long all was well between two times."""
        spans = [*self._spans, *([(self._since, real_now())] if self._since is not None else [])]
        return sum(max(0.0, min(end, last) - max(begin, first)) for first, last in spans)


@dataclass
class Life:
    """One Workflow from its making to its end, and beyond."""

    uid: str
    name: str
    notify: bool
    asked_by: str
    """Id of the user who asked in the chat, "" for nobody."""
    latest: Json
    began: dict[str, float] = field(default_factory=dict)
    """Attempt (its startedAt, "" before the first) -> when it was first there."""
    held: set[str] = field(default_factory=set)
    """Attempts in which our finalizer was on it."""
    gone: float = 0.0
    ends: dict[str, float] = field(default_factory=dict)
    """Attempt -> when its end was first there."""
    overwritten: dict[str, float] = field(default_factory=dict)
    """Attempt that ended -> when the next one began."""
    journal: dict[str, str] = field(default_factory=dict)
    """Attempt -> verdict, as it was written down on the object."""
    stopped_by: dict[str, str] = field(default_factory=dict)
    """Attempt -> id of the user who stopped it from the chat."""

    @property
    def attempt(self) -> str:
        """The present one, "" before the first."""
        return str((self.latest.get("status") or {}).get("startedAt") or "")

    @property
    def is_at_rest(self) -> bool:
        """Nothing will happen to it any more, and nobody holds it."""
        ended = (self.latest.get("status") or {}).get("phase") in ENDED
        return bool(self.gone) or (ended and FINALIZER not in (self.latest["metadata"].get("finalizers") or ()))


class Record:
    """Listens to a world and keeps account."""

    def __init__(self, world: EmbeddedWorld) -> None:
        self.lives: dict[str, Life] = {}
        self.health = Health()
        self.commands: dict[str, float] = {}
        """Posts that ask something of the bot -> when they were typed."""
        self._world = world
        world.cluster.store.subscribe(self._on_change)

    def _on_change(self, change: Change) -> None:
        obj, now = change.object, real_now()
        if change.kind != WORKFLOWS or (obj["spec"].get("workflowTemplateRef") or {}).get("name") != TEMPLATE:
            return
        meta = obj["metadata"]
        notes = meta.get("annotations") or {}
        life = self.lives.get(meta["uid"])
        if life is None:
            request = _own(notes, "request", "name", meta["name"])
            life = self.lives[meta["uid"]] = Life(
                meta["uid"], meta["name"], _notifies(obj), str(request.get("user_id", "")), obj
            )
        before, ended = life.attempt, bool(life.attempt in life.ends)
        life.latest = obj
        life.began.setdefault(life.attempt, now)
        if FINALIZER in (meta.get("finalizers") or ()):
            life.held.add(life.attempt)
        if ended and life.attempt != before:
            life.overwritten.setdefault(before, now)
        ends = (obj.get("status") or {}).get("phase") in ENDED and life.attempt not in life.ends
        if ends:
            life.ends[life.attempt] = now
        if ends or change.type == "DELETED":
            cancelled = json.loads(notes.get("gputest.bot/cancelled") or "{}")
            # before it began the attempt had no name
            if obj["spec"].get("shutdown") and cancelled.get("attempt") in ("", life.attempt):
                life.stopped_by.setdefault(life.attempt, cancelled["user_id"])
        for entry in _own(notes, "run", "uid", life.uid).get("journal") or ():
            life.journal[entry["attempt"]] = entry["verdict"]
        if change.type == "DELETED":
            life.gone = now

    def under_way(self) -> list[Life]:
        """The runs that are there and have not ended."""
        return [
            life
            for life in self.lives.values()
            if not life.gone and (life.latest.get("status") or {}).get("phase") not in ENDED
        ]

    def restless(self) -> list[str]:
        """What is still on its way, or held."""
        return [life.name for life in self.lives.values() if not life.is_at_rest]

    def complaints(self) -> list[str]:
        """All that is missing or too much, of every run and of every command that was a post."""
        ours = self._ours()
        found = [line for life in self.lives.values() for line in self._of_run(life, ours)]
        return found + self._of_commands(ours)

    def _ours(self) -> list[Json]:
        """All that the bot ever posted, deleted or not, but for earlier versions of what was edited."""
        bot = self._world.chat.user_id("bot")
        return [p for p in self._world.chat.state.posts.values() if p["user_id"] == bot and not p.get("original_id")]

    def _of_run(self, life: Life, ours: list[Json]) -> list[str]:
        cards = [p for p in ours if str(p["props"].get(CARD, "")).startswith(f"{life.uid}:") and not p["delete_at"]]
        keys = [str(p["props"].get(REPLY, "")) for p in ours if self._counts(p)]
        said = Counter(key.removeprefix(f"{life.uid}:") for key in keys if key.startswith(f"{life.uid}:"))
        notices = Counter({k.removesuffix(":notice"): n for k, n in said.items() if k.endswith(":notice")})
        found = [f"held for ever: {life.latest['metadata']['finalizers']}"] if not life.is_at_rest else []
        if not life.notify:
            found += [f"{len(cards)} cards and {said.total()} replies of a silent run"] if cards or said else []
            return [f"{life.name}: {line}" for line in found]
        if not self._was_missed(life):
            found += [f"{len(cards)} cards"] if len(cards) != 1 else []
            early = [p for p in cards if p["message"][:1] not in FINAL_MARKS and not self._is_excused(life, p)]
            found += [f"a card in mid-air: {p['message']}" for p in early]
        elif len(cards) > 1:
            found.append(f"{len(cards)} cards of a run that was gone before it was seen")
        found += [f"said {n} times: {part}" for part, n in said.items() if n > 1]
        owed = self._owed(life)
        if notices[""] and "" not in owed and life.latest["metadata"].get("deletionTimestamp"):
            # told as deleted in the queue, and Argo began it and ended it before it could be let go
            owed = {"": (1,)} | dict.fromkeys(owed, (0,))
        for attempt in owed.keys() | notices.keys():
            wanted = owed.get(attempt, (0,))
            if notices[attempt] not in wanted:
                found.append(f"{notices[attempt]} notices of attempt {attempt!r}, owed {wanted}")
        return [f"{life.name} ({life.uid}): {line}" for line in found]

    def _counts(self, reply: Json) -> bool:
        """Whether a reply was one too many where there is another: also one that was removed has rung."""
        return True

    def _is_excused(self, life: Life, card: Json) -> bool:
        """Whether nobody can have known that this card does not show the end."""
        return False

    def _was_missed(self, life: Life) -> bool:
        """Whether nobody could have seen it at all."""
        return all(self._was_unseen(life, attempt) for attempt in life.began)

    def _was_unseen(self, life: Life, attempt: str) -> bool:
        """Whether nobody could have seen that attempt: never held, and soon gone."""
        seen = attempt in life.held or not life.gone
        return not seen and self.health.seconds(life.began[attempt], life.gone) < TIME_TO_SEE

    def _owed(self, life: Life) -> dict[str, tuple[int, ...]]:
        """Attempt -> how many notices there may be of it."""
        owed: dict[str, tuple[int, ...]] = {}
        attempts = dict(life.ends)
        if life.gone and life.attempt not in attempts:
            attempts[life.attempt] = life.gone  # it went, and never ended
        for attempt, at in attempts.items():
            own = life.asked_by and life.stopped_by.get(attempt) == life.asked_by
            if self._was_unseen(life, attempt):
                owed[attempt] = (0, 1)
            elif own and life.journal.get(attempt) == "cancelled":
                owed[attempt] = (0,)
            elif attempt in life.overwritten and attempt not in life.journal:
                unseen = self.health.seconds(at, life.overwritten[attempt]) < TIME_TO_SEE
                owed[attempt] = (0,) if unseen else (1,)
            else:
                owed[attempt] = (1,)
        return owed

    def _of_commands(self, ours: list[Json]) -> list[str]:
        answers = Counter(p["root_id"] for p in ours if p["props"].get(ANSWER) and not p["delete_at"])
        found = [f"post {post} was answered {n} times" for post, n in answers.items() if n > 1]
        for post, at in self.commands.items():
            if not answers[post] and self.health.seconds(at, at + TIME_TO_SEE) >= TIME_TO_SEE:
                text = self._world.chat.state.posts[post]["message"]
                found.append(f"post {post} was not answered: {text!r}")
        return found

    def summary(self) -> str:
        """What there was, counted."""
        lives = self.lives.values()
        ours = self._ours()
        count = {
            "runs": len(lives),
            "of them silent": sum(not life.notify for life in lives),
            "never seen": sum(self._was_missed(life) for life in lives),
            "ends": sum(len(life.ends) for life in lives),
            "ends overwritten unseen": sum(a not in life.journal for life in lives for a in life.overwritten),
            "cards": sum(bool(p["props"].get(CARD)) for p in ours),
            "cards removed": sum(bool(p["props"].get(CARD)) and bool(p["delete_at"]) for p in ours),
            "notices": sum(str(p["props"].get(REPLY, "")).endswith(":notice") for p in ours),
            "commands as posts": len(self.commands),
            "seconds all was well": round(self.health.seconds(0.0, real_now())),
        }
        return ", ".join(f"{number} {what}" for what, number in count.items())


def _own(notes: Json, key: str, field_name: str, mine: str) -> Json:
    """An annotation that names this very object; {} where there is none, or one that was copied."""
    found: Json = json.loads(notes.get(f"gputest.bot/{key}") or "{}")
    return found if found.get(field_name) == mine else {}


def _notifies(obj: Json) -> bool:
    parameters = (obj["spec"].get("arguments") or {}).get("parameters") or ()
    return all(str(one.get("value")).lower() != "false" for one in parameters if one["name"] == "notify")
