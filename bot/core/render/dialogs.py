"""Forms as Mattermost takes them.

Limits of the server (model/integration_action.go): title 24 characters, label 24, name 300, help text 150.
"""

from __future__ import annotations

from typing import Any

from bot.core.dialogs import CancelDialog, StartDialog
from bot.core.render.escape import prose

MAX_TEXT = 150
"""Longest help text and default of a field, in characters."""

START, CANCEL = "gputest-start", "gputest-cancel"


def render_dialog(dialog: CancelDialog | StartDialog) -> dict[str, Any]:
    """The `dialog` of a request to open one, without its state."""
    if isinstance(dialog, CancelDialog):
        return _cancel(dialog)
    return _start(dialog)


def _cancel(dialog: CancelDialog) -> dict[str, Any]:
    known = f"{dialog.done} of {dialog.total} models are done" if dialog.done is not None else "It has not ended"
    by = f", {prose(dialog.asked_by, 64)} asked for it" if dialog.asked_by else ""
    return {
        "callback_id": CANCEL,
        "title": f"Stop {dialog.short}?"[:24],
        "introduction_text": f"{known}{by}. What has not run by then is not tested.",
        "submit_label": "Stop it",
        "notify_on_cancel": False,
        "elements": [],
    }


def _start(dialog: StartDialog) -> dict[str, Any]:
    defaults = dialog.defaults
    models = ",".join(defaults.models)
    return {
        "callback_id": START,
        "title": "Start a GPU test",
        "submit_label": "Start",
        "notify_on_cancel": False,
        "elements": [
            {
                "display_name": "Models",
                "name": "models",
                "type": "text",
                # more of them than a field takes: left empty, which means the same
                "default": models if len(models) <= MAX_TEXT else "",
                "optional": len(models) > MAX_TEXT,
                "help_text": f"all, or some of: {', '.join(dialog.models)}"[:MAX_TEXT],
            },
            {
                "display_name": "Epochs",
                "name": "epochs",
                "type": "text",
                "subtype": "number",
                "default": str(defaults.epochs),
                "help_text": f"1 to {dialog.max_epochs}",
            },
            _select("Scope", "scope", _as_they_are(dialog.scopes), defaults.scope),
            {
                "display_name": "Ref",
                "name": "ref",
                "type": "text",
                "default": defaults.ref,
                "help_text": "Branch, tag or commit; HEAD is the default branch.",
            },
            _select("GPU pool", "pool", _as_they_are(dialog.pools), defaults.pool),
            {
                **_select("Post a card", "notify", {"true": "Yes", "false": "No"}, str(defaults.notify).lower()),
                "help_text": "Without a card only /gputest status tells of the run.",
            },
        ],
    }


def _as_they_are(values: tuple[str, ...]) -> dict[str, str]:
    """Choices that are shown as they are typed in a command."""
    return {value: value for value in values}


def _select(label: str, name: str, choices: dict[str, str], default: str) -> dict[str, Any]:
    """One of a few; `choices`: what each value is called."""
    options = [{"text": text, "value": value} for value, text in choices.items()]
    return {"display_name": label, "name": name, "type": "select", "options": options, "default": default}
