"""What comes in at the bot's door, and what must not."""

from __future__ import annotations

import time
from typing import Any

import pytest

from bot.core.signing import Deed, Signed, key_of, seal
from tests.runtime.conftest import House

FORM = {
    "token": "COMMAND",
    "team_id": "t" * 26,
    "channel_id": "c" * 26,
    "user_id": "u" * 26,
    "user_name": "alice",
    "command": "/gputest",
    "text": "help",
    "trigger_id": "trigger",
    "response_url": "https://mm.example/hooks/commands/x",
}


async def post(house: House, path: str = "/commands", **options: Any) -> tuple[int, Any]:
    """Status and JSON of one POST."""
    async with house.session.post(house.url + path, **options) as response:
        return response.status, await response.json()


@pytest.mark.parametrize("where", ["form", "header", "another command's"])
async def test_a_known_token_is_taken_from_form_or_header(house: House, where: str) -> None:
    """Mattermost sends it twice; each command and team has its own."""
    form = FORM | {"token": {"form": "COMMAND", "header": "", "another command's": "OTHER"}[where]}
    headers = {"Authorization": "Token COMMAND"} if where == "header" else {}

    status, body = await post(house, data=form, headers=headers)

    assert 200 == status
    assert body["text"].startswith("**/gputest**")
    assert ("ephemeral", True) == (body["response_type"], body["skip_slack_parsing"])


@pytest.mark.parametrize("token", ["", "wrong", "COMMAND ", "COMMAN", "commandé"])
async def test_a_wrong_token_starts_nothing_and_says_so(house: House, token: str) -> None:
    """200 and JSON all the same: anything else shows the user nothing."""
    status, body = await post(house, data=FORM | {"token": token, "text": "models=all"})

    assert 200 == status
    assert "did nothing" in body["text"]
    assert [] == house.world.cluster.workflows()


async def test_a_command_set_up_with_get_sends_its_fields_in_the_query(house: House) -> None:
    """The same fields, no body."""
    async with house.session.get(house.url + "/commands", params=FORM) as response:
        body = await response.json()

    assert body["text"].startswith("**/gputest**")


@pytest.mark.parametrize(
    "options",
    [
        {"data": b"\xff\xfe\x00", "headers": {"Content-Type": "application/x-www-form-urlencoded"}},
        {"data": b"token=COMMAND", "headers": {"Content-Type": "application/json"}},
        {"data": b"x" * 300_000, "headers": {"Content-Type": "application/x-www-form-urlencoded"}},
        {"data": b"", "headers": {"Content-Type": "application/x-www-form-urlencoded"}},
        {"data": b"--x\r\nbroken", "headers": {"Content-Type": "multipart/form-data; boundary=x"}},
    ],
    ids=["not UTF-8", "JSON", "too long", "empty", "broken multipart"],
)
async def test_what_is_no_slash_command_gets_200_and_json(house: House, options: dict[str, Any]) -> None:
    """Whatever comes in, a person gets words and nothing is started."""
    status, body = await post(house, **options)

    assert 200 == status
    assert body["text"]
    assert [] == house.world.cluster.workflows()


async def test_fields_that_are_missing_are_empty(house: House) -> None:
    """A token alone: the help of no command."""
    status, body = await post(house, data={"token": "COMMAND"})

    assert 200 == status
    assert "I know" in body["text"]


async def test_the_same_sending_twice_makes_one_run(house: House) -> None:
    """Delivered again with the same trigger: the same run."""
    form = FORM | {"text": "models=dqn"}

    first, second = await post(house, data=form), await post(house, data=form)

    assert 1 == len(house.world.cluster.workflows())
    assert first == second


def sealed(house: House, deed: Deed = Deed.RERUN, **more: Any) -> str:
    """A context that the bot itself might have sealed."""
    signed = Signed(deed, more.pop("expires", time.time() + 60), channel="c" * 26, **more)
    return seal(signed, key_of(house.world.bot_token))


def click(context: Any) -> dict[str, Any]:
    """A click as Mattermost sends it."""
    return {
        "user_id": "u" * 26,
        "user_name": "alice",
        "channel_id": "c" * 26,
        "team_id": "",
        "post_id": "p" * 26,
        "trigger_id": "trigger",
        "type": "button",
        "context": context,
    }


@pytest.mark.parametrize(
    "context",
    [None, {}, [], "x", {"sealed": None}, {"sealed": 5}, {"sealed": "a.b"}, {"sealed": "é.x"}, {"action": "rerun"}],
)
async def test_a_forged_click_does_nothing(house: House, context: Any) -> None:
    """Any user of the chat can make a post whose button calls the bot with a context of their own."""
    status, body = await post(house, "/actions", json=click(context))

    assert 200 == status
    assert "none of mine" in body["ephemeral_text"]
    assert [] == house.world.cluster.workflows()


async def test_an_expired_click_is_told_so(house: House) -> None:
    """Ours, and too old."""
    _, body = await post(house, "/actions", json=click({"sealed": sealed(house, expires=time.time() - 1)}))

    assert "too old" in body["ephemeral_text"]


async def test_a_click_of_another_channel_does_nothing(house: House) -> None:
    """The context was copied into a post elsewhere."""
    body = click({"sealed": sealed(house)}) | {"channel_id": "d" * 26}

    _, answer = await post(house, "/actions", json=body)

    assert "another channel" in answer["ephemeral_text"]


async def test_a_rerun_replayed_makes_one_run(house: House) -> None:
    """In a direct message, without a team: three times the same context, one run."""
    parameters = {
        "models": "dqn",
        "test-scope": "all",
        "epochs": "3",
        "commit-ref": "main",
        "gpu-pool": "ci-training-h100",
        "cuda-compute-cap": "90",
        "notify": "true",
    }
    context = {"sealed": sealed(house, uid="u1", attempt="a1", short="k7m2", ref="main", parameters=parameters)}

    for trigger in ("t1", "t2", "t3"):
        status, _ = await post(house, "/actions", json=click(context) | {"trigger_id": trigger})
        assert 200 == status

    assert 1 == len(house.world.cluster.workflows())


@pytest.mark.parametrize("state", [None, "", "a.b", 5])
async def test_a_forged_form_does_nothing(house: House, state: Any) -> None:
    """The state went through a browser."""
    _, body = await post(house, "/dialogs", json={"state": state, "user_id": "u" * 26, "submission": {"models": "all"}})

    assert "none of mine" in body["error"]
    assert [] == house.world.cluster.workflows()


async def test_a_form_of_somebody_else_does_nothing(house: House) -> None:
    """Opened for Alice, sent off by Bob."""
    state = sealed(house, Deed.START, user="a" * 26)

    _, body = await post(house, "/dialogs", json={"state": state, "user_id": "u" * 26, "submission": {"models": "dqn"}})

    assert "somebody else" in body["error"]
    assert [] == house.world.cluster.workflows()


async def test_a_form_that_is_closed_does_nothing(house: House) -> None:
    """Cancelled is no submission."""
    state = sealed(house, Deed.START, user="u" * 26)
    body = {"state": state, "user_id": "u" * 26, "submission": {}, "cancelled": True}

    assert (200, {}) == await post(house, "/dialogs", json=body)
    assert [] == house.world.cluster.workflows()


@pytest.mark.parametrize("authorization", ["", "Bearer wrong", "Token EXIT", "Bearer "])
async def test_the_exit_call_needs_its_secret(house: House, authorization: str) -> None:
    """401 and no hint."""
    headers = {"Authorization": authorization} if authorization else {}

    status, _ = await post(house, "/exit", json={"uid": "x"}, headers=headers)

    assert 401 == status


async def test_the_exit_call_is_a_hint(house: House) -> None:
    """Known secret: taken, whatever the uid; without one it is told what to send."""
    headers = {"Authorization": "Bearer EXIT"}

    assert (200, {"ok": True}) == await post(house, "/exit", json={"uid": "x"}, headers=headers)
    assert 400 == (await post(house, "/exit", json=["x"], headers=headers))[0]
    assert 400 == (await post(house, "/exit", data=b"nope", headers=headers))[0]


async def test_probes_and_metrics(house: House) -> None:
    """Healthy, ready, leading, and counted; no secret in any of it."""
    async with house.session.get(house.url + "/healthz") as response:
        assert 200 == response.status
    async with house.session.get(house.url + "/readyz") as response:
        assert {"ready": True, "missing": "", "leader": True} == await response.json()
    async with house.session.get(house.url + "/metrics") as response:
        text = await response.text()

    assert 'gputest_call_seconds_count{operation="me",outcome="ok",system="mattermost"} 1.0' in text
    assert "COMMAND" not in text
