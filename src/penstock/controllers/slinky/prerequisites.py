"""What RestApi, LoginSet and NodeSet wait for: their Controller, its keys and their sssd.conf."""

from __future__ import annotations

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.spec_parts import SecretKeySelector
from penstock.api.registry import problems
from penstock.api.slinky import names
from penstock.catalog.reasons.object import ObjectReason
from penstock.controllers.caches.secrets import SecretReader
from penstock.controllers.observed.members import ClusterMember
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.controllers.slinky.missing import foreign_keys
from penstock.render.slinky.inputs import ClusterInputs


def require_cluster(clusters: SlinkyClusters, member: ClusterMember) -> ClusterInputs | Finding:
    """The cluster that a member belongs to, or what is missing before its pods can start.

    Pods made earlier would hang on a missing Secret or be restarted when its hash becomes known.
    """
    name = member.spec.controller_ref.name
    controller = clusters.caches.controller_of(member)
    if controller is None:
        return Finding(
            False,
            ObjectReason.CONTROLLER_NOT_FOUND,
            f"spec.controllerRef: there is no Controller {name} in namespace "
            f"{member.metadata.namespace}. Create it, or correct the name",
        )
    if controller.metadata.deleting:
        return Finding(
            False,
            ObjectReason.CONTROLLER_DELETING,
            f"Controller {name} is being deleted. Delete this object too, or create {name} again",
        )
    if wrong := problems(controller):
        # What it declares now is not in effect, so nothing may follow it.
        return Finding(
            None,
            ObjectReason.CONTROLLER_INVALID,
            f"Controller {name} is invalid ({wrong[0]}); reconciliation is paused until it is "
            "fixed",
        )
    cluster, missing = clusters.cluster(controller), foreign_keys(clusters, controller)
    if not (cluster.slurm_key_hash and cluster.jwt_key_hash):
        missing += [
            ref.name
            for ref in (names.slurm_key_ref(controller), names.jwt_key_ref(controller))
            if not clusters.secrets.hash(cluster.namespace, ref)
        ]
    if missing:
        return Finding(
            None,
            ObjectReason.SECRET_NOT_FOUND,
            f"Waiting for the keys in Secret {' and '.join(missing)}",
        )
    return cluster


def sssd_conf_hash(
    secrets: SecretReader, namespace: str, ref: SecretKeySelector | None
) -> str | Finding:
    """Hash of sssd.conf, empty without a reference, or that it is absent.

    Over the one value that is named, as slurm-operator does it: what else is in the Secret
    concerns no pod.
    """
    if ref is None:
        return ""
    return secrets.value_hash(namespace, ref) or Finding(
        False,
        ObjectReason.SECRET_NOT_FOUND,
        f"sssdConfRef: there is no Secret {ref.name} with a key {ref.key} in namespace "
        f"{namespace}. Create it, or leave the reference out",
    )
