"""Rules of volumes: each has one source, and names of sources are known."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from penstock.api.admission import Problem
from penstock.api.kubernetes import shapes
from penstock.api.kubernetes.pvc_spec import PvcSpec
from penstock.api.nebius import names
from penstock.api.nebius.mount_rules import cluster_mounts
from penstock.api.nebius.nodeset import SlurmdVolumes
from penstock.api.nebius.rule_parts import duplicates, known_names, shape_problems
from penstock.api.nebius.slurmcluster import SlurmClusterSpec
from penstock.api.nebius.volumes import (
    JAIL_SOURCE,
    POD_VOLUMES,
    SLURM_CONFIGS,
    SSSD_VOLUMES,
    JailSource,
    NodeVolume,
    SpoolSource,
    VolumeMount,
    VolumeSource,
)

_Origin = tuple[str, PvcSpec | None]
"""The source and the PVC template of a volume: equal ones may have one name."""
_REQUIRED = cast(
    "shapes.Shape",
    {
        "persistentVolumeClaim": {"claimName!": shapes.TEXT},
        "configMap": {"name!": shapes.TEXT},
        "secret": {"secretName!": shapes.TEXT},
        "hostPath": {"path!": shapes.TEXT},
        "nfs": {"server!": shapes.TEXT, "path!": shapes.TEXT},
    },
)
"""Fields without which Kubernetes takes no volume. Source: Kubernetes API reference, Volume v1."""
_EITHER = "write either volumeSourceName or volumeClaimTemplateSpec"


def source_types(source: VolumeSource) -> tuple[str, ...]:
    """The types of volume that a source has; a valid one has exactly one."""
    given: dict[str, Any] = msgspec.to_builtins(source)
    return tuple(name for name in given if name not in ("name", "volumeClaimTemplateSpec"))


def cluster_volumes(spec: SlurmClusterSpec) -> Iterator[Problem]:
    """Faults of the volumes of a SlurmCluster."""
    known = {source.name for source in spec.volume_sources}
    for index, source in enumerate(spec.volume_sources):
        yield from _one_type(f"spec.volumeSources[{index}]", source)
    if spec.has_jail and JAIL_SOURCE not in known:
        yield Problem(
            "spec.volumeSources",
            f"an entry named {JAIL_SOURCE} must be there, the volume that all users share; "
            f"{known_names(known)}",
        )
    for path, volume in _volumes(spec):
        yield from _node_volume(path, volume, known)
    for path, mounts in cluster_mounts(spec):
        for index, mount in enumerate(mounts):
            yield from _node_volume(f"{path}[{index}]", mount, known)
        yield from duplicates(path, (mount.name for mount in mounts))
    yield from _cluster_volume_names(spec)


def claim_names(spec: SlurmClusterSpec) -> Iterator[tuple[str, str, str]]:
    """Name of each source of a PVC that a pod has, the field with the PVC's name, and that name."""
    used = {volume.volume_source_name for _, volume in _volumes(spec)}
    used |= {mount.volume_source_name for _, mounts in cluster_mounts(spec) for mount in mounts}
    if spec.has_jail:
        used.add(JAIL_SOURCE)
    for index, source in enumerate(spec.volume_sources):
        claim = source.persistent_volume_claim
        if claim is not None and source.name in used:
            field = f"spec.volumeSources[{index}].persistentVolumeClaim.claimName"
            yield source.name, field, str(claim.get("claimName", ""))


def nodeset_volume_names(path: str, volumes: SlurmdVolumes, *, has_sssd: bool) -> Iterator[Problem]:
    """Mounts of a NodeSet with the name of another volume of the pod."""
    spool = volumes.spool
    own: dict[str, _Origin | None] = {
        **dict.fromkeys(SSSD_VOLUMES if has_sssd else ()),
        names.JAIL: (_source(volumes.jail), volumes.jail.volume_claim_template_spec),
        names.SPOOL: (_source(spool), spool.volume_claim_template_spec),
    }
    yield from _name_clashes(
        own,
        (
            (f"{path}.{field}[{index}]", one.name, _mount_origin(one))
            for field, mounts in (
                ("jailSubMounts", volumes.jail_sub_mounts),
                ("customVolumeMounts", volumes.custom_volume_mounts),
            )
            for index, one in enumerate(mounts)
        ),
    )


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
    yield from shape_problems(path, msgspec.to_builtins(source), _REQUIRED)


def template_or_source(path: str, given: SpoolSource | JailSource) -> Iterator[Problem]:
    """A volume and a claim template at once."""
    yield from single_source(path, given)
    types = source_types(given)
    if types and given.volume_claim_template_spec is not None:
        yield Problem(path, f"has {types[0]} and volumeClaimTemplateSpec: keep one of them")


def _cluster_volume_names(spec: SlurmClusterSpec) -> Iterator[Problem]:
    """Mounts of a daemon with the name of another volume of its pod."""
    volumes, mounts = dict(_volumes(spec)), dict(cluster_mounts(spec))
    nodes = spec.slurm_nodes
    with_sssd = {"controller": nodes.controller.sssd, "login": nodes.login.sssd}
    for daemon, spool in (
        ("controller", names.CONTROLLER_SPOOL),
        ("login", ""),
        ("worker", names.SPOOL),
    ):
        path = f"spec.slurmNodes.{daemon}.volumes"
        own: dict[str, _Origin | None] = {
            name: _origin(volumes[f"{path}.{field}"])
            for name, field in ((names.JAIL, "jail"), (spool, "spool"))
            if f"{path}.{field}" in volumes
        }
        if not spec.has_jail:
            own[SLURM_CONFIGS] = ("", None)
        if with_sssd.get(daemon) is not None:
            own |= dict.fromkeys(SSSD_VOLUMES)
        yield from _name_clashes(
            own,
            (
                (f"{path}.{field}[{index}]", one.name, _origin(one))
                for field in ("jailSubMounts", "customMounts")
                for index, one in enumerate(mounts.get(f"{path}.{field}", ()))
            ),
        )


def _name_clashes(
    own: Mapping[str, _Origin | None], mounts: Iterable[tuple[str, str, _Origin]]
) -> Iterator[Problem]:
    """Mounts of one pod, by path and name, that are of another volume than one of that name."""
    known: dict[str, _Origin | None] = {**dict.fromkeys(POD_VOLUMES), **own}
    for path, name, origin in mounts:
        if known.setdefault(name, origin) != origin:
            yield Problem(
                f"{path}.name",
                f"{name[:60]!r} is the name of another volume of the pod: choose one of its own",
            )


def _source(source: VolumeSource | None) -> str:
    given: dict[str, Any] = msgspec.to_builtins(source) if source is not None else {}
    given.pop("volumeClaimTemplateSpec", None)
    return msgspec.json.encode(given, order="sorted").decode()


def _mount_origin(mount: VolumeMount) -> _Origin:
    return _source(mount.volume_source), mount.volume_claim_template_spec


def _origin(volume: NodeVolume) -> _Origin:
    return volume.volume_source_name, volume.volume_claim_template_spec


def _one_type(path: str, source: VolumeSource) -> Iterator[Problem]:
    if not source_types(source):
        yield Problem(path, "write one type of volume, such as persistentVolumeClaim")
    yield from single_source(path, source)


def _node_volume(path: str, volume: NodeVolume, known: Collection[str]) -> Iterator[Problem]:
    name = volume.volume_source_name
    if bool(name) == (volume.volume_claim_template_spec is not None):
        yield Problem(path, _EITHER)
    elif name and name not in known:
        yield Problem(
            f"{path}.volumeSourceName",
            f"{name[:60]!r} is no entry of spec.volumeSources; {known_names(known)}",
        )


def _volumes(spec: SlurmClusterSpec) -> Iterator[tuple[str, NodeVolume]]:
    nodes = spec.slurm_nodes
    yield "spec.slurmNodes.controller.volumes.spool", nodes.controller.volumes.spool
    if spec.has_jail:
        yield "spec.slurmNodes.controller.volumes.jail", nodes.controller.volumes.jail
        yield "spec.slurmNodes.login.volumes.jail", nodes.login.volumes.jail
    if nodes.worker is not None:
        yield "spec.slurmNodes.worker.volumes.spool", nodes.worker.volumes.spool
        if spec.has_jail:
            yield "spec.slurmNodes.worker.volumes.jail", nodes.worker.volumes.jail
    if spec.populate_jail.jail_snapshot_volume is not None:
        yield "spec.populateJail.jailSnapshotVolume", spec.populate_jail.jail_snapshot_volume
