"""What RestApi, LoginSet and NodeSet wait for: their Controller and its keys."""

from __future__ import annotations

from penstock.api.kubernetes.conditions import Finding
from penstock.api.registry import problems
from penstock.api.slinky import names
from penstock.controllers.observed.members import ClusterMember
from penstock.controllers.runtime.caches import World
from penstock.render.slinky.inputs import ClusterInputs


def require_cluster(world: World, member: ClusterMember) -> ClusterInputs | Finding:
    """The cluster that a member belongs to, or what is missing before its pods can start.

    Pods made earlier would hang on a missing Secret or be restarted when its hash becomes known.
    """
    name = member.spec.controller_ref.name
    controller = world.controller_of(member)
    if controller is None:
        return Finding(
            False,
            "ControllerNotFound",
            f"spec.controllerRef: there is no Controller {name} in namespace "
            f"{member.metadata.namespace}. Nothing is made before it exists",
        )
    if controller.metadata.deleting:
        return Finding(False, "ControllerDeleting", f"Controller {name} is being deleted")
    if wrong := problems(controller):
        # What it declares now is not in effect, so nothing may follow it.
        return Finding(
            None,
            "ControllerInvalid",
            f"Controller {name} is wrong as it is declared ({wrong[0]}): nothing is changed for it",
        )
    cluster = world.cluster(controller)
    if not (cluster.slurm_key_hash and cluster.jwt_key_hash):
        missing = [
            ref.name
            for ref in (names.slurm_key_ref(controller), names.jwt_key_ref(controller))
            if not world.secret_hash(cluster.namespace, ref)
        ]
        return Finding(
            None, "SecretNotFound", f"Waiting for the keys in Secret {' and '.join(missing)}"
        )
    return cluster
