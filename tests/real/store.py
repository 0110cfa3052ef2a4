"""What Mattermost has stored, read in its own database: nobody is asked, neither the bot nor the server."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """A post as the table has it."""

    id: str
    root: str
    channel: str
    created: int
    deleted: int
    message: str
    props: dict[str, Any]

    @property
    def card(self) -> str:
        """`uid:gen` of a card, else nothing."""
        return str(self.props.get("gputest_card", ""))

    @property
    def reply(self) -> str:
        """`uid:attempt:part` of a reply, else nothing."""
        return str(self.props.get("gputest_reply", ""))

    @property
    def text(self) -> str:
        """Message and attachment."""
        return "\n".join([self.message, *(a.get("text", "") for a in self.props.get("attachments") or [])])


@dataclass(frozen=True)
class Said:
    """What stands in the chat about one run, and what stood there once."""

    rows: tuple[Row, ...]

    @property
    def cards(self) -> list[Row]:
        return [row for row in self.rows if row.card and not row.deleted]

    @property
    def replies(self) -> list[Row]:
        return [row for row in self.rows if row.reply and not row.deleted]

    @property
    def notices(self) -> list[Row]:
        return [row for row in self.replies if row.reply.endswith(":notice")]

    @property
    def deleted(self) -> list[Row]:
        return [row for row in self.rows if row.deleted]

    @property
    def doubles(self) -> list[str]:
        """Keys of what stands there more than once; of the cards of a run only one may stand."""
        keys = Counter([row.card.split(":")[0] for row in self.cards] + [row.reply for row in self.replies])
        return [key for key, number in keys.items() if number > 1]

    def __str__(self) -> str:
        return "\n".join(
            f"{'deleted ' if row.deleted else ''}{row.card or row.reply}: {row.message!r}" for row in self.rows
        )


class Store:
    """The table of posts."""

    def __init__(self, database: str, bot: str) -> None:
        self._database = database
        self._bot = bot

    async def about(self, uid: str) -> Said:
        """All that the bot ever posted about a run."""
        rows = await self.rows(
            f"(props->>'gputest_card' LIKE '{_plain(uid)}:%' OR props->>'gputest_reply' LIKE '{_plain(uid)}:%')"
        )
        return Said(tuple(rows))

    async def rows(self, condition: str) -> list[Row]:
        """The bot's posts for which a condition holds, deleted ones too, oldest first."""
        query = (
            "SELECT coalesce(json_agg(found), '[]') FROM (SELECT id, rootid AS root, channelid AS channel,"
            " createat AS created, deleteat AS deleted, message, props FROM posts"
            f" WHERE userid = '{_plain(self._bot)}' AND originalid = '' AND {condition} ORDER BY createat, id) found"
        )
        return [Row(**row) for row in json.loads(await self._ask(query))]

    async def _ask(self, query: str) -> str:
        psql = await asyncio.create_subprocess_exec(
            *("psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--dbname", self._database),
            *("--command", query),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await psql.communicate()
        if psql.returncode != 0:
            raise RuntimeError(f"the store could not be read: {errors.decode(errors='replace')}")
        return output.decode()


def _plain(word: str) -> str:
    """A word that means nothing to SQL."""
    if not word.replace("-", "").isalnum():
        raise ValueError(f"not an id: {word!r}")
    return word
