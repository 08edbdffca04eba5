"""How a Partition is doing, in conditions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.decide.partition.conditions import Live, PartitionView, describe_rejection, findings
from penstock.slurm.known import Known, Unknown
from penstock.slurm.partition.declaration import Difference

VIEW = PartitionView("p", live=Known(Live("UP", "n[0-1]", 2), 1.0))


@pytest.mark.parametrize(
    ("change", "ok", "reason", "words"),
    [
        ({}, True, "InEffect", ""),
        ({"absent": ("n7",)}, True, "InEffect", "have not registered yet: n7"),
        ({"live": Known(None, 1.0)}, None, "Applying", "does not have partition p yet"),
        (
            {"live": Known(Live(differences=(Difference("MaxTime", "5", "6"),)), 1.0)},
            None,
            "Applying",
            "MaxTime is 5, declared 6",
        ),
        ({"live": Unknown("gone"), "by_file": "gone"}, None, "SlurmUnknown", "so slurm.conf does"),
        ({"rejected": "no such QOS"}, False, "PartitionRefused", "no such QOS"),
        ({"conflict": "NodeSet p"}, False, "NameTaken", "declared by NodeSet p"),
    ],
)
def test_a_condition_says_how_it_is_and_what_to_do(
    change: dict[str, object], ok: bool | None, reason: str, words: str
):
    (found,) = findings(replace(VIEW, **change))
    assert (found.ok, found.reason) == (ok, reason)
    assert words in found.message


def test_a_missing_nodeset_is_told_first_and_the_rest_as_well():
    missing, rest = findings(replace(VIEW, missing=("gpu",)))
    assert (missing.ok, missing.reason) == (False, "NodeSetNotFound")
    assert "gpu" in missing.message
    assert rest.reason == "InEffect"


def test_a_refusal_quotes_the_line_or_the_delete():
    assert "`PartitionName=p Nodes=x`" in describe_rejection("p", "PartitionName=p Nodes=x", "no")
    assert "to delete partition p" in describe_rejection("p", "", "in use")
