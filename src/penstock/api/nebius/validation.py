"""Faults of the kinds beside SlurmCluster, beyond what their schemas can express."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from penstock.api.admission import Problem
from penstock.api.nebius.common import pod_containers
from penstock.api.nebius.conf_texts import nodeset_texts
from penstock.api.nebius.container_rules import node_set_containers, node_set_counts
from penstock.api.nebius.jailed_config import JailedConfig
from penstock.api.nebius.labels import PARENT_CLUSTER
from penstock.api.nebius.mount_rules import node_set_mount_advice, node_set_mount_faults
from penstock.api.nebius.name_rules import node_set_name
from penstock.api.nebius.names import cluster_of
from penstock.api.nebius.node_configurator import NodeConfigurator
from penstock.api.nebius.nodeset import MAX_UNAVAILABLE, MOST_UNAVAILABLE, NodeSet
from penstock.api.nebius.power_state import NodeSetPowerState
from penstock.api.nebius.rule_parts import (
    ABSENT,
    containers,
    duplicates,
    number,
    percentage,
    pod_fields,
)
from penstock.api.nebius.size_rules import size_problems
from penstock.api.nebius.volume_rules import (
    nodeset_mounts,
    nodeset_volume_names,
    source_types,
    template_or_source,
)

MEMORY_VARIABLE: Final = "SOPERATOR_NODE_REAL_MEMORY_BYTES"
"""Variable of the slurmd container that only the operator sets."""
_VOLUMES: Final = "spec.slurmd.volumes"
_NO_NODES: Final = NodeSet().spec


def nodeset_problems(obj: NodeSet) -> Iterator[Problem]:
    """Faults of a NodeSet."""
    spec = obj.spec
    if spec == _NO_NODES:
        yield Problem("spec", ABSENT)
        return
    if sizes := list(size_problems(spec)):
        yield from sizes
        return
    if not cluster_of(obj):
        yield Problem(
            "spec.clusterName",
            f"name the SlurmCluster of these nodes, here or in the annotation {PARENT_CLUSTER}",
        )
    for workload in ("controller", "login"):
        if obj.metadata.name in (workload, f"{cluster_of(obj)}-{workload}"):
            yield Problem(
                "metadata.name",
                f"{obj.metadata.name!r} is the name of a StatefulSet of the operator: its pods "
                "would have the names of these nodes",
            )
    for resource in ("cpu", "memory"):
        if not number(spec.slurmd.resources.get(resource)):
            yield Problem(f"spec.slurmd.resources.{resource}", "must be given and above 0")
    if any(one.get("name") == MEMORY_VARIABLE for one in spec.slurmd.custom_env):
        yield Problem("spec.slurmd.customEnv", f"{MEMORY_VARIABLE} is the operator's: remove it")
    volumes = spec.slurmd.volumes
    yield from template_or_source(f"{_VOLUMES}.spool", volumes.spool)
    yield from template_or_source(f"{_VOLUMES}.jail", volumes.jail)
    yield from nodeset_mounts(f"{_VOLUMES}.jailSubMounts", volumes.jail_sub_mounts)
    yield from nodeset_mounts(f"{_VOLUMES}.customVolumeMounts", volumes.custom_volume_mounts)
    yield from nodeset_volume_names(_VOLUMES, volumes, has_sssd=spec.sssd is not None)
    yield from node_set_mount_faults(_VOLUMES, volumes)
    yield from node_set_containers(spec)
    yield from node_set_name(obj)
    fields = {"affinity": spec.affinity, "tolerations": list(spec.tolerations)}
    yield from pod_fields("spec", fields)
    taken = pod_containers(has_sssd=spec.sssd is not None)
    yield from containers("spec.customInitContainers", spec.custom_init_containers, taken)


def nodeset_admission_problems(obj: NodeSet) -> Iterator[Problem]:
    """A budget that the current version rejects and older ones accepted, and texts of files."""
    spec = obj.spec
    if any(size_problems(spec)):
        return
    yield from nodeset_texts(spec)
    yield from node_set_mount_advice(_VOLUMES, spec.slurmd.volumes)
    yield from node_set_counts(spec)
    most = spec.max_unavailable
    if isinstance(most, str):
        share = percentage(most)
        wrong = share is None or share * spec.replicas > MOST_UNAVAILABLE
    else:
        wrong = not 1 <= most <= MOST_UNAVAILABLE
    if wrong:
        yield Problem(
            "spec.maxUnavailable",
            f"{str(most)[:60]!r} is out of range: {MAX_UNAVAILABLE}, and be at least 1",
        )


def nodeset_advice(obj: NodeSet) -> Iterator[str]:
    """Volumes without a source: Kubernetes makes them empty directories."""
    volumes = obj.spec.slurmd.volumes
    for name, source in (("spool", volumes.spool), ("jail", volumes.jail)):
        if source.volume_claim_template_spec is None and not source_types(source):
            yield f"{_VOLUMES}.{name}: without a source it is an emptyDir, lost with its pod"


def power_state_problems(obj: NodeSetPowerState) -> Iterator[Problem]:
    """Faults of a NodeSetPowerState."""
    spec = obj.spec
    if spec.node_set_ref != obj.metadata.name:
        yield Problem(
            "spec.nodeSetRef",
            f"{spec.node_set_ref[:60]!r} differs from the object's name: name the object like its "
            "NodeSet",
        )
    below = [ordinal for ordinal in spec.active_nodes if ordinal < 0]
    if below:
        yield Problem("spec.activeNodes", f"{below[0]} is no ordinal: write numbers from 0")


def jailed_config_problems(obj: JailedConfig) -> Iterator[Problem]:
    """Faults of a JailedConfig."""
    spec = obj.spec
    if sizes := list(size_problems(spec)):
        yield from sizes
        return
    for index, item in enumerate(spec.items):
        if not _is_file_of_jail(item.path):
            yield Problem(
                f"spec.items[{index}].path",
                f"{item.path[:70]!r} is no file of the jail: write an absolute path with one / "
                "between names, without . and .. and control characters",
            )
        yield from _mode(f"spec.items[{index}].mode", item.mode)
    yield from duplicates("spec.items", (item.path for item in spec.items))
    yield from _mode("spec.defaultMode", spec.default_mode)


def _is_file_of_jail(path: str) -> bool:
    """By its form alone: `decide.jail.paths` rejects names that are too long or kept."""
    names = path.split("/")[1:]
    wrong = not names or any(name in ("", ".", "..") for name in names)
    return path.startswith("/") and not wrong and path.isprintable()


def _mode(path: str, mode: int | None) -> Iterator[Problem]:
    if mode is not None and not 0 <= mode <= 0o777:
        yield Problem(path, f"{mode} is no mode of a file: write 0 to 511, in YAML also 0644")


def node_configurator_problems(obj: NodeConfigurator) -> Iterator[Problem]:
    """Faults of a NodeConfigurator."""
    spec = obj.spec
    if sizes := list(size_problems(spec)):
        yield from sizes
        return
    # The rebooter without an image is the operator's.
    for field, container in (
        ("customContainer", spec.custom_container),
        ("nodeConfigurator", spec.node_configurator),
    ):
        if container is not None and container.enabled and container.image is None:
            yield Problem(f"spec.{field}.image", f"{ABSENT} while it is enabled")
    yield from containers("spec.initContainers", spec.init_containers)
