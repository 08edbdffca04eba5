"""Declare in a SlurmCluster the changes that somebody made to its partitions in Slurm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from penstock.api.nebius.configuration import PartitionSpec
from penstock.api.nebius.slurmcluster import SlurmClusterSpec
from penstock.slurm.conf.document import Document
from penstock.slurm.partition.adoption import Found, Sets, into_extra_conf, into_nodeset
from penstock.slurm.partition.declaration import (
    PARTITION,
    Adoption,
    Difference,
    partition_lines,
)
from penstock.slurm.rest.wire import Partition

_DEFAULTS: Final = (
    "configType default declares it: use configType custom or structured, or choose Revert"
)
_LAST: Final = "it is the only one that partitionConfiguration declares"


def into_slurm_cluster(
    spec: SlurmClusterSpec, found: Found, records: Mapping[str, Partition], sets: Sets
) -> Adoption:
    """The patch of its spec, and by partition why some changes cannot be declared.

    Partitions of `customSlurmConfig`, and those that nobody declares, become lines of it. Others
    stay in the list that has them.
    """
    of_list = _of_list(spec)
    listed = {name: one for name, one in found.items() if name in of_list}
    rest = {name: one for name, one in found.items() if name not in of_list}
    # A line of customSlurmConfig comes after the lists, and is the one that counts.
    lines = into_extra_conf(spec.custom_slurm_config, rest, records, sets)
    patch: dict[str, Any] = {}
    if "extraConf" in lines.patch:
        patch["customSlurmConfig"] = lines.patch["extraConf"]
    declared = spec.partition_configuration
    if not listed:
        adoption = Adoption({})
    elif declared.config_type == "custom":
        adoption = _into_lines(declared.raw_config, listed, records, sets)
    elif declared.config_type == "structured":
        adoption = _into_entries(declared.partitions, listed)
    else:
        adoption = Adoption({}, dict.fromkeys(listed, _DEFAULTS))
    if adoption.patch:
        patch["partitionConfiguration"] = adoption.patch
    return Adoption(patch, {**lines.left, **adoption.left})


def _of_list(spec: SlurmClusterSpec) -> frozenset[str]:
    """Partitions of `partitionConfiguration` that no line of `customSlurmConfig` declares again."""
    declared = spec.partition_configuration
    match declared.config_type:
        case "default":
            names = {"main", "hidden"}
        case "custom":
            names = set(partition_lines("\n".join(declared.raw_config)))
        case "structured":
            names = {one.name for one in declared.partitions}
    return frozenset(names - partition_lines(spec.custom_slurm_config).keys())


def _into_lines(
    raw: tuple[str, ...], found: Found, records: Mapping[str, Partition], sets: Sets
) -> Adoption:
    text = "".join(f"{line}\n" for line in raw)
    if len(Document.parse(text).lines) != len(raw):
        why = "an entry of rawConfig has several lines, or is continued"
        return Adoption({}, dict.fromkeys(found, why))
    adoption = into_extra_conf(text, found, records, sets)
    if "extraConf" not in adoption.patch:
        return adoption
    lines: str = adoption.patch["extraConf"]
    if not lines:
        return Adoption({}, {**adoption.left, **dict.fromkeys(found, _LAST)})
    return Adoption({"rawConfig": lines.splitlines()}, adoption.left)


def _into_entries(declared: tuple[PartitionSpec, ...], found: Found) -> Adoption:
    entries: list[dict[str, Any]] = []
    left: dict[str, str] = {}
    for one in declared:
        differences = found.get(one.name, ())
        if _is_deleted(differences):
            continue
        config = one.config
        if differences:
            adoption = into_nodeset(config, {one.name: differences})
            if adoption.left:
                left[one.name] = "its nodes are those of its entry: change nodeSetRefs or isAll"
                if one.name in adoption.left and not _has_nodes(differences):
                    left[one.name] = adoption.left[one.name]
            else:
                config = adoption.patch["partition"]["config"] or ""
        entries.append(_entry(one, config))
    if not entries:
        return Adoption({}, dict.fromkeys(found, _LAST))
    if entries == [_entry(one, one.config) for one in declared]:
        return Adoption({}, left)
    return Adoption({"partitions": entries}, left)


def _is_deleted(differences: tuple[Difference, ...]) -> bool:
    return bool(differences) and differences[0].key == PARTITION


def _has_nodes(differences: tuple[Difference, ...]) -> bool:
    return any(one.key == "Nodes" for one in differences)


def _entry(one: PartitionSpec, config: str) -> dict[str, Any]:
    """An entry of the list as it is written; a merge patch replaces the whole list."""
    entry: dict[str, Any] = {"name": one.name}
    if one.is_all:
        entry["isAll"] = True
    if one.node_set_refs:
        entry["nodeSetRefs"] = list(one.node_set_refs)
    if config:
        entry["config"] = config
    return entry
