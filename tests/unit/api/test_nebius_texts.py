"""Texts that become lines of configuration files, in the words that their user reads."""

from __future__ import annotations

from typing import Any, cast

import pytest

from penstock.api.cluster.marks import MAX_DRAINED, REPLACE_NODES
from penstock.api.nebius.cluster_validation import cluster_admission_problems
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.api.nebius.validation import nodeset_admission_problems
from support import nebius

PARTITIONS = "spec.partitionConfiguration"


def problems(changes: dict[str, Any], name: str = "slurmcluster-5.0-0") -> list[tuple[str, str]]:
    cluster = cast("SlurmCluster", nebius.made(name, changes))
    return [(one.path, one.message) for one in cluster_admission_problems(cluster)]


@pytest.mark.parametrize(
    ("path", "value", "field", "words"),
    [
        (f"{PARTITIONS}.partitions.0.config", "a=b\nc=d", None, "control character '\\n'"),
        (f"{PARTITIONS}.partitions.0.config", "a=b \\", None, "ends in a backslash"),
        (f"{PARTITIONS}.partitions.0.name", "a b", None, "no name of a partition"),
        (
            PARTITIONS,
            {"configType": "custom", "rawConfig": ["PartitionName=a\tNodes=b\x00"]},
            f"{PARTITIONS}.rawConfig[0]",
            "control character",
        ),
        ("spec.slurmConfig.epilog", "/a\rb", None, "control character '\\r'"),
        ("spec.mpiConfig.pmixEnv", "a=b\nMpiDefault=none", None, "write one line"),
        (
            "spec.plugStackConfig.customPlugins",
            [{"path": "x", "arguments": {"a": "b\nrequired y"}}],
            "spec.plugStackConfig.customPlugins[0].arguments",
            "control character",
        ),
        ("spec.customSlurmConfig", "KillWait=1\nWaitTime=\x1b", None, "line 2 has the control"),
        ("spec.customSlurmConfig", "KillWait=1\nnonsense\n", None, "line 2 is not of the form"),
        ("spec.customCgroupConfig", "a=b\x00", None, "line 1 has the control character"),
        ("spec.slurmNodes.login.sshRootPublicKeys.0", "ssh-rsa A\nssh-rsa B", None, "one line"),
    ],
)
def test_a_text_that_would_reach_into_other_lines_is_rejected(
    path: str, value: Any, field: str | None, words: str
):
    expected = field or path.replace(".0", "[0]")
    (found,) = problems({path: value})
    assert found[0] == expected
    assert words in found[1]


def test_texts_as_editors_write_them_are_accepted():
    assert problems({}) == []
    block = {"spec.slurmConfig.prolog": "/a\n", "spec.customSlurmConfig": "KillWait=1\r\n\tA=b\n"}
    assert problems(block) == []


def test_a_feature_may_not_take_the_node_set_of_all_workers():
    features = [{"name": "fast", "hostlistExpr": "worker-0", "nodesetName": "worker"}]
    (found,) = problems({"spec.workerFeatures": features}, "slurmcluster-1.23-0")
    assert found[0] == "spec.workerFeatures[0].nodesetName"


@pytest.mark.parametrize("field", ["static", "features", "gresConfig"])
def test_a_line_break_in_the_words_of_a_node_is_rejected(field: str):
    value = "a=b\nc" if field == "static" else ["a=b\nc"]
    made = cast("NodeSet", nebius.made("nodesets-5.0-0", {f"spec.nodeConfig.{field}": value}))
    (found,) = nodeset_admission_problems(made)
    assert found.path.startswith(f"spec.nodeConfig.{field}")


def test_a_large_text_costs_few_problems():
    assert len(problems({"spec.customSlurmConfig": "x\n" * 100_000})) <= 20


@pytest.mark.parametrize("key", [MAX_DRAINED, REPLACE_NODES])
@pytest.mark.parametrize("share", ["0", "0%", "101%", "ten", "10 %", ""])
def test_a_share_of_nodes_that_is_none_is_rejected(key: str, share: str):
    ((path, words),) = problems({"metadata.annotations": {key: share}})
    assert path == f"metadata.annotations[{key}]"
    assert "write a number from 1, or a whole percentage such as 10%" in words


@pytest.mark.parametrize("share", ["1", "250", "10%", "100%"])
def test_a_share_of_checks_is_a_number_or_a_percentage(share: str):
    assert problems({"metadata.annotations": {MAX_DRAINED: share}}) == []
