"""Who may do what, decided at the moment of doing, by user id.

Roles come from config.yaml; one that holds for the user and the channel has to allow all of the deed. Names are
turned into ids at the start: a name can change hands, an id can't.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from bot.core.commands.gputest import SPEC
from bot.core.commands.grammar import written
from bot.core.errors import UserError
from bot.core.fitting import fitting_models, fitting_pools, unfit
from bot.core.render.escape import code
from bot.core.settings import Right, Role, Settings
from bot.core.verdict import expand_models

MAX_LEFT_OUT = 4
"""Models named that a pool can't take; more are counted."""


def roles_of(settings: Settings, user_id: str, channel_id: str) -> tuple[Role, ...]:
    """The roles that a user has in a channel."""
    return tuple(
        role
        for role in settings.roles
        if ("*" in role.users or user_id in role.user_ids) and (not role.channels or channel_id in role.channel_ids)
    )


def check(settings: Settings, right: Right, user_id: str, channel_id: str) -> None:
    """Whether the user may do it here.

    Raises:
        UserError: not allowed; the text says who could.
    """
    if not any(right in role.may for role in roles_of(settings, user_id, channel_id)):
        raise UserError(f"You may not {_DEEDS[right]} here.{_who(settings, right, channel_id)}")


def check_run(settings: Settings, user_id: str, channel_id: str, wanted: dict[str, str]) -> None:
    """Whether the user may start a run with these parameters here: epochs, pool and ref within a role's limits.

    One role has to allow all of it: two roles don't add up to a third.

    Raises:
        UserError: not allowed; the text names the limit, and who could.
    """
    check(settings, Right.RUN, user_id, channel_id)
    names = settings.parameters
    complaints = [
        (_complaint(role, wanted[names.epochs], wanted[names.pool], wanted[names.ref]), _within(settings, role, wanted))
        for role in roles_of(settings, user_id, channel_id)
        if Right.RUN in role.may
    ]
    if all(text for text, _ in complaints):
        # of several roles the one that leaves something to copy, and has the least to say
        text, best = min(complaints, key=lambda complaint: (not complaint[1], len(complaint[0])))
        raise UserError(text + _who_could(settings, wanted, channel_id), best)
    check_fit(settings, wanted)


def check_fit(settings: Settings, wanted: dict[str, str]) -> None:
    """Whether all of the models can run in that pool.

    Raises:
        UserError: some can't; the text says why, and what they fit, and the line has the nearest run that can.
    """
    names = settings.parameters
    models, pool = expand_models(wanted[names.models], settings), settings.pool(wanted[names.pool])
    fit = fitting_models(settings, models, pool) if pool is not None else models
    if pool is None or len(fit) == len(models):
        return
    others = fitting_pools(settings, models)
    left_out = [code(model, 40) for model in models if model not in fit]
    named = ", ".join(left_out[:MAX_LEFT_OUT])
    named += f" and {len(left_out) - MAX_LEFT_OUT} more" if len(left_out) > MAX_LEFT_OUT else ""
    why = unfit(settings, next(model for model in models if model not in fit), pool)
    does, which = ("does", "it") if len(left_out) == 1 else ("do", left_out[0])
    text = f"{named} {does} not fit pool {code(pool.name, 60)}: {which} {why}."
    if others:
        fits = either([each.gpu for each in others])
        raise UserError(
            f"{text} {'All of it fits' if len(models) > 1 else 'It fits'} {fits}.",
            _line(settings, wanted | {names.pool: others[0].name}),
        )
    if fit:
        raise UserError(f"{text} No pool takes all of it.", _line(settings, wanted | {names.models: ",".join(fit)}))
    raise UserError(f"{text} No pool does, as config.yaml stands.")


def check_warm(settings: Settings, user_id: str, channel_id: str, pool: str) -> None:
    """Whether the user may keep that pool warm here, or let it cool: a role has to allow both the deed and the pool.

    Raises:
        UserError: not allowed; the text says who could.
    """
    check(settings, Right.WARM, user_id, channel_id)
    mine = [role for role in roles_of(settings, user_id, channel_id) if Right.WARM in role.may]
    if not any(_may_pool(role, pool) for role in mine):
        able = [role for role in settings.roles if Right.WARM in role.may and _may_pool(role, pool)]
        raise UserError(f"Pool {code(pool, 60)} is not for you to keep warm.{_named(able, channel_id)}")


def may_ref(role: Role, ref: str) -> bool:
    """Whether a role may run that ref; patterns as a shell has them."""
    return any(fnmatchcase(ref, pattern) for pattern in role.refs)


def _number(epochs: str) -> int | None:
    """Whoever starts a run without the bot may write anything there."""
    return int(epochs) if re.fullmatch("[0-9]{1,9}", epochs) and int(epochs) else None


def _may_pool(role: Role, pool: str) -> bool:
    return "*" in role.pools or pool in role.pools


def _complaint(role: Role, epochs: str, pool: str, ref: str) -> str:
    """What of it goes beyond the role, "" for nothing."""
    number = _number(epochs)
    if number is None:
        return f"epochs={code(epochs, 60)} is no whole number from 1 up."
    if number > role.max_epochs:
        return f"epochs={number} is over your limit of {role.max_epochs}."
    if not _may_pool(role, pool):
        return f"Pool {code(pool, 60)} is not for you; yours: {', '.join(role.pools) or 'none'}."
    if not may_ref(role, ref):
        shown = ", ".join(f"`{p}`" for p in role.refs) or "nothing"
        return (
            f"Ref {code(ref)} is not among those you may run, since GPU pods hold data and keys. You may run {shown}."
        )
    return ""


def _within(settings: Settings, role: Role, wanted: dict[str, str]) -> str:
    """The same run inside the limits of a role, as a line to copy; "" where there is none."""
    names, defaults = settings.parameters, settings.defaults
    pools = [pool for pool in (wanted[names.pool], *(p.name for p in settings.pools)) if _may_pool(role, pool)]
    able = {pool.name for pool in fitting_pools(settings, expand_models(wanted[names.models], settings))}
    pools = [pool for pool in pools if pool in able] or pools
    refs = [
        ref for ref in (wanted[names.ref], defaults.ref, *role.refs) if may_ref(role, ref) and not set(ref) & set("*?[")
    ]
    epochs = min(_number(wanted[names.epochs]) or defaults.epochs, role.max_epochs)
    if not pools or not refs or epochs < 1:
        return ""
    return _line(settings, wanted | {names.pool: pools[0], names.ref: refs[0]}, epochs)


def _line(settings: Settings, wanted: dict[str, str], epochs: int | None = None) -> str:
    """These parameters as a line to copy: models always, what is the default only where it is a number to see."""
    names, defaults, models = settings.parameters, settings.defaults, wanted[settings.parameters.models]
    shown = str(epochs) if epochs is not None else wanted[names.epochs]
    pairs = {
        "models": "all" if set(models.split(",")) == set(settings.model_names) else models,
        "scope": wanted[names.scope] if wanted[names.scope] != defaults.scope else "",
        "epochs": shown if epochs is not None or shown != str(defaults.epochs) else "",
        "ref": wanted[names.ref] if wanted[names.ref] != defaults.ref else "",
        "pool": wanted[names.pool] if wanted[names.pool] != defaults.pool else "",
        "notify": wanted[names.notify] if wanted[names.notify] != str(defaults.notify).lower() else "",
    }
    return f"/{SPEC.trigger} {written((), {key: value for key, value in pairs.items() if value})}"


def _who_could(settings: Settings, wanted: dict[str, str], channel_id: str) -> str:
    names = settings.parameters
    able = [
        role
        for role in settings.roles
        if Right.RUN in role.may and _complaint(role, wanted[names.epochs], wanted[names.pool], wanted[names.ref]) == ""
    ]
    return _named(able, channel_id)


def _who(settings: Settings, right: Right, channel_id: str) -> str:
    return _named([role for role in settings.roles if right in role.may], channel_id)


def either(names: Sequence[str]) -> str:
    """`anna`, `anna or ben`, `anna, ben or ian`."""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _named(roles: list[Role], channel_id: str) -> str:
    here = [role for role in roles if not role.channels or channel_id in role.channel_ids]
    people = list(dict.fromkeys(name for role in here for name in role.users if name != "*"))
    if people:
        return f" Ask {either([*people[:5], *(['others'] if len(people) > 5 else [])])}."
    elsewhere = list(dict.fromkeys(name for role in roles for name in role.channels))
    if elsewhere:
        return f" It goes in {', '.join(f'~{name}' for name in elsewhere[:5])}."
    return " Nobody may, as config.yaml stands."


_DEEDS = {
    Right.RUN: "start runs",
    Right.CANCEL: "cancel runs",
    Right.NIGHTLY: "switch the nightly run",
    Right.LOOK: "look at runs",
    Right.WARM: "keep GPUs warm",
}
