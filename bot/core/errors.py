"""Two kinds of failure: what a person can mend, and everything else."""

from __future__ import annotations


class UserError(Exception):
    """Bad input. Its text goes to the person who typed it, already safe for the chat.

    `suggestion` is a line that the person can copy and send instead; empty where there is none.
    """

    def __init__(self, text: str, suggestion: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.suggestion = suggestion
