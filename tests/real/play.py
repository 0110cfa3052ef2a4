"""The main job on real services, played and printed: `python -m tests.real.play`.

Anna types `/gputest models=all epochs=5` in a real Mattermost. A real Argo controller runs the workflow on a real
Kubernetes API; only the pods are played. The card is printed at each stage as Mattermost stores it, then the notice.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from tests.phrases import green
from tests.real.rig.pod_script import Exit, Outputs, Pending, Running, Wait
from tests.real.stage import RealStage, real_stage
from tests.stories.stage import StoredCard

COMMAND = "/gputest models=all epochs=5"
STAGES = (
    ("a-node", "waiting for an H100"),
    ("the-warm-up", "warming up"),
    ("the-tests", "compiling and testing"),
    ("", "all 10 green"),
)


def say(text: str) -> None:
    """One line with its time."""
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


async def seen(stage: RealStage, shows: str) -> StoredCard:
    """Wait until a card shows these words."""

    async def look() -> StoredCard | None:
        return next((card for card in await stage.cards() if shows in str(card)), None)

    found: StoredCard = await stage.until(f"a card that shows {shows!r}", look)
    return found


async def play() -> None:
    """The whole play; raises where it does not go as it should."""
    say("starting etcd, kube-apiserver, the Argo controller, PostgreSQL, Mattermost")
    with tempfile.TemporaryDirectory() as folder:
        async with real_stage(Path(folder)) as stage:
            timings = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in stage.rig.timings.items())
            say(f"ready: {timings}")
            unplaced = Pending("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
            stage.script("gpu-warmup", [unplaced, Wait("a-node"), Running(), Wait("the-warm-up"), Exit(0)])
            stage.script("compile-and-test", [Running(), Wait("the-tests"), Outputs({"results": green()}), Exit(0)])
            await stage.start_bot()
            say("the bot is ready and holds the Lease")
            say(f"anna types: {COMMAND}")
            answer = await stage.say(COMMAND)
            assert answer == "", f"the card is the answer, and she read: {answer}"
            await _stages(stage)
            await _end(stage)


async def _stages(stage: RealStage) -> None:
    for gate, shows in STAGES:
        card = await seen(stage, shows)
        say(f"the card, as Mattermost stores it:\n\n{card}\n")
        if gate:
            await stage.release(gate)


async def _end(stage: RealStage) -> None:
    card = await seen(stage, "all 10 green")

    async def notice() -> list[str]:
        return await stage.thread(card)

    for text in await stage.until("the notice", notice):
        say(f"the notice, in its thread:\n\n{text}\n")
    (run,) = await stage.workflows()
    name = run["metadata"]["name"]

    async def released() -> bool:
        body = await stage.workflow(name)
        return body is not None and not body["metadata"].get("finalizers")

    await stage.until("the finalizer is gone", released)
    say(f"{name}: ten models reported, {run['status']['phase']}, and our finalizer is gone")


if __name__ == "__main__":
    asyncio.run(play())
