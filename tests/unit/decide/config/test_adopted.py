"""A changed configuration while slurmctld's pod is as slurm-operator made it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.api.cluster.marks import ADOPTED_PODS
from penstock.decide.config.conditions import APPLIED, findings
from penstock.decide.config.transaction import equal_meaning, next_step
from penstock.decide.config.view import ConfigView, Stage, Version
from penstock.render.config.content import content_hash


def version(text: str) -> Version:
    data = {"slurm.conf": text}
    return Version(data, content_hash(data))


OLD = version("ClusterName=x\nSlurmctldParameters=enable_configless,reconfig_on_restart\n")
NEW = version("ClusterName=x\nSchedulerTimeSlice=5\n")
PARTITION = version(f"{OLD.data['slurm.conf']}PartitionName=a Nodes=ALL\n")
HELD = ConfigView(
    candidate=OLD,
    startup=OLD,
    last_known_good=None,
    has_started=True,
    is_ready=True,
    has_own_sidecar=True,
    is_adopted=True,
)


def test_what_slurmctld_started_with_is_in_effect_though_nobody_can_be_asked() -> None:
    found = next_step(HELD)
    assert (found.stage, found.startup, found.last_known_good) == (
        Stage.EFFECTIVE,
        OLD.data,
        OLD.data,
    )
    assert (found.is_acknowledged, found.marks, found.reloads) == (False, {}, False)
    (told,) = findings(found, OLD.data)
    assert (told.type, told.ok) == (APPLIED, True)
    assert "as another operator made it" in told.message


@pytest.mark.parametrize(
    "text",
    [
        "ClusterName=x\n# a remark\nSlurmctldParameters=enable_configless,reconfig_on_restart\n",
        "ClusterName=x\nSlurmctldParameters=Reconfig_on_Restart,enable_configless\n",
    ],
)
def test_what_is_only_written_in_another_way_replaces_no_pod(text: str) -> None:
    found = next_step(replace(HELD, candidate=version(text)))
    assert (found.stage, found.startup) == (Stage.EFFECTIVE, {"slurm.conf": text})


def test_letters_matter_everywhere_else() -> None:
    assert not equal_meaning({"slurm.conf": "Prolog=/A\n"}, {"slurm.conf": "Prolog=/a\n"})
    assert not equal_meaning(OLD.data, {**OLD.data, "cgroup.conf": ""})


def test_what_slurmctld_was_told_is_written_and_replaces_no_pod() -> None:
    found = next_step(replace(HELD, candidate=PARTITION, applied_live=True))
    assert (found.stage, found.startup) == (Stage.EFFECTIVE, PARTITION.data)
    assert next_step(replace(HELD, candidate=PARTITION)).stage is Stage.TRYING


def test_what_slurmctld_must_read_waits_for_our_pod_which_starts_with_what_there_was() -> None:
    found = next_step(replace(HELD, candidate=NEW))
    assert (found.stage, found.startup, found.last_known_good) == (Stage.TRYING, OLD.data, OLD.data)
    assert found.marks == {}
    assert "has to be replaced first" in found.words
    assert ADOPTED_PODS not in found.words
    assert ADOPTED_PODS in next_step(replace(HELD, candidate=NEW, persistent=False)).words


def test_a_file_that_is_gone_is_written_again() -> None:
    assert next_step(replace(HELD, startup=None)).startup == OLD.data
