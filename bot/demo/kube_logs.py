"""Pod logs over HTTP: once, or followed until the container ends.

https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#get-read-log-of-the-specified-pod
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from aiohttp import web

from bot.demo import status
from bot.demo.go_types import UndecodableError, check_time
from bot.demo.kinds import PODS
from bot.demo.kube_options import flag, number
from bot.demo.pod_logs import Line
from bot.demo.status import Cause

if TYPE_CHECKING:
    from bot.demo.kube_api import KubeApi

Json = dict[str, Any]


async def serve_log(api: KubeApi, request: web.Request, namespace: str, name: str) -> web.StreamResponse:
    """Answer GET pods/NAME/log. Raises ApiError: 404, 422, or 400 where the container has not started."""
    options = _options(request, name)
    pod = api.store.get(PODS, namespace, name)
    container = _container(pod, request.query.get("container", ""))
    if not pod["spec"].get("nodeName"):
        return web.Response(status=204)
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    response.enable_chunked_encoding()
    _check_started(pod, container)
    if flag(request.query, "previous"):
        # Nothing here is restarted in its place.
        raise status.bad_request(f'previous terminated container "{container}" in pod "{name}" not found')
    await response.prepare(request)
    uid = pod["metadata"]["uid"]
    # Only what the main container wrote is played; the executor's own containers are silent.
    lines = api.logs.lines(uid) if container == "main" else []
    chosen, sent = _chosen(lines, options, api.store.clock.now()), len(lines)
    stamped = flag(request.query, "timestamps")
    text = _text(chosen, stamped)[: options.bytes]
    await response.write(text)
    room = None if options.bytes is None else options.bytes - len(text)
    follow = flag(request.query, "follow") and container == "main" and room != 0
    if follow and not await _follow(api, response, uid, sent, stamped=stamped, room=room):
        if request.transport is not None:
            request.transport.abort()
        return response
    await response.write_eof()
    return response


async def _follow(
    api: KubeApi, response: web.StreamResponse, uid: str, sent: int, *, stamped: bool, room: int | None
) -> bool:
    """Write what comes, `room` bytes at most; whether the log came to its end, and was not cut."""
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
                text = _text(lines[sent:], stamped)[:room]
                await response.write(text)
                sent = len(lines)
                room = None if room is None else room - len(text)
            if room == 0 or api.logs.has_ended(uid):
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


@dataclass(frozen=True, slots=True)
class _Options:
    since: datetime | None
    seconds: int | None
    tail: int | None
    bytes: int | None


def _options(request: web.Request, name: str) -> _Options:
    """What is asked for. Raises ApiError: 400, 422."""
    query = request.query
    tail, seconds, most = (number(query, one) for one in ("tailLines", "sinceSeconds", "limitBytes"))
    since: datetime | None = None
    if text := query.get("sinceTime"):
        try:
            check_time(text)
        except UndecodableError as error:
            raise status.bad_request(str(error)) from error
        since = datetime.fromisoformat(text).astimezone(UTC)
    causes: list[Cause] = []
    for field, value, least, rule in (
        ("tailLines", tail, 0, "must be greater than or equal to 0"),
        ("limitBytes", most, 1, "must be greater than 0"),
        ("sinceSeconds", seconds, 1, "must be greater than 0"),
    ):
        if value is not None and value < least:
            causes.append((field, "FieldValueInvalid", f"Invalid value: {value}: {rule}"))
    if since is not None and seconds is not None:
        text = "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"
        causes.append(("[]", "FieldValueForbidden", text))
    if causes:
        raise status.invalid_log_options(name, *causes)
    return _Options(since, seconds, tail, most)


def _chosen(lines: list[Line], options: _Options, now: datetime) -> list[Line]:
    since = options.since
    if options.seconds is not None:
        since = now - timedelta(seconds=options.seconds)
    if since is not None:
        lines = [line for line in lines if line[0] >= since]
    return lines if options.tail is None else lines[max(0, len(lines) - options.tail) :]


def _text(lines: list[Line], stamped: bool) -> bytes:
    if stamped:
        return "".join(f"{when.strftime('%Y-%m-%dT%H:%M:%S.%f')}000Z {text}\n" for when, text in lines).encode()
    return "".join(f"{text}\n" for _when, text in lines).encode()
