"""Mattermost: what every request has in common: who sends it, how its body is read, and how a refusal looks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.talk import Talk
from tests.contract.wire import Answer, Integration, Json

NOBODY = "x" * 26
BAD_BODY = (400, "api.context.invalid_body_param.app_error")
NO_SESSION = (401, "api.context.session_expired.app_error")
NO_ROUTE = (404, "api.context.404.app_error")


def cookie(token: str, **headers: str) -> dict[str, str]:
    """Headers of a browser that has signed in."""
    return {"Cookie": f"MMAUTHTOKEN={token}", **headers}


async def test_how_a_refusal_looks(talk: Talk) -> None:
    """Five fields, JSON, and the request's id in the body and in a header."""
    answer = await talk.as_bot.get(f"/posts/{NOBODY}")

    assert set(answer.body) == {"id", "message", "detailed_error", "request_id", "status_code"}
    assert (answer.status, answer.body["status_code"], answer.body["detailed_error"]) == (404, 404, "")
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Request-Id"] == answer.body["request_id"]
    assert answer.headers["Expires"] == "0"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/nothing"),
        ("DELETE", "/posts"),
        ("PATCH", "/users/me"),
        ("GET", "/users/me/"),
        ("GET", f"/posts/{'a-' * 13}"),
        ("GET", "/users/username/@anna"),
        ("DELETE", f"/users/me/posts/{NOBODY}/reactions/a$b"),
    ],
)
async def test_routes_that_are_none(talk: Talk, method: str, path: str) -> None:
    """404 before anybody is asked who they are; in plain text that is JSON, and without an id."""
    for wire in (talk.as_bot, talk.admin.of("")):
        answer = await wire(method, path)

        assert answer.error == NO_ROUTE
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert "request_id" not in answer.body
        assert path.partition("?")[0] in answer.body["detailed_error"]


async def test_who_sends_it(talk: Talk) -> None:
    """The header's scheme is of any case and has one space; a cookie goes before it."""
    nobody, token = talk.admin.of(""), talk.account.token
    known = [
        (await nobody("GET", "/users/me", headers={"Authorization": f"{scheme} {token}"})).status
        for scheme in ("Bearer", "BEARER", "token", "Basic", "Bearer ")
    ]
    by_cookie = await nobody("GET", "/users/me", headers=cookie(token))
    wrong_cookie = await talk.as_bot("GET", "/users/me", headers=cookie(NOBODY))
    in_query = await nobody.get("/users/me", access_token=token)

    assert known == [200, 200, 200, 401, 401]
    assert (by_cookie.status, by_cookie.body["username"]) == (200, "gputest")
    assert wrong_cookie.error == NO_SESSION
    assert in_query.error == (401, "api.context.token_provided.app_error")


async def test_what_a_cookie_may_write(talk: Talk) -> None:
    """By a password's session nothing, unless the request says that it is no form of another site."""
    nobody, body = talk.admin.of(""), {"channel_id": talk.channel, "message": "by cookie"}
    session, marked = talk.anna.client.token, {"X-Requested-With": "XMLHttpRequest"}
    bare = await nobody("POST", "/posts", body, headers=cookie(session))
    meant = await nobody("POST", "/posts", body, headers=cookie(session, **marked))
    personal = await nobody("POST", "/posts", body, headers=cookie(talk.account.token))

    assert bare.error == NO_SESSION
    assert (meant.status, personal.status) == (201, 201)


@pytest.mark.parametrize(
    "fields",
    [
        {"message": 5},
        {"props": [1]},
        {"props": "x"},
        {"file_ids": "x"},
        {"file_ids": [5]},
        {"root_id": 5},
        {"pending_post_id": 5},
        {"channel_id": 5},
        {"create_at": "now"},
        {"is_pinned": "true"},
    ],
    ids=str,
)
async def test_fields_of_another_kind(talk: Talk, fields: Json) -> None:
    """400, and nothing is posted."""
    answer = await talk.as_bot.post("/posts", {"channel_id": talk.channel, "message": "x"} | fields)

    assert answer.error == BAD_BODY


async def test_bodies_as_go_reads_them(talk: Talk) -> None:
    """Names in any case, null as nothing, what is not UTF-8 as replacements, and nothing behind the first value."""

    async def send(raw: bytes, kind: str = "application/json") -> Answer:
        return await talk.as_bot("POST", "/posts", raw, kind=kind)

    channel = talk.channel.encode()
    case = await send(b'{"Channel_ID":"%b","MESSAGE":"upper"}' % channel)
    null = await send(b'{"channel_id":"%b","message":"null","props":null,"file_ids":null,"root_id":null}' % channel)
    bytes_ = await send(b'{"channel_id":"%b","message":"a\xff"}' % channel)
    more = await send(b'{"channel_id":"%b","message":"first"} and more' % channel)
    text = await send(json.dumps({"channel_id": talk.channel, "message": "text"}).encode(), "text/plain")
    nothing = await send(b"null")

    assert [one.body["message"] for one in (case, null, bytes_, more, text)] == [
        *("upper", "null", "a\ufffd", "first", "text"),
    ]
    assert nothing.error == (403, "api.context.permissions.app_error")


@pytest.mark.parametrize("path", ["/posts", "/reactions", "/channels", "/commands/execute", "/actions/dialogs/submit"])
@pytest.mark.parametrize("raw", [b"{nonsense", b"[1]", b'"x"', b""], ids=str)
async def test_bodies_that_are_no_object(talk: Talk, path: str, raw: bytes) -> None:
    """400 wherever one is read."""
    assert (await talk.as_anna("POST", path, raw)).error == BAD_BODY


async def test_buttons_and_answers_of_another_kind(talk: Talk, service: Integration) -> None:
    """A click reads what it can; an answer that is of another kind has failed, and changes nothing."""
    button = {"id": "go", "name": "Go", "type": "button", "integration": {"url": f"{service.url}/a"}}
    post = await talk.post("card", props={"attachments": [{"text": "text", "actions": [button]}]})

    async def click(body: Any = None) -> Answer:
        return await talk.as_anna("POST", f"/posts/{post['id']}/actions/go", body)

    read = [(await click(raw)).status for raw in (b"", b"{nonsense", b"[1]", b"null", b'{"selected_option":5}')]
    service.answer = "null"
    null = await click()
    failed = []
    for answer in ({"update": "x"}, {"ephemeral_text": 5}, {"update": {"message": 5}}, {"update": {"props": "x"}}):
        service.answer = answer
        failed.append((await click()).error)
    forged = await click({"cookie": "nonsense"})

    assert read == [200] * 5
    assert null.status == 200
    assert failed == [(400, "api.post.do_action.action_integration.app_error")] * 4
    assert forged.error == (400, "api.post.do_action.action_integration.app_error")
    assert (await talk.stored(post["id"]))["message"] == "card"


async def test_dialogs_of_another_kind(talk: Talk, service: Integration) -> None:
    """400, opened or sent off; a team that one is not in is 403; what the integration says beside errors is dropped."""
    dialog = {"trigger_id": "x", "url": f"{service.url}/d", "dialog": {"elements": [5]}}
    opened = await talk.as_bot.post("/actions/dialogs/open", dialog)
    body = {"url": f"{service.url}/d", "channel_id": talk.channel, "team_id": talk.team, "submission": {"a": "b"}}
    wrong = await talk.as_anna.post("/actions/dialogs/submit", body | {"submission": "x"})
    elsewhere = await talk.as_anna.post("/actions/dialogs/submit", body | {"team_id": NOBODY})
    service.answer = {"errors": "x", "more": 1}
    shown = await talk.as_anna.post("/actions/dialogs/submit", body)
    await talk.as_anna.post("/actions/dialogs/submit", {key: body[key] for key in ("url", "channel_id", "team_id")})

    assert (opened.error, wrong.error) == (BAD_BODY, BAD_BODY)
    assert elsewhere.error == (403, "api.context.permissions.app_error")
    assert (shown.status, shown.body) == (200, {})
    assert service.last.json["submission"] is None


async def test_the_client_needs_the_old_format(talk: Talk) -> None:
    """The configuration without `format=old` is 501; who has not signed in gets the smaller one."""
    bare = await talk.as_bot.get("/config/client")
    whole = await talk.as_bot.get("/config/client", format="old")
    small = await talk.admin.of("").get("/config/client", format="old")
    other = await talk.as_bot.get("/config/client", format="new")

    assert bare.error == (501, "api.config.client.old_format.app_error")
    assert (whole.body["MaxPostSize"], whole.body["Version"]) == ("16383", "6.7.2")
    assert (small.body["Version"], "MaxPostSize" in small.body) == ("6.7.2", False)
    assert other.error == BAD_BODY


async def test_pages_that_are_none(talk: Talk) -> None:
    """What is no number counts as not given; of `since`, and of ids, it is 400."""
    path = f"/channels/{talk.channel}"
    for query in ({"per_page": "x"}, {"page": "-1"}, {"per_page": "-5", "page": "x"}):
        members = (await talk.as_bot.get(f"{path}/members", **query)).body

        assert {talk.anna.user_id, talk.ben.user_id} <= {member["user_id"] for member in members}
        assert (await talk.as_bot.get(f"{path}/posts", **query)).status == 200
    for key in ("since", "before", "after"):
        assert (await talk.as_bot.get(f"{path}/posts", **{key: "x"})).error == BAD_BODY
