"""Slurm release of a daemon's image: as the daemon reported it, else from the image's tag."""

from __future__ import annotations

from penstock.api.kubernetes.meta import Json
from penstock.api.kubernetes.spec_parts import PodTemplate
from penstock.api.slinky.controller import Controller
from penstock.api.slinky.nodeset import NodeSet
from penstock.render.parts.container_images import images
from penstock.render.parts.pod_template import http_probe, tcp_probe
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm import versions
from penstock.slurm.versions import Version


def image(name: str, default: str, container: Json, template: PodTemplate) -> str:
    """The image of a daemon's container, as the pod will have it."""
    theirs = images(template.spec).get(name, "")
    return theirs or container.get("image") or default


def slurmctld_image(cluster: ClusterInputs) -> str:
    """The image of slurmctld."""
    spec = cluster.controller.spec
    return image("slurmctld", cluster.images.slurmctld, spec.slurmctld, spec.template)


def of_slurmctld(cluster: ClusterInputs) -> Version | None:
    """The release of the desired slurmctld; None if it is unknown."""
    declared, status = slurmctld_image(cluster), cluster.controller.status
    if status.slurm_version and status.slurm_image == declared:
        return versions.parse(status.slurm_version)
    return versions.of_image(declared)


def running(cluster: ClusterInputs) -> Version | None:
    """The release of the slurmctld that reads the files: it may wait to be replaced."""
    return state(cluster.controller) or of_slurmctld(cluster)


def state(controller: Controller) -> Version | None:
    """The release of the slurmctld that has served last, and written its state."""
    return versions.parse(controller.status.state_version)


def of_slurmd(cluster: ClusterInputs, nodeset: NodeSet) -> Version | None:
    """The release of the slurmd that is declared.

    A tag that names none leaves what is known of slurmctld, of which no slurmd is newer.
    """
    spec = nodeset.spec
    found = versions.of_image(image("slurmd", cluster.images.slurmd, spec.slurmd, spec.template))
    if found is not None:
        return found
    known = running(cluster)
    return known if known is not None and known < versions.PROBES_SINCE else None


def probe(version: Version | None, path: str, port: str, **settings: int) -> Json:
    """A probe of slurmctld or slurmd: older ones answer no HTTP, so that it only connects."""
    if version is not None and version < versions.PROBES_SINCE:
        return tcp_probe(port, **settings)
    return http_probe(path, port, **settings)
