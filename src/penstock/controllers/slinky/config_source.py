"""The configuration of a Controller's slurmctld, as the transaction leads it."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.api.kubernetes.kinds import Pod
from penstock.api.slinky import names
from penstock.api.slinky.controller import Controller
from penstock.controllers.config.source import ConfigSource
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.decide.config.view import Version
from penstock.render.config.content import content_hash
from penstock.render.slinky.cluster import release
from penstock.render.slinky.cluster import slurmctld as render
from penstock.render.slinky.config.config_maps import config_hash, files, mounted, own_hash
from penstock.render.slinky.inputs import ClusterInputs
from penstock.slurm import versions
from penstock.translate.slinky.cluster import MARKS


class ControllerConfig(ConfigSource):
    """That of one version of a Controller, with the cluster that its files are rendered from."""

    def __init__(
        self, controller: Controller, cluster: ClusterInputs, clusters: SlinkyClusters
    ) -> None:
        self._controller = controller
        self._cluster = cluster
        self._clusters = clusters
        self.object = controller
        self.marks = MARKS
        self.status = controller.status
        self.startup = names.config_map(controller)
        self.last_known_good = names.config_map_alias(controller)
        self.workload = names.controller_workload(controller)
        self.persistent = controller.spec.persistent

    def candidate(self) -> Version:
        """The files that the operator renders, and the hash with the user's beside them."""
        data = files(self._cluster)
        return Version(data, config_hash(self._cluster), own_hash(self._cluster, data))

    def version(self, data: Mapping[str, str]) -> Version:
        """With the user's files of now beside these."""
        found = content_hash(mounted(self._cluster, data))
        return Version(data, found, own_hash(self._cluster, data))

    def is_complete(self) -> bool:
        """Whether the cluster has all lines that the Controller declares."""
        return self._cluster.controller is self._controller

    def has_own_sidecar(self) -> bool:
        """False when the Controller has another program in the container."""
        return render.tries_configuration(self._cluster)

    def image(self) -> str:
        """The operator's default when the Controller names none."""
        return release.slurmctld_image(self._cluster)

    def declared_release(self) -> versions.Version | None:
        """As its reconfigure container reported it, else by its tag."""
        return release.of_slurmctld(self._cluster)

    def release(self) -> versions.Version | None:
        """That which served last, else that of the declared image."""
        return release.running(self._cluster)

    def slurmctld_pods(self) -> tuple[Pod, ...]:
        """With backups the labelled one is the active one."""
        return self._clusters.slurmctld_pods(self._controller)
