"""The Kubernetes API server's HTTP face over the embedded cluster.

Paths, parameters and answers: https://kubernetes.io/docs/reference/using-api/api-concepts/. Behaviour where the
documentation is silent (texts, no-op writes, what a watch says when an object leaves its selector) follows
k8s.io/apiserver.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from aiohttp import web

from bot.demo import kube_discovery, kube_reviews, kube_views, kube_writes, status
from bot.demo.access import Access, Request, User
from bot.demo.deleting import delete
from bot.demo.faults import Faults
from bot.demo.kinds import BY_PATH
from bot.demo.kube_lists import delete_all, serve_list
from bot.demo.kube_logs import serve_log
from bot.demo.kube_options import delete_options
from bot.demo.kube_requests import (
    WARNINGS,
    Target,
    answer,
    body_of,
    check_subresource,
    fault_body,
    find_target,
    identify,
    in_yaml,
    matcher_of,
    path_key_of,
    refusal,
    selected_name,
    verb_of,
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
        try:
            response = await self._respond(request)
        except web.HTTPRequestEntityTooLarge:
            response = refusal(status.too_large(MAX_BODY))
        except ApiError as error:
            response = refusal(error)
        except ConnectionError:
            # A stream whose reader has gone in the middle of a line; there is nobody to answer any more.
            return web.Response(status=499)
        for text in request.get(WARNINGS, []):
            response.headers.add("Warning", f"299 - {json.dumps(text)}")
        if isinstance(response, web.Response) and kube_views.wants_yaml(request.headers.get("Accept", "")):
            return in_yaml(response)
        return response

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        path, authorization = identify(request)
        user = self.access.authenticate(authorization)
        if review := kube_reviews.REVIEWS.get(path):
            if request.method != "POST":
                raise status.method_not_allowed()
            kind, found = review
            return answer(found(self.access, user, await body_of(request, kind)), 201)
        document = kube_discovery.document(path)
        if document is not None:
            return self._document(request, user, path, document)
        try:
            target = find_target(path)
        except ApiError as error:
            if error.is_page:
                self.access.authorize_path(user, request.method, path)
            raise
        verb = verb_of(request, target)
        name = target.name or selected_name(request)
        self.access.authorize(user, Request(verb, target.kind, target.namespace, name, target.subresource))
        check_subresource(target, verb)
        if target.subresource != "log":
            kube_views.wanted_view(request.headers.get("Accept", ""))
        return await self._dispatch(request, target, verb)

    def _document(self, request: web.Request, user: User, path: str, document: Json | str) -> web.Response:
        self.access.authorize_path(user, request.method, path)
        if request.method != "GET":
            raise status.method_not_allowed()
        if isinstance(document, str):
            return web.Response(text=document)
        kube_views.wanted_view(request.headers.get("Accept", ""))
        return answer(document)

    async def _dispatch(self, request: web.Request, target: Target, verb: str) -> web.StreamResponse:
        match verb:
            case "watch":
                return await serve_watch(self, request, target.kind, matcher_of(request, target))
            case "list":
                return answer(serve_list(self.store, request, target))
            case "get" if target.subresource == "log":
                return await serve_log(self, request, target.namespace, target.name)
            case "get":
                return self._one(request, self.store.get(target.kind, target.namespace, target.name))
            case "create" if target.subresource == "binding":
                return answer(await kube_writes.bind(self.store, request, target), 201)
            case "create" if not target.name:
                return self._one(request, *await kube_writes.create(self.store, request, target))
            case "update" if target.name:
                return self._one(request, *await kube_writes.update(self.store, request, target))
            case "patch" if target.name:
                return self._one(request, *await kube_writes.patch(self.store, request, target))
            case "delete":
                return await self._delete(request, target)
            case "deletecollection":
                return answer(await delete_all(self.store, request, target))
        raise status.method_not_allowed()

    def _one(self, request: web.Request, obj: Json, code: int = 200) -> web.Response:
        view = kube_views.wanted_view(request.headers.get("Accept", ""))
        if view.startswith("PartialObjectMetadata"):
            return answer(kube_views.partial(obj), code)
        if view == "Table" and (kind := BY_PATH.get(path_key_of(obj))):
            metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            include = request.query.get("includeObject", "Metadata")
            return answer(kube_views.table(kind, [obj], metadata, self.store.clock.now(), include), code)
        return answer(obj, code)

    async def _delete(self, request: web.Request, target: Target) -> web.Response:
        body = await body_of(request, "DeleteOptions", optional=True)
        options = delete_options(request.query, body)
        return answer(delete(self.store, target.kind, target.namespace, target.name, options))
