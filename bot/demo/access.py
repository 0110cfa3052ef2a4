"""Who may do what on the embedded Kubernetes API: bearer tokens, and roles read from ordinary RBAC objects.

https://kubernetes.io/docs/reference/access-authn-authz/rbac/. What each token did is written down, so that a test can
compare the rights that a manifest grants with the rights that were used.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from bot.demo import status
from bot.demo.kinds import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES, Kind
from bot.demo.world import Json, Store

ANONYMOUS = "system:anonymous"
MASTERS = "system:masters"
_PUBLIC = ("/healthz", "/livez", "/readyz", "/version")
_DISCOVERY = ("/api/", "/apis/", "/openapi/")


@dataclass(frozen=True, slots=True)
class User:
    """Who a token belongs to."""

    name: str
    groups: tuple[str, ...] = ("system:authenticated",)

    @staticmethod
    def service_account(namespace: str, name: str) -> User:
        """The user of a pod's service account."""
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        return User(f"system:serviceaccount:{namespace}:{name}", groups)


@dataclass(frozen=True, slots=True)
class Request:
    """One thing that somebody asks to do."""

    verb: str
    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def resource(self) -> str:
        """The resource as rules name it."""
        return f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural


@dataclass
class Access:
    """The tokens, the rules and the record."""

    store: Store
    users: dict[str, User] = field(default_factory=dict)
    used: dict[str, set[tuple[str, str, str]]] = field(default_factory=lambda: defaultdict(set))
    """By user name: every (verb, group, resource) that was allowed."""
    refused: list[tuple[str, str, str, str]] = field(default_factory=list)
    """Every (user name, verb, group, resource) that was not."""

    def authenticate(self, header: str | None) -> User:
        """The user of an Authorization header; nobody in particular without one.

        Raises ApiError 401 for a token that is not known.
        """
        scheme, _, token = (header or "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return User(ANONYMOUS, ("system:unauthenticated",))
        user = self.users.get(token.strip())
        if user is None:
            raise status.unauthorized()
        return user

    def authorize_path(self, user: User, method: str, path: str) -> None:
        """Raises ApiError 403 unless the user may ask for a path that is no resource.

        What the roles system:public-info-viewer and system:discovery grant to everybody and to all with a token.
        """
        if MASTERS in user.groups:
            return
        discovery = "system:authenticated" in user.groups and f"{path}/".startswith(_DISCOVERY)
        if method != "GET" or not (discovery or path.rstrip("/") in _PUBLIC):
            raise status.forbidden_path(user.name, method, path)

    def allows(self, user: User, request: Request) -> bool:
        """Whether a role grants it."""
        return MASTERS in user.groups or any(_allows(rule, request) for rule in self._rules(user, request.namespace))

    def authorize(self, user: User, request: Request) -> None:
        """Raises ApiError 403 unless a role grants it."""
        entry = (request.verb, request.kind.group, request.resource)
        if not self.allows(user, request):
            self.refused.append((user.name, *entry))
            where = f' in the namespace "{request.namespace}"' if request.namespace else " at the cluster scope"
            raise status.forbidden(
                request.kind,
                request.name,
                f'User "{user.name}" cannot {request.verb} resource "{request.resource}" in API group '
                f'"{request.kind.group}"{where}',
            )
        self.used[user.name].add(entry)

    def _rules(self, user: User, namespace: str) -> list[Json]:
        rules: list[Json] = []
        for binding in self.store.all(CLUSTER_ROLE_BINDINGS):
            if _binds(binding, user):
                rules += self._role(binding, "")
        if namespace:
            for binding in self.store.all(ROLE_BINDINGS, namespace):
                if _binds(binding, user):
                    rules += self._role(binding, namespace)
        return rules

    def _role(self, binding: Json, namespace: str) -> list[Json]:
        ref = binding["roleRef"]
        kind, where = (CLUSTER_ROLES, "") if ref["kind"] == "ClusterRole" else (ROLES, namespace)
        role = self.store.find(kind, where, ref["name"])
        return list(role.get("rules") or []) if role else []


def _binds(binding: Json, user: User) -> bool:
    for subject in binding.get("subjects") or ():
        match subject.get("kind"):
            case "ServiceAccount":
                namespace = subject.get("namespace") or binding["metadata"].get("namespace", "")
                if user.name == f"system:serviceaccount:{namespace}:{subject['name']}":
                    return True
            case "User":
                if user.name == subject["name"]:
                    return True
            case "Group":
                if subject["name"] in user.groups:
                    return True
    return False


def _allows(rule: Json, request: Request) -> bool:
    resources = rule.get("resources") or ()
    names = rule.get("resourceNames") or ()
    return (
        _has(rule.get("verbs") or (), request.verb)
        and _has(rule.get("apiGroups") or (), request.kind.group)
        and (
            _has(resources, request.resource) or (bool(request.subresource) and f"*/{request.subresource}" in resources)
        )
        and (not names or request.name in names)
    )


def _has(listed: list[str] | tuple[str, ...], wanted: str) -> bool:
    return "*" in listed or wanted in listed
