"""All configuration files of a SlurmCluster, as one document set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.base.recent_results import RecentResults
from penstock.render.config.content import content_hash
from penstock.render.nebius.config.accepted_lines import is_of_node_sets
from penstock.render.nebius.config.cgroup_conf import cgroup_conf
from penstock.render.nebius.config.gres_conf import gres_conf
from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.render.nebius.config.lines import BANNER
from penstock.render.nebius.config.mpi_conf import mpi_conf
from penstock.render.nebius.config.plugstack_conf import plugstack_conf
from penstock.render.nebius.config.slurm_conf import CURRENT, file_names, slurm_conf_files
from penstock.slurm.conf.includes import FOLDER, SLURM_CONF
from penstock.slurm.partition.retention import without_records

SLURM_REST_CONF = "slurm_rest.conf"
TOPOLOGY_CONF = "topology.conf"
_OF_NODES = frozenset({"gres.conf", TOPOLOGY_CONF})


def files(inputs: ConfigInputs) -> dict[str, str]:
    """The files by name, in the order in which JailedConfigs list them."""
    return dict(_recent_files(inputs))


def _files(inputs: ConfigInputs) -> Mapping[str, str]:
    conf, named = slurm_conf_files(inputs), file_names(inputs)
    own = {} if named.own == SLURM_CONF else {named.own: conf[named.own]}
    found = {
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
    # Those of slurm.conf have their accepted lines already.
    others = found.keys() - conf.keys() - _OF_NODES
    return found | {name: inputs.accepted.get(name, found[name]) for name in others}


_recent_files: Final = RecentResults(_files, 8)


def own_hash(data: Mapping[str, str]) -> str:
    """The hash of what the SlurmCluster itself brings to files.

    Partitions are left out, and so is what comes of NodeSets: they change while the SlurmCluster's
    own lines are rejected.
    """
    return _recent_own_hash(tuple(data.items()))


def _own_hash(data: tuple[tuple[str, str], ...]) -> str:
    found = {file: without_records(text) for file, text in data if file not in _OF_NODES}
    for file in {SLURM_CONF, CURRENT.own} & found.keys():
        lines = found[file].split("\n")
        found[file] = "\n".join(line for line in lines if not is_of_node_sets(line))
    return content_hash(found)


_recent_own_hash: Final = RecentResults(_own_hash, 16)


def _slurm_rest_conf(inputs: ConfigInputs) -> str:
    """slurm.conf as slurmrestd of the original reads it: it authenticates by auth/jwt alone."""
    folder = "" if inputs.is_older else f"{FOLDER}/"
    return f"{BANNER}include {folder}{SLURM_CONF}\nAuthType=auth/jwt\n"
