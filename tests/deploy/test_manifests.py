"""The manifests under deploy/: what the test workflow's specification fixes is in them, and the files agree."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest
import yaml

from tests.deploy.deploy_files import DEPLOY, ROOT, TEN, documents, load, parameters

TOLERATIONS = [
    {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.cilium.io/agent-not-ready", "operator": "Exists", "effect": "NoSchedule"},
]


@pytest.fixture
def pipeline() -> dict[str, Any]:
    """The spec of gpu-test-pipeline."""
    spec: dict[str, Any] = load("argo/gpu-test-pipeline.yaml")["spec"]
    return spec


@pytest.fixture
def templates(pipeline: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Its templates, by name."""
    return {template["name"]: template for template in pipeline["templates"]}


def test_the_pipeline_has_the_seven_parameters(pipeline: dict[str, Any]) -> None:
    """Names and defaults are the specification's; every value is a string, as Argo's full definitions want it."""
    assert parameters(pipeline) == {
        "models": "dqn,ppo,tft", "test-scope": "all", "epochs": "3", "commit-ref": "HEAD", "gpu-pool": "ci-training-h100",
        "cuda-compute-cap": "90", "notify": "true",
    }  # fmt: skip


def test_the_pipelines_own_settings(pipeline: dict[str, Any]) -> None:
    """Exit handler, account, group, pod removal, TTL, deadline, and the lock on the build cache."""
    assert pipeline["entrypoint"] == "pipeline"
    assert pipeline["onExit"] == "notify-result"
    assert pipeline["serviceAccountName"] == "argo-workflow"
    assert pipeline["securityContext"] == {"fsGroup": 0}
    assert pipeline["podGC"] == {"strategy": "OnPodCompletion"}
    assert pipeline["ttlStrategy"] == {"secondsAfterCompletion": 3600}
    assert pipeline["activeDeadlineSeconds"] == 5400
    assert pipeline["synchronization"] == {"mutexes": [{"name": "cargo-target-cuda-test"}]}


def test_warmup_goes_before_the_tests(templates: dict[str, dict[str, Any]]) -> None:
    """Two GPU pods pending at once would bring up two nodes."""
    tasks = {task["name"]: task for task in templates["pipeline"]["dag"]["tasks"]}

    assert tasks["compile-and-test"]["depends"] == "gpu-warmup"
    assert "depends" not in tasks["gpu-warmup"]


@pytest.mark.parametrize(
    ("name", "requests", "limits"),
    [
        ("gpu-warmup", {"nvidia.com/gpu": "1", "cpu": "100m", "memory": "64Mi"}, {"nvidia.com/gpu": "1", "cpu": "200m", "memory": "128Mi"}),
        ("compile-and-test", {"nvidia.com/gpu": "1", "cpu": "4", "memory": "32Gi"}, {"nvidia.com/gpu": "1", "cpu": "8", "memory": "64Gi"}),
    ],
)  # fmt: skip
def test_the_gpu_pods_go_where_the_gpu_is(
    templates: dict[str, dict[str, Any]], name: str, requests: dict[str, str], limits: dict[str, str]
) -> None:
    """Pool, taints and resources of both."""
    template = templates[name]

    assert template["nodeSelector"] == {"k8s.scaleway.com/pool-name": "{{workflow.parameters.gpu-pool}}"}
    assert template["tolerations"] == TOLERATIONS
    assert template["container"]["resources"] == {"requests": requests, "limits": limits}


def test_the_test_pods_environment_and_volumes(pipeline: dict[str, Any], templates: dict[str, dict[str, Any]]) -> None:
    """The nine variables of the specification, the two volumes and the git key."""
    container = templates["compile-and-test"]["container"]
    env = {each["name"]: each.get("value") for each in container["env"]}
    mounts = {each["mountPath"]: (each["name"], each.get("readOnly", False)) for each in container["volumeMounts"]}
    claims = {
        each["name"]: each["persistentVolumeClaim"]["claimName"]
        for each in pipeline["volumes"]
        if "persistentVolumeClaim" in each
    }

    expected = {
        "SQLX_OFFLINE": "true", "CARGO_TARGET_DIR": "/cargo-target", "CARGO_HOME": "/cargo-target/cargo-home",
        "CARGO_TERM_COLOR": "always", "CUDA_COMPUTE_CAP": "{{workflow.parameters.cuda-compute-cap}}",
        "CUDA_VISIBLE_DEVICES": "0", "CUBLAS_WORKSPACE_CONFIG": ":4096:8", "TEST_DATA_DIR": "/data/test-data", "RUST_LOG": "info",
    }  # fmt: skip
    assert expected.items() <= env.items()
    assert mounts["/cargo-target"] == ("cargo-target", False)
    assert mounts["/data/test-data"] == ("test-data", True)
    assert mounts["/etc/git-ssh"] == ("git-ssh-key", True)
    assert claims == {"cargo-target": "cargo-target-cuda-test", "test-data": "test-data-pvc"}


def test_no_parameter_becomes_part_of_a_command() -> None:
    """Values from chat travel in the environment, in all templates."""
    for name in ("argo/gpu-test-pipeline.yaml", "argo/ci-pipeline.yaml"):
        for template in load(name)["spec"]["templates"]:
            container = template.get("container", {})
            assert "{{" not in json.dumps([container.get("command"), container.get("args")])


def test_every_container_has_a_command() -> None:
    """Without one the controller has to ask the image registry."""
    for name in ("argo/gpu-test-pipeline.yaml", "argo/ci-pipeline.yaml"):
        containers = [template["container"] for template in load(name)["spec"]["templates"] if "container" in template]
        assert containers
        assert all(container["command"] for container in containers)


def test_outputs_have_defaults_and_lie_on_a_volume(templates: dict[str, dict[str, Any]]) -> None:
    """A missing file without a default is an error; on a volume the executor finds them after a kill of the container."""
    for name in ("compile-and-test", "notify-result"):
        mounted = [mount["mountPath"] for mount in templates[name]["container"]["volumeMounts"]]
        for output in templates[name]["outputs"]["parameters"]:
            assert "default" in output["valueFrom"]
            assert any(output["valueFrom"]["path"].startswith(path) for path in mounted)
    [results] = templates["compile-and-test"]["outputs"]["parameters"]
    assert (results["name"], results["globalName"], results["valueFrom"]["default"]) == ("results", "results", "")


def test_the_nightly_is_all_models_five_epochs_and_suspended() -> None:
    """At two, of main; created but not active; held for the bot only where the bot is."""
    spec = load("argo/gpu-test-nightly.yaml")["spec"]

    assert spec["schedules"] == ["0 2 * * *"]
    assert "schedule" not in spec
    assert spec["suspend"] is True
    assert spec["workflowSpec"]["workflowTemplateRef"] == {"name": "gpu-test-pipeline"}
    assert parameters(spec["workflowSpec"]) == {"models": ",".join(TEN), "epochs": "5", "commit-ref": "main"}
    assert "workflowMetadata" not in spec


@pytest.mark.parametrize(
    ("file", "name", "size", "storage_class"),
    [
        ("argo/cargo-target-cuda-test-pvc.yaml", "cargo-target-cuda-test", "30Gi", "scw-bssd-retain"),
        ("training/test-data-pvc.yaml", "test-data-pvc", "10Gi", "scw-bssd"),
    ],
)
def test_the_two_claims(file: str, name: str, size: str, storage_class: str) -> None:
    """Own volumes: no training ever waits for a test."""
    claim = load(file)

    assert claim["metadata"] == claim["metadata"] | {"name": name, "namespace": "foxhunt"}
    assert claim["spec"] == {
        "accessModes": ["ReadWriteOnce"], "storageClassName": storage_class, "resources": {"requests": {"storage": size}},
    }  # fmt: skip


def test_manual_goes_before_nightly_before_push() -> None:
    """By the Workflow's priority in the queue, and by the pods' class on the nodes; none of them evicts anybody."""
    classes = documents("argo/priority-classes.yaml")
    value = {name: each["value"] for (_, name), each in classes.items()}
    manifest = push_manifest()
    nightly = load("argo/gpu-test-nightly.yaml")["spec"]["workflowSpec"]

    assert value["gpu-test-manual"] > value["gpu-test-nightly"] > value["gpu-test-push"] > 0
    assert all(each["preemptionPolicy"] == "Never" for each in classes.values())
    assert 30 > nightly["priority"] > manifest["spec"]["priority"]
    assert (nightly["podPriorityClassName"], manifest["spec"]["podPriorityClassName"]) == (
        "gpu-test-nightly",
        "gpu-test-push",
    )


def push_manifest() -> dict[str, Any]:
    """The Workflow that the push gate makes, its variables filled in."""
    ci = {template["name"]: template for template in load("argo/ci-pipeline.yaml")["spec"]["templates"]}
    text = ci["gpu-test"]["resource"]["manifest"]
    for tag, value in (("workflow.parameters.child-finalizers", "[]"), ("workflow.uid", "0" * 36)):
        text = text.replace("{{" + tag + "}}", value)
    found: dict[str, Any] = yaml.safe_load(re.sub(r"\{\{.*?\}\}", "x", text))
    return found


def test_the_push_gate_makes_one_run_of_the_whole_pipeline() -> None:
    """By reference to the template, under a name of the parent's, without an owner; apply finds what is there."""
    templates = {template["name"]: template for template in load("argo/ci-pipeline.yaml")["spec"]["templates"]}
    resource, manifest = templates["gpu-test"]["resource"], push_manifest()
    task = next(task for task in templates["pipeline"]["dag"]["tasks"] if task["name"] == "gpu-test")

    assert resource["action"] == "apply"
    assert "setOwnerReference" not in resource
    assert resource["successCondition"] == "status.phase == Succeeded"
    assert resource["failureCondition"] == "status.phase in (Failed, Error), spec.shutdown"
    assert manifest["spec"]["workflowTemplateRef"] == {"name": "gpu-test-pipeline"}
    assert len(manifest["metadata"]["name"]) <= 63
    assert task["when"] == "{{tasks.detect-changes.outputs.parameters.ml-changed}} == true"
    given = {each["name"]: each["value"] for each in task["arguments"]["parameters"]}
    assert (given["models"], given["epochs"]) == ("dqn,ppo,tft", "3")
    assert given["commit-ref"] == "{{workflow.parameters.commit-sha}}"


def test_code_under_test_cannot_start_anything() -> None:
    """Its account hands results over and reads; the account that creates Workflows is another."""
    objects = documents("argo/rbac.yaml")
    test_rules = objects["Role", "gpu-test-run"]["rules"]
    gate = load("argo/ci-pipeline.yaml")["spec"]["serviceAccountName"]

    assert {(rule["resources"][0], tuple(rule["verbs"])) for rule in test_rules} == {
        ("workflowtaskresults", ("create", "patch")), ("workflows", ("get",)),
    }  # fmt: skip
    assert gate == "argo-push-gate"
    assert load("argo/gpu-test-pipeline.yaml")["spec"]["serviceAccountName"] != gate


def test_the_runner_travels_whole() -> None:
    """Every source file of the runner is in the ConfigMap, which stays below its limit."""
    generator = {each["name"]: each for each in load("argo/kustomization.yaml")["configMapGenerator"]}
    files = {DEPLOY / "argo" / file for file in generator["gpu-test-runner"]["files"]}
    expected = {
        *(DEPLOY / "argo/runner/src").glob("*.rs"),
        DEPLOY / "argo/runner/start.sh",
        DEPLOY / "argo/runner/suites.tsv",
    }

    assert files == expected
    assert sum(file.stat().st_size for file in files) < 900_000


def suite_rows() -> list[dict[str, str]]:
    """The suite table."""
    lines = (DEPLOY / "argo/runner/suites.tsv").read_text().splitlines()
    head, *rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_the_suite_table_is_the_specifications() -> None:
    """Seven suites of DQN, two of PPO, two of each other model, two that always run."""
    rows = {row["suite"]: row for row in suite_rows()}
    targets = {row["suite"]: (row["scope"], row["package"], row["target"], row["filter"]) for row in rows.values()}

    assert list(dict.fromkeys(row["model"] for row in rows.values())) == [*TEN, "shared"]
    assert targets["dqn-lib"] == ("lib", "ml-dqn", "lib", "-")
    assert targets["dqn-ml-lib"] == ("lib", "ml", "lib", "dqn")
    assert {name: rows[name]["target"] for name in rows if rows[name]["model"] == "dqn" and rows[name]["scope"] == "integration"} == {
        "dqn-smoke": "smoke_test_real_data", "dqn-pipeline": "dqn_training_pipeline_test",
        "dqn-smoke-train": "dqn_training_smoke_test", "dqn-early-stop": "dqn_early_stopping_termination_test",
        "dqn-collapse": "dqn_action_collapse_fix_test",
    }  # fmt: skip
    assert targets["ppo-lib"] == ("lib", "ml", "lib", "ppo")
    assert targets["ppo-barrier"] == ("integration", "ml", "barrier_optimization_test", "-")
    for model in TEN[2:]:
        assert targets[f"{model}-lib"] == ("lib", "ml", "lib", model)
        assert targets[f"{model}-integ"] == ("integration", "ml", f"{model}_*", "-")
    assert targets["core"] == ("all", "ml-core", "lib", "-")
    assert targets["bayesian"] == ("all", "ml", "bayesian_changepoint_test", "-")
    assert len(rows) == 27


def test_a_scope_is_what_its_target_says() -> None:
    """--lib suites are lib, --test suites are integration, but for those that always run."""
    for row in suite_rows():
        assert row["scope"] in ("all", "lib" if row["target"] == "lib" else "integration")


def test_the_record_of_the_gpu_run_fits_the_schema() -> None:
    """The results of a run on a GPU of capability 9.0 are kept as the sample of a results file."""
    results = json.loads((DEPLOY / "argo/runner/samples/results_on_h200.json").read_text())
    jsonschema.validate(results, json.loads((DEPLOY / "argo/results.schema.json").read_text()))

    assert results["gpu"]["compute_capability"] == "9.0"
    assert {suite["status"] for suite in results["suites"]} == {"passed", "skipped"}


def test_the_helper_is_one_file() -> None:
    """What is shipped for test code is what the sample workspace uses."""
    link = ROOT / "tests/sample-workspace/crates/ml-core/src/test_data.rs"

    assert link.resolve() == DEPLOY / "training/test_data.rs"


def test_the_populate_job_runs_where_the_tests_mount() -> None:
    """Same pool, source read-only, no second try, a limit for a volume that never mounts."""
    job = load("training/populate-test-data-job.yaml")
    pod = job["spec"]["template"]["spec"]
    volumes = {each["name"]: each for each in pod["volumes"]}
    mounts = {each["mountPath"]: each for each in pod["containers"][0]["volumeMounts"]}

    assert pod["nodeSelector"] == {"k8s.scaleway.com/pool-name": "ci-training-h100"}
    assert pod["tolerations"] == TOLERATIONS
    assert (job["spec"]["backoffLimit"], pod["restartPolicy"]) == (0, "Never")
    assert job["spec"]["activeDeadlineSeconds"] <= 1800
    assert volumes["training-data"]["persistentVolumeClaim"] == {"claimName": "training-data-pvc", "readOnly": True}
    assert mounts["/data/training"]["readOnly"] is True
    assert "readOnly" not in mounts["/data/test-data"]
