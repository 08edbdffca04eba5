"""The answer to the binding of a pod: the place in Slurm's topology of its Kubernetes node."""

from __future__ import annotations

import msgspec

from penstock.api.cluster import labels as app_labels
from penstock.api.kubernetes.meta import KubeStruct, ObjectMeta
from penstock.api.slinky import labels as slinky_labels
from penstock.controllers.observed.slinky_clusters import SlinkyClusters
from penstock.decide.slurm_node import topology
from penstock.kube.webhook.review import AdmissionRequest, Answer
from penstock.translate.slinky.worker_set import MARKS

BIND = "/mutate--v1-binding"
"""The path of slurm-operator, and the only one for bindings."""


class _Target(KubeStruct, frozen=True):
    kind: str = ""
    name: str = ""


class _Binding(KubeStruct, frozen=True):
    """What the scheduler sends: which pod goes to which Node. Its annotations become the pod's."""

    metadata: ObjectMeta = ObjectMeta()
    target: _Target = _Target()


class PodBinding:
    """Answers about worker pods of Slinky's clusters."""

    def __init__(self, clusters: SlinkyClusters) -> None:
        self._clusters = clusters

    def bind(self, request: AdmissionRequest) -> Answer:
        """Give a worker pod the topology of the Kubernetes node that it is bound to.

        Only a topology that slurmctld cannot reject: it drains a node that registers with a wrong
        one. Any other is sent once the node has registered, see `decide.slurm_node.topology`.
        """
        binding = msgspec.json.decode(request.object, type=_Binding)
        caches = self._clusters.caches
        pod = caches.pods.get(f"{request.namespace}/{request.name or binding.metadata.name}")
        machine = caches.nodes.get(binding.target.name)
        if pod is None or machine is None or binding.target.kind not in ("", "Node"):
            return Answer()
        labels = pod.metadata.labels
        if labels.get(app_labels.APP_NAME) != "slurmd":
            return Answer()
        place = topology.wanted(MARKS, machine)
        cluster = f"{request.namespace}/{labels.get(slinky_labels.CLUSTER, '')}"
        controller = caches.controllers.get(cluster)
        if not place or controller is None:
            return Answer()
        data = self._clusters.config_data(controller)
        refs = controller.spec.config_file_refs or ()
        files = {file: text for ref in refs for file, text in data.get(ref.name, {}).items()}
        if not topology.exists(place, files):
            return Answer()
        there = binding.metadata.annotations
        # Replaced as a whole: a path would have to exist, and its slash be escaped.
        given = {**there, slinky_labels.TOPOLOGY: place}
        patch = {"op": "add", "path": "/metadata/annotations", "value": given}
        return Answer(patch=() if given == there else (patch,))
