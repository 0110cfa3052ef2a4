"""Watches and logs over HTTP, with everything that can go wrong with a stream."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from bot.demo import EmbeddedWorld
from bot.demo.kinds import WORKFLOWS

from .conftest import NAMESPACE, Client

PATH = f"{NAMESPACE}/workflows"


@pytest.fixture(autouse=True)
def no_controller(world: EmbeddedWorld) -> None:
    """Workflows stay as they are written."""
    world.cluster.argo_down()


def make(world: EmbeddedWorld, name: str, **labels: str) -> dict[str, Any]:
    """Create a workflow behind the API's back."""
    meta = {"name": name, "namespace": "foxhunt", "labels": labels}
    return world.cluster.store.create(WORKFLOWS, {"metadata": meta, "spec": {}})


def relabel(world: EmbeddedWorld, name: str, **labels: str) -> None:
    """Change a workflow's labels."""
    world.cluster.patch(WORKFLOWS, name, lambda wf: wf["metadata"].update(labels=labels))


async def events(response: aiohttp.ClientResponse, count: int) -> list[tuple[str, str]]:
    """Type and name of the next events."""
    found = []
    for _ in range(count):
        event = json.loads(await asyncio.wait_for(response.content.readline(), 5))
        found.append((event["type"], event["object"].get("metadata", {}).get("name", "")))
    return found


async def test_watch_without_revision_begins_with_the_present(world: EmbeddedWorld, kube: Client) -> None:
    """First what is there, then what happens."""
    make(world, "a")
    async with kube.stream(f"{PATH}?watch=true") as stream:
        assert await events(stream, 1) == [("ADDED", "a")]
        make(world, "b")
        relabel(world, "a", x="y")
        world.cluster.delete("b")

        assert await events(stream, 3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


async def test_watch_resumes_after_a_revision(world: EmbeddedWorld, kube: Client) -> None:
    """Nothing that came after the revision is missed, nothing before it repeated."""
    first = make(world, "a")
    make(world, "b")
    relabel(world, "b", x="y")
    async with kube.stream(f"{PATH}?watch=true&resourceVersion={first['metadata']['resourceVersion']}") as stream:
        assert await events(stream, 2) == [("ADDED", "b"), ("MODIFIED", "b")]


async def test_an_object_that_leaves_the_selector_looks_deleted(world: EmbeddedWorld, kube: Client) -> None:
    """DELETED with its last matching state at the new revision, ADDED when it comes back."""
    made = make(world, "a", phase="x")
    revision = made["metadata"]["resourceVersion"]
    async with kube.stream(f"{PATH}?watch=true&labelSelector=phase=x&resourceVersion={revision}") as stream:
        relabel(world, "a", phase="y")
        event = json.loads(await stream.content.readline())

        assert (event["type"], event["object"]["metadata"]["labels"]) == ("DELETED", {"phase": "x"})
        assert event["object"]["metadata"]["resourceVersion"] == str(world.cluster.store.revision)
        relabel(world, "a", phase="z")
        relabel(world, "a", phase="x")

        assert await events(stream, 1) == [("ADDED", "a")]


async def test_too_old_a_revision_is_an_error_in_the_stream(world: EmbeddedWorld, kube: Client) -> None:
    """Status 200, one ERROR of code 410, and the end."""
    made = make(world, "a")
    make(world, "b")
    world.cluster.store.forget()
    async with kube.stream(f"{PATH}?watch=true&resourceVersion={made['metadata']['resourceVersion']}") as stream:
        error = json.loads(await stream.content.readline())

        assert stream.status == 200
        assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 410, "Expired")
        assert await stream.content.read() == b""


async def test_the_next_watch_can_be_told_410(world: EmbeddedWorld, kube: Client) -> None:
    """A switch makes one watch begin with 410."""
    world.kube_api.gone_next = 1
    async with kube.stream(f"{PATH}?watch=true") as stream:
        assert json.loads(await stream.content.readline())["object"]["code"] == 410
    make(world, "a")
    async with kube.stream(f"{PATH}?watch=true") as stream:
        assert await events(stream, 1) == [("ADDED", "a")]


async def test_bookmarks_carry_the_latest_revision(world: EmbeddedWorld, kube: Client) -> None:
    """A bookmark is sent on demand, if it is allowed; it names no object."""
    async with kube.stream(f"{PATH}?watch=true&allowWatchBookmarks=true&timeoutSeconds=1") as stream:
        world.kube_api.send_bookmarks()
        event = json.loads(await stream.content.readline())

        assert event["type"] == "BOOKMARK"
        assert event["object"]["metadata"]["resourceVersion"] == str(world.cluster.store.revision)
        assert event["object"]["kind"] == "Workflow"


async def test_partial_metadata_in_a_watch(world: EmbeddedWorld, session: aiohttp.ClientSession) -> None:
    """The Accept header holds for watches too."""
    make(world, "a")
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    headers = {"Authorization": f"Bearer {world.admin_token}", "Accept": accept}
    async with session.get(f"{world.kube_url}{PATH}?watch=true", headers=headers) as stream:
        event = json.loads(await stream.content.readline())

        assert event["object"]["kind"] == "PartialObjectMetadata"
        assert event["object"].keys() == {"kind", "apiVersion", "metadata"}


async def test_a_cut_stream_is_no_clean_end(world: EmbeddedWorld, kube: Client) -> None:
    """The client sees a broken transfer."""
    async with kube.stream(f"{PATH}?watch=true") as stream:
        make(world, "a")
        await events(stream, 1)
        world.kube_faults.cut_streams()
        with pytest.raises(aiohttp.ClientError):
            await stream.content.readline()


async def test_half_a_line_then_nothing(world: EmbeddedWorld, kube: Client, caplog: pytest.LogCaptureFixture) -> None:
    """The connection ends inside an event, and the server finds nothing wrong with a reader that goes."""
    async with kube.stream(f"{PATH}?watch=true") as stream:
        world.kube_api.half_lines = 1
        make(world, "a")
        received = b""
        with pytest.raises(aiohttp.ClientError):
            while True:
                chunk = await stream.content.read(100)
                received += chunk
                if not chunk:
                    raise aiohttp.ClientPayloadError
        assert received.startswith(b'{"type":"ADDED"')
        assert b"\n" not in received
    assert [record.getMessage() for record in caplog.records] == []


async def test_logs_are_followed_to_the_end(world: EmbeddedWorld, kube: Client) -> None:
    """follow sends what is there and what comes, and ends with the container."""
    world.cluster.argo_up()
    world.cluster.hang()
    name = world.cluster.submit("run-1")
    await world.cluster.until_running(name)
    world.cluster.log(name, "first", "second")
    pod = world.cluster.pod(name)
    assert pod is not None
    path = f"/api/v1/namespaces/foxhunt/pods/{pod['metadata']['name']}/log"
    async with kube.stream(f"{path}?container=main&follow=true&tailLines=1") as stream:
        assert await stream.content.readline() == b"second\n"
        world.cluster.log(name, "third ✅")
        assert (await stream.content.readline()).decode() == "third ✅\n"
        world.cluster.finish(name)
        assert await stream.content.read() == b""


async def test_a_log_that_is_cut_is_no_clean_end(world: EmbeddedWorld, kube: Client) -> None:
    """The client sees a broken transfer, and cannot take it for the end of the pod."""
    world.cluster.argo_up()
    world.cluster.hang()
    name = world.cluster.submit("run-1")
    await world.cluster.until_running(name)
    world.cluster.log(name, "first")
    pod = world.cluster.pod(name)
    assert pod is not None
    path = f"/api/v1/namespaces/foxhunt/pods/{pod['metadata']['name']}/log"
    async with kube.stream(f"{path}?container=main&follow=true") as stream:
        await stream.content.readline()
        world.kube_faults.cut_streams()
        with pytest.raises(aiohttp.ClientError):
            await stream.content.read()


async def test_logs_since_a_time_and_with_stamps(world: EmbeddedWorld, kube: Client) -> None:
    """sinceTime takes what is not older; timestamps stand before the lines."""
    world.cluster.argo_up()
    world.cluster.hang()
    name = world.cluster.submit("run-1")
    await world.cluster.until_running(name)
    world.cluster.log(name, "early")
    await world.clock.advance(60)
    since = world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    world.cluster.log(name, "late")
    pod = world.cluster.pod(name)
    assert pod is not None
    path = f"/api/v1/namespaces/foxhunt/pods/{pod['metadata']['name']}/log"
    async with kube.stream(f"{path}?container=main&sinceTime={since}&timestamps=true") as stream:
        text = (await stream.content.read()).decode()

    assert text.startswith(since[:-1])
    assert text.endswith(" late\n")
    assert text.count("\n") == 1


async def test_logs_of_what_has_not_started(world: EmbeddedWorld, kube: Client) -> None:
    """No host yet: empty; no container named: 400; no such pod: 404."""
    world.cluster.argo_up()
    name = world.cluster.submit("run-1")
    await world.clock.advance(0)
    pod = world.cluster.pod(name, "gpu-warmup")
    assert pod is not None
    path = f"/api/v1/namespaces/foxhunt/pods/{pod['metadata']['name']}/log"
    async with kube.stream(f"{path}?container=main") as stream:
        assert (stream.status, await stream.read()) == (204, b"")
    status, error = await kube("GET", path)

    assert status == 400
    assert error["message"].startswith("a container name must be specified for pod")
    assert (await kube("GET", "/api/v1/namespaces/foxhunt/pods/none/log"))[0] == 404
