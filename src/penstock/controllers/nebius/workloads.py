"""Whether the parts of a SlurmCluster have their pods, in words."""

from __future__ import annotations

from penstock.api.cluster.labels import is_from_chart
from penstock.api.kubernetes.conditions import Finding
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.controllers.nebius.clusters import NebiusClusters
from penstock.decide.pod.workload import workload
from penstock.model.image_sources import ImageSources
from penstock.translate.nebius.availability import Availability


def availability(
    clusters: NebiusClusters, cluster: SlurmCluster, jail: Finding, accounting: Finding | None
) -> Availability:
    """The parts of a SlurmCluster as the cache has their pods.

    `jail` is about its content, `accounting` about slurmdbd and its database.
    """
    nodes = cluster.spec.slurm_nodes

    def part(name: str, component: str, wanted: int | None) -> Finding:
        pods = clusters.pods(cluster, component)
        return workload(name, 1 if wanted is None else wanted, pods, images(cluster))

    return Availability(
        jail=jail,
        slurmctld=slurmctld(clusters, cluster),
        login=part("sshd", "login", nodes.login.size),
        sconfigcontroller=part(
            "sconfigctrl", "sconfigcontroller", cluster.spec.sconfig_controller.node.size
        )
        if cluster.spec.has_jail
        else None,
        rest=part("slurmrestd", "rest", 1),
        accounting=accounting,
    )


def slurmctld(clusters: NebiusClusters, cluster: SlurmCluster) -> Finding:
    """Whether slurmctld serves, as the cache has its pod now."""
    return workload("slurmctld", 1, clusters.slurmctld_pods(cluster), images(cluster))


def images(cluster: SlurmCluster) -> ImageSources:
    """Where the SlurmCluster declares the image of each container."""
    nodes = cluster.spec.slurm_nodes
    declared = {
        "slurmctld": {"image": nodes.controller.slurmctld.image},
        "munge": {"image": nodes.controller.munge.image},
        "sshd": {"image": nodes.login.sshd.image},
    }
    if (sssd := nodes.login.sssd or nodes.controller.sssd) is not None:
        declared["sssd"] = {"image": sssd.image}
    if nodes.accounting.slurmdbd is not None:
        declared["accounting"] = {"image": nodes.accounting.slurmdbd.image}
    chart = is_from_chart(cluster.metadata.labels)
    return ImageSources(cluster.metadata.namespace, {}, declared, chart)
