"""Slash commands that register themselves, and the tokens that they come with.

The holder of the Lease makes and corrects them; every replica reads them, for each of them answers. So that two holders
who do not know of each other (a Lease lost in mid-work) do no lasting harm, a double of our own is removed when seen.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

from bot.clients.errors import Forbidden, Invalid, NotFound, WireError
from bot.clients.mattermost_commands import CommandRegister
from bot.clients.mattermost_rooms import Rooms
from bot.core.registration import Plan, Wanted, plan
from bot.core.render import setup

LOOK_SECONDS = 10.0
"""Least distance of two looks for a token that is not known."""

TAKEN = "api.command.duplicate_trigger.app_error"
"""Error of a trigger that is there already."""

RETRY_FIRST, RETRY_LONGEST = 1.0, 60.0
"""Seconds until a registration that failed is tried again; each wait is twice the one before."""


class SlashCommands:
    """Our commands in one team. With no `wanted`, nothing is registered and nothing is learned."""

    def __init__(self, register: CommandRegister, rooms: Rooms, wanted: tuple[Wanted, ...], me: str, log: Any) -> None:
        self._register = register
        self._rooms = rooms
        self._wanted = wanted
        self._me = me
        self.tokens: tuple[str, ...] = ()
        """The tokens of all commands that lead to us, as far as we were told."""
        self._log = log
        self._looked_at = float("-inf")

    async def register(self, may: Callable[[], bool]) -> None:
        """Make them as they should be, and learn their tokens. `may` is the Lease. Tries until it works or can't."""
        failures = 0
        while self._wanted and may():
            try:
                await self._register_once(may)
            except (Forbidden, Invalid) as error:
                # no right, or no custom commands at all: a person has to do it
                self._log.warning(setup.by_hand(self._wanted, error.reason))
                return
            except WireError as error:
                failures += 1
                self._log.warning("could not register the slash commands yet", reason=error.reason)
                longest = min(RETRY_LONGEST, RETRY_FIRST * 2 ** min(failures - 1, 10))
                await asyncio.sleep(error.retry_after or random.uniform(longest / 2, longest))
            else:
                return

    async def _register_once(self, may: Callable[[], bool]) -> None:
        todo = await self._look()
        for wish in todo.create:
            if may():
                await self._create(wish)
        for identity, wish in todo.correct:
            if may():
                await self._register.correct(identity, wish)
                self._log.info("slash command corrected", trigger=wish.trigger, url=wish.url)
        for identity in todo.remove:
            if may():
                await self._register.remove(identity)
                self._log.warning("double of a slash command of ours removed", command=identity)
        if not todo.settled:
            todo = await self._look()
        for other in todo.taken:
            self._log.warning(setup.taken(other, await self._name(other.creator_id), self._wanted))

    async def _create(self, wish: Wanted) -> None:
        try:
            await self._register.create(wish)
        except Invalid as error:
            if error.code != TAKEN:
                raise
            self._log.info("somebody else has just made the slash command", trigger=wish.trigger)
        else:
            self._log.info("slash command made", trigger=wish.trigger, url=wish.url)

    async def _name(self, user: str) -> str:
        try:
            return (await self._rooms.account(user)).name
        except NotFound:
            return ""

    async def learn(self) -> None:
        """Look for tokens that we do not know yet, not too often: a replica's start, or a token made anew."""
        now = time.monotonic()
        if not self._wanted or now < self._looked_at + LOOK_SECONDS:
            return
        self._looked_at = now
        try:
            await self._look()
        except WireError as error:
            self._log.info("the tokens of the slash commands can't be read", reason=error.reason)

    async def _look(self) -> Plan:
        seen = plan(self._wanted, await self._register.listed(), self._me)
        self.tokens = seen.tokens
        return seen
