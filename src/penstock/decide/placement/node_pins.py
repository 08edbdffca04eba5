"""`pinToNode`: the Kubernetes node to which the pod of an ordinal returns.

It is the one that the pod ran on; the status remembers it while the pod is away, also while the
ordinal is scaled in. It is forgotten when that node is gone or does not fit any more, and when the
option is off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.decide.observed.view import WorkerSetView
from penstock.decide.observed.worker import Worker
from penstock.decide.placement.node_fit import NodeFit, evaluate


def pins(view: WorkerSetView, every: Iterable[Worker]) -> Mapping[str, str]:
    """Kubernetes node by ordinal; `view.kubernetes_nodes` needs those that the status names."""
    workers = view.workers
    if not workers.pin_to_node or workers.per_node:
        return {}
    last = workers.last.ordinal_to_node
    runs: dict[str, str] = {}
    for worker in every:
        name, ordinal = worker.pod.spec.node_name, worker.ordinal
        if not name or ordinal is None or worker.is_per_node:
            continue
        if worker.pod.status.phase == "Running":
            runs[str(ordinal)] = name
    if runs == last:
        # Nearly always, and there may be thousands.
        return last
    required = workers.placement
    found: dict[str, str] = {}
    for ordinal, name in last.items():
        node = view.kubernetes_nodes.get(name)
        # An invalid template excludes no Kubernetes node.
        if node is not None and (required is None or evaluate(required, node) is not NodeFit.NOT):
            found[ordinal] = name
    return dict(sorted((found | runs).items(), key=lambda one: int(one[0])))
