"""JSON that is nested deeper than Python's decoders go.

Anybody may put what they like into the props of a post or a part of a Workflow that nobody reads, to ten thousand
levels (Go's decoder takes that many), and it then comes with every page of its channel or list. It must not hide the
others.
"""

from __future__ import annotations

import json
import re
from typing import Any

DEEPEST = 100
"""Levels kept; what lies below becomes null. Nothing that the bot reads lies below ten."""

_PARTS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]|[^"\[\]{}]+')


def loads(text: str | bytes) -> Any:
    """Decode JSON, however deep.

    Raises:
        ValueError: it is none.
    """
    try:
        return json.loads(text)
    except RecursionError:
        return json.loads(shallow(text.encode() if isinstance(text, str) else text))


def shallow(raw: bytes) -> bytes:
    """The same JSON with null for what is nested too deep; what is none stays none."""
    kept: list[bytes] = []
    level = 0
    for part in _PARTS.findall(raw):
        opens = part in b"[{"
        level -= part in b"]}"
        if level < DEEPEST or (level == DEEPEST and part not in b"[]{}"):
            kept.append(part)
        elif level == DEEPEST and opens:
            kept.append(b"null")
        level += opens
    return b"".join(kept)
