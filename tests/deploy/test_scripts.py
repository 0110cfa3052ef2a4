"""The two scripts for people: starting a run by hand, refreshing the test data. kubectl and argo are played by stand-ins."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "deploy/scripts"

# Writes down how it was called and what it was fed, then answers as the test's rules (lines "pattern<TAB>answer") say.
CLIENT = """#!/bin/bash
echo "$(basename "$0") $*" >> "$STAND_IN/calls"
[[ " $* " == *" - "* ]] && cat >> "$STAND_IN/input"
while IFS=$'\\t' read -r pattern answer code; do
  if [[ "$*" =~ $pattern ]]; then
    printf '%b' "$answer"
    exit "${code:-0}"
  fi
done < "$STAND_IN/rules"
exit 0
"""


class StandIns:
    """A PATH with the clients that a test wants, and their answers."""

    def __init__(self, folder: Path, clients: tuple[str, ...]) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        for tool in ("bash", "sed", "grep", "tail", "cat", "dirname", "basename", "sleep"):
            found = shutil.which(tool)
            assert found is not None
            (self.bin / tool).symlink_to(found)
        for client in clients:
            (self.bin / client).write_text(CLIENT)
            (self.bin / client).chmod(0o755)
        self.rules()

    def rules(self, *rules: tuple[str, str] | tuple[str, str, int]) -> None:
        """Say what the clients answer; the first rule that fits counts."""
        lines = ("\t".join([rule[0], rule[1], *(str(code) for code in rule[2:])]) + "\n" for rule in rules)
        (self.folder / "rules").write_text("".join(lines))

    def run(self, script: str, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
        """Run a script with nothing but the stand-ins in its PATH."""
        environment = {"PATH": str(self.bin), "STAND_IN": str(self.folder), "GPUTEST_POLL_SECONDS": "0.01"} | extra
        command = [str(self.bin / "bash"), str(SCRIPTS / script), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=20)

    def calls(self) -> list[str]:
        """The clients' calls, in their order."""
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def submitted(self) -> dict[str, Any]:
        """The manifest that a client was fed."""
        found: dict[str, Any] = yaml.safe_load((self.folder / "input").read_text())
        return found


@pytest.fixture
def kubectl(tmp_path: Path) -> StandIns:
    """A machine with kubectl."""
    return StandIns(tmp_path, ("kubectl",))


@pytest.fixture
def argo(tmp_path: Path) -> StandIns:
    """A machine with argo alone."""
    return StandIns(tmp_path, ("argo",))


def parameters(manifest: dict[str, Any]) -> dict[str, str]:
    """The parameters of a manifest, by name."""
    return {parameter["name"]: parameter["value"] for parameter in manifest["spec"]["arguments"]["parameters"]}


def test_the_defaults_are_the_templates(kubectl: StandIns) -> None:
    """Without options the run is what the template would do anyway, one priority above the nightly."""
    template = yaml.safe_load((ROOT / "deploy/argo/gpu-test-pipeline.yaml").read_text())
    kubectl.rules(("create -f -", "gpu-test-manual-x1"))
    done = kubectl.run("argo-test.sh")

    assert done.returncode == 0, done.stderr
    assert "submitted gpu-test-manual-x1" in done.stdout
    assert parameters(kubectl.submitted()) == parameters(template)
    assert kubectl.submitted()["spec"]["priority"] == 30


def test_every_option_reaches_its_parameter(kubectl: StandIns) -> None:
    """The capability follows the pool by itself."""
    options = "--models all --scope lib --epochs 5 --ref release/1.2 --pool ci-training --no-notify".split()
    assert kubectl.run("argo-test.sh", *options).returncode == 0

    assert parameters(kubectl.submitted()) == {
        "models": "all", "test-scope": "lib", "epochs": "5", "commit-ref": "release/1.2", "gpu-pool": "ci-training",
        "cuda-compute-cap": "89", "notify": "false",
    }  # fmt: skip


def test_argo_is_used_where_kubectl_is_not(argo: StandIns) -> None:
    """The same manifest goes through argo submit."""
    argo.rules((" submit ", "workflow/gpu-test-manual-x2\\n"))
    done = argo.run("argo-test.sh", "--models", "dqn")

    assert "submitted gpu-test-manual-x2" in done.stdout
    assert argo.submitted()["spec"]["workflowTemplateRef"] == {"name": "gpu-test-pipeline"}


def test_without_a_client_it_says_so(tmp_path: Path) -> None:
    """Neither kubectl nor argo: nothing to submit with."""
    done = StandIns(tmp_path, ()).run("argo-test.sh")

    assert done.returncode == 2
    assert "neither kubectl nor argo" in done.stderr


@pytest.mark.parametrize("client", ["kubectl", "argo"])
def test_a_run_is_held_for_the_bot_where_there_is_one(tmp_path: Path, client: str) -> None:
    """The nightly of the bot's overlay carries the finalizer; without a bot nobody would take it off again."""
    machine = StandIns(tmp_path, (client,))
    machine.rules(
        ("get (cronworkflow )?gpu-test-nightly", "finalizers: [gputest.bot/report]\\n"), ("(create|submit)", "x")
    )
    machine.run("argo-test.sh")

    assert machine.submitted()["metadata"]["finalizers"] == ["gputest.bot/report"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--models", "dqn;rm"], ["--models", ""], ["--scope", "some"], ["--epochs", "0"], ["--epochs", "3.5"], ["--ref", "-x"],
        ["--ref", "a..b"], ["--ref", 'x"'], ["--pool", "$(x)"], ["--pool", "ci-training", "--cap", "90"], ["--pool", "new-pool"],
        ["--models"], ["--what"],
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_before_anything_is_made(kubectl: StandIns, arguments: list[str]) -> None:
    """Each with one line that says which value and why."""
    done = kubectl.run("argo-test.sh", *arguments)

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert kubectl.calls() == []


@pytest.mark.parametrize("client", ["kubectl", "argo"])
@pytest.mark.parametrize(("phase", "code"), [("Succeeded", 0), ("Failed", 1), ("Error", 1)])
def test_watching_ends_with_the_runs_verdict(tmp_path: Path, client: str, phase: str, code: int) -> None:
    """The exit status is the Workflow's, whatever became of the log."""
    machine = StandIns(tmp_path, (client,))
    answer = phase if client == "kubectl" else f'    "phase": "{phase}",\\n'
    machine.rules((r"(workflow|get) gpu-test-manual-x3", answer), ("(create|submit)", "gpu-test-manual-x3"))

    assert machine.run("argo-test.sh", "--watch").returncode == code


@pytest.mark.parametrize("script", ["argo-test.sh", "refresh-test-data.sh"])
def test_help_is_there(kubectl: StandIns, script: str) -> None:
    """And needs no cluster."""
    done = kubectl.run(script, "--help")

    assert done.returncode == 0
    assert "Usage:" in done.stdout
    assert kubectl.calls() == []


def job(*rules: tuple[str, str]) -> tuple[tuple[str, str], ...]:
    """The rules of a job that was made, behind those of a test."""
    return (*rules, ("create -f", "job.batch/populate-test-data-x"), ("logs", "the log\\n"))


def test_a_refresh_makes_a_new_job_and_waits_for_its_end(kubectl: StandIns) -> None:
    """A Job can't be changed, so it is created, not applied; its log is shown."""
    kubectl.rules(*job(("conditions", "SuccessCriteriaMet Complete ")))
    done = kubectl.run("refresh-test-data.sh")

    assert (done.returncode, done.stderr) == (0, "")
    assert "the log\nrefreshed" in done.stdout
    assert any("create -f" in call and call.endswith("populate-test-data-job.yaml -o name") for call in kubectl.calls())


def test_a_job_that_failed_is_told(kubectl: StandIns) -> None:
    """With its log, which holds the reason, and with what is there now."""
    kubectl.rules(*job(("conditions", "Failed ")))
    done = kubectl.run("refresh-test-data.sh")

    assert done.returncode == 1
    assert "the log" in done.stderr
    assert "the old data is in place" in done.stderr


def test_a_volume_that_training_holds_elsewhere_is_told_before_a_job_is_made(kubectl: StandIns) -> None:
    """The pod and its node are named, and nothing waits."""
    kubectl.rules(("get pods", "train-7 node-3 scratch,training-data-pvc,\\n"), ("get node node-3", "ci-training"))
    done = kubectl.run("refresh-test-data.sh")

    assert done.returncode == 3
    assert "training-data-pvc is held by pod train-7 on node node-3 (pool ci-training)" in done.stderr
    assert not any("create" in call for call in kubectl.calls())


def test_a_volume_on_a_node_of_the_pool_is_no_hindrance(kubectl: StandIns) -> None:
    """ReadWriteOnce is per node; other volumes do not matter."""
    kubectl.rules(
        ("get pods", "gpu-test-1 node-9 test-data-pvc,\\nother node-3 cache,\\n"), ("get node node-9", "ci-training-h100"),
        *job(("conditions", "Complete ")),
    )  # fmt: skip

    assert kubectl.run("refresh-test-data.sh").returncode == 0


def test_a_job_that_cannot_mount_ends_with_the_reason(kubectl: StandIns) -> None:
    """The event says Multi-Attach: the job is removed instead of waiting for its deadline."""
    event = "populate-test-data-x-abcde FailedAttachVolume Multi-Attach error for volume pvc-1\\n"
    kubectl.rules(("get events", event), *job())
    done = kubectl.run("refresh-test-data.sh")

    assert done.returncode == 3
    assert "Multi-Attach error for volume pvc-1" in done.stderr
    assert any("delete job.batch/populate-test-data-x" in call for call in kubectl.calls())


def test_a_job_that_never_ends_is_given_up(kubectl: StandIns) -> None:
    """The limit is the script's own."""
    kubectl.rules(*job())
    done = kubectl.run("refresh-test-data.sh", "--timeout", "1")

    assert done.returncode == 1
    assert "no end within 1 s" in done.stderr
