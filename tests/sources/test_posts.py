"""Posts that are commands, and all the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.clients.mattermost_socket import decode
from bot.sources.posts import Me, PostedCommand, addressed, request_id, to_command, to_event, trigger_of

CASES = Path(__file__).parents[1] / "cases"
ME = Me("bbbbbbbbbbbbbbbbbbbbbbbbbb", "gputest")
TRIGGERS = ("gputest", "nightly", "gpu")


def post(message: str = "@gputest status", **more: Any) -> dict[str, Any]:
    """A post of a person."""
    body = {
        "id": "p" * 26,
        "create_at": 1772445600000,
        "delete_at": 0,
        "user_id": "u" * 26,
        "channel_id": "c" * 26,
        "root_id": "",
        "message": message,
        "type": "",
        "props": {},
    }
    return body | more


def read(body: dict[str, Any], channel_type: str = "O") -> PostedCommand | None:
    return to_command(body, channel_type, "t" * 26, ME, TRIGGERS)


def test_field_case_e06() -> None:
    """Of a day's frames two are commands: the mention in a channel and the direct message."""
    me = Me(ME.id, "gpubot")
    acted: dict[int, PostedCommand] = {}
    refused = 0
    for text in json.loads((CASES / "e06.json").read_text()):
        frame = decode(json.dumps(text))
        assert frame is not None
        refused += frame.status == "FAIL"
        if frame.event is not None and (found := to_event(frame.event, frame.data, me, TRIGGERS)):
            acted[frame.seq or 0] = found

    assert sorted(acted) == [1, 2]
    assert refused == 1
    assert [(c.command.trigger, c.command.text) for c in acted.values()] == [("gputest", "status")] * 2
    assert acted[1].command.user_id == "u" * 26
    assert acted[1].command.team_id == "t" * 26
    assert acted[1].command.request_id == request_id("p" * 26)


@pytest.mark.parametrize(
    "more",
    [
        {"user_id": ME.id},
        {"user_id": ""},
        {"type": "system_join_channel"},
        {"type": "custom_anything"},
        {"type": None},
        {"props": None},
        {"props": {"from_bot": "true"}},
        {"props": {"from_webhook": "true"}},
        {"props": {"from_webhook": True}},
        {"props": {"from_plugin": "true"}},
        {"delete_at": 1772445600001},
        {"edit_at": 1772445600001},
        {"message": None},
        {"message": ""},
        {"create_at": "yesterday"},
        {"id": 7},
        {"channel_id": None},
    ],
)
def test_what_no_person_typed_is_no_command(more: dict[str, Any]) -> None:
    """Own, system's, webhooks' and bots' posts, deleted and edited ones, and what is no post."""
    assert read(post(**more)) is None


def test_props_of_any_shape_are_survived() -> None:
    """A person may set props as they like; only the marks that are set count."""
    found = read(post(props={"from_bot": {"a": 1}, "from_webhook": "false", "attachments": [1]}))

    assert found is not None


def test_the_answer_goes_into_the_thread_of_the_post() -> None:
    """A post begins its own thread; a reply belongs to the one that it stands in."""
    first, reply = read(post()), read(post(root_id="r" * 26))

    assert first is not None
    assert reply is not None
    assert (first.root, reply.root) == ("p" * 26, "r" * 26)
    assert first.at == 1772445600000


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("@gputest models=all", "models=all"),
        ("@GPUtest models=all", "models=all"),
        ("  @gputest\nmodels=all", "models=all"),
        ("@gputest: status", "status"),
        ("@gputest, status", "status"),
        ("@gputest\u00a0status", "status"),
        ("\u200b@gputest status", "status"),
        ("@gputest", ""),
        ("@gputest.", ""),
        ("@gputest：status", "status"),
        ("@gputest،status", "status"),
        ("@gputest—models=all", "models=all"),
        ("@gputest:tada: status", None),
        ("@gputest's status", None),
        ("> @gputest status", None),
        ("`@gputest status`", None),
        ("```\n@gputest status\n```", None),
        ("@gputest-2 status", None),
        ("@gputest.x status", None),
        ("@gputester status", None),
        ("hey @gputest status", None),
        ("gputest status", None),
        ("/gputest status", None),
        ("", None),
    ],
)
def test_who_is_addressed_in_a_channel(message: str, said: str | None) -> None:
    """A post that begins with the bot's name, as the server would read that name."""
    assert addressed(message, "gputest", direct=False) == said


@pytest.mark.parametrize(
    ("message", "said"),
    [("status", "status"), ("@gputest status", "status"), (" /nightly status", "/nightly status"), ("hello", "hello")],
)
def test_everything_in_a_direct_message_is_said_to_the_bot(message: str, said: str) -> None:
    """The name may be left out there."""
    assert addressed(message, "gputest", direct=True) == said


def test_what_cannot_be_seen_is_not_said() -> None:
    """A phone's keyboard leaves it in front of a name and behind it."""
    assert "dqn" == addressed("\u061c\ufe0f@gputest\u2064 dqn\u180e", ME.name, direct=False)


def test_a_name_with_signs_is_taken_literally() -> None:
    """A dot in the bot's name is a dot."""
    assert addressed("@gpu.test status", "gpu.test", direct=False) == "status"
    assert addressed("@gpuxtest status", "gpu.test", direct=False) is None


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("models=all epochs=5", ("gputest", "models=all epochs=5")),
        ("gputest models=all", ("gputest", "models=all")),
        ("/gputest models=all", ("gputest", "models=all")),
        ("nightly status", ("nightly", "status")),
        ("/Nightly  enable ", ("nightly", "enable")),
        ("gpu", ("gpu", "")),
        ("status", ("gputest", "status")),
        ("/unheard of", ("unheard", "of")),
        ("/", ("gputest", "/")),
        ("", ("gputest", "")),
    ],
)
def test_the_first_word_may_name_the_command(said: str, command: tuple[str, str]) -> None:
    """With and without a slash; a slash word that is no command is answered as such, everything else is gputest."""
    assert trigger_of(said, TRIGGERS) == command


def test_a_post_read_twice_is_one_request() -> None:
    """The request is named after the post, so that a repetition makes one run."""
    first, again, other = read(post()), read(post(message="@gputest list")), read(post(id="q" * 26))

    assert first is not None
    assert again is not None
    assert other is not None
    assert first.command.request_id == again.command.request_id != other.command.request_id


@pytest.mark.parametrize("data", [None, [], {}, {"post": None}, {"post": "no json"}, {"post": "[]"}, {"post": {}}])
def test_frames_of_any_shape_are_survived(data: Any) -> None:
    """What is no post asks nothing."""
    assert to_event("posted", data, ME, TRIGGERS) is None


def test_a_post_nested_without_end_is_read() -> None:
    """Its props hold what anybody likes."""
    text = json.dumps(post(props={"x": "DEEP"})).replace('"DEEP"', "[" * 5000 + "]" * 5000)
    found = to_event("posted", {"channel_type": "O", "post": text}, ME, TRIGGERS)

    assert found is not None
    assert "status" == found.command.text


def test_other_events_are_no_commands() -> None:
    """An edit least of all: only what was sent counts."""
    data = {"channel_type": "O", "post": json.dumps(post())}

    assert to_event("post_edited", data, ME, TRIGGERS) is None
    assert to_event("posted", data, ME, TRIGGERS) is not None
