"""When the bot was installed in this cluster: the age of its own ConfigMap.

A run that ended before that is not ours to report, unless it carries our finalizer.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from bot.clients.errors import Conflict, NotFound
from bot.clients.kube import Kube


class _Meta(msgspec.Struct, rename="camel"):
    creation_timestamp: str


class _ConfigMap(msgspec.Struct):
    metadata: _Meta


async def installed_at(kube: Kube, namespace: str, name: str) -> float:
    """Unix seconds of the ConfigMap's creation; it is created where it does not exist.

    Raises:
        WireError: the cluster can't be reached or refuses.
    """
    collection = f"/api/v1/namespaces/{namespace}/configmaps"
    try:
        body = await kube.read(f"{collection}/{name}")
    except NotFound:
        manifest = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace},
            "data": {
                "purpose": "Its age is the bot's date of installation; runs that ended before it are not reported."
            },
        }
        try:
            body = await kube.create(collection, manifest)
        except Conflict:
            body = await kube.read(f"{collection}/{name}")
    created = msgspec.json.decode(body, type=_ConfigMap).metadata.creation_timestamp
    return datetime.fromisoformat(created).timestamp()
