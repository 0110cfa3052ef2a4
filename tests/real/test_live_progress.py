"""The card fills in while the tests run: markers in the log of the pod, through the real API server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.phrases import green
from tests.real.rig.pod_script import Bind, Exit, Log, Outputs, Running, Wait
from tests.real.stage import RealStage, real_stage
from tests.stories.stage import Transcript
from tests.stories.test_first_card import name, uid, uids

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module")]


def marker(event: str, **fields: object) -> Log:
    """One line as the runner prints it."""
    return Log("##gputest " + json.dumps({"event": event} | fields))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealStage]:
    """A node whose pods have logs."""
    async with real_stage(tmp_path_factory.mktemp("bot"), kwok=True) as stage:
        await stage.rig.nodes.add_node("h100-1", "ci-training-h100", gpus=1)
        yield stage


async def test_the_card_fills_in(stage: RealStage) -> None:
    """Compiling, testing, a red model, a green one; after a restart the log is read again from its beginning."""
    told = Transcript(stage)
    known = await uids(stage)
    stage.script("gpu-warmup", [Bind("h100-1"), Running(), Exit(0)])
    stage.script(
        "compile-and-test",
        [
            Bind("h100-1"),
            Running(),
            Log("cargo build: @all `hello` | ##gputest {not a marker}"),
            marker("resolved", commit="3f2a9c1" + "0" * 33),
            marker("compiling"),
            Wait("compiled"),
            marker("compiled", seconds=312.0),
            marker("suite_started", model="dqn", suite="dqn-lib"),
            marker("suite_finished", model="dqn", suite="dqn-lib", status="failed", failed_tests=["early_stops"]),
            marker("suite_started", model="ppo", suite="ppo-lib"),
            marker("suite_finished", model="ppo", suite="ppo-lib", status="passed"),
            marker("suite_started", model="tft", suite="tft-lib"),
            Wait("tested"),
            Outputs({"results": green("dqn,ppo,tft")}),
            Exit(0),
        ],
    )
    await stage.start_bot()

    await stage.say("/gputest dqn ppo tft")
    run = await told.new_run(known)
    await told.card(uid(run), "compiling", "compiling**")
    await stage.release("compiled")
    await told.card(uid(run), "testing", "2 of 3")
    await stage.kill_bot()
    await stage.start_bot()
    await told.card(uid(run), "testing, after a restart", "2 of 3")
    await stage.release("tested")
    await told.card(uid(run), "ended", "all 3 green")

    await told.let_go(name(run))
    told.matches("live_progress")
