"""SelfSubjectAccessReview and SelfSubjectReview: whoever asks is told what they may do, and who they are.

https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access. Every user with a token may
ask (system:basic-user); asking uses no right.
"""

from __future__ import annotations

from collections.abc import Callable

from bot.demo import status
from bot.demo.access import MASTERS, Access, Request, User
from bot.demo.kinds import ALL
from bot.demo.status import ApiError
from bot.demo.world import Json

Review = Callable[[Access, User, Json], Json]


def may(access: Access, user: User, body: Json) -> Json:
    """A SelfSubjectAccessReview with its answer. Raises ApiError: 400, 422."""
    spec = body.get("spec") or {}
    for name, value in (("spec", spec), *((spec if isinstance(spec, dict) else {}).items())):
        if not isinstance(value, dict):
            text = f"json: cannot unmarshal {name} of SelfSubjectAccessReview"
            raise status.bad_request(f'SelfSubjectAccessReview in version "v1" cannot be handled: {text}')
    asked, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (asked is None) == (path is None):
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        message = f'.authorization.k8s.io "" is invalid: spec.resourceAttributes: Invalid value: null: {text}'
        raise ApiError(422, "Invalid", message, {"group": "authorization.k8s.io"})
    allowed = _may(access, user, spec["resourceAttributes"]) if path is None else _may_ask(access, user, path)
    return _answered(body, "SelfSubjectAccessReview", "authorization.k8s.io/v1", {"allowed": allowed})


def who(_access: Access, user: User, body: Json) -> Json:
    """A SelfSubjectReview with its answer."""
    info = {"username": user.name, "groups": list(user.groups)}
    return _answered(body, "SelfSubjectReview", "authentication.k8s.io/v1", {"userInfo": info})


REVIEWS: dict[str, tuple[str, Review]] = {
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": ("SelfSubjectAccessReview", may),
    "/apis/authentication.k8s.io/v1/selfsubjectreviews": ("SelfSubjectReview", who),
}
"""By path the kind of the body, and what answers it."""


def _answered(body: Json, kind: str, version: str, found: Json) -> Json:
    return {**body, "kind": kind, "apiVersion": version, "metadata": {}, "status": found}


def _may(access: Access, user: User, asked: Json) -> bool:
    if MASTERS in user.groups:
        return True
    kind = next((k for k in ALL if (k.group, k.plural) == (asked.get("group", ""), asked.get("resource"))), None)
    if kind is None:
        return False
    rest = (str(asked.get(name) or "") for name in ("namespace", "name", "subresource"))
    return access.allows(user, Request(str(asked.get("verb", "")), kind, *rest))


def _may_ask(access: Access, user: User, path: Json) -> bool:
    try:
        access.authorize_path(user, str(path.get("verb", "")).upper(), str(path.get("path", "")))
    except ApiError:
        return False
    return True
