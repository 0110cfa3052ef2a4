"""The image of the bot. No image registry is asked here, so its steps are played in a folder, with the Python of this machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.deploy.deploy_files import DEPLOY, ROOT, load


def steps() -> list[list[tuple[str, str]]]:
    """The instructions of each stage."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    stages: list[list[tuple[str, str]]] = []
    for line in filter(None, lines):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            stages.append([])
        stages[-1].append((word, rest))
    return stages


def test_the_image_is_what_the_deployment_expects() -> None:
    """Two stages; no root, with the Deployment's user and version; a health check; what is copied is not ignored."""
    build, final = steps()
    instructions = dict(final)
    pod = load("bot/deployment.yaml")["spec"]["template"]["spec"]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    copied = {name for word, rest in build if word == "COPY" for name in rest.split()[:-1]}

    assert instructions["USER"] == "{runAsUser}:{runAsGroup}".format_map(pod["securityContext"])
    assert pod["containers"][0]["image"] == f"gputest-bot:{version}"
    assert f'image.version="{version}"' in instructions["LABEL"]
    assert "/healthz" in instructions["HEALTHCHECK"]
    assert {"/venv"} == {rest.split()[-1] for word, rest in final if word == "COPY"}
    kept = re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), flags=re.MULTILINE)
    assert {name.removeprefix("./") for name in copied} == set(kept)


@pytest.mark.real
@pytest.mark.timeout(300)
def test_its_steps_make_a_bot_that_starts(tmp_path: Path) -> None:
    """From the locked packages; without pip and what builds it, with byte code for a read-only root."""
    build, final = steps()
    source, venv = tmp_path / "src", tmp_path / "venv"
    source.mkdir()
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    for word, rest in build:
        if word == "COPY":
            *names, _ = rest.split()
            for name in names:
                whole = ROOT / name
                (shutil.copytree if whole.is_dir() else shutil.copy)(whole, source / name)
        elif word == "RUN":
            subprocess.run(["sh", "-c", rest.replace("/venv", str(venv))], cwd=source, env=environment, check=True)
    shutil.rmtree(source)
    [program] = json.loads(dict(final)["ENTRYPOINT"])
    command = [program.replace("/venv", str(venv)), "check-config", "--config", str(DEPLOY / "bot/config.yaml")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    packages = next((venv / "lib").glob("python*/site-packages"))

    assert done.returncode == 0, done.stdout + done.stderr
    assert list((packages / "bot/__pycache__").glob("app.*.pyc"))
    assert not [each.name for each in packages.iterdir() if re.match(r"pip\b|hatchling|pytest", each.name)]
