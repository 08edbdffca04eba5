"""Paths and names of the mounts that users declare.

Kubernetes takes a path with `..` in `mountPath` as it is, so a mount of the jail could be outside
of it; the other faults it reports when a pod is created, without the declared field.
Source: Kubernetes API reference, VolumeMount v1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

from penstock.api.admission import Problem
from penstock.api.nebius.nodeset import SlurmdVolumes
from penstock.api.nebius.rule_parts import duplicates
from penstock.api.nebius.slurmcluster import SlurmClusterSpec
from penstock.api.nebius.volumes import JOB_ID, NodeVolumeMount, VolumeMount

_Mount = NodeVolumeMount | VolumeMount
_Rule = Callable[[str, Sequence[_Mount]], Iterator[Problem]]
_SUB_MOUNTS: Final = "jailSubMounts"
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NO_PATH: Final = re.compile(r"[\x00-\x1f\x7f:]")
_VARIABLE: Final = re.compile(r"\$\{[^}]*\}?")
MOST_PER_JOB: Final = 8
"""Mounts for each job of a worker: their list is one variable of the pod, of 128 KiB at most."""
_LONGEST: Final = 4095
"""Characters of a path. Source: limits.h, PATH_MAX."""
_OF_DAEMONS: Final = frozenset(
    {
        *("/mnt/jail", "/mnt/jail.jobs", "/mnt/jail.upper", "/run/munge", "/mnt/slurm-key"),
        *("/var/spool/slurmctld", "/var/spool/slurmd"),
    }
)
_OF_JAIL: Final = frozenset({"/dev", "/etc", "/etc/slurm", "/proc", "/sys"})


def cluster_mount_faults(spec: SlurmClusterSpec) -> Iterator[Problem]:
    """Mounts of a SlurmCluster that no pod can have."""
    return _each(cluster_mounts(spec), _faults)


def cluster_mount_advice(spec: SlurmClusterSpec) -> Iterator[Problem]:
    """Mounts of a SlurmCluster with which a daemon does not work."""
    return _each(cluster_mounts(spec), _taken)


def node_set_mount_faults(path: str, volumes: SlurmdVolumes) -> Iterator[Problem]:
    """As `cluster_mount_faults`, of a NodeSet."""
    return _each(_of_node_set(path, volumes), _faults)


def node_set_mount_advice(path: str, volumes: SlurmdVolumes) -> Iterator[Problem]:
    """As `cluster_mount_advice`, of a NodeSet."""
    return _each(_of_node_set(path, volumes), _taken)


def cluster_mounts(spec: SlurmClusterSpec) -> Iterator[tuple[str, Sequence[NodeVolumeMount]]]:
    """All lists of mounts of a SlurmCluster, by path."""
    nodes, path = spec.slurm_nodes, "spec.slurmNodes"
    yield f"{path}.controller.volumes.customMounts", nodes.controller.volumes.custom_mounts
    yield f"{path}.login.volumes.{_SUB_MOUNTS}", nodes.login.volumes.jail_sub_mounts
    yield f"{path}.login.volumes.customMounts", nodes.login.volumes.custom_mounts
    if nodes.worker is not None:
        yield f"{path}.worker.volumes.{_SUB_MOUNTS}", nodes.worker.volumes.jail_sub_mounts
        yield f"{path}.worker.volumes.customMounts", nodes.worker.volumes.custom_mounts


def _of_node_set(path: str, volumes: SlurmdVolumes) -> Iterator[tuple[str, Sequence[VolumeMount]]]:
    yield f"{path}.{_SUB_MOUNTS}", volumes.jail_sub_mounts
    yield f"{path}.customVolumeMounts", volumes.custom_volume_mounts


def _each(lists: Iterable[tuple[str, Sequence[_Mount]]], rule: _Rule) -> Iterator[Problem]:
    for path, mounts in lists:
        yield from rule(path, mounts)


def _faults(path: str, mounts: Sequence[_Mount]) -> Iterator[Problem]:
    for index, one in enumerate(mounts):
        here = f"{path}[{index}]"
        if not _NAME.fullmatch(one.name):
            yield Problem(
                f"{here}.name",
                f"{one.name[:70]!r} is no name of a volume: write at most 63 small letters, digits "
                "and -",
            )
        if _is_no_path(one.mount_path) or (
            normal(one.mount_path) == "/" and not path.endswith(_SUB_MOUNTS)
        ):
            yield Problem(
                f"{here}.mountPath",
                f"{one.mount_path[:70]!r} is no place for a mount: write a path without .., "
                "colons and control characters",
            )
        if one.sub_path.startswith("/") or (one.sub_path and _is_no_path(one.sub_path)):
            yield Problem(
                f"{here}.subPath",
                f"{one.sub_path[:70]!r} is no path within a volume: write a relative one without "
                ".., colons and control characters",
            )
    yield from duplicates(path, (normal(one.mount_path) for one in mounts))
    yield from _variables(path, mounts)


def _variables(path: str, mounts: Sequence[_Mount]) -> Iterator[Problem]:
    """Variables that nothing replaces, and mounts for each job that chroot.so cannot make."""
    has_jobs = path.endswith(_SUB_MOUNTS) and ".login." not in path
    known = f"known is {JOB_ID}, in subPath of a worker's {_SUB_MOUNTS}"
    count = 0
    for index, one in enumerate(mounts):
        here, is_of_job = f"{path}[{index}]", has_jobs and JOB_ID in one.sub_path
        count += is_of_job
        rest = one.sub_path.replace(JOB_ID, "") if has_jobs else one.sub_path
        for field, text in (("mountPath", one.mount_path), ("subPath", rest)):
            if found := _VARIABLE.search(text):
                yield Problem(f"{here}.{field}", f"{found[0][:60]!r} is no variable here: {known}")
            elif is_of_job and "$" in text:
                yield Problem(
                    f"{here}.{field}", f"{text[:60]!r} has a $ beside {JOB_ID}: remove it"
                )
        if is_of_job and normal(one.mount_path) == "/":
            yield Problem(
                f"{here}.mountPath", "/ is the jail itself: choose a folder for what each job has"
            )
    if count > MOST_PER_JOB:
        yield Problem(path, f"has {count} mounts with {JOB_ID}: write at most {MOST_PER_JOB}")


def _taken(path: str, mounts: Sequence[_Mount]) -> Iterator[Problem]:
    own = _OF_JAIL if path.endswith(_SUB_MOUNTS) else _OF_DAEMONS
    for index, one in enumerate(mounts):
        if (found := normal(one.mount_path)) in own:
            yield Problem(
                f"{path}[{index}].mountPath",
                f"{found} is a place that Slurm's daemons need for themselves: choose another one",
            )


def normal(path: str) -> str:
    """A path from the root, without doubled and trailing slashes."""
    return str(PurePosixPath("/", path.lstrip("/")))


def _is_no_path(path: str) -> bool:
    return len(path) > _LONGEST or ".." in path.split("/") or _NO_PATH.search(path) is not None
