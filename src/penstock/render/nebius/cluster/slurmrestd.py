"""slurmrestd's Deployment. It always runs: the operator reads and changes Slurm through it.

An image that the SlurmCluster names keeps its contract: configuration in `/mnt/slurm-configs` and
the jail. Penstock's own image has its configuration in `/etc/slurm` and no entry point but
slurmrestd.
"""

from __future__ import annotations

from typing import Final

from penstock.api.cluster import marks
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import labels, names
from penstock.api.nebius.common import NodeContainer
from penstock.render.nebius import volumes as vol
from penstock.render.nebius.container import container, variable
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.nebius.pod import filter_place, pod_spec, pull_secrets, template
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import object_metadata, tcp_probe
from penstock.slurm import daemons

_CONFIGS: Final = "slurm-configs"
_ETC: Final = "/etc/slurm"
_READABLE: Final = 0o644


def deployment(cluster: ClusterInputs) -> Json:
    """The pods of slurmrestd."""
    declared = cluster.spec.slurm_nodes.rest
    selector = labels.selector_labels("rest", cluster.name)
    given = declared.rest or NodeContainer(image="")
    volumes = [vol.config_map(_CONFIGS, names.slurm_configs(cluster.name), _READABLE)]
    if given.image and cluster.spec.has_jail:
        volumes.append(vol.shared_jail(cluster.spec).manifest)
    spec = pod_spec(
        first=declared.custom_init_containers,
        containers=[_named_image(cluster, given) if given.image else _own_image(cluster, given)],
        volumes=volumes,
        place=filter_place(cluster.spec, declared.k8s_node_filter_name),
        priority_class=declared.priority_class,
        host_users=declared.host_users,
        pull_secrets=pull_secrets(given),
    )
    pods = template(selector, {**spec, "hostname": "rest"})
    if cluster.slurmdbd:
        pods["metadata"]["annotations"][marks.SLURMDBD] = cluster.slurmdbd
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": object_metadata(
            f"{cluster.prefix}rest",
            cluster.namespace,
            labels.object_labels("rest", cluster.name),
            owner(cluster.cluster),
        ),
        "spec": {
            "replicas": cluster.replicas(max(declared.size or 1, 1)),
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": selector},
            "template": pods,
        },
    }


def _probes() -> dict[str, Json]:
    return {
        "livenessProbe": tcp_probe(
            "slurmrestd", initialDelaySeconds=15, periodSeconds=10, failureThreshold=5
        ),
        "readinessProbe": tcp_probe("slurmrestd", periodSeconds=2),
    }


def _named_image(cluster: ClusterInputs, given: NodeContainer) -> Json:
    rest = cluster.spec.slurm_nodes.rest
    return container(
        "slurmrestd",
        given,
        port=daemons.SLURMRESTD_PORT,
        probes=_probes(),
        env=[
            variable("SLURMRESTD_THREAD_COUNT", str(rest.thread_count)),
            variable("SLURMRESTD_MAX_CONNECTIONS", str(rest.max_connections)),
        ],
        mounts=[
            vol.mount(_CONFIGS, "/mnt/slurm-configs", read_only=True),
            *([vol.jail_mount(read_only=True)] if cluster.spec.has_jail else []),
        ],
    )


def _own_image(cluster: ClusterInputs, given: NodeContainer) -> Json:
    rest = cluster.spec.slurm_nodes.rest
    user = {"runAsUser": daemons.SLURMRESTD_UID, "runAsGroup": daemons.SLURMRESTD_UID}
    made = container(
        "slurmrestd",
        given,
        port=daemons.SLURMRESTD_PORT,
        probes=_probes(),
        security={"runAsNonRoot": True, **user},
        env=[
            variable("SLURM_CONF", f"{_ETC}/slurm_rest.conf"),
            # Each request brings its own token; slurmrestd itself has none.
            variable("SLURM_JWT", "daemon"),
            # Unsharing needs rights that an ordinary container does not have.
            variable("SLURMRESTD_SECURITY", "disable_unshare_files,disable_unshare_sysv"),
        ],
        mounts=[vol.mount(_CONFIGS, _ETC, read_only=True)],
    )
    threads, connections = str(rest.thread_count), str(rest.max_connections)
    # Without slurmdbd its part of the API would only fail.
    parts = "openapi/slurmctld,openapi/slurmdbd" if cluster.slurmdbd else "openapi/slurmctld"
    options = ["-s", parts, "-t", threads, "--max-connections", connections]
    args = [*options, *made.get("args", ()), f"0.0.0.0:{daemons.SLURMRESTD_PORT}"]
    return {**made, "image": cluster.images.slurmrestd, "args": args}
