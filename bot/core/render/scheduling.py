"""Why a pod waits, in people's words.

The scheduler counts nodes and the autoscaler counts groups. People want the one thing that is missing; what does not
matter for this pod (nodes of other kinds) comes last, in few words.
"""

from __future__ import annotations

from bot.core.render.escape import code, prose
from bot.core.scheduling import About, Cause, Obstacle, Reading, read_quota, read_reason

MAX_OBSTACLES = 3
"""Reasons named in one sentence; more are counted."""


def waiting_words(message: str) -> str:
    """Why a pod waits, from the scheduler's, autoscaler's or kubelet's message; "" where it is none of them."""
    reading = read_reason(message)
    if reading is None:
        return _container_words(message)
    if reading.about is About.GROUPS:
        return _group_words(reading)
    if reading.about is About.POD:
        return _pod_words(reading.obstacles[0])
    return _node_words(reading)


def _pod_words(obstacle: Obstacle) -> str:
    if obstacle.cause is Cause.QUOTA:
        return _quota_words(obstacle.detail)
    if obstacle.cause is Cause.VOLUME_MISSING:
        return f"Its volume claim {code(obstacle.detail, 60)} does not exist"
    return _WHOLE[obstacle.cause]


def _quota_words(message: str) -> str:
    quota = read_quota(message)
    if quota is None or not quota.resource:
        return "The namespace's quota is used up"
    what = "GPUs" if quota.resource.startswith("nvidia.com/gpu") else code(quota.resource, 40)
    return (
        f"The quota {code(quota.quota, 60)} is used up: {prose(quota.used, 20)} of {prose(quota.limit, 20)} {what},"
        f" {prose(quota.requested, 20)} more asked for"
    )


def _node_words(reading: Reading) -> str:
    obstacles, total = reading.obstacles, reading.total
    if not obstacles:
        return "No node takes it; the scheduler does not say why"
    first = obstacles[0]
    if first.cause in _FOR_ALL:
        return _pod_words(first)
    if all(obstacle.cause in {Cause.SELECTOR, Cause.CONTROL_PLANE} for obstacle in obstacles):
        return "No node of the kind it asks for is up"
    if first.cause in _SHORT:
        head = f"{_SHORT[first.cause].format(code(first.detail, 60))} {_where(first.count, total)}"
        return _listed([head, *(_tail(obstacle) for obstacle in obstacles[1:])], "; ")
    nodes = total or sum(obstacle.count for obstacle in obstacles)
    if nodes == 1:
        return f"The only node does not take it: it {_tail(first).partition(' ')[2]}"
    tails = [_tail(obstacle) for obstacle in obstacles]
    return f"None of the {nodes} nodes takes it: {_listed(tails, ', ')}"


def _where(count: int, total: int) -> str:
    if total == 1:
        return "on the only node"
    if count == total:
        return f"on any of the {total} nodes"
    if not total:
        return f"on {count} node{'' if count == 1 else 's'}"
    return f"on {count} of {total} nodes"


def _tail(obstacle: Obstacle) -> str:
    """`2 are cordoned`, `1 has no free GPU`."""
    if obstacle.cause is Cause.OTHER:
        return f"{obstacle.count} {'says' if obstacle.count == 1 else 'say'}: {prose(obstacle.detail, 80)}"
    one, many = _TAILS[obstacle.cause]
    words = one if obstacle.count == 1 else many
    return f"{obstacle.count} {words.format(_tail_detail(obstacle))}"


def _tail_detail(obstacle: Obstacle) -> str:
    if obstacle.cause is Cause.TAINT:
        return f"the taint {code(obstacle.detail, 60)}" if obstacle.detail else "a taint"
    if obstacle.cause is Cause.PRESSURE:
        return {"pid": "process ids", "": "something"}.get(obstacle.detail, obstacle.detail)
    return code(obstacle.detail, 60)


def _group_words(reading: Reading) -> str:
    if not reading.obstacles:
        return "The autoscaler adds no node and does not say why"
    first = reading.obstacles[0]
    if first.cause in _GROUPS:
        return _GROUPS[first.cause].format(prose(first.detail, 60))
    tails = [_group_tail(obstacle) for obstacle in reading.obstacles]
    return f"No pool can bring a node that takes it: {_listed(tails, ', ')}"


def _group_tail(obstacle: Obstacle) -> str:
    groups = f"{obstacle.count} group{'' if obstacle.count == 1 else 's'}"
    if obstacle.cause is Cause.SELECTOR:
        return f"{groups} with other nodes"
    if obstacle.cause is Cause.TAINT:
        return f"{groups} with the taint {code(obstacle.detail, 60)}" if obstacle.detail else f"{groups} with a taint"
    if obstacle.cause in _SHORT:
        missing = _SHORT_NOUNS.get(obstacle.cause) or code(obstacle.detail, 60)
        return f"{groups} with too little {missing}"
    return f"{groups}: {prose(obstacle.detail or obstacle.cause.value.replace('_', ' '), 80)}"


def _container_words(message: str) -> str:
    """The kubelet's reason on a pod that has its node already."""
    reason, _, rest = (part.strip() for part in message.partition(":"))
    if reason in _IMAGE:
        return f"The image can't be pulled: {prose(rest, 200)}" if rest else "The image can't be pulled"
    words = _CONTAINER.get(reason, "")
    return f"{words}: {prose(rest, 200)}" if words and rest else words


def _listed(parts: list[str], between: str) -> str:
    shown = parts[:MAX_OBSTACLES]
    more = len(parts) - len(shown)
    return between.join(shown) + (f"{between}and {more} more reason{'' if more == 1 else 's'}" if more else "")


_WHOLE = {
    Cause.GATED: "It is held back by a scheduling gate and not looked at yet",
    Cause.NO_NODES: "The cluster has no node at all",
    Cause.VOLUME_UNBOUND: "Its volume claim is not bound to a volume",
    Cause.VOLUME_NONE: "There is no volume for its claim",
    Cause.CLAIM: "No device is free for its resource claim",
}
"""Reasons that a message may consist of."""

_FOR_ALL = frozenset({Cause.GATED, Cause.NO_NODES, Cause.VOLUME_UNBOUND, Cause.VOLUME_MISSING})
"""Reasons that hold for the pod, whatever the node."""

_SHORT = {
    Cause.VOLUME_NONE: "There is no volume for its claim",
    Cause.CLAIM: "No device is free for its resource claim",
    Cause.GPU: "No GPU is free",
    Cause.CPU: "Not enough CPU is free",
    Cause.MEMORY: "Not enough memory is free",
    Cause.STORAGE: "Not enough disk is free",
    Cause.PODS: "There is no room for another pod",
    Cause.RESOURCE: "Not enough {} is free",
    Cause.VOLUME_PLACE: "Its volume can't be reached",
    Cause.VOLUME_COUNT: "No further volume can be attached",
    Cause.VOLUME_BUSY: "Its volume is in use",
    Cause.PORTS: "Its port is taken",
    Cause.NEIGHBOURS: "Its rules on neighbours keep it off",
}
_SHORT_NOUNS = {
    Cause.VOLUME_NONE: "volumes",
    Cause.CLAIM: "devices",
    Cause.GPU: "GPU",
    Cause.CPU: "CPU",
    Cause.MEMORY: "memory",
    Cause.STORAGE: "disk",
    Cause.PODS: "room for pods",
    Cause.VOLUME_PLACE: "reach to its volume",
    Cause.VOLUME_COUNT: "room for volumes",
    Cause.VOLUME_BUSY: "access to its volume",
    Cause.PORTS: "free ports",
    Cause.NEIGHBOURS: "distance to its neighbours",
}

_TAILS = {
    Cause.VOLUME_NONE: ("has no volume for its claim", "have no volume for its claim"),
    Cause.CLAIM: ("has no device free for its claim", "have no device free for its claim"),
    Cause.GPU: ("has no free GPU", "have no free GPU"),
    Cause.CPU: ("has too little CPU free", "have too little CPU free"),
    Cause.MEMORY: ("has too little memory free", "have too little memory free"),
    Cause.STORAGE: ("has too little disk free", "have too little disk free"),
    Cause.PODS: ("is full of pods", "are full of pods"),
    Cause.RESOURCE: ("has too little {} free", "have too little {} free"),
    Cause.VOLUME_PLACE: ("can't reach its volume", "can't reach its volume"),
    Cause.VOLUME_COUNT: ("can attach no further volume", "can attach no further volume"),
    Cause.VOLUME_BUSY: ("has its volume in use", "have its volume in use"),
    Cause.PORTS: ("has its port taken", "have its port taken"),
    Cause.NEIGHBOURS: ("breaks its rules on neighbours", "break its rules on neighbours"),
    Cause.STARTING: ("is still starting", "are still starting"),
    Cause.NOT_READY: ("is not ready", "are not ready"),
    Cause.LEAVING: ("is being removed", "are being removed"),
    Cause.CORDONED: ("is cordoned", "are cordoned"),
    Cause.UNREACHABLE: ("does not answer", "do not answer"),
    Cause.PRESSURE: ("is short of {}", "are short of {}"),
    Cause.TAINT: ("has {}", "have {}"),
    Cause.SELECTOR: ("is of another kind", "are of another kind"),
    Cause.CONTROL_PLANE: ("is for the control plane", "are for the control plane"),
}

_GROUPS = {
    Cause.GROUP_BACKOFF: "A scale-up failed, the autoscaler waits before it tries again",
    Cause.GROUP_MAX: "The pool is as large as it may get",
    Cause.CLUSTER_LIMIT: "The cluster is as large as it may get ({})",
    Cause.GROUP_UNREADY: "The pool's nodes are not healthy, the autoscaler adds none",
}

_IMAGE = frozenset({"ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"})
_CONTAINER = {
    "ContainerCreating": "It has its node; the container is being made",
    "PodInitializing": "It has its node; the container is being prepared",
    "CreateContainerConfigError": "Its container can't be set up",
    "CreateContainerError": "Its container can't be made",
    "CrashLoopBackOff": "Its container crashes again and again",
}
