"""The files of sssd that the kinds of `slurm.nebius.ai` name: sssd.conf and certificates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from penstock.api.nebius.names import cluster_of
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmCluster

SSSD_CONF: Final = "sssd.conf"
"""Key of the Secret, and name of the file."""
_NODE: Final = "spec.slurmNodes"


@dataclass(frozen=True, slots=True)
class SssdFiles:
    """What sssd beside some daemons reads. `path` is of the fields that declare it."""

    path: str
    secret: str
    """Name of the Secret with sssd.conf."""
    is_generated: bool
    """Whether the operator creates the Secret unless it exists: no field names one."""
    certificates: str
    """Name of the ConfigMap with certificates of the directory; empty without one."""
    of_slurmctld: bool = False

    @property
    def secret_path(self) -> str:
        """The field that names the Secret."""
        return f"{self.path}.sssdConfSecretRefName"

    @property
    def certificates_path(self) -> str:
        """The field that names the ConfigMap."""
        return f"{self.path}.sssdLdapCAConfigMapRefName"


def cluster_sssd(obj: SlurmCluster) -> Iterator[SssdFiles]:
    """Those of slurmctld and of logins, as far as sssd runs beside them."""
    nodes = obj.spec.slurm_nodes
    for name, node in (("controller", nodes.controller), ("login", nodes.login)):
        if node.sssd is not None:
            yield SssdFiles(
                f"{_NODE}.{name}",
                node.sssd_conf_secret_ref_name or generated_secret(obj.metadata.name),
                not node.sssd_conf_secret_ref_name,
                node.sssd_ldap_ca_config_map_ref_name,
                of_slurmctld=node is nodes.controller,
            )


def node_set_sssd(obj: NodeSet) -> SssdFiles | None:
    """Those of a NodeSet's workers; None if no sssd runs beside them."""
    spec = obj.spec
    if spec.sssd is None:
        return None
    given = spec.sssd_conf_secret_ref_name
    generated = generated_secret(cluster_of(obj), f"nodeset-{obj.metadata.name}")
    return SssdFiles("spec", given or generated, not given, spec.sssd_ldap_ca_config_map_ref_name)


def generated_secret(cluster: str, component: str = "") -> str:
    """The Secret with sssd.conf that the operator creates: a cluster's, or a NodeSet's."""
    return "-".join(filter(None, (cluster, component, "sssd-conf")))
