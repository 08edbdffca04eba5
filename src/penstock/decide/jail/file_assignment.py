"""Which of several objects writes a file of the jail that more than one names.

Two writers of one file would replace it in turn. The configuration of the cluster has its files,
then the oldest JailedConfig.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from penstock.catalog.reasons.jailed_config import JailedConfigReason
from penstock.catalog.reasons.object import ObjectReason
from penstock.decide.jail import paths
from penstock.model.jail_file import Fault, JailedFiles, JailFile

MOST_FILES: Final = 1000
MOST_BYTES: Final = 16 * 2**20
"""Of all files of one JailedConfig. A key of its ConfigMap may be named by many items."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one JailedConfig writes: `config` with a fault if it may write nothing.

    `delivered` are those of its files that come with the configuration of the cluster.
    """

    config: JailedFiles
    files: tuple[JailFile, ...]
    delivered: tuple[JailFile, ...] = ()


def assign_files(
    configs: Iterable[JailedFiles], config_map: str, delivered: Collection[str]
) -> Sequence[Assignment]:
    """What each JailedConfig writes, the oldest first.

    `config_map` has the configuration of the cluster, `delivered` the paths of its files.
    """
    owners: dict[str, str] = {}
    found: list[Assignment] = []
    for config in sorted(configs, key=lambda one: (one.created, one.name)):
        fault = config.fault or _fault(config, config_map, delivered, owners)
        if config.fault is None:
            for file in config.files:
                owners.setdefault(file.path, config.name)
        if fault is not None:
            found.append(Assignment(replace(config, fault=fault), ()))
            continue
        theirs = tuple(one for one in config.files if one.path in delivered)
        own = tuple(one for one in config.files if one.path not in delivered)
        found.append(Assignment(config, own, theirs))
    return found


def _fault(
    config: JailedFiles, config_map: str, delivered: Collection[str], owners: dict[str, str]
) -> Fault | None:
    size = sum(len(one.content) for one in config.files)
    if len(config.files) > MOST_FILES or size > MOST_BYTES:
        return Fault(
            ObjectReason.INVALID,
            f"It has {len(config.files)} files with {size} bytes; a JailedConfig may have "
            f"{MOST_FILES} files and {MOST_BYTES} bytes",
        )
    seen: set[str] = set()
    for file in config.files:
        if words := paths.problem(file.path):
            return Fault(
                ObjectReason.INVALID, f"{file.path!r} is no path of a file in the jail: {words}"
            )
        if file.path in seen:
            return Fault(
                ObjectReason.INVALID, f"{file.path} is named twice; remove one of the items"
            )
        seen.add(file.path)
        if file.path in delivered and config.config_map != config_map:
            return Fault(
                JailedConfigReason.CONFLICT,
                f"{file.path} is a file of the cluster's configuration; change it in the "
                "SlurmCluster, or choose another path",
            )
        if file.path in owners:
            owner = owners[file.path]
            return Fault(
                JailedConfigReason.CONFLICT,
                f"{file.path} is written by JailedConfig {owner}, which is older; remove it from "
                "one of them",
            )
    return None
