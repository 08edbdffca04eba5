"""How a Partition is doing, in conditions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from penstock.api.kubernetes.conditions import Finding
from penstock.base.text import list_some
from penstock.slurm.known import Fact, Unknown
from penstock.slurm.partition.declaration import Difference, RemovedKey

CONFIG_APPLIED = "ConfigApplied"


@dataclass(frozen=True, slots=True)
class Live:
    """What slurmctld says of one partition."""

    state: str = ""
    nodes: str = ""
    total: int = 0
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionView:
    """All that the conditions of one Partition depend on."""

    name: str
    conflict: str = ""
    """Who has the name already."""
    missing: tuple[str, ...] = ()
    """NodeSets that are not there."""
    refused: str = ""
    """The words of slurmctld's refusal."""
    live: Fact[Live | None] = field(default_factory=lambda: Unknown("it was not asked for yet"))
    by_file: str = ""
    """Why a change does not go by slurmrestd."""
    absent: tuple[str, ...] = ()
    """Nodes that it names and of which slurmctld has no record."""


def findings(view: PartitionView) -> list[Finding]:
    """The findings; what needs somebody comes first."""
    if view.conflict:
        return [
            Finding(
                False,
                "NameTaken",
                f"Partition {view.name} is declared by {view.conflict} already, which keeps it. "
                "Take it out there, or choose another spec.name",
            )
        ]
    found: list[Finding] = []
    if view.missing:
        found.append(
            Finding(
                False,
                "NodeSetNotFound",
                f"spec.nodeSets: there is no NodeSet {list_some(view.missing)} in this namespace "
                "that belongs to the same Controller. The partition is there without its nodes",
            )
        )
    if view.refused:
        found.append(refused(view.refused))
        return found
    return [*found, _live(view)]


def refused(words: str, type_: str = "") -> Finding:
    """What slurmctld said to a change of one partition; `type_` for a condition of its own."""
    return Finding(False, "PartitionRefused", words, type=type_)


def refusal(name: str, line: str, words: str) -> str:
    """The words of a refusal; `line` is empty for a partition that was to go."""
    what = f"`{line}`" if line else f"to delete partition {name}"
    return f"slurmctld refuses {what} and keeps the partition as it was: {words}"


def _live(view: PartitionView) -> Finding:
    slower = f"; the change goes by slurm.conf alone: {view.by_file}" if view.by_file else ""
    if isinstance(view.live, Unknown):
        return Finding(None, "SlurmUnknown", f"{view.live.why}{slower}")
    live = view.live.value
    if live is None:
        return Finding(
            None, "Applying", f"slurmctld does not have partition {view.name} yet{slower}"
        )
    if live.differences:
        return Finding(None, "Applying", f"{told(live.differences)}{slower}")
    waiting = (
        f"Nodes that belong to it as soon as they register: {list_some(view.absent)}"
        if view.absent
        else ""
    )
    return Finding(True, "InEffect", waiting)


def told(differences: Iterable[Difference]) -> str:
    """Differences in words."""
    return list_some([str(one) for one in differences], "; ")


def without(name: str, found: Iterable[RemovedKey]) -> str:
    """Keys that are not declared of a partition any more, in words; never empty."""
    every = list(found)
    default = list_some([_went(one) for one in every if not one.inherited])
    other = list_some([_went(one) for one in every if one.inherited])
    told = [f"{default}: Slurm's default holds again"] if default else []
    told += [f"{other}: the value of PartitionName=DEFAULT holds"] if other else []
    return f"Partition {name} is declared without what it had: {'; '.join(told)}"


def _went(one: RemovedKey) -> str:
    return f"{one.key}={one.was}" + (f" (now {one.now})" if one.now else "")
