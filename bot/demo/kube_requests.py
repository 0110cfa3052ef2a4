"""Reading requests to the Kubernetes API, and writing answers."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from typing import Any

import yaml
from aiohttp import web

from bot.demo import status
from bot.demo.kinds import BY_PATH, PODS, Kind
from bot.demo.selectors import Match, field_selector, label_selector

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def find_target(path: str) -> Target:
    """Read a resource path. Raises ApiError 404."""
    parts = [part for part in path.split("/") if part]
    if parts[:1] == ["api"] and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise status.no_such_path()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] != "status":
        namespace, rest = rest[1], rest[2:]
    kind = BY_PATH.get((group, version, rest[0]))
    if kind is None or len(rest) > 3 or (namespace and not kind.namespaced):
        raise status.no_such_path()
    target = Target(kind, namespace, *rest[1:])
    if target.subresource not in _subresources(kind) or (target.name and kind.namespaced and not namespace):
        raise status.no_such_path()
    return target


def _subresources(kind: Kind) -> set[str]:
    extra = {"log", "binding"} if kind == PODS else set()
    return {""} | extra | ({"status"} if kind.status_subresource else set())


def identify(request: web.Request) -> tuple[str, str | None]:
    """The path, and the Authorization that counts.

    kubectl sends no token over plain HTTP, so that a server address may hold it: http://127.0.0.1:1234/as/TOKEN.
    """
    if request.path.startswith("/as/"):
        token, _, path = request.path.removeprefix("/as/").partition("/")
        return f"/{path}", f"Bearer {token}"
    return request.path, request.headers.get("Authorization")


def verb_of(request: web.Request, target: Target) -> str:
    """The verb that a rule must grant. Raises ApiError 405."""
    watching = request.query.get("watch", "") in ("1", "true", "True")
    match request.method:
        case "GET" | "HEAD":
            if target.name:
                return "get"
            return "watch" if watching else "list"
        case "POST":
            return "create"
        case "PUT":
            return "update"
        case "PATCH":
            return "patch"
        case "DELETE":
            return "delete" if target.name else "deletecollection"
    raise status.method_not_allowed()


def selected_name(request: web.Request) -> str:
    """The name to which a field selector limits a list or watch: rights by name hold for it as well.

    k8s.io/apiserver `pkg/endpoints/request/requestinfo.go`.
    """
    found = re.fullmatch(r"metadata\.name==?([^,=]+)", request.query.get("fieldSelector", ""))
    return found[1] if found else ""


def matcher_of(request: web.Request, target: Target) -> Match:
    """The selectors of a list or watch as one test. Raises ApiError 400."""
    labels = label_selector(request.query.get("labelSelector", ""))
    fields = field_selector(request.query.get("fieldSelector", ""), target.kind)
    namespace = target.namespace

    def match(obj: Json) -> bool:
        return (not namespace or obj["metadata"].get("namespace") == namespace) and labels(obj) and fields(obj)

    return match


async def body_of(request: web.Request, *, optional: bool = False) -> Json:
    """The object in a body, JSON or YAML. Raises ApiError 400."""
    raw = await request.read()
    if not raw and optional:
        return {}
    try:
        body = yaml.safe_load(raw) if request.content_type in ("application/yaml", "text/yaml") else json.loads(raw)
    except (ValueError, yaml.YAMLError) as error:
        raise status.bad_request(f"couldn't get version/kind; json parse error: {error}") from error
    if not isinstance(body, dict):
        raise status.bad_request("couldn't get version/kind; json parse error: json: cannot unmarshal")
    return body


def check_body(kind: Kind, body: Json) -> None:
    """Raises ApiError 400 unless the body is of the kind that the path names."""
    given = (body.get("apiVersion", kind.api_version), body.get("kind", kind.kind))
    if given != (kind.api_version, kind.kind):
        raise status.bad_request(
            f'{given[1]} in version "{given[0]}" cannot be handled as a {kind.kind}: '
            f"the API version or kind does not match the path ({kind.api_version}, {kind.kind})"
        )


def is_dry_run(request: web.Request) -> bool:
    """Whether nothing is to be stored. Raises ApiError 400 for an unknown dryRun."""
    asked = request.query.getall("dryRun", [])
    if asked and asked != ["All"]:
        raise status.bad_request(f'dryRun: Unsupported value: {asked}: supported values: "All"')
    return bool(asked)


def place_of(obj: Json) -> tuple[str, str]:
    """Where an object stands in a list."""
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def write_continue(revision: int, last: Json) -> str:
    """The token that asks for the page after an object."""
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": "/".join(place_of(last))})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_continue(token: str) -> tuple[int, tuple[str, str]]:
    """Revision and place of a continue token. Raises ApiError 400."""
    try:
        value = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, name = value["start"].split("/")
        return int(value["rv"]), (namespace, name)
    except (ValueError, KeyError, TypeError) as error:
        raise status.bad_request("continue key is not valid: " + str(error)) from error


def path_key_of(obj: Json) -> tuple[str, str, str]:
    """Group, version and plural of an object."""
    group, _, version = obj["apiVersion"].rpartition("/")
    plural = next(
        (key[2] for key, kind in BY_PATH.items() if kind.kind == obj["kind"] and key[:2] == (group, version)), ""
    )
    return group, version, plural


def answer(body: Json, code: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """An answer with a JSON body."""
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    return web.Response(status=code, body=text.encode(), content_type="application/json", headers=headers)


def fault_body(code: int, retry_after: int | None) -> web.Response:
    """What a broken server says, for `Faults`."""
    if code == 429:
        return answer(status.too_many_requests(retry_after or 1).status, code, {"Retry-After": str(retry_after or 1)})
    reasons = {500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout", 403: "Forbidden", 401: "Unauthorized"}
    texts = {500: "etcdserver: request timed out", 401: "Unauthorized"}
    body = status.failure(
        code, reasons.get(code, ""), texts.get(code, "the server is currently unable to handle the request")
    )
    return answer(body, code, {"Retry-After": str(retry_after)} if retry_after else None)
