"""A person asks: what is answered at once, what is done first, and what comes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from bot.core.answering import MAX_TRIES
from bot.core.commands.gputest import SPEC
from bot.core.deeds import run_name
from bot.core.effects import Answer, Effect, OpenDialog, PatchWorkflow, SubmitWorkflow, WakeAt
from bot.core.events import CommandTyped, EffectDone, EffectFailed, Trouble, Woke, WorkflowsListed
from bot.core.memory import REQUEST_ANNOTATION, Request, read_cancelled, read_request, write
from bot.core.react import react
from bot.core.render import answers
from bot.core.settings import Channels, Right, Role
from bot.core.signing import DIALOG_SECONDS, Deed, Signed
from bot.core.verdict import Verdict
from bot.core.workflow import Workflow
from tests.core.playbook import Playbook
from tests.phrases import NOW, SETTINGS, ended, green, node, outputs, results, suite, workflow, workflow_json

RUNNING = [node("compile-and-test", "Running")]


def say(
    book: Playbook, text: str, *, request: str = "r1", who: str = "anna", trigger: str = "gputest", **more: Any
) -> list[Effect]:
    """Somebody types it."""
    command = CommandTyped(request, trigger, text, who, who, "CHANNEL", trigger_id="T")
    return book.tell(replace(command, **more))


def heard(effects: list[Effect]) -> str:
    """The answer that came, and nothing besides."""
    (effect,) = effects
    assert isinstance(effect, Answer)
    return effect.text


def submitted(effects: list[Effect]) -> SubmitWorkflow:
    """The run that was asked for, and nothing besides."""
    (effect,) = effects
    assert isinstance(effect, SubmitWorkflow)
    return effect


def created(effect: SubmitWorkflow, **more: Any) -> Workflow:
    """The object that the cluster makes of it."""
    return workflow(effect.name, meta={"annotations": {REQUEST_ANNOTATION: effect.request}}, **more)


def asked_by(who: str, name: str = "gpu-test-k7m2") -> dict[str, Any]:
    """Metadata of a run that somebody asked for."""
    return {"annotations": {REQUEST_ANNOTATION: write(Request(name, "r", who, who, "CHANNEL"))}}


def red_json(name: str = "gpu-test-m3x8") -> dict[str, Any]:
    """A run in which dqn failed."""
    text = results([suite("dqn", status="failed"), suite("ppo"), suite("shared", "core")])
    tests = node("compile-and-test", "Failed", outputs=outputs(text))
    return workflow_json(name, phase="Failed", nodes=[tests], parameters={"models": "dqn,ppo"})


def test_a_run_carries_who_asked_for_it() -> None:
    """Written with the object, with its priority and all parameters of the template."""
    effect = submitted(say(Playbook(), "dqn epochs=5"))

    assert ("gpu-test-pipeline", "foxhunt", 30) == (effect.template, effect.namespace, effect.priority)
    assert Request(effect.name, "r1", "anna", "anna", "CHANNEL") == read_request(created(effect))
    assert {"models", "test-scope", "epochs", "commit-ref", "gpu-pool", "cuda-compute-cap", "notify"} == set(
        effect.parameters
    )


def test_the_card_is_the_answer() -> None:
    """Where it stands in the same channel, nothing else is said; the run is held from now on."""
    book = Playbook()
    effect = submitted(say(book, "dqn"))
    effects = book.tell(EffectDone(effect.id, created(effect)))

    assert Answer("r1", "") == effects[0]
    assert ["claim"] == [e.purpose for e in effects if isinstance(e, PatchWorkflow)]


@pytest.mark.parametrize(
    ("command", "more", "says"),
    [
        ("dqn", {"channel_id": "ELSEWHERE"}, "is started; its card is in ~gpu-tests."),
        ("dqn", {"aloud": True}, "is started; its card is in ~gpu-tests."),
        ("dqn notify=false", {}, "is started without a post. Ask for it with `/gputest status"),
    ],
)
def test_where_the_card_is_not_here_it_is_said_where(command: str, more: dict[str, Any], says: str) -> None:
    """In another channel, nowhere, or in the same one where all can read the answer."""
    book = Playbook()
    effect = submitted(say(book, command, **more))
    done = book.tell(EffectDone(effect.id, created(effect, parameters=effect.parameters)))

    assert isinstance(done[0], Answer)
    assert says in done[0].text


def test_a_channel_without_a_name_is_not_named() -> None:
    """The configuration did not tell it."""
    book = Playbook(settings=replace(SETTINGS, channels=Channels(default="HIDDEN")))
    effect = submitted(say(book, "dqn"))
    done = book.tell(EffectDone(effect.id, created(effect)))

    assert isinstance(done[0], Answer)
    assert done[0].text.endswith("is started; its card is on its way.")


def test_a_card_stays_where_it_was_asked_for_if_the_channel_is_one_of_ours() -> None:
    """`also` in the configuration."""
    book = Playbook(settings=replace(SETTINGS, channels=replace(SETTINGS.channels, also=("OTHER",))))
    effect = submitted(say(book, "dqn", channel_id="OTHER"))
    done = book.tell(EffectDone(effect.id, created(effect)))

    assert Answer("r1", "") == done[0]


def test_a_command_that_is_delivered_twice_makes_one_run() -> None:
    """While it is worked on nothing more is done; afterwards the same answer is given."""
    book = Playbook()
    effect = submitted(say(book, "dqn", channel_id="ELSEWHERE"))
    assert [] == say(book, "dqn", channel_id="ELSEWHERE")
    first = book.tell(EffectDone(effect.id, created(effect)))[0]
    again = say(book, "dqn", channel_id="ELSEWHERE")

    assert [first] == again
    assert "is started" in heard(again)


def test_the_name_of_a_run_derives_from_its_request() -> None:
    """The same on every replica; letters that are read for nothing else."""
    name = run_name("gpu-test", "r1", 1)

    assert name == run_name("gpu-test", "r1", 1) != run_name("gpu-test", "r2", 1)
    assert name.removeprefix("gpu-test-") == run_name("gpu-test", "r1", 2).removeprefix("gpu-test-")[:4]
    assert 8 == len(run_name("", "r1", 4))
    assert not set("01ilou") & set(run_name("", "anything", 40)[1:])


def test_a_name_that_is_taken_is_made_longer() -> None:
    """By another run; the request moves to the new name, and after four tries the person is told."""
    book = Playbook()
    effect = submitted(say(book, "dqn"))
    names = [effect.name]
    for _ in range(MAX_TRIES - 1):
        effect = submitted(book.tell(EffectFailed(effect.id, Trouble.EXISTS, "taken")))
        names.append(effect.name)
        assert effect.name == getattr(read_request(created(effect)), "name", "")
    text = heard(book.tell(EffectFailed(effect.id, Trouble.EXISTS, "taken")))

    assert [4, 5, 6, 7] == [len(name.removeprefix("gpu-test-")) for name in names]
    assert "I could not start the run: taken." in text
    assert f"`{names[-1]}`" in text


@pytest.mark.parametrize("trouble", [Trouble.REFUSED, Trouble.GONE])
def test_what_the_cluster_refuses_is_not_tried_again(trouble: Trouble) -> None:
    """Its words, made harmless."""
    book = Playbook()
    effect = submitted(say(book, "dqn"))
    text = heard(book.tell(EffectFailed(effect.id, trouble, "admission webhook *denied* @all")))

    assert "⚠️ The cluster refused the run: admission webhook \\*denied\\* @\u200ball. Nothing was started." == text


def test_a_create_that_was_not_answered_is_repeated_under_the_same_name() -> None:
    """It may have been made: the same name finds it."""
    book = Playbook()
    effect = submitted(say(book, "dqn"))
    (wake,) = book.tell(EffectFailed(effect.id, Trouble.UNCERTAIN, "no answer"))
    assert isinstance(wake, WakeAt)
    again = submitted(book.tell(Woke(wake.key)))

    assert NOW + 1 == wake.when
    assert (effect.name, effect.request) == (again.name, again.request)
    assert effect.id != again.id


def test_a_wake_up_for_nothing_does_nothing() -> None:
    """It was answered meanwhile, or the key is none of ours."""
    book = Playbook()

    assert [] == book.tell(Woke("ask:e9"))
    assert [] == book.tell(Woke("tea"))


def test_a_request_can_not_end_in_anything_else() -> None:
    """A sink that hands back the wrong thing is a bug, and is not hidden."""
    book = Playbook()
    effect = submitted(say(book, "dqn"))

    with pytest.raises(AssertionError, match="no such result"):
        react(book.state, EffectDone(effect.id, "post"), NOW)


def test_the_form_is_opened_for_the_one_who_asked() -> None:
    """Signed for them, for a quarter of an hour; opened, nothing more is said."""
    book = Playbook()
    (effect,) = say(book, "")
    assert isinstance(effect, OpenDialog)
    done = book.tell(EffectDone(effect.id))

    assert Signed(Deed.START, NOW + DIALOG_SECONDS, "CHANNEL", "anna", "anna") == effect.state
    assert "T" == effect.trigger_id
    assert [Answer("r1", "")] == done


@pytest.mark.parametrize("trouble", [Trouble.BUSY, Trouble.UNCERTAIN, Trouble.REFUSED])
def test_where_no_form_can_be_shown_the_help_is(trouble: Trouble) -> None:
    """Its trigger lives for three seconds: there is no second try."""
    book = Playbook()
    (effect,) = say(book, "")
    assert isinstance(effect, OpenDialog)

    assert answers.help_text(SPEC, SETTINGS) == heard(book.tell(EffectFailed(effect.id, trouble, "late")))
    assert answers.help_text(SPEC, SETTINGS) == heard(say(book, "", request="r2", trigger_id=""))


def test_more_than_so_many_requests_in_a_minute_are_refused() -> None:
    """Of one user; a minute later they are welcome again, and others are all the time."""
    book = Playbook(settings=replace(SETTINGS, commands_per_minute=3))
    texts = [heard(say(book, "help", request=f"r{n}")) for n in range(3)]
    book.now += 17.5
    texts.append(heard(say(book, "help", request="r3")))
    other = heard(say(book, "help", request="o", who="ben"))
    book.now += 42.5

    assert "🤔 That is more than 3 requests in a minute. Wait 43 s. Nothing was done." == texts[3]
    assert texts[0] == texts[2] == other == heard(say(book, "help", request="later"))


def test_a_limit_of_none_lets_nobody_in() -> None:
    """It is an answer like any other."""
    book = Playbook(settings=replace(SETTINGS, commands_per_minute=0))

    assert "more than 0 requests in a minute. Wait 60 s." in heard(say(book, "help"))


def test_who_has_not_spoken_for_a_minute_is_forgotten() -> None:
    """The memory of it does not grow."""
    book = Playbook()
    for number in range(1001):
        say(book, "help", request=f"r{number}", who=f"user{number}")
    book.now += 61
    say(book, "help", request="late", who="anna")

    assert ["anna"] == list(book.state.spoken)


def test_a_trigger_that_leads_here_by_mistake() -> None:
    """Its name is shown, and what is known."""
    assert "🤔 I do not know `/deploy`. I know `/gputest`, `/nightly`, `/gpu`." == heard(
        say(Playbook(), "", trigger="deploy")
    )


def test_before_the_first_list_nothing_is_claimed() -> None:
    """Neither that there are no runs, nor that this one is not among them."""
    book = Playbook()

    assert "I have just started" in heard(say(book, "status"))
    assert "I have just started" in heard(say(book, "list", request="r2"))
    assert "I have just started" in heard(say(book, "status k7m2", request="r3"))
    book.tell(WorkflowsListed(frozenset()))
    assert "No run is under way, and I have seen none end." in heard(say(book, "status", request="r4"))
    assert "🤔 No run is called `k7m2`. I know none at the moment." == heard(say(book, "status k7m2", request="r5"))


def test_the_status_names_everything_under_way_and_what_ended_last() -> None:
    """In the order in which they were made; a run that is long gone is counted."""
    book = Playbook()
    book.state.listed = True
    for number in reversed(range(32)):
        body = workflow_json(f"gpu-test-r{number:02d}x", phase="Running", nodes=RUNNING)
        body["metadata"]["creationTimestamp"] = f"2026-03-02T09:{number:02d}:00Z"
        book.see(body)
    for number in range(7):
        book.see(red_json(f"gpu-test-f{number}x"))
    text = heard(say(book, "status"))
    listed = heard(say(book, "list", request="r2")).splitlines()

    assert [f"**r{n:02d}x**" for n in range(3)] == [
        line.split(": ")[1].split(" ·")[0] for line in text.splitlines()[:3]
    ]
    assert "and 2 more" in text.splitlines()
    assert "Ended last:" == text.splitlines()[-6]
    assert 5 == len([x for x in text.splitlines()[-5:] if x.startswith("❌")])
    assert (30, 7) == (len([x for x in listed if "🔵" in x]), len([x for x in listed if "❌" in x]))


def test_the_status_of_runs_under_way_alone() -> None:
    """Nothing is said of ended ones where none was seen."""
    book = Playbook()
    book.state.listed = True
    assert "No run is under way, and I have seen none end." in heard(say(book, "list", request="r0"))
    book.see(workflow_json(phase="Running", nodes=RUNNING))

    assert heard(say(book, "list", request="r2")) == heard(say(book, "status", request="r3"))
    assert "🔵 compiling and testing, since 10:01 UTC: **k7m2** · all models · not from the chat" == heard(
        say(book, "status")
    )


def test_the_status_of_ended_runs_alone() -> None:
    """It says that nothing is under way."""
    book = Playbook()
    book.state.listed = True
    book.see(red_json())

    line = "❌ **m3x8: 1 of 2 failed: dqn** · ended 2 Mar 10:36 UTC · not from the chat"
    assert f"No run is under way.\nEnded last:\n{line}" == heard(say(book, "status"))


def test_cancelling_by_name_without_a_name_and_without_a_run() -> None:
    """One's own, if there is just one; otherwise it is asked which."""
    book = Playbook()
    book.state.listed = True
    nothing = heard(say(book, "cancel"))
    book.see(workflow_json(phase="Running", nodes=RUNNING, meta=asked_by("anna")))
    (own,) = say(book, "cancel", request="r2")
    other = heard(say(book, "cancel", request="r3", who="ben"))
    book.see(workflow_json("gpu-test-zz99", phase="Running", nodes=RUNNING, meta=asked_by("anna", "gpu-test-zz99")))
    two = heard(say(book, "cancel", request="r4"))

    assert "🤔 No run is under way. Nothing was done.\n`/gputest status`" == nothing
    assert isinstance(own, PatchWorkflow)
    assert "🤔 Which run? Under way: `k7m2`. Nothing was done.\n`/gputest status`" == other
    assert "🤔 Which run? Under way: `k7m2`, `zz99`. Nothing was done.\n`/gputest status`" == two


def test_a_cancel_is_acknowledged_and_its_author_stands_on_the_run() -> None:
    """The card says the rest."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=RUNNING, meta=asked_by("anna")))
    (effect,) = say(book, "cancel k7m2", who="ben")
    assert isinstance(effect, PatchWorkflow)
    done = book.answer(effect)
    assert isinstance(done, EffectDone)
    text = [e.text for e in book.tell(done) if isinstance(e, Answer)]

    assert ["🚫 **k7m2** is being stopped."] == text
    cancelled = read_cancelled(book.read("gpu-test-k7m2"))
    assert cancelled is not None
    assert ("ben", "Stop") == (cancelled.user_name, book.cluster["gpu-test-k7m2"]["spec"]["shutdown"])


def test_a_cancel_that_lost_a_race_is_tried_on_the_object_as_it_is() -> None:
    """At once, on what the server showed, or on what is held."""
    book = Playbook()
    book.see(workflow_json(phase="Pending", meta=asked_by("anna")))
    (effect,) = say(book, "cancel")
    assert isinstance(effect, PatchWorkflow)
    latest = workflow(phase="Running", nodes=RUNNING, version=999, meta=asked_by("anna"))
    (again,) = book.tell(EffectFailed(effect.id, Trouble.CONFLICT, "lost", latest=latest))
    assert isinstance(again, PatchWorkflow)
    (third,) = book.tell(EffectFailed(again.id, Trouble.CONFLICT, "lost"))

    assert "Terminate" == next(op["value"] for op in effect.patch if op["path"] == "/spec/shutdown")
    assert "Stop" == next(op["value"] for op in again.patch if op["path"] == "/spec/shutdown")
    assert isinstance(third, PatchWorkflow)


def test_a_cancel_that_came_too_late() -> None:
    """Ended while it was on its way: nothing is stopped any more, and nothing looks cancelled."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=RUNNING, meta=asked_by("anna")))
    (effect,) = say(book, "cancel")
    assert isinstance(effect, PatchWorkflow)

    text = heard(book.tell(EffectFailed(effect.id, Trouble.CONFLICT, "lost", latest=ended(green()))))
    assert "It ended while I was about to stop it; its card has the verdict." == text
    (other,) = say(book, "cancel", request="r2")
    assert isinstance(other, PatchWorkflow)
    book.state.runs.clear()
    assert text == heard(book.tell(EffectFailed(other.id, Trouble.BUSY, "busy")))


def test_a_cancel_that_the_cluster_refused() -> None:
    """Its card shows how it is."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=RUNNING, meta=asked_by("anna")))
    (effect,) = say(book, "cancel")
    assert isinstance(effect, PatchWorkflow)

    assert "⚠️ I could not stop `k7m2`: forbidden. Its card shows how it is." == heard(
        book.tell(EffectFailed(effect.id, Trouble.REFUSED, "forbidden"))
    )


def test_what_has_ended_is_not_cancelled() -> None:
    """Being reported, gone, or reported already."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=RUNNING, meta=asked_by("anna")))
    run = book.state.runs["uid-gpu-test-k7m2"]
    run.workflow = msgspec.structs.replace(
        ended(green("dqn"), parameters={"models": "dqn"}), metadata=run.workflow.metadata
    )
    reported = heard(say(book, "cancel k7m2"))
    run.workflow = msgspec.structs.replace(workflow(phase="Running"), metadata=run.workflow.metadata)
    run.gone = True
    gone = heard(say(book, "cancel k7m2", request="r2"))

    assert "🤔 Too late: k7m2: 1 model green. Nothing was done." == reported
    assert "🤔 **k7m2** has ended already. Nothing was done." == gone


def test_a_run_whose_tests_have_ended_is_not_cancelled() -> None:
    """Only its exit step runs; to say that it is being stopped would be false, each time."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=[node("compile-and-test", "Succeeded")]))

    for request in ("r1", "r2"):
        assert heard(say(book, "cancel k7m2", request=request)) == (
            "🤔 The tests of **k7m2** have ended; only its exit step runs, which reports them. Nothing was done."
            "\n`/gputest status k7m2`"
        )


def test_ones_own_run_can_be_cancelled_without_the_right() -> None:
    """Others' can't; a run that nobody asked for is nobody's own, not even of a nameless user."""
    roles = (Role("everybody", may=(Right.LOOK,)),)
    book = Playbook(settings=replace(SETTINGS, roles=roles))
    book.see(workflow_json(phase="Running", nodes=RUNNING, meta=asked_by("anna")))
    book.see(workflow_json("gpu-test-api1", phase="Running", nodes=RUNNING))
    (own,) = say(book, "cancel k7m2")

    assert isinstance(own, PatchWorkflow)
    assert "You may not cancel runs here." in heard(say(book, "cancel k7m2", request="r2", who="ben"))
    assert "You may not cancel runs here." in heard(say(book, "cancel api1", request="r3", user_id="", user_name=""))


def test_a_rerun_of_none_that_is_known() -> None:
    """A run under way is known, and none that has ended."""
    book = Playbook()
    book.see(workflow_json("gpu-test-hwas", phase="Running"))

    assert "I know `hwas`." in heard(say(book, "cancel zzzz"))
    assert "I know none that has ended." in heard(say(book, "rerun zzzz", request="r2"))


def test_a_rerun_takes_what_ended_last() -> None:
    """Or the one that is named, by its short name or its whole one."""
    book = Playbook()
    book.see(red_json())
    book.see(red_json("gpu-test-later") | {"status": red_json()["status"] | {"finishedAt": "2026-03-02T11:00:00Z"}})
    last = submitted(say(book, "rerun"))
    named = submitted(say(book, "rerun failed gpu-test-m3x8", request="r2"))

    assert ("dqn,ppo", "main") == (last.parameters["models"], last.parameters["commit-ref"])
    assert ("dqn", "3f2a9c1" + "0" * 33) == (named.parameters["models"], named.parameters["commit-ref"])


@pytest.mark.parametrize(
    ("verdict", "says"),
    [
        ("passed", "Nothing failed in **m3x8**, so there is nothing to rerun of it alone."),
        ("broken", "**m3x8** did not build, so no model failed by itself."),
        ("failed", "In **m3x8** only shared suites failed, which run with every selection."),
        ("cancelled", "**m3x8** was cancelled before any model had a result."),
        ("timed_out", "**m3x8** was out of time before any model had a result."),
        ("no_gpu", "**m3x8** never got a GPU, so no model has a result."),
        ("unknown", "Of **m3x8** no results are known, so nobody knows what failed."),
    ],
)
def test_where_no_model_can_be_rerun_alone_it_is_said_why(verdict: str, says: str) -> None:
    """And all of it can be run again."""
    book = Playbook()
    book.see(red_json())
    uid, known = book.state.ended.popitem()
    book.state.ended[uid] = replace(known, verdict=Verdict(verdict), failed=None)

    answer = heard(say(book, "rerun failed m3x8"))

    assert answer.startswith(f"🤔 {says} ")
    assert answer.endswith("\n`/gputest rerun m3x8`")


def test_a_rerun_is_allowed_by_the_ref_that_was_asked_for_first() -> None:
    """A commit is no pattern of a role; the branch that it came from is."""
    roles = (Role("everybody", may=(Right.RUN,), refs=("main",)),)
    book = Playbook(settings=replace(SETTINGS, roles=roles))
    book.see(red_json())

    assert "dqn" == submitted(say(book, "rerun failed")).parameters["models"]


def test_a_run_with_strange_parameters_is_not_run_again() -> None:
    """Whoever starts one without the bot may write anything there; it comes out harmless."""
    book = Playbook()
    body = red_json()
    body["spec"]["arguments"]["parameters"] = [
        {"name": "models", "value": "dqn"},
        {"name": "epochs", "value": "`@all` many"},
        {"name": "commit-ref", "value": "x`@here`"},
    ]
    book.see(body)
    text = heard(say(book, "rerun"))

    assert text == (
        "🤔 Ref `x'@here'` is not among those you may run, since GPU pods hold data and keys. You may run `HEAD`, `main`,"
        " `master`, `release/*`, `v[0-9]*`. Nobody may, as config.yaml stands. Nothing was started.\n"
        "`/gputest models=dqn epochs=3`"
    )


def test_a_result_of_something_that_was_given_up_changes_nothing() -> None:
    """It comes late, or belongs to another life of this process."""
    assert [] == Playbook().tell(EffectDone("e999", workflow()))


def test_a_line_with_many_mistakes_is_mended_up_to_a_point() -> None:
    """Six of them; where there are more, the help says more than a guess."""
    typos = ["dqnn", "ppoo", "tftt", "mamba", "tggnn", "tlobb", "likuid"]
    few, many = (heard(say(Playbook(), " ".join(typos[:count]))) for count in (5, 7))

    assert few.endswith("\n`/gputest models=dqn,ppo,tft,mamba2,tggn`")
    assert many.endswith("\n`/gputest help`")


def test_a_rerun_carries_the_ref_that_was_asked_for_first() -> None:
    """And keeps it where its name has to be another."""
    book = Playbook()
    book.see(red_json())
    effect = submitted(say(book, "rerun failed"))
    second = submitted(book.tell(EffectFailed(effect.id, Trouble.EXISTS, "taken")))

    for one in (effect, second):
        request = read_request(created(one))
        assert request is not None
        assert (one.name, "main") == (request.name, request.ref)


def test_a_short_name_that_two_runs_have_names_neither() -> None:
    """The whole names are given to choose from, and nothing is done."""
    book = Playbook()
    for name in ("gpu-test-aaaa", "weekly-aaaa"):
        book.see(workflow_json(name, phase="Running", nodes=RUNNING))
    for name in ("gpu-test-zzzz", "weekly-zzzz"):
        book.see(red_json(name))
    cancel, rerun = heard(say(book, "cancel aaaa")), heard(say(book, "rerun zzzz", request="r2"))
    (whole,) = say(book, "cancel weekly-aaaa", request="r3")

    assert "`aaaa` may be any of `gpu-test-aaaa`, `weekly-aaaa`. Give the whole name." in cancel
    assert "/gputest cancel gpu-test-aaaa" in cancel
    assert "`zzzz` may be any of" in rerun
    assert isinstance(whole, PatchWorkflow)
    assert "weekly-aaaa" == whole.name
