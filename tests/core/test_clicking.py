"""A person clicks a button or sends a form off."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from bot.core.buttons import buttons_of
from bot.core.card import card_of
from bot.core.dialogs import CancelDialog, StartDialog
from bot.core.effects import Answer, Effect, OpenDialog, PatchWorkflow, SubmitWorkflow
from bot.core.events import Clicked, CommandTyped, DialogSubmitted, EffectDone, EffectFailed, MarkersRead, Trouble
from bot.core.memory import REQUEST_ANNOTATION, Request, write
from bot.core.progress import Marker
from bot.core.settings import Right, Role
from bot.core.signing import DIALOG_SECONDS, Deed, Signed
from tests.core.playbook import Playbook
from tests.phrases import NOW, SETTINGS, ended, node, results, suite, workflow, workflow_json

ANNAS = {"annotations": {REQUEST_ANNOTATION: write(Request("gpu-test-k7m2", "r", "anna", "anna", "CHANNEL"))}}
RUNNING = [node("compile-and-test", "Running")]
CANCEL = Signed(
    Deed.ASK_CANCEL, 0.0, channel="CHANNEL", uid="uid-gpu-test-k7m2", attempt="2026-03-02T10:00:00Z", short="k7m2"
)
RED = results([suite("dqn", status="failed"), suite("ppo"), suite("shared", "core")])


def running(**more: Any) -> Playbook:
    """Anna's k7m2 is being tested."""
    book = Playbook(**more)
    book.see(workflow_json(phase="Running", nodes=RUNNING, meta=dict(ANNAS)))
    return book


def rerun() -> Signed:
    """The button of a run of two models of which one failed."""
    run = ended(RED, "Failed", "1", parameters={"models": "dqn,ppo"})
    (button,) = buttons_of(card_of(run, SETTINGS), SETTINGS)
    return with_(button.signed, channel="CHANNEL")


def with_(signed: Signed, **more: Any) -> Signed:
    """The same with other fields."""
    return msgspec.structs.replace(signed, **more)


def click(
    book: Playbook, signed: Signed, *, who: str = "anna", request: str = "c1", channel: str = "CHANNEL"
) -> list[Effect]:
    """Somebody clicks a button."""
    return book.tell(Clicked(request, signed, who, who, channel, "T"))


def send(
    book: Playbook, signed: Signed, values: dict[str, str] | None = None, *, who: str = "anna", request: str = "d1"
) -> list[Effect]:
    """Somebody sends a form off."""
    return book.tell(DialogSubmitted(request, signed, who, signed.user_name, "CHANNEL", values or {}))


def heard(effects: list[Effect]) -> str:
    """The answer that came, and nothing besides."""
    (effect,) = effects
    assert isinstance(effect, Answer)
    assert () == effect.errors
    return effect.text


def wrong(effects: list[Effect]) -> dict[str, str]:
    """What a form shows of errors, by field."""
    (effect,) = effects
    assert isinstance(effect, Answer)
    assert "" == effect.text
    return dict(effect.errors)


def opened(effects: list[Effect]) -> OpenDialog:
    """The form that was opened, and nothing besides."""
    (effect,) = effects
    assert isinstance(effect, OpenDialog)
    return effect


def test_cancel_asks_once_more() -> None:
    """A form, signed for the one who clicked, with what is known so far."""
    book = running()
    bare = opened(click(book, CANCEL, who="ben"))
    markers = (Marker("suite_started", model="dqn"), Marker("suite_started", model="ppo"))
    book.tell(MarkersRead("uid-gpu-test-k7m2", "2026-03-02T10:00:00Z", markers))
    told = opened(click(book, CANCEL, who="ben", request="c2"))

    assert CancelDialog("k7m2", "anna", None, 10) == bare.dialog
    assert CancelDialog("k7m2", "anna", 1, 10) == told.dialog
    assert with_(CANCEL, deed=Deed.CANCEL, expires=NOW + DIALOG_SECONDS, user="ben", user_name="ben") == bare.state


def test_a_form_for_a_pool_that_does_not_fit_stays_open() -> None:
    """The reason stands at the pool."""
    book = Playbook()
    form = opened(book.tell(CommandTyped("r1", "gputest", "", "anna", "anna", "CHANNEL", trigger_id="T")))
    errors = wrong(send(book, form.state, {"models": "tft", "pool": "ci-compile"}))

    assert {
        "pool": "tft does not fit pool ci-compile: it needs 40 GB of GPU memory, and there are 24. It fits H100 or L40S."
    } == errors
    (start,) = send(book, form.state, {"models": "dqn", "pool": "ci-compile"}, request="d2")
    assert isinstance(start, SubmitWorkflow)


def test_the_form_confirmed_stops_the_run() -> None:
    """With the name of the one who clicked."""
    book = running()
    form = opened(click(book, CANCEL, who="ben"))
    assert [Answer("c1", "")] == book.tell(EffectDone(form.id))
    (stop,) = send(book, form.state, who="ben")

    assert isinstance(stop, PatchWorkflow)
    assert '"user_name":"ben"' in str(stop.patch)


def test_where_the_form_can_not_be_opened_there_is_a_line_to_copy() -> None:
    """The trigger lives for three seconds."""
    book = running()
    form = opened(click(book, CANCEL))

    assert "I could not open the form that asks once more. To stop it: `/gputest cancel k7m2`." == heard(
        book.tell(EffectFailed(form.id, Trouble.UNCERTAIN, "late"))
    )


@pytest.mark.parametrize(
    ("signed", "channel", "text"),
    [
        (CANCEL, "OTHER", "🤔 That button belongs to another channel. Nothing was done."),
        (with_(CANCEL, uid="gone"), "CHANNEL", "🤔 **k7m2** has ended already. Nothing was done."),
        (
            with_(CANCEL, attempt="2026-03-02T09:00:00Z"),
            "CHANNEL",
            "🤔 **k7m2** was started again since; that button was for an earlier attempt. Nothing was done.",
        ),
        (with_(CANCEL, deed=Deed.CANCEL), "CHANNEL", "🤔 That is no button. Nothing was done."),
        (with_(CANCEL, deed=Deed.START), "CHANNEL", "🤔 That is no button. Nothing was done."),
    ],
)
def test_clicks_that_are_refused(signed: Signed, channel: str, text: str) -> None:
    """Another channel, another life, or no button at all."""
    assert text == heard(click(running(), signed, channel=channel))


def test_a_button_from_before_the_start_counts_for_the_run() -> None:
    """A card that was posted while the run was queued knows no attempt."""
    assert opened(click(running(), with_(CANCEL, attempt=""))).state.deed is Deed.CANCEL


def test_what_has_ended_is_not_cancelled() -> None:
    """It is being reported, or its object is gone."""
    book = running()
    book.state.runs["uid-gpu-test-k7m2"].gone = True
    gone = heard(click(book, CANCEL))
    over = running()
    over.state.runs["uid-gpu-test-k7m2"].workflow = ended(RED, "Failed", "1", meta=dict(ANNAS))

    assert gone == heard(click(over, CANCEL)) == "🤔 **k7m2** has ended already. Nothing was done."


def test_others_runs_need_the_right() -> None:
    """One's own does not; nobody's run is not a nameless user's own."""
    settings = replace(SETTINGS, roles=(Role("everybody", may=(Right.LOOK,)),))
    nobodys = Playbook(settings=settings)
    nobodys.see(workflow_json(phase="Running", nodes=RUNNING))

    assert opened(click(running(settings=settings), CANCEL)).state.user == "anna"
    assert "You may not cancel runs here." in heard(click(running(settings=settings), CANCEL, who="ben"))
    assert "You may not cancel runs here." in heard(click(nobodys, CANCEL, who=""))


def test_what_a_button_may_do_is_asked_again_when_its_form_is_sent() -> None:
    """Rights may have changed in between."""
    book = running()
    form = opened(click(book, CANCEL, who="ben"))
    book.state.settings = replace(SETTINGS, roles=(Role("everybody", may=(Right.LOOK,)),))

    assert {"": "You may not cancel runs here. Nobody may, as config.yaml stands."} == wrong(
        send(book, form.state, who="ben")
    )


def test_a_form_belongs_to_the_one_it_was_opened_for() -> None:
    """Its state goes through the browser and can be passed on."""
    book = running()
    form = opened(click(book, CANCEL))

    assert {"": "That form was opened for somebody else."} == wrong(send(book, form.state, who="ben"))
    assert {"": "That is no form."} == wrong(send(book, with_(form.state, deed=Deed.RERUN), request="d2"))


def test_two_clicks_make_one_run() -> None:
    """Its name derives from what it repeats, not from the click: of two people, at once or replayed."""
    first, second = click(Playbook(), rerun()), click(Playbook(), rerun(), who="ben", request="c2")
    (one, two) = (*first, *second)

    assert isinstance(one, SubmitWorkflow)
    assert isinstance(two, SubmitWorkflow)
    assert one.name == two.name
    assert ("dqn", "3f2a9c1" + "0" * 33) == (one.parameters["models"], one.parameters["commit-ref"])


def test_the_same_click_delivered_twice_is_answered_once() -> None:
    """Nothing while it is worked on, then the same again."""
    book = Playbook()
    (effect,) = click(book, rerun())
    assert [] == click(book, rerun())
    assert isinstance(effect, SubmitWorkflow)
    done = book.tell(EffectDone(effect.id, workflow(effect.name)))

    assert [done[0]] == click(book, rerun())


def test_a_click_whose_run_has_ended_says_how_to_get_another() -> None:
    """Silence would look as if it had been started once more."""
    book = Playbook()
    (effect,) = click(book, rerun())
    assert isinstance(effect, SubmitWorkflow)
    done = book.tell(EffectDone(effect.id, ended(RED, "Failed", "1", name=effect.name)))
    short = effect.name.rsplit("-", 1)[-1]

    assert isinstance(done[0], Answer)
    assert (
        f"That button has started **{short}** before, and it has ended. For another: `/gputest rerun {short}`."
        == done[0].text
    )


def test_a_rerun_is_refused_with_a_line_within_the_limits() -> None:
    """The same limits as for a command; what is offered is allowed."""
    role = Role("interns", users=("ian",), user_ids=("ian",), may=(Right.RUN,), max_epochs=2)
    book = Playbook(settings=replace(SETTINGS, roles=(role,)))

    assert heard(click(book, rerun(), who="ian")) == (
        "🤔 epochs=5 is over your limit of 2. Nobody may, as config.yaml stands. Nothing was done.\n"
        "`/gputest models=dqn epochs=2 ref=main`"
    )


def test_a_button_of_an_earlier_configuration_starts_nothing() -> None:
    """Its parameters are called otherwise by now."""
    assert "I was set up anew since; that button can't start k7m2 again." in heard(
        click(Playbook(), with_(rerun(), parameters={"model": "dqn"}))
    )


def form_of(book: Playbook) -> Signed:
    """The state of the form of `/gputest`, opened for Anna."""
    (effect,) = book.tell(CommandTyped("r1", "gputest", "", "anna", "anna", "CHANNEL", trigger_id="T"))
    assert isinstance(effect, OpenDialog)
    assert isinstance(effect.dialog, StartDialog)
    return effect.state


FULL = {"models": "dqn, ppo", "epochs": "2", "scope": "lib", "ref": "main", "pool": "ci-training", "notify": "true"}


def test_the_form_starts_a_run() -> None:
    """Empty fields mean the default, fields that are none of ours mean nothing."""
    book = Playbook()
    state = form_of(book)
    (effect,) = send(book, state, FULL | {"ref": "  ", "colour": "green"})

    assert isinstance(effect, SubmitWorkflow)
    assert ("dqn,ppo", "lib", "2", "HEAD", "ci-training", "89") == tuple(
        effect.parameters[k] for k in ("models", "test-scope", "epochs", "commit-ref", "gpu-pool", "cuda-compute-cap")
    )


def test_what_is_wrong_is_said_at_its_field() -> None:
    """All of it at once; nothing is started."""
    book = Playbook()
    errors = wrong(send(book, form_of(book), {"models": "dqn,mamba", "epochs": "0", "ref": "a..b", "scope": "lib"}))

    assert {"models", "epochs", "ref"} == set(errors)
    assert errors["models"].startswith("No model mamba. Did you mean mamba2?")
    assert "epochs=0 is outside 1 to 100." == errors["epochs"]


def test_what_is_not_allowed_is_said_of_the_whole_form() -> None:
    """No single field is wrong."""
    book = Playbook()
    errors = wrong(send(book, form_of(book), FULL | {"epochs": "101"}))

    assert {"": "epochs=101 is over the limit of 100."} == errors


def test_the_form_sent_twice_makes_one_run() -> None:
    """The name derives from the form and what it asks for; other words for the same ask for nothing else."""
    book = Playbook()
    state = form_of(book)
    (one,) = send(book, state, FULL)
    (two,) = send(book, state, FULL | {"models": "ppo,dqn", "epochs": " 2"}, request="d2")

    assert isinstance(one, SubmitWorkflow)
    assert isinstance(two, SubmitWorkflow)
    assert one.name == two.name
    assert [] == send(book, state, FULL)


def test_the_form_sent_again_with_other_values_makes_another_run() -> None:
    """It closes as if it had started what it says, so it has to."""
    book = Playbook()
    state = form_of(book)
    (one,) = send(book, state, FULL)
    (two,) = send(book, state, FULL | {"epochs": "3"}, request="d2")

    assert isinstance(one, SubmitWorkflow)
    assert isinstance(two, SubmitWorkflow)
    assert one.name != two.name
    assert ("2", "3") == (one.parameters["epochs"], two.parameters["epochs"])


FINISHING = "The tests of **k7m2** have ended; only its exit step runs, which reports them."


def test_a_run_whose_tests_have_ended_is_not_stopped() -> None:
    """Neither by a click nor by a form that was open meanwhile: nothing of the tests would stop."""
    book = running()
    form = opened(click(book, CANCEL))
    book.see(workflow_json(phase="Running", nodes=[node("compile-and-test", "Succeeded")], meta=dict(ANNAS)))

    assert f"🤔 {FINISHING} Nothing was done.\n`/gputest status k7m2`" == heard(click(book, CANCEL, request="c2"))
    assert {"": FINISHING.replace("**", "")} == wrong(send(book, form.state))


@pytest.mark.parametrize(
    ("trouble", "says"),
    [(Trouble.REFUSED, "The cluster refused the run: no. Nothing was started."), (Trouble.GONE, "The cluster refused")],
)
def test_a_form_stays_open_with_what_went_wrong(trouble: Trouble, says: str) -> None:
    """It shows errors alone: an answer would be lost; sent again it tries again."""
    book = Playbook()
    state = form_of(book)
    (effect,) = send(book, state, FULL)
    assert isinstance(effect, SubmitWorkflow)
    errors = wrong(book.tell(EffectFailed(effect.id, trouble, "no")))
    (again,) = send(book, state, FULL)

    assert says in errors[""]
    assert isinstance(again, SubmitWorkflow)
    assert effect.name == again.name


def test_a_stop_that_came_too_late_is_said_in_its_form() -> None:
    """The run ended while the form was open."""
    book = running()
    form = opened(click(book, CANCEL))
    (stop,) = send(book, form.state)
    assert isinstance(stop, PatchWorkflow)
    late = EffectFailed(stop.id, Trouble.CONFLICT, "lost", latest=ended(RED, "Failed", "1"))

    assert {"": "It ended while I was about to stop it; its card has the verdict."} == wrong(book.tell(late))


def test_clicks_and_forms_count_as_requests() -> None:
    """Beside commands, for the same limit."""
    book = Playbook(settings=replace(SETTINGS, commands_per_minute=2))
    state = form_of(book)
    click(book, CANCEL)

    assert "more than 2 requests in a minute" in heard(click(book, CANCEL, request="c2"))
    assert "more than 2 requests in a minute" in wrong(send(book, state, FULL))[""]
