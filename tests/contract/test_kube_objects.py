"""Kubernetes: creating, reading, listing, replacing and deleting objects, and what is refused."""

from __future__ import annotations

import re
from typing import Any

from tests.contract.runs import TEMPLATES
from tests.contract.wire import Json, Wire
from tests.real.rig.kube_client import ARGO

MAPS = "/api/v1/namespaces/foxhunt/configmaps"
PODS = "/api/v1/namespaces/foxhunt/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/foxhunt/leases"
GENERATED = r"[bcdfghjklmnpqrstvwxz2456789]{5}"


def config_map(name: str, **fields: Any) -> Json:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} | fields


def template(name: str, **meta: Any) -> Json:
    """A custom resource that no controller touches."""
    body = {"apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowTemplate", "spec": {"entrypoint": "main"}}
    return body | {"metadata": {"name": name, **meta}}


def lease(name: str, **meta: Any) -> Json:
    """A Lease."""
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-03-02T10:00:00.000001Z"}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec}
    return body | {"metadata": {"name": name, **meta}}


async def test_created_objects_are_filled_in(kube: Wire, name: str) -> None:
    """A new object gets uid, time and resourceVersion; custom resources count their generation, ConfigMaps do not."""
    plain = await kube.post(MAPS, config_map(name, data={"a": "1"}))
    custom = await kube.post(TEMPLATES, template(name))

    assert (plain.status, custom.status) == (201, 201)
    meta = plain.body["metadata"]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", meta["uid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", meta["creationTimestamp"])
    assert meta["resourceVersion"].isdecimal()
    assert (meta["namespace"], plain.body["kind"], plain.body["data"]) == ("foxhunt", "ConfigMap", {"a": "1"})
    assert "generation" not in meta
    assert custom.body["metadata"]["generation"] == 1


async def test_a_name_is_taken_once(kube: Wire, name: str) -> None:
    """A second object of a name is refused with 409 AlreadyExists, and the error names kind and object."""
    await kube.post(MAPS, config_map(name))
    again = await kube.post(MAPS, config_map(name))

    assert again.status == 409
    assert again.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'configmaps "{name}" already exists',
        "reason": "AlreadyExists",
        "details": {"name": name, "kind": "configmaps"},
        "code": 409,
    }


async def test_errors_of_custom_resources_name_their_group(kube: Wire, name: str) -> None:
    """The text says `workflowtemplates.argoproj.io`, and the details have the group."""
    await kube.post(TEMPLATES, template(name))
    again = await kube.post(TEMPLATES, template(name))

    assert again.body["message"] == f'workflowtemplates.argoproj.io "{name}" already exists'
    assert again.body["details"] == {"name": name, "group": "argoproj.io", "kind": "workflowtemplates"}


async def test_generated_names(kube: Wire, name: str) -> None:
    """generateName gets five characters of a safe alphabet behind it."""
    body = config_map("") | {"metadata": {"generateName": f"{name}-"}}
    created = await kube.post(MAPS, body)

    assert re.fullmatch(f"{name}-{GENERATED}", created.body["metadata"]["name"])
    assert created.body["metadata"]["generateName"] == f"{name}-"


async def test_long_generated_names_are_cut(kube: Wire, name: str) -> None:
    """A generateName of more than 58 characters is cut, so that the name has 63."""
    prefix = f"{name}-".ljust(80, "x")
    created = await kube.post(MAPS, config_map("") | {"metadata": {"generateName": prefix}})

    assert re.fullmatch(prefix[:58] + GENERATED, created.body["metadata"]["name"])


async def test_a_name_is_needed(kube: Wire) -> None:
    """Neither name nor generateName: 422."""
    refused = await kube.post(MAPS, {"metadata": {}})

    assert refused.error == (422, "Invalid")
    assert refused.body["details"]["causes"][0]["field"] == "metadata.name"
    assert refused.body["details"]["causes"][0]["reason"] == "FieldValueRequired"


async def test_names_are_lower_case_domains(kube: Wire, name: str) -> None:
    """Upper case, underscores and more than 253 characters are refused with 422 and the field; 253 are fine."""
    for wrong in ("Upper", "under_score", "x" * 254):
        refused = await kube.post(MAPS, config_map(wrong))
        assert refused.error == (422, "Invalid")
        cause = refused.body["details"]["causes"][0]
        assert (cause["field"], cause["reason"]) == ("metadata.name", "FieldValueInvalid")
        assert refused.body["message"].startswith(f'ConfigMap "{wrong}" is invalid: metadata.name: Invalid value: ')

    assert (await kube.post(MAPS, config_map(name.ljust(253, "x")))).status == 201


async def test_label_values_have_63_characters(kube: Wire, name: str) -> None:
    """A longer label value, or one with a slash, is refused with 422; annotations take anything."""
    for wrong in ("x" * 64, "a/b", "-a"):
        refused = await kube.post(MAPS, {"metadata": {"name": name, "labels": {"a": wrong}}})
        assert refused.error == (422, "Invalid")
        assert refused.body["details"]["causes"][0]["field"] == "metadata.labels"

    body = {"metadata": {"name": name, "labels": {"a": "x" * 63}, "annotations": {"a": "/ ✅\n"}}}
    assert (await kube.post(MAPS, body)).status == 201


async def test_annotations_have_a_quarter_of_a_mebibyte(kube: Wire, name: str) -> None:
    """Keys and values of all annotations together: 262144 bytes are fine, one more is 422."""
    body = {"metadata": {"name": name, "annotations": {"a": "x" * (256 * 1024)}}}
    refused = await kube.post(MAPS, body)
    body["metadata"]["annotations"] = {"a": "x" * (256 * 1024 - 1)}
    fits = await kube.post(MAPS, body)

    assert refused.error == (422, "Invalid")
    cause = refused.body["details"]["causes"][0]
    assert (cause["field"], cause["reason"]) == ("metadata.annotations", "FieldValueTooLong")
    assert fits.status == 201


async def test_the_namespace_must_exist(kube: Wire, name: str) -> None:
    """Creating in a namespace that is not there is 404 for the namespace."""
    refused = await kube.post("/api/v1/namespaces/nowhere/configmaps", config_map(name))

    assert refused.error == (404, "NotFound")
    assert refused.body["message"] == 'namespaces "nowhere" not found'
    assert refused.body["details"] == {"name": "nowhere", "kind": "namespaces"}


async def test_the_namespace_of_body_and_path_agree(kube: Wire, name: str) -> None:
    """Another namespace in the body is 400."""
    refused = await kube.post(MAPS, {"metadata": {"name": name, "namespace": "argo"}})

    assert refused.error == (400, "BadRequest")
    assert "does not match the namespace" in refused.body["message"]


async def test_what_is_not_there(kube: Wire) -> None:
    """An object that is not there and a resource that is not there: both 404 NotFound, told apart by the text."""
    absent = await kube.get(f"{MAPS}/nothing")
    unknown = await kube.get("/api/v1/namespaces/foxhunt/nonsense")

    assert absent.status == 404
    assert absent.body["message"] == 'configmaps "nothing" not found'
    assert absent.body["details"] == {"name": "nothing", "kind": "configmaps"}
    assert unknown.error == (404, "NotFound")
    assert unknown.body["message"] == "the server could not find the requested resource"


async def test_a_body_that_is_no_json(kube: Wire) -> None:
    """400 BadRequest."""
    refused = await kube("POST", MAPS, b"{nonsense")

    assert refused.error == (400, "BadRequest")


async def test_the_kind_of_the_body_must_be_that_of_the_path(kube: Wire, name: str) -> None:
    """A Secret cannot be posted among the ConfigMaps: 400."""
    refused = await kube.post(MAPS, config_map(name, kind="Secret"))

    assert refused.error == (400, "BadRequest")


async def test_items_of_custom_lists_have_their_kind(kube: Wire, name: str) -> None:
    """Items of a list of custom resources carry kind and apiVersion, those of built-in kinds do not."""
    await kube.post(MAPS, config_map(name))
    await kube.post(TEMPLATES, template(name))
    plain = (await kube.get(MAPS)).body
    custom = (await kube.get(TEMPLATES)).body

    assert (plain["kind"], custom["kind"]) == ("ConfigMapList", "WorkflowTemplateList")
    assert custom["apiVersion"] == "argoproj.io/v1alpha1"
    assert all("kind" not in item and "apiVersion" not in item for item in plain["items"])
    assert all(item["kind"] == "WorkflowTemplate" for item in custom["items"])


async def test_pages_are_of_one_moment(kube: Wire, name: str) -> None:
    """Pages come in order of the names and show what was there at the first, with the number of those that follow."""
    for letter in "cab":
        await kube.post(TEMPLATES, template(f"{name}-{letter}", labels={"page": name}))
    first = (await kube.get(TEMPLATES, limit="2", labelSelector=f"page={name}")).body
    await kube.delete(f"{TEMPLATES}/{name}-c")
    await kube.post(TEMPLATES, template(f"{name}-d", labels={"page": name}))
    token = first["metadata"]["continue"]
    second = (await kube.get(TEMPLATES, **{"limit": "2", "labelSelector": f"page={name}", "continue": token})).body

    assert [item["metadata"]["name"] for item in first["items"]] == [f"{name}-a", f"{name}-b"]
    assert [item["metadata"]["name"] for item in second["items"]] == [f"{name}-c"]
    assert not second["metadata"].get("continue")
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]
    assert "remainingItemCount" not in first["metadata"]


async def test_the_number_of_those_that_follow(kube: Wire, name: str) -> None:
    """Without a selector the first page says how many items are left."""
    for letter in "ab":
        await kube.post(TEMPLATES, template(f"{name}-{letter}"))
    everything = (await kube.get(TEMPLATES)).body["items"]
    first = (await kube.get(TEMPLATES, limit="1")).body

    assert len(first["items"]) == 1
    assert first["metadata"]["remainingItemCount"] == len(everything) - 1


async def test_a_token_of_a_page_that_is_none(kube: Wire) -> None:
    """400 BadRequest."""
    refused = await kube.get(TEMPLATES, **{"limit": "1", "continue": "nonsense"})

    assert refused.error == (400, "BadRequest")


async def test_label_selectors(kube: Wire, name: str) -> None:
    """Equality, inequality (also where the label is missing), sets, presence and absence; commas mean and."""
    for suffix, labels in (("a", {"x": "1"}), ("b", {"x": "2"}), ("c", {})):
        await kube.post(
            MAPS, config_map("") | {"metadata": {"name": f"{name}-{suffix}", "labels": labels | {"n": name}}}
        )

    async def found(selector: str) -> str:
        listed = (await kube.get(MAPS, labelSelector=f"n={name},{selector}")).body["items"]
        return "".join(item["metadata"]["name"][-1] for item in listed)

    assert await found("x=1") == "a"
    assert await found("x==1") == "a"
    assert await found("x!=1") == "bc"
    assert await found("x in (1,2)") == "ab"
    assert await found("x notin (1)") == "bc"
    assert await found("x") == "ab"
    assert await found("!x") == "c"
    assert await found("x,x!=2") == "a"


async def test_selectors_that_cannot_be_read(kube: Wire) -> None:
    """A label selector that is no such thing, and a field that custom resources do not have: 400 BadRequest."""
    label = await kube.get(MAPS, labelSelector="a=b=c,((")
    field = await kube.get(TEMPLATES, fieldSelector="spec.entrypoint=main")

    assert label.error == (400, "BadRequest")
    assert field.error == (400, "BadRequest")
    assert "field label not supported: spec.entrypoint" in field.body["message"]


async def test_field_selectors_by_name(kube: Wire, name: str) -> None:
    """Every kind can be selected by metadata.name."""
    await kube.post(TEMPLATES, template(name))
    listed = (await kube.get(TEMPLATES, fieldSelector=f"metadata.name={name}")).body["items"]

    assert [item["metadata"]["name"] for item in listed] == [name]


async def test_a_replacement_of_what_has_changed(kube: Wire, name: str) -> None:
    """PUT with a resourceVersion that is not the latest: 409 Conflict, and nothing is written."""
    first = (await kube.post(TEMPLATES, template(name))).body
    await kube.patch(f"{TEMPLATES}/{name}", {"spec": {"entrypoint": "other"}})
    refused = await kube.put(f"{TEMPLATES}/{name}", first)

    assert refused.error == (409, "Conflict")
    assert refused.body["message"] == (
        f'Operation cannot be fulfilled on workflowtemplates.argoproj.io "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert (await kube.get(f"{TEMPLATES}/{name}")).body["spec"]["entrypoint"] == "other"


async def test_replacements_without_a_version(kube: Wire, name: str) -> None:
    """A custom resource or a Lease cannot be replaced blindly (422); a ConfigMap can."""
    await kube.post(TEMPLATES, template(name))
    await kube.post(LEASES, lease(name))
    await kube.post(MAPS, config_map(name))
    custom = await kube.put(f"{TEMPLATES}/{name}", template(name))
    held = await kube.put(f"{LEASES}/{name}", lease(name))
    plain = await kube.put(f"{MAPS}/{name}", config_map(name, data={"a": "2"}))

    for refused in (custom, held):
        assert refused.error == (422, "Invalid")
        assert refused.body["details"]["causes"][0]["field"] == "metadata.resourceVersion"
    assert (plain.status, plain.body["data"]) == (200, {"a": "2"})


async def test_the_name_of_a_replacement(kube: Wire, name: str) -> None:
    """A name in the body that is not that of the path: 400 BadRequest."""
    await kube.post(MAPS, config_map(name))
    refused = await kube.put(f"{MAPS}/{name}", config_map("other"))

    assert refused.error == (400, "BadRequest")


async def test_a_version_on_a_new_object(kube: Wire, name: str) -> None:
    """What is to be created must not have a resourceVersion."""
    refused = await kube.post(MAPS, {"metadata": {"name": name, "resourceVersion": "5"}})

    assert refused.status in {400, 500}
    assert "resourceVersion should not be set on objects to be created" in refused.body["message"]


async def test_leases_are_taken_once(kube: Wire, name: str) -> None:
    """Of two who replace the same version of a Lease the second gets 409; times keep their microseconds."""
    made = (await kube.post(LEASES, lease(name))).body
    version = made["metadata"]["resourceVersion"]
    mine = await kube.put(f"{LEASES}/{name}", lease(name, resourceVersion=version) | {"spec": {"holderIdentity": "b"}})
    theirs = await kube.put(f"{LEASES}/{name}", lease(name, resourceVersion=version))

    assert made["spec"]["renewTime"] == "2026-03-02T10:00:00.000001Z"
    assert mine.status == 200
    assert theirs.error == (409, "Conflict")
    assert (await kube.get(f"{LEASES}/{name}")).body["spec"] == {"holderIdentity": "b"}


async def test_deleted_objects(kube: Wire, name: str) -> None:
    """Without finalizers an object is gone at once, and the answer is a Status with its uid."""
    made = (await kube.post(MAPS, config_map(name))).body
    answer = await kube.delete(f"{MAPS}/{name}")
    again = await kube.delete(f"{MAPS}/{name}")

    assert (answer.status, answer.body["status"]) == (200, "Success")
    assert answer.body["details"] == {"name": name, "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert again.error == (404, "NotFound")


async def test_finalizers_hold_what_is_deleted(kube: Wire, name: str) -> None:
    """A finalizer keeps the object, marked; deleting it again changes nothing; it goes with its last finalizer."""
    await kube.post(TEMPLATES, template(name, finalizers=["case/one"]))
    answer = await kube.delete(f"{TEMPLATES}/{name}")
    marked = (await kube.get(f"{TEMPLATES}/{name}")).body["metadata"]
    again = await kube.delete(f"{TEMPLATES}/{name}")
    released = await kube.patch(f"{TEMPLATES}/{name}", {"metadata": {"finalizers": None}})

    assert answer.status == 200
    assert answer.body["metadata"]["deletionTimestamp"] == marked["deletionTimestamp"]
    assert marked["deletionGracePeriodSeconds"] == 0
    assert (again.status, again.body["metadata"]["resourceVersion"]) == (200, marked["resourceVersion"])
    assert released.status == 200
    assert (await kube.get(f"{TEMPLATES}/{name}")).status == 404


async def test_no_finalizers_are_added_to_what_is_deleted(kube: Wire, name: str) -> None:
    """On a deleted object a new finalizer is 422; other changes are taken."""
    await kube.post(TEMPLATES, template(name, finalizers=["case/one"]))
    await kube.delete(f"{TEMPLATES}/{name}")
    refused = await kube.patch(f"{TEMPLATES}/{name}", {"metadata": {"finalizers": ["case/one", "case/two"]}})
    noted = await kube.patch(f"{TEMPLATES}/{name}", {"metadata": {"annotations": {"a": "b"}}})
    await kube.patch(f"{TEMPLATES}/{name}", {"metadata": {"finalizers": None}})

    assert refused.error == (422, "Invalid")
    cause = refused.body["details"]["causes"][0]
    assert (cause["field"], cause["reason"]) == ("metadata.finalizers", "FieldValueForbidden")
    assert "no new finalizers can be added if the object is being deleted" in cause["message"]
    assert noted.status == 200


async def test_deletion_under_a_condition(kube: Wire, name: str) -> None:
    """A precondition with another uid: 409 Conflict, and the object stays."""
    await kube.post(MAPS, config_map(name))
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "another"}}
    refused = await kube.delete(f"{MAPS}/{name}", options)

    assert refused.error == (409, "Conflict")
    assert "Precondition failed" in refused.body["message"] or "precondition" in refused.body["message"]
    assert (await kube.get(f"{MAPS}/{name}")).status == 200


async def test_a_version_that_is_not_reached_yet(kube: Wire) -> None:
    """A list that is not to be older than a version of the future: 504 Timeout, try again."""
    refused = await kube.get(TEMPLATES, resourceVersion="999999999")

    assert refused.error == (504, "Timeout")
    assert refused.body["message"].startswith("Timeout: Too large resource version: 999999999, current: ")
    assert refused.body["details"]["causes"] == [
        {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    ]
    assert refused.headers["Retry-After"] == "1"


async def test_a_version_that_is_none(kube: Wire) -> None:
    """A list is 400 BadRequest; a watch does not begin: 500, without a reason."""
    listed = await kube.get(TEMPLATES, resourceVersion="nonsense")
    watched = await kube.get(TEMPLATES, watch="1", resourceVersion="nonsense")

    text = 'resourceVersion: Invalid value: "nonsense": strconv.ParseUint: parsing "nonsense": invalid syntax'
    assert listed.error == (400, "BadRequest")
    assert listed.body["message"] == f"invalid resource version: {text}"
    assert (watched.status, watched.body["message"]) == (500, text)


async def test_a_dry_run_stores_nothing(kube: Wire, name: str) -> None:
    """dryRun=All answers as usual, and the object is not there afterwards."""
    answer = await kube.post(MAPS, config_map(name), dryRun="All")

    assert (answer.status, answer.body["metadata"]["name"]) == (201, name)
    assert (await kube.get(f"{MAPS}/{name}")).status == 404


async def test_metadata_alone(kube: Wire, name: str) -> None:
    """A client that asks for PartialObjectMetadata gets no spec, in a list and of one object."""
    await kube.post(TEMPLATES, template(name))
    one_header = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
    list_header = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
    one = (await kube("GET", f"{TEMPLATES}/{name}", headers=one_header)).body
    listed = (await kube("GET", TEMPLATES, headers=list_header)).body

    assert (one["kind"], one["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert one["metadata"]["name"] == name
    assert "spec" not in one
    assert listed["kind"] == "PartialObjectMetadataList"
    assert all("spec" not in item for item in listed["items"])


async def test_the_generation_follows_the_content(kube: Wire, name: str) -> None:
    """Of a custom resource without status subresource: a change outside of metadata counts, one in it does not."""
    await kube.post(TEMPLATES, template(name))
    noted = (await kube.patch(f"{TEMPLATES}/{name}", {"metadata": {"annotations": {"a": "b"}}})).body
    changed = (await kube.patch(f"{TEMPLATES}/{name}", {"spec": {"entrypoint": "other"}})).body

    assert noted["metadata"]["generation"] == 1
    assert changed["metadata"]["generation"] == 2


async def test_who_nobody_knows(kube: Wire) -> None:
    """A token that was never given out: 401 Unauthorized."""
    refused = await kube.of("nonsense").get(MAPS)

    assert refused.status == 401
    assert refused.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


async def test_what_somebody_may_not(servers: Any, kube: Wire) -> None:
    """A right that is missing: 403 Forbidden, with user, verb, resource and namespace in the text."""
    bot = kube.of(servers.kube.token("gputest", "gputest-bot"))
    refused = await bot.get("/api/v1/namespaces/foxhunt/secrets")
    named = await bot.delete(f"{ARGO}/namespaces/foxhunt/workflows/one")

    user = "system:serviceaccount:gputest:gputest-bot"
    assert refused.error == (403, "Forbidden")
    assert refused.body["message"] == (
        f'secrets is forbidden: User "{user}" cannot list resource "secrets" in API group "" in the namespace "foxhunt"'
    )
    assert named.body["message"] == (
        f'workflows.argoproj.io "one" is forbidden: User "{user}" cannot delete resource "workflows" '
        'in API group "argoproj.io" in the namespace "foxhunt"'
    )
    assert named.body["details"] == {"name": "one", "group": "argoproj.io", "kind": "workflows"}


async def test_the_log_of_a_pod_without_a_node(kube: Wire, name: str) -> None:
    """There is no kubelet to ask: 204 without a word. A container that the pod does not have is 400."""
    body = {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    assert (await kube.post(PODS, body)).status == 201
    answer = await kube.get(f"{PODS}/{name}/log", container="main")
    unknown = await kube.get(f"{PODS}/{name}/log", container="other")
    await kube.delete(f"{PODS}/{name}")

    assert (answer.status, answer.body) == (204, "")
    assert unknown.error == (400, "BadRequest")
    assert unknown.body["message"] == f"container other is not valid for pod {name}"
