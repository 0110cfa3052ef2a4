"""The stories of every other way to end: lost, killed, late, stopped, deleted, retried, and the chat or cluster away.

Whatever ends a run, its card tells the truth, its notice comes once, and the Workflow is let go.
"""

from __future__ import annotations

from typing import Any

from tests.phrases import green, results, suite
from tests.real.rig.pod_script import Exit, Hang, NodeLost, OOMKilled, Orphaned, Outputs, Pending, Running, Sleep, Wait
from tests.stories.stage import Stage, StoredCard, Transcript
from tests.stories.test_first_card import NO_GPU, name, passing, uid, uids

NO_STOCK = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
"""The scheduler looks again; with nothing new about a pod, Argo looks at its time limits every 20 minutes only."""

RED = results([suite("dqn", status="failed", failed_tests=["early_stops_on_plateau"]), suite("ppo"), suite("tft")])
BEGUN = results(
    [suite("dqn"), *(suite(m, status="unknown", reason="not reached") for m in ("ppo", "tft"))], complete=False
)
"""What the runner has written so far when something ends it at once."""

STOPPED = results(
    [
        suite("dqn"),
        suite("ppo", status="killed", reason="the run was stopped", exit_code=None),
        suite("tft", status="unknown", reason="not reached: the run was stopped"),
    ],
    complete=False,
)
"""What the runner writes when it is told to stop; its exit code is then 143."""


async def started(stage: Stage, told: Transcript, line: str = "/gputest dqn,ppo,tft") -> dict[str, Any]:
    """The bot runs, and Anna has started a run."""
    await stage.start_bot()
    known = await uids(stage)
    await stage.say(line)
    return await told.new_run(known)


async def under_test(told: Transcript, run: dict[str, Any], title: str = "testing") -> StoredCard:
    """The card says that the tests run."""
    return await told.card(uid(run), title, "compiling and testing")


async def phase(stage: Stage, run: dict[str, Any]) -> str:
    """What Argo calls it."""
    body = await stage.workflow(name(run))
    return str(((body or {}).get("status") or {}).get("phase"))


async def argo_ended(stage: Stage, run: dict[str, Any]) -> dict[str, Any]:
    """Argo has ended the run, whatever the bot does."""

    async def look() -> dict[str, Any] | None:
        body = await stage.workflow(name(run))
        return body if body and (body.get("status") or {}).get("phase") in {"Succeeded", "Failed", "Error"} else None

    found: dict[str, Any] = await stage.until("Argo has ended it", look)
    return found


async def reported(stage: Stage, run: dict[str, Any]) -> None:
    """The test pod has ended, and what it wrote until then is in the Workflow."""

    async def look() -> bool:
        nodes = (((await stage.workflow(name(run))) or {}).get("status") or {}).get("nodes") or {}
        outputs = [n.get("outputs") or {} for n in nodes.values() if n["templateName"] == "compile-and-test"]
        return any(each.get("parameters") and each.get("exitCode") for each in outputs)

    await stage.until("the results are in", look)


async def test_out_of_memory(stage: Stage) -> None:
    """The kernel kills the tests: what was reached is shown, nothing of it is a pass, and memory is named."""
    told = Transcript(stage)
    stage.script("compile-and-test", [Running(), Wait("oom"), Outputs({"results": BEGUN}), OOMKilled()])
    run = await started(stage, told)
    await under_test(told, run)

    await stage.release("oom")
    card = await told.card(uid(run), "ended", "no verdict")
    await told.thread(card, 1)

    await told.let_go(name(run))
    told.matches("out_of_memory")


async def test_one_model_does_not_build(stage: Stage) -> None:
    """The runner tests what builds beside what does not: one model is red, and nobody says that no test ran."""
    told = Transcript(stage)
    why = "mismatched types (crates/ml/src/kan.rs:212)"
    error = {"kind": "compile", "message": "mismatched types", "file": "crates/ml/src/kan.rs", "line": 212}
    text = results(
        [suite("dqn"), suite("kan", status="broken", reason=why)],
        build={"status": "failed", "seconds": 61.0, "errors": [error]},
    )
    stage.script("compile-and-test", passing(text, code=1))
    run = await started(stage, told, "/gputest dqn,kan")

    card = await told.card(uid(run), "ended", "1 of 2 failed")
    await told.thread(card, 2)

    await told.let_go(name(run))
    told.matches("one_model_does_not_build")


async def test_node_lost(stage: Stage) -> None:
    """The node goes with the pod: Argo says Error, and there are no results."""
    told = Transcript(stage)
    stage.script("compile-and-test", [Running(announced=False), Wait("lost"), NodeLost()])
    stage.script("notify-result", [Running(), Wait("lost-said"), Outputs({"said": "no"}), Exit(0)])
    run = await started(stage, told)
    await under_test(told, run)

    await stage.release("lost")
    await told.card(uid(run), "gone", "finishing")
    await stage.release("lost-said")
    card = await told.card(uid(run), "ended", "no verdict")
    await told.thread(card, 1)

    assert await phase(stage, run) == "Error"
    await told.let_go(name(run))
    told.matches("node_lost")


async def test_node_lost_and_pod_made_anew(stage: Stage) -> None:
    """The node goes and Argo makes the pod anew: the tests begin again on the same card, and one verdict is said."""
    told = Transcript(stage)
    stage.script("compile-and-test", [Running(), Wait("lost-once"), NodeLost()])
    run = await started(stage, told)
    await under_test(told, run)

    stage.script(
        "compile-and-test",
        [Pending(NO_GPU), Wait("new-node"), Running(), Wait("again"), *passing(green("dqn,ppo,tft"))],
    )
    await stage.release("lost-once")
    await told.card(uid(run), "waiting again", "No GPU is free")
    await stage.release("new-node")
    await under_test(told, run, "testing again")
    await stage.release("again")
    card = await told.card(uid(run), "ended", "all 3 green")
    await told.thread(card, 1)

    await told.let_go(name(run))
    told.matches("node_lost_made_anew")


async def test_node_lost_and_called_succeeded(stage: Stage) -> None:
    """The pod of a lost node is called Failed without an end of its containers, and Argo 3.7.3 the run Succeeded.

    4.0 believes that only of a pod whose containers ended well (inferFailedReason in operator.go), and says Failed.
    """
    told = Transcript(stage)
    stage.script("compile-and-test", [Running(announced=False), Wait("orphaned"), Orphaned()])
    run = await started(stage, told)
    await under_test(told, run)

    await stage.release("orphaned")
    card = await told.card(uid(run), "ended", "no verdict")
    await told.thread(card, 1)

    says = {"3.7": "Succeeded", "4.0": "Failed"}[stage.argo]
    assert await phase(stage, run) == says
    await told.let_go(name(run))
    told.matches(f"node_lost_{says.lower()}")


async def test_out_of_time(stage: Stage) -> None:
    """The run's deadline comes in the middle of the tests."""
    told = Transcript(stage)
    await stage.limits(run=4)
    stage.script("compile-and-test", [Running(), Outputs({"results": STOPPED}), Hang()])
    stage.script("notify-result", [Running(), Wait("late-said"), Outputs({"said": "no"}), Exit(0)])
    run = await started(stage, told)
    await under_test(told, run)

    await reported(stage, run)
    await stage.release("late-said")
    card = await told.card(uid(run), "ended", "out of time")
    await told.thread(card, 1)

    await told.let_go(name(run))
    told.matches("out_of_time")


async def test_never_got_a_gpu(stage: Stage) -> None:
    """No node ever takes the warm-up pod, and its timeout gives up: that is a verdict of its own."""
    told = Transcript(stage)
    await stage.limits(warmup=7)
    stage.script("gpu-warmup", [Pending(NO_GPU), Sleep(8), Pending(NO_STOCK), Hang()])
    run = await started(stage, told)
    await told.card(uid(run), "waiting", "No GPU is free")

    card = await told.card(uid(run), "ended", "never got")
    await told.thread(card, 1)

    await told.let_go(name(run))
    told.matches("never_got_a_gpu")


async def test_out_of_time_while_waiting_for_a_gpu(stage: Stage) -> None:
    """The run's deadline comes before a node does."""
    told = Transcript(stage)
    await stage.limits(run=7)
    stage.script("gpu-warmup", [Pending(NO_GPU), Sleep(8), Pending(NO_STOCK), Hang()])
    run = await started(stage, told)
    await told.card(uid(run), "waiting", "No GPU is free")

    card = await told.card(uid(run), "ended", "never got")
    await told.thread(card, 1)

    await told.let_go(name(run))
    told.matches("out_of_time_waiting")


async def test_warm_up_fails(stage: Stage) -> None:
    """The warm-up pod gets a node and fails on it: the reason is on the card, and the exit step has run."""
    told = Transcript(stage)
    stage.script("gpu-warmup", [Running(), Exit(1, "the driver does not answer")])
    run = await started(stage, told)

    card = await told.card(uid(run), "ended", "no verdict")
    await told.thread(card, 1)

    body = await told.let_go(name(run))
    exits = [n for n in body["status"]["nodes"].values() if n["displayName"].endswith(".onExit")]
    assert [n["phase"] for n in exits] == ["Succeeded"]
    assert body["status"]["phase"] == "Failed"
    told.matches("warm_up_fails")


async def test_stopped_with_kubectl(stage: Stage) -> None:
    """Somebody stops it while it tests: cancelled, with what was reached, and nothing called a pass."""
    told = Transcript(stage)
    stage.script("compile-and-test", [Running(), Outputs({"results": STOPPED}), Hang()])
    stage.script("notify-result", [Running(), Wait("stopped-said"), Outputs({"said": "no"}), Exit(0)])
    run = await started(stage, told)
    await under_test(told, run)

    await stage.shut_down(name(run), "Stop")
    await reported(stage, run)
    await stage.release("stopped-said")
    card = await told.card(uid(run), "ended", "cancelled")
    await told.thread(card, 1)

    await told.let_go(name(run))
    told.matches("stopped_with_kubectl")


async def test_terminated_in_the_queue(stage: Stage) -> None:
    """The second of two runs is terminated before it got the lock: Argo says Succeeded, the card says cancelled."""
    told = Transcript(stage)
    stage.script("compile-and-test", passing(green("dqn,ppo,tft"), "holds-the-lock"))
    first = await started(stage, told)
    await under_test(told, first)
    known = await uids(stage)
    await stage.say("/gputest kan")
    second = await told.new_run(known)
    await told.card(uid(second), "queued", "Waits for")

    await stage.shut_down(name(second), "Terminate")
    card = await told.card(uid(second), "ended", "cancelled")
    await told.thread(card, 1)

    assert await phase(stage, second) == "Succeeded"
    await told.let_go(name(second))
    await stage.release("holds-the-lock")
    await told.let_go(name(first))
    told.matches("terminated_in_the_queue")


async def test_terminated_while_the_exit_step_runs(stage: Stage) -> None:
    """Only the exit step was left: the tests' verdict stands, and the card says what happened."""
    told = Transcript(stage)
    stage.script("compile-and-test", passing(green("dqn,ppo,tft")))
    stage.script("notify-result", [Running(), Wait("never"), Exit(0)])
    run = await started(stage, told)
    await told.card(uid(run), "finishing", "finishing")

    await stage.shut_down(name(run), "Terminate")
    card = await told.card(uid(run), "ended", "all 3 green")
    await told.thread(card, 1)

    await told.let_go(name(run))
    told.matches("terminated_at_the_exit_step")


async def test_deleted_while_it_runs(stage: Stage) -> None:
    """Somebody deletes it: our finalizer holds it, it is ended, reported, and goes."""
    told = Transcript(stage)
    stage.script("compile-and-test", [Running(), Hang()])
    run = await started(stage, told)
    await under_test(told, run)

    await stage.delete(name(run))
    card = await told.card(uid(run), "ended", "cancelled")
    await told.thread(card, 1)

    async def gone() -> bool:
        return await stage.workflow(name(run)) is None

    await stage.until("the Workflow is gone", gone)
    told.matches("deleted_while_it_runs")


async def test_retried_after_its_report(stage: Stage) -> None:
    """`argo retry` of a run that was reported: the same card goes on, and the second end has a notice of its own."""
    told = Transcript(stage)
    stage.script("compile-and-test", passing(RED, code=1))
    run = await started(stage, told)
    before = await told.card(uid(run), "ended", "1 of 3 failed")
    await told.let_go(name(run))

    stage.script("compile-and-test", passing(green("dqn,ppo,tft"), "retried"))
    await stage.retry(name(run))
    await under_test(told, run, "retried")
    await stage.release("retried")
    after = await told.card(uid(run), "ended again", "all 3 green")
    await told.thread(after, 3)

    assert before.id == after.id
    await told.let_go(name(run))
    told.matches("retried_after_its_report")


async def test_retried_before_its_report(stage: Stage) -> None:
    """The chat refuses while the first end is due and `argo retry` comes: both ends are said on one card."""
    told = Transcript(stage)
    stage.script("compile-and-test", passing(RED, "fails", code=1))
    run = await started(stage, told)
    before = await under_test(told, run)

    await stage.archive_channel()
    await stage.release("fails")
    await argo_ended(stage, run)
    await journaled(stage, run)
    stage.script("compile-and-test", passing(green("dqn,ppo,tft"), "retried-early"))
    await stage.retry(name(run))
    await stage.restore_channel()
    after = await told.card(uid(run), "retried", "compiling and testing", limit=60)
    await told.thread(after, 1)
    await stage.release("retried-early")
    await told.card(uid(run), "ended", "all 3 green")
    await told.thread(after, 2)

    assert before.id == after.id
    await told.let_go(name(run))
    told.matches("retried_before_its_report")


async def test_retried_while_the_bot_is_away(stage: Stage) -> None:
    """An end that nobody saw left no trace in the Workflow: the card says that there was one."""
    told = Transcript(stage)
    stage.script("compile-and-test", passing(RED, "unseen", code=1))
    run = await started(stage, told)
    before = await under_test(told, run)

    await stage.kill_bot()
    await stage.release("unseen")
    await argo_ended(stage, run)
    stage.script("compile-and-test", passing(green("dqn,ppo,tft"), "retried-unseen"))
    await stage.retry(name(run))
    await stage.start_bot()
    await told.card(uid(run), "retried", "while I was away")
    await stage.release("retried-unseen")
    after = await told.card(uid(run), "ended", "all 3 green")
    await told.thread(after, 1)

    assert before.id == after.id
    await told.let_go(name(run))
    told.matches("retried_unseen")


async def test_resubmitted(stage: Stage) -> None:
    """`argo resubmit` makes another run: a card of its own, and Anna is not rung for what she did not ask."""
    told = Transcript(stage)
    stage.script("compile-and-test", passing(RED, code=1))
    run = await started(stage, told)
    first = await told.card(uid(run), "ended", "1 of 3 failed")
    await told.let_go(name(run))

    stage.script("compile-and-test", passing(green("dqn,ppo,tft")))
    other = await stage.resubmit(name(run))
    told.call(name(other))
    second = await told.card(uid(other), "resubmitted, ended", "all 3 green")
    (notice,) = await told.thread(second, 1)

    assert second.id != first.id
    assert "@anna" not in notice
    assert len(await stage.thread(first)) == 2
    await told.let_go(name(other))
    told.matches("resubmitted")


async def test_renamed_while_it_runs(stage: Stage) -> None:
    """Anna is called otherwise when her run ends, and Ben has her name: she is rung, and he is not."""
    told = Transcript(stage)
    stage.script("compile-and-test", passing(green("dqn,ppo,tft"), "renamed"))
    run = await started(stage, told)
    await told.card(uid(run), "testing", "compiling and testing")
    await stage.rename("anna", "anna.smith")
    await stage.rename("ben", "anna")
    try:
        await stage.release("renamed")
        card = await told.card(uid(run), "ended", "all 3 green")
        (notice,) = await told.thread(card, 1)
    finally:
        await stage.rename("ben", "ben")
        await stage.rename("anna", "anna")

    assert notice.startswith("@anna.smith ✅ ")
    await told.let_go(name(run))


async def test_two_in_the_queue(stage: Stage) -> None:
    """One build cache, one run at a time: the second card says for which run it waits, and goes on after it."""
    told = Transcript(stage)
    stage.script("compile-and-test", passing(green("dqn,ppo,tft"), "first"))
    first = await started(stage, told)
    await under_test(told, first)
    known = await uids(stage)
    await stage.say("/gputest kan")
    second = await told.new_run(known)
    await told.card(uid(second), "queued", "Waits for")

    stage.script("compile-and-test", passing(green("kan"), "second"))
    await stage.release("first")
    await told.card(uid(first), "the first ended", "all 3 green")
    await under_test(told, second, "the second goes on")
    await stage.release("second")
    card = await told.card(uid(second), "the second ended", "1 model green")
    await told.thread(card, 1)

    await told.let_go(name(second))
    told.matches("two_in_the_queue")


async def test_card_deleted_by_a_person(stage: Stage) -> None:
    """An admin deletes the card in mid-run: another one goes on in its place, and the end is said there."""
    told = Transcript(stage)
    stage.script("gpu-warmup", [Running(), Wait("card-deleted"), Exit(0)])
    stage.script("compile-and-test", passing(green("dqn,ppo,tft"), "card-back"))
    run = await started(stage, told)
    before = await told.card(uid(run), "warming up", "warming up")

    await stage.delete_post(before)
    await stage.release("card-deleted")
    after = await under_test(told, run, "testing, on another card")
    await stage.release("card-back")
    await told.card(uid(run), "ended", "all 3 green")
    await told.thread(after, 1)

    assert before.id != after.id
    await told.let_go(name(run))
    told.matches("card_deleted")


async def test_channel_archived_in_mid_run(stage: Stage) -> None:
    """Nothing can be written while the channel is archived; when it is back, the card tells the truth, once."""
    told = Transcript(stage)
    stage.script("compile-and-test", passing(green("dqn,ppo,tft"), "archived"))
    run = await started(stage, told)
    before = await under_test(told, run)

    await stage.archive_channel()
    await stage.release("archived")
    await argo_ended(stage, run)
    await refused(stage)
    await stage.restore_channel()
    after = await told.card(uid(run), "ended", "all 3 green", limit=60)
    await told.thread(after, 1)

    assert before.id == after.id
    await told.let_go(name(run))
    told.matches("channel_archived")


async def test_a_start_while_the_channel_is_archived(stage: Stage) -> None:
    """The bot serves what else there is, and shows the run as soon as the channel is back."""
    told = Transcript(stage)
    stage.script("compile-and-test", passing(green("dqn,ppo,tft"), "archived-start"))
    run = await started(stage, told)
    before = await under_test(told, run)

    await stage.stop_bot()
    await stage.archive_channel()
    await stage.start_bot()
    await stage.release("archived-start")
    await argo_ended(stage, run)
    await stage.restore_channel()
    after = await told.card(uid(run), "ended", "all 3 green", limit=60)
    await told.thread(after, 1)

    assert before.id == after.id
    await told.let_go(name(run))
    told.matches("channel_archived")


async def test_bot_put_out_of_the_channel_in_mid_run(stage: Stage) -> None:
    """The same for a bot that is removed from the channel and let in again."""
    told = Transcript(stage)
    stage.script("compile-and-test", passing(green("dqn,ppo,tft"), "put-out"))
    run = await started(stage, told)
    before = await under_test(told, run)

    await stage.put_bot_out()
    await stage.release("put-out")
    await argo_ended(stage, run)
    await refused(stage)
    await stage.let_bot_in()
    after = await told.card(uid(run), "ended", "all 3 green", limit=60)
    await told.thread(after, 1)

    assert before.id == after.id
    await told.let_go(name(run))
    told.matches("bot_put_out")


async def refused(stage: Stage) -> None:
    """The chat has refused the bot more than once, and the bot does not hammer at it."""

    async def twice() -> bool:
        return await stage.counted("gputest_effects_total", outcome="refused") >= 2

    await stage.until("two refusals", twice, limit=20)
    assert await stage.counted("gputest_effects_total", outcome="refused") < 5
    assert await stage.counted("gputest_events_set_aside_total") == 0


async def journaled(stage: Stage, run: dict[str, Any]) -> None:
    """The bot has written the end down in the Workflow."""

    async def look() -> bool:
        body = await stage.workflow(name(run))
        return body is not None and '"verdict"' in body["metadata"]["annotations"].get("gputest.bot/run", "")

    await stage.until("the end is journaled", look)


async def test_argo_restarted_in_mid_run(stage: Stage) -> None:
    """Argo's controller goes and comes back: the card goes on."""
    told = Transcript(stage)
    stage.script("compile-and-test", passing(green("dqn,ppo,tft"), "argo-restarted"))
    run = await started(stage, told)
    before = await under_test(told, run)

    await stage.restart("workflow-controller")
    await stage.release("argo-restarted")
    after = await told.card(uid(run), "ended", "all 3 green", limit=60)
    await told.thread(after, 1)

    assert before.id == after.id
    await told.let_go(name(run))
    told.matches("argo_restarted")


async def test_cluster_restarted_in_mid_run(stage: Stage) -> None:
    """The API server goes and comes back: watches and the Lease are taken up again, and nothing is said twice."""
    told = Transcript(stage)
    stage.script("compile-and-test", passing(green("dqn,ppo,tft"), "cluster-restarted"))
    run = await started(stage, told)
    before = await under_test(told, run)

    await stage.restart("kube-apiserver")
    await stage.release("cluster-restarted")
    after = await told.card(uid(run), "ended", "all 3 green", limit=60)
    await told.thread(after, 1)

    assert before.id == after.id
    await told.let_go(name(run))
    told.matches("cluster_restarted")


async def test_exit_step_spoke_while_the_bot_was_away(stage: Stage) -> None:
    """The bot is down when the run ends, and the exit step posts: the card catches up, and nobody is rung twice."""
    told = Transcript(stage)
    stage.script("compile-and-test", passing(RED, "spoken-tests", code=1))
    stage.script("notify-result", [Running(), Wait("spoken"), Outputs({"said": "yes"}), Exit(0)])
    run = await started(stage, told)
    await under_test(told, run)

    await stage.kill_bot()
    await stage.release("spoken-tests")
    assert await exit_step(stage, run) == "yes"
    told.note("the exit step", (await stage.said())[-1])
    await stage.release("spoken")
    await argo_ended(stage, run)
    await stage.start_bot()
    card = await told.card(uid(run), "ended", "1 of 3 failed", limit=60)
    await told.thread(card, 1)

    await told.let_go(name(run))
    assert len(await stage.thread(card)) == 1
    told.matches("exit_step_spoke")


async def test_exit_step_died_after_it_spoke(stage: Stage) -> None:
    """The exit step posts and its pod dies before it can say so: the bot looks, finds the post, and rings nobody."""
    told = Transcript(stage)
    stage.script("compile-and-test", passing(green("dqn,ppo,tft"), "dies-tests"))
    stage.script("notify-result", [Running(), Wait("dies"), Exit(137)])
    run = await started(stage, told)
    await under_test(told, run)

    await stage.kill_bot()
    await stage.release("dies-tests")
    assert await exit_step(stage, run) == "yes"
    await stage.release("dies")
    await argo_ended(stage, run)
    await stage.start_bot()
    card = await told.card(uid(run), "ended", "all 3 green", limit=60)

    await told.let_go(name(run))
    await told.thread(card, 0)
    told.matches("exit_step_died")


async def test_exit_step_did_not_speak(stage: Stage) -> None:
    """Nobody knows whether the exit step spoke, and no post of it is there: the notice is said."""
    told = Transcript(stage)
    stage.script("compile-and-test", passing(green("dqn,ppo,tft")))
    stage.script("notify-result", [Running(), Outputs({"said": "unknown"}), Exit(0)])
    run = await started(stage, told)

    card = await told.card(uid(run), "ended", "all 3 green")
    await told.thread(card, 1)

    await told.let_go(name(run))
    told.matches("exit_step_did_not_speak")


async def exit_step(stage: Stage, run: dict[str, Any]) -> str:
    """Wait for the exit step's pod, then let its program run."""

    async def there() -> bool:
        nodes = (((await stage.workflow(name(run))) or {}).get("status") or {}).get("nodes") or {}
        return any(n["displayName"].endswith(".onExit") and n["phase"] == "Running" for n in nodes.values())

    await stage.until("the exit step runs", there)
    return await stage.exit_step(name(run))
