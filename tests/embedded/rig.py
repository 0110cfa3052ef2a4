"""The embedded world in the shape of the rig: what is written for the real servers runs on it as it is.

    async with EmbeddedRig.start() as rig:
        await rig.kube.admin.get("/version")
        await rig.mattermost.client().get("/users/me")
        await rig.restart("kube-apiserver")

Pods are nobody's business here either: a player of the real rig plays them over HTTP.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path

import aiohttp

from bot.demo import EmbeddedWorld
from bot.demo.access import User
from bot.demo.argo_operation import Timing
from bot.demo.faults import Fault, Faults
from tests.embedded.patience import Patience
from tests.embedded.player import player_by
from tests.real.rig.kube_client import KubeClient, Manifest
from tests.real.rig.launcher import NAMESPACES
from tests.real.rig.mattermost_client import MattermostClient
from tests.real.rig.pod_player import PodPlayer

BOT_ACCOUNT = "gputest/gputest-bot"


class PatientClient(KubeClient):
    """A client whose waits are those of the embedded world."""

    def __init__(self, session: aiohttp.ClientSession, url: str, token: str, patience: Patience) -> None:
        super().__init__(session, url, token, ssl.create_default_context())
        self._patience = patience

    async def until(self, path: str, holds: Callable[[Manifest], bool], limit: float = 30.0) -> Manifest:
        """Read an object again and again until something holds of it."""
        seen: Manifest = {}

        async def look() -> bool:
            nonlocal seen
            seen = await self.get(path)
            return holds(seen)

        try:
            await self._patience.until(look, limit)
        except TimeoutError:
            raise TimeoutError(f"{path} did not come to be as awaited in {limit:g} s; last: {seen}") from None
        return seen


class EmbeddedKube:
    """The API server's address, and tokens of the users that it knows."""

    def __init__(self, world: EmbeddedWorld, session: aiohttp.ClientSession, patience: Patience) -> None:
        self._world = world
        self._session = session
        self._patience = patience
        self.url = world.kube_url
        self.admin_token = world.admin_token

    def token(self, namespace: str, name: str) -> str:
        """The token of a service account."""
        if f"{namespace}/{name}" == BOT_ACCOUNT:
            return self._world.kube_token
        token = f"token-of-{namespace}-{name}"
        self._world.cluster.access.users.setdefault(token, User.service_account(namespace, name))
        return token

    def client(self, token: str | None = None) -> KubeClient:
        """A client: the admin's, or that of the token's user."""
        return PatientClient(self._session, self.url, token or self.admin_token, self._patience)

    @cached_property
    def admin(self) -> KubeClient:
        """The admin's client."""
        return self.client()

    def kubeconfig(self, path: Path, token: str | None = None) -> Path:
        """Write a kubeconfig file of the admin, or of the token's user."""
        path.write_text(self._world.kubeconfig(token or ""), encoding="utf-8")
        return path


class EmbeddedMattermost:
    """The chat server's address and its administrator's token."""

    def __init__(self, world: EmbeddedWorld, session: aiohttp.ClientSession) -> None:
        self.url = world.chat_url
        self.admin_token = world.tokens["admin"]
        self.session = session

    def client(self, token: str | None = None) -> MattermostClient:
        """A client: the administrator's, or that of the token's user."""
        return MattermostClient(self.session, self.url, token or self.admin_token)


class EmbeddedRig:
    """A running world."""

    def __init__(self, world: EmbeddedWorld, session: aiohttp.ClientSession) -> None:
        self.world = world
        self.session = session
        self.patience = Patience(world)
        self.kube = EmbeddedKube(world, session, self.patience)
        self.mattermost = EmbeddedMattermost(world, session)
        self._paused: dict[str, Fault] = {}

    @classmethod
    @asynccontextmanager
    async def start(cls, timing: Timing | None = None) -> AsyncIterator[EmbeddedRig]:
        """A new world, empty but for its administrators; `timing` is that of Argo's controller."""
        world = EmbeddedWorld(manifests=[], bot_account=BOT_ACCOUNT, furnished=False)
        jar = aiohttp.DummyCookieJar()
        async with world, aiohttp.ClientSession(cookie_jar=jar) as session:
            world.cluster.manual()
            world.cluster.argo.timing = timing or Timing()
            for namespace in NAMESPACES:
                world.cluster.ensure_namespace(namespace)
            yield cls(world, session)

    async def until(self, check: Callable[[], bool], limit: float = 30.0) -> None:
        """Look again and again until something is so."""

        async def look() -> bool:
            return check()

        await self.patience.until(look, limit)

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, without waiting for it."""
        self.world.clock.leap(seconds)
        await asyncio.sleep(0.05)

    async def stop(self, name: str) -> None:
        """Take a server away."""
        if name == "workflow-controller":
            self.world.cluster.argo_down()
        else:
            self._faults(name).away()
        await asyncio.sleep(0)

    kill = stop

    async def start_again(self, name: str) -> None:
        """Bring a server back."""
        if name == "workflow-controller":
            self.world.cluster.argo_up()
        else:
            self._faults(name).away(False)
        await asyncio.sleep(0)

    async def restart(self, name: str) -> None:
        """Take a server away and bring it back."""
        await self.stop(name)
        await self.start_again(name)

    def pause(self, name: str) -> None:
        """Freeze a server: it keeps its connections and answers nothing."""
        self._paused[name] = self._faults(name).hold(times=None)

    def resume(self, name: str) -> None:
        """Let a paused server go on."""
        self._paused.pop(name).release()

    def pod_player(self, namespace: str = "foxhunt") -> PodPlayer:
        """A player of kubelet and executor, to be entered with ``async with``."""
        return player_by(self.world.clock, self.kube.admin, namespace)

    async def argo_retry(self, name: str, parameters: Sequence[str] = ()) -> Manifest:
        """`argo retry`, as the embedded world knows it."""
        assert not parameters
        self.world.cluster.retry(name)
        return _copy(self.world.cluster.workflow(name))

    async def argo_resubmit(self, name: str, parameters: Sequence[str] = ()) -> Manifest:
        """`argo resubmit`, as the embedded world knows it."""
        assert not parameters
        return _copy(self.world.cluster.workflow(self.world.cluster.resubmit(name)))

    def _faults(self, name: str) -> Faults:
        return {"kube-apiserver": self.world.kube_faults, "mattermost": self.world.chat_faults}[name]


def _copy(obj: Manifest) -> Manifest:
    copied: Manifest = json.loads(json.dumps(obj))
    return copied
