"""Cards and their threads, one golden file a situation."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from bot.core.card import CI_LABEL, Card, Origin, OriginKind, card_of
from bot.core.memory import CANCEL_ANNOTATION, REQUEST_ANNOTATION, Cancelled, Request, write
from bot.core.progress import ModelProgress, Progress
from bot.core.render.card import render_card
from bot.core.render.outcome import headline
from bot.core.render.post import MAX_MESSAGE
from bot.core.render.words import article, duration, models_words, origin_words
from bot.core.settings import Model
from bot.core.verdict import Verdict
from bot.core.workflow import CREATOR_LABEL, CRON_LABEL, Workflow
from tests.core.render.goldens import matches, posts_of, shown
from tests.phrases import ALL, NOW, SETTINGS, ended, green, node, outputs, results, suite, workflow

ANNA = {"annotations": {REQUEST_ANNOTATION: write(Request("gpu-test-k7m2", "r", "anna", "anna", "CHANNEL"))}}
WARM = node("gpu-warmup", "Succeeded")
TESTING = [WARM, node("compile-and-test", "Running")]
SHARED = [suite("shared", "core"), suite("shared", "bayesian")]
MANY = [f"model{number:02d}" for number in range(30)]
TEAM = replace(SETTINGS, models=tuple(Model(name, "rl") for name in MANY))
NASTY = [
    "pipe|and`tick`",
    "@all @here",
    ":tada: 🚀 emoji",
    "שלום-مرحبا",
    "\u202eevil\u202c",
    "n" * 300,
    "[link](http://evil.example)",
    "# title\n| a | b |\n|---|---|",
    "**bold** _under_ ~~gone~~ <b>html</b>",
    "```\nfence\n```",
    "\x1b[31mred\x1b[0m\x00",
    "~channel http://evil.example ftp://x",
]


def running(nodes: list[dict[str, Any]], **more: Any) -> Card:
    """The card of a run of Anna's under way."""
    return card_of(workflow(phase="Running", nodes=nodes, meta=ANNA, **more), SETTINGS)


def over(text: str | None, phase: str = "Succeeded", exit_code: str = "0", **more: Any) -> Card:
    """The card of a run of Anna's that ended."""
    return card_of(ended(text, phase, exit_code, **({"meta": ANNA} | more)), SETTINGS)


def broken(*errors: dict[str, Any]) -> Card:
    """A run whose build failed with these errors."""
    return over(results([], build={"status": "failed", "errors": [*errors]}), "Failed", "1")


def red(model: str, **more: Any) -> dict[str, Any]:
    """A suite that failed."""
    return suite(model, status="failed", **({"failed_tests": ["early_stops_on_plateau"]} | more))


def fails(names: list[str], models: list[str]) -> str:
    """Results in which these models failed."""
    return results([red(m) if m in names else suite(m) for m in models] + SHARED)


def cancelled_by_ben(text: str | None) -> Workflow:
    """A run that Ben stopped in the middle."""
    note = write(Cancelled("2026-03-02T10:00:00Z", "ben", "ben", NOW))
    tests = node("compile-and-test", "Failed", message="workflow shutdown with strategy:  Stop")
    if text:
        tests["outputs"] = outputs(text, "143")
    meta = {"annotations": ANNA["annotations"] | {CANCEL_ANNOTATION: note}}
    return workflow(phase="Failed", nodes=[WARM, tests], meta=meta, spec={"shutdown": "Stop"})


def nasty() -> Card:
    """Everything that comes from outside is as bad as can be."""
    suites = [
        red(name, suite=name, failed_tests=[name, f"{name}::a"], reason=name, tail=f"{name}\n@channel ```` ``` `")
        for name in NASTY
    ]
    text = results([*suites, suite("unknown|", status="unknown", reason=NASTY[1])], commit=NASTY[0], models=[])
    run = ended(
        text,
        "Failed",
        "1",
        parameters={"models": ",".join(n for n in NASTY if "," not in n), "commit-ref": NASTY[0], "gpu-pool": NASTY[1]}
        | {"epochs": NASTY[2], "test-scope": NASTY[6]},
        meta={"labels": {CREATOR_LABEL: "@all|`x`"}},
    )
    return card_of(run, SETTINGS, (NASTY[0],))


PROGRESS = Progress(
    "3f2a9c1" + "0" * 33,
    compiled=True,
    models=(
        ModelProgress("dqn", passed=6, red=("early_stops_on_plateau", "a", "b", "c")),
        ModelProgress("ppo", passed=2),
        ModelProgress("tft"),
        ModelProgress("mamba2", passed=1, running=True),
    ),
)

SITUATIONS: dict[str, Card] = {
    "queued": card_of(workflow(phase="Pending", message="Waiting for a lock", meta=ANNA), SETTINGS),
    "queued_without_a_word": card_of(workflow(meta=ANNA), SETTINGS),
    "suspended": card_of(workflow(phase="Running", spec={"suspend": True}, meta=ANNA), SETTINGS),
    "steps_out_of_reach": card_of(workflow(phase="Running", offloadNodeStatusVersion="fnv:1", meta=ANNA), SETTINGS),
    "unknown_out_of_reach": card_of(workflow(phase="Failed", compressedNodes="KLUv/Q==", meta=ANNA), SETTINGS),
    "waiting_for_a_gpu": running([node("gpu-warmup", "Pending")]),
    "waiting_with_a_reason": running(
        [
            node(
                "gpu-warmup",
                "Pending",
                message="Unschedulable: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
            )
        ]
    ),
    "warming_up": running([node("gpu-warmup", "Pending", message="ContainerCreating")]),
    "testing": running(TESTING),
    "compiling": replace(running(TESTING), progress=Progress("3f2a9c1" + "0" * 33)),
    "testing_with_progress": replace(running(TESTING), progress=PROGRESS, commit=PROGRESS.commit),
    "testing_with_a_red_one_that_goes_on": replace(
        running(TESTING, parameters={"models": "dqn,ppo"}),
        progress=Progress(
            compiled=True, models=(ModelProgress("dqn", 1), ModelProgress("ppo", 1, red=("t",), running=True))
        ),
    ),
    "testing_all_through": replace(
        running(TESTING, parameters={"models": "dqn,ppo"}),
        progress=Progress(compiled=True, models=(ModelProgress("dqn", 1), ModelProgress("ppo", 1))),
    ),
    "testing_30_models": replace(
        card_of(workflow(phase="Running", nodes=TESTING, meta=ANNA), TEAM),
        progress=Progress(compiled=True, models=tuple(ModelProgress(m, red=("t",)) for m in MANY[:20])),
    ),
    "finishing": running([WARM, node("compile-and-test", "Succeeded", outputs=outputs(green()))]),
    "green_1_model": over(green("dqn"), parameters={"models": "dqn"}),
    "green_10_models": over(green()),
    "green_30_models": card_of(ended(green(",".join(MANY)), meta=ANNA), TEAM),
    "green_without_integration_tests": over(
        results([suite("dqn"), suite("kan"), suite("kan", "kan-integ", "skipped", scope="integration"), *SHARED]),
        parameters={"models": "dqn,kan", "epochs": "1", "test-scope": "lib", "commit-ref": "HEAD"},
    ),
    "green_after_a_retry": card_of(
        ended(green(), meta=ANNA, startedAt="2026-03-02T10:20:00Z"),
        SETTINGS,
        ("An earlier attempt ended while I was away.",),
    ),
    "failed_1_of_1": over(fails(["dqn"], ["dqn"]), "Failed", "1", parameters={"models": "dqn"}),
    "failed_2_of_10": over(
        results(
            [
                suite("dqn"),
                red("dqn", suite="dqn-early-stop", tail="left 12, right 10", failed_tests=["early_stops_on_plateau"]),
                red("kan", suite="kan-integ", failed_tests=[], failed=0, exit_code=101),
                *[suite(m) for m in ALL.split(",") if m not in {"dqn", "kan"}],
                *SHARED,
            ]
        ),
        "Failed",
        "1",
    ),
    "failed_in_every_way": over(
        results(
            [
                suite("dqn", status="broken", reason="link error"),
                suite("ppo", status="timed_out", reason="no output for 600 s", seconds=5400),
                suite("tft", status="killed", reason="OOMKilled (exit code 137)"),
                red("mamba2", failed_tests=[f"test_{n}" for n in range(50)], failed=50),
                *SHARED,
            ]
        ),
        "Failed",
        "1",
        parameters={"models": "dqn,ppo,tft,mamba2"},
    ),
    "failed_30_models": card_of(ended(fails(MANY, MANY), "Failed", "1", meta=ANNA), TEAM),
    "failed_shared_suites": over(
        results([suite("dqn"), red("shared", suite="core"), suite("shared", "bayesian", "unknown")]),
        "Failed",
        "1",
        parameters={"models": "dqn"},
    ),
    "failed_many_shared_suites": over(
        results([red("dqn"), *[red("shared", suite=f"s{n}") for n in range(8)]]),
        "Failed",
        "1",
        parameters={"models": "dqn"},
    ),
    "failed_and_broken_off": over(
        results([red("dqn")], complete=False), "Failed", "1", parameters={"models": "dqn,ppo"}, message="deadline"
    ),
    "did_not_compile": broken({"message": "mismatched types", "file": "crates/ml/src/kan.rs", "line": 212}),
    "did_not_link": broken({"kind": "link", "message": "cannot find -lcuda"}),
    "did_neither_compile_nor_link": broken(
        {"kind": "link", "message": "cannot find -lcuda"}, {"message": "mismatched types", "file": "kan.rs", "line": 1}
    ),
    "did_not_compile_many_errors": broken(*[{"message": f"error {n}", "file": f"f{n}.rs"} for n in range(8)]),
    "did_not_compile_without_a_word": broken(),
    "cancelled_without_results": card_of(cancelled_by_ben(None), SETTINGS),
    "cancelled_with_results": card_of(cancelled_by_ben(results([suite("dqn"), red("ppo")], complete=False)), SETTINGS),
    "deleted_while_it_ran": card_of(workflow(phase="Running", nodes=TESTING, meta=ANNA), SETTINGS, deleted=True),
    "out_of_time": over(
        results([suite("dqn"), *SHARED], complete=False), "Failed", "143", message="Step exceeded its deadline"
    ),
    "unknown_without_results": over(None),
    "unknown_of_one_model": over(None, parameters={"models": "dqn"}),
    "unknown_with_some_results": over(
        results([suite("dqn"), suite("ppo", status="unknown", reason="log cut"), *SHARED]),
        parameters={"models": "dqn,ppo,tft"},
    ),
    "no_model": over(results([]), parameters={"models": ","}),
    "green_without_library_tests": over(
        results([suite("dqn"), suite("kan", "kan-integ"), suite("kan", "kan-lib", "skipped"), *SHARED]),
        parameters={"models": "dqn,kan"},
    ),
    "green_without_tests_of_one_kind": over(
        results(
            [suite(m) for m in ("dqn", "kan")]
            + [suite("dqn", "dqn-x", "skipped"), suite("kan", "kan-x", "skipped", scope="integration"), *SHARED]
        ),
        parameters={"models": "dqn,kan"},
    ),
    "waiting_for_a_gpu_with_a_nasty_name": running([node("gpu-warmup", "Pending")], parameters={"gpu-pool": "@all`|`"}),
    "commit_asked_for": over(green("dqn"), parameters={"models": "dqn", "commit-ref": "3f2a9c1" + "0" * 33}),
    "by_the_schedule": card_of(ended(green(), meta={"labels": {CRON_LABEL: "gpu-test-nightly"}}), SETTINGS),
    "by_a_green_push": card_of(ended(green(), meta={"labels": {CI_LABEL: "main"}}), SETTINGS),
    "by_a_red_push": card_of(
        ended(fails(["dqn"], ["dqn"]), "Failed", "1", meta={"labels": {CI_LABEL: "main"}}), SETTINGS
    ),
    "nasty_names": nasty(),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_each_situation_reads_so(name: str) -> None:
    """Card, failures and notice, to the letter."""
    matches(name, shown(SITUATIONS[name]))


@pytest.mark.parametrize("name", SITUATIONS)
def test_each_post_is_below_the_limit_and_rings_for_nobody_else(name: str) -> None:
    """A message has a size; the only mention is that of the one who asked, or of the owners."""
    for text in posts_of(SITUATIONS[name]):
        assert len(text) <= MAX_MESSAGE
        assert mentions(text) <= {"anna", "olga"}
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", text)


def mentions(text: str) -> set[str]:
    """Whom a text would ring: names outside of code, as the server looks for them."""
    plain = re.sub(r"(?s)(`{3,})\n.*?\n\1", "", text)
    plain = re.sub(r"\\.|`[^`\n]*`", "", plain)
    return set(re.findall(r"@([\w.-]+)", plain))


def test_the_detector_of_mentions_finds_them() -> None:
    """A test of the test: it would see one."""
    assert {"all", "here"} == mentions("`@x` @all ```\n@y\n``` (@here) @\u200bz \\` `@no` \\`")


def test_one_line_stays_one_line() -> None:
    """Field case e07: no newline, table or fence of a name gets into a list."""
    card = nasty()
    post = render_card(card, SETTINGS)

    assert len(card.asked.models) + 8 > len(post.text.splitlines())
    assert "\n" not in post.message
    assert "|---|" not in post.text.replace("\\|", "")
    assert "```" not in post.text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (89, "1 min"),
        (2160, "36 min"),
        (3599, "1 h 00 min"),
        (5400, "1 h 30 min"),
    ],
)
def test_lengths_as_people_say_them(seconds: int, text: str) -> None:
    """Rounded to minutes."""
    assert text == duration(seconds)


@pytest.mark.parametrize(
    ("gpu", "word"),
    [("H100", "an"), ("L4", "an"), ("A100", "an"), ("8xH100", "an"), ("T4", "a"), ("V100", "a"), ("", "a")],
)
def test_articles_of_gpus(gpu: str, word: str) -> None:
    """Their names are spelled out, and so is the article."""
    assert word == article(gpu)


def test_where_a_run_came_from() -> None:
    """Nobody is rung by it."""
    assert "for anna" == origin_words(Origin(OriginKind.CHAT, "id", "anna"))
    assert "by the schedule nightly" == origin_words(Origin(OriginKind.CRON, user_name="nightly"))
    assert "by a push to main" == origin_words(Origin(OriginKind.CI, user_name="main"))
    assert "by a push" == origin_words(Origin(OriginKind.CI))
    assert "by @\u200ball, not from the chat" == origin_words(Origin(OriginKind.API, user_name="@all"))
    assert "not from the chat" == origin_words(Origin(OriginKind.API))


def test_models_in_a_line() -> None:
    """All, a few, or six and how many more."""
    asked = SITUATIONS["testing"].asked

    assert "all models" == models_words(asked)
    assert "a, b" == models_words(replace(asked, all_models=False, models=("a", "b")))
    assert "a, b, c, d, e, f and 2 more" == models_words(replace(asked, all_models=False, models=tuple("abcdefgh")))


def test_a_run_under_way_has_no_headline() -> None:
    """It is asked for at an end only."""
    with pytest.raises(AssertionError):
        headline(SITUATIONS["testing"])


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_has_a_headline(verdict: Verdict) -> None:
    """None is forgotten."""
    card = SITUATIONS["unknown_without_results"]
    assert card.outcome is not None

    assert headline(replace(card, outcome=replace(card.outcome, verdict=verdict))).startswith("k7m2")


def test_a_link_to_argo_stands_at_the_foot() -> None:
    """Where the configuration has its address."""
    linked = replace(SETTINGS, argo_url="https://argo.example")

    assert "For anna · [Argo](https://argo.example/workflows/foxhunt/gpu-test-k7m2)" in (
        render_card(card_of(workflow(meta=ANNA), linked), linked).text
    )
