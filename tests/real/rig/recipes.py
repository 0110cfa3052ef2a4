"""What is built for the rig: one recipe for each wrapper module in ``tests/real/services``.

Each server has a Go module of its own because their dependencies disagree with each other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SERVICES = Path(__file__).resolve().parent.parent / "services"


@dataclass(frozen=True)
class Program:
    """One binary: the name it gets in the cache, its package, and values for ``-X`` of the linker."""

    name: str
    package: str
    variables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recipe:
    """One wrapper module: the programs built from it, and the files kept from the module that it wraps."""

    name: str
    programs: tuple[Program, ...]
    wrapped: str
    """The module whose folder the kept files are taken from."""
    folders: tuple[str, ...] = ()
    """Folders of the wrapped module that the server reads at run time, copied as they are."""
    manifests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Name of a JSON file -> glob patterns of Kubernetes manifests; JSON because it loads many times faster."""

    @property
    def source(self) -> Path:
        """Return the folder of the wrapper module."""
        return SERVICES / self.name


def _argo(name: str, major: str, version: str) -> Recipe:
    module = f"github.com/argoproj/argo-workflows/{major}"
    controller = Program("workflow-controller", f"{module}/cmd/workflow-controller", (f"{module}.version={version}",))
    crds = {f"crds-{kind}": (f"manifests/base/crds/{kind}/argoproj.io_*.yaml",) for kind in ("minimal", "full")}
    return Recipe(name, (controller, Program("retry", "./retry")), module, manifests=crds)


# Without these a client is told that the server is v0.0.0.
_KUBERNETES_VERSION = tuple(
    f"k8s.io/component-base/version.{variable}"
    for variable in ("gitVersion=v1.34.4", "gitMajor=1", "gitMinor=34", "gitTreeState=clean")
)
_MATTERMOST = "github.com/mattermost/mattermost-server/v6"

# In the order in which they are built: what a first test needs comes first.
RECIPES = (
    Recipe("etcd", (Program("etcd", "go.etcd.io/etcd/server/v3"),), "go.etcd.io/etcd/server/v3"),
    Recipe(
        "kubernetes",
        (
            Program("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", _KUBERNETES_VERSION),
            Program("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler", _KUBERNETES_VERSION),
        ),
        "k8s.io/kubernetes",
    ),
    Recipe(
        "mattermost",
        # A build number of "dev", the default, switches the developer mode on whatever the settings say.
        (Program("mattermost", ".", (f"{_MATTERMOST}/model.BuildNumber=rig",)),),
        _MATTERMOST,
        folders=("i18n", "templates", "fonts"),
    ),
    _argo("argo37", "v3", "v3.7.3"),
    Recipe(
        "kwok",
        (Program("kwok", "sigs.k8s.io/kwok/cmd/kwok"),),
        "sigs.k8s.io/kwok",
        manifests={
            "crds": ("kustomize/crd/bases/*_stages.yaml", "kustomize/crd/bases/*_logs.yaml"),
            "node-stages": (
                "kustomize/stage/node/fast/node-initialize.yaml",
                "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
            ),
        },
    ),
    _argo("argo40", "v4", "v4.0.5"),
    # Definitions alone, of what the optional parts of deploy/ are made for.
    Recipe(
        "prometheus-operator",
        (),
        "github.com/prometheus-operator/prometheus-operator",
        manifests={"crds": ("example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",)},
    ),
    Recipe(
        "cilium",
        (),
        "github.com/cilium/cilium",
        manifests={"crds": ("pkg/k8s/apis/cilium.io/client/crds/v2/ciliumnetworkpolicies.yaml",)},
    ),
)


def recipe(name: str) -> Recipe:
    """Return the recipe of that name."""
    for candidate in RECIPES:
        if candidate.name == name:
            return candidate
    known = ", ".join(candidate.name for candidate in RECIPES)
    raise KeyError(f"no recipe {name!r}; there are {known}")
