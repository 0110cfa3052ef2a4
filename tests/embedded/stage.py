"""The stage of the embedded world: the same phrases as on the real services, in one process and without waiting.

What a story does goes over the same wires as there: HTTP to both servers, a websocket a person, a player of pods over
the Kubernetes API. Only the servers are others, and the bot runs in this process.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from bot.app import Wiring
from bot.clients.kube_lease import LeaseTiming
from bot.demo.argo_operation import Timing
from tests.embedded.bot import LocalBot
from tests.embedded.rig import EmbeddedRig
from tests.real.exit_step import PROGRAM, ExitStep
from tests.real.rig.pod_player import PodPlayer
from tests.real.stage import RealStage

LONGEST_WAIT = 15.0
"""Real seconds; what does not come within them does not come."""

PACE = {"settle_seconds": 0.4, "retry_seconds": 0.2, "retry_max_seconds": 1.0, "coalesce_seconds": 0.3}
"""Of the bot's own waits, which nobody wants to sit through: `runs` of its config.yaml."""

IMPATIENT = Timing(recently_started=0.0, results=4.0)
"""Of Argo's controller, as on the real services."""

LEASE = LeaseTiming(duration=1.0, renew=0.2, margin=0.2, retry=0.1)
"""After a kill the next bot waits for the end of the Lease."""


class PlainExitStep(ExitStep):
    """The same program, for an API server without TLS; between its tries it does not wait."""

    program = (
        """
import ssl, time
ssl.create_default_context = lambda **_: None
time.sleep = lambda _: None
import notify
with_tls = notify.request
notify.request = lambda url, *rest: with_tls(url.replace("https://127.0.0.1", "http://127.0.0.1"), *rest)
"""
        + PROGRAM
    )


class EmbeddedStage(RealStage):
    """Stories play here; each has a stage of its own."""

    def __init__(self, rig: EmbeddedRig, player: PodPlayer, folder: Path) -> None:
        super().__init__(rig, player, folder)  # type: ignore[arg-type]  # it has the same phrases
        self.embedded = rig
        self._bot: LocalBot | None = None
        self._lives = itertools.count(1)

    @property
    def argo(self) -> str:
        """The Argo that the embedded world plays."""
        return "3.7"

    def config(self) -> dict[str, Any]:
        """The bot's config.yaml, with shorter waits."""
        config = super().config()
        return config | {"runs": PACE | config["runs"]}

    async def start_bot(self, **environment: str) -> None:
        """Start it, if it does not run, and wait until it is ready and may speak."""
        if self._bot is not None:
            return
        known = {"GPUTEST_MATTERMOST_TOKEN": self.account.token, "GPUTEST_COMMAND_TOKENS": " ".join(self._tokens)}
        wiring = Wiring(
            kube_url=self.embedded.world.kube_url,
            kube_token=self.embedded.world.kube_token,
            identity=f"life-{next(self._lives)}",
            lease=LEASE,
        )
        self._bot = LocalBot(self.config(), known | environment, wiring)
        await self._bot.start()
        self.embedded.patience.busy = lambda: True  # the clock does not jump while it begins
        await self.until("the bot is ready", self._ready)
        self.embedded.patience.busy = self._bot.is_busy

    async def _ready(self) -> bool:
        assert self._bot is not None
        self._bot.check()
        bot = self._bot.bot
        return not bot._what_is_missing() and bot.loop.state.leader

    async def kill_bot(self) -> None:
        """End it at once, as a crash would."""
        if (life := self._let_go()) is not None:
            await life.kill()

    async def stop_bot(self) -> None:
        """End it in an orderly way."""
        if (life := self._let_go()) is not None:
            await life.stop()

    def _let_go(self) -> LocalBot | None:
        life, self._bot = self._bot, None
        self.embedded.patience.busy = lambda: False
        return life

    async def retry(self, run: str) -> None:
        """`argo retry`, in another second than that of the start, by the clock of the world."""
        clock = self.embedded.world.clock
        began = datetime.fromisoformat(self.embedded.world.cluster.workflow(run)["status"]["startedAt"])
        await self.embedded.pass_time(max(0.0, began.timestamp() + 1.0 - clock.time()))
        await self.embedded.argo_retry(run)

    def exit_account(self) -> dict[str, str]:
        """Files of the service account that pods of a run have; there is no authority to trust."""
        return {"token": self.rig.kube.token("foxhunt", "argo-workflow")}

    async def exit_step(self, run: str) -> str:
        """Run deploy/argo/notify/notify.py with what Argo gave this run's exit pod; returns what it said it said."""
        step = PlainExitStep(self.rig, self._folder, f"http://127.0.0.1:{self._port}/exit", self.exit_account())
        return await step.speak(run, await self._hook())

    def log_tail(self, size: int = 6000) -> str:
        """Where the bot's log is to be found."""
        return "its log is in the captured output"

    async def until(self, what: str, check: Callable[[], Awaitable[Any]], limit: float = 30.0) -> Any:
        """Look again and again until `check` returns something true."""
        # What may well not come, such as the answer to a click, comes at once or never.
        longest = min(limit, LONGEST_WAIT) if limit >= 1 else limit / 3
        try:
            return await self.embedded.patience.until(check, longest)
        except TimeoutError:
            cards = "\n".join(str(card) for card in await self.cards()) if self.channel else ""
            raise AssertionError(f"not within {longest:g} s: {what}\ncards:\n{cards}") from None


@asynccontextmanager
async def embedded_stage(folder: Path) -> AsyncIterator[EmbeddedStage]:
    """A new world, furnished, and ended again."""
    async with AsyncExitStack() as exits:
        rig = await exits.enter_async_context(EmbeddedRig.start(IMPATIENT))
        player = await exits.enter_async_context(rig.pod_player())
        stage = EmbeddedStage(rig, player, folder)
        exits.push_async_callback(stage.stop_bot)
        await stage.furnish(exits)
        stage.reset()
        yield stage
