"""The exit step, played by its own program: what the pod player plays for every other step."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from tests.real.rig.kube_client import Manifest
from tests.real.rig.launcher import Rig

NOTIFY = Path(__file__).parents[2] / "deploy" / "argo" / "notify"
LIMIT = 40.0

# The pod's service account is mounted at a place that only a pod has.
PROGRAM = """
import os, pathlib, sys
import notify
notify.ACCOUNT = pathlib.Path(os.environ["ACCOUNT"])
sys.exit(notify.main(dict(os.environ)))
"""


class ExitStep:
    """Runs notify.py as the container of an exit pod would, with the environment that Argo gave it."""

    program = PROGRAM

    def __init__(self, rig: Rig, folder: Path, bot_url: str, account: Mapping[str, str], secret: str = "") -> None:
        self._rig = rig
        self._folder = folder / "exit-step"
        self._bot_url = bot_url
        self._account = account
        """Files of its service account; without them it can't read its Workflow."""
        self._secret = secret
        """What it shows to the bot, of the Secret gpu-test-notify."""

    async def speak(self, run: str, webhook: str) -> str:
        """Run it to its end and return the output parameter `said`."""
        self._folder.mkdir(exist_ok=True)
        for name, text in self._account.items():
            (self._folder / name).write_text(text, encoding="utf-8")
        said = self._folder / "said"
        said.unlink(missing_ok=True)
        address = urlsplit(self._rig.kube.url)
        environment = await self._environment(run) | {
            "GPUTEST_SAID": str(said),
            "GPUTEST_BOT_URL": self._bot_url,
            "GPUTEST_WEBHOOK_URL": webhook,
            "GPUTEST_EXIT_TOKEN": self._secret,
            "KUBERNETES_SERVICE_HOST": str(address.hostname),
            "KUBERNETES_SERVICE_PORT": str(address.port),
            "ACCOUNT": str(self._folder),
        }
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, "-B", "-c", self.program), cwd=NOTIFY, env=environment, stdout=asyncio.subprocess.PIPE
        )
        printed, _ = await asyncio.wait_for(program.communicate(), LIMIT)
        if program.returncode != 0:
            raise AssertionError(f"the exit step failed:\n{printed.decode()}")
        return said.read_text(encoding="utf-8") if said.exists() else "unknown"

    async def _environment(self, run: str) -> dict[str, str]:
        selector = f"workflows.argoproj.io/workflow={run},workflows.argoproj.io/on-exit=true"
        found = await self._rig.kube.admin.get("/api/v1/namespaces/foxhunt/pods", {"labelSelector": selector})
        (pod,) = found["items"]
        main: Manifest = next(each for each in pod["spec"]["containers"] if each["name"] == "main")
        return {each["name"]: each["value"] for each in main["env"] if "value" in each}
