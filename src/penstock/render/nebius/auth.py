"""The parts of pods by which daemons and clients sign their messages, by spec.authType.

With auth/munge each pod has a sidecar with munged, and its containers share the folder of munged's
socket. With auth/slurm daemons have the key itself: entry points of images copy it to a file that
only the daemon's user can read. The key ring beside it has the keys that are valid while the key
changes. Clients use a socket that the daemon of their pod serves in
`/run/slurmctld`, `/run/slurmdbd` or `/run/slurm`; in a login that daemon is sackd.
"""

from __future__ import annotations

from typing import Final

from penstock.api.cluster import labels as app_labels
from penstock.api.cluster import marks
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.api.nebius.common import NodeContainer
from penstock.api.nebius.slurmcluster import SlurmClusterSpec
from penstock.render.nebius import volumes as vol
from penstock.render.nebius.container import variable
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.nebius.munge import munge
from penstock.render.parts.pod_template import memory, projected, ring_sources, secret_source
from penstock.slurm.auth.key_files import SLURM_KEY
from penstock.slurm.auth.key_rotation import CLIENTS, SLURMCTLD

_KEY: Final = "slurm-auth-key"
_KEY_PATH: Final = "/mnt/slurm-key"
_SOCKET: Final = "slurm-auth-socket"
_RUN: Final = "run"
_SLURMCTLD: Final = "/run/slurmctld"
_OWNER_READS: Final = 0o400


def sidecars(spec: SlurmClusterSpec, given: NodeContainer) -> list[Json]:
    """munged, with the declared container; none with auth/slurm."""
    return [munge(given)] if spec.has_munge else []


def volumes(cluster: ClusterInputs, ring: str = CLIENTS) -> list[Json]:
    """The key, and with munge the folder of its socket. `ring` is the entry of the key ring."""
    if cluster.spec.has_munge:
        return vol.munge_volumes(cluster.name)
    return [projected(_KEY, vol.CONFIG_MODE, key_sources(cluster, ring, _OWNER_READS))]


def key_sources(cluster: ClusterInputs, ring: str, mode: int) -> list[Json]:
    """The key of auth/slurm, and beside it `slurm.jwks` from an entry of the key ring."""
    key = names.auth_key(cluster.cluster)
    return [
        secret_source(key.name, (key.key, SLURM_KEY, mode)),
        *ring_sources(names.key_ring(cluster.name), ring, mode),
    ]


def pod_annotations(spec: SlurmClusterSpec) -> dict[str, str]:
    """The mark of pods that show the key ring."""
    return {} if spec.has_munge else {marks.KEY_RING: app_labels.TRUE}


def mounts(spec: SlurmClusterSpec) -> list[Json]:
    """Mounts of a daemon's container: munged's socket, or the key."""
    if spec.has_munge:
        return [vol.munge_socket_mount()]
    return [vol.mount(_KEY, _KEY_PATH, read_only=True)]


def variables(spec: SlurmClusterSpec) -> list[Json]:
    """The variable by which entry points of images do without munged."""
    return [] if spec.has_munge else [variable("AUTH_TYPE", spec.auth_type)]


def slurmctld_volumes(cluster: ClusterInputs) -> list[Json]:
    """Those of slurmctld's pod: its other containers are clients too."""
    found = volumes(cluster, SLURMCTLD)
    return found if cluster.spec.has_munge else [*found, {"name": _SOCKET, "emptyDir": {}}]


def slurmctld_mounts(spec: SlurmClusterSpec) -> list[Json]:
    """Those of slurmctld itself."""
    return mounts(spec) if spec.has_munge else [*mounts(spec), vol.mount(_SOCKET, _SLURMCTLD)]


def slurmdbd_volumes(cluster: ClusterInputs) -> list[Json]:
    """Those of slurmdbd's pod, whose key is among its files."""
    return volumes(cluster) if cluster.spec.has_munge else [memory(_RUN)]


def slurmdbd_mounts(spec: SlurmClusterSpec) -> list[Json]:
    """Those of slurmdbd, which creates the folder of its socket as its own user."""
    return mounts(spec) if spec.has_munge else [vol.mount(_RUN, "/run")]


def client_mounts(spec: SlurmClusterSpec) -> list[Json]:
    """Those of a client beside slurmctld: a socket, and no key."""
    if spec.has_munge:
        return mounts(spec)
    return [vol.mount(_SOCKET, _SLURMCTLD, read_only=True)]
