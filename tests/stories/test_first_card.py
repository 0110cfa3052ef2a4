"""The stories of the first card: from a line typed in the chat to one card, one notice, and a run that is let go."""

from __future__ import annotations

from typing import Any

from tests.phrases import ALL, green, results, suite
from tests.real.rig.pod_script import Exit, Outputs, Pending, Running, Wait
from tests.stories.stage import Stage, Transcript

NO_GPU = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."


def passing(text: str, gate: str | None = None, code: int = 0) -> list[Any]:
    """A test pod that runs, writes these results and ends."""
    waits = [Wait(gate)] if gate else []
    return [Running(), *waits, Outputs({"results": text}), Exit(code)]


async def uids(stage: Stage) -> set[str]:
    """The runs that are there."""
    return {w["metadata"]["uid"] for w in await stage.workflows()}


def uid(run: dict[str, Any]) -> str:
    return str(run["metadata"]["uid"])


def name(run: dict[str, Any]) -> str:
    return str(run["metadata"]["name"])


async def test_all_green(stage: Stage) -> None:
    """Typed in the chat, waiting for a GPU, warming up, testing, all ten green; the one who asked is rung once."""
    told = Transcript(stage)
    known = await uids(stage)
    stage.script("gpu-warmup", [Pending(NO_GPU), Wait("green-node"), Running(), Wait("green-warm"), Exit(0)])
    stage.script("compile-and-test", passing(green(), "green-tests"))
    await stage.start_bot()

    assert await stage.say("/gputest models=all epochs=5") == ""
    run = await told.new_run(known)
    await told.card(uid(run), "waiting", "No GPU is free")
    await stage.release("green-node")
    await told.card(uid(run), "warming up", "warming up")
    await stage.release("green-warm")
    await told.card(uid(run), "testing", "compiling and testing")
    await stage.release("green-tests")
    card = await told.card(uid(run), "ended", "all 10 green")
    await told.thread(card, 1)

    body = await told.let_go(name(run))
    asked = {p["name"]: p["value"] for p in body["spec"]["arguments"]["parameters"]}
    assert asked["models"] == ALL
    assert asked["epochs"] == "5"
    told.matches("all_green")


async def test_two_models_fail(stage: Stage) -> None:
    """Two red models: they come first on the card, each has its reply, the notice comes last."""
    told = Transcript(stage)
    known = await uids(stage)
    red = {"dqn": "early_stops_on_plateau", "kan": "spline_grad_matches_cpu"}
    suites = [
        suite(m, status="failed" if m in red else "passed", **({"failed_tests": [red[m]]} if m in red else {}))
        for m in ALL.split(",")
    ]
    suites += [
        suite("liquid", "liquid-integ", "skipped", scope="integration", reason="no tests"),
        suite("shared", "core"),
        suite("shared", "bayesian"),
    ]
    stage.script("compile-and-test", passing(results(suites), code=1))
    await stage.start_bot()

    await stage.say("/gputest all epochs=5")
    run = await told.new_run(known)
    card = await told.card(uid(run), "ended", "2 of 10 failed")
    await told.thread(card, 3)

    await told.let_go(name(run))
    told.matches("two_models_fail")


async def test_compile_error(stage: Stage) -> None:
    """It did not compile: no model is called red or green, the error is named with its place."""
    told = Transcript(stage)
    known = await uids(stage)
    error = {"kind": "compile", "message": "mismatched types", "file": "crates/ml/src/kan.rs", "line": 212}
    broken = results([], models=ALL.split(","), build={"status": "failed", "seconds": 61.0, "errors": [error]})
    stage.script("compile-and-test", passing(broken, code=1))
    await stage.start_bot()

    await stage.say("/gputest all")
    run = await told.new_run(known)
    card = await told.card(uid(run), "ended", "did not compile")
    await told.thread(card, 1)

    await told.let_go(name(run))
    told.matches("compile_error")


async def test_results_missing(stage: Stage) -> None:
    """Argo says Succeeded, and no results came: that is no pass, and it is said so."""
    told = Transcript(stage)
    known = await uids(stage)
    stage.script("compile-and-test", passing(""))
    await stage.start_bot()

    await stage.say("/gputest all")
    run = await told.new_run(known)
    card = await told.card(uid(run), "ended", "no verdict")
    await told.thread(card, 1)

    body = await told.let_go(name(run))
    assert body["status"]["phase"] == "Succeeded"
    told.matches("results_missing")


async def test_nightly(stage: Stage) -> None:
    """Enabled in the chat, started by Argo's own clock, reported, disabled."""
    told = Transcript(stage)
    known = await uids(stage)
    stage.script("compile-and-test", passing(green()))
    await stage.patch_cron("gpu-test-nightly", {"spec": {"suspend": True, "schedules": ["* * * * *"]}})
    await stage.start_bot()

    told.note("status", await stage.say("/nightly status"))
    told.note("enable", await stage.say("/nightly enable"))
    assert (await stage.patch_cron("gpu-test-nightly", {}))["spec"]["suspend"] is False
    run = await told.new_run(known, limit=75)
    told.note("disable", await stage.say("/nightly disable"))
    assert (await stage.patch_cron("gpu-test-nightly", {}))["spec"]["suspend"] is True
    card = await told.card(uid(run), "ended", "all 10 green")
    await told.thread(card, 1)

    await told.let_go(name(run))
    told.matches("nightly")


async def test_submitted_by_plain_api(stage: Stage) -> None:
    """Nobody typed it: a Workflow made by anybody gets its card all the same, and the owners are rung."""
    told = Transcript(stage)
    stage.script("compile-and-test", passing(green("dqn")))
    await stage.start_bot()

    run = await stage.create(
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": {"generateName": "by-hand-"},
            "spec": {
                "workflowTemplateRef": {"name": "gpu-test-pipeline"},
                "arguments": {"parameters": [{"name": "models", "value": "dqn"}]},
            },
        }
    )
    told.call(name(run))
    card = await told.card(uid(run), "ended", "1 model green")
    await told.thread(card, 1)

    await told.let_go(name(run))
    told.matches("by_plain_api")


async def test_bot_killed_in_mid_run(stage: Stage) -> None:
    """The bot is killed while the tests run and started again: the same card goes on, nothing is said twice."""
    told = Transcript(stage)
    known = await uids(stage)
    stage.script("compile-and-test", passing(green(), "killed-tests"))
    await stage.start_bot()

    await stage.say("/gputest models=all epochs=5")
    run = await told.new_run(known)
    before = await told.card(uid(run), "before the kill", "compiling and testing")
    await stage.kill_bot()
    await stage.release("killed-tests")
    await stage.start_bot()
    after = await told.card(uid(run), "ended", "all 10 green", limit=60)
    await told.thread(after, 1)

    assert before.id == after.id
    await told.let_go(name(run))
    told.matches("killed_in_mid_run")


async def test_refusals_start_nothing(stage: Stage) -> None:
    """What is wrong gets a clear answer and starts nothing."""
    told = Transcript(stage)
    known = await uids(stage)
    await stage.start_bot()

    for line in (
        "/gputest models=mamba",
        "/gputest models=all epochs=abc",
        "/gputest models=all epochs=0",
        "/gputest models=all epochs=101",
        '/gputest models="dqn epochs=5',
        "/gputest model=dqn epohcs=5",
        "/gputest ref=--upload-pack=x",
        "/nightly enabel",
    ):
        told.note(line, await stage.say(line))

    assert await uids(stage) == known
    told.matches("refusals")


async def test_help_and_status(stage: Stage) -> None:
    """What can be asked, and what runs."""
    told = Transcript(stage)
    known = await uids(stage)
    stage.script("compile-and-test", passing(green("dqn"), "status-tests"))
    await stage.start_bot()

    told.note("/gputest help", await stage.say("/gputest help"))
    told.note("/nightly help", await stage.say("/nightly help"))
    await stage.say("/gputest dqn")
    run = await told.new_run(known)
    await told.card(uid(run), "under way", "compiling and testing")
    short = name(run).rsplit("-", 1)[-1]
    told.note("/gputest status RUN", await stage.say(f"/gputest status {short}"))
    await stage.release("status-tests")
    await told.let_go(name(run))
    told.note("/gputest status RUN, ended", await stage.say(f"/gputest status {short}"))
    unknown = await stage.say("/gputest status zzzz")  # others may still be under way
    told.note("/gputest status zzzz", unknown.split(" I know")[0].removesuffix(" None is under way."))

    told.matches("help_and_status")
