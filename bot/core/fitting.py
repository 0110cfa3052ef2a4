"""Which models fit which pool: a family may name its pools, the GPU memory it needs and the least compute capability.

What is not known is not held against a run: a pool without `gpu_memory_gb`, a family of which nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable

from bot.core.settings import Family, Pool, Settings


def unfit(settings: Settings, model: str, pool: Pool) -> str:
    """Why a model can't run in a pool, as a clause; "" where it can."""
    family = _family(settings, model)
    if family is None:
        return ""
    memory = pool.gpu_memory_gb
    if memory is not None and memory < family.gpu_memory_gb:
        return f"needs {family.gpu_memory_gb} GB of GPU memory, and there are {memory}"
    if family.min_cap and pool.cap.isdecimal() and int(pool.cap) < int(family.min_cap):
        return f"needs compute capability {family.min_cap}, and there is {pool.cap}"
    if family.pools and pool.name not in family.pools:
        return f"is for {' or '.join(_gpu(settings, name) for name in family.pools)}"
    return ""


def fitting_models(settings: Settings, models: Iterable[str], pool: Pool) -> tuple[str, ...]:
    """Those of the models that can run in a pool."""
    return tuple(model for model in models if not unfit(settings, model, pool))


def fitting_pools(settings: Settings, models: Iterable[str]) -> tuple[Pool, ...]:
    """The pools in which all of the models can run, the default pool first."""
    every = tuple(models)
    found = [pool for pool in settings.pools if len(fitting_models(settings, every, pool)) == len(every)]
    return tuple(sorted(found, key=lambda pool: pool.name != settings.defaults.pool))


def _family(settings: Settings, model: str) -> Family | None:
    name = next((each.family for each in settings.models if each.name == model), None)
    return next((family for family in settings.families if family.name == name), None)


def _gpu(settings: Settings, name: str) -> str:
    pool = settings.pool(name)
    return pool.gpu if pool is not None else name
