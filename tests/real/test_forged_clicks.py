"""Clicks, forms and commands that somebody made up, kept, or may not make: they do nothing, and say why.

All of it on the real Mattermost, where any user can make a post whose button calls the bot with any context.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web

from bot.core.signing import Deed, Signed, key_of, seal
from tests.real.bots import EXIT_TOKEN, WORKFLOWS, Trial, passing, red
from tests.real.calls import BY_NAME
from tests.real.exit_step import ExitStep
from tests.real.rig.pod_script import Exit, Outputs, Running, Wait
from tests.real.stage import ROLES

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(90)]

FAILED = "1 of 2 failed"
NOT_OURS, TOO_OLD, ELSEWHERE, SOMEBODY_ELSE = "none of mine", "too old", "another channel", "somebody else"


@dataclass(frozen=True)
class Scene:
    """A run that has ended with one model red, and one that tests; both with their cards."""

    trial: Trial
    ended: dict[str, Any]
    running: dict[str, Any]

    async def sealed(self, run: dict[str, Any]) -> str:
        """The context of the button of a run's card: the server keeps it, and shows it to nobody."""
        (card,) = (await self.trial.said(run)).cards
        (attachment,) = card.props["attachments"]
        return str(attachment["actions"][0]["integration"]["context"]["sealed"])

    async def card(self, run: dict[str, Any], who: str) -> dict[str, Any]:
        """The card of a run as somebody sees it."""
        (card,) = (await self.trial.said(run)).cards
        return await self.trial.stage.people[who].post(card.id)

    async def form(self, who: str = "ben") -> dict[str, Any]:
        """The form that asks once more whether the run is to be cancelled, opened for somebody."""
        person = self.trial.stage.people[who]
        opened = len(person.dialogs)
        await person.click(await self.card(self.running, who), "cancel")

        async def shown() -> bool:
            return len(person.dialogs) > opened

        await self.trial.until("the form", shown)
        return dict(person.dialogs[-1])


@pytest_asyncio.fixture(loop_scope="session")
async def scene(trial: Trial) -> AsyncIterator[Scene]:
    """The two runs."""
    await trial.other.end()
    await trial.alone()
    trial.stage.script("compile-and-test", red())
    ended = await trial.submit()
    await trial.reported(ended, FAILED, limit=15)
    trial.stage.script("compile-and-test", red("never"))
    running = await trial.submit()
    await trial.shows(running, "compiling and testing")
    yield Scene(trial, ended, running)


@asynccontextmanager
async def nothing_happens(trial: Trial) -> AsyncIterator[None]:
    """Meanwhile no run is made and none is touched."""
    known, began = await trial.uids(), len(trial.kube.seen)
    yield
    await asyncio.sleep(0.1)
    touched = [s for s in trial.kube.seen[began:] if s.mutates and s.path.startswith(WORKFLOWS)]
    assert touched == []
    assert await trial.uids() == known


async def clicked(trial: Trial, who: str, context: Any, channel: str = "", path: str = "/actions") -> str:
    """Somebody makes a post with a button of their own, clicks it, and reads what it says."""
    person = trial.stage.people[who]
    integration = {"url": f"{trial.bot.url}{path}", "context": context}
    action = {"id": "mine", "type": "button", "name": "Mine", "integration": integration}
    body = {"channel_id": channel or trial.stage.channel, "message": "look here"}
    post = await person.client.post("/posts", body | {"props": {"attachments": [{"text": "x", "actions": [action]}]}})
    return await said_to(trial, who, post, "mine")


async def said_to(trial: Trial, who: str, post: dict[str, Any], button: str) -> str:
    """Somebody clicks a button and reads the answer."""
    person = trial.stage.people[who]
    seen = len(person.ephemerals)
    await person.click(post, button)

    async def heard() -> bool:
        return len(person.ephemerals) > seen

    await trial.until("an answer to the click", heard, 5)
    return str(person.ephemerals[-1]["message"])


def signed(trial: Trial, **what: Any) -> str:
    """Something under the bot's own seal."""
    return seal(Signed(**what), key_of(trial.stage.account.token))


async def test_a_button_that_somebody_made_up(scene: Scene) -> None:
    """Whatever its context is, it is none of ours; signed with another key it is neither."""
    trial = scene.trial
    good = await scene.sealed(scene.running)
    payload, mac = good.split(".")
    uid = scene.running["metadata"]["uid"]
    wrong_key = seal(
        Signed(Deed.ASK_CANCEL, time.time() + 60, trial.stage.channel, uid=uid), key_of("another token entirely")
    )
    contexts = [
        {},
        {"sealed": ""},
        {"sealed": "made.up"},
        {"sealed": {"deed": "cancel", "uid": uid}},
        {"deed": "cancel", "uid": uid, "user": "anna"},
        {"sealed": wrong_key},
        {"sealed": payload},
        {"sealed": f"{payload}.{mac[:-2]}AA"},
        {"sealed": f"A{payload}.{mac}"},
        {"sealed": f"{good}\u00e9"},
    ]

    async with nothing_happens(trial):
        for context in contexts:
            assert NOT_OURS in await clicked(trial, "vera", context), context


async def test_a_button_that_was_copied(scene: Scene) -> None:
    """The real context in a post of somebody's own: in another channel nothing, here only what they may do."""
    trial = scene.trial
    rerun, cancel = await scene.sealed(scene.ended), await scene.sealed(scene.running)
    elsewhere = await trial.stage.office.create_channel(trial.stage.team, f"elsewhere-{trial.numbers}")
    for name in ("anna", "vera"):
        await trial.rig.mattermost.client().post(
            f"/channels/{elsewhere}/members", {"user_id": trial.stage.people[name].user_id}
        )

    async with nothing_happens(trial):
        for context in (rerun, cancel):
            assert ELSEWHERE in await clicked(trial, "anna", {"sealed": context}, elsewhere)
            assert "anna" in await clicked(trial, "vera", {"sealed": context})


async def test_a_click_that_is_sent_again(scene: Scene) -> None:
    """The very request of the server, and one with another trigger, sent to the bot three times: one run."""
    trial = scene.trial
    known = await trial.uids()
    trial.stage.script("compile-and-test", passing("", "dqn"))
    anna = trial.stage.anna
    body = {
        "user_id": anna.user_id,
        "user_name": "anna",
        "channel_id": trial.stage.channel,
        "team_id": trial.stage.team,
        "trigger_id": "one",
        "context": {"sealed": await scene.sealed(scene.ended)},
    }

    for trigger in ("one", "one", "two"):
        await sent(trial, "/actions", body | {"trigger_id": trigger})

    (run,) = await trial.made_since(known)
    await trial.reported(run, "green", limit=15)


async def sent(trial: Trial, path: str, body: Any) -> dict[str, Any]:
    """Somebody who reaches the bot's port sends JSON to it."""
    async with trial.rig.session.post(f"{trial.bot.url}{path}", json=body) as response:
        assert response.status == 200
        answer: dict[str, Any] = await response.json()
        return answer


async def test_a_button_that_is_too_old(scene: Scene) -> None:
    """Our own seal, and its time is over."""
    trial = scene.trial
    meta = scene.running["metadata"]
    old = signed(
        trial, deed=Deed.ASK_CANCEL, expires=time.time() - 1, channel=trial.stage.channel, uid=meta["uid"], short="x"
    )

    async with nothing_happens(trial):
        assert TOO_OLD in await clicked(trial, "anna", {"sealed": old})


async def test_a_click_of_somebody_who_may_not(scene: Scene) -> None:
    """Vera may look: the real buttons tell her who could."""
    trial = scene.trial

    async with nothing_happens(trial):
        for run, button in ((scene.ended, "rerun"), (scene.running, "cancel")):
            said = await said_to(trial, "vera", await scene.card(run, "vera"), button)
            assert "may not" in said
            assert "anna" in said


async def test_a_seal_for_one_thing_does_not_serve_for_another(scene: Scene) -> None:
    """A button's context is no form's state, and a form's state is no button's context."""
    trial = scene.trial
    form = await scene.form()
    ben = trial.stage.people["ben"]

    async with nothing_happens(trial):
        assert "no button" in await clicked(trial, "ben", {"sealed": form["dialog"]["state"]})
        form["dialog"]["state"] = await scene.sealed(scene.running)
        answer = await ben.submit_dialog(form, trial.stage.channel, {})
        assert SOMEBODY_ELSE in answer["error"]


async def test_a_form_of_somebody_else(scene: Scene) -> None:
    """Opened for Ben, and sent off by Anna, who may cancel, or by Vera, who may not."""
    trial = scene.trial
    form = await scene.form("ben")

    async with nothing_happens(trial):
        for who in ("anna", "vera"):
            answer = await trial.stage.people[who].submit_dialog(form, trial.stage.channel, {})
            assert SOMEBODY_ELSE in answer["error"]


async def test_a_form_whose_state_was_changed(scene: Scene) -> None:
    """One letter, another run's name in the payload, no seal, nothing at all, or a time that is over."""
    trial = scene.trial
    form = await scene.form("ben")
    ben = trial.stage.people["ben"]
    state = form["dialog"]["state"]
    payload, mac = state.split(".")
    other = signed(trial, deed=Deed.CANCEL, expires=time.time() + 60, user=ben.user_id, uid="another").split(".")[0]
    old = signed(trial, deed=Deed.CANCEL, expires=time.time() - 1, user=ben.user_id, channel=trial.stage.channel)
    changed = {
        f"{payload[:-1]}{'A' if payload[-1] != 'A' else 'B'}.{mac}": NOT_OURS,
        f"{other}.{mac}": NOT_OURS,
        payload: NOT_OURS,
        "": NOT_OURS,
        old: TOO_OLD,
    }

    async with nothing_happens(trial):
        for text, why in changed.items():
            form["dialog"]["state"] = text
            answer = await ben.submit_dialog(form, trial.stage.channel, {})
            assert why in answer["error"], text
        form["dialog"]["state"] = state
        closed = await ben.submit_dialog(form, trial.stage.channel, {}, cancelled=True)
        assert not closed.get("error")


async def test_a_form_with_the_state_of_another_run(scene: Scene) -> None:
    """Of one that has ended, of another life of the same run, of one that is not there: nobody else is cancelled."""
    trial = scene.trial
    form = await scene.form("ben")
    ben = trial.stage.people["ben"]
    common = {
        "deed": Deed.CANCEL,
        "expires": time.time() + 60,
        "channel": trial.stage.channel,
        "user": ben.user_id,
        "user_name": "ben",
        "short": "k7m2",
    }
    ended, running = (run["metadata"]["uid"] for run in (scene.ended, scene.running))
    states = {
        signed(trial, **common, uid=ended): "has ended already",
        signed(trial, **common, uid="00000000-0000-0000-0000-000000000000"): "has ended already",
        signed(trial, **common, uid=running, attempt="2020-01-01T00:00:00Z"): "started again since",
    }

    async with nothing_happens(trial):
        for state, why in states.items():
            form["dialog"]["state"] = state
            answer = await ben.submit_dialog(form, trial.stage.channel, {})
            assert why in answer["error"]


async def test_a_form_is_judged_where_it_was_opened(trial: Trial) -> None:
    """Vera may run in one channel alone. From where a form is sent, its sender says; what counts is under the seal."""
    await trial.bot.end()
    role = {"name": "square", "users": ["vera"], "channels": ["town-square"], "may": ["run", "look"]}
    await trial.restart(runs={"roles": [*ROLES, role]})
    vera = trial.stage.people["vera"]
    square = (await trial.rig.mattermost.client().get(f"/teams/{trial.stage.team}/channels/name/town-square"))["id"]
    known = await trial.uids()

    def form(channel: str) -> dict[str, Any]:
        common = {"deed": Deed.START, "expires": time.time() + 60, "user": vera.user_id, "user_name": "vera"}
        state = signed(trial, channel=channel, **common)
        return {"url": f"{trial.bot.url}/dialogs", "dialog": {"state": state}}

    values = {"models": "dqn", "epochs": 2, "ref": "main", "scope": "lib", "notify": "false"}
    async with nothing_happens(trial):
        answer = await vera.submit_dialog(form(trial.stage.channel), square, values)
        assert "may not" in answer["error"]
    answer = await vera.submit_dialog(form(square), trial.stage.channel, values)
    await trial.bot.end()

    assert not answer.get("error")
    assert len(await trial.made_since(known)) == 1


async def test_ten_buttons_clicked_by_two_at_once(trial: Trial) -> None:
    """Rerun failed on ten cards, each by Anna and by Ben at the same moment: ten runs."""
    await trial.other.end()
    await trial.alone()
    trial.stage.script("compile-and-test", red())
    runs = [await trial.submit() for _ in range(10)]
    for run in runs:
        await trial.reported(run, FAILED, limit=40)
    trial.stage.script("compile-and-test", passing("", "dqn"))
    known = await trial.uids()
    cards = [(await trial.said(run)).cards[0].id for run in runs]
    people = [trial.stage.people[name] for name in ("anna", "ben")]
    posts = {card: await people[0].post(card) for card in cards}

    await asyncio.gather(*(person.click(posts[card], "rerun") for card in cards for person in people))

    made = await trial.made_since(known)
    assert len(made) == 10
    for run in made:
        asked = {p["name"]: p["value"] for p in run["spec"]["arguments"]["parameters"]}
        assert asked["models"] == "dqn"
        await trial.reported(run, "green", limit=40)
    assert len(await trial.made_since(known)) == 10


async def test_what_the_bot_said_cannot_be_said_for_it(scene: Scene) -> None:
    """A person gives a reply and a post the marks of the bot's own: the notice comes all the same, and on its card."""
    trial, run = scene.trial, scene.running
    uid, attempt = (
        run["metadata"]["uid"],
        (await trial.phase(run["metadata"]["name"], "Running"))["status"]["startedAt"],
    )
    (card,) = (await trial.said(run)).cards
    vera = trial.stage.people["vera"]
    for part in ("notice", "failure:dqn"):
        props = {"gputest_reply": f"{uid}:{attempt}:{part}"}
        body = {"channel_id": trial.stage.channel, "message": "all fine", "root_id": card.id, "props": props}
        await vera.client.post("/posts", body)
    body = {"channel_id": trial.stage.channel, "message": "the card", "props": {"gputest_card": f"{uid}:1"}}
    forged = await vera.client.post("/posts", body)

    await trial.stage.release("never")

    said = await trial.reported(run, FAILED, limit=15)
    assert said.cards[0].id == card.id
    assert len(said.replies) == 2
    assert (await vera.post(forged["id"]))["delete_at"] == 0
    trial.stage.player.shut("never")


async def test_what_the_exit_step_said_cannot_be_said_for_it(trial: Trial) -> None:
    """It speaks by webhook while the bot is away, and nobody is rung again; a person who says the same silences nobody."""
    await trial.other.end()
    await trial.alone()
    stage, vera = trial.stage, trial.stage.people["vera"]
    gate = f"exit-{trial.numbers}"
    stage.script("compile-and-test", red())
    stage.script("notify-result", [Running(), Wait(gate), Outputs({"said": "yes"}), Exit(0)])
    spoken, forged = [await trial.submit() for _ in range(2)]
    for run in (spoken, forged):
        await trial.until("the exit step's pod", lambda run=run: has_exit_pod(trial, run))
    attempt = (await trial.phase(forged["metadata"]["name"], "Running"))["status"]["startedAt"]
    trial.bot.kill()
    await trial.bot.gone()
    closed = "http://127.0.0.1:9/exit"
    exit_step = ExitStep(trial.rig, trial.folder, closed, stage.exit_account(), EXIT_TOKEN)
    assert await exit_step.speak(spoken["metadata"]["name"], await stage._hook()) == "yes"
    (real,) = [p for p in await vera.posts(stage.channel) if p["props"].get("gputest_mark")]
    for mark in ({}, {"gputest_mark": "x"}, {"gputest_mark": real["props"]["gputest_mark"]}):
        props = {"from_webhook": "true", "gputest_uid": forged["metadata"]["uid"], "gputest_attempt": attempt}
        body = {"channel_id": stage.channel, "message": "all fine", "props": props | mark}
        await vera.client.post("/posts", body)
    await stage.release(gate)
    await trial.restart()

    await trial.reported(forged, FAILED, limit=15)
    await trial.reported(spoken, FAILED, notices=0, limit=15)


async def has_exit_pod(trial: Trial, run: dict[str, Any]) -> bool:
    """Whether Argo has come to the exit step of a run."""
    selector = f"workflows.argoproj.io/workflow={run['metadata']['name']},workflows.argoproj.io/on-exit=true"
    found = await trial.rig.kube.admin.get("/api/v1/namespaces/foxhunt/pods", {"labelSelector": selector})
    return bool(found["items"])


async def test_a_late_answer_goes_to_our_own_chat(scene: Scene) -> None:
    """The address for late answers comes from the user's own request: what it names is called by nobody."""
    trial, anna = scene.trial, scene.trial.stage.anna
    called: list[str] = []

    async def listen(request: web.Request) -> web.Response:
        called.append(request.path)
        return web.Response()

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", listen)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    elsewhere = f"127.0.0.1:{runner.addresses[0][1]}"
    slow = trial.kube.hold(BY_NAME["submit"].matches)
    began, heard = len(trial.chat.seen), len(anna.ephemerals)
    try:
        body = {
            "channel_id": trial.stage.channel,
            "team_id": trial.stage.team,
            "command": "/gputest dqn notify=false",
        }
        async with trial.rig.session.post(
            f"{trial.rig.mattermost.url}/api/v4/commands/execute",
            json=body,
            headers={"Authorization": f"Bearer {anna.client.token}", "Host": elsewhere},
        ) as response:
            assert response.status == 200
        slow.let_go.set()

        async def late() -> bool:
            return any(BY_NAME["late-answer"].matches(seen) for seen in trial.chat.seen[began:])

        await trial.until("the late answer", late)

        async def told() -> bool:
            return len(anna.ephemerals) >= heard + 2

        await trial.until("anna reads it", told)
    finally:
        await runner.cleanup()

    assert called == []


async def test_bodies_that_are_no_command(scene: Scene) -> None:
    """Too large, of another kind, in no encoding, with nothing in them: 200 and JSON, as Mattermost wants it."""
    trial = scene.trial
    token = trial.stage._tokens[0]
    form = "application/x-www-form-urlencoded"
    command = f"token={token}&command=%2Fgputest&text=all&user_id={trial.stage.anna.user_id}"
    bodies: list[tuple[str, bytes, dict[str, str]]] = [
        ("too large", f"{command}&padding={'x' * 300_000}".encode(), {"Content-Type": form}),
        (
            "too large, with the token in the header",
            b"x" * 300_000,
            {"Content-Type": form, "Authorization": f"Token {token}"},
        ),
        (
            "json",
            json.dumps({"token": token, "command": "/gputest", "text": "all"}).encode(),
            {"Content-Type": "application/json"},
        ),
        ("no kind", command.encode(), {"Content-Type": "text/plain"}),
        ("several parts, without a boundary", command.encode(), {"Content-Type": "multipart/form-data"}),
        ("several parts, broken", b"--x\r\nnonsense", {"Content-Type": "multipart/form-data; boundary=x"}),
        ("no encoding", b"token=\xff\xfe&command=\xff", {"Content-Type": form}),
        ("an encoding that does not exist", command.encode(), {"Content-Type": f"{form}; charset=klingon"}),
        ("an encoding that is no text", command.encode(), {"Content-Type": f"{form}; charset=base64"}),
        ("nothing", b"", {"Content-Type": form}),
        ("nothing but the token", f"token={token}".encode(), {"Content-Type": form}),
        ("a wrong token", command.replace(token, "x" * 26).encode(), {"Content-Type": form}),
        ("a token of no letters", command.replace(token, "%FF%FE").encode(), {"Content-Type": form}),
        ("no such command", f"token={token}&command=%2Frm&text=-rf".encode(), {"Content-Type": form}),
        ("very many fields", f"token={token}&{'a=b&' * 20_000}".encode(), {"Content-Type": form}),
    ]

    async with nothing_happens(trial):
        for what, body, headers in bodies:
            async with trial.rig.session.post(f"{trial.bot.url}/commands", data=body, headers=headers) as response:
                assert response.status == 200, what
                assert response.content_type == "application/json", what
                answer = await response.json()
                assert answer["response_type"] == "ephemeral", what
                assert answer["text"], what


async def test_bodies_that_are_no_click(scene: Scene) -> None:
    """The same for buttons and forms: nothing happens, and what is said is JSON."""
    trial = scene.trial
    bodies: list[tuple[bytes, str]] = [
        (b"", "application/json"),
        (b"x" * 300_000, "application/json"),
        (b"\xff\xfe", "application/json"),
        (b"{}", "application/json; charset=klingon"),
        (b"{}", "application/json; charset=base64"),
        (b"[]", "application/json"),
        (b"null", "application/json"),
        (b'{"context": [], "state": 5}', "application/json"),
        (b'{"context": {"sealed": []}, "state": {}}', "application/json"),
        (b"[" * 100_000, "application/json"),
        (b'{"state": "\\ud800.x", "context": {"sealed": "\\ud800.x"}}', "application/json"),
        (b"a=b", "application/x-www-form-urlencoded"),
    ]

    async with nothing_happens(trial):
        for path in ("/actions", "/dialogs"):
            for body, kind in bodies:
                async with trial.rig.session.post(
                    f"{trial.bot.url}{path}", data=body, headers={"Content-Type": kind}
                ) as response:
                    assert response.status == 200, (path, body[:60], kind)
                    assert NOT_OURS in await response.text(), (path, body[:60], kind)


async def test_the_real_ones_still_work(scene: Scene) -> None:
    """After all of that: Ben's own form, sent off by Ben, cancels the run that it is for."""
    trial = scene.trial
    form = await scene.form("ben")

    answer = await trial.stage.people["ben"].submit_dialog(form, trial.stage.channel, {})

    assert not answer.get("error")
    await trial.reported(scene.running, "cancelled by ben", limit=15)
