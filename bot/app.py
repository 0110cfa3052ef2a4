"""The one composition root: from a configuration to a running bot.

`run`, the demo and the tests all come through here; nothing else makes clients or starts tasks.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from aiohttp import web

from bot.clients.errors import WireError
from bot.clients.kube import Kube
from bot.clients.kube_lease import Lease, LeaseTiming
from bot.clients.mattermost import Mattermost
from bot.clients.mattermost_commands import CommandRegister
from bot.clients.mattermost_rooms import Rooms
from bot.clients.mattermost_socket import Socket
from bot.config import Config, Secrets
from bot.core.asking import COMMANDS
from bot.core.effects import WakeAt
from bot.core.events import Event, Installed, LeaseLost, LeaseWon
from bot.core.memory import let_go_patch
from bot.core.registration import wanted
from bot.core.settings import Channels, Role
from bot.core.signing import key_of
from bot.core.state import State
from bot.logs import log
from bot.metrics import Metrics
from bot.runtime.http import Doors, application
from bot.runtime.loop import Loop, Told
from bot.sinks.alerts import AlertSink
from bot.sinks.cards import CardSink
from bot.sinks.costs import CostSink
from bot.sinks.cronworkflows import CronWorkflowSink
from bot.sinks.dialogs import DialogSink
from bot.sinks.history import HistorySink
from bot.sinks.perform import Sinks
from bot.sinks.placeholders import PlaceholderSink
from bot.sinks.replies import Replies
from bot.sinks.seal import Seal
from bot.sinks.slash_commands import SlashCommands
from bot.sinks.workflows import WorkflowSink
from bot.sources.chat import ChatCommands, Surroundings
from bot.sources.clock import Clock
from bot.sources.costs import watch_costs
from bot.sources.cursor import CursorStore
from bot.sources.history import watch_history
from bot.sources.installation import installed_at
from bot.sources.optional import Around
from bot.sources.pod_log import LogFollowers
from bot.sources.pools import pool_watches
from bot.sources.posts import Me
from bot.sources.workflows import API as WORKFLOWS
from bot.sources.workflows import held_workflows, look_again, watch_crons, watch_workflows
from bot.tasks import Tasks

DRAIN_SECONDS = 8.0
"""How long a bot that is told to stop waits for what is under way; below the usual grace period of 30 s."""

RETRY_SECONDS = 3.0
"""Between two tries to reach the chat or the cluster at the start."""

LOOK_SECONDS = 1.0
"""Between two tries to read the runs that are held, once the Lease is won."""


@dataclass
class Wiring:
    """Where the bot's surroundings are, apart from config.yaml: the demo and the tests say it here."""

    kube_url: str = ""
    kube_token: str = ""
    identity: str = field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    lease: LeaseTiming = field(default_factory=LeaseTiming)
    now: Callable[[], float] = time.time
    """Seconds since the epoch; in the demo those of the simulated cluster and chat."""
    clock: Callable[[Callable[[Event], None]], Alarms] = Clock
    """Makes what brings wake-ups and sweeps, by that same time."""
    haste: float = 1.0
    """How many of these seconds go by in a real one."""


class Alarms(Protocol):
    """What wakes the core: the scheduler by real time, or the demo's simulated clock."""

    def start(self, sweep_seconds: float) -> None: ...

    def stop(self) -> None: ...

    def wake(self, effect: WakeAt) -> None: ...


class Bot:
    """A running bot."""

    def __init__(self, config: Config, secrets: Secrets, wiring: Wiring) -> None:
        self.config = config
        self.metrics = Metrics()
        self.crashed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.port = 0
        self._secrets = secrets
        self._wiring = wiring
        self._log = log(identity=wiring.identity)
        self._missing = "the chat"
        self._tasks = Tasks(self._on_crash)
        self._exits = AsyncExitStack()
        self._clock = wiring.clock(lambda event: self.loop.put(event))  # noqa: PLW0108  # the loop comes after its clock
        self._chat = Mattermost(
            config.mattermost.url, secrets.mattermost_token, self.metrics, verify=config.mattermost.ca_file or True
        )
        self._key = key_of(secrets.mattermost_token)
        self._sinks: Sinks | None = None
        self._followers: LogFollowers | None = None
        self._lease: Lease | None = None
        self._look: Callable[[], Awaitable[None]]
        self._take_over: asyncio.Task[Any] | None = None
        self._posts: ChatCommands | None = None
        self._slash: SlashCommands | None = None
        self.loop = Loop(
            State(config.runs), self._perform, self._tell, self._tasks, self.metrics, self._log, now=wiring.now
        )

    async def start(self) -> None:
        """Listen at once, then reach the chat and the cluster, then watch."""
        await self._listen()
        self._tasks.spawn(self._begin(), name="begin")

    async def stop(self) -> None:
        """Finish what is under way, give the Lease back, close everything."""
        self._missing = "its own end"
        self._clock.stop()
        if self._posts is not None:
            await self._posts.stop(DRAIN_SECONDS / 2)
        await self.loop.drain(DRAIN_SECONDS)
        if self._lease is not None:
            await self._lease.release()
        await self._tasks.close()
        self._chat.close()
        await self._exits.aclose()

    @property
    def is_ready(self) -> bool:
        """Whether the chat and the cluster were reached, and what there is was seen."""
        return not self._what_is_missing()

    async def kill(self) -> None:
        """End as a crash does: nothing is finished, nothing is said, and the Lease stays where it is."""
        self._clock.stop()
        await self._tasks.close()
        self._chat.close()
        await self._exits.aclose()

    def _on_crash(self, name: str, error: BaseException) -> None:
        self._log.error("a task died", task=name, error=repr(error), exc_info=error)
        if not self.crashed.done():
            self.crashed.set_result(name)

    async def _listen(self) -> None:
        doors = Doors(
            self.loop, self._chat, self._secrets, self._tasks, self.metrics, self._log, self._what_is_missing, self._key
        )
        doors.learned, doors.learn, doors.now = self._learned_tokens, self._learn_tokens, self._wiring.now
        runner = web.AppRunner(application(doors), access_log=None, shutdown_timeout=2.0)
        await runner.setup()
        self._exits.push_async_callback(runner.cleanup)
        site = web.TCPSite(runner, self.config.bot.host, self.config.bot.port)
        await site.start()
        self.port = runner.addresses[0][1]
        self._log.info("listening", port=self.port)

    async def _begin(self) -> None:
        config, runs = self.config, self.config.runs
        channels = await self._until_it_works("the chat", self._reach_chat)
        roles = await self._until_it_works("the chat", self._resolve_roles)
        self.loop.state.settings = settings = replace(runs, channels=channels, roles=roles)
        kube = await Kube.connect(
            self.metrics,
            kubeconfig=config.kubernetes.kubeconfig,
            url=self._wiring.kube_url,
            token=self._wiring.kube_token,
        )
        self._exits.push_async_callback(kube.close)
        bot = config.bot
        since = await self._until_it_works("the cluster", lambda: installed_at(kube, bot.namespace, bot.config_map))
        self._lease = lease = Lease(kube, bot.namespace, bot.lease, self._wiring.identity, self._wiring.lease)
        seal = Seal(self._key, config.callback_url, self._wiring.now, self._secrets.exit_token)
        self._sinks = Sinks(
            WorkflowSink(kube),
            CronWorkflowSink(kube),
            CardSink(self._chat, settings, self.metrics, lease.held, seal),
            DialogSink(self._chat, seal),
            PlaceholderSink(kube, settings),
            HistorySink(kube, bot.namespace, bot.history, lease.held),
            CostSink(kube, bot.namespace, bot.costs, lease.held),
            AlertSink(self._chat, self.metrics, lease.held),
        )
        self._look = lambda: look_again(kube, [run.workflow for run in self.loop.state.runs.values()], self.loop.put)
        self._followers = LogFollowers(kube, self._tasks, self.loop.put, self._trouble)
        self.loop.put(Installed(since))
        self._missing = ""
        spawn, put, metrics = self._tasks.spawn, self.loop.put, self.metrics
        spawn(self.loop.run(), name="loop", eternal=True)
        spawn(
            watch_workflows(kube, metrics, runs.namespace, runs.template, put, self._trouble),
            name="workflows",
            eternal=True,
        )
        spawn(watch_crons(kube, metrics, runs.namespace, put, self._trouble), name="cronworkflows", eternal=True)
        spawn(
            watch_history(kube, metrics, (bot.namespace, bot.history), put, self._trouble),
            name="history",
            eternal=True,
        )
        spawn(
            watch_costs(kube, metrics, (bot.namespace, bot.costs), put, self._trouble),
            name="costs",
            eternal=True,
        )
        for name, work in pool_watches(Around(kube, metrics, settings, put, self._trouble)).items():
            spawn(work, name=name, eternal=True)
        await self._until_it_works("the chat", lambda: self._hear(kube, lease))
        self._missing = ""
        spawn(lease.run(self._won, self._lost, self._trouble), name="lease", eternal=True)
        self._clock.start(settings.sweep_seconds)

    async def _hear(self, kube: Kube, lease: Lease) -> None:
        """Take commands that are typed as posts, and register the slash commands."""
        chat, place, bot, spawn = self._chat, self.config.mattermost, self.config.bot, self._tasks.spawn
        rooms, me = Rooms(chat), Me(chat.user_id, chat.user_name)
        register = CommandRegister(chat, await rooms.team_id(place.team))
        around = Surroundings(
            rooms=rooms,
            replies=Replies(chat, lease.held),
            store=CursorStore(kube, bot.namespace, bot.config_map),
            ask=self.loop.ask,
            ready=self._what_is_missing,
            spawn=spawn,
            metrics=self.metrics,
            log=self._log,
        )
        self._posts = posts = ChatCommands(
            me, [spec.trigger for spec in COMMANDS], around, now=self._wiring.now, haste=self._wiring.haste
        )
        wishes = wanted(COMMANDS, place.commands_url) if place.commands_url else ()
        self._slash = SlashCommands(register, rooms, wishes, me.id, self._log)
        token = self._secrets.mattermost_token
        socket = Socket(place.url, token, posts, chat.sign_in, self.metrics, ca_file=place.ca_file)
        spawn(socket.run(), name="websocket", eternal=True)
        spawn(posts.run(), name="posts", eternal=True)
        spawn(self._slash.learn(), name="command tokens")

    def _learned_tokens(self) -> tuple[str, ...]:
        return self._slash.tokens if self._slash is not None else ()

    async def _learn_tokens(self) -> None:
        if self._slash is not None:
            await self._slash.learn()

    async def _reach_chat(self) -> Channels:
        chat, wanted = self._chat, self.config.mattermost
        await chat.sign_in()
        names = [wanted.channel, wanted.nightly_channel, wanted.push_channel, wanted.alerts_channel, *wanted.also]
        ids = {name: await chat.channel_id(wanted.team, name) for name in dict.fromkeys(names) if name}
        return Channels(
            default=ids[wanted.channel],
            nightly=ids.get(wanted.nightly_channel, ""),
            push=ids.get(wanted.push_channel, ""),
            alerts=ids.get(wanted.alerts_channel, ""),
            also=tuple(ids[name] for name in wanted.also),
            names=tuple((channel, name) for name, channel in ids.items()),
        )

    async def _resolve_roles(self) -> tuple[Role, ...]:
        """The roles with ids for their names; a name that nobody has is logged and counts for nobody."""
        roles = self.config.runs.roles
        names = sorted({name for role in roles for name in role.users if name != "*"})
        users = await self._chat.user_ids(names)
        for name in set(names) - set(users):
            self._log.error("a role names a user who does not exist", user=name)
        channels = {name for role in roles for name in role.channels}
        ids = {name: await self._chat.channel_id(self.config.mattermost.team, name) for name in sorted(channels)}
        return tuple(
            replace(
                role,
                user_ids=tuple(users[name] for name in role.users if name in users),
                channel_ids=tuple(ids[name] for name in role.channels),
            )
            for role in roles
        )

    async def _until_it_works(self, what: str, attempt: Any) -> Any:
        """Try until it works: at a start either side may be down, and a crash loop would tell nobody why."""
        self._missing = what
        while True:
            try:
                return await attempt()
            except WireError as error:
                self._log.error("cannot start yet", waiting_for=what, reason=error.reason, code=error.code)
                await asyncio.sleep(error.retry_after or RETRY_SECONDS)

    def _what_is_missing(self) -> str:
        state = self.loop.state
        refused = self._posts.refused if self._posts is not None else ""
        if refused and not self._missing:
            return f"a token that Mattermost takes; it refuses the one I have ({refused})"
        return self._missing or ("" if state.listed and state.nightly.listed else "the first list of the cluster")

    def _tell(self, effect: Told) -> None:
        if isinstance(effect, WakeAt):
            self._clock.wake(effect)
        elif self._followers is not None:
            self._followers.tell(effect)

    async def _perform(self, effect: Any) -> Any:
        if self._sinks is None:
            raise AssertionError("effects come after the start")
        return await self._sinks.perform(effect)

    def _won(self) -> None:
        self.metrics.leader.set(1)
        self._log.info("lease won")
        self._take_over = self._tasks.spawn(self._look_and_speak(), name="first look")

    async def _look_and_speak(self) -> None:
        """Read what is held before anything is said of it: to a watch that is behind, what has ended still runs."""
        while True:
            try:
                await self._look()
                break
            except WireError as error:
                self._trouble(error.reason)
                await asyncio.sleep(error.retry_after or LOOK_SECONDS)
        self.loop.put(LeaseWon())
        if self._posts is not None and self._slash is not None and self._lease is not None:
            self._posts.won()
            self._tasks.spawn(self._slash.register(self._lease.held), name="slash commands")

    def _lost(self) -> None:
        if self._take_over is not None:
            self._take_over.cancel()
        self.metrics.leader.set(0)
        self._log.warning("lease lost")
        self.loop.put(LeaseLost())
        if self._posts is not None:
            self._posts.lost()

    def _trouble(self, reason: str) -> None:
        self._log.warning("trouble with the cluster", reason=reason)


@asynccontextmanager
async def running(config: Config, secrets: Secrets, wiring: Wiring | None = None) -> AsyncIterator[Bot]:
    """A bot for as long as the block lasts."""
    bot = Bot(config, secrets, wiring or Wiring())
    await bot.start()
    try:
        yield bot
    finally:
        await bot.stop()


async def release_finalizers(config: Config) -> tuple[int, int]:
    """Take our finalizer off every Workflow, for good-bye. Returns how many were released and how many were not."""
    metrics = Metrics()
    kube = await Kube.connect(metrics, kubeconfig=config.kubernetes.kubeconfig)
    released = failed = 0
    try:
        async for listed in held_workflows(kube, metrics, config.runs.namespace):
            try:
                path = f"{WORKFLOWS}/namespaces/{listed.metadata.namespace}/workflows/{listed.metadata.name}"
                await kube.patch(path, let_go_patch(listed))
                released += 1
            except WireError:
                failed += 1
    finally:
        await kube.close()
    return released, failed
