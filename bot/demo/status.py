"""Errors of the Kubernetes API: what a client gets in place of an answer.

The body is a `Status` object; texts and codes follow k8s.io/apimachinery `pkg/api/errors/errors.go` and the handlers of
k8s.io/apiserver.
"""

from __future__ import annotations

import json
from typing import Any

from bot.demo.kinds import Kind

Json = dict[str, Any]


class ApiError(Exception):
    """A request that the API server refuses; `status` is the body of the answer."""

    def __init__(self, code: int, reason: str, message: str, details: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.status = failure(code, reason, message, details)
        self.is_page = False
        """Whether the answer is the bare text."""


def failure(code: int, reason: str, message: str, details: Json | None = None) -> Json:
    """A Status of an error, with its fields in the order of the real server."""
    body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    if reason:
        body["reason"] = reason
    if details is not None:
        body["details"] = details
    body["code"] = code
    return body


def _details(kind: Kind, name: str) -> Json:
    details: Json = {}
    if name:
        details["name"] = name
    if kind.group:
        details["group"] = kind.group
    details["kind"] = kind.plural
    return details


def not_found(kind: Kind, name: str) -> ApiError:
    """404: no such object."""
    return ApiError(404, "NotFound", f'{kind.qualified} "{name}" not found', _details(kind, name))


def precondition(kind: Kind, name: str, why: str) -> ApiError:
    """409: a precondition of a deletion does not hold."""
    qualified = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    details = {**_details(kind, name), "kind": kind.kind}
    return ApiError(409, "Conflict", f'Operation cannot be fulfilled on {qualified} "{name}": {why}', details)


def no_such_page() -> ApiError:
    """404 outside of the API: it is no Status."""
    error = ApiError(404, "NotFound", "404 page not found\n")
    error.is_page = True
    return error


def no_such_path() -> ApiError:
    """404 for a path that names no resource."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(kind: Kind, name: str, *, deleted: bool = False) -> ApiError:
    """409: the name is taken, perhaps by something that is being deleted."""
    message = f'{kind.qualified} "{name}" already exists'
    if deleted:
        message = f"object is being deleted: {message}"
    return ApiError(409, "AlreadyExists", message, _details(kind, name))


def conflict(kind: Kind, name: str, why: str | None = None) -> ApiError:
    """409: another write came first, or a precondition does not hold."""
    why = why or "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {kind.qualified} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(kind, name))


Cause = tuple[str, str, str]
"""One wrong field: its path, the machine word such as FieldValueInvalid, and what is wrong."""


def invalid(kind: Kind, name: str, *causes: Cause) -> ApiError:
    """422: one field or several are wrong."""
    return _invalid(kind.kind, kind.group, name, causes)


def invalid_by_resource(kind: Kind, name: str, *causes: Cause) -> ApiError:
    """422 from where the server knows the plural only."""
    return _invalid(kind.plural, kind.group, name, causes)


def invalid_options(options: str, *causes: Cause) -> ApiError:
    """422: parameters of a request are wrong; `options` is their kind, such as ListOptions."""
    return _invalid(options, "meta.k8s.io", "", causes)


def invalid_log_options(pod: str, *causes: Cause) -> ApiError:
    """422: parameters of a request for a log are wrong."""
    return _invalid("PodLogOptions", "", pod, causes)


def wrong_kind(kind: Kind, given: str, name: str) -> ApiError:
    """422: a custom resource that calls itself another."""
    text = f'Invalid value: "{given}": must be {kind.kind}'
    return _invalid(given, kind.group, name, (("kind", "FieldValueInvalid", text),))


def invalid_patch(why: str, patched: Any) -> ApiError:
    """422: what came of a patch is no object of its kind; the real server shows it whole."""
    text = f"Invalid value: {json.dumps(json.dumps(patched, sort_keys=True))}: {why}"
    details = {"causes": [{"reason": "FieldValueInvalid", "message": text, "field": "patch"}]}
    return ApiError(422, "Invalid", f' "" is invalid: patch: {text}', details)


def _invalid(kind: str, group: str, name: str, causes: tuple[Cause, ...]) -> ApiError:
    qualified = f"{kind}.{group}" if group else kind
    details: Json = {"name": name} if name else {}
    if group:
        details["group"] = group
    details["kind"] = kind
    details["causes"] = [{"reason": word, "message": text, "field": field} for field, word, text in causes]
    said = [f"{field}: {text}" for field, _word, text in causes]
    whole = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    return ApiError(422, "Invalid", f'{qualified} "{name}" is invalid: {whole}', details)


def patch_rejected() -> ApiError:
    """422 for a JSON patch that does not apply; the server does not say which operation (apiserver
    `handlers/patch.go`).
    """
    return ApiError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def bad_request(message: str) -> ApiError:
    """400."""
    return ApiError(400, "BadRequest", message)


def unauthorized() -> ApiError:
    """401: a token that nobody issued."""
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden_path(user: str, method: str, path: str) -> ApiError:
    """403 of a path that is no resource."""
    return ApiError(403, "Forbidden", f'forbidden: User "{user}" cannot {method.lower()} path "{path}"', {})


def forbidden(kind: Kind, name: str, why: str) -> ApiError:
    """403: `why` begins with the user's name."""
    subject = f'{kind.qualified} "{name}"' if name else kind.qualified
    return ApiError(403, "Forbidden", f"{subject} is forbidden: {why}", _details(kind, name))


def not_acceptable(message: str) -> ApiError:
    """406: the client takes nothing that the server could send."""
    return ApiError(406, "NotAcceptable", message)


def too_large(limit: int) -> ApiError:
    """413: the body has too many bytes."""
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def unsupported_media_type(accepted: list[str]) -> ApiError:
    """415: for instance a strategic merge patch of a custom resource."""
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return ApiError(415, "UnsupportedMediaType", message, {})


def method_not_allowed() -> ApiError:
    """405."""
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def expired(message: str) -> ApiError:
    """410: the past that the client asks for was compacted away."""
    return ApiError(410, "Expired", message)


def bad_version(text: str) -> str:
    """What is said of a resourceVersion that is no number."""
    return f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'


def too_large_version(asked: int, current: int) -> ApiError:
    """504 for a list that is to be newer than everything; the answer also has a Retry-After header."""
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return ApiError(504, "Timeout", message, {"causes": causes, "retryAfterSeconds": 1})


def too_many_requests(seconds: int) -> ApiError:
    """429 of priority and fairness; the answer also has a Retry-After header."""
    message = "too many requests, please try again later"
    return ApiError(429, "TooManyRequests", message, {"retryAfterSeconds": seconds})
