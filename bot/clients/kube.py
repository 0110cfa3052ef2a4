"""The Kubernetes API: bytes in, bytes out.

The bare `ApiClient` with paths of our own: the generated classes cost a second of start-up and decode what
nobody reads. Paths, patch types and error bodies: https://kubernetes.io/docs/reference/using-api/api-concepts/
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.config.incluster_config import load_incluster_config
from kubernetes.aio.config.kube_config import load_kube_config

from bot.clients.errors import (
    Forbidden,
    Invalid,
    ServerFault,
    Throttled,
    Unconfigured,
    Unreachable,
    WireError,
    of_status,
)
from bot.metrics import Metrics

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"

DEADLINE = 10.0
"""Total seconds of one ordinary call."""

READ_TRIES = 4
"""How often a read is tried before its error counts."""

FIRST_WAIT = 0.4
"""Seconds before a failed read is repeated for the first time."""


_BY_THE_CLUSTER_ALONE = frozenset({404, 409, 410})


class StatusBody(msgspec.Struct):
    """An error's body: `kind: Status`."""

    message: str = ""
    reason: str = ""
    kind: str = ""
    status: str = ""
    code: int = 0

    @property
    def failed(self) -> bool:
        """Whether it says that something went wrong, whatever the HTTP status around it says."""
        return self.kind == "Status" and self.status == "Failure"


LONGEST_STATUS = 64 * 1024
"""Bytes of the longest Status; a longer body is none and is not looked at for one."""


class Kube:
    """One API server. Use `connect` to make one."""

    def __init__(self, client: Any, metrics: Metrics, first_wait: float) -> None:
        self._client = client
        self._metrics = metrics
        self._first_wait = first_wait

    @classmethod
    async def connect(
        cls, metrics: Metrics, *, kubeconfig: str = "", url: str = "", token: str = "", first_wait: float = FIRST_WAIT
    ) -> Kube:
        """A client by kubeconfig file, by address and token, or else by the pod's service account.

        `first_wait`: seconds before a failed read is repeated, doubled each time.

        Raises:
            Unconfigured: no usable configuration; the text says what is missing.
        """
        configuration = Configuration()
        if url:
            configuration.host = url
            configuration.api_key = {"BearerToken": token}
            configuration.api_key_prefix = {"BearerToken": "Bearer"}
        elif kubeconfig:
            if not Path(kubeconfig).is_file():  # noqa: ASYNC240  # one look at the start
                raise Unconfigured(f"there is no file {kubeconfig}")
            try:
                await load_kube_config(config_file=kubeconfig, client_configuration=configuration)
            except ConfigException as error:
                raise Unconfigured(f"{kubeconfig}: {error}") from error
        else:
            try:
                load_incluster_config(client_configuration=configuration)
            except ConfigException as error:
                raise Unconfigured(f"no kubeconfig is named, and this is no pod of a cluster ({error})") from error
        configuration.retries = None  # 0 and False repeat for ever, out of sight of deadlines; `read` has its own rule
        return cls(ApiClient(configuration), metrics, first_wait)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def read(
        self, path: str, query: Sequence[tuple[str, str]] = (), *, accept: str = "application/json"
    ) -> bytes:
        """GET one object or list, repeated where the server is busy or broken, or where a proxy answers in its place.

        Raises:
            WireError: as `errors` has them.
        """
        for attempt in range(1, READ_TRIES + 1):
            try:
                return await self._call("GET", path, query=query, accept=accept)
            except (Throttled, ServerFault, Unreachable) as error:
                if attempt == READ_TRIES:
                    raise
                await asyncio.sleep(
                    error.retry_after or self._first_wait * 2 ** (attempt - 1) * random.uniform(0.5, 1.0)
                )
        raise AssertionError("unreachable")

    async def create(self, path: str, body: dict[str, Any]) -> bytes:
        """POST an object.

        Raises:
            WireError: Conflict where the name is taken.
        """
        return await self._call("POST", path, body=body)

    async def replace(self, path: str, body: dict[str, Any]) -> bytes:
        """PUT an object; with `resourceVersion` in it, Conflict where somebody wrote first."""
        return await self._call("PUT", path, body=body)

    async def patch(self, path: str, body: list[dict[str, Any]] | dict[str, Any]) -> bytes:
        """PATCH: a list is a JSON patch, a mapping a merge patch (custom resources take no strategic merge)."""
        content_type = JSON_PATCH if isinstance(body, list) else MERGE_PATCH
        return await self._call("PATCH", path, body=body, content_type=content_type)

    async def delete(self, path: str, options: dict[str, Any]) -> bytes:
        """DELETE an object; `options` may name the uid that it must have, Conflict where it is another one by now."""
        return await self._call("DELETE", path, body={"apiVersion": "v1", "kind": "DeleteOptions", **options})

    @asynccontextmanager
    async def stream(self, path: str, query: Sequence[tuple[str, str]], *, seconds: float) -> AsyncIterator[Any]:
        """Open a GET that stays open for at most `seconds`; yields the body's stream reader.

        Raises:
            WireError: as for `read`, without repetition.
        """
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=DEADLINE, sock_read=seconds)
        response = await self._open("GET", path, query=query, timeout=timeout)
        try:
            yield response.content
        finally:
            response.close()

    async def _call(self, method: str, path: str, **options: Any) -> bytes:
        started = time.monotonic()
        outcome = "error"
        try:
            timeout = aiohttp.ClientTimeout(total=DEADLINE)
            response = await self._open(method, path, timeout=timeout, **options)
            async with response:
                try:
                    body = await response.read()
                except (aiohttp.ClientError, TimeoutError) as error:
                    raise Unreachable("the cluster's answer broke off", uncertain=method != "GET") from error
            if not body.lstrip().startswith(b"{"):
                raise ServerFault(f"something before the cluster answered {response.status} with what is not an object")
            _refuse_failure(body)
            outcome = "ok"
            return bytes(body)
        except WireError as error:
            outcome = type(error).__name__
            raise
        finally:
            self._metrics.calls.labels("kubernetes", method, outcome).observe(time.monotonic() - started)

    async def _open(
        self,
        method: str,
        path: str,
        *,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109  # aiohttp keeps it, per phase of the call
        query: Sequence[tuple[str, str]] = (),
        body: Any = None,
        accept: str = "application/json",
        content_type: str = "application/json",
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": accept, "Content-Type": content_type}
        serialized = await self._client.param_serialize(
            method, path, query_params=list(query), header_params=headers, body=body, auth_settings=["BearerToken"]
        )
        method, url, headers, body, _ = serialized
        try:
            answer = await self._client.call_api(method, url, headers, body, _request_timeout=timeout)
        except aiohttp.ClientConnectorError as error:
            raise Unreachable("the cluster cannot be reached", uncertain=False) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable("the cluster did not answer", uncertain=method != "GET") from error
        response: aiohttp.ClientResponse = answer.response
        if response.status < 300:
            return response
        async with response:
            raise await _error(response)


async def _error(response: aiohttp.ClientResponse) -> WireError:
    """What the server said, in its own words where it is a Status and in ours where a proxy answered in HTML.

    A 404 of a proxy does not mean that the object is gone, nor its 409 that somebody else wrote: only a Status does.
    """
    try:
        status = msgspec.json.decode(await response.read(), type=StatusBody)
        message, reason = status.message, status.reason
    except (msgspec.MsgspecError, aiohttp.ClientError, TimeoutError):
        message, reason = f"the cluster answered {response.status} without a reason", ""
        if response.status in _BY_THE_CLUSTER_ALONE:
            return ServerFault(message)
    return of_status(response.status, message, code=reason, retry_after=response.headers.get("Retry-After"))


def _refuse_failure(body: bytes) -> None:
    """Some proxies send an error on with a 200. Read as a list it would be one of nothing: everything would be gone."""
    if len(body) > LONGEST_STATUS or b'"Failure"' not in body:
        return
    try:
        status = msgspec.json.decode(body, type=StatusBody)
    except (msgspec.MsgspecError, RecursionError):
        return
    if status.failed:
        raise of_status(status.code or 500, status.message or "the cluster says no more than that", code=status.reason)


async def whole_lines(reader: Any, longest: int = 64 * 1024 * 1024) -> AsyncIterator[bytes]:
    """The lines of a stream; what comes after the last newline was cut off and is dropped, as is what is too long."""
    buffer = bytearray()
    while True:
        try:
            chunk = await reader.readany()
        except (aiohttp.ClientError, TimeoutError, OSError):
            return
        if not chunk:
            return
        buffer += chunk
        while (end := buffer.find(b"\n")) >= 0:
            line = bytes(buffer[:end])
            del buffer[: end + 1]
            if line.strip():
                yield line
        if len(buffer) > longest:
            buffer.clear()


def is_fatal(error: WireError) -> bool:
    """Whether trying again without a change somewhere is pointless."""
    return isinstance(error, Invalid | Forbidden)
