"""Conditions of a Partition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from penstock.api.kubernetes.conditions import Finding
from penstock.base.text import list_some
from penstock.catalog.condition_type import ConditionType
from penstock.catalog.reasons.partition import PartitionReason
from penstock.catalog.reasons.slurm_nodes import SlurmNodeReason
from penstock.slurm.known import Fact, Unknown
from penstock.slurm.partition.declaration import Difference, RemovedKey

CONFIG_APPLIED = ConditionType.CONFIG_APPLIED


@dataclass(frozen=True, slots=True)
class Live:
    """One partition as slurmctld has it."""

    state: str = ""
    nodes: str = ""
    total: int = 0
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionView:
    """Observed state that the conditions of one Partition depend on."""

    name: str
    conflict: str = ""
    """The object that has the name already."""
    missing: tuple[str, ...] = ()
    """NodeSets that do not exist."""
    rejected: str = ""
    """Slurm's words with which slurmctld rejected the last change."""
    live: Fact[Live | None] = field(default_factory=lambda: Unknown("it was not asked for yet"))
    by_file: str = ""
    """Why slurmrestd cannot make the change."""
    absent: tuple[str, ...] = ()
    """Nodes that it names and that slurmctld does not have."""


def findings(view: PartitionView) -> list[Finding]:
    """Return the findings; those that need a user's action come first."""
    if view.conflict:
        return [
            Finding(
                False,
                PartitionReason.NAME_TAKEN,
                f"Partition {view.name} is declared by {view.conflict}, which keeps it. Remove it "
                "there, or choose another spec.name",
            )
        ]
    found: list[Finding] = []
    if view.missing:
        found.append(
            Finding(
                False,
                PartitionReason.NODE_SET_NOT_FOUND,
                f"spec.nodeSets: the Controller has no NodeSet {list_some(view.missing)} in this "
                "namespace, so the partition lacks its nodes. Create it, or correct the name",
            )
        )
    if view.rejected:
        found.append(rejected_finding(view.rejected))
        return found
    return [*found, _live(view)]


def rejected_finding(words: str, type_: ConditionType | Literal[""] = "") -> Finding:
    """Return the finding for a rejected change; `type_` is set for a condition of its own."""
    return Finding(False, PartitionReason.REFUSED, words, type=type_)


def describe_rejection(name: str, line: str, words: str) -> str:
    """Return the message for a rejected change; `line` is empty for a deletion."""
    what = f"`{line}`" if line else f"to delete partition {name}"
    return f"slurmctld rejects {what} and keeps the partition as it was: {words}"


def _live(view: PartitionView) -> Finding:
    slower = (
        f"; slurmrestd cannot change it, so slurm.conf does: {view.by_file}" if view.by_file else ""
    )
    if isinstance(view.live, Unknown):
        return Finding(None, SlurmNodeReason.UNKNOWN, f"{view.live.why}{slower}")
    live = view.live.value
    if live is None:
        return Finding(
            None,
            PartitionReason.APPLYING,
            f"slurmctld does not have partition {view.name} yet{slower}",
        )
    if live.differences:
        return Finding(
            None, PartitionReason.APPLYING, f"{describe_differences(live.differences)}{slower}"
        )
    waiting = f"Nodes that have not registered yet: {list_some(view.absent)}" if view.absent else ""
    return Finding(True, PartitionReason.IN_EFFECT, waiting)


def describe_differences(differences: Iterable[Difference]) -> str:
    """Return the differences as text for a message."""
    return list_some([str(one) for one in differences], "; ")


def without(name: str, found: Iterable[RemovedKey]) -> str:
    """Return the message about keys that were removed from a partition; never empty."""
    every = list(found)
    default = list_some([_went(one) for one in every if not one.inherited])
    other = list_some([_went(one) for one in every if one.inherited])
    parts = [f"{default}: Slurm's default holds again"] if default else []
    parts += [f"{other}: the value of PartitionName=DEFAULT holds"] if other else []
    return f"Partition {name}: parameters were removed; {'; '.join(parts)}"


def _went(one: RemovedKey) -> str:
    return f"{one.key}={one.was}" + (f" (now {one.now})" if one.now else "")
