"""Fields that contradict spec.jailMode.

With the mode None there is no jail: no volume of it, nothing that fills it, and nothing that writes
into it. A field about one of these would have no effect, so it is rejected. With PerWorker each
worker has a PVC by a claim template, while logins and slurmctld share a named volume.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from penstock.api.admission import Problem
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius.common import ROOT_CONTAINERS
from penstock.api.nebius.mount_rules import cluster_mounts, normal
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.rule_parts import ABSENT
from penstock.api.nebius.slurmcluster import SlurmCluster, SlurmClusterSpec
from penstock.api.nebius.volumes import JailSource, NodeVolume

WITHOUT_JAIL: Final = "spec.jailMode is None"
PER_WORKER: Final = "spec.jailMode is PerWorker"
_OWN_ROOT: Final = "write volumeClaimTemplateSpec, by which each worker has a PVC"
_SHARED_ROOT: Final = f"{PER_WORKER}, and logins and slurmctld share one volume: name it"
_ONE_ROOT: Final = "only spec.jailMode: PerWorker fills a PVC of each worker; name a volume"
_NO_JAIL: Final = f"{WITHOUT_JAIL}, so there is no jail: remove it"
_NO_WRITER: Final = (
    f"{WITHOUT_JAIL}, so pods mount the configuration and nothing writes it: remove it"
)
_UPPER: Final = "/mnt/jail.upper"
_NOT_MOVED: Final = f"{WITHOUT_JAIL}: write the path without {_UPPER}"
_UNSET: Final = SlurmCluster().spec
_NODES: Final = "spec.slurmNodes"
_OF_THE_JOB: Final = (
    "downscaleAndDeletePopulateJail",
    "downscaleAndOverwritePopulateJail",
    "skipPopulateJail",
)


def jail_problems(spec: SlurmClusterSpec) -> Iterator[Problem]:
    """Fields of a SlurmCluster that its mode needs or excludes."""
    if spec.has_jail:
        if spec.populate_jail == _UNSET.populate_jail:
            yield Problem("spec.populateJail", f"{ABSENT}, unless spec.jailMode is None")
        if spec.has_own_roots:
            yield from _own_roots(spec)
        return
    yield from _without_jail(spec)


def jail_admission_problems(spec: SlurmClusterSpec) -> Iterator[Problem]:
    """PVCs of workers for a jail that all of them share, as an older cluster may have them."""
    worker = spec.slurm_nodes.worker
    if spec.jail_mode == "Shared" and worker is not None and _has_template(worker.volumes.jail):
        yield Problem(f"{_NODES}.worker.volumes.jail.volumeClaimTemplateSpec", _ONE_ROOT)


def _own_roots(spec: SlurmClusterSpec) -> Iterator[Problem]:
    nodes = spec.slurm_nodes
    for daemon, jail in (
        ("controller", nodes.controller.volumes.jail),
        ("login", nodes.login.volumes.jail),
    ):
        if _has_template(jail):
            yield Problem(f"{_NODES}.{daemon}.volumes.jail", _SHARED_ROOT)
    if nodes.worker is not None and not _has_template(nodes.worker.volumes.jail):
        yield Problem(f"{_NODES}.worker.volumes.jail", f"{PER_WORKER}: {_OWN_ROOT}")
    if nodes.worker is not None and (name := _taken(nodes.worker.custom_init_containers)):
        yield Problem(f"{_NODES}.worker.customInitContainers", f"{PER_WORKER}: {_rename(name)}")


def _taken(containers: Iterable[Json]) -> str:
    """The first name that a container of the operator has; empty without one."""
    return next((one["name"] for one in containers if one.get("name") in ROOT_CONTAINERS), "")


def _rename(name: str) -> str:
    return f"{name} is a container of the operator; choose another name"


def _has_template(jail: NodeVolume | JailSource) -> bool:
    return jail.volume_claim_template_spec is not None


def _without_jail(spec: SlurmClusterSpec) -> Iterator[Problem]:
    if spec.populate_jail != _UNSET.populate_jail:
        yield Problem("spec.populateJail", _NO_JAIL)
    if spec.sconfig_controller != _UNSET.sconfig_controller:
        yield Problem("spec.sConfigController", _NO_WRITER)
    if spec.job_isolation != _UNSET.job_isolation:
        yield Problem("spec.jobIsolation", _NO_JAIL)
    if spec.job_network_interfaces:
        yield Problem("spec.jobNetworkInterfaces", _NO_JAIL)
    if spec.maintenance in _OF_THE_JOB:
        yield Problem(
            "spec.maintenance",
            f"{WITHOUT_JAIL}, and {spec.maintenance} is about the Job that fills a jail: write "
            "none or downscale",
        )
    nodes = spec.slurm_nodes
    volumes = [
        ("controller", nodes.controller.volumes.jail, ()),
        ("login", nodes.login.volumes.jail, nodes.login.volumes.jail_sub_mounts),
    ]
    if nodes.worker is not None:
        own = nodes.worker.volumes
        volumes.append(("worker", own.jail, own.jail_sub_mounts))
    for daemon, jail, sub_mounts in volumes:
        if jail != NodeVolume():
            yield Problem(f"{_NODES}.{daemon}.volumes.jail", _NO_JAIL)
        if sub_mounts:
            yield Problem(
                f"{_NODES}.{daemon}.volumes.jailSubMounts",
                f"{_NO_JAIL}, or move it to customMounts",
            )

    for path, mounts in cluster_mounts(spec):
        for index, one in enumerate(mounts):
            if not path.endswith("jailSubMounts") and is_in_jail(one.mount_path):
                yield Problem(f"{path}[{index}].mountPath", _NOT_MOVED)


def is_in_jail(path: str) -> bool:
    """Whether an entry point moves a mount of the container into the jail."""
    return f"{normal(path)}/".startswith(f"{_UPPER}/")


def node_set_jail_problem(node_set: NodeSet, cluster: SlurmCluster) -> str:
    """Why no worker of a NodeSet can be created in its SlurmCluster; empty when one can."""
    volumes, name = node_set.spec.slurmd.volumes, cluster.metadata.name
    if not cluster.spec.has_jail and volumes.jail_sub_mounts:
        return (
            f"spec.slurmd.volumes.jailSubMounts: SlurmCluster {name} has no jail "
            f"({WITHOUT_JAIL}); move them to customVolumeMounts"
        )
    if not cluster.spec.has_jail and any(
        is_in_jail(one.mount_path) for one in volumes.custom_volume_mounts
    ):
        return (
            f"spec.slurmd.volumes.customVolumeMounts: SlurmCluster {name} has no jail "
            f"({WITHOUT_JAIL}); write paths without {_UPPER}"
        )
    has_volume = volumes.jail != type(volumes.jail)()
    if not cluster.spec.has_jail and has_volume:
        return (
            f"spec.slurmd.volumes.jail: SlurmCluster {name} has no jail ({WITHOUT_JAIL}); remove it"
        )
    if cluster.spec.has_own_roots != _has_template(volumes.jail):
        words = (
            f"has a root for each worker ({PER_WORKER}); {_OWN_ROOT}"
            if cluster.spec.has_own_roots
            else f"has one jail for all workers; {_ONE_ROOT}"
        )
        return f"spec.slurmd.volumes.jail: SlurmCluster {name} {words}"
    taken = _taken(node_set.spec.custom_init_containers) if cluster.spec.has_own_roots else ""
    if taken:
        return f"spec.customInitContainers: {_rename(taken)} ({PER_WORKER} of SlurmCluster {name})"
    if cluster.spec.has_jail and not has_volume:
        return f"spec.slurmd.volumes.jail: SlurmCluster {name} has a jail; name the volume with it"
    return ""
