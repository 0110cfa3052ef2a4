"""Mattermost: slash commands, what they send, and what may be answered at once or late."""

from __future__ import annotations

import asyncio

from tests.contract.talk import Talk
from tests.contract.wire import Answer, Integration, Wire

NOBODY = "x" * 26


async def hook(talk: Talk, call_url: str, body: object) -> Answer:
    """Answer a command late; whoever knows the address may."""
    wire = Wire(talk.admin.session, "", "")
    return await wire("POST", call_url, body)


async def test_what_a_command_sends(talk: Talk, service: Integration) -> None:
    """A form, with the token of the command in it and in a header."""
    command = await talk.command(f"{service.url}/commands")
    answer = await talk.type(f"/{command['trigger']} models=all  epochs=5 ")

    assert answer.status == 200
    call = service.last
    assert (call.method, call.path) == ("POST", "/commands")
    assert call.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert call.headers["Accept"] == "application/json"
    assert call.headers["Authorization"] == f"Token {command['token']}"
    assert set(call.form) == {
        *("token", "team_id", "team_domain", "channel_id", "channel_name", "user_id", "user_name"),
        *("command", "text", "trigger_id", "response_url"),
    }
    assert call.form["token"] == command["token"]
    assert (call.form["team_id"], call.form["team_domain"]) == (talk.team, "contract")
    assert (call.form["channel_id"], call.form["channel_name"]) == (talk.channel, "gpu-tests")
    assert (call.form["user_id"], call.form["user_name"]) == (talk.anna.user_id, "anna")
    assert call.form["command"] == f"/{command['trigger']}"
    assert call.form["text"] == "models=all  epochs=5 "
    assert call.form["response_url"].startswith(talk.anna.client.url + "/hooks/commands/")
    assert len(call.form["response_url"].rsplit("/", 1)[-1]) == 26


async def test_a_command_by_get(talk: Talk, service: Integration) -> None:
    """The same fields come in the query."""
    command = await talk.command(f"{service.url}/commands?mine=1", method="G")
    await talk.type(f"/{command['trigger']} hello")

    call = service.last
    assert (call.method, call.path) == ("GET", "/commands")
    assert (call.form["mine"], call.form["text"], call.form["token"]) == ("1", "hello", command["token"])


async def test_the_trigger_is_any_case(talk: Talk, service: Integration) -> None:
    """It is found in whatever case it is typed, the text stays as it is; a line break ends it as well as a space."""
    command = await talk.command(f"{service.url}/commands")
    await talk.type(f"/{command['trigger'].upper()} Hello")
    upper = service.last.form["text"]
    await talk.type(f"/{command['trigger']}\nhello\nyou")

    assert upper == "Hello"
    assert service.last.form["text"] == "hello\nyou"


async def test_whom_a_command_names(talk: Talk, service: Integration) -> None:
    """People and channels named in the text come with their ids."""
    command = await talk.command(f"{service.url}/commands")
    await talk.type(f"/{command['trigger']} @ben and @nobody in ~gpu-tests")

    form = service.last.form
    assert (form["user_mentions"], form["user_mentions_ids"]) == ("ben", talk.ben.user_id)
    assert (form["channel_mentions"], form["channel_mentions_ids"]) == ("gpu-tests", talk.channel)


async def test_an_ephemeral_answer(talk: Talk, service: Integration) -> None:
    """The one who typed reads it on their websocket, nobody else, and it is stored nowhere."""
    command = await talk.command(f"{service.url}/commands")
    service.answer = {"response_type": "ephemeral", "text": "only you"}
    answer = await talk.type(f"/{command['trigger']}")
    heard = await talk.anna.next_ephemeral()

    assert (answer.status, answer.body["text"], answer.body["response_type"]) == (200, "only you", "ephemeral")
    assert len(answer.body["trigger_id"]) == 26
    assert (heard["message"], heard["type"], heard["channel_id"]) == ("only you", "system_ephemeral", talk.channel)
    assert (heard["user_id"], heard["root_id"]) == (talk.anna.user_id, "")
    assert heard["props"]["from_webhook"] == "true"
    assert heard["id"] not in (await talk.channel_posts())["posts"]
    assert talk.ben.ephemerals == []


async def test_an_answer_without_a_type(talk: Talk, service: Integration) -> None:
    """It is ephemeral."""
    command = await talk.command(f"{service.url}/commands")
    service.answer = {"text": "only you"}
    await talk.type(f"/{command['trigger']}")

    assert (await talk.anna.next_ephemeral())["message"] == "only you"


async def test_an_answer_for_all(talk: Talk, service: Integration) -> None:
    """in_channel makes a post of the one who typed, marked as a webhook's."""
    command = await talk.command(f"{service.url}/commands")
    service.answer = {"response_type": "in_channel", "text": "for all"}
    await talk.type(f"/{command['trigger']}")
    page = await talk.channel_posts(per_page="1")
    post = page["posts"][page["order"][0]]

    assert (post["message"], post["user_id"]) == ("for all", talk.anna.user_id)
    assert post["props"]["from_webhook"] == "true"


async def test_an_answer_of_nothing(talk: Talk, service: Integration) -> None:
    """`{}` posts nothing and shows nothing."""
    command = await talk.command(f"{service.url}/commands")
    before = (await talk.channel_posts(per_page="1"))["order"]
    answer = await talk.type(f"/{command['trigger']}")
    await asyncio.sleep(0.1)

    assert (answer.status, answer.body["text"]) == (200, "")
    assert (await talk.channel_posts(per_page="1"))["order"] == before
    assert talk.anna.ephemerals == []


async def test_an_answer_in_a_thread(talk: Talk, service: Integration) -> None:
    """A command that is typed in a thread is answered in it."""
    root = await talk.post("root")
    command = await talk.command(f"{service.url}/commands")
    service.answer = {"text": "here"}
    await talk.type(f"/{command['trigger']}", root_id=root["id"])

    assert (await talk.anna.next_ephemeral())["root_id"] == root["id"]


async def test_a_plain_answer(talk: Talk, service: Integration) -> None:
    """What is no JSON by its content type is the text."""
    command = await talk.command(f"{service.url}/commands")
    service.answer, service.content_type = '{"text": "not read"}', "text/plain"
    await talk.type(f"/{command['trigger']}")

    assert (await talk.anna.next_ephemeral())["message"] == '{"text": "not read"}'


async def test_answers_that_are_errors(talk: Talk, service: Integration) -> None:
    """Another status than 200, and JSON that is none: 500, and the user reads nothing but that it failed."""
    command = await talk.command(f"{service.url}/commands")
    errors = []
    for status, text in ((500, "{}"), (201, "{}"), (204, ""), (200, "{nonsense")):
        service.status, service.answer = status, text
        errors.append((await talk.type(f"/{command['trigger']}")).error)

    failed = (500, "api.command.execute_command.failed_resp.app_error")
    assert errors == [failed, failed, failed, (500, "api.command.execute_command.failed.app_error")]


async def test_an_integration_that_is_away(talk: Talk) -> None:
    """500, as for any other failure."""
    command = await talk.command("http://127.0.0.1:1/commands")
    answer = await talk.type(f"/{command['trigger']}")

    assert answer.error == (500, "api.command.execute_command.failed.app_error")


async def test_an_answer_late(talk: Talk, service: Integration) -> None:
    """The response_url takes five answers without any token; the sixth is 400."""
    command = await talk.command(f"{service.url}/commands")
    await talk.type(f"/{command['trigger']}")
    url = service.last.form["response_url"]
    answers = [await hook(talk, url, {"text": f"late {number}"}) for number in range(6)]

    assert [answer.status for answer in answers] == [200] * 5 + [400]
    assert answers[0].body == "ok"
    assert answers[5].error == (400, "app.command_webhook.try_use.invalid")
    heard = [(await talk.anna.next_ephemeral())["message"] for _ in range(5)]
    assert heard == [f"late {number}" for number in range(5)]


async def test_a_late_answer_to_nothing(talk: Talk) -> None:
    """404 for an address that was never given out."""
    answer = await hook(talk, f"{talk.anna.client.url}/hooks/commands/{NOBODY}", {"text": "late"})

    assert answer.error == (404, "app.command_webhook.get.missing")


async def test_a_late_answer_that_is_none(talk: Talk, service: Integration) -> None:
    """400."""
    command = await talk.command(f"{service.url}/commands")
    await talk.type(f"/{command['trigger']}")
    wire = Wire(talk.admin.session, "", "")
    answer = await wire("POST", service.last.form["response_url"], b"{nonsense")

    assert answer.error == (400, "web.command_webhook.parse.app_error")


async def test_links_as_slack_writes_them(talk: Talk, service: Integration) -> None:
    """<address|text> becomes a link and <!channel> a mention, in code as well; skip_slack_parsing leaves all as it is."""
    command = await talk.command(f"{service.url}/commands")
    text = "<https://a.example|here> `<!channel>` <@nobody>"
    service.answer = {"text": text}
    await talk.type(f"/{command['trigger']}")
    parsed = (await talk.anna.next_ephemeral())["message"]
    service.answer = {"text": text, "skip_slack_parsing": True}
    await talk.type(f"/{command['trigger']}")
    left = (await talk.anna.next_ephemeral())["message"]

    assert parsed == "[here](https://a.example) `@channel` <@nobody>"
    assert left == text


async def test_long_answers(talk: Talk, service: Integration) -> None:
    """An ephemeral answer may be longer than a post."""
    command = await talk.command(f"{service.url}/commands")
    service.answer = {"text": "x" * 20_000}
    answer = await talk.type(f"/{command['trigger']}")

    assert answer.status == 200
    assert len((await talk.anna.next_ephemeral())["message"]) == 20_000


async def test_a_command_of_nobody(talk: Talk) -> None:
    """404, and what is no command at all is 400."""
    unknown = await talk.type("/nobody-registered-this")
    plain = await talk.type("hello")

    assert unknown.error == (404, "api.command.execute_command.not_found.app_error")
    assert plain.error == (400, "api.command.execute_command.start.app_error")


async def test_commands_where_one_is_not(talk: Talk, service: Integration) -> None:
    """In a channel that one is not in: 403."""
    command = await talk.command(f"{service.url}/commands")
    answer = await talk.type(f"/{command['trigger']}", channel_id=talk.elsewhere)

    assert answer.error == (403, "api.context.permissions.app_error")
    assert service.calls == []


async def test_a_trigger_is_taken_once(talk: Talk, service: Integration) -> None:
    """A trigger that is taken, also by the server itself, is 400; so is one with a slash or a space."""
    command = await talk.command(f"{service.url}/commands")
    body = {"team_id": talk.team, "method": "P", "url": service.url}
    taken = await talk.admin.post("/commands", body | {"trigger": command["trigger"]})
    built_in = await talk.admin.post("/commands", body | {"trigger": "echo"})
    slash = await talk.admin.post("/commands", body | {"trigger": "/slash"})
    space = await talk.admin.post("/commands", body | {"trigger": "a space"})

    assert taken.error == (400, "api.command.duplicate_trigger.app_error")
    assert built_in.error == (400, "api.command.duplicate_trigger.app_error")
    assert slash.error == space.error == (400, "model.command.is_valid.trigger.app_error")


async def test_who_makes_commands(talk: Talk, service: Integration) -> None:
    """Neither a person nor a bot may, as long as they have no right to."""
    body = {"team_id": talk.team, "trigger": "mine", "method": "P", "url": service.url}
    person, bot = await talk.as_anna.post("/commands", body), await talk.as_bot.post("/commands", body)

    assert person.error == bot.error == (403, "api.context.permissions.app_error")


async def test_a_new_token(talk: Talk, service: Integration) -> None:
    """After regen_token the command sends the new one."""
    command = await talk.command(f"{service.url}/commands")
    token = (await talk.admin.put(f"/commands/{command['id']}/regen_token")).body["token"]
    await talk.type(f"/{command['trigger']}")

    assert token != command["token"]
    assert service.last.form["token"] == token


async def test_a_command_that_is_changed(talk: Talk, service: Integration) -> None:
    """PUT keeps the token; the command then calls the new address."""
    command = await talk.command("http://127.0.0.1:1/old")
    changed = await talk.admin.put(f"/commands/{command['id']}", command | {"url": f"{service.url}/new"})
    await talk.type(f"/{command['trigger']}")

    assert (changed.status, changed.body["token"]) == (200, command["token"])
    assert service.last.path == "/new"


async def test_a_command_that_is_deleted(talk: Talk, service: Integration) -> None:
    """It is not there any more."""
    command = await talk.command(f"{service.url}/commands")
    deleted = await talk.admin.delete(f"/commands/{command['id']}")
    answer = await talk.type(f"/{command['trigger']}")

    assert (deleted.status, deleted.body) == (200, {"status": "OK"})
    assert answer.error == (404, "api.command.execute_command.not_found.app_error")


async def test_commands_as_a_composer_offers_them(talk: Talk, service: Integration) -> None:
    """Everybody in the team sees trigger and hint; tokens and addresses are for those who manage them."""
    hint = {"auto_complete": True, "auto_complete_hint": "[models]", "auto_complete_desc": "Run the tests"}
    command = await talk.command(f"{service.url}/commands", **hint)
    offered = (await talk.as_bot.get(f"/teams/{talk.team}/commands/autocomplete")).body
    (mine,) = [each for each in offered if each["trigger"] == command["trigger"]]
    managed = (await talk.admin.get("/commands", team_id=talk.team, custom_only="true")).body
    (full,) = [each for each in managed if each["trigger"] == command["trigger"]]

    assert (mine["auto_complete_hint"], mine["auto_complete_desc"]) == ("[models]", "Run the tests")
    assert (mine["token"], mine["url"]) == ("", "")
    assert (full["token"], full["url"]) == (command["token"], command["url"])
