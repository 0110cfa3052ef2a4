"""What ended a pod, in plain words.

Argo hands on what the kubelet says of the containers: `main: OOMKilled (exit code 137)`, before 3.7 without the
container's name, with the container's own message behind it; and it has words of its own for a pod that is gone, and
from 4.0 on for one whose containers nobody saw end (operator.go, inferFailedReason and podReconciliation).
"""

from __future__ import annotations

import re

_CONTAINER = re.compile(r"(?:[\w-]+: )?(?P<reason>\w+) \(exit code (?P<code>\d+)\)(?:: (?P<own>.*))?", re.DOTALL)

_BY_CODE = {"143": "was ended from outside", "137": "was killed"}


def in_plain_words(subject: str, message: str) -> str:
    """A clause on why this pod ended, such as `the test pod is gone: its node was lost …`."""
    if message == "pod deleted":
        return f"{subject} is gone: its node was lost, or somebody deleted it"
    if message == "pod failed: neither main nor wait container completed successfully":
        return f"{subject} failed without a word on how its containers ended: its node was lost, most likely"
    found = _CONTAINER.fullmatch(message.strip())
    if found is None:
        return f"{subject}: {message}"
    if found["reason"] == "OOMKilled":
        return f"{subject} ran out of memory (OOMKilled, exit code {found['code']})"
    code = found["code"]
    words = f"{_BY_CODE[code]} (exit code {code})" if code in _BY_CODE else f"ended with exit code {code}"
    return f"{subject} {words}" + (f": {found['own'].strip()}" if found["own"] else "")
