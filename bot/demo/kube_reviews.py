"""SelfSubjectAccessReview: whoever asks is told what they may do.

https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access. Every user with a token may
ask (system:basic-user); asking uses no right.
"""

from __future__ import annotations

from bot.demo.access import Access, Request, User
from bot.demo.kinds import ALL
from bot.demo.world import Json

PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


def review(access: Access, user: User, body: Json) -> Json:
    """The body with its answer."""
    asked = (body.get("spec") or {}).get("resourceAttributes") or {}
    kind = next((k for k in ALL if (k.group, k.plural) == (asked.get("group", ""), asked.get("resource"))), None)
    allowed = False
    if kind is not None:
        request = Request(
            asked.get("verb", ""),
            kind,
            asked.get("namespace", ""),
            asked.get("name", ""),
            asked.get("subresource", ""),
        )
        allowed = access.allows(user, request)
    return {**body, "metadata": {}, "status": {"allowed": allowed}}
