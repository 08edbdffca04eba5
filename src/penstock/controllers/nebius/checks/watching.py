"""From a changed object to the ActiveChecks that it matters to."""

from __future__ import annotations

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import Pod, PodTemplateObject
from penstock.api.kubernetes.meta import KubeObject
from penstock.api.nebius import labels
from penstock.api.nebius.active_check import ActiveCheck
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.controllers.nebius.checks.drain_room import share_of
from penstock.controllers.observed.nebius_caches import (
    CHECKS_BY_CLUSTER,
    CHECKS_BY_DEPENDENCY,
    CHECKS_BY_TEMPLATE,
)
from penstock.controllers.observed.watching import keys
from penstock.kube.runtime.declaration import Lookup
from penstock.translate.nebius.jail import is_stopped


def checks_of_cluster(key: str, lookup: Lookup) -> list[str]:
    """The checks of the SlurmCluster with this key."""
    return keys(lookup.by(CHECKS_BY_CLUSTER, key))


def checks_in(cluster: SlurmCluster, lookup: Lookup) -> list[str]:
    """The checks of a SlurmCluster."""
    return checks_of_cluster(cluster.metadata.key, lookup)


def checks_after(check: ActiveCheck, lookup: Lookup) -> list[str]:
    """The checks that depend on a check, of whichever cluster in the namespace."""
    return keys(lookup.by(CHECKS_BY_DEPENDENCY, check.metadata.key))


def checks_under(template: PodTemplateObject, lookup: Lookup) -> list[str]:
    """The checks that name a PodTemplate."""
    return keys(lookup.by(CHECKS_BY_TEMPLATE, template.metadata.key))


def checks_with(obj: KubeObject, lookup: Lookup) -> list[str]:
    """The checks of the cluster that an object of checks belongs to, by its labels."""
    meta = obj.metadata
    if meta.labels.get(app_labels.APP_COMPONENT) != labels.CHECKS:
        return []
    key = f"{meta.namespace}/{meta.labels.get(app_labels.APP_INSTANCE, '')}"
    return checks_of_cluster(key, lookup)


def check_of_pod(pod: Pod, _: Lookup) -> list[str]:
    """The check of a pod, by its annotation."""
    name = pod.metadata.annotations.get(labels.ACTIVE_CHECK, "")
    return [f"{pod.metadata.namespace}/{name}"] if name else []


def result_changed(old: ActiveCheck | None, new: ActiveCheck | None) -> bool:
    """Whether a check is one more or less, or what others wait for changed."""
    if old is None or new is None:
        return True
    return (
        old.status.k8s_jobs_status != new.status.k8s_jobs_status
        or old.status.slurm_jobs_status != new.status.slurm_jobs_status
        or old.spec.run_after_creation != new.spec.run_after_creation
    )


def cluster_matters(old: SlurmCluster | None, new: SlurmCluster | None) -> bool:
    """Whether a SlurmCluster changed in more than counts of pods."""
    if old is None or new is None:
        return True
    return (
        old.metadata.generation != new.metadata.generation
        or old.metadata.deleting != new.metadata.deleting
        or old.status.phase != new.status.phase
        or share_of(old) != share_of(new)
        or is_stopped(old) != is_stopped(new)
    )
