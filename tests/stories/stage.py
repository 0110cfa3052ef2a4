"""A stage: a cluster, a chat and a bot between them, whichever world they are of.

A story speaks these phrases only, so that the same story plays on the real services and on the embedded world. What
it saw is a transcript: the card as stored at each moment asked for, its thread, the ephemeral answers. Names and
times, which differ from night to night, are made alike before it is compared with its golden file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tests.real.rig.pod_script import Script

GOLDEN = Path(__file__).parents[1] / "golden"
CARD_KEY = "gputest_card"


@dataclass(frozen=True)
class StoredCard:
    """A card as Mattermost keeps it."""

    id: str
    message: str
    text: str
    color: str
    run: str
    """uid of its Workflow."""
    buttons: tuple[str, ...] = ()
    """Labels of its buttons."""

    def __str__(self) -> str:
        buttons = "".join(f"\n[{label}]" for label in self.buttons)
        return f"{self.message}\n[{self.color}]\n{self.text}{buttons}"


class Stage(Protocol):
    """What a story can do and see."""

    namespace: str

    @property
    def argo(self) -> str:
        """Which Argo plays, `3.7` or `4.0`: the few stories in which they differ say why."""

    async def start_bot(self) -> None: ...

    async def kill_bot(self) -> None: ...

    async def stop_bot(self) -> None: ...

    async def say(self, text: str, who: str = "anna") -> str:
        """Somebody types it in the channel of the cards; the text of the ephemeral answer, "" for none."""

    async def click(self, card: StoredCard, button: str, who: str = "anna") -> str:
        """Somebody clicks a button of a card, by its id; the text of the ephemeral answer, "" for none."""

    async def dialog(self, who: str = "anna") -> dict[str, Any]:
        """Wait for the form that was opened for somebody."""

    async def submit(self, dialog: dict[str, Any], values: dict[str, Any], who: str = "anna") -> dict[str, Any]:
        """Somebody sends a form off; what it shows of errors."""

    def script(self, step: str, actions: Script, run: str | None = None) -> None: ...

    async def release(self, gate: str) -> None: ...

    async def cards(self) -> list[StoredCard]: ...

    async def thread(self, card: StoredCard) -> list[str]: ...

    async def create(self, manifest: dict[str, Any]) -> dict[str, Any]: ...

    async def workflow(self, name: str) -> dict[str, Any] | None: ...

    async def workflows(self) -> list[dict[str, Any]]: ...

    async def patch_cron(self, name: str, patch: dict[str, Any]) -> dict[str, Any]: ...

    async def limits(self, *, run: int | None = None, warmup: int | None = None) -> None:
        """Seconds after which a whole run, or a warm-up that waits, is ended; until the story's end."""

    async def shut_down(self, run: str, strategy: str) -> None:
        """Somebody stops or terminates a run with kubectl."""

    async def delete(self, run: str) -> None:
        """Somebody deletes a run with kubectl."""

    async def retry(self, run: str) -> None:
        """`argo retry`."""

    async def resubmit(self, run: str) -> dict[str, Any]:
        """`argo resubmit`: the new Workflow."""

    async def restart(self, service: str) -> None:
        """Stop a server of the cluster and start it again: `workflow-controller`, `kube-apiserver`."""

    async def exit_step(self, run: str) -> str:
        """The program of the exit step, for which this run's pod waits, does its work; what it says that it said."""

    async def delete_post(self, card: StoredCard) -> None:
        """An admin deletes a card."""

    async def rename(self, who: str, name: str) -> None:
        """An admin gives somebody another user name."""

    async def archive_channel(self) -> None: ...

    async def restore_channel(self) -> None: ...

    async def put_bot_out(self) -> None:
        """An admin removes the bot from the channel of the cards."""

    async def let_bot_in(self) -> None: ...

    async def said(self) -> list[str]:
        """All messages of the channel that are neither cards nor replies nor the server's own, oldest first."""

    async def counted(self, metric: str, **labels: str) -> float:
        """A counter of the bot's metrics, summed over the labels that are left open."""

    async def until(self, what: str, check: Callable[[], Awaitable[Any]], limit: float = 30.0) -> Any:
        """Look again and again until `check` returns something true; return that."""


@dataclass
class Transcript:
    """What a story saw, in order."""

    stage: Stage
    lines: list[str] = field(default_factory=list)
    words: dict[str, str] = field(default_factory=dict)

    async def new_run(self, known: set[str], limit: float = 30.0) -> dict[str, Any]:
        """Wait for a Workflow that was not there before."""

        async def look() -> dict[str, Any] | None:
            fresh = [w for w in await self.stage.workflows() if w["metadata"]["uid"] not in known]
            return fresh[0] if fresh else None

        found: dict[str, Any] = await self.stage.until("a new workflow", look, limit)
        self.call(found["metadata"]["name"])
        return found

    def call(self, name: str) -> None:
        """Give a run its name in the golden file."""
        suffix = name.rsplit("-", 1)[-1]
        short = suffix[-5:] if suffix.isdigit() and len(suffix) > 5 else suffix
        number = len({v for v in self.words.values() if v.startswith("RUN")}) // 2 + 1
        self.words[name] = f"RUN-NAME-{number}"
        self.words[short] = f"RUN{number}"

    async def card(self, uid: str, title: str, shows: str, limit: float = 30.0) -> StoredCard:
        """Wait until the card of that run shows these words, and write it down."""

        async def look() -> StoredCard | None:
            cards = [c for c in await self.stage.cards() if c.run == uid]
            assert len(cards) <= 1, f"{len(cards)} cards of one run"
            return cards[0] if cards and shows in str(cards[0]) else None

        card: StoredCard = await self.stage.until(f"a card that shows {shows!r}", look, limit)
        self.note(title, str(card))
        return card

    async def thread(self, card: StoredCard, replies: int) -> list[str]:
        """Wait until the thread has so many replies, and write them down."""

        async def look() -> tuple[list[str]] | None:
            found = await self.stage.thread(card)
            return (found,) if len(found) >= replies else None

        (texts,) = await self.stage.until(f"{replies} replies", look)
        for number, text in enumerate(texts, 1):
            self.note(f"reply {number}", text)
        assert len(texts) == replies
        return texts

    async def let_go(self, name: str) -> dict[str, Any]:
        """Wait until the bot holds the Workflow no more."""

        async def look() -> dict[str, Any] | None:
            body = await self.stage.workflow(name)
            return body if body is not None and not body["metadata"].get("finalizers") else None

        released: dict[str, Any] = await self.stage.until("the finalizer is gone", look)
        return released

    def note(self, title: str, text: str) -> None:
        """Write something down, once."""
        block = f"## {title}\n{text}\n"
        if not self.lines or self.lines[-1] != block:
            self.lines.append(block)

    def matches(self, name: str) -> None:
        """Compare with the golden file; `GOLDEN=write` writes it instead."""
        text = alike("\n".join(self.lines), self.words)
        path = GOLDEN / f"{name}.md"
        if os.environ.get("GOLDEN") == "write":
            path.write_text(text, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == text


def alike(text: str, words: dict[str, str]) -> str:
    """Names, times and lengths replaced by what they stand for; trailing spaces made visible as breaks."""
    for word in sorted(words, key=len, reverse=True):
        text = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", words[word], text)
    # when the pods' watch tells of a step is chance; stories of their own look at the way to a GPU
    text = re.sub(r"^(?:Warm-up|Warm start)[ :][^\n]*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"\b\d\d:\d\d (UTC|CET|CEST)\b", r"HH:MM \1", text)
    text = re.sub(r"\b(?:\w{3} )?\d{1,2} [A-Z]\w{2} HH:MM", "DAY HH:MM", text)
    text = re.sub(r"\b\d+ s, (ended|until)\b", r"TIME, \1", text)
    text = re.sub(r"(green), \d+ s\b", r"\1, TIME", text)
    return re.sub(r" +$", "", text, flags=re.MULTILINE)
