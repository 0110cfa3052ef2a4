"""The shape of a post, apart from its wording."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

GREY, AMBER, BLUE, RED, GREEN, PURPLE = "#8a8f98", "#d99a00", "#2f6fde", "#c9372c", "#2e8540", "#7b4bb7"

MAX_MESSAGE = 16383
"""Longest message in characters: a quarter of the column on PostgreSQL (post_store.go)."""


def fit(lines: Iterable[str], limit: int = MAX_MESSAGE) -> str:
    """The lines that fit into a message, each whole: a code span that is cut open lets out what it holds."""
    every = list(lines)
    whole = "\n".join(every)
    if len(whole) <= limit:
        return whole
    kept = sum(1 for end in accumulate(len(line) + 1 for line in every) if end < limit)
    text = "".join(f"{line}\n" for line in every[:kept])
    room = limit - len(text) - 1
    return text + ("" if "`" in every[kept] else every[kept][:room]) + "…"


def apart(lines: Iterable[str]) -> list[str]:
    """The lines with an empty one after each list: Markdown takes a line right after a list for its last point's.

    Not so a block of code, and not so an empty line.
    """
    parted: list[str] = []
    for line in lines:
        if parted and _is_point(parted[-1]) and line and not _is_point(line) and not line.startswith("```"):
            parted.append("")
        parted.append(line)
    return parted


def _is_point(line: str) -> bool:
    return line.lstrip(" ").startswith("- ")


@dataclass(frozen=True)
class Post:
    """A message and at most one attachment below it."""

    message: str
    text: str = ""
    color: str = ""

    def attachments(self, actions: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
        """As Mattermost takes them in `props.attachments`. `fallback` is what a notification shows."""
        if not self.text:
            return []
        attachment = {"color": self.color, "text": self.text, "fallback": self.message}
        return [attachment | ({"actions": actions} if actions else {})]
