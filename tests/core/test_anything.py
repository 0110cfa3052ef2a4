"""Whatever is typed, and whatever the world does: the core answers once, claims nothing, and comes to the same end."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.core.card import card_of
from bot.core.effects import (
    Answer,
    CheckPosts,
    EditCard,
    Effect,
    OpenDialog,
    PatchWorkflow,
    PostCard,
    RemovePlaceholders,
    SayInThread,
    SetSuspend,
    SubmitWorkflow,
    WakeAt,
)
from bot.core.events import (
    Clicked,
    CommandTyped,
    DialogSubmitted,
    EffectDone,
    EffectFailed,
    Event,
    Installed,
    LeaseLost,
    LeaseWon,
    MarkersRead,
    Swept,
    Trouble,
    Woke,
    WorkflowChanged,
    WorkflowDeleted,
    WorkflowsListed,
)
from bot.core.memory import FINALIZER
from bot.core.progress import Marker
from bot.core.react import react, set_aside
from bot.core.render.card import render_card
from bot.core.render.post import MAX_MESSAGE
from bot.core.signing import Deed, Signed
from bot.core.state import State
from bot.core.workflow import Workflow
from tests.core.api_server import Refused, apply
from tests.core.render.test_card import mentions
from tests.core.test_command_lines import world
from tests.phrases import NOW, SETTINGS, green, node, outputs, results, suite, workflow_json

# --- people ---------------------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    "dqn ppo all -dqn mamba models= models=all epochs=5 epochs=x ref=main ref=@all pool=l4 cap=9 notify=no status list"
    " cancel rerun failed k7m2 m3x8 help enable disable reason= reason='@here' @all `@channel` | |---| # > ``` [x](http://y)"
    " warm cool h100 cost for=1h"
    " \n \n|a|b| ' \" = , -- — \u00a0 \u202e 🚀 \x00".split(" ")
)
LINES = st.one_of(st.text(max_size=120), st.lists(PIECES, max_size=8).map(" ".join), st.just("x" * 3000))


@given(st.sampled_from(["gputest", "nightly", "gpu", "deploy"]), LINES, st.sampled_from(["anna", "ian", "zoe", ""]))
@settings(max_examples=5 * settings.default.max_examples)
def test_whatever_is_typed_is_answered_once(trigger: str, text: str, who: str) -> None:
    """By one answer or one deed; an answer rings for nobody, breaks no line, and fits."""
    (effect,) = react(deepcopy(world()), CommandTyped("r1", trigger, text, who, who, "CHANNEL", trigger_id="T"), NOW)

    assert isinstance(effect, Answer | SubmitWorkflow | PatchWorkflow | SetSuspend | OpenDialog | RemovePlaceholders)
    if isinstance(effect, Answer):
        assert effect.text
        assert len(effect.text) <= MAX_MESSAGE
        assert set() == mentions(effect.text)
        assert not re.search(r"(?m)^\s*(\||#|>|```)", effect.text)
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", effect.text)


VALUES = st.dictionaries(
    st.sampled_from(["models", "epochs", "ref", "pool", "scope", "notify", "cap", "x"]), LINES, max_size=4
)


@given(VALUES, st.sampled_from(Deed), st.sampled_from(["anna", "ian", "zoe"]))
def test_whatever_a_form_holds_is_answered_once(values: dict[str, str], deed: Deed, who: str) -> None:
    """By errors at its fields, or one deed."""
    signed = Signed(deed, NOW, "CHANNEL", "anna", "anna", uid="uid-gpu-test-k7m2", short="k7m2")
    (effect,) = react(deepcopy(world()), DialogSubmitted("d1", signed, who, who, "CHANNEL", values), NOW)

    assert isinstance(effect, Answer | SubmitWorkflow | PatchWorkflow)
    if isinstance(effect, Answer):
        assert effect.errors
        assert all(text for _, text in effect.errors)


# --- the world ------------------------------------------------------------------------------------------------------

FIRST, SECOND = "2026-03-02T10:00:00Z", "2026-03-02T11:00:00Z"
TESTING = [node("gpu-warmup", "Succeeded"), node("compile-and-test", "Running")]
RED = results([suite("dqn", status="failed", failed_tests=["a"]), suite("shared", "core")])


def over(text: str, phase: str, start: str) -> dict[str, Any]:
    """A status that ended, with results."""
    tests = node("compile-and-test", phase, outputs=outputs(text))
    return status(phase, [node("gpu-warmup", "Succeeded"), tests], start)


def status(phase: str, nodes: list[dict[str, Any]], start: str = FIRST) -> dict[str, Any]:
    """A status as Argo writes it."""
    return workflow_json(phase=phase, nodes=nodes, startedAt=start)["status"]


LIVES: dict[str, list[dict[str, Any]]] = {
    "green": [
        status("Running", [node("gpu-warmup", "Pending")]),
        status("Running", TESTING),
        over(green(), "Succeeded", FIRST),
    ],
    "red at once": [over(RED, "Failed", FIRST)],
    "retried": [
        status("Running", TESTING),
        over(RED, "Failed", FIRST),
        status("Running", TESTING, SECOND),
        over(green(), "Succeeded", SECOND),
    ],
    "lost": [status("Running", TESTING), status("Error", [])],
}


@dataclass
class Cluster:
    """One run, a chat, and a bot between them; the test decides what happens when."""

    life: list[dict[str, Any]]
    state: State = field(init=False)
    body: dict[str, Any] = field(default_factory=lambda: workflow_json(version=1))
    log: list[Workflow] = field(default_factory=list)
    todo: list[Effect] = field(default_factory=list)
    wakes: dict[str, float] = field(default_factory=dict)
    now: float = NOW
    cards: dict[str, Any] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    doubles: int = 0
    ends: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.start()
        self.log.append(self.seen())

    def start(self) -> None:
        """A new process: what the old one had under way is gone."""
        self.state, self.todo, self.wakes = State(SETTINGS), [], {}
        self.tell(Installed(NOW - 86400))
        self.tell(LeaseWon())

    def seen(self) -> Workflow:
        """The object as it is now."""
        return msgspec.json.decode(json.dumps(self.body), type=Workflow)

    def tell(self, event: Event) -> None:
        """One event into the core; what it asks for is kept for later."""
        for effect in react(self.state, event, self.now):
            if isinstance(effect, WakeAt):
                self.wakes[effect.key] = effect.when
            else:
                self.todo.append(effect)

    def argo(self) -> None:
        """The controller writes the next status."""
        if self.life:
            self.body = deepcopy(self.body)
            self.body["status"] = self.life.pop(0)
            self.write()

    def write(self) -> None:
        """Store the object; the watch will show it some time."""
        self.body["metadata"]["resourceVersion"] = str(int(self.body["metadata"]["resourceVersion"]) + 1)
        now = self.seen()
        self.log.append(now)
        if now.ended:
            self.ends.add(now.attempt)

    def deliver(self, number: int) -> None:
        """The watch shows the object as it was at some time: late, twice, out of order."""
        self.tell(WorkflowChanged(self.log[number % len(self.log)]))

    def relist(self) -> None:
        """A new list after a gap: each object, then that it was all."""
        self.tell(WorkflowChanged(self.seen()))
        self.tell(WorkflowsListed(frozenset({self.seen().metadata.uid})))

    def wake(self) -> None:
        """Time passes until the next wake-up."""
        if self.wakes:
            key = min(self.wakes, key=lambda k: self.wakes[k])
            self.now = max(self.now, self.wakes.pop(key))
            self.tell(Woke(key))

    def perform(self, *, lost: bool = False, refused: bool = False) -> None:
        """The world does the next thing that is asked; the answer may be lost, or the thing be refused for a while."""
        if not self.todo:
            return
        effect = self.todo.pop(0)
        if not hasattr(effect, "id"):
            return
        answer = EffectFailed(effect.id, Trouble.BUSY, "busy") if refused else self.do(effect)
        self.tell(EffectFailed(effect.id, Trouble.UNCERTAIN, "no answer") if lost else answer)

    def do(self, effect: Effect) -> EffectDone | EffectFailed:
        """Do it, as the sinks do."""
        match effect:
            case PatchWorkflow():
                try:
                    self.body = apply(self.body, effect.patch)
                except Refused:
                    return EffectFailed(effect.id, Trouble.CONFLICT, "lost", latest=self.seen())
                self.body["metadata"]["resourceVersion"] = str(int(self.body["metadata"]["resourceVersion"]) - 1)
                self.write()
                return EffectDone(effect.id, self.seen())
            case PostCard():
                self.doubles += effect.key in self.cards and not effect.look_first
                self.cards.setdefault(effect.key, effect.card)
                return EffectDone(effect.id, f"post-{effect.key}")
            case EditCard():
                self.cards[effect.key] = effect.card
                return EffectDone(effect.id)
            case SayInThread():
                uid, attempt = effect.key.split(":", 1)
                assert attempt in self.ends, "a notice for a run that has not ended"
                self.said += [f"{attempt} {part}" for part, _ in effect.parts if f"{attempt} {part}" not in self.said]
                return EffectDone(effect.id)
            case CheckPosts():
                there = effect.key in self.cards
                return (
                    EffectDone(effect.id, f"post-{effect.key}") if there else EffectFailed(effect.id, Trouble.GONE, "")
                )
        raise AssertionError(f"a run asks for nothing of the kind: {effect}")

    def settle(self) -> None:
        """Everything that is still to come comes, and the world does what it is asked until it is quiet."""
        while self.life:
            self.argo()
        self.relist()
        for _ in range(400):
            if self.todo:
                self.perform()
            elif self.wakes:
                self.wake()
            else:
                break
        else:
            raise AssertionError("it never comes to rest")


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "argo",
                "argo",
                "deliver",
                "deliver",
                "perform",
                "perform",
                "perform",
                "lost",
                "refused",
                "relist",
                "wake",
                "start",
                "flap",
                "sweep",
                "last",
            ]
        ),
        st.integers(0, 50),
    ),
    max_size=40,
)


@given(st.sampled_from(sorted(LIVES)), STEPS)
@settings(max_examples=2 * settings.default.max_examples)
def test_whatever_happens_on_the_way_the_end_is_the_same(life: str, steps: list[tuple[str, int]]) -> None:
    """Late, doubled, reordered and lost events and answers, restarts, lost leases: one card, one notice an attempt."""
    cluster = Cluster(list(LIVES[life]))
    for step, number in steps:
        match step:
            case "argo":
                cluster.argo()
            case "deliver":
                cluster.deliver(number)
            case "last":
                cluster.deliver(-1)
            case "perform":
                cluster.perform()
            case "lost":
                cluster.perform(lost=True)
            case "refused":
                cluster.perform(refused=True)
            case "relist":
                cluster.relist()
            case "wake":
                cluster.wake()
            case "start":
                cluster.start()
            case "flap":
                cluster.tell(LeaseLost())
                cluster.tell(LeaseWon())
            case "sweep":
                cluster.tell(Swept())
    cluster.settle()
    final = cluster.seen()

    assert 1 == len(cluster.cards)
    assert 0 == cluster.doubles
    notices = [said for said in cluster.said if said.endswith(" notice")]
    assert 1 == notices.count(f"{final.attempt} notice")
    assert len(notices) == len(set(notices))
    assert not final.finalizers
    assert {} == cluster.state.runs
    (card,) = cluster.cards.values()
    assert card_of(final, SETTINGS).outcome == card.outcome


@given(st.sampled_from(sorted(LIVES)), st.lists(st.integers(0, 50), max_size=20))
def test_old_news_of_a_run_that_is_done_changes_nothing(life: str, numbers: list[int]) -> None:
    """The watch shows again what was: nothing is posted, said or held."""
    cluster = Cluster(list(LIVES[life]))
    cluster.settle()
    before = (dict(cluster.cards), list(cluster.said))
    for number in numbers:
        cluster.deliver(number)
    cluster.settle()

    assert before == (cluster.cards, cluster.said)
    assert 0 == cluster.doubles
    assert {} == cluster.state.runs


@given(STEPS)
def test_a_run_that_has_not_ended_has_no_notice(steps: list[tuple[str, int]]) -> None:
    """However long the bot looks at it."""
    cluster = Cluster([status("Running", [node("gpu-warmup", "Pending")]), status("Running", TESTING)])
    for step, number in steps:
        if step in {"argo", "deliver", "perform", "lost", "wake", "start"}:
            {"deliver": lambda n: cluster.deliver(n), "lost": lambda _: cluster.perform(lost=True)}.get(
                step, lambda _, s=step: getattr(cluster, s)()
            )(number)
    cluster.settle()

    assert [] == cluster.said
    assert FINALIZER in cluster.seen().finalizers
    assert 1 == len(cluster.cards)


def test_a_run_that_goes_is_said_to_have_gone_and_forgotten() -> None:
    """Its object was deleted by force: one notice, nothing written, and late news of it changes nothing."""
    cluster = Cluster([status("Running", TESTING)])
    cluster.settle()
    last = cluster.seen()
    cluster.ends.add(last.attempt)
    cluster.tell(WorkflowDeleted(last))
    while cluster.todo:
        cluster.perform()

    assert [f"{FIRST} notice"] == cluster.said
    assert {} == cluster.state.runs


# --- totality -------------------------------------------------------------------------------------------------------

NODES = st.lists(
    st.builds(
        lambda template, phase, message, kind, flag, text: node(
            template, phase, message=message, type=kind, nodeFlag=flag, **({"outputs": outputs(text)} if text else {})
        ),
        st.sampled_from(["gpu-warmup", "compile-and-test", "notify-result", "x.onExit", ""]),
        st.sampled_from(["", "Pending", "Running", "Succeeded", "Failed", "Error", "Skipped", "Omitted"]),
        st.sampled_from(
            [
                "",
                "Unschedulable: 0/3 nodes",
                "OOMKilled (exit code 137)",
                "workflow shutdown with strategy:  Stop",
                "@all\n|x|",
            ]
        ),
        st.sampled_from(["Pod", "Retry", "DAG", "Skipped"]),
        st.sampled_from([None, {"hooked": True}, {"retried": True}]),
        st.sampled_from([None, "", "{", green("dqn"), RED]),
    ),
    max_size=4,
)
TIMES = st.sampled_from([None, "", FIRST, SECOND, "0001-01-01T00:00:00Z", "soon"])
WORKFLOWS = st.builds(
    lambda name, phase, nodes, start, end, parameters, meta, spec, version: msgspec.json.decode(
        json.dumps(
            workflow_json(
                name,
                phase=phase,
                nodes=nodes,
                parameters=parameters,
                version=version,
                meta=meta,
                spec=spec,
                startedAt=start,
                finishedAt=end,
            )
        ),
        type=Workflow,
    ),
    st.sampled_from(["gpu-test-aaaa", "gpu-test-bbbb"]),
    st.sampled_from(["", "Pending", "Running", "Succeeded", "Failed", "Error"]),
    NODES,
    TIMES,
    TIMES,
    st.dictionaries(
        st.sampled_from(["models", "epochs", "commit-ref", "gpu-pool", "notify"]),
        st.sampled_from(["", "all", "dqn,zzz", "@all`|", "false"]),
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "deletionTimestamp": st.just(FIRST),
            "finalizers": st.sampled_from([None, [], [FINALIZER], ["x", FINALIZER]]),
            "annotations": st.dictionaries(
                st.sampled_from(["gputest.bot/run", "gputest.bot/request", "gputest.bot/cancelled"]),
                st.sampled_from(["", "{", "{}", "[]"]),
            ),
            "labels": st.dictionaries(
                st.sampled_from(["workflows.argoproj.io/cron-workflow", "gputest.bot/ci"]),
                st.sampled_from(["", "@all"]),
            ),
        },
    ),
    st.fixed_dictionaries({}, optional={"shutdown": st.sampled_from(["Stop", "Terminate", ""])}),
    st.integers(1, 30),
)
SIGNED = st.builds(
    Signed,
    st.sampled_from(Deed),
    st.just(NOW),
    st.just("CHANNEL"),
    st.sampled_from(["", "anna"]),
    uid=st.sampled_from(["uid-gpu-test-aaaa", "gone"]),
    attempt=st.sampled_from(["", FIRST]),
    ref=st.just("main"),
    parameters=st.sampled_from([{}, {"models": "dqn"}]),
)
EVENTS = st.one_of(
    st.builds(WorkflowChanged, WORKFLOWS),
    st.builds(WorkflowChanged, WORKFLOWS),
    st.builds(WorkflowDeleted, WORKFLOWS),
    st.builds(WorkflowsListed, st.frozensets(st.sampled_from(["uid-gpu-test-aaaa", "uid-gpu-test-bbbb"]))),
    st.just(Swept()),
    st.just(LeaseLost()),
    st.just(LeaseWon()),
    st.builds(Woke, st.sampled_from(["run:uid-gpu-test-aaaa", "run:gone", "ask:e1", ""])),
    st.builds(
        MarkersRead,
        st.sampled_from(["uid-gpu-test-aaaa", "gone"]),
        st.sampled_from(["", FIRST]),
        st.just((Marker("suite_started", model="@all|"), Marker("suite_finished", model="@all|", suite="`"))),
    ),
    st.builds(
        CommandTyped,
        st.text(max_size=2),
        st.just("gputest"),
        LINES,
        st.just("anna"),
        st.just("anna"),
        st.just("CHANNEL"),
    ),
    st.builds(Clicked, st.text(max_size=2), SIGNED, st.just("anna"), st.just("anna"), st.just("CHANNEL"), st.just("T")),
    st.sampled_from([None, *Trouble]),  # the world answers the oldest thing that was asked
    st.none(),
    st.none(),
)


@given(st.lists(EVENTS, max_size=25))
@settings(max_examples=2 * settings.default.max_examples)
def test_no_sequence_of_events_raises(events: list[Any]) -> None:
    """Objects as odd as can be, in any order, with any answers; and every card of it can be rendered."""
    state, now = State(SETTINGS), NOW
    react(state, Installed(NOW - 1e6), now)
    asked: list[Effect] = []
    answered = 0
    for event in [LeaseWon(), *events, LeaseWon(), *[None] * 15]:
        now += 1
        if not isinstance(event, Trouble | None):
            asked += react(state, event, now)
        elif answered < len(asked):
            answered += 1
            if hasattr(asked[answered - 1], "id"):
                asked += react(state, reply(asked[answered - 1], event, state), now)

    for effect in asked:
        if isinstance(effect, PostCard | EditCard):
            post = render_card(effect.card, SETTINGS)
            assert set() == mentions(post.message + post.text)
            assert len(post.message) <= MAX_MESSAGE
        if isinstance(effect, SayInThread):
            assert all(mentions(text) <= {"olga"} and len(text) <= MAX_MESSAGE for _, text in effect.parts)


def reply(effect: Any, trouble: Trouble | None, state: State) -> EffectDone | EffectFailed:
    """What the world says to it: done, with a value of the right kind, or why not."""
    if trouble is not None:
        return EffectFailed(effect.id, trouble, "@all")
    if isinstance(effect, PatchWorkflow):
        held = next((run.workflow for run in state.runs.values() if run.workflow.metadata.name == effect.name), None)
        try:
            body = apply(msgspec.to_builtins(held), effect.patch) if held is not None else workflow_json(effect.name)
        except Refused:
            return EffectFailed(effect.id, Trouble.CONFLICT, "lost", latest=held)
        return EffectDone(effect.id, msgspec.convert(body, Workflow))
    value: Any = {PostCard: "post", CheckPosts: "post"}.get(type(effect))
    if isinstance(effect, SubmitWorkflow):
        value = msgspec.convert(workflow_json(effect.name), Workflow)
    return EffectDone(effect.id, value)


@given(st.lists(EVENTS.filter(lambda e: not isinstance(e, Trouble | None)), max_size=10))
def test_what_can_not_be_digested_is_set_aside(events: list[Any]) -> None:
    """Any event can be; its run is left alone until the next sweep, and nothing else is."""
    state = State(SETTINGS, leader=True)
    for event in events:
        react(state, event, NOW)
        held = set(state.runs)
        set_aside(state, event)

        assert held - set(state.runs) <= set(state.aside)
        assert state.runs.keys().isdisjoint(state.aside)
