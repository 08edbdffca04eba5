"""The sidecar with sssd, which knows the users of a directory.

Daemons ask it by the folder of its sockets, and have that read-only: the jail has it as well, and
root of a job must not answer in place of sssd. Pods start without the Secret and the ConfigMap too:
those who work already must not wait for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from penstock.api.kubernetes.meta import Json, LocalObjectReference
from penstock.api.nebius import labels
from penstock.api.nebius.common import SSSD_CONTAINER, NodeContainer, SssdNode
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.api.nebius.sssd import SSSD_CONF, SssdFiles, cluster_sssd, node_set_sssd
from penstock.api.nebius.volumes import SSSD_VOLUMES
from penstock.render.nebius import volumes as vol
from penstock.render.nebius.container import container, worker_container
from penstock.render.parts.key_secret import key_secret
from penstock.render.parts.script import script

_SOCKET, _CONF, _CERTIFICATES = SSSD_VOLUMES
_FOLDER: Final = "/etc/sssd"
_PIPES: Final = "/var/lib/sss/pipes"
_OWNER_ONLY: Final = 0o600
_DEFAULT: Final = """[sssd]
services = nss, pam
enable_files_domain = true

[nss]

[pam]
"""


@dataclass(frozen=True, slots=True)
class Sssd:
    """sssd beside one daemon."""

    given: NodeContainer
    debug_level: int
    files: SssdFiles

    @property
    def pull_secrets(self) -> tuple[LocalObjectReference, ...]:
        """Secrets with credentials of the registry of its image."""
        return self.given.image_pull_secrets

    def sidecar(self) -> Json:
        """A native sidecar: the sockets are there as long as the pod is."""
        mounts = [
            vol.mount(_CONF, _FOLDER, read_only=True),
            vol.mount(_SOCKET, _PIPES),
        ]
        if self.files.certificates:
            mounts.append(vol.mount(_CERTIFICATES, "/mnt/ldapCA", read_only=True))
        found = {**container(SSSD_CONTAINER, self.given, mounts=mounts), "restartPolicy": "Always"}
        if not self.given.command and not self.given.args:
            words = ["sssd", str(self.debug_level)]
            found["command"] = ["/bin/sh", "-c", script("sssd_sidecar"), *words]
        return found

    def volumes(self) -> list[Json]:
        """The sockets, sssd.conf and certificates."""
        conf = vol.secret(_CONF, self.files.secret, [(SSSD_CONF, _OWNER_ONLY)])
        conf["secret"]["optional"] = True
        found: list[Json] = [{"name": _SOCKET, "emptyDir": {}}, conf]
        if self.files.certificates:
            found.append(vol.config_map(_CERTIFICATES, self.files.certificates, optional=True))
        return found

    def mounts(self, *, has_jail: bool) -> list[Json]:
        """What the daemon has of it.

        sssd.conf has a password. Images of the original find it, and no user does: without a jail
        root of a job would.
        """
        conf = vol.mount(_CONF, _FOLDER, read_only=True)
        return [self.socket_mount(), *([conf] if has_jail else [])]

    def socket_mount(self) -> Json:
        """The folder of the sockets."""
        return vol.mount(_SOCKET, _PIPES, read_only=True)


def beside_slurmctld(cluster: SlurmCluster) -> tuple[Sssd, ...]:
    """That of slurmctld; none unless it is declared."""
    return _beside(cluster, cluster.spec.slurm_nodes.controller, of_slurmctld=True)


def beside_login(cluster: SlurmCluster) -> tuple[Sssd, ...]:
    """That of logins; none unless it is declared."""
    return _beside(cluster, cluster.spec.slurm_nodes.login, of_slurmctld=False)


def beside_workers(of: NodeSet) -> tuple[Sssd, ...]:
    """That of a NodeSet's workers; none unless it is declared."""
    spec, files = of.spec, node_set_sssd(of)
    if spec.sssd is None or files is None:
        return ()
    return (Sssd(worker_container(spec.sssd), spec.sssd_debug_level, files),)


def _beside(cluster: SlurmCluster, node: SssdNode, *, of_slurmctld: bool) -> tuple[Sssd, ...]:
    return tuple(
        Sssd(node.sssd, node.sssd_debug_level, files)
        for files in cluster_sssd(cluster)
        if node.sssd is not None and files.of_slurmctld == of_slurmctld
    )


def default_secret(of: SlurmCluster | NodeSet, cluster: str, name: str) -> Json:
    """The Secret with an sssd.conf without a directory, for an object that names none."""
    component = "nodeset" if isinstance(of, NodeSet) else "login"
    data: Mapping[str, str] = {SSSD_CONF: _DEFAULT}
    return key_secret(of, name, data, labels.object_labels(component, cluster))
