"""ConfigMaps with files that daemons read beside Slurm's configuration."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.api.kubernetes.meta import Json, KubeObject
from penstock.api.nebius import labels, names
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.render.nebius.config.limits_conf import limits_conf
from penstock.render.nebius.config.sshd_conf import authorized_keys, cluster_sshd_config
from penstock.render.nebius.config.user_isolation_conf import user_isolation_conf
from penstock.render.nebius.config.worker_files import SYSCTL_CONF, supervisord_conf
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import object_metadata


def objects(cluster: SlurmCluster) -> list[Json]:
    """Those of a SlurmCluster. One that the user names instead is the user's."""
    name, nodes = cluster.metadata.name, cluster.spec.slurm_nodes
    login, worker = nodes.login, nodes.worker
    sshd = {"sshd_config": cluster_sshd_config(login, has_jail=cluster.spec.has_jail)}
    found: list[tuple[str, str, Mapping[str, str]]] = [
        (
            names.security_limits(name, "controller"),
            "controller",
            _limits(nodes.controller.slurmctld.security_limits_config),
        ),
        (names.security_limits(name, "login"), "login", _limits(login.sshd.security_limits_config)),
        (names.ssh_root_keys(name), "login", {"authorized_keys": authorized_keys(login)}),
        (names.worker_ssh_configs(name), "worker", sshd),
        (names.sysctl(name), "worker", {"sysctl.conf": SYSCTL_CONF}),
        (names.supervisord(name), "worker", {"supervisord.conf": supervisord_conf()}),
    ]
    if not login.sshd_config_map_ref_name:
        found.append((names.ssh_configs(cluster), "login", sshd))
    if worker is None:
        isolation = {"user-isolation.conf": user_isolation_conf(login)}
        found.append((names.user_isolation(name), "login", isolation))
    else:
        limits = _limits(worker.slurmd.security_limits_config, is_worker=True)
        found.append((names.security_limits(name, "worker"), "worker", limits))
    return [_config_map(cluster, name, each, kind, data) for each, kind, data in found]


def node_set(cluster: str, of: NodeSet) -> Json:
    """limits.conf of a NodeSet's workers."""
    return _config_map(
        of,
        cluster,
        names.security_limits(cluster, f"nodeset-{of.metadata.name}"),
        "nodeset",
        _limits(of.spec.slurmd.security.limits_config, is_worker=True),
    )


def _limits(declared: str, *, is_worker: bool = False) -> dict[str, str]:
    return {"limits.conf": limits_conf(declared, is_worker=is_worker)}


def _config_map(
    of: KubeObject, cluster: str, name: str, component: str, data: Mapping[str, str]
) -> Json:
    own = labels.object_labels(component, cluster)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": object_metadata(name, of.metadata.namespace, own, owner(of)),
        "data": dict(data),
    }
