"""One cgroup.conf for pods and for machines: what suits the one harms the other.

slurmd of a pod has no systemd to ask for a scope, so its cgroup.conf says IgnoreSystemd=yes. On a
machine with systemd the same key has slurmd make its cgroups beside those of systemd, which may
move or remove them. slurmctld gives the one file to all that fetch it. IgnoreSystemdOnFailure=yes
suits both: slurmd asks systemd where there is one, and makes its cgroups itself where there is
none. Source: cgroup.conf(5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.base.text import list_some
from penstock.decide.observed.node_comment import read
from penstock.model.worker_marks import CommentKeys
from penstock.slurm.conf.document import Document
from penstock.slurm.state import Node

SHARED = "CgroupsShared"
_KEY = "IgnoreSystemd"
_BOTH = "IgnoreSystemdOnFailure"
_DEFAULT = "DEFAULT"
_REMEDY = (
    f"write {_BOTH}=yes instead, which suits both; or start slurmd there without --conf-server, "
    "with a cgroup.conf of its own in /etc/slurm"
)


@lru_cache(maxsize=64)
def shared(extra_conf: str, cgroup_conf: str) -> Finding | None:
    """What is told of a cluster whose slurm.conf names machines (NodeName) beside the pods.

    Pods are dynamic nodes, which slurm.conf never names. None while the file harms nobody.
    """
    if (value := _harmful(cgroup_conf)) is None:
        return None
    records = Document.parse(extra_conf).records("NodeName")
    named = [one.name for one in records if one.name.upper() != _DEFAULT]
    if not named:
        return None
    told = (
        f"cgroup.conf has {_KEY}={value}, as pods need it, and slurm.conf names machines that are "
        f"none ({list_some(named)}): where systemd runs it does harm. If it does there, {_REMEDY}"
    )
    return Finding(True, _KEY, told, type=SHARED)


def outside(seen: Sequence[str]) -> Finding | None:
    """What is told of an outside slurmctld that has these machines as well as pods.

    slurmrestd does not show its cgroup.conf; a worker, which has fetched it, does.
    """
    if not seen:
        return None
    told = (
        f"slurmctld is outside and has nodes that are no pods ({list_some(seen)}). With "
        f"{_KEY}=yes, as pods need it, its cgroup.conf does harm where systemd runs; slurmrestd "
        f"does not show whether it has that, `penstock network` looks. If it has, {_REMEDY}"
    )
    return Finding(True, "CgroupConfNotSeen", told, type=SHARED)


def fetched(cgroup_conf: str, seen: Sequence[str]) -> str:
    """What is told of these machines by the cgroup.conf that a worker fetched; often nothing."""
    value = _harmful(cgroup_conf)
    if value is None or not seen:
        return ""
    return (
        f"cgroup.conf of slurmctld has {_KEY}={value}, as pods need it, and there are nodes that "
        f"are no pods ({list_some(seen)}): where systemd runs it does harm. If it does there, "
        f"{_REMEDY}"
    )


def machines(keys: CommentKeys, nodes: Mapping[str, Node], pods: Iterable[Pod]) -> list[str]:
    """The nodes that are neither these pods nor, by their record, an operator's other ones."""
    hosts = {pod.host for pod in pods}
    return sorted(
        name
        for name, node in nodes.items()
        if name not in hosts and read(keys, node.comment) is None
    )


def _harmful(cgroup_conf: str) -> str | None:
    """The value of the key that only pods need, when it is set."""
    value = Document.parse(cgroup_conf).get(_KEY) or ""
    return value if value.lower() in {"yes", "true", "1"} else None
