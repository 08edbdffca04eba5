"""Controller: one Slurm cluster and its slurmctld."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import field

from penstock.api.cluster.slurmctld_status import SlurmctldStatus
from penstock.api.kubernetes.meta import KubeObject, KubeStruct, LocalObjectReference
from penstock.api.kubernetes.pvc_spec import PvcSpec
from penstock.api.kubernetes.resource import Resource
from penstock.api.kubernetes.schema import (
    AGE,
    ATOMIC_MAP,
    DEFAULT,
    INT32,
    NULLABLE,
    PROMETHEUS_DURATION,
    READY,
    REASON,
    KindInfo,
    about,
    rule,
)
from penstock.api.kubernetes.spec_parts import (
    LOCAL_REF,
    Container,
    PodTemplate,
    Refs,
    SecretKeySelector,
    ServiceSpec,
    has_condition,
)
from penstock.api.slinky.common import (
    EXTERNAL_CONFIG,
    GROUP,
    LONGEST_CONF,
    NO_HOST_NETWORK,
    ONE_KEY,
    SSSD_NAME,
    VERSION,
    ExternalConfig,
    JwksKeyRef,
    JwtHs256KeyRef,
    JwtKeyRef,
    MungeKeyRef,
    SlurmKeyRef,
    fixed_once,
    munge_kept,
    same_jwt_key,
)

MOST_BACKUPS = 9
"""A backup more than one or two is never seen; each is a line of slurm.conf and a pod."""

# CEL expressions about one state of the spec. Without `persistence` a PVC is created.
_PERSISTENT = "(!has({0}.persistence) || {0}.persistence.enabled)"
_CLAIM = (
    "(has({0}.persistence) && has({0}.persistence.existingClaim) "
    "? {0}.persistence.existingClaim : '')"
)
_CLUSTER_NAME = "(has({0}.spec.clusterName) ? {0}.spec.clusterName : '')"
_SLURM_KEY = (
    "(has({0}.spec.slurmKeyRef) ? {0}.spec.slurmKeyRef.name : {0}.metadata.name + '-auth-slurm')"
)
_JWT_KEY_FALLBACK = "self.metadata.name + '-auth-jwt/jwt.key'"
# ConfigApplied is there from the time when slurmctld has worked. Of an external slurmctld nothing
# is kept but whether it answers.
_KEYS_USED = has_condition(
    "c.type == 'ConfigApplied' || "
    "(oldSelf.spec.external && c.type == 'Ready' && c.status == 'True')"
)

PrometheusDuration = Annotated[
    str, about("A Prometheus duration, such as 30s.", PROMETHEUS_DURATION)
]


class HighAvailability(KubeStruct, frozen=True):
    """Slurm's own high availability: backup slurmctld daemons over a shared state directory."""

    enabled: Annotated[bool, about("Whether to run backups.")] = False
    backups: Annotated[
        int, about("Number of backups.", INT32, {"minimum": 1, "maximum": MOST_BACKUPS})
    ] = 1


class Persistence(PvcSpec, frozen=True):
    """Where slurmctld keeps its state; the fields of a PersistentVolumeClaimSpec are inline."""

    enabled: Annotated[bool, about("Whether the state is kept in a PVC.")] = True
    existing_claim: Annotated[
        str, about("Use this PVC instead of creating one.", {"maxLength": 253})
    ] = ""


class MetricsEndpoint(KubeStruct, frozen=True):
    """One path that Prometheus reads."""

    path: Annotated[str, about("HTTP path.")]
    interval: PrometheusDuration = ""
    scrape_timeout: PrometheusDuration = ""


class ServiceMonitor(KubeStruct, frozen=True):
    """A ServiceMonitor of the Prometheus operator."""

    enabled: Annotated[bool, about("Whether to make one.")] = False
    labels: Annotated[dict[str, str] | None, about("Labels to add.")] = None
    annotations: Annotated[dict[str, str] | None, about("Annotations to add.")] = None
    interval: PrometheusDuration = ""
    scrape_timeout: PrometheusDuration = ""
    endpoints: Annotated[
        tuple[MetricsEndpoint, ...] | None, about("Paths to read. Slurm's four when absent.")
    ] = None


class Metrics(KubeStruct, frozen=True):
    """slurmctld's own metrics."""

    enabled: Annotated[bool, about("Whether slurmctld serves OpenMetrics.")] = False
    service_monitor: Annotated[
        ServiceMonitor | None, about("How Prometheus finds them.", NULLABLE)
    ] = None


class ControllerSpec(KubeStruct, frozen=True):
    """What a Slurm cluster should be."""

    cluster_name: Annotated[
        str,
        about(
            "Slurm's ClusterName; `<namespace>_<name>` when absent. Cannot be changed.",
            {"maxLength": 40},
        ),
    ] = ""
    slurm_key_ref: SlurmKeyRef = None
    munge_key_ref: MungeKeyRef = None
    jwt_hs256_key_ref: JwtHs256KeyRef = None
    jwt_key_ref: JwtKeyRef = None
    jwks_key_ref: JwksKeyRef = None
    accounting_ref: Annotated[
        LocalObjectReference | None,
        about("The Accounting that keeps this cluster's records.", LOCAL_REF),
    ] = None
    external: Annotated[bool, about("Whether slurmctld runs outside of Kubernetes.")] = False
    external_config: Annotated[
        ExternalConfig | None, about("Address of the external slurmctld.")
    ] = None
    ha: Annotated[HighAvailability | None, about("Backup slurmctld daemons.")] = None
    slurmctld: Container = field(default_factory=dict[str, Any])
    inplace_reconfigure: Annotated[
        bool | None,
        about(
            "A changed configuration is always taken over without a restart of slurmctld: true "
            "and false mean the same. The field is there for manifests of slurm-operator."
        ),
    ] = None
    reconfigure: Container = field(default_factory=dict[str, Any])
    logfile: Container = field(default_factory=dict[str, Any])
    template: Annotated[PodTemplate, about("Overrides of the slurmctld pod.", NO_HOST_NETWORK)] = (
        PodTemplate()
    )
    extra_conf: Annotated[
        str, about("Lines added at the end of slurm.conf.", {"maxLength": LONGEST_CONF})
    ] = ""
    sssd_conf_ref: Annotated[
        SecretKeySelector | None,
        about(
            "Secret with sssd.conf. sssd then runs beside slurmctld, which finds a directory's "
            "users by name: those of tokens, and those of groups that a partition allows. Login "
            "pods and workers have references of their own.",
            ATOMIC_MAP,
        ),
    ] = None
    config_file_refs: Refs = None
    prolog_script_refs: Refs = None
    epilog_script_refs: Refs = None
    prolog_slurmctld_script_refs: Refs = None
    epilog_slurmctld_script_refs: Refs = None
    persistence: Annotated[Persistence | None, about("Where slurmctld keeps its state.")] = None
    service: Annotated[ServiceSpec, about("Overrides of the Service.")] = ServiceSpec()
    metrics: Annotated[Metrics, about("slurmctld's metrics.")] = Metrics()

    @property
    def effective_jwt_key_ref(self) -> SecretKeySelector | None:
        """The JWT key under either of its names; None when it is to be generated."""
        return self.jwt_key_ref or self.jwt_hs256_key_ref

    @property
    def persistent(self) -> bool:
        """Whether slurmctld's state is in a PVC; the default."""
        return self.persistence is None or self.persistence.enabled

    @property
    def replicas(self) -> int:
        """Number of slurmctld daemons: the primary and its backups."""
        return 1 + self.ha.backups if self.ha and self.ha.enabled else 1


class ControllerStatus(SlurmctldStatus, frozen=True):
    """What a Slurm cluster is."""


class Controller(KubeObject, frozen=True):
    """One Slurm cluster: slurmctld, its configuration and its keys."""

    spec: Annotated[
        ControllerSpec,
        about(
            "What the Slurm cluster should be.",
            {DEFAULT: {}},
            EXTERNAL_CONFIG,
            SSSD_NAME,
            ONE_KEY,
            rule(
                f"!has(self.ha) || !self.ha.enabled || ({_PERSISTENT.format('self')} && "
                f"{_CLAIM.format('self')} != '')",
                "slurm high availability (HA) mode requires existing PVC with an access mode of "
                "ReadWriteMany",
            ),
            rule(
                f"{_PERSISTENT.format('self')} == {_PERSISTENT.format('oldSelf')}",
                "persistence.enabled is immutable",
            ),
            rule(
                f"!{_PERSISTENT.format('self')} || "
                f"{_CLAIM.format('self')} == {_CLAIM.format('oldSelf')}",
                "persistence.existingClaim is immutable while persistence is enabled",
            ),
        ),
    ] = ControllerSpec()
    status: Annotated[ControllerStatus, about("What it is.")] = ControllerStatus()


CONTROLLERS = Resource(GROUP, VERSION, "Controller", "controllers", Controller, optional=True)
INFO = KindInfo(
    CONTROLLERS,
    ("slurmctld",),
    (AGE, READY, REASON),
    rules=(
        # A namespace cannot be seen by CEL: of <namespace>_<name> the end is compared.
        rule(
            f"{_CLUSTER_NAME.format('self')} == {_CLUSTER_NAME.format('oldSelf')} || "
            f"({_CLUSTER_NAME.format('self')} == '' && "
            f"{_CLUSTER_NAME.format('oldSelf')}.endsWith('_' + self.metadata.name)) || "
            f"({_CLUSTER_NAME.format('oldSelf')} == '' && "
            f"{_CLUSTER_NAME.format('self')}.endsWith('_' + self.metadata.name))",
            "clusterName is immutable: slurmctld's state and accounting records carry it",
        ),
        fixed_once(
            _KEYS_USED,
            f"{_SLURM_KEY.format('self')} == {_SLURM_KEY.format('oldSelf')}",
            "slurmKeyRef",
            "once slurmctld has worked with it",
        ),
        fixed_once(
            _KEYS_USED,
            same_jwt_key(_JWT_KEY_FALLBACK),
            "jwtKeyRef",
            "once slurmctld has worked with it",
        ),
        munge_kept(_KEYS_USED, "once slurmctld has worked"),
    ),
)
