"""The shape of a post, apart from its wording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

GREY, AMBER, BLUE, RED, GREEN, PURPLE = "#8a8f98", "#d99a00", "#2f6fde", "#c9372c", "#2e8540", "#7b4bb7"

MAX_MESSAGE = 16383
"""Longest message in characters: a quarter of the column on PostgreSQL (post_store.go)."""


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
