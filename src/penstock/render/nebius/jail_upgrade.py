"""The Jobs of a JailUpgrade, which run images/entrypoints/jail_upgrade.py on the jail's volume.

Both images run beside it and do nothing: the program reads their roots by /proc, for which they
have no capability that it lacks. Source: ptrace(2), "Ptrace access mode checking".
"""

from __future__ import annotations

from typing import Final

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import labels
from penstock.api.nebius.common import NodeContainer
from penstock.api.penstock.jail_upgrade import JailUpgrade
from penstock.catalog.marks import penstock
from penstock.model.backup import UNCHANGED
from penstock.model.jail import UpgradeAction
from penstock.render.nebius import volumes as vol
from penstock.render.nebius.backup.job import READING, WRITING
from penstock.render.nebius.container import container, variable
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.nebius.pod import filter_place, pod_spec, pull_secrets, template
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import object_metadata

COMPONENT: Final = "jail-upgrade"
LABEL: Final = penstock.JAIL_UPGRADE.key
_PROGRAM: Final = "/usr/local/libexec/penstock/jail_upgrade.py"
_RETRIES: Final = {UpgradeAction.COMPARE: 2, UpgradeAction.APPLY: 10, UpgradeAction.UNDO: 10}
"""A pod may be evicted, and its Kubernetes node lost: the next one goes on."""


def job_name(action: UpgradeAction, upgrade: str) -> str:
    """The Job of one step of a JailUpgrade."""
    return f"jail-{action.value}-{upgrade}"


def job(
    cluster: ClusterInputs, upgrade: JailUpgrade, action: UpgradeAction, from_image: str
) -> Json:
    """The Job of one step; `from_image` is the image that the jail has now."""
    name = upgrade.metadata.name
    found = {**labels.object_labels(COMPONENT, cluster.name), LABEL: name}
    metadata = object_metadata(job_name(action, name), cluster.namespace, found, owner(upgrade))
    exits = {"containerName": COMPONENT, "operator": "In", "values": [UNCHANGED]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "backoffLimit": _RETRIES[action],
            "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": exits}]},
            "template": template(found, _pod(cluster, upgrade, action, from_image)),
        },
    }


def _pod(
    cluster: ClusterInputs, upgrade: JailUpgrade, action: UpgradeAction, from_image: str
) -> Json:
    declared = cluster.spec.populate_jail
    jail = vol.shared_jail(cluster.spec)
    arguments = [action.value, "--id", upgrade.metadata.uid]
    if action is UpgradeAction.APPLY:
        arguments += ["--expect", upgrade.status.digest]
    reads = action is UpgradeAction.COMPARE
    main = container(
        COMPONENT,
        NodeContainer(
            image=upgrade.spec.program_image or cluster.images.backup,
            command=("/usr/bin/python3", _PROGRAM),
            args=tuple(arguments),
            app_armor_profile="",
        ),
        mounts=[vol.mount(jail.name, "/jail", read_only=reads)],
        security=_security(READING if reads else WRITING),
    )
    images = (
        {"old": from_image, "new": upgrade.spec.image} if action is not UpgradeAction.UNDO else {}
    )
    spec = pod_spec(
        init=[_image(cluster, role, image) for role, image in images.items()],
        containers=[main],
        volumes=[jail.manifest],
        place=filter_place(cluster.spec, declared.k8s_node_filter_name),
        priority_class=declared.priority_class,
        pull_secrets=[
            declared.image_pull_secrets,
            *pull_secrets(cluster.spec.slurm_nodes.controller.slurmctld),
        ],
    )
    return {**spec, "shareProcessNamespace": True, "restartPolicy": "Never"}


def _image(cluster: ClusterInputs, role: str, image: str) -> Json:
    """A container that has the image as its root until the others have ended."""
    given = NodeContainer(
        image=image,
        command=("tail", "-f", "/dev/null"),
        image_pull_policy=cluster.spec.populate_jail.image_pull_policy,
        app_armor_profile="",
    )
    mark = [variable("PENSTOCK_UPGRADE_ROOT", role)]
    made = container(role, given, env=mark, mounts=[], security=_security(()))
    return {**made, "restartPolicy": "Always"}


def _security(names: tuple[str, ...]) -> Json:
    dropped: Json = {"drop": ["ALL"], **({"add": list(names)} if names else {})}
    return {"allowPrivilegeEscalation": False, "capabilities": dropped, "runAsUser": 0}
