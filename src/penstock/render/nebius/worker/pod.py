"""The pod of one worker, and its PVCs.

The pod has one name with its Slurm node, and its hostname. What the entry point of the slurmd image
reads is in `render.nebius.worker.env`. The pod has no ServiceAccount token: jobs run in it.
"""

from __future__ import annotations

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import labels
from penstock.model.worker_set import WorkerSet
from penstock.model.worker_slot import WorkerSlot
from penstock.render.nebius import auth
from penstock.render.nebius import volumes as vol
from penstock.render.nebius.cluster import populate_jail
from penstock.render.nebius.cluster.login import searches
from penstock.render.nebius.container import SYS_ADMIN, capabilities, container, jail_security
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.nebius.pod import pod_spec
from penstock.render.nebius.worker.env import environment
from penstock.render.nebius.worker.own_root import own_root, own_root_secrets
from penstock.render.nebius.worker.revision import revision
from penstock.render.nebius.worker.template import WorkerTemplate, worker_template
from penstock.render.nebius.worker.volumes import worker_mounts, worker_volumes
from penstock.render.parts import empty_values as empty
from penstock.render.parts.node_pin import pin_to_node
from penstock.render.parts.owner import owner
from penstock.render.parts.plain import plain
from penstock.render.parts.pod_template import object_metadata, tcp_probe


def pod(
    cluster: ClusterInputs, workers: WorkerSet, slot: WorkerSlot, *, revision_hash: str = ""
) -> Json:
    """The pod of a slot, as it is to be created.

    `revision_hash` is that of `revision`, which is computed when it is empty.
    """
    of = worker_template(cluster, workers)
    meta = object_metadata(
        slot.pod,
        cluster.namespace,
        {
            **of.labels,
            app_labels.STATEFUL_SET_POD: slot.pod,
            labels.REVISION: revision_hash or revision(cluster, workers).hash,
        },
        owner(of.declared_by),
    )
    meta["annotations"] = {
        **of.annotations,
        **auth.pod_annotations(cluster.spec),
        app_labels.DEFAULT_CONTAINER: "slurmd",
    }
    spec = _pod_spec(cluster, workers, of, slot)
    if slot.node:
        pin_to_node(spec, slot.node)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def pvcs(cluster: ClusterInputs, workers: WorkerSet, slot: WorkerSlot) -> list[Json]:
    """The PVCs of a slot. They have no owner: the engine deletes them by the retention policy."""
    of = worker_template(cluster, workers)
    found_labels = {**labels.object_labels(of.component, cluster.name), **workers.selector}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": object_metadata(
                _pvc_name(workers, name, slot), cluster.namespace, found_labels
            ),
            "spec": empty.said(plain(spec)),
        }
        for name, spec in vol.templates(of.volumes).items()
    ]


def _pvc_name(workers: WorkerSet, template: str, slot: WorkerSlot) -> str:
    if slot.ordinal is None:
        return workers.names.pvc_on(template, slot.slurm_node)
    return workers.names.pvc(template, slot.ordinal)


def _pod_spec(
    cluster: ClusterInputs, workers: WorkerSet, of: WorkerTemplate, slot: WorkerSlot
) -> Json:
    security = jail_security() if cluster.spec.has_jail else capabilities(SYS_ADMIN)
    if of.host_users is False:
        # In a user namespace the kernel allows a new /proc only where all of /proc is visible.
        security["procMount"] = "Unmasked"
    slurmd = container(
        "slurmd",
        of.slurmd,
        port=of.port,
        security=security,
        is_guaranteed=True,
        # A slurmd that waits for slurmctld has not failed: an hour, then something is wrong.
        probes={"startupProbe": tcp_probe("slurmd", periodSeconds=1, failureThreshold=3600)},
        env=environment(cluster, workers, of, slot),
        mounts=worker_mounts(cluster, of),
    )
    spec = pod_spec(
        first=of.init_containers,
        init=[
            *own_root(cluster.spec, of),
            *auth.sidecars(cluster.spec, of.munge),
            *(one.sidecar() for one in of.sssd),
        ],
        containers=[slurmd],
        volumes=[
            *worker_volumes(cluster, of),
            *vol.manifests(of.volumes),
            *(populate_jail.snapshot_volumes(cluster.spec) if of.shared is not None else ()),
            *(
                {
                    "name": name,
                    "persistentVolumeClaim": {"claimName": _pvc_name(workers, name, slot)},
                }
                for name in vol.templates(of.volumes)
            ),
        ],
        place=of.place,
        priority_class=of.priority_class,
        host_users=of.host_users,
        pull_secrets=[*of.pull_secrets, *own_root_secrets(cluster.spec, of)],
    )
    return {
        **spec,
        "hostname": slot.slurm_node,
        "subdomain": of.service,
        "dnsConfig": searches(cluster),
    }
