"""What a GPU test run looks like from inside its pods, for the demo: a build, suites of ten models, results.

Which suites there are follows the test matrix of the specification: library suites, integration suites where a model
has some, and two shared ones. A seed decides how long each takes and what fails; the same workflow name gives the
same run.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

from bot.demo.argo_spec import template_of
from bot.demo.chance import Chance
from bot.demo.pods import Action, Exit, Log, Outputs, Progress, Wait

Json = dict[str, Any]

MODELS = ("dqn", "ppo", "tft", "mamba2", "tggn", "tlob", "liquid", "kan", "xlstm", "diffusion")
GPU_NAMES = {
    "ci-training-h100": ("NVIDIA H100 80GB HBM3", "9.0"),
    "ci-training": ("NVIDIA L40S", "8.9"),
    "ci-compile": ("NVIDIA L4", "8.9"),
}
NO_TESTS = ("liquid", "diffusion")
"""Models without integration tests."""
_DQN = ("dqn-smoke", "dqn-pipeline", "dqn-smoke-train", "dqn-early-stop", "dqn-collapse")
_TESTS = (
    "forward_matches_cpu",
    "backward_matches_finite_differences",
    "loss_decreases",
    "early_stops_on_plateau",
    "loads_checkpoint",
    "batch_of_one",
    "gradients_are_finite",
    "deterministic_under_seed",
    "spline_grad_matches_cpu",
    "attention_mask_is_causal",
    "state_survives_reset",
    "walk_forward_windows",
)


def suites_of(model: str) -> list[tuple[str, str]]:
    """Suite and scope of a model, in the order in which they run."""
    if model == "dqn":
        return [("dqn-lib", "lib"), ("dqn-ml-lib", "lib"), *((suite, "integration") for suite in _DQN)]
    if model == "ppo":
        return [("ppo-lib", "lib"), ("ppo-barrier", "integration")]
    return [(f"{model}-lib", "lib"), (f"{model}-integ", "integration")]


SHARED = (("core", "lib"), ("bayesian", "integration"))


class DemoRuns:
    """Makes scripts for the pods of the demo's workflows."""

    def __init__(self, chance: Chance, failure_rate: float = 0.06) -> None:
        self.failure_rate = failure_rate
        """The chance of a suite to fail."""
        self.breaks_build = False
        self._chance = chance
        self._attempts: dict[str, int] = {}

    def script(self, pod: Json, workflow: Json | None) -> Iterator[Action]:
        """The actions of any pod: the test pod in full, others by a few plausible lines."""
        node = _node_of(pod, workflow)
        name = (node or {}).get("templateName", "")
        template = template_of(_spec(workflow), name) or {}
        declared = {one["name"] for one in (template.get("outputs") or {}).get("parameters") or ()}
        if "results" in declared:
            return self._test_run(workflow or {})
        if "warmup" in name:
            return iter([Log("GPU warmup: node scheduled"), Wait(1.0), Exit(0)])
        return iter([Log("nothing to do here but to end well"), Wait(3.0), Exit(0)])

    def _test_run(self, workflow: Json) -> Iterator[Action]:
        parameters = _parameters(workflow)
        name = workflow["metadata"]["name"]
        attempt = self._attempts[name] = self._attempts.get(name, 0) + 1
        dice = self._chance.stream(f"run/{name}/{attempt}")
        results = _blank_results(parameters, dice)
        yield from _checkout(results)
        yield from self._build(results, dice)
        failed = results["build"]["status"] != "passed"
        if not failed:
            planned = _planned(results["models"], results["scope"])
            for index, (model, suite, scope) in enumerate(planned):
                yield from self._suite(results, dice, model, suite, scope)
                yield Progress(index + 1, len(planned))
            failed = any(suite["status"] not in ("passed", "skipped") for suite in results["suites"])
        results["complete"] = True
        yield Outputs({"results": json.dumps(results, separators=(",", ":"))})
        yield from _summary(results)
        yield Exit(1 if failed else 0)

    def _build(self, results: Json, dice: random.Random) -> Iterator[Action]:
        yield _marker({"event": "compiling"})
        seconds = round(dice.uniform(290, 370), 1)
        crates = ("ml-core", "ml-regime", "ml-features", "ml-dqn", "ml-ppo", "ml-supervised", "ml")
        for crate in crates:
            yield Log(f"   Compiling {crate} v0.4.0 (/cargo-target/checkout/crates/{crate})")
            yield Wait(seconds / len(crates))
        if self.breaks_build:
            error = {"kind": "compile", "message": "mismatched types", "file": "crates/ml/src/kan.rs", "line": 212}
            results["build"] = {"status": "failed", "seconds": seconds, "errors": [error]}
            yield Log("error[E0308]: mismatched types")
            yield Log("   --> crates/ml/src/kan.rs:212:17")
            yield Log("error: could not compile `ml` (lib test) due to 1 previous error")
            return
        results["build"] = {"status": "passed", "seconds": seconds, "errors": []}
        yield Log(f"    Finished `test` profile [optimized] target(s) in {seconds:.2f}s")
        yield _marker({"event": "compiled", "seconds": seconds})

    def _suite(self, results: Json, dice: random.Random, model: str, suite: str, scope: str) -> Iterator[Action]:
        yield Log(f"=== Testing: {suite} ===")
        yield _marker({"event": "suite_started", "model": model, "suite": suite})
        outcome = _blank_suite(model, suite, scope)
        if scope == "integration" and model in NO_TESTS:
            outcome |= {"status": "skipped", "reason": "no tests", "exit_code": 101}
        else:
            yield from self._tests(outcome, dice)
        results["suites"].append(outcome)
        yield _marker({"event": "suite_finished", **outcome})

    def _tests(self, outcome: Json, dice: random.Random) -> Iterator[Action]:
        names = dice.sample(_TESTS, dice.randint(4, 9))
        broken = set(dice.sample(names, 1)) if dice.random() < self.failure_rate else set()
        seconds = dice.uniform(18, 95) if outcome["scope"] == "lib" else dice.uniform(40, 140)
        yield Log(f"running {len(names)} tests")
        for name in names:
            yield Wait(seconds / len(names))
            verdict = "FAILED" if name in broken else "ok"
            yield Log(f"test {outcome['model']}::{name} ... {verdict}")
        outcome |= {
            "status": "failed" if broken else "passed",
            "exit_code": 101 if broken else 0,
            "passed": len(names) - len(broken),
            "failed": len(broken),
            "ignored": dice.randint(0, 2),
            "filtered": dice.randint(0, 40),
            "seconds": round(seconds, 1),
            "failed_tests": [f"{outcome['model']}::{name}" for name in sorted(broken)],
            "tail": "".join(
                f"{name}: assertion `left == right` failed\n  left: 12\n right: 10\n" for name in sorted(broken)
            ),
        }
        yield Log(f"test result: {verdict_word(broken)}. {outcome['passed']} passed; {outcome['failed']} failed")


def verdict_word(broken: set[str]) -> str:
    """How libtest says it."""
    return "FAILED" if broken else "ok"


def make_results(
    *,
    models: tuple[str, ...] = MODELS,
    failed: dict[str, list[str]] | None = None,
    change: Callable[[Json], None] | None = None,
    **fields: Any,
) -> str:
    """A results document for tests: all suites pass but those named in `failed` (suite to names of failed tests)."""
    results = _blank_results({"models": ",".join(models)}, random.Random(0))
    results["build"] = {"status": "passed", "seconds": 312.0, "errors": []}
    for model, suite, scope in _planned(list(models), "all"):
        outcome = _blank_suite(model, suite, scope)
        bad = (failed or {}).get(suite, [])
        if scope == "integration" and model in NO_TESTS:
            outcome |= {"status": "skipped", "reason": "no tests", "exit_code": 101}
        else:
            outcome |= {
                "status": "failed" if bad else "passed",
                "exit_code": 101 if bad else 0,
                "passed": 12 - len(bad),
            }
            outcome |= {"failed": len(bad), "ignored": 1, "filtered": 7, "seconds": 41.0, "failed_tests": bad}
        results["suites"].append(outcome)
    results |= {"complete": True, **fields}
    if change is not None:
        change(results)
    return json.dumps(results, separators=(",", ":"))


def _planned(models: list[str], scope: str) -> list[tuple[str, str, str]]:
    planned = [(model, suite, kind) for model in models for suite, kind in suites_of(model) if scope in ("all", kind)]
    return planned + [("shared", suite, kind) for suite, kind in SHARED]


def _blank_suite(model: str, suite: str, scope: str) -> Json:
    counts = {"exit_code": 0, "passed": 0, "failed": 0, "ignored": 0, "filtered": 0, "seconds": 0.0}
    blank: Json = {"model": model, "suite": suite, "scope": scope, "status": "unknown", "reason": ""}
    return blank | counts | {"failed_tests": [], "tail": ""}


def _blank_results(parameters: dict[str, str], dice: random.Random) -> Json:
    wanted = parameters.get("models", "dqn,ppo,tft")
    models = list(MODELS) if wanted == "all" else [one.strip() for one in wanted.split(",") if one.strip() in MODELS]
    name, capability = GPU_NAMES.get(parameters.get("gpu-pool", ""), GPU_NAMES["ci-training-h100"])
    return {
        "version": 1,
        "ref": parameters.get("commit-ref", "main"),
        "commit": f"{dice.getrandbits(160):040x}",
        "models": models,
        "scope": parameters.get("test-scope", "all"),
        "epochs": int(parameters.get("epochs", "3") or 3),
        "gpu": {"name": name, "driver": "570.124.06", "compute_capability": capability},
        "build": {"status": "failed", "seconds": 0.0, "errors": []},
        "suites": [],
        "complete": False,
    }


def _checkout(results: Json) -> Iterator[Action]:
    yield Log(f"resolved {results['ref']} to {results['commit']}")
    yield _marker({"event": "resolved", "commit": results["commit"]})
    yield Log(f"GPU: {results['gpu']['name']}, driver {results['gpu']['driver']}")
    yield Wait(6.0)


def _summary(results: Json) -> Iterator[Action]:
    yield Log("=== GPU TEST RESULTS ===")
    for suite in results["suites"]:
        word = {"passed": "PASS", "skipped": f"SKIPPED ({suite['reason']})"}.get(suite["status"], "FAIL")
        yield Log(f"  {suite['suite']:<20} {word}")


def _marker(event: Json) -> Log:
    return Log("##gputest " + json.dumps(event, separators=(",", ":")))


def _parameters(workflow: Json) -> dict[str, str]:
    arguments = (_spec(workflow).get("arguments") or {}).get("parameters") or ()
    return {one["name"]: str(one.get("value", "")) for one in arguments}


def _node_of(pod: Json, workflow: Json | None) -> Json | None:
    identity = (pod["metadata"].get("annotations") or {}).get("workflows.argoproj.io/node-id", "")
    nodes: dict[str, Json] = ((workflow or {}).get("status") or {}).get("nodes") or {}
    return nodes.get(identity)


def _spec(workflow: Json | None) -> Json:
    found: Any = workflow or {}
    return (found.get("status") or {}).get("storedWorkflowTemplateSpec") or found.get("spec") or {}
