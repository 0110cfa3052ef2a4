"""The watches behind `/gpu` on the embedded cluster: with all rights, with some, with none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from bot.clients.kube import Kube
from bot.clients.kube_watch import Listed, Seen
from bot.core.events import Event, PoolsSeen
from bot.core.gpu_view import GpuView, Warmth
from bot.core.kube import ConfigMap, Meta
from bot.core.pools import Pools, Sight, observe
from bot.core.pools_view import view
from bot.core.settings import Settings
from bot.core.sightings import NodeState, NoteSeen, Source, Standing, StatusSeen
from bot.demo import EmbeddedWorld
from bot.demo.cluster import DEFAULT_OBJECTS
from bot.demo.kinds import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from bot.demo.pods import Exit, Wait
from bot.metrics import Metrics
from bot.sources.autoscaler import status_sighting
from bot.sources.kube_events import note_sighting
from bot.sources.optional import Around
from bot.sources.pools import pool_watches
from tests.core.pool_phrases import event
from tests.phrases import NOW, SETTINGS

DEPLOY = Path(__file__).parents[2] / "deploy" / "bot"
OURS, EVERYWHERE = DEPLOY / "rbac.yaml", DEPLOY / "rbac-cluster.yaml"
KINDS = {kind.kind: kind for kind in (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS)}
H100 = "ci-training-h100"


@dataclass
class Watching:
    """A world, and what the watches make of it."""

    world: EmbeddedWorld
    pools: Pools = field(default_factory=Pools)
    complaints: list[str] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, seen: Event) -> None:
        """What the loop would do with it."""
        assert isinstance(seen, PoolsSeen)
        observe(self.pools, seen.what, NOW)
        self.changed.set()

    async def until(self, holds: Callable[[GpuView], bool]) -> GpuView:
        """Wait until the view is as it should be."""
        async with asyncio.timeout(10):
            while not holds(found := view(self.pools, [], SETTINGS, NOW)):
                self.changed.clear()
                await self.changed.wait()
        return found

    async def listed(self) -> GpuView:
        """Wait until every source was seen, or seen to be hidden."""
        return await self.until(lambda found: Sight.PENDING not in found.sights.values())


@asynccontextmanager
async def watching(
    *rights: Path, settings: Settings = SETTINGS, again_seconds: float = 600.0
) -> AsyncIterator[Watching]:
    """The watches, running with these rights; without any file as the administrator."""
    account = "gputest/gputest-bot" if rights else ""
    async with EmbeddedWorld(speed=0, manifests=[DEFAULT_OBJECTS, *rights], bot_account=account) as world:
        metrics = Metrics()
        kube = await Kube.connect(metrics, url=world.kube_url, token=world.kube_token)
        found = Watching(world)
        around = Around(kube, metrics, settings, found.put, found.complaints.append, again_seconds)
        tasks = [asyncio.create_task(work, name=name) for name, work in pool_watches(around).items()]  # noqa: TID251
        try:
            yield found
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            await kube.close()
        assert all(isinstance(each, asyncio.CancelledError) for each in ended)


def pool(found: GpuView, name: str = H100) -> Any:
    return next(each for each in found.pools if each.name == name)


async def test_a_cold_start_step_by_step() -> None:
    """The autoscaler is asked, a node registers, is ready, shows its GPU, is used; then it is idle and goes."""
    async with watching() as watch:
        cluster = watch.world.cluster
        cluster.script("compile-and-test", [Wait(300), Exit(0)])
        await watch.until(lambda found: pool(found).warmth is Warmth.COLD)

        name = cluster.submit("run-1")
        await cluster.clock.advance(1)
        found = await watch.until(lambda found: any(waits.asked for waits in found.waiting))
        (waits,) = found.waiting
        assert (H100, 1, Standing.UNPLACED) == (waits.pool, waits.gpus, waits.standing)
        assert "nodes are available" in waits.message
        assert Warmth.COMING is pool(found).warmth
        assert pool(found).groups

        await cluster.until(
            lambda: any(
                each["metadata"]["labels"].get("k8s.scaleway.com/pool-name") == H100 for each in cluster.nodes()
            )
        )
        found = await watch.until(lambda found: bool(pool(found).nodes))
        assert NodeState.NOT_READY is pool(found).nodes[0].state
        await cluster.until_running(name)
        found = await watch.until(lambda found: bool(pool(found).users))
        assert (1, 0, Warmth.WARM) == (pool(found).used, pool(found).free, pool(found).warmth)
        assert "run-1" in next(iter(watch.pools.pods.values())).workflow

        await cluster.until_ended(name)
        found = await watch.until(lambda found: not pool(found).users)
        assert 1 == pool(found).free
        await cluster.clock.advance(700)
        await watch.until(lambda found: pool(found).warmth is Warmth.COLD)
        assert [] == watch.complaints


async def test_with_both_files_everything_is_seen() -> None:
    """The rights in deploy/bot are enough; a pod without a GPU is not kept."""
    async with watching(OURS, EVERYWHERE) as watch:
        found = await watch.listed()

        assert dict.fromkeys(Source, Sight.EVERYWHERE) == found.sights
        assert [] == watch.complaints
        assert {} == watch.pools.pods


async def test_no_right_of_the_optional_file_is_unused() -> None:
    """What it grants is what the watches do."""
    granted = {
        (verb, group, resource)
        for body in yaml.safe_load_all(EVERYWHERE.read_text(encoding="utf-8"))
        for rule in body.get("rules", [])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    async with watching(OURS, EVERYWHERE) as watch:
        await watch.listed()
        used = watch.world.kube_api.access.used["system:serviceaccount:gputest:gputest-bot"]
        async with asyncio.timeout(5):
            while not granted <= used:  # noqa: ASYNC110  # each watch follows its list
                await asyncio.sleep(0.01)

        assert granted == used


async def test_with_our_rights_only_our_namespace_is_seen() -> None:
    """Nodes and the autoscaler's status are hidden, which is said once; pods and events are ours."""
    async with watching(OURS, again_seconds=0.05) as watch:
        found = await watch.listed()
        await asyncio.sleep(0.3)  # long enough for several looks at what is not allowed

        assert {
            Source.NODES: Sight.HIDDEN,
            Source.PODS: Sight.OURS,
            Source.EVENTS: Sight.OURS,
            Source.AUTOSCALER: Sight.HIDDEN,
        } == found.sights
        assert [
            "not visible, the rights are missing: autoscaler",
            "not visible, the rights are missing: nodes",
        ] == sorted(watch.complaints)


async def test_rights_that_are_granted_later_are_used() -> None:
    """Without a restart, after the pause."""
    async with watching(OURS, again_seconds=0.05) as watch:
        await watch.until(lambda found: found.sights[Source.PODS] is Sight.OURS)

        for body in yaml.safe_load_all(EVERYWHERE.read_text(encoding="utf-8")):
            watch.world.cluster.store.create(KINDS[body["kind"]], body)
        found = await watch.until(lambda found: set(found.sights.values()) == {Sight.EVERYWHERE})

        assert dict.fromkeys(Source, Sight.EVERYWHERE) == found.sights


async def test_without_any_rights_nothing_is_seen_and_nothing_spins() -> None:
    """A handful of requests, and then a pause of minutes."""
    nothing = DEPLOY / "namespace.yaml"
    async with watching(nothing) as watch:
        found = await watch.listed()
        await asyncio.sleep(0.2)

        assert dict.fromkeys(Source, Sight.HIDDEN) == found.sights
        assert len(watch.world.kube_api.access.refused) <= 8


async def test_no_autoscaler_is_looked_at_where_none_is_configured() -> None:
    """An empty setting starts no watch, and is not a source that is still to come."""
    async with watching(settings=replace(SETTINGS, autoscaler_status="")) as watch:
        found = await watch.listed()

        assert Sight.NOTHING is found.sights[Source.AUTOSCALER]


def test_what_a_status_watch_sees() -> None:
    """None, one, a change, gone."""
    there = ConfigMap(Meta(name="cluster-autoscaler-status"), {"status": "x"})

    assert StatusSeen(None, there=False) == status_sighting(Listed(()), True)
    assert StatusSeen("x") == status_sighting(Listed((there,)), True)
    assert StatusSeen("x") == status_sighting(Seen("MODIFIED", there), True)
    assert StatusSeen(None, there=False) == status_sighting(Seen("DELETED", there), True)
    assert StatusSeen(None) == status_sighting(Seen("ADDED", ConfigMap(Meta())), True)


def test_an_event_that_expires_tells_nothing() -> None:
    """The API server deletes Events after an hour."""
    old = event("TriggeredScaleUp", "p", "m")

    assert note_sighting(Seen("DELETED", old), True) is None
    assert NoteSeen(old) == note_sighting(Seen("ADDED", old), True)
