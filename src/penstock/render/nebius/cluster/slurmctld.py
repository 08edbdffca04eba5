"""slurmctld's StatefulSet: munged, sssd, the reconfigure sidecar and slurmctld.

The sidecar runs `render/shell/reconfigure.sh` with the image of slurmctld and the configuration of
the jail, as the user slurm where the image or the jail has one (`render/shell/jail_user.sh`). It
reads slurmctld's state at `/mnt/spool`. In `/var/spool/slurmctld` it has a copy of the JWT key for
a trial start, under the name that slurm.conf gives it: slurmctld accepts no key that others can
read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from penstock.api.cluster import labels as app_labels
from penstock.api.cluster import marks
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import labels, names
from penstock.render.nebius import auth
from penstock.render.nebius import volumes as vol
from penstock.render.nebius.cluster import power_account
from penstock.render.nebius.cluster.services import slurmctld_port
from penstock.render.nebius.container import (
    SYS_ADMIN,
    capabilities,
    container,
    jail_variables,
    variable,
)
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.nebius.pod import (
    claim_templates,
    filter_place,
    pod_spec,
    pull_secrets,
    template,
)
from penstock.render.nebius.sssd import beside_slurmctld
from penstock.render.parts import reconfigure
from penstock.render.parts.config_candidate import candidate_mount, candidate_volume
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import memory, object_metadata, tcp_probe
from penstock.render.parts.script import script

_SPOOL_PATH: Final = "/var/spool/slurmctld"
_STATE_PATH: Final = "/mnt/spool"
_STATE: Final = "reconfigure"
_TRIAL_SPOOL: Final = "trial-spool"
_KEY_PATH: Final = "/mnt/rest-jwt-key"
JWT_KEY_FILE: Final = "jwt_hs256.key"
"""Name of the JWT key in the folder of slurmctld's state, as slurm.conf has it."""
_EVERYONE_READS: Final = 0o444


def stateful_set(cluster: ClusterInputs) -> Json:
    """slurmctld, one pod."""
    declared = cluster.spec.slurm_nodes.controller
    pod_labels = labels.object_labels("controller", cluster.name)
    pod_labels[labels.CONTROLLER_TYPE] = labels.MAIN
    selector = labels.selector_labels("controller", cluster.name)
    selector[labels.CONTROLLER_TYPE] = labels.MAIN
    mounts = vol.cluster_mounts(cluster.spec, declared.volumes.custom_mounts)
    spool = vol.cluster_volume(cluster.spec, names.CONTROLLER_SPOOL, declared.volumes.spool)
    root = vol.root_volume(cluster.cluster, declared.volumes.jail)
    volumes = [spool, root, *(one.volume for one in mounts)]
    spec: Json = {
        "replicas": cluster.replicas(1),
        "serviceName": names.service(cluster.name, "controller"),
        "podManagementPolicy": "Parallel",
        "revisionHistoryLimit": 0,
        "selector": {"matchLabels": selector},
        "template": _template(
            pod_labels,
            _pod_spec(cluster, volumes, vol.custom_mounts(mounts)),
            auth.pod_annotations(cluster.spec),
        ),
    }
    if claims := claim_templates(cluster.name, "controller", vol.templates(volumes)):
        spec["volumeClaimTemplates"] = claims
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": object_metadata(
            names.controller_workload(cluster.prefix),
            cluster.namespace,
            pod_labels,
            owner(cluster.cluster),
        ),
        "spec": spec,
    }


def _template(pod_labels: Mapping[str, str], spec: Json, more: Mapping[str, str]) -> Json:
    found = template(pod_labels, spec)
    found["metadata"]["annotations"] |= {marks.TRIES_CONFIG: app_labels.TRUE, **more}
    return found


def _pod_spec(cluster: ClusterInputs, volumes: list[vol.Volume], mounts: list[Json]) -> Json:
    declared = cluster.spec.slurm_nodes.controller
    sssd = beside_slurmctld(cluster.cluster)
    return pod_spec(
        first=declared.custom_init_containers,
        init=[
            *auth.sidecars(cluster.spec, declared.munge),
            *(one.sidecar() for one in sssd),
            _reconfigure(cluster),
        ],
        containers=[_slurmctld(cluster, mounts)],
        volumes=[
            *auth.slurmctld_volumes(cluster),
            vol.limits_volume(cluster.name, "controller"),
            vol.jwt_key_volume(cluster.name),
            *(volume for one in sssd for volume in one.volumes()),
            *vol.manifests(volumes),
            candidate_volume(names.candidate_configs(cluster.name), _EVERYONE_READS),
            memory(_TRIAL_SPOOL),
            memory(_STATE),
            *power_account.token_volumes(cluster),
        ],
        place=filter_place(cluster.spec, declared.k8s_node_filter_name),
        priority_class=declared.priority_class,
        host_users=declared.host_users,
        pull_secrets=[
            *pull_secrets(declared.slurmctld, declared.munge),
            *(one.pull_secrets for one in sssd),
        ],
        service_account=power_account.account(cluster),
        mounts_token=not power_account.is_own(cluster),
    )


def _slurmctld(cluster: ClusterInputs, mounts: list[Json]) -> Json:
    sssd = beside_slurmctld(cluster.cluster)
    return container(
        "slurmctld",
        cluster.spec.slurm_nodes.controller.slurmctld,
        port=slurmctld_port(cluster),
        security=capabilities(SYS_ADMIN),
        # Five minutes: the state of a large cluster takes its time to load.
        probes={"startupProbe": tcp_probe("slurmctld", periodSeconds=1, failureThreshold=300)},
        env=[
            *jail_variables(cluster.spec),
            *auth.variables(cluster.spec),
            *_user_variables(cluster),
        ],
        mounts=vol.with_mounts(
            [
                vol.mount(names.CONTROLLER_SPOOL, _SPOOL_PATH),
                vol.root_mount(cluster.spec),
                *auth.slurmctld_mounts(cluster.spec),
                vol.limits_mount(),
                vol.mount("rest-jwt-key", _KEY_PATH, read_only=True),
                *power_account.token_mounts(cluster),
                *(m for one in sssd for m in one.mounts(has_jail=cluster.spec.has_jail)),
            ],
            mounts,
        ),
    )


def _user_variables(cluster: ClusterInputs) -> list[Json]:
    """The user of slurmctld, if it is another one than the image's."""
    return [variable("PENSTOCK_SLURM_USER", "root")] if cluster.runs_as_root else []


def _reconfigure(cluster: ClusterInputs) -> Json:
    declared = cluster.spec.slurm_nodes.controller.slurmctld
    return {
        "name": "reconfigure",
        "image": declared.image,
        "imagePullPolicy": declared.image_pull_policy,
        # The last word is $1 of the first script.
        "command": [
            "/bin/bash",
            "-c",
            script("jail_user"),
            "reconfigure",
            reconfigure.command(
                is_shared_folder=cluster.spec.has_jail, has_keys_beside=not cluster.spec.has_munge
            )[-1],
        ],
        "env": [
            variable("SLURM_CONF", f"{vol.SLURM_ETC}/slurm.conf"),
            variable("SLURM_ETC", vol.SLURM_ETC),
            variable("SLURM_STATE", _STATE_PATH),
            variable("JWT_KEY", f"{_KEY_PATH}/{names.JWT_KEY}"),
            variable("TRIAL_JWT_KEY", f"{_SPOOL_PATH}/{JWT_KEY_FILE}"),
            *_user_variables(cluster),
        ],
        "restartPolicy": "Always",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            vol.root_mount(cluster.spec, read_only=True),
            *auth.client_mounts(cluster.spec),
            candidate_mount(),
            vol.mount(_STATE, "/run/reconfigure"),
            vol.mount(names.CONTROLLER_SPOOL, _STATE_PATH, read_only=True),
            vol.mount(_TRIAL_SPOOL, _SPOOL_PATH),
            vol.mount("rest-jwt-key", _KEY_PATH, read_only=True),
            # slurmctld on trial looks up the groups of partitions.
            *(one.socket_mount() for one in beside_slurmctld(cluster.cluster)),
        ],
    }
