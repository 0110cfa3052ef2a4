"""Reading the bodies of requests: media types, JSON, YAML and a little protobuf, and whether the kind is the path's.

What is said of bodies that cannot be read follows k8s.io/apimachinery `pkg/runtime/serializer`.
"""

from __future__ import annotations

import json
from typing import Any

import yaml

from bot.demo import kube_protobuf, status
from bot.demo.go_types import json_type
from bot.demo.kinds import Kind

Json = dict[str, Any]

JSON_BODY = "application/json"
YAML_BODY = "application/yaml"
PROTOBUF_BODY = "application/vnd.kubernetes.protobuf"
_ACCEPTED = [JSON_BODY, YAML_BODY, PROTOBUF_BODY]


def read(raw: bytes, content_type: str, what: str) -> Json:
    """The JSON object in a body; `what` is the kind that it should be of.

    Raises ApiError: 415 for another media type, 400 for what is no object.
    """
    if content_type not in _ACCEPTED:
        raise status.unsupported_media_type(_ACCEPTED)
    try:
        if content_type == PROTOBUF_BODY:
            return kube_protobuf.read(raw, what)
        body = yaml.safe_load(raw) if content_type == YAML_BODY else json.loads(raw)
    except (ValueError, yaml.YAMLError) as error:
        why = "unexpected end of JSON input" if not raw else str(error)
        raise _unrecognized(what, raw, f"couldn't get version/kind; json parse error: {why}") from error
    if body is None:
        return {}
    if not isinstance(body, dict):
        head = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
        why = f"json: cannot unmarshal {json_type(body)} into Go value of type {head}"
        raise _unrecognized(what, raw, f"couldn't get version/kind; json parse error: {why}")
    return body


def _unrecognized(what: str, raw: bytes, why: str) -> status.ApiError:
    shown = raw.decode(errors="replace")[:30] + (" ..." if len(raw) > 30 else "") if raw else "<empty>"
    return status.bad_request(f"the object provided is unrecognized (must be of type {what}): {why} ({shown})")


def check_kind(kind: Kind, body: Json) -> None:
    """Raises ApiError unless the body is of the kind that the path names: 400, or 422 of custom resources.

    Of built-in kinds it need not say what it is.
    """
    version, given = body.get("apiVersion") or "", body.get("kind") or ""
    if kind.custom:
        if not given:
            raw = json.dumps(body)
            raise _unrecognized(kind.kind, raw.encode(), f"Object 'Kind' is missing in '{raw}'")
        if version != kind.api_version:
            raise status.bad_request(
                f"the API version in the data ({version}) does not match the expected API version ({kind.api_version})"
            )
        if given != kind.kind:
            raise status.wrong_kind(kind, str(given), str((body.get("metadata") or {}).get("name", "")))
    elif (version or kind.api_version, given or kind.kind) != (kind.api_version, kind.kind):
        short = str(version or kind.api_version).rpartition("/")[2]
        raise status.bad_request(
            f'{given or kind.kind} in version "{short}" cannot be handled as a {kind.kind}: '
            f"the API version or kind does not match the path ({kind.api_version}, {kind.kind})"
        )
