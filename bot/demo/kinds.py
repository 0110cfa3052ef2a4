"""The kinds of objects that the embedded Kubernetes API knows."""

from __future__ import annotations

from dataclasses import dataclass

ARGO = "argoproj.io"


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource of the API, as discovery describes it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short: tuple[str, ...] = ()
    status_subresource: bool = False
    """Whether writes to the object leave its status alone, and writes to /status leave the rest alone."""
    generation: str = ""
    """When metadata.generation moves: "content" on any change outside metadata, "spec" on a change of spec, ""
    never.
    """
    unconditional_update: bool = True
    """Whether PUT without a resourceVersion overwrites."""

    @property
    def api_version(self) -> str:
        """The apiVersion of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The name used in error texts."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def spec_required(self) -> bool:
        """Whether Argo's definitions ask for a spec."""
        return self.custom and self.plural != "workflowtaskresults"

    @property
    def custom(self) -> bool:
        """Whether it comes from a CustomResourceDefinition: no strategic merge patch."""
        return self.group == ARGO

    @property
    def singular(self) -> str:
        """The lower-case name that kubectl also takes."""
        return self.kind.lower()


def _argo(plural: str, kind: str, *short: str, namespaced: bool = True) -> Kind:
    # Argo's CRDs declare no status subresource: a write of status is an ordinary write, and generation moves with it.
    return Kind(ARGO, "v1alpha1", plural, kind, namespaced, short, generation="content", unconditional_update=False)


_RBAC = "rbac.authorization.k8s.io"

PODS = Kind("", "v1", "pods", "Pod", short=("po",), status_subresource=True, generation="spec")
NODES = Kind("", "v1", "nodes", "Node", namespaced=False, short=("no",), status_subresource=True)
EVENTS = Kind("", "v1", "events", "Event", short=("ev",))
CONFIGMAPS = Kind("", "v1", "configmaps", "ConfigMap", short=("cm",))
SECRETS = Kind("", "v1", "secrets", "Secret")
NAMESPACES = Kind("", "v1", "namespaces", "Namespace", namespaced=False, short=("ns",), status_subresource=True)
SERVICE_ACCOUNTS = Kind("", "v1", "serviceaccounts", "ServiceAccount", short=("sa",))
CLAIMS = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", short=("pvc",), status_subresource=True)
LEASES = Kind("coordination.k8s.io", "v1", "leases", "Lease", unconditional_update=False)
ROLES = Kind(_RBAC, "v1", "roles", "Role")
ROLE_BINDINGS = Kind(_RBAC, "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLES = Kind(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDINGS = Kind(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
PRIORITY_CLASSES = Kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False, short=("pc",))
WORKFLOWS = _argo("workflows", "Workflow", "wf")
CRON_WORKFLOWS = _argo("cronworkflows", "CronWorkflow", "cwf", "cronwf")
WORKFLOW_TEMPLATES = _argo("workflowtemplates", "WorkflowTemplate", "wftmpl")
CLUSTER_TEMPLATES = _argo(
    "clusterworkflowtemplates", "ClusterWorkflowTemplate", "clusterwftmpl", "cwft", namespaced=False
)
TASK_RESULTS = _argo("workflowtaskresults", "WorkflowTaskResult")

ALL: tuple[Kind, ...] = (
    PODS,
    NODES,
    EVENTS,
    CONFIGMAPS,
    SECRETS,
    NAMESPACES,
    SERVICE_ACCOUNTS,
    CLAIMS,
    LEASES,
    ROLES,
    ROLE_BINDINGS,
    CLUSTER_ROLES,
    CLUSTER_ROLE_BINDINGS,
    PRIORITY_CLASSES,
    WORKFLOWS,
    CRON_WORKFLOWS,
    WORKFLOW_TEMPLATES,
    CLUSTER_TEMPLATES,
    TASK_RESULTS,
)

BY_PATH: dict[tuple[str, str, str], Kind] = {(kind.group, kind.version, kind.plural): kind for kind in ALL}
BY_OBJECT: dict[tuple[str, str], Kind] = {(kind.api_version, kind.kind): kind for kind in ALL}
