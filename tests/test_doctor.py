"""The check-up on the embedded world: it finds what was broken on purpose, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.__main__ import main
from bot.config import Config, Secrets, parse
from bot.core.render.doctor import Mark, healthy
from bot.demo.embedded import EmbeddedWorld
from bot.doctor import examine

DEPLOY = Path(__file__).parents[1] / "deploy"
URL = "http://bot.gputest.svc:8080/commands"


@pytest.fixture
async def world() -> AsyncIterator[EmbeddedWorld]:
    files = [DEPLOY / "argo" / "gpu-test-pipeline.yaml", DEPLOY / "argo" / "gpu-test-nightly.yaml"]
    files.append(DEPLOY / "bot" / "rbac.yaml")
    async with EmbeddedWorld(seed=3, manifests=files, bot_account="gputest/gputest-bot") as running:
        yield running


def config(world: EmbeddedWorld, **chat: str) -> Config:
    place = {"url": world.chat_url, "team": "foxhunt", "channel": "gpu-tests"} | chat
    return parse({"mattermost": place, "runs": {"owners": ["dev"]}})


async def look(world: EmbeddedWorld, config: Config, token: str = "", commands: tuple[str, ...] = ()) -> list[str]:
    secrets = Secrets(token or world.bot_token, commands)
    findings = await examine(config, secrets, kube_url=world.kube_url, kube_token=world.kube_token)
    missing = [f for f in findings if f.mark is Mark.MISSING]
    assert healthy(findings) is not bool(missing)
    return [str(finding) for finding in findings]


def bad(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith(("❌", "⚠️"))]


async def test_all_is_well(world: EmbeddedWorld) -> None:
    """With deploy/ applied nothing is missing, and nothing was changed by looking."""
    posts, commands = len(world.chat.state.posts), len(world.chat.state.commands)
    lines = await look(world, config(world))

    assert bad(lines) == []
    assert "✅ websocket: events come in" in lines
    assert "✅ WorkflowTemplate gpu-test-pipeline: it takes all that the bot sends" in lines
    assert "💡 Lease: nobody holds it → start the bot" in lines
    assert (len(world.chat.state.posts), len(world.chat.state.commands)) == (posts, commands)


async def test_a_token_that_is_not_taken(world: EmbeddedWorld) -> None:
    """There is nothing more to see in the chat; the cluster is looked at all the same."""
    lines = await look(world, config(world), token="wrong")

    assert lines[0].startswith("❌ token: it is not taken: Mattermost answered 401")
    assert lines[1].startswith("✅ Kubernetes")


async def test_no_token_and_no_chat(world: EmbeddedWorld) -> None:
    """Each is its own line."""
    findings = await examine(config(world), Secrets(""), kube_url=world.kube_url, kube_token=world.kube_token)
    assert str(findings[0]).startswith("❌ token: none is given")
    lines = await look(world, config(world, url="http://127.0.0.1:9"))

    assert lines[0].startswith("❌ Mattermost: http://127.0.0.1:9 does not answer as it should")


async def test_where_the_bot_is_not(world: EmbeddedWorld) -> None:
    """A team and a channel that are not there, one that it is not in, one that is archived."""
    assert any(
        line.startswith("❌ team: the bot sees no team x") for line in await look(world, config(world, team="x"))
    )
    lines = await look(world, config(world, channel="unheard-of"))
    assert any(line.startswith("❌ channel unheard-of: the bot sees no such channel") for line in lines)
    channel = world.chat.add_channel("elsewhere", members=("dev",))
    lines = await look(world, config(world, channel="elsewhere"))
    assert any(line.startswith("❌ channel elsewhere: the bot is no member") for line in lines)
    world.chat.state.channels[channel]["delete_at"] = 1
    lines = await look(world, config(world, channel="elsewhere"))
    assert any(line.startswith("❌ channel elsewhere: it is archived") for line in lines)


async def test_posts_that_may_not_be_edited(world: EmbeddedWorld) -> None:
    """A card would stand still."""
    world.chat.state.edit_limit = 300

    assert any(
        line.startswith("❌ edits: posts may be edited for 300 s only") for line in await look(world, config(world))
    )


async def test_slash_commands(world: EmbeddedWorld) -> None:
    """Without the right to look at them; what an administrator enters is printed."""
    lines = await look(world, config(world, commands_url=URL))
    assert any(f"trigger word gputest · request URL {URL}" in line for line in lines)
    assert any(line.startswith("💡 way back: whether Mattermost may call bot.gputest.svc:8080") for line in lines)
    token = world.register_command("gputest", URL)
    lines = await look(world, config(world, commands_url=URL))
    assert any(line.startswith("⚠️ /gputest: it is there, and the bot knows no token") for line in lines)
    lines = await look(world, config(world, commands_url=URL), commands=(token,))
    assert any(line.startswith("💡 /gputest: it is there") for line in lines)
    olga = world.chat.add_user("olga", admin=True)
    lines = await look(world, config(world, commands_url=URL), token=olga)

    assert f"✅ /gputest: leads to {URL}" in lines
    assert "💡 /nightly: it is not there yet → the bot makes it when it starts" in lines
    assert any("@olga is a person's account" in line for line in lines)
    lines = await look(world, config(world, commands_url="http://other/commands"), token=olga)
    assert any(line.startswith(f"⚠️ /gputest: belongs to admin and leads to {URL}") for line in lines)
    lines = await look(world, config(world, commands_url=URL), token=world.tokens["admin"])
    assert any(line.startswith("💡 /gputest: it is out of date") for line in lines)


async def test_the_line_that_does_not_stand(world: EmbeddedWorld) -> None:
    """A proxy that passes REST and no websocket."""
    world.chat_faults.fail(400, path="websocket", times=None)

    assert any(
        line.startswith("❌ websocket: the chat's websocket answered 400") for line in await look(world, config(world))
    )


async def test_rights_that_are_not_granted() -> None:
    """Each is named with what does not work without, and one command mends them."""
    files = [DEPLOY / "argo" / "gpu-test-pipeline.yaml"]
    async with EmbeddedWorld(seed=3, manifests=files, bot_account="gputest/gputest-bot") as world:
        lines = bad(await look(world, config(world)))

    assert (
        "❌ workflows in foxhunt: get, list, watch, create, patch not allowed, needed for runs"
        " → apply deploy/bot/rbac.yaml" in lines
    )
    assert any(line.startswith("⚠️ WorkflowTemplate gpu-test-pipeline: it can't be read") for line in lines)


async def test_a_cluster_without_the_objects() -> None:
    """The template is needed for a run, the nightly one is not."""
    async with EmbeddedWorld(seed=3, manifests=[DEPLOY / "bot" / "rbac.yaml"]) as world:
        lines = bad(await look(world, config(world)))

    assert [line.split(":")[0] for line in lines] == [
        "❌ WorkflowTemplate gpu-test-pipeline",
        "⚠️ CronWorkflow gpu-test-nightly",
    ]


async def test_no_way_to_a_cluster(world: EmbeddedWorld) -> None:
    """Outside of one, with no kubeconfig; and with one that leads nowhere."""
    secrets = Secrets(world.bot_token)
    lines = [str(finding) for finding in await examine(config(world), secrets)]
    assert lines[-1].startswith("❌ Kubernetes: there is no way to it")
    findings = await examine(config(world), secrets, kube_url="http://127.0.0.1:9", kube_token="x")

    assert str(findings[-1]).startswith("❌ Kubernetes: the cluster cannot be reached")


def test_the_exit_status(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """1 where something is missing; the report ends with the sum."""
    monkeypatch.delenv("GPUTEST_MATTERMOST_TOKEN", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "")
    path = tmp_path / "config.yaml"
    path.write_text("mattermost: {url: 'http://127.0.0.1:9'}\n", encoding="utf-8")

    assert main(["doctor", "--config", str(path)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "2 things are missing that a run needs."
