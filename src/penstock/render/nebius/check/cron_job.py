"""The CronJob of a check, Jobs beside its schedule, and the ConfigMap with its inline script."""

from __future__ import annotations

from typing import Final

from penstock.api.kubernetes.kinds import CronJob
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.api.nebius.active_check import ActiveCheck
from penstock.render.nebius.check import pod_template
from penstock.render.nebius.check.account import metadata
from penstock.render.nebius.check.pod import SCRIPT_KEY, template
from penstock.render.nebius.inputs import ClusterInputs

_BATCH: Final = "batch/v1"


def objects(
    cluster: ClusterInputs, check: ActiveCheck, *, suspend: bool, over: Json | None = None
) -> list[Json]:
    """The script, if it is inline, and the CronJob. `suspend` is in force beside spec.suspend.

    `over` is the template of the PodTemplate that the check names.
    """
    return [*scripts(cluster, check), cron_job(cluster, check, suspend=suspend, over=over)]


def scripts(cluster: ClusterInputs, check: ActiveCheck) -> list[Json]:
    """The ConfigMap with the inline script; none without one."""
    declared = check.spec.slurm_job_spec
    if check.spec.check_type != "slurmJob" or declared is None or not declared.sbatch_script:
        return []
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata(cluster.cluster, names.sbatch_script(check.spec.name)),
            "data": {SCRIPT_KEY: declared.sbatch_script},
        }
    ]


def cron_job(
    cluster: ClusterInputs, check: ActiveCheck, *, suspend: bool, over: Json | None = None
) -> Json:
    """The CronJob, of the name of the ActiveCheck."""
    spec = check.spec
    meta = metadata(cluster.cluster, check.metadata.name)
    return {
        "apiVersion": _BATCH,
        "kind": "CronJob",
        "metadata": meta,
        "spec": {
            "schedule": spec.schedule,
            "suspend": spec.suspend or suspend,
            "concurrencyPolicy": "Forbid",
            "successfulJobsHistoryLimit": spec.successful_jobs_history_limit,
            "failedJobsHistoryLimit": spec.failed_jobs_history_limit,
            "jobTemplate": {
                "metadata": {"labels": meta["labels"]},
                "spec": job_spec(cluster, check, over),
            },
        },
    }


def job_spec(
    cluster: ClusterInputs, check: ActiveCheck, over: Json | None = None, node: str = ""
) -> Json:
    """The spec of each of its Jobs, or of one for a single Slurm node."""
    return {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 0,
        "template": pod_template.merged(template(cluster, check, node), over or {}),
    }


def initial_run(
    cluster: ClusterInputs, check: ActiveCheck, cron: CronJob, over: Json | None = None
) -> Json:
    """The Job of the first run. The CronJob owns it, so its history limits count it."""
    return _job(cluster, cron, names.initial_run(check.spec.name), job_spec(cluster, check, over))


def retest(
    cluster: ClusterInputs,
    check: ActiveCheck,
    cron: CronJob,
    uid: str,
    node: str,
    over: Json | None = None,
) -> Json:
    """The Job that runs the check for one Slurm node, off the Kubernetes node of this uid."""
    name = names.retest(check.spec.name, uid, node)
    return _job(cluster, cron, name, job_spec(cluster, check, over, node))


def _job(cluster: ClusterInputs, cron: CronJob, name: str, spec: Json) -> Json:
    meta = metadata(cluster.cluster, name)
    meta["ownerReferences"] = [
        {
            "apiVersion": _BATCH,
            "kind": "CronJob",
            "name": cron.metadata.name,
            "uid": cron.metadata.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    return {"apiVersion": _BATCH, "kind": "Job", "metadata": meta, "spec": spec}
