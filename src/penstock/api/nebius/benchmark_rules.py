"""Faults of `spec.periodicChecks.ncclBenchmark`, whose values become a schedule and a script.

Source of sizes: `parsesize` of nccl-tests. Source of times: sbatch(1), --time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from penstock.api.admission import Problem
from penstock.api.kubernetes.cron_schedule import schedule_problem
from penstock.api.nebius.older_fields import NcclArguments
from penstock.api.nebius.slurmcluster import SlurmCluster

LONGEST_CLUSTER: Final = 36
"""Characters of a cluster's name, so that the Jobs of its benchmark have names."""
_PATH: Final = "spec.periodicChecks.ncclBenchmark"
_SIZE: Final = re.compile(r"[0-9]{1,12}([kKmMgG]i?[bB]?|[bB])?")
_NUMBER: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_FACTOR: Final = re.compile(r"[1-9][0-9]{0,4}")
_TIME: Final = re.compile(r"([0-9]{1,4}-)?[0-9]{1,6}(:[0-9]{1,2}){0,2}")


def benchmark_problems(obj: SlurmCluster) -> Iterator[Problem]:
    """Faults of a benchmark that is on."""
    declared = obj.spec.periodic_checks
    if declared is None or not declared.nccl_benchmark.enabled:
        return
    given = declared.nccl_benchmark
    if len(obj.metadata.name) > LONGEST_CLUSTER:
        yield Problem(
            "metadata.name",
            f"it has {len(obj.metadata.name)} characters and {_PATH} takes {LONGEST_CLUSTER}: "
            "choose a shorter name, or an ActiveCheck in its place",
        )
    if wrong := schedule_problem(given.schedule):
        yield Problem(f"{_PATH}.schedule", wrong)
    if given.active_deadline_seconds < 1:
        yield Problem(
            f"{_PATH}.activeDeadlineSeconds",
            f"is {given.active_deadline_seconds}: write at least 1",
        )
    for field, limit in (
        ("successfulJobsHistoryLimit", given.successful_jobs_history_limit),
        ("failedJobsHistoryLimit", given.failed_jobs_history_limit),
    ):
        if limit < 0:
            yield Problem(f"{_PATH}.{field}", f"is {limit}: write 0 or more")
    yield from _arguments(given.nccl_arguments or NcclArguments())


def _arguments(given: NcclArguments) -> Iterator[Problem]:
    for field, text, pattern, words in (
        ("minBytes", given.min_bytes, _SIZE, "a size such as 512Mb"),
        ("maxBytes", given.max_bytes, _SIZE, "a size such as 8Gb"),
        ("stepFactor", given.step_factor, _FACTOR, "a number such as 2"),
        ("timeout", given.timeout, _TIME, "a time of sbatch such as 20:00"),
        ("thresholdMoreThan", given.threshold_more_than, _NUMBER, "GB/s such as 400"),
    ):
        if not pattern.fullmatch(text):
            yield Problem(f"{_PATH}.ncclArguments.{field}", f"is {text[:60]!r}: write {words}")
