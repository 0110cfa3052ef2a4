"""The demo as a whole: the page's server, the bot on the world, and the command that starts them."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from kubernetes import aio as kubernetes

from bot import play
from bot.clients.kube_lease import LeaseTiming
from bot.config import ConfigError
from bot.core.effects import WakeAt
from bot.core.events import Event, Woke
from bot.demo import EmbeddedWorld
from bot.demo.clock import Clock

from .conftest import Client

LEASE = LeaseTiming(duration=1.0, renew=0.3, margin=0.2)
SPEED = 1000.0
"""A run of a few library suites is about a second."""
BOT = "system:serviceaccount:gputest:gputest-bot"


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncIterator[play.Play]:
    """A demo that runs, its bot ready."""
    async with play.playing(play.Options(speed=SPEED, lease=LEASE), tmp_path) as running:
        await is_ready(running)
        yield running


async def is_ready(demo: play.Play) -> None:
    """Wait until the bot has seen the cluster and holds the Lease."""
    async with asyncio.timeout(10):
        while demo.bot.condition != "running":
            await asyncio.sleep(0.01)


def card(demo: play.Play) -> str:
    """All that the cards in the channel say."""
    return json.dumps(demo.world.chat.cards(), ensure_ascii=False)


@pytest.fixture
def page(demo: play.Play, session: aiohttp.ClientSession) -> Client:
    """A browser without a token."""
    return Client(session, demo.world.chat_url, "")


async def test_the_page_with_all_that_it_loads(demo: play.Play, session: aiohttp.ClientSession) -> None:
    """Page, styles and modules are here, under a policy that lets nothing else in."""
    async with session.get(demo.world.chat_url) as response:
        html, policy = await response.text(), response.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
    assert "unsafe" not in policy
    assert "<script>" not in html
    assert " style=" not in html

    wanted, seen = set(re.findall(r'(?:href|src)="(/page/[^"]+)"', html)), set()
    while wanted:
        path = wanted.pop()
        seen.add(path)
        async with session.get(demo.world.chat_url + path) as response:
            text = await response.text()
            assert (path, response.status) == (path, 200)
        if path.endswith(".js"):
            wanted |= {f"/page/{name}" for name in re.findall(r'from "\./([^"]+)"', text)} - seen

    assert seen == {f"/page/{one.name}" for one in (Path(play.__file__).parent / "demo/chat_page").iterdir()} - {
        "/page/index.html"
    }
    assert not re.search(r"https?://(?!developers\.mattermost\.com|www\.w3\.org)", html)


async def test_what_the_page_is_not_for(demo: play.Play, session: aiohttp.ClientSession) -> None:
    """Other names for this machine, files elsewhere, forms of other sites, and nonsense."""
    url = demo.world.chat_url
    async with session.get(f"{url}/demo/session", headers={"Host": "evil.example"}) as response:
        assert response.status == 403
    for path in ("/page/nothing.js", "/page/..%2Fpage.py"):
        async with session.get(url + path) as response:
            assert response.status == 404
    for options in (
        {"data": '{"do":"api-gone"}'},
        {"data": "x", "headers": {"Content-Type": "application/json"}},
        {"json": []},
    ):
        async with session.post(f"{url}/demo/panel", **options) as response:
            assert response.status in (400, 415)
    async with session.post(f"{url}/demo/markdown", json={"texts": "x"}) as response:
        assert response.status == 400
    async with session.post(f"{url}/demo/panel", json={"do": "x"}) as response:
        assert (response.status, (await response.json())["error"]) == (400, "There is nothing like 'x' to do.")
    async with session.post(f"{url}/demo/panel", json={"speed": "fast"}) as response:
        assert response.status == 400


async def test_who_can_sign_in(demo: play.Play, page: Client, session: aiohttp.ClientSession) -> None:
    """The tokens that the terminal and the page are given: dev may run, viewer may only look."""
    _, found = await page("GET", "/demo/session")
    text = play.greeting(demo)
    assert [user["name"] for user in found["users"]] == ["dev", "viewer"]
    for user in found["users"]:
        client = Client(session, demo.world.chat_url, user["token"])
        assert (await client("GET", "/api/v4/users/me"))[1]["username"] == user["name"]
        assert f"{user['name']:<12}{user['token']}   {user['may']}" in text
    assert {"run", "cancel", "nightly", "warm"} <= set(found["users"][0]["may"].replace(",", "").split())
    refused = await demo.world.chat.say("viewer", "gpu-tests", "/gputest dqn")

    assert "You may not start runs here." in refused.text
    assert demo.world.cluster.workflows() == []
    assert "next" in (await demo.world.chat.say("dev", "gpu-tests", "/nightly enable")).text


async def test_a_pool_that_is_too_small(demo: play.Play) -> None:
    """An L4 has less memory than a supervised model needs: nothing is started, here as in a cluster."""
    refused = await demo.world.chat.say("dev", "gpu-tests", "/gputest tft pool=l4")

    assert "needs 40 GB of GPU memory, and there are 24" in refused.text
    assert demo.world.cluster.workflows() == []


async def test_a_run_with_exactly_the_bots_rights(demo: play.Play) -> None:
    """From the command to a verdict; nothing that the bot asked the cluster for was refused."""
    chat = demo.world.chat
    await chat.say("dev", "gpu-tests", "/gputest dqn ppo scope=lib")
    await chat.until(lambda: "Run again" in card(demo) or "Rerun" in card(demo))
    await chat.say("dev", "gpu-tests", "/gpu")
    pools = await chat.say("dev", "gpu-tests", "/gpu pools")

    assert "0 to 2 nodes" in pools.text
    assert "I don't know" not in pools.text
    assert len(chat.cards()) == 1
    assert demo.world.kube_api.access.refused == []
    assert ("create", "argoproj.io", "workflows") in demo.world.kube_api.access.used[BOT]


async def test_killed_and_started_again_it_keeps_one_card(demo: play.Play, page: Client) -> None:
    """The switch ends the bot in mid-run; commands fail; started again it goes on with the same card."""
    world = demo.world
    world.cluster.hang()
    await world.chat.say("dev", "gpu-tests", "/gputest dqn scope=lib")
    await world.chat.until(lambda: "compiling and testing" in card(demo))
    (before,) = world.chat.cards()
    assert (await page("POST", "/demo/panel", json={"switch": "bot-killed", "on": True}))[0] == 200
    assert demo.bot.condition == "killed"
    with pytest.raises(Exception, match="Command with a trigger of 'gputest' failed"):
        await world.chat.say("dev", "gpu-tests", "/gputest status")
    world.cluster.finish(world.cluster.workflows()[0]["metadata"]["name"])
    await page("POST", "/demo/panel", json={"switch": "bot-killed", "on": False})
    await world.chat.until(lambda: "Run again" in card(demo))
    (after,) = world.chat.cards()

    assert after["id"] == before["id"]
    assert demo.bot.condition == "running"


async def test_the_panel_streams(demo: play.Play, session: aiohttp.ClientSession) -> None:
    """The view comes at once, and again when something has changed."""
    async with session.get(f"{demo.world.chat_url}/demo/panel") as stream:
        first = json.loads((await stream.content.readuntil(b"\n\n")).removeprefix(b"data: "))
        demo.page.panel.set_speed(10)
        second: dict[str, Any] = {}
        while second.get("clock", {}).get("speed") != 10:
            second = json.loads((await stream.content.readuntil(b"\n\n")).removeprefix(b"data: "))

    assert first["bot"] == "running"


async def test_the_kubeconfig(demo: play.Play) -> None:
    """An ordinary client comes in by the file that the terminal names."""
    assert str(demo.kubeconfig) in play.greeting(demo)
    async with await kubernetes.config.new_client_from_config(str(demo.kubeconfig)) as client:
        nodes = await kubernetes.client.CoreV1Api(client).list_node()
    context = yaml.safe_load(demo.kubeconfig.read_text())["contexts"][0]["context"]

    assert len(nodes.items) == 1
    assert context["namespace"] == "foxhunt"


async def test_a_second_demo_finds_another_port(demo: play.Play, tmp_path: Path) -> None:
    """Beside a first one, asked for the same port or for none."""
    port = int(demo.world.chat_url.rpartition(":")[2])
    (tmp_path / "second").mkdir()
    async with play.playing(play.Options(speed=SPEED, port=port), tmp_path / "second") as second:
        await is_ready(second)
        assert second.world.chat_url != demo.world.chat_url
        assert (await second.world.chat.say("dev", "gpu-tests", "/gputest status")).text


async def test_no_port_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the terminal says what to do."""
    monkeypatch.setattr(play, "PORTS", 0)

    with pytest.raises(ConfigError, match="Give another with --port"):
        play.listener(8065)


@pytest.mark.parametrize("options", [play.Options(speed=0), play.Options(speed=1e9), play.Options(port=70_000)])
async def test_options_that_make_no_sense(options: play.Options, tmp_path: Path) -> None:
    """Are refused with what would."""
    with pytest.raises(ConfigError, match="--speed is above 0 and at most 5000, --port at most 65535"):
        async with play.playing(options, tmp_path):
            pass


async def test_how_long_the_bot_waits_for_others() -> None:
    """Real seconds at any speed, as few as the patience says; `seconds` of the core are simulated ones."""
    world = EmbeddedWorld(speed=10)
    runs = play.configuration(world, play.Options(patience=0.5), 8065, 8080).runs

    assert (runs.settle_seconds, runs.sweep_seconds, runs.deletion_seconds) == (75, 150, 100)


async def test_without_the_repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A bot that was installed without the manifests says what is missing."""
    monkeypatch.setattr(play, "DEPLOY", tmp_path / "deploy")

    with pytest.raises(ConfigError, match="the manifests of the repository"):
        async with play.playing(play.Options(), tmp_path):
            pass


async def test_alarms_of_the_simulated_clock(demo: play.Play) -> None:
    """A later alarm replaces an earlier one with its key, and after the end none comes."""
    clock, heard = Clock(demo.world.clock.now(), 0), list[Event]()
    alarms = play.SimulatedAlarms(clock, heard.append)
    alarms.start(100.0)
    alarms.wake(WakeAt("a", clock.time() + 10))
    alarms.wake(WakeAt("a", clock.time() + 20))
    await clock.advance(15)

    assert heard == []
    await clock.advance(300)

    assert [type(event).__name__ for event in heard] == ["Woke", "Swept", "Swept", "Swept"]
    assert heard[0] == Woke("a")
    alarms.stop()
    alarms.wake(WakeAt("b", clock.time()))
    await clock.advance(1000)

    assert len(heard) == 4


async def test_the_command_from_start_to_interrupt() -> None:
    """It prints its addresses when all is ready, and on Ctrl-C it ends cleanly and takes its files along."""
    command = [sys.executable, "-m", "bot", "demo", "--speed", "100", "--seed", "7", "--port", "18065"]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, cwd=Path(play.__file__).parents[1]
    )
    assert process.stdout is not None
    async with asyncio.timeout(20):
        lines = [await process.stdout.readline()]
        while lines[-1] and b"Ctrl-C" not in lines[-1]:
            lines.append(await process.stdout.readline())
        process.send_signal(signal.SIGINT)
        rest = await process.stdout.read()
        code = await process.wait()
    text = b"".join(lines).decode()
    kubeconfig = re.search(r"--kubeconfig (\S+)", text)

    assert re.search(r"http://127\.0\.0\.1:18\d{3}/$", text, flags=re.MULTILINE)
    assert "100 simulated seconds in one; seed 7" in text
    assert (code, rest.decode().strip()) == (0, "The demo ends.")
    assert kubeconfig is not None
    assert not Path(kubeconfig[1]).exists()
