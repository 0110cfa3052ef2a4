"""The measures that need the real services."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web

from bench.figures import Figure, in_turn, percentile
from bench.samples import finished
from tests.real.rig.kube_client import ARGO
from tests.real.rig.ports import free_ports
from tests.real.stage import ROOT, RealStage

WORKFLOWS = f"{ARGO}/namespaces/foxhunt/workflows"
MANY = int(os.environ.get("BENCH_MANY", "10000"))
RUNS, PER_SECOND = 100, 20
AT_ONCE = 50


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


async def all_at_once(one: Callable[[int], Awaitable[float]], count: int) -> list[float]:
    """Start all of them together."""
    return list(await asyncio.gather(*(one(i) for i in range(count))))


async def at_a_rate(one: Callable[[int], Awaitable[Any]], count: int, per_second: float) -> list[Any]:
    """Start one every so often, whether the earlier ones are done or not."""
    began = time.monotonic()
    tasks = []
    for i in range(count):
        await asyncio.sleep(max(0.0, began + i / per_second - time.monotonic()))
        tasks.append(asyncio.get_running_loop().create_task(one(i)))
    return list(await asyncio.gather(*tasks))


class Floors:
    """A trivial integration, and a person who posts."""

    def __init__(self, stage: RealStage) -> None:
        self.stage = stage
        self.port = free_ports(1)[0]

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        async def answer(_request: web.Request) -> web.Response:
            return web.json_response({"response_type": "ephemeral", "text": "trivial", "skip_slack_parsing": True})

        app = web.Application()
        app.router.add_post("/", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port).start()
        await self.stage.office.create_command(self.stage.team, "trivial", f"http://127.0.0.1:{self.port}/")
        try:
            yield
        finally:
            await runner.cleanup()

    async def execute(self, text: str) -> float:
        """Milliseconds until a slash command is answered, as its typist feels it."""
        began = time.perf_counter()
        await self.stage.anna.type(self.stage.channel, text)
        return (time.perf_counter() - began) * 1000

    async def posts(self) -> float:
        """p99 in ms of `POST /posts` by the bot's account at the rate of the runs."""
        client = self.stage.rig.mattermost.client(self.stage.account.token)

        async def one(i: int) -> float:
            began = time.perf_counter()
            await client.post("/posts", {"channel_id": self.stage.channel, "message": f"floor {i}"})
            return (time.perf_counter() - began) * 1000

        return percentile(await at_a_rate(one, RUNS, PER_SECOND), 0.99)


async def events_to_posts(stage: RealStage, floors: Floors) -> Figure:
    """From the API server's answer to a create until the card's own time of creation."""
    round_ = 0

    async def ours() -> float:
        nonlocal round_
        round_ += 1
        accepted: dict[str, float] = {}

        async def one(i: int) -> None:
            name = f"bench-{round_}-{i:03d}"
            spec = {"workflowTemplateRef": {"name": "gpu-test-pipeline"}}
            body = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": name}, "spec": spec}
            created = await stage.create(body)
            accepted[created["metadata"]["uid"]] = time.time() * 1000

        await at_a_rate(one, RUNS, PER_SECOND)

        async def posted() -> dict[str, float] | None:
            found: dict[str, float] = {}
            for page in range(3):
                answer = await stage.anna.client.get(f"/channels/{stage.channel}/posts", per_page="200", page=str(page))
                for post in answer["posts"].values():
                    uid = str(post["props"].get("gputest_card", "")).rsplit(":", 1)[0]
                    if uid in accepted:
                        found[uid] = post["create_at"]
            return found if len(found) == len(accepted) else None

        found = await stage.until("all cards", posted, 60)
        return percentile([found[uid] - accepted[uid] for uid in accepted], 0.99)

    mine, theirs = await in_turn(floors.posts, ours)
    return Figure(f"watch event -> card posted, {RUNS} runs at {PER_SECOND}/s, p99", "ms", mine, theirs, 50)


async def commands(floors: Floors, text: str) -> Figure:
    """p99 of fifty at once, beside fifty of a trivial integration."""

    async def floor() -> float:
        return percentile(await all_at_once(lambda _: floors.execute("/trivial"), AT_ONCE), 0.99)

    async def ours() -> float:
        return percentile(await all_at_once(lambda _: floors.execute(text), AT_ONCE), 0.99)

    mine, theirs = await in_turn(floor, ours)
    return Figure(f"{text} -> answered, {AT_ONCE} at once, p99", "ms", mine, theirs, 50)


async def creating(floors: Floors) -> Figure:
    """p99 of commands that create a run, create included, five a second."""

    async def ours() -> float:
        return percentile(await at_a_rate(lambda _: floors.execute("/gputest dqn"), 20, 5), 0.99)

    async def floor() -> float:
        return 0.0

    mine, theirs = await in_turn(floor, ours, 3)
    return Figure("/gputest dqn -> created and answered, p99", "ms", mine, theirs, 1000)


async def at_rest(stage: RealStage, port: int) -> Figure:
    """Requests to the cluster in a minute in which nothing happens, those about the Lease apart."""

    async def calls() -> float:
        async with stage.rig.session.get(f"http://127.0.0.1:{port}/metrics") as response:
            text = await response.text()
        total = re.findall(
            r'^gputest_call_seconds_count\{[^}]*system="kubernetes"[^}]*\} ([0-9.e+]+)', text, re.MULTILINE
        )
        return sum(map(float, total))

    before = await calls()
    await asyncio.sleep(60)
    lease = 60 / 5 * 2  # a read and a write at each renewal
    return Figure("requests to the cluster in a minute at rest", "", (await calls() - before - lease,), (0.0,), 10)


async def fill(stage: RealStage) -> None:
    """Ten thousand finished runs in the namespace."""
    queue = iter(range(MANY))

    async def work() -> None:
        for number in queue:
            await stage.rig.kube.admin.create(WORKFLOWS, finished(number))
            if number % 2000 == 1999:
                say(f"{number + 1} finished workflows created")

    await asyncio.gather(*(work() for _ in range(16)))


async def page_once(stage: RealStage) -> float:
    """Seconds to read the same list, page by page, and throw it away."""
    began = time.perf_counter()
    token = ""
    headers = {"Authorization": f"Bearer {stage.rig.kube.admin_token}"}
    while True:
        query = {"limit": "250"} | ({"continue": token} if token else {})
        url = stage.rig.kube.url + WORKFLOWS
        async with stage.rig.session.get(url, params=query, headers=headers, ssl=False) as response:
            body = await response.read()
        found = re.search(rb'"continue":"([^"]*)"', body[-1000:])
        token = found.group(1).decode() if found else ""
        if not token:
            return time.perf_counter() - began


class Start:
    """A bot process of its own, timed from its start."""

    def __init__(self, stage: RealStage, folder: Path) -> None:
        self.stage = stage
        self.folder = folder
        self.listening = self.ready = 0.0
        self.memory = 0.0

    async def run(self, watch: float = 5.0, then: Callable[[int], Awaitable[None]] | None = None) -> None:
        """Start it, wait until it listens and is ready, read its memory, and end it; `then` comes before that."""
        port = free_ports(1)[0]
        config = self.stage.config()
        config["bot"] |= {"port": port, "lease": "gputest-bot"}
        path = self.folder / "bench.yaml"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        secrets = {"GPUTEST_MATTERMOST_TOKEN": self.stage.account.token, "GPUTEST_COMMAND_TOKENS": "x"}
        began = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bot", "run", "--config", str(path)),
            cwd=ROOT,
            env={**os.environ, **secrets},
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await self._until(f"http://127.0.0.1:{port}/healthz")
            self.listening = time.perf_counter() - began
            await self._until(f"http://127.0.0.1:{port}/readyz")
            self.ready = time.perf_counter() - began
            await asyncio.sleep(watch)
            if then is not None:
                await then(port)
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
            self.memory = int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024  # type: ignore[union-attr]
        finally:
            process.send_signal(signal.SIGTERM)
            await process.wait()

    async def _until(self, url: str) -> None:
        while True:
            try:
                async with self.stage.rig.session.get(url) as response:
                    if response.status == 200:
                        return
            except aiohttp.ClientError:
                pass
            await asyncio.sleep(0.01)


async def starting(stage: RealStage, folder: Path) -> list[Figure]:
    """Listening, ready and memory, with an empty namespace's memory as the floor."""
    empty = Start(stage, folder)
    await empty.run()
    say("creating finished workflows")
    await fill(stage)
    listening, ready, memory, paging = [], [], [], []
    for _ in range(3):
        paging.append(await page_once(stage))
        full = Start(stage, folder)
        await full.run()
        listening.append(full.listening)
        ready.append(full.ready)
        memory.append(full.memory)
    none = (0.0,) * 3
    return [
        Figure("process start -> listening", "s", tuple(listening), none, 1.5),
        Figure(f"start with {MANY} finished -> ready, over paging once", "s", tuple(ready), tuple(paging), 2.0),
        Figure(f"memory with {MANY} finished", "MB", tuple(memory), none, 120),
        Figure("memory a finished workflow", "KB", tuple((m - empty.memory) * 1024 / MANY for m in memory), none, 1.5),
    ]
