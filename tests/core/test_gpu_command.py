"""`/gpu`: what is typed, and the exact answer to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bot.core.asking import COMMANDS
from bot.core.card import Card
from bot.core.commands.gpu import SPEC, Part, ShowGpus, parse
from bot.core.commands.spec import ShowHelp
from bot.core.effects import Answer
from bot.core.errors import UserError
from bot.core.events import CommandTyped, PoolsSeen
from bot.core.pools import Pools, observe
from bot.core.pools_view import view
from bot.core.render.pools import gpus
from bot.core.render.post import MAX_MESSAGE
from bot.core.settings import Pool, Role, Settings
from bot.core.sightings import NodeSeen, NodesListed, PodSeen, PodsListed, Source, SourceHidden, StatusSeen
from tests.core.playbook import Playbook
from tests.core.pool_phrases import (
    H100,
    L4,
    L40S,
    ONE_POOL,
    POOLS,
    THREE_POOLS,
    at,
    event,
    group,
    held,
    node,
    pod,
    run,
    status_text,
)
from tests.phrases import NOW, SETTINGS, workflow_json
from tests.phrases import node as step

CASES = Path(__file__).parents[1] / "cases"
NO_GPU = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."
NO_NODE = "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."
FINE = "✅ No scale-up error"
UNSEEN = "👁 Not visible here: the autoscaler's state. I go by nodes, pods, events and the runs."


def lines(
    pools: Pools, *cards: Card, settings: Settings = ONE_POOL, part: Part = Part.STATUS, now: float = NOW
) -> list[str]:
    """The answer without its title."""
    return gpus(part, view(pools, cards, settings, now), settings, now).split("\n")[1:]


def ask(book: Playbook, text: str, trigger: str = "gpu", user: str = "U1") -> str:
    """What the person who typed it reads."""
    command = CommandTyped(f"{text}-{len(book.effects)}", trigger, text, user, "anna", "CHANNEL")
    (effect,) = book.tell(command)
    assert isinstance(effect, Answer)
    return effect.text


# what is typed


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", Part.STATUS),
        ("  status ", Part.STATUS),
        ("STATUS", Part.STATUS),
        ("pools", Part.POOLS),
        ("pool", Part.POOLS),
        ("nodes", Part.POOLS),
        ("queue", Part.QUEUE),
        ("waiting", Part.QUEUE),
    ],
)
def test_words(text: str, part: Part) -> None:
    """One word, or none."""
    assert ShowGpus(part) == parse(text)


def test_help_and_examples() -> None:
    """Each line that the help shows is understood; the command is registered."""
    assert ShowHelp("gpu") == parse("help")
    assert SPEC in COMMANDS
    for line, _ in SPEC.examples:
        parse(line)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (
            "qeue",
            "🤔 No word `qeue`. Did you mean queue? I take status, pools, queue, warmup, cost or help; with a pool, warm or cool.\n`/gpu queue`",
        ),
        (
            "§§§",
            "🤔 No word `§§§`. I take status, pools, queue, warmup, cost or help; with a pool, warm or cool.\n`/gpu status`",
        ),
        (
            "status now",
            "🤔 I take one word: status, pools, queue, warmup, cost or help; with a pool, warm or cool.\n`/gpu status`",
        ),
        (
            "pool=l4",
            "🤔 I take one word: status, pools, queue, warmup, cost or help; with a pool, warm or cool.\n`/gpu status`",
        ),
        (
            "x`y",
            "🤔 No word `x'y`. I take status, pools, queue, warmup, cost or help; with a pool, warm or cool.\n`/gpu status`",
        ),
    ],
)
def test_what_is_not_understood(text: str, answer: str) -> None:
    """The nearest word is named, and a line to copy."""
    assert answer == ask(Playbook(), text)


@given(st.text(max_size=60))
def test_no_line_makes_anything_but_an_answer_or_a_refusal(text: str) -> None:
    """Nothing else can come of it."""
    try:
        parse(text)
    except UserError:
        pass


# through the core


def test_it_answers_whoever_asked_and_nothing_else_happens() -> None:
    """One ephemeral answer; a bot that does not lead answers as well."""
    book = Playbook(leader=False)

    assert ask(book, "").startswith("**GPUs, 10:06 UTC**\n⏳ Just started")
    assert ask(book, "help").startswith(
        "**/gpu** shows the GPUs: `/gpu [status | pools | queue | warmup | cost | warm POOL [for=] | cool POOL | help]`"
    )


def test_who_may_not_look_is_told_so() -> None:
    """The right is asked for before anything is shown; help is for everybody."""
    roles = (Role("nobody", users=("*",), may=()),)
    book = Playbook(settings=replace(SETTINGS, roles=roles))

    assert "**GPUs" not in ask(book, "pools")
    assert ask(book, "help").startswith("**/gpu**")


def test_a_run_is_told_by_its_short_name_and_who_asked() -> None:
    """From the pod's label to the run: the whole way through the core."""
    book = Playbook(settings=ONE_POOL)
    book.see(workflow_json(phase="Running", nodes=[step("compile-and-test", "Running")]))
    book.tell(PoolsSeen(NodesListed((node(),))))
    book.tell(PoolsSeen(PodsListed((pod(node="h100-a", workflow="gpu-test-k7m2"),), everywhere=True)))

    answer = ask(book, "status")

    assert "🔵 **H100** 1/1 node · 0 of 1 GPU free · **k7m2** (not from the chat)" in answer


# pools


def test_all_cold_and_nobody_waits() -> None:
    """One line for all of them."""
    assert ["⚪ All pools are cold, and nobody waits.", UNSEEN] == lines(held(), settings=THREE_POOLS)


def test_busy_warm_and_cold_pools() -> None:
    """Who uses what; where the largest size is known it stands beside the nodes."""
    pools = held(
        (node(), node("l4-a", L4)), (pod("p", node="h100-a", workflow="gpu-test-k7m2"),), status=status_text(group("x"))
    )
    observe(pools, PodSeen(pod("q", node="l4-a", pool=L4)), NOW - 600)
    observe(pools, PodSeen(pod("q", node="l4-a", pool=L4), gone=True), NOW - 360)

    assert [
        "🔵 **H100** 1/1 node · 0 of 1 GPU free · **k7m2** (anna)",
        "⚪ **L40S** 0/1 node · cold",
        "🟡 **L4** 1 node · warm, idle since 10:00 · 1 of 1 GPU free",
        FINE,
    ] == lines(pools, run(), settings=THREE_POOLS)


def test_two_runs_on_one_gpu() -> None:
    """Time-sliced: a share each of the same card."""
    shared = node(gpus=4, labels={"nvidia.com/gpu.sharing-strategy": "time-slicing"})
    pods = (
        pod("p", node="h100-a", workflow="gpu-test-k7m2"),
        pod("q", node="h100-a", workflow="gpu-test-j4t9"),
    )

    assert (
        "🔵 **H100** 1/1 node · 2 of 4 shares free · **k7m2** (anna), **j4t9** (ben)"
        == lines(held((shared,), pods), run(), run("gpu-test-j4t9", "ben"))[0]
    )


def test_others_who_use_gpus() -> None:
    """Pods that are no run of ours by their name, with the namespace where it is another; more than four are counted."""
    pods = (
        pod("p", node="h100-a", gpus=2, workflow="gpu-test-k7m2"),
        pod("train-0", node="h100-a", namespace="research"),
        pod("notebook", node="h100-a"),
        pod("w", node="h100-a", workflow="ci-abcde", namespace="foxhunt"),
        pod("x", node="h100-a"),
        pod("y", node="h100-a"),
    )

    assert (
        "🔵 **H100** 1/1 node · 1 of 8 GPUs free · **k7m2** (anna, 2 GPUs), `research/train-0`, `notebook`, `abcde`, 2 more"
        == lines(held((node(gpus=8),), pods), run())[0]
    )


def test_a_workflow_of_the_same_name_elsewhere_is_no_run_of_ours() -> None:
    """Names are unique in a namespace only."""
    pods = (pod("p", node="h100-a", workflow="gpu-test-k7m2", namespace="other"),)

    assert lines(held((node(),), pods), run())[0].endswith("· `other/k7m2`")


def test_runs_of_the_schedule_and_of_ci() -> None:
    """Who asked is said in a word."""

    def card(**labels: str) -> Card:
        return run(meta={"labels": labels, "annotations": {}}, name="gpu-test-k7m2")

    def who(card: Card) -> str:
        return lines(held((node(),), (pod(node="h100-a", workflow="gpu-test-k7m2"),)), card)[0].rsplit("· ", 1)[1]

    from bot.core.card import CI_LABEL, card_of
    from tests.phrases import workflow

    def labelled(**labels: str) -> Card:
        return card_of(workflow(meta={"labels": labels}), SETTINGS)

    assert "**k7m2** (nightly)" == who(labelled(**{"workflows.argoproj.io/cron-workflow": "gpu-test-nightly"}))
    assert "**k7m2** (push to main)" == who(labelled(**{CI_LABEL: "main"}))
    assert "**k7m2** (push)" == who(labelled(**{CI_LABEL: ""}))
    assert "**k7m2** (ada)" == who(labelled(**{"workflows.argoproj.io/creator-preferred-username": "ada"}))


@pytest.mark.parametrize(
    ("nodes", "line"),
    [
        ([node(ready="False")], "🟡 **H100** 1/1 node · not ready · 1 of 1 GPU free"),
        ([node(gpus=0)], "🟡 **H100** 1/1 node · up, its GPU is not there yet"),
        ([node(taints=[("node.cilium.io/agent-not-ready", "NoSchedule")])], "🟡 **H100** 1/1 node · still starting"),
        ([node(spec={"unschedulable": True})], "⛔ **H100** 1/1 node · cordoned"),
        ([node(taints=[("ToBeDeletedByClusterAutoscaler", "NoSchedule")])], "⛔ **H100** 1/1 node · being removed"),
        ([node(ready="Unknown")], "⛔ **H100** 1/1 node · does not answer"),
        (
            [node(), node("b", gpus=0), node("c", spec={"unschedulable": True}), node("d", gpus=0)],
            "🟡 **H100** 4/1 node · warm, idle · 1 cordoned · 2 up without a GPU yet",
        ),
    ],
)
def test_nodes_that_take_no_work(nodes: list, line: str) -> None:
    """They are said to be there, and what keeps them from it; their GPUs are not free."""
    found = lines(held(tuple(nodes)))[0]

    assert found.startswith(line.removesuffix(" · 1 of 1 GPU free"))
    if not any(each.state.value == "ready" for each in nodes):
        assert "free" not in found or found.endswith("0 of 1 GPU free")


def test_a_pod_that_can_not_start() -> None:
    """It holds a GPU while its image does not come, or while it ends, or while its node is gone."""
    image = {"containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ErrImagePull"}}}]}
    pods = (
        pod("p", node="h100-a", status=image),
        pod("q", node="h100-a", deleted=at("10:05")),
        pod("r", node="h100-gone"),
    )

    assert (
        "🔵 **H100** 1/1 node · 1 of 3 GPUs free · `p` ⚠️ the image can't be pulled, `q`, ending, `r` ⚠️ its node is gone"
        == lines(held((node(gpus=3),), pods))[0]
    )


def test_a_taint_that_nobody_tolerates() -> None:
    """The node is warm and free, and the pod says why it does not help."""
    tainted = node(taints=[("dedicated", "NoSchedule")])
    message = "0/1 nodes are available: 1 node(s) had untolerated taint {dedicated: }."
    refused = "pod didn't trigger scale-up: 1 node(s) had untolerated taint {dedicated: }"
    pools = held((tainted,), (pod("p", message=message),), (event("NotTriggerScaleUp", "p", refused),))

    assert [
        "🟡 **H100** 1/1 node · warm, idle · 1 of 1 GPU free",
        (
            "⏳ `p` waits for an H100 since 09:50 · the only node does not take it: it has the taint `dedicated` · no pool can"
            " bring a node that takes it: 1 group with the taint `dedicated`"
        ),
        UNSEEN,
    ] == lines(pools)
    assert "  - `h100-a`: ready · 0 of 1 used · taint `dedicated` · up since 08:00" in lines(pools, part=Part.POOLS)


def test_a_taint_that_the_scheduler_does_not_name() -> None:
    """From 1.34 on it only counts them: which it is can be seen on the nodes of the pool, less what the pod tolerates."""
    nodes = (
        node(taints=[("dedicated", "NoSchedule"), ("nvidia.com/gpu", "NoSchedule")]),
        node("b", L4, taints=[("other", "NoSchedule")]),
    )
    message = "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) didn't match Pod's node affinity/selector."
    tolerant = {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}
    pods = (pod("p", message=message, spec=tolerant), pod("q", message=message, spec=tolerant | {"nodeSelector": {}}))

    assert [
        "⏳ `p` waits for an H100 since 09:50 · none of the 2 nodes takes it: 1 has a taint (`dedicated`), 1 is of another kind",
        "⏳ `q` waits for a GPU since 09:50 · none of the 2 nodes takes it: 1 has a taint, 1 is of another kind",
    ] == lines(held(nodes, pods), part=Part.QUEUE)[:2]


def test_pools_of_one_gpu_and_nodes_of_none() -> None:
    """Two pools with the same card are told apart; nodes without the label are a pool of their own."""
    settings = replace(SETTINGS, pools=(Pool("a", "L4", "89"), Pool("b", "L4", "89")))
    pools = held((node("n", pool="b"), node("m", pool=""), node("z", pool="zz")))

    assert [
        "⚪ **L4** (a) 0 nodes · cold",
        "🟡 **L4** (b) 1 node · warm, idle · 1 of 1 GPU free",
        "🟡 **zz** 1 node · warm, idle · 1 of 1 GPU free",
        "🟡 **Nodes without a pool** 1 node · warm, idle · 1 of 1 GPU free",
    ] == lines(pools, settings=settings)[:4]


def test_a_pool_of_the_cluster_without_gpus_is_not_shown() -> None:
    """CPU nodes are nobody's business here."""
    assert ["⚪ All pools are cold, and nobody waits.", UNSEEN] == lines(held((node("cpu-1", "cpu", gpus=0),)))


def test_the_largest_size_by_the_autoscaler() -> None:
    """Where config.yaml does not know it, and all groups of the pool say it."""
    settings = replace(SETTINGS, pools=(Pool("p", "L4", "89", groups=("g", "h")),))

    assert "⚪ **L4** 0/5 nodes · cold" in lines(
        held(status=status_text(group("g"), group("h", largest=3))), settings=settings, part=Part.POOLS
    )
    nobody_knows = group("h")
    del nobody_knows["health"]["maxSize"]
    assert "⚪ **L4** 0 nodes · cold" in lines(
        held(status=status_text(group("g"), nobody_knows)), settings=settings, part=Part.POOLS
    )


# who waits


def test_a_cold_pool_that_comes_up() -> None:
    """The scheduler's reason, and that the autoscaler was asked."""
    asked = event("TriggeredScaleUp", "p", "pod triggered scale-up: [{g 0->1 (max: 1)}]", when=at("09:51"))
    pools = held((), (pod("p", message=NO_NODE, workflow="gpu-test-k7m2"),), (asked,))

    assert [
        "🟡 **H100** 0/1 node · a node is on its way",
        (
            "⏳ **k7m2** (anna) waits for an H100 since 09:50 · no node of the kind it asks for is up · scale-up asked 09:51"
            " (0→1)"
        ),
        UNSEEN,
    ] == lines(pools, run())


def test_a_pool_in_backoff() -> None:
    """Not on its way: the scale-up failed, and it is said why."""
    asked = event("TriggeredScaleUp", "p", "pod triggered scale-up: [{g 0->1 (max: 1)}]", when=at("09:51"))
    refused = event("NotTriggerScaleUp", "p", "pod didn't trigger scale-up: 1 in backoff after failed scale-up")
    status = status_text(
        group("7be2f9d4-aaaa-4bbb-8ccc-ddddeeeeffff", error=("QUOTA_EXCEEDED", "Quota 'H100S' exceeded."))
    )
    pools = held((), (pod("p", message=NO_NODE, workflow="gpu-test-k7m2"),), (asked, refused), status)

    assert [
        "⚪ **H100** 0/1 node · cold",
        (
            "⏳ **k7m2** (anna) waits for an H100 since 09:50 · no node of the kind it asks for is up · a scale-up failed, the"
            " autoscaler waits before it tries again"
        ),
        (
            "⚠️ **H100**: the provider's quota is used up (`QUOTA_EXCEEDED`: Quota 'H100S' exceeded), since 09:58; the autoscaler"
            " waits before it tries again"
        ),
    ] == lines(pools, run())


def test_a_scale_up_that_failed_for_a_pod() -> None:
    """Some providers tell the pod."""
    failed = event(
        "FailedScaleUp",
        "p",
        "Node scale up in zones eu-w4-a associated with this pod failed: GCE out of resources. Pod is at risk of not being"
        " scheduled.",
    )
    odd = event("FailedScaleUp", "q", "something else")
    pools = held((node(),), (pod("p", message=NO_GPU), pod("q", message=NO_GPU, created=at("09:55"))), (failed, odd))

    assert [
        (
            "⏳ `p` waits for an H100 since 09:50 · no GPU is free on the only node · ⚠️ the provider has none in stock (GCE out"
            " of resources)"
        ),
        "⏳ `q` waits for an H100 since 09:55 · no GPU is free on the only node · ⚠️ the scale-up failed (something else)",
    ] == lines(pools)[1:3]


def test_fresh_pods_and_messages_of_no_known_kind() -> None:
    """A pod that the scheduler has not looked at; one it has looked at by its event alone; odd words as they are."""
    pods = (
        pod("fresh", gpus=2),
        pod("by-event", pool=""),
        pod("odd", message="the moon is full", created=None),
    )
    notes = (
        event("FailedScheduling", "by-event", NO_GPU),
        event("NotTriggerScaleUp", "odd", "the moon is full"),
        event("TriggeredScaleUp", "by-event", "pod triggered scale-up"),
    )
    pools = held((), pods, notes)

    assert [
        "⏳ `odd` waits for an H100 · the moon is full · the moon is full",
        "⏳ `by-event` waits for a GPU since 09:50 · no GPU is free on the only node · scale-up asked 10:00",
        "⏳ `fresh` waits for 2 × H100 since 09:50 · the scheduler has not looked at it yet",
    ] == lines(pools, part=Part.QUEUE)[:3]


def test_pods_that_are_held_back() -> None:
    """Gated pods are no demand for a node: summed up in the short answer, by name in the long one."""
    gated = (pod("q", gpus=2, gates=["kueue.x-k8s.io/admission"]), pod("r", gates=["test"], created=at("09:55")))

    assert (
        "🚦 2 pods are held back before scheduling, 1 of them by Kueue: 3 GPUs, no node is asked for"
        == lines(held(pods=gated))[1]
    )
    assert (
        "🚦 1 pod is held back before scheduling, by Kueue: 2 GPUs, no node is asked for"
        == lines(held(pods=gated[:1]))[1]
    )
    assert "🚦 1 pod is held back before scheduling: 1 GPU, no node is asked for" == lines(held(pods=gated[1:]))[1]
    assert [
        "🚦 `q` is held back by Kueue, until it admits it · 2 GPUs",
        "🚦 `r` is held back by a scheduling gate · 1 GPU",
    ] == lines(held(pods=gated), part=Part.QUEUE)[:2]


def test_runs_that_wait_for_other_runs() -> None:
    """They have no pod yet: behind whom, in the order in which they came."""
    cards = [
        run("gpu-test-aaaa", phase="Running", nodes=[step("compile-and-test", "Running")]),
        run("gpu-test-bbbb", "ben", phase="Pending", message="Waiting for foxhunt/Mutex/x lock. Lock status: 0/1"),
        run("gpu-test-cccc", "cleo"),
        *(run(f"gpu-test-d{number}", "dora") for number in range(4)),
    ]

    found = lines(held(), *cards)

    assert [
        "🕓 **bbbb** (ben) is queued since 10:00 behind aaaa",
        "🕓 **cccc** (cleo) is queued since 09:59 behind aaaa, bbbb",
        "🕓 **d0** (dora) is queued since 09:59 behind aaaa, bbbb, cccc",
        "🕓 **d1** (dora) is queued since 09:59 behind aaaa, bbbb, cccc and 1 more",
        "🕓 **d2** (dora) is queued since 09:59 behind aaaa, bbbb, cccc and 2 more",
        "🕓 and 1 more: `/gpu queue`",
    ] == found[1:7]
    assert "🕓 **cccc** (cleo) is queued since 09:59" == lines(held(), cards[2])[1]
    assert (
        "🕓 **bbbb** (ben) is queued since 10:00 · too many workflows"
        == lines(held(), run("gpu-test-bbbb", "ben", phase="Pending", message="too many workflows"))[1]
    )


def test_many_that_wait() -> None:
    """Five in the short answer, thirty in the long one; the rest is counted."""
    pods = tuple(pod(f"p{number:02d}", message=NO_GPU) for number in range(33))

    assert "⏳ and 28 more: `/gpu queue`" == lines(held(pods=pods))[6]
    queue = lines(held(pods=pods), part=Part.QUEUE)
    assert (31, "and 3 more") == (len(queue[:31]), queue[30])


def test_nobody_waits() -> None:
    """It is said."""
    assert ["Nobody waits.", UNSEEN] == lines(held(), part=Part.QUEUE)


# the autoscaler


def test_case_b01() -> None:
    """Both groups with their counts; the backoff with its reason, shortened, in a cluster that calls itself healthy."""
    status = next(yaml.safe_load_all((CASES / "b01.yaml").read_text(encoding="utf-8")))["data"]["status"]
    alias = replace(SETTINGS, pools=(Pool("gpu-l4", "L4", "89", groups=("gke-demo-gpu-l4-9b1c77aa-grp",)),))

    assert [
        "⚪ **L4** 0/4 nodes · cold",
        (
            "  - autoscaler: 0/1 ready · target 2 · 0 to 4 nodes · 1 without its GPU · 1 not registered · ⚠️ the provider's quota"
            " is used up (`QUOTA_EXCEEDED`: Quota 'NVIDIA\\_L4\\_GPUS' exceeded; Limit: 1.0 in region us-central1), since 09:58"
        ),
        "",
        "Groups of the autoscaler whose pool I don't know (`groups` of a pool in config.yaml tells):",
        "  - `gke-demo-cpu-40ce0341-grp`: 3/3 ready · 1 to 10 nodes",
    ] == lines(held(status=status), settings=alias, part=Part.POOLS)
    assert (
        "⚠️ **L4**: the provider's quota is used up (`QUOTA_EXCEEDED`: Quota 'NVIDIA\\_L4\\_GPUS' exceeded; Limit: 1.0 in"
        " region us-central1), since 09:58; the autoscaler waits before it tries again"
        in lines(held(status=status), settings=alias)
    )


def test_case_b03() -> None:
    """Without an alias the empty group shows by its short UUID; with one it is the pool's."""
    documents = list(yaml.safe_load_all((CASES / "b03.yaml").read_text(encoding="utf-8")))
    pools = held(status=documents[0]["data"]["status"])
    unnamed = replace(SETTINGS, pools=(Pool(H100, "H100", "90"),))
    error = "the scale-up failed (`creation_error`: scaleway node could not be created)"

    assert [
        "⚪ **H100** 0 nodes · cold",
        "Groups of the autoscaler whose pool I don't know (`groups` of a pool in config.yaml tells):",
        "  - `5a1d0c0e`: 1/1 ready · 1 to 3 nodes",
        f"  - `7be2f9d4`: 0/0 ready · 0 to 2 nodes · ⚠️ {error}",
    ] == lines(pools, settings=unnamed, part=Part.POOLS)
    assert f"⚠️ group `7be2f9d4`: {error}, since 10:06; the autoscaler waits before it tries again" in lines(
        pools, settings=unnamed
    )
    assert f"  - autoscaler: 0/0 ready · 0 to 2 nodes · ⚠️ {error}" in lines(pools, part=Part.POOLS)


def test_an_error_that_is_over() -> None:
    """It is told for a day, with its begin and its end."""
    broken = group("7be2f9d4-aaaa-4bbb-8ccc-ddddeeeeffff", error=("", "no capacity"))
    pools = held(status=status_text(broken))
    observe(pools, StatusSeen(status_text(group("g"), written="2026-03-02 10:16:00 +0000 UTC")), NOW + 600)

    over = "✅ **H100**, over by 10:16: ~~the provider has none in stock (no capacity)~~ at 09:58"
    assert over in lines(pools, now=NOW + 600)
    assert over in lines(pools, now=NOW + 600, part=Part.POOLS)
    tomorrow = NOW + 23 * 3600
    later = over.replace("09:58", "Mon 2 Mar 09:58").replace("10:16", "Mon 2 Mar 10:16")
    assert later in lines(pools, now=tomorrow)
    assert not any(line.startswith("✅ **H100**") for line in lines(pools, now=NOW + 25 * 3600))


def test_an_error_known_by_an_event_only() -> None:
    """Where the autoscaler's own account is not visible; nothing is known of its end."""
    failed = event("FailedToScaleUpGroup", "s", f"Scale-up failed for group {H100}: quota exceeded", kind="ConfigMap")

    assert "⚠️ **H100**: the provider's quota is used up (quota exceeded), since 10:00" in lines(held(notes=(failed,)))
    assert "⚠️ **H100**: the provider's quota is used up (quota exceeded), since 10:00" in lines(
        held(notes=(failed,)), part=Part.POOLS
    )


def test_the_reason_of_an_event_outlives_a_status_without_one() -> None:
    """The text form says that a group is in backoff, an event said why."""
    failed = event("FailedToScaleUpGroup", "s", f"Scale-up failed for group {H100}: quota exceeded", kind="ConfigMap")
    text = (
        "Cluster-autoscaler status at 2026-03-02 10:05:55 +0000 UTC:\nCluster-wide:\n  Health: Healthy (ready=1)\n"
        f"NodeGroups:\n  Name: {H100}\n  Health: Healthy (ready=0)\n  ScaleUp: Backoff (ready=0)\n"
    )

    assert (
        "⚠️ **H100**: the provider's quota is used up (quota exceeded), since 10:00; the autoscaler waits before it tries"
        " again" == lines(held(notes=(failed,), status=text))[-1]
    )


def test_the_autoscalers_last_word_counts_and_not_for_ever() -> None:
    """A refusal of the same second counts; a scale-up that was asked for half an hour ago brings nothing any more."""
    asked = event("TriggeredScaleUp", "p", "pod triggered scale-up: [{g 0->1 (max: 1)}]")
    refused = event("NotTriggerScaleUp", "p", "pod didn't trigger scale-up: 1 max node group size reached")
    waiting = (pod("p", message=NO_NODE),)

    assert lines(held(pods=waiting, notes=(asked,)))[0].endswith("a node is on its way")
    assert lines(held(pods=waiting, notes=(asked,)), now=NOW + 1800)[0].endswith("cold")
    assert lines(held(pods=waiting, notes=(replace(asked, at=None),)))[0].endswith("a node is on its way")
    assert "the pool is as large as it may get" in lines(held(pods=waiting, notes=(asked, refused)))[1]


def test_groups_in_all_their_states() -> None:
    """Growing, unhealthy, silent."""
    growing = group("g1", ready=1, target=2)
    sick = group("g2") | {
        "health": {
            "status": "Unhealthy",
            "nodeCounts": {"registered": {"ready": 1, "notStarted": 2, "unready": {"total": 3}}, "longUnregistered": 4},
        }
    }
    silent = {"name": "g3"}
    settings = replace(SETTINGS, pools=(Pool("p", "L4", "89", groups=("g1",)),))

    found = lines(held(status=status_text(growing, sick, silent)), settings=settings, part=Part.POOLS)

    assert [
        "🟡 **L4** 0/2 nodes · a node is on its way",
        "  - autoscaler: 1/1 ready · target 2 · 0 to 2 nodes · scaling up",
    ] == found[:2]
    assert [
        "  - `g2`: 1/1 ready · 3 not ready · 2 starting · 4 not registered for long · ⚠️ unhealthy",
        "  - `g3`: it says nothing",
    ] == found[4:6]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("nonsense: [", "⚠️ I can't read the autoscaler's status: it is neither of the two known forms."),
        (
            "autoscalerStatus: Running\nnodeGroups: [{name: g}, 1]",
            "⚠️ I can't read the autoscaler's status: 1 of 2 groups have no name. What I could read of it is above.",
        ),
        ("autoscalerStatus: Initializing", "⏳ The autoscaler is starting."),
        (
            "time: 2026-03-02 09:00:00 +0000 UTC\nautoscalerStatus: Running",
            "⚠️ The autoscaler's status is from 09:00: it may not be running.",
        ),
        ("autoscalerStatus: Running", FINE),
    ],
)
def test_how_far_the_autoscalers_account_can_be_trusted(text: str, line: str) -> None:
    """What can't be read is said to be so; an old account is no account."""
    assert line == lines(held(status=text))[-1]


# what is not visible


def test_nothing_seen_yet() -> None:
    """A bot that has just started says so."""
    assert [
        "⏳ Just started: nodes and pods and events and autoscaler not seen yet.",
    ] == lines(Pools())


def test_nothing_visible_at_all() -> None:
    """The runs are all there is; Argo repeats the scheduler's words."""
    pools = held(hidden=tuple(Source))
    waiting = run(phase="Running", nodes=[step("gpu-warmup", "Pending", message=f"Unschedulable: {NO_GPU}")])
    testing = run("gpu-test-j4t9", "ben", phase="Running", nodes=[step("compile-and-test", "Running")])

    assert [
        "❔ **H100** up to 1 node · **j4t9** (ben)",
        "⏳ **k7m2** (anna) waits for an H100 since 10:01 · no GPU is free on the only node",
        "👁 Not visible here: nodes, pods, events and the autoscaler's state. I go by the runs.",
    ] == lines(pools, testing, waiting)


def test_only_our_namespace_is_visible() -> None:
    """A GPU that nobody of ours uses is not called free."""
    pools = held((node(), node("l4", L4, gpus=2)), (pod(node="h100-a", workflow="gpu-test-k7m2"),), everywhere=False)

    assert [
        "🔵 **H100** 1/1 node · 1 GPU, 1 used by foxhunt · **k7m2** (anna)",
        "⚪ **L40S** 0/1 node · cold",
        "🟡 **L4** 1 node · warm · 2 GPUs, 0 used by foxhunt",
        "👁 Not visible here: the autoscaler's state. I go by nodes, pods, events and the runs.",
        "👁 I see the pods and events of `foxhunt` only; others may use GPUs too.",
    ] == lines(pools, run(), settings=THREE_POOLS)


def test_nodes_without_pods() -> None:
    """Nodes are visible and pods are not: how many GPUs there are, and nothing about who has them."""
    assert "🟡 **H100** 1/1 node · warm · 1 GPU" == lines(held((node(),), hidden=(Source.PODS,)))[0]


def test_pods_without_nodes() -> None:
    """Pods are visible and nodes are not: who has GPUs, and nothing about how many there are."""
    settings = replace(SETTINGS, pools=POOLS[2:])
    pools = held((), (pod(node="l4-a", pool=L4, workflow="gpu-test-k7m2"),), hidden=(Source.NODES,))

    assert "❔ **L4** · **k7m2** (anna)" == lines(pools, run(), settings=settings)[0]


# size


def test_many_nodes_and_many_pools_stay_below_the_limit() -> None:
    """Twenty nodes of a pool are listed; a post never exceeds what Mattermost takes."""
    nodes = tuple(node(f"n{number:03d}", f"pool-{number % 40}") for number in range(2000))
    answer = gpus(Part.POOLS, view(held(nodes), [], SETTINGS, NOW), SETTINGS, NOW)

    assert MAX_MESSAGE - 200 < len(answer) <= MAX_MESSAGE
    assert "  - and 30 more nodes" in answer


def test_nodes_are_listed_the_oldest_first_with_who_is_on_them() -> None:
    """Each with its state, its users, since when it is up and idle."""
    pools = held((node("b", gpus=2), node("a", L40S)), (pod("p", node="b"), pod("q", node="a", pool=L40S)))
    observe(pools, PodSeen(pod("q", node="a", pool=L40S), gone=True), NOW)
    observe(pools, NodeSeen(replace(node("c", gpus=0), created=None)), NOW)

    assert [
        "🔵 **H100** 2/1 node · 1 up without a GPU yet · 1 of 2 GPUs free · `p`",
        "  - `c`: up, its GPU is not there yet",
        "  - `b`: ready · 1 of 2 used by `p` · up since 08:00",
        "",
        "🟡 **L40S** 1/1 node · warm, idle since 10:06 · 1 of 1 GPU free",
        "  - `a`: ready · 0 of 1 used · up since 08:00 · idle since 10:06",
    ] == lines(pools, settings=replace(SETTINGS, pools=POOLS[:2]), part=Part.POOLS)[:6]


def test_a_hidden_source_can_come_back() -> None:
    """Rights that are granted later are used."""
    pools = held(hidden=(Source.NODES,))

    observe(pools, NodesListed((node(),)), NOW)
    observe(pools, SourceHidden(Source.PODS), NOW)
    observe(pools, PodsListed((), everywhere=True), NOW)

    assert "🟡 **H100** 1/1 node · warm, idle · 1 of 1 GPU free" == lines(pools)[0]
