"""Features that a Kubernetes Node gives its Slurm nodes: its annotation, with the prefix `k8s/`.

They are both available and active. All other features of a node are somebody else's and stay.
Source: scontrol(1), "update" of nodes, AvailableFeatures and ActiveFeatures.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.api.kubernetes.kinds import Node as KubernetesNode
from penstock.catalog.event import Event
from penstock.decide.action import EventReason, SetNodeFeatures
from penstock.decide.observed.worker import Worker
from penstock.model.worker_marks import WorkerMarks

FEATURE_PREFIX = "k8s/"
"""Slurm features that come from Kubernetes nodes begin with this; all others are left alone."""


def wanted(marks: WorkerMarks, node: KubernetesNode) -> frozenset[str]:
    """The features in the annotation of a Kubernetes node, with their prefix."""
    words = node.metadata.annotations.get(marks.features, "").split(",")
    return frozenset(f"{FEATURE_PREFIX}{word.strip()}" for word in words if word.strip())


def step(marks: WorkerMarks, worker: Worker) -> SetNodeFeatures | None:
    """The update of its Slurm node; none while its Kubernetes node is unknown."""
    node = worker.node
    if node is None or worker.kubernetes_node is None:
        return None
    want = wanted(marks, worker.kubernetes_node)
    if _ours(node.features) == want == _ours(node.active_features):
        return None
    features = ", ".join(sorted(want)) or "none"
    message = f"Node {node.name} now has the features of its Kubernetes node: {features}"
    return SetNodeFeatures(node.name, want, EventReason(Event.FEATURES_CHANGED, message))


def merged(have: Iterable[str], want: Iterable[str]) -> tuple[str, ...]:
    """The features of a Slurm node with these, and no others, of its Kubernetes node."""
    return tuple(sorted({one for one in have if not one.startswith(FEATURE_PREFIX)} | set(want)))


def _ours(features: Iterable[str]) -> frozenset[str]:
    return frozenset(one for one in features if one.startswith(FEATURE_PREFIX))
