"""What a change of the configuration needs."""

from __future__ import annotations

import pytest

from penstock.slurm.conf.apply_method import Force, Plan, needs
from penstock.slurm.conf.apply_method_table import TABLE, table
from penstock.slurm.versions import V24_11, V25_11, V26_05, Version

BASE = "ClusterName=x\nMaxNodeCount=8\nPartitionName=a Nodes=ALL\n"


def plan(text: str, base: str = BASE, file: str = "slurm.conf", version: Version = V26_05) -> Plan:
    return needs({file: base}, {file: text}, table(version))


@pytest.mark.parametrize(
    "text",
    [
        f"# a remark\n{BASE}",
        "MaxNodeCount=8\nClusterName=x # here\nPartitionName=a Nodes=ALL\n",
        "clustername=x\nMAXNODECOUNT=8\npartitionname=a Nodes=ALL\n",
    ],
)
def test_comments_order_and_spelling_need_nothing(text: str):
    assert plan(text) == Plan()
    assert plan(text).force is Force.NOTHING


def test_a_partition_needs_a_rest_call_where_slurm_has_it_and_else_a_reconfigure():
    text = f"{BASE}PartitionName=b Nodes=ALL\n"
    (item,) = plan(text).items
    assert (item.need.force, str(item)) == (Force.REST, "PartitionName=b")
    assert plan(text, version=V25_11).force is Force.RECONFIGURE


def test_the_force_of_a_change_is_the_greatest_of_its_parts():
    found = plan(f"{BASE}SchedulerTimeSlice=5\nSlurmctldPort=7000\n")
    assert found.force is Force.RESTART
    assert found.daemons == ("slurmctld",)
    assert [str(one) for one in found.of(Force.RECONFIGURE)] == ["SchedulerTimeSlice"]


def test_a_key_that_nobody_knows_is_reconfigured_and_reported():
    found = plan(f"{BASE}Bogus=1\n")
    assert found.force is Force.RECONFIGURE
    assert [str(one) for one in found.unknown] == ["bogus"]


@pytest.mark.parametrize("line", ["Bogus", "Include other.conf", '"'])
def test_a_line_that_is_no_setting_is_never_taken_for_nothing(line: str):
    found = plan(f"{BASE}{line}\n")
    assert found.force is Force.RECONFIGURE
    assert found.unknown


def test_one_option_of_a_list_may_need_more_than_the_others():
    def change(value: str) -> Plan:
        old = f"{BASE}CommunicationParameters=keepaliveinterval=5\n"
        return plan(f"{BASE}CommunicationParameters={value}\n", old)

    assert change("keepaliveinterval=9").force is Force.RECONFIGURE
    assert change("EnableIPv6,keepaliveinterval=5").daemons == ("slurmctld", "slurmd")


def test_lines_of_gres_conf_that_begin_alike_are_distinguished():
    base = "Name=gpu Type=a Cores=0-3\nName=gpu Type=a Cores=4-7\n"
    assert plan(base.replace("4-7", "4-6"), base, "gres.conf").daemons == ("slurmctld",)
    found = plan(base.replace("Type=a Cores=4", "Type=b Cores=4"), base, "gres.conf")
    assert [str(one) for one in found.items] == ["Type (gres.conf)"]


@pytest.mark.parametrize(
    ("file", "force", "known"),
    [
        ("job_submit.lua", Force.RECONFIGURE, True),
        ("prolog.sh", Force.RECONFIGURE, True),
        ("topology.yaml", Force.RECONFIGURE, True),
        ("namespace.yaml", Force.RESTART, True),
        ("strange.conf", Force.RECONFIGURE, False),
    ],
)
def test_other_files_count_as_a_whole(file: str, force: Force, known: bool):
    for old, new in (({}, {file: "x"}), ({file: "x"}, {file: "y"}), ({file: ""}, {})):
        found = needs(old, new, TABLE)
        assert (found.force, not found.unknown) == (force, known)


def test_no_key_is_in_the_table_twice():
    keys = [(row.file, key.lower()) for row in TABLE.rows for key in row.keys or ("",)]
    assert len(keys) == len(set(keys))
    assert len(keys) > 250


UNKNOWN_TO_24_11 = """
CertgenParameters CertgenType CliFilterParameters EpilogTimeout HealthCheckTimeout HttpParserType
JobCompPassScript LicenseParameters MetricsAuthUsers MetricsParameters MetricsType NamespaceType
PrologTimeout SlurmctldHttpAuthParameters SlurmdHttpAuthParameters UrlParserType
"""
"""Of the keys of the table those that scontrol 24.11.5 called unrecognized, asked for each."""


def test_24_11_has_the_keys_that_its_scontrol_knows_and_no_others():
    keys = {key for row in TABLE.rows if row.file == "slurm.conf" for key in row.keys}
    known = {key for row in table(V24_11).rows if row.file == "slurm.conf" for key in row.keys}
    assert keys - known == set(UNKNOWN_TO_24_11.split())


def test_25_11_lacks_what_26_05_added():
    lacks = ("HealthCheckTimeout", "LicenseParameters", "MetricsAuthUsers", "MetricsParameters")
    assert all(TABLE.find("slurm.conf", key) for key in lacks)
    assert not any(table(V25_11).find("slurm.conf", key) for key in lacks)
    assert table(V25_11).find("slurm.conf", "MetricsType")


@pytest.mark.parametrize(
    ("slurmctld", "parser", "force"),
    [
        (V26_05, V26_05, Force.REST),
        (V26_05, None, Force.REST),
        (V26_05, V25_11, Force.RECONFIGURE),
        (V24_11, V24_11, Force.RECONFIGURE),
        (None, V24_11, Force.RECONFIGURE),
        (None, None, Force.REST),
    ],
)
def test_a_partition_goes_by_rest_only_where_slurmctld_and_slurmrestd_have_the_calls(
    slurmctld: Version | None, parser: Version | None, force: Force
):
    text = f"{BASE}PartitionName=b Nodes=ALL\n"
    found = needs({"slurm.conf": BASE}, {"slurm.conf": text}, table(slurmctld, parser))
    assert found.force is force
