"""Conditions of a cluster whose slurmctld is external.

That slurmctld has no pod and no file here. Its answers to slurmrestd show whether it works, and its
administrator writes its slurm.conf.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.api.cluster.marks import RECONFIGURE, RESTART
from penstock.api.cluster.trigger import Trigger
from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.base.text import list_some
from penstock.catalog.reasons.connection import ConnectionReason
from penstock.decide.auth.rejected_key import KeyRejection
from penstock.decide.cluster.connectivity import End, closed
from penstock.decide.config.triggers import REJECTED, WAITING, TriggerStep
from penstock.model.cluster import Cluster
from penstock.slurm.known import Fact, Unknown
from penstock.slurm.state import Node

_NOT_OURS = (
    "slurmctld is external (spec.external), so the operator has no rights there: reconfigure or "
    "restart it where it runs"
)


def answers(
    cluster: Cluster,
    jobs: Fact[object],
    way: End = End.OPEN,
    rejection: KeyRejection | None = None,
) -> Finding:
    """Return the condition that shows whether the external slurmctld works.

    `jobs` is its last answer about jobs. While that is unknown, `way` is the result of a connection
    to its port.
    """
    host, port = cluster.host, cluster.port
    where = f"{host}:{port}"
    if isinstance(jobs, Unknown) and jobs.denied:
        ref = cluster.jwt_key
        message = (
            f"authentication failed: slurmctld at {where} rejects tokens signed with key "
            f"{ref.key} of Secret {ref.name} ({jobs.why}). Put its JWT key there, or correct its "
            "clock"
        )
        return Finding(False, ConnectionReason.AUTHENTICATION_FAILED, message)
    if rejection is not None:
        ref, kind = cluster.slurm_key, "munge key" if cluster.has_munge else "slurm.key"
        message = (
            f"authentication failed: slurmctld at {where} rejects the {kind} that slurmd "
            f"of {rejection.pod} has ({rejection.words}). Put its key into Secret {ref.name}, key "
            f"{ref.key}"
        )
        return Finding(False, ConnectionReason.AUTHENTICATION_FAILED, message)
    if not isinstance(jobs, Unknown):
        return Finding(True, ConnectionReason.SLURMCTLD_ANSWERS, f"slurmctld answers at {where}")
    if (found := closed(way, "slurmctld", host, port)) is not None:
        return Finding(found.ok, found.reason, f"{found.message}. {jobs.why}")
    message = f"slurmctld at {where} has not answered slurmrestd: {jobs.why}"
    return Finding(None, ConnectionReason.SLURMCTLD_SILENT, message)


def unreached(
    cluster: Cluster, pods: Sequence[Pod], nodes: Fact[Mapping[str, Node]]
) -> list[Finding]:
    """Return the condition of ready workers that slurmctld does not reach."""
    if isinstance(nodes, Unknown):
        return []
    found: list[str] = []
    for pod in pods:
        node = nodes.value.get(pod.host)
        if node is not None and pod.ready and "NOT_RESPONDING" in node.state:
            found.append(f"{node.name} ({pod.status.pod_ip or node.address})")
    if not found:
        return []
    where = f"{cluster.host}:{cluster.port}"
    message = (
        f"slurmctld at {where} does not reach port 6818 of {list_some(found)}. Give it a route to "
        "the pods' addresses, without a firewall on the way"
    )
    return [Finding(None, ConnectionReason.WORKERS_UNREACHABLE, message)]


def partition(name: str, lines: Sequence[str], records: Fact[Mapping[str, object]]) -> Finding:
    """Return whether an external slurmctld has a worker set's partition, or the lines to add."""
    if isinstance(records, Unknown):
        message = f"Partition {name} of slurmctld is not known: {records.why}"
        return Finding(None, ConnectionReason.PARTITION_UNKNOWN, message)
    if name in records.value:
        return Finding(True, ConnectionReason.PARTITION_OUTSIDE, f"slurmctld has partition {name}")
    message = (
        f"spec.partition: the external slurmctld has no partition {name}. Add to its slurm.conf, "
        f"and reconfigure it: {' and '.join(lines)}"
    )
    return Finding(False, ConnectionReason.PARTITION_OUTSIDE, message)


def triggers(annotations: Mapping[str, str], done: Sequence[Trigger], now: str) -> TriggerStep:
    """Reject each reconfigure and restart that an annotation requests, once per value."""
    status = {one.name: one for one in done}
    for name, key in (("reconfigure", RECONFIGURE), ("restart", RESTART)):
        value = annotations.get(key, "")
        old = status.get(name)
        if value and (old is None or old.value != value or old.result == WAITING):
            rejected = Trigger(name=name, value=value, result=REJECTED, message=_NOT_OURS, time=now)
            status[name] = rejected
    return TriggerStep(tuple(status[name] for name in sorted(status)))
