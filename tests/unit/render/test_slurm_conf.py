from __future__ import annotations

from typing import Any

import pytest

from penstock.render.config import sections
from penstock.render.slinky.config import config_maps as config
from penstock.render.slinky.config import slurm_conf
from penstock.slurm.conf.document import ConfError, Document


def conf(load: Any, **spec: Any) -> str:
    return slurm_conf.slurm_conf(load("minimal", controller=spec).cluster)


def test_a_nodeset_gives_exactly_its_two_lines(load: Any):
    """S021, feature rows 25 and 27."""
    text = conf(load)
    assert text.endswith(
        "#\n### NODESET & PARTITION ###\n"
        "NodeSet=compute Feature=compute\n"
        "PartitionName=compute Nodes=compute Default=YES MaxTime=7-00:00:00 State=UP\n"
    )


def test_extra_lines_are_appended_as_they_stand(load: Any):
    """S022, feature row 2."""
    extra = "# mine\nPartitionName=all Nodes=ALL \\\n  Default=NO"
    assert conf(load, extraConf=extra + "\n") == f"{conf(load)}#\n### EXTRA CONFIG ###\n{extra}\n"


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        (
            "SlurmctldParameters=idle_on_node_suspend,enable_configless",
            "SlurmctldParameters",
            "enable_configless,idle_on_node_suspend,reconfig_on_restart",
        ),
        (
            "authaltparameters=jwks=/Etc/Mine.json,jwt_key=/tmp/x",
            "AuthAltParameters",
            "jwks=/Etc/Mine.json,jwt_key=/etc/slurm/jwt.key",
        ),
        ("AuthInfo=cred_expire=600", "AuthInfo", "cred_expire=600,use_client_ids"),
    ],
)
def test_required_options_are_united_with_the_users_in_his_spelling(
    line: str, key: str, value: str, load: Any
):
    """D13, S066, feature row 3."""
    text = conf(load, extraConf=line)
    assert text.endswith(f"{line}\n#\n### MERGED CONFIG ###\n{key}={value}\n")
    assert Document.parse(text).get(key) == value


def test_generated_configuration_is_all_of_a_form_that_slurm_reads(load: Any):
    for name in ("minimal", "full", "external"):
        text = slurm_conf.slurm_conf(load(name).cluster)
        assert Document.parse(text).problems() == ()


def test_only_who_slurmctld_is_concerns_its_clients(load: Any):
    before = sections.identity(conf(load))
    assert sections.identity(conf(load, extraConf="PartitionName=x Nodes=ALL")) == before
    assert sections.identity(conf(load, extraConf="AuthInfo=cred_expire=1")) != before
    assert sections.identity(conf(load, clusterName="other")) != before


def test_a_host_of_an_accounting_writes_no_second_setting(load: Any):
    """Audit A32: who may update Accountings wrote the slurm.conf of the Controller."""
    for host in ("db\nPrologSlurmctld=/tmp/x", "db PrologSlurmctld=/tmp/x"):
        external = {"external": True, "externalConfig": {"host": host}}
        with pytest.raises(ConfError):
            slurm_conf.slurm_conf(load("full", accounting=external).cluster)


def test_a_nodeset_whose_parameters_swallow_the_next_line_has_no_partition(load: Any):
    bad = {"partition": {"enabled": True, "config": "MaxTime=1 \\"}}
    text = slurm_conf.slurm_conf(load("minimal", nodeset=bad).cluster)
    assert "PartitionName" not in text
    assert "NodeSet=compute Feature=compute\n" in text


def test_a_file_that_the_user_gives_is_not_generated(load: Any):
    """Feature row 4."""
    cluster = load("full").cluster
    assert set(config.files(cluster)) == {"slurm.conf", "cgroup.conf"}
    own = {"slinky-config-extra": {"cgroup.conf": "", "slurm.conf": ""}}
    changed = type(cluster)(cluster.controller, cluster.images, config_maps=own)
    assert set(config.files(changed)) == {"slurm.conf"}


def test_the_configurations_hash_covers_the_users_files(load: Any):
    """D2, S042, feature rows 4 and 12."""
    cluster = load("full").cluster
    other = {**cluster.config_maps, "prologs": {"prolog-10-a.sh": "", "prolog-20-b.sh": "true"}}
    changed = type(cluster)(
        cluster.controller, cluster.images, cluster.nodesets, cluster.accounting, config_maps=other
    )
    assert config.files(changed) == config.files(cluster)
    assert config.config_hash(changed) != config.config_hash(cluster)


@pytest.mark.parametrize("port", [None, 7000])
def test_an_external_slurmctld_is_named_with_its_port(port: int | None, load: Any):
    """D27, S073, feature row 9."""
    bundle = load("external", controller={"externalConfig": {"host": "h", "port": port}})
    text = slurm_conf.slurm_conf(bundle.cluster)
    assert Document.parse(text).get("SlurmctldHost") == "h"
    assert Document.parse(text).get("SlurmctldPort") == str(port or 6817)
    assert "NodeSet" not in text


def test_a_kept_partition_stays_in_its_part_of_the_file() -> None:
    head, own = "PartitionName=a Nodes=ALL MaxTime=1\n", "PartitionName=raw Nodes=ALL\n"
    extra = "#\n### EXTRA CONFIG ###\n"
    merged = "#\n### MERGED CONFIG ###\nAuthInfo=use_client_ids\n"
    told = head + "PartitionName=b Nodes=ALL\n" + extra + own + merged
    kept = sections.with_partitions_of(told, head + extra + own + merged, {"b"})
    assert kept == told
    assert sections.extra_conf_of(kept) == own
    # One of the user's own goes with it, and comes again with its heading.
    gone = sections.with_partitions_of(head, head + extra + own, {"raw"})
    assert gone == head
    assert sections.with_partitions_of(head + extra + own, gone, {"raw"}) == head + extra + own
