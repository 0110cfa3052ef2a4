"""Which buttons a card has."""

from __future__ import annotations

from typing import Any

import pytest

from bot.core.buttons import buttons_of
from bot.core.card import card_of
from bot.core.signing import Deed
from tests.phrases import SETTINGS, ended, green, node, results, suite, workflow

SHARED = [suite("shared", "core")]
RED, FINE = suite("dqn", status="failed"), suite("ppo")
MODELS = {"models": "dqn,ppo"}


@pytest.mark.parametrize(
    ("nodes", "labels"),
    [
        ([], ["Cancel"]),
        ([node("gpu-warmup", "Pending")], ["Wait until 07:00", "Cancel"]),
        ([node("gpu-warmup", "Pending", message="ContainerCreating")], ["Cancel"]),
        ([node("compile-and-test", "Running")], ["Cancel"]),
        ([node("compile-and-test", "Succeeded")], []),
    ],
)
def test_a_run_under_way_can_be_cancelled(nodes: list[dict[str, Any]], labels: list[str]) -> None:
    """Until its tests are over: what is left then is the report."""
    assert labels == [b.label for b in buttons_of(card_of(workflow(phase="Running", nodes=nodes), SETTINGS), SETTINGS)]


@pytest.mark.parametrize(
    ("text", "label", "models", "ref"),
    [
        (results([suite("dqn"), FINE, *SHARED]), "Run again", "dqn,ppo", "main"),
        (results([RED, FINE, *SHARED]), "Rerun 1 failed", "dqn", "3f2a9c1" + "0" * 33),
        (results([FINE, *SHARED]), "Run the other 1", "dqn", "3f2a9c1" + "0" * 33),
        (None, "Run again", "dqn,ppo", "main"),
    ],
)
def test_an_ended_run_can_be_run_again(text: str | None, label: str, models: str, ref: str) -> None:
    """What failed, what is missing, or all of it; the ref that was asked for is what it is allowed by."""
    (button,) = buttons_of(card_of(ended(text, parameters=MODELS), SETTINGS), SETTINGS)

    assert (label, "default", Deed.RERUN) == (button.label, button.style, button.signed.deed)
    assert (models, ref, "main") == (
        button.signed.parameters["models"],
        button.signed.parameters["commit-ref"],
        button.signed.ref,
    )


def test_a_button_says_which_life_of_which_run() -> None:
    """A click on an old card is told apart; channel and time are added when it is sealed."""
    (cancel,) = buttons_of(card_of(workflow(phase="Running"), SETTINGS), SETTINGS)

    assert ("uid-gpu-test-k7m2", "2026-03-02T10:00:00Z", "k7m2", Deed.ASK_CANCEL, "danger") == (
        cancel.signed.uid,
        cancel.signed.attempt,
        cancel.signed.short,
        cancel.signed.deed,
        cancel.style,
    )
    assert ("", 0.0) == (cancel.signed.channel, cancel.signed.expires)


def test_ids_of_buttons_are_letters_and_digits() -> None:
    """With anything else the server finds no route."""
    cards = (card_of(workflow(phase="Running"), SETTINGS), card_of(ended(green()), SETTINGS))
    buttons = [button for card in cards for button in buttons_of(card, SETTINGS)]

    assert 2 == len(buttons)
    assert all(button.id.isalnum() and button.id.isascii() for button in buttons)


def test_a_run_with_parameters_of_its_own_size_has_no_rerun_button() -> None:
    """The server takes no post whose buttons carry so much, and then nothing of the card would be shown."""
    names = ",".join(f"model-{number}" for number in range(2000))
    card = card_of(ended(green(), parameters={"models": names}), SETTINGS)

    assert () == buttons_of(card, SETTINGS)
