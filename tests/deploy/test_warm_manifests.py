"""The optional right to keep nodes warm: the least there is, held to one kind of pod, below all others."""

from __future__ import annotations

import re

from bot.config import MAX_WARM_MINUTES
from bot.core.settings import Settings, Warm
from tests.deploy.deploy_files import documents, several

FILE = "bot/rbac-warm.yaml"


def test_the_right_is_to_make_and_to_delete_pods() -> None:
    """In the namespace of the workflows only, and of nothing else."""
    roles = [each for each in several(FILE) if each["kind"] in {"Role", "ClusterRole"}]

    assert [(role["kind"], role["metadata"]["namespace"]) for role in roles] == [("Role", Settings().namespace)]
    assert roles[0]["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "delete"]}]


def test_its_priority_is_below_all_others_and_still_minded_by_the_autoscaler() -> None:
    """The cluster-autoscaler takes no notice of pods below -10; pods without a class have 0."""
    placeholder = documents(FILE)["PriorityClass", Warm().priority_class]
    others = [each for each in several("argo/priority-classes.yaml") if each["kind"] == "PriorityClass"]

    assert -10 <= placeholder["value"] < 0 < min(each["value"] for each in others)
    assert placeholder["preemptionPolicy"] == "Never"
    assert placeholder["globalDefault"] is False


def test_the_policy_takes_what_the_bot_makes_by_default() -> None:
    """It fails closed, is for the bot alone, and allows the longest time that config.yaml may allow."""
    objects = documents(FILE)
    policy = objects["ValidatingAdmissionPolicy", "gputest-placeholders"]["spec"]
    text = " ".join(each["expression"] for each in policy["validations"])
    (image,) = re.findall(r"matches\('([^']+)'\)", text)
    (longest,) = re.findall(r"activeDeadlineSeconds <= (\d+)", text)

    assert policy["failurePolicy"] == "Fail"
    assert policy["matchConditions"][0]["expression"].endswith("'system:serviceaccount:gputest:gputest-bot'")
    assert re.fullmatch(image.replace("\\\\", "\\"), Warm().image)
    assert int(longest) == 60 * MAX_WARM_MINUTES
    assert f"'{Warm().priority_class}'" in text
    assert objects["ValidatingAdmissionPolicyBinding", "gputest-placeholders"]["spec"]["validationActions"] == ["Deny"]
