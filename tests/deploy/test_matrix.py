"""The matrix, with the real cargo, on the sample workspace: every way in which a run can go."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.deploy.matrix_rig import Matrix, Outcome, git

pytestmark = [pytest.mark.cargo, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
SCHEMA: dict[str, Any] = json.loads((ROOT / "deploy/argo/results.schema.json").read_text())
TEN = ["dqn", "ppo", "tft", "mamba2", "tggn", "tlob", "liquid", "kan", "xlstm", "diffusion"]


def valid(outcome: Outcome) -> Outcome:
    """Check what holds for every run: the results fit their schema and their size."""
    jsonschema.validate(outcome.results, SCHEMA)
    assert len(json.dumps(outcome.results)) < 100 * 1024
    return outcome


def test_the_runners_own_tests_pass(matrix: Matrix, tmp_path: Path) -> None:
    """Its parsers and its process handling are tested where they are written."""
    command = ["cargo", "test", "--quiet", "--offline", "--manifest-path", str(ROOT / "deploy/argo/runner/Cargo.toml")]
    subprocess.run(command, env=matrix.environment(CARGO_TARGET_DIR=str(tmp_path)), check=True)


def test_all_models_are_green(matrix: Matrix) -> None:
    """All ten models, whole scope: everything passes, but the one without integration tests, which is skipped."""
    outcome = valid(matrix.run(GPUTEST_SCOPE="all"))

    assert outcome.not_green() == {"kan-integ": "skipped"}
    assert outcome.suites["kan-integ"]["reason"] == "no tests"
    assert outcome.code == 0
    assert outcome.results["models"] == TEN
    assert len(outcome.suites) == 27
    assert outcome.results["commit"] == matrix.repository.commit_of("main")
    assert outcome.results["complete"] is True
    assert outcome.progress == "28/28\n"
    assert outcome.suites["dqn-smoke"]["passed"] == 8
    assert outcome.suites["tft-integ"]["passed"] == 2  # two binaries of one pattern


@pytest.mark.parametrize("scope", ["lib", "integration"])
def test_a_scope_runs_its_suites_and_the_shared_ones(matrix: Matrix, scope: str) -> None:
    """Lib suites run with lib, test targets with integration, core and bayesian with both."""
    outcome = valid(matrix.run(GPUTEST_SCOPE=scope))

    assert {suite["scope"] for suite in outcome.suites.values()} == {scope, "all"}
    assert outcome.suites["core"]["status"] == outcome.suites["bayesian"]["status"] == "passed"
    assert set(outcome.not_green().values()) <= {"skipped"}
    assert outcome.code == 0


def test_the_markers_tell_the_story(matrix: Matrix) -> None:
    """A live view sees the commit, the compiling, and each suite's start and end."""
    outcome = matrix.run(GPUTEST_MODELS="ppo", GPUTEST_SCOPE="lib")
    events = [marker["event"] for marker in outcome.markers()]

    assert events == ["resolved", "compiling", "compiled"] + ["suite_started", "suite_finished"] * 3
    assert outcome.markers()[0]["commit"] == matrix.repository.commit_of("main")
    finished = outcome.markers()[4]
    assert {key: value for key, value in outcome.suites["ppo-lib"].items() if key != "tail"} == {
        key: value for key, value in finished.items() if key != "event"
    }


def test_one_failing_test_fails_its_suite_only(matrix: Matrix) -> None:
    """A red suite is named with its test; the others run on; the exit code is red."""
    outcome = valid(matrix.run(GPUTEST_MODELS="ppo,tft", SAMPLE_FAULT="fail:ppo-lib"))

    assert outcome.not_green() == {"ppo-lib": "failed"}
    assert outcome.suites["ppo-lib"]["failed_tests"] == ["ppo::tests::forward_is_finite"]
    assert (outcome.suites["ppo-lib"]["passed"], outcome.suites["ppo-lib"]["failed"]) == (1, 1)
    assert outcome.suites["ppo-lib"]["exit_code"] == 101
    assert outcome.suites["ppo-lib"]["tail"] == ""
    assert outcome.code == 1


def test_a_tail_is_there_only_when_asked_for_and_redacted(matrix: Matrix) -> None:
    """With tails on, the end of a failed suite's log comes along, without what looks like a secret."""
    outcome = valid(
        matrix.run(GPUTEST_MODELS="ppo", GPUTEST_SCOPE="lib", GPUTEST_TAILS="on", SAMPLE_FAULT="fail:ppo-lib")
    )

    tail = outcome.suites["ppo-lib"]["tail"]
    assert "test result: FAILED" in tail
    assert "abc123" not in tail
    assert "\x1b" not in tail
    assert outcome.suites["core"]["tail"] == ""


def test_the_first_red_binary_of_a_pattern_does_not_hide_the_second(matrix: Matrix) -> None:
    """All binaries that a pattern matches run, whatever the first one says."""
    outcome = valid(matrix.run(GPUTEST_MODELS="tft", GPUTEST_SCOPE="integration", SAMPLE_FAULT="fail:tft-integ-2"))

    assert (outcome.suites["tft-integ"]["passed"], outcome.suites["tft-integ"]["failed"]) == (1, 1)
    assert outcome.suites["tft-integ"]["failed_tests"] == ["attention_keeps_the_length"]


@pytest.mark.parametrize(
    ("fault", "status", "code", "reason"),
    [
        ("abort", "killed", 134, "SIGABRT"),
        ("kill", "killed", 137, "SIGKILL"),
        ("hang", "timed_out", None, "no end after 3 s"),
        ("exit", "unknown", 0, "ended without a result"),
    ],
)
def test_a_suite_that_goes_down_does_not_take_the_next_with_it(
    matrix: Matrix, fault: str, status: str, code: int | None, reason: str
) -> None:
    """Abort, kill, hang and a test that leaves early: each has its own status, and the next suite runs."""
    outcome = valid(
        matrix.run(
            GPUTEST_MODELS="tlob", GPUTEST_SCOPE="lib", GPUTEST_SUITE_SECONDS="3", SAMPLE_FAULT=f"{fault}:tlob-lib"
        )
    )

    assert outcome.not_green() == {"tlob-lib": status}
    assert outcome.suites["tlob-lib"]["exit_code"] == code
    assert reason in outcome.suites["tlob-lib"]["reason"]
    assert outcome.code == 1


def test_a_compile_error_breaks_what_needs_the_crate_and_nothing_else(matrix: Matrix) -> None:
    """ml-dqn does not compile: ml needs it and is broken as well, ml-core is tested; file and line are there."""
    outcome = valid(matrix.run(GPUTEST_MODELS="dqn,kan", GPUTEST_SCOPE="lib", GPUTEST_REF="compile-error"))

    assert outcome.statuses() == {
        "dqn-lib": "broken", "dqn-ml-lib": "broken", "kan-lib": "broken", "core": "passed", "bayesian": "broken",
    }  # fmt: skip
    assert outcome.results["build"]["status"] == "failed"
    [error] = outcome.results["build"]["errors"]
    assert (error["kind"], error["message"], error["file"]) == (
        "compile",
        "mismatched types",
        "crates/ml-dqn/src/lib.rs",
    )
    assert error["line"] > 1
    assert outcome.suites["dqn-lib"]["failed"] == 0  # not run is not "0 failed"
    assert "mismatched types" in outcome.suites["dqn-lib"]["reason"]


def test_a_test_target_that_does_not_compile_breaks_its_suite_only(matrix: Matrix) -> None:
    """The models whose targets still build are tested."""
    outcome = valid(matrix.run(GPUTEST_MODELS="tlob,tggn", GPUTEST_REF="test-compile-error"))

    assert outcome.not_green() == {"tlob-integ": "broken"}
    assert outcome.code == 1


def test_a_link_error_is_told_from_a_compile_error(matrix: Matrix) -> None:
    """A library that the linker misses is named, and the suite is broken, not skipped."""
    outcome = valid(matrix.run(GPUTEST_MODELS="kan", GPUTEST_REF="link-error"))

    assert outcome.not_green() == {"kan-integ": "broken"}
    [error] = outcome.results["build"]["errors"]
    assert (error["kind"], error["message"]) == ("link", "cannot find -lgputest_absent")


def test_a_filter_that_matches_nothing_is_never_green(matrix: Matrix) -> None:
    """cargo exits 0 with 0 tests; that is unknown. The model's missing test targets are skipped."""
    outcome = valid(matrix.run(GPUTEST_MODELS="xlstm", GPUTEST_REF="filter-matches-nothing"))

    assert outcome.not_green() == {"xlstm-lib": "unknown", "xlstm-integ": "skipped"}
    assert outcome.suites["xlstm-lib"]["reason"] == "no test matched"
    assert outcome.suites["xlstm-lib"]["exit_code"] == 0
    assert outcome.code == 1


def test_a_named_target_that_is_gone_is_broken_not_skipped(matrix: Matrix) -> None:
    """Only a pattern may match nothing; what the table names has to be there."""
    outcome = valid(matrix.run(GPUTEST_MODELS="ppo", GPUTEST_REF="target-gone"))

    assert outcome.not_green() == {"ppo-barrier": "broken"}
    assert outcome.suites["ppo-barrier"]["reason"] == "no test target barrier_optimization_test"


def test_five_epochs_differ_from_three(matrix: Matrix) -> None:
    """The suites train as long as the run was asked for, and the results record it."""
    loss = {"GPUTEST_MODELS": "dqn", "GPUTEST_SCOPE": "integration", "SAMPLE_TARGET_LOSS": "0.005"}
    three, five = valid(matrix.run(GPUTEST_EPOCHS="3", **loss)), valid(matrix.run(GPUTEST_EPOCHS="5", **loss))

    assert (three.results["epochs"], five.results["epochs"]) == (3, 5)
    assert three.not_green() == {"dqn-smoke-train": "failed"}
    assert five.not_green() == {}
    assert "epochs=5 loss=" in five.output


def test_killed_in_mid_run_it_leaves_valid_results(matrix: Matrix) -> None:
    """SIGKILL, as when a pod runs out of memory: what was reached is there, the rest is unknown."""
    outcome = valid(
        matrix.interrupted(
            '"suite_started","model":"tft"', signal.SIGKILL, GPUTEST_MODELS="ppo,tft", GPUTEST_SCOPE="lib"
        )
    )

    assert outcome.code == -signal.SIGKILL
    assert outcome.results["complete"] is False
    assert outcome.statuses() == {"ppo-lib": "passed", "tft-lib": "unknown", "core": "unknown", "bayesian": "unknown"}
    assert outcome.suites["core"]["reason"] == "not reached"


def test_told_to_stop_it_says_so_in_the_results(matrix: Matrix) -> None:
    """SIGTERM, as when a run is cancelled or meets its deadline: the suite at work was killed, the exit code is 143."""
    outcome = valid(
        matrix.interrupted(
            '"suite_started","model":"tft"',
            signal.SIGTERM,
            GPUTEST_MODELS="ppo,tft",
            GPUTEST_SCOPE="lib",
            SAMPLE_FAULT="hang:tft-lib",
        )  # fmt: skip
    )

    assert outcome.code == 143
    assert outcome.results["complete"] is False
    assert (outcome.statuses()["ppo-lib"], outcome.statuses()["tft-lib"]) == ("passed", "killed")
    assert outcome.suites["core"]["reason"] == "not reached: the run was stopped"


def test_out_of_time_it_reports_before_the_deadline(matrix: Matrix) -> None:
    """The budget ends a suite that hangs, and what comes after is unknown."""
    outcome = valid(
        matrix.run(GPUTEST_MODELS="tft", GPUTEST_SCOPE="lib", GPUTEST_BUDGET_SECONDS="6", SAMPLE_FAULT="hang:tft-lib")
    )

    assert outcome.statuses() == {"tft-lib": "timed_out", "core": "unknown", "bayesian": "unknown"}
    assert outcome.suites["core"]["reason"] == "not reached: out of time"


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({"GPUTEST_REF": "no-such-branch"}, "no branch, tag or commit"),
        ({"GPUTEST_REF": "--upload-pack=touch"}, "no branch, tag or SHA that I accept"),
        ({"GPUTEST_REF": "HEAD~1"}, "no branch, tag or SHA that I accept"),
        ({"GPUTEST_REF": "no-manifest"}, "cargo metadata"),
        ({"GPUTEST_MODELS": "dqn,bert"}, "no such model: bert"),
        ({"GPUTEST_SCOPE": "some"}, "no such scope"),
        ({"GPUTEST_EPOCHS": "many"}, "epochs must be a number"),
        ({"GPUTEST_REPOSITORY": "/nowhere/repository"}, "git fetch"),
    ],
)
def test_what_cannot_begin_says_why_in_the_results(matrix: Matrix, extra: dict[str, str], said: str) -> None:
    """A set-up that fails is a reason in the results, never an empty output."""
    outcome = valid(matrix.run(**{"GPUTEST_MODELS": "ppo", **extra}))

    [error] = outcome.results["build"]["errors"]
    assert error["kind"] == "setup"
    assert said in error["message"]
    assert set(outcome.statuses().values()) <= {"broken"}
    assert outcome.code == 1


def test_another_compute_capability_is_refused_before_the_build(matrix: Matrix, tmp_path: Path) -> None:
    """The GPU's own tool says 8.9, the run was told 90: nothing is compiled."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA L4, 570.86.15, 8.9'\n")
    tool.chmod(0o755)
    path = f"{tmp_path}:{matrix.environment()['PATH']}"
    refused = valid(matrix.run(PATH=path, CUDA_COMPUTE_CAP="90", GPUTEST_MODELS="ppo"))
    taken = valid(matrix.run(PATH=path, CUDA_COMPUTE_CAP="89", GPUTEST_MODELS="ppo", GPUTEST_SCOPE="lib"))

    assert (
        "cuda-compute-cap is 90, but this node's NVIDIA L4 has 8.9" in refused.results["build"]["errors"][0]["message"]
    )
    assert "compiling" not in [marker["event"] for marker in refused.markers()]
    assert taken.results["gpu"] == {"name": "NVIDIA L4", "driver": "570.86.15", "compute_capability": "8.9"}


def test_a_branch_is_the_remote_one_after_a_push(matrix: Matrix) -> None:
    """The checkout of the run before is not what a name means: HEAD, branch, tag and SHA follow the remote."""
    repository = matrix.repository
    repository.branch("moving", "note.txt", append="one\n")
    first = matrix.run(GPUTEST_REF="moving", GPUTEST_MODELS="ppo", GPUTEST_SCOPE="lib")
    repository.branch("moving", "note.txt", append="two\n")  # a force push
    git(repository.path, "tag", "--annotate", "v1", "-m", "one", first.results["commit"])
    git(repository.path, "checkout", "--quiet", "main")
    commits = {
        ref: matrix.run(GPUTEST_REF=ref, GPUTEST_MODELS="ppo", GPUTEST_SCOPE="lib").results["commit"]
        for ref in ("moving", "v1", first.results["commit"], "HEAD")
    }

    assert commits == {
        "moving": repository.commit_of("moving"),
        "v1": first.results["commit"],
        first.results["commit"]: first.results["commit"],
        "HEAD": repository.commit_of("main"),
    }
    assert commits["moving"] != first.results["commit"]


def test_a_checkout_that_a_killed_pod_left_locked_is_used_again(matrix: Matrix) -> None:
    """A stale index.lock and a changed file do not stop the next run."""
    matrix.run(GPUTEST_MODELS="ppo", GPUTEST_SCOPE="lib")
    checkout = matrix.volume / "checkout"
    (checkout / ".git/index.lock").touch()
    (checkout / "crates/ml/src/lib.rs").write_text("not rust")
    (checkout / "crates/ml/tests/kan_left_over.rs").write_text("not rust")

    assert matrix.run(GPUTEST_MODELS="kan").not_green() == {"kan-integ": "skipped"}


def test_a_full_disk_is_named_and_the_results_are_written(matrix: Matrix, tmp_path: Path) -> None:
    """The target folder's disk is full: the suites are broken with that reason; the results lie elsewhere and are whole."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a small disk needs root")
    try:
        outcome = valid(
            matrix.run(
                CARGO_TARGET_DIR=str(tmp_path / "target"),
                GPUTEST_MODELS="ppo",
                GPUTEST_SCOPE="lib",
                GPUTEST_RESULTS=str(matrix.volume / "out/results.json"),
            )  # fmt: skip
        )
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)

    assert set(outcome.statuses().values()) == {"broken"}
    assert "no space left on device" in outcome.suites["core"]["reason"]


def test_results_survive_their_own_disk_being_full(matrix: Matrix, tmp_path: Path) -> None:
    """Tests that fill the disk of the results cannot take them away: room is held for them."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(tmp_path)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a small disk needs root")
    results = tmp_path / "results.json"
    try:
        process = matrix.start(GPUTEST_MODELS="ppo", GPUTEST_SCOPE="lib", GPUTEST_RESULTS=str(results))
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if '"compiled"' in line:
                subprocess.run(["dd", "if=/dev/zero", f"of={tmp_path}/fill", "bs=4k"], capture_output=True)
        process.stdout.close()
        process.wait()
        outcome = valid(Outcome(process.returncode, "".join(lines), json.loads(results.read_text())))
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)

    assert outcome.results["complete"] is True
    assert outcome.not_green() == {}
