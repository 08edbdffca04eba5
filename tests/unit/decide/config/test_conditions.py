"""What a user is told about a configuration."""

from __future__ import annotations

import pytest

from penstock.api.kubernetes.conditions import Finding
from penstock.decide.config.conditions import APPLIED, VALID, findings, place, step
from penstock.decide.config.view import ConfigStep, Stage
from penstock.slurm.conf.apply_method import needs
from penstock.slurm.conf.apply_method_table import TABLE

BASE = "ClusterName=x\nMaxNodeCount=8\n"
DECLARED = {"slurm.conf": f"{BASE}PartitionName=y Nodes=nosuch\nBogusKey=1 # MaxNodeCount\n"}


def told(stage: Stage, words: str = "", *, acknowledged: bool = True) -> dict[str, Finding]:
    found = ConfigStep(stage, None, None, words=words, is_acknowledged=acknowledged)
    return {one.type: one for one in findings(found, DECLARED)}


@pytest.mark.parametrize(
    ("stage", "valid", "applied"),
    [
        (Stage.EFFECTIVE, True, True),
        (Stage.TRYING, None, None),
        (Stage.DELIVERING, True, None),
        (Stage.RESTARTING, True, None),
        (Stage.REJECTED, False, False),
        (Stage.ROLLED_BACK, True, False),
    ],
)
def test_conditions_say_how_far_a_configuration_is(
    stage: Stage, valid: bool | None, applied: bool | None
):
    found = told(stage, "error: BogusKey")
    assert (found[VALID].ok, found[APPLIED].ok) == (valid, applied)


def test_nothing_is_said_before_slurmctld_has_worked():
    assert told(Stage.STARTING) == {}


def test_what_nobody_acknowledged_is_not_called_in_effect():
    found = told(Stage.EFFECTIVE, acknowledged=False)
    assert found[APPLIED].reason == "ConfigDelivered"
    assert VALID not in found


def test_a_refusal_has_slurms_words_and_the_line():
    message = told(Stage.REJECTED, "error: Parsing error at unrecognized key: BogusKey")[
        VALID
    ].message
    assert "unrecognized key: BogusKey (line 4 of slurm.conf: BogusKey=1 # MaxNodeCount)" in message


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ('lookup failure for node "nosuch" / Invalid node names in partition y', "line 3"),
        ("Unable to process configuration file", ""),
        ("something about ClusterName and about MaxNodeCount", ""),
    ],
)
def test_the_line_is_named_only_where_the_words_lead_to_one(words: str, found: str):
    assert found in place(words, DECLARED)
    assert bool(place(words, DECLARED)) is bool(found)


def test_a_key_that_is_written_twice_does_not_hide_the_line_that_is_rejected():
    """slurmctld mentions it each time; the operator repeats keys whose options it joins."""
    twice = "SlurmctldParameters=a\nSlurmctldParameters=a,enable_configless\n"
    declared = {"slurm.conf": f"{DECLARED['slurm.conf']}{twice}"}
    words = (
        "error: _parse_next_key: Parsing error at unrecognized key: BogusKey / "
        "error: SlurmctldParameters 1 specified more than once, latest value used / "
        "fatal: Unable to process configuration file"
    )
    assert place(words, declared) == " (line 4 of slurm.conf: BogusKey=1 # MaxNodeCount)"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("Invalid node names in partition y", "undo the other change, or end the jobs by"),
        ("lookup failure for node nosuch", "`scancel --partition=y`"),
        ("Unable to process configuration file", "which this may be about"),
    ],
)
def test_a_refusal_says_that_a_removed_partition_still_has_its_line(words: str, says: str) -> None:
    """Otherwise a user looks for it in vain among the lines that are declared."""
    found = ConfigStep(Stage.REJECTED, None, None, words=words)
    for one in findings(found, DECLARED, {"y"}):
        assert "Partition y is removed from the declaration and its line stays" in one.message
        assert says in one.message
    assert all("removed" not in one.message for one in findings(found, DECLARED))


@pytest.mark.parametrize(
    ("line", "live", "persistent", "words"),
    [
        ("SchedulerTimeSlice=5", False, True, "reconfigured for SchedulerTimeSlice; slurmctld is"),
        ("# remark", True, True, "nothing that slurmctld would have to take over"),
        ("PartitionName=a Nodes=ALL", True, True, "by REST calls: PartitionName=a"),
        ("PartitionName=a Nodes=ALL", False, True, "reconfigured for PartitionName=a"),
        ("SlurmctldPort=7000", True, True, "is restarted: SlurmctldPort needs it"),
        ("SlurmctldPort=7000", False, False, "restart of slurmctld, which is left to you"),
        ("SlurmdPort=7000", False, True, "needs a restart of slurmd, which is left to you"),
        ("Strange=1", False, True, "Unknown options, applied by reconfigure: strange"),
        ("SelectType=select/linear", False, True, "Warning: a changed SelectType loses"),
    ],
)
def test_an_event_names_the_step_and_the_keys(line: str, live: bool, persistent: bool, words: str):
    plan = needs({"slurm.conf": BASE}, {"slurm.conf": f"{BASE}{line}\n"}, TABLE)
    decision = ConfigStep(Stage.DELIVERING, None, None, plan=plan)
    told = step(decision, "slurm-controller-0", kind="Controller", live=live, persistent=persistent)
    assert words in told


REMARK = (
    "error: If using PrologFlags=Contain for pam_slurm_adopt, proctrack/cgroup is required. If not "
    "using pam_slurm_adopt, please ignore error."
)


def test_a_remark_on_other_lines_does_not_hide_the_rejected_one():
    """S106: as slurmctld has it between the error and its end."""
    words = f"error: unrecognized key: JobContainerPlugin / {REMARK} / fatal: Unable to process"
    text = (
        "PrologFlags=Alloc,Contain\nProctrackType=proctrack/linuxproc\nJobContainerPlugin=contain\n"
    )
    assert place(words, {"slurm.conf": text}) == (
        " (line 3 of slurm.conf: JobContainerPlugin=contain)"
    )


@pytest.mark.parametrize(
    ("line", "words", "key"),
    [
        (
            "JobContainerPlugin=contain",
            "_parse_next_key: Parsing error at unrecognized key: JobContainerPlugin",
            "JobContainerType",
        ),
        (
            "TaskPluginParam=Cray_PrologSlurmctld",
            "Bad TaskPluginParam: Cray_PrologSlurmctld",
            "PrologSlurmctld",
        ),
        ("Zz=1", "Parsing error at unrecognized key: Zz", ""),
        ("PartitionName=p Nodes=ALL MaxTimes=1", "unrecognized key: MaxTimes", ""),
    ],
)
def test_a_misspelt_key_is_answered_with_the_nearest_one(line: str, words: str, key: str):
    """S106."""
    found = ConfigStep(Stage.REJECTED, None, None, words=words)
    (valid, _) = findings(found, {"slurm.conf": f"{BASE}{line}\n"})
    assert words in valid.message
    hint = f". The nearest key that Slurm has is {key}"
    assert valid.message.endswith(hint) if key else "nearest" not in valid.message
