"""Rules of volumes: each has one source, and names of sources are known."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec

from penstock.api.admission import Problem
from penstock.api.nebius.rule_parts import duplicates, known_names
from penstock.api.nebius.slurmcluster import SlurmClusterSpec
from penstock.api.nebius.volumes import (
    JAIL_SOURCE,
    NodeVolume,
    NodeVolumeMount,
    SpoolSource,
    VolumeMount,
    VolumeSource,
)

_EITHER = "write either volumeSourceName or volumeClaimTemplateSpec"


def source_types(source: VolumeSource) -> tuple[str, ...]:
    """The types of volume that a source has; a valid one has exactly one."""
    given: dict[str, Any] = msgspec.to_builtins(source)
    return tuple(name for name in given if name not in ("name", "volumeClaimTemplateSpec"))


def cluster_volumes(spec: SlurmClusterSpec) -> Iterator[Problem]:
    """Faults of the volumes of a SlurmCluster."""
    names = {source.name for source in spec.volume_sources}
    for index, source in enumerate(spec.volume_sources):
        yield from _one_type(f"spec.volumeSources[{index}]", source)
    if JAIL_SOURCE not in names:
        yield Problem(
            "spec.volumeSources",
            f"an entry named {JAIL_SOURCE} must be there, the volume that all users share; "
            f"{known_names(names)}",
        )
    for path, volume in _volumes(spec):
        yield from _node_volume(path, volume, names)
    for path, mounts in _mounts(spec):
        for index, mount in enumerate(mounts):
            yield from _node_volume(f"{path}[{index}]", mount, names)
        yield from duplicates(path, (mount.name for mount in mounts))


def same_sources(spec: SlurmClusterSpec) -> Iterator[Problem]:
    """Names of sources that are there twice: the first one is used."""
    return duplicates("spec.volumeSources", (source.name for source in spec.volume_sources))


def nodeset_mounts(path: str, mounts: Sequence[VolumeMount]) -> Iterator[Problem]:
    """Faults of the mounts of a NodeSet."""
    for index, mount in enumerate(mounts):
        here, source = f"{path}[{index}]", mount.volume_source
        if (source is None) == (mount.volume_claim_template_spec is None):
            yield Problem(here, "write either volumeSource or volumeClaimTemplateSpec")
        elif source is not None:
            yield from _one_type(f"{here}.volumeSource", source)
    yield from duplicates(path, (mount.name for mount in mounts))


def single_source(path: str, source: VolumeSource) -> Iterator[Problem]:
    """More than one type of volume. None at all is left to advice: it means an emptyDir."""
    types = source_types(source)
    if len(types) > 1:
        yield Problem(path, f"has {' and '.join(types)}: keep one type of volume")


def spool_problems(path: str, spool: SpoolSource) -> Iterator[Problem]:
    """A volume and a claim template at once."""
    yield from single_source(path, spool)
    types = source_types(spool)
    if types and spool.volume_claim_template_spec is not None:
        yield Problem(path, f"has {types[0]} and volumeClaimTemplateSpec: keep one of them")


def _one_type(path: str, source: VolumeSource) -> Iterator[Problem]:
    if not source_types(source):
        yield Problem(path, "write one type of volume, such as persistentVolumeClaim")
    yield from single_source(path, source)


def _node_volume(path: str, volume: NodeVolume, names: Collection[str]) -> Iterator[Problem]:
    name = volume.volume_source_name
    if bool(name) == (volume.volume_claim_template_spec is not None):
        yield Problem(path, _EITHER)
    elif name and name not in names:
        yield Problem(
            f"{path}.volumeSourceName",
            f"{name!r} is no entry of spec.volumeSources; {known_names(names)}",
        )


def _volumes(spec: SlurmClusterSpec) -> Iterator[tuple[str, NodeVolume]]:
    nodes = spec.slurm_nodes
    yield "spec.slurmNodes.controller.volumes.spool", nodes.controller.volumes.spool
    yield "spec.slurmNodes.controller.volumes.jail", nodes.controller.volumes.jail
    yield "spec.slurmNodes.login.volumes.jail", nodes.login.volumes.jail
    if nodes.worker is not None:
        yield "spec.slurmNodes.worker.volumes.spool", nodes.worker.volumes.spool
        yield "spec.slurmNodes.worker.volumes.jail", nodes.worker.volumes.jail
    if spec.populate_jail.jail_snapshot_volume is not None:
        yield "spec.populateJail.jailSnapshotVolume", spec.populate_jail.jail_snapshot_volume


def _mounts(spec: SlurmClusterSpec) -> Iterator[tuple[str, tuple[NodeVolumeMount, ...]]]:
    nodes = spec.slurm_nodes
    path = "spec.slurmNodes"
    yield f"{path}.controller.volumes.customMounts", nodes.controller.volumes.custom_mounts
    yield f"{path}.login.volumes.jailSubMounts", nodes.login.volumes.jail_sub_mounts
    yield f"{path}.login.volumes.customMounts", nodes.login.volumes.custom_mounts
    if nodes.worker is not None:
        yield f"{path}.worker.volumes.jailSubMounts", nodes.worker.volumes.jail_sub_mounts
        yield f"{path}.worker.volumes.customMounts", nodes.worker.volumes.custom_mounts
