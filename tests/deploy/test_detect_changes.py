"""The change detector, on real git repositories."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.deploy.matrix_rig import git

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "deploy/scripts/detect-changes.sh"
CRATES = ["ml", "ml-dqn", "ml-core", "ml-regime", "ml-features", "ml-supervised", "ml-ppo", "ml-ensemble", "ml-hyperopt", "ml-labeling"]  # fmt: skip
ZEROS = "0" * 40


class Repository:
    """A repository with a file in each crate, made for one test."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        git(path, "init", "--quiet", "--initial-branch=main")
        for folder in [*(f"crates/{crate}" for crate in CRATES), "crates/mlops", "crates/api", "docs"]:
            self.write(f"{folder}/src/lib.rs", f"// {folder}, long enough to be recognised after a move\n")
        self.base = self.commit("base")

    def write(self, file: str, text: str = "changed\n") -> None:
        """Write a file below the repository."""
        target = self.path / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def commit(self, message: str) -> str:
        """Commit everything and return the SHA."""
        git(self.path, "add", "--all")
        git(self.path, "commit", "--quiet", "--allow-empty", "-m", message)
        return git(self.path, "rev-parse", "HEAD")

    def changed(self, file: str) -> str:
        """Change one file and return the new commit."""
        self.write(file)
        return self.commit(f"change {file}")

    def detect(
        self, before: str, after: str, branch: str = "main", repository: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run the detector; its answer is in the folder `out` beside the repository."""
        command = ["sh", str(SCRIPT), repository or str(self.path), before, after, branch, str(self.out)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    @property
    def out(self) -> Path:
        """Where the detector writes."""
        return self.path.parent / "out"

    def answer(self, before: str, after: str, branch: str = "main", repository: str = "") -> str:
        """Run the detector and return what it wrote, to the byte."""
        done = self.detect(before, after, branch, repository)
        assert done.returncode == 0, done.stderr
        return (self.out / "ml-changed").read_text()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A fresh repository."""
    return Repository(tmp_path / "repository")


@pytest.mark.parametrize("crate", CRATES)
def test_each_listed_crate_fires(repository: Repository, crate: str) -> None:
    """A change in any of the ten crates is an ML change, kernels and nested files included."""
    after = repository.changed(f"crates/{crate}/src/cuda_pipeline/kernel.cuh")

    assert repository.answer(repository.base, after) == "true"


@pytest.mark.parametrize(
    "file", ["crates/mlops/src/lib.rs", "crates/api/src/lib.rs", "docs/crates/ml/guide.md", "crates/ml.md", "README.md"]
)
def test_what_only_looks_alike_does_not_fire(repository: Repository, file: str) -> None:
    """Paths are compared by folder, from the root of the repository."""
    assert repository.answer(repository.base, repository.changed(file)) == "false"


def test_a_push_of_several_commits_is_seen_whole(repository: Repository) -> None:
    """The change may be in an earlier commit than the last one."""
    repository.changed("crates/ml/src/lib.rs")

    assert repository.answer(repository.base, repository.changed("docs/a.md")) == "true"


def test_a_change_that_was_taken_back_does_not_fire(repository: Repository) -> None:
    """The two trees are the same, so nothing new is there to test."""
    original = (repository.path / "crates/ml/src/lib.rs").read_text()
    repository.changed("crates/ml/src/lib.rs")
    repository.write("crates/ml/src/lib.rs", original)

    assert repository.answer(repository.base, repository.commit("back")) == "false"


def test_a_branch_that_was_deleted_does_not_fire(repository: Repository) -> None:
    """The push names no commit: nothing is left to test, and a run of it could only fail."""
    assert repository.answer(repository.base, ZEROS, "feature") == "false"


def test_a_deletion_fires(repository: Repository) -> None:
    """A file that went away changed the crate."""
    (repository.path / "crates/ml-core/src/lib.rs").unlink()

    assert repository.answer(repository.base, repository.commit("gone")) == "true"


@pytest.mark.parametrize(("old", "new"), [("crates/ml", "crates/api2"), ("crates/api", "crates/ml-dqn/inner")])
def test_a_move_fires_in_both_directions(repository: Repository, old: str, new: str) -> None:
    """Out of a tested crate and into one: a rename has two sides."""
    target = repository.path / new / "moved.rs"
    target.parent.mkdir(parents=True)
    (repository.path / old / "src/lib.rs").rename(target)

    assert repository.answer(repository.base, repository.commit("moved")) == "true"


def test_a_first_push_is_compared_with_the_default_branch(repository: Repository) -> None:
    """A new branch counts what it brings, not what was there before."""
    git(repository.path, "checkout", "--quiet", "-b", "docs-only")
    docs = repository.changed("docs/a.md")
    git(repository.path, "checkout", "--quiet", "-b", "ml", repository.base)
    ml = repository.changed("crates/ml-ppo/src/lib.rs")
    git(repository.path, "checkout", "--quiet", "main")

    assert repository.answer(ZEROS, docs, "docs-only") == "false"
    assert repository.answer("", ml, "ml") == "true"


def test_the_very_first_push_fires(repository: Repository) -> None:
    """There is nothing to compare the default branch itself with."""
    assert repository.answer(ZEROS, repository.base) == "true"


def test_a_force_push_over_a_commit_that_is_still_there_is_compared(repository: Repository) -> None:
    """The trees before and after tell, whatever the history between them."""
    old = repository.changed("docs/a.md")
    git(repository.path, "reset", "--quiet", "--hard", repository.base)
    docs = repository.changed("docs/b.md")
    ml = repository.changed("crates/ml/src/lib.rs")

    assert repository.answer(old, docs) == "false"
    assert repository.answer(old, ml) == "true"


def test_a_force_push_over_a_commit_that_is_gone_fires(repository: Repository) -> None:
    """What was tested before can't be told any more: on doubt, true."""
    assert repository.answer("1" * 40, repository.changed("docs/a.md")) == "true"


def test_a_merge_counts_what_it_brings(repository: Repository) -> None:
    """The change is in the second parent's history, the merge commit itself is clean."""
    git(repository.path, "checkout", "--quiet", "-b", "feature")
    repository.changed("crates/ml-labeling/src/lib.rs")
    git(repository.path, "checkout", "--quiet", "main")
    before = repository.changed("docs/a.md")
    git(repository.path, "merge", "--quiet", "--no-ff", "-m", "merge", "feature")

    assert repository.answer(before, git(repository.path, "rev-parse", "HEAD")) == "true"


def test_a_clone_by_address_answers_the_same(repository: Repository) -> None:
    """In the cluster the detector clones trees only."""
    after = repository.changed("crates/ml/src/lib.rs")
    docs = repository.changed("docs/a.md")
    address = f"file://{repository.path}"

    assert repository.answer(repository.base, after, repository=address) == "true"
    assert repository.answer(after, docs, repository=address) == "false"


@pytest.mark.parametrize("repository_address", ["file:///nowhere/at/all"])
def test_a_repository_that_does_not_answer_fires(repository: Repository, repository_address: str) -> None:
    """On doubt, true."""
    assert repository.answer(repository.base, repository.base, repository=repository_address) == "true"


def test_an_unknown_commit_fires(repository: Repository) -> None:
    """A commit that the clone does not have can't be judged."""
    assert repository.answer(repository.base, "2" * 40) == "true"


@pytest.mark.parametrize(
    ("after", "branch"),
    [("HEAD", "main"), ("--output=x", "main"), (ZEROS[:-1] + "g", "main"), (ZEROS, "-x"), (ZEROS, 'x", "y'), (ZEROS, "a b"), (ZEROS, "")],
)  # fmt: skip
def test_what_could_be_read_as_something_else_is_refused(repository: Repository, after: str, branch: str) -> None:
    """Branch and commit become part of a manifest, so the run ends here."""
    assert repository.detect(repository.base, after, branch).returncode == 2
    assert not repository.out.exists()


@pytest.mark.parametrize(
    ("branch", "label"),
    [("main", "main"), ("feature/new+x", "feature-new-x"), ("_odd_", "odd"), ("a" * 70, "a" * 63), ("b" * 62 + "/c", "b" * 62)],
)  # fmt: skip
def test_the_branch_becomes_a_label(repository: Repository, branch: str, label: str) -> None:
    """A label's value has a shape of its own."""
    repository.detect(repository.base, repository.base, branch)

    assert (repository.out / "branch-label").read_text() == label
