"""Pod logs over HTTP: once, or followed until the container ends.

https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#get-read-log-of-the-specified-pod
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from aiohttp import web

from bot.demo import status
from bot.demo.kinds import PODS
from bot.demo.pod_logs import Line

if TYPE_CHECKING:
    from bot.demo.kube_api import KubeApi

Json = dict[str, Any]


async def serve_log(api: KubeApi, request: web.Request, namespace: str, name: str) -> web.StreamResponse:
    """Answer GET pods/NAME/log. Raises ApiError: 404, or 400 where the container has not started."""
    pod = api.store.get(PODS, namespace, name)
    container = _container(pod, request.query.get("container", ""))
    if not pod["spec"].get("nodeName"):
        return web.Response(status=204)
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    response.enable_chunked_encoding()
    _check_started(pod, container)
    await response.prepare(request)
    uid = pod["metadata"]["uid"]
    # Only what the main container wrote is played; the executor's own containers are silent.
    lines = api.logs.lines(uid) if container == "main" else []
    chosen, sent = _chosen(lines, request, api.store.clock.now()), len(lines)
    stamped = request.query.get("timestamps") == "true"
    await response.write(_text(chosen, stamped))
    follow = request.query.get("follow") == "true" and container == "main"
    if follow and not await _follow(api, response, uid, sent, stamped=stamped):
        if request.transport is not None:
            request.transport.abort()
        return response
    await response.write_eof()
    return response


async def _follow(api: KubeApi, response: web.StreamResponse, uid: str, sent: int, *, stamped: bool) -> bool:
    """Write what comes; whether the log came to its end, and was not cut."""
    news = api.logs.follow(uid)
    cut = False

    def on_cut() -> None:
        nonlocal cut
        cut = True
        news.set()

    api.faults.stream_opened(on_cut)
    try:
        while not cut:
            lines = api.logs.lines(uid)
            if len(lines) > sent:
                await response.write(_text(lines[sent:], stamped))
                sent = len(lines)
            if api.logs.has_ended(uid):
                return True
            await news.wait()
            news.clear()
        return False
    finally:
        api.logs.unfollow(uid, news)
        api.faults.stream_closed(on_cut)


def _container(pod: Json, asked: str) -> str:
    name = pod["metadata"]["name"]
    containers = [one["name"] for one in pod["spec"].get("containers") or ()]
    init = [one["name"] for one in pod["spec"].get("initContainers") or ()]
    if asked:
        if asked not in containers + init:
            raise status.bad_request(f"container {asked} is not valid for pod {name}")
        return asked
    if len(containers) != 1:
        message = f"a container name must be specified for pod {name}, choose one of: [{' '.join(containers)}]"
        if init:
            message += f" or one of the init containers: [{' '.join(init)}]"
        raise status.bad_request(message)
    return str(containers[0])


def _check_started(pod: Json, container: str) -> None:
    state = pod.get("status", {})
    known = (state.get("containerStatuses") or []) + (state.get("initContainerStatuses") or [])
    found: Json = next(
        (one for one in known if one["name"] == container), {"state": {"waiting": {"reason": "ContainerCreating"}}}
    )
    if waiting := found["state"].get("waiting"):
        name = pod["metadata"]["name"]
        message = (
            f'container "{container}" in pod "{name}" is waiting to start: {waiting.get("reason", "ContainerCreating")}'
        )
        raise status.bad_request(message)


def _chosen(lines: list[Line], request: web.Request, now: datetime) -> list[Line]:
    query = request.query
    since: datetime | None = None
    if text := query.get("sinceTime"):
        since = datetime.fromisoformat(text).astimezone(UTC)
    elif seconds := query.get("sinceSeconds"):
        since = now - timedelta(seconds=int(seconds))
    if since is not None:
        lines = [line for line in lines if line[0] >= since]
    if (tail := query.get("tailLines")) is not None:
        lines = lines[max(0, len(lines) - int(tail)) :]
    return lines


def _text(lines: list[Line], stamped: bool) -> bytes:
    if stamped:
        return "".join(f"{when.strftime('%Y-%m-%dT%H:%M:%S.%f')}000Z {text}\n" for when, text in lines).encode()
    return "".join(f"{text}\n" for _when, text in lines).encode()
