"""The pod of a check, whose container is the user's.

A slurmJob container without an image has that of the logins, and Penstock's program that submits
the script. Its fields have the meaning that they have for images of the original.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import labels, names
from penstock.api.nebius.active_check import ActiveCheck, CheckContainer, SlurmJobSpec
from penstock.api.nebius.common import NodeContainer
from penstock.api.nebius.slurmcluster import SlurmClusterSpec
from penstock.render.nebius import auth
from penstock.render.nebius import volumes as vol
from penstock.render.nebius.container import (
    SYS_ADMIN,
    app_armor,
    capabilities,
    field_variable,
    jail_variables,
    variable,
)
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.nebius.pod import place, pod_spec
from penstock.render.parts import merge

SCRIPT_KEY: Final = "sbatch.sh"
PROGRAM: Final = ("/usr/bin/python3", "-B", "/usr/local/libexec/penstock/jail_check.py")
"""Submits the script, and reports the ids of the jobs in its termination message."""
_SBATCH: Final = "sbatch-volume"
_SCRIPT: Final = "script-volume"
_CONFIGS: Final = "slurm-configs"
_CONFIGS_PATH: Final = "/mnt/slurm-configs"
_RUNNABLE: Final = 0o755


def template(cluster: ClusterInputs, check: ActiveCheck, node: str = "") -> Json:
    """The pod template of the check's Jobs, or of one for a single Slurm node."""
    spec = check.spec
    if spec.check_type == "slurmJob":
        made = _of_slurm(cluster, check, spec.slurm_job_spec or SlurmJobSpec(), node)
    else:
        made = _of_kubernetes(cluster, check)
    annotations = {
        app_labels.DEFAULT_CONTAINER: spec.name,
        labels.ACTIVE_CHECK: check.metadata.name,
    }
    pod_labels = labels.object_labels(labels.CHECKS, cluster.name)
    return {"metadata": {"labels": pod_labels, "annotations": annotations}, "spec": made}


def _of_slurm(
    cluster: ClusterInputs, check: ActiveCheck, declared: SlurmJobSpec, node: str
) -> Json:
    given = declared.job_container
    mounts = [
        vol.mount(_CONFIGS, _CONFIGS_PATH, read_only=True),
        *auth.mounts(cluster.spec),
        vol.mount(_SBATCH, f"/opt/bin/{SCRIPT_KEY}", SCRIPT_KEY, read_only=True),
    ]
    volumes = [
        vol.config_map(_CONFIGS, names.slurm_configs(cluster.name)),
        *auth.volumes(cluster),
        vol.config_map(
            _SBATCH,
            declared.sbatch_script_ref_name or names.sbatch_script(check.spec.name),
            _RUNNABLE,
        ),
    ]
    paths = {str(one.get("mountPath", "")).rstrip("/") for one in given.volume_mounts}
    if vol.JAIL_PATH not in paths:
        root = (
            vol.shared_jail(cluster.spec)
            if cluster.spec.has_jail
            else vol.slurm_configs(cluster.name)
        )
        if root.name not in {str(one.get("name", "")) for one in given.volumes}:
            volumes.append(root.manifest)
        mounts.append(vol.root_mount(cluster.spec))
    env = [variable("ACTIVE_CHECK_NAME", check.metadata.name)]
    if declared.each_worker_jobs or declared.each_worker_job_array:
        env.append(variable("EACH_WORKER_JOBS", "true"))
        success = check.spec.success_reactions
        if success is not None and (released := success.remove_reservation) and released.prefix:
            env.append(variable("ACTIVE_CHECK_RESERVATION_PREFIX", released.prefix))
        failure = check.spec.failure_reactions
        if (
            failure is not None
            and failure.drain_slurm_node is not None
            and (reserved := failure.add_reservation)
            and reserved.prefix
        ):
            # A node that it drains is reserved as well, and is tried again all the same.
            env.append(variable("ACTIVE_CHECK_FAILURE_PREFIX", reserved.prefix))
    if node:
        env.append(variable("ACTIVE_CHECK_NODE", node))
    if declared.max_number_of_jobs:
        env.append(variable("ACTIVE_CHECK_MAX_NUMBER_OF_JOBS", str(declared.max_number_of_jobs)))
    env += jail_variables(cluster.spec) + auth.variables(cluster.spec)
    # Images of the original need them, and find the Job by them.
    env += [
        field_variable("K8S_POD_NAME", "metadata.name"),
        field_variable("K8S_POD_NAMESPACE", "metadata.namespace"),
    ]
    container = _container(check, given, mounts, env)
    if not given.image:
        container["image"] = cluster.spec.slurm_nodes.login.sshd.image
        container.setdefault("command", list(PROGRAM))
    return _pod(
        cluster,
        check,
        container,
        volumes,
        auth.sidecars(cluster.spec, _munge(cluster.spec, declared.munge_container)),
        given,
    )


def _of_kubernetes(cluster: ClusterInputs, check: ActiveCheck) -> Json:
    declared = check.spec.k8s_job_spec
    given = declared.job_container if declared is not None else CheckContainer()
    mounts: list[Json] = []
    volumes: list[Json] = []
    init: list[Json] = []
    if declared is not None and declared.munge_container is not None:
        mounts += [
            vol.mount(_CONFIGS, _CONFIGS_PATH, read_only=True),
            *auth.mounts(cluster.spec),
        ]
        volumes += [
            vol.config_map(_CONFIGS, names.slurm_configs(cluster.name)),
            *auth.volumes(cluster),
        ]
        init += auth.sidecars(cluster.spec, _munge(cluster.spec, declared.munge_container))
    container = _container(check, given, mounts, [])
    if declared is not None and declared.script_ref_name:
        path = "/opt/bin/entrypoint.sh"
        script = vol.config_map(_SCRIPT, declared.script_ref_name, _RUNNABLE)
        script["configMap"]["items"] = [{"key": "script.sh", "path": "entrypoint.sh"}]
        volumes.append(script)
        container["volumeMounts"].append(vol.mount(_SCRIPT, path, "entrypoint.sh", read_only=True))
        container["command"] = ["/bin/bash", path]
    return _pod(cluster, check, container, volumes, init, given)


def _container(
    check: ActiveCheck, given: CheckContainer, mounts: Sequence[Json], env: Sequence[Json]
) -> Json:
    """The user's container: variables of the operator follow the user's, and replace them."""
    out: Json = {
        "name": check.spec.name,
        "image": given.image,
        "imagePullPolicy": given.image_pull_policy,
        # The status shows the last words of a container that failed.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {**capabilities(SYS_ADMIN), **app_armor(given.app_armor_profile)},
        "volumeMounts": vol.with_mounts(mounts, merge.items(given.volume_mounts)),
    }
    if given.command:
        out["command"] = list(given.command)
    if given.args:
        out["args"] = list(given.args)
    if given.working_dir:
        out["workingDir"] = given.working_dir
    if every := merge.by_key(merge.items(given.env), env, "name"):
        out["env"] = every
    return out


def _pod(
    cluster: ClusterInputs,
    check: ActiveCheck,
    container: Json,
    volumes: Sequence[Json],
    init: Sequence[Json],
    given: CheckContainer,
) -> Json:
    spec = check.spec
    login = cluster.spec.slurm_nodes.login
    own = merge.items(given.volumes)
    taken = {one["name"] for one in own if "name" in one}
    made = pod_spec(
        init=init,
        containers=[container],
        volumes=[*(one for one in volumes if one["name"] not in taken), *own],
        place=place(spec.node_selector, spec.affinity, spec.tolerations),
        host_users=spec.host_users,
        pull_secrets=[
            given.image_pull_secrets,
            *([] if given.image else [login.sshd.image_pull_secrets]),
        ],
        service_account=names.check_account(cluster.name),
    )
    if not made["volumes"]:
        del made["volumes"]
    return {
        **made,
        "restartPolicy": "Never",
        "activeDeadlineSeconds": spec.active_deadline_seconds,
    }


def _munge(spec: SlurmClusterSpec, given: CheckContainer) -> NodeContainer:
    """The munge sidecar: image, command and profile are the check's, or those of the logins."""
    usual = spec.slurm_nodes.login.munge
    return NodeContainer(
        image=given.image or usual.image,
        command=given.command or usual.command,
        image_pull_policy=usual.image_pull_policy,
        image_pull_secrets=usual.image_pull_secrets,
        app_armor_profile=given.app_armor_profile,
    )
