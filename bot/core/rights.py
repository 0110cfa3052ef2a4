"""The rights in the cluster that the bot uses: what deploy/bot/rbac.yaml grants, and a test compares the two.

`optional` ones are not needed to start, follow and report a run: without them the bot tells less.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.settings import Right, Settings

WARM_FILE = "deploy/bot/rbac-warm.yaml"


@dataclass(frozen=True)
class OwnObjects:
    """Names of what the bot keeps for itself."""

    namespace: str
    lease: str
    config_map: str
    history: str
    costs: str


@dataclass(frozen=True)
class Access:
    """Some verbs on one kind of object in one namespace; `name` is the one object, "" for all."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    namespace: str
    use: str
    """What does not work without."""
    name: str = ""
    optional: bool = False
    file: str = "deploy/bot/rbac.yaml"
    """What grants it."""


def rights(settings: Settings, own: OwnObjects) -> tuple[Access, ...]:
    """All of them, by what they are on."""
    runs, argo, leases = settings.namespace, "argoproj.io", "coordination.k8s.io"
    return (
        Access(argo, "workflows", ("get", "list", "watch", "create", "patch"), runs, "runs"),
        Access(argo, "cronworkflows", ("list", "watch"), runs, "/nightly"),
        Access(argo, "cronworkflows", ("get", "patch"), runs, "/nightly", settings.cron),
        Access(argo, "workflowtemplates", ("get",), runs, "this check", settings.template, optional=True),
        Access("", "pods", ("list", "watch"), runs, "progress, and who waits for a GPU", optional=True),
        Access("", "events", ("list", "watch"), runs, "why a pod waits", optional=True),
        Access("", "pods/log", ("get",), runs, "progress of the tests", optional=True),
        Access(leases, "leases", ("get", "update"), own.namespace, "one replica that speaks", own.lease),
        Access("", "configmaps", ("get", "patch"), own.namespace, "what is kept over a restart", own.config_map),
        Access(
            "",
            "configmaps",
            ("get", "list", "watch", "patch"),
            own.namespace,
            "how long starts usually take",
            own.history,
            optional=True,
        ),
        Access(
            "",
            "configmaps",
            ("list", "watch", "patch"),
            own.namespace,
            "what nodes cost, over a restart",
            own.costs,
            optional=True,
        ),
        Access(leases, "leases", ("create",), own.namespace, "the first start"),
        Access("", "configmaps", ("create",), own.namespace, "the first start"),
        *_keeping_warm(settings),
    )


def _keeping_warm(settings: Settings) -> tuple[Access, ...]:
    """What deploy/bot/rbac-warm.yaml grants; nobody needs it where no role may keep nodes warm."""
    if not any(Right.WARM in role.may for role in settings.roles):
        return ()
    return (Access("", "pods", ("create", "delete"), settings.namespace, "/gpu warm", optional=True, file=WARM_FILE),)
