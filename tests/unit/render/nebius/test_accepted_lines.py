"""Files of a SlurmCluster whose own lines are rejected: the last known good ones in part."""

from __future__ import annotations

from typing import Any, cast

import pytest

from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.render.nebius.config.accepted_lines import with_accepted_lines
from penstock.render.nebius.config.files import files
from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.slurm.conf.includes import resolved
from penstock.slurm.partition.declaration import partition_lines
from support import nebius

NAMES = {"1.23": "slurmcluster-1.23-0", "5.0": "slurmcluster-5.0-0"}
RAW = {"configType": "custom", "rawConfig": ["PartitionName=main Nodes=ALL"]}


def inputs(shape: str, *, sets: int = 1, accepted: dict[str, str] | None = None, **spec: Any):
    changes = {
        f"spec.{key}": value for key, value in {"partitionConfiguration": RAW, **spec}.items()
    }
    cluster = cast("SlurmCluster", nebius.made(NAMES[shape], changes))
    found = [
        cast("NodeSet", nebius.made("nodesets-5.0-0", {"metadata.name": f"set{number}"}))
        for number in range(sets if shape == "5.0" else 0)
    ]
    return ConfigInputs(cluster=cluster, node_sets=tuple(found), accepted=accepted or {})


@pytest.mark.parametrize("shape", NAMES)
def test_own_fields_and_lines_are_the_accepted_ones_and_partitions_the_declared_ones(
    shape: str,
) -> None:
    good = files(inputs(shape, customSlurmConfig="KillWait=3\nPartitionName=own Nodes=ALL\n"))
    changed: dict[str, Any] = {
        "customSlurmConfig": "Bogus=1\nAuthAltTypes=x\nPartitionName=own Nodes=ALL MaxTime=5\n",
        "slurmConfig": {"prolog": "/bogus", "messageTimeout": 61},
        "customCgroupConfig": "Bogus=2",
        "partitionConfiguration": {**RAW, "rawConfig": ["PartitionName=new Nodes=ALL"]},
    }
    found = files(inputs(shape, accepted=good, **changed))
    text = resolved(found)
    assert partition_lines(text).keys() == {"own", "new"}
    assert partition_lines(text)["own"].keys["maxtime"] == "5"
    assert "Bogus" not in text
    assert "/bogus" not in text
    assert "KillWait=3\n" in text
    assert "MessageTimeout=60\n" in text
    assert "MERGED" not in text
    assert found["cgroup.conf"] == good["cgroup.conf"]


@pytest.mark.parametrize("shape", NAMES)
def test_files_without_another_partition_are_the_accepted_ones(shape: str) -> None:
    good = files(inputs(shape, customSlurmConfig="KillWait=3\nAuthAltTypes=auth/jwt\n"))
    found = files(inputs(shape, accepted=good, customSlurmConfig="Bogus=1\n"))
    assert found == good


def test_what_follows_nodesets_is_as_declared() -> None:
    good = files(inputs("5.0"))
    found = files(inputs("5.0", sets=3, accepted=good, customSlurmConfig="Bogus=1\n"))
    text = resolved(found)
    assert "NodeSet=set2 Feature=set2\n" in text
    assert found["gres.conf"] == files(inputs("5.0", sets=3))["gres.conf"]
    assert "Bogus" not in text


def test_files_are_the_same_when_they_are_accepted_once_more() -> None:
    good = files(inputs("5.0", slurmConfig={"prolog": "/good"}))
    changed: dict[str, Any] = {
        "partitionConfiguration": {**RAW, "rawConfig": ["PartitionName=new Nodes=ALL"]},
        "customSlurmConfig": "Bogus=1\n",
    }
    once = files(inputs("5.0", accepted=good, **changed))
    assert files(inputs("5.0", accepted=once, **changed)) == once
    assert "Prolog=/good" in resolved(once)


def test_partitions_stay_while_their_default_lines_differ() -> None:
    accepted = "PartitionName=DEFAULT MaxTime=5\nPartitionName=own Nodes=ALL\n"
    declared = "PartitionName=DEFAULT MaxTime=6\nPartitionName=own Nodes=ALL Hidden=YES\n"
    assert with_accepted_lines(declared, accepted) == accepted
