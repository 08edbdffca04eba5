"""The Job that fills the jail; `decide.jail.populate` decides when it is created.

Its annotations name the template that it was made from, and the maintenance mode. The same image
fills the root of a worker that has one of its own, in an init container of its pod.
"""

from __future__ import annotations

from typing import Final

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import labels, names
from penstock.api.nebius.common import NodeContainer
from penstock.api.nebius.slurmcluster import SlurmCluster, SlurmClusterSpec
from penstock.catalog.marks import penstock
from penstock.render.nebius import volumes as vol
from penstock.render.nebius.container import SYS_ADMIN, capabilities, container, variable
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.nebius.pod import filter_place, pod_spec, template
from penstock.render.parts.digest import digest
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import object_metadata

TEMPLATE: Final = penstock.JAIL_TEMPLATE.key
MODE: Final = penstock.JAIL_MODE.key
_NAME: Final = "populate-jail"
_SNAPSHOT: Final = "jail-snapshot"


def job(cluster: ClusterInputs, *, overwrite: bool) -> Json:
    """The Job. `overwrite`: it replaces the files of a filled jail."""
    pod_labels = labels.object_labels(_NAME, cluster.name)
    metadata = object_metadata(
        names.populate_job(cluster.name), cluster.namespace, pod_labels, owner(cluster.cluster)
    )
    metadata["annotations"] = {
        TEMPLATE: template_hash(cluster.cluster),
        MODE: cluster.spec.maintenance,
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "template": template(pod_labels, _pod_spec(cluster, overwrite=overwrite)),
        },
    }


def template_hash(cluster: SlurmCluster) -> str:
    """Hash of the declared fields that the Job is made from, but for `overwrite`.

    A newer operator with another manifest gives the same hash.
    """
    spec = cluster.spec
    declared = spec.populate_jail
    snapshot = declared.jail_snapshot_volume
    return digest(
        {
            "image": declared.image,
            "jail": vol.shared_jail(spec).source,
            "snapshot": vol.cluster_volume(spec, _SNAPSHOT, snapshot).source if snapshot else {},
            "place": filter_place(spec, declared.k8s_node_filter_name),
            "priority": declared.priority_class,
            "hostUsers": declared.host_users,
            "appArmor": declared.app_armor_profile,
            "secrets": [one.name for one in declared.image_pull_secrets],
        }
    )


def snapshot_volumes(spec: SlurmClusterSpec) -> list[Json]:
    """The volume with the snapshot to copy, if there is one."""
    given = spec.populate_jail.jail_snapshot_volume
    return [] if given is None else [vol.cluster_volume(spec, _SNAPSHOT, given).manifest]


def of_worker(spec: SlurmClusterSpec) -> Json:
    """The init container that fills the root of one worker.

    It replaces files of a filled root once the shared jail was filled or overwritten again.
    """
    return container(
        _NAME,
        _as_container(spec),
        env=[variable("FOLLOW", f"{vol.SHARED_PATH}{names.JAIL_MARKER.removeprefix('/etc')}")],
        mounts=[vol.jail_mount(), vol.shared_etc_mount(), *_snapshot_mounts(spec)],
        security=_security(),
    )


def _snapshot_mounts(spec: SlurmClusterSpec) -> list[Json]:
    return [vol.mount(_SNAPSHOT, "/jail") for _ in snapshot_volumes(spec)]


def _security() -> Json:
    return capabilities(SYS_ADMIN, "SETFCAP")


def _pod_spec(cluster: ClusterInputs, *, overwrite: bool) -> Json:
    declared = cluster.spec.populate_jail
    jail = vol.shared_jail(cluster.spec)
    env = [variable("OVERWRITE", "1" if overwrite else "0")]
    if cluster.is_older:
        env.append(variable("SLURM_CLUSTER_TYPE", cluster.cluster_type))
    populate = container(
        _NAME,
        _as_container(cluster.spec),
        env=env,
        mounts=[vol.jail_mount(), *_snapshot_mounts(cluster.spec)],
        security=_security(),
    )
    spec = pod_spec(
        containers=[populate],
        volumes=[jail.manifest, *snapshot_volumes(cluster.spec)],
        place=filter_place(cluster.spec, declared.k8s_node_filter_name),
        priority_class=declared.priority_class,
        host_users=declared.host_users,
        pull_secrets=[declared.image_pull_secrets],
    )
    return {**spec, "restartPolicy": "Never"}


def _as_container(spec: SlurmClusterSpec) -> NodeContainer:
    declared = spec.populate_jail
    return NodeContainer(
        image=declared.image,
        image_pull_policy=declared.image_pull_policy,
        app_armor_profile=declared.app_armor_profile,
    )
