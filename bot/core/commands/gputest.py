"""`/gputest`: start a GPU test run, or ask about one.

    gputest := run | "status" [ RUN ] | "list" | "cancel" [ RUN ] | "rerun" [ "failed" ] [ RUN ] | "help"
    run     := { MODEL | "all" | "-" MODEL | "and" | key "=" value }
    key     := "models" | "scope" | "epochs" | "ref" | "pool" | "cap" | "notify"

Bare words are models. `all,-diffusion` is all but one. Template spellings of the keys (`test-scope`, `commit-ref`,
`gpu-pool`, `cuda-compute-cap`) are taken too. RUN is a run's short name, the suffix of its Workflow's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from bot.core.commands.grammar import DASHES, Line, nearest, normalise, split, whole_number, yes_or_no
from bot.core.commands.meant import KEYS, TRIGGER, WORDS, items_of, line_of, line_with, plain, unknown_model
from bot.core.commands.spec import CommandSpec, ShowHelp
from bot.core.errors import UserError
from bot.core.settings import Settings

SPEC = CommandSpec(
    trigger=TRIGGER,
    summary="starts GPU tests",
    usage="[models] [scope=] [epochs=] [ref=] [pool=] [notify=] | status | list | cancel | rerun [failed] | help",
    examples=(
        ("models=all epochs=5", "every model, five epochs"),
        ("dqn ppo epochs=5", "two models"),
        ("all,-diffusion ref=v2.3", "all but one, of a tag"),
        ("dqn scope=lib notify=false", "only the library tests, and no post"),
        ("status", "what runs and what waits"),
        ("list", "the runs of late"),
        ("cancel k7m2", "stop a run; without a name, your only one"),
        ("rerun failed k7m2", "only what failed, at the same commit"),
        ("help", "this text"),
    ),
)

_REF = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+@-]{0,199}")


@dataclass(frozen=True)
class StartRun:
    """A run as asked for; None means that nothing was said and the default holds."""

    models: tuple[str, ...] | None = None
    scope: str | None = None
    epochs: int | None = None
    ref: str | None = None
    pool: str | None = None
    cap: str | None = None
    notify: bool | None = None


@dataclass(frozen=True)
class ShowStatus:
    """What runs and what waits; with `run` that one only."""

    run: str | None = None


@dataclass(frozen=True)
class ListRuns:
    pass


@dataclass(frozen=True)
class CancelRun:
    """Stop a run; without a name the only one that the asker started."""

    run: str | None = None


@dataclass(frozen=True)
class RerunRun:
    """Run something again; without a name what ended last."""

    run: str | None = None
    failed: bool = False


GpuTest = StartRun | ShowStatus | ListRuns | CancelRun | RerunRun | ShowHelp


def parse(text: str, settings: Settings) -> GpuTest:
    """Read what was typed behind `/gputest`.

    Raises:
        UserError: not well formed, or a model, key or value that does not exist; the nearest valid one is named.

    """
    try:
        return _parse(split(text, SPEC.trigger, KEYS), settings)
    except UserError as error:
        raise UserError(error.text, error.suggestion or f"/{SPEC.trigger} help") from error


def _parse(line: Line, settings: Settings) -> GpuTest:
    first = line.words[0].lower().removeprefix("-") if line.words else ""
    if first in {"help", "h", "?"} or (not line.words and not line.pairs):
        return ShowHelp(SPEC.trigger)
    if first in WORDS:
        return _about_runs(first, line)
    return _start(line, settings)


def starts_a_run(text: str) -> bool:
    """Whether this is about starting a run, well formed or not; a refusal says what it left alone."""
    first = (normalise(text).split() or [""])[0].lower().lstrip(DASHES)
    return first not in {"status", "list", "cancel", "help"}


def parameters(start: StartRun, settings: Settings) -> dict[str, str]:
    """The template's parameters for a run, as strings (the full CRD takes no others).

    Raises:
        UserError: something that exists and is not allowed: too many epochs, a capability that is not the pool's.

    """
    defaults, names = settings.defaults, settings.parameters
    pool_name = start.pool or defaults.pool
    pool = settings.pool(pool_name)
    epochs = start.epochs if start.epochs is not None else defaults.epochs
    if epochs > settings.max_epochs:
        best = f"/{SPEC.trigger} {_again(replace(start, epochs=settings.max_epochs), settings)}"
        raise UserError(f"epochs={epochs} is over the limit of {settings.max_epochs}.", best)
    cap = start.cap or (pool.cap if pool else "90")
    if pool and cap != pool.cap:
        best = f"/{SPEC.trigger} {_again(replace(start, cap=None), settings)}"
        raise UserError(
            f"Pool `{pool.name}` has capability {pool.cap}, you said {cap}. Leave cap out, I know it.", best
        )
    notify = defaults.notify if start.notify is None else start.notify
    return {
        names.models: ",".join(start.models or defaults.models),
        names.scope: start.scope or defaults.scope,
        names.epochs: str(epochs),
        names.ref: start.ref or defaults.ref,
        names.pool: pool_name,
        names.cap: cap,
        names.notify: "true" if notify else "false",
    }


def _again(start: StartRun, settings: Settings) -> str:
    """The same request as a line to copy."""
    every = start.models is not None and set(start.models) == set(settings.model_names)
    pairs = {
        "models": "all" if every else ",".join(start.models) if start.models else None,
        "scope": start.scope,
        "epochs": start.epochs,
        "ref": start.ref,
        "pool": start.pool,
        "notify": None if start.notify is None else str(start.notify).lower(),
    }
    said = " ".join(f"{key}={value}" for key, value in pairs.items() if value is not None)
    return said or f"models={','.join(settings.defaults.models)}"


def _about_runs(word: str, line: Line) -> GpuTest:
    rest = [w.lower() for w in line.words[1:]]
    failed = word == "rerun" and "failed" in rest
    names = [name for name in rest if not failed or name != "failed"]
    if line.pairs or len(names) > (0 if word == "list" else 1):
        takes = "nothing" if word == "list" else "the short name of a run, or nothing"
        kept = [word, *(["failed"] if failed else []), *(names[:1] if word != "list" else [])]
        raise UserError(f"`{word}` takes {takes}.", line_of(kept, {}))
    run = names[0] if names else None
    match word:
        case "status":
            return ShowStatus(run)
        case "cancel":
            return CancelRun(run)
        case "rerun":
            return RerunRun(run, failed)
        case _:
            return ListRuns()


def from_form(values: dict[str, str], settings: Settings) -> tuple[StartRun, tuple[tuple[str, str], ...]]:
    """A run as the form asks for it, and what is wrong, by field. Empty fields mean the default."""
    start, errors = StartRun(), []
    for key, value in values.items():
        reader = _READERS.get(key)
        if reader is None or not value.strip():
            continue
        try:
            start = reader(start, normalise(value), Line((), {key: value}), settings)
        except UserError as error:
            errors.append((key, error.text))
    return start, tuple(errors)


def _start(line: Line, settings: Settings) -> StartRun:
    pairs: dict[str, str] = {}
    for typed, value in line.pairs.items():
        key = KEYS.get(typed.replace("_", "-"))
        if key is None:
            near = nearest(typed, KEYS)
            hint = f" Did you mean `{KEYS[near]}`?" if near else ""
            known = ", ".join(dict.fromkeys(KEYS.values()))
            raise UserError(f"No key `{plain(typed)}`.{hint} Keys: {known}.", _mended(line, typed, near))
        if pairs.get(key, value) != value:
            raise UserError(
                f"`{key}` is given twice: `{plain(pairs[key])}` and `{plain(value)}`.", line_with(line, key, value)
            )
        pairs[key] = value
    if line.words and "models" in pairs:
        both = ",".join(items_of(f"{pairs['models']} {' '.join(line.words)}"))
        raise UserError(
            f"Models are named twice: as words (`{plain(' '.join(line.words))}`) and by `models=`.",
            line_with(Line((), line.pairs), "models", both),
        )
    start = StartRun()
    if line.words:
        start = replace(start, models=_models(",".join(line.words), line, settings))
    for key, value in pairs.items():
        start = _READERS[key](start, value, line, settings)
    return start


def _models(text: str, line: Line, settings: Settings) -> tuple[str, ...]:
    names = [name.lower() for name in settings.model_names]
    chosen: list[str] = []
    removed: set[str] = set()
    for item in items_of(text):
        name = item.removeprefix("-")
        if name != "all" and name not in names:
            raise unknown_model(item, text, line, settings)
        if name != item:
            removed.update(names if name == "all" else {name})
        else:
            chosen += names if name == "all" else [name]
    if removed and not chosen:
        chosen = list(names)
    kept = tuple(name for name in settings.model_names if name.lower() in {*chosen} - removed)
    if not kept:
        raise UserError("That leaves no model.", line_with(Line((), line.pairs), "models", "all"))
    return kept


def _scope(start: StartRun, value: str, line: Line, settings: Settings) -> StartRun:
    scope = next((scope for scope in settings.scopes if scope.lower() == value.lower()), None)
    if scope is None:
        near = nearest(value, settings.scopes)
        hint = f" Did you mean {near}?" if near else ""
        best = line_with(line, "scope", near or settings.defaults.scope)
        raise UserError(f"No scope `{plain(value)}`.{hint} Scopes: {', '.join(settings.scopes)}.", best)
    return replace(start, scope=scope)


def _epochs(start: StartRun, value: str, line: Line, settings: Settings) -> StartRun:
    try:
        number = whole_number("epochs", value, 1, 10**9)
    except UserError as error:
        meant = re.fullmatch(r"([1-9][0-9]{0,8})(?:[.,]0*)?[^0-9]*", value)
        best = line_with(line, "epochs", meant[1] if meant else str(settings.defaults.epochs))
        raise UserError(error.text.replace(f"to {10**9}", f"to {settings.max_epochs}"), best) from error
    return replace(start, epochs=number)


def _git_ref(start: StartRun, value: str, line: Line, _settings: Settings) -> StartRun:
    """A ref comes from a chat user and ends in a git command: a safe alphabet, and none of git's special forms."""
    if (
        not _REF.fullmatch(value)
        or ".." in value
        or "@{" in value
        or "//" in value
        or value.endswith(("/", ".", ".lock"))
    ):
        raise UserError(
            f"ref=`{plain(value)}` is no branch, tag or commit that I take: letters, digits and `. _ / + @ -`.",
            line_with(line, "ref", "main"),
        )
    return replace(start, ref=value)


def _pool(start: StartRun, value: str, line: Line, settings: Settings) -> StartRun:
    names = [pool.name for pool in settings.pools]
    known = {pool.gpu.lower(): pool.name for pool in settings.pools} | {name.lower(): name for name in names}
    name = known.get(value.lower())
    if name is None:
        near = nearest(value, known)
        best = known[near] if near else settings.defaults.pool
        hint = f" Did you mean {best}?" if near else ""
        raise UserError(f"No pool `{plain(value)}`.{hint} Pools: {', '.join(names)}.", line_with(line, "pool", best))
    return replace(start, pool=name)


def _cap(start: StartRun, value: str, line: Line, _settings: Settings) -> StartRun:
    digits = value.replace(".", "")
    if not re.fullmatch(r"[0-9]{2,3}", digits):
        raise UserError(
            f"cap=`{plain(value)}`: I need a compute capability such as 90. Leave it out: the pool tells.",
            line_with(line, "cap", None),
        )
    return replace(start, cap=digits)


def _notify(start: StartRun, value: str, line: Line, settings: Settings) -> StartRun:
    try:
        return replace(start, notify=yes_or_no("notify", value))
    except UserError as error:
        best = line_with(line, "notify", str(settings.defaults.notify).lower())
        raise UserError(error.text, best) from error


def _mended(line: Line, typed: str, near: str | None) -> str:
    if near is None:
        return f"/{SPEC.trigger} help"
    pairs = {KEYS[near] if key == typed else key: value for key, value in line.pairs.items()}
    return line_of(line.words, pairs)


def _all_models(start: StartRun, value: str, line: Line, settings: Settings) -> StartRun:
    return replace(start, models=_models(value, line, settings))


_READERS: dict[str, Callable[[StartRun, str, Line, Settings], StartRun]] = {
    "models": _all_models,
    "scope": _scope,
    "epochs": _epochs,
    "ref": _git_ref,
    "pool": _pool,
    "cap": _cap,
    "notify": _notify,
}
