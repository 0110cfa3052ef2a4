"""What the runner says: the results document that a run gives out as an output parameter.

The bot reads results from this document alone, never from a log and never from a phase. What is missing in
it is unknown. The document's JSON Schema stands in deploy/argo/results.schema.json.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

VERSION = 1
"""The version of the document that this bot reads."""

SHARED = "shared"
"""The `model` of suites that run for every selection; they are not counted among the models."""


class SuiteStatus(StrEnum):
    """How one `cargo test` call ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    BROKEN = "broken"  # it never got to test
    TIMED_OUT = "timed_out"
    KILLED = "killed"
    UNKNOWN = "unknown"


RED = frozenset({SuiteStatus.FAILED, SuiteStatus.BROKEN, SuiteStatus.TIMED_OUT, SuiteStatus.KILLED})

RAN = frozenset({SuiteStatus.PASSED, SuiteStatus.FAILED, SuiteStatus.TIMED_OUT, SuiteStatus.KILLED})
"""A suite of these got as far as testing."""


class Suite(msgspec.Struct, frozen=True):
    """One `cargo test` call of the matrix."""

    model: str
    suite: str
    status: SuiteStatus
    scope: str = ""
    reason: str = ""
    exit_code: int | None = None
    passed: int = 0
    failed: int = 0
    ignored: int = 0
    filtered: int = 0
    seconds: float = 0.0
    failed_tests: list[str] = []
    tail: str = ""

    @property
    def interrupted(self) -> bool:
        """The run was stopped while it ran: killed, and without an exit code, since nothing ended by itself."""
        return self.status is SuiteStatus.KILLED and self.exit_code is None


class BuildError(msgspec.Struct, frozen=True):
    kind: str = "compile"
    message: str = ""
    file: str = ""
    line: int | None = None


class Build(msgspec.Struct, frozen=True):
    status: str = "passed"
    seconds: float = 0.0
    errors: list[BuildError] = []


class Gpu(msgspec.Struct, frozen=True):
    name: str = ""
    driver: str = ""
    compute_capability: str = ""


class Results(msgspec.Struct, frozen=True):
    """The whole document; `complete` is false while suites are still to come."""

    version: int
    models: list[str] = []
    ref: str = ""
    commit: str = ""
    scope: str = ""
    epochs: int | None = None
    gpu: Gpu | None = None
    build: Build | None = None
    suites: list[Suite] = []
    complete: bool = False

    @property
    def planned(self) -> bool:
        """Every suite is listed, reached or not: the runner writes its whole plan from the start, as unknown."""
        listed = {suite.model for suite in self.suites}
        open_ones = any(suite.status is SuiteStatus.UNKNOWN or suite.interrupted for suite in self.suites)
        return open_ones and bool(self.models) and listed.issuperset(self.models)


class NoResults(msgspec.Struct, frozen=True):
    """Why there are no results to read; `reason` goes to people."""

    reason: str


def read_results(text: str | None) -> Results | NoResults:
    """Read a results document; whatever is wrong with it becomes a reason, never an exception."""
    if not text or not text.strip():
        return NoResults("no results came")
    try:
        results = _DECODER.decode(text)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        return NoResults(f"the results could not be read ({error})")
    if results.version != VERSION:
        return NoResults(f"the results are of version {results.version}, I read version {VERSION}")
    return results


_DECODER = msgspec.json.Decoder(Results)
