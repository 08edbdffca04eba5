"""The caches of the kinds that a SlurmCluster is declared with, and who belongs to whom."""

from __future__ import annotations

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import (
    CRON_JOBS,
    DAEMON_SETS,
    JOBS,
    POD_MONITORS,
    POD_TEMPLATES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    Job,
    Pod,
)
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.nebius import labels, names
from penstock.api.nebius.active_check import ACTIVE_CHECKS, ActiveCheck
from penstock.api.nebius.advanced_stateful_set import ADVANCED_STATEFUL_SETS
from penstock.api.nebius.jailed_config import JAILED_CONFIGS
from penstock.api.nebius.mariadb_objects import GRANTS, MARIADBS
from penstock.api.nebius.node_configurator import NODE_CONFIGURATORS
from penstock.api.nebius.nodeset import NODE_SETS, NodeSet
from penstock.api.nebius.power_state import POWER_STATES, NodeSetPowerState
from penstock.api.nebius.slurmcluster import SLURM_CLUSTERS, SlurmCluster
from penstock.api.penstock.backup import BACKUPS, Backup
from penstock.api.penstock.jail_upgrade import JAIL_UPGRADES
from penstock.api.penstock.restore import RESTORES, Restore
from penstock.catalog.marks import penstock
from penstock.controllers.caches.kubernetes import KubernetesCaches
from penstock.controllers.caches.store import CacheStore
from penstock.kube.runtime.declaration import IndexBy, Lookup


def cluster_keys(node_set: NodeSet, _: Lookup | None = None) -> list[str]:
    """Key of the SlurmCluster that a NodeSet names, whether that exists or not."""
    name = names.cluster_of(node_set)
    return [f"{node_set.metadata.namespace}/{name}"] if name else []


def component_of(pod: Pod) -> list[str]:
    """The value of an index: namespace, SlurmCluster and component of a pod, by its labels."""
    meta = pod.metadata
    if meta.labels.get(app_labels.APP_NAME) != labels.NAME:
        return []
    cluster = meta.labels.get(app_labels.APP_INSTANCE, "")
    return [f"{meta.namespace}/{cluster}/{meta.labels.get(app_labels.APP_COMPONENT, '')}"]


def cluster_of_jailed_config(config: KubeObject, _: Lookup | None = None) -> list[str]:
    """Key of the SlurmCluster that a JailedConfig belongs to, by its label."""
    name = config.metadata.labels.get(app_labels.APP_INSTANCE, "")
    return [f"{config.metadata.namespace}/{name}"] if name else []


def cluster_of_check(check: ActiveCheck, _: Lookup | None = None) -> list[str]:
    """Key of the SlurmCluster that an ActiveCheck names, whether that exists or not."""
    name = check.spec.slurm_cluster_ref_name
    return [f"{check.metadata.namespace}/{name}"] if name else []


def checks_before(check: ActiveCheck) -> list[str]:
    """Keys of the ActiveChecks that a check depends on, whether they exist or not."""
    return [f"{check.metadata.namespace}/{one}" for one in dict.fromkeys(check.spec.depends_on)]


def template_of_check(check: ActiveCheck) -> list[str]:
    """Key of the PodTemplate that a check names, whether it exists or not."""
    name = check.spec.pod_template_name_ref
    return [f"{check.metadata.namespace}/{name}"] if name else []


def check_of_job(job: Job, _: Lookup | None = None) -> list[str]:
    """Key of the ActiveCheck of a Job, by the CronJob of that name that owns it."""
    meta = job.metadata
    return [
        f"{meta.namespace}/{one.name}"
        for one in meta.owner_references
        if one.is_kind(CRON_JOBS.group, CRON_JOBS.kind)
    ]


def cluster_of_backup(backup: Backup, _: Lookup | None = None) -> list[str]:
    """Key of the SlurmCluster that a Backup names, whether that exists or not."""
    return [f"{backup.metadata.namespace}/{backup.spec.cluster_ref.name}"]


def backup_of(obj: KubeObject, _: Lookup | None = None) -> list[str]:
    """Key of the Backup of a Job or pod, by its label."""
    name = obj.metadata.labels.get(penstock.BACKUP.key, "")
    return [f"{obj.metadata.namespace}/{name}"] if name else []


def upgrade_of(obj: KubeObject, _: Lookup | None = None) -> list[str]:
    """Key of the JailUpgrade of a Job or pod, by its label."""
    name = obj.metadata.labels.get(penstock.JAIL_UPGRADE.key, "")
    return [f"{obj.metadata.namespace}/{name}"] if name else []


def cluster_of_restore(restore: Restore, _: Lookup | None = None) -> list[str]:
    """Key of the SlurmCluster that a Restore has stopped."""
    name = restore.status.cluster
    return [f"{restore.metadata.namespace}/{name}"] if name else []


PODS_BY_COMPONENT = IndexBy(PODS, component_of)
NODE_SETS_BY_CLUSTER = IndexBy(NODE_SETS, cluster_keys)
JAILED_CONFIGS_BY_CLUSTER = IndexBy(JAILED_CONFIGS, cluster_of_jailed_config)
CHECKS_BY_CLUSTER = IndexBy(ACTIVE_CHECKS, cluster_of_check)
CHECKS_BY_DEPENDENCY = IndexBy(ACTIVE_CHECKS, checks_before)
CHECKS_BY_TEMPLATE = IndexBy(ACTIVE_CHECKS, template_of_check)
JOBS_BY_CHECK = IndexBy(JOBS, check_of_job)
BACKUPS_BY_CLUSTER = IndexBy(BACKUPS, cluster_of_backup)
JOBS_BY_BACKUP = IndexBy(JOBS, backup_of)
JAIL_UPGRADES_BY_NAMESPACE = IndexBy(JAIL_UPGRADES, lambda one: [one.metadata.namespace])
RESTORES_BY_NAMESPACE = IndexBy(RESTORES, lambda one: [one.metadata.namespace])
CLUSTERS_BY_NAMESPACE = IndexBy(SLURM_CLUSTERS, lambda one: [one.metadata.namespace])


class NebiusCaches(KubernetesCaches):
    """The index of NodeSets has the key of their SlurmCluster."""

    def __init__(self, store: CacheStore) -> None:
        super().__init__(store)
        self.clusters = store.of(SLURM_CLUSTERS, raw=True)
        self.node_sets = store.of(NODE_SETS, raw=True)
        self.power_states = store.of(POWER_STATES)
        self.jailed_configs = store.of(JAILED_CONFIGS, raw=True)
        self.mariadbs = store.of(MARIADBS, raw=True)
        self.grants = store.of(GRANTS, raw=True)
        self.jobs = store.of(JOBS, raw=True)
        self.active_checks = store.of(ACTIVE_CHECKS, raw=True)
        self.daemon_sets = store.of(DAEMON_SETS, raw=True)
        self.node_configurators = store.of(NODE_CONFIGURATORS, raw=True)
        self.pod_templates = store.of(POD_TEMPLATES)
        self.cron_jobs = store.of(CRON_JOBS, raw=True)
        self.pod_monitors = store.of(POD_MONITORS, raw=True)
        self.advanced_stateful_sets = store.of(ADVANCED_STATEFUL_SETS, raw=True)
        self.service_accounts = store.of(SERVICE_ACCOUNTS, raw=True)
        self.roles = store.of(ROLES, raw=True)
        self.role_bindings = store.of(ROLE_BINDINGS, raw=True)
        self.backups = store.of(BACKUPS)
        self.restores = store.of(RESTORES)
        self.jail_upgrades = store.of(JAIL_UPGRADES)
        self.jail_upgrades_in = store.index(JAIL_UPGRADES_BY_NAMESPACE)
        self.jobs_of_backup = store.index(JOBS_BY_BACKUP)
        self.restores_in = store.index(RESTORES_BY_NAMESPACE)
        self.node_sets_of = store.index(NODE_SETS_BY_CLUSTER)
        self.pods_of_component = store.index(PODS_BY_COMPONENT)
        self.jailed_configs_of = store.index(JAILED_CONFIGS_BY_CLUSTER)
        self.checks_of = store.index(CHECKS_BY_CLUSTER)
        self.jobs_of_check = store.index(JOBS_BY_CHECK)
        self.clusters_in = store.index(CLUSTERS_BY_NAMESPACE)

    @property
    def databases_absent(self) -> str:
        """Why there are no kinds of mariadb-operator; empty when there are."""
        return self.mariadbs.absent or self.grants.absent

    def cluster_of(self, node_set: NodeSet) -> SlurmCluster | None:
        """The SlurmCluster of a NodeSet, if it exists."""
        return next(filter(None, map(self.clusters.get, cluster_keys(node_set))), None)

    def power_state_of(self, node_set: NodeSet) -> NodeSetPowerState | None:
        """The object with the active nodes of a NodeSet, once it is that NodeSet's."""
        found = self.power_states.get(node_set.metadata.key)
        owner = found.metadata.controller if found is not None else None
        return found if owner is not None and owner.uid == node_set.metadata.uid else None

    def populate_job(self, cluster: SlurmCluster) -> Job | None:
        """The Job that fills its jail, if it exists."""
        meta = cluster.metadata
        return self.jobs.get(f"{meta.namespace}/{names.populate_job(meta.name)}")


def first_in_namespace(cluster: KubeObject, caches: NebiusCaches) -> bool:
    """Whether no older SlurmCluster is in its namespace, by creation and name."""
    every = caches.clusters_in.get(cluster.metadata.namespace)
    return min(every, key=_age, default=cluster).metadata.uid == cluster.metadata.uid


def _age(obj: KubeObject) -> tuple[str, str]:
    return obj.metadata.creation_timestamp or "", obj.metadata.name
