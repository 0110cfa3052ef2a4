"""What the core has to know of the configuration: plain values, no files, no secrets.

`config.yaml` fills these; each field says what it is for. The ten models are the defaults, not the design:
another team names its own template, parameters, models and pools.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

_CLOSED = {"extra": "forbid"}


@dataclass(frozen=True)
class Model:
    """One model under test. `family` groups models on the card and in the docs (`rl`, `supervised`)."""

    __pydantic_config__ = _CLOSED
    name: str
    family: str


@dataclass(frozen=True)
class Pool:
    """A GPU pool: a value of the pool label."""

    __pydantic_config__ = _CLOSED
    name: str
    """Value of the pool label, e.g. `ci-training-h100`."""
    gpu: str
    """What people call its GPU, e.g. `H100`."""
    cap: str
    """CUDA compute capability without the dot: H100 is 90, L4 and L40S are 89."""
    price_per_hour: float | None = None
    """Price of one node for one hour, in `currency`; no cost is shown without it."""
    max_nodes: int | None = None
    """Nodes that the pool may grow to; None where it is not known here."""
    gpu_memory_gb: int | None = None
    """Memory of one GPU, in GB; None where it is not known, and then nothing is refused for it."""
    groups: tuple[str, ...] = ()
    """What the autoscaler calls the pool, on Scaleway a UUID. While the pool is empty only this tells which it is."""


@dataclass(frozen=True)
class Family:
    """What models of one family need of a pool. A run that can't start is refused, whoever asks for it."""

    __pydantic_config__ = _CLOSED
    name: str
    gpu_memory_gb: int = 0
    """Least memory of the GPU, in GB."""
    min_cap: str = ""
    """Least compute capability, without the dot; empty for any."""
    pools: tuple[str, ...] = ()
    """Pools in which they may run; none means all that have what they need."""


def default_families() -> tuple[Family, ...]:
    """Supervised models are for GPUs of 48 GB and more; RL takes less than one (the routing specification)."""
    return (Family("rl", gpu_memory_gb=1), Family("supervised", gpu_memory_gb=40))


def default_models() -> tuple[Model, ...]:
    """The ten models: two of reinforcement learning, eight supervised."""
    rl = ("dqn", "ppo")
    supervised = ("tft", "mamba2", "tggn", "tlob", "liquid", "kan", "xlstm", "diffusion")
    return tuple(Model(n, "rl") for n in rl) + tuple(Model(n, "supervised") for n in supervised)


def default_pools() -> tuple[Pool, ...]:
    """The three pools of the test and training specifications."""
    return (
        Pool("ci-training-h100", "H100", "90", gpu_memory_gb=80),
        Pool("ci-training", "L40S", "89", gpu_memory_gb=48),
        Pool("ci-compile", "L4", "89", gpu_memory_gb=24),
    )


@dataclass(frozen=True)
class ParameterNames:
    """How the template spells the seven things a person can ask for."""

    __pydantic_config__ = _CLOSED
    models: str = "models"
    scope: str = "test-scope"
    epochs: str = "epochs"
    ref: str = "commit-ref"
    pool: str = "gpu-pool"
    cap: str = "cuda-compute-cap"
    notify: str = "notify"


@dataclass(frozen=True)
class Defaults:
    """What a run gets where nobody says otherwise; the template's own defaults should agree."""

    __pydantic_config__ = _CLOSED
    models: tuple[str, ...] = ("dqn", "ppo", "tft")
    scope: str = "all"
    epochs: int = 3
    ref: str = "HEAD"
    pool: str = "ci-training-h100"
    notify: bool = True


@dataclass(frozen=True)
class Steps:
    """Names of the template's steps, from which the card tells the stage of a run."""

    __pydantic_config__ = _CLOSED
    warmup: str = "gpu-warmup"
    test: str = "compile-and-test"
    results: str = "results"
    """Output parameter of the test step that holds the results document."""
    said: str = "said"
    """Output parameter of the exit step that tells whether it spoke for itself: yes, no or unknown."""


@dataclass(frozen=True)
class Channels:
    """Where cards go: Mattermost channel ids, resolved from names at the start."""

    __pydantic_config__ = _CLOSED
    default: str = ""
    """Channel for every run that no other rule places."""
    nightly: str = ""
    """Channel for runs of the CronWorkflow; empty means the default."""
    push: str = ""
    """Channel for runs that CI started; empty means the default."""
    alerts: str = ""
    """Channel for alerts; empty means the default."""
    also: tuple[str, ...] = ()
    """Channels in which the card of a run stays where the run was asked for."""
    names: tuple[tuple[str, str], ...] = ()
    """Pairs of channel id and name, for sentences."""

    def name(self, channel: str) -> str:
        """The channel's name, "" where it is not one of the configured ones."""
        return next((name for known, name in self.names if known == channel), "")


@dataclass(frozen=True)
class Warm:
    """How `/gpu warm` keeps a pool's node up: by a pod that does nothing and gives way."""

    __pydantic_config__ = _CLOSED
    minutes: int = 30
    """Where nobody says `for=`."""
    max_minutes: int = 120
    """Longest time that may be asked for; deploy/bot/rbac-warm.yaml has a limit of its own, four hours."""
    max_pools: int = 1
    """Pools that are kept warm at the same time."""
    image: str = "registry.k8s.io/pause:3.10"
    """Image of the pod; deploy/bot/rbac-warm.yaml takes `registry.k8s.io/pause` of any version."""
    priority_class: str = "gpu-placeholder"
    """PriorityClass of the pod: below every other pod."""


class AlertKind(StrEnum):
    """What is said without anybody's asking."""

    STOCK = "stock"  # the provider has no node of that kind
    QUOTA = "quota"  # the provider's quota is used up
    BACKOFF = "backoff"  # a scale-up failed for another reason, and the autoscaler waits
    NO_PLACE = "no_place"  # a pod that no pool can take
    IDLE = "idle"  # a node with a GPU that nobody uses
    SLOW = "slow"  # a run that waits longer than usual
    NODE_LOST = "node_lost"  # the node of a run is gone, or does not answer


class Ring(StrEnum):
    """Who is rung."""

    OWNERS = "owners"
    NOBODY = "nobody"


@dataclass(frozen=True)
class Alerts:
    """When to speak up unasked, each time once and with its end."""

    __pydantic_config__ = _CLOSED
    silent: tuple[AlertKind, ...] = ()
    """Kinds that are not said."""
    ring: Ring = Ring.OWNERS
    """Whom a new alert rings; its end rings nobody."""
    say_after_seconds: float = 60.0
    """How long something holds before it is said: what comes and goes is not worth a post."""
    over_after_seconds: float = 120.0
    """How long it has to be over before that is said: what comes back within that time is still the same."""
    idle_minutes: float = 30.0
    """A node is idle for too long after that."""
    slow_minutes: float = 20.0
    """A run waits for too long after that, and after `slow_factor` times what is usual for its pool."""
    slow_factor: float = 2.0


class Right(StrEnum):
    """What a person can be allowed to do."""

    RUN = "run"
    CANCEL = "cancel"
    NIGHTLY = "nightly"
    LOOK = "look"
    WARM = "warm"


@dataclass(frozen=True)
class Role:
    """Who may do what, where, within which limits."""

    __pydantic_config__ = _CLOSED
    name: str
    users: tuple[str, ...] = ("*",)
    """User names without @; `*` is everybody."""
    channels: tuple[str, ...] = ()
    """Channel names in which the role holds; none means everywhere."""
    may: tuple[Right, ...] = (Right.LOOK,)
    max_epochs: int = 100
    pools: tuple[str, ...] = ("*",)
    refs: tuple[str, ...] = ("HEAD", "main", "master", "release/*", "v[0-9]*")
    """Patterns of refs that may be run. A ref runs its code beside the Git key and the data."""
    user_ids: tuple[str, ...] = ()
    """Ids of `users`, found at the start; not to be configured."""
    channel_ids: tuple[str, ...] = ()
    """Ids of `channels`, found at the start; not to be configured."""


def default_roles() -> tuple[Role, ...]:
    """Everybody may do everything but keep nodes warm, with the default branch, release branches and version tags."""
    return (Role("everybody", may=(Right.RUN, Right.CANCEL, Right.NIGHTLY, Right.LOOK)),)


@dataclass(frozen=True)
class Settings:
    """Everything the core reads and never changes."""

    __pydantic_config__ = _CLOSED
    template: str = "gpu-test-pipeline"
    """The WorkflowTemplate whose runs are ours."""
    cron: str = "gpu-test-nightly"
    """The CronWorkflow that `/nightly` switches."""
    namespace: str = "foxhunt"
    """Namespace of the workflows."""
    run_prefix: str = "gpu-test"
    """Names of runs that the bot makes start with this."""
    models: tuple[Model, ...] = field(default_factory=default_models)
    families: tuple[Family, ...] = field(default_factory=default_families)
    """What the models of a family need; of one that is not named nothing is known."""
    pools: tuple[Pool, ...] = field(default_factory=default_pools)
    pool_label: str = "k8s.scaleway.com/pool-name"
    """Label of nodes whose value is the pool."""
    pool_id_label: str = "k8s.scaleway.com/pool"
    """Label of nodes whose value is what the autoscaler calls the pool."""
    gpu_resources: tuple[str, ...] = ("nvidia.com/gpu", "nvidia.com/gpu.shared")
    """Resources that count as GPUs; the second is what time-slicing may rename them to."""
    autoscaler_status: str = "kube-system/cluster-autoscaler-status"
    """Namespace and name of the autoscaler's ConfigMap; empty where there is none to look at."""
    scopes: tuple[str, ...] = ("lib", "integration", "all")
    max_epochs: int = 100
    """Upper limit of `epochs`; a larger one is refused."""
    defaults: Defaults = Defaults()
    parameters: ParameterNames = ParameterNames()
    steps: Steps = Steps()
    channels: Channels = Channels()
    owners: tuple[str, ...] = ()
    """User names (without @) who are rung for runs that nobody in the chat asked for."""
    roles: tuple[Role, ...] = field(default_factory=default_roles)
    warm: Warm = Warm()
    alerts: Alerts = Alerts()
    cost_write_seconds: float = 60.0
    """Least distance of two writes of the record of costs."""
    cost_keep_seconds: float = 600.0
    """How often it is written where nothing changes: what happens right before a crash is known that well."""
    commands_per_minute: int = 20
    """Commands and clicks of one user in a minute; what is beyond is refused."""
    priority: int = 30
    """`spec.priority` of runs from the chat: a queue serves the higher first (nightly 20, push 10)."""
    timezone: str = "UTC"
    """Zone of the clock times on cards, an IANA name."""
    currency: str = "€"
    argo_url: str = ""
    """Address of Argo's UI for links; no link without it."""
    wait_seconds: float = 2400.0
    """How long a pod of a run waits for a GPU before the bot gives up; 0 for as long as Argo lets it."""
    wait_until: str = "07:00"
    """The clock time, in `timezone`, to which a button of the card moves that limit; "" for no button."""
    warmup_late_seconds: float = 600.0
    """A step of the warm-up is called late after that, and after twice its usual length."""
    coalesce_seconds: float = 5.0
    """Least distance of two progress edits of one card; a change of stage or verdict is sent at once."""
    retry_seconds: float = 5.0
    """First wait after a failed effect; it doubles up to `retry_max_seconds`."""
    retry_max_seconds: float = 30.0
    settle_seconds: float = 15.0
    """How long an unanswered request may still take effect: its own deadline (10 s) and a replica's lag."""
    fresh_seconds: float = 60.0
    """How long after its creation a run without a memory has no card for sure; later somebody may have wiped that."""
    deletion_seconds: float = 120.0
    """How long a deleted run may take to end before it is reported as deleted while it ran."""
    sweep_seconds: float = 120.0
    """How often everything held is compared with what is stored."""
    linger_seconds: float = 600.0
    """For how long after a run was let go its posts are still looked through for doubles, at each sweep."""

    @property
    def model_names(self) -> tuple[str, ...]:
        return tuple(model.name for model in self.models)

    @property
    def alerts_channel(self) -> str:
        """Id of the channel that alerts go to."""
        return self.channels.alerts or self.channels.default

    def pool(self, name: str) -> Pool | None:
        """The pool of that name, None where config.yaml does not know it."""
        return next((pool for pool in self.pools if pool.name == name), None)
