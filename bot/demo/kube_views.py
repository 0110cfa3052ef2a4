"""Other shapes of an answer: PartialObjectMetadata for clients that need only metadata, Table for people at kubectl.

https://kubernetes.io/docs/reference/using-api/api-concepts/#alternate-representations-of-resources
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bot.demo.kinds import Kind
from bot.demo.kube_tables import PLAIN, TABLES
from bot.demo.status import ApiError, not_acceptable

Json = dict[str, Any]
META = "meta.k8s.io/v1"
_VIEWS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


def wanted_view(accept: str) -> str:
    """What the Accept header asks for first: "Table", "PartialObjectMetadata", "PartialObjectMetadataList" or "".

    Raises ApiError 406 where it takes nothing that there is.
    """
    return _negotiated(accept)[1]


def wants_yaml(accept: str) -> bool:
    """Whether the answer is to be in YAML."""
    try:
        return _negotiated(accept)[0] == "application/yaml"
    except ApiError:
        return False


def _negotiated(accept: str) -> tuple[str, str]:
    for choice in (accept or "*/*").split(","):
        media_type, *parameters = [part.strip() for part in choice.split(";")]
        values = dict(parameter.partition("=")[::2] for parameter in parameters)
        view = values.get("as", "")
        known = not view or (view in _VIEWS and values.get("v") == "v1" and values.get("g") == "meta.k8s.io")
        if known and media_type in ("application/json", "application/yaml"):
            return media_type, view
        if known and media_type in ("application/*", "*/*"):
            return "application/json", view
    raise not_acceptable("only the following media types are accepted: application/json, application/yaml")


def partial(obj: Json) -> Json:
    """Metadata alone."""
    return {"kind": "PartialObjectMetadata", "apiVersion": META, "metadata": obj["metadata"]}


def table(kind: Kind, objects: list[Json], metadata: Json, now: datetime, include: str) -> Json:
    """A table as kubectl prints it; `include` is the query parameter includeObject (Metadata unless given)."""
    columns, row = TABLES.get(kind.plural, PLAIN)
    rows = []
    for obj in objects:
        entry: Json = {"cells": row(obj, now)}
        if include == "Object":
            entry["object"] = obj
        elif include != "None":
            entry["object"] = partial(obj)
        rows.append(entry)
    definitions = [
        {
            "name": column.rstrip("*"),
            "type": "string",
            "format": "name" if column.startswith("Name") else "",
            "description": "",
            "priority": int(column.endswith("*")),
        }
        for column in columns.split(",")
    ]
    return {"kind": "Table", "apiVersion": META, "metadata": metadata, "columnDefinitions": definitions, "rows": rows}
