"""Mattermost: buttons and dialogs."""

from __future__ import annotations

import asyncio
import base64
import re
from typing import Any

from tests.contract.talk import Talk
from tests.contract.wire import Integration, Json, Wire

NOBODY = "x" * 26


async def card(talk: Talk, service: Integration, who: Wire | None = None, **action: Any) -> Json:
    """A post with one button."""
    button = {"id": "stop", "name": "Cancel", "type": "button"}
    button["integration"] = {"url": f"{service.url}/actions", "context": {"sealed": "x", "number": 5}}  # type: ignore[assignment]
    return await talk.post("card", who, props={"attachments": [{"text": "text", "actions": [button | action]}]})


async def click(talk: Talk, post: Json, who: Wire | None = None, action: str = "stop", body: Any = None) -> Any:
    """Click the button of a post."""
    return await (who or talk.as_anna).post(f"/posts/{post['id']}/actions/{action}", body or {})


async def test_what_a_click_sends(talk: Talk, service: Integration) -> None:
    """JSON with who, where and on what, and the context as it was given."""
    post = await card(talk, service)
    answer = await click(talk, post)

    call = service.last
    assert (answer.status, answer.body["status"], len(answer.body["trigger_id"])) == (200, "OK", 26)
    assert (call.method, call.path, call.headers["Content-Type"]) == ("POST", "/actions", "application/json")
    assert "Authorization" not in call.headers
    trigger = call.json.pop("trigger_id")
    assert call.json == {
        "user_id": talk.anna.user_id,
        "user_name": "anna",
        "channel_id": talk.channel,
        "channel_name": "gpu-tests",
        "team_id": talk.team,
        "team_domain": "contract",
        "post_id": post["id"],
        "type": "button",
        "data_source": "",
        "context": {"sealed": "x", "number": 5},
    }
    signed = base64.b64decode(trigger).decode().split(":")
    assert (signed[0], signed[1]) == (answer.body["trigger_id"], talk.anna.user_id)


async def test_an_answer_to_the_one_who_clicked(talk: Talk, service: Integration) -> None:
    """ephemeral_text is shown to them alone, in the thread of the post."""
    post = await card(talk, service)
    service.answer = {"ephemeral_text": "only you"}
    await click(talk, post)
    heard = await talk.anna.next_ephemeral()

    assert (heard["message"], heard["root_id"], heard["channel_id"]) == ("only you", post["id"], talk.channel)
    assert (heard["type"], heard["user_id"]) == ("system_ephemeral", talk.anna.user_id)
    assert talk.ben.ephemerals == []


async def test_an_update_of_the_post(talk: Talk, service: Integration) -> None:
    """`update` rewrites message and props of the post, whoever it is of; a button that it takes along works again."""
    post = await card(talk, service)
    again = {"id": "more", "name": "More", "type": "button", "integration": {"url": f"{service.url}/more"}}
    attachments = [{"text": "done", "actions": [again]}]
    service.answer = {"update": {"message": "new", "props": {"attachments": attachments}}}
    await click(talk, post)
    stored = await talk.stored(post["id"])
    service.answer = {}
    await click(talk, post, action="more")

    assert stored["message"] == "new"
    assert stored["props"]["attachments"][0]["text"] == "done"
    assert stored["user_id"] == talk.account.user_id
    assert service.last.path == "/more"


async def test_an_update_without_props(talk: Talk, service: Integration) -> None:
    """The props stay."""
    post = await card(talk, service)
    service.answer = {"update": {"message": "new"}}
    await click(talk, post)
    stored = await talk.stored(post["id"])

    assert (stored["message"], stored["props"]["attachments"][0]["text"]) == ("new", "text")


async def test_an_integration_that_fails(talk: Talk, service: Integration) -> None:
    """Another status than 200, or no JSON: 400 to the one who clicked."""
    post = await card(talk, service)
    errors = []
    for status, text in ((500, "{}"), (404, "{}"), (200, "{nonsense")):
        service.status, service.answer = status, text
        errors.append((await click(talk, post)).error)

    assert errors == [(400, "api.post.do_action.action_integration.app_error")] * 3


async def test_an_empty_answer(talk: Talk, service: Integration) -> None:
    """200 without a body counts as done."""
    post = await card(talk, service)
    service.answer = ""

    assert (await click(talk, post)).status == 200


async def test_buttons_that_are_none(talk: Talk, service: Integration) -> None:
    """An id that the post does not have is 404; so is one that is no id, before the post is looked at."""
    post = await card(talk, service)
    unknown = await click(talk, post, action="other")
    malformed = await click(talk, post, action="with-a-dash")

    assert unknown.error == (404, "api.post.do_action.action_id.app_error")
    assert malformed.error == (404, "api.context.404.app_error")


async def test_buttons_of_what_is_gone(talk: Talk, service: Integration) -> None:
    """A button of a deleted post does nothing: 404."""
    post = await card(talk, service)
    await talk.as_bot.delete(f"/posts/{post['id']}")
    answer = await click(talk, post)

    assert answer.error == (404, "app.post.get.app_error")
    assert service.calls == []


async def test_buttons_where_one_is_not(talk: Talk, service: Integration) -> None:
    """Who is not in the channel may not click: 403."""
    button = {"id": "stop", "name": "x", "type": "button", "integration": {"url": f"{service.url}/actions"}}
    props = {"attachments": [{"text": "text", "actions": [button]}]}
    post = await talk.post("card", talk.as_ben, channel_id=talk.elsewhere, props=props)
    answer = await click(talk, post)

    assert answer.error == (403, "api.context.permissions.app_error")
    assert service.calls == []


async def test_a_menu(talk: Talk, service: Integration) -> None:
    """The choice comes in the context."""
    options = [{"text": "One", "value": "1"}, {"text": "Two", "value": "2"}]
    post = await card(talk, service, id="menu", type="select", options=options)
    await click(talk, post, action="menu", body={"selected_option": "2"})

    assert service.last.json["type"] == "select"
    assert service.last.json["context"] == {"sealed": "x", "number": 5, "selected_option": "2"}


async def test_buttons_of_an_answer(talk: Talk, service: Integration) -> None:
    """A button of an ephemeral answer works by its cookie, since the post is stored nowhere."""
    command = await talk.command(f"{service.url}/commands")
    button = {"id": "yes", "name": "Yes", "type": "button", "integration": {"url": f"{service.url}/yes"}}
    service.answer = {"text": "sure?", "attachments": [{"text": "x", "actions": [button]}]}
    await talk.type(f"/{command['trigger']}")
    heard = await talk.anna.next_ephemeral()
    action = heard["props"]["attachments"][0]["actions"][0]
    service.answer = {}
    without = await click(talk, heard, action="yes")
    with_cookie = await click(talk, heard, action="yes", body={"cookie": action["cookie"]})

    assert "integration" not in action
    assert without.error == (403, "api.context.permissions.app_error")
    assert with_cookie.status == 200
    assert service.last.path == "/yes"
    assert service.last.json["post_id"] == heard["id"]


# dialogs


def dialog(service: Integration, trigger: str) -> Json:
    """A form with one field."""
    element = {"display_name": "Models", "name": "models", "type": "text", "default": "dqn"}
    form = {"callback_id": "start", "title": "Run", "elements": [element], "submit_label": "Run", "state": "sealed"}
    return {"trigger_id": trigger, "url": f"{service.url}/dialogs", "dialog": form}


async def trigger_of(talk: Talk, service: Integration) -> tuple[str, str]:
    """A trigger id for the integration and for the client: somebody has clicked."""
    post = await card(talk, service)
    answer = await click(talk, post)
    return str(service.last.json["trigger_id"]), str(answer.body["trigger_id"])


async def test_a_dialog_opens_for_the_one_who_clicked(talk: Talk, service: Integration) -> None:
    """It comes by websocket, with the client's own trigger id; no token is asked for."""
    trigger, client = await trigger_of(talk, service)
    answer = await talk.admin.of("").post("/actions/dialogs/open", dialog(service, trigger))
    opened = await talk.anna.next_dialog()

    assert (answer.status, answer.body) == (200, {"status": "OK"})
    assert (opened["trigger_id"], opened["url"]) == (client, f"{service.url}/dialogs")
    form = opened["dialog"]
    assert (form["callback_id"], form["title"], form["state"]) == ("start", "Run", "sealed")
    assert form["elements"][0]["default"] == "dqn"
    assert talk.ben.dialogs == []


async def test_a_trigger_lives_for_three_seconds(talk: Talk, service: Integration) -> None:
    """Then opening a dialog with it is 400."""
    trigger, _ = await trigger_of(talk, service)
    await asyncio.sleep(3.2)
    answer = await talk.as_bot.post("/actions/dialogs/open", dialog(service, trigger))

    assert answer.error == (400, "interactive_message.decode_trigger_id.expired")


async def test_triggers_that_are_none(talk: Talk, service: Integration) -> None:
    """Each way of being none has its error, all of them 400."""
    trigger, _ = await trigger_of(talk, service)
    client, user, millis, _signature = base64.b64decode(trigger).decode().split(":")
    forged = base64.b64encode(f"{client}:{user}:{millis}:{base64.b64encode(b'x').decode()}".encode()).decode()
    short = base64.b64encode(b"one:two").decode()
    errors = [
        (await talk.as_bot.post("/actions/dialogs/open", dialog(service, wrong))).error
        for wrong in ("%%%", short, forged)
    ]

    prefix = "interactive_message.decode_trigger_id"
    assert errors[0] == (400, f"{prefix}.base64_decode_failed")
    assert errors[1] == (400, f"{prefix}.missing_data")
    assert errors[2][0] == 400
    assert re.fullmatch(rf"{prefix}\.(signature_decode_failed|verify_signature_failed)", errors[2][1])


async def test_dialogs_that_are_none(talk: Talk, service: Integration) -> None:
    """Without an address: 400."""
    trigger, _ = await trigger_of(talk, service)
    answer = await talk.as_bot.post("/actions/dialogs/open", dialog(service, trigger) | {"url": ""})

    assert answer.error == (400, "api.context.invalid_body_param.app_error")


async def test_what_a_dialog_sends(talk: Talk, service: Integration) -> None:
    """The values and the state, and who it was by id alone: no user name comes with it."""
    trigger, _ = await trigger_of(talk, service)
    await talk.as_bot.post("/actions/dialogs/open", dialog(service, trigger))
    opened = await talk.anna.next_dialog()
    answer = await talk.anna.submit_dialog(opened, talk.channel, {"models": "dqn", "notify": True, "epochs": 5})

    assert not answer.get("errors")
    assert not answer.get("error")
    sent = service.last.json
    assert {key: value for key, value in sent.items() if value != ""} == {
        "type": "dialog_submission",
        "callback_id": "start",
        "state": "sealed",
        "user_id": talk.anna.user_id,
        "channel_id": talk.channel,
        "team_id": talk.team,
        "submission": {"models": "dqn", "notify": True, "epochs": 5},
        "cancelled": False,
    }
    assert "user_name" not in sent


async def test_what_is_wrong_in_a_dialog(talk: Talk, service: Integration) -> None:
    """Errors of fields, and one for the whole, come back to the form."""
    trigger, _ = await trigger_of(talk, service)
    await talk.as_bot.post("/actions/dialogs/open", dialog(service, trigger))
    opened = await talk.anna.next_dialog()
    service.answer = {"errors": {"models": "unknown"}}
    fields = await talk.anna.submit_dialog(opened, talk.channel, {"models": "mamba"})
    service.answer = {"error": "not now"}
    whole = await talk.anna.submit_dialog(opened, talk.channel, {"models": "mamba"})

    assert fields["errors"] == {"models": "unknown"}
    assert whole["error"] == "not now"


async def test_a_dialog_that_is_closed(talk: Talk, service: Integration) -> None:
    """`cancelled` comes without values."""
    trigger, _ = await trigger_of(talk, service)
    await talk.as_bot.post("/actions/dialogs/open", dialog(service, trigger))
    opened = await talk.anna.next_dialog()
    await talk.anna.submit_dialog(opened, talk.channel, {}, cancelled=True)

    assert service.last.json["cancelled"] is True
    assert not service.last.json["submission"]


async def test_a_dialog_whose_integration_fails(talk: Talk, service: Integration) -> None:
    """400 to the one who sent it off; an empty answer is fine."""
    body: Json = {"url": f"{service.url}/dialogs", "channel_id": talk.channel, "team_id": talk.team, "submission": {}}
    service.status = 500
    failed = await talk.as_anna.post("/actions/dialogs/submit", body)
    service.status, service.answer = 200, ""
    empty = await talk.as_anna.post("/actions/dialogs/submit", body)

    assert failed.error == (400, "api.post.do_action.action_integration.app_error")
    assert empty.status == 200


async def test_dialogs_where_one_is_not(talk: Talk, service: Integration) -> None:
    """Sending one off in a channel that one is not in: 403."""
    body = {"url": f"{service.url}/dialogs", "channel_id": talk.elsewhere, "team_id": talk.team, "submission": {}}
    answer = await talk.as_anna.post("/actions/dialogs/submit", body)

    assert answer.error == (403, "api.context.permissions.app_error")
    assert service.calls == []
