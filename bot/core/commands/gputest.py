"""`/gputest`: start a GPU test run, or ask about one.

    gputest := run | "status" [ RUN ] | "list" | "cancel" [ RUN ] | "rerun" [ "failed" ] [ RUN ] | "help"
    run     := { MODEL | "all" | "-" MODEL | key "=" value }
    key     := "models" | "scope" | "epochs" | "ref" | "pool" | "cap" | "notify"

Bare words are models. `all,-diffusion` is all but one. Template spellings of the keys (`test-scope`, `commit-ref`,
`gpu-pool`, `cuda-compute-cap`) are taken too. RUN is a run's short name, the suffix of its Workflow's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from bot.core.commands.grammar import Line, nearest, normalise, split, whole_number, yes_or_no
from bot.core.commands.spec import CommandSpec, ShowHelp
from bot.core.errors import UserError
from bot.core.settings import Settings

SPEC = CommandSpec(
    trigger="gputest",
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

KEYS = {
    "models": "models",
    "model": "models",
    "scope": "scope",
    "test-scope": "scope",
    "epochs": "epochs",
    "epoch": "epochs",
    "ref": "ref",
    "commit-ref": "ref",
    "commit": "ref",
    "branch": "ref",
    "pool": "pool",
    "gpu-pool": "pool",
    "cap": "cap",
    "cuda-compute-cap": "cap",
    "notify": "notify",
}
WORDS = ("status", "list", "cancel", "rerun", "help")

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
    line = split(text)
    first = line.words[0].lower() if line.words else ""
    if first == "help" or (not line.words and not line.pairs):
        return ShowHelp(SPEC.trigger)
    if first in WORDS:
        return _about_runs(first, line)
    return _start(line, settings)


def starts_a_run(text: str) -> bool:
    """Whether this is about starting a run, well formed or not; a refusal says what it left alone."""
    first = (normalise(text).split() or [""])[0].lower()
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
    return " ".join(f"{key}={value}" for key, value in pairs.items() if value is not None)


def _about_runs(word: str, line: Line) -> GpuTest:
    rest = [w.lower() for w in line.words[1:]]
    failed = word == "rerun" and rest[:1] == ["failed"]
    names = rest[1:] if failed else rest
    if line.pairs or len(names) > (0 if word == "list" else 1):
        takes = "nothing" if word == "list" else "the short name of a run, or nothing"
        raise UserError(f"`{word}` takes {takes}.", f"/{SPEC.trigger} {word}")
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
            raise UserError(f"No key `{_plain(typed)}`.{hint} Keys: {known}.", _mended(line, typed, near))
        if pairs.get(key, value) != value:
            raise UserError(f"`{key}` is given twice: `{_plain(pairs[key])}` and `{_plain(value)}`.")
        pairs[key] = value
    if line.words and "models" in pairs:
        raise UserError(
            f"Models are named twice: as words (`{_plain(' '.join(line.words))}`) and by `models=`.",
            f"/{SPEC.trigger} models={_plain(pairs['models'])}",
        )
    start = StartRun()
    if line.words:
        start = replace(start, models=_models(",".join(line.words), line, settings))
    for key, value in pairs.items():
        start = _READERS[key](start, value, line, settings)
    return start


def _models(text: str, line: Line, settings: Settings) -> tuple[str, ...]:
    names = settings.model_names
    chosen: list[str] = []
    removed: set[str] = set()
    for item in (part.strip().lower() for part in re.split(r"[,;\s]+", text)):
        minus, name = item.startswith("-"), item.removeprefix("-")
        if not name:
            continue
        if name != "all" and name not in names:
            _unknown_model(name, text, line, settings)
        if minus:
            removed.update(names if name == "all" else {name})
        else:
            chosen += names if name == "all" else [name]
    if removed and not chosen:
        chosen = list(names)
    kept = tuple(name for name in names if name in chosen and name not in removed)
    if not kept:
        raise UserError("That leaves no model.", f"/{SPEC.trigger} models=all")
    return kept


def _unknown_model(name: str, text: str, line: Line, settings: Settings) -> None:
    near = nearest(name, (*settings.model_names, *WORDS))
    hint = f" Did you mean {near}?" if near else ""
    if near in WORDS:
        raise UserError(f"No model `{_plain(name)}`.{hint}", f"/{SPEC.trigger} {near}")
    best = ""
    if near:
        fixed = ",".join(
            near if part.strip().lower().removeprefix("-") == name else part for part in re.split(r"[,;\s]+", text)
        )
        rest = " ".join(f"{k}={v}" for k, v in line.pairs.items() if KEYS.get(k) != "models")
        best = f"/{SPEC.trigger} models={_plain(fixed)} {_plain(rest)}".rstrip()
    raise UserError(f"No model `{_plain(name)}`.{hint} Models: {', '.join(settings.model_names)}.", best)


def _scope(start: StartRun, value: str, _line: Line, settings: Settings) -> StartRun:
    scope = value.lower()
    if scope not in settings.scopes:
        near = nearest(scope, settings.scopes)
        hint = f" Did you mean {near}?" if near else ""
        raise UserError(f"No scope `{_plain(value)}`.{hint} Scopes: {', '.join(settings.scopes)}.")
    return replace(start, scope=scope)


def _epochs(start: StartRun, value: str, line: Line, settings: Settings) -> StartRun:
    try:
        number = whole_number("epochs", value, 1, 10**9)
    except UserError as error:
        rest = {KEYS.get(k, k): v for k, v in line.pairs.items()} | {"epochs": str(settings.defaults.epochs)}
        words = " ".join([*line.words, *(f"{k}={v}" for k, v in rest.items())])
        text = error.text.replace(f"to {10**9}", f"to {settings.max_epochs}")
        raise UserError(text, f"/{SPEC.trigger} {_plain(words)}") from error
    return replace(start, epochs=number)


def _git_ref(start: StartRun, value: str, _line: Line, _settings: Settings) -> StartRun:
    """A ref comes from a chat user and ends in a git command: a safe alphabet, and none of git's special forms."""
    if (
        not _REF.fullmatch(value)
        or ".." in value
        or "@{" in value
        or "//" in value
        or value.endswith(("/", ".", ".lock"))
    ):
        raise UserError(
            f"ref=`{_plain(value)}` is no branch, tag or commit that I take: letters, digits and `. _ / + @ -`.",
            f"/{SPEC.trigger} ref=main",
        )
    return replace(start, ref=value)


def _pool(start: StartRun, value: str, _line: Line, settings: Settings) -> StartRun:
    by_gpu = {pool.gpu.lower(): pool.name for pool in settings.pools}
    names = [pool.name for pool in settings.pools]
    name = by_gpu.get(value.lower(), value.lower())
    if name not in names:
        near = nearest(value, [*names, *by_gpu])
        hint = f" Did you mean {by_gpu.get(near, near)}?" if near else ""
        raise UserError(f"No pool `{_plain(value)}`.{hint} Pools: {', '.join(names)}.")
    return replace(start, pool=name)


def _cap(start: StartRun, value: str, _line: Line, _settings: Settings) -> StartRun:
    digits = value.replace(".", "")
    if not re.fullmatch(r"[0-9]{2,3}", digits):
        raise UserError(f"cap=`{_plain(value)}`: I need a compute capability such as 90. Leave it out: the pool tells.")
    return replace(start, cap=digits)


def _notify(start: StartRun, value: str, _line: Line, _settings: Settings) -> StartRun:
    return replace(start, notify=yes_or_no("notify", value))


def _mended(line: Line, typed: str, near: str | None) -> str:
    if near is None:
        return f"/{SPEC.trigger} help"
    pairs = " ".join(f"{KEYS[near] if key == typed else key}={value}" for key, value in line.pairs.items())
    return _plain(f"/{SPEC.trigger} {' '.join([*line.words, pairs])}")


def _plain(text: str) -> str:
    """User text in a refusal: no backticks, so that it can't leave its code span; cut."""
    return text.replace("`", "'")[:120]


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
