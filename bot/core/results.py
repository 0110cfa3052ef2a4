"""What the runner says: the results document that a run gives out as an output parameter.

The bot reads results from this document alone, never from a log and never from a phase. What is missing in
it is unknown. The document's JSON Schema stands in deploy/argo/results.schema.json.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

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


Count = Annotated[int, msgspec.Meta(ge=0, le=10**9)]
Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=1e9)]
Small = Annotated[int, msgspec.Meta(ge=-(10**9), le=10**9)]


class Suite(msgspec.Struct, frozen=True):
    """One `cargo test` call of the matrix."""

    model: str
    suite: str
    status: SuiteStatus
    scope: str = ""
    reason: str = ""
    exit_code: Small | None = None
    passed: Count = 0
    failed: Count = 0
    ignored: Count = 0
    filtered: Count = 0
    seconds: Seconds = 0.0
    failed_tests: list[str] = []
    tail: str = ""

    @property
    def counted(self) -> Suite:
        """The same as far as it can be believed: a pass with a failure in it is none, nor one in which nothing ran."""
        if self.status is not SuiteStatus.PASSED:
            return self
        if self.failed or self.failed_tests or self.exit_code:
            return msgspec.structs.replace(self, status=SuiteStatus.FAILED)
        if not self.passed and (self.filtered or self.ignored):
            return msgspec.structs.replace(self, status=SuiteStatus.UNKNOWN, reason=self.reason or "no test ran")
        return self

    @property
    def interrupted(self) -> bool:
        """The run was stopped while it ran: killed, and without an exit code, since nothing ended by itself."""
        return self.status is SuiteStatus.KILLED and self.exit_code is None


class BuildError(msgspec.Struct, frozen=True):
    kind: str = "compile"
    message: str = ""
    file: str = ""
    line: Small | None = None


class Build(msgspec.Struct, frozen=True):
    status: str = "passed"
    seconds: Seconds = 0.0
    errors: list[BuildError] = []


class Gpu(msgspec.Struct, frozen=True):
    name: str = ""
    driver: str = ""
    compute_capability: str = ""


class Results(msgspec.Struct, frozen=True):
    """The whole document; `complete` is false while suites are still to come."""

    version: Annotated[int, msgspec.Meta(ge=-(10**18), le=10**18)]
    models: list[str] = []
    ref: str = ""
    commit: str = ""
    scope: str = ""
    epochs: Small | None = None
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


_COMMIT = re.compile(r"[0-9a-f]{7,64}")


def is_commit(text: str) -> bool:
    """Whether it is a commit's name; whatever else stands there is not handed on to Git."""
    return _COMMIT.fullmatch(text) is not None


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
