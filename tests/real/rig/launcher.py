"""Start real servers together, and leave nothing running.

    async with Rig.start(argo="3.7") as rig:
        await rig.kube.admin.get("/version")
        await rig.mattermost.client().get("/users/me")
        await rig.restart("kube-apiserver")

What does not depend on each other starts at the same time: etcd -> API server -> (definitions) -> Argo's controller,
scheduler and kwok on one side, PostgreSQL -> Mattermost on the other.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import aiohttp

from .argo import (
    CONTROLLER_NAMESPACE,
    HEALTH_PORT,
    WORKFLOW_NAMESPACE,
    ArgoVersion,
    Crds,
    configure,
    controller,
    formulate,
    install_argo,
)
from .chat import Chat, Mattermost, chat_template, template_token
from .cluster import Cluster, Kube, service_account
from .folder import rig_folder
from .kube_client import ARGO, KubeClient, Manifest
from .nodes import Nodes
from .pod_player import PodPlayer
from .ports import occupied
from .process import Service, ServiceError

_LAST_GRACE_SECONDS = 1.0
_Part = TypeVar("_Part")

BOT_NAMESPACE = "gputest"
POOL_LABEL = "k8s.scaleway.com/pool-name"
NAMESPACES = (WORKFLOW_NAMESPACE, CONTROLLER_NAMESPACE, BOT_NAMESPACE)
SERVICE_ACCOUNTS = (service_account(BOT_NAMESPACE, "gputest-bot"), service_account(WORKFLOW_NAMESPACE, "argo-workflow"))


@dataclass(frozen=True)
class Choice:
    """Which services a rig has, and how they are set up."""

    argo: ArgoVersion | None
    crds: Crds
    mattermost: bool
    scheduler: bool
    kwok: bool
    pool_label: str
    service_accounts: Sequence[str]
    controller_settings: Mapping[str, str]
    controller_variables: Mapping[str, str]
    mattermost_settings: Mapping[str, str]


@dataclass
class Rig:
    """The running servers."""

    folder: Path
    choice: Choice
    session: aiohttp.ClientSession
    services: dict[str, Service] = field(default_factory=dict)
    timings: dict[str, float] = field(default_factory=dict)
    """Service -> seconds that it took to get ready."""
    _cleanup: AsyncExitStack = field(default_factory=AsyncExitStack)
    _kube: Kube | None = None
    _mattermost: Mattermost | None = None
    _nodes: Nodes | None = None
    _stopped: set[str] = field(default_factory=set)

    @classmethod
    @asynccontextmanager
    async def start(
        cls,
        *,
        argo: ArgoVersion | None = "3.7",
        crds: Crds = "minimal",
        mattermost: bool = True,
        scheduler: bool = False,
        kwok: bool = False,
        pool_label: str = POOL_LABEL,
        service_accounts: Sequence[str] = SERVICE_ACCOUNTS,
        controller_settings: Mapping[str, str] | None = None,
        controller_variables: Mapping[str, str] | None = None,
        mattermost_settings: Mapping[str, str] | None = None,
    ) -> AsyncIterator["Rig"]:
        """Start the chosen services; ``argo=None`` leaves the whole cluster out.

        ``controller_settings`` are keys of Argo's ConfigMap and ``controller_variables`` of its environment;
        ``mattermost_settings`` go by their names in the configuration file (``"RateLimitSettings_Enable": "true"``).
        """
        choice = Choice(
            argo=argo,
            crds=crds,
            mattermost=mattermost,
            scheduler=scheduler,
            kwok=kwok,
            pool_label=pool_label,
            service_accounts=service_accounts,
            controller_settings=controller_settings or {},
            controller_variables=controller_variables or {},
            mattermost_settings=mattermost_settings or {},
        )
        async with AsyncExitStack() as cleanup:
            folder = cleanup.enter_context(rig_folder())
            jar = aiohttp.DummyCookieJar()
            session = await cleanup.enter_async_context(aiohttp.ClientSession(cookie_jar=jar))
            rig = cls(folder, choice, session, _cleanup=cleanup)
            cleanup.push_async_callback(rig._stop_all)
            await rig._start_all()
            yield rig
            rig._complain_of_the_dead()

    @property
    def kube(self) -> Kube:
        """Return the API server's address and tokens."""
        return _there(self._kube, "a cluster")

    @property
    def mattermost(self) -> Mattermost:
        """Return the chat server's address and tokens."""
        return _there(self._mattermost, "Mattermost")

    @property
    def nodes(self) -> Nodes:
        """Return the maker of nodes; only with ``kwok=True``."""
        return _there(self._nodes, "kwok")

    async def stop(self, name: str) -> None:
        """Stop one service in an orderly way."""
        self._stopped.add(name)
        await self.services[name].stop()

    async def kill(self, name: str) -> None:
        """End one service at once, as if it had crashed."""
        self._stopped.add(name)
        await self.services[name].kill()

    async def start_again(self, name: str) -> None:
        """Start a stopped service, at the same address and with its data."""
        await self.services[name].start()
        self._stopped.discard(name)

    async def restart(self, name: str) -> None:
        """Stop one service and start it again."""
        await self.stop(name)
        await self.start_again(name)

    def pause(self, name: str) -> None:
        """Freeze one service: it keeps its connections and answers nothing."""
        self.services[name].pause()

    def resume(self, name: str) -> None:
        """Let a paused service go on."""
        self.services[name].resume()

    def pod_player(self, namespace: str = WORKFLOW_NAMESPACE) -> PodPlayer:
        """Return a player of kubelet and executor, to be entered with ``async with``."""
        return PodPlayer(self.kube.admin, namespace, self._nodes.write_log if self._nodes else None)

    async def argo_retry(self, name: str, parameters: Sequence[str] = ()) -> Manifest:
        """Do what `argo retry` does, by Argo's own code: delete the failed pods, write the workflow back."""
        path = f"{ARGO}/namespaces/{WORKFLOW_NAMESPACE}/workflows/{name}"
        answer = await formulate(self._argo_version(), "retry", await self.kube.admin.get(path), parameters)
        for pod in answer["podsToDelete"]:
            # There is no kubelet to end a bound pod in its own time.
            await self.kube.admin.delete(
                f"/api/v1/namespaces/{WORKFLOW_NAMESPACE}/pods/{pod}", {"gracePeriodSeconds": 0}
            )
        return await self.kube.admin.replace(path, answer["workflow"])

    async def argo_resubmit(self, name: str, parameters: Sequence[str] = ()) -> Manifest:
        """Do what `argo resubmit` does, by Argo's own code: create a new workflow from an old one."""
        path = f"{ARGO}/namespaces/{WORKFLOW_NAMESPACE}/workflows"
        old = await self.kube.admin.get(f"{path}/{name}")
        answer = await formulate(self._argo_version(), "resubmit", old, parameters)
        return await self.kube.admin.create(path, answer["workflow"])

    def _argo_version(self) -> ArgoVersion:
        return _there(self.choice.argo, "Argo")

    async def _start_all(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                if self.choice.argo:
                    group.create_task(self._start_cluster(self.choice.argo))
                if self.choice.mattermost:
                    group.create_task(self._start_chat())
        except BaseExceptionGroup as failures:
            raise _first(failures) from None

    async def _start_cluster(self, argo: ArgoVersion) -> None:
        cluster = Cluster(self.session, self.folder, self.choice.service_accounts)
        await self._run(cluster.etcd())
        await self._run(await cluster.apiserver())
        self._kube = cluster.kube
        async with asyncio.TaskGroup() as group:
            group.create_task(self._start_argo(cluster.kube, argo))
            if self.choice.scheduler:
                group.create_task(self._run(cluster.scheduler()))
            if self.choice.kwok:
                group.create_task(self._start_nodes(cluster.kube))

    async def _start_argo(self, kube: Kube, argo: ArgoVersion) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(install_argo(kube, argo, self.choice.crds))
            for namespace in NAMESPACES:
                group.create_task(_make_namespace(kube.admin, namespace))
        await configure(kube, self.choice.controller_settings)
        self._cleanup.enter_context(occupied(HEALTH_PORT))
        await self._run(controller(kube, argo, self.folder, self.choice.controller_variables))

    async def _start_nodes(self, kube: Kube) -> None:
        nodes = Nodes(kube, self.session, self.folder, self.choice.pool_label)
        await nodes.install()
        await self._run(nodes.service())
        self._nodes = nodes

    async def _start_chat(self) -> None:
        template = await chat_template()
        chat = Chat(self.session, self.folder, self.choice.mattermost_settings)
        await chat.copy_template(template)
        await self._run(chat.postgres())
        await self._run(chat.mattermost())
        self._mattermost = Mattermost(chat.url, template_token(template), self.session, chat.database)

    async def _run(self, service: Service) -> None:
        # Known before it starts, so that it is ended whatever happens meanwhile.
        self.services[service.name] = service
        began = time.monotonic()
        await service.start()
        self.timings[service.name] = time.monotonic() - began

    async def _stop_all(self) -> None:
        # All at once and with little patience: what they could still save is thrown away anyway.
        await asyncio.gather(*(service.stop(_LAST_GRACE_SECONDS) for service in self.services.values()))

    def _complain_of_the_dead(self) -> None:
        for name, service in self.services.items():
            if not service.running and name not in self._stopped:
                raise ServiceError(f"{name} ended by itself:\n{service.tail()}")


async def _make_namespace(kube: KubeClient, name: str) -> None:
    await kube.ensure("/api/v1/namespaces", {"metadata": {"name": name}})


def _first(failures: BaseExceptionGroup) -> BaseException:
    """Return the first of the failures itself: one service failed, and the others were then called off."""
    failure: BaseException = failures
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure


def _there(part: _Part | None, what: str) -> _Part:
    if part is None:
        raise ServiceError(f"this rig was started without {what}")
    return part
