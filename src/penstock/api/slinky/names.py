"""Names of everything that is derived from an object of `slinky.slurm.net`.

Users reach these objects by name, and slurm-operator has made them under the same names: a name
here is a promise. Where two names exist, the older documentation used the second.
"""

from __future__ import annotations

from penstock.api.cluster import embedded_database
from penstock.api.cluster.pod_names import node_suffix, ordinal_in
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.slinky.accounting import Accounting, StorageConfig
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.labels import RESERVATION_PREFIX
from penstock.api.slinky.loginset import LoginSet
from penstock.api.slinky.nodeset import NodeSet
from penstock.api.slinky.restapi import RestApi
from penstock.api.slinky.token import Token
from penstock.slurm.auth.key_files import JWT_KEY, SLURM_KEY
from penstock.slurm.daemons import SLURMCTLD_PORT, SLURMDBD_PORT

# Controller


def cluster_name(controller: Controller) -> str:
    """Slurm's ClusterName."""
    meta = controller.metadata
    return controller.spec.cluster_name or f"{meta.namespace}_{meta.name}"


def controller_workload(controller: Controller) -> str:
    """StatefulSet of slurmctld."""
    return f"{controller.metadata.name}-controller"


def controller_pod(controller: Controller, ordinal: int = 0) -> str:
    """Pod of one slurmctld; 0 is the primary."""
    return f"{controller_workload(controller)}-{ordinal}"


def controller_service(controller: Controller) -> str:
    """Service that leads to the active slurmctld."""
    return controller_service_of(controller.metadata.name)


def controller_service_of(controller_name: str) -> str:
    """As `controller_service`, for a Controller known by its name only."""
    return f"{controller_name}-controller"


def controller_service_alias(controller: Controller) -> str:
    """Second name of the Service."""
    return f"slurm-controller-{controller.metadata.name}"


def controller_headless_service(controller: Controller) -> str:
    """Headless Service that gives each slurmctld pod its DNS name."""
    return f"{controller.metadata.name}-controller-internal"


def slurmctld_address(controller: Controller, ordinal: int = 0) -> str:
    """Where one slurmctld is found, as SlurmctldHost names it.

    One of several is found by a Service of its own, whose name resolves while the pod is absent:
    Slurm tries for seconds to resolve the names of all slurmctld before it asks any.
    """
    pod, space = controller_pod(controller, ordinal), controller.metadata.namespace
    if controller.spec.replicas > 1:
        return f"{pod}.{space}"
    return f"{pod}.{controller_headless_service(controller)}.{space}"


def controller_monitor(controller: Controller) -> str:
    """ServiceMonitor of slurmctld."""
    return f"{controller.metadata.name}-controller"


def config_map(controller: Controller) -> str:
    """ConfigMap with slurm.conf."""
    return f"{controller.metadata.name}-config"


def config_map_alias(controller: Controller) -> str:
    """Second name of the ConfigMap."""
    return f"slurm-config-{controller.metadata.name}"


def config_candidate(controller: Controller) -> str:
    """ConfigMap with the files that are tried before they get to the other two."""
    return f"{controller.metadata.name}-config-candidate"


def partition_record(controller: Controller) -> str:
    """ConfigMap with the partitions in which jobs of slurmctld's state may be."""
    return f"{controller_workload(controller)}-partitions"


def slurm_key_ref(controller: Controller) -> SecretKeySelector:
    """Where the key is that signs messages: as declared, else a Secret that the operator generates.

    It is slurm.key, or with munge munge.key.
    """
    spec = controller.spec
    return (
        spec.munge_key_ref
        or spec.slurm_key_ref
        or SecretKeySelector(name=generated_slurm_key(controller), key=SLURM_KEY)
    )


def jwt_key_ref(controller: Controller) -> SecretKeySelector:
    """Where the JWT key is: as declared, else the Secret that the operator generates."""
    return controller.spec.effective_jwt_key_ref or SecretKeySelector(
        name=generated_jwt_key(controller), key=JWT_KEY
    )


def generated_slurm_key(controller: Controller) -> str:
    """Secret with slurm.key of a Controller that names none."""
    return f"{controller.metadata.name}-auth-slurm"


def key_ring(controller: Controller) -> str:
    """Secret with the keys that auth/slurm uses while slurm.key is changed."""
    return f"{controller.metadata.name}-auth-slurm-ring"


def generated_jwt_key(controller: Controller) -> str:
    """Secret with jwt.key of a Controller that names none."""
    return f"{controller.metadata.name}-auth-jwt"


def slurmctld_host(controller: Controller) -> str:
    """Host under which clients reach slurmctld, inside or outside."""
    external = controller.spec.external_config
    if controller.spec.external and external is not None:
        return external.host
    return f"{controller_service(controller)}.{controller.metadata.namespace}"


def slurmctld_port(controller: Controller) -> int:
    """Port under which clients reach slurmctld, inside or outside."""
    external = controller.spec.external_config
    if controller.spec.external and external is not None:
        return external.port or SLURMCTLD_PORT
    return controller.spec.service.port or SLURMCTLD_PORT


# NodeSet


def worker_service(controller_name: str) -> str:
    """Headless Service of all workers of one Controller."""
    return f"slurm-workers-{controller_name}"


def worker_budget(controller_name: str) -> str:
    """PodDisruptionBudget of all workers of one Controller."""
    return f"slurm-workers-pdb-{controller_name}"


def worker_ssh_config(nodeset: NodeSet) -> str:
    """ConfigMap with the workers' sshd_config."""
    return f"{nodeset.metadata.name}-ssh-config"


def padded(nodeset: NodeSet, ordinal: int) -> str:
    """The ordinal with leading zeros, by `ordinalPadding`."""
    return str(ordinal).zfill(nodeset.spec.ordinal_padding)


def pod_name(nodeset: NodeSet, ordinal: int) -> str:
    """Worker pod of an ordinal."""
    return padded_name(nodeset.metadata.name, nodeset.spec.ordinal_padding, ordinal)


def padded_name(nodeset: str, padding: int, ordinal: int) -> str:
    """As `pod_name`, for a NodeSet known by its name and `ordinalPadding` only."""
    return f"{nodeset}-{str(ordinal).zfill(padding)}"


def node_pod_name(nodeset: NodeSet, kubernetes_node: str) -> str:
    """Worker pod of a Kubernetes node in DaemonSet mode: always the same one.

    It looks as if the API server had generated it, which slurm-operator leaves it to.
    """
    meta = nodeset.metadata
    return f"{meta.name}-{node_suffix(meta.uid, kubernetes_node)}"


def ordinal_of(nodeset: NodeSet, pod: str) -> int | None:
    """Ordinal of a worker pod's name; None when the name is not one of this NodeSet's."""
    return ordinal_in(f"{nodeset.metadata.name}-", pod)


def template_hostname(nodeset: NodeSet) -> str:
    """`template.spec.hostname`, or the empty string."""
    hostname = nodeset.spec.template.spec.get("hostname")
    return hostname if isinstance(hostname, str) else ""


def slurm_node_name(nodeset: NodeSet, ordinal: int) -> str:
    """Slurm's NodeName of an ordinal, unless the pod has `hostNetwork`."""
    hostname = template_hostname(nodeset)
    if hostname:
        return f"{hostname}{padded(nodeset, ordinal)}"
    return pod_name(nodeset, ordinal)


def partition_name(nodeset: NodeSet) -> str:
    """Name of the NodeSet's feature, Slurm node set and partition."""
    words = template_hostname(nodeset).split()
    return (words[0].strip("-") if words else "") or nodeset.metadata.name


def worker_pvc(nodeset: NodeSet, template: str, ordinal: int) -> str:
    """Name of the PVC of an ordinal, by the claim template's name."""
    return f"{template}-{pod_name(nodeset, ordinal)}"


def node_pvc(nodeset: NodeSet, template: str, slurm_node: str) -> str:
    """Name of the PVC of a pod in DaemonSet mode, by the claim template and the Slurm node."""
    return f"{template}-{nodeset.metadata.name}-{slurm_node}"


def reservation(nodeset: NodeSet) -> str:
    """Slurm reservation of a scheduled update."""
    return f"{RESERVATION_PREFIX}{nodeset.metadata.name}"


# LoginSet


def login_workload(loginset: LoginSet) -> str:
    """Deployment of the login pods."""
    return loginset.metadata.name


def login_service(loginset: LoginSet) -> str:
    """Service of the login pods."""
    return loginset.metadata.name


def login_ssh_config(loginset: LoginSet) -> str:
    """ConfigMap with sshd_config and root's authorized_keys."""
    return f"{loginset.metadata.name}-ssh-config"


def login_host_keys(loginset: LoginSet) -> str:
    """Secret with the SSH host keys."""
    return f"{loginset.metadata.name}-ssh-host-keys"


# RestApi, Accounting, Token


def restapi_workload(restapi: RestApi) -> str:
    """Deployment of slurmrestd."""
    return f"{restapi.metadata.name}-restapi"


def restapi_service(restapi: RestApi) -> str:
    """Service of slurmrestd."""
    return f"{restapi.metadata.name}-restapi"


def accounting_workload(accounting: Accounting) -> str:
    """StatefulSet, Service and Secret of slurmdbd."""
    return f"{accounting.metadata.name}-accounting"


def accounting_database(accounting: Accounting) -> str:
    """StatefulSet, Service and Secret of the MariaDB that the operator runs for slurmdbd."""
    return f"{accounting_workload(accounting)}-db"


def storage_config(accounting: Accounting) -> StorageConfig | None:
    """The database of slurmdbd: as declared, else the one that the operator runs."""
    if accounting.spec.storage_config is not None or accounting.spec.embedded_database is None:
        return accounting.spec.storage_config
    name = accounting_database(accounting)
    return StorageConfig(
        host=name,
        port=embedded_database.PORT,
        database=embedded_database.DATABASE,
        username=embedded_database.USER,
        password_key_ref=SecretKeySelector(name=name, key=embedded_database.KEY),
    )


def accounting_pod(accounting: Accounting) -> str:
    """The pod of slurmdbd, which is also its DbdHost."""
    return f"{accounting_workload(accounting)}-0"


def accounting_host(accounting: Accounting) -> str:
    """Host under which slurmctld reaches slurmdbd, inside or outside."""
    external = accounting.spec.external_config
    if accounting.spec.external and external is not None:
        return external.host
    return accounting_workload(accounting)


def accounting_port(accounting: Accounting) -> int:
    """Port under which slurmctld reaches slurmdbd, inside or outside."""
    external = accounting.spec.external_config
    if accounting.spec.external and external is not None:
        return external.port or SLURMDBD_PORT
    return accounting.spec.service.port or SLURMDBD_PORT


def token_secret(token: Token) -> SecretKeySelector:
    """Where the token is put."""
    return token.spec.secret_ref or SecretKeySelector(
        name=f"{token.metadata.name}-jwt-{token.spec.username}", key="SLURM_JWT"
    )
