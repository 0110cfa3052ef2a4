"""A sweep compares what is held with what is stored, and looks once more at what was let go a while ago."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.core.effects import CheckPosts, EditCard, Effect, PatchWorkflow, PostCard, Purpose, SayInThread, WakeAt
from bot.core.events import EffectDone, EffectFailed, LeaseLost, LeaseWon, Swept, Trouble, WorkflowChanged
from bot.core.memory import FINALIZER, RUN_ANNOTATION, Memory, read_memory, write
from bot.core.runs import is_owed
from tests.core.playbook import Playbook
from tests.phrases import NOW, SETTINGS, ended, green, node, outputs, workflow, workflow_json

UID = "uid-gpu-test-k7m2"
TESTING = [node("compile-and-test", "Running")]


def running(book: Playbook | None = None) -> Playbook:
    """A run that tests, its card up to date."""
    book = book or Playbook()
    book.see(workflow_json(phase="Running", nodes=TESTING))
    book.effects.clear()
    return book


def green_end(**more: Any) -> dict[str, Any]:
    """It ended, and all passed."""
    passed = node("compile-and-test", "Succeeded") | {"outputs": outputs(green())}
    return workflow_json(phase="Succeeded", nodes=[passed], **more)


def checks(effects: list[Effect]) -> list[CheckPosts]:
    return [effect for effect in effects if isinstance(effect, CheckPosts)]


def test_each_run_is_compared_once_a_sweep() -> None:
    """With its card as it should be; between two sweeps nothing is asked."""
    book = running()

    (check,) = checks(book.tell(Swept()))
    assert [] == book.tell(Swept())
    book.play(book.tell(book.answer(check)))
    book.see(workflow_json(phase="Running", nodes=TESTING))

    created = 1_772_445_598  # that of the object is earlier than the claim
    assert (f"{UID}:1", "CHANNEL", created - 300) == (check.key, check.channel, check.since)
    assert check.card == book.posts[f"post-{UID}:1"].card
    assert 1 == len(checks(book.effects))
    assert 1 == len(checks(book.tell(Swept())))


def test_what_is_missing_goes_first() -> None:
    """A step of the protocol that is due comes before a look at what was done."""
    book = running()
    effects = book.tell(WorkflowChanged(book.write(_held(book, green_end()))))
    (journal,) = (effect for effect in effects if isinstance(effect, PatchWorkflow))
    assert [] == book.tell(Swept())

    book.play(book.tell(book.answer(journal)))

    assert not book.has_finalizer()
    assert [] == checks(book.effects)


def _held(book: Playbook, body: dict[str, Any]) -> dict[str, Any]:
    """The object as it is now, and what the bot wrote on it."""
    held = book.cluster["gpu-test-k7m2"]["metadata"]
    body["metadata"] |= {key: held[key] for key in ("annotations", "finalizers")}
    return body


def test_a_process_that_takes_over_compares_first_thing() -> None:
    """Who spoke before may have left doubles; who claimed it itself knows."""
    book = running()

    book.restart()
    book.effects.clear()
    book.see(workflow_json(phase="Running", nodes=TESTING))

    assert [EditCard, CheckPosts] == [type(e) for e in book.effects if isinstance(e, EditCard | CheckPosts)]


def test_a_lease_that_was_lost_and_won_is_a_reason_to_compare() -> None:
    """Another may have spoken in between."""
    book = running()
    book.tell(LeaseLost())
    assert [] == book.tell(Swept())

    book.play(book.tell(LeaseWon()))

    assert 1 == len(checks(book.effects))


def test_a_card_that_is_gone_is_posted_again() -> None:
    """A person deleted it while nothing was to be edited: the sweep finds it out."""
    book = running()
    (check,) = checks(book.tell(Swept()))

    book.play(book.tell(EffectFailed(check.id, Trouble.GONE, "deleted")))

    assert [Purpose.FORGET_CARD, Purpose.REMEMBER] == [e.purpose for e in book.effects if isinstance(e, PatchWorkflow)]
    memory = read_memory(book.read("gpu-test-k7m2"))
    assert memory is not None
    assert (2, f"post-{UID}:2") == (memory.gen, memory.post)


def test_who_takes_over_after_a_card_was_forgotten_waits_for_the_post_of_the_one_before() -> None:
    """The next number counts as claimed anew."""
    book = running()
    book.now += 1000
    (check,) = checks(book.tell(Swept()))
    (forget,) = book.tell(EffectFailed(check.id, Trouble.GONE, "deleted"))
    book.tell(book.answer(forget))  # the POST that follows is on its way when the process dies

    book.restart()
    effects = book.tell(WorkflowChanged(book.read("gpu-test-k7m2")))

    assert [] == [effect for effect in effects if isinstance(effect, PostCard)]
    assert [book.now + SETTINGS.settle_seconds] == [effect.when for effect in effects if isinstance(effect, WakeAt)]


def test_an_older_double_takes_the_place_of_the_card_and_of_its_thread() -> None:
    """Both journaled ends are said below it, by a look at what stands there."""
    book = running()
    (check,) = checks(book.tell(Swept()))
    book.play(book.tell(EffectDone(check.id, "older")))
    memory = read_memory(book.read("gpu-test-k7m2"))
    assert memory is not None
    assert "older" == memory.post

    book.see(green_end())

    assert ["older"] == [effect.post for effect in book.effects if isinstance(effect, SayInThread)]
    assert 1 == len(book.notices())


def test_a_chat_that_is_away_is_asked_again_and_nothing_is_done_twice() -> None:
    """The look failed: it is owed still, after a pause."""
    book = running()
    (check,) = checks(book.tell(Swept()))
    effects = book.tell(EffectFailed(check.id, Trouble.BUSY, "away"))
    assert [] == checks(effects)

    book.now += SETTINGS.retry_max_seconds

    assert 1 == len(checks(book.tell(Swept())))


def test_a_run_that_was_let_go_is_looked_at_for_a_while() -> None:
    """Doubles that come late are found, and so is an edit from before its end that somebody was stopped with."""
    book = running()
    book.see(green_end())
    assert {} == book.state.runs

    (look,) = checks(book.tell(Swept()))
    last = book.posts[f"post-{UID}:1"].card
    assert (f"{UID}:1", last) == (look.key, look.card)
    assert last is not None and last.outcome is not None
    assert [] == book.tell(EffectDone(look.id, f"post-{UID}:1"))
    assert [] == book.tell(EffectFailed(look.id, Trouble.GONE, "deleted"))
    book.now += SETTINGS.linger_seconds

    assert [] == book.tell(Swept())
    assert {} == book.state.partings


def test_a_retry_is_looked_at_as_a_run_again() -> None:
    """Not as both."""
    book = running()
    book.see(green_end())
    book.see(workflow_json(phase="Running", startedAt="2026-03-02T11:00:00Z", nodes=TESTING))

    (check,) = checks(book.tell(Swept()))

    assert check.card is not None


def test_what_another_let_go_a_moment_ago_is_looked_at_too() -> None:
    """A process that has just taken over knows it from the list; what ended long ago it leaves alone."""
    leader = running()
    leader.see(green_end(finishedAt="2026-03-02T10:05:00Z"))
    released = leader.read("gpu-test-k7m2")

    book = Playbook()
    book.tell(WorkflowChanged(released))
    assert 1 == len(checks(book.tell(Swept())))
    late = Playbook()
    late.now = NOW + SETTINGS.linger_seconds
    late.tell(WorkflowChanged(released))

    assert [] == late.tell(Swept())


def test_nothing_is_looked_at_by_who_does_not_lead() -> None:
    """A standby keeps in mind what it may have to look at."""
    leader = running()
    standby = Playbook(leader=False)
    standby.tell(WorkflowChanged(leader.read("gpu-test-k7m2")))
    leader.see(green_end())
    standby.tell(WorkflowChanged(leader.read("gpu-test-k7m2")))
    assert [] == standby.tell(Swept())

    standby.tell(LeaseWon())

    (look,) = checks(standby.tell(Swept()))
    assert look.card is None  # what the other made of it in the end is not known here


def test_an_end_in_the_second_of_the_installation_is_owed() -> None:
    """Kubernetes tells times in whole seconds: the run began after the first start and ended within it."""
    end = ended(green(), finishedAt="2026-03-02T10:06:00Z")

    assert is_owed(end, NOW)
    assert not is_owed(end, NOW + 1)
    assert not is_owed(workflow(phase="Failed", finishedAt=None), 0.0)


def test_a_card_that_was_forgotten_is_looked_for_since_the_first_claim() -> None:
    """An answer that was no 404 of the chat's own may have made us post a second one: the first is found later."""
    book = running()
    first = read_memory(book.read("gpu-test-k7m2"))
    assert first is not None
    book.now += 100_000
    for _ in range(2):
        (check,) = checks(book.tell(Swept()))
        book.play(book.tell(EffectFailed(check.id, Trouble.GONE, "deleted")))
    memory = read_memory(book.read("gpu-test-k7m2"))

    assert memory is not None
    assert (3, first.claimed_at, first.claimed_at) == (memory.gen, memory.since, memory.first_claimed_at)


def test_the_card_is_named_by_its_id_too() -> None:
    """Where clocks differ it is not among the latest posts."""
    book = running()
    (check,) = checks(book.tell(Swept()))

    assert f"post-{UID}:1" == check.post


@pytest.mark.parametrize("claimed_at", [NOW + 3600, 1e11, 1e300])
def test_a_claim_from_the_future_is_not_waited_for(claimed_at: float) -> None:
    """A clock was wrong, or somebody wrote it: the card is looked for at once."""
    book = Playbook()
    body = workflow_json(phase="Running", nodes=TESTING)
    memory = Memory(UID, "gpu-test-k7m2", "CHANNEL", claimed_at)
    body["metadata"] |= {"annotations": {RUN_ANNOTATION: write(memory)}, "finalizers": [FINALIZER]}
    effects = book.tell(WorkflowChanged(book.write(body)))

    assert [True] == [effect.look_first for effect in effects if isinstance(effect, PostCard)]


def test_an_older_run_without_a_memory_may_have_a_card() -> None:
    """Somebody wiped the annotation: the card is looked for, and without a pause, since nobody else claimed it."""
    book = Playbook(settings=replace(SETTINGS, fresh_seconds=60.0))
    claim, *_ = book.tell(WorkflowChanged(book.write(workflow_json(phase="Running", nodes=TESTING))))
    (post,) = (effect for effect in book.tell(book.answer(claim)) if isinstance(effect, PostCard))

    assert post.look_first
