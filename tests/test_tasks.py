"""Background work with a name and a fate."""

from __future__ import annotations

import asyncio

import pytest

from bot.tasks import Tasks


class Crashes:
    """What was reported."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []
        self.came = asyncio.Event()

    def __call__(self, name: str, error: BaseException) -> None:
        self.seen.append((name, f"{type(error).__name__}: {error}"))
        self.came.set()


async def fails() -> None:
    """Work that goes wrong."""
    raise ValueError("broken")


async def ends() -> str:
    """Work that is done."""
    return "done"


async def lasts() -> None:
    """Work without an end."""
    await asyncio.Event().wait()


async def test_work_has_a_name_and_gives_its_result() -> None:
    """Nothing is reported of what is done."""
    crashes = Crashes()
    tasks = Tasks(crashes)
    task = tasks.spawn(ends(), name="once")

    assert "once" == task.get_name()
    assert "done" == await task
    await tasks.close()
    assert [] == crashes.seen


@pytest.mark.parametrize("eternal", [False, True])
async def test_work_that_fails_is_reported_once(eternal: bool) -> None:
    """By its name, eternal or not."""
    crashes = Crashes()
    Tasks(crashes).spawn(fails(), name="watch nodes", eternal=eternal)
    await crashes.came.wait()

    assert [("watch nodes", "ValueError: broken")] == crashes.seen


async def test_eternal_work_that_ends_is_reported() -> None:
    """A watch that stops by itself watches nothing any more."""
    crashes = Crashes()
    Tasks(crashes).spawn(ends(), name="watch", eternal=True)
    await crashes.came.wait()

    assert [("watch", "RuntimeError: an eternal task ended")] == crashes.seen


async def test_closing_ends_everything_and_reports_nothing() -> None:
    """Cancelled is no crash; afterwards nothing runs."""
    crashes = Crashes()
    tasks = Tasks(crashes)
    running = [tasks.spawn(lasts(), name=f"w{n}", eternal=n % 2 == 0) for n in range(4)]
    await tasks.close()

    assert all(task.cancelled() for task in running)
    assert [] == crashes.seen
    await tasks.close()


async def test_what_starts_while_everything_is_closed_is_closed_as_well() -> None:
    """Work that another leaves behind when it ends."""
    tasks = Tasks(Crashes())
    left: list[asyncio.Task[None]] = []
    began = asyncio.Event()

    async def leaves() -> None:
        try:
            began.set()
            await lasts()
        finally:
            left.append(tasks.spawn(lasts(), name="left behind"))

    tasks.spawn(leaves(), name="leaves")
    await began.wait()
    await tasks.close()

    assert [True] == [task.cancelled() for task in left]
