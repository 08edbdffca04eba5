"""Names of the objects of a SlurmCluster and of its NodeSets, as users and their scripts know them.

Names of StatefulSets and Deployments may have a prefix: `workload_prefix`.
"""

from __future__ import annotations

from typing import Final

from penstock.api.cluster.pod_names import node_suffix
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.nebius.labels import PARENT_CLUSTER
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.slurm.auth.key_files import SLURM_KEY

IMPLICIT_NODE_SET: Final = "worker"
"""Node set of `spec.slurmNodes.worker`: its pods and Slurm nodes are `worker-<n>`."""
MUNGE_KEY: Final = "munge.key"
JWT_KEY: Final = "rest_jwt.key"
SLURMCTLD_PORT: Final = 6817
SPOOL: Final = "worker-spool"
"""Volume of a worker with the state of slurmd, and the template of its PVC."""
CONTROLLER_SPOOL: Final = "controller-spool"
"""Volume with the state of slurmctld, and the template of its PVC."""
JAIL: Final = "jail"
"""Volume with the jail, and the template of its PVC."""

JAIL_MARKER: Final = "/etc/soperator-jail-populated"
"""File of a jail that is filled, by the name for which the pods of version 5.0 wait."""


def cluster_of(nodeset: NodeSet) -> str:
    """The SlurmCluster of a NodeSet; empty when it has none."""
    return nodeset.spec.cluster_name or nodeset.metadata.annotations.get(PARENT_CLUSTER, "")


def workload_prefix(cluster: SlurmCluster, *, keeps_plain_names: bool, is_second: bool) -> str:
    """Prefix of the names of StatefulSets and Deployments.

    None in the shape with `spec.slurmNodes.worker`, whose scripts name `controller-0`, and where
    the cluster already has a StatefulSet `controller` (`keeps_plain_names`). A cluster beside
    another one with plain names (`is_second`) has `<cluster>-`, as those of later versions.
    """
    plain = cluster.spec.slurm_nodes.worker is not None and not is_second
    return "" if keeps_plain_names or plain else f"{cluster.metadata.name}-"


def populate_job(cluster: str) -> str:
    """The Job that fills the jail."""
    return f"{cluster}-populate-jail"


def nccl_benchmark(cluster: str) -> str:
    """The ActiveCheck of spec.periodicChecks.ncclBenchmark, and its CronJob."""
    return f"{cluster}-nccl-benchmark"


def service(cluster: str, component: str) -> str:
    """The Service of controller, login, accounting, rest, login-headless, worker or nodeset."""
    return f"{cluster}-{component}-svc"


def node_set_service(cluster: str, node_set: str) -> str:
    """The Service of one NodeSet's workers."""
    return service(cluster, f"nodeset-{node_set}")


def worker_budget(cluster: str) -> str:
    """The PodDisruptionBudget of all workers of a SlurmCluster."""
    return f"{cluster}-workers-pdb"


def slurm_configs(cluster: str) -> str:
    """The ConfigMap with the files in force."""
    return f"{cluster}-slurm-configs"


def topology_config(prefix: str) -> str:
    """The ConfigMap with topology.conf."""
    return f"{prefix}topology-config"


def candidate_configs(cluster: str) -> str:
    """The ConfigMap with the files to try next."""
    return f"{slurm_configs(cluster)}-candidate"


def ssh_configs(cluster: SlurmCluster) -> str:
    """The ConfigMap with sshd_config of the logins: the user's, or the operator's."""
    given = cluster.spec.slurm_nodes.login.sshd_config_map_ref_name
    return given or f"{cluster.metadata.name}-ssh-configs"


def worker_ssh_configs(cluster: str, given: str = "") -> str:
    """The ConfigMap with sshd_config of workers; `given` is the user's."""
    return given or f"{cluster}-ssh-configs-worker"


def ssh_root_keys(cluster: str) -> str:
    """The ConfigMap with root's public keys."""
    return f"{cluster}-ssh-root-keys"


def sysctl(cluster: str) -> str:
    """The ConfigMap with sysctl.conf of the workers."""
    return f"{cluster}-sysctl"


def supervisord(cluster: str, given: str = "") -> str:
    """The ConfigMap with the programs of workers' supervisord; `given` is the user's."""
    return given or f"{cluster}-supervisord"


def security_limits(cluster: str, component: str) -> str:
    """The ConfigMap with limits.conf of controller, login, worker or `nodeset-<name>`."""
    return f"{cluster}-{component}-security-limits"


def sshd_keys_secret(cluster: SlurmCluster) -> str:
    """The Secret with ssh host keys: the user's, or the operator's."""
    return cluster.spec.secrets.sshd_keys_name or f"{cluster.metadata.name}-sshd-keys"


def config_writer_account(cluster: SlurmCluster) -> str:
    """The ServiceAccount of sconfigcontroller: the user's, or the operator's."""
    given = cluster.spec.sconfig_controller.service_account_name
    return given or f"{cluster.metadata.name}-sconfigcontroller-sa"


def config_writer_role(cluster: str) -> str:
    """The Role of the operator's ServiceAccount of sconfigcontroller."""
    return f"{cluster}-sconfigcontroller-configmaps-role"


def config_writer_role_binding(cluster: str) -> str:
    """The RoleBinding of that Role."""
    return f"{config_writer_role(cluster)}-binding"


def controller_account(cluster: SlurmCluster) -> str:
    """The ServiceAccount of slurmctld's pod where NodeSets are ephemeral, and its rights."""
    given = cluster.spec.slurm_nodes.controller.service_account_name
    return given or f"{cluster.metadata.name}-slurm-controller"


def exporter_account(cluster: SlurmCluster, prefix: str) -> str:
    """The ServiceAccount of the exporter: the user's, or the operator's."""
    given = cluster.spec.slurm_nodes.exporter.service_account_name
    return given or f"{exporter(prefix)}-sa"


def exporter(prefix: str) -> str:
    """The Deployment of the exporter, and what the names of its rights begin with."""
    return f"{prefix}slurm-exporter"


def exporter_state(cluster: str) -> str:
    """The ConfigMap in which the exporter keeps durations."""
    return f"{cluster}-slurm-exporter-state"


def controller_monitor(cluster: str) -> str:
    """The ServiceMonitor of slurmctld."""
    return f"{cluster}-slurmctld-metrics"


def exporter_monitor(cluster: str) -> str:
    """The PodMonitor of the exporter."""
    return cluster


def munge_secret(cluster: str) -> str:
    """The Secret with the key of munge."""
    return f"{cluster}-munge"


def slurm_key_secret(cluster: str) -> str:
    """The Secret with the key of auth/slurm."""
    return f"{cluster}-auth-slurm"


def key_ring(cluster: str) -> str:
    """The Secret with all keys of auth/slurm that are valid while the key changes.

    That of a Controller of the same name has another name.
    """
    return f"{cluster}-slurm-key-ring"


def auth_key(cluster: SlurmCluster) -> SecretKeySelector:
    """Where the key is by which daemons and clients sign their messages."""
    name = cluster.metadata.name
    if cluster.spec.has_munge:
        return SecretKeySelector(name=munge_secret(name), key=MUNGE_KEY)
    return SecretKeySelector(name=slurm_key_secret(name), key=SLURM_KEY)


def jwt_secret(cluster: str) -> str:
    """The Secret with the key of auth/jwt."""
    return f"{cluster}-rest-jwt-key"


def slurmdbd_configs(cluster: str) -> str:
    """The Secret with slurmdbd.conf, and the password of the database in it."""
    return f"{cluster}-slurmdbd-configs"


def accounting_database(cluster: str) -> str:
    """StatefulSet, Service and Secret of the MariaDB that the operator runs for slurmdbd."""
    return f"{cluster}-accounting-db"


def mariadb(cluster: str) -> str:
    """The MariaDB and the Grant for mariadb-operator, and the Service that this makes."""
    return f"{cluster}-acct-db"


def mariadb_password(cluster: str) -> str:
    """The Secret with the password of slurmdbd's user in a new MariaDB."""
    return f"{mariadb(cluster)}-password"


def mariadb_root(cluster: str) -> str:
    """The Secret with the password of root in a new MariaDB."""
    return f"{mariadb(cluster)}-root"


def last_known_good_configs(cluster: str) -> str:
    """The ConfigMap with the files that slurmctld was seen to run with."""
    return f"{slurm_configs(cluster)}-last-known-good"


def partition_record(cluster: str) -> str:
    """The ConfigMap with the partitions of slurmctld's state, which outlives the SlurmCluster."""
    return f"{slurm_configs(cluster)}-partitions"


def user_isolation(cluster: str) -> str:
    """The ConfigMap with the limits of each user of a login pod."""
    return f"{cluster}-login-user-isolation"


def controller_workload(prefix: str) -> str:
    """The StatefulSet of slurmctld; `prefix` is that of the workloads."""
    return f"{prefix}controller"


def controller_pod(prefix: str) -> str:
    """The pod of slurmctld, and its hostname; `prefix` is that of the workloads."""
    return f"{controller_workload(prefix)}-0"


def check_account(cluster: str) -> str:
    """The ServiceAccount of the pods of checks."""
    return f"{cluster}-activecheck-sa"


def check_role(cluster: str) -> str:
    """The Role of that ServiceAccount."""
    return f"{cluster}-activecheck-role"


def check_role_binding(cluster: str) -> str:
    """The RoleBinding of that Role."""
    return f"{check_role(cluster)}-binding"


def sbatch_script(check: str) -> str:
    """The ConfigMap with the inline script of a check, by its spec.name."""
    return f"sbatch-script-{check}"


def initial_run(check: str) -> str:
    """The Job that runs a check once at its creation, by its spec.name."""
    return f"{check}-initial-run"


def retest(check: str, uid: str, slurm_node: str) -> str:
    """The Job that runs a check for one Slurm node, off the Kubernetes node of this uid."""
    return f"{check}-{node_suffix(uid, slurm_node)}"
