"""What Kubernetes says of nodes, pods and events: the fields that the bot uses, as they are on the wire.

Decoded straight from the bytes; fields that are not named here are never built. Every field may be absent or null.
Source: the Go types of k8s.io/api/core/v1 (types.go).
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal, InvalidOperation

import msgspec

from bot.core.workflow import Wire, instant

Quantity = str | int | float


class Meta(Wire, frozen=True):
    """`metadata` without its annotations and managed fields, which make up most of a pod's bytes."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None


class Condition(Wire, frozen=True):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


# nodes


class Taint(Wire, frozen=True):
    key: str = ""
    value: str | None = None
    effect: str = ""

    def __str__(self) -> str:
        """As kubectl writes it."""
        return f"{self.key}={self.value}" if self.value else self.key


class NodeSpec(Wire, frozen=True):
    unschedulable: bool | None = None
    taints: list[Taint] | None = None


class NodeStatus(Wire, frozen=True):
    allocatable: dict[str, Quantity] | None = None
    conditions: list[Condition] | None = None


class Node(Wire, frozen=True):
    """A node, as far as the bot looks."""

    metadata: Meta
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


# pods


class Resources(Wire, frozen=True):
    requests: dict[str, Quantity] | None = None
    limits: dict[str, Quantity] | None = None

    def ask(self, resource: str) -> int:
        """What is requested; of an extended resource a limit alone is a request as well."""
        for amounts in (self.requests, self.limits):
            if amounts and resource in amounts:
                return whole(amounts[resource])
        return 0

    def names(self) -> set[str]:
        """Of all resources that are asked for."""
        return {*(self.requests or {}), *(self.limits or {})}


class Container(Wire, frozen=True):
    name: str = ""
    resources: Resources | None = None
    restart_policy: str | None = None
    """`Always` makes an init container a sidecar, which runs on beside the others."""

    def ask(self, resource: str) -> int:
        return self.resources.ask(resource) if self.resources else 0


class Named(Wire, frozen=True):
    name: str = ""


class Expression(Wire, frozen=True):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class Term(Wire, frozen=True):
    match_expressions: list[Expression] | None = None


class Terms(Wire, frozen=True):
    node_selector_terms: list[Term] | None = None


class NodeAffinity(Wire, frozen=True):
    required: Terms | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(Wire, frozen=True):
    node_affinity: NodeAffinity | None = None


class Toleration(Wire, frozen=True):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None

    def covers(self, taint: Taint) -> bool:
        """Whether a pod with it may go onto a node with that taint (core/v1/toleration.go, ToleratesTaint)."""
        if (self.effect and self.effect != taint.effect) or (self.key and self.key != taint.key):
            return False
        return self.operator == "Exists" or (bool(self.key) and (self.value or "") == (taint.value or ""))


class PodSpec(Wire, frozen=True):
    node_name: str | None = None
    tolerations: list[Toleration] | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    scheduling_gates: list[Named] | None = None


class Waiting(Wire, frozen=True):
    reason: str | None = None
    message: str | None = None


class Running(Wire, frozen=True):
    started_at: str | None = None


class ContainerState(Wire, frozen=True):
    waiting: Waiting | None = None
    running: Running | None = None


class ContainerStatus(Wire, frozen=True):
    name: str = ""
    state: ContainerState | None = None


class PodStatus(Wire, frozen=True):
    phase: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class Pod(Wire, frozen=True):
    """A pod, as far as the bot looks."""

    metadata: Meta
    spec: PodSpec | None = None
    status: PodStatus | None = None

    def ask(self, resource: str) -> int:
        """What the scheduler takes the pod to request of a resource.

        The sum over the containers, and over the sidecars before them; or more, where an init container needs more
        beside the sidecars that run already (component-helpers, resource/helpers.go, PodRequests).
        """
        spec = self.spec or PodSpec()
        beside = peak = 0
        for container in spec.init_containers or []:
            if container.restart_policy == "Always":
                beside += container.ask(resource)
                peak = max(peak, beside)
            else:
                peak = max(peak, beside + container.ask(resource))
        return max(peak, beside + sum(container.ask(resource) for container in spec.containers or []))

    def slices(self) -> set[str]:
        """Names of the parts of a GPU that it asks for."""
        spec = self.spec or PodSpec()
        containers = [*(spec.init_containers or []), *(spec.containers or [])]
        return {name for each in containers if each.resources for name in each.resources.names() if is_slice(name)}


# events


class EventSource(Wire, frozen=True):
    component: str | None = None


class Series(Wire, frozen=True):
    count: int | None = None
    last_observed_time: str | None = None


class ObjectReference(Wire, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    field_path: str | None = None  # of a kubelet's Event on a container: `spec.containers{main}`


class KubeEvent(Wire, frozen=True):
    """An Event: written by two generations of recorders, which keep count and time in different fields."""

    metadata: Meta
    reason: str | None = None
    message: str | None = None
    type: str | None = None
    involved_object: ObjectReference = ObjectReference()
    source: EventSource | None = None
    reporting_component: str | None = None
    count: int | None = None
    series: Series | None = None
    event_time: str | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None

    @property
    def when(self) -> datetime | None:
        """When it was seen last. A series counts most; the creation is never null."""
        times = (
            self.series.last_observed_time if self.series else None,
            self.last_timestamp,
            self.event_time,
            self.metadata.creation_timestamp,
        )
        return next((found for found in map(instant, times) if found is not None), None)

    @property
    def first(self) -> datetime | None:
        """When it was seen first, as far as it says: one that comes again keeps that, while its last time moves."""
        times = (self.first_timestamp, self.event_time)
        return next((found for found in map(instant, times) if found is not None), None) or self.when

    @property
    def times(self) -> int:
        """How often it happened."""
        return (self.series.count if self.series else None) or self.count or 1

    @property
    def writer(self) -> str:
        return (self.source.component if self.source else None) or self.reporting_component or ""


def newest_first(events: list[KubeEvent]) -> list[KubeEvent]:
    """Events in the order in which people want them; those without any time come last."""
    dated = [(event.when, event) for event in events]
    known = sorted(((when, event) for when, event in dated if when is not None), key=lambda pair: pair[0], reverse=True)
    return [event for _, event in known] + [event for when, event in dated if when is None]


class ConfigMap(Wire, frozen=True):
    metadata: Meta
    data: dict[str, str] | None = None


def is_slice(resource: str) -> bool:
    """A part of a GPU under a name of its own, `nvidia.com/mig-1g.10gb` (NVIDIA device plugin, strategy `mixed`)."""
    return resource.startswith("nvidia.com/mig-")


_SUFFIXES = {"m": Decimal("0.001"), "k": Decimal(1000), "M": Decimal(10) ** 6, "Ki": Decimal(1024)}


def whole(quantity: Quantity) -> int:
    """A count from a quantity, rounded up: `1`, `"2"`, `"1k"`, `"500m"`. What is no quantity counts as none."""
    text = str(quantity).strip()
    for suffix, factor in _SUFFIXES.items():
        if text.endswith(suffix):
            text, times = text.removesuffix(suffix), factor
            break
    else:
        times = Decimal(1)
    try:
        value = Decimal(text) * times
    except InvalidOperation:
        return 0
    return int(value.to_integral_value(rounding="ROUND_CEILING")) if value.is_finite() and value > 0 else 0
