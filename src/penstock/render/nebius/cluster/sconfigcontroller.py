"""sconfigcontroller's Deployment, and the rights that its pod needs.

The pod is to be created once the jail is filled: its init container creates a folder there.
"""

from __future__ import annotations

from typing import Final

from penstock.api.kubernetes.meta import Json
from penstock.api.nebius import labels, names
from penstock.api.nebius.common import GROUP
from penstock.render.nebius import volumes as vol
from penstock.render.nebius.cluster.services import rest_port
from penstock.render.nebius.container import container, variable
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.nebius.pod import filter_place, pod_spec, pull_secrets, template
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import object_metadata

_COMPONENT: Final = "sconfigcontroller"
_USER: Final = 1001
"""User and group of the files without spec.sConfigController.runAsUid and runAsGid."""
_METRICS_PORT: Final = 8443
_MAKE_FOLDER: Final = (
    'mkdir -p "$JAIL_CONFIG_PATH" && '
    'chown "$JAIL_UID:$JAIL_GID" "$JAIL_CONFIG_PATH" && chmod 755 "$JAIL_CONFIG_PATH"'
)
_RBAC: Final = "rbac.authorization.k8s.io"
_READ: Final = ["get", "list", "watch"]
_WRITE: Final = ["create", "update", "patch"]
_OWN_RULES: Final = (
    ("", "configmaps", _READ),
    (GROUP, "jailedconfigs", _READ),
    (GROUP, "jailedconfigs/status", ["patch"]),
    ("coordination.k8s.io", "leases", ["get", "create", "patch"]),
    ("events.k8s.io", "events", ["create", "patch"]),
)
_ORIGINAL_RULES: Final = (
    ("", "configmaps", _READ),
    ("", "secrets", _READ),
    ("coordination.k8s.io", "leases", [*_READ, *_WRITE]),
    (" events.k8s.io", "events", ["create", "patch"]),
    (GROUP, "jailedconfigs", [*_READ, *_WRITE, "delete"]),
    (GROUP, "jailedconfigs/status", ["get", "update", "patch"]),
    (GROUP, "jailedconfigs/finalizers", ["update"]),
)


def objects(cluster: ClusterInputs) -> list[Json]:
    """The Deployment, after the rights that it needs; nothing where there is no jail."""
    if not cluster.spec.has_jail:
        return []
    return [*account(cluster), deployment(cluster)]


def account(cluster: ClusterInputs) -> list[Json]:
    """ServiceAccount, Role and RoleBinding; none when the user names an account."""
    if cluster.spec.sconfig_controller.service_account_name:
        return []
    account_name = names.config_writer_account(cluster.cluster)
    role = names.config_writer_role(cluster.name)
    subject = {"kind": "ServiceAccount", "name": account_name, "namespace": cluster.namespace}
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": _metadata(cluster, account_name),
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "Role",
            "metadata": _metadata(cluster, role),
            "rules": _rules(cluster),
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": _metadata(cluster, names.config_writer_role_binding(cluster.name)),
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": role},
            "subjects": [subject],
        },
    ]


def deployment(cluster: ClusterInputs) -> Json:
    """The pods of sconfigcontroller."""
    declared = cluster.spec.sconfig_controller
    selector = labels.selector_labels(_COMPONENT, cluster.name)
    spec = pod_spec(
        first=declared.node.custom_init_containers,
        init=[_init_dir(cluster)],
        containers=[_sconfigctrl(cluster)],
        volumes=[vol.shared_jail(cluster.spec).manifest],
        place=filter_place(cluster.spec, declared.node.k8s_node_filter_name),
        priority_class=declared.node.priority_class,
        host_users=declared.node.host_users,
        pull_secrets=pull_secrets(declared.container, cluster.spec.slurm_nodes.controller.munge),
        service_account=names.config_writer_account(cluster.cluster),
    )
    uid, gid = _user(cluster)
    spec["securityContext"] = {"runAsUser": uid, "runAsGroup": gid}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(cluster, f"{cluster.prefix}sconfigcontroller"),
        "spec": {
            "replicas": cluster.replicas(max(declared.node.size or 1, 1)),
            "selector": {"matchLabels": selector},
            "template": template(selector, spec),
        },
    }


def _metadata(cluster: ClusterInputs, name: str) -> Json:
    object_labels = labels.object_labels(_COMPONENT, cluster.name)
    return object_metadata(name, cluster.namespace, object_labels, owner(cluster.cluster))


def _user(cluster: ClusterInputs) -> tuple[int, int]:
    declared = cluster.spec.sconfig_controller
    uid, gid = declared.run_as_uid, declared.run_as_gid
    return (_USER if uid is None else uid, _USER if gid is None else gid)


def _init_dir(cluster: ClusterInputs) -> Json:
    """Creates the folder of the files, with the image of munged, which has a shell."""
    munge = cluster.spec.slurm_nodes.controller.munge
    uid, gid = _user(cluster)
    return {
        "name": "init-dir",
        "image": munge.image,
        "imagePullPolicy": munge.image_pull_policy,
        "command": ["/bin/sh", "-c", _MAKE_FOLDER],
        "env": [
            variable("JAIL_CONFIG_PATH", vol.SLURM_ETC),
            variable("JAIL_UID", str(uid)),
            variable("JAIL_GID", str(gid)),
        ],
        "securityContext": {"runAsUser": 0},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [vol.jail_mount()],
    }


def _sconfigctrl(cluster: ClusterInputs) -> Json:
    declared = cluster.spec.sconfig_controller
    api = f"http://{names.service(cluster.name, 'rest')}.{cluster.namespace}.svc"
    metrics = [f"--metrics-bind-address=:{_METRICS_PORT}", "--metrics-secure=true"]
    made = container(
        "sconfigctrl",
        declared.container,
        mounts=[vol.jail_mount()],
        security={"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    )
    made.setdefault("command", ["/usr/bin/sconfigcontroller"])
    made["args"] = [
        f"--cluster-namespace={cluster.namespace}",
        f"--cluster-name={cluster.name}",
        f"--jail-path={vol.JAIL_PATH}",
        f"--slurmapiserver={api}:{rest_port(cluster.spec)}",
        *([] if cluster.is_older else metrics),
        "--leader-elect",
        f"--reconfigure-poll-interval={declared.reconfigure_poll_interval}",
        f"--reconfigure-wait-timeout={declared.reconfigure_wait_timeout}",
        *declared.container.args,
    ]
    if not declared.container.image:
        made["image"] = cluster.images.operator
    if not cluster.is_older:
        port = {"name": "https", "containerPort": _METRICS_PORT, "protocol": "TCP"}
        made["ports"] = [port]
    return made


def _rules(cluster: ClusterInputs) -> list[Json]:
    """Rights in the namespace; an image that the user names has those of the original."""
    if cluster.spec.sconfig_controller.container.image:
        return [_rule(*one) for one in _ORIGINAL_RULES]
    secret = {"resourceNames": [names.jwt_secret(cluster.name)]}
    return [{**_rule("", "secrets", ["get"]), **secret}, *(_rule(*one) for one in _OWN_RULES)]


def _rule(groups: str, resource: str, verbs: list[str]) -> Json:
    """`groups` are API groups with a space between them."""
    return {"apiGroups": groups.split(" "), "resources": [resource], "verbs": verbs}
