"""What `gputest-bot doctor` says: one line a thing that a run needs, and what to do where it is not as it should be.

One function a sentence; its name says when.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bot.core.nightly import NightlyView
from bot.core.registration import Plan, Wanted
from bot.core.render.post import MAX_MESSAGE
from bot.core.render.setup import PLACE, entry, owned
from bot.core.rights import Access
from bot.core.schedule import zone


class Mark(StrEnum):
    """How a thing is; only MISSING keeps a run from being started, followed and reported."""

    FINE = "✅"
    WORSE = "⚠️"
    MISSING = "❌"
    NOTE = "💡"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    mark: Mark
    what: str
    found: str
    todo: str = ""

    def __str__(self) -> str:
        return f"{self.mark} {self.what}: {self.found}" + (f" → {self.todo}" if self.todo else "")


def report(findings: Sequence[Finding]) -> str:
    """All lines, and the sum of them."""
    missing = sum(f.mark is Mark.MISSING for f in findings)
    if missing:
        end = f"{missing} {'thing is' if missing == 1 else 'things are'} missing that a run needs."
    else:
        end = "Nothing is missing that a run needs."
    return "\n".join([*map(str, findings), end])


def healthy(findings: Iterable[Finding]) -> bool:
    """Whether runs can be started, followed and reported."""
    return all(f.mark is not Mark.MISSING for f in findings)


# the chat


def no_token() -> Finding:
    return Finding(
        Mark.MISSING, "token", "none is given", "set GPUTEST_MATTERMOST_TOKEN, or GPUTEST_MATTERMOST_TOKEN_FILE"
    )


def chat_unreachable(url: str, reason: str) -> Finding:
    return Finding(Mark.MISSING, "Mattermost", f"{url} does not answer as it should: {reason}", "see mattermost.url")


def token_refused(reason: str) -> Finding:
    todo = "give the bot's account a new access token, and put it into GPUTEST_MATTERMOST_TOKEN"
    return Finding(Mark.MISSING, "token", f"it is not taken: {reason}", todo)


def account(name: str, *, is_bot: bool) -> Finding:
    if is_bot:
        return Finding(Mark.FINE, "token", f"it is taken; the bot is @{name}")
    todo = "make a bot account: a person's token ends with the person"
    return Finding(Mark.WORSE, "token", f"it is taken; @{name} is a person's account", todo)


def line_stands() -> Finding:
    return Finding(Mark.FINE, "websocket", "events come in")


def line_broken(reason: str, *, only_way: bool) -> Finding:
    """`only_way`: there are no slash commands either."""
    todo = "let proxies in between pass /api/v4/websocket; until then commands as posts are not heard"
    return Finding(Mark.MISSING if only_way else Mark.WORSE, "websocket", reason, todo)


def team(name: str) -> Finding:
    return Finding(Mark.FINE, "team", f"{name}; the bot is a member")


def team_missing(name: str, bot: str) -> Finding:
    todo = f"write its name as in the address of a channel (mattermost.team), and add @{bot} to it"
    return Finding(Mark.MISSING, "team", f"the bot sees no team {name}", todo)


def not_in_team(name: str, bot: str) -> Finding:
    return Finding(Mark.MISSING, "team", f"{name}; the bot is no member", f"add @{bot} to the team")


def channel(name: str) -> Finding:
    return Finding(Mark.FINE, f"channel {name}", "the bot is a member and may post")


def channel_missing(name: str, bot: str) -> Finding:
    todo = f"see its name in config.yaml; where it is private, add @{bot} to it"
    return Finding(Mark.MISSING, f"channel {name}", "the bot sees no such channel", todo)


def channel_archived(name: str) -> Finding:
    return Finding(Mark.MISSING, f"channel {name}", "it is archived", "unarchive it, or name another in config.yaml")


def not_in_channel(name: str, bot: str) -> Finding:
    return Finding(Mark.MISSING, f"channel {name}", "the bot is no member", f"type `/invite @{bot}` in it")


def may_not_post(name: str) -> Finding:
    return Finding(
        Mark.MISSING,
        f"channel {name}",
        "the bot is a member and may not post",
        "give create_post to its role, or lift the channel's moderation",
    )


def rights_unknown(name: str) -> Finding:
    found = "the bot is a member; whether it may post can't be read"
    return Finding(Mark.NOTE, f"channel {name}", found, "look whether a card appears")


def edit_limit(text: str) -> Finding:
    """`PostEditTimeLimit`: seconds, -1 for ever; "" where the server does not say."""
    if not text or text == "-1":
        return Finding(Mark.FINE, "edits", "posts may be edited for ever")
    todo = "set PostEditTimeLimit to -1 (System Console → User Management → Permissions)"
    return Finding(
        Mark.MISSING, "edits", f"posts may be edited for {text} s only; a card would stand still after that", todo
    )


def post_size(text: str) -> Finding:
    """`MaxPostSize` in characters."""
    if not text.isdecimal():
        return Finding(Mark.NOTE, "post size", f"the server does not say; {MAX_MESSAGE} characters are assumed")
    if int(text) >= MAX_MESSAGE:
        return Finding(Mark.FINE, "post size", f"{text} characters")
    todo = "widen the column Posts.Message, as Mattermost's notes on upgrading say"
    return Finding(Mark.WORSE, "post size", f"{text} characters; long answers need {MAX_MESSAGE}", todo)


def unknown_user(name: str) -> Finding:
    return Finding(
        Mark.WORSE, f"user {name}", "config.yaml names them, and nobody is called so", "mend runs.owners or runs.roles"
    )


def slash_not_wanted(tokens: int) -> Finding:
    given = f"{tokens} tokens are given for those made by hand" if tokens else "none is expected"
    return Finding(
        Mark.NOTE,
        "slash commands",
        f"mattermost.commands_url is empty, so the bot registers none; {given}",
        "write the address of its /commands there to have them; posts to the bot work without",
    )


def slash_disabled(reason: str) -> Finding:
    todo = "switch EnableCommands on; posts to the bot work without"
    return Finding(Mark.WORSE, "slash commands", f"the server takes none: {reason}", todo)


def slash_seen(wishes: Sequence[Wanted], seen: Plan, owners: dict[str, str]) -> list[Finding]:
    """Where the bot may look at them: one line each."""
    findings = []
    for wish in wishes:
        what = f"/{wish.trigger}"
        other = next((one for one in seen.taken if one.wanted.trigger == wish.trigger), None)
        if other is not None:
            whose = owned(other, owners.get(other.creator_id, ""), wish.url)
            findings.append(Finding(Mark.WORSE, what, whose))
        elif wish in seen.create:
            findings.append(Finding(Mark.NOTE, what, "it is not there yet", "the bot makes it when it starts"))
        elif any(should == wish for _, should in seen.correct):
            findings.append(Finding(Mark.NOTE, what, "it is out of date", "the bot corrects it when it starts"))
        else:
            findings.append(Finding(Mark.FINE, what, f"leads to {wish.url}"))
    return findings


def slash_unseen(wishes: Sequence[Wanted], offered: Sequence[str], tokens: int) -> list[Finding]:
    """Where the bot may not look at them: what an administrator has to enter."""
    findings = []
    for wish in wishes:
        what = f"/{wish.trigger}"
        if wish.trigger not in offered:
            todo = f"an administrator of the team adds it under {PLACE}:{entry(wish).removeprefix(' ')}"
            findings.append(Finding(Mark.WORSE, what, "it is not there, and the bot may not make it", todo))
        elif not tokens:
            todo = "put its token into GPUTEST_COMMAND_TOKENS"
            findings.append(Finding(Mark.WORSE, what, "it is there, and the bot knows no token of it", todo))
        else:
            found = f"it is there; that it leads to {wish.url} can't be read without the right to manage them"
            findings.append(Finding(Mark.NOTE, what, found))
    return findings


def internal_address(host: str) -> Finding:
    """Whether Mattermost may call the bot is in its own configuration, and only an administrator can read that."""
    return Finding(
        Mark.NOTE,
        "way back",
        f"whether Mattermost may call {host} can't be read",
        f"type `/gputest help`; if it fails and Mattermost's log says 'address forbidden', put {host} into"
        " AllowedUntrustedInternalConnections (System Console → Environment → Developer)",
    )


# the cluster


def cluster(version: str) -> Finding:
    return Finding(Mark.FINE, "Kubernetes", version)


def cluster_unreachable(reason: str) -> Finding:
    todo = "see kubernetes.kubeconfig, or run in the cluster under the service account of deploy/bot"
    return Finding(Mark.MISSING, "Kubernetes", reason, todo)


def access(right: Access, denied: Sequence[str]) -> Finding:
    """What the account may do with one kind of object."""
    name = f" {right.name}" if right.name else ""
    what = f"{right.resource}{name} in {right.namespace}"
    if not denied:
        return Finding(Mark.FINE, what, ", ".join(right.verbs))
    mark = Mark.WORSE if right.optional else Mark.MISSING
    return Finding(mark, what, f"{', '.join(denied)} not allowed, needed for {right.use}", f"apply {right.file}")


def access_unknown(right: Access, reason: str) -> Finding:
    return Finding(Mark.WORSE, f"{right.resource} in {right.namespace}", f"the rights can't be read: {reason}")


def template(name: str, lacking: Sequence[str], unset: Sequence[str]) -> Finding:
    """`lacking`: parameters that we set and it does not have. `unset`: its own, which nobody gives a value."""
    what = f"WorkflowTemplate {name}"
    if lacking:
        todo = "apply deploy/argo, or name its parameters in runs.parameters"
        return Finding(Mark.MISSING, what, f"it has no parameter {', '.join(lacking)}", todo)
    if unset:
        todo = "give them a value in the template"
        return Finding(Mark.MISSING, what, f"nobody sets its parameter {', '.join(unset)}", todo)
    return Finding(Mark.FINE, what, "it takes all that the bot sends")


def template_missing(name: str, namespace: str) -> Finding:
    todo = "apply deploy/argo, or name another in runs.template"
    return Finding(Mark.MISSING, f"WorkflowTemplate {name}", f"there is none in {namespace}", todo)


def unread(what: str, reason: str) -> Finding:
    return Finding(Mark.WORSE, what, f"it can't be read: {reason}")


def cron_missing(name: str, namespace: str) -> Finding:
    todo = "apply deploy/argo, or name another in runs.cron; runs work without"
    return Finding(Mark.WORSE, f"CronWorkflow {name}", f"there is none in {namespace}", todo)


def cron(view: NightlyView, coming: datetime | None) -> Finding:
    what = f"CronWorkflow {view.name}"
    shown = ", ".join(view.schedules)
    if not view.schedules:
        return Finding(Mark.WORSE, what, "it has no schedule", "give it one in spec.schedules")
    if view.strange_zone:
        return Finding(Mark.WORSE, what, f"there is no time zone {view.timezone}, so Argo starts nothing", "name one")
    if view.in_both_fields:
        return Finding(Mark.WORSE, what, "Argo up to 3.7 starts nothing by both fields", "keep spec.schedules alone")
    if view.never:
        return Finding(Mark.WORSE, what, f"the day of {', '.join(view.never)} never comes", "name another day")
    if view.unreadable:
        todo = "write five fields, with weekdays from 0 (Sunday) to 6"
        return Finding(Mark.WORSE, what, f"Argo starts nothing by its schedule {', '.join(view.unreadable)}", todo)
    where = view.timezone or "UTC, assumed"
    following = f", next {coming.astimezone(zone(view.timezone)):%a %-d %b %H:%M}" if coming else ""
    return Finding(Mark.FINE, what, f"{shown} ({where}){following}; it is {'on' if view.enabled else 'off'}")


def lease(holder: str, seconds: float | None) -> Finding:
    """`seconds` since the holder renewed it."""
    if not holder:
        return Finding(Mark.NOTE, "Lease", "nobody holds it", "start the bot")
    if seconds is None or seconds > 60:
        since = "at a time that can't be read" if seconds is None else f"{seconds:.0f} s ago"
        return Finding(Mark.NOTE, "Lease", f"{holder} held it and renewed it last {since}", "start the bot")
    return Finding(Mark.FINE, "Lease", f"{holder} holds it")
