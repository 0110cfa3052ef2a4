"""`python -m bench`: every figure with its floor."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from bench import decode
from bench.figures import HEAD, Figure
from bench.pools import watching
from bench.services import Floors, at_rest, commands, creating, events_to_posts, say, starting
from tests.real.stage import real_stage


async def main() -> int:
    """Measure all, print a table, and say by the exit status whether a budget was missed."""
    figures: list[Figure] = [decode.measure()]
    with tempfile.TemporaryDirectory() as folder:
        async with real_stage(Path(folder)) as stage:
            # the controller would fight for the two cores, and its pods with it
            await stage.rig.stop("workflow-controller")
            floors = Floors(stage)
            async with floors.serving():
                stage.commands_per_minute = 1_000_000
                await stage.start_bot()
                for text in ("/gputest help", "/gputest status"):
                    say(text)
                    figures.append(await commands(floors, text))
                say("at rest")
                figures.append(await at_rest(stage, stage.port))
                say("commands that create")
                figures.append(await creating(floors))
                say("watch event -> card")
                figures.append(await events_to_posts(stage, floors))
                await stage.stop_bot()
            for run in await stage.workflows():
                path = f"/apis/argoproj.io/v1alpha1/namespaces/foxhunt/workflows/{run['metadata']['name']}"
                await stage.rig.kube.admin.merge(path, {"metadata": {"finalizers": None}})
                await stage.rig.kube.admin.delete(path)
            say("watching a large cluster")
            figures += await watching(stage, Path(folder))
            figures += await starting(stage, Path(folder))
    print(HEAD)
    for figure in figures:
        print(figure.line())
    return 1 if any(figure.missed for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
