"""Mattermost: commands and webhooks in detail: what is sent, what an answer may be, who sees what of them."""

from __future__ import annotations

import pytest

from tests.contract.talk import Talk
from tests.contract.wire import Answer, Integration, Wire

NOBODY = "x" * 26


async def test_a_wide_space_behind_the_trigger(talk: Talk, service: Integration) -> None:
    """The server takes one byte for it: what is left of a no-break space comes along, and is no text."""
    command = await talk.command(f"{service.url}/commands")
    await talk.type(f"/{command['trigger']}\u00a0models=all")
    await talk.type(f"/{command['trigger']}\u3000models=all")

    assert [call.form["text"] for call in service.calls] == ["\ufffdmodels=all", "\ufffd\ufffdmodels=all"]


async def test_the_fields_are_in_order(talk: Talk, service: Integration) -> None:
    """By their names, as the form is written."""
    command = await talk.command(f"{service.url}/commands")
    await talk.type(f"/{command['trigger']} @anna ~gpu-tests")

    names = [key for key, _ in service.last.pairs]
    assert names == sorted(names)
    assert {"user_mentions", "channel_mentions_ids"} <= set(names)


async def test_commands_in_a_direct_message(talk: Talk, service: Integration) -> None:
    """The client names the team; without one, or with one that one is not in, it is 403."""
    command = await talk.command(f"{service.url}/commands")
    pair = [talk.anna.user_id, talk.account.user_id]
    channel = (await talk.as_anna.post("/channels/direct", pair)).body["id"]
    done = await talk.type(f"/{command['trigger']} x", channel_id=channel)
    refused = [await talk.type(f"/{command['trigger']} x", channel_id=channel, team_id=team) for team in ("", NOBODY)]

    assert done.status == 200
    assert (service.last.form["team_id"], service.last.form["channel_id"]) == (talk.team, channel)
    assert [answer.error for answer in refused] == [(403, "api.context.permissions.app_error")] * 2


@pytest.mark.parametrize(
    "answer",
    ["5", "[1]", "{} and more", {"text": 5}, {"props": "x"}, {"attachments": "x"}, {"attachments": [{"text": 5}]}],
    ids=str,
)
async def test_answers_of_another_kind(talk: Talk, service: Integration, answer: object) -> None:
    """500, as if the integration had failed."""
    command = await talk.command(f"{service.url}/commands")
    service.answer = answer
    typed = await talk.type(f"/{command['trigger']}")

    assert typed.error == (500, "api.command.execute_command.failed.app_error")


async def test_an_answer_as_the_client_gets_it(talk: Talk, service: Integration) -> None:
    """All of its fields, and no others; attachments are filled up, and the values of their fields are texts."""
    command = await talk.command(f"{service.url}/commands")
    attachment = {"text": "x", "fields": [{"title": "n", "value": 5}, None]}
    service.answer = {"attachments": [attachment], "extra_responses": [{"text": "more"}], "unknown": 1}
    answer = (await talk.type(f"/{command['trigger']}")).body
    service.answer = "null"
    nothing = (await talk.type(f"/{command['trigger']}")).body

    texts = ("response_type", "text", "username", "channel_id", "icon_url", "type", "goto_location", "trigger_id")
    fields = {*texts, "props", "skip_slack_parsing", "attachments", "extra_responses"}
    assert answer.keys() == nothing.keys() == answer["extra_responses"][0].keys() == fields
    assert answer["attachments"][0]["fields"] == [{"title": "n", "value": "5", "short": False}]
    assert nothing["attachments"] is None


async def test_what_a_composer_suggests(talk: Talk, service: Integration) -> None:
    """The commands that begin so, with or without the slash; nothing once one is complete."""
    command = await talk.command(f"{service.url}/c", auto_complete=True, auto_complete_hint="[models]")
    path, trigger = f"/teams/{talk.team}/commands/autocomplete_suggestions", command["trigger"]

    async def suggested(typed: str) -> list[str]:
        found = (await talk.as_anna.get(path, user_input=typed)).body
        return [one["Complete"] for one in found]

    full = (await talk.as_anna.get(path, user_input=f"/{trigger}")).body
    shown = next(one for one in full if one["Complete"] == trigger)
    assert shown == {
        "Complete": trigger,
        "Suggestion": trigger,
        "Hint": "[models]",
        "Description": "",
        "IconData": "",
    }
    assert trigger in await suggested("/ca")
    assert trigger in await suggested("ca")
    assert trigger not in await suggested(f"/{trigger} ")
    nothing = await talk.as_anna.get(path, user_input="")
    assert nothing.error == (400, "api.context.invalid_body_param.app_error")


async def test_what_others_see_of_a_command(talk: Talk, service: Integration) -> None:
    """Those who may not manage it: 404 by its id, 403 for the list, which others than the team's own are without."""
    command = await talk.command(f"{service.url}/c")
    gone = (404, "store.sql_command.save.get.app_error")
    path = f"/commands/{command['id']}"

    assert [(await talk.as_anna(method, path)).error for method in ("GET", "DELETE")] == [gone, gone]
    assert (await talk.as_anna.put(f"{path}/regen_token")).error == gone
    assert (await talk.admin.get(f"/commands/{NOBODY}")).error == gone
    mismatch = await talk.as_anna.put(path, command | {"team_id": NOBODY})
    assert mismatch.error == (400, "api.command.team_mismatch.app_error")
    listed = await talk.as_anna.get("/commands", team_id=talk.team, custom_only="true")
    assert listed.error == (403, "api.context.permissions.app_error")
    assert (await talk.as_anna.get("/commands")).error == (400, "api.context.invalid_body_param.app_error")


async def test_webhooks_that_are_none(talk: Talk) -> None:
    """400 for what can't be read; to a user or a channel by name; links as Slack writes them are turned."""
    made = await talk.admin.post("/hooks/incoming", {"channel_id": talk.channel, "display_name": "ci"})
    wire = Wire(talk.admin.session, talk.admin.url.removesuffix("/api/v4"), "")

    async def send(body: object, kind: str = "application/json") -> Answer:
        return await wire("POST", f"/hooks/{made.body['id']}", body, kind=kind)

    unread = [(await send(b"{nonsense")).error, (await send({"text": 5})).error, (await send(b"x", "text/plain")).error]
    form = await send(b"payload=%7B%22text%22%3A%22form%22%7D", "application/x-www-form-urlencoded")
    linked = await send({"text": "<http://x|y> <!here>"})
    newest = await talk.channel_posts(per_page="1")
    direct = await send({"text": "psst", "channel": "@anna"})
    system = await send({"text": "x", "type": "system_x"})

    assert unread == [(400, "model.incoming_hook.parse_data.app_error")] * 3
    assert (form.status, form.body, form.headers["Content-Type"]) == (200, "ok", "text/plain")
    assert (linked.status, direct.status) == (200, 200)
    assert newest["posts"][newest["order"][0]]["message"] == "[y](http://x) @here"
    assert system.error == (400, "api.context.invalid_param.app_error")
