"""slurm.conf of a cluster, byte for byte as slurm-operator writes it.

What a user writes in `extraConf` comes after ours, and of two lines Slurm takes the last; only the
options without which a cluster on Kubernetes does not work are joined to the user's once more.
Source: slurm.conf(5).
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.api.slinky import names
from penstock.api.slinky.wellknown import SLURMCTLD_PORT, SLURMD_PORT
from penstock.render import partitions
from penstock.render.context import Cluster
from penstock.render.pod import names_of
from penstock.slurm.conf import Document, joined
from penstock.slurm.partition import keep

_KEY_LINES = (
    "clustername",
    "slurmctldhost",
    "slurmctldport",
    "slurmctldaddr",
    "auth",
    "accounting",
)
_EXTRA, _MERGED = "EXTRA CONFIG", "MERGED CONFIG"


def slurm_conf(cluster: Cluster) -> str:
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
            ("NODESET & PARTITION", _nodesets(cluster)),
            *_extra(cluster),
        ]
    text = "".join(
        f"#\n### {title} ###\n" + "".join(f"{line}\n" for line in lines)
        for title, lines in sections
        if lines
    )
    if cluster.kept_partitions:
        return keep(cluster.slurm_conf, text, cluster.kept_partitions)
    return text


def extra_conf_of(text: str) -> str:
    """The user's own lines in a slurm.conf of ours; empty when it has none."""
    _, _, after = text.partition(f"#\n### {_EXTRA} ###\n")
    own, merged, _ = after.rpartition(f"#\n### {_MERGED} ###\n")
    return own if merged else after


def identity(text: str) -> str:
    """The lines of slurm.conf that say who slurmctld is and how it is spoken to.

    A client daemon that reads slurm.conf once (slurmrestd) needs a restart when these change, and
    only then. Source: slurm.conf(5), slurmrestd(8).
    """
    return "".join(
        f"{line}\n" for line in text.splitlines() if line.strip().lower().startswith(_KEY_LINES)
    )


_LOGGING = [
    "SlurmctldLogFile=/var/log/slurm/slurmctld.log",
    "SlurmSchedLogFile=/var/log/slurm/slurmctld.log",
    "SlurmdLogFile=/var/log/slurm/slurmd.log",
]


def _general(cluster: Cluster) -> list[str]:
    controller = cluster.controller
    headless = names.controller_headless_service(controller)
    pods = [names.controller_pod(controller, i) for i in range(controller.spec.replicas)]
    return [
        f"ClusterName={names.cluster_name(controller)}",
        "SlurmUser=slurm",
        *(f"SlurmctldHost={pod}({pod}.{headless}.{cluster.namespace})" for pod in pods),
        f"SlurmctldPort={SLURMCTLD_PORT}",
        f"SlurmctldAddr={names.slurmctld_host(controller)}",
        f"StateSaveLocation={state_directory(cluster)}",
        "SlurmdUser=root",
        f"SlurmdPort={SLURMD_PORT}",
        "SlurmdSpoolDir=/var/spool/slurmd",
        "MaxNodeCount=1024",
    ]


def state_directory(cluster: Cluster) -> str:
    """Where slurmctld keeps its state."""
    return f"/var/spool/slurmctld/{names.cluster_name(cluster.controller)}"


def _external(cluster: Cluster) -> tuple[str, list[str]]:
    controller = cluster.controller
    return "GENERAL", [
        f"ClusterName={names.cluster_name(controller)}",
        "SlurmUser=slurm",
        f"SlurmctldHost={names.slurmctld_host(controller)}",
        f"SlurmctldPort={names.slurmctld_port(controller)}",
        "AuthType=auth/slurm",
        "CredType=cred/slurm",
        "AuthAltTypes=auth/jwt",
    ]


def _alt_parameters(cluster: Cluster) -> str:
    jwks = ",jwks=/etc/slurm/jwks.json" if cluster.controller.spec.jwks_key_ref else ""
    return f"jwt_key=/etc/slurm/jwt.key{jwks}"


def _required(cluster: Cluster) -> dict[str, str]:
    return {
        "AuthAltParameters": _alt_parameters(cluster),
        "AuthInfo": "use_client_ids",
        "SlurmctldParameters": "enable_configless,reconfig_on_restart",
    }


def _plugins(cluster: Cluster) -> list[str]:
    required = _required(cluster)
    lines = ["AuthType=auth/slurm", "CredType=cred/slurm", "AuthAltTypes=auth/jwt"]
    lines += [f"{key}={value}" for key, value in required.items()]
    if cluster.controller.spec.metrics.enabled:
        lines.append("MetricsType=metrics/openmetrics")
    return lines


def _accounting(cluster: Cluster) -> list[str]:
    if cluster.accounting is None:
        return ["AccountingStorageType=accounting_storage/none"]
    return [
        "AccountingStorageType=accounting_storage/slurmdbd",
        f"AccountingStorageHost={names.accounting_host(cluster.accounting)}",
        f"AccountingStoragePort={names.accounting_port(cluster.accounting)}",
    ]


def _files(cluster: Cluster, config_maps: Iterable[str]) -> list[str]:
    return sorted({file for name in config_maps for file in cluster.config_maps.get(name, {})})


def _slurmctld_scripts(cluster: Cluster) -> list[str]:
    spec = cluster.controller.spec
    return [
        f"{key}=/etc/slurm/{file}"
        for key, refs in (
            ("PrologSlurmctld", spec.prolog_slurmctld_script_refs),
            ("EpilogSlurmctld", spec.epilog_slurmctld_script_refs),
        )
        for file in _files(cluster, names_of(refs))
    ]


def _node_scripts(cluster: Cluster) -> list[str]:
    spec = cluster.controller.spec
    return [
        f"{key}={file}"
        for key, refs in (("Prolog", spec.prolog_script_refs), ("Epilog", spec.epilog_script_refs))
        for file in _files(cluster, names_of(refs))
    ]


def _nodesets(cluster: Cluster) -> list[str]:
    lines: list[str] = []
    for nodeset in sorted(cluster.nodesets, key=lambda n: n.metadata.name):
        name = names.partition_name(nodeset)
        lines.append(f"NodeSet={name} Feature={name}")
        partition = nodeset.spec.partition
        if partition and partition.enabled:
            lines.append(f"PartitionName={name} Nodes={name} {partition.config}".rstrip())
    return [*lines, *partitions.lines(cluster)]


def _extra(cluster: Cluster) -> list[tuple[str, list[str]]]:
    """The user's text as it stands, and the required options joined to those it sets."""
    text = cluster.controller.spec.extra_conf.rstrip("\n")
    if not text.strip():
        return []
    merged = joined(Document.parse(text), _required(cluster))
    return [(_EXTRA, text.split("\n")), (_MERGED, merged)]
