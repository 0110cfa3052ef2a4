"""The Kubernetes API server's HTTP face over the embedded cluster.

Paths, parameters and answers: https://kubernetes.io/docs/reference/using-api/api-concepts/. Behaviour where the
documentation is silent (texts, no-op writes, what a watch says when an object leaves its selector) follows
k8s.io/apiserver.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml
from aiohttp import web

from bot.demo import kube_discovery, kube_reviews, kube_views, patching, status
from bot.demo.access import Access, Request
from bot.demo.deleting import delete, success
from bot.demo.faults import Faults
from bot.demo.kinds import BY_PATH, NAMESPACES, PODS, Kind
from bot.demo.kube_logs import serve_log
from bot.demo.kube_requests import (
    Target,
    answer,
    body_of,
    check_body,
    fault_body,
    find_target,
    identify,
    is_dry_run,
    matcher_of,
    path_key_of,
    place_of,
    read_continue,
    selected_name,
    verb_of,
    write_continue,
)
from bot.demo.kube_watch import serve_watch
from bot.demo.pod_logs import PodLogs
from bot.demo.status import ApiError
from bot.demo.world import Store

Json = dict[str, Any]
MAX_BODY = 3 * 1024 * 1024


class KubeApi:
    """The aiohttp application."""

    def __init__(self, store: Store, access: Access, logs: PodLogs) -> None:
        self.store = store
        self.access = access
        self.logs = logs
        self.faults = Faults(store.clock, fault_body)
        self.gone_next = 0
        """How many of the next watches begin with an ERROR of 410."""
        self.half_lines = 0
        """How many of the next watch events are cut in the middle."""
        self.bookmark_callbacks: set[Callable[[], None]] = set()
        self.app = web.Application(client_max_size=MAX_BODY)
        self.app.router.add_route("*", "/{path:.*}", self._serve)

    def send_bookmarks(self) -> None:
        """Send a bookmark on every watch that allows them, without waiting for the minute."""
        for callback in list(self.bookmark_callbacks):
            callback()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        return await self.faults.around(request, self._answer)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path, authorization = identify(request)
        try:
            if path in ("/healthz", "/readyz", "/livez"):
                return web.Response(text="ok")
            user = self.access.authenticate(authorization)
            if path == kube_reviews.PATH and request.method == "POST":
                return answer(kube_reviews.review(self.access, user, await body_of(request)), 201)
            document = kube_discovery.document(path)
            if document is not None:
                return answer(document)
            target = find_target(path)
            verb = verb_of(request, target)
            name = target.name or selected_name(request)
            self.access.authorize(user, Request(verb, target.kind, target.namespace, name, target.subresource))
            return await self._dispatch(request, target, verb)
        except ApiError as error:
            seconds = (error.status.get("details") or {}).get("retryAfterSeconds")
            return answer(error.status, error.code, {"Retry-After": str(seconds)} if seconds else {})
        except ConnectionError:
            # A stream whose reader has gone in the middle of a line; there is nobody to answer any more.
            return web.Response(status=499)

    async def _dispatch(self, request: web.Request, target: Target, verb: str) -> web.StreamResponse:
        match verb:
            case "watch":
                return await serve_watch(self, request, target.kind, matcher_of(request, target))
            case "list":
                return self._list(request, target)
            case "get" if target.subresource == "log":
                return await serve_log(self, request, target.namespace, target.name)
            case "get":
                return self._one(request, self.store.get(target.kind, target.namespace, target.name))
            case "create" if target.subresource == "binding":
                return self._bind(target, await body_of(request))
            case "create" if not target.name:
                return self._create(request, target, await body_of(request))
            case "update" if target.name:
                return self._update(request, target, await body_of(request))
            case "patch" if target.name:
                return self._patch(request, target, await request.read())
            case "delete":
                return self._delete(request, target, await body_of(request, optional=True))
            case "deletecollection":
                return self._delete_all(request, target, await body_of(request, optional=True))
        raise status.method_not_allowed()

    def _list(self, request: web.Request, target: Target) -> web.Response:
        kind, query = target.kind, request.query
        match = matcher_of(request, target)
        limit = int(query.get("limit") or 0)
        revision, after = self.store.revision, None
        if token := query.get("continue"):
            revision, after = read_continue(token)
        elif (asked := _version_in(query.get("resourceVersion", ""))) > revision:
            raise status.too_large_version(asked, revision)
        elif query.get("resourceVersionMatch") == "Exact":
            revision = asked
        objects = self.store.all(kind) if revision == self.store.revision else self._snapshot(kind, revision)
        found = [obj for obj in objects if match(obj) and (after is None or place_of(obj) > after)]
        metadata: Json = {"resourceVersion": str(revision)}
        if limit and len(found) > limit:
            metadata["continue"] = write_continue(revision, found[limit - 1])
            if not query.get("labelSelector") and not query.get("fieldSelector"):
                metadata["remainingItemCount"] = len(found) - limit
            found = found[:limit]
        view = kube_views.wanted_view(request.headers.get("Accept", ""))
        if view == "Table":
            now = self.store.clock.now()
            return answer(kube_views.table(kind, found, metadata, now, query.get("includeObject", "Metadata")))
        if view.startswith("PartialObjectMetadata"):
            items = [{"metadata": obj["metadata"]} for obj in found]
            listed = {"kind": "PartialObjectMetadataList", "apiVersion": kube_views.META, "metadata": metadata}
            return answer({**listed, "items": items})
        items = found if kind.custom else [_without_kind(obj) for obj in found]
        return answer(
            {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata, "items": items}
        )

    def _snapshot(self, kind: Kind, revision: int) -> list[Json]:
        try:
            return self.store.list_at(kind, revision)
        except ApiError as error:
            raise status.expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a "
                "new list without the continue parameter, or use the continue token in this response to retrieve "
                "the remainder of the results. Continuing with the provided token results in an inconsistent list - "
                "objects that were created, modified, or deleted between the time the first chunk was returned and "
                "now may show up in the list."
            ) from error

    def _one(self, request: web.Request, obj: Json, code: int = 200) -> web.Response:
        view = kube_views.wanted_view(request.headers.get("Accept", ""))
        if view == "PartialObjectMetadata":
            return answer(kube_views.partial(obj), code)
        if view == "Table" and (kind := BY_PATH.get(path_key_of(obj))):
            metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            include = request.query.get("includeObject", "Metadata")
            return answer(kube_views.table(kind, [obj], metadata, self.store.clock.now(), include), code)
        return answer(obj, code)

    def _create(self, request: web.Request, target: Target, body: Json) -> web.Response:
        kind = target.kind
        check_body(kind, body)
        meta = dict(body.get("metadata") or {})
        if kind.namespaced:
            if not target.namespace:
                raise status.method_not_allowed()
            if meta.get("namespace", target.namespace) != target.namespace:
                message = "the namespace of the provided object does not match the namespace sent on the request"
                raise status.bad_request(message)
            meta["namespace"] = target.namespace
            if self.store.find(NAMESPACES, "", target.namespace) is None:
                raise status.not_found(NAMESPACES, target.namespace)
        if meta.get("resourceVersion"):
            raise status.bad_request("resourceVersion should not be set on objects to be created")
        obj = {**body, "metadata": meta}
        if kind.status_subresource:
            obj["status"] = {"phase": "Pending"} if kind == PODS else body.get("status", {})
        return self._one(request, self.store.create(kind, obj, dry_run=is_dry_run(request)), 201)

    def _update(self, request: web.Request, target: Target, body: Json) -> web.Response:
        kind = target.kind
        check_body(kind, body)
        meta = dict(body.get("metadata") or {})
        if meta.get("name", target.name) != target.name:
            message = f"the name of the object ({meta['name']}) does not match the name on the URL ({target.name})"
            raise status.bad_request(message)
        if not meta.get("resourceVersion") and not kind.unconditional_update:
            self.store.get(kind, target.namespace, target.name)
            text = "Invalid value: 0: must be specified for an update"
            raise status.invalid(kind, target.name, "metadata.resourceVersion", "FieldValueInvalid", text)
        if kind.namespaced:
            meta["namespace"] = target.namespace
        obj = {**body, "metadata": {**meta, "name": target.name}}
        return self._one(request, self._write(target, obj, dry_run=is_dry_run(request)))

    def _patch(self, request: web.Request, target: Target, raw: bytes) -> web.Response:
        kind = target.kind
        accepted = [patching.JSON_PATCH, patching.MERGE_PATCH, patching.APPLY_PATCH]
        if not kind.custom:
            accepted.insert(2, patching.STRATEGIC_PATCH)
        if request.content_type not in accepted:
            raise status.unsupported_media_type(accepted)
        if request.content_type == patching.APPLY_PATCH:
            return self._apply(request, target, raw)
        old = self.store.get(kind, target.namespace, target.name)
        patch = patching.parse(raw, as_written=request.content_type == patching.JSON_PATCH)
        if request.content_type == patching.JSON_PATCH:
            obj = patching.json_patch(old, patch)
        elif not isinstance(patch, dict):
            raise status.bad_request(
                "error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}"
            )
        elif request.content_type == patching.MERGE_PATCH:
            obj = patching.merge_patch(old, patch)
        else:
            obj = patching.strategic_patch(old, patch)
        meta = obj.get("metadata")
        if not isinstance(meta, dict) or meta.get("name") != target.name:
            given = meta.get("name", "") if isinstance(meta, dict) else ""
            raise status.bad_request(
                f"the name of the object ({given}) does not match the name on the URL ({target.name})"
            )
        return self._one(request, self._write(target, obj, dry_run=is_dry_run(request)))

    def _apply(self, request: web.Request, target: Target, raw: bytes) -> web.Response:
        # Without field ownership: what is applied is merged in, and nothing is ever taken out.
        try:
            body = yaml.safe_load(raw)
        except yaml.YAMLError as error:
            raise status.bad_request(f"error decoding YAML: {error}") from error
        old = self.store.find(target.kind, target.namespace, target.name)
        if old is None:
            body.setdefault("metadata", {})["name"] = target.name
            return self._create(request, Target(target.kind, target.namespace), body)
        merge = patching.merge_patch if target.kind.custom else patching.strategic_patch
        return self._one(request, self._write(target, merge(old, body), dry_run=is_dry_run(request)))

    def _write(self, target: Target, obj: Json, *, dry_run: bool) -> Json:
        kind = target.kind
        if kind.status_subresource:
            old = self.store.get(kind, target.namespace, target.name)
            if target.subresource == "status":
                kept = {key: value for key, value in old.items() if key not in ("status", "metadata")}
                obj = {**kept, "metadata": obj["metadata"], "status": obj.get("status", {})}
            else:
                obj = {**obj, "status": old.get("status", {})}
        return self.store.replace(kind, obj, dry_run=dry_run)

    def _bind(self, target: Target, body: Json) -> web.Response:
        pod = self.store.get(PODS, target.namespace, target.name)
        node = (body.get("target") or {}).get("name", "")
        if pod["spec"].get("nodeName"):
            raise status.conflict(
                PODS, target.name, f'pod {target.name} is already assigned to node "{pod["spec"]["nodeName"]}"'
            )
        now = self.store.clock.now()
        self.store.replace(PODS, bound(pod, node, now))
        return answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201)

    def _delete(self, request: web.Request, target: Target, options: Json) -> web.Response:
        for key in ("propagationPolicy", "gracePeriodSeconds"):
            if key in request.query:
                options.setdefault(key, request.query[key])
        dry = is_dry_run(request) or options.get("dryRun") == ["All"]
        result = delete(self.store, target.kind, target.namespace, target.name, options, dry_run=dry)
        return answer(result)

    def _delete_all(self, request: web.Request, target: Target, options: Json) -> web.Response:
        match = matcher_of(request, target)
        found = [obj for obj in self.store.all(target.kind, target.namespace) if match(obj)]
        for obj in found:
            delete(self.store, target.kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"], options)
        if not found:
            return answer({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})
        return answer(success(target.kind, found[-1]))


def _version_in(text: str) -> int:
    if text and not text.isdecimal():
        raise status.bad_request(f"invalid resource version: {status.bad_version(text)}")
    return int(text or 0)


def _without_kind(obj: Json) -> Json:
    # Items of a typed list do not say what they are.
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


def bound(pod: Json, node: str, now: Any) -> Json:
    """A pod after the scheduler has bound it to a node."""
    when = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    state = pod.get("status", {})
    conditions = [one for one in state.get("conditions") or () if one["type"] != "PodScheduled"]
    conditions.append({"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": when})
    return {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": {**state, "conditions": conditions}}
