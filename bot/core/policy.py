"""Who may do what, decided at the moment of doing, by user id.

Roles come from config.yaml; one that holds for the user and the channel has to allow all of the deed. Names are
turned into ids at the start: a name can change hands, an id can't.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from bot.core.commands.gputest import SPEC
from bot.core.errors import UserError
from bot.core.settings import Right, Role, Settings


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
        _complaint(role, wanted[names.epochs], wanted[names.pool], wanted[names.ref])
        for role in roles_of(settings, user_id, channel_id)
        if Right.RUN in role.may
    ]
    if all(complaints):
        key, text = min((c for c in complaints if c is not None), key=lambda c: len(c[1]))
        raise UserError(
            text + _who_could(settings, wanted, channel_id), _within(settings, user_id, channel_id, key, wanted)
        )


def may_ref(role: Role, ref: str) -> bool:
    """Whether a role may run that ref; patterns as a shell has them."""
    return any(fnmatchcase(ref, pattern) for pattern in role.refs)


def _complaint(role: Role, epochs: str, pool: str, ref: str) -> tuple[str, str] | None:
    if int(epochs) > role.max_epochs:
        return "epochs", f"epochs={epochs} is over your limit of {role.max_epochs}."
    if "*" not in role.pools and pool not in role.pools:
        return "pool", f"Pool `{pool}` is not for you; yours: {', '.join(role.pools) or 'none'}."
    if not may_ref(role, ref):
        shown = ", ".join(f"`{p}`" for p in role.refs) or "nothing"
        return (
            "ref",
            f"Ref `{ref}` is not among those you may run, since GPU pods hold data and keys. You may run {shown}.",
        )
    return None


def _within(settings: Settings, user_id: str, channel_id: str, key: str, wanted: dict[str, str]) -> str:
    """The same line inside the limits, to copy."""
    role = next(r for r in roles_of(settings, user_id, channel_id) if Right.RUN in r.may)
    names = settings.parameters
    asked = {"models": wanted[names.models], "epochs": wanted[names.epochs]}
    if key == "epochs":
        asked["epochs"] = str(role.max_epochs)
    if set(asked["models"].split(",")) == set(settings.model_names):
        asked["models"] = "all"
    return f"/{SPEC.trigger} " + " ".join(f"{k}={v}" for k, v in asked.items())


def _who_could(settings: Settings, wanted: dict[str, str], channel_id: str) -> str:
    names = settings.parameters
    able = [
        role
        for role in settings.roles
        if Right.RUN in role.may
        and _complaint(role, wanted[names.epochs], wanted[names.pool], wanted[names.ref]) is None
    ]
    return _named(able, channel_id)


def _who(settings: Settings, right: Right, channel_id: str) -> str:
    return _named([role for role in settings.roles if right in role.may], channel_id)


def _named(roles: list[Role], channel_id: str) -> str:
    here = [role for role in roles if not role.channels or channel_id in role.channel_ids]
    people = list(dict.fromkeys(name for role in here for name in role.users if name != "*"))
    if people:
        shown = ", ".join(people[:5]) + (" or others" if len(people) > 5 else "")
        return f" Ask {shown}."
    elsewhere = list(dict.fromkeys(name for role in roles for name in role.channels))
    if elsewhere:
        return f" It goes in {', '.join(f'~{name}' for name in elsewhere[:5])}."
    return " Nobody may, as config.yaml stands."


_DEEDS = {
    Right.RUN: "start runs",
    Right.CANCEL: "cancel runs",
    Right.NIGHTLY: "switch the nightly run",
    Right.LOOK: "look at runs",
}
