"""Kubernetes: watches."""

from __future__ import annotations

import time

from tests.contract.runs import TEMPLATES
from tests.contract.test_kube_objects import template
from tests.contract.wire import Wire


async def version_of(kube: Wire, **query: str) -> str:
    """The version of a list: where a watch goes on."""
    return str((await kube.get(TEMPLATES, **query)).body["metadata"]["resourceVersion"])


async def test_every_change_comes_once(kube: Wire, name: str) -> None:
    """From the version of a list on: ADDED, MODIFIED, DELETED, each with a higher version; then nothing comes twice."""
    async with kube.watch(TEMPLATES, resourceVersion=await version_of(kube)) as watch:
        await kube.post(TEMPLATES, template(name))
        await kube.patch(f"{TEMPLATES}/{name}", {"spec": {"entrypoint": "other"}})
        await kube.delete(f"{TEMPLATES}/{name}")
        events = [await watch.of(name) for _ in range(3)]

    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))
    assert events[2]["object"]["spec"] == {"entrypoint": "other"}


async def test_a_watch_goes_on_where_another_ended(kube: Wire, name: str) -> None:
    """The version of an event is a place to go on from: what came after it comes, and it does not come again."""
    async with kube.watch(TEMPLATES, resourceVersion=await version_of(kube)) as watch:
        await kube.post(TEMPLATES, template(name))
        added = await watch.of(name)
    await kube.patch(f"{TEMPLATES}/{name}", {"spec": {"entrypoint": "other"}})
    place = added["object"]["metadata"]["resourceVersion"]
    async with kube.watch(TEMPLATES, resourceVersion=place) as watch:
        event = await watch.of(name)

    assert (event["type"], event["object"]["spec"]["entrypoint"]) == ("MODIFIED", "other")


async def test_without_a_version_it_begins_with_what_is_there(kube: Wire, name: str) -> None:
    """Everything comes as ADDED first."""
    await kube.post(TEMPLATES, template(name))
    async with kube.watch(TEMPLATES) as watch:
        event = await watch.of(name)

    assert event["type"] == "ADDED"


async def test_what_leaves_the_selector_looks_deleted(kube: Wire, name: str) -> None:
    """DELETED, with what it was before and the version of the change; coming back it is ADDED."""
    selector = f"shelf={name}"
    place = await version_of(kube)
    async with kube.watch(TEMPLATES, resourceVersion=place, labelSelector=selector) as watch:
        await kube.post(TEMPLATES, template(name, labels={"shelf": name}))
        await kube.patch(f"{TEMPLATES}/{name}", {"metadata": {"labels": {"shelf": "other"}}})
        after = (await kube.get(f"{TEMPLATES}/{name}")).body["metadata"]["resourceVersion"]
        await kube.patch(f"{TEMPLATES}/{name}", {"metadata": {"labels": {"shelf": name}}})
        events = [await watch.next() for _ in range(3)]

    assert [event["type"] for event in events] == ["ADDED", "DELETED", "ADDED"]
    gone = events[1]["object"]["metadata"]
    assert gone["resourceVersion"] == after
    assert gone["labels"] == {"shelf": name}


async def test_a_held_object_is_modified_before_it_is_deleted(kube: Wire, name: str) -> None:
    """The mark of its deletion is a MODIFIED, its last finalizer's end a DELETED."""
    await kube.post(TEMPLATES, template(name, finalizers=["case/one"]))
    async with kube.watch(TEMPLATES, resourceVersion=await version_of(kube)) as watch:
        await kube.delete(f"{TEMPLATES}/{name}")
        await kube.patch(f"{TEMPLATES}/{name}", {"metadata": {"finalizers": None}})
        events = [await watch.of(name) for _ in range(2)]

    assert [event["type"] for event in events] == ["MODIFIED", "DELETED"]
    assert events[0]["object"]["metadata"]["deletionTimestamp"]
    assert events[1]["object"]["metadata"]["deletionTimestamp"]


async def test_the_version_of_a_list_is_before_what_comes_later(kube: Wire, name: str) -> None:
    """What was made between the list and the watch comes in the watch."""
    place = await version_of(kube)
    await kube.post(TEMPLATES, template(name))
    async with kube.watch(TEMPLATES, resourceVersion=place) as watch:
        event = await watch.of(name)

    assert event["type"] == "ADDED"


async def test_too_old_a_version(kube: Wire) -> None:
    """200, and in the stream one ERROR with a Status of code 410 and reason Expired; then the stream ends."""
    async with kube.watch(TEMPLATES, resourceVersion="1") as watch:
        error = await watch.next()
        end = await watch.next()

    assert watch.response.status == 200
    assert error["type"] == "ERROR"
    status = error["object"]
    assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
    assert status["message"].startswith("too old resource version: 1 (")
    assert end == {}


async def test_a_watch_ends_by_itself(kube: Wire, name: str) -> None:
    """After timeoutSeconds the stream ends cleanly. Where bookmarks are allowed one comes about two seconds before."""
    place = await version_of(kube)
    query = {"resourceVersion": place, "timeoutSeconds": "3", "allowWatchBookmarks": "true"}
    began = time.monotonic()
    async with kube.watch(TEMPLATES, **query) as watch:
        made = (await kube.post(TEMPLATES, template(name))).body["metadata"]["resourceVersion"]
        added, mark = await watch.next(), await watch.next()
        marked_after = time.monotonic() - began
        # that of each minute may come as well
        while (more := await watch.next()).get("type") == "BOOKMARK":
            mark = more

    assert (added["type"], mark["type"], more) == ("ADDED", "BOOKMARK", {})
    assert (mark["object"]["kind"], mark["object"]["apiVersion"]) == ("WorkflowTemplate", "argoproj.io/v1alpha1")
    assert int(mark["object"]["metadata"]["resourceVersion"]) >= int(made)
    assert not mark["object"]["metadata"].get("name")
    assert marked_after < 2.5
    assert 2.8 < time.monotonic() - began < 4.5


async def test_without_leave_no_bookmarks_come(kube: Wire, name: str) -> None:
    """A watch that does not ask for bookmarks gets none."""
    place = await version_of(kube)
    async with kube.watch(TEMPLATES, resourceVersion=place, timeoutSeconds="3") as watch:
        await kube.post(TEMPLATES, template(name))
        events = [await watch.next() for _ in range(2)]

    assert events[0]["type"] == "ADDED"
    assert events[1] == {}


async def test_a_watch_of_one_object(kube: Wire, name: str) -> None:
    """The field selector metadata.name keeps the others away."""
    place = await version_of(kube)
    async with kube.watch(TEMPLATES, resourceVersion=place, fieldSelector=f"metadata.name={name}") as watch:
        await kube.post(TEMPLATES, template(f"{name}-other"))
        await kube.post(TEMPLATES, template(name))
        event = await watch.next()

    assert event["object"]["metadata"]["name"] == name


async def test_metadata_alone_in_a_watch(kube: Wire, name: str) -> None:
    """A watch can be asked for PartialObjectMetadata, too."""
    place = await version_of(kube)
    headers = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
    query = {"watch": "1", "resourceVersion": place, "timeoutSeconds": "2", "fieldSelector": f"metadata.name={name}"}
    await kube.post(TEMPLATES, template(name))
    answer = await kube("GET", TEMPLATES, headers=headers, **query)

    event = answer.body if isinstance(answer.body, dict) else {}
    assert event["object"]["kind"] == "PartialObjectMetadata"
    assert "spec" not in event["object"]
