"""The exit step beside the bot, both with the secret that they share: one of them speaks of a run, and only one.

The stories of `tests/stories/test_ways_to_end.py` play the same without a secret, in both worlds.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.phrases import green
from tests.real.rig.pod_script import Exit, Outputs, Running, Wait
from tests.real.stage import RealStage, real_stage
from tests.stories.stage import StoredCard, Transcript
from tests.stories.test_first_card import name, passing, uid, uids
from tests.stories.test_ways_to_end import argo_ended

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(120)]

SECRET = "a long random text"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealStage]:
    """The real services, started once."""
    async with real_stage(tmp_path_factory.mktemp("exit-step")) as stage:
        yield stage


@pytest_asyncio.fixture(loop_scope="module")
async def stage(services: RealStage) -> AsyncIterator[RealStage]:
    """With the bot, which knows the secret."""
    services.reset()
    await services.start_bot(GPUTEST_EXIT_TOKEN=SECRET)
    yield services
    await services.stop_bot()
    await services.clear()


@pytest.fixture
def gate() -> str:
    """Where the exit step's pod waits; an opened gate stays open, so each test has its own."""
    return secrets.token_hex(4)


async def started(stage: RealStage, told: Transcript, line: str, *last: Any) -> dict[str, Any]:
    """Anna starts a run; its exit step does as given."""
    known = await uids(stage)
    stage.script("compile-and-test", passing(green("dqn,ppo")))
    stage.script("notify-result", [Running(), *last])
    assert await stage.say(line) == "" or "notify=false" in line
    return await told.new_run(known)


async def waits(stage: RealStage, run: dict[str, Any]) -> None:
    """The exit step's pod runs."""

    async def there() -> bool:
        nodes = (((await stage.workflow(name(run))) or {}).get("status") or {}).get("nodes") or {}
        return any(n["displayName"].endswith(".onExit") and n["phase"] == "Running" for n in nodes.values())

    await stage.until("the exit step runs", there)


async def knock(stage: RealStage, secret: str) -> int:
    """Somebody calls the bot's door; the status of its answer."""
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    door, body = f"http://127.0.0.1:{stage.port}/exit", {"workflow": "x", "uid": "x", "status": "Succeeded"}
    async with stage.rig.session.post(door, json=body, headers=headers) as answer:
        return answer.status


async def card_of(stage: RealStage, told: Transcript, run: dict[str, Any]) -> tuple[StoredCard, list[str]]:
    """The card of an ended run that was let go, and its thread."""
    card = await told.card(uid(run), "ended", "all 2 green", limit=60)
    await told.let_go(name(run))
    return card, await stage.thread(card)


async def test_the_bot_is_there_and_speaks_alone(stage: RealStage, gate: str) -> None:
    """The step's call is taken, and the step is silent."""
    told = Transcript(stage)
    run = await started(stage, told, "/gputest dqn,ppo", Wait(gate), Outputs({"said": "no"}), Exit(0))
    await waits(stage, run)
    before = await stage.said()

    assert await stage.exit_step(name(run), SECRET) == "no"
    await stage.release(gate)
    _, thread = await card_of(stage, told, run)

    assert await stage.said() == before
    assert len(thread) == 1


async def test_a_call_without_the_secret_is_refused(stage: RealStage, gate: str) -> None:
    """Nobody rings the bot's door without it; a step that lacks it speaks, and the bot does not take its post for proof."""
    told = Transcript(stage)
    run = await started(stage, told, "/gputest dqn,ppo", Wait(gate), Outputs({"said": "yes"}), Exit(0))
    await waits(stage, run)
    before = await stage.said()

    assert [await knock(stage, secret) for secret in ("", "wrong", SECRET)] == [401, 401, 200]
    assert await stage.exit_step(name(run)) == "yes"
    await stage.release(gate)
    _, thread = await card_of(stage, told, run)

    assert len(await stage.said()) == len(before) + 1
    assert len(thread) == 1


@pytest.mark.parametrize(
    ("leaves", "end"),
    [("stop_bot", [Outputs({"said": "yes"}), Exit(0)]), ("kill_bot", [Exit(137)])],
    ids=["says so", "dies"],
)
async def test_the_bot_is_away_and_the_step_speaks_once(
    stage: RealStage, gate: str, leaves: str, end: list[Any]
) -> None:
    """One post of the step; the bot, once back, finds it by its mark and rings nobody, even if the step's pod died."""
    told = Transcript(stage)
    run = await started(stage, told, "/gputest dqn,ppo", Wait(gate), *end)
    await waits(stage, run)
    before = await stage.said()
    await getattr(stage, leaves)()

    assert await stage.exit_step(name(run), SECRET) == "yes"
    await stage.release(gate)
    await argo_ended(stage, run)
    await stage.start_bot(GPUTEST_EXIT_TOKEN=SECRET)
    _, thread = await card_of(stage, told, run)

    (post,) = (await stage.said())[len(before) :]
    assert name(run) in post
    assert thread == []


async def test_nobody_speaks_of_a_run_that_asked_for_silence(stage: RealStage, gate: str) -> None:
    """notify=false: neither the step while the bot is away, nor the bot when it is back; the Workflow is let go."""
    told = Transcript(stage)
    run = await started(stage, told, "/gputest dqn,ppo notify=false", Wait(gate), Outputs({"said": "no"}), Exit(0))
    await waits(stage, run)
    before = await stage.anna.posts(stage.channel)
    await stage.stop_bot()

    assert await stage.exit_step(name(run), SECRET) == "no"
    await stage.release(gate)
    await argo_ended(stage, run)
    await stage.start_bot(GPUTEST_EXIT_TOKEN=SECRET)
    await told.let_go(name(run))

    assert [p["id"] for p in await stage.anna.posts(stage.channel)] == [p["id"] for p in before]
    assert [card for card in await stage.cards() if card.run == uid(run)] == []
