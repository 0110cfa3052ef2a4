"""A run from its first sight to its release, and everything that can come in between."""

from __future__ import annotations

from typing import Any

import pytest

from bot.core.card import Origin, OriginKind, Stage
from bot.core.effects import EditCard, FollowLog, PatchWorkflow, PostCard, SayInThread
from bot.core.events import (
    EffectDone,
    EffectFailed,
    LeaseLost,
    LeaseWon,
    Trouble,
    Woke,
    WorkflowChanged,
    WorkflowDeleted,
    WorkflowsListed,
)
from bot.core.memory import REQUEST_ANNOTATION, Request, read_memory, write
from bot.core.render.card import render_card
from bot.core.runs import MADE_ANEW
from tests.core.playbook import Playbook
from tests.phrases import NOW, SETTINGS, ended, green, node, outputs, results, suite, workflow, workflow_json


def ended_json(text: str | None, phase: str = "Succeeded", code: str = "0", **more: object) -> dict:
    """An ended run as JSON."""
    test = node("compile-and-test", "Succeeded" if code == "0" else "Failed")
    if text is not None:
        test["outputs"] = outputs(text, code)
    return workflow_json(phase=phase, nodes=[node("gpu-warmup", "Succeeded"), test], **more)


def test_a_green_run_gets_one_card_and_one_notice_and_is_let_go() -> None:
    """Queued, waiting, testing, green: one card throughout, the notice last, then the finalizer goes."""
    book = Playbook()

    book.see(workflow_json())
    book.see(workflow_json(phase="Running", nodes=[node("gpu-warmup", "Pending", message="Unschedulable: 0/3 nodes")]))
    book.see(
        workflow_json(phase="Running", nodes=[node("gpu-warmup", "Succeeded"), node("compile-and-test", "Running")])
    )
    assert book.has_finalizer()
    book.see(ended_json(green()))

    assert ["post-uid-gpu-test-k7m2:1"] == list(book.posts)
    assert ["@olga ✅ k7m2: all 10 green, 36 min"] == book.notices()
    assert not book.has_finalizer()
    assert {} == book.state.runs
    stages = [e.card.stage for e in book.effects if isinstance(e, PostCard | EditCard)]
    assert [Stage.QUEUED, Stage.WAITING, Stage.TESTING, Stage.ENDED] == stages
    assert "gpu-test-k7m2" == next(iter(book.state.ended.values())).name


def test_the_steps_come_in_the_order_of_the_protocol() -> None:
    """An end that is seen first: claim, journal, card, remember, thread, release."""
    book = Playbook()

    book.see(ended_json(results([suite("dqn", status="failed", failed_tests=["a"])]), "Failed", "1"))

    kinds = [e.purpose if isinstance(e, PatchWorkflow) else type(e).__name__ for e in book.effects]
    assert ["claim", "journal", "PostCard", "remember", "SayInThread", "release"] == kinds


def test_an_old_end_of_before_the_installation_is_not_owed() -> None:
    """A first start beside old runs says nothing about them."""
    book = Playbook()

    book.see(ended_json(green(), finishedAt="2026-02-20T00:00:00Z"))

    assert [] == book.effects


def test_a_workflow_of_another_template_is_not_ours() -> None:
    """Other people's workflows stay untouched."""
    book = Playbook()
    body = workflow_json(spec={"workflowTemplateRef": {"name": "ci-pipeline"}})

    book.see(body)

    assert [] == book.effects


def test_a_restart_goes_on_with_the_same_card() -> None:
    """The post's id is read from the Workflow; the new process edits and does not post."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=[node("gpu-warmup", "Running")]))

    book.restart()
    book.effects.clear()
    book.see(ended_json(green()))

    assert not [e for e in book.effects if isinstance(e, PostCard)]
    assert 1 == len(book.posts)
    assert 1 == len(book.notices())


def test_a_restart_between_post_and_memory_looks_before_it_posts() -> None:
    """The first process died after the POST: the second waits until no request can be under way, then looks."""
    book = Playbook()
    claim = book.tell(WorkflowChanged(book.write(workflow_json())))[0]
    book.tell(book.answer(claim))  # the PostCard that follows is never performed by this process

    book.restart()
    effects = book.tell(WorkflowChanged(book.read("gpu-test-k7m2")))
    assert [NOW + SETTINGS.settle_seconds] == [e.when for e in effects]
    book.now += SETTINGS.settle_seconds
    effects = book.tell(Woke("run:uid-gpu-test-k7m2"))

    assert [True] == [e.look_first for e in effects if isinstance(e, PostCard)]
    created = 1_772_445_598  # that of the object is earlier than the claim
    assert [created - 300] == [e.since for e in effects if isinstance(e, PostCard)]


def test_an_unanswered_post_is_looked_for_before_it_is_repeated() -> None:
    """A timeout says nothing about whether the card exists."""
    book = Playbook()
    claim = book.tell(WorkflowChanged(book.write(workflow_json())))[0]
    post = book.tell(book.answer(claim))[0]
    assert isinstance(post, PostCard)
    assert not post.look_first

    book.tell(EffectFailed(post.id, Trouble.UNCERTAIN, "no answer"))
    book.now += SETTINGS.settle_seconds
    again = book.tell(Woke("run:uid-gpu-test-k7m2"))[0]

    assert isinstance(again, PostCard)
    assert again.look_first


def test_a_lost_race_for_the_claim_goes_on_with_what_the_other_wrote() -> None:
    """Another replica claimed first: its memory counts."""
    book = Playbook()
    claim = book.tell(WorkflowChanged(book.write(workflow_json())))[0]
    other = Playbook()
    other.cluster = book.cluster
    other.see(book.cluster["gpu-test-k7m2"])

    effects = book.tell(book.answer(claim))

    assert isinstance(effects[0], EditCard)
    assert "post-uid-gpu-test-k7m2:1" == effects[0].post


def test_the_notice_names_who_asked_by_their_id() -> None:
    """Names change while a run runs; the one they have is looked up when it is said."""
    book = Playbook()
    asked = {"annotations": {REQUEST_ANNOTATION: write(Request("gpu-test-k7m2", "r", "id-anna", "anna", "CHANNEL"))}}
    book.see(ended_json(green(), meta=asked))
    (said,) = [e for e in book.effects if isinstance(e, SayInThread)]

    assert Origin(OriginKind.CHAT, "id-anna", "anna") == said.asker
    assert [("notice", "✅ k7m2: all 10 green, 36 min")] == list(said.parts)


def test_a_retry_is_another_attempt_with_its_own_notice() -> None:
    """`argo retry` keeps the uid and renews startedAt: same card, second notice."""
    book = Playbook()
    book.see(ended_json(results([suite("dqn", status="failed", failed_tests=["a"])], models=["dqn"]), "Failed", "1"))
    assert not book.has_finalizer()

    book.see(
        workflow_json(phase="Running", startedAt="2026-03-02T11:00:00Z", nodes=[node("compile-and-test", "Running")])
    )
    assert book.has_finalizer()
    book.see(ended_json(green(), startedAt="2026-03-02T11:00:00Z", finishedAt="2026-03-02T11:20:00Z"))

    assert 2 == len(book.notices())
    assert 1 == len(book.posts)
    assert not book.has_finalizer()


def test_an_end_that_was_journaled_and_then_retried_is_still_said() -> None:
    """The bot died between journal and notice, and `argo retry` overwrote the end: the journal has it."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=[node("compile-and-test", "Running")]))
    body = ended_json(results([suite("dqn", status="failed", failed_tests=["a"])]), "Failed", "1")
    body["metadata"] |= {k: v for k, v in book.cluster["gpu-test-k7m2"]["metadata"].items() if k != "resourceVersion"}
    journal = book.tell(WorkflowChanged(book.write(body)))[0]
    assert "journal" == journal.purpose
    book.answer(journal)  # committed; the process dies before it reads the answer

    book.restart()
    book.see(
        workflow_json(phase="Running", startedAt="2026-03-02T11:00:00Z", nodes=[node("compile-and-test", "Running")])
    )

    assert ["@olga ❌ k7m2: 1 of 10 failed: dqn"] == book.notices()


def test_an_end_that_nobody_saw_is_said_to_be_unseen() -> None:
    """Ended and retried while the bot was away: the card says that an attempt was not seen."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=[node("compile-and-test", "Running")]))
    book.restart()

    book.see(
        workflow_json(phase="Running", startedAt="2026-03-02T11:00:00Z", nodes=[node("compile-and-test", "Running")])
    )

    card = list(book.posts.values())[-1].card
    assert "while I was away" in render_card(card, SETTINGS).text


def test_resubmit_copies_annotations_and_they_do_not_count() -> None:
    """The copy's memory and request name another object: it is claimed anew, and nobody's name is rung for it."""
    book = Playbook()
    book.see(workflow_json())
    copied = book.cluster["gpu-test-k7m2"]["metadata"]["annotations"]

    book.see(workflow_json("gpu-test-zz99", meta={"annotations": dict(copied)}))

    assert {"post-uid-gpu-test-k7m2:1", "post-uid-gpu-test-zz99:1"} == set(book.posts)


def test_a_deleted_card_is_posted_again_with_the_next_number() -> None:
    """A person deleted the post: generation 2."""
    book = Playbook()
    book.see(workflow_json())
    body = workflow_json(phase="Running", nodes=[node("compile-and-test", "Running")])
    body["metadata"] |= {k: v for k, v in book.cluster["gpu-test-k7m2"]["metadata"].items() if k != "resourceVersion"}

    edit = book.tell(WorkflowChanged(book.write(body)))[0]
    assert isinstance(edit, EditCard)
    book.play(book.tell(EffectFailed(edit.id, Trouble.GONE, "deleted")))

    assert "post-uid-gpu-test-k7m2:2" in book.posts
    memory = read_memory(book.read("gpu-test-k7m2"))
    assert memory is not None
    assert (2, "post-uid-gpu-test-k7m2:2") == (memory.gen, memory.post)


def test_notify_false_posts_nothing_and_is_still_let_go() -> None:
    """No post for that run; `status` knows it all the same."""
    book = Playbook()
    book.see(workflow_json(parameters={"notify": "false"}))

    book.see(ended_json(green(), parameters={"notify": "false"}))

    assert {} == book.posts
    assert [] == book.thread
    assert not book.has_finalizer()
    assert 1 == len(book.state.ended)


@pytest.mark.parametrize(
    "before", [node("compile-and-test", "Running"), node("compile-and-test", "Error", message="pod deleted")]
)
def test_a_pod_that_is_made_anew_is_told_for_as_long_as_the_attempt_lasts(before: dict[str, Any]) -> None:
    """Its node was lost: the run waits again, and the card says why. What is retried has nothing to do with it."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=[before]))
    waits = node("compile-and-test", "Pending", message="Unschedulable: 0/3 nodes are available")
    book.see(workflow_json(phase="Running", nodes=[waits]))
    (post,) = book.posts.values()
    assert (Stage.WAITING, (MADE_ANEW,)) == (post.card.stage, post.card.notes)

    book.see(ended_json(green()))
    assert "Argo made another one" in render_card(next(iter(book.posts.values())).card, SETTINGS).text

    book.see(
        workflow_json(phase="Running", startedAt="2026-03-02T11:00:00Z", nodes=[node("compile-and-test", "Running")])
    )
    assert () == next(iter(book.posts.values())).card.notes


def test_deleted_while_it_runs_is_terminated_reported_and_let_go() -> None:
    """Our finalizer holds the object; Argo is told to end it, and the card says cancelled."""
    book = Playbook()
    running = [node("compile-and-test", "Running")]
    book.see(workflow_json(phase="Running", nodes=running))

    book.see(workflow_json(phase="Running", nodes=running, meta={"deletionTimestamp": "2026-03-02T10:06:00Z"}))
    assert "Terminate" == book.cluster["gpu-test-k7m2"]["spec"]["shutdown"]
    book.see(
        workflow_json(
            phase="Failed",
            nodes=[node("compile-and-test", "Failed", message="workflow shutdown with strategy:  Terminate")],
            meta={"deletionTimestamp": "2026-03-02T10:06:00Z"},
            spec={"shutdown": "Terminate"},
        )
    )

    assert ["@olga 🚫 k7m2 cancelled · not a pass"] == book.notices()
    assert not book.has_finalizer()


def test_deleted_in_the_queue_and_never_ending_is_reported_too() -> None:
    """An attempt that never began has no name, and neither has what was reported of a run of which nothing was."""
    book = Playbook()
    book.see(workflow_json(phase="Pending", startedAt=None))
    deleted = {"deletionTimestamp": "2026-03-02T10:06:00Z"}
    book.see(workflow_json(phase="Pending", startedAt=None, meta=deleted, spec={"shutdown": "Stop"}))
    assert "Terminate" == book.cluster["gpu-test-k7m2"]["spec"]["shutdown"]  # a queue ignores Stop
    book.now += SETTINGS.deletion_seconds
    book.play(book.tell(Woke("run:uid-gpu-test-k7m2")))

    assert 1 == len(book.notices())
    assert not book.has_finalizer()


def test_deleted_in_the_queue_and_begun_after_all_is_said_once() -> None:
    """Argo came back between our word that it is deleted and the release, began it and ended it."""
    book = Playbook()
    book.see(workflow_json(phase="Pending", startedAt=None))
    deleted = {"deletionTimestamp": "2026-03-02T10:06:00Z"}
    book.see(workflow_json(phase="Pending", startedAt=None, meta=deleted))
    book.now += SETTINGS.deletion_seconds
    (journal,) = (e for e in book.tell(Woke("run:uid-gpu-test-k7m2")) if isinstance(e, PatchWorkflow))
    book.answer(journal)
    kept = book.cluster["gpu-test-k7m2"]["metadata"]

    book.restart()
    book.see(workflow_json(phase="Failed", nodes=[], meta=kept, spec={"shutdown": "Terminate"}))

    assert ["@olga 🚫 k7m2 cancelled before any test ran"] == book.notices()
    assert not book.has_finalizer()


def test_deleted_and_never_ending_is_reported_after_a_while() -> None:
    """Argo does not react: after two minutes it is deleted while it ran."""
    book = Playbook()
    running = [node("compile-and-test", "Running")]
    book.see(workflow_json(phase="Running", nodes=running))
    book.see(workflow_json(phase="Running", nodes=running, meta={"deletionTimestamp": "2026-03-02T10:06:00Z"}))
    assert book.wakes["run:uid-gpu-test-k7m2"] == NOW + SETTINGS.deletion_seconds

    book.now += SETTINGS.deletion_seconds
    book.play(book.tell(Woke("run:uid-gpu-test-k7m2")))

    assert "deleted while it ran" in render_card(list(book.posts.values())[-1].card, SETTINGS).text.lower()
    assert 1 == len(book.notices())
    assert not book.has_finalizer()


def test_an_object_that_is_gone_is_reported_without_writing_to_it() -> None:
    """Somebody removed our finalizer by force: what is owed is said, nothing can be patched."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=[node("compile-and-test", "Running")]))
    book.effects.clear()

    book.play(book.tell(WorkflowDeleted(book.read("gpu-test-k7m2"))))

    assert not [e for e in book.effects if isinstance(e, PatchWorkflow)]
    assert 1 == len(book.notices())
    assert {} == book.state.runs


def test_a_list_that_lacks_a_run_tells_that_it_is_gone() -> None:
    """After a gap in the watch, what is not in the list is gone."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=[node("compile-and-test", "Running")]))

    book.play(book.tell(WorkflowsListed(frozenset())))

    assert 1 == len(book.notices())
    assert {} == book.state.runs


def test_a_list_that_is_older_than_a_run_says_nothing_of_it() -> None:
    """It was made while the list was read: the answer to the request told of it first."""
    book = Playbook()
    run = workflow_json(phase="Running", nodes=[node("compile-and-test", "Running")])
    book.see(run)
    made = int(book.read("gpu-test-k7m2").metadata.resource_version)

    book.play(book.tell(WorkflowsListed(frozenset(), str(made - 1))))
    assert [] == book.notices()
    assert not next(iter(book.state.runs.values())).gone

    book.play(book.tell(WorkflowsListed(frozenset(), str(made))))
    assert 1 == len(book.notices())
    assert {} == book.state.runs


def test_a_patch_on_a_missing_object_ends_in_the_report_too() -> None:
    """The 404 of our own patch says the same as a DELETED event."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=[node("compile-and-test", "Running")]))
    run = book.state.runs["uid-gpu-test-k7m2"]
    end = ended(
        green(),
        version=999,
        meta={
            "annotations": book.cluster["gpu-test-k7m2"]["metadata"]["annotations"],
            "finalizers": ["gputest.bot/report"],
        },
    )
    del book.cluster["gpu-test-k7m2"]

    book.play(book.tell(WorkflowChanged(end)))

    assert run.gone
    assert 1 == len(book.notices())


def test_progress_is_coalesced_and_a_stage_is_not() -> None:
    """A changed reason waits for five seconds, a changed stage does not wait."""
    book = Playbook()
    waiting = node("gpu-warmup", "Pending", message="Unschedulable: 0/3 nodes")
    book.see(workflow_json(phase="Running", nodes=[waiting]))
    book.effects.clear()

    book.see(workflow_json(phase="Running", nodes=[waiting | {"message": "Unschedulable: 0/4 nodes"}]))
    assert not [e for e in book.effects if isinstance(e, EditCard)]
    assert NOW + SETTINGS.coalesce_seconds == book.wakes["run:uid-gpu-test-k7m2"]
    book.now += SETTINGS.coalesce_seconds
    book.play(book.tell(Woke("run:uid-gpu-test-k7m2")))
    assert 1 == len([e for e in book.effects if isinstance(e, EditCard)])
    book.see(workflow_json(phase="Running", nodes=[node("gpu-warmup", "Running")]))

    assert 2 == len([e for e in book.effects if isinstance(e, EditCard)])


def test_only_the_latest_state_is_sent_after_a_slow_edit() -> None:
    """While an edit is under way, what comes is kept, and only the last of it is shown."""
    book = Playbook()
    book.see(workflow_json())
    held = book.cluster["gpu-test-k7m2"]["metadata"]

    def seen(nodes: list) -> list:
        body = workflow_json(phase="Running", nodes=nodes)
        body["metadata"] |= {k: held[k] for k in ("annotations", "finalizers")}
        return book.tell(WorkflowChanged(book.write(body)))

    edit = seen([node("gpu-warmup", "Pending")])[0]
    assert [] == seen([node("gpu-warmup", "Running")])
    tests = [node("gpu-warmup", "Succeeded"), node("compile-and-test", "Running")]
    assert [FollowLog] == [type(effect) for effect in seen(tests)]
    after = book.tell(EffectDone(edit.id))

    assert [Stage.TESTING] == [e.card.stage for e in after if isinstance(e, EditCard)]


def test_a_late_older_event_changes_nothing() -> None:
    """The watch may bring what is older than the answer of our own patch."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=[node("compile-and-test", "Running")]))
    before = book.state.runs["uid-gpu-test-k7m2"].workflow

    book.tell(WorkflowChanged(workflow(version=1)))

    assert before == book.state.runs["uid-gpu-test-k7m2"].workflow


def test_busy_chat_is_waited_out_with_growing_pauses() -> None:
    """5, 10, 20, 30, 30 seconds; what the server asks for counts where it is longer."""
    book = Playbook()
    claim = book.tell(WorkflowChanged(book.write(workflow_json())))[0]
    post = book.tell(book.answer(claim))[0]
    waits = []
    for _ in range(5):
        effects = book.tell(EffectFailed(post.id, Trouble.BUSY, "busy"))
        waits.append(effects[0].when - book.now)
        book.now = effects[0].when
        post = book.tell(Woke("run:uid-gpu-test-k7m2"))[0]
    effects = book.tell(EffectFailed(post.id, Trouble.BUSY, "busy", retry_after=120.0))

    assert [5, 10, 20, 30, 30] == waits
    assert 120 == effects[0].when - book.now


def test_repeated_conflicts_slow_down() -> None:
    """A patch that loses six times in a row waits."""
    book = Playbook()
    effect = book.tell(WorkflowChanged(book.write(workflow_json())))[0]
    for _ in range(5):
        effect = book.tell(EffectFailed(effect.id, Trouble.CONFLICT, "lost", latest=book.read("gpu-test-k7m2")))[0]
        assert isinstance(effect, PatchWorkflow)

    effects = book.tell(EffectFailed(effect.id, Trouble.CONFLICT, "lost"))

    assert effects[0].when > book.now


def test_without_the_lease_nothing_is_said_and_with_it_everything_is() -> None:
    """A standby holds the state and stays silent; the lease makes it speak."""
    book = Playbook(leader=False)
    book.see(workflow_json(phase="Running", nodes=[node("compile-and-test", "Running")]))
    assert [] == book.effects

    book.play(book.tell(LeaseWon()))
    assert 1 == len(book.posts)
    book.tell(LeaseLost())
    book.effects.clear()
    book.see(ended_json(green()))
    assert [] == book.effects
    book.play(book.tell(LeaseWon()))

    assert 1 == len(book.notices())


def test_a_standby_forgets_what_the_leader_released() -> None:
    """Runs that are over are not held by those who do not speak."""
    leader, standby = Playbook(), Playbook(leader=False)
    standby.tell(WorkflowChanged(workflow(phase="Running")))
    assert 1 == len(standby.state.runs)
    leader.see(ended_json(green()))

    standby.tell(WorkflowChanged(leader.read("gpu-test-k7m2")))

    assert {} == standby.state.runs
    assert 1 == len(standby.state.ended)


def test_a_card_lost_with_its_thread_is_posted_again_before_the_notice() -> None:
    """The thread's root is gone when the notice is due."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=[node("compile-and-test", "Running")]))
    body = ended_json(green())
    body["metadata"] |= {k: v for k, v in book.cluster["gpu-test-k7m2"]["metadata"].items() if k != "resourceVersion"}
    effects = book.tell(WorkflowChanged(book.write(body)))
    while not isinstance(effects[0], SayInThread):
        effects = book.tell(book.answer(effects[0]))

    book.play(book.tell(EffectFailed(effects[0].id, Trouble.GONE, "deleted")))

    assert "post-uid-gpu-test-k7m2:2" in book.posts
    assert 1 == len(book.notices())
    assert not book.has_finalizer()


def test_a_run_that_is_seen_again_is_not_gone() -> None:
    """What said that it was missing was not the cluster: its end is said when it comes, and once."""
    book = Playbook()
    (claim,) = book.tell(
        WorkflowChanged(book.write(workflow_json(phase="Running", nodes=[node("gpu-warmup", "Running")])))
    )
    book.tell(book.answer(claim))
    run = book.state.runs["uid-gpu-test-k7m2"]
    run.gone = True

    book.play(book.tell(WorkflowChanged(book.read("gpu-test-k7m2"))))
    assert not run.gone


def test_a_card_that_can_never_be_changed_does_not_hold_its_end_back() -> None:
    """The server forbids late edits: the notice says how it ended, and the object is let go."""
    book = Playbook()
    book.see(workflow_json(phase="Running", nodes=[node("compile-and-test", "Running")]))
    body = ended_json(green())
    body["metadata"] |= {key: book.cluster["gpu-test-k7m2"]["metadata"][key] for key in ("annotations", "finalizers")}
    todo = book.tell(WorkflowChanged(book.write(body)))
    while not any(isinstance(effect, EditCard) for effect in todo):
        (effect,) = (e for e in todo if isinstance(e, PatchWorkflow))
        todo = book.tell(book.answer(effect))
    (edit,) = (effect for effect in todo if isinstance(effect, EditCard))
    book.play(book.tell(EffectFailed(edit.id, Trouble.FINAL, "the time to edit is over")))

    assert 1 == len(book.notices())
    assert not book.has_finalizer()
