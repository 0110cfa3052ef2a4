"""Two bots on one embedded world, as a Deployment of two replicas: one Lease, the same ConfigMaps, the same secrets.

Each has lines of its own to both servers, which can be cut and held without the other's noticing. In front of them is a
service, which gives what Mattermost sends to either of them, and at times to both.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl

import aiohttp
from aiohttp import web

from bot import play
from bot.app import Bot
from bot.config import Secrets
from bot.demo import EmbeddedWorld
from bot.demo.page import ChatPage
from bot.sources.slash import to_request
from tests.soak.wire import Wire

BOTH = 0.2
"""How often one request comes to both: who sends it has not heard of the first answer."""


class Replica:
    """One of the two, with its lines; it may be anything from well to dead."""

    def __init__(self, name: str, world: EmbeddedWorld) -> None:
        self.name = name
        self.kube = Wire(lambda: self.switch.identity, world.kube_url)
        self.chat = Wire(lambda: self.switch.identity, world.chat_url)
        self.port = 0
        self.switch: play.BotSwitch
        self.is_crossed = False
        """Somebody is ending or starting it, or has broken a line of its own."""
        self._turn = asyncio.Lock()
        self._broken_since: float | None = time.monotonic()
        self._sees_from = float("inf")

    @property
    def wires(self) -> tuple[Wire, Wire]:
        return self.kube, self.chat

    @property
    def bot(self) -> Bot | None:
        """The bot itself, while it runs."""
        return self.switch._bot if self.switch.condition == "running" else None

    @property
    def leads(self) -> bool:
        """Whether it may write."""
        return self.bot is not None and self.bot._lease is not None and self.bot._lease.held()

    @property
    def is_well(self) -> bool:
        """Whether it runs, and nobody is about it."""
        return self.bot is not None and not self.is_crossed and all(wire.is_well for wire in self.wires)

    def look(self, *, cluster_is_well: bool) -> None:
        """Note whether it can watch the cluster; to be called often."""
        now = time.monotonic()
        if self.bot is None or not self.kube.is_well or not cluster_is_well:
            self._broken_since = self._broken_since or now
            self._sees_from = float("inf")
        elif self._broken_since is not None:
            # it tries again after pauses that double, so it may take as long again
            self._sees_from = now + (now - self._broken_since) + 1.0
            self._broken_since = None

    @property
    def sees(self) -> bool:
        """Whether its watches surely stand."""
        return time.monotonic() >= self._sees_from

    async def start(self) -> None:
        """Begin another life, if it has none."""
        async with self._turn:
            await self.switch.start()

    async def kill(self) -> None:
        """End at once; what is on its lines goes with it."""
        async with self._turn:
            for wire in self.wires:
                wire.cut()
            await self.switch.kill()
            for wire in self.wires:
                wire.let_pass()

    async def stop(self) -> None:
        """End as by SIGTERM."""
        async with self._turn:
            await self.switch.stop()


@dataclass
class Request:
    """What the service gave to whom."""

    line: str
    """A slash command; "" for anything else."""
    request_id: str
    answers: list[dict[str, object]] = field(default_factory=list)
    """Of those who answered at all."""


class Service:
    """The one address by which Mattermost knows the bot."""

    def __init__(self, replicas: list[Replica], seed: int) -> None:
        self.requests: list[Request] = []
        self.doubled = 0
        """How many came to both."""
        self._replicas = replicas
        self._dice = random.Random(f"service {seed}")
        self._session: aiohttp.ClientSession

    @asynccontextmanager
    async def listening(self, port: int) -> AsyncIterator[None]:
        """Serve at that port of the loopback."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._deliver)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        connector = aiohttp.TCPConnector(force_close=True)
        try:
            async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as self._session:
                yield
        finally:
            await runner.cleanup()

    async def _deliver(self, request: web.Request) -> web.Response:
        body = await request.read()
        # who does not answer its probes gets nothing
        ready = [one for one in self._replicas if one.bot is not None and (one.kube.is_well or one.chat.is_well)]
        if not ready:
            return web.Response(status=503)
        self._dice.shuffle(ready)
        chosen = ready if self._dice.random() < BOTH else ready[:1]
        self.doubled += len(chosen) > 1
        noted = self._note(request, body)
        came = await asyncio.gather(*(self._ask(one, request, body, noted) for one in chosen))
        return next((one for one in came if one is not None), web.Response(status=502))

    def _note(self, request: web.Request, body: bytes) -> Request:
        noted = Request("", "")
        if request.path == "/commands":
            form = dict(parse_qsl(body.decode(), keep_blank_values=True))
            noted = Request(f"{form['command']} {form['text']}", to_request(form).command.request_id)
        self.requests.append(noted)
        return noted

    async def _ask(self, one: Replica, request: web.Request, body: bytes, noted: Request) -> web.Response | None:
        headers = {k: v for k, v in request.headers.items() if k in ("Authorization", "Content-Type", "Accept")}
        url = f"http://127.0.0.1:{one.port}{request.path_qs}"
        try:
            async with self._session.request(request.method, url, data=body, headers=headers) as answer:
                text = await answer.read()
                noted.answers.append(await answer.json())
        except (aiohttp.ClientError, OSError, TimeoutError):
            return None
        return web.Response(status=answer.status, body=text, content_type=answer.content_type)


class Both:
    """The two as the side panel knows its bot."""

    def __init__(self, replicas: list[Replica]) -> None:
        self._replicas = replicas

    @property
    def condition(self) -> str:
        """`running` where both do, and nobody is about them."""
        conditions = {one.switch.condition for one in self._replicas}
        if "crashed" in conditions or conditions == {"killed"}:
            return "crashed" if "crashed" in conditions else "killed"
        return "running" if all(one.is_well for one in self._replicas) else "starting"

    async def start(self) -> None:
        """Start those that do not run."""
        for one in self._replicas:
            await one.start()

    async def kill(self) -> None:
        """End both at once."""
        for one in self._replicas:
            await one.kill()


@dataclass(frozen=True)
class Pair:
    """Two bots that run."""

    world: EmbeddedWorld
    bot: Both
    page: ChatPage
    replicas: list[Replica]
    service: Service

    def speaker(self) -> Replica | None:
        """The one that leads and has nothing in its way."""
        return next((one for one in self.replicas if one.leads and one.is_well), None)

    @property
    def condition(self) -> str:
        """`running` where both do, and one of them speaks."""
        speaker = self.speaker()
        speaks = speaker is not None and speaker.bot is not None and speaker.bot.loop.state.leader
        return self.bot.condition if speaks else "starting"


@asynccontextmanager
async def two_playing(options: play.Options, watch: Callable[[EmbeddedWorld], None]) -> AsyncIterator[Pair]:
    """World, page and both bots for as long as the block lasts; `watch` is given the world before anything happens."""
    places = [play.listener(0) for _ in range(4)]
    ports = [int(place.getsockname()[1]) for place in places]
    for place in places[1:]:
        place.close()
    world = play.embedded_world(options, places[0])
    secrets = Secrets(world.bot_token, play.register_commands(world, ports[1]))
    replicas: list[Replica] = []
    both = Both(replicas)
    page = ChatPage(world, both, options.speed)
    service = Service(replicas, options.seed)
    async with AsyncExitStack() as exits:
        await exits.enter_async_context(world)
        exits.callback(page.stop)
        watch(world)
        await exits.enter_async_context(service.listening(ports[1]))
        world.cluster.autoscaler.keep_writing()
        for name, port in (("one", ports[2]), ("two", ports[3])):
            replica = Replica(name, world)
            replica.port = port
            for wire in replica.wires:
                await wire.start()
                exits.push_async_callback(wire.close)
            replica.switch = _switch(replica, world, options, ports[1], secrets)
            replicas.append(replica)
            exits.push_async_callback(replica.stop)
        for replica in replicas:
            await replica.start()
        yield Pair(world, both, page, replicas, service)


def _switch(
    replica: Replica, world: EmbeddedWorld, options: play.Options, shared: int, secrets: Secrets
) -> play.BotSwitch:
    config = play.configuration(world, options, int(replica.chat.url.rpartition(":")[2]), shared)
    # ten minutes are forty Leases
    runs = replace(config.runs, linger_seconds=40 * options.lease.duration * options.speed)
    bot = config.bot.model_copy(update={"port": replica.port})
    config = config.model_copy(update={"bot": bot, "runs": runs})
    wiring = replace(
        play.simulated(world, options),
        kube_url=replica.kube.url,
        kube_token=world.kube_token,
        identity=replica.name,
    )
    return play.BotSwitch(config, secrets, wiring)
