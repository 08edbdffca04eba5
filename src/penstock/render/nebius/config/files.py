"""All configuration files of a SlurmCluster, as one document set."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from penstock.api.nebius.configuration import PartitionConfiguration
from penstock.render.config.content import content_hash
from penstock.render.nebius.config.cgroup_conf import cgroup_conf
from penstock.render.nebius.config.gres_conf import gres_conf
from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.render.nebius.config.lines import BANNER
from penstock.render.nebius.config.mpi_conf import mpi_conf
from penstock.render.nebius.config.plugstack_conf import plugstack_conf
from penstock.render.nebius.config.slurm_conf import file_names, slurm_conf_files
from penstock.slurm.conf.includes import FOLDER, SLURM_CONF
from penstock.slurm.partition.retention import without_records

SLURM_REST_CONF = "slurm_rest.conf"
TOPOLOGY_CONF = "topology.conf"


def files(inputs: ConfigInputs) -> dict[str, str]:
    """The files by name, in the order in which JailedConfigs list them."""
    conf, named = slurm_conf_files(inputs), file_names(inputs)
    own = {} if named.own == SLURM_CONF else {named.own: conf[named.own]}
    return {
        SLURM_CONF: conf[SLURM_CONF],
        **own,
        SLURM_REST_CONF: _slurm_rest_conf(inputs),
        named.user: conf[named.user],
        "cgroup.conf": cgroup_conf(inputs),
        "plugstack.conf": plugstack_conf(inputs),
        "gres.conf": gres_conf(inputs),
        "mpi.conf": mpi_conf(inputs),
        **({TOPOLOGY_CONF: inputs.topology_conf} if inputs.topology_conf else {}),
    }


def own_hash(inputs: ConfigInputs) -> str:
    """The hash of what the SlurmCluster itself brings to the files.

    Partitions are left out, and so is what comes of NodeSets: they change while the SlurmCluster's
    own lines are rejected.
    """
    spec = structs.replace(inputs.cluster.spec, partition_configuration=PartitionConfiguration())
    bare = replace(
        inputs,
        cluster=structs.replace(inputs.cluster, spec=spec),
        node_sets=(),
        published={},
        in_effect="",
        freed=frozenset[str](),
        rejected_partitions=frozenset[str](),
    )
    return content_hash({file: without_records(text) for file, text in files(bare).items()})


def _slurm_rest_conf(inputs: ConfigInputs) -> str:
    """slurm.conf as slurmrestd of the original reads it: it authenticates by auth/jwt alone."""
    folder = "" if inputs.is_older else f"{FOLDER}/"
    return f"{BANNER}include {folder}{SLURM_CONF}\nAuthType=auth/jwt\n"
