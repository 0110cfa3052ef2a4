"""Kubernetes: bodies, media types, parameters and paths, right and wrong."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.contract.runs import TEMPLATES
from tests.contract.test_kube_objects import LEASES, MAPS, PODS, config_map, lease, template
from tests.contract.wire import MERGE, STRATEGIC, Json, Wire
from tests.real.rig.kube_client import ARGO

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def causes(answer: Any) -> list[tuple[str, str]]:
    """Field and reason of all that is said to be wrong."""
    return [(one["field"], one["reason"]) for one in answer.body["details"]["causes"]]


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "text/yaml", MERGE, "application/octet-stream"]
)
async def test_bodies_of_another_kind(kube: Wire, name: str, kind: str) -> None:
    """A body that is neither JSON nor YAML by its Content-Type: 415, as curl -d without a header finds out."""
    body = config_map(name)
    answers = [
        await kube("POST", MAPS, body, kind=kind),
        await kube("PUT", f"{MAPS}/{name}", body, kind=kind),
        await kube("DELETE", f"{MAPS}/{name}", {"kind": "DeleteOptions", "apiVersion": "v1"}, kind=kind),
    ]

    assert [answer.error for answer in answers] == [(415, "UnsupportedMediaType")] * 3
    assert (await kube.get(f"{MAPS}/{name}")).status == 404


async def test_bodies_of_no_kind(kube: Wire, name: str) -> None:
    """With an empty Content-Type a body is JSON."""
    assert (await kube("POST", MAPS, config_map(name), kind="")).status == 201


async def test_a_patch_of_another_kind(kube: Wire, name: str) -> None:
    """415 for a patch that is sent as plain JSON."""
    await kube.post(MAPS, config_map(name))
    refused = await kube.patch(f"{MAPS}/{name}", {"data": {"a": "b"}}, "application/json")

    assert refused.error == (415, "UnsupportedMediaType")


async def test_yaml_in_and_out(kube: Wire, name: str) -> None:
    """YAML is taken, and given to whoever asks for it."""
    body = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  a: '1'\n".encode()
    made = await kube("POST", MAPS, body, kind="application/yaml")
    read = await kube("GET", f"{MAPS}/{name}", headers={"Accept": "application/yaml"})

    assert (made.status, made.body["data"]) == (201, {"a": "1"})
    assert read.headers["Content-Type"] == "application/yaml"
    assert 'a: "1"' in read.body or "a: '1'" in read.body


@pytest.mark.parametrize("accept", ["text/html", "nonsense", "application/json;as=Table;v=v2;g=meta.k8s.io"])
async def test_answers_that_cannot_be_given(kube: Wire, accept: str) -> None:
    """406 NotAcceptable where the client takes nothing that there is, of objects and lists."""
    one = await kube("GET", f"{MAPS}/nothing", headers={"Accept": accept})
    listed = await kube("GET", MAPS, headers={"Accept": accept})

    assert one.error == (406, "NotAcceptable")
    assert listed.error == (406, "NotAcceptable")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"data": {"a": 5}}, "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"),
        ({"data": []}, "json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string"),
        (
            {"metadata": {"name": 5}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
        ),
        (
            {"metadata": {"name": "x", "annotations": {"a": {}}}},
            "json: cannot unmarshal object into Go struct field ObjectMeta.metadata.annotations of type string",
        ),
        (
            {"metadata": "x"},
            "json: cannot unmarshal string into Go struct field ConfigMap.metadata of type v1.ObjectMeta",
        ),
    ],
)
async def test_values_of_another_type(kube: Wire, name: str, fields: Json, why: str) -> None:
    """400 BadRequest, and the text says which field it is."""
    refused = await kube.post(MAPS, config_map(name) | fields)

    assert refused.error == (400, "BadRequest")
    assert refused.body["message"] == f'ConfigMap in version "v1" cannot be handled as a ConfigMap: {why}'


async def test_patches_to_values_of_another_type(kube: Wire, name: str) -> None:
    """422 Invalid of the field `patch`, for each kind of patch; nothing is written. A null is no text: it becomes ""."""
    await kube.post(MAPS, config_map(name, data={"a": "1"}))
    path = f"{MAPS}/{name}"
    add = [{"op": "add", "path": "/metadata/labels", "value": {"a": 5}}]
    answers = [
        await kube.patch(path, {"metadata": {"labels": {"a": 5}}}),
        await kube.patch(path, {"metadata": {"annotations": "x"}}),
        await kube.patch(path, {"data": 5}),
        await kube.patch(path, {"metadata": {"labels": {"a": 5}}}, STRATEGIC),
        await kube.patch(path, add, "application/json-patch+json"),
        await kube.patch(path, {"kind": "Pod"}),
    ]
    add[0]["value"] = {"a": None}
    empty = await kube.patch(path, add, "application/json-patch+json")

    assert [causes(answer) for answer in answers] == [[("patch", "FieldValueInvalid")]] * 6
    assert [answer.status for answer in answers] == [422] * 6
    assert (empty.status, empty.body["metadata"]["labels"], empty.body["data"]) == (200, {"a": ""}, {"a": "1"})


async def test_custom_resources_say_what_they_are(kube: Wire, name: str) -> None:
    """Without kind or apiVersion: 400. Of another kind: 422. Without a spec, or with one that is no object: 422."""
    whole = template(name)
    no_kind = await kube.post(TEMPLATES, {key: value for key, value in whole.items() if key != "kind"})
    no_version = await kube.post(TEMPLATES, {key: value for key, value in whole.items() if key != "apiVersion"})
    other = await kube.post(TEMPLATES, whole | {"kind": "Workflow"})
    no_spec = await kube.post(TEMPLATES, {key: value for key, value in whole.items() if key != "spec"})
    text = await kube.post(TEMPLATES, whole | {"spec": "x"})
    number = await kube.post(TEMPLATES, whole | {"metadata": {"name": name, "labels": {"a": 5}}})

    assert [one.error for one in (no_kind, no_version, number)] == [(400, "BadRequest")] * 3
    assert no_version.body["message"] == (
        "the API version in the data () does not match the expected API version (argoproj.io/v1alpha1)"
    )
    assert number.body["message"] == (
        'WorkflowTemplate in version "v1alpha1" cannot be handled as a WorkflowTemplate: '
        "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"
    )
    assert causes(other) == [("kind", "FieldValueInvalid")]
    assert causes(no_spec) == [("spec", "FieldValueRequired")]
    assert causes(text) == [("spec", "FieldValueTypeInvalid")]


async def test_fields_that_a_kind_does_not_have(kube: Wire, name: str) -> None:
    """They are left out, and a Warning says so; with fieldValidation=Strict they are 400, in a patch 422."""
    body = config_map(name, bogus=1) | {"metadata": {"name": name, "more": 1}}
    strict = await kube.post(MAPS, body, fieldValidation="Strict")
    made = await kube.post(MAPS, body)
    quiet = await kube.post(TEMPLATES, template(name) | {"bogus": 1}, fieldValidation="Ignore")
    patched = await kube.patch(f"{MAPS}/{name}", {"bogus": 1}, fieldValidation="Strict")
    wrong = await kube.post(MAPS, body, fieldValidation="Maybe")

    assert strict.error == (400, "BadRequest")
    assert 'strict decoding error: unknown field "metadata.more", unknown field "bogus"' in strict.body["message"]
    assert made.status == 201
    assert "bogus" not in made.body
    assert "more" not in made.body["metadata"]
    assert made.headers.getall("Warning") == [
        '299 - "unknown field \\"metadata.more\\""',
        '299 - "unknown field \\"bogus\\""',
    ]
    assert (quiet.status, "bogus" in quiet.body, "Warning" in quiet.headers) == (201, False, False)
    assert causes(patched) == [("patch", "FieldValueInvalid")]
    assert causes(wrong) == [("fieldValidation", "FieldValueNotSupported")]


@pytest.mark.parametrize(
    ("meta", "field"),
    [
        ({"labels": {"a b": "c"}}, "metadata.labels"),
        ({"labels": {"x/y/z": "c"}}, "metadata.labels"),
        ({"annotations": {"a b": "c"}}, "metadata.annotations"),
        ({"finalizers": ["a b/c"]}, "metadata.finalizers"),
        ({"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x"}]}, "metadata.ownerReferences.uid"),
    ],
)
async def test_metadata_that_is_refused(kube: Wire, name: str, meta: Json, field: str) -> None:
    """Keys, finalizers and owners that are none: 422 with the field, of built-in and of custom kinds."""
    plain = await kube.post(MAPS, config_map(name) | {"metadata": {"name": name} | meta})
    custom = await kube.post(TEMPLATES, template(name, **meta))

    assert field in [one for one, _reason in causes(plain)]
    assert field in [one for one, _reason in causes(custom)]


async def test_keys_of_a_config_map(kube: Wire, name: str) -> None:
    """They are like file names: a blank is 422."""
    refused = await kube.post(MAPS, config_map(name, data={"a b": "c"}))

    assert causes(refused) == [("data[a b]", "FieldValueInvalid")]


async def test_too_large_a_body(kube: Wire, name: str) -> None:
    """413 with a Status above 3 MiB."""
    refused = await kube.post(MAPS, config_map(name, data={"a": "x" * (3 * 1024 * 1024)}))

    assert refused.error == (413, "RequestEntityTooLarge")


async def test_dry_runs_that_are_none(kube: Wire, name: str) -> None:
    """dryRun takes All alone: 422, and nothing is done."""
    made = await kube.post(MAPS, config_map(name), dryRun="maybe")
    await kube.post(MAPS, config_map(name))
    gone = await kube.delete(f"{MAPS}/{name}", dryRun="maybe")

    assert causes(made) == [("dryRun", "FieldValueNotSupported")]
    assert causes(gone) == [("dryRun", "FieldValueNotSupported")]
    assert (await kube.get(f"{MAPS}/{name}")).status == 200


async def test_a_deletion_on_trial(kube: Wire, name: str) -> None:
    """dryRun=All deletes nothing, of one or of many, and is answered like a deletion."""
    await kube.post(MAPS, config_map(name) | {"metadata": {"name": name, "labels": {"dry": name}}})
    one = await kube.delete(f"{MAPS}/{name}", dryRun="All")
    many = await kube.delete(MAPS, labelSelector=f"dry={name}", dryRun="All")

    assert (one.status, one.body["status"]) == (200, "Success")
    assert (many.body["kind"], len(many.body["items"])) == ("ConfigMapList", 1)
    assert (await kube.get(f"{MAPS}/{name}")).status == 200


async def test_deleting_what_a_list_shows(kube: Wire, name: str) -> None:
    """The answer is the list of what was there; without a namespace it is 405."""
    for letter in "ab":
        meta = {"name": f"{name}-{letter}", "labels": {"shelf": name}}
        await kube.post(MAPS, config_map("") | {"metadata": meta})
    answer = await kube.delete(MAPS, labelSelector=f"shelf={name}")
    everywhere = await kube.delete("/api/v1/configmaps", labelSelector=f"shelf={name}")

    assert [one["metadata"]["name"] for one in answer.body["items"]] == [f"{name}-a", f"{name}-b"]
    assert (await kube.get(MAPS, labelSelector=f"shelf={name}")).body["items"] == []
    assert everywhere.error == (405, "MethodNotAllowed")


async def test_deletions_that_cannot_be_meant(kube: Wire, name: str) -> None:
    """A propagation that there is not: 422. A condition that does not hold: 409, which names the kind."""
    await kube.post(MAPS, config_map(name))
    policy = await kube.delete(f"{MAPS}/{name}", {"propagationPolicy": "Sideways"})
    other = await kube.delete(f"{MAPS}/{name}", {"preconditions": {"uid": "another"}})

    assert causes(policy) == [("propagationPolicy", "FieldValueNotSupported")]
    assert other.error == (409, "Conflict")
    assert other.body["message"].startswith(f'Operation cannot be fulfilled on ConfigMap "{name}": the UID in the')
    assert (await kube.get(f"{MAPS}/{name}")).status == 200


async def test_a_replacement_of_another_object(kube: Wire, name: str) -> None:
    """Without a name, or of another namespace: 400. Of another uid: 409."""
    made = (await kube.post(MAPS, config_map(name))).body
    path, meta = f"{MAPS}/{name}", {"name": name}
    no_name = await kube.put(path, made | {"metadata": {}})
    elsewhere = await kube.put(path, made | {"metadata": meta | {"namespace": "argo"}})
    other = await kube.put(path, made | {"metadata": meta | {"uid": "11111111-1111-1111-1111-111111111111"}})

    assert [one.error for one in (no_name, elsewhere)] == [(400, "BadRequest")] * 2
    assert other.error == (409, "Conflict")


async def test_the_mark_of_a_deletion_is_the_servers(kube: Wire, name: str) -> None:
    """A client cannot set deletionTimestamp: 422. A name under deletion is still taken: 409, which says so."""
    path = f"{TEMPLATES}/{name}"
    await kube.post(TEMPLATES, template(name, finalizers=["case/one"]))
    marked = await kube.patch(path, {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}})
    await kube.delete(path)
    again = await kube.post(TEMPLATES, template(name))
    await kube.patch(path, {"metadata": {"finalizers": None}})

    assert causes(marked)[0] == ("metadata.deletionTimestamp", "FieldValueInvalid")
    assert again.body["message"].startswith("object is being deleted: workflowtemplates.argoproj.io")


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"limit": "x"}, 400),
        ({"limit": ""}, 400),
        ({"timeoutSeconds": "x"}, 400),
        ({"limit": "-1"}, 200),
        ({"resourceVersionMatch": "Exact"}, 422),
        ({"resourceVersion": "0", "resourceVersionMatch": "Exact"}, 422),
        ({"resourceVersion": "1", "resourceVersionMatch": "Nearly"}, 422),
        ({"sendInitialEvents": "true"}, 422),
        ({"watch": "1", "timeoutSeconds": "x"}, 400),
        ({"watch": "1", "sendInitialEvents": "true"}, 422),
        ({"watch": "1", "resourceVersionMatch": "NotOlderThan"}, 422),
        ({"watch": "0"}, 200),
        ({"watch": "false"}, 200),
    ],
)
async def test_parameters_of_lists(kube: Wire, query: dict[str, str], code: int) -> None:
    """Numbers that are none: 400. What does not go together: 422."""
    assert (await kube.get(MAPS, **query)).status == code


async def test_the_watch_cache_has_no_pages(kube: Wire, name: str) -> None:
    """With resourceVersion=0 a limit means nothing."""
    for letter in "ab":
        await kube.post(TEMPLATES, template(f"{name}-{letter}", labels={"page": name}))
    listed = (await kube.get(TEMPLATES, limit="1", resourceVersion="0", labelSelector=f"page={name}")).body

    assert len(listed["items"]) == 2
    assert not listed["metadata"].get("continue")


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("((", "found '(', expected: !, identifier, or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        (
            "n>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must",
        ),
        ("a=-b", 'unable to parse requirement: values[0][a]: Invalid value: "-b": a valid label must'),
        ("-a", 'unable to parse requirement: <nil>: Invalid value: "-a": name part must consist of'),
    ],
)
async def test_what_is_said_of_label_selectors(kube: Wire, selector: str, why: str) -> None:
    """400 with the words of the server's reader."""
    refused = await kube.get(MAPS, labelSelector=selector)

    assert refused.error == (400, "BadRequest")
    assert refused.body["message"].startswith(why)


async def test_more_label_selectors(kube: Wire, name: str) -> None:
    """No blank is needed before a set, an empty value is one, and numbers can be compared."""
    for suffix, value in (("a", "1"), ("b", "20"), ("c", "")):
        await kube.post(
            MAPS, config_map("") | {"metadata": {"name": f"{name}-{suffix}", "labels": {"n": name, "x": value}}}
        )

    async def found(selector: str) -> str:
        listed = (await kube.get(MAPS, labelSelector=f"n={name},{selector}")).body["items"]
        return "".join(item["metadata"]["name"][-1] for item in listed)

    assert await found("x in(1,20)") == "ab"
    assert await found("x in ()") == "c"
    assert await found("x=") == "c"
    assert await found("x>3") == "b"
    assert await found("x<3") == "a"


async def test_fields_that_cannot_be_selected_by(kube: Wire) -> None:
    """400: the words differ between kinds that have fields of their own and those that have none."""
    plain = await kube.get(MAPS, fieldSelector="nope=x")
    pods = await kube.get(PODS, fieldSelector="nope=x")

    assert plain.body["message"] == ('"nope" is not a known field selector: only "metadata.name", "metadata.namespace"')
    assert pods.body["message"] == "field label not supported: nope"


async def test_times_and_numbers_of_leases(kube: Wire, name: str) -> None:
    """A time has its microseconds (400), a duration is above nothing (422)."""
    second = lease(name) | {"spec": {"holderIdentity": "a", "renewTime": "2026-03-02T10:00:00Z"}}
    none = lease(name) | {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 0}}
    text = lease(name) | {"spec": {"leaseDurationSeconds": "15"}}

    assert (await kube.post(LEASES, second)).error == (400, "BadRequest")
    assert (await kube.post(LEASES, text)).error == (400, "BadRequest")
    assert causes(await kube.post(LEASES, none)) == [("spec.leaseDurationSeconds", "FieldValueInvalid")]


async def test_parts_of_objects(kube: Wire, name: str) -> None:
    """What cannot be done with a part is 405, and the whole is left alone; custom resources have no status apart."""
    pod = {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    await kube.post(PODS, pod)
    answers = [await kube.delete(f"{PODS}/{name}/{part}") for part in ("log", "binding")]
    stays = await kube.get(f"{PODS}/{name}")
    await kube.delete(f"{PODS}/{name}")
    await kube.post(TEMPLATES, template(name))
    custom = await kube.patch(f"{TEMPLATES}/{name}/status", {"status": {}})

    assert [answer.error for answer in answers] == [(405, "MethodNotAllowed")] * 2
    assert stays.status == 200
    assert custom.error == (404, "NotFound")


async def test_what_of_a_pod_stays(kube: Wire, name: str) -> None:
    """Its containers and its place are as they were created: 422; an image may change."""
    body = {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    await kube.post(PODS, body)
    path = f"{PODS}/{name}"
    placed = await kube.patch(path, {"spec": {"nodeName": "x"}})
    image = await kube.patch(path, {"spec": {"containers": [{"name": "main", "image": "y"}]}}, STRATEGIC)
    empty = await kube.post(PODS, {"metadata": {"name": f"{name}-2"}, "spec": {"containers": []}})
    await kube.delete(path)

    assert placed.error == (422, "Invalid")
    assert (image.status, image.body["spec"]["containers"][0]["image"]) == (200, "y")
    assert causes(empty) == [("spec.containers", "FieldValueRequired")]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"tailLines": "x"}, 400),
        ({"tailLines": "-1"}, 422),
        ({"sinceSeconds": "0"}, 422),
        ({"sinceTime": "yesterday"}, 400),
        ({"limitBytes": "0"}, 422),
        ({"sinceSeconds": "5", "sinceTime": "2026-03-02T10:00:00Z"}, 422),
    ],
)
async def test_parameters_of_logs(kube: Wire, name: str, query: dict[str, str], code: int) -> None:
    """What is no number or time: 400. What is out of bounds: 422."""
    body = {"metadata": {"name": name}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    await kube.post(PODS, body)
    answer = await kube.get(f"{PODS}/{name}/log", **query)
    await kube.delete(f"{PODS}/{name}")

    assert answer.status == code


async def test_methods_that_there_are_not(kube: Wire) -> None:
    """405: HEAD, a replacement of a collection, a discovery document that is written to."""
    assert (await kube("HEAD", MAPS)).status == 405
    assert (await kube.put(MAPS, config_map("x"))).error == (405, "MethodNotAllowed")
    assert (await kube.post("/api/v1", {})).error == (405, "MethodNotAllowed")


async def test_paths_that_are_not_there(kube: Wire) -> None:
    """404: outside of the API's own groups it is a page and no Status."""
    group = await kube.get("/apis/nothing.example/v1/things")
    page = await kube.get("/nothing")
    resource = await kube.get(f"{ARGO}/nothings")

    for answer in (group, page, resource):
        assert (answer.status, answer.body) == (404, "404 page not found\n")
        assert answer.headers["Content-Type"].startswith("text/plain")


async def test_who_has_no_token(kube: Wire) -> None:
    """Anybody sees version and health; discovery takes a token. A header that is no bearer's is nobody's, too."""
    nobody = kube.of("")
    seen = [await nobody.get(path) for path in ("/version", "/readyz")]
    closed = await nobody.get("/api")
    basic = await nobody("GET", MAPS, headers={"Authorization": "Basic abc"})
    wrong = await kube.of("nonsense").get("/readyz")

    assert [answer.status for answer in seen] == [200, 200]
    assert closed.error == (403, "Forbidden")
    assert closed.body["message"] == 'forbidden: User "system:anonymous" cannot get path "/api"'
    assert basic.error == (403, "Forbidden")
    assert wrong.status == 401


async def test_asking_what_one_may(servers: Any, kube: Wire) -> None:
    """A SelfSubjectAccessReview, of resources and of paths; in protobuf as kubectl sends it; with neither it is 422."""
    bot = kube.of(servers.kube.token("gputest", "gputest-bot"))
    pods = {"spec": {"resourceAttributes": {"verb": "delete", "resource": "pods", "namespace": "foxhunt"}}}
    path = {"spec": {"nonResourceAttributes": {"verb": "get", "path": "/version"}}}
    answers = [await kube.post(REVIEWS, pods), await bot.post(REVIEWS, pods), await bot.post(REVIEWS, path)]
    # kubectl auth can-i delete pods --namespace foxhunt
    raw = base64.b64decode(
        "azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSPQoQCgASABoAIgAqADIAOABC"
        "ABIhCh8KB2ZveGh1bnQSBmRlbGV0ZRoAIgAqBHBvZHMyADoAGgYIABIAGgAaACIA"
    )
    headers = {"Accept": "application/json"}
    sent = await kube("POST", REVIEWS, raw, kind="application/vnd.kubernetes.protobuf", headers=headers)

    assert [answer.body["status"]["allowed"] for answer in answers] == [True, False, True]
    assert answers[0].body["kind"] == "SelfSubjectAccessReview"
    assert (sent.status, sent.body.get("status", {}).get("allowed")) == (201, True)
    assert (await kube.post(REVIEWS, {"spec": {}})).error == (422, "Invalid")


@pytest.mark.parametrize(
    ("path", "columns"),
    [
        (PODS, "Name Ready Status Restarts Age IP* Node* Nominated_Node* Readiness_Gates*"),
        (
            "/api/v1/nodes",
            "Name Status Roles Age Version Internal-IP* External-IP* OS-Image* Kernel-Version* Container-Runtime*",
        ),
        (
            "/api/v1/namespaces/foxhunt/events",
            "Last_Seen Type Reason Object Subobject* Source* Message First_Seen* Count* Name*",
        ),
        (f"{ARGO}/namespaces/foxhunt/workflows", "Name Status Age Message"),
        (f"{ARGO}/namespaces/foxhunt/cronworkflows", "Name Age"),
        (MAPS, "Name Data Age"),
        (LEASES, "Name Holder Age"),
        ("/api/v1/namespaces", "Name Status Age"),
    ],
)
async def test_columns_of_tables(kube: Wire, path: str, columns: str) -> None:
    """What kubectl prints of a kind; * where it takes -o wide."""
    table = (await kube("GET", path, headers={"Accept": TABLE})).body
    seen = [one["name"].replace(" ", "_") + ("*" if one["priority"] else "") for one in table["columnDefinitions"]]

    assert table["kind"] == "Table"
    assert seen == columns.split()
