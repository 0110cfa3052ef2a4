"""A trial: the stage of the stories, bots that can be killed at any call, and the chat's own store to count in.

Between each bot and its two servers stand proxies, which can end the bot at a request, before or after the server has
taken it. What is counted is counted in Mattermost's database and in the Workflow itself; no bot is asked.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from tests.phrases import green, results, suite
from tests.real.proxy import Proxy
from tests.real.rig.kube_client import ARGO, KubeError
from tests.real.rig.launcher import BOT_NAMESPACE, Rig
from tests.real.rig.pod_script import Exit, Outputs, Running, Script, Wait
from tests.real.rig.ports import free_ports
from tests.real.stage import ROOT, RealStage
from tests.real.store import Said, Store

SWEEP, SETTLE = 2.0, 1.0
"""Seconds between two sweeps, and until an unanswered request can't take effect any more, in these tests."""

EXIT_TOKEN = "exit-token-of-the-trial"

DELETION = 3.0
"""Seconds that a deleted run may take to end."""

WORKFLOWS = f"{ARGO}/namespaces/foxhunt/workflows"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{BOT_NAMESPACE}/leases"
CONFIG_MAPS = f"/api/v1/namespaces/{BOT_NAMESPACE}/configmaps"
ENDED = {"Succeeded", "Failed", "Error"}

RED = results(
    [
        suite("dqn", status="failed", failed_tests=["loses_money"]),
        suite("kan"),
        suite("shared", "core"),
        suite("shared", "bayesian"),
    ]
)
"""One of two models failed: a card, a reply and a notice."""


def red(gate: str = "") -> Script:
    """A test pod that ends with one model red."""
    return [Running(), *([Wait(gate)] if gate else []), Outputs({"results": RED}), Exit(1)]


def passing(gate: str = "", models: str = "dqn,kan") -> Script:
    """A test pod that ends with all green."""
    return [Running(), *([Wait(gate)] if gate else []), Outputs({"results": green(models)}), Exit(0)]


class BotProcess:
    """One bot, as a process of its own."""

    def __init__(self, trial: Trial, name: str, port: int) -> None:
        self._trial = trial
        self.name = name
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.log = trial.folder / f"{name}.log"
        self._process: asyncio.subprocess.Process | None = None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self, *, leads: bool = True, waits: bool = True, **overrides: Any) -> None:
        """Start it, and wait until it is ready, and until it leads. `overrides` by section of config.yaml."""
        if self.alive:
            return
        path = self._trial.folder / f"{self.name}.yaml"
        path.write_text(yaml.safe_dump(self._trial.config(self.url, self.port, overrides)), encoding="utf-8")
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *("setpriv", "--pdeathsig", "KILL", "--", sys.executable, "-m", "bot", "run", "--config", str(path)),
                cwd=ROOT,
                env=self._trial.environment(),
                stderr=log,
            )
        if waits:
            await self._trial.until(f"{self.name} is ready", lambda: self._ready(leads), 40)

    async def _ready(self, leads: bool) -> bool:
        if not self.alive:
            raise AssertionError(f"{self.name} ended by itself:\n{self.tail()}")
        found = await self.readiness()
        return bool(found.get("ready")) and (bool(found.get("leader")) or not leads)

    async def readiness(self) -> dict[str, Any]:
        """What it says of itself, nothing where it does not answer."""
        try:
            async with self._trial.rig.session.get(
                f"{self.url}/readyz", timeout=aiohttp.ClientTimeout(total=2)
            ) as response:
                found: dict[str, Any] = await response.json()
                return found
        except (aiohttp.ClientError, TimeoutError):
            return {}

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it is there."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once, as a crash would; does not wait."""
        self.send(signal.SIGKILL)

    async def gone(self, limit: float = 20.0) -> int:
        """Wait until it has ended; its exit status."""
        if self._process is None:
            return 0
        return await asyncio.wait_for(self._process.wait(), limit)

    async def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it and wait until it is gone."""
        self.send(signal.SIGCONT)
        self.send(number)
        await self.gone()

    async def command(self, text: str, who: str = "anna", **form: str) -> dict[str, Any]:
        """What Mattermost sends to it for a slash command, sent directly; its answer."""
        trigger, _, rest = text.partition(" ")
        person = self._trial.stage.people[who]
        fields = {
            "token": self._trial.stage._tokens[0],
            "team_id": self._trial.stage.team,
            "channel_id": self._trial.stage.channel,
            "user_id": person.user_id,
            "user_name": who,
            "command": trigger,
            "text": rest,
            "trigger_id": f"trigger-{time.monotonic_ns()}",
        }
        async with self._trial.rig.session.post(f"{self.url}/commands", data=fields | form) as response:
            assert response.status == 200
            answer: dict[str, Any] = await response.json()
            return answer

    def tail(self, size: int = 5000) -> str:
        """The end of its log."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-size:] if self.log.exists() else ""


class Trial:
    """Everything that a test of this folder needs; one for all of them."""

    def __init__(self, stage: RealStage, kube: Proxy, chat: Proxy, folder: Path) -> None:
        self.stage = stage
        self.rig: Rig = stage.rig
        self.kube = kube
        self.chat = chat
        self.folder = folder
        self.store = Store(self.rig.mattermost.database, stage.account.user_id)
        self.bot = BotProcess(self, "bot", stage.port)
        """The one that Mattermost calls for slash commands."""
        self.other = BotProcess(self, "other", free_ports(1)[0])
        self.numbers = 0

    def config(self, url: str, port: int, overrides: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """The configuration of a bot: that of the stories, by way of the proxies."""
        config = self.stage.config()
        original = json.loads(Path(config["kubernetes"]["kubeconfig"]).read_text())
        original["clusters"][0]["cluster"] = {"server": self.kube.url}
        path = self.folder / "proxied.kubeconfig"
        path.write_text(json.dumps(original))
        config["kubernetes"]["kubeconfig"] = str(path)
        config["mattermost"]["url"] = self.chat.url
        config["bot"] |= {"port": port, "url": url}
        config["runs"] |= {"sweep_seconds": SWEEP, "settle_seconds": SETTLE, "deletion_seconds": DELETION}
        config["runs"] |= {"commands_per_minute": 500, "linger_seconds": 15.0}
        config["runs"] |= {"cost_write_seconds": 0.5, "cost_keep_seconds": 4.0}
        for section, values in overrides.items():
            config[section] |= values
        return config

    def command_line(self, command: str) -> list[str]:
        """The bot's command line, by way of the proxies."""
        path = self.folder / "command.yaml"
        path.write_text(yaml.safe_dump(self.config(self.bot.url, self.bot.port, {})), encoding="utf-8")
        return [sys.executable, "-m", "bot", command, "--config", str(path)]

    def environment(self) -> dict[str, str]:
        """The environment of a bot: its secrets."""
        stage = self.stage
        return {
            **os.environ,
            "GPUTEST_MATTERMOST_TOKEN": stage.account.token,
            "GPUTEST_COMMAND_TOKENS": " ".join(stage._tokens),
            "GPUTEST_EXIT_TOKEN": EXIT_TOKEN,
        }

    async def restart(self, **overrides: Any) -> None:
        """Start a bot that was killed, as a container that comes up again under its old name: it need not wait."""
        await self.bot.gone()
        await self.free_lease()
        await self.bot.start(**overrides)

    async def free_lease(self) -> None:
        """Let nobody hold the Lease."""
        try:
            await self.rig.kube.admin.merge(f"{LEASES}/gputest-bot", {"spec": {"holderIdentity": ""}})
        except KubeError as error:
            if error.status != 404:
                raise

    async def alone(self) -> None:
        """The one bot runs and leads, and no other."""
        await self.other.end(signal.SIGKILL)
        if not self.bot.alive:
            await self.restart()

    async def reset(self) -> None:
        """Forget what the test before has set up."""
        self.kube.clear()
        self.chat.clear()
        for bot in (self.bot, self.other):
            bot.send(signal.SIGCONT)
        self.stage.reset()

    async def until(self, what: str, check: Callable[[], Awaitable[Any]], limit: float = 20.0) -> Any:
        """Look again and again until `check` returns something true; return that."""
        try:
            async with asyncio.timeout(limit):
                while not (seen := await check()):
                    await asyncio.sleep(0.05)
        except TimeoutError:
            logs = "\n".join(f"--- {bot.name}\n{bot.tail()}" for bot in (self.bot, self.other) if bot.log.exists())
            raise AssertionError(f"not within {limit:g} s: {what}\n{logs}") from None
        return seen

    # workflows

    async def submit(self, name: str = "", *, born: bool = False, **spec: Any) -> dict[str, Any]:
        """A Workflow by the plain API; `born`: with our finalizer, as CI's and the nightly's are."""
        self.numbers += 1
        metadata: dict[str, Any] = {"name": name or f"by-hand-{self.numbers:03}"}
        metadata |= {"finalizers": ["gputest.bot/report"]} if born else {}
        return await self.stage.create(
            {
                "apiVersion": "argoproj.io/v1alpha1",
                "kind": "Workflow",
                "metadata": metadata,
                "spec": {
                    "workflowTemplateRef": {"name": "gpu-test-pipeline"},
                    "arguments": {"parameters": [{"name": "models", "value": "dqn,kan"}]},
                    **spec,
                },
            }
        )

    async def phase(self, name: str, *phases: str, limit: float = 20.0) -> dict[str, Any]:
        """Wait until a Workflow is in one of these phases."""

        async def look() -> dict[str, Any] | None:
            body = await self.stage.workflow(name)
            assert body is not None, f"{name} is gone"
            return body if body.get("status", {}).get("phase") in phases else None

        found: dict[str, Any] = await self.until(f"{name} is {' or '.join(phases)}", look, limit)
        return found

    async def second_after(self, moment: str) -> None:
        """Wait until the second of a time in RFC 3339 is over."""

        async def over() -> bool:
            return time.time() >= datetime.fromisoformat(moment).timestamp() + 1

        await self.until("the next second", over)

    async def made_since(self, known: set[str]) -> list[dict[str, Any]]:
        """The Workflows that were not there before."""
        return [w for w in await self.stage.workflows() if w["metadata"]["uid"] not in known]

    async def uids(self) -> set[str]:
        """The Workflows that are there."""
        return {w["metadata"]["uid"] for w in await self.stage.workflows()}

    # what is owed

    async def said(self, run: dict[str, Any]) -> Said:
        """What stands in the store about a run."""
        return await self.store.about(run["metadata"]["uid"])

    async def shows(self, run: dict[str, Any], words: str, limit: float = 20.0) -> Said:
        """Wait until the card of a run shows these words."""

        async def look() -> Said | None:
            said = await self.said(run)
            return said if said.cards and words in said.cards[0].text else None

        found: Said = await self.until(f"the card of {run['metadata']['name']} shows {words!r}", look, limit)
        return found

    async def reported(
        self,
        run: dict[str, Any],
        words: str,
        *,
        notices: int = 1,
        removed: int = 0,
        limit: float = 2 * SWEEP + 2.0,
    ) -> Said:
        """Wait until a run is let go; then there is exactly one card, which shows these words, and each notice once.

        `removed`: how many posts about it were deleted, by a person or as doubles; none by itself.
        """
        name = run["metadata"]["name"]

        async def look() -> Said | None:
            body = await self.stage.workflow(name)
            if body is not None and body["metadata"].get("finalizers"):
                return None
            said = await self.said(run)
            return said if len(said.notices) >= notices and not said.doubles else None

        said: Said = await self.until(f"{name} is let go, with {notices} notices", look, limit)
        self.is_exactly(said, words, notices, removed)
        return said

    async def reported_in_silence(self, run: dict[str, Any], limit: float = 10.0) -> None:
        """Wait until a run is let go about which nothing is to be said."""
        name = run["metadata"]["name"]

        async def look() -> bool:
            body = await self.stage.workflow(name)
            return body is None or not body["metadata"].get("finalizers")

        await self.until(f"{name} is let go", look, limit)
        assert not (await self.said(run)).rows

    def is_exactly(self, said: Said, words: str, notices: int, removed: int = 0) -> None:
        """One card, which shows these words, and below it each notice once."""
        assert len(said.cards) == 1, f"{len(said.cards)} cards\n{said}"
        (card,) = said.cards
        assert words in card.text, f"{words!r} is not on the card\n{card.text}\n{said}"
        assert len(said.notices) == len({row.reply for row in said.notices}) == notices, f"the notices\n{said}"
        assert not said.doubles, f"twice: {said.doubles}\n{said}"
        assert len(said.deleted) == removed, f"{len(said.deleted)} posts were deleted\n{said}"
        assert all(row.root == card.id for row in said.replies), f"under another card\n{said}"


@asynccontextmanager
async def trial(stage: RealStage, folder: Path) -> AsyncIterator[Trial]:
    """A trial on a stage that stands; its bots are ended with it."""
    jar = aiohttp.DummyCookieJar()
    async with AsyncExitStack() as exits:
        session = await exits.enter_async_context(
            aiohttp.ClientSession(
                cookie_jar=jar, auto_decompress=False, connector=aiohttp.TCPConnector(limit=0, force_close=True)
            )
        )
        rig = stage.rig
        kube = await exits.enter_async_context(Proxy(session, rig.kube.url, rig.kube._trust).listening())
        chat = await exits.enter_async_context(Proxy(session, rig.mattermost.url).listening())
        made = Trial(stage, kube, chat, folder)
        # one run at a time is the template's business, and not what is tried here
        template = f"{ARGO}/namespaces/foxhunt/workflowtemplates/gpu-test-pipeline"
        await rig.kube.admin.merge(template, {"spec": {"synchronization": None}})
        try:
            yield made
        finally:
            for bot in (made.bot, made.other):
                await bot.end(signal.SIGKILL)
