"""The nightly run: what is held of CronWorkflows, and what is said of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bot.core.asking import typed
from bot.core.effects import Answer, SetSuspend
from bot.core.events import (
    CommandTyped,
    CronWorkflowChanged,
    CronWorkflowDeleted,
    CronWorkflowsListed,
    EffectDone,
    EffectFailed,
    Trouble,
    Woke,
)
from bot.core.nightly import SWITCHED, view
from bot.core.react import react
from bot.core.render import nightly as answers
from bot.core.settings import Settings
from bot.core.state import State
from bot.core.workflow import CronWorkflow, CronWorkflowList
from tests.phrases import NOW, SETTINGS, cron

D01 = (Path(__file__).parents[1] / "cases" / "d01.json").read_bytes()
LIST = msgspec.json.decode(json.dumps({"metadata": {}} | json.loads(D01)), type=CronWorkflowList)
ITEMS = {item.metadata.name: item for item in LIST.items or []}


def with_crons(*crons: CronWorkflow, settings: Settings = SETTINGS) -> State:
    """A state in which these were listed."""
    state = State(settings)
    react(state, CronWorkflowsListed(crons), NOW)
    return state


def say(state: State, text: str, request: str = "r1") -> str:
    """What a person reads who types it."""
    (effect,) = typed(state, CommandTyped(request, "nightly", text, "anna", "anna", "C"), NOW)
    assert isinstance(effect, Answer)
    return effect.text


def switching(state: State, text: str) -> SetSuspend:
    """The switch that it asks for."""
    (effect,) = typed(state, CommandTyped("r1", "nightly", text, "anna", "anna", "C"), NOW)
    assert isinstance(effect, SetSuspend)
    return effect


def called(name: str) -> Settings:
    """Settings in which the nightly run is called so."""
    return replace(SETTINGS, cron=name)


@pytest.mark.parametrize(
    ("name", "schedules", "says"),
    [
        (
            "v35-single",
            ("0 2 * * *",),
            "🌙 Nightly (v35-single) is **on** · `0 2 * * *` (Europe/Paris) · next Tue 3 Mar 02:00 CET (01:00 UTC)",
        ),
        ("empty-list", (), "🌙 Nightly (empty-list) is **on**\n⚠️ It has no schedule."),
        ("null-list", (), "🌙 Nightly (null-list) is **off**\n⚠️ It has no schedule."),
        (
            "v4-many",
            ("0 2 * * 1-5", "@daily"),
            (
                "🌙 Nightly (v4-many) is **on** · `0 2 * * 1-5`, `@daily` (Europe/Paris) · next Tue 3 Mar 00:00 CET (23:00 UTC)"
                "\nRunning: `v4-many-1772413200`"
            ),
        ),
        (
            "v4-stopped",
            ("0 2 * * *",),
            (
                "🌙 Nightly (v4-stopped) is **on** · `0 2 * * *` (UTC, assumed)\n⚠️ Argo stopped it (3 failures): its stop"
                " strategy fired. Switching it on starts nothing until it is reset."
            ),
        ),
    ],
)
def test_field_case_d01_shapes_of_every_version(name: str, schedules: tuple[str, ...], says: str) -> None:
    """One schedule or many, none in three spellings, stopped though not suspended."""
    state = with_crons(*ITEMS.values(), settings=called(name))

    assert schedules == ITEMS[name].schedules
    assert says == say(state, "status")


@pytest.mark.parametrize("name", ["empty-list", "null-list"])
def test_field_case_d01_without_a_schedule_enable_is_refused(name: str) -> None:
    """It would look like success and start nothing."""
    state = with_crons(*ITEMS.values(), settings=called(name))

    assert answers.without_schedule() == say(state, "enable")
    assert "Nothing was changed." in say(state, "enable", "r2")


def test_without_a_schedule_disable_is_taken() -> None:
    """It does what it says."""
    assert switching(with_crons(ITEMS["empty-list"], settings=called("empty-list")), "disable").suspend


def test_field_case_d01_enabling_what_argo_stopped_is_no_success() -> None:
    """The flag is set, and it will not run."""
    state = with_crons(*ITEMS.values(), settings=called("v4-stopped"))
    effect = switching(state, "enable")
    (answer,) = react(state, EffectDone(effect.id, ITEMS["v4-stopped"]), NOW)

    assert isinstance(answer, Answer)
    assert answer.text.startswith("⚠️ The flag is set, but it will not run.\n🌙 Nightly (v4-stopped) is **on**")


def test_switching_says_what_was_read_back() -> None:
    """On, since when it comes, and who did it; the flag's new value is held at once."""
    state = with_crons(cron())
    effect = switching(state, 'enable reason="the H100 is back"')
    written = cron(suspend=False)
    written = msgspec.structs.replace(
        written, metadata=msgspec.structs.replace(written.metadata, annotations=effect.annotations)
    )
    (answer,) = react(state, EffectDone(effect.id, written), NOW)

    assert (False, "gpu-test-nightly", "foxhunt") == (effect.suspend, effect.name, effect.namespace)
    assert isinstance(answer, Answer)
    assert answer.text == (
        "✅ 🌙 Nightly (gpu-test-nightly) is **on** · `0 2 * * *` (Europe/Paris) · next Tue 3 Mar 02:00 CET (01:00 UTC)"
        "\nSwitched on by anna, 2 Mar 11:06 CET: the H100 is back"
    )
    assert not state.nightly.crons["gpu-test-nightly"].suspended


def test_a_switch_that_something_else_undid() -> None:
    """What is read back is not what was set."""
    state = with_crons(cron())
    effect = switching(state, "enable")
    (answer,) = react(state, EffectDone(effect.id, cron(suspend=True)), NOW)

    assert isinstance(answer, Answer)
    assert "read back that nightly is **off**" in answer.text


def test_a_switch_that_failed_for_good() -> None:
    """Refused once, or not answered four times with growing pauses."""
    state = with_crons(cron())
    (refused,) = react(state, EffectFailed(switching(state, "enable").id, Trouble.REFUSED, "forbidden"), NOW)

    assert Answer("r1", "⚠️ I could not switch nightly: forbidden. See how it is with `/nightly status`.") == refused


def test_a_switch_that_was_not_answered_is_tried_again() -> None:
    """After one, two and four seconds, or as long as the other side asked; then the person is told."""
    state = with_crons(cron())
    effect: object = switching(state, "enable")
    waits = []
    for retry_after in (None, None, 30.0):
        assert isinstance(effect, SetSuspend)
        (wake,) = react(state, EffectFailed(effect.id, Trouble.BUSY, "busy", retry_after=retry_after), NOW)
        waits.append(wake.when - NOW)
        (effect,) = react(state, Woke(wake.key), NOW)
    (answer,) = react(state, EffectFailed(effect.id, Trouble.BUSY, "busy"), NOW)

    assert [1, 2, 30] == waits
    assert isinstance(answer, Answer)
    assert "busy" in answer.text


def test_before_the_first_list_and_after_a_deletion() -> None:
    """Not seen yet is another thing than not there."""
    state = State(SETTINGS)

    assert "I have just started" in say(state, "status")
    react(state, CronWorkflowChanged(cron()), NOW)
    assert "is **off**" in say(state, "status", "r2")
    react(state, CronWorkflowDeleted(cron()), NOW)
    react(state, CronWorkflowDeleted(cron()), NOW)
    react(state, CronWorkflowsListed(()), NOW)
    assert "There is no CronWorkflow `gpu-test-nightly`" in say(state, "enable", "r3")


def test_the_help_needs_no_cluster() -> None:
    """It is the same whatever is seen."""
    assert say(State(SETTINGS), "help").startswith("**/nightly** switches")


def switched(text: str, *, suspend: bool) -> CronWorkflow:
    """The nightly run with this annotation."""
    made = cron(suspend=suspend)
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, annotations={SWITCHED: text}))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"user":1,"at":"x","suspend":true}'])
def test_an_annotation_that_can_not_be_read_is_none(text: str) -> None:
    """Somebody else wrote it, or another version."""
    assert view(switched(text, suspend=True), NOW).switched is None


@pytest.mark.parametrize("at", [0, -5, 1e12])
def test_a_time_that_can_not_be_shown_is_none(at: float) -> None:
    """Whoever wrote it."""
    text = json.dumps({"user": "anna", "at": at, "suspend": True})

    assert view(switched(text, suspend=True), NOW).switched is None


def test_what_was_switched_by_something_else_since() -> None:
    """GitOps, say: who switched it last by a command, and that it was not the bot."""
    text = json.dumps({"user": "anna", "at": NOW, "suspend": False, "reason": "before the release"})
    off = answers.status(view(switched(text, suspend=True), NOW))

    assert "is **off**" in off
    assert off.endswith(
        "⚠️ Switched on by anna, 2 Mar 11:06 CET: before the release. Since then something else switched it off (GitOps?)."
    )


def test_who_switched_it() -> None:
    """While the flag is as they left it, and afterwards."""
    text = json.dumps({"user": "anna", "at": NOW, "suspend": True, "reason": "*no* @all `H100`"})
    off, on = view(switched(text, suspend=True), NOW), view(switched(text, suspend=False), NOW)

    assert answers.status(off).endswith("\nSwitched off by anna, 2 Mar 11:06 CET: \\*no\\* @\u200ball \\`H100\\`")
    assert answers.status(on).endswith("Since then something else switched it on (GitOps?).")


def test_what_argo_complains_of_is_told() -> None:
    """A schedule that it can't use."""
    body = {
        "metadata": {"name": "n"},
        "spec": {"schedules": ["x"]},
        "status": {
            "conditions": [
                {"type": "Completed", "status": "False", "message": "old"},
                {"type": "SubmissionError", "status": "True"},
                {"type": "SpecError", "status": "True", "message": "cron schedule x is malformed"},
            ]
        },
    }
    made = msgspec.json.decode(json.dumps(body), type=CronWorkflow)

    assert "⚠️ Argo says: cron schedule x is malformed" in answers.status(view(made, NOW))


@pytest.mark.parametrize(
    ("spec", "told", "head"),
    [
        ({"timezone": "Europe/Pariss"}, "⚠️ There is no time zone `Europe/Pariss`, so Argo starts nothing.", "will"),
        (
            {"schedules": ["CRON_TZ=UTC 0 2 * * *"]},
            "weekdays from 0 (Sunday) to 6. Beside `timezone` it takes no `TZ=`.",
            "will",
        ),
        ({"schedules": ["0 2 31 2 *"]}, "⚠️ The day of `0 2 31 2 *` never comes.", "will"),
        (
            {"schedule": "0 3 * * *"},
            "⚠️ It has both `schedule` and `schedules`: Argo up to 3.7 starts nothing then",
            "may",
        ),
    ],
)
def test_a_schedule_that_starts_nothing_is_no_success(spec: dict[str, object], told: str, head: str) -> None:
    """Argo says nothing of most of these: no time is promised, and switching it on is not reported as done."""
    state = with_crons(cron(**spec))
    effect = switching(state, "enable")
    (answer,) = react(state, EffectDone(effect.id, cron(suspend=False, **spec)), NOW)

    assert isinstance(answer, Answer)
    assert answer.text.startswith(f"⚠️ The flag is set, but it {head} not run.\n🌙 Nightly (gpu-test-nightly) is **on**")
    assert told in answer.text
    assert "next " not in answer.text


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, True),
        ({"startingDeadlineSeconds": 0}, False),
        ({"startingDeadlineSeconds": None}, False),
        ({"startingDeadlineSeconds": 60}, False),  # 01:00 is over an hour ago
        ({"lastScheduledTime": None}, False),
        ({"lastScheduledTime": "2026-03-02T01:00:00Z"}, False),  # it was not missed
        ({"used": "CRON_TZ=Europe/Paris 0 3 * * *"}, False),  # the schedule was changed since
        ({"timezone": None, "used": "0 2 * * *"}, True),
        ({"schedules": ["0 0 31 2 *"], "used": "CRON_TZ=Europe/Paris 0 0 31 2 *"}, False),
    ],
)
def test_what_was_missed_is_started_at_once(more: dict[str, Any], told: bool) -> None:
    """The night's run, where Argo is told to make up for it: nobody is surprised by a node."""
    spec = {"schedules": ["0 2 * * *"], "timezone": "Europe/Paris", "startingDeadlineSeconds": 43200}
    fields = {"lastScheduledTime": "2026-03-01T01:00:00Z", "used": "CRON_TZ=Europe/Paris 0 2 * * *"} | more
    spec |= {key: fields[key] for key in fields if key not in {"used", "lastScheduledTime"}}
    body = {
        "metadata": {"name": "n", "annotations": {"cronworkflows.argoproj.io/last-used-schedule": fields["used"]}},
        "spec": spec | {"suspend": True},
        "status": {"lastScheduledTime": fields["lastScheduledTime"]},
    }
    off = msgspec.json.decode(json.dumps(body), type=CronWorkflow)
    body["spec"]["suspend"] = False
    on = msgspec.json.decode(json.dumps(body), type=CronWorkflow)

    line = "A due time went by not long ago: it is started at once"
    assert (f"{line} when it is switched on (`startingDeadlineSeconds`)." in answers.status(view(off, NOW))) is told
    assert (f"{line} (`startingDeadlineSeconds`)." in answers.status(view(on, NOW))) is told


def test_a_condition_on_a_due_time_is_told() -> None:
    """What is due may start nothing all the same."""
    made = cron(suspend=False, when="{{= cronworkflow.failed < 3 }}")

    assert answers.status(view(made, NOW)).endswith(
        "\nA due time starts it only where `{{= cronworkflow.failed < 3 }}` holds."
    )


def test_a_stop_without_failures_counts_none() -> None:
    """A stop strategy can also look at successes."""
    made = msgspec.json.decode(b'{"metadata":{"name":"n"},"status":{"phase":"Stopped"}}', type=CronWorkflow)

    assert "⚠️ Argo stopped it: its stop strategy fired." in answers.status(view(made, NOW))
