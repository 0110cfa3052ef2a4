"""Slash commands as Mattermost sends them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from bot.core.effects import Answer, OpenDialog, SubmitWorkflow
from bot.core.events import Clicked, CommandTyped
from bot.core.react import react
from bot.core.settings import Model
from bot.core.signing import Deed, Signed
from bot.core.state import State
from bot.sources.clicks import to_click, to_submission
from bot.sources.slash import is_known, offered_token, to_request
from tests.phrases import NOW, SETTINGS

CASES = Path(__file__).parents[1] / "cases"
E01 = json.loads((CASES / "e01.json").read_text(encoding="utf-8"))
E02 = json.loads((CASES / "e02.json").read_text(encoding="utf-8"))
LAB = replace(
    SETTINGS,
    models=(Model("resnet", "vision"), Model("bert", "text")),
    defaults=replace(SETTINGS.defaults, models=("resnet",)),
)
FORM = {
    "token": "TOKEN",
    "team_id": "t" * 26,
    "channel_id": "c" * 26,
    "user_id": "u" * 26,
    "user_name": "alice",
    "command": "/GpuTest",
    "text": "models=all",
    "trigger_id": "VFJJRw==",
    "response_url": "https://mm.example/hooks/commands/x",
}


def form_of(case: dict[str, Any]) -> dict[str, str]:
    """The fields of a recorded request, whichever way they came."""
    return dict(parse_qsl(case["query"] if case.get("method") == "GET" else case["body"], keep_blank_values=True))


def typed(case: dict[str, Any]) -> CommandTyped:
    return to_request(form_of(case)).command


@pytest.mark.parametrize("case", [c for c in E01 if isinstance(c["expect"], dict)], ids=lambda case: case["why"])
def test_field_case_e01_starts_what_was_meant(case: dict[str, Any]) -> None:
    """What phones, clients and proxies make of a line is read as it was meant."""
    effects = react(State(LAB), typed(case), NOW)

    (effect,) = effects
    assert isinstance(effect, SubmitWorkflow)
    models = case["expect"]["models"]
    assert ("resnet,bert" if models == "all" else ",".join([*models] if isinstance(models, list) else [models])) == (
        effect.parameters["models"]
    )
    assert str(case["expect"]["epochs"]) == effect.parameters["epochs"]


def test_field_case_e01_full_width_digits_are_digits() -> None:
    """Never silently the default."""
    (case,) = [c for c in E01 if "full-width" in c["why"]]
    (effect,) = react(State(LAB), typed(case), NOW)

    assert isinstance(effect, SubmitWorkflow)
    assert "5" == effect.parameters["epochs"]


def test_field_case_e01_a_lone_apostrophe_is_refused_in_words() -> None:
    """No exception, whatever shlex would say."""
    (case,) = [c for c in E01 if "shlex" in c["why"]]
    (effect,) = react(State(LAB), typed(case), NOW)

    assert isinstance(effect, Answer)
    assert effect.text.startswith("🤔 A quote (`'`) is opened and never closed. Nothing was started.")


def test_field_case_e01_no_word_is_the_form_and_without_a_trigger_the_help() -> None:
    """A dialog while its trigger is fresh, else the help."""
    (case,) = [c for c in E01 if c["why"] == "no args at all"]
    (form,) = react(State(LAB), typed(case), NOW)
    (text,) = react(State(LAB), replace(typed(case), trigger_id=""), NOW)

    assert isinstance(form, OpenDialog)
    assert "VFJJRw==" == form.trigger_id
    assert isinstance(text, Answer)
    assert text.text.startswith("**/gputest** starts GPU tests")


def test_all_of_e01_is_covered() -> None:
    """Ten requests: seven are parsed by a table, three have a test of their own."""
    assert 10 == len(E01)
    assert 7 == len([c for c in E01 if isinstance(c["expect"], dict)])


def test_the_fields_of_a_request() -> None:
    """Command without its slash and in lower case; what answers late goes to the response URL."""
    asked = to_request(FORM)

    assert ("gputest", "models=all") == (asked.command.trigger, asked.command.text)
    assert ("u" * 26, "alice", "c" * 26, "t" * 26, "VFJJRw==") == (
        asked.command.user_id,
        asked.command.user_name,
        asked.command.channel_id,
        asked.command.team_id,
        asked.command.trigger_id,
    )
    assert "https://mm.example/hooks/commands/x" == asked.response_url


def test_the_same_sending_is_the_same_request() -> None:
    """The trigger's id, unique for each sending, names it; a field that is missing is empty."""
    once, again, other = (to_request(f).command.request_id for f in (FORM, FORM, FORM | {"trigger_id": "other"}))

    assert once == again
    assert once != other
    assert "" == to_request({}).command.trigger


def test_the_token_is_taken_from_the_header_first() -> None:
    """Mattermost sends it twice; another scheme is none of ours."""
    assert "HEAD" == offered_token("Token HEAD", FORM)
    assert "TOKEN" == offered_token("Bearer HEAD", FORM)
    assert "TOKEN" == offered_token("", FORM)
    assert "" == offered_token("", {})


def test_a_token_is_one_of_ours_or_it_is_not() -> None:
    """An empty one is known to nobody; a header's bytes that are no text are survived."""
    assert is_known("b", ("a", "b"))
    assert not is_known("c", ("a", "b"))
    assert not is_known("", ())
    assert not is_known("\udcff", ("a",))


def test_field_case_e02_a_click_in_a_direct_message() -> None:
    """An empty team is no obstacle; who may is asked by user id."""
    signed = Signed(Deed.RERUN, NOW + 60, channel=E02["channel_id"], uid="uid", parameters={}, ref="main")
    click = to_click(E02, signed)

    assert isinstance(click, Clicked)
    assert ("uuuuuuuuuuuuuuuuuuuuuuuuuu", "alice", "dddddddddddddddddddddddddd", "VFJJRw==") == (
        click.user_id,
        click.user_name,
        click.channel_id,
        click.trigger_id,
    )


def test_a_click_without_its_fields_is_survived() -> None:
    """Anybody can send anything: what is missing or of another kind is empty."""
    click = to_click({"user_id": 7, "trigger_id": None}, Signed(Deed.RERUN, 0.0))

    assert ("", "", "", "") == (click.user_id, click.user_name, click.channel_id, click.trigger_id)


def test_values_of_a_form_are_texts() -> None:
    """Clients send numbers, switches and nothing as such."""
    values = {"epochs": 5.0, "share": 0.5, "notify": True, "ref": None, "models": "dqn"}
    sent = to_submission({"user_id": "u", "submission": values}, Signed(Deed.START, NOW, user_name="alice"))

    assert {"epochs": "5", "share": "0.5", "notify": "true", "ref": "", "models": "dqn"} == sent.values
    assert "alice" == sent.user_name
    assert {} == to_submission({"submission": [1]}, Signed(Deed.START, NOW)).values


def test_a_form_sent_twice_is_one_request() -> None:
    """The same values of the same form; other values are another."""
    signed = Signed(Deed.START, NOW)
    once, again, other = (
        to_submission({"submission": {"models": models}}, signed).request_id for models in ("dqn", "dqn", "ppo")
    )

    assert once == again
    assert once != other


@pytest.mark.parametrize("left", ["%A0", "%80%80"], ids=["no-break space", "ideographic space"])
def test_what_is_left_of_a_wide_space(left: str) -> None:
    """Of a wide space behind the trigger the server sends all bytes but the first."""
    form = dict(parse_qsl(f"command=/gputest&text={left}models%3Dall"))

    assert form["text"].startswith("\ufffd")
    assert to_request(FORM | form).command.text == "models=all"
