"""Objects over HTTP: create, read, list, write, delete, and the errors of each."""

from __future__ import annotations

import io
import json

import pytest

from bot.demo import EmbeddedWorld

from .conftest import NAMESPACE, Client, workflow

CONFIGMAPS = "/api/v1/namespaces/foxhunt/configmaps"
WORKFLOWS = f"{NAMESPACE}/workflows"


@pytest.fixture(autouse=True)
def no_controller(world: EmbeddedWorld) -> None:
    """Workflows stay as they are written."""
    world.cluster.argo_down()


def configmap(name: str, **data: str) -> dict:
    return {"metadata": {"name": name}, "data": data}


async def test_create_fills_in_metadata_and_refuses_a_second(kube: Client) -> None:
    """A created object has uid, time and revision; its name is taken then."""
    status, made = await kube("POST", CONFIGMAPS, json=configmap("one", a="1"))

    assert status == 201
    assert made["kind"] == "ConfigMap"
    assert made["metadata"]["creationTimestamp"] == "2026-03-02T10:00:00Z"
    assert {"uid", "resourceVersion"} <= made["metadata"].keys()
    assert "managedFields" not in made["metadata"]

    status, error = await kube("POST", CONFIGMAPS, json=configmap("one"))

    assert status == 409
    assert error == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps "one" already exists',
        "reason": "AlreadyExists",
        "details": {"name": "one", "kind": "configmaps"},
        "code": 409,
    }


async def test_generate_name_adds_five_characters(kube: Client) -> None:
    """generateName makes a fresh name each time."""
    body = workflow("", metadata={"generateName": "run-"})
    names = {(await kube("POST", WORKFLOWS, json=body))[1]["metadata"]["name"] for _ in range(3)}

    assert len(names) == 3
    assert all(len(name) == len("run-") + 5 for name in names)


async def test_names_and_namespaces_are_checked(kube: Client) -> None:
    """No name, a wrong name, an unknown namespace: each has its own error."""
    assert (await kube("POST", CONFIGMAPS, json={"metadata": {}}))[0] == 422
    status, error = await kube("POST", CONFIGMAPS, json=configmap("Big_Name"))

    assert (status, error["reason"]) == (422, "Invalid")
    assert error["details"]["causes"][0]["field"] == "metadata.name"
    status, error = await kube("POST", "/api/v1/namespaces/nowhere/configmaps", json=configmap("one"))

    assert (status, error["message"]) == (404, 'namespaces "nowhere" not found')


async def test_list_in_pages_is_one_consistent_list(kube: Client) -> None:
    """Pages show the state of the first page, whatever happens in between."""
    for name in "abcde":
        await kube("POST", CONFIGMAPS, json=configmap(name))
    _, first = await kube("GET", f"{CONFIGMAPS}?limit=2")
    await kube("POST", CONFIGMAPS, json=configmap("bb"))
    await kube("DELETE", f"{CONFIGMAPS}/e")
    _, second = await kube("GET", f"{CONFIGMAPS}?limit=9&continue={first['metadata']['continue']}")

    assert [one["metadata"]["name"] for one in first["items"] + second["items"]] == list("abcde")
    assert first["metadata"]["remainingItemCount"] == 3
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert "continue" not in second["metadata"]


async def test_continue_token_expires(kube: Client, world: EmbeddedWorld) -> None:
    """A page of a state that was compacted away is 410 Expired."""
    for name in "abc":
        await kube("POST", CONFIGMAPS, json=configmap(name))
    _, first = await kube("GET", f"{CONFIGMAPS}?limit=1")
    await kube("DELETE", f"{CONFIGMAPS}/a")
    world.cluster.store.forget()
    status, error = await kube("GET", f"{CONFIGMAPS}?limit=1&continue={first['metadata']['continue']}")

    assert (status, error["reason"]) == (410, "Expired")


async def test_selectors(kube: Client) -> None:
    """Label selectors by equality, set and presence; field selectors by name; others are refused."""
    for name, labels in (("a", {"tier": "x"}), ("b", {"tier": "y"}), ("c", {})):
        await kube("POST", CONFIGMAPS, json={"metadata": {"name": name, "labels": labels}})

    async def names(query: str) -> list[str]:
        _, found = await kube("GET", f"{CONFIGMAPS}?{query}")
        return [one["metadata"]["name"] for one in found["items"]]

    assert await names("labelSelector=tier%3Dx") == ["a"]
    assert await names("labelSelector=tier!%3Dx") == ["b", "c"]
    assert await names("labelSelector=tier in (x,y)") == ["a", "b"]
    assert await names("labelSelector=!tier") == ["c"]
    assert await names("labelSelector=tier,tier notin (y)") == ["a"]
    assert await names("fieldSelector=metadata.name%3Db") == ["b"]
    assert (await kube("GET", f"{CONFIGMAPS}?fieldSelector=spec.x%3Db"))[0] == 400
    assert (await kube("GET", f"{CONFIGMAPS}?labelSelector=a=b=c"))[0] == 400


async def test_partial_metadata_and_tables(kube: Client) -> None:
    """Accept chooses metadata alone, or a table."""
    await kube("POST", WORKFLOWS, json=workflow("one"))
    partial = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"}
    _, listed = await kube("GET", WORKFLOWS, headers=partial)

    assert listed["kind"] == "PartialObjectMetadataList"
    assert listed["items"][0].keys() == {"metadata"}
    one = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    _, found = await kube("GET", f"{WORKFLOWS}/one", headers=one)

    assert found.keys() == {"kind", "apiVersion", "metadata"}
    _, table = await kube("GET", WORKFLOWS, headers={"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"})

    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Status", "Age", "Message"]


async def test_update_needs_the_latest_revision(kube: Client) -> None:
    """PUT with an old resourceVersion is a conflict; of a custom resource without one it is invalid."""
    _, made = await kube("POST", WORKFLOWS, json=workflow("one", spec={"a": 1}))
    made["spec"]["a"] = 2
    status, written = await kube("PUT", f"{WORKFLOWS}/one", json=made)

    assert (status, written["metadata"]["generation"]) == (200, made["metadata"]["generation"] + 1)
    status, error = await kube("PUT", f"{WORKFLOWS}/one", json=made)

    assert (status, error["reason"]) == (409, "Conflict")
    assert "the object has been modified; please apply your changes to the latest version" in error["message"]
    del made["metadata"]["resourceVersion"]

    assert (await kube("PUT", f"{WORKFLOWS}/one", json=made))[0] == 422


async def test_a_write_that_changes_nothing_makes_no_revision(kube: Client) -> None:
    """The revision stays when nothing changes."""
    _, made = await kube("POST", CONFIGMAPS, json=configmap("one", a="1"))
    _, same = await kube.patch(f"{CONFIGMAPS}/one", {"data": {"a": "1"}})

    assert same["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_server_owned_metadata_stays(kube: Client) -> None:
    """A client cannot write creationTimestamp or generation, and is told so of deletionTimestamp."""
    await kube("POST", CONFIGMAPS, json=configmap("one"))
    early = "1999-01-01T00:00:00Z"
    meta = {"creationTimestamp": early, "generation": 7, "labels": {"a": "b"}}
    _, changed = await kube.patch(f"{CONFIGMAPS}/one", {"metadata": meta})

    assert changed["metadata"]["creationTimestamp"] == "2026-03-02T10:00:00Z"
    assert "generation" not in changed["metadata"]
    status, error = await kube.patch(f"{CONFIGMAPS}/one", {"metadata": {"deletionTimestamp": early}})

    assert status == 422
    assert "metadata.deletionTimestamp" in error["message"]


async def test_generation_of_argo_objects_moves_with_status(kube: Client) -> None:
    """Argo's CRDs have no status subresource: a write of status is a write like any other, and /status is not found."""
    await kube("POST", WORKFLOWS, json=workflow("one", spec={"entrypoint": "x"}, status={"phase": "Failed"}))
    _, before = await kube("GET", f"{WORKFLOWS}/one")
    _, after = await kube.patch(f"{WORKFLOWS}/one", {"status": {"extra": "y"}})
    _, labelled = await kube.patch(f"{WORKFLOWS}/one", {"metadata": {"labels": {"a": "b"}}})

    assert after["metadata"]["generation"] == before["metadata"]["generation"] + 1
    assert labelled["metadata"]["generation"] == after["metadata"]["generation"]
    assert (await kube.patch(f"{WORKFLOWS}/one/status", {"status": {}}))[0] == 404


async def test_dry_run_answers_and_stores_nothing(kube: Client) -> None:
    """dryRun=All checks and answers; other values are refused."""
    status, made = await kube("POST", f"{CONFIGMAPS}?dryRun=All", json=configmap("one"))

    assert (status, made["metadata"]["name"]) == (201, "one")
    assert (await kube("GET", f"{CONFIGMAPS}/one"))[0] == 404
    assert (await kube("POST", f"{CONFIGMAPS}?dryRun=maybe", json=configmap("one")))[0] == 422


async def test_limits_of_size(kube: Client) -> None:
    """Annotations end at 256 KiB, a ConfigMap's data at 1 MiB."""
    big = workflow("one", metadata={"name": "one", "annotations": {"a": "x" * (256 * 1024)}})
    status, error = await kube("POST", WORKFLOWS, json=big)

    assert status == 422
    assert "metadata.annotations: Too long: may not be more than 262144 bytes" in error["message"]


async def test_delete_with_a_finalizer_waits_for_it(kube: Client) -> None:
    """The object stays with a deletionTimestamp; no finalizer can be added; it goes with the last one."""
    meta = {"name": "one", "finalizers": ["bot.example/report"]}
    await kube("POST", WORKFLOWS, json=workflow("one", metadata=meta))
    status, deleting = await kube("DELETE", f"{WORKFLOWS}/one")

    assert (status, deleting["kind"]) == (200, "Workflow")
    assert deleting["metadata"]["deletionTimestamp"] == "2026-03-02T10:00:00Z"
    patch = {"metadata": {"finalizers": ["bot.example/report", "other.example/x"]}}
    status, error = await kube.patch(f"{WORKFLOWS}/one", patch)

    assert status == 422
    assert "Forbidden: no new finalizers can be added if the object is being deleted" in error["message"]
    assert (await kube.patch(f"{WORKFLOWS}/one", {"metadata": {"finalizers": None}}))[0] == 200
    assert (await kube("GET", f"{WORKFLOWS}/one"))[0] == 404


async def test_delete_preconditions_and_success(kube: Client) -> None:
    """A wrong uid is a conflict; a plain deletion answers with a Status of success."""
    _, made = await kube("POST", CONFIGMAPS, json=configmap("one"))
    status, error = await kube("DELETE", f"{CONFIGMAPS}/one", json={"preconditions": {"uid": "other"}})

    assert (status, error["reason"]) == (409, "Conflict")
    status, done = await kube("DELETE", f"{CONFIGMAPS}/one")

    assert (status, done["status"], done["details"]["uid"]) == (200, "Success", made["metadata"]["uid"])
    assert (await kube("DELETE", f"{CONFIGMAPS}/one"))[0] == 404


async def test_owned_objects_follow_their_owner(kube: Client, world: EmbeddedWorld) -> None:
    """Background deletion takes what is owned; Orphan leaves it; Foreground waits for it."""

    async def family(name: str) -> None:
        _, owner = await kube("POST", CONFIGMAPS, json=configmap(name))
        ref = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": name,
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": True,
        }
        child = {"metadata": {"name": f"{name}-child", "ownerReferences": [ref], "finalizers": ["x.example/y"]}}
        await kube("POST", CONFIGMAPS, json=child)

    for name, policy in (("back", "Background"), ("fore", "Foreground"), ("orphan", "Orphan")):
        await family(name)
        await kube("DELETE", f"{CONFIGMAPS}/{name}?propagationPolicy={policy}")
    await world.clock.advance(0)

    assert (await kube("GET", f"{CONFIGMAPS}/back"))[0] == 404
    assert "deletionTimestamp" in (await kube("GET", f"{CONFIGMAPS}/back-child"))[1]["metadata"]
    assert (await kube("GET", f"{CONFIGMAPS}/fore"))[1]["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert (await kube("GET", f"{CONFIGMAPS}/orphan"))[0] == 404
    assert "ownerReferences" not in (await kube("GET", f"{CONFIGMAPS}/orphan-child"))[1]["metadata"]
    await kube.patch(f"{CONFIGMAPS}/fore-child", {"metadata": {"finalizers": None}})
    await world.clock.advance(0)

    assert (await kube("GET", f"{CONFIGMAPS}/fore"))[0] == 404


async def test_leases_are_taken_by_conflict(kube: Client) -> None:
    """Of two holders who write the same revision, one loses."""
    leases = "/apis/coordination.k8s.io/v1/namespaces/foxhunt/leases"
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-03-02T10:00:00.000000Z"}
    _, lease = await kube("POST", leases, json={"metadata": {"name": "bot"}, "spec": spec})
    first = {**lease, "spec": {**spec, "holderIdentity": "b"}}

    assert (await kube("PUT", f"{leases}/bot", json=first))[0] == 200
    assert (await kube("PUT", f"{leases}/bot", json={**lease, "spec": {**spec, "holderIdentity": "c"}}))[0] == 409


async def test_discovery(kube: Client) -> None:
    """Groups, versions and resources as discovery clients expect them."""
    _, groups = await kube("GET", "/apis")
    _, resources = await kube("GET", "/apis/argoproj.io/v1alpha1")

    assert "argoproj.io" in [group["name"] for group in groups["groups"]]
    assert "cronworkflows" in [resource["name"] for resource in resources["resources"]]
    assert (await kube("GET", "/version"))[1]["minor"] == "34"


async def test_a_configmap_ends_at_a_mebibyte(kube: Client) -> None:
    """More data than 1 MiB is invalid."""
    body = io.BytesIO(json.dumps(configmap("one", a="x" * (1024 * 1024 + 1))).encode())
    status, error = await kube("POST", CONFIGMAPS, data=body, headers={"Content-Type": "application/json"})

    assert status == 422
    assert "Too long: may not be more than 1048576 bytes" in error["message"]
