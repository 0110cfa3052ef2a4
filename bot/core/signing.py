"""Signed words: what a button or a dialog carries, so that nobody else can make the bot do it.

Mattermost signs nothing: any of its users can make a post whose button calls the bot with a context of their own, and
the state of a dialog goes through the browser. So every context is `payload.signature`, an HMAC over the payload;
the payload names the deed, the run, the channel, for a dialog the user, and when it expires. The key is derived
from the bot's token by `key_of`, so that all replicas agree and there is no further secret to keep.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from enum import StrEnum

import msgspec

CARD_SECONDS = 7 * 86400
"""How long the buttons of a card work after its last edit."""

DIALOG_SECONDS = 900
"""How long an opened dialog may be answered."""


class Deed(StrEnum):
    """What can be asked for by a click or a dialog."""

    ASK_CANCEL = "ask-cancel"  # a button: opens the dialog that asks once more
    CANCEL = "cancel"  # that dialog, confirmed
    WAIT = "wait"  # a button: wait for a GPU until the time in the payload
    RERUN = "rerun"  # a button: the parameters are in the payload
    START = "start"  # the form of `/gputest` without a word


class Signed(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was signed. `user` is "" for a button, which anybody who may can click."""

    deed: Deed
    expires: float
    channel: str = ""
    user: str = ""
    user_name: str = ""
    """For a dialog: the server's request for it holds the id alone."""
    uid: str = ""
    attempt: str = ""
    short: str = ""
    ref: str = ""
    """The ref as it was asked for first: the one that a rerun of its commit is allowed by."""
    parameters: dict[str, str] = {}
    until: float = 0.0
    """For `wait`: the new limit, in Unix seconds."""


class BadSignature(msgspec.Struct, frozen=True):
    """Why it does not count. `expired` is the one that happens to honest people."""

    expired: bool


def key_of(secret: str) -> bytes:
    """The signing key that belongs to a secret of the bot."""
    return hashlib.sha256(b"gputest signing key 1\0" + secret.encode()).digest()


def seal(signed: Signed, key: bytes) -> str:
    """The text that a button's context or a dialog's state carries."""
    payload = base64.urlsafe_b64encode(msgspec.json.encode(signed)).rstrip(b"=")
    return f"{payload.decode()}.{_mac(payload, key)}"


def unseal(text: object, key: bytes, now: float) -> Signed | BadSignature:
    """What it says, if we signed it and its time is not over. Never raises, whatever is put in."""
    if not isinstance(text, str) or not text.isascii():
        return BadSignature(expired=False)
    payload, _, mac = text.partition(".")
    if not hmac.compare_digest(mac, _mac(payload.encode(), key)):
        return BadSignature(expired=False)
    try:
        signed = _DECODER.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        return BadSignature(expired=False)
    return signed if now < signed.expires else BadSignature(expired=True)


def is_exit_post(mark: object, secret: str, uid: str, attempt: str) -> bool:
    """Whether the exit step itself said that it spoke about this attempt (deploy/argo/notify/notify.py).

    Anybody may give a post the props of such a one; without a secret shared with it there is no telling.
    """
    if not secret:
        return True
    wanted = hmac.digest(secret.encode(), f"gputest exit post 1\0{uid}\0{attempt}".encode(), "sha256").hex()
    return isinstance(mark, str) and hmac.compare_digest(mark.encode(errors="replace"), wanted.encode())


def _mac(payload: bytes, key: bytes) -> str:
    return base64.urlsafe_b64encode(hmac.digest(key, payload, "sha256")).rstrip(b"=").decode()


_DECODER = msgspec.json.Decoder(Signed)
