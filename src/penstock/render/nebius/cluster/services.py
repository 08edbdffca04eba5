"""Services of a SlurmCluster."""

from __future__ import annotations

from typing import Any, Final

from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import Metadata, ServiceSpec
from penstock.api.nebius import labels, names
from penstock.api.nebius.nodeset import NodeSet
from penstock.api.nebius.slurmcluster import SlurmClusterSpec
from penstock.render.nebius.inputs import ClusterInputs
from penstock.render.parts.owner import owner
from penstock.render.parts.service import Port, service
from penstock.slurm import daemons

_NODE_PORT: Final = "NodePort"
_LOAD_BALANCER: Final = "LoadBalancer"


def objects(cluster: ClusterInputs) -> list[Json]:
    """All Services of a SlurmCluster, in the order of their names' first use by pods."""
    return [
        controller(cluster),
        rest(cluster),
        *workers(cluster),
        login_headless(cluster),
        login(cluster),
    ]


def slurmctld_port(cluster: ClusterInputs) -> int:
    """Port of slurmctld and of its Service."""
    return cluster.spec.slurm_nodes.controller.slurmctld.port or daemons.SLURMCTLD_PORT


def sshd_port(cluster: ClusterInputs) -> int:
    """Port of sshd in login pods, and of its Services."""
    return cluster.spec.slurm_nodes.login.sshd.port or daemons.SSH_PORT


def rest_port(spec: SlurmClusterSpec) -> int:
    """Port of the Service of slurmrestd; slurmrestd itself has a fixed one."""
    declared = spec.slurm_nodes.rest.rest
    return (declared.port if declared else None) or daemons.SLURMRESTD_PORT


def controller(cluster: ClusterInputs) -> Json:
    """The Service of slurmctld. It has the pod's address before the pod is ready.

    A pod is not ready either while a container beside slurmctld starts again.
    """
    selector = labels.selector_labels("controller", cluster.name)
    return service(
        names.service(cluster.name, "controller"),
        cluster.namespace,
        {**selector, labels.CONTROLLER_TYPE: labels.MAIN},
        (Port("slurmctld", slurmctld_port(cluster), "slurmctld"),),
        owner(cluster.cluster),
        labels=labels.object_labels("controller", cluster.name),
        user=ServiceSpec(spec={"type": "ClusterIP"}),
        unready=True,
    )


def rest(cluster: ClusterInputs) -> Json:
    """The Service of slurmrestd."""
    return _service(cluster, "rest", "rest", Port("", rest_port(cluster.spec), "slurmrestd"))


def login(cluster: ClusterInputs) -> Json:
    """The Service by which users reach the logins."""
    declared = cluster.spec.slurm_nodes.login
    kind = declared.sshd_service_type
    spec: dict[str, Any] = {"type": kind}
    if kind == _LOAD_BALANCER:
        if address := declared.sshd_service_load_balancer_ip:
            spec["loadBalancerIP"] = address
        if ranges := declared.sshd_service_load_balancer_source_ranges:
            spec["loadBalancerSourceRanges"] = list(ranges)
    node_port = declared.sshd_service_node_port if kind == _NODE_PORT else 0
    annotations = declared.sshd_service_annotations or None
    return _service(
        cluster,
        "login",
        "login",
        Port("", sshd_port(cluster), "sshd", node_port or None),
        user=ServiceSpec(metadata=Metadata(annotations=annotations), spec=spec),
    )


def login_headless(cluster: ClusterInputs) -> Json:
    """The Service of the login pods' names."""
    port = Port("", sshd_port(cluster), "sshd")
    return _service(cluster, "login-headless", "login", port, headless=True)


def workers(cluster: ClusterInputs) -> list[Json]:
    """The Services of the workers' names: one for all NodeSets, one for workers of the cluster."""
    found: list[Json] = []
    worker = cluster.spec.slurm_nodes.worker
    if worker is not None:
        port = worker.slurmd.port or daemons.SLURMD_PORT
        found.append(_service(cluster, "worker", "worker", Port("", port, "slurmd"), headless=True))
    if cluster.node_sets or worker is None:
        declared = {one.spec.slurmd.port or daemons.SLURMD_PORT for one in cluster.node_sets}
        ports = _slurmd_ports(sorted(declared) or [daemons.SLURMD_PORT])
        found.append(_service(cluster, "nodeset", "nodeset", *ports, headless=True))
    return found


def node_set(cluster: str, of: NodeSet) -> Json:
    """The Service of one NodeSet's workers. It lists their addresses; no name refers to it."""
    return service(
        names.node_set_service(cluster, of.metadata.name),
        of.metadata.namespace,
        labels.node_set_selector(of.metadata.name, cluster),
        (Port("", of.spec.slurmd.port or daemons.SLURMD_PORT, "slurmd"),),
        owner(of),
        labels=labels.object_labels("nodeset", cluster),
        headless=True,
    )


def _slurmd_ports(numbers: list[int]) -> list[Port]:
    """A port for each number; Kubernetes wants names where there are several."""
    if len(numbers) == 1:
        return [Port("", numbers[0], "slurmd")]
    return [Port(f"slurmd-{number}", number, "slurmd") for number in numbers]


def _service(
    cluster: ClusterInputs,
    part: str,
    component: str,
    *ports: Port,
    user: ServiceSpec | None = None,
    headless: bool = False,
) -> Json:
    return service(
        names.service(cluster.name, part),
        cluster.namespace,
        labels.selector_labels(component, cluster.name),
        ports,
        owner(cluster.cluster),
        labels=labels.object_labels(component, cluster.name),
        user=user or ServiceSpec(spec={"type": "ClusterIP"}),
        headless=headless,
    )
