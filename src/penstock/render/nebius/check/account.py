"""ServiceAccount, Role and RoleBinding of the pods of all checks of a SlurmCluster."""

from __future__ import annotations

from typing import Final

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import labels, names
from penstock.api.nebius.common import GROUP
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import object_metadata

_RBAC: Final = "rbac.authorization.k8s.io"
_RULES: Final = (
    ("", "pods", ("get",)),
    ("batch", "jobs", ("create", "get", "patch")),
    ("batch", "cronjobs", ("get",)),
    (GROUP, "activechecks", ("get", "list")),
)
"""Rights that images of the original need. Penstock's own program uses none of them."""


def objects(cluster: SlurmCluster) -> list[Json]:
    """The account and its rights, in the order in which they are created."""
    name, space = cluster.metadata.name, cluster.metadata.namespace
    account, role = names.check_account(name), names.check_role(name)
    subject = {"kind": "ServiceAccount", "name": account, "namespace": space}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(cluster, account)},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "Role",
            "metadata": metadata(cluster, role),
            "rules": [
                {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
                for group, resource, verbs in _RULES
            ],
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata(cluster, names.check_role_binding(name)),
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": role},
            "subjects": [subject],
        },
    ]


def metadata(cluster: SlurmCluster, name: str) -> Json:
    """Metadata of an object of checks, which the SlurmCluster owns."""
    given = labels.object_labels(labels.CHECKS, cluster.metadata.name)
    return object_metadata(name, cluster.metadata.namespace, given, owner(cluster))
