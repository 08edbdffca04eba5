"""A slurm.conf in several files is one document."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.decide.cluster.release import unknown
from penstock.decide.config.conditions import place
from penstock.slurm.conf.apply_method import Force, needs
from penstock.slurm.conf.apply_method_table import TABLE
from penstock.slurm.conf.document import Document
from penstock.slurm.conf.includes import MOST_INCLUDES, included, resolved
from penstock.slurm.partition.declaration import partition_lines
from penstock.slurm.versions import V24_11

SPLIT = {
    "slurm.conf": "# both\ninclude /etc/slurm/base.conf\nInclude extra.conf",
    "base.conf": "ClusterName=x\nPartitionName=DEFAULT State=UP\nPartitionName=a Nodes=ALL",
    "extra.conf": "PartitionName=b Nodes=ALL\nKillWait=30\n",
    "gres.conf": "AutoDetect=nvidia\n",
}


def test_the_included_files_stand_in_place_of_their_lines():
    text = resolved(SPLIT)
    assert text == f"# both\n{SPLIT['base.conf']}\n{SPLIT['extra.conf']}"
    assert included(SPLIT) == ("base.conf", "extra.conf")
    # A DEFAULT line of one file is inherited in the next one.
    assert partition_lines(text)["b"].keys == {"state": "UP", "nodes": "ALL"}


def test_an_include_of_another_file_stays_as_it_is():
    line = "include /etc/slurm/users.conf\n"
    for other in (line, "include /mnt/jail/base.conf\n", "include sub/base.conf\n"):
        files = {"slurm.conf": f"{other}include ./base.conf\n", "base.conf": "KillWait=1"}
        assert resolved(files) == f"{other}KillWait=1\n"
        assert included(files) == ("base.conf",)
    files = {"slurm.conf": "include base.conf\n", "base.conf": line}
    assert Document.parse(resolved(files)).includes() == ("/etc/slurm/users.conf",)
    before, after = {"slurm.conf": ""}, files
    assert not needs(before, after, TABLE).items[0].known


def test_a_file_that_includes_itself_ends():
    files = {
        "slurm.conf": "include a\nKillWait=1\n",
        "a": "include b\n",
        "b": "include slurm.conf\ninclude a",
    }
    assert resolved(files) == "include slurm.conf\ninclude a\nKillWait=1\n"
    assert included(files) == ("a", "b")


def test_a_small_set_does_not_become_a_text_of_any_length():
    files = {"slurm.conf": "include f0\n" * 10}
    files |= {f"f{n}": f"include f{n + 1}\n" * 10 for n in range(30)}
    files["f30"] = "KillWait=1\n" * 10
    assert len(resolved(files)) < MOST_INCLUDES * 200


def test_a_line_that_continues_at_the_end_of_a_file_ends_there():
    files = {"slurm.conf": "include a\nKillWait=1\n", "a": "WaitTime=2 \\"}
    assert Document.parse(resolved(files)).get("KillWait") == "1"
    files["a"] += "\n"
    assert Document.parse(resolved(files)).get("KillWait") == "1"


@given(st.text(alphabet='Ak= \\#"\n\r', max_size=30))
def test_without_an_include_it_is_the_text_of_the_file(text: str):
    assert resolved({"slurm.conf": text}) == text


@given(st.text(alphabet='Ak= \\#"\n', max_size=30))
def test_no_text_of_an_included_file_changes_the_lines_around_it(text: str):
    files = {"slurm.conf": "WaitTime=1\ninclude a\nKillWait=2\n", "a": text}
    document = Document.parse(resolved(files))
    assert document.get("WaitTime") == "1"
    assert document.get("KillWait") == "2"


@pytest.mark.parametrize("file", ["base.conf", "extra.conf"])
def test_a_key_of_an_included_file_needs_what_it_needs_in_slurm_conf(file: str):
    changed = {**SPLIT, file: f"{SPLIT[file]}\nPartitionName=c Nodes=ALL\n"}
    plan = needs(SPLIT, changed, TABLE)
    assert [str(one) for one in plan.items] == ["PartitionName=c"]
    assert plan.force is Force.REST
    port = {**SPLIT, file: f"{SPLIT[file]}\nSlurmctldPort=7000\n"}
    assert needs(SPLIT, port, TABLE).force is Force.RESTART


def test_a_key_that_moves_to_another_file_needs_nothing():
    whole = {"slurm.conf": resolved(SPLIT), "gres.conf": SPLIT["gres.conf"]}
    assert needs(SPLIT, whole, TABLE).items == ()
    assert needs(whole, SPLIT, TABLE).items == ()


def test_a_line_of_an_included_file_is_named_with_its_file():
    files = {**SPLIT, "extra.conf": "KillWait=30\nSchedulerType=sched/none\n"}
    words = "error: Couldn't find the specified plugin name for sched/none"
    assert place(words, files) == " (line 2 of extra.conf: SchedulerType=sched/none)"


def test_a_fault_in_an_included_file_is_named_with_its_own_line():
    """Words of slurmctld 26.05."""
    files = {**SPLIT, "extra.conf": "KillWait=30\nNoSuchKey=1\n"}
    words = (
        "error: _parse_next_key: Parsing error at unrecognized key: NoSuchKey / error: "
        '"Include" failed in file /run/reconfigure/trial/etc/slurm.conf line 3 / fatal: Unable to '
        "process configuration file"
    )
    assert place(words, files) == " (line 2 of extra.conf: NoSuchKey=1)"


def test_a_key_that_the_release_lacks_is_found_in_an_included_file():
    files = {**SPLIT, "base.conf": "MetricsType=metrics/openmetrics\n"}
    assert unknown(files, V24_11) == ("MetricsType (line 1 of base.conf, known since 25.11)",)
    assert not unknown({"other": files["base.conf"]}, V24_11)
