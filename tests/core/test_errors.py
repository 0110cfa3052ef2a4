"""What a person can mend."""

from __future__ import annotations

from bot.core.errors import UserError


def test_a_user_error_keeps_text_and_suggestion() -> None:
    """The text goes to the person as it is, and is the exception's own as well."""
    error = UserError("No.", "/gputest help")

    assert ("No.", "/gputest help", "No.") == (error.text, error.suggestion, str(error))
    assert "" == UserError("No.").suggestion
