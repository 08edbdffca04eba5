"""Warning about a cgroup.conf that pods share with slurmd under systemd.

slurmd in a pod has no systemd, so its cgroup.conf has IgnoreSystemd=yes. Under systemd the same key
makes slurmd create cgroups that systemd may move or remove. slurmctld sends one file to all nodes.
IgnoreSystemdOnFailure=yes suits both: slurmd creates its cgroups itself only where systemd does
not answer. Source: cgroup.conf(5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.kinds import Pod
from penstock.base.text import list_some
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.configuration import ConfigReason
from penstock.decide.observed.node_comment import read
from penstock.model.worker_marks import CommentKeys
from penstock.slurm.conf.document import Document
from penstock.slurm.state import Node

SHARED = ConditionType.CGROUPS_SHARED
_KEY = "IgnoreSystemd"
_BOTH = "IgnoreSystemdOnFailure"
_DEFAULT = "DEFAULT"
_REMEDY = f"Write {_BOTH}=yes in its place, which suits both"


@lru_cache(maxsize=64)
def shared(extra_conf: str, cgroup_conf: str) -> Finding | None:
    """Return the condition of a cluster whose slurm.conf has NodeName lines.

    Pods are dynamic nodes, which have no such line. None while the file suits all nodes.
    """
    if (value := _harmful(cgroup_conf)) is None:
        return None
    records = Document.parse(extra_conf).records("NodeName")
    named = [one.name for one in records if one.name.upper() != _DEFAULT]
    if not named:
        return None
    message = (
        f"cgroup.conf has {_KEY}={value}, which harms nodes with systemd, and slurm.conf has nodes "
        f"that are no pods ({list_some(named)}). {_REMEDY}"
    )
    return Finding(True, ConfigReason.IGNORE_SYSTEMD, message, type=SHARED)


def external(seen: Sequence[str]) -> Finding | None:
    """Return the condition of an external slurmctld with nodes that are no pods.

    slurmrestd does not show its cgroup.conf. A worker has fetched it (see `fetched`).
    """
    if not seen:
        return None
    message = (
        f"slurmctld is external and has nodes that are no pods ({list_some(seen)}), which "
        f"{_KEY}=yes in its cgroup.conf harms. Check that file with `penstock network`, and write "
        f"{_BOTH}=yes"
    )
    return Finding(True, ConfigReason.CGROUP_CONF_NOT_SEEN, message, type=SHARED)


def fetched(cgroup_conf: str, seen: Sequence[str]) -> str:
    """Return a warning for nodes that are no pods, from a worker's cgroup.conf; empty for none."""
    value = _harmful(cgroup_conf)
    if value is None or not seen:
        return ""
    return (
        f"cgroup.conf of slurmctld has {_KEY}={value}, which harms nodes with systemd, and there "
        f"are nodes that are no pods ({list_some(seen)}). {_REMEDY}"
    )


def other_nodes(keys: CommentKeys, nodes: Mapping[str, Node], pods: Iterable[Pod]) -> list[str]:
    """Return the nodes that are neither these pods nor, by their comment, an operator's others."""
    hosts = {pod.host for pod in pods}
    return sorted(
        name
        for name, node in nodes.items()
        if name not in hosts and read(keys, node.comment) is None
    )


def _harmful(cgroup_conf: str) -> str | None:
    """Return the value of IgnoreSystemd when it is true."""
    value = Document.parse(cgroup_conf).get(_KEY) or ""
    return value if value.lower() in {"yes", "true", "1"} else None
