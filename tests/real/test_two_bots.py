"""Two bots on one cluster and one chat: one speaks, the other takes over; and a chat that is away for a while."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import Any

import pytest

from tests.real.bots import SWEEP, Trial, passing, red
from tests.real.calls import BY_NAME
from tests.real.rig.pod_script import Bind, Exit, Pending, Running, Wait
from tests.real.test_kill_at_every_call import alert_of
from tests.stories.test_first_card import NO_GPU

LONG = bool(os.environ.get("GPUTEST_LONG"))
AWAY = 600.0 if LONG else 20.0
"""Seconds for which the chat is away."""

FAILED, GREEN = "1 of 2 failed", "all 2 green"

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(AWAY + 160)]


async def two(trial: Trial) -> None:
    """`bot` leads and `other` stands by."""
    await trial.alone()
    if not (await trial.bot.readiness()).get("leader"):
        await trial.bot.end()
        await trial.restart()
    await trial.other.start(leads=False)
    assert not (await trial.other.readiness())["leader"]


async def under_way(trial: Trial, gate: str) -> dict[str, Any]:
    """A run that tests, with its card."""
    trial.stage.script("compile-and-test", red(gate))
    run = await trial.submit()
    await trial.shows(run, "compiling and testing")
    return run


async def leads(trial: Trial) -> bool:
    return bool((await trial.other.readiness()).get("leader"))


async def test_an_alert_of_one_is_ended_by_the_other(trial: Trial) -> None:
    """Both see a run that waits long: one says so, is killed, and the other goes on with the same post."""
    alerts = {"runs": {"alerts": {"slow_minutes": 0.03, "over_after_seconds": 0.5}}}
    await trial.alone()
    trial.bot.kill()
    await trial.restart(**alerts)
    await trial.other.start(leads=False, **alerts)
    waits = [Pending(NO_GPU), Wait("alert-of-two"), Bind("h100-of-two"), Running(), Exit(0)]
    trial.stage.script("gpu-warmup", waits)
    trial.stage.script("compile-and-test", [Bind("h100-of-two"), *red("tests-of-two")])
    run = await trial.submit()
    await trial.until("the alert", lambda: alert_of(trial, run, over=False))

    trial.bot.kill()
    await trial.until("the other leads", lambda: leads(trial))
    await trial.stage.release("alert-of-two")
    await trial.until("its end", lambda: alert_of(trial, run, over=True))

    await trial.stage.release("tests-of-two")
    await trial.reported(run, FAILED)
    assert await alert_of(trial, run, over=True)
    await trial.other.end()
    await trial.restart()


async def test_the_leader_is_killed_in_mid_run(trial: Trial) -> None:
    """The one that stands by answers commands all the while, and goes on with the same card within 20 s."""
    await two(trial)
    run = await under_way(trial, "killed-leader")
    (card,) = (await trial.said(run)).cards
    short = run["metadata"]["name"].rsplit("-", 1)[-1]

    assert short in (await trial.other.command("/gputest status"))["text"]
    known = await trial.uids()
    assert await trial.other.command("/gputest dqn kan") == {}
    (asked,) = await trial.made_since(known)
    await trial.shows(asked, "compiling and testing")
    trial.bot.kill()
    killed = time.monotonic()
    assert short in (await trial.other.command("/gputest status"))["text"]
    await trial.stage.release("killed-leader")

    for each in (run, asked):
        await trial.reported(each, FAILED, limit=killed + 20 - time.monotonic())
    took = time.monotonic() - killed
    print(f"\nthe other went on {took:.1f} s after the leader was killed")
    assert (await trial.said(run)).cards[0].id == card.id


async def test_one_is_replaced_by_the_other(trial: Trial) -> None:
    """A rolling update: the leader is told to end, and the other leads within 3 s."""
    await two(trial)
    run = await under_way(trial, "replaced")
    (card,) = (await trial.said(run)).cards

    trial.bot.send(signal.SIGTERM)
    told = time.monotonic()
    await trial.until("the other leads", lambda: leads(trial), 5)
    took = time.monotonic() - told
    print(f"\nthe other led {took:.1f} s after the leader was told to end")
    assert took < 3.5
    assert await trial.bot.gone() == 0
    await trial.stage.release("replaced")

    said = await trial.reported(run, FAILED, limit=10)
    assert said.cards[0].id == card.id


async def test_a_leader_that_slept(trial: Trial) -> None:
    """Stopped in the middle of a write, and woken when the other has said it all: the double goes with the sweep.

    The server remembers for half a minute what was asked of it; the late request is one that it has forgotten.
    """
    await two(trial)
    run = await under_way(trial, "sleeper")
    late = trial.chat.hold(BY_NAME["notice"].matches, once=True, forgotten=("pending_post_id",))
    await trial.stage.release("sleeper")
    await late.reached.wait()
    trial.bot.send(signal.SIGSTOP)
    slept = time.monotonic()

    await trial.reported(run, FAILED, limit=20)
    took = time.monotonic() - slept
    print(f"\nthe other had reported it {took:.1f} s after the leader was stopped")
    (before,) = (await trial.said(run)).notices
    late.let_go.set()

    async def doubled() -> bool:
        return len((await trial.said(run)).notices) == 2

    await trial.until("the late request takes effect", doubled, 5)
    trial.bot.send(signal.SIGCONT)
    woken = time.monotonic()

    async def single() -> bool:
        return len((await trial.said(run)).notices) == 1

    await trial.until("the double is gone", single, 2 * SWEEP + 2)
    print(f"the double was gone {time.monotonic() - woken:.1f} s later")
    await asyncio.sleep(SWEEP + 1)
    assert not (await trial.bot.readiness())["leader"]
    said = await trial.said(run)
    trial.is_exactly(said, FAILED, 1, removed=1)
    assert said.notices[0].id == before.id


async def test_the_chat_is_away_while_twenty_runs_end(trial: Trial) -> None:
    """First it hears and does not answer, then does all it heard at once, then it is not there at all.

    A minute after it is back, each card is true, and each notice is there once.
    """
    await trial.other.end()
    await trial.alone()
    runs: dict[str, dict[str, Any]] = {}
    for number in range(20):
        name = f"away-{number:02}"
        ending = red("away") if number % 2 else passing("away")
        trial.stage.script("compile-and-test", ending, name)
        runs[name] = await trial.submit(name)
    for run in runs.values():
        await trial.shows(run, "compiling and testing", 40)
    cards = {name: (await trial.said(run)).cards[0].id for name, run in runs.items()}

    trial.rig.pause("mattermost")
    await trial.stage.release("away")
    for name in runs:
        await trial.phase(name, "Succeeded", "Failed", limit=40)
    await asyncio.sleep(AWAY / 2)
    trial.rig.resume("mattermost")
    await asyncio.sleep(0.3)
    await trial.rig.kill("mattermost")
    await asyncio.sleep(AWAY / 2)
    await trial.rig.start_again("mattermost")
    back = time.monotonic()

    for name, run in runs.items():
        words = FAILED if int(name[-2:]) % 2 else GREEN
        said = await trial.reported(run, words, limit=back + 60 - time.monotonic())
        assert said.cards[0].id == cards[name]
    print(f"\nall twenty were true {time.monotonic() - back:.1f} s after the chat was back")
    for person in trial.stage.people.values():
        await person.reconnected()
