"""How commands describe themselves."""

from __future__ import annotations

import pytest

from bot.core.asking import COMMANDS
from bot.core.commands.spec import CommandSpec
from bot.core.render.answers import help_text
from bot.core.render.post import MAX_MESSAGE
from tests.phrases import SETTINGS


@pytest.mark.parametrize("spec", COMMANDS, ids=lambda spec: spec.trigger)
def test_help_is_made_from_the_spec(spec: CommandSpec) -> None:
    """Usage and every example, each with what it does; that parses in test_command_lines."""
    text = help_text(spec, SETTINGS)

    assert text.startswith(f"**/{spec.trigger}** {spec.summary}: `/{spec.trigger} {spec.usage}`")
    assert all(f"- `/{spec.trigger} {line}` · {what}" in text.splitlines() for line, what in spec.examples)
    assert len(text) < MAX_MESSAGE


def test_triggers_are_unique() -> None:
    """One command a word."""
    assert len(COMMANDS) == len({spec.trigger for spec in COMMANDS})
