"""Objects of `slurm.nebius.ai` decode to typed kinds without losing anything."""

from __future__ import annotations

import msgspec
import pytest

from penstock.api.kubernetes.meta import KubeObject
from penstock.api.nebius.active_check import ActiveCheck, Reactions
from penstock.api.nebius.configuration import SlurmConfig
from penstock.api.nebius.mariadb import Replication
from penstock.api.nebius.node_configurator import NodeConfigurator
from penstock.api.nebius.nodeset import NodeSet, NodeSetStatus
from penstock.api.nebius.power_state import NodeSetPowerState
from penstock.api.nebius.slurmcluster import SlurmCluster, SlurmClusterSpec
from penstock.api.nebius.version_defaults import CURRENT, OLDER, has_older_shape, versioned_values
from support import nebius
from support.lossless import lost_fields


def cluster(name: str) -> SlurmClusterSpec:
    return msgspec.convert(nebius.manifest(name), SlurmCluster).spec


@pytest.mark.parametrize("name", nebius.names())
def test_an_object_comes_back_from_its_type_with_every_field(name: str):
    assert lost_fields(nebius.manifest(name), nebius.made(name)) == []


def test_every_kind_has_a_fixture():
    assert {nebius.manifest(name)["kind"] for name in nebius.names()} == set(nebius.TYPES)


@pytest.mark.parametrize("kind", [SlurmCluster, NodeSet, NodeSetPowerState, ActiveCheck])
def test_an_object_that_was_stored_without_a_spec_can_be_read(kind: type[KubeObject]):
    """The schema does not require one."""
    obj = msgspec.json.decode(b'{"metadata": {"name": "c"}}', type=kind)
    assert obj.metadata.name == "c"


def test_a_cluster_with_workers_has_the_older_shape():
    assert has_older_shape(cluster("slurmcluster-1.23-0"))
    assert not has_older_shape(cluster("slurmcluster-5.0-0"))


def test_an_older_cluster_has_the_defaults_of_its_version():
    spec = cluster("slurmcluster-1.23-0")
    bare = msgspec.structs.replace(
        spec,
        cluster_type=None,
        slurm_config=SlurmConfig(),
        plug_stack_config=type(spec.plug_stack_config)(),
    )
    assert versioned_values(bare) == OLDER
    assert versioned_values(spec).cluster_type == "cpu"
    assert not versioned_values(spec).open_metrics.enabled


def test_a_cluster_of_today_has_the_defaults_of_its_version():
    spec = cluster("slurmcluster-5.0-0")
    bare = msgspec.structs.replace(
        spec, slurm_config=SlurmConfig(), plug_stack_config=type(spec.plug_stack_config)()
    )
    assert versioned_values(bare) == CURRENT
    assert versioned_values(spec) == CURRENT
    assert CURRENT.open_metrics.enabled


@pytest.mark.parametrize("name", ["slurmcluster-1.23-0", "slurmcluster-5.0-0"])
def test_a_given_value_wins_over_the_default_of_the_version(name: str):
    spec = nebius.manifest(name)["spec"] | {
        "slurmConfig": {"minJobAge": 0},
        "plugStackConfig": {"pyxis": {"importerPath": ""}, "ncclDebug": {"outputDirectory": "/n"}},
    }
    values = versioned_values(msgspec.convert(spec, SlurmClusterSpec))
    assert values.min_job_age == 0
    assert values.pyxis_importer_path == ""
    assert values.nccl_output_directory == "/n"


def test_defaults_that_no_version_contradicts_are_those_of_the_fields():
    spec = cluster("written-slurmcluster-5.0-0")
    assert spec.cgroup_version == "v2"
    assert spec.slurm_config.suspend_time == 1_000_000_000
    assert spec.slurm_config.resume_timeout == 1800
    exporter = spec.slurm_nodes.exporter
    assert (exporter.max_collector_inflight, exporter.job_source) == (1, "controller")
    assert exporter.accounting_jobs_lookback == "1h"
    assert spec.sconfig_controller.jail_slurm_config_path == "/mnt/jail/etc/slurm"


def test_a_status_without_workers_is_written():
    """The schema requires the count."""
    assert msgspec.to_builtins(NodeSetStatus())["replicas"] == 0


def test_a_reaction_without_fields_is_on():
    on = msgspec.json.decode(b'{"drainSlurmNode": {}}', type=Reactions)
    assert on.drain_slurm_node is not None
    assert on.comment_slurm_node is None


@pytest.mark.parametrize("value", [True, 1])
def test_sync_binlog_may_be_of_either_version(value: object):
    assert msgspec.convert({"syncBinlog": value}, Replication).sync_binlog is value


def test_a_node_configurator_of_an_older_version_can_be_read():
    older = b'{"spec": {"nodeConfigurator": {"enabled": true, "image": {"repository": "r"}}}}'
    spec = msgspec.json.decode(older, type=NodeConfigurator).spec
    assert spec.node_configurator is not None
    assert spec.node_configurator.image is not None
    assert spec.node_configurator.image.reference == "r"
    assert spec.rebooter.enabled
