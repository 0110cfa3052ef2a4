"""Somebody who does anything at all: types, clicks, fills in forms, uses kubectl, and breaks things.

What it does is decided by dice of a seed, so that a seed tries the same things again; how they meet depends on the
machine's pace. It goes on as a person would: a page that is offline is not typed into, and what was broken is mended
after some seconds.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from bot.demo.argo_retry import CannotRetry
from bot.demo.chat_errors import ChatError
from bot.demo.faults import Fault, Faults
from bot.demo.panel import BadDeed
from bot.demo.status import ApiError
from bot.play import Play
from tests.soak.record import ENDED, Record, real_now

Json = dict[str, Any]
LINES = Path(__file__).parents[1] / "core" / "command_lines.tsv"
"""Whatever anybody was ever thought to type."""

RUNS = (
    "/gputest dqn scope=lib",
    "/gputest ppo kan scope=lib epochs=2",
    "/gputest models=all epochs=5",
    "/gputest tft scope=lib pool=ci-training",
    "/gputest dqn scope=lib notify=false",
    "/gputest rerun",
    "/gputest rerun failed",
)
QUESTIONS = (
    *("/gputest", "/gputest help", "/gputest status", "/gputest list", "/gputest cancel", "/gpu", "/gpu queue"),
    *("/gpu pools", "/nightly enable", "/nightly disable", "/nightly status", "/nightly", "/gputest status {run}"),
    *("/gputest cancel {run}", "/gputest rerun {run}"),
)
KNOWN = ("/gputest", "/gpu", "/nightly")
"""Others the chat refuses by itself."""

AT_ONCE = 3
"""Runs that are under way together: one runs, the others wait for its lock."""

HICCUPS: dict[str, Callable[[Faults, int], Fault]] = {
    "dropped": lambda faults, times: faults.drop(times=times),
    "POST dropped after it was done": lambda faults, times: faults.drop_after_commit(method="POST", times=times),
    "PATCH dropped after it was done": lambda faults, times: faults.drop_after_commit(method="PATCH", times=times),
    "PUT dropped after it was done": lambda faults, times: faults.drop_after_commit(method="PUT", times=times),
    "503": lambda faults, times: faults.fail(503, times=times),
    "a proxy's page": lambda faults, times: faults.fail(502, body="<html>Bad gateway</html>", times=times),
    "429": lambda faults, times: faults.too_many(1, times=times),
}
"""Single requests that go wrong."""

PAUSE_SECONDS = 0.06
LONGEST_FAULT = 4.0


class RandomUser:
    """Does one thing after the other, and writes down what came of it."""

    def __init__(self, play: Play, record: Record, seed: int) -> None:
        self.diary: list[str] = []
        self.complaints: list[str] = []
        """What nobody should ever see."""
        self.done = 0
        self._play, self._world, self._record = play, play.world, record
        self._dice = random.Random(seed)
        self._began = real_now()
        self._mend_at: dict[str, tuple[float, Callable[[], object]]] = {}
        """What is broken -> when it will be mended, and how."""
        typed = [line.split("\t")[1] for line in LINES.read_text(encoding="utf-8").splitlines() if "\t/" in line]
        self._lines = [line for line in typed if line.startswith(KNOWN)]
        self._deeds: list[tuple[int, Callable[[], Awaitable[str]]]] = [
            (16, self.start_a_run),
            (12, self.ask),
            (8, self.type_anything),
            (6, self.post_a_command),
            (20, self.click),
            (16, self.fill_in),
            (8, self.submit),
            (4, self.shut_down),
            (2, self.delete),
            (6, self.retry),
            (2, self.resubmit),
            (2, self.delete_a_pod),
            (2, self.do_something),
            (2, self.change_speed),
            (1, self.throw_a_switch),
            (1, self.hiccup),
        ]

    async def walk(self, seconds: float) -> None:
        """Go on for so long, then mend everything."""
        weights = [weight for weight, _ in self._deeds]
        until = real_now() + seconds
        while real_now() < until:
            (chosen,) = self._dice.choices(self._deeds, weights)
            await self._do(chosen[1])
            await self._mend(real_now())
            self._note_health()
            await asyncio.sleep(self._dice.expovariate(1 / PAUSE_SECONDS))
        await self._mend(float("inf"))
        self._note_health()

    async def _do(self, deed: Callable[[], Awaitable[str]]) -> None:
        before = self._play.bot.condition
        try:
            came = await deed()
        except (ApiError, BadDeed, CannotRetry, LookupError) as error:
            came = f"not possible: {error}"
        except ChatError as error:
            came = f"the chat said {error.code}, {error.id}: {error}"
            if before == self._play.bot.condition == "running":
                self.complaints.append(f"{deed.__name__}: {came}")
        self.done += 1
        self._write(f"{deed.__name__}: {came}")

    def _write(self, line: str) -> None:
        self.diary.append(f"{real_now() - self._began:8.2f}  {self._world.clock.now():%d %H:%M:%S}  {line}")

    def _note_health(self) -> None:
        bot = self._play.bot._bot if self._play.bot.condition == "running" else None
        speaks = bot is not None and bot.loop.state.leader
        listens = bot is not None and bot._posts is not None and bot._posts._connected and not bot._posts._gap
        self._record.health.note(well=speaks and listens and not self._mend_at)

    async def _mend(self, now: float) -> None:
        for name in [name for name, (due, _) in self._mend_at.items() if due <= now]:
            _, mend = self._mend_at.pop(name)
            mending = mend()
            if isinstance(mending, Awaitable):
                await mending
            self._write(f"mended: {name}")

    # in the chat

    def _who(self) -> str:
        return self._dice.choices(["dev", "viewer"], [5, 1])[0]

    async def _say(self, line: str, channel: str = "gpu-tests", who: str = "") -> str:
        if self._world.chat_faults.is_away:
            return "the page is offline"
        who = who or self._who()
        said = await self._world.chat.say(who, channel, line)
        if not line.startswith("/"):
            self._record.commands[said.response["id"]] = real_now()
        return f"{who} {line!r} → {said.text[:90]!r}"

    def _any_run(self) -> str:
        lives = list(self._record.lives.values())[-8:]
        return self._dice.choice(lives).name if lives else "none"

    def _full(self) -> bool:
        return len(self._record.under_way()) >= AT_ONCE

    async def start_a_run(self) -> str:
        return "enough runs" if self._full() else await self._say(self._dice.choice(RUNS))

    async def ask(self) -> str:
        line = self._dice.choice(QUESTIONS)
        if "rerun" in line and self._full():
            return "enough runs"
        return await self._say(line.format(run=self._any_run().rsplit("-", 1)[-1]))

    async def type_anything(self) -> str:
        return "enough runs" if self._full() else await self._say(self._dice.choice(self._lines))

    async def post_a_command(self) -> str:
        line = self._dice.choice([*QUESTIONS, *([] if self._full() else RUNS)]).removeprefix("/gputest ").strip()
        if line.startswith("/") or "rerun" in line:
            line = "status"
        line = line.format(run=self._any_run().rsplit("-", 1)[-1])
        if self._dice.random() < 0.3:
            return await self._say(line, "@gputest", "dev")
        return await self._say(f"@gputest {line}")

    async def click(self) -> str:
        if self._world.chat_faults.is_away:
            return "the page is offline"
        cards = [card for card in self._world.chat.cards()[-8:] if card["props"].get("attachments")]
        buttons = [
            (card["id"], one["name"]) for card in cards for one in card["props"]["attachments"][0].get("actions") or ()
        ]
        if not buttons:
            return "no buttons"
        card, name = self._dice.choice(buttons)
        if self._full() and "Cancel" not in name:
            return "enough runs"
        who, times = self._who(), self._dice.choice([1, 1, 2])
        came = await asyncio.gather(*(self._world.chat.click(who, card, name) for _ in range(times)))
        return f"{who} {name!r} of {card} × {times} → {came[0].text[:90]!r}, {len(came[0].dialogs)} forms"

    async def fill_in(self) -> str:
        if self._world.chat_faults.is_away:
            return "the page is offline"
        open_for = [who for who, dialogs in self._world.chat.dialogs.items() if dialogs]
        if not open_for:
            return "no form"
        who = self._dice.choice(open_for)
        form = self._world.chat.dialogs[who][-1]["dialog"]
        if self._dice.random() < 0.2 or (self._full() and form.get("elements")):
            self._world.chat.dialogs[who].pop()
            return f"{who} closed {form['title']!r}"
        values = {one["name"]: self._value(one) for one in form.get("elements") or ()}
        said = await self._world.chat.submit(who, values)
        if said.response:
            self._world.chat.dialogs[who].pop()
        return f"{who} {form['title']!r} {values} → {said.response}"

    def _value(self, element: Json) -> str:
        options = [one["value"] for one in element.get("options") or ()]
        if options:
            return str(self._dice.choice(options))
        return str(
            self._dice.choice([element.get("default") or "", element.get("default") or "", "all", "2", "0", "x|y"])
        )

    # with kubectl and argo

    def _run(self, *, ended: bool) -> str:
        found = self._world.cluster.workflows()
        names = [one["metadata"]["name"] for one in found if ((one.get("status") or {}).get("phase") in ENDED) is ended]
        if not names:
            raise LookupError("no such run")
        return self._dice.choice(names)

    async def submit(self) -> str:
        if self._full():
            return "enough runs"
        return self._world.cluster.submit(
            models="dqn", test_scope="lib", notify=self._dice.choice(["true", "true", "false"])
        )

    async def shut_down(self) -> str:
        name, stop = self._run(ended=False), self._dice.random() < 0.5
        (self._world.cluster.stop if stop else self._world.cluster.terminate)(name)
        return f"{'stop' if stop else 'terminate'} {name}"

    async def delete(self) -> str:
        if self._play.page.panel.view()["clock"]["skipping"]:
            # an Argo that does not react to it for two minutes is taken for gone: six milliseconds in that hurry
            return "the clock hurries"
        name = self._run(ended=self._dice.random() < 0.4)
        self._world.cluster.delete(name)
        return name

    async def retry(self) -> str:
        name = self._run(ended=True)
        self._world.cluster.retry(name)
        return name

    async def resubmit(self) -> str:
        return "enough runs" if self._full() else self._world.cluster.resubmit(self._run(ended=True))

    async def delete_a_pod(self) -> str:
        name = self._run(ended=False)
        self._world.cluster.delete_pod(name)
        return name

    # in the side panel, and beyond it

    async def throw_a_switch(self) -> str:
        names = [name for name, on in self._play.page.panel.view()["switches"].items() if not on]
        name = self._dice.choice(names)
        await self._play.page.panel.switch(name, True)
        self._break(name, partial(self._play.page.panel.switch, name, False))
        return name

    async def do_something(self) -> str:
        name = self._dice.choice([*["api-gone", "lose-node"] * 4, "skip-to-night"])
        return f"{name}: {self._play.page.panel.do(name)}"

    async def change_speed(self) -> str:
        speed = self._dice.choice(self._play.page.panel.view()["clock"]["speeds"][1:])
        self._play.page.panel.set_speed(speed)
        return f"{speed:g}"

    async def hiccup(self) -> str:
        """What no switch does: single requests that fail, or whose answers get lost."""
        where, faults = self._dice.choice([("chat", self._world.chat_faults), ("cluster", self._world.kube_faults)])
        kind, times = self._dice.choice(list(HICCUPS)), self._dice.randint(1, 4)
        fault = HICCUPS[kind](faults, times)
        self._break(f"{where}: {kind}", fault.release)
        return f"{where}: {kind} × {times}"

    def _break(self, name: str, mend: Callable[[], object]) -> None:
        self._mend_at[name] = (real_now() + self._dice.uniform(0.1, LONGEST_FAULT), mend)
        self._note_health()
