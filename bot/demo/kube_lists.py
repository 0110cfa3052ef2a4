"""Lists: pages of one moment, selectors, other shapes; and the deletion of all that a list would show.

https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks
"""

from __future__ import annotations

from typing import Any

from aiohttp import web

from bot.demo import kube_views, status
from bot.demo.deleting import delete
from bot.demo.kinds import NAMESPACES, Kind
from bot.demo.kube_options import check_list, delete_options, number
from bot.demo.kube_requests import Target, body_of, matcher_of, place_of, read_continue, write_continue
from bot.demo.status import ApiError
from bot.demo.world import Store

Json = dict[str, Any]


def serve_list(store: Store, request: web.Request, target: Target) -> Json:
    """Answer a list in the shape that is asked for. Raises ApiError: 400, 406, 410, 422, 504."""
    found, metadata = _page(store, request, target)
    return _shaped(store, request, target.kind, found, metadata)


async def delete_all(store: Store, request: web.Request, target: Target) -> Json:
    """Delete what a list shows, and answer with that list. Raises ApiError."""
    body = await body_of(request, "DeleteOptions", optional=True)
    if target.kind == NAMESPACES or (target.kind.namespaced and not target.namespace):
        raise status.method_not_allowed()
    options = delete_options(request.query, body)
    found, metadata = _page(store, request, target)
    for obj in found:
        if store.find(target.kind, *place_of(obj)) is not None:
            delete(store, target.kind, *place_of(obj), options)
    return _shaped(store, request, target.kind, found, metadata)


def _page(store: Store, request: web.Request, target: Target) -> tuple[list[Json], Json]:
    query = request.query
    check_list(query, watch=False)
    number(query, "timeoutSeconds")
    match = matcher_of(request, target)
    limit = max(0, number(query, "limit") or 0)
    asked = query.get("resourceVersion", "")
    revision, after = store.revision, None
    if token := query.get("continue"):
        if asked not in ("", "0"):
            raise status.bad_request("specifying resource version is not allowed when using continue")
        revision, after = read_continue(token)
    elif (version := _version_in(asked)) > revision:
        raise status.too_large_version(version, revision)
    elif query.get("resourceVersionMatch") == "Exact":
        revision = version
    if asked == "0":
        # The watch cache answers, and that has no pages.
        limit = 0
    objects = store.all(target.kind) if revision == store.revision else _snapshot(store, target.kind, revision)
    found = [obj for obj in objects if match(obj) and (after is None or place_of(obj) > after)]
    metadata: Json = {"resourceVersion": str(revision)}
    if target.kind.custom:
        metadata["continue"] = ""
    if limit and len(found) > limit:
        metadata["continue"] = write_continue(revision, found[limit - 1])
        if not query.get("labelSelector") and not query.get("fieldSelector"):
            metadata["remainingItemCount"] = len(found) - limit
        found = found[:limit]
    return found, metadata


def _shaped(store: Store, request: web.Request, kind: Kind, found: list[Json], metadata: Json) -> Json:
    view = kube_views.wanted_view(request.headers.get("Accept", ""))
    if view == "Table":
        include = request.query.get("includeObject", "Metadata")
        return kube_views.table(kind, found, metadata, store.clock.now(), include)
    if view == "PartialObjectMetadata":
        text = f"you requested PartialObjectMetadata, but the requested object is a list (*core.{kind.kind}List)"
        raise status.not_acceptable(text)
    if view == "PartialObjectMetadataList":
        items = [{"metadata": obj["metadata"]} for obj in found]
        return {"kind": view, "apiVersion": kube_views.META, "metadata": metadata, "items": items}
    items = found if kind.custom else [_without_kind(obj) for obj in found]
    return {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata, "items": items}


def _snapshot(store: Store, kind: Kind, revision: int) -> list[Json]:
    try:
        return store.list_at(kind, revision)
    except ApiError as error:
        raise status.expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a "
            "new list without the continue parameter, or use the continue token in this response to retrieve "
            "the remainder of the results. Continuing with the provided token results in an inconsistent list - "
            "objects that were created, modified, or deleted between the time the first chunk was returned and "
            "now may show up in the list."
        ) from error


def _version_in(text: str) -> int:
    if text and not text.isdecimal():
        raise status.bad_request(f"invalid resource version: {status.bad_version(text)}")
    return int(text or 0)


def _without_kind(obj: Json) -> Json:
    # Items of a typed list do not say what they are.
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
