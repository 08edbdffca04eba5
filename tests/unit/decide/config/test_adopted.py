"""A changed configuration while slurmctld's pod is as slurm-operator made it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.api.cluster.marks import ADOPTED_PODS
from penstock.decide.config.conditions import APPLIED, findings
from penstock.decide.config.transaction import ConfigView, Stage, Version, decide, same_meaning
from penstock.render.config.content import content_hash


def version(text: str) -> Version:
    data = {"slurm.conf": text}
    return Version(data, content_hash(data))


OLD = version("ClusterName=x\nSlurmctldParameters=enable_configless,reconfig_on_restart\n")
NEW = version("ClusterName=x\nSchedulerTimeSlice=5\n")
PARTITION = version(f"{OLD.data['slurm.conf']}PartitionName=a Nodes=ALL\n")
HELD = ConfigView(
    wanted=OLD, real=OLD, alias=None, worked=True, serves=True, speaks=True, held=True
)


def test_what_slurmctld_started_with_is_in_effect_though_nobody_can_be_asked() -> None:
    found = decide(HELD)
    assert (found.stage, found.real, found.alias) == (Stage.EFFECTIVE, OLD.data, OLD.data)
    assert (found.told, found.marks, found.reads) == (False, {}, False)
    (told,) = findings(found, OLD.data)
    assert (told.type, told.ok) == (APPLIED, True)
    assert "as slurm-operator made it" in told.message


@pytest.mark.parametrize(
    "text",
    [
        "ClusterName=x\n# a remark\nSlurmctldParameters=enable_configless,reconfig_on_restart\n",
        "ClusterName=x\nSlurmctldParameters=Reconfig_on_Restart,enable_configless\n",
    ],
)
def test_what_is_only_written_in_another_way_replaces_no_pod(text: str) -> None:
    found = decide(replace(HELD, wanted=version(text)))
    assert (found.stage, found.real) == (Stage.EFFECTIVE, {"slurm.conf": text})


def test_letters_matter_everywhere_else() -> None:
    assert not same_meaning({"slurm.conf": "Prolog=/A\n"}, {"slurm.conf": "Prolog=/a\n"})
    assert not same_meaning(OLD.data, {**OLD.data, "cgroup.conf": ""})


def test_what_slurmctld_was_told_is_written_and_replaces_no_pod() -> None:
    found = decide(replace(HELD, wanted=PARTITION, applied_live=True))
    assert (found.stage, found.real) == (Stage.EFFECTIVE, PARTITION.data)
    assert decide(replace(HELD, wanted=PARTITION)).stage is Stage.TRYING


def test_what_slurmctld_must_read_waits_for_our_pod_which_starts_with_what_there_was() -> None:
    found = decide(replace(HELD, wanted=NEW))
    assert (found.stage, found.real, found.alias) == (Stage.TRYING, OLD.data, OLD.data)
    assert found.marks == {}
    assert "has to be replaced first" in found.words
    assert ADOPTED_PODS not in found.words
    assert ADOPTED_PODS in decide(replace(HELD, wanted=NEW, persistent=False)).words


def test_a_file_that_is_gone_is_written_again() -> None:
    assert decide(replace(HELD, real=None)).real == OLD.data
