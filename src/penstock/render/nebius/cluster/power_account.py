"""Rights of power-manager, which slurmctld starts to power ephemeral nodes up and down.

Only a cluster with an ephemeral NodeSet has them, and only slurmctld's container has the token.
"""

from __future__ import annotations

from typing import Final

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import labels, names
from penstock.api.nebius.common import GROUP
from penstock.render.nebius import volumes as vol
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import object_metadata

_RBAC: Final = "rbac.authorization.k8s.io"
_RULES: Final = (("nodesets", ("get",)), ("nodesetpowerstates", ("get", "create", "update")))
_VOLUME: Final = "api-access"
_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_SECONDS: Final = 3607
"""Life of a token, as of those that the API server mounts itself."""


def account(cluster: ClusterInputs) -> str:
    """The ServiceAccount of slurmctld's pod; empty without one."""
    given = cluster.spec.slurm_nodes.controller.service_account_name
    return names.controller_account(cluster.cluster) if is_own(cluster) else given


def is_own(cluster: ClusterInputs) -> bool:
    """Whether the operator makes the ServiceAccount: the user names none, and one is needed."""
    named = cluster.spec.slurm_nodes.controller.service_account_name
    return not named and any(one.spec.ephemeral_nodes for one in cluster.node_sets)


def objects(cluster: ClusterInputs) -> list[Json]:
    """The ServiceAccount and its rights; none where they are not the operator's."""
    if not is_own(cluster):
        return []
    name = names.controller_account(cluster.cluster)
    role = {"apiGroup": _RBAC, "kind": "Role", "name": name}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": cluster.namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(cluster, name)},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "Role",
            "metadata": _metadata(cluster, name),
            "rules": [
                {"apiGroups": [GROUP], "resources": [resource], "verbs": list(verbs)}
                for resource, verbs in _RULES
            ],
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": _metadata(cluster, name),
            "roleRef": role,
            "subjects": [subject],
        },
    ]


def removed(cluster: ClusterInputs) -> list[tuple[str, str]]:
    """Kinds and names of the objects that the cluster has no use for."""
    if is_own(cluster):
        return []
    name = f"{cluster.name}-slurm-controller"
    return [(kind, name) for kind in ("RoleBinding", "Role", "ServiceAccount")]


def token_volumes(cluster: ClusterInputs) -> list[Json]:
    """The token of the ServiceAccount, with what a client needs beside it."""
    if not is_own(cluster):
        return []
    namespace = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    authority = {"key": "ca.crt", "path": "ca.crt"}
    sources = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": _SECONDS}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [authority]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return [{"name": _VOLUME, "projected": {"sources": sources}}]


def token_mounts(cluster: ClusterInputs) -> list[Json]:
    """Where slurmctld's container has it."""
    return [vol.mount(_VOLUME, _PATH, read_only=True)] if is_own(cluster) else []


def _metadata(cluster: ClusterInputs, name: str) -> Json:
    found = labels.object_labels("controller", cluster.name)
    return object_metadata(name, cluster.namespace, found, owner(cluster.cluster))
