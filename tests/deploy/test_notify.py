"""The exit step: a hint for the bot, and a word of its own only where the bot does not answer."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.core.signing import is_exit_post
from tests.deploy.api_rig import Web, serve

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "deploy/argo/notify"))
import notify  # noqa: E402

CLOSED = "http://127.0.0.1:9"


def suite(model: str, status: str, **more: Any) -> dict[str, Any]:
    """A suite of the results, as far as the step reads it."""
    return {"model": model, "suite": f"{model}-lib", "status": status, "failed_tests": [], "reason": "", **more}


RESULTS = {
    "version": 1, "commit": "a" * 40, "models": ["dqn", "ppo", "kan"], "complete": True,
    "build": {"status": "passed", "errors": []},
    "suites": [
        suite("dqn", "passed"), suite("ppo", "failed", failed_tests=["ppo::tests::one", "two `x` @channel"]),
        suite("kan", "passed"), suite("kan", "skipped", suite="kan-integ"), suite("shared", "passed"),
    ],
}  # fmt: skip


@pytest.fixture
def bot() -> Iterator[Web]:
    """The bot's exit endpoint."""
    with serve(Web()) as web:
        yield web


@pytest.fixture
def mattermost() -> Iterator[Web]:
    """Mattermost's incoming webhook."""
    with serve(Web()) as web:
        yield web


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses between tries are not waited for."""
    monkeypatch.setattr(notify.time, "sleep", lambda _: None)


def environment(said: Path, bot_url: str, webhook: str, **more: str) -> dict[str, str]:
    """The step's environment in the pod."""
    return {
        "GPUTEST_WORKFLOW": "gpu-test-abc", "GPUTEST_NAMESPACE": "foxhunt", "GPUTEST_UID": "uid-1", "GPUTEST_STATUS": "Failed",
        "GPUTEST_MODELS": "dqn,ppo,kan", "GPUTEST_REF": "main", "GPUTEST_RESULTS_JSON": json.dumps(RESULTS),
        "GPUTEST_NOTIFY": "true", "GPUTEST_SAID": str(said), "GPUTEST_BOT_URL": f"{bot_url}/exit",
        "GPUTEST_EXIT_TOKEN": "hush", "GPUTEST_WEBHOOK_URL": f"{webhook}/hooks/secret-key", **more,
    }  # fmt: skip


@pytest.fixture
def said(tmp_path: Path) -> Path:
    """Where the step writes its output parameter."""
    return tmp_path / "said"


def test_a_bot_that_answers_is_told_and_nothing_is_posted(bot: Web, mattermost: Web, said: Path) -> None:
    """The call carries the run and the secret; said is no."""
    assert notify.main(environment(said, bot.url, mattermost.url)) == 0

    [call] = bot.requests
    assert (call["method"], call["path"]) == ("POST", "/exit")
    assert call["body"] == {"workflow": "gpu-test-abc", "uid": "uid-1", "status": "Failed"}
    assert call["headers"]["Authorization"] == "Bearer hush"
    assert mattermost.requests == []
    assert said.read_text() == "no"


def test_without_the_bot_it_posts_once_with_the_runs_key(mattermost: Web, said: Path) -> None:
    """One line per model, the failed tests named, the uid in the props, nobody rung."""
    notify.main(environment(said, CLOSED, mattermost.url))

    [post] = mattermost.requests
    text = post["body"]["text"]
    props = post["body"]["props"]
    assert (props["gputest_uid"], props["gputest_attempt"]) == ("uid-1", "")
    assert is_exit_post(props["gputest_mark"], "hush", "uid-1", "")
    assert not is_exit_post(props["gputest_mark"], "hush", "uid-2", "")
    assert "- **dqn**: passed\n- **ppo**: FAILED (ppo::tests::one, two ?x? ?channel)\n- **kan**: passed" in text
    assert text.splitlines()[0].endswith("FAILED, commit `aaaaaaaaaaaa`")
    assert text.endswith("\n- **shared**: passed\n\n_Posted by the run itself: the bot did not answer._")
    assert said.read_text() == "yes"


@pytest.mark.parametrize("status", [401, 500, 503])
def test_a_bot_that_refuses_counts_as_away(bot: Web, mattermost: Web, said: Path, status: int) -> None:
    """A wrong secret must not silence a failed run."""
    bot.status = status
    notify.main(environment(said, bot.url, mattermost.url))

    assert len(mattermost.requests) == 1
    assert len(bot.requests) == (1 if status == 401 else notify.HINT_TRIES)


def test_notify_false_is_honoured(mattermost: Web, said: Path) -> None:
    """No post for that run, although the bot is away."""
    notify.main(environment(said, CLOSED, mattermost.url, GPUTEST_NOTIFY="false"))

    assert mattermost.requests == []
    assert said.read_text() == "no"


def test_without_a_webhook_nothing_is_said(said: Path) -> None:
    """The step succeeds all the same."""
    assert notify.main(environment(said, CLOSED, CLOSED, GPUTEST_WEBHOOK_URL="")) == 0
    assert said.read_text() == "no"


@pytest.mark.parametrize(("status", "word"), [(500, "unknown"), (404, "no")])
def test_an_answer_that_may_hide_a_post_is_unknown(mattermost: Web, said: Path, status: int, word: str) -> None:
    """After a 500 the post may be there; the bot has to look."""
    mattermost.status = status
    notify.main(environment(said, CLOSED, mattermost.url))

    assert said.read_text() == word


def test_a_mattermost_that_is_away_was_told_nothing(said: Path) -> None:
    """A refused connection carried no post."""
    notify.main(environment(said, CLOSED, CLOSED))

    assert said.read_text() == "no"


def test_while_the_post_is_under_way_the_file_says_unknown(
    mattermost: Web, said: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pod that dies between the post and the word leaves the honest one."""
    seen = []
    monkeypatch.setattr(notify, "post", lambda *_: seen.append(said.read_text()) or "yes")
    notify.main(environment(said, CLOSED, mattermost.url))

    assert seen == ["unknown"]


@pytest.mark.parametrize("text", ["", "{{workflow.outputs.parameters.results}}", "[]", '{"suites": 3}', "{"])
def test_missing_results_are_said_to_be_missing(mattermost: Web, said: Path, text: str) -> None:
    """The variable stays unresolved when the tests never ran; that is no pass, whatever the phase."""
    notify.main(environment(said, CLOSED, mattermost.url, GPUTEST_RESULTS_JSON=text, GPUTEST_STATUS="Succeeded"))

    text = mattermost.requests[0]["body"]["text"]
    assert "no results" in text
    assert "passed" not in text


def test_results_that_break_off_are_said_to(mattermost: Web, said: Path) -> None:
    """What was reached is listed, the rest is unknown."""
    cut = RESULTS | {
        "complete": False,
        "suites": [suite("dqn", "passed"), suite("ppo", "unknown", reason="not reached")],
    }
    notify.main(environment(said, CLOSED, mattermost.url, GPUTEST_RESULTS_JSON=json.dumps(cut)))

    text = mattermost.requests[0]["body"]["text"]
    assert "did not get to its end" in text
    assert "- **ppo**: UNKNOWN (ppo-lib: not reached)" in text
    assert "- **kan**: UNKNOWN" in text


def test_a_red_shared_suite_is_red_for_the_run(mattermost: Web, said: Path) -> None:
    """However green the models."""
    red = RESULTS | {
        "suites": [suite("dqn", "passed"), suite("ppo", "passed"), suite("kan", "passed"), suite("shared", "timed_out")]
    }
    notify.main(environment(said, CLOSED, mattermost.url, GPUTEST_RESULTS_JSON=json.dumps(red)))

    assert ": TIMED OUT" in mattermost.requests[0]["body"]["text"].splitlines()[0]


def test_a_retried_run_shows_this_attempts_results(
    mattermost: Web, said: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The global output survives a retry, the nodes do not: what the API shows goes before the variable."""
    node = {"outputs": {"parameters": [{"name": "results", "value": json.dumps(RESULTS | {"commit": "b" * 40})}]}}
    found = {"metadata": {"uid": "uid-1"}, "status": {"startedAt": "2026-03-02T10:00:00Z", "nodes": {"n": node}}}
    monkeypatch.setattr(notify, "read_workflow", lambda *_: found)
    notify.main(environment(said, CLOSED, mattermost.url))

    body = mattermost.requests[0]["body"]
    assert "commit `bbbbbbbbbbbb`" in body["text"]
    assert body["props"]["gputest_attempt"] == "2026-03-02T10:00:00Z"


def test_no_secret_is_printed(said: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither the token nor the webhook's address, which is a secret as well."""
    notify.main(environment(said, CLOSED, CLOSED))

    output = capsys.readouterr()
    assert "hush" not in output.out + output.err
    assert "secret-key" not in output.out + output.err


def test_it_never_fails(tmp_path: Path) -> None:
    """A failed exit handler would turn a passed run into a failed one."""
    assert notify.main({"GPUTEST_SAID": str(tmp_path / "no/such/folder/said"), "GPUTEST_BOT_URL": "no address"}) == 0
