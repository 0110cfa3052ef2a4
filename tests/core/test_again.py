"""Running a run again: with which parameters."""

from __future__ import annotations

from typing import Any

from bot.core.again import Again, everything, what_failed
from bot.core.card import Card, card_of
from bot.core.memory import REQUEST_ANNOTATION, Request, write
from tests.phrases import SETTINGS, ended, green, node, results, suite, workflow

SHA = "3f2a9c1" + "0" * 33
SHARED = [suite("shared", "core")]


def card(*suites: dict[str, Any], models: str = "dqn,ppo", **document: Any) -> Card:
    """The card of a run that ended with these suites."""
    run = ended(results([*suites, *SHARED], **document), parameters={"models": models, "gpu-pool": "ci-training"})
    return card_of(run, SETTINGS)


def test_everything_once_more_keeps_the_ref_as_it_was_asked() -> None:
    """A branch moves on: the same question of today's code."""
    again = everything(card(suite("dqn"), suite("ppo")), SETTINGS)

    assert again == Again(
        {
            "models": "dqn,ppo",
            "test-scope": "all",
            "epochs": "5",
            "commit-ref": "main",
            "gpu-pool": "ci-training",
            "notify": "true",
            "cuda-compute-cap": "89",
        },
        "main",
        2,
        failed=False,
    )


def test_what_failed_is_run_at_the_commit_that_was_tested() -> None:
    """Same code, same question; allowed by the ref that was asked for first."""
    again = what_failed(card(suite("dqn", status="failed"), suite("ppo")), SETTINGS)

    assert again is not None
    assert ("dqn", SHA, "main", 1, True) == (
        again.parameters["models"],
        again.parameters["commit-ref"],
        again.ref,
        again.count,
        again.failed,
    )


def test_where_none_failed_those_without_a_result_are_run() -> None:
    """Not run, or unknown."""
    again = what_failed(card(suite("dqn")), SETTINGS)

    assert again is not None
    assert ("ppo", 1, False) == (again.parameters["models"], again.count, again.failed)


def test_where_nothing_is_known_there_is_no_part_to_run() -> None:
    """All of it again is another thing."""
    unknown = card_of(ended(None, parameters={"models": "dqn,ppo"}), SETTINGS)

    assert what_failed(unknown, SETTINGS) is None
    assert "main" == everything(unknown, SETTINGS).parameters["commit-ref"]


def test_a_pass_a_broken_build_and_a_run_under_way_have_nothing_failed() -> None:
    """A build that broke is no model's failure."""
    passed = card(suite("dqn"), suite("ppo"))
    text = results([suite("dqn", status="broken")], build={"status": "failed"})
    broken = card_of(ended(text, "Failed", "1", parameters={"models": "dqn"}), SETTINGS)
    running = card_of(workflow(phase="Running", nodes=[node("compile-and-test", "Running")]), SETTINGS)
    shared_red = card_of(
        ended(results([suite("dqn"), suite("shared", "core", "failed")]), parameters={"models": "dqn"}), SETTINGS
    )

    assert [None] * 4 == [what_failed(c, SETTINGS) for c in (passed, broken, running, shared_red)]


def test_without_a_known_commit_the_ref_stays() -> None:
    """What was not resolved can't be repeated."""
    again = what_failed(card(suite("dqn", status="failed"), suite("ppo"), commit=""), SETTINGS)

    assert again is not None
    assert "main" == again.parameters["commit-ref"]


def test_a_pool_that_is_not_known_names_no_capability() -> None:
    """The template's default holds."""
    strange = card_of(ended(green(), parameters={"gpu-pool": "tpu"}), SETTINGS)

    assert "cuda-compute-cap" not in everything(strange, SETTINGS).parameters


def test_the_rerun_of_a_rerun_is_allowed_by_the_ref_of_the_first() -> None:
    """Its own ref is a commit, which is no pattern of a role."""
    asked = Request("gpu-test-k7m2", "r", "anna", "anna", "CHANNEL", "release/1")
    meta = {"annotations": {REQUEST_ANNOTATION: write(asked)}}
    text = results([suite("dqn", status="failed"), suite("ppo"), *SHARED])
    run = card_of(ended(text, meta=meta, parameters={"models": "dqn,ppo", "commit-ref": SHA}), SETTINGS)
    failed = what_failed(run, SETTINGS)

    assert failed is not None
    assert ("release/1", "release/1") == (everything(run, SETTINGS).ref, failed.ref)
    assert SHA == everything(run, SETTINGS).parameters["commit-ref"]


def test_what_is_no_commit_is_not_handed_to_git() -> None:
    """The results come out of a pod that runs anybody's code."""
    again = what_failed(card(suite("dqn", status="failed"), commit="--upload-pack=touch x"), SETTINGS)

    assert again is not None
    assert "main" == again.parameters["commit-ref"]
