"""Forms as Mattermost takes them."""

from __future__ import annotations

from dataclasses import replace

from bot.core.dialogs import CancelDialog, StartDialog
from bot.core.render.dialogs import CANCEL, START, render_dialog
from bot.core.settings import Defaults
from tests.phrases import SETTINGS

FORM = StartDialog(SETTINGS.model_names, SETTINGS.scopes, ("ci-training-h100", "ci-training"), 100, SETTINGS.defaults)


def test_the_form_that_asks_once_more() -> None:
    """What is known of the run, and whose it is."""
    dialog = render_dialog(CancelDialog("k7m2", "anna", 4, 10))

    assert (CANCEL, "Stop k7m2?", "Stop it", []) == tuple(
        dialog[k] for k in ("callback_id", "title", "submit_label", "elements")
    )
    assert (
        "4 of 10 models are done, anna asked for it. What has not run by then is not tested."
        == dialog["introduction_text"]
    )


def test_the_form_that_asks_once_more_of_a_run_of_which_little_is_known() -> None:
    """Nothing is claimed; names are harmless and titles short."""
    dialog = render_dialog(CancelDialog("x" * 40, "", None, 10))

    assert "It has not ended. What has not run by then is not tested." == dialog["introduction_text"]
    assert 24 == len(dialog["title"])
    assert "@\u200ball asked for it" in render_dialog(CancelDialog("k7m2", "@all", None, 1))["introduction_text"]


def test_the_form_that_starts_a_run() -> None:
    """Each field with its default; what is one of a few is a choice."""
    dialog = render_dialog(FORM)
    fields = {element["name"]: element for element in dialog["elements"]}

    assert START == dialog["callback_id"]
    assert {
        "models": "dqn,ppo,tft",
        "epochs": "3",
        "scope": "all",
        "ref": "HEAD",
        "pool": "ci-training-h100",
        "notify": "true",
    } == {name: element["default"] for name, element in fields.items()}
    assert ["lib", "integration", "all"] == [option["value"] for option in fields["scope"]["options"]]
    assert [("true", "Yes"), ("false", "No")] == [(o["value"], o["text"]) for o in fields["notify"]["options"]]
    assert "Without a card only /gputest status tells of the run." == fields["notify"]["help_text"]
    assert "1 to 100" == fields["epochs"]["help_text"]


def test_more_default_models_than_a_field_takes_are_left_out() -> None:
    """Half a name would be refused; an empty field means the default."""
    names = tuple(f"model-{number:03d}" for number in range(60))
    dialog = render_dialog(replace(FORM, models=names, defaults=Defaults(models=names)))

    assert ("", True) == tuple(dialog["elements"][0][key] for key in ("default", "optional"))
    assert render_dialog(FORM)["elements"][0]["optional"] is False


def test_limits_of_the_server() -> None:
    """Title 24, label 24, name 300, help 150 characters (model/integration_action.go); a default is one of its options."""
    many = replace(
        FORM,
        models=tuple(f"model-{n:03d}" for n in range(60)),
        defaults=Defaults(models=tuple(f"model-{n:03d}" for n in range(60))),
    )
    for dialog in (render_dialog(FORM), render_dialog(many)):
        assert len(dialog["title"]) <= 24
        for element in dialog["elements"]:
            assert len(element["display_name"]) <= 24
            assert len(element.get("help_text", "")) <= 150
            assert len(element["default"]) <= 150
            assert element["type"] != "select" or element["default"] in [o["value"] for o in element["options"]]
