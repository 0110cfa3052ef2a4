"""Runs the real matrix runner with the real cargo and git on the sample workspace."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SUITES = ROOT / "deploy/argo/runner/suites.tsv"
IDENTITY = ["-c", "user.name=sample", "-c", "user.email=sample@example.com", "-c", "commit.gpgsign=false"]

COMPILE_ERROR = 'pub fn broken() -> u32 {\n    "not a number"\n}\n'
LINK_ERROR = """
#[link(name = "gputest_absent")]
extern "C" {
    fn absent() -> i32;
}

#[test]
fn linked() {
    assert_eq!(0, unsafe { absent() });
}
"""


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder and return what it printed."""
    done = subprocess.run(["git", *IDENTITY, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@dataclass(frozen=True)
class SampleRepository:
    """The sample workspace as a repository; its branches break it in one way each."""

    path: Path

    @classmethod
    def make(cls, path: Path) -> SampleRepository:
        """Commit the workspace to `main` and make the branches."""
        shutil.copytree(
            ROOT / "tests/sample-workspace", path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("target")
        )
        git(path, "init", "--quiet", "--initial-branch=main")
        git(path, "add", "--all", "--force")
        git(path, "commit", "--quiet", "-m", "the sample workspace")
        repository = cls(path)
        tests = "crates/ml/tests"
        repository.branch("compile-error", "crates/ml-dqn/src/lib.rs", append=COMPILE_ERROR)
        repository.branch("test-compile-error", f"{tests}/tlob_orderbook_test.rs", append=COMPILE_ERROR)
        repository.branch("link-error", f"{tests}/kan_linked_test.rs", append=LINK_ERROR)
        repository.branch("no-manifest", "Cargo.toml", append="[broken\n")
        repository.branch("target-gone", f"{tests}/barrier_optimization_test.rs", append=None)
        repository.branch(
            "filter-matches-nothing", "crates/ml/src/lib.rs", replace=("model!(xlstm,", "model!(renamed,")
        )
        git(path, "checkout", "--quiet", "main")
        return repository

    def branch(self, name: str, file: str, append: str | None = None, replace: tuple[str, str] | None = None) -> None:
        """Make a branch from main that changes, adds or (with nothing to append) removes one file."""
        git(self.path, "checkout", "--quiet", "-B", name, "main")
        target = self.path / file
        if replace is not None:
            target.write_text(target.read_text().replace(*replace))
            (self.path / "crates/ml/tests/xlstm_memory_test.rs").unlink()
        elif append is None:
            target.unlink()
        else:
            target.write_text((target.read_text() if target.exists() else "") + append)
        git(self.path, "add", "--all", "--force")
        git(self.path, "commit", "--quiet", "-m", name)

    def commit_of(self, ref: str) -> str:
        """Return the SHA that a ref means in this repository."""
        return git(self.path, "rev-parse", f"{ref}^{{commit}}")


@dataclass
class Outcome:
    """What one run of the runner left: its exit code, its output, its results."""

    code: int
    output: str
    results: dict[str, Any]
    progress: str = ""
    suites: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.suites = {suite["suite"]: suite for suite in self.results.get("suites", [])}

    def statuses(self) -> dict[str, str]:
        """Map each suite to its status."""
        return {name: suite["status"] for name, suite in self.suites.items()}

    def not_green(self) -> dict[str, str]:
        """Map the suites that did not pass to their status."""
        return {name: status for name, status in self.statuses().items() if status != "passed"}

    def markers(self) -> list[dict[str, Any]]:
        """Return the live markers of the output, in their order."""
        lines = [line for line in self.output.splitlines() if line.startswith("##gputest ")]
        return [json.loads(line.removeprefix("##gputest ")) for line in lines]


@dataclass(frozen=True)
class Matrix:
    """The runner and its persistent volume."""

    binary: Path
    repository: SampleRepository
    volume: Path

    def environment(self, **extra: str) -> dict[str, str]:
        """Return the environment of compile-and-test, with a test's own variables over it."""
        home = {key: os.environ[key] for key in ("PATH", "HOME", "RUSTUP_HOME", "CARGO_HOME") if key in os.environ}
        return (
            home
            | {
                "GPUTEST_MODELS": "all",
                "GPUTEST_REPOSITORY": str(self.repository.path),
                "GPUTEST_CHECKOUT": str(self.volume / "checkout"),
                "GPUTEST_SUITES": str(SUITES),
                "GPUTEST_RESULTS": str(self.volume / "out/results.json"),
                "GPUTEST_SSH_KEY_FOLDER": str(self.volume / "no-key"),
                "ARGO_PROGRESS_FILE": str(self.volume / "progress"),
                "CARGO_TARGET_DIR": str(self.volume / "target"),
                "CARGO_TERM_COLOR": "always",
                "CARGO_INCREMENTAL": "0",
            }
            | extra
        )

    def clear(self) -> Path:
        """Remove the results of the run before and return where the new ones go."""
        results = self.volume / "out/results.json"
        for file in (results, self.volume / "progress"):
            file.unlink(missing_ok=True)
        return results

    def start(self, **extra: str) -> subprocess.Popen[str]:
        """Start a run that the test will interrupt."""
        self.clear()
        return subprocess.Popen(
            [self.binary], env=self.environment(**extra), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def run(self, **extra: str) -> Outcome:
        """Run the matrix to its end."""
        process = self.start(**extra)
        output, _ = process.communicate()
        return self.outcome(process.returncode, output)

    def outcome(self, code: int, output: str) -> Outcome:
        """Read what a run left behind."""
        results, progress = self.volume / "out/results.json", self.volume / "progress"
        return Outcome(
            code,
            output,
            json.loads(results.read_text()) if results.exists() else {},
            progress.read_text() if progress.exists() else "",
        )

    def interrupted(self, at: str, how: signal.Signals, **extra: str) -> Outcome:
        """Run until a line holds a text, then send the runner a signal."""
        process = self.start(**extra)
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if at in line:
                process.send_signal(how)
                break
        if how != signal.SIGKILL:  # what a killed pod leaves running is not waited for
            lines.extend(process.stdout)
        process.stdout.close()
        return self.outcome(process.wait(), "".join(lines))
