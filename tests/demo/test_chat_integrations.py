"""Slash commands, buttons and dialogs against an integration of this test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from bot.demo import EmbeddedWorld
from bot.demo.chat_errors import ChatError

from .conftest import Client

As = Callable[[str], Client]


class Integration:
    """A small bot: answers with what the test put down, and keeps what it was sent."""

    def __init__(self) -> None:
        self.url = ""
        self.answer: Callable[[], web.Response] = lambda: web.json_response({})
        self.requests: list[tuple[dict[str, str], Any]] = []

    async def serve(self, request: web.Request) -> web.Response:
        """Take a request."""
        body: Any = dict(request.query)
        if request.content_type == "application/json":
            body = await request.json()
        elif request.method == "POST":
            body = dict(await request.post())
        self.requests.append((dict(request.headers), body))
        return self.answer()

    def will_say(self, **response: Any) -> None:
        """Answer with JSON from now on."""
        self.answer = lambda: web.json_response(response)


@pytest.fixture
async def bot(world: EmbeddedWorld) -> AsyncIterator[Integration]:
    """The integration, with the command /gputest registered for it."""
    integration = Integration()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", integration.serve)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    integration.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    integration.token = world.register_command("gputest", f"{integration.url}/commands", hint="[models]")  # type: ignore[attr-defined]
    yield integration
    await runner.cleanup()


async def test_a_command_sends_exactly_these_fields(world: EmbeddedWorld, bot: Integration) -> None:
    """The form, the headers; text as typed, without a thread's root."""
    await world.chat.say("dev", "gpu-tests", "/GPUTEST  models=all\nfor @viewer ~town-square ")
    headers, form = bot.requests[0]

    assert form.keys() == {
        *("token", "team_id", "team_domain", "channel_id", "channel_name", "user_id", "user_name", "command", "text"),
        *(
            "trigger_id",
            "response_url",
            "user_mentions",
            "user_mentions_ids",
            "channel_mentions",
            "channel_mentions_ids",
        ),
    }
    assert form["text"] == " models=all\nfor @viewer ~town-square "
    assert (form["command"], form["user_name"], form["channel_name"]) == ("/gputest", "dev", "gpu-tests")
    assert headers["Authorization"] == f"Token {form['token']}"
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert form["response_url"].startswith(f"{world.chat_url}/hooks/commands/")


async def test_ephemeral_and_in_channel(world: EmbeddedWorld, bot: Integration) -> None:
    """An ephemeral answer is for one; in_channel posts as the user who typed."""
    bot.will_say(text="only you", skip_slack_parsing=True)
    said = await world.chat.say("dev", "gpu-tests", "/gputest status")

    assert said.text == "only you"
    assert world.chat.posts() == []
    bot.will_say(response_type="in_channel", text="<@all> see <http://x|here>", extra_responses=[{"text": "and you"}])
    said = await world.chat.say("dev", "gpu-tests", "/gputest status")
    post = world.chat.posts()[0]

    assert post["user_id"] == world.chat.user_id("dev")
    assert post["props"]["from_webhook"] == "true"
    assert post["message"].endswith("[here](http://x)")
    assert said.text == "and you"
    bot.answer = lambda: web.Response(text="", content_type="text/plain")

    assert (await world.chat.say("dev", "gpu-tests", "/gputest")).text == ""


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda: web.json_response({}, status=202), "returned response 202 Accepted."),
        (lambda: web.Response(body=b"", content_type="application/json"), "failed."),
        (lambda: web.json_response({"text": "x" * 16_384, "response_type": "in_channel"}), "failed to post response."),
    ],
)
async def test_what_the_server_makes_of_bad_answers(
    world: EmbeddedWorld, bot: Integration, answer: Callable[[], web.Response], message: str
) -> None:
    """Anything but 200 and readable JSON is a failure that the user sees."""
    bot.answer = answer
    with pytest.raises(ChatError, match=message) as caught:
        await world.chat.say("dev", "gpu-tests", "/gputest")

    assert caught.value.code == 500


async def test_unknown_commands_and_dead_integrations(world: EmbeddedWorld, bot: Integration) -> None:
    """404 for what nobody registered, 500 where nobody listens."""
    with pytest.raises(ChatError) as caught:
        await world.chat.say("dev", "gpu-tests", "/nothing")

    assert (caught.value.code, caught.value.id) == (404, "api.command.execute_command.not_found.app_error")
    world.register_command("dead", "http://127.0.0.1:1/")
    with pytest.raises(ChatError, match="Command with a trigger of 'dead' failed."):
        await world.chat.say("dev", "gpu-tests", "/dead")


async def test_response_url_five_times_in_half_an_hour(world: EmbeddedWorld, bot: Integration, chat_as: As) -> None:
    """Later answers land where the command was typed, in its thread."""
    root = (await world.chat.say("dev", "gpu-tests", "root")).response["id"]
    await world.chat.say("dev", "gpu-tests", "/gputest", root=root)
    path = bot.requests[0][1]["response_url"].removeprefix(world.chat_url)
    nobody = chat_as("")
    for _ in range(5):
        async with nobody.session.post(world.chat_url + path, json={"text": "later"}) as response:
            assert (response.status, await response.text()) == (200, "ok")
    status, error = await nobody("POST", path, json={"text": "later"})

    assert (status, error["id"]) == (400, "app.command_webhook.try_use.invalid")
    assert [post["root_id"] for post in world.chat.ephemeral_to("dev")] == [root] * 5
    await world.chat.say("dev", "gpu-tests", "/gputest")
    path = bot.requests[1][1]["response_url"].removeprefix(world.chat_url)
    await world.clock.advance(30 * 60 + 1)
    status, error = await nobody("POST", path, json={"text": "too late"})

    assert (status, error["id"]) == (404, "app.command_webhook.get.missing")


async def test_registering_is_for_administrators(world: EmbeddedWorld, bot: Integration, chat_as: As) -> None:
    """A trigger once in a team; PUT keeps the token; everybody gets the autocompletion without secrets."""
    command = {"team_id": world.chat.team_id, "trigger": "gputest", "url": bot.url, "method": "P"}

    assert (await chat_as("bot")("POST", "/api/v4/commands", json=command))[0] == 403
    status, error = await chat_as("admin")("POST", "/api/v4/commands", json=command)
    assert (status, error["id"]) == (400, "api.command.duplicate_trigger.app_error")
    _, listed = await chat_as("admin")("GET", f"/api/v4/commands?team_id={world.chat.team_id}&custom_only=true")
    changed = {**listed[0], "auto_complete_hint": "[new]"}
    _, after = await chat_as("admin")("PUT", f"/api/v4/commands/{listed[0]['id']}", json=changed)
    assert (after["token"], after["auto_complete_hint"]) == (listed[0]["token"], "[new]")
    _, offered = await chat_as("viewer")("GET", f"/api/v4/teams/{world.chat.team_id}/commands/autocomplete")
    assert (offered[0]["trigger"], offered[0]["token"]) == ("gputest", "")


def card(world: EmbeddedWorld, bot: Integration, **action: Any) -> str:
    """A post of the bot with one button; returns its id."""
    button = {
        "name": "Cancel",
        "type": "button",
        "integration": {"url": f"{bot.url}/click", "context": {"run": "k7m2"}},
        **action,
    }
    props = {"attachments": [{"text": "card", "actions": [button]}], "override_username": "x"}
    asked = {"channel_id": world.chat.channel_id(), "message": "card", "props": props}
    return str(world.chat.api.posts.create(world.chat.user_id("bot"), asked)["id"])


async def test_a_click_reaches_the_integration(world: EmbeddedWorld, bot: Integration) -> None:
    """With the documented body; the answer updates the post and speaks to the clicker."""
    post = card(world, bot)
    bot.will_say(update={"message": "cancelled", "props": {"attachments": []}}, ephemeral_text="done")
    said = await world.chat.click("dev", post, "Cancel")
    request = bot.requests[0][1]

    assert request.keys() == {
        *("user_id", "user_name", "channel_id", "channel_name", "team_id", "team_domain", "post_id", "trigger_id"),
        *("type", "data_source", "context"),
    }
    assert (request["user_name"], request["post_id"], request["context"]) == ("dev", post, {"run": "k7m2"})
    assert said.text == "done"
    assert world.chat.posts()[0]["message"] == "cancelled"
    assert world.chat.posts()[0]["props"] == {"attachments": None, "override_username": "x"}


async def test_an_update_without_props_keeps_the_buttons(world: EmbeddedWorld, bot: Integration) -> None:
    """And one without a message empties it."""
    post = card(world, bot)
    bot.will_say(update={})
    await world.chat.click("dev", post, "Cancel")

    assert world.chat.posts()[0]["message"] == ""
    assert world.chat.button(post, "Cancel")


async def test_menus_and_action_ids(world: EmbeddedWorld, bot: Integration, chat_as: As) -> None:
    """A choice travels in the context; an id with a dash has no route."""
    post = card(world, bot, type="select", id="pick")
    await world.chat.click("dev", post, "pick", option="h100")

    assert bot.requests[0][1]["context"] == {"run": "k7m2", "selected_option": "h100"}
    post = card(world, bot, id="with-dash")
    status, error = await chat_as("dev")("POST", f"/api/v4/posts/{post}/actions/with-dash", json={})
    assert (status, error["id"]) == (404, "api.context.404.app_error")
    assert (await chat_as("dev")("POST", f"/api/v4/posts/{post}/actions/other", json={}))[0] == 404


async def test_a_failing_integration_is_400(world: EmbeddedWorld, bot: Integration) -> None:
    """Anything but 200, or no JSON."""
    post = card(world, bot)
    for answer in (lambda: web.Response(status=500), lambda: web.Response(text="no json")):
        bot.answer = answer
        with pytest.raises(ChatError, match="Action integration error") as caught:
            await world.chat.click("dev", post, "Cancel")
        assert caught.value.code == 400


async def test_buttons_of_ephemeral_posts_work_by_cookie(world: EmbeddedWorld, bot: Integration) -> None:
    """The post is nowhere stored, and still its button is known."""
    action = {"name": "Keep", "integration": {"url": f"{bot.url}/click", "context": {"a": 1}}}
    bot.will_say(text="sure?", attachments=[{"actions": [action]}])
    said = await world.chat.say("dev", "gpu-tests", "/gputest cancel")
    bot.will_say()
    await world.chat.click_ephemeral("dev", said.ephemeral[0], "Keep")

    assert bot.requests[1][1]["context"] == {"a": 1}


async def test_a_dialog_opens_within_three_seconds(world: EmbeddedWorld, bot: Integration, chat_as: As) -> None:
    """By trigger alone; it is answered, refused with errors, cancelled."""
    post = card(world, bot)
    await world.chat.click("dev", post, "Cancel")
    trigger = bot.requests[0][1]["trigger_id"]
    dialog = {"callback_id": "cancel", "title": "Stop it?", "state": "signed", "elements": []}
    asked = {"trigger_id": trigger, "url": f"{bot.url}/dialog", "dialog": dialog}
    nobody = chat_as("")
    await world.clock.advance(3)

    assert await nobody("POST", "/api/v4/actions/dialogs/open", json=asked) == (200, {"status": "OK"})
    await world.clock.advance(0.5)
    status, error = await nobody("POST", "/api/v4/actions/dialogs/open", json=asked)
    assert (status, error["id"]) == (400, "interactive_message.decode_trigger_id.expired")
    assert "Trigger IDs live for a maximum of 3 seconds." in error["message"]
    assert world.chat.dialogs["dev"][0]["dialog"]["title"] == "Stop it?"
    assert world.chat.dialogs["dev"][0]["trigger_id"] != trigger
    bot.will_say(errors={"reason": "say why"})
    said = await world.chat.submit("dev", {"reason": ""})
    assert said.response == {"errors": {"reason": "say why"}}
    bot.will_say()
    await world.chat.submit("dev", {"reason": "because"})
    sent = bot.requests[-1][1]
    assert sent == {
        "type": "dialog_submission",
        "callback_id": "cancel",
        "state": "signed",
        "user_id": world.chat.user_id("dev"),
        "channel_id": world.chat.channel_id(),
        "team_id": world.chat.team_id,
        "submission": {"reason": "because"},
        "cancelled": False,
    }
    status, error = await nobody("POST", "/api/v4/actions/dialogs/open", json={**asked, "trigger_id": "bm8="})
    assert (status, error["id"]) == (400, "interactive_message.decode_trigger_id.missing_data")
