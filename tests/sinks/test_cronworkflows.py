"""The suspend flag: what is told is what was read."""

from __future__ import annotations

from typing import Any

from bot.core.effects import SetSuspend
from bot.core.events import EffectDone, EffectFailed, Trouble
from bot.core.workflow import CronWorkflow
from bot.demo.kinds import CRON_WORKFLOWS as CRONS
from tests.clients.wire import replies_of
from tests.sinks.conftest import Sunk

CRON = r"/cronworkflows/"


def switch(*, suspend: bool) -> SetSuspend:
    return SetSuspend("e1", "foxhunt", "gpu-test-nightly", suspend, {"gputest.bot/switched": "{}"})


def flag(sunk: Sunk) -> Any:
    (cron,) = sunk.world.cluster.store.all(CRONS)
    return cron["spec"].get("suspend")


async def test_the_flag_is_set_and_read_back(sunk: Sunk) -> None:
    """Enabling and disabling both come back as the object says them."""
    for suspend in (False, True):
        done = await sunk.crons.suspend(switch(suspend=suspend))

        assert isinstance(done, EffectDone)
        assert isinstance(done.value, CronWorkflow)
        assert suspend is done.value.suspended
        assert suspend is flag(sunk)


async def test_an_etcd_election_in_the_middle_is_read_back(sunk: Sunk) -> None:
    """500 `leader changed`: the outcome is unknown until the flag is read; here it was not set, and nobody is told so."""
    election = replies_of("g05.txt")["3"]
    sunk.world.kube_faults.fail(500, method="PATCH", path=CRON, body=election.chunks[0].decode())

    failed = await sunk.crons.suspend(switch(suspend=False))

    assert isinstance(failed, EffectFailed)
    assert failed.trouble is Trouble.UNCERTAIN
    assert "etcdserver: leader changed" == failed.reason
    assert flag(sunk) is True


async def test_a_lost_answer_after_the_commit_is_success(sunk: Sunk) -> None:
    """The patch was written, the answer never came: the flag says that it is done."""
    sunk.world.kube_faults.drop_after_commit(method="PATCH", path=CRON)

    done = await sunk.crons.suspend(switch(suspend=False))

    assert isinstance(done, EffectDone)
    assert flag(sunk) is False


async def test_a_reader_that_fails_as_well_tells_the_first_reason(sunk: Sunk) -> None:
    """Neither written nor read: what went wrong first is what people hear."""
    sunk.world.kube_faults.fail(403, method="PATCH", path=CRON)
    sunk.world.kube_faults.fail(403, method="GET", path=CRON)

    failed = await sunk.crons.suspend(switch(suspend=False))

    assert isinstance(failed, EffectFailed)
    assert failed.trouble is Trouble.REFUSED
