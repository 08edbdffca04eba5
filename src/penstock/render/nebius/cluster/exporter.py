"""The exporter of Slurm's metrics: its Deployment, Service, rights and PodMonitor.

The container is the operator's image, or one that the SlurmCluster names: it has the program, the
arguments and the rights of soperator's.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import ServiceSpec
from penstock.api.nebius import labels, names
from penstock.api.nebius.common import NodeContainer
from penstock.render.nebius.cluster.services import rest_port
from penstock.render.nebius.container import container, variable
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.nebius.pod import filter_place, pod_spec, pull_secrets, template
from penstock.render.parts import merge
from penstock.render.parts.owner import owner
from penstock.render.parts.pod_template import object_metadata
from penstock.render.parts.service import Port, service

COMPONENT: Final = "exporter"
MONITOR_NAME: Final = "slurm-exporter"
"""app.kubernetes.io/name of the PodMonitor, by which Prometheus' operators select it."""
_PORTS: Final = {"metrics": 8080, "monitoring": 8081}
_PROGRAM: Final = "/usr/bin/soperator-exporter"
_RBAC: Final = "rbac.authorization.k8s.io"
_READ: Final = ["get", "list", "watch"]
_WATCH: Final = ["list", "watch"]
_OF_THE_POD: Final = "pod|instance|container"
"""Labels that would make other series of each new pod of the exporter."""


def objects(cluster: ClusterInputs) -> list[Json]:
    """All but the PodMonitor, the Deployment last; nothing while the exporter is disabled."""
    if not cluster.spec.slurm_nodes.exporter.enabled:
        return []
    return [*account(cluster), state(cluster), exporter_service(cluster), deployment(cluster)]


def removed(cluster: ClusterInputs) -> list[tuple[str, str]]:
    """Kinds and names of the objects of a disabled exporter."""
    name = names.exporter(cluster.prefix)
    return [
        ("Deployment", name),
        ("Service", names.service(cluster.name, COMPONENT)),
        ("ConfigMap", names.exporter_state(cluster.name)),
        ("RoleBinding", f"{name}-role-binding"),
        ("Role", f"{name}-role"),
        ("ServiceAccount", f"{name}-sa"),
    ]


def account(cluster: ClusterInputs) -> list[Json]:
    """ServiceAccount, Role and RoleBinding; none when the user names an account."""
    if cluster.spec.slurm_nodes.exporter.service_account_name:
        return []
    name = names.exporter_account(cluster.cluster, cluster.prefix)
    role = f"{names.exporter(cluster.prefix)}-role"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(cluster, name)},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "Role",
            "metadata": _metadata(cluster, role),
            "rules": _rules(cluster),
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": _metadata(cluster, f"{role}-binding"),
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": cluster.namespace}],
        },
    ]


def state(cluster: ClusterInputs) -> Json:
    """The ConfigMap in which the exporter keeps durations; its data is the exporter's."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(cluster, names.exporter_state(cluster.name)),
    }


def exporter_service(cluster: ClusterInputs) -> Json:
    """The Service by which a Prometheus without PodMonitors finds it."""
    return service(
        names.service(cluster.name, COMPONENT),
        cluster.namespace,
        labels.selector_labels(COMPONENT, cluster.name),
        tuple(Port(name, port, name) for name, port in _PORTS.items()),
        owner(cluster.cluster),
        labels=labels.object_labels(COMPONENT, cluster.name),
        user=ServiceSpec(spec={"type": "ClusterIP"}),
    )


def deployment(cluster: ClusterInputs) -> Json:
    """The pod of the exporter."""
    declared = cluster.spec.slurm_nodes.exporter
    selector = labels.selector_labels(COMPONENT, cluster.name)
    given = declared.exporter_container or NodeContainer(image="")
    spec = pod_spec(
        first=declared.custom_init_containers,
        containers=[_container(cluster, given)],
        volumes=[],
        place=filter_place(cluster.spec, declared.k8s_node_filter_name),
        priority_class=declared.priority_class,
        host_users=declared.host_users,
        pull_secrets=pull_secrets(given),
        service_account=names.exporter_account(cluster.cluster, cluster.prefix),
    )
    del spec["volumes"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(cluster, names.exporter(cluster.prefix)),
        "spec": {
            "replicas": cluster.replicas(1),
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": selector},
            "template": template(selector, spec),
        },
    }


def pod_monitor(cluster: ClusterInputs) -> list[Json]:
    """The PodMonitor, while the exporter is enabled."""
    exporter = cluster.spec.slurm_nodes.exporter
    if not exporter.enabled:
        return []
    declared = exporter.pod_monitor_config
    dropped = {"action": "labeldrop", "regex": _OF_THE_POD}
    endpoint: Json = {
        "path": "/metrics",
        "scheme": "http",
        "interval": declared.interval,
        "scrapeTimeout": declared.scrape_timeout,
        "relabelings": merge.items(declared.relabel_config),
        "metricRelabelings": [dropped, *merge.items(declared.metric_relabel_configs)],
    }
    endpoint = {key: value for key, value in endpoint.items() if value}
    spec: dict[str, Any] = {
        "jobLabel": declared.job_label,
        "namespaceSelector": {},
        "podMetricsEndpoints": [{**endpoint, "port": name} for name in _PORTS],
        "selector": {"matchLabels": labels.selector_labels(COMPONENT, cluster.name)},
    }
    name_labels = {app_labels.APP_NAME: MONITOR_NAME}
    name = names.exporter_monitor(cluster.name)
    return [
        {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PodMonitor",
            "metadata": object_metadata(
                name, cluster.namespace, name_labels, owner(cluster.cluster)
            ),
            "spec": spec,
        }
    ]


def _metadata(cluster: ClusterInputs, name: str) -> Json:
    object_labels = labels.object_labels(COMPONENT, cluster.name)
    return object_metadata(name, cluster.namespace, object_labels, owner(cluster.cluster))


def _container(cluster: ClusterInputs, given: NodeContainer) -> Json:
    exporter = cluster.spec.slurm_nodes.exporter
    rest = f"http://{names.service(cluster.name, 'rest')}.{cluster.namespace}.svc"
    slurmrestd = f"{rest}:{rest_port(cluster.spec)}"
    variables = {
        "CLUSTER_NAMESPACE": cluster.namespace,
        "CLUSTER_NAME": cluster.name,
        "SLURM_API_SERVER": slurmrestd,
        "COLLECTION_INTERVAL": exporter.collection_interval,
    }
    if not cluster.is_older:
        variables |= {
            "MAX_COLLECTOR_INFLIGHT": str(exporter.max_collector_inflight),
            "JOB_SOURCE": exporter.job_source,
            "ACCOUNTING_JOBS_LOOKBACK": exporter.accounting_jobs_lookback,
        }
    made = container(
        COMPONENT,
        given,
        mounts=[],
        env=[variable(f"SLURM_EXPORTER_{name}", value) for name, value in variables.items()],
        security={"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    )
    del made["volumeMounts"]
    made.setdefault("command", [_PROGRAM])
    made["args"] = [
        f"--cluster-namespace={cluster.namespace}",
        f"--cluster-name={cluster.name}",
        f"--slurm-api-server={slurmrestd}",
        *given.args,
    ]
    made["ports"] = [
        {"name": name, "containerPort": port, "protocol": "TCP"} for name, port in _PORTS.items()
    ]
    if not given.image:
        made["image"] = cluster.images.operator
    return made


def _rules(cluster: ClusterInputs) -> list[Json]:
    """Rights in the namespace; an image that the user names has those of the original too."""
    given = cluster.spec.slurm_nodes.exporter.exporter_container
    secrets = _rule("secrets", _READ)
    if given is None or not given.image:
        secrets = {**_rule("secrets", ["get"]), "resourceNames": [names.jwt_secret(cluster.name)]}
    durations = {"resourceNames": [names.exporter_state(cluster.name)]}
    return [
        secrets,
        {**_rule("configmaps", ["get", "patch"]), **durations},
        _rule("pods", _WATCH),
    ]


def _rule(resource: str, verbs: list[str]) -> Json:
    return {"apiGroups": [""], "resources": [resource], "verbs": verbs}
