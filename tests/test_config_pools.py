"""What config.yaml says of pools for `/gpu`."""

from __future__ import annotations

import pytest

from bot.config import ConfigError, parse
from bot.core.settings import Pool

POOL = {"name": "ci-training-h100", "gpu": "H100", "cap": "90"}


def test_a_pool_with_its_size_and_its_groups() -> None:
    """As the comment in config.yaml has it."""
    config = parse({"runs": {"pools": [POOL | {"max_nodes": 2, "groups": ["7be2f9d4-aaaa"]}]}})

    assert (Pool("ci-training-h100", "H100", "90", max_nodes=2, groups=("7be2f9d4-aaaa",)),) == config.runs.pools


@pytest.mark.parametrize(
    ("runs", "complaint"),
    [
        (
            {"pools": [POOL | {"groups": ["g"]}, {"name": "b", "gpu": "L4", "cap": "89", "groups": ["g"]}]},
            "a group of the autoscaler belongs to one pool",
        ),
        ({"autoscaler_status": "cluster-autoscaler-status"}, "give namespace/name of the ConfigMap"),
        ({"autoscaler_status": "a/b/c"}, "give namespace/name of the ConfigMap"),
        ({"pools": [POOL | {"max_node": 2}]}, "max_node"),
        ({"warm": {"max_minutes": 241}}, "minutes and max_minutes within 1 to 240"),
        ({"warm": {"minutes": 121}}, "the first not above the second"),
        ({"warm": {"minutes": 0}}, "minutes and max_minutes within 1 to 240"),
        ({"warm": {"max_pools": 0}}, "max_pools at least 1"),
        ({"alerts": {"say_after_seconds": -1}}, "can't be below 0"),
        ({"alerts": {"idle_minutes": 0}}, "idle_minutes and slow_minutes above 0"),
        ({"alerts": {"silent": ["hunger"]}}, "runs.alerts.silent.0"),
        ({"alerts": {"ring": "everybody"}}, "runs.alerts.ring"),
        ({"families": [{"name": "rl"}, {"name": "rl"}]}, "families: each name once"),
        ({"families": [{"name": "rl", "pools": ["ci-trainign"]}]}, "families: ci-trainign not among pools"),
        ({"families": [{"name": "rl", "min_cap": "8.9"}]}, "min_cap is a compute capability without its dot"),
        ({"families": [{"name": "rl", "gpu_memory_gb": 100}]}, "dqn, ppo can't run in ci-training-h100"),
    ],
)
def test_what_can_not_be(runs: dict, complaint: str) -> None:
    """It is said before the bot starts."""
    with pytest.raises(ConfigError, match=complaint):
        parse({"runs": runs})


def test_no_autoscaler_is_a_choice() -> None:
    """An empty text looks at none."""
    assert "" == parse({"runs": {"autoscaler_status": ""}}).runs.autoscaler_status
