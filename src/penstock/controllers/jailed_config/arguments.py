"""Arguments of `sconfigcontroller`, as the Deployments of soperator pass them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.base import duration
from penstock.controllers.runtime.arguments import LEVELS, Address, add_switch, address

POLL, TIMEOUT = "20s", "1m"


@dataclass(frozen=True, slots=True)
class Arguments:
    """Settings of the process. Times are in seconds."""

    namespace: str
    cluster: str
    jail: str
    slurmrestd: str
    metrics: Address
    metrics_secure: bool
    health: Address
    leader_elect: bool
    poll_s: float
    timeout_s: float
    log_level: str
    identity: str


def parse(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> Arguments:
    """Parse the command line.

    Exits with argparse's message (status 2) for arguments that are unknown or do not parse.
    """
    parser = argparse.ArgumentParser(
        prog="sconfigcontroller",
        description="Writes the configuration of a Slurm cluster, and files of JailedConfigs, into "
        "its jail.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--cluster-namespace", default="default", help="namespace of the SlurmCluster")
    add("--cluster-name", default="soperator", help="name of the SlurmCluster")
    add("--jail-path", default="/mnt/jail", help="where the jail is mounted")
    add("--slurmapiserver", default="http://localhost:6820", metavar="URL", help="its slurmrestd")
    where: dict[str, Any] = {"type": address, "metavar": "[HOST]:PORT"}
    add("--metrics-bind-address", default=":8080", help="0: no metrics", **where)
    add("--health-probe-bind-address", default=":8081", help="/healthz and /readyz", **where)
    add_switch(parser, "--metrics-secure", "serve metrics by TLS, to those who may read them")
    add_switch(parser, "--leader-elect", "act only while holding the Lease")
    add("--reconfigure-poll-interval", type=_seconds, default=POLL, metavar="DURATION")
    add("--reconfigure-wait-timeout", type=_seconds, default=TIMEOUT, metavar="DURATION")
    add("--log-level", default="info", choices=LEVELS)
    given = parser.parse_args(arguments)
    if given.reconfigure_wait_timeout <= given.reconfigure_poll_interval:
        parser.error("--reconfigure-wait-timeout must be longer than --reconfigure-poll-interval")
    if not given.cluster_namespace or not given.cluster_name:
        parser.error("--cluster-namespace and --cluster-name must not be empty")
    if not given.jail_path.startswith("/"):
        parser.error(f"--jail-path {given.jail_path} must be an absolute path")
    return Arguments(
        namespace=given.cluster_namespace,
        cluster=given.cluster_name,
        jail=given.jail_path,
        slurmrestd=given.slurmapiserver,
        metrics=given.metrics_bind_address,
        metrics_secure=given.metrics_secure,
        health=given.health_probe_bind_address,
        leader_elect=given.leader_elect,
        poll_s=given.reconfigure_poll_interval,
        timeout_s=given.reconfigure_wait_timeout,
        log_level=given.log_level,
        identity=environment.get("POD_NAME") or f"{os.uname().nodename}-{os.getpid()}",
    )


def _seconds(text: str) -> float:
    found = duration.seconds(text)
    if found <= 0:
        raise ValueError(text)
    return found


_seconds.__name__ = "duration"
