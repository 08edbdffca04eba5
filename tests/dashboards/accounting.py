"""Accounting: who uses the cluster."""

from __future__ import annotations

from typing import Final

from dashboards.cluster import NAMESPACES
from dashboards.jobs import PENDING, RUNNING
from dashboards.model import NAMESPACE, RATE, Dashboard, Query, Row, Unit, curves
from dashboards.sources import either

_CPUS: Final = f"slurm_job_cpus{{{NAMESPACE}}}"
_BY_USER: Final = 'label_replace({}, "user_name", "$1", "username", "(.+)")'


def _account(metric: str) -> str:
    return f"topk(10, max by (account) (slurm_account_{metric}{{{NAMESPACE}}}))"


def _user(metric: str) -> str:
    return _BY_USER.format(f"topk(10, max by (username) (slurm_user_{metric}{{{NAMESPACE}}}))")


ACCOUNTING: Final = Dashboard(
    "accounting",
    "Slurm / Accounting",
    "Users and accounts of one cluster: the ten with most in each panel. Accounts are in "
    "slurmctld's metrics /metrics/jobs-users-accts.",
    NAMESPACES,
    (
        Row(
            "Accounts",
            (
                curves(
                    "CPUs by account",
                    Query(_account("jobs_cpus_alloc"), "{{account}}"),
                    about="CPUs of running jobs, of slurmctld's own metrics.",
                    stacked=True,
                ),
                curves(
                    "Jobs by account",
                    Query(_account("jobs_running"), "{{account}}, running"),
                    Query(_account("jobs_pending"), "{{account}}, pending"),
                    about="Of slurmctld's own metrics.",
                ),
            ),
        ),
        Row(
            "Users",
            (
                curves(
                    "CPUs by user",
                    either(
                        "topk(10, sum by (user_name) "
                        f"({_CPUS} * on (job_id) group_left (user_name) {RUNNING}))",
                        _user("jobs_cpus_alloc"),
                        "{{user_name}}",
                    ),
                    about="CPUs of running jobs.",
                    stacked=True,
                ),
                curves(
                    "Pending jobs by user",
                    either(
                        f"topk(10, count by (user_name) ({PENDING}))",
                        _user("jobs_pending"),
                        "{{user_name}}",
                    ),
                    about="Jobs that wait.",
                ),
                curves(
                    "Calls of slurmctld by user",
                    Query(
                        "topk(10, sum by (user) "
                        f"(rate(slurm_controller_rpc_user_calls_total{{{NAMESPACE}}}[{RATE}])))",
                        "{{user}}",
                    ),
                    about="Of the exporter. A script that asks in a loop is at the top.",
                    unit=Unit.PER_SECOND,
                ),
                curves(
                    "Time of slurmctld by user",
                    Query(
                        "topk(10, sum by (user) (rate("
                        f"slurm_controller_rpc_user_duration_seconds_total{{{NAMESPACE}}}[{RATE}])))",
                        "{{user}}",
                    ),
                    about="Share of the time that calls of the user took, of the exporter.",
                    unit=Unit.SHARE,
                ),
            ),
        ),
        Row(
            "slurmdbd",
            (
                curves(
                    "Records that wait for slurmdbd",
                    Query(f"max(slurm_slurmdbd_queue_size{{{NAMESPACE}}})", "records"),
                    about="Of slurmctld's own metrics. They grow while slurmdbd does not answer.",
                ),
            ),
        ),
    ),
)
