"""The exit step of a GPU test run: the safety net that reports when the bot does not.

It first tells the bot that the run ended (a hint: the bot reads the Workflow itself and reports). Only where the bot
does not answer does it post a plain summary to the Mattermost incoming webhook, with the run's key in the post's props,
so that the bot, once back, finds it and does not say the same again. What it did goes out as the output parameter
`said`: yes, no or unknown.

Standard library only (it runs in a stock Python image), and it always exits 0: Argo fails a run whose exit handler
fails.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import socket
import ssl
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
TIMEOUT_SECONDS = 10.0
HINT_TRIES = 3
RED = ("failed", "broken", "timed_out", "killed", "unknown")
WORDS = {
    "passed": "passed",
    "skipped": "skipped (no tests)",
    "failed": "FAILED",
    "broken": "NOT BUILT",
    "timed_out": "TIMED OUT",
    "killed": "KILLED",
    "unknown": "UNKNOWN",
}
SHOWN_TESTS = 5


@dataclass(frozen=True)
class Run:
    """What the Workflow told this step about itself."""

    name: str
    namespace: str
    uid: str
    status: str
    models: str
    ref: str
    notify: bool
    results_json: str

    @classmethod
    def from_environment(cls, env: dict[str, str]) -> Run:
        """Read the run from the step's environment; only a plain `false` silences it."""
        return cls(
            name=env.get("GPUTEST_WORKFLOW", ""),
            namespace=env.get("GPUTEST_NAMESPACE", ""),
            uid=env.get("GPUTEST_UID", ""),
            status=env.get("GPUTEST_STATUS", ""),
            models=env.get("GPUTEST_MODELS", ""),
            ref=env.get("GPUTEST_REF", ""),
            notify=env.get("GPUTEST_NOTIFY", "true").strip().lower() != "false",
            results_json=env.get("GPUTEST_RESULTS_JSON", ""),
        )


def plain(text: object, limit: int = 120) -> str:
    """Make text from elsewhere safe for chat: one line, no markup, nobody is rung."""
    kept = re.sub(r"[^\w.,:+=/ ()\[\]-]", "?", str(text)).replace("\n", " ")
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"


def request(url: str, body: dict[str, Any] | None, token: str, context: ssl.SSLContext | None = None) -> bytes:
    """Send one JSON request and return the answer's body; raises OSError for everything but a 2xx."""
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    message = urllib.request.Request(url, data=data, headers=headers)
    with urllib.request.urlopen(message, timeout=TIMEOUT_SECONDS, context=context) as answer:
        return bytes(answer.read())


def read_workflow(run: Run, env: dict[str, str]) -> dict[str, Any]:
    """Read the run's own Workflow, for the attempt's start and this attempt's outputs; {} where that can't be had.

    The step's variables are not enough: after `argo retry` the global output still holds the attempt before.
    """
    host, port = env.get("KUBERNETES_SERVICE_HOST", ""), env.get("KUBERNETES_SERVICE_PORT", "443")
    account = Path(env.get("GPUTEST_ACCOUNT", ACCOUNT))
    try:
        token = (account / "token").read_text().strip()
        context = ssl.create_default_context(cafile=str(account / "ca.crt"))
        path = f"/apis/argoproj.io/v1alpha1/namespaces/{run.namespace}/workflows/{run.name}"
        found = json.loads(request(f"https://{host}:{port}{path}", None, token, context))
    except (OSError, ValueError) as error:
        print(f"own Workflow not read: {describe(error)}")
        return {}
    same = isinstance(found, dict) and found.get("metadata", {}).get("uid") == run.uid
    return found if same else {}


def describe(error: Exception) -> str:
    """Name an error without its text: a URL in it may be a secret."""
    code = getattr(error, "code", "")
    return f"{type(error).__name__} {code}".strip()


def results_of(run: Run, workflow: dict[str, Any]) -> dict[str, Any]:
    """Return the results of this attempt, or {} when it left none that can be read."""
    text = run.results_json
    nodes = workflow.get("status", {}).get("nodes") or {}
    if nodes:
        text = ""
        for node in nodes.values():
            for parameter in (node.get("outputs") or {}).get("parameters") or []:
                if parameter.get("name") == "results" and parameter.get("value"):
                    text = parameter["value"]
    try:
        results = json.loads(text)
    except ValueError:
        return {}
    return results if isinstance(results, dict) and isinstance(results.get("suites"), list) else {}


def verdict(statuses: list[str]) -> str:
    """Fold the suites of one model: the worst counts, and nothing at all is unknown."""
    for word in RED:
        if word in statuses:
            return word
    if "passed" in statuses:
        return "passed"
    return "skipped" if statuses and set(statuses) == {"skipped"} else "unknown"


def model_lines(results: dict[str, Any]) -> list[str]:
    """One line per model, the shared suites last, with the names of what failed."""
    suites: dict[str, list[dict[str, Any]]] = {model: [] for model in results.get("models", [])}
    for suite in results["suites"]:
        suites.setdefault(str(suite.get("model", "?")), []).append(suite)
    lines = []
    for model in sorted(suites, key=lambda name: name == "shared"):
        own = suites[model]
        word = verdict([str(suite.get("status")) for suite in own])
        line = f"- **{plain(model)}**: {WORDS.get(word, 'UNKNOWN')}"
        failed = [plain(name) for suite in own for name in suite.get("failed_tests", [])]
        reasons = [
            f"{plain(s.get('suite'))}: {plain(s['reason'])}" for s in own if s.get("reason") and s.get("status") in RED
        ]
        if failed:
            more = f" and {len(failed) - SHOWN_TESTS} more" if len(failed) > SHOWN_TESTS else ""
            line += f" ({', '.join(failed[:SHOWN_TESTS])}{more})"
        elif reasons:
            line += f" ({'; '.join(reasons[:SHOWN_TESTS])})"
        lines.append(line)
    return lines


def summary(run: Run, results: dict[str, Any]) -> str:
    """The post: what ended, the verdict from the results (never from a phase alone), one line per model."""
    head = f"**GPU test run {plain(run.name)}** of `{plain(run.ref)}`"
    foot = "_Posted by the run itself: the bot did not answer._"
    if not results:
        return f"{head}: {plain(run.status)}, no results (models {plain(run.models)})\n{foot}"
    statuses = [str(suite.get("status")) for suite in results["suites"]]
    word = verdict(statuses)
    if run.status != "Succeeded" and word in ("passed", "skipped"):
        word = "unknown"
    lines = [f"{head}: {WORDS.get(word, 'UNKNOWN')}"]
    if results.get("commit"):
        lines[0] += f", commit `{plain(results['commit'])[:12]}`"
    if not results.get("complete", False):
        lines.append(f"The run did not get to its end ({plain(run.status)}); what is listed was reached before that.")
    build = results.get("build") or {}
    errors = (build.get("errors") or [])[:SHOWN_TESTS]
    lines.extend(f"- build: {plain(error.get('message', ''))}" for error in errors)
    # without an empty line Markdown takes the foot for a part of the last item
    return "\n".join([*lines, *model_lines(results), "", foot])


def hint_bot(run: Run, url: str, token: str) -> bool:
    """Tell the bot that the run ended; True where it took the hint."""
    body = {"workflow": run.name, "uid": run.uid, "status": run.status}
    for attempt in range(HINT_TRIES):
        try:
            request(url, body, token)
        except (OSError, ValueError) as error:
            print(f"bot, try {attempt + 1}: {describe(error)}")
            if isinstance(error, urllib.error.HTTPError) and error.code < 500:
                return False
            if attempt + 1 < HINT_TRIES:
                time.sleep(attempt + 1)
        else:
            return True
    return False


def post(webhook: str, text: str, props: dict[str, str]) -> str:
    """Post through the incoming webhook; `unknown` where Mattermost may have taken it although no answer came."""
    try:
        request(webhook, {"text": text, "props": props}, "")
    except urllib.error.HTTPError as error:
        print(f"webhook: {describe(error)}")
        return "no" if error.code < 500 else "unknown"
    except (OSError, ValueError) as error:
        print(f"webhook: {describe(error)}")
        reason = getattr(error, "reason", error)
        never_sent = isinstance(reason, ConnectionRefusedError | socket.gaierror | ValueError)
        return "no" if never_sent else "unknown"
    return "yes"


def mark(secret: str, uid: str, attempt: str) -> str:
    """Show the bot that the post is the exit step's: anybody in the chat can give a post these props."""
    return hmac.digest(secret.encode(), f"gputest exit post 1\0{uid}\0{attempt}".encode(), "sha256").hex()


def report(run: Run, env: dict[str, str], said_file: Path) -> str:
    """Hint, and speak where nobody listens; the file says `unknown` for as long as a post is under way."""
    if hint_bot(run, env.get("GPUTEST_BOT_URL", ""), env.get("GPUTEST_EXIT_TOKEN", "")):
        return "no"
    webhook = env.get("GPUTEST_WEBHOOK_URL", "")
    if not run.notify or not webhook:
        print("nothing posted: " + ("notify=false" if not run.notify else "no webhook configured"))
        return "no"
    workflow = read_workflow(run, env)
    attempt = workflow.get("status", {}).get("startedAt") or ""
    props = {"gputest_uid": run.uid, "gputest_attempt": attempt}
    if secret := env.get("GPUTEST_EXIT_TOKEN", ""):
        props["gputest_mark"] = mark(secret, run.uid, attempt)
    text = summary(run, results_of(run, workflow))
    said_file.write_text("unknown")
    return post(webhook, text, props)


def main(env: dict[str, str]) -> int:
    """Report, write down what was said, and succeed whatever happened."""
    said_file = Path(env.get("GPUTEST_SAID", "/out/said"))
    try:
        said = report(Run.from_environment(env), env, said_file)
        said_file.write_text(said)
        print(f"said={said}")
    except Exception as error:  # noqa: BLE001 - the run's verdict must not hang on this step
        print(f"exit step: {describe(error)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(dict(os.environ)))
