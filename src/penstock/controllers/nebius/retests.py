"""Checks in jobs that test a replaced worker: which can be started, and their Kubernetes Jobs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from penstock.api.kubernetes.kinds import JOBS
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.api.nebius.active_check import ActiveCheck
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.controllers.nebius.checks.runs import runs_of
from penstock.controllers.nebius.context import NebiusContext
from penstock.decide.check.reaction import check_of
from penstock.decide.node_replacement import Replacement, StartTest
from penstock.kube import AlreadyExistsError, NotFoundError
from penstock.render.nebius.check import cron_job


class Retests:
    """The checks of all SlurmClusters, as `decide.retest` has them started."""

    def __init__(self, context: NebiusContext) -> None:
        self._client = context.client
        self._caches = context.caches
        self._clusters = context.clusters

    def checks(self, cluster: SlurmCluster) -> frozenset[str]:
        """The checks that can be started for one Slurm node; none in a maintenance."""
        if self._clusters.is_resting(cluster):
            return frozenset()
        found = self._caches.checks_of.get(cluster.metadata.key)
        return frozenset(one.metadata.name for one in found if self._can_start(one))

    def _can_start(self, check: ActiveCheck) -> bool:
        spec, declared = check.spec, check.spec.slurm_job_spec
        if check.metadata.deleting or spec.suspend or spec.check_type != "slurmJob":
            return False
        if declared is None or not (declared.each_worker_jobs or declared.each_worker_job_array):
            return False
        cron = self._caches.cron_jobs.get(check.metadata.key)
        return cron is not None and not cron.metadata.deleting and self._over(check) is not None

    def _over(self, check: ActiveCheck) -> Json | None:
        """The PodTemplate's template, empty without a reference; None for one that is absent."""
        name = check.spec.pod_template_name_ref
        if not name:
            return {}
        found = self._caches.pod_templates.get(f"{check.metadata.namespace}/{name}")
        return found.template if found is not None else None

    async def running(
        self, cluster: SlurmCluster, records: Iterable[Replacement]
    ) -> set[tuple[str, str]]:
        """The tests that have not ended, by uid of the record and Slurm node. Raises KubeError."""
        return {
            (record.uid, node)
            for record in records
            if not record.ended
            for node in record.tested
            if node not in record.back
            and await self._runs(cluster, record.uid, node, check_of(record.drains.get(node, "")))
        }

    async def _runs(self, cluster: SlurmCluster, uid: str, node: str, check: str) -> bool:
        space = cluster.metadata.namespace
        found = self._caches.active_checks.get(f"{space}/{check}")
        if found is None:
            return False
        name = names.retest(found.spec.name, uid, node)
        for run in runs_of(self._caches, found):
            if run.job.metadata.name == name:
                return not run.has_ended
        # The cache may not show it yet.
        with contextlib.suppress(NotFoundError):
            await self._client.get(JOBS, space, name)
            return True
        return False

    async def start(self, cluster: SlurmCluster, step: StartTest) -> None:
        """Create the Job of a test; one that is there is the same. Raises KubeError."""
        key = f"{cluster.metadata.namespace}/{step.check}"
        check, cron = self._caches.active_checks.get(key), self._caches.cron_jobs.get(key)
        if check is None or cron is None:
            return
        inputs, over = self._clusters.inputs(cluster), self._over(check)
        uid, node = step.record.uid, step.slurm_node
        manifest = cron_job.retest(inputs, check, cron, uid, node, over)
        with contextlib.suppress(AlreadyExistsError):
            await self._client.create(JOBS, manifest)
