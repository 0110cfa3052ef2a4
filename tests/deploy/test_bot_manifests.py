"""The bot's own objects, the kustomizations, and the GPU routing's configuration."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
import yaml

from tests.deploy.deploy_files import DEPLOY, FILES, TEN, built, documents, load, parameters, several, strict


def test_the_bots_pod_is_locked_down() -> None:
    """Probes, read-only root, no root, seccomp, no capabilities, resources, two replicas with a budget."""
    spec = load("bot/deployment.yaml")["spec"]
    pod, [container] = spec["template"]["spec"], spec["template"]["spec"]["containers"]

    assert spec["replicas"] == 2
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert {"startupProbe", "livenessProbe", "readinessProbe", "resources"} <= set(container)
    assert load("bot/disruption-budget.yaml")["spec"]["minAvailable"] == 1


def test_the_bots_rights_are_the_least() -> None:
    """No secrets, no deletion, nothing cluster-wide, pods and events read at most."""
    roles = [each for each in several("bot/rbac.yaml") if each["kind"] == "Role"]
    text = json.dumps(roles)

    assert {role["metadata"]["namespace"] for role in roles} == {"foxhunt", "gputest"}
    assert not re.search(r'"(\*|delete|deletecollection|secrets|pods/exec|escalate|bind|impersonate)"', text)
    for rule in (rule for role in roles for rule in role["rules"]):
        if {"pods", "pods/log", "events"} & set(rule["resources"]):
            assert set(rule["verbs"]) <= {"get", "list", "watch"}
    assert "ClusterRole" not in (DEPLOY / "bot/rbac.yaml").read_text()


def test_the_admission_policy_knows_the_seven_parameters() -> None:
    """It is bound to both accounts that may create Workflows, and fails closed."""
    objects = documents("bot/admission-policy.yaml")
    policy = objects["ValidatingAdmissionPolicy", "gputest-workflows"]["spec"]
    variables = {each["name"]: each["expression"] for each in policy["variables"]}

    assert policy["failurePolicy"] == "Fail"
    assert set(re.findall(r"'([^']+)'", variables["parameters"])) == set(
        parameters(load("argo/gpu-test-pipeline.yaml")["spec"])
    )
    [condition] = policy["matchConditions"]
    assert set(re.findall(r"serviceaccount:[a-z]+:([a-z-]+)", condition["expression"])) == {
        "gputest-bot",
        "argo-push-gate",
    }
    assert objects["ValidatingAdmissionPolicyBinding", "gputest-workflows"]["spec"]["validationActions"] == ["Deny"]


def test_the_bots_configuration_is_one_that_the_bot_takes() -> None:
    """Read by the bot's own reader; its pools' capabilities are the pipeline's."""
    config = pytest.importorskip("bot.config").load(DEPLOY / "bot/config.yaml")

    assert {pool.name: pool.cap for pool in config.runs.pools} == {
        "ci-training-h100": "90",
        "ci-training": "89",
        "ci-compile": "89",
    }
    assert list(config.runs.model_names) == TEN


@pytest.mark.parametrize("folder", ["argo", "training", "bot", "gitlab", "overlays/complete", "overlays/with-extras"])
def test_every_kustomization_builds(folder: str) -> None:
    """As `kubectl apply -k` takes it; every ConfigMap that is mounted is made."""
    objects = built(folder)
    made = {each["metadata"]["name"] for each in objects if each["kind"] == "ConfigMap"}

    if folder.startswith("overlays"):
        mounted = set(re.findall(r'"configMap": \{[^}]*?"name": "([^"]+)"', json.dumps(objects)))
        assert mounted <= made
    done = strict(yaml.safe_dump_all(objects))
    assert done.returncode == 0, done.stdout + done.stderr


def test_with_the_bot_the_clusters_own_runs_are_held_for_it() -> None:
    """From birth, in the complete overlay only: a cluster without a bot would never let them go."""
    complete = {(each["kind"], each["metadata"]["name"]): each for each in built("overlays/complete")}
    alone = json.dumps(built("argo"))

    assert complete["CronWorkflow", "gpu-test-nightly"]["spec"]["workflowMetadata"] == {
        "finalizers": ["gputest.bot/report"]
    }
    assert json.loads(parameters(complete["WorkflowTemplate", "ci-pipeline"]["spec"])["child-finalizers"]) == [
        "gputest.bot/report"
    ]
    assert '"finalizers": ["gputest.bot/report"]' not in alone


def test_images_are_pinned_by_tag() -> None:
    """No `latest`, no bare name."""
    for file in FILES:
        for image in re.findall(r"^\s*(?:- )?image:\s*\"?([^\s\"]+)", file.read_text(), flags=re.MULTILINE):
            assert re.search(r":[\w.-]+$", image), f"{file.name}: {image}"
            assert not image.endswith(":latest")


def test_cards_are_shared_as_the_routing_says() -> None:
    """Two pods on an L4, four on an L40S, one on an H100."""
    data = load("gitlab/device-plugin.yaml")["data"]
    replicas = {}
    for name, text in data.items():
        sharing = yaml.safe_load(text).get("sharing", {}).get("timeSlicing", {"resources": [{"replicas": 1}]})
        replicas[name] = sharing["resources"][0]["replicas"]

    assert replicas == {"h100": 1, "l4": 2, "l40s": 4}


def test_the_runner_lets_the_jobs_ask() -> None:
    """Overwrites up to the routing's largest values, the default pool, the GPU on the build container, and the flag for it."""
    values = load("gitlab/runner-values.yaml")
    [runner] = tomllib.loads(values["runners"]["config"])["runners"]
    kubernetes = runner["kubernetes"]
    [patch] = kubernetes["pod_spec"]
    allowed = re.compile(kubernetes["node_selector_overwrite_allowed"])

    assert kubernetes["node_selector"] == {"k8s.scaleway.com/pool-name": "ci-compile"}
    assert allowed.search("k8s.scaleway.com/pool-name=ci-training")
    assert not allowed.search("k8s.scaleway.com/pool-name=ci-training-h100")
    assert not allowed.search("k8sXscaleway.com/pool-name=ci-training")
    assert kubernetes["cpu_request_overwrite_max_allowed"] == "3000m"
    assert kubernetes["cpu_limit_overwrite_max_allowed"] == "3800m"
    assert kubernetes["memory_request_overwrite_max_allowed"] == "16Gi"
    assert kubernetes["memory_limit_overwrite_max_allowed"] == "40Gi"
    assert runner["feature_flags"]["FF_USE_ADVANCED_POD_SPEC_CONFIGURATION"] is True
    assert yaml.safe_load(patch["patch"])["containers"] == [
        {"name": "build", "resources": {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}}
    ]
