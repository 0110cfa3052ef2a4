"""Pods that keep a node up: made once, and nobody else's pod is removed."""

from __future__ import annotations

from typing import Any

import pytest

from bot.core.effects import MakePlaceholder, RemovePlaceholders
from bot.core.events import EffectDone, EffectFailed, Trouble
from bot.demo.kinds import PODS
from bot.sinks.placeholders import PlaceholderSink
from tests.phrases import NOW
from tests.sinks.conftest import Sunk

H100, L4 = "ci-training-h100", "ci-compile"


@pytest.fixture
def sink(sunk: Sunk) -> PlaceholderSink:
    """The sink on the embedded cluster, where no pod gets a node."""
    sunk.world.cluster.scheduler.working = False
    return PlaceholderSink(sunk.kube, sunk.settings)


def make(name: str = "gpu-warm-1", pool: str = H100, until: float = NOW + 600) -> MakePlaceholder:
    """The effect."""
    return MakePlaceholder("e1", "foxhunt", name, pool, until, 600, "anna")


def names(sunk: Sunk) -> set[str]:
    """The pods that are there."""
    return {pod["metadata"]["name"] for pod in sunk.world.cluster.store.all(PODS, "foxhunt")}


async def test_it_asks_for_one_gpu_of_its_pool_and_nothing_else(sunk: Sunk, sink: PlaceholderSink) -> None:
    """With an end, the lowest priority, no rights; it says who asked."""
    assert await sink.make(make()) == EffectDone("e1", "gpu-warm-1")

    pod = sunk.world.cluster.store.get(PODS, "foxhunt", "gpu-warm-1")
    spec: dict[str, Any] = pod["spec"]
    assert pod["metadata"]["labels"]["gputest.bot/until"] == str(int(NOW) + 600)
    assert pod["metadata"]["annotations"] == {"gputest.bot/asked-by": "anna"}
    assert spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert spec["nodeSelector"] == {"k8s.scaleway.com/pool-name": H100}
    assert (spec["priorityClassName"], spec["activeDeadlineSeconds"]) == ("gpu-placeholder", 600)
    assert spec["automountServiceAccountToken"] is False


async def test_made_twice_it_is_there_once(sunk: Sunk, sink: PlaceholderSink) -> None:
    """The name is the request's, so one that is taken is done; also where the first answer was lost."""
    sunk.world.kube_faults.drop_after_commit(method="POST", path="/api/v1/namespaces/foxhunt/pods")
    first, second = await sink.make(make()), await sink.make(make())

    assert isinstance(first, EffectFailed)
    assert first.trouble is Trouble.UNCERTAIN
    assert second == EffectDone("e1", "gpu-warm-1")
    assert names(sunk) == {"gpu-warm-1"}


async def test_those_of_a_pool_are_removed_and_what_is_over(sunk: Sunk, sink: PlaceholderSink) -> None:
    """Others' pods stay, and placeholders of other pools whose time is not over."""
    store = sunk.world.cluster.store
    for effect in (make("a"), make("b", L4), make("over", L4, NOW), make("ended", L4), make("c")):
        await sink.make(effect)
    store.change(PODS, "foxhunt", "ended", lambda pod: pod["status"].update(phase="Failed"))
    other = {
        "metadata": {"namespace": "foxhunt", "name": "training"},
        "spec": {"containers": [{"name": "main"}]},
        "status": {},
    }
    store.create(PODS, other)

    done = await sink.remove(RemovePlaceholders("e2", "foxhunt", H100, NOW))

    assert done == EffectDone("e2", ("a", "c", "ended", "over"))
    assert names(sunk) == {"b", "training"}
    assert await sink.remove(RemovePlaceholders("e3", "foxhunt", "", NOW)) == EffectDone("e3", ())


async def test_one_that_goes_already_is_not_counted(sunk: Sunk, sink: PlaceholderSink) -> None:
    """Nor one whose name is another pod's by now."""
    await sink.make(make())
    store = sunk.world.cluster.store
    store.change(PODS, "foxhunt", "gpu-warm-1", lambda pod: pod["spec"].update(nodeName="h100-a"))
    await sink.remove(RemovePlaceholders("e2", "foxhunt", H100, NOW))

    assert await sink.remove(RemovePlaceholders("e3", "foxhunt", H100, NOW)) == EffectDone("e3", ())


async def test_one_that_goes_while_it_is_removed(sunk: Sunk, sink: PlaceholderSink) -> None:
    """Gone is gone: it is no error, and not counted."""
    await sink.make(make())
    sunk.world.kube_faults.fail(404, method="DELETE", path="/api/v1/namespaces/foxhunt/pods/gpu-warm-1")

    assert await sink.remove(RemovePlaceholders("e2", "foxhunt", H100, NOW)) == EffectDone("e2", ())


async def test_what_the_cluster_refuses_is_told(sunk: Sunk, sink: PlaceholderSink) -> None:
    """Without the right to make pods it is REFUSED."""
    sunk.world.cluster.access.users.clear()

    made, removed = await sink.make(make()), await sink.remove(RemovePlaceholders("e2", "foxhunt", H100, NOW))

    assert isinstance(made, EffectFailed)
    assert isinstance(removed, EffectFailed)
    assert (made.trouble, removed.trouble) == (Trouble.REFUSED, Trouble.REFUSED)
