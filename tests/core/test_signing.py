"""Seals: what is signed comes back as it was, and nothing else does."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.signing import BadSignature, Deed, Signed, is_exit_post, key_of, seal, unseal
from tests.phrases import NOW

KEY = key_of("token")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SIGNED = st.builds(
    Signed,
    st.sampled_from(Deed),
    st.floats(NOW + 1, NOW + 1e9),
    TEXTS,
    TEXTS,
    TEXTS,
    TEXTS,
    TEXTS,
    TEXTS,
    TEXTS,
    st.dictionaries(TEXTS, TEXTS, max_size=3),
)
FORGED = BadSignature(expired=False)
ONE = Signed(
    Deed.RERUN, NOW + 60, channel="c", uid="u", attempt="a", short="k7m2", ref="main", parameters={"models": "dqn"}
)


@given(SIGNED)
def test_what_is_sealed_comes_back(signed: Signed) -> None:
    """Whatever the names are."""
    assert signed == unseal(seal(signed, KEY), KEY, NOW)


@given(st.data())
def test_a_seal_with_any_other_byte_is_none(data: st.DataObject) -> None:
    """In the payload, in the signature, or at the point between them."""
    text = seal(ONE, KEY)
    index = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters(max_codepoint=0x17F).filter(lambda c: c != text[index]))

    assert FORGED == unseal(text[:index] + other + text[index + 1 :], KEY, NOW)


@given(st.integers(0, 400))
def test_a_seal_that_was_cut_is_none(length: int) -> None:
    """At any place."""
    text = seal(ONE, KEY)

    assert FORGED == unseal(text[: min(length, len(text) - 1)], KEY, NOW)


@given(
    st.one_of(
        st.text(), st.none(), st.integers(), st.lists(st.text()), st.binary(), st.dictionaries(st.text(), st.text())
    )
)
def test_nothing_that_is_put_in_raises(text: object) -> None:
    """Anybody in the chat can make a button with a context of their own."""
    assert FORGED == unseal(text, KEY, NOW)


def test_another_key_signs_something_else() -> None:
    """Keys follow from the bot's token: all replicas have the same, a new token makes a new one."""
    assert key_of("token") == KEY
    assert FORGED == unseal(seal(ONE, KEY), key_of("other"), NOW)


@pytest.mark.parametrize(
    "payload", [b"", b"{", b"[]", b"{}", b'{"deed":"fly","expires":9e9}', b'{"deed":"rerun","expires":"soon"}', b"\xff"]
)
def test_a_payload_that_is_none_of_ours_is_refused_though_signed(payload: bytes) -> None:
    """An older or a newer bot with the same key may have signed it."""
    from bot.core import signing

    text = base64.urlsafe_b64encode(payload).rstrip(b"=")
    mac = signing._mac(text, KEY)

    assert FORGED == unseal(f"{text.decode()}.{mac}", KEY, NOW)


def test_a_payload_in_a_broken_alphabet_is_refused_though_signed() -> None:
    """One sign too many for base64."""
    from bot.core import signing

    assert FORGED == unseal(f"a.{signing._mac(b'a', KEY)}", KEY, NOW)


def test_it_expires() -> None:
    """To the second; that one is told apart, since it happens to honest people."""
    text = seal(ONE, KEY)

    assert isinstance(unseal(text, KEY, NOW + 59.9), Signed)
    assert BadSignature(expired=True) == unseal(text, KEY, NOW + 60)


def test_an_expired_forgery_is_a_forgery() -> None:
    """The signature is asked first."""
    assert FORGED == unseal(seal(ONE, KEY) + "x", KEY, NOW + 600)


def test_what_is_left_at_its_default_is_not_carried() -> None:
    """A context has a size limit, and most fields are empty."""
    payload = seal(Signed(Deed.START, 1.0), KEY).partition(".")[0]

    assert {"deed": "start", "expires": 1.0} == json.loads(
        base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
    )


@pytest.mark.parametrize("mark", ["", "yes", None, 5, ["a"], "\ud800", "0" * 64])
def test_a_post_that_is_not_the_exit_steps_is_not_taken_for_it(mark: object) -> None:
    """With a secret shared, its mark has to be right; without one there is no telling."""
    assert not is_exit_post(mark, "secret", "uid", "2026-03-02T10:00:00Z")
    assert is_exit_post(mark, "", "uid", "2026-03-02T10:00:00Z")
