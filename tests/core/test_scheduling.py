"""What the scheduler, the autoscaler, a quota and the kubelet say, and what people read instead.

The messages are written anew after public reports; names, numbers and taints are invented.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.render.scheduling import _SHORT, _TAILS, _WHOLE, waiting_words
from bot.core.scheduling import (
    About,
    Cause,
    Obstacle,
    Quota,
    ScaleUp,
    read_quota,
    read_reason,
    read_scale_up,
    taint_cause,
)

OTHERS = "node(s) didn't match Pod's node affinity/selector"
HELPLESS = "Preemption is not helpful for scheduling"
NO_VICTIM = "No preemption victims found for incoming pod"

NODE_MESSAGES = [
    (
        "(combined from similar events): 0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        "No GPU is free on any of the 3 nodes",
    ),
    (
        "0/1 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/out-of-service: nodeshutdown}.",
        "The only node does not take it: it is being removed",
    ),
    (
        "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        "No GPU is free on any of the 3 nodes",
    ),
    (
        f"0/1 nodes are available: 1 Insufficient nvidia.com/gpu. preemption: 0/1 nodes are available: 1 {NO_VICTIM}..",
        "No GPU is free on the only node",
    ),
    (
        (
            "Unschedulable: 0/5 nodes are available: 3 Insufficient nvidia.com/gpu, 2 node(s) had untolerated taint"
            f" {{node-role.kubernetes.io/control-plane: }}. preemption: 0/5 nodes are available: 2 {HELPLESS}, 3 {NO_VICTIM}."
        ),
        "No GPU is free on 3 of 5 nodes; 2 are for the control plane",
    ),
    (
        (
            f"0/7 nodes are available: 4 {OTHERS}, 3 Insufficient nvidia.com/gpu. no new claims to deallocate, preemption:"
            f" 0/7 nodes are available: 3 {NO_VICTIM}, 4 {HELPLESS}."
        ),
        "No GPU is free on 3 of 7 nodes; 4 are of another kind",
    ),
    (
        f"0/4 nodes are available: 4 {OTHERS}. preemption: 0/4 nodes are available: 4 {HELPLESS}.",
        "No node of the kind it asks for is up",
    ),
    (
        f"0/4 nodes are available: 1 node(s) had untolerated taint {{node-role.kubernetes.io/master: }}, 3 {OTHERS}.",
        "No node of the kind it asks for is up",
    ),
    (
        "0/2 nodes are available: 2 node(s) had taint {dedicated: research}, that the pod didn't tolerate.",
        "None of the 2 nodes takes it: 2 have the taint `dedicated=research`",
    ),
    (
        "0/1 nodes are available: 1 node(s) had untolerated taint {sku: }. preemption: 0/1 nodes are available: 1 x.",
        "The only node does not take it: it has the taint `sku`",
    ),
    (
        (
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. no new claims to deallocate,"
            f" preemption: 0/3 nodes are available: 1 {HELPLESS}, 2 {NO_VICTIM}."
        ),
        "Not enough CPU is free on 2 of 3 nodes; 1 has a taint",
    ),
    (
        "0/2 nodes are available: 2 node(s) had taints that the pod didn't tolerate.",
        "None of the 2 nodes takes it: 2 have a taint",
    ),
    (
        (
            "0/9 nodes are available: 1 node(s) had untolerated taint {key1: a}, 1 node(s) had untolerated taint {key1: b},"
            " 1 node(s) had untolerated taint {key1: c}, 1 node(s) had untolerated taint {key1: d}, 5 Insufficient memory."
        ),
        (
            "Not enough memory is free on 5 of 9 nodes; 1 has the taint `key1=a`;"
            " 1 has the taint `key1=b`; and 2 more reasons"
        ),
    ),
    (
        "0/6 nodes are available: 1 node(s) were unschedulable, 2 Insufficient ephemeral-storage, 3 Too many pods.",
        "Not enough disk is free on 2 of 6 nodes; 3 are full of pods; 1 is cordoned",
    ),
    (
        "0/2 nodes are available: 1 node(s) had volume node affinity conflict, 1 Insufficient memory.",
        "Not enough memory is free on 1 of 2 nodes; 1 can't reach its volume",
    ),
    (
        f"0/3 nodes are available: 1 node(s) had volume node affinity conflict, 2 {OTHERS}.",
        "Its volume can't be reached on 1 of 3 nodes; 2 are of another kind",
    ),
    (
        (
            "0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims."
            f" preemption: 0/4 nodes are available: 4 {HELPLESS}."
        ),
        "Its volume claim is not bound to a volume",
    ),
    (
        '0/4 nodes are available: persistentvolumeclaim "cargo-cache" not found. preemption: 0/4 nodes are available: x.',
        "Its volume claim `cargo-cache` does not exist",
    ),
    (
        f"0/3 nodes are available: 1 node(s) didn't find available persistent volumes to bind, 2 {OTHERS}.",
        "There is no volume for its claim on 1 of 3 nodes; 2 are of another kind",
    ),
    (
        "0/5 nodes are available: 2 node(s) exceed max volume count, 3 Insufficient nvidia.com/gpu.",
        "No GPU is free on 3 of 5 nodes; 2 can attach no further volume",
    ),
    (
        (
            "0/2 nodes are available: 2 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod"
            " access mode."
        ),
        "Its volume is in use on any of the 2 nodes",
    ),
    (
        (
            "0/5 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }, 1 node(s) had"
            " untolerated taint {node.kubernetes.io/unreachable: }, 1 node(s) had untolerated taint"
            " {node.cilium.io/agent-not-ready: true}, 1 node(s) had untolerated taint {ToBeDeletedByClusterAutoscaler:"
            " 1772445000}, 1 Insufficient nvidia.com/gpu."
        ),
        "No GPU is free on 1 of 5 nodes; 1 is still starting; 1 is not ready; and 2 more reasons",
    ),
    (
        (
            "0/3 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }, 2 node(s) had"
            " untolerated taint {node.kubernetes.io/disk-pressure: }."
        ),
        "None of the 3 nodes takes it: 1 is not ready, 2 are short of disk",
    ),
    (
        "0/2 nodes are available: 1 node(s) had pid pressure, 1 node(s) had memory pressure.",
        "None of the 2 nodes takes it: 1 is short of process ids, 1 is short of memory",
    ),
    (
        (
            "0/8 nodes are available: 4 node(s) didn't match pod topology spread constraints, 2 node(s) didn't have free"
            " ports for the requested pod ports, 2 node(s) didn't match pod anti-affinity rules."
        ),
        "Its port is taken on 2 of 8 nodes; 6 break its rules on neighbours",
    ),
    (
        (
            f"0/2 nodes are available: 1 cannot allocate all claims, 1 {OTHERS}. still not schedulable, preemption: 0/2"
            f" nodes are available: 2 {HELPLESS}."
        ),
        "No device is free for its resource claim on 1 of 2 nodes; 1 is of another kind",
    ),
    (
        "0/3 nodes are available: 3 Insufficient hugepages-2Mi.",
        "Not enough `hugepages-2Mi` is free on any of the 3 nodes",
    ),
    (
        "0/2 nodes are available: 1 Insufficient nvidia.com/mig-1g.10gb, 1 Insufficient nvidia.com/gpu.",
        "No GPU is free on any of the 2 nodes",
    ),
    (
        (
            "No nodes are available that match all of the following predicates:: Insufficient cpu (18),"
            " Insufficient memory (17), MatchNodeSelector (18)."
        ),
        "Not enough CPU is free on 18 nodes; 17 have too little memory free; 18 are of another kind",
    ),
    (
        "No nodes are available that match all of the predicates: PodToleratesNodeTaints (1).",
        "The only node does not take it: it has a taint",
    ),
    (
        "No nodes are available that match all of the predicates: Insufficient nvidia.com/gpu (1).",
        "No GPU is free on 1 node",
    ),
    (
        "0/2 nodes are available: 2 node(s) wore the wrong hat.",
        "None of the 2 nodes takes it: 2 say: node(s) wore the wrong hat",
    ),
    (
        "0/4 nodes are available: 1 the moon is full, 3 Insufficient cpu.",
        "Not enough CPU is free on 3 of 4 nodes; 1 says: the moon is full",
    ),
    (
        "0/3 nodes are available.",
        "No node takes it; the scheduler does not say why",
    ),
    (
        "0/1 nodes are available: 1 node(s) were unschedulable.",
        "The only node does not take it: it is cordoned",
    ),
    (
        "no nodes available to schedule pods",
        "The cluster has no node at all",
    ),
    (
        "Scheduling is blocked due to non-empty scheduling gates",
        "It is held back by a scheduling gate and not looked at yet",
    ),
]


@pytest.mark.parametrize(("message", "words"), NODE_MESSAGES)
def test_what_the_scheduler_says_in_peoples_words(message: str, words: str) -> None:
    """What is missing comes first; nodes that are not for this pod anyway come last."""
    assert words == waiting_words(message)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            (
                "pod didn't trigger scale-up: 12 node(s) didn't match Pod's node affinity/selector, 3 max node group size"
                " reached"
            ),
            "The pool is as large as it may get",
        ),
        (
            "pod didn't trigger scale-up: 1 in backoff after failed scale-up",
            "A scale-up failed, the autoscaler waits before it tries again",
        ),
        (
            (
                "pod didn't trigger scale-up (it wouldn't fit if a new node is added): 1 Insufficient nvidia.com/gpu, 2"
                " node(s) had taint {a: b}, that the pod didn't tolerate, 1 node(s) had untolerated taint(s)"
            ),
            (
                "No pool can bring a node that takes it: 1 group with too little GPU, 2 groups with the taint `a=b`,"
                " 1 group with a taint"
            ),
        ),
        (
            "pod didn't trigger scale-up: 2 node(s) didn't match Pod's node affinity/selector, 1 Insufficient foo.bar/baz",
            "No pool can bring a node that takes it: 1 group with too little `foo.bar/baz`, 2 groups with other nodes",
        ),
        (
            "pod didn't trigger scale-up: 1 max cluster cpu, memory limit reached",
            "The cluster is as large as it may get (cpu, memory)",
        ),
        (
            "pod didn't trigger scale-up: 1 not ready for scale-up",
            "The pool's nodes are not healthy, the autoscaler adds none",
        ),
        (
            "pod didn't trigger scale-up: 1 the moon is full, 1 node(s) were unschedulable",
            "No pool can bring a node that takes it: 1 group: cordoned, 1 group: the moon is full",
        ),
        ("pod didn't trigger scale-up:", "The autoscaler adds no node and does not say why"),
        (
            "pod didn't trigger scale-up (it wouldn't fit if a new node is added)",
            "The autoscaler adds no node and does not say why",
        ),
    ],
)
def test_what_the_autoscaler_says_in_peoples_words(message: str, words: str) -> None:
    """Its counts are of node groups; the reason that stops a fitting group goes before the others."""
    assert words == waiting_words(message)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            (
                'pods "gpu-test-k7m2-1" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1,'
                " used: requests.nvidia.com/gpu=4, limited: requests.nvidia.com/gpu=4"
            ),
            "The quota `gpus` is used up: 4 of 4 GPUs, 1 more asked for",
        ),
        (
            (
                'pods "x" is forbidden: exceeded quota: compute, requested: limits.memory=64Gi,requests.cpu=4, used:'
                " limits.memory=100Gi,requests.cpu=30, limited: limits.memory=128Gi,requests.cpu=32"
            ),
            "The quota `compute` is used up: 100Gi of 128Gi `memory`, 64Gi more asked for",
        ),
        ("exceeded quota: odd, requested: all, used: some, limited: none", "The namespace's quota is used up"),
    ],
)
def test_what_a_quota_says_in_peoples_words(message: str, words: str) -> None:
    """The GPU is named first, if it is among what is short."""
    assert words == waiting_words(message)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("ContainerCreating", "It has its node; the container is being made"),
        ("PodInitializing", "It has its node; the container is being prepared"),
        (
            'ImagePullBackOff: Back-off pulling image "nowhere/test:1"',
            'The image can\'t be pulled: Back-off pulling image "nowhere/test:1"',
        ),
        ("ErrImagePull", "The image can't be pulled"),
        (
            'CreateContainerConfigError: secret "git-ssh-key" not found',
            'Its container can\'t be set up: secret "git-ssh-key" not found',
        ),
        ("Waiting for foxhunt/Mutex/cargo-target-cuda-test lock. Lock status: 0/1", ""),
        ("", ""),
    ],
)
def test_what_the_kubelet_says_in_peoples_words(message: str, words: str) -> None:
    """A pod that has its node waits for other things; what is nobody's of these is left to the caller."""
    assert words == waiting_words(message)


def test_a_reading_has_its_obstacles_in_order() -> None:
    """The same reason twice is one with the sum; counts and total are kept."""
    reading = read_reason(f"0/6 nodes are available: 2 {OTHERS}, 3 Insufficient nvidia.com/gpu, 1 {OTHERS}.")

    assert reading is not None
    assert (About.NODES, 6) == (reading.about, reading.total)
    assert (Obstacle(Cause.GPU, 3), Obstacle(Cause.SELECTOR, 3)) == reading.obstacles
    assert reading.has(Cause.GPU)
    assert not reading.has(Cause.TAINT)


def test_groups_that_grow_are_read_from_the_event() -> None:
    """Each group with its sizes; an URL is kept whole."""
    message = "pod triggered scale-up: [{https://example.com/groups/l4-grp 0->1 (max: 4)} {7be2f9d4 1->2 (max: 2)}]"

    assert (
        ScaleUp("https://example.com/groups/l4-grp", 0, 1, 4),
        ScaleUp("7be2f9d4", 1, 2, 2),
    ) == read_scale_up(message)
    assert () == read_scale_up("pod triggered scale-up")


def test_a_quota_is_read_for_its_gpu() -> None:
    """Of several resources the GPU is the one that is told."""
    message = (
        "exceeded quota: q, requested: requests.cpu=1,requests.nvidia.com/gpu=2, used: requests.cpu=1,"
        "requests.nvidia.com/gpu=3, limited: requests.cpu=9,requests.nvidia.com/gpu=4"
    )

    assert Quota("q", "nvidia.com/gpu", "2", "3", "4") == read_quota(message)
    assert read_quota("nothing of the kind") is None


def test_taints_of_the_system_stand_for_a_state() -> None:
    """Startup taints and agents' taints mean that the node is still starting."""
    assert Cause.STARTING is taint_cause("startup-taint.cluster-autoscaler.kubernetes.io/driver")
    assert Cause.STARTING is taint_cause("ebs.csi.aws.com/agent-not-ready")
    assert Cause.TAINT is taint_cause("nvidia.com/gpu")


def test_every_cause_has_its_words() -> None:
    """No cause of a node is without a head or a tail."""
    groups = {Cause.GROUP_BACKOFF, Cause.GROUP_MAX, Cause.CLUSTER_LIMIT, Cause.GROUP_UNREADY}
    whole = {Cause.QUOTA, Cause.VOLUME_MISSING, *_WHOLE}

    assert set(Cause) - groups - whole - {Cause.OTHER} <= set(_TAILS)
    assert set(_SHORT) <= set(_TAILS)


@given(st.text(max_size=300))
def test_no_message_breaks_it(text: str) -> None:
    """Whatever is written, there are words or none."""
    assert isinstance(waiting_words(text), str)


@given(st.lists(st.sampled_from([m for m, _ in NODE_MESSAGES]), min_size=1, max_size=3), st.integers(0, 400))
def test_no_cut_or_joined_message_breaks_it(messages: list[str], at: int) -> None:
    """A message that is cut, or two in one, is read as far as it goes."""
    assert isinstance(waiting_words(" ".join(messages)[at:]), str)
    assert isinstance(waiting_words(" ".join(messages)[:at]), str)
