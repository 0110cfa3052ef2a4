"""Stories of people who click, fill in forms, and try what they may not."""

from __future__ import annotations

import asyncio

from tests.phrases import ALL, green, results, suite
from tests.real.rig.pod_script import Exit, Outputs, Running, Wait
from tests.stories.stage import Stage, Transcript
from tests.stories.test_first_card import name, passing, uid, uids


def red(models: str = ALL) -> str:
    """Results in which dqn and kan failed."""
    failed = {"status": "failed", "failed_tests": ["loses_money"]}
    suites = [suite(m, **(failed if m in {"dqn", "kan"} else {})) for m in models.split(",")]
    return results([*suites, suite("shared", "core"), suite("shared", "bayesian")])


async def test_cancel_asks_once_more(stage: Stage) -> None:
    """Ben clicks Cancel on Anna's run: a form asks once more; then the card says who, and Anna is rung."""
    told = Transcript(stage)
    known = await uids(stage)
    stage.script("compile-and-test", [Running(), Wait("never")])
    await stage.start_bot()

    await stage.say("/gputest models=all epochs=5")
    run = await told.new_run(known)
    card = await told.card(uid(run), "testing", "compiling and testing")
    assert await stage.click(card, "cancel", who="ben") == ""
    form = await stage.dialog(who="ben")
    told.note("the form", f"{form['dialog']['title']}\n{form['dialog']['introduction_text']}")
    assert await stage.submit(form, {}, who="ben") in ({}, {"errors": None})
    card = await told.card(uid(run), "ended", "cancelled by ben")
    await told.thread(card, 1)

    body = await told.let_go(name(run))
    assert body["spec"]["shutdown"] == "Stop"
    told.matches("cancel_asks_once_more")


async def test_cancel_by_command(stage: Stage) -> None:
    """Anna stops her own run by a command: the card says so, and nobody is rung for what she knows."""
    told = Transcript(stage)
    known = await uids(stage)
    stage.script("compile-and-test", [Running(), Wait("never")])
    await stage.start_bot()

    await stage.say("/gputest dqn")
    run = await told.new_run(known)
    await told.card(uid(run), "testing", "compiling and testing")
    told.note("cancel", await stage.say("/gputest cancel"))
    card = await told.card(uid(run), "ended", "cancelled by anna")
    await told.let_go(name(run))
    await told.thread(card, 0)
    told.note("cancel again", await stage.say(f"/gputest cancel {name(run)}"))

    told.matches("cancel_by_command")


async def test_two_clicks_at_once_make_one_run(stage: Stage) -> None:
    """Rerun failed, clicked by two at the same moment: one run, of what failed, at the same commit."""
    told = Transcript(stage)
    known = await uids(stage)
    stage.script("compile-and-test", passing(red(), code=1))
    await stage.start_bot()

    await stage.say("/gputest models=all epochs=5 ref=main")
    run = await told.new_run(known)
    card = await told.card(uid(run), "ended", "2 of 10 failed")
    await told.let_go(name(run))
    stage.script("compile-and-test", passing(green("dqn,kan")))
    known = await uids(stage)
    await asyncio.gather(stage.click(card, "rerun"), stage.click(card, "rerun", who="ben"))
    rerun = await told.new_run(known)
    await told.card(uid(rerun), "the rerun", "all 2 green")
    # whose click came first is chance
    told.lines[-1] = told.lines[-1].replace("For ben", "For anna")
    await told.let_go(name(rerun))

    assert len(await uids(stage) - known) == 1
    asked = {p["name"]: p["value"] for p in rerun["spec"]["arguments"]["parameters"]}
    assert (asked["models"], asked["commit-ref"], asked["epochs"]) == ("dqn,kan", "3f2a9c1" + "0" * 33, "5")
    told.words["ben"] = "anna"  # it is the run of whoever was first
    told.matches("two_clicks_at_once")


async def test_who_may_not(stage: Stage) -> None:
    """Vera may look: her commands and clicks are refused, with the names of those who may."""
    told = Transcript(stage)
    known = await uids(stage)
    stage.script("compile-and-test", [Running(), Wait("vera"), Outputs({"results": red()}), Exit(1)])
    await stage.start_bot()

    told.note("/gputest all", await stage.say("/gputest all", who="vera"))
    told.note("/nightly enable", await stage.say("/nightly enable", who="vera"))
    assert await uids(stage) == known
    await stage.say("/gputest all ref=main")
    run = await told.new_run(known)
    card = await told.card(uid(run), "testing", "compiling and testing")
    told.note("Cancel, clicked", await stage.click(card, "cancel", who="vera"))
    told.note("/gputest cancel", await stage.say(f"/gputest cancel {name(run)}", who="vera"))
    await stage.release("vera")
    card = await told.card(uid(run), "ended", "2 of 10 failed")
    await told.let_go(name(run))
    told.note("Rerun, clicked", await stage.click(card, "rerun", who="vera"))
    told.note("/gputest ref=feature/x", await stage.say("/gputest ref=feature/x"))

    assert len(await uids(stage) - known) == 1
    told.matches("who_may_not")


async def test_the_form(stage: Stage) -> None:
    """`/gputest` alone opens a form with the defaults; what is wrong in it is said at its field."""
    told = Transcript(stage)
    known = await uids(stage)
    stage.script("compile-and-test", passing(green("dqn")))
    await stage.start_bot()

    assert await stage.say("/gputest") == ""
    form = await stage.dialog()
    told.note("fields", "\n".join(f"{e['name']}: {e['default']}" for e in form["dialog"]["elements"]))
    wrong = await stage.submit(form, {"models": "dqn,mamba", "epochs": 0, "ref": "main", "scope": "all"})
    told.note("wrong", "\n".join(f"{field}: {text}" for field, text in sorted(wrong["errors"].items())))
    assert await uids(stage) == known
    fine = await stage.submit(form, {"models": "dqn", "epochs": 2, "ref": "main", "scope": "lib", "notify": "true"})
    assert not fine.get("errors")
    run = await told.new_run(known)
    await told.card(uid(run), "ended", "1 model green")
    await told.let_go(name(run))

    asked = {p["name"]: p["value"] for p in run["spec"]["arguments"]["parameters"]}
    assert (asked["models"], asked["epochs"], asked["test-scope"]) == ("dqn", "2", "lib")
    told.matches("the_form")


async def test_rerun_by_command(stage: Stage) -> None:
    """`rerun failed` without a name takes what ended last; `rerun` takes all of it."""
    told = Transcript(stage)
    known = await uids(stage)
    stage.script("compile-and-test", passing(red("dqn,ppo"), code=1))
    await stage.start_bot()

    await stage.say("/gputest dqn ppo")
    run = await told.new_run(known)
    await told.card(uid(run), "ended", "1 of 2 failed")
    await told.let_go(name(run))
    stage.script("compile-and-test", passing(green("dqn")))
    known = await uids(stage)
    assert await stage.say("/gputest rerun failed") == ""
    rerun = await told.new_run(known)
    await told.card(uid(rerun), "the rerun", "1 model green")
    await told.let_go(name(rerun))
    told.note("rerun failed of a green run", await stage.say(f"/gputest rerun failed {name(rerun)}"))
    told.note("list", "\n".join((await stage.say("/gputest list")).splitlines()[:2]))

    told.matches("rerun_by_command")
