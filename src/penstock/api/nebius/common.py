"""Parts that several kinds of `slurm.nebius.ai` have in common.

Types of Kubernetes inside a kind (a container, a probe, an affinity) are opaque: the API server
keeps them as they are, and checks them when the object that contains them is created.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import field

from penstock.api.kubernetes.meta import Json, KubeStruct, LocalObjectReference
from penstock.api.kubernetes.pvc_spec import Quantity
from penstock.api.kubernetes.schema import ATOMIC_MAP, DEFAULT, INT32, OPAQUE, UNSTORED, about

GROUP: Final = "slurm.nebius.ai"
CLUSTER_VERSION: Final = "v1"
VERSION: Final = "v1alpha1"
"""Version of all kinds but SlurmCluster."""
UNCONFINED: Final = "unconfined"

POD_CONTAINERS: Final = frozenset(
    {"munge", "reconfigure", "slurmctld", "sshd", "slurmd", "slurmrestd", "sconfigctrl", "init-dir"}
)
"""Names of containers that the operator adds to pods."""
ROOT_CONTAINERS: Final = frozenset({"populate-jail", "jail-root"})
"""Names of those that it adds to workers with a root of their own."""
SSSD_CONTAINER: Final = "sssd"
"""One more where the spec declares it."""


def pod_containers(*, has_sssd: bool) -> frozenset[str]:
    """Names of containers that a pod has beside the user's."""
    return POD_CONTAINERS | {SSSD_CONTAINER} if has_sssd else POD_CONTAINERS


TEXT_DEFAULT: Json = {DEFAULT: ""}
"""An empty text that the API server stores."""
NOT_EMPTY: Json = {"minLength": 1}

PullPolicy = Literal["Always", "Never", "IfNotPresent"]
Affinity = Annotated[Json | None, about("A Kubernetes Affinity.", OPAQUE)]
Toleration = Annotated[Json, about("A Kubernetes Toleration.", OPAQUE)]
Tolerations = Annotated[tuple[Toleration, ...], about("Tolerations of the pods.")]
NodeSelector = Annotated[dict[str, str] | None, about("Labels of the Kubernetes nodes to use.")]
EnvVar = Annotated[Json, about("A Kubernetes EnvVar.", OPAQUE)]
Env = Annotated[tuple[EnvVar, ...], about("Environment variables of the container.")]
Probe = Annotated[Json | None, about("A Kubernetes Probe.", OPAQUE)]
PodContainer = Annotated[Json, about("A Kubernetes Container.", OPAQUE)]
InitContainers = Annotated[
    tuple[PodContainer, ...], about("Init containers that run before the operator's own.")
]
Words = Annotated[tuple[Annotated[str, about("One argument.")], ...], about("Arguments.")]
Resources = Annotated[
    dict[str, Quantity] | None, about("Requests of the container, by resource. Limits follow.")
]
PullSecrets = Annotated[
    tuple[
        Annotated[
            LocalObjectReference,
            about(
                "A Secret by name.",
                ATOMIC_MAP,
                {"properties": {"name": {DEFAULT: "", "description": "Name of the Secret."}}},
            ),
        ],
        ...,
    ],
    about("Secrets with credentials of the image registry."),
]
HostUsers = Annotated[
    bool | None, about("Whether the pod uses the user namespace of its Kubernetes node.")
]
PriorityClass = Annotated[str, about("PriorityClass of the pods.")]
FilterName = Annotated[str, about("Name of an entry of spec.k8sNodeFilters.")]
AppArmorProfile = Annotated[
    str, about("AppArmor profile: unconfined, runtime/default or localhost/<name>.")
]
ProcMount = Annotated[Literal["Default", "Unmasked"] | None, about("How /proc is mounted.")]
ImagePullPolicy = Annotated[PullPolicy, about("When the image is pulled.")]
SecurityLimits = Annotated[str, about("Text of limits.conf.")]


class NodeContainer(KubeStruct, frozen=True):
    """A container of a daemon."""

    image: Annotated[str, about("The image, as registry/name:tag.")]
    command: Annotated[Words, about("Command instead of the image's entrypoint.")] = ()
    args: Annotated[Words, about("Arguments of the command.")] = ()
    custom_env: Annotated[Env, about("Environment variables after the operator's own.")] = ()
    image_pull_policy: ImagePullPolicy = "IfNotPresent"
    image_pull_secrets: PullSecrets = ()
    port: Annotated[int | None, about("Port of the daemon and its Service.", INT32)] = None
    resources: Resources = None
    liveness_probe: Probe = None
    readiness_probe: Probe = None
    security_limits_config: SecurityLimits = ""
    app_armor_profile: AppArmorProfile = UNCONFINED
    proc_mount: ProcMount = None


class SlurmNode(KubeStruct, frozen=True):
    """Placement of the pods of a daemon."""

    k8s_node_filter_name: FilterName
    size: Annotated[int | None, about("Number of pods.", INT32)] = None
    custom_init_containers: InitContainers = ()
    priority_class: PriorityClass = ""
    host_users: HostUsers = None


class SssdNode(SlurmNode, frozen=True):
    """A daemon with sssd beside it, for users of a directory."""

    sssd: Annotated[NodeContainer | None, about("The sssd container.")] = None
    sssd_debug_level: Annotated[
        int, about("Debug level of sssd.", INT32, {"minimum": 0}, UNSTORED)
    ] = 0
    sssd_conf_secret_ref_name: Annotated[
        str, about("Secret with sssd.conf; generated when empty.")
    ] = ""
    sssd_ldap_ca_config_map_ref_name: Annotated[
        str, about("ConfigMap with CA certificates for LDAP.")
    ] = field(default="", name="sssdLdapCAConfigMapRefName")


class Image(KubeStruct, frozen=True):
    """An image in parts."""

    repository: Annotated[str, about("Registry and name of the image.")]
    tag: Annotated[str, about("Tag of the image.")] = ""
    pull_policy: ImagePullPolicy = "IfNotPresent"

    @property
    def reference(self) -> str:
        """The image as one string."""
        return f"{self.repository}:{self.tag}" if self.tag else self.repository
