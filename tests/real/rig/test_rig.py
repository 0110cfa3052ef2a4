"""The rig does what its users count on: real answers, players that keep to their scripts, and nothing left behind."""

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from tests.real.rig.kube_client import KubeError, Manifest
from tests.real.rig.launcher import Rig
from tests.real.rig.mattermost_client import MattermostError
from tests.real.rig.person import Office
from tests.real.rig.pod_player import PodPlayer
from tests.real.rig.pod_script import (
    Action,
    Evicted,
    Exit,
    Hang,
    NodeLost,
    OOMKilled,
    Outputs,
    Running,
    Wait,
)
from tests.real.rig.selftest import (
    WORKFLOWS,
    node,
    play_nodes,
    play_workflow,
    selftest,
    small_server,
    type_command,
)

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]

ROOT = Path(__file__).resolve().parents[3]
PODS = "/api/v1/namespaces/foxhunt/pods"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig() -> AsyncIterator[Rig]:
    async with Rig.start(scheduler=True, kwok=True) as rig:
        yield rig


@pytest_asyncio.fixture(loop_scope="module")
async def player(rig: Rig) -> AsyncIterator[PodPlayer]:
    async with rig.pod_player() as player:
        yield player


class Runs:
    """Workflows of one step, by name."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig

    async def create(self, name: str, **spec: Any) -> None:
        """Create a workflow whose one step is named as the template: work."""
        results = {"name": "results", "valueFrom": {"path": "/tmp/results.json"}}
        container = {"image": "nowhere/test:1", "command": ["test"]}
        work = {"name": "work", "container": container, "outputs": {"parameters": [results]}}
        await self.submit(name, {"entrypoint": "main", "templates": [steps_of("work"), work]} | spec)

    async def submit(self, name: str, spec: Manifest) -> None:
        """Create a workflow whose pods only the player schedules."""
        body = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": name}}
        await self.rig.kube.admin.create(WORKFLOWS, body | {"spec": {"schedulerName": "the-pod-player"} | spec})

    async def phase(self, name: str, *phases: str, limit: float = 30) -> Manifest:
        """Wait until a workflow has one of these phases."""
        path = f"{WORKFLOWS}/{name}"
        return await self.rig.kube.admin.until(path, lambda seen: seen.get("status", {}).get("phase") in phases, limit)

    async def shut_down(self, name: str, strategy: str) -> None:
        """Stop or terminate a workflow as the CLI does."""
        await self.rig.kube.admin.merge(f"{WORKFLOWS}/{name}", {"spec": {"shutdown": strategy}})


def steps_of(*names: str) -> Manifest:
    """Return a template with steps one after another, each named as its template."""
    return {"name": "main", "steps": [[{"name": name, "template": name}] for name in names]}


@pytest.fixture
def runs(rig: Rig) -> Runs:
    return Runs(rig)


async def test_workflow_reports_its_outputs(rig: Rig) -> None:
    """A workflow waits for a GPU, runs, hands an output on and succeeds."""
    await play_workflow(rig)


async def test_command_is_answered(rig: Rig) -> None:
    """A slash command reaches an HTTP server, and its answer reaches the person."""
    await type_command(rig)


async def test_scheduler_places_a_pod_and_its_log_is_served(rig: Rig) -> None:
    """The real scheduler refuses and places a pod, and pods/log works through the API server."""
    await play_nodes(rig)


async def test_service_accounts_are_themselves(rig: Rig) -> None:
    """A service account's token is known by its name and groups, and may do nothing by itself."""
    bot = rig.kube.client(rig.kube.token("gputest", "gputest-bot"))
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    user = (await bot.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", review))["status"]["userInfo"]

    assert user["username"] == "system:serviceaccount:gputest:gputest-bot"
    assert "system:serviceaccounts:gputest" in user["groups"]
    with pytest.raises(KubeError, match="403 Forbidden"):
        await bot.get(WORKFLOWS)


async def test_kubeconfig_names_user_and_server(rig: Rig, tmp_path: Path) -> None:
    """A kubeconfig file holds the token that was asked for."""
    token = rig.kube.token("foxhunt", "argo-workflow")

    text = rig.kube.kubeconfig(tmp_path / "config", token).read_text()

    assert token in text
    assert rig.kube.url in text


@pytest.mark.parametrize("strategy", ["Stop", "Terminate"])
async def test_shutdown_ends_running_pods(player: PodPlayer, runs: Runs, strategy: str) -> None:
    """A pod that hangs ends when its workflow is stopped or terminated."""
    player.script("work", [Running(), Wait("never"), Hang()])
    name = f"shut-down-{strategy.lower()}"
    await runs.create(name)
    await player.arrived("never")

    await runs.shut_down(name, strategy)
    seen = await runs.phase(name, "Failed")

    assert seen["status"]["message"] == f"Stopped with strategy '{strategy}'"


async def test_stop_spares_the_exit_handler(player: PodPlayer, runs: Runs) -> None:
    """After Stop the exit handler's pod still runs to its end."""
    container = {"image": "nowhere/test:1", "command": ["test"]}
    templates = [{"name": name, "container": container} for name in ("work", "notify-result")]
    player.script("work", [Running(), Wait("stop-me"), Hang()])
    player.script("notify-result", [Running(), Wait("notified"), Exit(0)])
    await runs.submit("stopped", {"entrypoint": "work", "onExit": "notify-result", "templates": templates})
    await player.arrived("stop-me")

    await runs.shut_down("stopped", "Stop")
    await player.arrived("notified")
    await player.release("notified")
    seen = await runs.phase("stopped", "Failed")

    assert node(seen, "stopped.onExit")["phase"] == "Succeeded"


@pytest.mark.parametrize(
    ("name", "end", "message"),
    [
        ("exit-1", Exit(1), "main: Error (exit code 1)"),
        ("exit-3", Exit(3, "out of luck"), "main: Error (exit code 3): out of luck"),
        ("oom", OOMKilled(), "main: OOMKilled (exit code 137)"),
    ],
)
async def test_bad_ends(player: PodPlayer, runs: Runs, name: str, end: Action, message: str) -> None:
    """Failed programs and exhausted memory show as the controller words them."""
    player.script("work", [Running(), end])
    await runs.create(name)

    seen = await runs.phase(name, "Failed")

    assert node(seen, "work")["phase"] == "Failed"
    assert node(seen, "work")["message"] == message


async def test_pod_of_a_lost_node_is_made_anew(player: PodPlayer, runs: Runs) -> None:
    """A pod that is gone with its node shortly after its start is made anew, and follows the script of that time."""
    player.script("work", [Running(), Wait("lost"), NodeLost()])
    await runs.create("lost")
    await player.arrived("lost")
    first = await runs.rig.kube.admin.get(PODS, {"labelSelector": "workflows.argoproj.io/workflow=lost"})

    player.script("work", [Running(), Exit(0)])
    await player.release("lost")
    await runs.phase("lost", "Succeeded")
    second = await runs.rig.kube.admin.get(PODS, {"labelSelector": "workflows.argoproj.io/workflow=lost"})

    assert len(first["items"]) == len(second["items"]) == 1
    assert first["items"][0]["metadata"]["uid"] != second["items"][0]["metadata"]["uid"]


async def test_missing_output_file_fails_the_step(player: PodPlayer, runs: Runs) -> None:
    """An output file that is missing has the executor fail, though the program succeeded."""
    player.script("work", [Running(), Outputs({"results": None}), Exit(0)])
    await runs.create("no-file")

    seen = await runs.phase("no-file", "Failed", "Error")

    assert "no such file" in node(seen, "work")["message"]


async def test_evicted_pod_has_the_kubelets_words(player: PodPlayer, runs: Runs) -> None:
    """A pod that is evicted while it runs fails with the kubelet's message."""
    player.script("work", [Running(), Evicted("The node was low on resource: memory.")])
    await runs.create("evicted")

    seen = await runs.phase("evicted", "Failed")

    assert node(seen, "work")["message"] == "The node was low on resource: memory."


async def test_deadline_of_the_step(player: PodPlayer, runs: Runs) -> None:
    """A step that runs past its deadline fails as a kubelet would have it."""
    container = {"image": "nowhere/test:1", "command": ["test"]}
    work = {"name": "work", "container": container, "activeDeadlineSeconds": 1}
    player.script("work", [Running(), Hang()])
    await runs.submit("late", {"entrypoint": "work", "templates": [work]})

    seen = await runs.phase("late", "Failed")

    assert "longer than the specified deadline" in node(seen, "late")["message"]


async def test_deadline_of_the_workflow(player: PodPlayer, runs: Runs) -> None:
    """A workflow that runs past its deadline has its pods ended."""
    player.script("work", [Running(), Hang()])
    await runs.create("all-late", activeDeadlineSeconds=2)

    await runs.phase("all-late", "Failed")
    pods = await runs.rig.kube.admin.get(PODS, {"labelSelector": "workflows.argoproj.io/workflow=all-late"})

    assert [pod["status"]["phase"] for pod in pods["items"]] in ([], ["Failed"])


async def test_retry_and_resubmit_by_argos_code(player: PodPlayer, runs: Runs) -> None:
    """A failed workflow is retried under its uid, and resubmitted under another."""
    player.script("work", [Running(), Exit(1)])
    await runs.create("again")
    failed = await runs.phase("again", "Failed")

    player.script("work", [Running(), Outputs({"results": "ok"}), Exit(0)])
    retried = await runs.rig.argo_retry("again")
    await runs.phase("again", "Succeeded")
    other = await runs.rig.argo_resubmit("again")
    await runs.phase(other["metadata"]["name"], "Succeeded")

    assert retried["metadata"]["uid"] == failed["metadata"]["uid"]
    assert other["metadata"]["uid"] != failed["metadata"]["uid"]


async def test_attempts_of_a_retry_strategy_have_their_scripts(player: PodPlayer, runs: Runs) -> None:
    """The first attempt may fail and the second succeed, each by its own script."""
    container = {"image": "nowhere/test:1", "command": ["test"]}
    work = {"name": "work", "container": container, "retryStrategy": {"limit": "2"}}
    player.script("work(0)", [Running(), Exit(1)])
    player.script("work", [Running(), Exit(0)])
    await runs.submit("attempts", {"entrypoint": "main", "templates": [steps_of("work"), work]})

    seen = await runs.phase("attempts", "Succeeded")

    assert [node(seen, f"work({number})")["phase"] for number in (0, 1)] == ["Failed", "Succeeded"]


async def test_script_of_one_workflow_goes_first(player: PodPlayer, runs: Runs) -> None:
    """A script for one workflow does not touch the others."""
    player.script("work", [Running(), Exit(1)], workflow="unlucky")
    await asyncio.gather(runs.create("unlucky"), runs.create("lucky"))

    await asyncio.gather(runs.phase("unlucky", "Failed"), runs.phase("lucky", "Succeeded"))


async def test_new_player_takes_over(rig: Rig, runs: Runs) -> None:
    """A player started anew goes on with pods that run already."""
    async with rig.pod_player() as first:
        first.script("work", [Running(), Wait("handed-over"), Hang()])
        await runs.create("two-players")
        await first.arrived("handed-over")

    async with rig.pod_player() as second:
        second.script("work", [Running(), Exit(0)])
        await runs.phase("two-players", "Succeeded")


@pytest.mark.parametrize("service", ["kube-apiserver", "workflow-controller", "etcd"])
@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_servers_restart_under_a_running_workflow(
    rig: Rig, player: PodPlayer, runs: Runs, service: str, how: str
) -> None:
    """A workflow survives each server's restart, and so does the player."""
    name = f"{how}-{service}"
    player.script("work", [Running(), Wait(name), Exit(0)])
    await runs.create(name)
    await player.arrived(name)

    await getattr(rig, how)(service)
    await player.release(name)
    await rig.start_again(service)

    await runs.phase(name, "Succeeded", limit=60)


async def test_paused_server_answers_later(rig: Rig) -> None:
    """A paused API server keeps its connections, and answers when it goes on."""
    rig.pause("kube-apiserver")
    question = asyncio.get_running_loop().create_task(rig.kube.admin.get("/version"))
    done, _ = await asyncio.wait({question}, timeout=0.5)
    rig.resume("kube-apiserver")

    assert not done
    assert (await question)["gitVersion"] == "v1.34.4"


async def test_chat_goes_away_and_comes_back(rig: Rig) -> None:
    """The chat keeps its posts over a restart, and a person's browser connects again."""
    office = Office(rig.mattermost.client())
    team = await office.create_team("restarts")
    channel = await office.create_channel(team, "gpu")
    async with (
        small_server(lambda _: web.json_response({"text": "here"})) as url,
        await office.create_person("bert", team, channel) as bert,
    ):
        await office.create_command(team, "hello", url)
        post = await bert.type(channel, "before")
        await rig.stop("mattermost")
        with pytest.raises(Exception, match="Cannot connect"):
            await bert.posts(channel)
        await rig.start_again("mattermost")

        assert post["id"] in {each["id"] for each in await bert.posts(channel)}
        await bert.reconnected()
        await bert.type(channel, "/hello")
        assert (await bert.next_ephemeral())["message"] == "here"


async def test_person_clicks_and_fills_in_a_dialog(rig: Rig) -> None:
    """A click on a bot's post opens a dialog, whose values reach the bot."""
    office = Office(rig.mattermost.client())
    team = await office.create_team("dialogs")
    channel = await office.create_channel(team, "gpu", private=True)
    bot = await office.create_bot("dialog-bot", team, channel)
    bot_client = rig.mattermost.client(bot.token)
    async with (
        dialog_server(rig, bot_client.url) as (url, submitted),
        await office.create_person("cleo", team, channel) as cleo,
    ):
        action = {"id": "stop", "name": "Stop run", "type": "button", "integration": {"url": f"{url}/click"}}
        props = {"attachments": [{"text": "a run", "actions": [action]}]}
        await bot_client.post("/posts", {"channel_id": channel, "message": "card", "props": props})
        (card,) = [post for post in await cleo.posts(channel) if post["message"] == "card"]

        await cleo.click(card, "Stop run")
        dialog = await cleo.next_dialog()
        errors = await cleo.submit_dialog(dialog, channel, {"reason": ""})
        await cleo.submit_dialog(dialog, channel, {"reason": "wrong branch"})

    assert dialog["dialog"]["title"] == "Stop the run?"
    assert errors["errors"] == {"reason": "say why"}
    assert submitted == [{"reason": ""}, {"reason": "wrong branch"}]


@asynccontextmanager
async def dialog_server(rig: Rig, chat_url: str) -> AsyncIterator[tuple[str, list[Mapping[str, Any]]]]:
    """Serve a bot that opens a dialog on a click and wants a reason."""
    submitted: list[Mapping[str, Any]] = []

    async def click(request: web.Request) -> web.Response:
        element = {"display_name": "Reason", "name": "reason", "type": "text"}
        dialog = {"callback_id": "stop", "title": "Stop the run?", "elements": [element]}
        trigger = (await request.json())["trigger_id"]
        opening = {"trigger_id": trigger, "url": f"http://{request.host}/submit", "dialog": dialog}
        await rig.mattermost.client().post("/actions/dialogs/open", opening)
        return web.json_response({})

    async def submit(request: web.Request) -> web.Response:
        submission = (await request.json())["submission"]
        submitted.append(submission)
        return web.json_response({} if submission["reason"] else {"errors": {"reason": "say why"}})

    app = web.Application()
    app.add_routes([web.post("/click", click), web.post("/submit", submit)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", submitted
    finally:
        await runner.cleanup()


async def test_channel_is_disturbed(rig: Rig) -> None:
    """A bot put out of a channel, or whose channel is archived, may not post any more."""
    office = Office(rig.mattermost.client())
    team = await office.create_team("disturbed")
    first, second = [await office.create_channel(team, name) for name in ("one", "two")]
    bot = await office.create_bot("unlucky-bot", team, first, second)
    client = rig.mattermost.client(bot.token)

    await office.remove_member(bot.user_id, first)
    await office.archive_channel(second)

    with pytest.raises(MattermostError, match="^403"):
        await client.post("/posts", {"channel_id": first, "message": "hello"})
    with pytest.raises(MattermostError, match="^400"):
        await client.post("/posts", {"channel_id": second, "message": "hello"})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("seconds", [0.0, 2.5])
async def test_nothing_is_left_behind(number: signal.Signals, seconds: float) -> None:
    """Servers end with the process that started them, however it ends and however long after its first one."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.real.rig.selftest", "--small"),
        cwd=ROOT,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    async with asyncio.timeout(20):
        while not children_of(process.pid):
            await asyncio.sleep(0.05)
    await asyncio.sleep(seconds)
    started = children_of(process.pid)
    process.send_signal(number)
    await asyncio.wait_for(process.wait(), 20)

    give_up = time.monotonic() + 10
    while (left := [pid for pid in started if Path("/proc", str(pid)).exists()]) and time.monotonic() < give_up:
        await asyncio.sleep(0.1)

    assert started
    assert not left


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    return [
        child
        for child in (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
        if parent_of(child) == pid
    ]


def parent_of(pid: int) -> int:
    """Return the id of a process's parent, or 0 if the process is gone."""
    try:
        return int(Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return 0


async def test_argo_4_with_its_full_definitions() -> None:
    """The same goes for Argo 4.0, beside the other rig."""
    await selftest("4.0", "full", everything=False)
