"""What the check-up says, sentence by sentence."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.core.nightly import NightlyView
from bot.core.registration import Plan, Registered, Wanted
from bot.core.render import doctor as say
from bot.core.render.doctor import Finding, Mark, healthy, report
from bot.core.rights import Access

NIGHTLY = NightlyView(
    name="gpu-test-nightly",
    enabled=True,
    schedules=("0 2 * * *",),
    timezone="Europe/Paris",
    upcoming=None,
    stopped=False,
    failures=0,
    running=(),
    switched=None,
    complaint="",
)
COMING = datetime(2026, 3, 3, 1, 0, tzinfo=UTC)
RIGHT = Access("", "configmaps", ("get", "patch"), "gputest", "what is kept over a restart", "gputest-bot")
URL = "http://bot:8080/commands"
WISH = Wanted("gputest", URL, "[models]", "starts GPU tests", "GPU tests: gputest")
THEIRS = Registered("id", "olga-id", 1, "P", "T", True, replace(WISH, url="http://other/"))


@pytest.mark.parametrize(
    ("finding", "line"),
    [
        (
            say.no_token(),
            "❌ token: none is given → set GPUTEST_MATTERMOST_TOKEN, or GPUTEST_MATTERMOST_TOKEN_FILE",
        ),
        (
            say.chat_unreachable("http://chat", "no route"),
            "❌ Mattermost: http://chat does not answer as it should: no route → see mattermost.url",
        ),
        (
            say.token_refused("401"),
            (
                "❌ token: it is not taken: 401 → give the bot's account a new access token,"
                " and put it into GPUTEST_MATTERMOST_TOKEN"
            ),
        ),
        (say.account("gputest", is_bot=True), "✅ token: it is taken; the bot is @gputest"),
        (
            say.account("olga", is_bot=False),
            "⚠️ token: it is taken; @olga is a person's account → make a bot account: a person's token ends with the person",
        ),
        (say.line_stands(), "✅ websocket: events come in"),
        (
            say.line_broken("answered 400", only_way=False),
            (
                "⚠️ websocket: answered 400 → let proxies in between pass /api/v4/websocket;"
                " until then commands as posts are not heard"
            ),
        ),
        (
            say.line_broken("answered 400", only_way=True),
            (
                "❌ websocket: answered 400 → let proxies in between pass /api/v4/websocket;"
                " until then commands as posts are not heard"
            ),
        ),
        (say.team("ml"), "✅ team: ml; the bot is a member"),
        (
            say.team_missing("ml", "gputest"),
            (
                "❌ team: the bot sees no team ml → write its name as in the address of a channel (mattermost.team),"
                " and add @gputest to it"
            ),
        ),
        (say.not_in_team("ml", "gputest"), "❌ team: ml; the bot is no member → add @gputest to the team"),
        (say.channel("gpu-tests"), "✅ channel gpu-tests: the bot is a member and may post"),
        (
            say.channel_missing("x", "gputest"),
            (
                "❌ channel x: the bot sees no such channel → see its name in config.yaml;"
                " where it is private, add @gputest to it"
            ),
        ),
        (
            say.channel_archived("x"),
            "❌ channel x: it is archived → unarchive it, or name another in config.yaml",
        ),
        (
            say.not_in_channel("x", "gputest"),
            "❌ channel x: the bot is no member → type `/invite @gputest` in it",
        ),
        (
            say.may_not_post("x"),
            (
                "❌ channel x: the bot is a member and may not post → give create_post to its role,"
                " or lift the channel's moderation"
            ),
        ),
        (
            say.rights_unknown("x"),
            "💡 channel x: the bot is a member; whether it may post can't be read → look whether a card appears",
        ),
        (say.edit_limit("-1"), "✅ edits: posts may be edited for ever"),
        (say.edit_limit(""), "✅ edits: posts may be edited for ever"),
        (
            say.edit_limit("300"),
            (
                "❌ edits: posts may be edited for 300 s only; a card would stand still after that → set PostEditTimeLimit"
                " to -1 (System Console → User Management → Permissions)"
            ),
        ),
        (say.post_size("16383"), "✅ post size: 16383 characters"),
        (say.post_size(""), "💡 post size: the server does not say; 16383 characters are assumed"),
        (
            say.post_size("4000"),
            (
                "⚠️ post size: 4000 characters; long answers need 16383 → widen the column Posts.Message,"
                " as Mattermost's notes on upgrading say"
            ),
        ),
        (
            say.unknown_user("olga"),
            "⚠️ user olga: config.yaml names them, and nobody is called so → mend runs.owners or runs.roles",
        ),
        (
            say.slash_not_wanted(0),
            (
                "💡 slash commands: mattermost.commands_url is empty, so the bot registers none; none is expected"
                " → write the address of its /commands there to have them; posts to the bot work without"
            ),
        ),
        (
            say.slash_not_wanted(2),
            (
                "💡 slash commands: mattermost.commands_url is empty, so the bot registers none; 2 tokens are given for those"
                " made by hand → write the address of its /commands there to have them; posts to the bot work without"
            ),
        ),
        (
            say.slash_disabled("501"),
            "⚠️ slash commands: the server takes none: 501 → switch EnableCommands on; posts to the bot work without",
        ),
        (
            say.internal_address("bot:8080"),
            (
                "💡 way back: whether Mattermost may call bot:8080 can't be read → type `/gputest help`; if it fails and"
                " Mattermost's log says 'address forbidden', put bot:8080 into AllowedUntrustedInternalConnections"
                " (System Console → Environment → Developer)"
            ),
        ),
        (say.cluster("v1.33.0"), "✅ Kubernetes: v1.33.0"),
        (
            say.cluster_unreachable("no route"),
            (
                "❌ Kubernetes: no route → see kubernetes.kubeconfig, or run in the cluster under the service account"
                " of deploy/bot"
            ),
        ),
        (say.access(RIGHT, []), "✅ configmaps gputest-bot in gputest: get, patch"),
        (
            say.access(RIGHT, ["patch"]),
            (
                "❌ configmaps gputest-bot in gputest: patch not allowed, needed for what is kept over a restart"
                " → apply deploy/bot/rbac.yaml"
            ),
        ),
        (
            say.access(replace(RIGHT, name="", optional=True), ["get"]),
            (
                "⚠️ configmaps in gputest: get not allowed, needed for what is kept over a restart"
                " → apply deploy/bot/rbac.yaml"
            ),
        ),
        (
            say.access_unknown(RIGHT, "503"),
            "⚠️ configmaps in gputest: the rights can't be read: 503",
        ),
        (say.template("t", [], []), "✅ WorkflowTemplate t: it takes all that the bot sends"),
        (
            say.template("t", ["models", "epochs"], ["x"]),
            (
                "❌ WorkflowTemplate t: it has no parameter models, epochs → apply deploy/argo,"
                " or name its parameters in runs.parameters"
            ),
        ),
        (
            say.template("t", [], ["x"]),
            "❌ WorkflowTemplate t: nobody sets its parameter x → give them a value in the template",
        ),
        (
            say.template_missing("t", "foxhunt"),
            "❌ WorkflowTemplate t: there is none in foxhunt → apply deploy/argo, or name another in runs.template",
        ),
        (say.unread("Lease", "403"), "⚠️ Lease: it can't be read: 403"),
        (
            say.cron_missing("c", "foxhunt"),
            (
                "⚠️ CronWorkflow c: there is none in foxhunt → apply deploy/argo, or name another in runs.cron;"
                " runs work without"
            ),
        ),
        (
            say.cron(NIGHTLY, COMING),
            "✅ CronWorkflow gpu-test-nightly: 0 2 * * * (Europe/Paris), next Tue 3 Mar 02:00; it is on",
        ),
        (
            say.cron(replace(NIGHTLY, timezone="", enabled=False), COMING),
            "✅ CronWorkflow gpu-test-nightly: 0 2 * * * (UTC, assumed), next Tue 3 Mar 01:00; it is off",
        ),
        (
            say.cron(replace(NIGHTLY, schedules=("soon", "0 2 * * *"), unreadable=("soon",)), COMING),
            (
                "⚠️ CronWorkflow gpu-test-nightly: Argo starts nothing by its schedule soon → write five fields,"
                " with weekdays from 0 (Sunday) to 6"
            ),
        ),
        (
            say.cron(replace(NIGHTLY, timezone="Mars/Olympus", strange_zone=True), None),
            "⚠️ CronWorkflow gpu-test-nightly: there is no time zone Mars/Olympus, so Argo starts nothing → name one",
        ),
        (
            say.cron(replace(NIGHTLY, in_both_fields=True), None),
            "⚠️ CronWorkflow gpu-test-nightly: Argo up to 3.7 starts nothing by both fields → keep spec.schedules alone",
        ),
        (
            say.cron(replace(NIGHTLY, never=("0 2 31 2 *",)), None),
            "⚠️ CronWorkflow gpu-test-nightly: the day of 0 2 31 2 * never comes → name another day",
        ),
        (
            say.cron(replace(NIGHTLY, schedules=("@every 1h",)), None),
            "✅ CronWorkflow gpu-test-nightly: @every 1h (Europe/Paris); it is on",
        ),
        (
            say.cron(replace(NIGHTLY, schedules=()), None),
            "⚠️ CronWorkflow gpu-test-nightly: it has no schedule → give it one in spec.schedules",
        ),
        (say.lease("pod-1", 4.0), "✅ Lease: pod-1 holds it"),
        (say.lease("", None), "💡 Lease: nobody holds it → start the bot"),
        (
            say.lease("pod-1", 90.4),
            "💡 Lease: pod-1 held it and renewed it last 90 s ago → start the bot",
        ),
        (
            say.lease("pod-1", None),
            "💡 Lease: pod-1 held it and renewed it last at a time that can't be read → start the bot",
        ),
    ],
)
def test_each_sentence(finding: Finding, line: str) -> None:
    """As people read it."""
    assert str(finding) == line


def test_slash_commands_that_can_be_looked_at() -> None:
    """There, not there, out of date, somebody else's."""
    other = replace(WISH, trigger="other")

    def said(seen: Plan, owners: dict[str, str] | None = None) -> list[str]:
        return [str(f) for f in say.slash_seen([other, WISH], seen, owners or {})]

    assert said(Plan()) == [f"✅ /other: leads to {URL}", f"✅ /gputest: leads to {URL}"]
    assert said(Plan(create=(WISH,)))[1] == "💡 /gputest: it is not there yet → the bot makes it when it starts"
    assert said(Plan(correct=(("id", WISH),)))[1] == (
        "💡 /gputest: it is out of date → the bot corrects it when it starts"
    )
    assert said(Plan(taken=(THEIRS,)), {"olga-id": "olga"})[1] == (
        "⚠️ /gputest: belongs to olga and leads to http://other/. It is left as it is; for the bot to answer it,"
        f" olga points it to {URL}."
    )
    assert "somebody who is gone" in said(Plan(taken=(THEIRS,)))[1]


def test_slash_commands_that_cannot_be_looked_at() -> None:
    """What an administrator has to enter."""

    def said(offered: list[str], tokens: int) -> list[str]:
        return [str(f) for f in say.slash_unseen([WISH], offered, tokens)]

    assert said([], 0) == [
        (
            "⚠️ /gputest: it is not there, and the bot may not make it → an administrator of the team adds it under"
            f" Integrations → Slash Commands: trigger word gputest · request URL {URL} · method POST · autocomplete on,"
            " hint [models] · description starts GPU tests"
        )
    ]
    assert said(["gputest"], 0) == [
        "⚠️ /gputest: it is there, and the bot knows no token of it → put its token into GPUTEST_COMMAND_TOKENS"
    ]
    assert said(["gputest"], 1) == [
        f"💡 /gputest: it is there; that it leads to {URL} can't be read without the right to manage them"
    ]


def test_the_sum() -> None:
    """Only what a run needs makes the bot unfit; the rest is advice."""
    fine, bad = Finding(Mark.WORSE, "a", "b", "c"), Finding(Mark.MISSING, "d", "e")

    assert report([fine]) == "⚠️ a: b → c\nNothing is missing that a run needs."
    assert report([fine, bad]) == "⚠️ a: b → c\n❌ d: e\n1 thing is missing that a run needs."
    assert report([bad, bad]).endswith("2 things are missing that a run needs.")
    assert healthy([fine])
    assert not healthy([fine, bad])
