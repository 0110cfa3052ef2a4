"""The stage of real services: kube-apiserver, Argo, Mattermost, and the bot as a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.real.exit_step import ExitStep
from tests.real.rig.argo import argo_of_environment
from tests.real.rig.kube_client import ARGO, KubeError, Manifest
from tests.real.rig.launcher import BOT_NAMESPACE, Rig
from tests.real.rig.person import BotAccount, Office, Person
from tests.real.rig.pod_player import PodPlayer
from tests.real.rig.pod_script import Exit, Outputs, Running, Script
from tests.real.rig.ports import free_ports
from tests.stories.stage import CARD_KEY, StoredCard

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"

ARGO_FILES = ("gpu-test-pipeline.yaml", "gpu-test-nightly.yaml", "priority-classes.yaml", "rbac.yaml")
TEMPLATE = f"{ARGO}/namespaces/foxhunt/workflowtemplates/gpu-test-pipeline"
WORKFLOWS = f"{ARGO}/namespaces/foxhunt/workflows"
IMPATIENT = {
    "RECENTLY_STARTED_POD_DURATION": "0s",
    "RECENTLY_DELETED_POD_DURATION": "1s",
    "TASK_RESULT_TIMEOUT_DURATION": "4s",
}
"""The controller believes after seconds that a pod is lost, where it takes 10 s, 2 min and 10 min by itself."""
STEPS: dict[str, Script] = {
    "gpu-warmup": (Running(), Exit(0)),
    "compile-and-test": (Running(), Outputs({"results": ""}), Exit(0)),
    "notify-result": (Running(), Outputs({"said": "no"}), Exit(0)),
}
"""What the steps do where a story says nothing."""

ROLES = [
    {"name": "team", "users": ["anna", "ben"], "may": ["run", "cancel", "nightly", "look", "warm"], "max_epochs": 100},
    {"name": "guests", "may": ["look"]},
]
"""Who may do what in the stories."""

COLLECTIONS = {
    "WorkflowTemplate": f"{ARGO}/namespaces/foxhunt/workflowtemplates",
    "CronWorkflow": f"{ARGO}/namespaces/foxhunt/cronworkflows",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "ServiceAccount": "/api/v1/namespaces/{namespace}/serviceaccounts",
    "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
}


def manifests(path: Path) -> list[dict[str, Any]]:
    """The objects of one file."""
    return [body for body in yaml.safe_load_all(path.read_text(encoding="utf-8")) if body]


class RealStage:
    """Stories play here; one stage serves many of them."""

    namespace = "foxhunt"

    def __init__(self, rig: Rig, player: PodPlayer, folder: Path) -> None:
        self.rig = rig
        self.player = player
        self.office = Office(rig.mattermost.client())
        self.channel = ""
        self.team = ""
        self.people: dict[str, Person] = {}
        """Anna and Ben may do everything, Vera may look."""
        self.account: BotAccount
        self.changes: dict[str, dict[str, Any]] = {}
        """By section: what the bot's configuration has otherwise."""
        self.commands_per_minute = 200
        self._folder = folder
        self._port = 0
        self._tokens: list[str] = []
        self._process: asyncio.subprocess.Process | None = None
        self._log = folder / "bot.log"
        self._limited = False
        self._disturbed = False
        self._webhook = ""

    async def furnish(self, exits: AsyncExitStack) -> None:
        """Objects of deploy/, a team with a channel, Anna with an open browser, the bot's account and commands."""
        for file in ARGO_FILES:
            await self.apply(DEPLOY / "argo" / file)
        await self.apply(DEPLOY / "bot" / "rbac.yaml")
        self.team = await self.office.create_team("ml")
        self.channel = await self.office.create_channel(self.team, "gpu-tests")
        for name in ("anna", "ben", "vera"):
            person = await self.office.create_person(name, self.team, self.channel)
            self.people[name] = await exits.enter_async_context(person)
        await self.office.create_person("olga", self.team, self.channel)
        self.account = await self.office.create_bot("gputest", self.team, self.channel)
        (self._port,) = free_ports(1)
        for trigger in ("gputest", "nightly", "gpu"):
            command = await self.office.create_command(self.team, trigger, f"http://127.0.0.1:{self._port}/commands")
            self._tokens.append(command.token)

    @property
    def argo(self) -> str:
        """Which Argo plays."""
        return str(self.rig.choice.argo)

    @property
    def port(self) -> int:
        """Where the bot listens."""
        return self._port

    def reset(self) -> None:
        """Forget the scripts of the story before."""
        for step, actions in STEPS.items():
            self.script(step, actions)

    async def clear(self) -> None:
        """Undo what a story did to the world, whether it came to its end or not; nothing holds the lock of the next."""
        if self._disturbed:
            await self.restore_channel()
            await self.let_bot_in()
            self._disturbed = False
        if self._limited:
            await self.limits()
        for body in await self.workflows():
            meta, status = body["metadata"], body.get("status") or {}
            if status.get("phase") in {"Succeeded", "Failed", "Error"} and not meta.get("finalizers"):
                continue
            path = f"{WORKFLOWS}/{meta['name']}"
            await self.rig.kube.admin.merge(path, {"metadata": {"finalizers": None}, "spec": {"shutdown": "Terminate"}})
            await self.rig.kube.admin.delete(path)

    async def apply(self, path: Path) -> None:
        """Create the objects of a file."""
        for body in manifests(path):
            namespace = body["metadata"].get("namespace", "")
            await self.rig.kube.admin.ensure(COLLECTIONS[body["kind"]].format(namespace=namespace), body)

    # the bot

    def config(self) -> dict[str, Any]:
        """The bot's config.yaml."""
        token = self.rig.kube.token(BOT_NAMESPACE, "gputest-bot")
        kubeconfig = self.rig.kube.kubeconfig(self._folder / "bot.kubeconfig", token)
        config: dict[str, Any] = {
            "mattermost": {"url": self.rig.mattermost.url, "team": "ml", "channel": "gpu-tests"},
            "kubernetes": {"kubeconfig": str(kubeconfig)},
            "bot": {
                "namespace": BOT_NAMESPACE,
                "host": "127.0.0.1",
                "port": self._port,
                "url": f"http://127.0.0.1:{self._port}",
            },
            "runs": {"owners": ["olga"], "roles": ROLES, "commands_per_minute": self.commands_per_minute},
        }
        return {section: values | self.changes.get(section, {}) for section, values in config.items()}

    async def start_bot(self, **environment: str) -> None:
        """Start it, if it does not run, and wait until it is ready and may speak."""
        if self._process is not None and self._process.returncode is None:
            return
        path = self._folder / "config.yaml"
        path.write_text(yaml.safe_dump(self.config()), encoding="utf-8")
        secrets = {"GPUTEST_MATTERMOST_TOKEN": self.account.token, "GPUTEST_COMMAND_TOKENS": " ".join(self._tokens)}
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "bot", "run", "--config", str(path)),
                cwd=ROOT,
                env={**os.environ, **secrets, **environment},
                stderr=log,
            )
        await self.until("the bot is ready", self._ready, limit=40)

    async def _ready(self) -> bool:
        if self._process is None or self._process.returncode is not None:
            raise AssertionError(f"the bot ended by itself:\n{self.log_tail()}")
        try:
            async with self.rig.session.get(f"http://127.0.0.1:{self._port}/readyz") as response:
                return bool((await response.json())["leader"]) and response.status == 200
        except aiohttp.ClientError:
            return False

    async def kill_bot(self) -> None:
        """End it at once, as a crash would."""
        await self._end(signal.SIGKILL)

    async def stop_bot(self) -> None:
        """End it in an orderly way."""
        await self._end(signal.SIGTERM)

    async def _end(self, number: signal.Signals) -> None:
        if self._process is None or self._process.returncode is not None:
            return
        self._process.send_signal(number)
        await asyncio.wait_for(self._process.wait(), 20)

    def log_tail(self, size: int = 6000) -> str:
        """The end of the bot's log."""
        return self._log.read_text(encoding="utf-8")[-size:] if self._log.exists() else ""

    # people

    @property
    def anna(self) -> Person:
        """The one who asks for most things."""
        return self.people["anna"]

    async def say(self, text: str, who: str = "anna") -> str:
        """Somebody types a command in the channel of the cards and reads the answer."""
        person = self.people[who]
        seen = len(person.ephemerals)
        answer = await person.type(self.channel, text)
        return await self._heard(person, seen) if answer.get("text") else ""

    async def _heard(self, person: Person, seen: int, limit: float = 10.0) -> str:
        async def heard() -> bool:
            return len(person.ephemerals) > seen

        await self.until("the ephemeral answer", heard, limit)
        return str(person.ephemerals[-1]["message"])

    async def click(self, card: StoredCard, button: str, who: str = "anna") -> str:
        """Somebody clicks a button and reads the answer, if there is one within a moment."""
        person = self.people[who]
        seen = len(person.ephemerals)
        await person.click(await person.post(card.id), button)
        try:
            return await self._heard(person, seen, 0.5)
        except AssertionError:
            return ""

    async def dialog(self, who: str = "anna") -> dict[str, Any]:
        """Wait for the form that was opened for somebody."""
        return await self.people[who].next_dialog()

    async def submit(self, dialog: dict[str, Any], values: dict[str, Any], who: str = "anna") -> dict[str, Any]:
        """Somebody sends a form off; what it shows of errors."""
        return await self.people[who].submit_dialog(dialog, self.channel, values)

    async def cards(self) -> list[StoredCard]:
        """All cards of the channel, as stored."""
        return [
            stored(p) for p in await self.anna.posts(self.channel) if p["props"].get(CARD_KEY) and not p["delete_at"]
        ]

    async def thread(self, card: StoredCard) -> list[str]:
        """The replies under a card, oldest first."""
        return [str(p["message"]) for p in await self.anna.thread(card.id) if p["id"] != card.id]

    # the cluster

    def script(self, step: str, actions: Script, run: str | None = None) -> None:
        """What the pods of a step do from now on."""
        self.player.script(step, actions, run)

    async def release(self, gate: str) -> None:
        """Open a gate that a script waits at."""
        await self.player.release(gate)

    async def create(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Submit a Workflow by the plain API."""
        return await self.rig.kube.admin.create(f"{ARGO}/namespaces/foxhunt/workflows", manifest)

    async def workflow(self, name: str) -> dict[str, Any] | None:
        """One Workflow, None where it is gone."""
        try:
            return await self.rig.kube.admin.get(f"{ARGO}/namespaces/foxhunt/workflows/{name}")
        except KubeError as error:
            if error.status != 404:
                raise
            return None

    async def workflows(self) -> list[dict[str, Any]]:
        """All Workflows."""
        found: list[dict[str, Any]] = (await self.rig.kube.admin.get(f"{ARGO}/namespaces/foxhunt/workflows"))["items"]
        return found

    async def patch_cron(self, name: str, patch: dict[str, Any]) -> dict[str, Any]:
        """Change a CronWorkflow as an admin; returns it as it is then."""
        return await self.rig.kube.admin.merge(f"{ARGO}/namespaces/foxhunt/cronworkflows/{name}", patch)

    async def limits(self, *, run: int | None = None, warmup: int | None = None) -> None:
        """Let the template end runs, or warm-ups that wait, after so many seconds; without numbers as it is shipped."""
        (shipped,) = manifests(DEPLOY / "argo" / "gpu-test-pipeline.yaml")
        spec: Manifest = {key: shipped["spec"][key] for key in ("activeDeadlineSeconds", "templates")}
        if run is not None:
            spec["activeDeadlineSeconds"] = run
        for template in spec["templates"]:
            if template["name"] == "gpu-warmup" and warmup is not None:
                template["timeout"] = f"{warmup}s"
        self._limited = run is not None or warmup is not None
        await self.rig.kube.admin.merge(TEMPLATE, {"spec": spec})

    async def shut_down(self, run: str, strategy: str) -> None:
        """Stop or terminate a run, as kubectl would."""
        await self.rig.kube.admin.merge(f"{WORKFLOWS}/{run}", {"spec": {"shutdown": strategy}})

    async def delete(self, run: str) -> None:
        """Delete a run, as kubectl would."""
        await self.rig.kube.admin.delete(f"{WORKFLOWS}/{run}")

    async def retry(self, run: str) -> None:
        """`argo retry`, by Argo's own code; an attempt is named by the second it starts in, so another one has to come."""
        path = f"{WORKFLOWS}/{run}"

        async def another_second() -> bool:
            began = (await self.rig.kube.admin.get(path))["status"]["startedAt"]
            return datetime.now(UTC) > datetime.fromisoformat(began) + timedelta(seconds=1)

        await self.until("another second", another_second)
        await self.rig.argo_retry(run)

    async def resubmit(self, run: str) -> dict[str, Any]:
        """`argo resubmit`, by Argo's own code."""
        return await self.rig.argo_resubmit(run)

    async def restart(self, service: str) -> None:
        """Stop a server and start it again."""
        await self.rig.restart(service)

    async def exit_step(self, run: str, secret: str = "") -> str:
        """Run deploy/argo/notify/notify.py with what Argo gave this run's exit pod; returns what it said it said."""
        door = f"http://127.0.0.1:{self._port}/exit"
        step = ExitStep(self.rig, self._folder, door, self.exit_account(), secret)
        return await step.speak(run, await self._hook())

    def exit_account(self) -> dict[str, str]:
        """Files of the service account that pods of a run have."""
        authority = self.rig.kube.ca_file.read_text(encoding="utf-8")
        return {"token": self.rig.kube.token("foxhunt", "argo-workflow"), "ca.crt": authority}

    async def _hook(self) -> str:
        if not self._webhook:
            body = {"channel_id": self.channel, "display_name": "GPU tests"}
            hook = await self.office.admin.post("/hooks/incoming", body)
            self._webhook = f"{self.rig.mattermost.url}/hooks/{hook['id']}"
        return self._webhook

    # an admin of the chat

    async def delete_post(self, card: StoredCard) -> None:
        """Delete a card."""
        await self.office.delete_post(card.id)

    async def rename(self, who: str, name: str) -> None:
        """Give somebody another user name; the story gives it back."""
        await self.office.rename(self.people[who].user_id, name)

    async def archive_channel(self) -> None:
        """Archive the channel of the cards."""
        self._disturbed = True
        await self.office.archive_channel(self.channel)

    async def restore_channel(self) -> None:
        """Bring the channel back."""
        if (await self.office.admin.get(f"/channels/{self.channel}"))["delete_at"]:
            await self.office.admin.post(f"/channels/{self.channel}/restore")

    async def put_bot_out(self) -> None:
        """Remove the bot from the channel of the cards."""
        self._disturbed = True
        await self.office.remove_member(self.account.user_id, self.channel)

    async def let_bot_in(self) -> None:
        """Add the bot to the channel."""
        await self.office.admin.post(f"/channels/{self.channel}/members", {"user_id": self.account.user_id})

    async def said(self) -> list[str]:
        """Messages of the channel that are neither cards nor replies nor the server's own, oldest first."""
        posts = await self.anna.posts(self.channel)
        plain = [p for p in posts if not p["type"] and not p["root_id"] and not p["props"].get(CARD_KEY)]
        return [str(p["message"]) for p in plain if not p["delete_at"]]

    async def counted(self, metric: str, **labels: str) -> float:
        """A counter of the bot's metrics, summed over the labels that are left open."""
        async with self.rig.session.get(f"http://127.0.0.1:{self._port}/metrics") as response:
            samples = [s for family in text_string_to_metric_families(await response.text()) for s in family.samples]
        return sum(s.value for s in samples if s.name == metric and labels.items() <= s.labels.items())

    async def until(self, what: str, check: Callable[[], Awaitable[Any]], limit: float = 30.0) -> Any:
        """Look again and again until `check` returns something true."""
        try:
            async with asyncio.timeout(limit):
                while not (seen := await check()):
                    await asyncio.sleep(0.1)
        except TimeoutError:
            cards = "\n".join(str(card) for card in await self.cards()) if self.channel else ""
            raise AssertionError(f"not within {limit:g} s: {what}\ncards:\n{cards}\nbot:\n{self.log_tail()}") from None
        return seen


def stored(post: dict[str, Any]) -> StoredCard:
    """A card from its post."""
    attachment = (post["props"].get("attachments") or [{}])[0]
    key = str(post["props"][CARD_KEY])
    buttons = tuple(action["name"] for action in attachment.get("actions") or [])
    text, color = attachment.get("text", ""), attachment.get("color", "")
    return StoredCard(post["id"], post["message"], text, color, key.rsplit(":", 1)[0], buttons)


@asynccontextmanager
async def real_stage(folder: Path, **options: Any) -> AsyncIterator[RealStage]:
    """Everything started, furnished, and ended again; which Argo is said by ``ARGO``."""
    async with AsyncExitStack() as exits:
        options = {"controller_variables": IMPATIENT, **argo_of_environment(), **options}
        rig = await exits.enter_async_context(Rig.start(**options))
        player = await exits.enter_async_context(rig.pod_player())
        stage = RealStage(rig, player, folder)
        exits.push_async_callback(stage.stop_bot)
        await stage.furnish(exits)
        stage.reset()
        yield stage
