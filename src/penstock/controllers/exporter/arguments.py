"""Arguments of `soperator-exporter`, as the Deployments of soperator pass them.

Each has an environment variable too: SLURM_EXPORTER_ and its name. An argument comes before it.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from penstock.base import duration
from penstock.controllers.runtime.arguments import LEVELS, Address, address

_PREFIX: Final = "SLURM_EXPORTER_"
_LONG: Final = re.compile(r"(?:(?P<y>\d+)y)?(?:(?P<w>\d+)w)?(?:(?P<d>\d+)d)?")
_LONG_UNITS: Final = {"y": 365 * 86400, "w": 7 * 86400, "d": 86400}
JobSource = Literal["controller", "accounting"]


@dataclass(frozen=True, slots=True)
class Arguments:
    """Settings of the process. Times are in seconds."""

    cluster: str
    namespace: str
    slurmrestd: str
    interval_s: float
    inflight: int
    job_source: JobSource
    lookback_s: float
    metrics: Address
    monitoring: Address
    log_level: str
    standalone: bool
    static_token: str
    scontrol: str
    key_interval_s: float
    kubeconfig: str
    vpenso_names: bool
    state_file: str


def parse(
    arguments: Sequence[str],
    environment: Mapping[str, str] = os.environ,
    *,
    program: str = "soperator-exporter",
) -> Arguments:
    """Parse the command line.

    Exits with argparse's message (status 2) for arguments that are unknown or do not parse.
    """
    parser = argparse.ArgumentParser(
        prog=program,
        description="Serves metrics of one Slurm cluster. It asks slurmrestd once in an interval, "
        "while something scrapes it, and for changes only.",
        epilog="Each option may be given as an environment variable: --job-source is "
        "SLURM_EXPORTER_JOB_SOURCE. An option comes before its variable. Example: "
        f"{program} --cluster-name site --standalone --slurm-api-server http://localhost:6820",
        allow_abbrev=False,
    )

    def add(name: str, default: str, help_: str, **more: Any) -> None:
        variable = _PREFIX + name.strip("-").upper().replace("-", "_")
        given = environment.get(variable) or default
        # Not the variable's value, which may be a token.
        shown = f" ({default})" if default else ""
        parser.add_argument(name, default=given, help=help_ + shown, **more)

    def switch(name: str, help_: str) -> None:
        more: dict[str, Any] = {"type": _switch, "nargs": "?", "const": True, "metavar": "BOOL"}
        add(name, "false", help_, **more)

    seconds: dict[str, Any] = {"type": _seconds, "metavar": "DURATION"}
    where: dict[str, Any] = {"type": address, "metavar": "[HOST]:PORT"}
    add("--cluster-name", "", "name of the cluster; required")
    add("--cluster-namespace", "soperator", "namespace of the SlurmCluster")
    add("--slurm-api-server", "http://localhost:6820", "its slurmrestd", metavar="URL")
    add("--collection-interval", "30s", "time between two collections", **seconds)
    add("--max-collector-inflight", "1", "collections of one kind at a time", type=int)
    add("--job-source", "controller", "daemon that is asked for jobs", choices=_SOURCES)
    add("--accounting-jobs-lookback", "1h", "age of the oldest ended jobs of slurmdbd", **seconds)
    add("--metrics-bind-address", ":8080", "/metrics and /health", **where)
    add("--monitoring-bind-address", ":8081", "/metrics about the exporter; 0: none", **where)
    add("--log-format", "json", "only JSON is written", choices=("json", "plain", "text"))
    add("--log-level", "info", "least level of log lines", choices=(*LEVELS, "warn"))
    switch("--standalone", "run outside Kubernetes, with a token of scontrol")
    add("--static-token", "", "token for slurmrestd; better in SLURM_EXPORTER_TOKEN")
    add("--scontrol-path", "scontrol", "program that makes tokens")
    add("--key-rotation-interval", "30m", "time until key or token is read again", **seconds)
    add("--kubeconfig-path", "", "kubeconfig, where the process is no pod")
    switch("--vpenso-metrics", "serve names of prometheus-slurm-exporter too")
    add("--state-file", "", "file in which durations outlive the process, outside Kubernetes")
    given = parser.parse_args(arguments)
    if not given.cluster_name:
        parser.error("--cluster-name is required")
    if given.max_collector_inflight < 1:
        parser.error("--max-collector-inflight must be at least 1")
    return Arguments(
        cluster=given.cluster_name,
        namespace=given.cluster_namespace,
        slurmrestd=given.slurm_api_server,
        interval_s=given.collection_interval,
        inflight=given.max_collector_inflight,
        job_source=cast("JobSource", given.job_source),
        lookback_s=given.accounting_jobs_lookback,
        metrics=given.metrics_bind_address,
        monitoring=given.monitoring_bind_address,
        log_level="warning" if given.log_level == "warn" else given.log_level,
        standalone=given.standalone,
        static_token=given.static_token or environment.get(f"{_PREFIX}TOKEN", ""),
        scontrol=given.scontrol_path,
        key_interval_s=given.key_rotation_interval,
        kubeconfig=given.kubeconfig_path,
        vpenso_names=given.vpenso_metrics,
        state_file=given.state_file,
    )


_SOURCES: Final = ("controller", "accounting")


def _switch(text: str) -> bool:
    found = {"true": True, "1": True, "false": False, "0": False}.get(text.lower())
    if found is None:
        raise ValueError(text)
    return found


def _seconds(text: str) -> float:
    """Seconds of a duration of Go or of Prometheus, which has days, weeks and years too."""
    long = _LONG.match(text)
    found = sum(float(long[unit] or 0) * _LONG_UNITS[unit] for unit in _LONG_UNITS) if long else 0
    rest = text[long.end() :] if long else text
    found += duration.seconds(rest) if rest or not found else 0
    if found <= 0:
        raise ValueError(text)
    return found


_seconds.__name__, _switch.__name__ = "duration", "true or false"
