"""Reading requests to the Kubernetes API, and writing answers."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from typing import Any

import yaml
from aiohttp import web

from bot.demo import decoding, status
from bot.demo.kinds import ARGO, BY_PATH, PODS, Kind
from bot.demo.kube_options import flag
from bot.demo.selectors import Match, field_selector, label_selector

Json = dict[str, Any]
WARNINGS = web.RequestKey("WARNINGS", list[str])
"""What the client is to be told in headers."""


_SUBRESOURCES: dict[Kind, dict[str, tuple[str, ...]]] = {
    kind: {"status": ("get", "update", "patch")} for kind in BY_PATH.values() if kind.status_subresource
}
_SUBRESOURCES[PODS] |= {"log": ("get",), "binding": ("create",)}
"""By kind its subresources, and what can be done with each."""


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
        raise status.no_such_page()
    if (group, version) not in {key[:2] for key in BY_PATH}:
        raise status.no_such_page()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] != "status":
        namespace, rest = rest[1], rest[2:]
    kind = BY_PATH.get((group, version, rest[0]))
    if kind is None or len(rest) > 3 or (namespace and not kind.namespaced):
        raise _absent(group)
    target = Target(kind, namespace, *rest[1:])
    if target.name and kind.namespaced and not namespace:
        raise _absent(group)
    if target.subresource not in _SUBRESOURCES.get(kind, {}) and target.subresource:
        raise status.not_found(kind, target.name) if kind.custom else status.no_such_path()
    return target


def _absent(group: str) -> status.ApiError:
    # Of custom resources the server does not say in its own words that there is no such path.
    return status.no_such_page() if group == ARGO else status.no_such_path()


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
    match request.method:
        case "GET" if target.name:
            verb = "get"
        case "GET":
            verb = "watch" if flag(request.query, "watch") else "list"
        case "DELETE":
            verb = "delete" if target.name else "deletecollection"
        case method:
            verb = {"POST": "create", "PUT": "update", "PATCH": "patch"}.get(method, "")
    if not verb:
        raise status.method_not_allowed()
    return verb


def check_subresource(target: Target, verb: str) -> None:
    """Raises ApiError 405 for what cannot be done with a part of an object."""
    if target.subresource and verb not in _SUBRESOURCES[target.kind][target.subresource]:
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


async def body_of(request: web.Request, what: str, *, optional: bool = False) -> Json:
    """The object in a body; `what` is the kind that it should be of.

    Raises ApiError: 400, 415, and 413 for one that is too large.
    """
    raw = await request.read()
    if not raw and optional:
        return {}
    # Who does not say what it is sends JSON.
    content_type = request.content_type if request.headers.get("Content-Type") else decoding.JSON_BODY
    return decoding.read(raw, content_type, what)


def warn(request: web.Request, *texts: str) -> None:
    """Say something in the Warning header of the answer."""
    request[WARNINGS] = [*request.get(WARNINGS, []), *texts]


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
        raise status.bad_request(f"invalid continue token: continue key is not valid: {error}") from error


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


def refusal(error: status.ApiError) -> web.Response:
    """The answer to a request that is refused."""
    if error.is_page:
        return web.Response(status=error.code, text=str(error))
    seconds = (error.status.get("details") or {}).get("retryAfterSeconds")
    return answer(error.status, error.code, {"Retry-After": str(seconds)} if seconds else {})


def in_yaml(response: web.Response) -> web.Response:
    """The same answer in YAML."""
    if response.content_type != "application/json" or not isinstance(response.body, bytes):
        return response
    response.body = yaml.safe_dump(json.loads(response.body), allow_unicode=True).encode()
    response.content_type = "application/yaml"
    return response


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
