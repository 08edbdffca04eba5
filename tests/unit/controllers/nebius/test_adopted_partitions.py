"""Where a SlurmCluster declares what somebody changed of its partitions in Slurm."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from penstock.api.nebius.slurmcluster import SlurmCluster, SlurmClusterSpec
from penstock.controllers.nebius.adopted_partitions import into_slurm_cluster
from penstock.simulation.slurm import partitions
from penstock.slurm.partition.declaration import PARTITION, Difference
from penstock.slurm.rest.wire import Partition
from support import nebius

SHORTER = (Difference("MaxTime", "7", "UNLIMITED"),)
DELETED = (Difference(PARTITION, "", "present"),)
ON_OTHERS = (Difference("Nodes", "a-0", "a-[0-1]"),)


def spec(custom: str = "", **partitions: Any) -> SlurmClusterSpec:
    changes = {"spec.partitionConfiguration": partitions, "spec.customSlurmConfig": custom}
    return cast("SlurmCluster", nebius.made("slurmcluster-5.0-0", changes)).spec


def structured(*entries: dict[str, Any]) -> SlurmClusterSpec:
    return spec(configType="structured", partitions=entries)


def test_an_entry_gets_the_value_and_the_others_stay() -> None:
    others = {"name": "b", "nodeSetRefs": ["a"], "config": "Hidden=YES"}
    declared = structured({"name": "main", "isAll": True, "config": "Default=YES"}, others)
    found = into_slurm_cluster(declared, {"main": SHORTER}, {}, {})
    main = {"name": "main", "isAll": True, "config": "Default=YES MaxTime=7"}
    assert found.patch == {"partitionConfiguration": {"partitions": [main, others]}}
    assert found.left == {}


def test_a_deleted_entry_goes_but_for_the_last_one() -> None:
    declared = structured({"name": "main", "isAll": True}, {"name": "b", "isAll": True})
    found = into_slurm_cluster(declared, {"b": DELETED}, {}, {})
    assert found.patch == {
        "partitionConfiguration": {"partitions": [{"name": "main", "isAll": True}]}
    }
    found = into_slurm_cluster(declared, {"b": DELETED, "main": DELETED}, {}, {})
    assert found.patch == {}
    assert "the only one" in found.left["main"]


def test_nodes_of_an_entry_are_left_with_the_reason() -> None:
    declared = structured({"name": "main", "nodeSetRefs": ["a"]})
    found = into_slurm_cluster(declared, {"main": ON_OTHERS}, {}, {})
    assert found.patch == {}
    assert "nodeSetRefs" in found.left["main"]


def test_the_default_partitions_are_left_with_the_reason() -> None:
    found = into_slurm_cluster(spec(configType="default"), {"main": SHORTER}, {}, {})
    assert found.patch == {}
    assert "configType default" in found.left["main"]


def test_a_line_of_either_text_is_changed_where_it_is() -> None:
    custom = "KillWait=3\nPartitionName=own Nodes=ALL # mine\n"
    raw = ["PartitionName=main Nodes=ALL", "PartitionName=b Nodes=ALL"]
    declared = spec(custom, configType="custom", rawConfig=raw)
    live = {name: _live(name) for name in ("own", "main")}
    found = into_slurm_cluster(declared, {"own": SHORTER, "main": SHORTER}, live, {})
    assert found.patch["partitionConfiguration"] == {"rawConfig": [f"{raw[0]} MaxTime=7", raw[1]]}
    assert found.patch["customSlurmConfig"] == custom.replace("ALL #", "ALL MaxTime=7 #")


def test_lines_that_are_no_single_lines_are_left_with_the_reason() -> None:
    declared = spec(configType="custom", rawConfig=["PartitionName=main \\", "Nodes=ALL"])
    found = into_slurm_cluster(declared, {"main": SHORTER}, {"main": _live("main")}, {})
    assert found.patch == {}
    assert "several lines" in found.left["main"]


def _live(name: str) -> Partition:
    return msgspec.convert(partitions.new(name), Partition)
