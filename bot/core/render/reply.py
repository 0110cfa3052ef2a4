"""An answer as everybody in a channel reads it: in the thread of the post that asked.

Slash commands need Mattermost to reach us, posts do not. So what is offered for copying is written as a post, which
works wherever this answer does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from bot.core.commands.gputest import SPEC
from bot.core.render.escape import ZERO_WIDTH
from bot.core.render.post import fit

_CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)


def in_thread(text: str, bot: str, triggers: Iterable[str]) -> str:
    """The text of a reply that rings for nobody. `bot`: our user name, for lines to copy."""
    parts = _CODE.split(text or started_here())
    for index, part in enumerate(parts):
        if index % 2:
            parts[index] = _as_post(part, bot, triggers)
        else:
            parts[index] = re.sub(f"@(?!{ZERO_WIDTH})", "@" + ZERO_WIDTH, part)
    return fit("".join(parts).split("\n"))


def _as_post(span: str, bot: str, triggers: Iterable[str]) -> str:
    for trigger in triggers:
        line = f"@{bot}" if trigger == SPEC.trigger else f"@{bot} {trigger}"
        span = re.sub(rf"^`/{re.escape(trigger)}(?=[ `])", f"`{line}", span)
    return span


def started_here() -> str:
    """For a run whose card is in the same channel, and says the rest."""
    return "🕓 It is started; its card is in this channel."
