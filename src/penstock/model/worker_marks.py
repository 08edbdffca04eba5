"""Keys by which one API marks worker pods, Kubernetes nodes and drains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TRUE = "true"


@dataclass(frozen=True, slots=True)
class CommentKeys:
    """Keys of the JSON object in the comment of a Slurm node.

    `namespace`, `pod` and `node` (of Kubernetes) are of its pod, `owner` and `owner_uid` name the
    object that declares it.
    """

    namespace: str
    pod: str
    node: str
    owner: str
    owner_uid: str


@dataclass(frozen=True, slots=True)
class WorkerMarks:
    """Labels, annotations and prefixes of one API. An empty key means that the API has none.

    On pods, annotations: `cordon` (drain its Slurm node; one at least, the first is written, all
    are read), `deadline` (RFC 3339, until when jobs may run there), `deletion_cost` (lower ones go
    first).
    On pods, labels: `protect` (has jobs), `revision` (hash of its template; the first is written,
    all are read), `per_node` with `per_node_value` (made for one Kubernetes node), `labels` (what
    users find a worker by and another operator may not have set).
    On Kubernetes nodes, annotations: `topology`, `features`, `hostname`, `cordon_reason`.
    `kind` is the declaring object's, as drain reasons name it. `drain_prefix` begins each drain
    reason of the operator; a reason without it is somebody else's.
    `state_prefix` begins the types of pod conditions that show the Slurm node's state.
    `reservation_finalizer` keeps a deleted object until its reservation is gone.
    `comment` are the keys in the comments of Slurm nodes.
    """

    kind: str
    cordon: tuple[str, ...]
    deadline: str
    deletion_cost: str
    protect: str
    revision: tuple[str, ...]
    per_node: str
    per_node_value: str
    labels: Mapping[str, str]
    topology: str
    features: str
    hostname: str
    cordon_reason: str
    drain_prefix: str
    state_prefix: str
    reservation_finalizer: str
    comment: CommentKeys

    def revision_of(self, labels: Mapping[str, str]) -> str | None:
        """Hash of the template that a pod was made from; None without a label that has it."""
        for key in self.revision:
            if (found := labels.get(key)) is not None:
                return found
        return None

    def is_cordoned(self, annotations: Mapping[str, str]) -> bool:
        """Whether a pod's annotations ask for a drain, by any of the keys."""
        return any(annotations.get(key) == TRUE for key in self.cordon)
