"""Kubernetes: JSON patch, merge patch, and what each of them refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.runs import TEMPLATES
from tests.contract.test_kube_objects import MAPS, PODS, config_map, template
from tests.contract.wire import JSON_PATCH, STRATEGIC, Answer, Wire

NOTE = "/metadata/annotations/note"


async def noted(kube: Wire, name: str, text: str = "old", **meta: Any) -> str:
    """A custom resource with an annotation; its path."""
    answer = await kube.post(TEMPLATES, template(name, annotations={"note": text}, **meta))
    assert answer.status == 201
    return f"{TEMPLATES}/{name}"


async def json_patch(kube: Wire, path: str, *operations: Any) -> Answer:
    """Send a JSON patch."""
    return await kube.patch(path, list(operations), JSON_PATCH)


def test_of(path: str, value: Any) -> Any:
    """An operation that tests."""
    return {"op": "test", "path": path, "value": value}


test_of.__test__ = False  # type: ignore[attr-defined]  # it is an operation


async def test_a_test_that_holds(kube: Wire, name: str) -> None:
    """The operations after it are done."""
    path = await noted(kube, name)
    answer = await json_patch(kube, path, test_of(NOTE, "old"), {"op": "replace", "path": NOTE, "value": "new"})

    assert (answer.status, answer.body["metadata"]["annotations"]["note"]) == (200, "new")


async def test_a_test_that_fails(kube: Wire, name: str) -> None:
    """422 Invalid with a text that says nothing of the test, and nothing is written."""
    path = await noted(kube, name)
    before = (await kube.get(path)).body["metadata"]["resourceVersion"]
    refused = await json_patch(kube, path, {"op": "add", "path": NOTE, "value": "new"}, test_of(NOTE, "other"))

    assert refused.error == (422, "Invalid")
    assert refused.body["message"] == "the server rejected our request due to an error in our request"
    assert (await kube.get(path)).body["metadata"]["resourceVersion"] == before


async def test_a_test_for_null(kube: Wire, name: str) -> None:
    """It holds where the key is absent, fails where there is something, and fails below something that is absent."""
    path = await noted(kube, name)
    absent = await json_patch(kube, path, test_of("/metadata/annotations/other", None))
    present = await json_patch(kube, path, test_of(NOTE, None))
    no_parent = await json_patch(kube, path, test_of("/metadata/nothing/other", None))

    assert absent.status == 200
    assert present.error == (422, "Invalid")
    assert no_parent.error == (422, "Invalid")


async def test_strings_are_compared_by_their_bytes(kube: Wire, name: str) -> None:
    """A string in a test must be written as the server itself writes it: ✅ as it is, <, > and & escaped."""
    path = await noted(kube, name, "✅ <a> & b")
    server = '"✅ \\u003ca\\u003e \\u0026 b"'
    ascii_only = '"\\u2705 \\u003ca\\u003e \\u0026 b"'
    as_read = '"✅ <a> & b"'

    async def tried(text: str) -> int:
        body = f'[{{"op":"test","path":"{NOTE}","value":{text}}}]'.encode()
        return (await kube.patch(path, body, JSON_PATCH)).status

    assert json.loads(server) == json.loads(ascii_only) == json.loads(as_read)
    assert [await tried(text) for text in (server, ascii_only, as_read)] == [200, 422, 422]


async def test_strings_inside_are_compared_by_their_bytes(kube: Wire, name: str) -> None:
    """In a test of a whole object the order of keys and the white space do not matter, the strings' bytes do."""
    path = await noted(kube, name, "✅", labels={"b": "2", "a": "1"})

    async def tried(where: str, text: str) -> int:
        body = f'[{{"op":"test","path":"{where}","value":{text}}}]'.encode()
        return (await kube.patch(path, body, JSON_PATCH)).status

    assert await tried("/metadata/labels", '{ "a" : "1", "b": "2" }') == 200
    assert await tried("/metadata/annotations", '{"note": "✅"}') == 200
    assert await tried("/metadata/annotations", '{"note": "\\u2705"}') == 422
    assert await tried("/metadata/annotations", '{"note": "✅", "more": "1"}') == 422


async def test_numbers_are_compared_by_their_bytes(kube: Wire, name: str) -> None:
    """1 is not 1.0, and is not "1"."""
    path = await noted(kube, name)

    async def tried(text: str) -> int:
        body = f'[{{"op":"test","path":"/metadata/generation","value":{text}}}]'.encode()
        return (await kube.patch(path, body, JSON_PATCH)).status

    assert [await tried(text) for text in ("1", "1.0", '"1"')] == [200, 422, 422]


async def test_finalizers_by_place(kube: Wire, name: str) -> None:
    """A patch that tests the place of a finalizer takes out that one alone; where the place has moved it is refused."""
    path = await noted(kube, name, finalizers=["case/one", "case/two"])
    first = {"op": "remove", "path": "/metadata/finalizers/0"}
    taken = await json_patch(kube, path, test_of("/metadata/finalizers/0", "case/one"), first)
    again = await json_patch(kube, path, test_of("/metadata/finalizers/0", "case/one"), first)

    assert taken.body["metadata"]["finalizers"] == ["case/two"]
    assert again.error == (422, "Invalid")
    await kube.patch(path, {"metadata": {"finalizers": None}})


async def test_the_end_of_a_list(kube: Wire, name: str) -> None:
    """`add` at `-` appends; without the list itself it is 422."""
    path = await noted(kube, name, finalizers=["case/one"])
    appended = await json_patch(kube, path, {"op": "add", "path": "/metadata/finalizers/-", "value": "case/two"})
    await kube.patch(path, {"metadata": {"finalizers": None}})
    nowhere = await json_patch(kube, path, {"op": "add", "path": "/metadata/finalizers/-", "value": "case/two"})

    assert appended.body["metadata"]["finalizers"] == ["case/one", "case/two"]
    assert nowhere.error == (422, "Invalid")


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/metadata/annotations/absent"},
        {"op": "add", "path": "/spec/absent/deep", "value": "x"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
        {"op": "nonsense", "path": "/metadata/annotations/note", "value": "x"},
    ],
    ids=["remove", "add below nothing", "remove of an empty list", "no such operation"],
)
async def test_operations_that_cannot_be_done(kube: Wire, name: str, operation: Any) -> None:
    """Removing what is absent, adding below what is absent, an operation that is none: 422 Invalid."""
    path = await noted(kube, name)

    assert (await json_patch(kube, path, operation)).error == (422, "Invalid")


async def test_a_replacement_of_what_is_absent(kube: Wire, name: str) -> None:
    """In an object `replace` is the same as `add`, whatever RFC 6902 says."""
    path = await noted(kube, name)
    answer = await json_patch(kube, path, {"op": "replace", "path": "/metadata/annotations/absent", "value": "x"})

    assert (answer.status, answer.body["metadata"]["annotations"]["absent"]) == (200, "x")


async def test_a_json_patch_that_is_no_list(kube: Wire, name: str) -> None:
    """400 BadRequest."""
    path = await noted(kube, name)

    assert (await kube.patch(path, {"op": "test"}, JSON_PATCH)).error == (400, "BadRequest")


async def test_merge_patches(kube: Wire, name: str) -> None:
    """null removes, objects are merged, lists are replaced whole."""
    body = template(name, annotations={"a": "1", "b": "2"}, finalizers=["case/one", "case/two"])
    await kube.post(TEMPLATES, body)
    patch = {"metadata": {"annotations": {"a": None, "c": "3"}, "finalizers": ["case/two"]}}
    answer = await kube.patch(f"{TEMPLATES}/{name}", patch)

    assert answer.body["metadata"]["annotations"] == {"b": "2", "c": "3"}
    assert answer.body["metadata"]["finalizers"] == ["case/two"]
    await kube.patch(f"{TEMPLATES}/{name}", {"metadata": {"finalizers": None}})


async def test_a_merge_patch_with_a_version(kube: Wire, name: str) -> None:
    """It is conditional: 409 Conflict where the object has changed since."""
    path = await noted(kube, name)
    version = (await kube.get(path)).body["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version, "annotations": {"note": "new"}}}
    first, second = await kube.patch(path, patch), await kube.patch(path, patch | {"spec": {"entrypoint": "other"}})

    assert first.status == 200
    assert second.error == (409, "Conflict")


async def test_a_patch_that_changes_nothing(kube: Wire, name: str) -> None:
    """The resourceVersion stays, so no watch hears of it."""
    path = await noted(kube, name)
    before = (await kube.get(path)).body["metadata"]["resourceVersion"]
    merged = await kube.patch(path, {"metadata": {"annotations": {"note": "old"}}})
    patched = await json_patch(kube, path, {"op": "replace", "path": NOTE, "value": "old"})

    assert merged.body["metadata"]["resourceVersion"] == before
    assert patched.body["metadata"]["resourceVersion"] == before


async def test_uid_and_name_cannot_be_patched(kube: Wire, name: str) -> None:
    """Another uid is 422 (immutable), another name 400."""
    path = await noted(kube, name)
    uid = await kube.patch(path, {"metadata": {"uid": "another"}})
    other = await kube.patch(path, {"metadata": {"name": "another"}})

    assert uid.error == (422, "Invalid")
    assert uid.body["details"]["causes"][0]["field"] == "metadata.uid"
    assert uid.body["details"]["causes"][0]["message"] == 'Invalid value: "another": field is immutable'
    assert other.error == (400, "BadRequest")
    assert other.body["message"] == f"the name of the object (another) does not match the name on the URL ({name})"


async def test_the_status_of_a_pod_by_its_uid(kube: Wire, name: str) -> None:
    """A patch of the status of a pod with another uid is refused with 422: whoever writes it means another pod."""
    body = {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    made = (await kube.post(PODS, body)).body
    right = {"metadata": {"uid": made["metadata"]["uid"]}, "status": {"phase": "Running"}}
    wrong = {"metadata": {"uid": "another"}, "status": {"phase": "Failed"}}
    path = f"{PODS}/{name}/status"
    refused, written = await kube.patch(path, wrong), await kube.patch(path, right)
    await kube.delete(f"{PODS}/{name}")

    assert refused.error == (422, "Invalid")
    assert "metadata.uid" in refused.body["message"]
    assert (written.status, written.body["status"]["phase"]) == (200, "Running")


async def test_custom_resources_know_no_strategic_merge(kube: Wire, name: str) -> None:
    """415 UnsupportedMediaType; a ConfigMap takes it."""
    path = await noted(kube, name)
    await kube.post(MAPS, config_map(name))
    refused = await kube.patch(path, {"metadata": {"annotations": {"a": "b"}}}, STRATEGIC)
    plain = await kube.patch(f"{MAPS}/{name}", {"data": {"a": "b"}}, STRATEGIC)

    assert refused.error == (415, "UnsupportedMediaType")
    assert (
        "accepted media types include: application/json-patch+json, application/merge-patch+json"
        in (refused.body["message"])
    )
    assert (plain.status, plain.body["data"]) == (200, {"a": "b"})


async def test_patches_of_what_is_not_there(kube: Wire) -> None:
    """404 NotFound, for each kind of patch."""
    merged = await kube.patch(f"{TEMPLATES}/nothing", {"spec": {}})
    patched = await json_patch(kube, f"{TEMPLATES}/nothing", test_of("/metadata/name", "nothing"))

    assert merged.error == (404, "NotFound")
    assert patched.error == (404, "NotFound")


async def test_a_patch_that_is_no_json(kube: Wire, name: str) -> None:
    """400 BadRequest."""
    path = await noted(kube, name)

    assert (await kube.patch(path, b"{nonsense")).error == (400, "BadRequest")


async def test_the_last_finalizer_goes_with_a_json_patch(kube: Wire, name: str) -> None:
    """The patch that takes the last finalizer off a deleted object is answered with 200 and the object; then it is gone."""
    path = await noted(kube, name, finalizers=["case/one"])
    await kube.delete(path)
    remove = {"op": "remove", "path": "/metadata/finalizers/0"}
    answer = await json_patch(kube, path, test_of("/metadata/finalizers/0", "case/one"), remove)

    assert answer.status == 200
    assert answer.body["metadata"]["name"] == name
    assert (await kube.get(path)).status == 404
