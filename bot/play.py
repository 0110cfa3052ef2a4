"""The demo: the embedded world and the real bot on it, for somebody to play with.

Only here do the two meet: `bot.demo` knows nothing of the bot, and the bot gets from us what it gets from config.yaml
and the environment in a cluster: addresses, tokens, roles. One thing is different, its time: the simulated clock is
the only one by which "since 23:02" and "next at 02:00" are right.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bot import logs
from bot.app import Bot, Wiring
from bot.clients.kube_lease import LeaseTiming
from bot.config import Config, ConfigError, Secrets, parse
from bot.core.asking import COMMANDS
from bot.core.effects import WakeAt
from bot.core.events import Event, Swept, Woke
from bot.core.registration import wanted
from bot.demo import EmbeddedWorld
from bot.demo.chat import CHANNEL, TEAM
from bot.demo.clock import Clock, Timer
from bot.demo.page import USERS, ChatPage

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"
ACCOUNT = "gputest/gputest-bot"
"""The bot's service account, as deploy/bot/rbac.yaml has it."""

DEFAULT_SPEED = 40.0
"""Simulated seconds in one: a run of ten models is about a minute to watch."""

FASTEST = 5000.0
FIRST_PORT, LAST_PORT, PORTS = 8065, 65535, 100
"""Where the chat is looked for first, and how many ports are tried: 8065 is Mattermost's own."""

LEASE = LeaseTiming(duration=5.0, renew=1.5, margin=1.0)
"""In real seconds; shorter than in a cluster, so that nobody waits long for a bot that was killed."""

GOODBYE_SECONDS = 3.0


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    speed: float = DEFAULT_SPEED
    seed: int = 1
    port: int = 0
    """0: the first free one from 8065 up; else this one, or the next free one."""
    lease: LeaseTiming = LEASE
    patience: float = 1.0
    """How long the bot waits for others before it tries or looks again, as a part of what it waits in a cluster."""


class SimulatedAlarms:
    """Wakes the bot by the simulated clock, in place of `bot.sources.clock`."""

    def __init__(self, clock: Clock, put: Callable[[Event], None]) -> None:
        self._clock = clock
        self._put = put
        self._timers: dict[str, Timer] = {}
        self._stopped = False

    def start(self, sweep_seconds: float) -> None:
        """Sweeps come every so many simulated seconds."""

        def sweep() -> None:
            self._put(Swept())
            self.start(sweep_seconds)

        self._at("sweep", self._clock.time() + sweep_seconds, sweep)

    def stop(self) -> None:
        """End; nothing comes any more."""
        self._stopped = True
        for timer in self._timers.values():
            timer.cancel()

    def wake(self, effect: WakeAt) -> None:
        """Come back at that time; a later request with the same key replaces the earlier."""
        self._at(f"wake {effect.key}", effect.when, lambda: self._put(Woke(effect.key)))

    def _at(self, key: str, when: float, callback: Callable[[], None]) -> None:
        if self._stopped:
            return
        if key in self._timers:
            self._timers[key].cancel()
        self._timers[key] = self._clock.call_at(when, callback)


class BotSwitch:
    """The bot as something that the page can kill and start again, as often as it likes."""

    def __init__(self, config: Config, secrets: Secrets, wiring: Wiring) -> None:
        self._config, self._secrets, self._wiring = config, secrets, wiring
        self._bot: Bot | None = None
        self._lives = 0

    @property
    def identity(self) -> str:
        """What its present life is called, as the name of a pod: that of the wiring, numbered."""
        return f"{self._wiring.identity or 'demo'}-{self._lives}"

    @property
    def condition(self) -> str:
        """`running`, `starting`, `killed`, or `crashed` for one that fell by itself."""
        if self._bot is None:
            return "killed"
        if self._bot.crashed.done():
            return "crashed"
        return "running" if self._bot.is_ready else "starting"

    async def start(self) -> None:
        """Another life: a new process as far as the others can see."""
        if self._bot is None:
            self._lives += 1
            wiring = replace(self._wiring, identity=self.identity)
            self._bot = Bot(self._config, self._secrets, wiring)
            await self._bot.start()

    async def kill(self) -> None:
        """The end, as by `kill -9`."""
        bot, self._bot = self._bot, None
        if bot is not None:
            await bot.kill()

    async def stop(self) -> None:
        """The end, as by SIGTERM, and as by `kill -9` when that takes too long."""
        bot, self._bot = self._bot, None
        if bot is None:
            return
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):
                await bot.stop()
        except TimeoutError:
            await bot.kill()


@dataclass(frozen=True)
class Play:
    """A demo that runs."""

    world: EmbeddedWorld
    bot: BotSwitch
    page: ChatPage
    kubeconfig: Path
    log: Path


@asynccontextmanager
async def playing(options: Options, folder: Path) -> AsyncIterator[Play]:
    """World, page and bot for as long as the block lasts; files go into `folder`."""
    if not 0 < options.speed <= FASTEST or not 0 <= options.port <= LAST_PORT:
        raise ConfigError(f"--speed is above 0 and at most {FASTEST:g}, --port at most {LAST_PORT}.")
    if not (DEPLOY / "argo").is_dir():
        raise ConfigError(f"the demo plays with the manifests of the repository, and {DEPLOY} is not there.")
    with listener(0) as place:
        bot_port = int(place.getsockname()[1])
    with listener(options.port or FIRST_PORT) as place:
        world = embedded_world(options, place)
        secrets = Secrets(world.bot_token, register_commands(world, bot_port))
        wiring = simulated(world, options)
        bot = BotSwitch(configuration(world, options, int(place.getsockname()[1]), bot_port), secrets, wiring)
        page = ChatPage(world, bot, options.speed)
        async with world:
            kubeconfig = folder / "kubeconfig"
            kubeconfig.write_text(world.kubeconfig(), encoding="utf-8")
            wiring.kube_url, wiring.kube_token = world.kube_url, world.kube_token
            world.cluster.autoscaler.keep_writing()
            try:
                await bot.start()
                yield Play(world, bot, page, kubeconfig, folder / "bot.log")
            finally:
                page.stop()
                await bot.stop()


def embedded_world(options: Options, place: socket.socket) -> EmbeddedWorld:
    """Cluster and chat with the repository's own manifests; the chat listens at `place`."""
    manifests = [DEPLOY / "argo", *sorted((DEPLOY / "bot").glob("rbac*.yaml"))]
    return EmbeddedWorld(
        seed=options.seed, speed=options.speed, chat_port=place, manifests=manifests, bot_account=ACCOUNT
    )


def simulated(world: EmbeddedWorld, options: Options) -> Wiring:
    """A bot's surroundings by the clock of that world, before it is known where its cluster listens."""
    return Wiring(
        lease=options.lease,
        now=world.clock.time,
        clock=lambda put: SimulatedAlarms(world.clock, put),
        haste=options.speed,
        identity="",
    )


def register_commands(world: EmbeddedWorld, bot_port: int) -> tuple[str, ...]:
    """Make the slash commands as an administrator does it by hand; returns their tokens."""
    url = f"http://127.0.0.1:{bot_port}/commands"
    return tuple(
        world.register_command(one.trigger, one.url, hint=one.hint, description=one.description)
        for one in wanted(COMMANDS, url)
    )


def configuration(world: EmbeddedWorld, options: Options, port: int, bot_port: int) -> Config:
    """What config.yaml would say. Times in which the bot waits for others are meant in real seconds."""
    speed, pools = world.clock.speed, world.cluster.autoscaler.pools
    wait = speed * options.patience
    gpus = (
        ("ci-training-h100", "H100", "90", 80, 2.73),
        ("ci-training", "L40S", "89", 48, 1.40),
        ("ci-compile", "L4", "89", 24, 0.75),
    )
    content: dict[str, Any] = {
        "mattermost": {"url": f"http://127.0.0.1:{port}", "team": TEAM, "channel": CHANNEL},
        "bot": {"host": "127.0.0.1", "port": bot_port, "url": f"http://127.0.0.1:{bot_port}"},
        "runs": {
            "owners": ["dev"],
            "roles": [
                {"name": "developers", "users": ["dev"], "may": ["run", "cancel", "nightly", "look", "warm"]},
                {"name": "everybody", "users": ["*"], "may": ["look"]},
            ],
            "pools": [
                {
                    "name": name,
                    "gpu": gpu,
                    "cap": cap,
                    "gpu_memory_gb": memory,
                    "price_per_hour": price,
                    "max_nodes": pools[name].maximum,
                    "groups": [pools[name].id],
                }
                for name, gpu, cap, memory, price in gpus
            ],
            "coalesce_seconds": speed,
            "retry_seconds": 2 * wait,
            "retry_max_seconds": 10 * wait,
            "settle_seconds": 15 * wait,
            "sweep_seconds": 30 * wait,
            "deletion_seconds": 20 * wait,
        },
    }
    return parse(content, "the demo's configuration")


def listener(first: int) -> socket.socket:
    """A socket that listens at the first port of the loopback from there on that nobody else has; any for 0.

    It listens at once, so that two demos that start together do not find the same one.
    """
    for port in range(first, min(first + PORTS, LAST_PORT + 1)):
        place = socket.socket()
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            place.bind(("127.0.0.1", port))
            place.listen()
        except OSError:
            place.close()
            continue
        return place
    raise ConfigError(f"no port from {first} to {first + PORTS - 1} is free. Give another with --port.")


async def serve(options: Options, say: Callable[[str], None]) -> int:
    """Play until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with tempfile.TemporaryDirectory(prefix="gputest-demo-") as name:
        folder = Path(name)
        with (folder / "bot.log").open("w", encoding="utf-8") as log:
            logs.set_up("INFO", stream=log)
            async with playing(options, folder) as play:
                say(greeting(play))
                await stop.wait()
                say("\nThe demo ends.")
    return 0


def greeting(play: Play) -> str:
    """What the terminal shows."""
    world = play.world
    return f"""\
The demo is ready. Open this address:

    {world.chat_url}/

and type there:  /gputest models=all epochs=5

  chat API      {world.chat_url}/api/v4
    dev         {world.tokens["dev"]}   {USERS["dev"]}
    viewer      {world.tokens["viewer"]}   {USERS["viewer"]}
  Kubernetes    {world.kube_url}
    kubectl     kubectl --kubeconfig {play.kubeconfig} get workflows
  bot's log     {play.log}
  clock         {world.clock.speed:g} simulated seconds in one; seed {world.chance.seed}

Ctrl-C ends it."""
