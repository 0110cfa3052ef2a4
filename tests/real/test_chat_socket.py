"""Commands as posts, slash commands that register themselves and the check-up, on a real Mattermost and a real API server.

No slash command is used here but those of the registration: everything else goes through the websocket and REST.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import yaml

from bot.core.asking import COMMANDS
from bot.sinks.replies import ANSWER_KEY
from bot.sources.cursor import KEY, parse
from tests.contract.wire import Wire
from tests.real.rig.launcher import BOT_NAMESPACE
from tests.real.rig.person import BotAccount
from tests.real.rig.ports import free_ports
from tests.real.stage import ROOT, RealStage, real_stage

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealStage]:
    async with real_stage(tmp_path_factory.mktemp("chat")) as stage:
        yield stage


@pytest_asyncio.fixture(loop_scope="module")
async def stage(services: RealStage) -> AsyncIterator[RealStage]:
    """A stage whose bot is as its configuration says."""
    services.changes = {}
    yield services
    await services.stop_bot()


class OtherBot:
    """A second replica: a process of its own on another port."""

    def __init__(self, stage: RealStage, folder: Path) -> None:
        self.stage = stage
        self.log = folder / "other.log"
        self._config = folder / "other.yaml"
        (self.port,) = free_ports(1)
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        config = self.stage.config()
        config["bot"]["port"] = self.port
        self._config.write_text(yaml.safe_dump(config), encoding="utf-8")
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "bot", "run", "--config", str(self._config)),
                cwd=ROOT,
                env={**os.environ, "GPUTEST_MATTERMOST_TOKEN": self.stage.account.token},
                stderr=log,
            )
        await self.stage.until("the other bot is ready", lambda: readiness(self.stage, self.port, True))

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(self._process.wait(), 20)


async def readiness(stage: RealStage, port: int, wanted: bool) -> str:
    """What /readyz says, once it says what is wanted; "" before."""
    try:
        async with stage.rig.session.get(f"http://127.0.0.1:{port}/readyz") as response:
            text = await response.text()
            return text if (response.status == 200) is wanted else ""
    except aiohttp.ClientError:
        return ""


async def post(stage: RealStage, text: str, channel: str = "", root: str = "") -> str:
    """Anna posts something; its id."""
    sent = await stage.anna.type(channel or stage.channel, text, root)
    return str(sent["id"])


async def answers(stage: RealStage, post_id: str) -> list[str]:
    """The bot's answers in the thread of a post."""
    thread = await stage.anna.thread(post_id)
    return [
        str(p["message"])
        for p in thread
        if p["user_id"] == stage.account.user_id and p["props"].get(ANSWER_KEY) and not p["delete_at"]
    ]


async def answered(stage: RealStage, post_id: str, limit: float = 30.0) -> str:
    """The one answer, and a moment later still the only one."""

    async def look() -> list[str]:
        return await answers(stage, post_id)

    found = await stage.until("an answer in the thread", look, limit)
    await asyncio.sleep(0.7)
    assert len(await answers(stage, post_id)) == 1
    return str(found[0])


async def names(stage: RealStage) -> set[str]:
    return {run["metadata"]["name"] for run in await stage.workflows()}


async def direct(stage: RealStage) -> str:
    """The direct channel of Anna and the bot."""
    body = [stage.anna.user_id, stage.account.user_id]
    return str((await stage.anna.client.post("/channels/direct", body))["id"])


async def said(stage: RealStage, words: str, limit: float = 40.0) -> None:
    """Wait until the bot's log, from here on, says something."""
    start = stage._log.stat().st_size

    async def look() -> bool:
        return words in stage._log.read_bytes()[start:].decode()

    await stage.until(f"the log says {words!r}", look, limit)


async def test_typed_in_the_channel(stage: RealStage) -> None:
    """One run with what was asked for, one answer in the thread, and nobody is mentioned in it."""
    known = await names(stage)
    await stage.start_bot(GPUTEST_COMMAND_TOKENS="")

    text = await answered(stage, await post(stage, "@gputest models=all epochs=5"))

    (name,) = await names(stage) - known
    run = await stage.workflow(name)
    assert run is not None
    asked = {p["name"]: p["value"] for p in run["spec"]["arguments"]["parameters"]}
    assert asked["epochs"] == "5"
    assert asked["models"].count(",") == 9
    assert name.rsplit("-", 1)[-1] in text
    assert "@" not in text
    assert await stage.cards()


async def test_typed_in_a_direct_message(stage: RealStage) -> None:
    """Without the bot's name, and as any of its commands, with a slash or without."""
    known = await names(stage)
    await stage.start_bot()
    room = await direct(stage)

    text = await answered(stage, await post(stage, "models=dqn epochs=2", room))

    (name,) = await names(stage) - known
    assert name.rsplit("-", 1)[-1] in text
    assert "~gpu-tests" in text
    assert "Nightly" in await answered(stage, await post(stage, "nightly status", room))
    assert "Nightly" in await answered(stage, await post(stage, " /nightly status", room))
    refusal = await answered(stage, await post(stage, "models=mamba", room))
    assert "`@gputest models=mamba2`" in refusal
    assert await names(stage) - known == {name}


async def test_in_a_thread_and_not_addressed(stage: RealStage) -> None:
    """A reply is answered where it stands; talk about the bot, and an edit into a command, are none of its business."""
    await stage.start_bot()
    root = await post(stage, "who has seen @gputest status ?")
    reply = await post(stage, "@gputest: status", root=root)

    await answered(stage, reply)

    assert len(await answers(stage, root)) == 1
    await stage.anna.client.put(f"/posts/{root}/patch", {"message": "@gputest status"})
    await asyncio.sleep(1)
    assert len(await answers(stage, root)) == 1


async def test_typed_while_the_bot_was_down(stage: RealStage) -> None:
    """Answered once when it is back, with one run; what it had answered before it is not answered again."""
    known = await names(stage)
    await stage.start_bot()
    before = await post(stage, "@gputest status")
    await answered(stage, before)
    await stage.kill_bot()
    missed = await post(stage, "@gputest models=dqn")
    private = await post(stage, "status", await direct(stage))
    await stage.start_bot()

    await answered(stage, missed)
    await answered(stage, private)

    assert len(await names(stage) - known) == 1
    assert len(await answers(stage, before)) == 1


async def test_what_is_nested_without_end_makes_nobody_deaf(stage: RealStage) -> None:
    """Any member may post such props, whoever may create CronWorkflows may store such a spec; both servers take them."""
    nested = "[" * 5000 + "]" * 5000
    held = {"apiVersion": "argoproj.io/v1alpha1", "kind": "CronWorkflow", "metadata": {"name": "nested"}}
    cron = held | {"spec": {"suspend": True, "schedules": ["0 2 * * *"], "workflowSpec": {"deep": "DEEP"}}}
    chat, kube = stage.anna.client, Wire.kube(stage.rig.kube.admin)
    path = "/apis/argoproj.io/v1alpha1/namespaces/foxhunt/cronworkflows"
    props = {"channel_id": stage.channel, "message": "deep", "props": {"x": "DEEP"}}
    await stage.start_bot()

    async def send(url: str, token: str, body: dict[str, Any]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        text = json.dumps(body).replace('"DEEP"', nested)
        async with kube.session.post(url, data=text, headers=headers, ssl=False) as response:
            answer = (await response.text()).replace(nested, "0")
            assert response.status == 201, answer
            return dict(json.loads(answer))

    sent = await send(f"{chat.url}/api/v4/posts", chat.token, props)
    await send(f"{kube.url}{path}", kube.token, cron)
    try:
        await answered(stage, await post(stage, "@gputest status"))
        await stage.kill_bot()
        missed = await post(stage, "@gputest status")
        await stage.start_bot()
        await answered(stage, missed)
    finally:
        await stage.rig.kube.admin.delete(f"{path}/nested")
        await chat.delete(f"/posts/{sent['id']}")


async def test_edited_and_deleted_while_the_bot_was_down(stage: RealStage) -> None:
    """What was edited into a command is none, and a command whose answer was deleted does not run once more."""
    await stage.start_bot()
    greeting = await post(stage, "good morning all")
    command = await post(stage, "@gputest nightly enable")
    await answered(stage, command)
    (ours,) = [p for p in await stage.anna.thread(command) if p["props"].get(ANSWER_KEY)]
    await stage.office.delete_post(ours["id"])
    await stage.say('/nightly disable reason="no H100"')
    before = await names(stage)
    await stage.kill_bot()
    await stage.anna.client.put(f"/posts/{greeting}/patch", {"message": "@gputest dqn"})
    last = await post(stage, "@gputest help")
    await stage.start_bot()
    await answered(stage, last)

    assert await answers(stage, greeting) == await answers(stage, command) == []
    assert await names(stage) == before
    assert "is **off**" in await stage.say("/nightly status")


async def test_the_cursor_outlives_an_orderly_end(stage: RealStage) -> None:
    """It stands in the bot's own ConfigMap, at the last answer or later; the age of the ConfigMap is untouched."""
    await stage.start_bot()
    path = f"/api/v1/namespaces/{BOT_NAMESPACE}/configmaps/gputest-bot"
    born = (await stage.rig.kube.admin.get(path))["metadata"]["creationTimestamp"]
    asked = await post(stage, "@gputest status")
    await answered(stage, asked)
    await stage.stop_bot()
    body = await stage.rig.kube.admin.get(path)

    assert (parse(body["data"][KEY]) or 0) >= (await stage.anna.post(asked))["create_at"]
    assert body["metadata"]["creationTimestamp"] == born
    assert "purpose" in body["data"]


async def test_mattermost_restarted(stage: RealStage) -> None:
    """The line comes back by itself."""
    await stage.start_bot()
    await stage.rig.restart("mattermost")
    await stage.anna.reconnected(30)

    await answered(stage, await post(stage, "@gputest status"), limit=60)


async def test_mattermost_paused(stage: RealStage) -> None:
    """A line that is up and silent is noticed, and what is typed afterwards is answered once."""
    await stage.start_bot()
    ended = asyncio.get_running_loop().create_task(said(stage, "the chat's websocket ended"))
    await asyncio.sleep(0.1)
    stage.rig.pause("mattermost")
    try:
        # the cards are not read while it is paused, so the wait is the log's alone
        await ended
    finally:
        stage.rig.resume("mattermost")
    await stage.anna.reconnected(30)

    await answered(stage, await post(stage, "@gputest status"), limit=90)


async def test_two_bots(stage: RealStage, tmp_path: Path) -> None:
    """Only the holder of the Lease answers; when it dies, the other goes on, with what was typed in between as well."""
    await stage.start_bot()
    other = OtherBot(stage, tmp_path)
    await other.start()
    try:
        known = await names(stage)
        await answered(stage, await post(stage, "@gputest models=dqn"))
        assert len(await names(stage) - known) == 1
        await stage.kill_bot()
        between = await post(stage, "@gputest models=ppo")
        await answered(stage, between, limit=40)
        await answered(stage, await post(stage, "@gputest status"))
        assert len(await names(stage) - known) == 2
    finally:
        await other.stop()


async def lab(stage: RealStage, name: str) -> tuple[str, str]:
    """Another team with a channel, in which Anna and the bot are."""
    team = await stage.office.create_team(name)
    channel = await stage.office.create_channel(team, "gpu-tests")
    for user in (stage.anna.user_id, stage.account.user_id):
        await stage.office.add_member(user, team, channel)
    stage.changes = {"mattermost": {"team": name, "commands_url": f"http://127.0.0.1:{stage.port}/commands"}}
    return team, channel


async def commands(stage: RealStage, team: str) -> dict[str, dict[str, Any]]:
    found = await stage.office.admin.get("/commands", team_id=team, custom_only="true")
    return {command["trigger"]: command for command in found}


async def test_slash_commands_register_themselves(stage: RealStage) -> None:
    """Where the bot is an administrator of the team: made once, answered with tokens that nobody had to copy."""
    team, channel = await lab(stage, "lab")
    roles = {"scheme_user": True, "scheme_admin": True}
    await stage.office.admin.put(f"/teams/{team}/members/{stage.account.user_id}/schemeRoles", roles)
    await stage.start_bot(GPUTEST_COMMAND_TOKENS="")

    async def made() -> bool:
        return len(await commands(stage, team)) == len(COMMANDS)

    await stage.until("the commands are made", made)
    first = await commands(stage, team)
    for spec in COMMANDS:
        command = first[spec.trigger]
        assert command["url"] == f"http://127.0.0.1:{stage.port}/commands"
        assert (command["method"], command["auto_complete"]) == ("P", True)
        assert command["auto_complete_hint"] == spec.usage
        assert command["creator_id"] == stage.account.user_id
    seen = len(stage.anna.ephemerals)
    body = {"channel_id": channel, "team_id": team, "command": "/gputest help"}
    assert "starts GPU tests" in (await stage.anna.client.post("/commands/execute", body))["text"]
    assert len(stage.anna.ephemerals) >= seen

    await stage.stop_bot()
    await stage.start_bot(GPUTEST_COMMAND_TOKENS="")
    await asyncio.sleep(1)
    assert await commands(stage, team) == first  # not even corrected

    renewed = await stage.office.admin.put(f"/commands/{first['gputest']['id']}/regen_token")
    assert renewed["token"] != first["gputest"]["token"]
    await asyncio.sleep(10)  # it does not look more often for a token that it does not know
    assert "starts GPU tests" in (await stage.anna.client.post("/commands/execute", body))["text"]


async def test_two_bots_register_once(stage: RealStage, tmp_path: Path) -> None:
    """Two that start together make one of each, and both answer."""
    team, channel = await lab(stage, "twins")
    roles = {"scheme_user": True, "scheme_admin": True}
    await stage.office.admin.put(f"/teams/{team}/members/{stage.account.user_id}/schemeRoles", roles)
    other = OtherBot(stage, tmp_path)
    try:
        await asyncio.gather(other.start(), stage.start_bot(GPUTEST_COMMAND_TOKENS=""))
    except AssertionError:  # the other leads, and this one is ready without
        await stage.until("the bot is ready", lambda: readiness(stage, stage.port, True))
    try:
        await asyncio.sleep(2)
        found = await stage.office.admin.get("/commands", team_id=team, custom_only="true")
        assert sorted(command["trigger"] for command in found) == sorted(spec.trigger for spec in COMMANDS)
        body = {"channel_id": channel, "team_id": team, "command": "/nightly status"}
        assert "Nightly" in (await stage.anna.client.post("/commands/execute", body))["text"]
    finally:
        await other.stop()


async def test_slash_commands_without_the_right(stage: RealStage) -> None:
    """The log says what an administrator enters; posts work without any of it."""
    team, channel = await lab(stage, "guests")
    told = asyncio.get_running_loop().create_task(said(stage, "trigger word gputest"))
    await asyncio.sleep(0.1)
    await stage.start_bot(GPUTEST_COMMAND_TOKENS="")
    await told

    assert await commands(stage, team) == {}
    assert f"request URL http://127.0.0.1:{stage.port}/commands" in stage.log_tail()
    await answered(stage, await post(stage, "@gputest help", channel))


async def test_a_trigger_of_somebody_else(stage: RealStage) -> None:
    """It is said whose it is, and left alone."""
    team, _ = await lab(stage, "neighbours")
    theirs = await stage.office.create_command(team, "gputest", "http://127.0.0.1:9/hook")
    roles = {"scheme_user": True, "scheme_admin": True}
    await stage.office.admin.put(f"/teams/{team}/members/{stage.account.user_id}/schemeRoles", roles)
    told = asyncio.get_running_loop().create_task(said(stage, "belongs to rig-admin"))
    await asyncio.sleep(0.1)
    await stage.start_bot(GPUTEST_COMMAND_TOKENS="")
    await told

    found = await commands(stage, team)
    assert (found["gputest"]["id"], found["gputest"]["url"]) == (theirs.id, "http://127.0.0.1:9/hook")
    assert found["nightly"]["creator_id"] == stage.account.user_id


async def doctor(stage: RealStage, folder: Path, **environment: str) -> tuple[int, str]:
    """Exit status and report."""
    path = folder / "doctor.yaml"
    path.write_text(yaml.safe_dump(stage.config()), encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bot", "doctor", "--config", str(path)),
        cwd=ROOT,
        env={**os.environ, "GPUTEST_MATTERMOST_TOKEN": stage.account.token, **environment},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


def alike(stage: RealStage, report: str) -> str:
    """What differs from day to day, made alike."""
    report = report.replace(f"127.0.0.1:{stage.port}", "BOT").replace(stage.rig.mattermost.url, "CHAT")
    report = re.sub(r"next \w{3} \d+ \w{3} \d\d:\d\d", "next DAY HH:MM", report)
    report = re.sub(r"Kubernetes: v\S+", "Kubernetes: VERSION", report)
    return re.sub(
        r"Lease: \S+ (holds|held) it( and renewed it last \d+ s ago → start the bot)?", r"Lease: POD \1 it", report
    )


async def test_doctor(stage: RealStage, tmp_path: Path) -> None:
    """All is well; then much is not; then the token is not taken."""
    await stage.patch_cron("gpu-test-nightly", {"spec": {"suspend": False}})
    team, _ = await lab(stage, "checkup")
    roles = {"scheme_user": True, "scheme_admin": True}
    await stage.office.admin.put(f"/teams/{team}/members/{stage.account.user_id}/schemeRoles", roles)
    await stage.start_bot(GPUTEST_COMMAND_TOKENS="")

    async def made() -> bool:
        return len(await commands(stage, team)) == len(COMMANDS)

    await stage.until("the commands are made", made)
    status, report = await doctor(stage, tmp_path)
    reports = ["## as it should be\n" + alike(stage, report)]
    assert status == 0

    team, _ = await lab(stage, "mess")
    await stage.office.create_channel(team, "elsewhere")
    rules = "/apis/rbac.authorization.k8s.io/v1/namespaces/foxhunt/roles/gputest-bot"
    role = await stage.rig.kube.admin.get(rules)
    fewer = [r | {"verbs": [v for v in r["verbs"] if v != "patch"]} for r in role["rules"]]
    await stage.rig.kube.admin.merge(rules, {"rules": fewer})
    stage.changes["mattermost"] |= {"channel": "elsewhere", "nightly_channel": "unheard-of"}
    stage.changes["runs"] = {"template": "gpu-tests", "owners": ["nobody-at-all"]}
    try:

        async def denied() -> bool:
            return "patch not allowed" in (await doctor(stage, tmp_path))[1]

        await stage.until("the API server knows of it", denied)
        status, report = await doctor(stage, tmp_path)
    finally:
        await stage.rig.kube.admin.merge(rules, {"rules": role["rules"]})
    reports.append("## as it should not be\n" + alike(stage, report))
    assert status == 1

    stage.changes = {}
    status, report = await doctor(stage, tmp_path, GPUTEST_MATTERMOST_TOKEN="wrong")
    reports.append("## with a token that is not taken\n" + alike(stage, report))
    assert status == 1
    golden, text = GOLDEN / "doctor.md", "\n".join(reports)
    if os.environ.get("GOLDEN") == "write":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


async def test_a_token_that_is_not_taken_any_more(stage: RealStage) -> None:
    """The bot turns unready and says so; it recovers when its account is switched on again, and not when it is revoked."""
    await stage.start_bot()
    # a request that is under way while an account is switched off may have the server keep its session
    await answered(stage, await post(stage, "@gputest status"))
    await stage.office.disable_bot(stage.account)
    text = await stage.until("it is not ready", lambda: readiness(stage, stage.port, False))
    assert "a token that Mattermost takes" in text
    await stage.office.enable_bot(stage.account)
    await stage.until("it is ready again", lambda: readiness(stage, stage.port, True), limit=90)
    await answered(stage, await post(stage, "@gputest status"))

    held = await stage.office.admin.get(f"/users/{stage.account.user_id}/tokens")
    for token in held:
        await stage.office.admin.post("/users/tokens/revoke", {"token_id": token["id"]})
    began = time.monotonic()
    await stage.until("it is not ready", lambda: readiness(stage, stage.port, False))
    assert time.monotonic() - began < 25
    await stage.stop_bot()
    missed = await post(stage, "@gputest status")
    new = await stage.office.admin.post(f"/users/{stage.account.user_id}/tokens", {"description": "new"})
    stage.account = BotAccount(stage.account.user_id, stage.account.username, new["token"])
    await stage.start_bot()
    await answered(stage, missed)
