"""Build the rig's servers from their Go modules: ``python -m tests.real.rig.build [name ...]``.

Needs Go on the PATH. The first run takes about a quarter of an hour on two cores; later ones find everything in the
cache, and then neither the sources nor Go's own caches are needed any more.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import yaml

from .cache import cache_lock, cache_root, digest, new_entry
from .recipes import RECIPES, Program, Recipe, recipe

_FLAGS = ("-mod=readonly", "-buildvcs=false", "-trimpath")
_PROGRESS_SECONDS = 20.0


class BuildError(Exception):
    """A server could not be built; the message ends with what Go said."""


def say(text: str) -> None:
    """Print one line at once, also into a pipe."""
    print(text, flush=True)


def binaries(name: str) -> Path:
    """Return the folder with what was built for a recipe: ``bin/``, and the files kept for run time."""
    entry = _entry(recipe(name))
    if not entry.exists():
        raise BuildError(f"{name} is not built yet: run `python -m tests.real.rig.build {name}`")
    return entry


def build(wanted: Recipe) -> Path:
    """Build one recipe unless the cache has it, and return its folder."""
    with cache_lock(say):
        entry = _entry(wanted)
        if entry.exists():
            say(f"{wanted.name}: in the cache")
            return entry
        started = time.monotonic()
        with new_entry(entry) as folder:
            for program in wanted.programs:
                _compile(wanted, program, folder / "bin" / program.name)
            _keep_files(wanted, folder)
        say(f"{wanted.name}: ready after {_clock(time.monotonic() - started)}")
        return entry


def _entry(wanted: Recipe) -> Path:
    sources = sorted(
        path for path in wanted.source.rglob("*") if path.name in {"go.mod", "go.sum"} or path.suffix == ".go"
    )
    named = [part for path in sources for part in (str(path.relative_to(wanted.source)), path)]
    return cache_root() / f"{wanted.name}-{digest(_go_version(), repr(wanted), *_FLAGS, *named)}"


@cache
def _go_version() -> str:
    if shutil.which("go") is None:
        raise BuildError("Go is not on the PATH; the rig's servers are built with it")
    # Asked for outside of any module: inside one, Go may choose the toolchain that the module asks for.
    return subprocess.run(
        ["go", "env", "GOVERSION", "GOOS", "GOARCH"], check=True, capture_output=True, text=True, cwd="/"
    ).stdout


def _go_environment() -> dict[str, str]:
    # Without cgo the binaries are static: no C compiler to build them, no C library to run them.
    return os.environ | {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": ""}


def _compile(wanted: Recipe, program: Program, output: Path) -> None:
    linker = " ".join(["-s", "-w", *(f"-X {variable}" for variable in program.variables)])
    command = ["go", "build", *_FLAGS, "-ldflags", linker, "-o", str(output), program.package]
    log = output.parent.parent / "build.log"
    output.parent.mkdir(exist_ok=True)
    say(f"building {program.name} of {wanted.name}")
    started = time.monotonic()
    with (
        log.open("w") as written,
        subprocess.Popen(
            command, cwd=wanted.source, env=_go_environment(), stdout=written, stderr=subprocess.STDOUT
        ) as go,
    ):
        try:
            for elapsed in _until_finished(go, started):
                say(f"building {program.name}, {_clock(elapsed)}")
        except BaseException:
            go.terminate()
            raise
    if go.returncode != 0:
        raise BuildError(f"go build of {program.name} failed:\n{log.read_text()[-4000:]}")
    log.unlink()
    say(f"built {program.name} in {_clock(time.monotonic() - started)}")


def _until_finished(go: subprocess.Popen[bytes], started: float) -> Iterator[float]:
    """Yield the time elapsed every now and then until the process has ended."""
    while True:
        try:
            go.wait(timeout=_PROGRESS_SECONDS)
        except subprocess.TimeoutExpired:
            yield time.monotonic() - started
        else:
            return


def _keep_files(wanted: Recipe, folder: Path) -> None:
    if not wanted.folders and not wanted.manifests:
        return
    if not wanted.programs:  # no build has brought the module
        subprocess.run(["go", "mod", "download", wanted.wrapped], check=True, cwd=wanted.source, env=_go_environment())
    module = Path(
        subprocess.run(
            ["go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", wanted.wrapped],
            check=True,
            capture_output=True,
            text=True,
            cwd=wanted.source,
            env=_go_environment(),
        ).stdout.strip()
    )
    for name in wanted.folders:
        # Go's module cache is read-only, and a copy that keeps its modes could not be removed again.
        shutil.copytree(module / name, folder / name, copy_function=shutil.copyfile)
        for path in (folder / name, *(folder / name).rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
    for name, patterns in wanted.manifests.items():
        files = [path for pattern in patterns for path in sorted(module.glob(pattern))]
        manifests = [manifest for path in files for manifest in yaml.safe_load_all(path.read_text()) if manifest]
        (folder / f"{name}.json").write_text(json.dumps(manifests))


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def main(arguments: list[str] | None = None) -> int:
    """Build what was asked for, or everything."""
    parser = argparse.ArgumentParser(prog="python -m tests.real.rig.build", description="build the rig's servers")
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(each.name for each in RECIPES))
    names = parser.parse_args(arguments).names
    try:
        for each in [recipe(name) for name in names] or RECIPES:
            build(each)
    except (BuildError, KeyError) as error:
        print(error.args[0], file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
