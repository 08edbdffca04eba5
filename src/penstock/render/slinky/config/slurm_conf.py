"""slurm.conf of a cluster, byte for byte as slurm-operator writes it.

What a user writes in `extraConf` comes after ours, and of two lines Slurm takes the last; only the
options without which a cluster on Kubernetes does not work are joined to the user's once more.
Source: slurm.conf(5).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from penstock.api.slinky import names
from penstock.api.slinky.nodeset import NodeSet
from penstock.render.config import node_set
from penstock.render.config import partition as partitions
from penstock.render.config.sections import (
    FEWEST_NODES,
    MERGED,
    PARTITIONS,
    with_partitions_of,
)
from penstock.render.parts.pod_template import names_of
from penstock.render.slinky import auth
from penstock.render.slinky.cluster import release
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm.conf.document import Document, joined
from penstock.slurm.conf.lines import EXTRA, setting, text_of
from penstock.slurm.daemons import SLURMCTLD_PORT, SLURMD_PORT
from penstock.slurm.partition.retention import removed_partitions, retained_lines
from penstock.slurm.versions import METRICS_SINCE
from penstock.translate.slinky.cluster import slurm_node_set


def slurm_conf(cluster: ClusterInputs) -> str:
    """The file's text. Equal clusters give equal bytes, in whatever order NodeSets are listed."""
    if cluster.controller.spec.external:
        sections = [_external(cluster), ("ACCOUNTING", _accounting(cluster))]
    else:
        sections = [
            ("GENERAL", _general(cluster)),
            ("LOGGING", _LOGGING),
            ("PLUGINS & PARAMETERS", _plugins(cluster)),
            ("ACCOUNTING", _accounting(cluster)),
            ("SLURMCTLD PROLOG & EPILOG", _slurmctld_scripts(cluster)),
            ("PROLOG & EPILOG", _node_scripts(cluster)),
            (PARTITIONS, _nodesets(cluster)),
            *_extra(cluster),
        ]
    text = text_of(sections)
    if held := retained_lines(cluster.in_effect, text, cluster.freed):
        # Before the user's own lines, which may begin with values for all lines after them.
        text = text_of(
            (title, [*lines, *held] if title == PARTITIONS else lines) for title, lines in sections
        )
    if cluster.rejected_partitions:
        return with_partitions_of(cluster.slurm_conf, text, cluster.rejected_partitions)
    return text


def retained_partitions(cluster: ClusterInputs) -> frozenset[str]:
    """Partitions that nobody declares and that stay, as jobs may be in them."""
    if not cluster.in_effect:
        return frozenset()
    bare = replace(cluster, in_effect="", rejected_partitions=frozenset[str]())
    return (
        removed_partitions(cluster.in_effect, slurm_conf(bare))
        - cluster.freed
        - cluster.rejected_partitions
    )


_SLURMS_MOST = 65536
"""Source: slurm.conf(5), MaxNodeCount."""
_LOGGING = [
    "SlurmctldLogFile=/var/log/slurm/slurmctld.log",
    "SlurmSchedLogFile=/var/log/slurm/slurmctld.log",
    "SlurmdLogFile=/var/log/slurm/slurmd.log",
]


def _general(cluster: ClusterInputs) -> list[str]:
    controller = cluster.controller
    hosts = [
        f"{names.controller_pod(controller, i)}({names.slurmctld_address(controller, i)})"
        for i in range(controller.spec.replicas)
    ]
    return [
        setting("ClusterName", names.cluster_name(controller)),
        "SlurmUser=slurm",
        *(f"SlurmctldHost={host}" for host in hosts),
        f"SlurmctldPort={SLURMCTLD_PORT}",
        f"SlurmctldAddr={names.slurmctld_host(controller)}",
        setting("StateSaveLocation", state_directory(cluster)),
        "SlurmdUser=root",
        f"SlurmdPort={SLURMD_PORT}",
        "SlurmdSpoolDir=/var/spool/slurmd",
        f"MaxNodeCount={max_node_count(cluster)}",
    ]


def max_node_count(cluster: ClusterInputs) -> int:
    """How many nodes slurmctld is to have room for.

    slurmctld makes the room when it reads its files (slurm.conf(5), MaxNodeCount), so the number
    grows in steps that double, and never shrinks: a cluster that shrinks and grows again changes
    nothing.
    """
    found = max(FEWEST_NODES, cluster.node_count)
    while found < min(sum(map(_workers, cluster.nodesets)), _SLURMS_MOST):
        found *= 2
    return found


def _workers(nodeset: NodeSet) -> int:
    """Desired number of workers; in DaemonSet mode one for each Kubernetes node that fits."""
    counted = nodeset.spec.scaling_mode == "StatefulSet"
    return (nodeset.spec.replicas if counted else nodeset.status.desired) or 0


def state_directory(cluster: ClusterInputs) -> str:
    """Where slurmctld keeps its state."""
    return f"/var/spool/slurmctld/{names.cluster_name(cluster.controller)}"


def _external(cluster: ClusterInputs) -> tuple[str, list[str]]:
    controller = cluster.controller
    return "GENERAL", [
        setting("ClusterName", names.cluster_name(controller)),
        "SlurmUser=slurm",
        setting("SlurmctldHost", names.slurmctld_host(controller)),
        f"SlurmctldPort={names.slurmctld_port(controller)}",
        *auth.conf_lines(cluster.munge_key),
    ]


def _alt_parameters(cluster: ClusterInputs) -> str:
    jwks = ",jwks=/etc/slurm/jwks.json" if cluster.controller.spec.jwks_key_ref else ""
    # Slurm 26.05 and later; an older one leaves a word that it does not know alone.
    identities = ",use_jwt_client_ids" if cluster.identities else ""
    return f"jwt_key=/etc/slurm/jwt.key{jwks}{identities}"


def _required(cluster: ClusterInputs) -> dict[str, str]:
    return {
        "AuthAltParameters": _alt_parameters(cluster),
        **auth.auth_info(cluster.munge_key),
        "SlurmctldParameters": "enable_configless,reconfig_on_restart",
    }


def _plugins(cluster: ClusterInputs) -> list[str]:
    required = _required(cluster)
    lines = auth.conf_lines(cluster.munge_key)
    lines += [f"{key}={value}" for key, value in required.items()]
    if cluster.controller.spec.metrics.enabled and has_metrics(cluster):
        lines.append("MetricsType=metrics/openmetrics")
    return lines


def has_metrics(cluster: ClusterInputs) -> bool:
    """Whether slurmctld knows of metrics, as far as its release is known."""
    version = release.running(cluster)
    return version is None or version >= METRICS_SINCE


def _accounting(cluster: ClusterInputs) -> list[str]:
    if cluster.accounting is None:
        return ["AccountingStorageType=accounting_storage/none"]
    return [
        "AccountingStorageType=accounting_storage/slurmdbd",
        setting("AccountingStorageHost", names.accounting_host(cluster.accounting)),
        f"AccountingStoragePort={names.accounting_port(cluster.accounting)}",
    ]


def _files(cluster: ClusterInputs, config_maps: Iterable[str]) -> list[str]:
    return sorted({file for name in config_maps for file in cluster.config_maps.get(name, {})})


def _slurmctld_scripts(cluster: ClusterInputs) -> list[str]:
    spec = cluster.controller.spec
    return [
        f"{key}=/etc/slurm/{file}"
        for key, refs in (
            ("PrologSlurmctld", spec.prolog_slurmctld_script_refs),
            ("EpilogSlurmctld", spec.epilog_slurmctld_script_refs),
        )
        for file in _files(cluster, names_of(refs))
    ]


def _node_scripts(cluster: ClusterInputs) -> list[str]:
    spec = cluster.controller.spec
    return [
        f"{key}={file}"
        for key, refs in (("Prolog", spec.prolog_script_refs), ("Epilog", spec.epilog_script_refs))
        for file in _files(cluster, names_of(refs))
    ]


def _nodesets(cluster: ClusterInputs) -> list[str]:
    lines: list[str] = []
    for nodeset in sorted(cluster.nodesets, key=lambda n: n.metadata.name):
        lines += node_set.lines(slurm_node_set(nodeset))
    return [*lines, *partitions.lines(cluster.model)]


def _extra(cluster: ClusterInputs) -> list[tuple[str, list[str]]]:
    """The user's text as it stands, and the required options joined to those it sets."""
    text = cluster.controller.spec.extra_conf.rstrip("\n")
    if not text.strip():
        return []
    merged = joined(Document.parse(text), _required(cluster))
    return [(EXTRA, text.split("\n")), (MERGED, merged)]
