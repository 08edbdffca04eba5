"""Names of the pods, Slurm nodes and PVCs of a worker set."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.api.cluster.pod_names import node_suffix, ordinal_in


@dataclass(frozen=True, slots=True)
class WorkerNames:
    """How one worker set names what belongs to it.

    `pod_prefix` and `host_prefix` precede the ordinal in names of pods and of Slurm nodes.
    `padding` is the least number of digits of an ordinal. `uid` is that of the declaring object.
    `reservation` is the maintenance reservation in Slurm, `feature` the Slurm feature, node set and
    partition of all its nodes.
    """

    pod_prefix: str
    host_prefix: str
    padding: int
    uid: str
    reservation: str
    feature: str

    def pod(self, ordinal: int) -> str:
        """Pod of an ordinal."""
        return f"{self.pod_prefix}{str(ordinal).zfill(self.padding)}"

    def host(self, ordinal: int) -> str:
        """Slurm node of an ordinal, unless its pod uses the network of its Kubernetes node."""
        return f"{self.host_prefix}{str(ordinal).zfill(self.padding)}"

    def pod_on(self, node: str) -> str:
        """Pod of a Kubernetes node where each has one: the same for each pod there.

        It looks like a name that the API server generated.
        """
        return f"{self.pod_prefix}{node_suffix(self.uid, node)}"

    def ordinal_of(self, pod: str) -> int | None:
        """Ordinal in a pod's name; None for a name of another form."""
        return ordinal_in(self.pod_prefix, pod)

    def pvc(self, template: str, ordinal: int) -> str:
        """PVC of an ordinal, by the name of its template."""
        return f"{template}-{self.pod(ordinal)}"

    def pvc_on(self, template: str, host: str) -> str:
        """PVC of the pod of a Kubernetes node, by its Slurm node."""
        return f"{template}-{self.pod_prefix}{host}"
