"""What others' cargo printed, read by the real runner and shown by the bot: only cargo itself is played here."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from bot.core.card import card_of
from bot.core.render.card import render_card
from bot.core.render.thread import failure_parts
from tests.deploy.matrix_rig import Matrix, Outcome
from tests.phrases import SETTINGS, ended

pytestmark = [pytest.mark.cargo, pytest.mark.timeout(60)]

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests/cases"
METADATA = {
    "packages": [
        {"name": "ml", "targets": [{"name": "bayesian_changepoint_test", "kind": ["test"]}]},
        {"name": "ml-core", "targets": []},
    ]
}
CARGO = """#!/bin/sh
case " $* " in
  *" metadata "*) cat "{folder}/metadata.json" ;;
  {pattern}) cat "{log}"; exit 101 ;;
  *" --no-run "*) ;;
  *) printf 'running 1 test\\ntest one ... ok\\n\\n'
     echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s' ;;
esac
"""


@pytest.fixture
def cargo_prints(matrix: Matrix, tmp_path: Path) -> Callable[[str, str], Outcome]:
    """A run of ppo's lib suite; cargo prints the file of a case, and fails, where its arguments fit a pattern."""

    def run(case: str, pattern: str) -> Outcome:
        (tmp_path / "metadata.json").write_text(json.dumps(METADATA))
        cargo = tmp_path / "cargo"
        cargo.write_text(CARGO.format(folder=tmp_path, pattern=pattern, log=CASES / case))
        cargo.chmod(0o755)
        path = f"{tmp_path}:{matrix.environment()['PATH']}"
        outcome = matrix.run(PATH=path, GPUTEST_MODELS="ppo", GPUTEST_SCOPE="lib", GPUTEST_TAILS="on")
        jsonschema.validate(outcome.results, json.loads((ROOT / "deploy/argo/results.schema.json").read_text()))
        return outcome

    return run


def said(outcome: Outcome) -> str:
    """Everything that the bot says about such a run."""
    workflow = ended(json.dumps(outcome.results), "Failed", str(outcome.code), parameters={"models": "ppo"})
    card = card_of(workflow, SETTINGS)
    post = render_card(card, SETTINGS)
    return "\n".join([post.message, post.text, *(part.text for part in failure_parts(card))])


def test_several_binaries_add_up(cargo_prints: Callable[[str, str], Outcome]) -> None:
    """Not the last line's 2 and 0, no failure out of `0 failed`; the binary without tests is named."""
    outcome = cargo_prints("f01.txt", '*" --nocapture ppo "*')
    suite = outcome.suites["ppo-lib"]

    assert [suite[count] for count in ("passed", "failed", "ignored", "filtered")] == [6, 1, 1, 7]
    assert suite["failed_tests"] == ["resnet_forward"]
    assert (suite["status"], suite["reason"]) == ("failed", "tests/empty.rs ran 0 tests")
    assert outcome.not_green() == {"ppo-lib": "failed"}
    text = said(outcome)
    assert "❌ **ppo** 0/1 suites: `resnet_forward`" in text
    assert "1 of 7 failed (tests/empty.rs ran 0 tests)" in text
    assert "failed_alloc_is_reported" not in text.split("```")[0]


def test_colours_do_not_reach_the_chat(cargo_prints: Callable[[str, str], Outcome]) -> None:
    """Counts and names are the same as without, in the tail as well."""
    outcome = cargo_prints("f04.txt", '*" --nocapture ppo "*')
    suite = outcome.suites["ppo-lib"]

    assert (suite["passed"], suite["failed"], suite["failed_tests"]) == (1, 1, ["bwd"])
    assert suite["reason"] == "tests/empty.rs ran 0 tests"
    assert "test bwd ... FAILED" in suite["tail"]
    assert "\x1b" in (CASES / "f04.txt").read_text()
    assert "\x1b" not in json.dumps(outcome.results, ensure_ascii=False) + said(outcome)
    assert "(B" not in said(outcome)


def test_a_link_error_is_a_build_that_failed(cargo_prints: Callable[[str, str], Outcome]) -> None:
    """What the linker misses is named; the tests did not run, which is not "0 failed"; warnings are no errors."""
    outcome = cargo_prints("f06.txt", '*" --no-run "*')

    [error] = outcome.results["build"]["errors"]
    assert (outcome.results["build"]["status"], error["kind"]) == ("failed", "link")
    assert error["message"] == "cannot find -lcuda, -lcudart"
    assert set(outcome.statuses().values()) == {"broken"}
    text = said(outcome)
    assert "did not link" in text
    assert "cannot find -lcuda, -lcudart" in text
    assert "No test ran." in text
    assert "nvcc" not in text
    assert "0 failed" not in text


def test_a_binary_that_is_not_loaded_never_got_to_test(cargo_prints: Callable[[str, str], Outcome]) -> None:
    """The library that is missing is named; it is no failure of a test, and no pass."""
    outcome = cargo_prints("cargo_crate_not_loaded.txt", '*" --nocapture ppo "*')
    suite = outcome.suites["ppo-lib"]

    assert (suite["status"], suite["passed"], suite["failed"]) == ("broken", 0, 0)
    assert suite["reason"].startswith(
        "a test binary did not start: error while loading shared libraries: libcudart.so.12"
    )
    text = said(outcome)
    assert "❌ **ppo** 0/1 suites: ppo-lib never got to test" in text
    assert "libcudart.so.12" in text


def test_a_compiler_without_memory_is_a_build_that_failed(cargo_prints: Callable[[str, str], Outcome]) -> None:
    """Not "cargo ended with 101": what killed it is told, and that no test ran."""
    outcome = cargo_prints("cargo_compiler_killed.txt", '*" --no-run "*')

    [error] = outcome.results["build"]["errors"]
    assert error["message"] == "the compiler was killed by SIGKILL (137): out of memory?"
    assert set(outcome.statuses().values()) == {"broken"}
    text = said(outcome)
    assert "the compiler was killed by SIGKILL (137): out of memory?" in text
    assert "No test ran." in text


def test_a_test_that_ends_its_binary_is_no_pass(cargo_prints: Callable[[str, str], Outcome]) -> None:
    """What was counted before it counts, and the binary without a result is named."""
    outcome = cargo_prints("cargo_test_that_exits.txt", '*" --nocapture ppo "*')
    suite = outcome.suites["ppo-lib"]

    assert (suite["status"], suite["passed"], suite["failed"]) == ("failed", 3, 0)
    assert suite["reason"] == "tests/gpu.rs ended without a result, cargo test with 101"
    assert "tests/gpu.rs ended without a result" in said(outcome)
