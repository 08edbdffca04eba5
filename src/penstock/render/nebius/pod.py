"""Pods of a SlurmCluster: placement, labels and the fields that all have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.meta import Json, LocalObjectReference
from penstock.api.kubernetes.pvc_spec import PvcSpec
from penstock.api.nebius import labels
from penstock.api.nebius.common import NodeContainer
from penstock.api.nebius.slurmcluster import NodeFilter, SlurmClusterSpec
from penstock.render.nebius.pvc_volumes import merge_pvcs
from penstock.render.parts import empty_values as empty
from penstock.render.parts import merge
from penstock.render.parts.plain import plain
from penstock.render.parts.pod_template import names_of


def pod_spec(
    *,
    containers: Iterable[Json],
    volumes: Iterable[Json],
    init: Iterable[Json] = (),
    first: Iterable[Json] = (),
    place: Json,
    priority_class: str = "",
    host_users: bool | None = None,
    pull_secrets: Iterable[tuple[LocalObjectReference, ...]] = (),
    service_account: str = "",
    mounts_token: bool = True,
) -> Json:
    """A pod spec. `first` are a user's init containers, which run before all others.

    Without a ServiceAccount the pod has no token, and its containers have none unless it
    `mounts_token`. Each PVC has one volume.
    """
    spec: Json = {
        **place,
        # One variable for each Service of the namespace would reach the jobs of all users.
        "enableServiceLinks": False,
        "initContainers": [*merge.items(first), *init],
        "containers": list(containers),
        "volumes": list(volumes),
    }
    if not spec["initContainers"]:
        del spec["initContainers"]
    if priority_class:
        spec["priorityClassName"] = priority_class
    if host_users is not None:
        spec["hostUsers"] = host_users
    if secrets := names_of(*pull_secrets):
        spec["imagePullSecrets"] = [{"name": name} for name in secrets]
    if service_account:
        # The API server writes the old name of the field too. Source: Kubernetes API reference,
        # PodSpec v1.
        spec |= {"serviceAccountName": service_account, "serviceAccount": service_account}
    if not service_account or not mounts_token:
        spec["automountServiceAccountToken"] = False
    return merge_pvcs(spec)


def filter_named(spec: SlurmClusterSpec, name: str) -> NodeFilter:
    """The entry of spec.k8sNodeFilters of that name; where there is none, that of slurmctld.

    Daemons that a SlurmCluster may leave out have no filter of their own then.
    """
    by_name = {one.name: one for one in reversed(spec.k8s_node_filters)}
    usual = by_name.get(spec.slurm_nodes.controller.k8s_node_filter_name, NodeFilter(name=""))
    return by_name.get(name, usual)


def place(
    node_selector: Mapping[str, str] | None, affinity: Json | None, tolerations: Iterable[Json]
) -> Json:
    """The Kubernetes nodes of a pod, as fields of its spec; without those that require nothing."""
    given: dict[str, Any] = {
        "affinity": empty.said(affinity or {}),
        "nodeSelector": dict(node_selector or {}),
        "tolerations": merge.items(tolerations),
    }
    return {field: value for field, value in given.items() if value}


def filter_place(spec: SlurmClusterSpec, name: str) -> Json:
    """As `place`, of an entry of spec.k8sNodeFilters."""
    found = filter_named(spec, name)
    return place(found.node_selector, found.affinity, found.tolerations)


def pull_secrets(*containers: NodeContainer) -> list[tuple[LocalObjectReference, ...]]:
    """Secrets with credentials of registries, of all containers."""
    return [one.image_pull_secrets for one in containers]


def template(pod_labels: Mapping[str, str], spec: Json) -> Json:
    """A workload's pod template."""
    main = spec["containers"][0]["name"]
    annotations = {app_labels.DEFAULT_CONTAINER: main}
    return {"metadata": {"labels": dict(pod_labels), "annotations": annotations}, "spec": spec}


def claim_templates(cluster: str, component: str, specs: Mapping[str, PvcSpec]) -> list[Json]:
    """The volumeClaimTemplates of a StatefulSet."""
    return [
        {
            "metadata": {"name": name, "labels": labels.object_labels(component, cluster)},
            "spec": empty.said(plain(spec)),
        }
        for name, spec in specs.items()
    ]
