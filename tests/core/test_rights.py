"""The rights that the bot asks for are the ones that deploy/bot/rbac.yaml grants, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from bot.core.rights import OwnObjects, rights
from bot.core.settings import Right, Role, Settings

DEPLOY = Path(__file__).parents[2] / "deploy" / "bot"
WARMERS = Settings(roles=(*Settings().roles, Role("leads", may=(Right.WARM,))))


@pytest.mark.parametrize(
    ("settings", "files"), [(Settings(), ["rbac.yaml"]), (WARMERS, ["rbac.yaml", "rbac-warm.yaml"])]
)
def test_what_is_asked_for_is_what_is_granted(settings: Settings, files: list[str]) -> None:
    """A right that is granted and not known here would never be checked; one that is not granted is never had."""
    granted: dict[tuple[str, str, str, str], set[str]] = {}
    for body in [each for file in files for each in yaml.safe_load_all((DEPLOY / file).read_text(encoding="utf-8"))]:
        for rule in body.get("rules", []) if body["kind"] == "Role" else []:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for name in rule.get("resourceNames", [""]):
                        place = (body["metadata"]["namespace"], group, resource, name)
                        granted.setdefault(place, set()).update(rule["verbs"])

    asked: dict[tuple[str, str, str, str], set[str]] = {}
    for right in rights(
        settings, OwnObjects("gputest", "gputest-bot", "gputest-bot", "gputest-bot-history", "gputest-bot-costs")
    ):
        asked.setdefault((right.namespace, right.group, right.resource, right.name), set()).update(right.verbs)
    assert asked == granted
