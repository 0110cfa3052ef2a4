"""Which models fit which pool, and what is said where they don't."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.core.commands.gputest import StartRun, parameters
from bot.core.errors import UserError
from bot.core.fitting import fitting_models, fitting_pools, unfit
from bot.core.policy import check_fit
from bot.core.settings import Defaults, Family, Model, Pool, Settings
from tests.phrases import SETTINGS

MODELS = (Model("small", "rl"), Model("large", "big"), Model("new", "fp8"), Model("tied", "there"), Model("free", "?"))
FAMILIES = (
    Family("rl"),
    Family("big", gpu_memory_gb=40),
    Family("fp8", min_cap="89"),
    Family("there", pools=("a", "gone")),
)
POOLS = (Pool("a", "A", "80"), Pool("b", "B", "89", gpu_memory_gb=24), Pool("c", "C", "90", gpu_memory_gb=80))
TEAM = Settings(models=MODELS, families=FAMILIES, pools=POOLS, defaults=Defaults(("small",), pool="c"))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("small", ("", "", "")),
        ("large", ("", "needs 40 GB of GPU memory, and there are 24", "")),
        ("new", ("needs compute capability 89, and there is 80", "", "")),
        ("tied", ("", "is for A or gone", "is for A or gone")),
        ("free", ("", "", "")),
        ("unknown", ("", "", "")),
    ],
)
def test_what_a_family_needs(model: str, words: tuple[str, str, str]) -> None:
    """Memory, capability, pools; what is not known is not held against it."""
    assert words == tuple(unfit(TEAM, model, pool) for pool in POOLS)


def test_a_capability_that_is_no_number() -> None:
    """Nothing is concluded from it."""
    assert "" == unfit(TEAM, "new", Pool("d", "D", "gfx942"))


def test_pools_for_several_models() -> None:
    """All of them have to fit; the default pool is named first."""
    assert ["c", "a"] == [pool.name for pool in fitting_pools(TEAM, ("small", "large"))]
    assert [] == list(fitting_pools(TEAM, ("new", "tied")))
    assert ("small", "new") == fitting_models(TEAM, ("small", "large", "new"), POOLS[1])


def test_the_default_configuration_allows_what_the_specifications_do() -> None:
    """All on the H100, RL on the L4, supervised on the L40S; supervised on the L4 is refused."""
    every = SETTINGS.model_names
    h100, l40s, l4 = SETTINGS.pools

    assert every == fitting_models(SETTINGS, every, h100) == fitting_models(SETTINGS, every, l40s)
    assert ("dqn", "ppo") == fitting_models(SETTINGS, every, l4)


def refused(models: tuple[str, ...], pool: str, settings: Settings = TEAM) -> tuple[str, str]:
    """Text and line of the refusal."""
    with pytest.raises(UserError) as error:
        check_fit(settings, parameters(StartRun(models=models, pool=pool), settings))
    return error.value.text, error.value.suggestion


def test_a_refusal_names_the_nearest_run_that_can_start() -> None:
    """Another pool for all of it, else what fits this one, else nothing."""
    text, best = refused(("small", "large"), "b")
    assert (
        "`large` does not fit pool `b`: it needs 40 GB of GPU memory, and there are 24. All of it fits C or A." == text
    )
    assert "/gputest models=small,large" == best
    assert "It fits C or A." in refused(("large",), "b")[0]

    text, best = refused(("small", "new", "tied"), "c")
    assert "`tied` does not fit pool `c`: it is for A or gone. No pool takes all of it." == text
    assert "/gputest models=small,new" == best

    nowhere = replace(TEAM, families=(Family("big", gpu_memory_gb=100),), pools=POOLS[1:])
    assert ("No pool does, as config.yaml stands.", "") == (
        refused(("large",), "c", nowhere)[0][-36:],
        refused(("large",), "c", nowhere)[1],
    )


def test_many_that_do_not_fit_are_counted() -> None:
    """Four are named."""
    assert (
        "`tlob` and 4 more do not fit pool `ci-compile`: `tft` needs 40 GB"
        in refused(SETTINGS.model_names, "ci-compile", SETTINGS)[0]
    )


def test_a_run_of_a_pool_that_nobody_configured() -> None:
    """Whoever made it knows what it is; nothing is refused."""
    wanted = parameters(StartRun(models=("large",)), TEAM) | {TEAM.parameters.pool: "theirs"}
    check_fit(TEAM, wanted)
