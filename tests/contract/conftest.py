"""Contract cases: what was seen of the real servers, held against the embedded world.

Each case runs in the ordinary suite on the embedded world, and with `-m real` on kube-apiserver, Argo 3.7 (those of
Argo on 4.0 as well) and Mattermost. One set of servers lasts for all of them, so a case makes its own names.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bot.demo.argo_operation import Timing
from tests.contract.runs import Runs
from tests.contract.talk import Talk
from tests.contract.wire import Integration, Wire, integration
from tests.embedded.rig import EmbeddedRig
from tests.real.rig.launcher import Rig

HERE = Path(__file__).parent
CONTROLLER = {"RECENTLY_STARTED_POD_DURATION": "1s"}
"""Of what a controller waits for 10 s by itself."""
EMBEDDED = pytest.param("embedded_rig", id="embedded")
REAL = pytest.param("real_rig", id="real", marks=pytest.mark.real)
REAL_40 = pytest.param("real_rig_40", id="real-argo40", marks=pytest.mark.real)
_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every case runs in the loop of its servers, which last for all of them."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def embedded_rig() -> AsyncIterator[EmbeddedRig]:
    """The embedded world."""
    async with EmbeddedRig.start(Timing(recently_started=1.0)) as rig:
        yield rig


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def real_rig() -> AsyncIterator[Rig]:
    """The real servers, with Argo 3.7."""
    async with Rig.start(controller_variables=CONTROLLER) as rig:
        yield rig


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def real_rig_40() -> AsyncIterator[Rig]:
    """A real cluster with Argo 4.0."""
    async with Rig.start(argo="4.0", mattermost=False, controller_variables=CONTROLLER) as rig:
        yield rig


@pytest.fixture(params=[EMBEDDED, REAL])
def servers(request: pytest.FixtureRequest) -> Any:
    """The servers of this case."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def name() -> str:
    """A name that no other case has."""
    return f"case-{next(_numbers)}"


# Kubernetes


@pytest.fixture
def kube(servers: Any) -> Wire:
    """The Kubernetes API as its administrator."""
    return Wire.kube(servers.kube.admin)


# Argo


@pytest.fixture(params=[EMBEDDED, REAL, REAL_40])
def argo_servers(request: pytest.FixtureRequest) -> Any:
    """A cluster with an Argo controller."""
    return request.getfixturevalue(request.param)


@pytest_asyncio.fixture(loop_scope="session")
async def runs(argo_servers: Any, name: str) -> AsyncIterator[Runs]:
    """Workflows of this case, with a player of their pods."""
    async with argo_servers.pod_player() as player:
        yield Runs(argo_servers, player, name)


# Mattermost


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def embedded_talk(embedded_rig: EmbeddedRig) -> AsyncIterator[Talk]:
    """The embedded chat, with people in it."""
    async with Talk.begin(embedded_rig) as talk:
        yield talk


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def real_talk(real_rig: Rig) -> AsyncIterator[Talk]:
    """The real chat, with people in it."""
    async with Talk.begin(real_rig) as talk:
        yield talk


@pytest.fixture(
    params=[
        pytest.param("embedded_talk", id="embedded"),
        pytest.param("real_talk", id="real", marks=pytest.mark.real),
    ]
)
def office(request: pytest.FixtureRequest) -> Talk:
    """A chat with people in it."""
    found: Talk = request.getfixturevalue(request.param)
    return found


@pytest_asyncio.fixture(loop_scope="session")
async def talk(office: Talk) -> AsyncIterator[Talk]:
    """A chat with a team, a channel, Anna, Ben and a bot. Their loop stands still while other files are run."""
    await office.anna.awake()
    await office.ben.awake()
    yield office
    office.forget()


@pytest_asyncio.fixture(loop_scope="session")
async def service() -> AsyncIterator[Integration]:
    """An integration that the chat can call."""
    async with integration() as served:
        yield served
