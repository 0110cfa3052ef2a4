"""Discovery: what kubectl asks before it asks for anything else.

https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api (the plain, not the aggregated form;
clients fall back).
"""

from __future__ import annotations

from typing import Any

from bot.demo.kinds import ALL, NAMESPACES, PODS, Kind

Json = dict[str, Any]
VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
VERSION: Json = {
    "major": "1",
    "minor": "34",
    "gitVersion": "v1.34.4-embedded",
    "gitCommit": "0000000000000000000000000000000000000000",
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "embedded",
}
_INFO: Json = {"title": "Kubernetes", "version": "v1.34.4-embedded"}


def document(path: str) -> Json | str | None:
    """The discovery document at a path, the word of a health check, or None."""
    fixed: dict[str, Json | str] = {
        **dict.fromkeys(("/healthz", "/livez", "/readyz"), "ok"),
        "/version": VERSION,
        "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
        "/apis": {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [_group(name, version) for name, version in _groups()],
        },
        "/openapi/v3": {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash=0"} for path in _openapi()}},
    }
    path = path.rstrip("/")
    if path in fixed:
        return fixed[path]
    if (found := _openapi().get(path.removeprefix("/openapi/v3/"))) is not None:
        return found
    if path == "/api/v1":
        return _resources("", "v1")
    for name, version in _groups():
        if path == f"/apis/{name}":
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, version)}
        if path == f"/apis/{name}/{version}":
            return _resources(name, version)
    return None


def _openapi() -> dict[str, Json]:
    """OpenAPI v3 without schemas: enough to tell kubectl that the server validates fields itself."""
    documents: dict[str, Json] = {}
    for kind in ALL:
        path = f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"
        document = documents.setdefault(
            path, {"openapi": "3.0.0", "info": _INFO, "paths": {}, "components": {"schemas": {}}}
        )
        names = ("dryRun", "fieldManager", "fieldValidation", "force")
        operation = {
            "parameters": [{"name": name, "in": "query", "schema": {"type": "string"}} for name in names],
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        }
        where = "namespaces/{namespace}/" if kind.namespaced else ""
        document["paths"][f"/{path}/{where}{kind.plural}/{{name}}"] = {"patch": operation}
    return documents


def _groups() -> list[tuple[str, str]]:
    return sorted({(kind.group, kind.version) for kind in ALL if kind.group})


def _group(name: str, version: str) -> Json:
    entry = {"groupVersion": f"{name}/{version}", "version": version}
    return {"name": name, "versions": [entry], "preferredVersion": entry}


def _resources(group: str, version: str) -> Json:
    resources: list[Json] = []
    for kind in ALL:
        if (kind.group, kind.version) == (group, version):
            resources.append(_resource(kind))
            if kind.status_subresource:
                resources.append({**_resource(kind, "status"), "verbs": ["get", "patch", "update"]})
            if kind == PODS:
                resources.append({**_resource(kind, "log"), "verbs": ["get"]})
                resources.append({**_resource(kind, "binding"), "kind": "Binding", "verbs": ["create"]})
    api_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": resources}


def _resource(kind: Kind, subresource: str = "") -> Json:
    name = f"{kind.plural}/{subresource}" if subresource else kind.plural
    entry: Json = {
        "name": name,
        "singularName": "" if subresource else kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": [verb for verb in VERBS if kind != NAMESPACES or verb != "deletecollection"],
    }
    if kind == PODS and not subresource:
        entry["categories"] = ["all"]
    if kind.short and not subresource:
        entry["shortNames"] = list(kind.short)
    return entry
