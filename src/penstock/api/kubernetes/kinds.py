"""Kubernetes' own kinds, partial: only what a decision of Penstock looks at.

Adding a field here costs memory for each object of each cluster: add what a policy reads, no more.
"""

from __future__ import annotations

from typing import Any

from msgspec import field
from msgspec.structs import force_setattr

from penstock.api.kubernetes.meta import Json, KubeObject, KubeStruct
from penstock.api.kubernetes.resource import Resource


class PodCondition(KubeStruct, frozen=True):
    """A pod condition; the SlurmNodeState ones have no reason."""

    type: str
    status: str
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class ContainerWaiting(KubeStruct, frozen=True):
    """Why a container does not run yet (`CrashLoopBackOff`, `ErrImagePull`, ...)."""

    reason: str | None = None
    message: str | None = None


class ContainerTerminated(KubeStruct, frozen=True):
    """How a container ended."""

    exit_code: int = 0
    reason: str | None = None
    message: str | None = None
    finished_at: str | None = None


class ContainerRunning(KubeStruct, frozen=True):
    """Since when a container runs."""

    started_at: str | None = None


class ContainerState(KubeStruct, frozen=True):
    """Exactly one of the three is set."""

    waiting: ContainerWaiting | None = None
    running: ContainerRunning | None = None
    terminated: ContainerTerminated | None = None


class ContainerStatus(KubeStruct, frozen=True):
    """Status of one container, as the kubelet reports it."""

    name: str
    ready: bool = False
    started: bool | None = None
    """Whether its startup probe has succeeded, and its container runs."""
    restart_count: int = 0
    image: str = ""
    state: ContainerState = field(default_factory=ContainerState)
    last_state: ContainerState = field(default_factory=ContainerState)


class Requirement(KubeStruct, frozen=True):
    """One thing that a Node must be; `operator` as In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class NodeTerm(KubeStruct, frozen=True):
    """Requirements of a Node's labels and of its fields; all must hold."""

    match_expressions: tuple[Requirement, ...] | None = None
    match_fields: tuple[Requirement, ...] | None = None


class NodeTerms(KubeStruct, frozen=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[NodeTerm, ...] | None = None


class NodeAffinity(KubeStruct, frozen=True):
    """Which Nodes a pod may be given."""

    required: NodeTerms | None = field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )


class Affinity(KubeStruct, frozen=True):
    """What a pod is to be near to, as far as it speaks of Nodes."""

    node_affinity: NodeAffinity | None = None


class PodSpec(KubeStruct, frozen=True):
    """Where a pod runs and what it is called there."""

    affinity: Affinity | None = None
    node_name: str | None = None
    hostname: str | None = None
    host_network: bool | None = None


class PodStatus(KubeStruct, frozen=True):
    """Status of a pod, as the kubelet reports it."""

    phase: str | None = None
    reason: str | None = None
    message: str | None = None
    pod_ip: str | None = field(name="podIP", default=None)
    start_time: str | None = None
    conditions: tuple[PodCondition, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None


class Pod(KubeObject, frozen=True):
    """A pod."""

    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)
    ready: bool = field(name="-ready", default=False)
    """Whether condition Ready is true. Computed once: decisions read it of thousands of pods."""
    host: str = field(name="-host", default="")
    """Hostname of its containers, up to the first dot.

    The pod's own name while a pod with `hostNetwork` has no node.
    """

    def __post_init__(self) -> None:
        found = self.condition("Ready")
        force_setattr(self, "ready", found is not None and found.status == "True")
        spec = self.spec
        name = spec.node_name if spec.host_network else spec.hostname
        force_setattr(self, "host", (name or self.metadata.name).partition(".")[0])

    def condition(self, type_: str) -> PodCondition | None:
        """The condition of that type, if the pod has it."""
        for condition in self.status.conditions or ():
            if condition.type == type_:
                return condition
        return None


class Taint(KubeStruct, frozen=True):
    """A taint of a Node."""

    key: str
    effect: str
    value: str | None = None


class NodeSpec(KubeStruct, frozen=True):
    """Desired state of a Node, which an administrator sets."""

    unschedulable: bool | None = None
    taints: tuple[Taint, ...] | None = None
    provider_id: str = field(name="providerID", default="")


class RuntimeFeatures(KubeStruct, frozen=True):
    """What pods of a runtime handler may have."""

    user_namespaces: bool | None = None


class RuntimeHandler(KubeStruct, frozen=True):
    """A runtime handler of a Node; that of pods without a RuntimeClass has no name."""

    name: str = ""
    features: RuntimeFeatures | None = None


class NodeInfo(KubeStruct, frozen=True):
    """The system of a Node. The boot ID is another after each boot, the UUID is the machine's."""

    boot_id: str = field(name="bootID", default="")
    system_uuid: str = field(name="systemUUID", default="")


class NodeStatus(KubeStruct, frozen=True):
    """Status of a Node, as the kubelet reports it."""

    node_info: NodeInfo = NodeInfo()
    conditions: tuple[PodCondition, ...] | None = None
    runtime_handlers: tuple[RuntimeHandler, ...] | None = None


class Node(KubeObject, frozen=True):
    """A Kubernetes Node (Slurm's is `penstock.slurm.state.Node`)."""

    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)

    def condition(self, type_: str) -> PodCondition | None:
        """The condition of that type, if the node has it."""
        for one in self.status.conditions or ():
            if one.type == type_:
                return one
        return None

    @property
    def has_user_namespaces(self) -> bool:
        """Whether a pod without a RuntimeClass may have a user namespace of its own here.

        Source: Kubernetes API reference, NodeRuntimeHandlerFeatures.
        """
        handlers = self.status.runtime_handlers or ()
        return any(
            one.features is not None and bool(one.features.user_namespaces)
            for one in handlers
            if not one.name
        )


class Secret(KubeObject, frozen=True):
    """A Secret; `data` is base64 text as on the wire."""

    data: dict[str, str] | None = None
    immutable: bool | None = None


class ConfigMap(KubeObject, frozen=True):
    """A ConfigMap; `binary_data` is base64 text as on the wire."""

    data: dict[str, str] | None = None
    binary_data: dict[str, str] | None = None
    immutable: bool | None = None


class Service(KubeObject, frozen=True):
    """A Service; the spec is compared whole, so it is kept whole."""

    spec: Json = field(default_factory=dict[str, Any])


class WorkloadSpec(KubeStruct, frozen=True):
    """What a StatefulSet or a Deployment was asked for."""

    replicas: int | None = None
    template: Json = field(default_factory=dict[str, Any])


class WorkloadStatus(KubeStruct, frozen=True):
    """How far a StatefulSet or a Deployment got."""

    observed_generation: int | None = None
    replicas: int | None = None
    ready_replicas: int | None = None
    available_replicas: int | None = None
    updated_replicas: int | None = None
    update_revision: str | None = None
    conditions: tuple[PodCondition, ...] | None = None


class StatefulSet(KubeObject, frozen=True):
    """A StatefulSet."""

    spec: WorkloadSpec = field(default_factory=WorkloadSpec)
    status: WorkloadStatus = field(default_factory=WorkloadStatus)


class Deployment(KubeObject, frozen=True):
    """A Deployment."""

    spec: WorkloadSpec = field(default_factory=WorkloadSpec)
    status: WorkloadStatus = field(default_factory=WorkloadStatus)


class DaemonSetStatus(KubeStruct, frozen=True):
    """On how many Kubernetes nodes the pods of a DaemonSet are."""

    observed_generation: int | None = None
    desired_number_scheduled: int | None = None
    number_ready: int | None = None


class DaemonSet(KubeObject, frozen=True):
    """A DaemonSet."""

    spec: WorkloadSpec = field(default_factory=WorkloadSpec)
    status: DaemonSetStatus = field(default_factory=DaemonSetStatus)


class JobStatus(KubeStruct, frozen=True):
    """How far a Job got: counts of its pods, and conditions such as Complete and Failed."""

    active: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    start_time: str | None = None
    conditions: tuple[PodCondition, ...] | None = None


class Job(KubeObject, frozen=True):
    """A Job of Kubernetes (Slurm's are in `penstock.slurm.state`)."""

    spec: WorkloadSpec = field(default_factory=WorkloadSpec)
    status: JobStatus = field(default_factory=JobStatus)


class PodTemplateObject(KubeObject, frozen=True):
    """A PodTemplate, by which users give pods of other objects more fields."""

    template: Json = field(default_factory=dict[str, Any])


class CronJobStatus(KubeStruct, frozen=True):
    """When a CronJob last created a Job, and when one last succeeded."""

    last_schedule_time: str | None = None
    last_successful_time: str | None = None


class CronJob(KubeObject, frozen=True):
    """A CronJob; its spec is compared as JSON."""

    status: CronJobStatus = field(default_factory=CronJobStatus)


class PersistentVolumeClaim(KubeObject, frozen=True):
    """A PersistentVolumeClaim; whose it is matters, not what is in it."""

    spec: Json = field(default_factory=dict[str, Any])


class PodDisruptionBudget(KubeObject, frozen=True):
    """A PodDisruptionBudget."""

    spec: Json = field(default_factory=dict[str, Any])


class ServiceMonitor(KubeObject, frozen=True):
    """A ServiceMonitor of the Prometheus operator."""

    spec: Json = field(default_factory=dict[str, Any])


class PodMonitor(KubeObject, frozen=True):
    """A PodMonitor of Prometheus' operator."""


class ServiceAccount(KubeObject, frozen=True):
    """A ServiceAccount."""


class Role(KubeObject, frozen=True):
    """A Role; its rules are compared as JSON."""


class RoleBinding(KubeObject, frozen=True):
    """A RoleBinding; whom it binds is compared as JSON."""


class ControllerRevision(KubeObject, frozen=True):
    """One recorded revision of a pod template."""

    data: Json = field(default_factory=dict[str, Any])
    revision: int = 0


class WebhookClient(KubeStruct, frozen=True):
    """Where a webhook is; `ca_bundle` is base64 of PEM."""

    ca_bundle: str = ""


class Webhook(KubeStruct, frozen=True):
    """One webhook of a configuration."""

    name: str
    client_config: WebhookClient = WebhookClient()


class WebhookConfiguration(KubeObject, frozen=True):
    """A ValidatingWebhookConfiguration or a MutatingWebhookConfiguration."""

    webhooks: tuple[Webhook, ...] = ()


PODS = Resource("", "v1", "Pod", "pods", Pod)
NODES = Resource("", "v1", "Node", "nodes", Node, namespaced=False)
SECRETS = Resource("", "v1", "Secret", "secrets", Secret)
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps", ConfigMap)
SERVICES = Resource("", "v1", "Service", "services", Service)
CLAIMS = Resource(
    "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", PersistentVolumeClaim
)
STATEFUL_SETS = Resource("apps", "v1", "StatefulSet", "statefulsets", StatefulSet)
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments", Deployment)
DAEMON_SETS = Resource("apps", "v1", "DaemonSet", "daemonsets", DaemonSet)
SERVICE_ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts", ServiceAccount)
ROLES = Resource("rbac.authorization.k8s.io", "v1", "Role", "roles", Role)
ROLE_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", RoleBinding
)
JOBS = Resource("batch", "v1", "Job", "jobs", Job)
CRON_JOBS = Resource("batch", "v1", "CronJob", "cronjobs", CronJob)
POD_TEMPLATES = Resource(
    "",
    "v1",
    "PodTemplate",
    "podtemplates",
    PodTemplateObject,
    optional=True,
    forbidden_is_absent=True,
)
REVISIONS = Resource("apps", "v1", "ControllerRevision", "controllerrevisions", ControllerRevision)
BUDGETS = Resource(
    "policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", PodDisruptionBudget
)
VALIDATING = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    WebhookConfiguration,
    namespaced=False,
)
MUTATING = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    WebhookConfiguration,
    namespaced=False,
)
SERVICE_MONITORS = Resource(
    "monitoring.coreos.com",
    "v1",
    "ServiceMonitor",
    "servicemonitors",
    ServiceMonitor,
    optional=True,
    forbidden_is_absent=True,
)
POD_MONITORS = Resource(
    "monitoring.coreos.com",
    "v1",
    "PodMonitor",
    "podmonitors",
    PodMonitor,
    optional=True,
    forbidden_is_absent=True,
)
