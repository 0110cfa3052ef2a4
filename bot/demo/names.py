"""What names, label keys and label values look like, and what is said of those that do not.

Rules and texts: k8s.io/apimachinery `pkg/util/validation/validation.go`.
"""

from __future__ import annotations

import re

_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_LABEL = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_PART = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{_LABEL}')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_PART_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_PART}')"
)
_CONFIG_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def subdomain_errors(text: str) -> list[str]:
    """What is wrong with the name of an object."""
    errors = [_too_long(253)] if len(text) > 253 else []
    return errors if re.fullmatch(_SUBDOMAIN, text) else [*errors, _SUBDOMAIN_RULE]


def label_errors(text: str) -> list[str]:
    """What is wrong with the value of a label."""
    errors = [_too_long(63)] if len(text) > 63 else []
    return errors if re.fullmatch(_LABEL, text) else [*errors, _LABEL_RULE]


def key_errors(text: str) -> list[str]:
    """What is wrong with the key of a label or an annotation, or with a finalizer."""
    *prefix, name = text.split("/")
    if len(prefix) > 1:
        return [
            f"a qualified name {_PART_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    errors = []
    if prefix:
        errors = (
            [f"prefix part {error}" for error in subdomain_errors(prefix[0])]
            if prefix[0]
            else ["prefix part must be non-empty"]
        )
    if not name:
        errors.append("name part must be non-empty")
    elif len(name) > 63:
        errors.append(f"name part {_too_long(63)}")
    return errors if re.fullmatch(_PART, name) else [*errors, f"name part {_PART_RULE}"]


def config_key_errors(text: str) -> list[str]:
    """What is wrong with a key in a ConfigMap."""
    if len(text) > 253:
        return [_too_long(253)]
    return [] if re.fullmatch(r"[-._a-zA-Z0-9]+", text) and text not in (".", "..") else [_CONFIG_KEY_RULE]


def _too_long(most: int) -> str:
    return f"must be no more than {most} characters"
