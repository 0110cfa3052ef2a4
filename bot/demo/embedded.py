"""The embedded world: cluster and chat on one clock, each behind its own address on 127.0.0.1."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

import yaml
from aiohttp import web

from bot.demo.access import MASTERS, User
from bot.demo.chance import Chance
from bot.demo.chat import Chat
from bot.demo.clock import Clock
from bot.demo.cluster import DEFAULT_OBJECTS, Cluster
from bot.demo.faults import Faults
from bot.demo.kube_api import KubeApi
from bot.demo.pools import Pool

FIXED_START = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
"""When a world whose clock is stepped begins, so that tests can name times."""


class EmbeddedWorld:
    """An async context manager that runs both servers.

    With `speed=0` the clock stands still until it is stepped. Without `manifests` the cluster holds a test template
    of its own; with `bot_account` ("namespace/name") the bot's Kubernetes token is that service account's, with the
    rights that the manifests' RBAC objects give it, else it may do everything. Without `furnished` the chat has an
    administrator and nothing else, who sets it up over the API. `chat_port` may be a socket that listens already.
    """

    def __init__(  # noqa: PLR0913  # the settings of a world, each with its default
        self,
        *,
        seed: int = 1,
        speed: float = 1.0,
        kube_port: int = 0,
        chat_port: int | socket.socket = 0,
        manifests: Iterable[Path | str] | None = None,
        bot_account: str = "",
        start: datetime | None = None,
        namespace: str = "foxhunt",
        pools: list[Pool] | None = None,
        furnished: bool = True,
    ) -> None:
        self.chance = Chance(seed)
        self.clock = Clock(start or (datetime.now(UTC) if speed else FIXED_START), speed)
        self.cluster = Cluster(self.clock, self.chance, namespace=namespace, pools=pools)
        self.chat = Chat(self.clock, self.chance, furnished=furnished)
        self.kube_url = self.chat_url = ""
        self.kube_token, self.admin_token = self.chance.mattermost_id(), self.chance.mattermost_id()
        self._ports = (kube_port, chat_port)
        self._manifests = [DEFAULT_OBJECTS] if manifests is None else [Path(one) for one in manifests]
        self._runners: list[web.AppRunner] = []
        self._set_up_access(bot_account)

    @property
    def bot_token(self) -> str:
        """The bot's personal access token for Mattermost."""
        return self.chat.tokens["bot"]

    @property
    def tokens(self) -> dict[str, str]:
        """Personal access tokens of Mattermost, of dev, viewer, admin and bot."""
        return self.chat.tokens

    @property
    def kube_api(self) -> KubeApi:
        """The Kubernetes API: what tokens did (`access`), bookmarks and 410s on demand."""
        return self.cluster.api

    @property
    def kube_faults(self) -> Faults:
        """What is broken about the Kubernetes API."""
        return self.cluster.api.faults

    @property
    def chat_faults(self) -> Faults:
        """What is broken about Mattermost."""
        return self.chat.api.faults

    def register_command(
        self, trigger: str, url: str, *, hint: str = "", description: str = "", method: str = "P"
    ) -> str:
        """Register a slash command as an administrator does; returns its token. Raises ChatError."""
        body = {"team_id": self.chat.team_id, "trigger": trigger, "url": url, "method": method, "auto_complete": True}
        body |= {"auto_complete_hint": hint, "auto_complete_desc": description}
        return str(self.chat.api.commands.register(self.chat.user_id("admin"), body)["token"])

    def kubeconfig(self, token: str = "") -> str:
        """A kubeconfig for the embedded cluster, by default with the administrator's token.

        The token is in the address as well: kubectl keeps it to itself where there is no TLS.
        """
        token = token or self.admin_token
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "embedded",
            "clusters": [{"name": "embedded", "cluster": {"server": f"{self.kube_url}/as/{token}"}}],
            "users": [{"name": "me", "user": {"token": token}}],
            "contexts": [
                {
                    "name": "embedded",
                    "context": {"cluster": "embedded", "user": "me", "namespace": self.cluster.namespace},
                }
            ],
        }
        return yaml.safe_dump(config, sort_keys=False)

    async def __aenter__(self) -> Self:
        self.clock.start()
        self.cluster.start(self._manifests)
        await self.chat.api.integrations.start()
        self.kube_url = await self._serve(self.cluster.api.app, self._ports[0])
        self.chat_url = await self._serve(self.chat.api.app, self._ports[1])
        self.chat.api.url = self.chat_url
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clock.stop()
        for faults in (self.kube_faults, self.chat_faults):
            faults.clear()
            faults.cut_streams()
        for runner in self._runners:
            await runner.cleanup()
        await self.chat.api.integrations.stop()

    async def _serve(self, app: web.Application, port: int | socket.socket) -> str:
        # A handler ends with its client, so that a watch that nobody reads does not stay.
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.5)
        await runner.setup()
        self._runners.append(runner)
        if isinstance(port, socket.socket):
            await web.SockSite(runner, port).start()
        else:
            await web.TCPSite(runner, "127.0.0.1", port).start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    def _set_up_access(self, bot_account: str) -> None:
        users = self.cluster.access.users
        users[self.admin_token] = User("admin", (MASTERS, "system:authenticated"))
        users[self.kube_token] = User("bot", (MASTERS, "system:authenticated"))
        if bot_account:
            namespace, _, name = bot_account.partition("/")
            users[self.kube_token] = User.service_account(namespace, name)
            self.cluster.ensure_namespace(namespace)
