"""deploy/ on the real services: API server with both Argo versions' full definitions, Argo's controller, scheduler, Mattermost."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from tests.deploy.api_rig import Web, serve
from tests.deploy.cluster_rig import (
    ACCOUNTS,
    FOXHUNT,
    RESULTS,
    WORKFLOWS,
    add_node,
    apply,
    build_pod,
    environment,
    phase,
    pod_with,
    pods_played,
    policy_in_force,
    program,
    run,
)
from tests.deploy.deploy_files import DEPLOY, built, kubectl
from tests.real.rig.kube_client import KubeError, Manifest
from tests.real.rig.launcher import Rig
from tests.real.rig.person import Office
from tests.real.rig.pod_player import PodPlayer
from tests.real.rig.pod_script import Exit, Hang, Outputs, Running, Wait

pytestmark = [pytest.mark.real, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["3.7", "4.0"])
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    """Both versions with their full definitions, everything of deploy/ applied."""
    async with Rig.start(
        argo=request.param, crds="full", mattermost=True, scheduler=True, kwok=True, service_accounts=ACCOUNTS
    ) as rig:
        admin = rig.kube.admin
        await admin.ensure("/api/v1/namespaces", {"metadata": {"name": "nvidia-device-plugin"}})
        for body in [*built("overlays/complete"), *built("gitlab")]:
            await apply(admin, body)
        await policy_in_force(rig)
        yield rig


@pytest_asyncio.fixture(loop_scope="module")
async def player(rig: Rig) -> AsyncIterator[PodPlayer]:
    """Kubelet and executor; the namespace is empty again afterwards."""
    async with pods_played(rig) as player:
        yield player


async def test_every_manifest_is_accepted(rig: Rig) -> None:
    """Applied strictly by the fixture; the populate job, which is only ever created, is tried here."""
    job = yaml.safe_load((DEPLOY / "training/populate-test-data-job.yaml").read_text())
    await rig.kube.admin.request(
        "POST", "/apis/batch/v1/namespaces/foxhunt/jobs", job, {"dryRun": "All", "fieldValidation": "Strict"}
    )
    nightly = await rig.kube.admin.get(f"{FOXHUNT}/cronworkflows/gpu-test-nightly")

    assert nightly["spec"]["schedules"] == ["0 2 * * *"]
    assert nightly["spec"]["workflowMetadata"]["finalizers"] == ["gputest.bot/report"]


async def test_the_pipeline_runs_end_to_end_and_the_exit_step_speaks_once(
    rig: Rig, player: PodPlayer, tmp_path: Path
) -> None:
    """Warm-up, tests, exit step; with the bot away the step posts to the real Mattermost, with the run's key."""
    office = Office(rig.mattermost.client())
    team = await office.create_team("deploy")
    channel = await office.create_channel(team, "gpu-tests")
    hook = await rig.mattermost.client().post("/hooks/incoming", {"channel_id": channel})
    player.script("gpu-warmup", [Running(), Wait("node"), Exit(0)])
    player.script("compile-and-test", [Running(), Outputs({"results": json.dumps(RESULTS)}), Exit(1)])
    player.script("notify-result", [Running(), Wait("notify"), Outputs({"said": "yes"}), Exit(0)])
    await rig.kube.admin.create(WORKFLOWS, run("end-to-end", {"models": "dqn"}))

    await player.arrived("node")
    before = await rig.kube.admin.get("/api/v1/namespaces/foxhunt/pods")
    await player.release("node")
    await player.arrived("notify")
    pod = await pod_with(rig, "end-to-end", "notify")
    env = environment(rig, pod, tmp_path / "account", "argo-workflow") | {
        "GPUTEST_BOT_URL": "http://127.0.0.1:9/exit", "GPUTEST_WEBHOOK_URL": f"{rig.mattermost.url}/hooks/{hook['id']}",
        "GPUTEST_SAID": str(tmp_path / "said"),
    }  # fmt: skip
    await program("argo/notify/notify.py", env=env)
    await player.release("notify")
    ended = await phase(rig, "end-to-end", "Failed", "Succeeded", "Error")
    posts = (await rig.mattermost.client().get(f"/channels/{channel}/posts"))["posts"].values()
    [post] = [each for each in posts if each["props"].get("gputest_uid")]

    assert [
        each for each in before["items"] if "compile-and-test" in each["metadata"]["name"]
    ] == []  # one GPU pod at a time
    assert json.loads(env["GPUTEST_RESULTS_JSON"]) == RESULTS
    assert (tmp_path / "said").read_text() == "yes"
    assert post["props"]["gputest_uid"] == ended["metadata"]["uid"]
    assert post["props"]["gputest_attempt"] == ended["status"]["startedAt"]
    assert "- **dqn**: FAILED (dqn::tests::one)" in post["message"]
    assert ended["status"]["phase"] == "Failed"
    assert {"name": "results", "value": json.dumps(RESULTS)}.items() <= ended["status"]["outputs"]["parameters"][
        0
    ].items()
    assert pod["spec"]["priorityClassName"] == "gpu-test-manual"


async def test_notify_false_reaches_the_exit_step(rig: Rig, player: PodPlayer, tmp_path: Path) -> None:
    """The bot is away and nothing is posted; the step still calls the bot first, with the secret."""
    player.script("notify-result", [Running(), Wait("silent"), Outputs({"said": "no"}), Exit(0)])
    player.script("compile-and-test", [Running(), Outputs({"results": json.dumps(RESULTS)}), Exit(1)])
    await rig.kube.admin.create(WORKFLOWS, run("silent", {"notify": "false"}))
    await player.arrived("silent")
    env = environment(rig, await pod_with(rig, "silent", "notify"), tmp_path / "account", "argo-workflow")
    with serve(Web(status=401)) as bot, serve(Web()) as webhook:
        env |= {
            "GPUTEST_BOT_URL": f"{bot.url}/exit",
            "GPUTEST_WEBHOOK_URL": f"{webhook.url}/hooks/x",
            "GPUTEST_SAID": str(tmp_path / "said"),
        }
        await program("argo/notify/notify.py", env=env | {"GPUTEST_EXIT_TOKEN": "hush"})
        called, posted = bot.requests, webhook.requests
    await player.release("silent")
    await phase(rig, "silent", "Failed")

    assert [call["headers"]["Authorization"] for call in called] == ["Bearer hush"]
    assert posted == []
    assert (tmp_path / "said").read_text() == "no"


async def test_a_failed_warmup_still_ends_in_the_exit_step(rig: Rig, player: PodPlayer) -> None:
    """The tests are left out, the run is red, and the step gets no results rather than an error."""
    player.script("gpu-warmup", [Running(), Exit(1)])
    player.script("notify-result", [Running(), Wait("told"), Outputs({"said": "no"}), Exit(0)])
    await rig.kube.admin.create(WORKFLOWS, run("cold"))
    await player.arrived("told")
    pod = await pod_with(rig, "cold", "notify")
    [main] = [each for each in pod["spec"]["containers"] if each["name"] == "main"]
    env = {each["name"]: each.get("value") for each in main["env"]}
    await player.release("told")
    ended = await phase(rig, "cold", "Failed", "Succeeded", "Error")

    assert env["GPUTEST_RESULTS_JSON"] == "{{workflow.outputs.parameters.results}}"
    assert env["GPUTEST_STATUS"] == "Failed"
    assert ended["status"]["phase"] == "Failed"


async def test_a_second_run_waits_for_the_first(rig: Rig, player: PodPlayer) -> None:
    """One run at a time per build cache; who holds the lock is in the waiting run's status; manual goes before push."""
    player.script("gpu-warmup", [Running(), Wait("held"), Exit(0)], workflow="first")
    player.script("compile-and-test", [Running(), Outputs({"results": "{}"}), Exit(0)])
    player.script("notify-result", [Running(), Outputs({"said": "no"}), Exit(0)])
    await rig.kube.admin.create(WORKFLOWS, run("first"))
    await player.arrived("held")
    await rig.kube.admin.create(WORKFLOWS, run("a-push", priority=10))
    await phase(rig, "a-push", "Pending")
    await rig.kube.admin.create(WORKFLOWS, run("by-hand", priority=30))
    waiting = await phase(rig, "by-hand", "Pending")
    await player.release("held")
    ends = {name: (await phase(rig, name, "Succeeded"))["status"] for name in ("first", "by-hand", "a-push")}

    assert "cargo-target-cuda-test lock" in waiting["status"]["message"]
    [lock] = waiting["status"]["synchronization"]["mutex"]["waiting"]
    assert lock["holder"] == "foxhunt/first"
    assert ends["first"]["startedAt"] <= ends["by-hand"]["startedAt"] <= ends["a-push"]["startedAt"]


async def test_a_run_past_its_deadline_fails_and_is_still_told(rig: Rig, player: PodPlayer) -> None:
    """The deadline ends what hangs; the exit step runs after it."""
    player.script("compile-and-test", [Running(), Hang()])
    player.script("notify-result", [Running(), Outputs({"said": "no"}), Exit(0)])
    await rig.kube.admin.create(WORKFLOWS, run("late", activeDeadlineSeconds=8))
    pod = await pod_with(rig, "late", '"gputest.bot/role": "test"')
    ended = await phase(rig, "late", "Failed", "Succeeded", "Error")
    phases = {node["displayName"]: node["phase"] for node in ended["status"]["nodes"].values()}

    assert pod["spec"]["activeDeadlineSeconds"] <= 8  # what is left of the run's, for the kubelet to keep
    assert ended["status"]["phase"] == "Failed"
    assert (phases["compile-and-test"], phases["late.onExit"]) == ("Failed", "Succeeded")


async def test_pods_go_and_the_run_stays_until_it_is_reported(rig: Rig, player: PodPlayer) -> None:
    """Pod GC takes the pods; the TTL takes the run, but for our finalizer, and at once when that is gone."""
    player.script("compile-and-test", [Running(), Outputs({"results": json.dumps(RESULTS)}), Exit(0)])
    player.script("notify-result", [Running(), Outputs({"said": "no"}), Exit(0)])
    await rig.kube.admin.create(WORKFLOWS, run("brief", ttlStrategy={"secondsAfterCompletion": 1}))
    path = f"{WORKFLOWS}/brief"
    held = await rig.kube.admin.until(path, lambda seen: "deletionTimestamp" in seen["metadata"], 60)
    pods = "/api/v1/namespaces/foxhunt/pods"
    mine = {"labelSelector": "workflows.argoproj.io/workflow=brief"}
    for _ in range(300):
        if not (await rig.kube.admin.get(pods, mine))["items"]:
            break
        await asyncio.sleep(0.1)
    left = (await rig.kube.admin.get(pods, mine))["items"]
    await rig.kube.admin.merge(path, {"metadata": {"finalizers": None}})

    assert held["status"]["phase"] == "Succeeded"
    assert left == []
    assert any("results" in json.dumps(node.get("outputs", {})) for node in held["status"]["nodes"].values())
    with pytest.raises(KubeError, match="404"):
        await rig.kube.admin.get(path)


async def test_the_push_gate_makes_its_run_with_its_own_rights(rig: Rig, player: PodPlayer, tmp_path: Path) -> None:
    """Its manifest passes the policy, a second apply finds the run, and stopping the CI run stops it."""
    player.script("detect-changes", [Running(), Outputs({"ml-changed": "true", "branch-label": "main"}), Exit(0)])
    player.script("gpu-test", [Running(), Wait("never"), Exit(0)])
    player.script("stop-child", [Running(), Wait("stop"), Exit(0)])
    player.script("gpu-warmup", [Running(), Wait("never"), Exit(0)])
    player.script("notify-result", [Running(), Outputs({"said": "no"}), Exit(0)])
    ci: Manifest = {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "ci", "namespace": "foxhunt"},
        "spec": {
            "workflowTemplateRef": {"name": "ci-pipeline"},
            "arguments": {"parameters": [{"name": "commit-sha", "value": "d" * 40}]},
        },
    }  # fmt: skip
    uid = (await rig.kube.admin.create(WORKFLOWS, ci))["metadata"]["uid"]
    pod = await pod_with(rig, "ci", "ci.gpu-test")
    template = json.loads(
        next(e["value"] for c in pod["spec"]["initContainers"] for e in c["env"] if e["name"] == "ARGO_TEMPLATE")
    )
    manifest = tmp_path / "manifest.yaml"
    manifest.write_text(template["resource"]["manifest"])
    config = rig.kube.kubeconfig(tmp_path / "config", rig.kube.token("foxhunt", "argo-push-gate"))
    said = []
    for _ in range(2):
        command = [kubectl(), "--kubeconfig", str(config), "apply", "-f", str(manifest)]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.split()[-1])
    child = await phase(rig, f"gpu-test-push-{uid}", "Running")
    await rig.kube.admin.merge(f"{WORKFLOWS}/ci", {"spec": {"shutdown": "Stop"}})
    await player.arrived("stop")
    env = environment(rig, await pod_with(rig, "ci", "onExit"), tmp_path / "account", "argo-push-gate")
    output = await program("scripts/push_gate.py", "stop-child", env=env)
    await player.release("stop")
    ended = await phase(rig, f"gpu-test-push-{uid}", "Failed")

    assert pod["spec"]["serviceAccountName"] == "argo-push-gate"
    assert said[0] == "created"
    assert said[1] in ("unchanged", "configured")
    assert output.strip() == f"gpu-test-push-{uid}: stopped"
    assert child["metadata"]["finalizers"] == ["gputest.bot/report"]
    assert child["metadata"]["labels"]["gputest.bot/ci"] == "main"
    given = {each["name"]: each["value"] for each in child["spec"]["arguments"]["parameters"]}
    assert given == {"commit-ref": "d" * 40, "models": "dqn,ppo,tft", "epochs": "3"}
    assert ended["status"]["message"] == "Stopped with strategy 'Stop'"


async def test_jobs_share_cards_as_the_routing_says(rig: Rig) -> None:
    """Two RL jobs run on the L4 and the third waits; four supervised ones on the L40S and the fifth waits; nobody strays."""
    pods, admin = "/api/v1/namespaces/default/pods", rig.kube.admin
    await add_node(rig, "l4-1", "ci-compile", "44Gi", "l4")
    await add_node(rig, "l40s-1", "ci-training", "90Gi", "l40s")
    placed: dict[str, str] = {}
    for job in ("train-validate-dqn", "hyperopt-ppo", "train-validate-ppo"):
        placed[job] = (await admin.create(pods, build_pod(job)))["metadata"]["name"]
    for job in ("train-validate-tft", "hyperopt-kan", "train-validate-xlstm", "hyperopt-tlob", "hyperopt-tggn"):
        placed[job] = (await admin.create(pods, build_pod(job)))["metadata"]["name"]

    def settled(found: Manifest) -> bool:
        waiting = [
            pod
            for pod in found["items"]
            if any(c.get("reason") == "Unschedulable" for c in pod["status"].get("conditions", []))
        ]
        return sum("nodeName" in pod["spec"] for pod in found["items"]) == 6 and len(waiting) == 2

    found = {pod["metadata"]["name"]: pod for pod in (await admin.until(pods, settled))["items"]}
    nodes = {job: found[name]["spec"].get("nodeName", "") for job, name in placed.items()}
    rl = sorted(nodes[job] for job in placed if job.endswith(("dqn", "ppo")))
    supervised = sorted(nodes[job] for job in placed if not job.endswith(("dqn", "ppo")))

    assert rl == ["", "l4-1", "l4-1"]
    assert supervised == ["", "l40s-1", "l40s-1", "l40s-1", "l40s-1"]
