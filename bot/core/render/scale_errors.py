"""What a provider says when it makes no node, in people's words."""

from __future__ import annotations

from bot.core.autoscaler import ErrorKind, ScaleError
from bot.core.render.escape import code, prose

_ERRORS = {
    ErrorKind.QUOTA: "the provider's quota is used up",
    ErrorKind.STOCK: "the provider has none in stock",
    ErrorKind.ADDRESSES: "there is no address left for a node",
    ErrorKind.RIGHTS: "the autoscaler may not make a node",
    ErrorKind.TIMEOUT: "a node was asked for and did not come in time",
    ErrorKind.OTHER: "the scale-up failed",
}


def error_words(error: ScaleError) -> str:
    """A provider's error in a few words, and its own."""
    detail = [part for part in (error.code and code(error.code, 60), prose(error.text, 160)) if part]
    return _ERRORS[error.kind] + (f" ({': '.join(detail)})" if detail else "")
