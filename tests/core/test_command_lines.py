"""What people type, and exactly what they get: the table of command_lines.tsv, told through the core's entrance.

A line of the table is who types (empty: anna), what, and what comes: an answer with `⏎` for its line breaks, or an effect
(`run …`, `stop …`, `switch …`, `form`). Signs that can't be seen are written as `\\u00a0`; `{…}` stands for a text of `WORDS`.
`GOLDEN=write` writes what comes anew; read the difference before you commit it.
"""

from __future__ import annotations

import os
import re
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from bot.core.commands import gpu, gputest, nightly
from bot.core.effects import Answer, Effect, OpenDialog, PatchWorkflow, SetSuspend, SubmitWorkflow
from bot.core.events import CommandTyped, CronWorkflowsListed
from bot.core.memory import REQUEST_ANNOTATION, Request, write
from bot.core.react import react
from bot.core.render import answers
from bot.core.settings import Right, Role
from bot.core.state import State
from tests.core.playbook import Playbook
from tests.phrases import ALL, NOW, SETTINGS, cron, green, node, outputs, results, suite, workflow_json

TABLE = Path(__file__).parent / "command_lines.tsv"
PEOPLE = replace(
    SETTINGS,
    roles=(
        Role("engineers", users=("anna", "ben"), user_ids=("anna", "ben"), may=tuple(Right)),
        Role(
            "interns",
            users=("ian",),
            user_ids=("ian",),
            may=(Right.RUN, Right.LOOK),
            max_epochs=10,
            pools=("ci-training",),
            refs=("main",),
        ),
        Role("visitors", channels=("gpu-tests",), channel_ids=("CHANNEL",)),
    ),
)
SPOKEN = {
    "models": "models",
    "test-scope": "scope",
    "epochs": "epochs",
    "commit-ref": "ref",
    "gpu-pool": "pool",
    "cuda-compute-cap": "cap",
    "notify": "notify",
}
DEFAULTS = gputest.parameters(gputest.StartRun(), PEOPLE)
WORDS = {
    "{models}": f"Models: {ALL.replace(',', ', ')}.",
    "{keys}": "Keys: models, scope, epochs, ref, pool, cap, notify.",
    "{pools}": "Pools: ci-training-h100, ci-training, ci-compile.",
    "{ref}": "is no branch, tag or commit that I take: letters, digits and `. _ / + @ -`.",
    "{reason}": "I take one word (enable, disable or status) and, in quotes, a reason.",
    "{nothing started}": "Nothing was started.",
    "{help}": answers.help_text(gputest.SPEC, PEOPLE),
    "{nightly help}": answers.help_text(nightly.SPEC, PEOPLE),
}


class Row(NamedTuple):
    """One line of the table."""

    who: str
    typed: str
    comes: str


def seen(text: str) -> str:
    """A field of the table with its signs as they are typed."""
    return re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text).replace("\\n", "\n")


def rows() -> list[Row]:
    """The table without its headings."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    fields = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return [Row(who or "anna", seen(typed), comes) for who, typed, comes in fields]


@cache
def world() -> State:
    """Anna's k7m2 runs, Ben's j9p3 is queued, m3x8 failed, and z4q1 was green."""
    book = Playbook(settings=PEOPLE)
    book.tell(CronWorkflowsListed((cron(),)))
    red = results([suite("dqn", status="failed", failed_tests=["a"]), suite("ppo")], models=["dqn", "ppo"])
    for name, text, phase in (("gpu-test-m3x8", red, "Failed"), ("gpu-test-z4q1", green("dqn"), "Succeeded")):
        tests = node("compile-and-test", phase, outputs=outputs(text))
        models = "dqn,ppo" if phase == "Failed" else "dqn"
        book.see(workflow_json(name, phase=phase, nodes=[tests], parameters={"models": models}))
    for name, who, phase in (("gpu-test-k7m2", "anna", "Running"), ("gpu-test-j9p3", "ben", "")):
        asked = {REQUEST_ANNOTATION: write(Request(name, "r", who, who, "CHANNEL"))}
        nodes = [node("compile-and-test", "Running")] if phase else []
        book.see(workflow_json(name, phase=phase, nodes=nodes, meta={"annotations": asked}))
    book.state.listed = True
    return book.state


def say(who: str, typed: str) -> list[Effect]:
    """Somebody types it into the channel of the cards."""
    trigger, _, text = typed.removeprefix("/").partition(" ")
    command = CommandTyped("r1", trigger, text, who, who, "CHANNEL", trigger_id="T")
    return react(deepcopy(world()), command, NOW)


def shown(effects: list[Effect]) -> str:
    """What came, as the table says it."""
    (effect,) = effects
    match effect:
        case Answer(text=text):
            for word, full in WORDS.items():
                text = text.replace(full, word)
            return text.replace("\n", " ⏎ ")
        case SubmitWorkflow(parameters=asked):
            assert asked.keys() == DEFAULTS.keys()
            models = {"models": "all"} if asked["models"] == ALL else {}
            changed = {k: v for k, v in asked.items() if v != DEFAULTS[k]} | models
            return " ".join(["run", *(f"{SPOKEN[k]}={v}" for k, v in changed.items())])
        case SetSuspend(suspend=suspend, annotations=annotations):
            reason = re.search('"reason":"(.*)"', str(annotations))
            return f"switch {'off' if suspend else 'on'} ({reason[1] if reason else ''})"
        case PatchWorkflow(name=name, patch=patch):
            return f"stop {name} by {next(op['value'] for op in patch if op['path'] == '/spec/shutdown')}"
        case OpenDialog():
            return "form"
    raise AssertionError(f"no answer to a command: {effect}")


def copied(text: str) -> list[str]:
    """The lines to copy in an answer."""
    return re.findall(r"`(/[^`\n]+)`", text)


def renewed(line: str) -> str:
    """A line of the table's file as it would be written today; headings stay."""
    if not line or line.startswith("#"):
        return line
    who, typed, _ = line.split("\t")
    return "\t".join([who, typed, shown(say(who or "anna", seen(typed)))])


if os.environ.get("GOLDEN") == "write":
    TABLE.write_text(
        "".join(f"{renewed(line)}\n" for line in TABLE.read_text(encoding="utf-8").splitlines()), encoding="utf-8"
    )


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.who}: {row.typed!r}")
def test_each_line_gets_exactly_this(row: Row) -> None:
    """The answer to the letter, or the one effect with all that differs from the defaults."""
    assert row.comes == shown(say(row.who, row.typed))


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.who}: {row.typed!r}")
def test_each_line_to_copy_is_taken(row: Row) -> None:
    """What the bot offers for copying is understood and allowed, for the very person it is offered to."""
    effects = say(row.who, row.typed)
    offered = [] if "help}" in shown(effects) else [c for e in effects if isinstance(e, Answer) for c in copied(e.text)]

    for line in offered:
        assert "Nothing was" not in shown(say(row.who, line)), line


def test_each_refusal_has_a_line_to_copy() -> None:
    """All but those that no line could mend: a right that is missing."""
    refused = [row for row in rows() if "Nothing was" in row.comes or "{nothing started}" in row.comes]
    without = [row for row in refused if " ⏎ `/" not in row.comes]

    assert 80 < len(refused)
    assert all("You may not" in row.comes for row in without)


def test_the_table_is_long_enough() -> None:
    """At least 110 lines, none of them twice."""
    assert 110 <= len(rows()) == len({(row.who, row.typed) for row in rows()})


@pytest.mark.parametrize(("line", "_does"), gputest.SPEC.examples)
def test_each_example_of_the_help_of_gputest_is_understood(line: str, _does: str) -> None:
    """Help can't rot: what it shows parses."""
    assert gputest.parse(line, SETTINGS) is not None


@pytest.mark.parametrize(("line", "_does"), nightly.SPEC.examples)
def test_each_example_of_the_help_of_nightly_is_understood(line: str, _does: str) -> None:
    """The same for `/nightly`."""
    assert nightly.parse(line) is not None


@pytest.mark.parametrize(("line", "_does"), gpu.SPEC.examples)
def test_each_example_of_the_help_of_gpu_is_understood(line: str, _does: str) -> None:
    """The same for `/gpu`."""
    assert gpu.parse(line) is not None
