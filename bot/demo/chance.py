"""Seeded dice: everything that looks random in the embedded world comes from here, so a seed repeats a night
exactly.
"""

from __future__ import annotations

import random
import uuid

NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""What the Kubernetes API server takes for the five characters behind a generateName."""
ID_ALPHABET = "ybndrfg8ejkmcpqxot1uwisza345h769"
"""Mattermost's base32: an id is 26 of these."""


class Chance:
    """Streams of random numbers, each independent of how often the others are used."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._names = self.stream("names")
        self._uids = self.stream("uids")
        self._ids = self.stream("ids")

    def stream(self, name: str) -> random.Random:
        """A generator that depends on the seed and the name alone."""
        return random.Random(f"{self.seed}/{name}")

    def suffix(self) -> str:
        """The end of a generated name."""
        return "".join(self._names.choices(NAME_ALPHABET, k=5))

    def uid(self) -> str:
        """A uid of an object."""
        return str(uuid.UUID(int=self._uids.getrandbits(128), version=4))

    def mattermost_id(self) -> str:
        """An id of Mattermost: 26 characters."""
        return "".join(self._ids.choices(ID_ALPHABET, k=26))
