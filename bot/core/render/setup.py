"""What an administrator has to do about slash commands, in the words of Mattermost's own pages."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.registration import Registered, Wanted

PLACE = "Integrations → Slash Commands"


def by_hand(wanted: Sequence[Wanted], reason: str = "") -> str:
    """What to enter, where the bot may not do it itself."""
    why = f" ({reason})" if reason else ""
    lines = [f"the bot may not manage slash commands{why}. An administrator of the team adds them under {PLACE}:"]
    lines += [entry(wish) for wish in wanted]
    lines.append(
        "and puts their tokens into the secret GPUTEST_COMMAND_TOKENS; or makes the bot's account an administrator"
        " of the team, and it does all of this itself. Without them everything works as a post to the bot."
    )
    return "\n".join(lines)


def entry(wish: Wanted) -> str:
    """One command, as the form asks for it."""
    return (
        f"  trigger word {wish.trigger} · request URL {wish.url} · method POST · autocomplete on,"
        f" hint {wish.hint} · description {wish.description}"
    )


def taken(other: Registered, owner: str, wanted: Sequence[Wanted]) -> str:
    """A trigger that leads elsewhere."""
    url = next((wish.url for wish in wanted if wish.trigger == other.wanted.trigger), "")
    return f"/{other.wanted.trigger} {owned(other, owner, url)}"


def owned(other: Registered, owner: str, url: str) -> str:
    """Whose it is, and what they would have to change."""
    return (
        f"belongs to {owner or 'somebody who is gone'} and leads to {other.wanted.url}."
        f" It is left as it is; for the bot to answer it, {owner or 'an administrator'} points it to {url}."
    )
