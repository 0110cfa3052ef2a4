"""Which world a story plays in: the embedded one in the ordinary suite, the real services behind `-m real`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

if TYPE_CHECKING:
    from tests.embedded.stage import EmbeddedStage
    from tests.real.stage import RealStage
    from tests.stories.stage import Stage

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every story runs in the loop of its stage, which lasts for all of them."""
    for item in items:
        if HERE in item.path.parents and "stage" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def real_services(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealStage]:
    """The real services, started once for all stories."""
    from tests.real.stage import real_stage

    async with real_stage(tmp_path_factory.mktemp("bot")) as stage:
        yield stage


@pytest_asyncio.fixture(loop_scope="session")
async def embedded_world(tmp_path: Path) -> AsyncIterator[EmbeddedStage]:
    """The embedded world, a new one for each story."""
    from tests.embedded.stage import embedded_stage

    async with embedded_stage(tmp_path) as stage:
        yield stage


@pytest.fixture(
    params=[
        pytest.param("embedded_world", id="embedded"),
        pytest.param("real_services", marks=pytest.mark.real, id="real"),
    ]
)
def world(request: pytest.FixtureRequest) -> RealStage:
    """The world this story plays in; started only where it is asked for."""
    found: RealStage = request.getfixturevalue(request.param)
    return found


@pytest_asyncio.fixture(loop_scope="session")
async def stage(world: RealStage) -> AsyncIterator[Stage]:
    """A stage without the scripts of the story before; the bot of this story is ended with it."""
    world.reset()
    yield world
    await world.stop_bot()
    await world.clear()
