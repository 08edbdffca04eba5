"""The StatefulSet of login pods: sssd, and sshd, whose users are in the jail if there is one.

By spec.authType munged is a sidecar, or the entry point of the image runs sackd beside sshd.
"""

from __future__ import annotations

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import labels, names
from penstock.render.nebius import auth
from penstock.render.nebius import volumes as vol
from penstock.render.nebius.cluster.services import sshd_port
from penstock.render.nebius.container import container, jail_security, jail_variables, variable
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.nebius.pod import (
    claim_templates,
    filter_place,
    pod_spec,
    pull_secrets,
    template,
)
from penstock.render.nebius.sssd import beside_login
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import object_metadata, tcp_probe


def stateful_set(cluster: ClusterInputs) -> Json:
    """The login pods."""
    declared = cluster.spec.slurm_nodes.login
    pod_labels = labels.object_labels("login", cluster.name)
    jail = vol.root_volume(cluster.cluster, declared.volumes.jail)
    inside = list(
        vol.sub_mounts(jail, vol.cluster_mounts(cluster.spec, declared.volumes.jail_sub_mounts))
    )
    beside = vol.cluster_mounts(cluster.spec, declared.volumes.custom_mounts)
    volumes = [jail, *(one.volume for one in (*inside, *beside))]
    mounts = [*(one.manifest for one in inside), *vol.custom_mounts(beside)]
    made = template(pod_labels, _pod_spec(cluster, volumes, mounts))
    made["metadata"]["annotations"] |= auth.pod_annotations(cluster.spec)
    spec: Json = {
        "replicas": cluster.replicas(declared.size or 0),
        "serviceName": names.service(cluster.name, "login-headless"),
        "podManagementPolicy": "Parallel",
        "revisionHistoryLimit": 0,
        "selector": {"matchLabels": labels.selector_labels("login", cluster.name)},
        "template": made,
    }
    if claims := claim_templates(cluster.name, "login", vol.templates(volumes)):
        spec["volumeClaimTemplates"] = claims
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": object_metadata(
            f"{cluster.prefix}login", cluster.namespace, pod_labels, owner(cluster.cluster)
        ),
        "spec": spec,
    }


def searches(cluster: ClusterInputs) -> Json:
    """DNS settings with which workers and logins are found by the names of their pods."""
    found: list[str] = []
    if cluster.is_older:
        found.append(names.service(cluster.name, "worker"))
    if cluster.node_sets or not cluster.is_older:
        found.append(names.service(cluster.name, "nodeset"))
    found.append(names.service(cluster.name, "login-headless"))
    return {"searches": [cluster.fqdn(one) for one in found]}


def _pod_spec(cluster: ClusterInputs, volumes: list[vol.Volume], mounts: list[Json]) -> Json:
    declared = cluster.spec.slurm_nodes.login
    memory = (declared.sshd.resources or {}).get("memory")
    sssd = beside_login(cluster.cluster)
    sshd = container(
        "sshd",
        declared.sshd,
        port=sshd_port(cluster),
        security=jail_security() if cluster.spec.has_jail else None,
        probes={"readinessProbe": tcp_probe("sshd", periodSeconds=10)},
        env=[
            variable("SLURM_CLUSTER_TYPE", cluster.cluster_type)
            if cluster.is_older
            else variable("SLURM_CLUSTER_WITH_GPU", str(cluster.has_gpus).lower()),
            *jail_variables(cluster.spec),
            *auth.variables(cluster.spec),
        ],
        mounts=vol.with_mounts(
            [
                vol.root_mount(cluster.spec),
                *auth.mounts(cluster.spec),
                vol.limits_mount(),
                *vol.ssh_mounts(),
                *vol.scratch_mounts(cluster.spec),
                vol.mount("ssh-configs", "/mnt/ssh-configs", read_only=True),
                *([] if cluster.is_older else [_isolation_mount()]),
                *(m for one in sssd for m in one.mounts(has_jail=cluster.spec.has_jail)),
            ],
            mounts,
        ),
    )
    spec = pod_spec(
        first=declared.custom_init_containers,
        init=[*auth.sidecars(cluster.spec, declared.munge), *(one.sidecar() for one in sssd)],
        containers=[sshd],
        volumes=[
            *auth.volumes(cluster),
            vol.limits_volume(cluster.name, "login"),
            *vol.ssh_volumes(cluster.cluster),
            *vol.scratch_volumes(memory),
            vol.config_map("ssh-configs", names.ssh_configs(cluster.cluster)),
            *([] if cluster.is_older else [_isolation_volume(cluster.name)]),
            *(volume for one in sssd for volume in one.volumes()),
            *vol.manifests(volumes),
        ],
        place=filter_place(cluster.spec, declared.k8s_node_filter_name),
        priority_class=declared.priority_class,
        host_users=declared.host_users,
        pull_secrets=[
            *pull_secrets(declared.sshd, declared.munge),
            *(one.pull_secrets for one in sssd),
        ],
    )
    return {**spec, "dnsConfig": searches(cluster)}


def _isolation_volume(cluster: str) -> Json:
    """Limits of users, which images of the original read."""
    return vol.config_map("user-isolation", names.user_isolation(cluster))


def _isolation_mount() -> Json:
    path, file = "/etc/soperator/user-isolation.conf", "user-isolation.conf"
    return vol.mount("user-isolation", path, file, read_only=True)
