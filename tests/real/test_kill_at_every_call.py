"""The bot is killed at every call by which it changes something, and started again: nothing is lost, nothing is double.

Once the call never leaves: the bot dies before the server hears of it. Once the server has committed: the bot dies
before it reads the answer. Then within two sweeps there is exactly one card, and one notice for each end, by the count
of Mattermost's own database.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from bot.core.cost_record import Record
from bot.core.cost_record import read as read_record
from bot.core.effects import MakePlaceholder
from bot.core.settings import Settings
from bot.sinks.placeholders import manifest
from tests.real.bots import CONFIG_MAPS, DELETION, LEASES, SWEEP, WORKFLOWS, Trial, passing, red
from tests.real.calls import BY_NAME, PODS, Call, unknown
from tests.real.proxy import Seen, Trap
from tests.real.rig.kube_client import ARGO, KubeError
from tests.real.rig.mattermost_client import MattermostError
from tests.real.rig.pod_script import Bind, Exit, Hang, Pending, Running, Wait
from tests.real.rig.pod_status import now
from tests.real.stage import COLLECTIONS, DEPLOY, ROOT, manifests
from tests.stories.test_first_card import NO_GPU

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(90)]

FAILED = "1 of 2 failed"
GREEN = "all 2 green"


class Strike:
    """The blow that the bot gets at one call."""

    def __init__(self, trial: Trial, call: Call, *, heard: bool) -> None:
        self._trial = trial
        self.call = call
        self.heard = heard
        self._trap: Trap | None = None

    def arm(self, deed: Callable[[], Any] | None = None, but: Callable[[Seen], bool] = lambda _: True) -> None:
        """From now on; `but`: only at such a request, `deed` in place of the bot's end."""
        wire = self._trial.kube if self.call.wire == "kube" else self._trial.chat
        self._trap = wire.trap(
            lambda seen: self.call.matches(seen) and but(seen), deed or self._trial.bot.kill, server_hears=self.heard
        )

    async def fell(self, limit: float = 15.0) -> None:
        """Wait for it."""
        assert self._trap is not None
        await self._trap.sprung(limit)
        if self.heard:
            assert self._trap.status < 300, f"the server refused: {self._trap.status}"

    async def survived(self, **overrides: Any) -> None:
        """Wait for it, and start the bot again."""
        await self.fell()
        await self._trial.restart(**overrides)


Story = Callable[[Trial, Strike], Awaitable[None]]


async def by_hand(trial: Trial, strike: Strike) -> None:
    """A run that somebody made with kubectl: one model red."""
    trial.stage.script("compile-and-test", red())
    strike.arm()
    run = await trial.submit()
    await strike.survived()
    await trial.reported(run, FAILED)


async def edited(trial: Trial, strike: Strike) -> None:
    """The card follows the run."""
    run, gate = await under_way(trial)
    strike.arm()
    await trial.stage.release(gate)
    await strike.survived()
    await trial.reported(run, FAILED)


async def under_way(trial: Trial) -> tuple[dict[str, Any], str]:
    """A run that tests, with its card; a gate lets it end, with one model red."""
    gate = f"gate-{trial.numbers}"
    trial.stage.script("compile-and-test", red(gate))
    run = await trial.submit()
    await trial.shows(run, "compiling and testing")
    return run, gate


async def begun_late(trial: Trial, strike: Strike) -> None:
    """A run that waited in the queue begins, and its attempt is remembered."""
    lock, gate = {"mutexes": [{"name": "one-at-a-time"}]}, f"gate-{trial.numbers}"
    trial.stage.script("compile-and-test", red(gate))
    first = await trial.submit(synchronization=lock)
    await trial.shows(first, "compiling and testing")
    second = await trial.submit(synchronization=lock)
    await trial.shows(second, "Waits for")
    strike.arm()
    await trial.stage.release(gate)
    await strike.survived()
    for run in (first, second):
        await trial.reported(run, FAILED)


async def typed(trial: Trial, strike: Strike) -> None:
    """A slash command: the person sees that it failed and types it again, which is another command."""
    trial.stage.script("compile-and-test", red())
    known = await trial.uids()
    strike.arm()
    with pytest.raises(MattermostError):
        await trial.stage.say("/gputest dqn kan")
    await strike.survived()
    await trial.stage.say("/gputest dqn kan")
    runs = await trial.made_since(known)
    assert len(runs) == (2 if strike.heard else 1)
    for run in runs:
        await trial.reported(run, FAILED)


async def delivered_twice(trial: Trial, strike: Strike) -> None:
    """The very same command comes once more, as from a proxy that repeats: it finds the run that it made."""
    trial.stage.script("compile-and-test", red())
    known = await trial.uids()
    strike.arm()
    form = {"trigger_id": f"the-same-{strike.heard}"}
    with contextlib.suppress(aiohttp.ClientError):
        await trial.bot.command("/gputest dqn kan", **form)
    await strike.survived()
    await trial.bot.command("/gputest dqn kan", **form)
    await trial.bot.command("/gputest dqn kan", **form)
    (run,) = await trial.made_since(known)
    await trial.reported(run, FAILED)


async def posted(trial: Trial, strike: Strike) -> None:
    """A command that is typed as a post: the bot finds it again, makes one run and answers once."""
    trial.stage.script("compile-and-test", red())
    known = await trial.uids()
    strike.arm()
    post = await trial.stage.people["ben"].type(trial.stage.channel, "@gputest dqn kan")
    await strike.survived()
    await answered(trial, post["id"])
    (run,) = await trial.made_since(known)
    await trial.reported(run, FAILED)
    await answered(trial, post["id"])


async def answered(trial: Trial, post: str) -> None:
    """Exactly one answer stands below a command."""

    async def look() -> bool:
        rows = [row for row in await trial.store.rows("props->>'gputest_answer' <> ''") if row.root == post]
        assert len(rows) < 2, f"answered {len(rows)} times"
        return len(rows) == 1

    await trial.until("one answer", look)


async def read_on(trial: Trial, strike: Strike) -> None:
    """The place in the chat is kept: what was typed while the bot was away is answered, and once."""
    trial.bot.kill()
    await trial.bot.gone()
    await trial.free_lease()
    post = await trial.stage.people["ben"].type(trial.stage.channel, "@gputest help")
    await trial.bot.start()
    await answered(trial, post["id"])
    strike.arm()
    trial.bot.send(signal.SIGTERM)  # the last that it writes there
    await strike.survived()
    await answered(trial, post["id"])


async def cancelled(trial: Trial, strike: Strike) -> None:
    """Anna stops a run by a command."""
    run, _ = await under_way(trial)
    command = f"/gputest cancel {run['metadata']['name']}"
    strike.arm()
    with pytest.raises(MattermostError):
        await trial.stage.say(command)
    await strike.survived()
    if not strike.heard:
        await trial.stage.say(command)
    await trial.reported(run, "cancelled by anna")


async def by_dialog(trial: Trial, strike: Strike) -> None:
    """A click on Cancel opens a form, and nothing else happens by it."""
    run, _ = await under_way(trial)
    ben = trial.stage.people["ben"]
    strike.arm()
    (card,) = (await trial.said(run)).cards
    with pytest.raises(MattermostError):
        await ben.click(await ben.post(card.id), "cancel")
    await strike.survived()
    assert not (await trial.phase(run["metadata"]["name"], "Running"))["spec"].get("shutdown")
    opened = len(ben.dialogs)
    await trial.until("the card's buttons are those of the new bot", lambda: clicks(trial, card.id))
    await trial.until("the form", lambda: more_than(ben.dialogs, opened))
    await ben.submit_dialog(ben.dialogs[-1], trial.stage.channel, {})
    await trial.reported(run, "cancelled by ben")


async def clicks(trial: Trial, post: str) -> bool:
    """Ben clicks Cancel; whether it could be clicked."""
    ben = trial.stage.people["ben"]
    try:
        await ben.click(await ben.post(post), "cancel")
    except MattermostError:
        return False
    return True


async def more_than(found: list[Any], number: int) -> bool:
    return len(found) > number


async def switched(trial: Trial, strike: Strike) -> None:
    """The nightly run is switched on; the person types it again and reads what is so."""
    strike.arm()
    with pytest.raises(MattermostError):
        await trial.stage.say("/nightly enable")
    await strike.survived()
    path = f"{ARGO}/namespaces/foxhunt/cronworkflows/gpu-test-nightly"
    assert (await trial.rig.kube.admin.get(path))["spec"]["suspend"] is not strike.heard
    await trial.stage.say("/nightly enable")
    assert (await trial.rig.kube.admin.get(path))["spec"]["suspend"] is False
    await trial.stage.say("/nightly disable")
    assert (await trial.rig.kube.admin.get(path))["spec"]["suspend"] is True


async def kept_warm(trial: Trial, strike: Strike) -> None:
    """A pool is to be kept warm; the person types it again, and there is one placeholder, however often it came."""
    async with with_warmth(trial):
        strike.arm()
        with pytest.raises(MattermostError):
            await trial.stage.say("/gpu warm h100")
        await strike.survived()

        async def answered() -> str | None:
            answer = await trial.stage.say("/gpu warm h100")
            return None if "can't see the pods" in answer else answer  # not listed yet by the new process

        assert ("already" in await trial.until("the pods are seen", answered)) is strike.heard
        assert len(await placeholders(trial)) == 1


async def kept_warm_twice(trial: Trial, strike: Strike) -> None:
    """The very same command comes once more: it finds the placeholder that it made."""
    form = {"trigger_id": f"the-same-warmth-{strike.heard}"}
    async with with_warmth(trial):
        strike.arm()
        with contextlib.suppress(aiohttp.ClientError):
            await trial.bot.command("/gpu warm h100", **form)
        await strike.survived()
        for _ in range(2):
            answer = await trial.bot.command("/gpu warm h100", **form)
            assert "is kept warm until" in answer["text"]
        assert len(await placeholders(trial)) == 1


async def cooled(trial: Trial, strike: Strike) -> None:
    """It is to be kept warm no more; the person types it again."""
    async with with_warmth(trial):
        await trial.stage.say("/gpu warm h100")
        strike.arm()
        with pytest.raises(MattermostError):
            await trial.stage.say("/gpu cool h100")
        await strike.survived()
        assert bool(await placeholders(trial)) is not strike.heard
        answer = await trial.stage.say("/gpu cool h100")
        assert ("nothing to end" in answer) is strike.heard
        assert not await placeholders(trial)


async def gives_way(trial: Trial, strike: Strike) -> None:
    """Its time is over: whoever holds the Lease removes it."""
    async with with_warmth(trial):
        strike.arm()
        effect = MakePlaceholder("e", "foxhunt", "gpu-warm-over", "ci-training-h100", 0.0, 60, "anna")
        await trial.rig.kube.admin.create(PODS, manifest(effect, Settings()))
        await strike.survived()

        async def gone() -> bool:
            return not await placeholders(trial)

        await trial.until("it is removed", gone)


@contextlib.asynccontextmanager
async def with_warmth(trial: Trial) -> AsyncIterator[None]:
    """With the optional right; afterwards nothing of it is left."""
    objects, admin = manifests(DEPLOY / "bot" / "rbac-warm.yaml"), trial.rig.kube.admin
    places = [COLLECTIONS[b["kind"]].format(namespace=b["metadata"].get("namespace", "")) for b in objects]
    for place, body in zip(places, objects, strict=True):
        await admin.ensure(place, body)
    try:
        yield
    finally:
        for pod in await placeholders(trial):
            await admin.delete(f"{PODS}/{pod}")
        for place, body in zip(places, objects, strict=True):
            await admin.delete(f"{place}/{body['metadata']['name']}")


async def placeholders(trial: Trial) -> list[str]:
    """The names of those that are there."""
    query = {"labelSelector": "gputest.bot/role=placeholder"}
    return [pod["metadata"]["name"] for pod in (await trial.rig.kube.admin.get(PODS, query))["items"]]


async def deleted(trial: Trial, strike: Strike) -> None:
    """Somebody deletes a run that tests: it is ended, reported, and goes."""
    run, _ = await under_way(trial)
    strike.arm()
    await trial.rig.kube.admin.delete(f"{WORKFLOWS}/{run['metadata']['name']}")
    await strike.survived()
    await trial.reported(run, "cancelled", limit=2 * SWEEP + 4)
    await is_gone(trial, run)


async def is_gone(trial: Trial, run: dict[str, Any]) -> None:
    """The object is not there any more."""

    async def look() -> bool:
        return await trial.stage.workflow(run["metadata"]["name"]) is None

    await trial.until("the object is gone", look)


async def deleted_and_stuck(trial: Trial, strike: Strike) -> None:
    """Somebody deletes a run, and Argo does not react: it is reported as deleted, and goes."""
    run, _ = await under_way(trial)
    trial.rig.pause("workflow-controller")
    try:
        strike.arm()
        await trial.rig.kube.admin.delete(f"{WORKFLOWS}/{run['metadata']['name']}")
        await strike.survived()
        await trial.reported(run, "eleted while it ran", limit=2 * SWEEP + 2 + DELETION)
        await is_gone(trial, run)
    finally:
        trial.rig.resume("workflow-controller")


async def card_deleted(trial: Trial, strike: Strike) -> None:
    """A person deletes the card: there is one again."""
    run, gate = await under_way(trial)
    (card,) = (await trial.said(run)).cards
    strike.arm(but=lambda seen: seen.method == "PATCH" or ":2" in seen.body["props"]["gputest_card"])
    await trial.stage.office.delete_post(card.id)
    await trial.stage.release(gate)
    await strike.survived()
    said = await trial.reported(run, FAILED, removed=1)
    assert said.cards[0].card.endswith(":2")


async def retried(trial: Trial, strike: Strike) -> None:
    """`argo retry` of a run that was let go: the same card, another notice."""
    trial.stage.script("compile-and-test", red())
    run = await trial.submit()
    before = await trial.reported(run, FAILED, limit=15)
    trial.stage.script("compile-and-test", passing())
    began = (await trial.phase(run["metadata"]["name"], "Failed"))["status"]["startedAt"]
    await trial.second_after(began)  # an attempt is told from another by the second in which it began
    strike.arm()
    await trial.rig.argo_retry(run["metadata"]["name"])
    await strike.survived()
    after = await trial.reported(run, GREEN, notices=2)
    assert before.cards[0].id == after.cards[0].id


async def takes_the_lease(trial: Trial, strike: Strike) -> None:
    """At its very start: the next one takes the Lease and goes on."""
    run, gate = await under_way(trial)
    trial.bot.kill()
    await trial.bot.gone()
    await trial.free_lease()
    strike.arm()
    await trial.bot.start(waits=False)
    await strike.survived()
    await trial.stage.release(gate)
    await trial.reported(run, FAILED)


async def makes_the_lease(trial: Trial, strike: Strike) -> None:
    """The first start of all, with no Lease."""
    trial.bot.kill()
    await trial.bot.gone()
    await trial.rig.kube.admin.delete(f"{LEASES}/gputest-bot")
    trial.stage.script("compile-and-test", red())
    run = await trial.submit()
    strike.arm()
    await trial.bot.start(waits=False)
    await strike.survived()
    await trial.reported(run, FAILED)


async def gives_the_lease_back(trial: Trial, strike: Strike) -> None:
    """Told to end, it gives the Lease back at last."""
    run, gate = await under_way(trial)
    strike.arm()
    trial.bot.send(signal.SIGTERM)
    await strike.survived()
    await trial.stage.release(gate)
    await trial.reported(run, FAILED)


async def installed(trial: Trial, strike: Strike) -> None:
    """The very first start, with no ConfigMap; what carries our finalizer is owed all the same."""
    trial.bot.kill()
    await trial.bot.gone()
    await trial.rig.kube.admin.delete(f"{CONFIG_MAPS}/gputest-bot")
    trial.stage.script("compile-and-test", red())
    run = await trial.submit(born=True)
    await trial.phase(run["metadata"]["name"], "Failed")
    strike.arm()
    await trial.bot.start(waits=False)
    await strike.survived()
    await trial.reported(run, FAILED)


async def start_remembered(trial: Trial, strike: Strike) -> None:
    """How long a start took is written while the run goes on: once, whatever came in between."""
    run, gate = await under_way(trial)
    strike.arm()
    await image_pulled(trial, run)
    await strike.survived()

    async def known() -> bool:
        body = await trial.rig.kube.admin.get(f"{CONFIG_MAPS}/gputest-bot-history")
        starts = [start["run"] for start in json.loads(body["data"]["starts.json"])["starts"]]
        assert starts.count(run["metadata"]["uid"]) < 2
        return run["metadata"]["uid"] in starts

    await trial.until("its start is remembered", lambda: missing_is_no(known))
    await trial.stage.release(gate)
    await trial.reported(run, FAILED)


async def first_start_remembered(trial: Trial, strike: Strike) -> None:
    """The same, and there is no history yet."""
    trial.bot.kill()
    await trial.bot.gone()
    await trial.rig.kube.admin.delete(f"{CONFIG_MAPS}/gputest-bot-history")
    await trial.restart()
    await start_remembered(trial, strike)


async def missing_is_no(look: Callable[[], Awaitable[bool]]) -> bool:
    """What a look finds; nothing where the object is not there."""
    try:
        return await look()
    except KubeError:
        return False


async def image_pulled(trial: Trial, run: dict[str, Any]) -> None:
    """The kubelet's Event on the image of the test pod; with it, all is known of the start."""
    query = {"labelSelector": f"workflows.argoproj.io/workflow={run['metadata']['name']}"}
    pods = (await trial.rig.kube.admin.get("/api/v1/namespaces/foxhunt/pods", query))["items"]
    meta = max(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))["metadata"]
    about = {"kind": "Pod", "namespace": "foxhunt", "name": meta["name"], "uid": meta["uid"], "apiVersion": "v1"}
    body = {
        "metadata": {"generateName": f"{meta['name']}."},
        "involvedObject": about | {"fieldPath": "spec.containers{main}"},
        "reason": "Pulled",
        "source": {"component": "kubelet"},
        "lastTimestamp": now(),
        "type": "Normal",
    }
    await trial.rig.kube.admin.create("/api/v1/namespaces/foxhunt/events", body)


async def waits_for_a_gpu(trial: Trial) -> dict[str, Any]:
    """A run that no node takes."""
    trial.stage.script("gpu-warmup", [Pending(NO_GPU), Hang()])
    run = await trial.submit()
    await trial.shows(run, "No GPU is free")
    return run


async def given_up(trial: Trial, strike: Strike) -> None:
    """A run has waited long enough: it is stopped, and said never to have got a GPU."""
    short = {"runs": {"wait_seconds": 4.0}}
    trial.bot.kill()
    await trial.restart(**short)
    trial.stage.script("gpu-warmup", [Pending(NO_GPU), Hang()])
    strike.arm()
    run = await trial.submit()
    await strike.survived(**short)
    await trial.reported(run, "never got an H100")
    trial.bot.kill()
    await trial.restart()


async def alerted(trial: Trial, strike: Strike) -> None:
    """A run waits longer than usual, and begins at last: one post says so, and then that it is over."""
    alerts = {"runs": {"alerts": {"slow_minutes": 0.03, "over_after_seconds": 0.5}}}
    trial.bot.kill()
    await trial.restart(**alerts)
    gate, tests = f"gate-{trial.numbers}", f"tests-{trial.numbers}"
    trial.stage.script("gpu-warmup", [Pending(NO_GPU), Wait(gate), Bind("h100-of-alerts"), Running(), Exit(0)])
    trial.stage.script("compile-and-test", [Bind("h100-of-alerts"), *red(tests)])
    strike.arm()
    run = await trial.submit()
    if strike.call.name == "alert":
        await strike.survived(**alerts)
    await trial.until("the alert", lambda: alert_of(trial, run, over=False))
    await trial.stage.release(gate)
    if strike.call.name == "alert-over":
        await strike.survived(**alerts)
    await trial.until("its end", lambda: alert_of(trial, run, over=True))
    await trial.stage.release(tests)
    await trial.reported(run, FAILED)
    assert await alert_of(trial, run, over=True)
    trial.bot.kill()
    await trial.restart()


async def alert_of(trial: Trial, run: dict[str, Any], *, over: bool) -> bool:
    """Whether the one alert about a run stands there, and is over."""
    rows = await trial.store.rows(f"props->>'gputest_alert' LIKE 'slow:{run['metadata']['uid']}:%'")
    standing = [row for row in rows if not row.deleted]
    assert len(standing) < 2, f"said {len(standing)} times"
    return len(standing) == 1 and ("gputest_alert_over" in standing[0].props) is over


async def waited_longer(trial: Trial, strike: Strike) -> None:
    """Ben lets a run wait until the morning; where the bot did not hear of it, he clicks again."""
    await trial.stage.limits(run=400_000, warmup=400_000)
    try:
        run = await waits_for_a_gpu(trial)
        (card,) = (await trial.said(run)).cards
        ben = trial.stage.people["ben"]
        strike.arm()
        with pytest.raises(MattermostError):
            await ben.click(await ben.post(card.id), "wait")
        await strike.survived()
        if not strike.heard:
            await ben.click(await ben.post(card.id), "wait")
        await trial.shows(run, "as ben asked")
        await trial.stage.shut_down(run["metadata"]["name"], "Terminate")
        await trial.reported(run, "cancelled")
    finally:
        await trial.stage.limits()


async def costs_begun(trial: Trial, strike: Strike) -> None:
    """The first record of what nodes cost: it is there when the bot is back, and goes on."""
    trial.bot.kill()
    await trial.bot.gone()
    await trial.rig.kube.admin.delete(f"{CONFIG_MAPS}/gputest-bot-costs")
    await trial.free_lease()
    strike.arm()
    await trial.bot.start(waits=False)
    await strike.survived()
    first = await record_after(trial, 0.0)
    assert (await record_after(trial, first.until)).since == first.since


async def costs_kept(trial: Trial, strike: Strike) -> None:
    """A run holds a GPU while its time is written: no second of it counts twice, and none is lost."""
    gate = f"gate-{trial.numbers}"
    trial.stage.script("compile-and-test", [Bind("h100-of-costs"), *red(gate)])
    before = seconds_of(await record_after(trial, 0.0))
    began = time.time()
    run = await trial.submit()
    await trial.shows(run, "compiling and testing")
    strike.arm()
    await strike.survived()
    await record_after(trial, time.time())
    took = time.time() - began
    await trial.stage.release(gate)
    await trial.reported(run, FAILED)
    ended = time.time() - began
    counted = seconds_of(await record_after(trial, time.time())) - before
    # the API's times are whole seconds, and the pod began some moments after the run
    assert took - 4.0 <= counted <= ended + 1.0, f"{counted:.1f} s are counted of {took:.1f} to {ended:.1f}"


async def record_after(trial: Trial, moment: float) -> Record:
    """The record of costs as soon as it was written after a time."""

    async def look() -> Record | None:
        try:
            found = await trial.rig.kube.admin.get(f"{CONFIG_MAPS}/gputest-bot-costs")
        except KubeError:
            return None
        record = read_record(found.get("data") or {}, found["metadata"]["resourceVersion"])
        return record if record.until > moment else None

    record: Record = await trial.until("the record of costs is written", look, 15)
    return record


def seconds_of(record: Record) -> float:
    """All that is counted."""
    return sum(sum(uses.values()) for pools in record.days.values() for uses in pools.values())


async def double_card(trial: Trial, strike: Strike) -> None:
    """Another process, woken after a long sleep, has posted the card once more: the sweep removes it."""
    run, gate = await under_way(trial)
    (card,) = (await trial.said(run)).cards
    strike.arm()
    await post_again(trial, card.message, card.props, "")
    await strike.survived()
    await trial.stage.release(gate)
    said = await trial.reported(run, FAILED, removed=1)
    assert said.cards[0].id == card.id


async def double_notice(trial: Trial, strike: Strike) -> None:
    """The same for a notice, and after the run was let go."""
    trial.stage.script("compile-and-test", red())
    run = await trial.submit()
    before = await trial.reported(run, FAILED, limit=15)
    strike.arm()
    await post_again(trial, before.notices[0].message, before.notices[0].props, before.cards[0].id)
    await strike.survived()
    after = await trial.reported(run, FAILED, removed=1)
    assert before.notices[0].id == after.notices[0].id


async def post_again(trial: Trial, message: str, props: dict[str, Any], root: str) -> None:
    """A post by the bot's account, made by nobody that this bot knows."""
    body = {"channel_id": trial.stage.channel, "message": message, "props": props, "root_id": root}
    await trial.rig.mattermost.client(trial.stage.account.token).post("/posts", body)


async def changed_card(trial: Trial, strike: Strike) -> None:
    """A person with the right to do so edits the card: the sweep makes it right again."""
    run, gate = await under_way(trial)
    (card,) = (await trial.said(run)).cards
    strike.arm()
    body = {"message": "all fine, nothing to see"}
    await trial.rig.mattermost.client().put(f"/posts/{card.id}/patch", body)
    await strike.survived()
    await trial.shows(run, "compiling and testing", limit=2 * SWEEP)
    await trial.stage.release(gate)
    await trial.reported(run, FAILED)


async def answered_late(trial: Trial, strike: Strike) -> None:
    """An answer that takes longer than a second follows; lost with the bot, it changes nothing."""
    trial.stage.script("compile-and-test", red())
    known = await trial.uids()
    slow = trial.kube.hold(BY_NAME["submit"].matches)
    strike.arm()
    await trial.stage.anna.type(trial.stage.channel, "/gputest dqn kan notify=false")
    slow.let_go.set()
    await strike.survived()
    (run,) = await trial.made_since(known)
    await trial.reported_in_silence(run)


async def commands_made(trial: Trial, strike: Strike) -> None:
    """A slash command that is missing is made, once."""
    await register(trial)
    await commands_end(trial, strike)


async def commands_corrected(trial: Trial, strike: Strike) -> None:
    """One that leads elsewhere is corrected."""
    await register(trial)
    bot = trial.rig.mattermost.client(trial.stage.account.token)
    await bot.post("/commands", command(trial, "gpu") | {"url": "http://127.0.0.1:9/commands"})
    await commands_end(trial, strike)


async def commands_removed(trial: Trial, strike: Strike) -> None:
    """A double of our own is removed: two that started at once had made it."""
    await register(trial)
    bot = trial.rig.mattermost.client(trial.stage.account.token)
    await bot.post("/commands", command(trial, "gpu"))
    double = await bot.post("/commands", command(trial, "gpus"))
    await bot.put(f"/commands/{double['id']}", double | command(trial, "gpu"))
    assert len(await ours(trial)) == 2
    await commands_end(trial, strike)


def command(trial: Trial, trigger: str) -> dict[str, Any]:
    """A slash command as the bot would make it, nearly."""
    return {"team_id": trial.stage.team, "trigger": trigger, "method": "P", "url": f"{trial.bot.url}/commands"}


async def register(trial: Trial) -> None:
    """The bot may make slash commands, has none of its own, and is away."""
    trial.bot.kill()
    await trial.bot.gone()
    await trial.free_lease()
    admin, stage = trial.rig.mattermost.client(), trial.stage
    for one in await admin.get("/commands", team_id=stage.team, custom_only="true"):
        if one["trigger"] == "gpu":
            await admin.delete(f"/commands/{one['id']}")
    roles = {"scheme_admin": True, "scheme_user": True}
    await admin.put(f"/teams/{stage.team}/members/{stage.account.user_id}/schemeRoles", roles)


async def ours(trial: Trial) -> list[dict[str, Any]]:
    """The slash commands that the bot's account made."""
    admin, stage = trial.rig.mattermost.client(), trial.stage
    found = await admin.get("/commands", team_id=stage.team, custom_only="true")
    return [one for one in found if one["creator_id"] == stage.account.user_id]


async def commands_end(trial: Trial, strike: Strike) -> None:
    """Whatever happened in between, there is one `gpu`, and it leads to the bot."""
    place = {"mattermost": {"commands_url": f"{trial.bot.url}/commands"}}
    strike.arm()
    await trial.bot.start(waits=False, **place)
    await strike.survived(**place)

    async def right() -> bool:
        return [(one["trigger"], one["url"]) for one in await ours(trial)] == [("gpu", f"{trial.bot.url}/commands")]

    await trial.until("one command, that leads here", right)


async def farewell(trial: Trial, strike: Strike) -> None:
    """`release-finalizers`, killed half-way and called again: nothing is held any more."""
    trial.stage.script("compile-and-test", red())
    trial.bot.kill()
    await trial.bot.gone()
    run = await trial.submit(born=True)
    await trial.phase(run["metadata"]["name"], "Failed")
    first = await asyncio.create_subprocess_exec(*trial.command_line("release-finalizers"), cwd=ROOT)
    strike.arm(first.kill)
    await strike.fell()
    await first.wait()
    second = await asyncio.create_subprocess_exec(*trial.command_line("release-finalizers"), cwd=ROOT)
    assert await second.wait() == 0
    assert not (await trial.phase(run["metadata"]["name"], "Failed"))["metadata"].get("finalizers")
    await trial.restart()
    await trial.reported(run, FAILED)


@dataclass(frozen=True)
class Case:
    """A story, and the call at which the bot is killed in it."""

    call: str
    story: Story


CASES = (
    *(Case(name, by_hand) for name in ("claim", "journal", "card", "remember", "failure", "notice", "release")),
    Case("see", begun_late),
    Case("edit", edited),
    Case("edit", changed_card),
    Case("submit", typed),
    Case("submit", delivered_twice),
    Case("submit", posted),
    Case("answer", posted),
    Case("cursor", read_on),
    Case("cancel", cancelled),
    Case("dialog", by_dialog),
    Case("suspend", switched),
    Case("warm", kept_warm),
    Case("warm", kept_warm_twice),
    Case("cool", cooled),
    Case("cool", gives_way),
    Case("shut-down", deleted),
    Case("let-go", deleted_and_stuck),
    Case("forget-card", card_deleted),
    Case("card", card_deleted),
    Case("claim-again", retried),
    Case("lease-create", makes_the_lease),
    Case("lease-hold", takes_the_lease),
    Case("lease-give-back", gives_the_lease_back),
    Case("installation", installed),
    Case("history-create", first_start_remembered),
    Case("history", start_remembered),
    Case("give-up", given_up),
    Case("alert", alerted),
    Case("alert-over", alerted),
    Case("wait-longer", waited_longer),
    Case("costs-create", costs_begun),
    Case("costs", costs_kept),
    Case("double", double_card),
    Case("double", double_notice),
    Case("late-answer", answered_late),
    Case("command-create", commands_made),
    Case("command-correct", commands_corrected),
    Case("command-remove", commands_removed),
    Case("farewell", farewell),
)


@pytest.mark.parametrize("heard", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.call}-{case.story.__name__}")
async def test_killed_at(trial: Trial, case: Case, heard: bool) -> None:
    """Killed before the server hears of the call, or after it has committed and before the answer is read."""
    await trial.alone()
    # for half a minute the server itself answers a repeated POST with the post that it has: that must not be needed
    trial.chat.forgets = ("pending_post_id",)
    began = len(trial.kube.seen), len(trial.chat.seen)

    await case.story(trial, Strike(trial, BY_NAME[case.call], heard=heard))

    asked = trial.kube.seen[began[0] :] + trial.chat.seen[began[1] :]
    assert unknown(asked) == [], "a call that no case kills the bot at"


async def test_away_for_longer_than_anything_is_kept(trial: Trial) -> None:
    """Away until Argo has deleted what ended, by the run's TTL and by the nightly's history limit: reported when back."""
    await trial.alone()
    gate = f"gate-{trial.numbers}"
    trial.stage.script("compile-and-test", red(gate))
    kept = {"ttlStrategy": {"secondsAfterCompletion": 1}}
    followed = await trial.submit(**kept)
    await trial.shows(followed, "compiling and testing")

    trial.bot.kill()
    await trial.bot.gone()
    trial.stage.script("compile-and-test", red())
    await trial.stage.release(gate)
    unseen = await trial.submit(born=True, **kept)
    nightly = await child_of_the_nightly(trial)
    for run in (followed, unseen, nightly):
        await trial.until(f"{run['metadata']['name']} is deleted", lambda run=run: is_being_deleted(trial, run))
    await trial.restart()

    for run in (followed, unseen, nightly):
        await trial.reported(run, "1 of 10 failed" if run is nightly else FAILED)
        await is_gone(trial, run)


async def child_of_the_nightly(trial: Trial) -> dict[str, Any]:
    """A run that Argo's own clock starts, of a CronWorkflow that keeps none that has ended."""
    known = await trial.uids()
    spec: dict[str, Any] = {"suspend": False, "schedules": ["@every 3s"], "failedJobsHistoryLimit": 0}
    spec["workflowMetadata"] = {"finalizers": ["gputest.bot/report"]}
    await trial.stage.patch_cron("gpu-test-nightly", {"spec": spec})

    async def made() -> dict[str, Any] | None:
        return next(iter(await trial.made_since(known)), None)

    try:
        child: dict[str, Any] = await trial.until("a child of the nightly", made, 70)
    finally:
        await trial.stage.patch_cron("gpu-test-nightly", {"spec": {"suspend": True, "schedules": ["0 2 * * *"]}})
    return child


async def is_being_deleted(trial: Trial, run: dict[str, Any]) -> bool:
    """Whether somebody has deleted it; it stays for our finalizer alone."""
    body = await trial.stage.workflow(run["metadata"]["name"])
    assert body is not None, "it went unreported"
    return bool(body["metadata"].get("deletionTimestamp"))


async def test_nothing_comes_later(trial: Trial) -> None:
    """When all of that is over and the sweeps have gone on: still one card a run, and each notice once."""
    rows = await trial.store.rows("(props ? 'gputest_card' OR props ? 'gputest_reply') AND deleteat = 0")
    cards = [row.card.split(":")[0] for row in rows if row.card]
    replies = [row.reply for row in rows if row.reply]

    assert sorted(set(cards)) == sorted(cards)
    assert sorted(set(replies)) == sorted(replies)
