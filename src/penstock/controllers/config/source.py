"""What an API gives so that the configuration of its slurmctld can be led.

The transaction and the triggers read this and name no kind of any API group. Which fields of which
object it comes from, and how files are rendered, is the API's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from penstock.api.cluster.trigger import Trigger
from penstock.api.kubernetes.kinds import Pod
from penstock.api.kubernetes.meta import KubeObject
from penstock.decide.config.view import Version
from penstock.model.cluster import ClusterMarks
from penstock.slurm import versions
from penstock.slurm.conf import slurmctld_port


class ConfigStatus(Protocol):
    """What the last status of an object records of its slurmctld."""

    @property
    def config_hash(self) -> str:
        """Hash of the desired configuration."""
        ...

    @property
    def effective_config_hash(self) -> str:
        """Hash of the active configuration; empty while it is unknown."""
        ...

    @property
    def last_error(self) -> str:
        """Slurmctld's words when it rejected the desired configuration."""
        ...

    @property
    def slurm_image(self) -> str:
        """The image of slurmctld that reported its version of Slurm."""
        ...

    @property
    def slurm_version(self) -> str:
        """The version of Slurm in that image."""
        ...

    @property
    def mpi_plugins(self) -> tuple[str, ...]:
        """MPI plug-ins in that image; empty while they are unknown."""
        ...

    @property
    def state_version(self) -> str:
        """The version of the slurmctld that served last: no older one reads its state."""
        ...

    @property
    def triggers(self) -> tuple[Trigger, ...]:
        """Reconfigures and restarts that annotations requested, with their results."""
        ...


class ConfigSource(Protocol):
    """The configuration of one slurmctld in the version that a reconcile has read.

    Events are about `object`, whose annotations request reconfigures and restarts. `startup` and
    `last_known_good` are names of ConfigMaps in its namespace, `workload` is that of slurmctld's
    StatefulSet. `persistent` means that slurmctld's state outlives its pod.
    """

    object: KubeObject
    marks: ClusterMarks
    status: ConfigStatus
    startup: str
    last_known_good: str
    workload: str
    persistent: bool

    def candidate(self) -> Version:
        """The desired configuration."""
        ...

    def version(self, data: Mapping[str, str]) -> Version:
        """The version of /etc/slurm with these files in the operator's ConfigMap."""
        ...

    def is_complete(self) -> bool:
        """Whether `candidate` has all that is declared: no rejected part is left out."""
        return True

    def unfit(self, slurm_conf: str) -> str:
        """Why it cannot work in our pods, whatever a trial start shows; empty when it can."""
        return slurmctld_port.unfit(slurm_conf)

    def has_own_sidecar(self) -> bool:
        """Whether the pod's reconfigure container runs the operator's script."""
        return True

    def image(self) -> str:
        """The declared image of slurmctld."""
        ...

    def declared_release(self) -> versions.Version | None:
        """The release of that image; None while it is unknown."""
        ...

    def release(self) -> versions.Version | None:
        """The release of the slurmctld that reads the files; None while it is unknown."""
        ...

    def slurmctld_pods(self) -> tuple[Pod, ...]:
        """The pods of slurmctld as the cache has them now, the active one first."""
        ...
