"""What the runner prints while it works: marker lines, for the live view only.

    ##gputest {"event":"resolved","commit":"…"}      the ref is resolved
    ##gputest {"event":"compiling"}                  and "compiled", with "seconds"
    ##gputest {"event":"suite_started","model":"dqn","suite":"dqn-lib"}
    ##gputest {"event":"suite_finished", …}          a suite of the results document

Results are never read from here: a log can be cut, repeated or forged by whatever the tests print.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import msgspec

from bot.core.results import RED, SHARED, SuiteStatus, is_commit

PREFIX = "##gputest "
"""What a marker line starts with, after the container's own prefix is gone."""

MAX_LINE = 64 * 1024
"""Longest marker line, in characters."""

MAX_MODELS, MAX_RED = 200, 500
"""Models kept of a run, and failed tests of a model: the tests may print anything as a marker."""

MAX_NAME = 200
"""Characters kept of the name of a failed test."""


class Marker(msgspec.Struct, frozen=True):
    """One marker line."""

    event: str
    commit: str = ""
    seconds: float = 0.0
    model: str = ""
    suite: str = ""
    status: SuiteStatus | None = None
    failed_tests: list[str] = []


def read_marker(line: str) -> Marker | None:
    """The marker in a line of the log, None where there is none or it can't be read."""
    if not line.startswith(PREFIX) or len(line) > MAX_LINE:
        return None
    try:
        return _DECODER.decode(line[len(PREFIX) :])
    except (msgspec.ValidationError, msgspec.DecodeError):
        return None


_DECODER = msgspec.json.Decoder(Marker)


@dataclass(frozen=True)
class ModelProgress:
    """What was seen of one model so far."""

    name: str
    passed: int = 0
    red: tuple[str, ...] = ()
    """Failed tests, or the suite's name where no test is named."""
    running: bool = False


@dataclass(frozen=True)
class Progress:
    """What was seen of a run so far. Models come in the order in which they started."""

    commit: str = ""
    compiled: bool = False
    models: tuple[ModelProgress, ...] = ()

    def model(self, name: str) -> ModelProgress | None:
        """What was seen of that model, None for nothing."""
        return next((model for model in self.models if model.name == name), None)


def advance(progress: Progress, marker: Marker, asked: Collection[str] = ()) -> Progress:
    """The progress after one more marker. A marker that comes again changes nothing that counts.

    `asked`: the models that the run was asked for, empty where nobody knows; others are not kept.
    """
    match marker.event:
        case "resolved" if is_commit(marker.commit):
            return replace(progress, commit=marker.commit)
        case "compiled":
            return replace(progress, compiled=True)
        case "suite_started" | "suite_finished" if marker.model != SHARED and (not asked or marker.model in asked):
            return _with_model(progress, marker, running=marker.event == "suite_started")
        case _:
            return progress


def _with_model(progress: Progress, marker: Marker, *, running: bool) -> Progress:
    models = list(progress.models)
    index = next((i for i, model in enumerate(models) if model.name == marker.model), len(models))
    if index == MAX_MODELS:
        return progress
    old = models[index] if index < len(models) else ModelProgress(marker.model)
    passed, red = old.passed, old.red
    if not running and marker.status is SuiteStatus.PASSED:
        passed += 1
    if not running and marker.status in RED:
        names = (name[:MAX_NAME] for name in marker.failed_tests or [marker.suite])
        red = tuple(dict.fromkeys([*red, *names]))[:MAX_RED]
    others = [replace(model, running=False) if model.running else model for model in models]
    others[index : index + 1] = [ModelProgress(marker.model, passed, red, running)]
    return replace(progress, compiled=True, models=tuple(others))
