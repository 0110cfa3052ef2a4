"""Workflows and CronWorkflows from their bytes, however Argo and other writers put them there.

A large status is kept as base64 of gzip of the nodes' JSON (packer.go). Other compressions (4.1 can be told to use
them) stay unread, and the run's steps are then said to be out of reach.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Any, TypeVar

import msgspec

from bot.core.nesting import shallow
from bot.core.workflow import CronWorkflow, Node, Status, Workflow

LARGEST = 64 * 1024 * 1024
"""Bytes of unpacked nodes: whoever may write a Workflow may write a text that unpacks to a thousand times its size."""

_GZIP = 16 + zlib.MAX_WBITS

Encoded = bytes | memoryview | msgspec.Raw

T = TypeVar("T")


def read_workflow(raw: Encoded) -> Workflow:
    """A Workflow, with its nodes unpacked where Argo packed them.

    Raises:
        msgspec.MsgspecError: it is none.
    """
    workflow = _read(raw, _WORKFLOW, Workflow)
    status = workflow.status
    nodes = _unpacked(status) if status is not None and not status.nodes else None
    if status is None or nodes is None:
        return workflow
    return msgspec.structs.replace(workflow, status=msgspec.structs.replace(status, nodes=nodes, compressed_nodes=None))


def read_cron(raw: Encoded) -> CronWorkflow:
    """A CronWorkflow.

    Raises:
        msgspec.MsgspecError: it is none.
    """
    return _read(raw, _CRON, CronWorkflow)


def _read(raw: Encoded, decoder: msgspec.json.Decoder[T], kind: type[T]) -> T:
    try:
        return decoder.decode(raw)
    except RecursionError:
        return _read(shallow(bytes(raw)), decoder, kind)
    except msgspec.ValidationError:
        pass
    try:
        return msgspec.convert(_without_nulls(msgspec.json.decode(raw)), kind)
    except RecursionError:
        return _read(shallow(bytes(raw)), decoder, kind)


def _unpacked(status: Status) -> dict[str, Node] | None:
    """The packed nodes, None where there are none or they can't be read."""
    if not status.compressed_nodes:
        return None
    try:
        stream = zlib.decompressobj(_GZIP)
        text = stream.decompress(base64.b64decode(status.compressed_nodes), LARGEST)
        return _NODES.decode(text) if stream.eof else None
    except (zlib.error, binascii.Error, ValueError, RecursionError):  # msgspec's errors are ValueErrors
        return None


def _without_nulls(value: Any) -> Any:
    """The same without what is null, which means absent: a custom resource keeps a null at whatever place it has."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value if each is not None] if isinstance(value, list) else value


_WORKFLOW = msgspec.json.Decoder(Workflow)
_CRON = msgspec.json.Decoder(CronWorkflow)
_NODES = msgspec.json.Decoder(dict[str, Node])
