"""What a Restore depends on, out of the caches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.kinds import JOBS, Job, Pod
from penstock.api.nebius.labels import STOPPED
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.api.penstock.restore import Phase, Restore
from penstock.controllers.caches.owners import owned_by
from penstock.controllers.nebius.backup.database_login import database_of, missing_login
from penstock.controllers.nebius.backup.repository_secrets import missing_key
from penstock.controllers.nebius.context import NebiusContext
from penstock.decide.backup.restore import RestoreView
from penstock.decide.backup.run import run_of
from penstock.decide.check.kubernetes_job import job_status
from penstock.render.nebius import accounting_database
from penstock.render.nebius.backup import names
from penstock.render.nebius.backup.job import RestoreSource, missing_parts
from penstock.slurm.known import Fact, Known, Unknown
from penstock.slurm.mirror.snapshot import NOT_ASKED
from penstock.slurm.rest.errors import SlurmError
from penstock.slurm.state import Job as SlurmJob

ENDED: Final = ("Succeeded", "Failed")
"""Phases of a Restore, and of a pod, that has ended."""
WORKERS: Final = ("worker", "nodeset")
_BESIDE: Final = (*names.COMPONENTS, accounting_database.COMPONENT)
"""Components of pods that use neither jail nor state, and write no record."""


@dataclass(frozen=True, slots=True)
class Target:
    """The cluster and the repository of a Restore, as far as they exist; else `waits`."""

    name: str
    """Name of the SlurmCluster; empty while it is unknown."""
    cluster: SlurmCluster | None = None
    source: RestoreSource | None = None
    waits: str = ""


def mark(restore: Restore) -> str:
    """The value of the annotation by which a Restore stops its cluster."""
    return f"Restore/{restore.metadata.name}"


class RestoreObserver:
    """Reads what a Restore depends on. Reading is synchronous and sends nothing."""

    def __init__(self, context: NebiusContext) -> None:
        self._caches = context.caches
        self._clusters = context.clusters
        self._connections = context.connections
        self._secrets = context.secrets

    def target(self, obj: Restore) -> Target:
        """The cluster and the repository that a Restore names."""
        space, spec = obj.metadata.namespace, obj.spec
        named = spec.cluster_ref.name if spec.cluster_ref is not None else ""
        # A Backup may be changed or deleted while the cluster is stopped.
        name = obj.status.cluster or named
        source, waits = None, ""
        if spec.repository is not None:
            source = RestoreSource(spec.repository, named)
        elif spec.backup_ref is not None:
            backup = self._caches.backups.get(f"{space}/{spec.backup_ref.name}")
            if backup is None:
                waits = f"Backup {spec.backup_ref.name} does not exist"
            else:
                of, given = backup.spec.cluster_ref.name, backup.spec
                name = name or of
                source = RestoreSource(given.repository, of, backup.metadata.name, given.image)
        cluster = self._caches.clusters.get(f"{space}/{name}") if name else None
        if cluster is not None and cluster.metadata.deleting:
            waits, cluster = f"SlurmCluster {name} is being deleted", None
        elif cluster is None and name:
            waits = f"SlurmCluster {name} does not exist"
        if cluster is not None and source is not None:
            waits = missing_parts(self._clusters.inputs(cluster), spec.parts)
            waits = waits or missing_key(self._secrets, space, source.repository)
            database = database_of(self._caches, cluster, spec.parts)
            waits = waits or missing_login(self._secrets, space, database)
        return Target(name, cluster, source, f"{waits}. It is waited for" if waits else "")

    def view(self, obj: Restore, target: Target) -> RestoreView:
        """All that the next step depends on."""
        cluster = target.cluster
        if cluster is None:
            return RestoreView(
                target.name, mark(obj), ended=_ended(obj), waits=target.waits or "It waits"
            )
        jobs = self.jobs(cluster)
        job = self.job(cluster)
        own = job is not None and _is_owned(job, obj)
        return RestoreView(
            cluster=target.name,
            mark=mark(obj),
            ended=_ended(obj),
            waits=target.waits,
            other=self._other(obj, target.name),
            stopped_by=cluster.metadata.annotations.get(STOPPED),
            force=obj.spec.force,
            jobs=tuple(one.id for one in jobs.value) if isinstance(jobs, Known) else None,
            why=jobs.why if isinstance(jobs, Unknown) else "",
            pods=[one.metadata.name for one in self.pods(cluster)],
            backups=self._backups(cluster),
            run=run_of(job, self._caches.pods_of.get(owned_by(JOBS, job)))
            if job is not None and own
            else None,
            earlier=job.metadata.name if job is not None and not own else "",
        )

    def job(self, cluster: SlurmCluster) -> Job | None:
        """The Job of whichever Restore of a cluster."""
        meta = cluster.metadata
        return self._caches.jobs.get(f"{meta.namespace}/{names.restore_job(meta.name)}")

    def jobs(self, cluster: SlurmCluster) -> Fact[tuple[SlurmJob, ...]]:
        """The Slurm jobs that are on nodes."""
        link = self._connections.get(cluster.metadata.key)
        if link is None:
            return Unknown(NOT_ASKED)
        found = link.mirror.snapshot.jobs
        return found if isinstance(found, Unknown) else Known(on_nodes(found.value), found.as_of)

    async def with_present_jobs(self, view: RestoreView, cluster: SlurmCluster) -> RestoreView:
        """The view with what Slurm answers now: a job may have started since the last poll."""
        link = self._connections.get(cluster.metadata.key)
        if view.jobs is None or link is None or link.client is None:
            return view
        try:
            found = await link.client.jobs()
        except (SlurmError, TimeoutError) as error:
            return replace(view, jobs=None, why=str(error) or "slurmrestd does not answer")
        items = found.items if found is not None else ()
        return replace(view, jobs=tuple(one.id for one in on_nodes(items)))

    def pods(self, cluster: SlurmCluster) -> list[Pod]:
        """Pods of a cluster that have not ended, but for Backups, Restores and the database."""
        meta = cluster.metadata
        return sorted(
            (
                pod
                for pod in self._caches.pods_in.get(meta.namespace)
                if pod.metadata.labels.get(app_labels.APP_INSTANCE) == meta.name
                and pod.metadata.labels.get(app_labels.APP_COMPONENT) not in _BESIDE
                and pod.status.phase not in ENDED
            ),
            key=lambda pod: pod.metadata.name,
        )

    def _backups(self, cluster: SlurmCluster) -> list[str]:
        meta = cluster.metadata
        return sorted(
            job.metadata.name
            for job in self._caches.jobs
            if job.metadata.namespace == meta.namespace
            and job.metadata.labels.get(app_labels.APP_INSTANCE) == meta.name
            and job.metadata.labels.get(app_labels.APP_COMPONENT) == "backup"
            and not job_status(job).has_ended
        )

    def _other(self, obj: Restore, cluster: str) -> str:
        """The Restore of the same cluster that comes first, by its begin, then by its age."""
        first = min(
            (
                one
                for one in self._caches.restores_in.get(obj.metadata.namespace)
                if one.status.phase not in ENDED
                and not one.metadata.deleting
                and self.target(one).name == cluster
            ),
            key=_order,
            default=obj,
        )
        return "" if first.metadata.uid == obj.metadata.uid else first.metadata.name


def on_nodes(jobs: Iterable[SlurmJob]) -> tuple[SlurmJob, ...]:
    """The jobs that hold nodes."""
    return tuple(one for one in jobs if one.nodes or one.everywhere)


def _ended(obj: Restore) -> Phase:
    return obj.status.phase if obj.status.phase in ENDED else ""


def _is_owned(job: Job, obj: Restore) -> bool:
    owner = job.metadata.controller
    return owner is not None and owner.uid == obj.metadata.uid


def _order(obj: Restore) -> tuple[bool, str, str, str]:
    meta = obj.metadata
    started = obj.status.started_time
    return not started, started, meta.creation_timestamp or "", meta.name
