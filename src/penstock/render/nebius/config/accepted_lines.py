"""Lines of the last known good files, while slurmctld rejects those that the SlurmCluster declares.

Partitions, and keys that follow NodeSets, are as declared: they do not wait for a correction.
"""

from __future__ import annotations

from typing import Final

from penstock.slurm.conf.document import RECORDS, Document
from penstock.slurm.partition.declaration import (
    DEFAULT,
    PARTITION,
    copy_partitions,
    partition_changes,
)

KEYS_OF_NODE_SETS: Final = frozenset(
    {
        "GresTypes",
        "MaxArraySize",
        "MaxNodeCount",
        "ReconfigFlags",
        "ResumeFailProgram",
        "ResumeProgram",
        "ResumeRate",
        "SlurmctldParameters",
        "SlurmdPort",
        "SuspendExcStates",
        "SuspendProgram",
        "SuspendRate",
        "SuspendTime",
        "SuspendTimeout",
        "TopologyParam",
        "TopologyPlugin",
    }
)


def is_of_node_sets(line: str) -> bool:
    """Whether a line of the operator's own keys may follow NodeSets; remarks count as such."""
    return line.startswith("#") or line.partition("=")[0] in KEYS_OF_NODE_SETS


def with_accepted_keys(declared: str, accepted: str) -> str:
    """The operator's own keys of `declared`, each with its line in `accepted`.

    A key that only `accepted` has follows at the end. The function is idempotent.
    """
    before = {key: line for line in accepted.splitlines() if (key := _own_key(line))}
    lines: list[str] = []
    for line in declared.splitlines():
        key = _own_key(line)
        if not key:
            lines.append(line)
        elif key in before:
            lines.append(before.pop(key))
    return "".join(f"{line}\n" for line in (*lines, *before.values()))


def with_accepted_lines(declared: str, accepted: str) -> str:
    """The user's lines of `accepted` with the partitions of `declared`.

    While their DEFAULT lines differ, the partitions of `accepted` stay: each line gets values of
    the DEFAULT lines before it.
    """
    if _defaults(declared) != _defaults(accepted):
        return accepted
    names = {one.name for one in partition_changes(accepted, declared)}
    return copy_partitions(declared, accepted, names) if names else accepted


def _own_key(line: str) -> str:
    """The key of a line that the SlurmCluster itself brings; empty for other lines."""
    key, found, _ = line.partition("=")
    if not found or is_of_node_sets(line) or key.lower() in RECORDS:
        return ""
    return key


def _defaults(text: str) -> list[str]:
    every = Document.parse(text).records(PARTITION)
    return [one.render() for one in every if one.name.upper() == DEFAULT]
