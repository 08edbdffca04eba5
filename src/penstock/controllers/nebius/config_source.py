"""The configuration of a SlurmCluster's slurmctld, as the transaction leads it."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.api.cluster import marks
from penstock.api.kubernetes.kinds import Pod
from penstock.api.nebius import names
from penstock.api.nebius.slurmcluster import SlurmCluster
from penstock.controllers.config.source import ConfigSource
from penstock.controllers.nebius.clusters import NebiusClusters
from penstock.decide.config.view import Version
from penstock.decide.jail import job_namespaces
from penstock.render.config.content import content_hash
from penstock.render.nebius.config.files import files, own_hash
from penstock.render.nebius.config.inputs import ConfigInputs
from penstock.render.nebius.volumes import cluster_volume
from penstock.slurm import versions
from penstock.translate.nebius.cluster import MARKS


class ClusterConfig(ConfigSource):
    """That of one version of a SlurmCluster; `inputs` are what its files are rendered from.

    `kept` are files in force that stand for the declared ones: the original rendered them.
    """

    def __init__(
        self,
        cluster: SlurmCluster,
        inputs: ConfigInputs,
        clusters: NebiusClusters,
        kept: Mapping[str, str] | None = None,
    ) -> None:
        self._cluster = cluster
        self._clusters = clusters
        self._kept = kept
        self.inputs = inputs
        self.object = cluster
        self.marks = MARKS
        self.status = cluster.status
        self.startup = names.slurm_configs(cluster.metadata.name)
        self.last_known_good = names.last_known_good_configs(cluster.metadata.name)
        self.workload = f"{self.inputs.prefix}controller"
        given = cluster.spec.slurm_nodes.controller.volumes.spool
        spool = cluster_volume(cluster.spec, names.CONTROLLER_SPOOL, given)
        self.persistent = "emptyDir" not in spool.source

    def candidate(self) -> Version:
        """All files that the operator renders."""
        return self.version(files(self.inputs) if self._kept is None else self._kept)

    def has_own_sidecar(self) -> bool:
        """Not in a pod that the original made."""
        pods = self.slurmctld_pods()
        return not pods or marks.TRIES_CONFIG in pods[0].metadata.annotations

    def version(self, data: Mapping[str, str]) -> Version:
        """These files: nothing of the user's is beside them in the folder's hash."""
        return Version(data, content_hash(data), own_hash(data))

    def unfit(self, slurm_conf: str) -> str:
        """As for all clusters, or because steps are in a jail."""
        return super().unfit(slurm_conf) or job_namespaces.unfit(slurm_conf)

    def is_complete(self) -> bool:
        """Whether the files have all lines that the SlurmCluster declares."""
        return not self.inputs.accepted

    def image(self) -> str:
        """The declared image of slurmctld."""
        return self._cluster.spec.slurm_nodes.controller.slurmctld.image

    def declared_release(self) -> versions.Version | None:
        """That which the image reported, else that of its tag."""
        return self._clusters.release(self._cluster)

    def release(self) -> versions.Version | None:
        """That which served last, else that of the declared image."""
        served = versions.parse(self.status.state_version)
        return served if served is not None else self.declared_release()

    def slurmctld_pods(self) -> tuple[Pod, ...]:
        """There is one."""
        return self._clusters.slurmctld_pods(self._cluster)
