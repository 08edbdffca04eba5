"""What slurmctld lost of its partitions comes back; what somebody changed by hand stays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
import pytest

from penstock.controllers.partition.verification import PartitionVerifier
from penstock.controllers.runtime.slurm_connections import SlurmConnection
from penstock.simulation.slurm.slurmctld import SimulatedSlurmctld
from penstock.slurm.known import Unknown
from penstock.slurm.partition.declaration import Difference
from penstock.slurm.rest.wire import Partition

SETS = "NodeSet=compute Feature=compute\n"
WITH = f"{SETS}PartitionName=compute Nodes=compute\n"
DRAINED = f"{SETS}PartitionName=compute Nodes=compute State=DRAIN\n"
WITHOUT = SETS


@dataclass
class _Rest:
    found: list[Partition] = field(default_factory=list[Partition])

    async def partitions(self) -> list[Partition]:
        return self.found


@dataclass
class _Snapshot:
    nodes: object = field(default_factory=lambda: Unknown("not asked"))


@dataclass
class _Mirror:
    snapshot: _Snapshot = field(default_factory=_Snapshot)


@dataclass
class _Link:
    client: _Rest = field(default_factory=_Rest)
    mirror: _Mirror = field(default_factory=_Mirror)


def _compute() -> Partition:
    ctld = SimulatedSlurmctld()
    ctld.read(WITH)
    return msgspec.convert(ctld.partitions["compute"], Partition)


async def _back(proof: PartitionVerifier, text: str, *found: Partition) -> list[str]:
    async def revert(_name: str, _found: tuple[Difference, ...]) -> str:
        return ""

    link = cast("SlurmConnection", cast("Any", _Link(_Rest(list(found)))))
    return await proof.verify(text, link, {}, revert)


@pytest.mark.parametrize(
    "files",
    [[DRAINED, WITHOUT, WITH], [WITH, WITHOUT, WITH]],
    ids=["declared again otherwise", "declared again as it was"],
)
async def test_a_partition_is_put_back_that_a_file_between_two_did_not_have(
    files: list[str],
) -> None:
    proof = PartitionVerifier()
    for number, text in enumerate(files[1:]):
        proof.expect(f"hash-{number}", text, files[0])
    assert await _back(proof, files[-1]) == ["compute"]
    assert proof.waiting == frozenset()


async def test_what_no_file_since_said_is_left_to_those_who_look_for_drift() -> None:
    proof = PartitionVerifier()
    proof.expect("hash", WITH, DRAINED)
    assert await _back(proof, WITH) == []
    assert proof.waiting == frozenset()


async def test_files_from_before_slurmctld_was_seen_with_all_of_them_count_no_more() -> None:
    proof = PartitionVerifier()
    proof.expect("hash-1", WITH, WITHOUT)
    await _back(proof, WITH, _compute())
    assert proof.waiting == frozenset()
    proof.expect("hash-2", DRAINED, WITH)
    assert await _back(proof, DRAINED) == []
