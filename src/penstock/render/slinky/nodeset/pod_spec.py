"""The spec of a worker pod."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.quantity import quantity
from penstock.api.slinky import labels as slinky_labels
from penstock.api.slinky import names, tolerations
from penstock.api.slinky.nodeset import NodeSet
from penstock.render.parts import merge
from penstock.render.parts.pod_template import (
    ETC,
    LOGS,
    config_map_source,
    etc_mount,
    logfile,
    logs_mount,
    memory,
    projected,
    secret_source,
    spread_expression,
)
from penstock.render.parts.script import script
from penstock.render.parts.sshd_config import WORKER, sshd_config
from penstock.render.slinky import auth
from penstock.render.slinky.cluster import release
from penstock.render.slinky.inputs import ClusterInputs
from penstock.render.slinky.nodeset.slurmd_conf import node_conf
from penstock.render.slinky.volumes import config_server, has_ring, key_sources, worker_search
from penstock.slurm import daemons
from penstock.slurm.auth.key_files import SLURM_JWKS, SLURM_KEY
from penstock.slurm.auth.key_rotation import WORKERS

_MIB = 1024 * 1024


def ssh_files(nodeset: NodeSet) -> dict[str, str]:
    """`sshd_config`, when users may log in to workers; else nothing."""
    ssh = nodeset.spec.ssh
    if ssh is None or not ssh.enabled:
        return {}
    return {"sshd_config": sshd_config(WORKER, ssh.extra_sshd_config)}


def pod_spec(cluster: ClusterInputs, nodeset: NodeSet) -> Json:
    """Our part of the spec of one pod, before the user's template is laid over it."""
    slurmd, keys = container(cluster, nodeset), key_sources(cluster, WORKERS)
    spec: Json = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "subdomain": names.worker_service(cluster.controller.metadata.name),
        "dnsConfig": worker_search(cluster),
        "tolerations": [tolerations.WORKER],
        "initContainers": [
            *auth.sidecars(cluster.munge_key, cluster.images.munge),
            logfile(slurmd["image"], "/var/log/slurm/slurmd.log", nodeset.spec.logfile),
        ],
        "containers": [slurmd],
        "volumes": [
            projected(ETC, 0o600, keys) if keys else memory(ETC),
            memory(LOGS),
            *auth.volumes(cluster.munge_key),
            *_ssh_volumes(nodeset),
        ],
    }
    if not nodeset.spec.oversubscribe_node:
        spec["affinity"] = spread_expression(app_labels.APP_NAME, "slurmd")
    return spec


def pvc_volumes(nodeset: NodeSet, called: Callable[[str], str]) -> list[Json]:
    """One volume for each claim template, of the same name; `called` gives the name of its PVC."""
    metadata: list[Json] = [
        template.get("metadata") or {} for template in nodeset.spec.volume_claim_templates or ()
    ]
    return [
        {
            "name": meta["name"],
            "persistentVolumeClaim": {"claimName": called(meta["name"])},
        }
        for meta in metadata
        if meta.get("name")
    ]


def _ssh_volumes(nodeset: NodeSet) -> list[Json]:
    ssh = nodeset.spec.ssh
    if ssh is None or not ssh.enabled:
        return []
    config = config_map_source(
        names.worker_ssh_config(nodeset), ("sshd_config", "sshd_config", 0o600)
    )
    volumes = [projected("ssh-config", 0o600, [config])]
    if sssd := ssh.sssd_conf_ref:
        source = secret_source(sssd.name, (sssd.key, "sssd.conf", 0o600))
        volumes.append(projected("sssd-conf", 0o600, [source]))
    return volumes


_SSH_MOUNTS = {
    "ssh-config": ("/etc/ssh/sshd_config", "sshd_config"),
    "sssd-conf": ("/etc/sssd/sssd.conf", "sssd.conf"),
}


def container(cluster: ClusterInputs, nodeset: NodeSet) -> Json:
    """The container of slurmd, with the user's settings."""
    ports: list[Json] = [
        {"name": "slurmd", "containerPort": daemons.SLURMD_PORT, "protocol": "TCP"}
    ]
    mounts: list[Json] = [etc_mount(), logs_mount(), *auth.mounts(cluster.munge_key)]
    ssh = _ssh_volumes(nodeset)
    for volume in ssh:
        path, file = _SSH_MOUNTS[volume["name"]]
        mounts.append(
            {"name": volume["name"], "mountPath": path, "subPath": file, "readOnly": True}
        )
    if ssh:
        ports.append({"name": "ssh", "containerPort": daemons.SSH_PORT, "protocol": "TCP"})
    version = release.of_slurmd(cluster, nodeset)
    base: Json = {
        "name": "slurmd",
        "image": cluster.images.slurmd,
        # One word each for the images' entrypoint, which joins them to a shell command line.
        "args": [
            "-Z",
            "--conf-server",
            config_server(cluster),
            "--conf",
            f"'{node_conf(nodeset)}'",
        ],
        "env": [*_limits(nodeset), *_topology(), *_keys(cluster)],
        "ports": ports,
        # A slurmd that waits for slurmctld has not failed: an hour, then something is wrong.
        "startupProbe": release.probe(
            version, "/livez", "slurmd", periodSeconds=1, failureThreshold=3600
        ),
        "livenessProbe": release.probe(
            version, "/livez", "slurmd", periodSeconds=10, timeoutSeconds=5, failureThreshold=6
        ),
        "readinessProbe": release.probe(
            version, "/readyz", "slurmd", periodSeconds=2, timeoutSeconds=5
        ),
        "lifecycle": {"preStop": {"exec": {"command": ["/usr/bin/sh", "-c", script("prestop")]}}},
        "securityContext": {
            "privileged": True,
            "capabilities": {"add": ["BPF", "NET_ADMIN", "SYS_ADMIN", "SYS_NICE"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }
    return merge.container(base, nodeset.spec.slurmd)


def _topology() -> list[Json]:
    """The topology annotation, whenever it comes; images leave it out while it is empty."""
    field = f"metadata.annotations['{slinky_labels.TOPOLOGY}']"
    return [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}}
        for name in ("SLINKY_TOPOLOGY", "POD_TOPOLOGY")
    ]


def _keys(cluster: ClusterInputs) -> list[Json]:
    """Where slurmd finds its keys, given at each start.

    It has its configuration elsewhere, and would go on with the file that it began with when
    another kind of file comes or goes. Source: slurmd(8), SLURM_SACK_JWKS and SLURM_SACK_KEY.
    """
    files = (("SLURM_SACK_JWKS", SLURM_JWKS), ("SLURM_SACK_KEY", SLURM_KEY))
    found: list[Json] = [{"name": name, "value": f"/etc/slurm/{file}"} for name, file in files]
    return found if has_ring(cluster) else []


def _limits(nodeset: NodeSet) -> list[Json]:
    """Limits of the pod; images derive CoreSpecCount and MemSpecLimit."""
    out: list[Json] = []
    if cpus := _limit(nodeset, "cpu"):
        out.append({"name": "POD_CPUS", "value": str(math.ceil(cpus))})
    if size := _limit(nodeset, "memory"):
        out.append({"name": "POD_MEMORY", "value": str(math.floor(size / _MIB))})
    return out


def _limit(nodeset: NodeSet, resource: str) -> Fraction:
    parts: tuple[Json, ...] = (nodeset.spec.slurmd, nodeset.spec.template.spec)
    for part in parts:
        resources: Json = part.get("resources") or {}
        limits: Json = resources.get("limits") or {}
        if found := limits.get(resource):
            return quantity(found)
    return Fraction(0)
