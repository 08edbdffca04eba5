"""Findings about a NodeSet that only inform: no decision about its workers depends on them."""

from __future__ import annotations

from penstock.api.kubernetes.conditions import Finding
from penstock.api.kubernetes.meta import Json
from penstock.api.slinky import names
from penstock.api.slinky.nodeset import NodeSet
from penstock.controllers.runtime.slurm_connections import UNCONNECTED, SlurmConnection
from penstock.decide.advice import container_rights, gpus, host_network
from penstock.decide.cluster import external
from penstock.decide.observed.view import WorkerSetView
from penstock.decide.slurm_node import default_topology, parameters, slurmd_version
from penstock.render.config import node_set
from penstock.render.slinky.cluster import release
from penstock.render.slinky.config.config_maps import mounted
from penstock.render.slinky.inputs import ClusterInputs
from penstock.render.slinky.nodeset import pod_spec
from penstock.slurm.conf.document import Document
from penstock.translate.slinky.cluster import slurm_node_set

_LISTENS = "slurmd listens on 6818, and on free ports for jobs,"


def has_partition(nodeset: NodeSet) -> bool:
    """Whether a NodeSet declares a partition of its own."""
    return nodeset.spec.partition is not None and nodeset.spec.partition.enabled


def findings(
    nodeset: NodeSet,
    view: WorkerSetView,
    cluster: ClusterInputs,
    connection: SlurmConnection | None,
) -> list[Finding]:
    """All of them, but for those that need state or logs."""
    slurmd = pod_spec.container(cluster, nodeset)
    return [
        *_external_partition(nodeset, cluster, connection),
        *_container_rights(nodeset, slurmd),
        *_gpus(nodeset, cluster, slurmd),
        *_slurmd_version(view, cluster, slurmd),
        *_topology(view, cluster),
        *host_network.findings(nodeset.spec.template.spec, _LISTENS, nodeset.status.conditions),
    ]


def _external_partition(
    nodeset: NodeSet, cluster: ClusterInputs, connection: SlurmConnection | None
) -> list[Finding]:
    """About its own partition, when the slurm.conf is that of an external slurmctld."""
    if not has_partition(nodeset) or not cluster.controller.spec.external:
        return []
    records = connection.partitions.records if connection is not None else UNCONNECTED
    found = slurm_node_set(nodeset)
    return [external.partition(found.name, node_set.lines(found), records)]


def _container_rights(nodeset: NodeSet, slurmd: Json) -> list[Finding]:
    """What containers of jobs lack, by what its workers are declared with."""
    pod = nodeset.spec.template.spec
    found = container_rights.finding(slurmd, pod, nodeset.status.conditions)
    return [found] if found is not None else []


def _slurmd_version(view: WorkerSetView, cluster: ClusterInputs, slurmd: Json) -> list[Finding]:
    """Whether slurmctld and the probes can work with the releases that its slurmds reported."""
    # Nobody reports the release of an external slurmctld.
    slurmctld = None if cluster.controller.spec.external else release.running(cluster)
    found = slurmd_version.finding(slurmctld, view.pods, view.nodes, slurmd)
    return [found] if found is not None else []


def _topology(view: WorkerSetView, cluster: ClusterInputs) -> list[Finding]:
    """Whether a job can use its nodes, by the topology.yaml that is declared here."""
    controller = cluster.controller.spec
    files = {} if controller.external else mounted(cluster, {})
    lines = [line for one in cluster.nodesets for line in node_set.lines(slurm_node_set(one))]
    named = [f"Topology={one.spec.topology}" for one in cluster.partitions if one.spec.topology]
    found = default_topology.finding(
        view.workers.marks,
        files,
        (controller.extra_conf, *lines, *named),
        view.pods,
        view.nodes,
        view.kubernetes_nodes,
    )
    return [found] if found is not None else []


def _gpus(nodeset: NodeSet, cluster: ClusterInputs, slurmd: Json) -> list[Finding]:
    """Whether what its workers are given is what Slurm's jobs may ask for."""
    controller = cluster.controller.spec
    conf, here = Document.parse(controller.extra_conf), not controller.external
    gres_conf = mounted(cluster, {}).get("gres.conf") if here else None
    if nodeset.spec.scaling_mode == "DaemonSet" and "nodename" in (gres_conf or "").lower():
        # Its nodes have the names of their Kubernetes nodes.
        gres_conf = None
    declared = gpus.GpuSpec(
        slurmd=slurmd,
        gres=parameters.read(nodeset.spec.extra_conf).gres,
        node=names.slurm_node_name(nodeset, 0),
        gres_conf=gres_conf,
        types=(conf.get("GresTypes") or "") if here and not conf.includes() else None,
    )
    found = gpus.finding(declared, nodeset.status.conditions)
    return [found] if found is not None else []
