"""Volumes of pods: those that users name, and those that several daemons have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final, cast

from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.pvc_spec import PvcSpec
from penstock.api.nebius import names
from penstock.api.nebius.slurmcluster import SlurmCluster, SlurmClusterSpec
from penstock.api.nebius.volumes import (
    JAIL_SOURCE,
    JOB_ID,
    SHARED_JAIL,
    SLURM_CONFIGS,
    JailSource,
    NodeVolume,
    NodeVolumeMount,
    SpoolSource,
    VolumeMount,
    VolumeSource,
)
from penstock.render.parts import empty_values as empty
from penstock.render.parts import merge
from penstock.render.parts.plain import plain
from penstock.render.parts.ssh_host_keys import FILES

JAIL_PATH: Final = "/mnt/jail"
UPPER_PATH: Final = "/mnt/jail.upper"
"""Mounts below it are moved into the jail by the entry point of the image."""
SLURM_ETC: Final = f"{JAIL_PATH}/etc/slurm"
"""Slurm's configuration; `/etc/slurm` of the images is a link to it."""
SHARED_PATH: Final = "/mnt/jail.shared"
"""The folder etc of the shared jail, for what fills and keeps a root of one worker."""
CONFIG_MODE: Final = 0o420
"""Mode of files of ConfigMaps and Secrets, as the original has it."""
_TMP: Final = "/tmp"  # noqa: S108 (the pod's own)
_PRIVATE, _PUBLIC = 0o600, 0o644
_OWNER_READS: Final = 0o400


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume of a pod: from a source, or from a PVC for each pod."""

    name: str
    source: Json
    template: PvcSpec | None = None

    @property
    def manifest(self) -> Json:
        """As in PodSpec's `volumes`, for one with a source."""
        return {"name": self.name, **self.source}


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume that a user mounts into a container."""

    volume: Volume
    path: str
    sub_path: str = ""
    read_only: bool = False

    @property
    def manifest(self) -> Json:
        """As in Container's `volumeMounts`."""
        return mount(self.volume.name, self.path, self.sub_path, read_only=self.read_only)


def mount(name: str, path: str, sub_path: str = "", *, read_only: bool = False) -> Json:
    """A mount of a volume."""
    out: Json = {"name": name, "mountPath": path}
    if sub_path:
        out["subPath"] = sub_path
    if read_only:
        out["readOnly"] = True
    return out


def manifests(volumes: Iterable[Volume]) -> list[Json]:
    """Volumes with a source, each name once: mounts may share a volume."""
    found: dict[str, Json] = {}
    for one in volumes:
        if one.template is None:
            found.setdefault(one.name, one.manifest)
    return list(found.values())


def templates(volumes: Iterable[Volume]) -> dict[str, PvcSpec]:
    """Specs of PVCs by the name of the volume, in order."""
    found: dict[str, PvcSpec] = {}
    for one in volumes:
        if one.template is not None:
            found.setdefault(one.name, one.template)
    return found


def named_source(spec: SlurmClusterSpec, name: str) -> Json:
    """The entry of spec.volumeSources of that name; the first one of several.

    Raises LookupError when there is none, which the rules of a SlurmCluster exclude.
    """
    for one in spec.volume_sources:
        if one.name == name:
            return inline_source(one)
    raise LookupError(f"spec.volumeSources has no entry {name!r}")


def inline_source(source: VolumeSource) -> Json:
    """A volume source as a pod has it; an empty directory when it has no type."""
    given = plain(source)
    found = {
        kind: _without_false(empty.said(fields))
        for kind, fields in given.items()
        if kind not in ("name", "volumeClaimTemplateSpec")
    }
    return found or {"emptyDir": {}}


def cluster_volume(spec: SlurmClusterSpec, name: str, given: NodeVolume) -> Volume:
    """A volume that a SlurmCluster declares for a daemon."""
    if given.volume_claim_template_spec is not None:
        return Volume(name, {}, given.volume_claim_template_spec)
    return Volume(name, named_source(spec, given.volume_source_name))


def shared_jail(spec: SlurmClusterSpec) -> Volume:
    """The jail where no field names its volume: slurmrestd, sconfigcontroller and the Job."""
    return Volume(names.JAIL, named_source(spec, JAIL_SOURCE))


def shared_beside(spec: SlurmClusterSpec) -> Volume | None:
    """The jail that logins share, beside a worker's own root; None in the other modes."""
    if not spec.has_own_roots:
        return None
    return Volume(SHARED_JAIL, named_source(spec, JAIL_SOURCE))


def slurm_configs(cluster: str) -> Volume:
    """The files in force, as a volume of each pod where there is no jail."""
    sources = [{"configMap": {"name": names.slurm_configs(cluster)}}]
    return Volume(SLURM_CONFIGS, {"projected": {"defaultMode": _PUBLIC, "sources": sources}})


def root_volume(cluster: SlurmCluster, given: NodeVolume) -> Volume:
    """The jail that a daemon declares; without a jail Slurm's configuration."""
    if cluster.spec.has_jail:
        return cluster_volume(cluster.spec, names.JAIL, given)
    return slurm_configs(cluster.metadata.name)


def node_set_volume(name: str, given: VolumeSource) -> Volume:
    """A volume that a NodeSet declares."""
    if isinstance(given, SpoolSource | JailSource) and given.volume_claim_template_spec is not None:
        return Volume(name, {}, given.volume_claim_template_spec)
    return Volume(name, inline_source(given))


def cluster_mounts(spec: SlurmClusterSpec, given: Iterable[NodeVolumeMount]) -> list[Mount]:
    """Mounts that a SlurmCluster declares for a daemon."""
    return [
        Mount(cluster_volume(spec, one.name, one), one.mount_path, one.sub_path, one.read_only)
        for one in given
    ]


def node_set_mounts(given: Iterable[VolumeMount]) -> list[Mount]:
    """Mounts that a NodeSet declares."""
    return [
        Mount(_node_set_mount(one), one.mount_path, one.sub_path, bool(one.read_only))
        for one in given
    ]


def _node_set_mount(given: VolumeMount) -> Volume:
    if given.volume_claim_template_spec is not None:
        return Volume(given.name, {}, given.volume_claim_template_spec)
    return Volume(given.name, inline_source(given.volume_source or VolumeSource()))


def custom_mounts(given: Iterable[Mount]) -> list[Json]:
    """Mounts of the container, at normal paths."""
    return [{**one.manifest, "mountPath": normal(one.path)} for one in given]


def with_mounts(own: Iterable[Json], declared: Iterable[Json]) -> list[Json]:
    """Mounts of a container; a user's replaces one at the same path."""
    return merge.by_key(own, declared, "mountPath")


def sub_mounts(jail: Volume, given: Iterable[Mount]) -> Iterator[Mount]:
    """Mounts inside the jail, without those of each job.

    One of the jail on its own root is left out: it changes nothing.
    """
    for one in given:
        if JOB_ID in one.sub_path:
            continue
        path = normal(f"{UPPER_PATH}/{one.path}")
        is_root = path == UPPER_PATH and not one.sub_path
        if is_root and (one.volume.source, one.volume.template) == (jail.source, jail.template):
            continue
        yield Mount(one.volume, path, one.sub_path, one.read_only)


def normal(path: str) -> str:
    """A path without doubled and trailing slashes."""
    return str(PurePosixPath("/", path.lstrip("/")))


def _without_false(value: Any) -> Any:
    """`readOnly: false` means the same as none, and the API server does not store it."""
    if not isinstance(value, dict):
        return value
    fields = cast("Json", value)
    return {k: v for k, v in fields.items() if k != "readOnly" or v is not False}


# Volumes that several daemons have


def config_map(name: str, source: str, mode: int = CONFIG_MODE, *, optional: bool = False) -> Json:
    """A volume with the files of a ConfigMap."""
    found: Json = {"name": source, "defaultMode": mode}
    if optional:
        found["optional"] = True
    return {"name": name, "configMap": found}


def secret(name: str, source: str, files: Sequence[tuple[str, int]]) -> Json:
    """A volume with files of a Secret, each with its mode."""
    items = [{"key": file, "path": file, "mode": mode} for file, mode in files]
    return {
        "name": name,
        "secret": {"secretName": source, "defaultMode": CONFIG_MODE, "items": items},
    }


def munge_volumes(cluster: str) -> list[Json]:
    """The key of munge for its sidecar, and the folder of its socket for all containers."""
    key = secret("munge-key", names.munge_secret(cluster), [(names.MUNGE_KEY, _OWNER_READS)])
    return [key, {"name": "munge-socket", "emptyDir": {}}]


def munge_socket_mount() -> Json:
    """The folder of munge's socket."""
    return mount("munge-socket", "/run/munge")


def jail_mount(*, read_only: bool = False) -> Json:
    """The jail."""
    return mount(names.JAIL, JAIL_PATH, read_only=read_only)


def shared_etc_mount() -> Json:
    """The folder etc of the shared jail: a folder, since programs replace files in it."""
    return mount(SHARED_JAIL, SHARED_PATH, "etc", read_only=True)


def shared_mounts() -> list[Json]:
    """What a worker's own root has of the shared jail: /home, and Slurm's configuration."""
    return [
        mount(SHARED_JAIL, f"{UPPER_PATH}/home", "home"),
        mount(SHARED_JAIL, SLURM_ETC, "etc/slurm", read_only=True),
    ]


def root_mount(spec: SlurmClusterSpec, *, read_only: bool = False) -> Json:
    """The mount of `root_volume`: images find Slurm's configuration at one path in each mode."""
    if spec.has_jail:
        return jail_mount(read_only=read_only)
    return mount(SLURM_CONFIGS, SLURM_ETC, read_only=True)


def user_path(spec: SlurmClusterSpec, path: str) -> str:
    """Where a volume is mounted so that jobs and sessions find it at this path."""
    return f"{UPPER_PATH}{path}" if spec.has_jail else path


def limits_volume(cluster: str, component: str) -> Json:
    """limits.conf."""
    return config_map("security-limits", names.security_limits(cluster, component))


def limits_mount() -> Json:
    """Where PAM reads it."""
    return mount("security-limits", "/etc/security/limits.conf", "limits.conf")


def jwt_key_volume(cluster: str) -> Json:
    """The key of auth/jwt."""
    return secret("rest-jwt-key", names.jwt_secret(cluster), [(names.JWT_KEY, _OWNER_READS)])


def ssh_volumes(cluster: SlurmCluster) -> list[Json]:
    """The host keys of sshd, and root's public keys."""
    files = [
        pair for file in sorted(FILES) for pair in ((file, _PRIVATE), (f"{file}.pub", _PUBLIC))
    ]
    return [
        secret("sshd-keys", names.sshd_keys_secret(cluster), files),
        config_map("ssh-root-keys", names.ssh_root_keys(cluster.metadata.name), _PRIVATE),
    ]


def ssh_mounts() -> list[Json]:
    """Where sshd reads them."""
    return [
        mount("sshd-keys", "/etc/ssh/sshd_keys", read_only=True),
        mount("ssh-root-keys", "/root/.ssh/authorized_keys", "authorized_keys", read_only=True),
    ]


def scratch_volumes(memory: int | str | None) -> list[Json]:
    """A folder in memory, of the size of the container's memory, and /tmp."""
    size: Json = {} if memory is None else {"sizeLimit": memory}
    return [
        {"name": "in-memory", "emptyDir": {"medium": "Memory", **size}},
        {"name": "tmp-disk", "emptyDir": {}},
    ]


def scratch_mounts(spec: SlurmClusterSpec) -> list[Json]:
    """Where users find them."""
    return [mount("in-memory", user_path(spec, "/mnt/memory")), mount("tmp-disk", _TMP)]
