"""The ActiveCheck of `spec.periodicChecks.ncclBenchmark`, whose jobs measure NCCL on each worker.

Its script is Penstock's. It asks for GPUs, so the check is skipped where no Slurm node has any.
Source of options: the README of nccl-tests, and NCCL's list of environment variables.
"""

from __future__ import annotations

import shlex
from typing import Final

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.api.nebius.common import GROUP
from penstock.api.nebius.older_fields import NcclArguments, NcclBenchmark
from penstock.render.nebius.check.account import metadata
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.nebius.pod import filter_place

PREFIX: Final = "[node_problem]"
"""Of the reason of a drain."""
_ADAPTERS: Final = "export NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1"
"""The GPUs of one node exchange data by its InfiniBand adapters."""
_NO_ADAPTERS: Final = "export NCCL_IB_DISABLE=1"
_SCRIPT: Final = """#!/bin/bash
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --gres=gpu:1
#SBATCH --time={timeout}
# Fails on a bandwidth below the threshold. A missing program is no fault of the node: the job
# cancels itself, which drains nothing.
if ! command -v all_reduce_perf >/dev/null; then
    echo "SKIP there is no all_reduce_perf in the jail"
    scancel "$SLURM_JOB_ID"
    sleep 60
fi
{variables}
gpus=${{SLURM_GPUS_ON_NODE:-1}}
if ! out=$(all_reduce_perf -b {smallest} -e {largest} -f {factor} -g "$gpus" 2>&1); then
    echo "$out"
    exit 1
fi
got=$(awk '/Avg bus bandwidth/ {{ print $NF }}' <<<"$out")
echo "$got GB/s, at least {least} expected"
awk -v got="$got" -v least={least} 'BEGIN {{ exit !(got != "" && got + 0 >= least + 0) }}'
"""


def benchmark(cluster: ClusterInputs) -> NcclBenchmark | None:
    """The benchmark that the cluster declares; None without one, and for one that is off."""
    declared = cluster.spec.periodic_checks
    if declared is None or not declared.nccl_benchmark.enabled:
        return None
    return declared.nccl_benchmark


def objects(cluster: ClusterInputs) -> list[Json]:
    """The ActiveCheck; none without a benchmark."""
    given = benchmark(cluster)
    if given is None:
        return []
    name = names.nccl_benchmark(cluster.name)
    container = {
        "imagePullPolicy": given.image_pull_policy,
        "appArmorProfile": given.app_armor_profile,
    }
    actions = given.failure_actions
    drains = {"drainSlurmNode": {"drainReasonPrefix": PREFIX}}
    reacts = actions is not None and actions.set_slurm_node_drain_state
    return [
        {
            "apiVersion": f"{GROUP}/v1alpha1",
            "kind": "ActiveCheck",
            "metadata": metadata(cluster.cluster, name),
            "spec": {
                "name": name,
                "slurmClusterRefName": cluster.name,
                "checkType": "slurmJob",
                "schedule": given.schedule,
                "suspend": False,
                "runAfterCreation": False,
                "activeDeadlineSeconds": given.active_deadline_seconds,
                "successfulJobsHistoryLimit": given.successful_jobs_history_limit,
                "failedJobsHistoryLimit": given.failed_jobs_history_limit,
                **filter_place(cluster.spec, given.k8s_node_filter_name),
                "slurmJobSpec": {
                    "jobContainer": container,
                    "eachWorkerJobs": True,
                    "sbatchScript": script(given.nccl_arguments or NcclArguments()),
                },
                **({"failureReactions": drains} if reacts else {}),
            },
        }
    ]


def script(given: NcclArguments) -> str:
    """The script of the jobs."""
    return _SCRIPT.format(
        timeout=given.timeout,
        variables=_ADAPTERS if given.use_infiniband else _NO_ADAPTERS,
        smallest=shlex.quote(given.min_bytes),
        largest=shlex.quote(given.max_bytes),
        factor=shlex.quote(given.step_factor),
        least=shlex.quote(given.threshold_more_than),
    )
