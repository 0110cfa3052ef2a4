"""Patches, above all what a JSON patch with tests does under a race."""

from __future__ import annotations

import pytest

from .conftest import NAMESPACE, Client, workflow

WORKFLOWS = f"{NAMESPACE}/workflows"
REJECTED = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "the server rejected our request due to an error in our request",
    "reason": "Invalid",
    "details": {},
    "code": 422,
}


UNPLACED = {
    "metadata": {"name": "p"},
    "spec": {"nodeSelector": {"no": "such"}, "containers": [{"name": "main", "image": "x"}]},
}
"""A pod for which there is no node."""


@pytest.fixture
async def path(kube: Client) -> str:
    """A finished workflow that nothing touches."""
    meta = {"name": "one", "labels": {"workflows.argoproj.io/completed": "true"}}
    body = workflow("one", metadata=meta, spec={"a": 1}, status={"phase": "Failed"})
    await kube("POST", WORKFLOWS, json=body)
    return f"{WORKFLOWS}/one"


async def test_absent_containers_are_tested_for_null_and_added(kube: Client, path: str) -> None:
    """A claim that tests absent paths for null is accepted once, and refused as invalid the second time."""
    claim = [
        {"op": "test", "path": "/metadata/annotations", "value": None},
        {"op": "add", "path": "/metadata/annotations", "value": {"bot.example/run": "x"}},
        {"op": "test", "path": "/metadata/finalizers", "value": None},
        {"op": "add", "path": "/metadata/finalizers", "value": ["bot.example/report"]},
    ]
    status, claimed = await kube.patch(path, claim, "json-patch")

    assert (status, claimed["metadata"]["finalizers"]) == (200, ["bot.example/report"])
    assert await kube.patch(path, claim, "json-patch") == (422, REJECTED)


async def test_a_failing_test_changes_nothing(kube: Client, path: str) -> None:
    """All or nothing: operations before the failing test do not stay."""
    patch = [{"op": "add", "path": "/spec/b", "value": 2}, {"op": "test", "path": "/status/phase", "value": "Running"}]

    assert await kube.patch(path, patch, "json-patch") == (422, REJECTED)
    assert "b" not in (await kube("GET", path))[1]["spec"]


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/metadata/annotations/none"},
        {"op": "replace", "path": "/metadata/annotations/none", "value": "x"},
        {"op": "add", "path": "/metadata/annotations/none", "value": "x"},
        {"op": "test", "path": "/metadata/annotations/none", "value": None},
        {"op": "test", "path": "/metadata/finalizers/0", "value": "x"},
    ],
)
async def test_absent_parents_are_refused(kube: Client, path: str, operation: dict) -> None:
    """An operation below something that does not exist is invalid, a test for null too."""
    assert await kube.patch(path, [operation], "json-patch") == (422, REJECTED)


async def test_what_is_no_patch_is_a_bad_request(kube: Client, path: str) -> None:
    """An object in place of operations, and text in place of JSON."""
    assert (await kube.patch(path, {"op": "add"}, "json-patch"))[0] == 400
    headers = {"Content-Type": "application/json-patch+json"}
    assert (await kube("PATCH", path, data=b"nonsense", headers=headers))[0] == 400
    headers = {"Content-Type": "application/merge-patch+json"}
    assert (await kube("PATCH", path, data=b"[1]", headers=headers))[0] == 400


async def test_merge_patch_deletes_by_null_and_replaces_lists(kube: Client, path: str) -> None:
    """RFC 7386."""
    await kube.patch(path, {"spec": {"list": [1, 2], "deep": {"x": 1, "y": 2}}})
    _, changed = await kube.patch(path, {"spec": {"a": None, "list": [3], "deep": {"x": None}}})

    assert changed["spec"] == {"list": [3], "deep": {"y": 2}}


async def test_merge_patch_with_a_revision_is_conditional(kube: Client, path: str) -> None:
    """A resourceVersion in a merge patch must be the latest."""
    _, before = await kube("GET", path)
    patch = {"metadata": {"resourceVersion": before["metadata"]["resourceVersion"], "labels": {"a": "b"}}}

    assert (await kube.patch(path, patch))[0] == 200
    assert (await kube.patch(path, {**patch, "spec": {"z": 1}}))[0] == 409


async def test_strategic_merge_is_for_built_in_kinds(kube: Client, path: str) -> None:
    """A custom resource answers 415 and names what it takes; a pod merges its conditions by type."""
    status, error = await kube.patch(path, {"spec": {}}, "strategic-merge-patch")

    assert (status, error["reason"]) == (415, "UnsupportedMediaType")
    pods = "/api/v1/namespaces/foxhunt/pods"
    await kube("POST", pods, json=UNPLACED)
    for kind in ("Ready", "Other", "Ready"):
        patch = {"status": {"conditions": [{"type": kind, "status": "True"}]}}
        _, pod = await kube.patch(f"{pods}/p/status", patch, "strategic-merge-patch")

    assert [one["type"] for one in pod["status"]["conditions"] if one["type"] != "PodScheduled"] == ["Ready", "Other"]


async def test_status_of_pods_is_a_resource_of_its_own(kube: Client) -> None:
    """A write to the pod leaves its status alone, and a write to its status leaves the rest alone."""
    pods = "/api/v1/namespaces/foxhunt/pods"
    await kube(
        "POST",
        pods,
        json={**UNPLACED, "status": {"phase": "Failed"}},
    )
    _, pod = await kube("GET", f"{pods}/p")

    assert pod["status"]["phase"] == "Pending"
    await kube.patch(f"{pods}/p", {"status": {"phase": "Failed"}, "metadata": {"labels": {"a": "b"}}})
    await kube.patch(f"{pods}/p/status", {"status": {"reason": "x"}, "spec": {"nodeName": "y"}})
    _, pod = await kube("GET", f"{pods}/p")

    assert (pod["status"]["phase"], pod["status"]["reason"], pod["metadata"]["labels"]) == ("Pending", "x", {"a": "b"})
    assert "nodeName" not in pod["spec"]


async def test_server_side_apply_is_refused(kube: Client) -> None:
    """Without ownership of fields it would do something else than is meant: 415, and nothing is made."""
    headers = {"Content-Type": "application/apply-patch+yaml"}
    target = "/api/v1/namespaces/foxhunt/configmaps/applied"
    body = b"apiVersion: v1\nkind: ConfigMap\ndata: {a: '1'}\n"
    status, error = await kube("PATCH", f"{target}?fieldManager=me", data=body, headers=headers)

    assert (status, error["reason"]) == (415, "UnsupportedMediaType")
    assert (await kube("GET", target))[0] == 404
