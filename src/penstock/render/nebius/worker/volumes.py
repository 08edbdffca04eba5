"""Volumes of a worker pod beside those that the user declares, and their mounts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import names
from penstock.api.nebius.nodeset import NodeSet
from penstock.render.nebius import auth, job_mounts
from penstock.render.nebius import volumes as vol
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.nebius.worker.template import WorkerTemplate
from penstock.slurm.auth.key_rotation import WORKERS

_FROM_HOST: Final = "HostToContainer"
_IMEX_CLI: Final = "/usr/bin/nvidia-imex-ctl"
_IMEX_CONFIG: Final = "/etc/nvidia-imex"
_IMEX: Final = (
    ("nvidia-imex-cli", _IMEX_CLI, _IMEX_CLI, "FileOrCreate"),
    ("nvidia-imex-cli-jail", _IMEX_CLI, f"{vol.UPPER_PATH}{_IMEX_CLI}", "FileOrCreate"),
    ("nvidia-imex-config", _IMEX_CONFIG, _IMEX_CONFIG, "DirectoryOrCreate"),
    (
        "nvidia-imex-config-jail",
        _IMEX_CONFIG,
        f"{vol.UPPER_PATH}{_IMEX_CONFIG}",
        "DirectoryOrCreate",
    ),
)
"""Volume, path on the Kubernetes node, path in the container, type."""


def worker_volumes(cluster: ClusterInputs, of: WorkerTemplate) -> list[Json]:
    """Volumes of the pod that no user declares."""
    is_node_set = isinstance(of.declared_by, NodeSet)
    found = [
        *auth.volumes(cluster, WORKERS),
        vol.limits_volume(cluster.name, of.limits),
        *vol.ssh_volumes(cluster.cluster),
        *vol.scratch_volumes(of.memory),
        _host("boot", "/boot"),
        {"name": "dev-shm", "emptyDir": {"medium": "Memory", "sizeLimit": of.shared_memory}},
        vol.config_map("sysctl", names.sysctl(cluster.name)),
        # Only images of the original read it.
        vol.config_map("supervisord-config", of.supervisord, optional=True),
        vol.config_map("ssh-configs-worker", of.ssh_configs),
    ]
    if is_node_set:
        found += [
            {"name": "runtime", "emptyDir": {}},
            _host("hostlog-journal", "/var/log/journal"),
            _host("soperator-outputs", "/var/log/soperator-outputs", "DirectoryOrCreate"),
        ]
    found += [volume for one in of.sssd for volume in one.volumes()]
    if _has_driver(of):
        found.append(_host("nvidia", "/run/nvidia"))
    if _has_imex(of):
        found += [_host(name, path, kind) for name, path, _, kind in _imex(cluster)]
    return found


def worker_mounts(cluster: ClusterInputs, of: WorkerTemplate) -> list[Json]:
    """Mounts of the slurmd container."""
    spec = cluster.spec
    is_node_set = isinstance(of.declared_by, NodeSet)
    found = [
        vol.mount(names.SPOOL, "/var/spool/slurmd"),
        vol.root_mount(spec),
        *auth.mounts(spec),
        vol.limits_mount(),
        *vol.ssh_mounts(),
        *vol.scratch_mounts(spec),
        {**vol.mount("boot", "/boot"), "mountPropagation": _FROM_HOST},
        vol.mount("dev-shm", "/dev/shm"),  # noqa: S108 (the pod's own)
        vol.mount("sysctl", "/etc/sysctl.conf", "sysctl.conf"),
        vol.mount("supervisord-config", "/etc/supervisor/conf.d/", read_only=True),
        vol.mount("ssh-configs-worker", "/mnt/ssh-configs", read_only=True),
    ]
    if is_node_set:
        journal = vol.user_path(spec, "/var/hostlog/journal")
        outputs = vol.user_path(spec, "/opt/soperator-outputs/local")
        found = [
            vol.mount("runtime", "/run"),
            *found,
            vol.mount("hostlog-journal", journal, read_only=True),
            vol.mount("soperator-outputs", outputs),
        ]
    found += [mount for one in of.sssd for mount in one.mounts(has_jail=spec.has_jail)]
    if _has_driver(of):
        found.append({**vol.mount("nvidia", "/run/nvidia"), "mountPropagation": _FROM_HOST})
    if _has_imex(of):
        found += [vol.mount(name, path, read_only=True) for name, _, path, _ in _imex(cluster)]
    if of.shared is not None:
        found += vol.shared_mounts()
    inside = [*(one.manifest for one in of.inside), *job_mounts.volume_mounts(of.per_job)]
    return vol.with_mounts(found, [*inside, *vol.custom_mounts(of.beside)])


def _has_driver(of: WorkerTemplate) -> bool:
    """Whether the pod has the folder of the driver: all pods of a SlurmCluster's own workers."""
    return not isinstance(of.declared_by, NodeSet) or of.declared_by.spec.gpu.enabled


def _has_imex(of: WorkerTemplate) -> bool:
    return isinstance(of.declared_by, NodeSet) and of.declared_by.spec.gpu.enabled


def _imex(cluster: ClusterInputs) -> Sequence[tuple[str, str, str, str]]:
    """Those of the container; with a jail also those inside it."""
    return [one for one in _IMEX if cluster.spec.has_jail or not one[0].endswith("-jail")]


def _host(name: str, path: str, kind: str = "") -> Json:
    source: Json = {"path": path}
    if kind:
        source["type"] = kind
    return {"name": name, "hostPath": source}
